/* Shared by the AVX2 paths: everything except the product. The including file defines FN(op). */
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"
#include "isa_quantise_l1_body.h"

KGT_INLINE void FN(four_sums)(const __m256i v[4], int32_t *out) {
    const __m256i fours =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    _mm_storeu_si128((void *)out, _mm_add_epi32(_mm256_castsi256_si128(fours),
                                                _mm256_extracti128_si256(fours, 1)));
}

#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define LOAD_INT(p) _mm256_cvtepi32_ps(_mm256_loadu_si256((const void *)(p)))
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define LARGER(a, b) _mm256_max_ps(a, b)
#define SET1(s) _mm256_set1_ps(s)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ABOVE(x, t) (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, t, _CMP_GT_OQ))
#define REACHES(x, t) (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, t, _CMP_GE_OQ))
#include "isa_judge_body.h"
#define FINE __m256i
#define FINE_LANES 16
#define FINE_ZERO _mm256_setzero_si256()
#define FINE_STEP(sum, p, q)                                                             \
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_loadu_si256((const void *)(p)), \
                                                  _mm256_loadu_si256((const void *)(q))))
#define FINE_STEP_L1(sum, p, q, w)                                                             \
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_abs_epi16(_mm256_sub_epi16(           \
                                                      _mm256_loadu_si256((const void *)(p)),   \
                                                      _mm256_loadu_si256((const void *)(q)))), \
                                                  _mm256_loadu_si256((const void *)(w))))
#define FINE_SUM4(out, v) FN(four_sums)(v, out)
#define PARTS 2
#define REGISTERS 2
#define W(op) _mm256_##op
#define WORDS __m256i
#define FLOATS __m256
#define DOUBLES __m256d
#define AS_FLOATS(v) _mm256_castsi256_ps(v)
#define AS_DOUBLES(v) _mm256_castsi256_pd(v)
#define PART(p) _mm_loadu_si128((const void *)(p))
#define JOINED(v, step, k) \
    _mm256_inserti128_si256(_mm256_castsi128_si256(PART((v)[0] + (k))), PART((v)[step] + (k)), 1)
#include "isa_pairs_body.h"
#include "isa_four_body.h"
#include "isa_refine_body.h"

/* Distances as in isa_bytes_avx512_body.h, for half a panel. */
#define L1_QUERIES 4

KGT_INLINE void FN(l1_registers)(const uint8_t *queries, const int8_t *entities, size_t groups,
                                 int32_t *out, size_t stride) {
    __m256i even[L1_QUERIES], odd[L1_QUERIES];
    KGT_UNROLL
    for (int i = 0; i < L1_QUERIES; i++) even[i] = odd[i] = _mm256_setzero_si256();
    for (size_t k = 0; k < groups; k += 2) {
        const __m256i evens = _mm256_loadu_si256((const void *)(entities + k * 64));
        const __m256i odds = _mm256_loadu_si256((const void *)(entities + k * 64 + 64));
        KGT_UNROLL
        for (int i = 0; i < L1_QUERIES; i++) {
            int64_t eight;
            memcpy(&eight, queries + ((size_t)i * groups + k) * 4, sizeof eight);
            const __m256i query = _mm256_set1_epi64x(eight);
            even[i] = _mm256_add_epi64(even[i], _mm256_sad_epu8(query, evens));
            odd[i] = _mm256_add_epi64(odd[i], _mm256_sad_epu8(query, odds));
        }
    }
    KGT_UNROLL
    for (int i = 0; i < L1_QUERIES; i++)
        _mm256_storeu_si256(
            (void *)(out + (size_t)i * stride),
            _mm256_sub_epi32(_mm256_setzero_si256(),
                             _mm256_or_si256(even[i], _mm256_slli_epi64(odd[i], 32))));
}

static void FN(product_l1)(const uint8_t *queries, const int8_t *panels, size_t groups,
                           size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    (void)start;
    for (size_t j = 0; j < n_panels * KGT_BYTE_PANEL; j += 8)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += L1_QUERIES)
            FN(l1_registers)(queries + i * groups * 4, panels + j / 16 * groups * 64 + j % 16 * 4,
                             groups, out + i * stride + j, stride);
}
