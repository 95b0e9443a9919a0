/* Undefines the macros that differ between 32-bit scores and widened 16-bit scores. */
#undef X
#undef FN
#undef LOAD
#undef LOAD_TAIL
