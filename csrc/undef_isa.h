/* Clears what an ISA file defines for count_body.h and tile_body.h, before its next element type.
 */
#undef T
#undef FN
#undef VEC
#undef LANES
#undef MASK
#undef LOAD
#undef LOAD_TAIL
#undef STORE
#undef SET1
#undef LARGER
#undef FMA
#undef FMA1
#undef COUNTER
#undef COUNTER_ZERO
#undef COUNT_IF
#undef COUNT_GT
#undef COUNT_GE
#undef COUNTER_SUM
#undef NANS
#undef NANS_NONE
#undef NANS_MEET
#undef NANS_ANY
#undef TILE_ROWS
#undef TILE_VECTORS
