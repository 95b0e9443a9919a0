/* Chains of pairs of vectors, in float and in double, for every ISA. The including file defines
 * FN(op). If a register has several parts of 128 bits, it also defines PARTS, their number;
 * REGISTERS, how many run side by side; W(op), their operations; WORDS, FLOATS and DOUBLES, their
 * types; AS_FLOATS(v), AS_DOUBLES(v); JOINED(v, step, k), a part of v[0] + k, v[step] + k, ... */

#define T float
#define TYPED(op) FN(op##_f32)
#define FUSED(a, b, c) fmaf(a, b, c)
#define MAGNITUDE(a) fabsf(a)
#define OP(op) W(op##_ps)
#define VECTOR FLOATS
#define AS_VECTOR(v) AS_FLOATS(v)
#include "isa_chains_body.h"
#undef T
#undef TYPED
#undef FUSED
#undef MAGNITUDE
#undef OP
#undef VECTOR
#undef AS_VECTOR

#define T double
#define TYPED(op) FN(op##_f64)
#define FUSED(a, b, c) fma(a, b, c)
#define MAGNITUDE(a) fabs(a)
#define OP(op) W(op##_pd)
#define VECTOR DOUBLES
#define AS_VECTOR(v) AS_DOUBLES(v)
#include "isa_chains_body.h"
#undef T
#undef TYPED
#undef FUSED
#undef MAGNITUDE
#undef OP
#undef VECTOR
#undef AS_VECTOR
