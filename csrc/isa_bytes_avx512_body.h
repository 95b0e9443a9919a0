/* Shared by the AVX-512 paths: everything except the product. The including file defines FN(op). */
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"
#include "isa_quantise_l1_body.h"

/* Adds halves and then neighbours, until the four sums are side by side. */
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
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define LARGER(a, b) _mm512_max_ps(a, b)
#define SET1(s) _mm512_set1_ps(s)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ABOVE(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GT_OQ)
#define REACHES(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GE_OQ)
#define FINE __m512i
#define FINE_LANES 32
#define FINE_ZERO _mm512_setzero_si512()
#define FINE_STEP(sum, p, q) \
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_loadu_si512(p), _mm512_loadu_si512(q)))
#define FINE_STEP_L1(sum, p, q, w)                                                                 \
    sum = _mm512_add_epi32(                                                                        \
        sum, _mm512_madd_epi16(                                                                    \
                 _mm512_abs_epi16(_mm512_sub_epi16(_mm512_loadu_si512(p), _mm512_loadu_si512(q))), \
                 _mm512_loadu_si512(w)))
#define FINE_SUM4(out, v) FN(four_sums)(v, out)
#include "isa_judge_body.h"
#define PARTS 4
#define REGISTERS 1
#define W(op) _mm512_##op
#define WORDS __m512i
#define FLOATS __m512
#define DOUBLES __m512d
#define AS_FLOATS(v) _mm512_castsi512_ps(v)
#define AS_DOUBLES(v) _mm512_castsi512_pd(v)
#define PART(p) _mm_loadu_si128((const void *)(p))
#define JOINED(v, step, k)                                                                \
    _mm512_inserti32x4(                                                                   \
        _mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(PART((v)[0] + (k))), \
                                              PART((v)[step] + (k)), 1),                  \
                           PART((v)[2 * (step)] + (k)), 2),                               \
        PART((v)[3 * (step)] + (k)), 3)
#include "isa_pairs_body.h"
#include "isa_four_body.h"
#include "isa_refine_body.h"

/* Distances: a 64-bit lane holds a sum of eight bytes. In the end, an even entity and its odd
 * neighbour share a lane. */
#define L1_QUERIES 4

KGT_INLINE void FN(l1_registers)(const uint8_t *queries, const int8_t *panel, size_t groups,
                                 int32_t *out, size_t stride) {
    __m512i even[L1_QUERIES], odd[L1_QUERIES];
    KGT_UNROLL
    for (int i = 0; i < L1_QUERIES; i++) even[i] = odd[i] = _mm512_setzero_si512();
    for (size_t k = 0; k < groups; k += 2) {
        const __m512i evens = _mm512_loadu_si512(panel + k * 64);
        const __m512i odds = _mm512_loadu_si512(panel + k * 64 + 64);
        KGT_UNROLL
        for (int i = 0; i < L1_QUERIES; i++) {
            int64_t eight;
            memcpy(&eight, queries + ((size_t)i * groups + k) * 4, sizeof eight);
            const __m512i query = _mm512_set1_epi64(eight);
            even[i] = _mm512_add_epi64(even[i], _mm512_sad_epu8(query, evens));
            odd[i] = _mm512_add_epi64(odd[i], _mm512_sad_epu8(query, odds));
        }
    }
    KGT_UNROLL
    for (int i = 0; i < L1_QUERIES; i++)
        _mm512_storeu_si512(
            out + (size_t)i * stride,
            _mm512_sub_epi32(_mm512_setzero_si512(),
                             _mm512_or_si512(even[i], _mm512_slli_epi64(odd[i], 32))));
}

static void FN(product_l1)(const uint8_t *queries, const int8_t *panels, size_t groups,
                           size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    (void)start;
    for (size_t j = 0; j < n_panels; j++)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += L1_QUERIES)
            FN(l1_registers)(queries + i * groups * 4, panels + j * groups * 64, groups,
                             out + i * stride + j * KGT_BYTE_PANEL, stride);
}
