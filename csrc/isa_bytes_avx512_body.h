/* What AMX and AVX-512 VNNI share: all but the product. The including file defines FN(op). */
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"

/* Halves and then neighbours, until the four sums lie side by side. */
KGT_INLINE void FN(four_sums)(const __m512i v[4], int32_t *out) {
    __m256i half[4];
    KGT_UNROLL
    for (int i = 0; i < 4; i++)
        half[i] =
            _mm256_add_epi32(_mm512_castsi512_si256(v[i]), _mm512_extracti64x4_epi64(v[i], 1));
    const __m256i fours =
        _mm256_hadd_epi32(_mm256_hadd_epi32(half[0], half[1]), _mm256_hadd_epi32(half[2], half[3]));
    _mm_storeu_si128((void *)out, _mm_add_epi32(_mm256_castsi256_si128(fours),
                                                _mm256_extracti128_si256(fours, 1)));
}

#define VEC __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_INT(p) _mm512_cvtepi32_ps(_mm512_loadu_si512(p))
#define SET1(s) _mm512_set1_ps(s)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ABOVE(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GT_OQ)
#define REACHES(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GE_OQ)
#define FINE __m512i
#define FINE_LANES 32
#define FINE_ZERO _mm512_setzero_si512()
#define FINE_STEP(sum, p, q) \
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_loadu_si512(p), _mm512_loadu_si512(q)))
#define FINE_SUM4(out, v) FN(four_sums)(v, out)
#include "isa_judge_body.h"
#include "isa_pairs_body.h"
#include "isa_refine_body.h"
