/* Clears what differs between scores of 32 bits and of 16 that are widened to them. */
#undef X
#undef FN
#undef LOAD
#undef LOAD_TAIL
