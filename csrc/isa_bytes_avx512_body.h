/* What AMX and AVX-512 VNNI share: all but the product. The including file defines FN(op). */
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"

/* Quarters of vectors side by side, until a quarter has what is left of one vector. */
KGT_INLINE void FN(four_sums)(const __m512 v[4], float *out) {
    const __m512 a = _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x44),
                                   _mm512_shuffle_f32x4(v[0], v[1], 0xEE));
    const __m512 b = _mm512_add_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x44),
                                   _mm512_shuffle_f32x4(v[2], v[3], 0xEE));
    const __m512 c =
        _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
    const __m512 d = _mm512_add_ps(c, _mm512_permute_ps(c, 0xB1));
    const __m512 sums = _mm512_add_ps(d, _mm512_permute_ps(d, 0x4E));
    const __m512i firsts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, sums)));
}

#define VEC __m512
#define LANES 16
#define MASK(n) (__mmask16)((1u << (n)) - 1u)
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_INT(p) _mm512_cvtepi32_ps(_mm512_loadu_si512(p))
#define LOAD_TAIL(p, n, fill) _mm512_mask_loadu_ps(_mm512_set1_ps(fill), MASK(n), p)
#define SET1(s) _mm512_set1_ps(s)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define SUM4(out, v) FN(four_sums)(v, out)
#define ABOVE(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GT_OQ)
#define PUT(words, i, lanes) _store_mask16((__mmask16 *)(void *)((char *)(words) + (i) / 8), lanes)
#define REACHES(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GE_OQ)
#include "isa_dots_body.h"
#include "isa_judge_body.h"
