/* Chains of some pairs of vectors, in float and in double, for every ISA. The including file
 * defines FN(op). */

#define T float
#define TYPED(op) FN(op##_f32)
#define FUSED(a, b, c) fmaf(a, b, c)
#define MAGNITUDE(a) fabsf(a)
#include "isa_chains_body.h"
#undef T
#undef TYPED
#undef FUSED
#undef MAGNITUDE

#define T double
#define TYPED(op) FN(op##_f64)
#define FUSED(a, b, c) fma(a, b, c)
#define MAGNITUDE(a) fabs(a)
#include "isa_chains_body.h"
#undef T
#undef TYPED
#undef FUSED
#undef MAGNITUDE
