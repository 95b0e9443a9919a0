/* What AMX and AVX-512 VNNI share: all but the product. The including file defines FN(op). */
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_quantise_body.h"

#define VEC __m512
#define LANES 16
#define MASK(n) (__mmask16)((1u << (n)) - 1u)
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_INT(p) _mm512_cvtepi32_ps(_mm512_loadu_si512(p))
#define LOAD_TAIL(p, n, fill) _mm512_mask_loadu_ps(_mm512_set1_ps(fill), MASK(n), p)
#define SET1(s) _mm512_set1_ps(s)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define SUM(v) _mm512_reduce_add_ps(v)
#define ABOVE(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GT_OQ)
#define REACHES(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GE_OQ)
#include "isa_dots_body.h"
#include "isa_judge_body.h"
