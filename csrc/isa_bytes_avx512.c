/* Products and distances of 8-bit vectors with AVX-512. There are two paths with different
 * products; the shared code is compiled once. */
#define _GNU_SOURCE
#include "isa_bytes.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

KGT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt")

#define FN(op) op##_bytes_avx512
#include "isa_bytes_avx512_body.h"

KGT_TARGET_END

/* ---- processors that cannot multiply bytes: only distances ---- */

static bool available(void) {
    return kgt_cpu_has(KGT_AVX512F | KGT_AVX512BW | KGT_AVX512DQ | KGT_AVX512VL | KGT_AVX2 |
                       KGT_FMA | KGT_BMI2 | KGT_POPCNT);
}

const kgt_bytes kgt_bytes_avx512sad = {
    .name = "avx512sad",
    .available = available,
    .dot = {NULL, NULL, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};

/* ---- VNNI: four bytes of 16 entities per step ---- */

KGT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt,avx512vnni")

/* The first factor of the instruction is unsigned, so queries have 128 added to each byte. */
#define QUERIES 4
#define PANELS KGT_BYTE_PANELS

/* The empty instruction changes the sum in its register. Otherwise gcc copies sums to other
 * registers and back at every step. */
KGT_INLINE __m512i plus_products(__m512i sum, __m512i query, __m512i entity) {
    sum = _mm512_dpbusd_epi32(sum, query, entity);
    __asm__("" : "+v"(sum));
    return sum;
}

/* Products of some queries with the entities of a word. */
KGT_INLINE void word_products(const uint8_t *queries, const int8_t *panels, size_t groups,
                              const int32_t *start, __m512i sum[QUERIES][PANELS]) {
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) {
        KGT_UNROLL
        for (int j = 0; j < PANELS; j++) sum[i][j] = _mm512_loadu_si512(start + j * 16);
    }
    for (size_t k = 0; k < groups; k++) {
        __m512i entity[PANELS];
        KGT_UNROLL
        for (int j = 0; j < PANELS; j++)
            entity[j] = _mm512_loadu_si512(panels + ((size_t)j * groups + k) * 64);
        KGT_UNROLL
        for (int i = 0; i < QUERIES; i++) {
            int32_t four;
            memcpy(&four, queries + ((size_t)i * groups + k) * 4, sizeof four);
            const __m512i query = _mm512_set1_epi32(four);
            KGT_UNROLL
            for (int j = 0; j < PANELS; j++) sum[i][j] = plus_products(sum[i][j], query, entity[j]);
        }
    }
}

KGT_INLINE void put_down(const __m512i products[PANELS], int32_t *out) {
    KGT_UNROLL
    for (int j = 0; j < PANELS; j++) _mm512_storeu_si512(out + j * 16, products[j]);
}

static void product_vnni(const uint8_t *queries, const int8_t *panels, size_t groups,
                         size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    for (size_t j = 0; j < n_panels; j += PANELS)
        for (size_t first = 0; first < KGT_BYTE_QUERIES; first += QUERIES) {
            __m512i sum[QUERIES][PANELS];
            word_products(queries + first * groups * 4, panels + j * groups * 64, groups,
                          start + j * 16, sum);
            KGT_UNROLL
            for (size_t i = 0; i < QUERIES; i++)
                put_down(sum[i], out + (first + i) * stride + j * 16);
        }
}

/* Whether v of some entity is `low` or more. If entities have no shift, the largest product has the
 * largest v. */
KGT_INLINE bool reaches(const __m512i products[PANELS], const float *shift, float factor,
                        float low) {
    __m512 largest;
    if (shift == NULL) {
        largest = _mm512_cvtepi32_ps(_mm512_max_epi32(_mm512_max_epi32(products[0], products[1]),
                                                      _mm512_max_epi32(products[2], products[3])));
    } else {
        __m512 v[PANELS];
        KGT_UNROLL
        for (int j = 0; j < PANELS; j++)
            v[j] = _mm512_fmadd_ps(_mm512_loadu_ps(shift + j * 16), _mm512_set1_ps(factor),
                                   _mm512_cvtepi32_ps(products[j]));
        largest = _mm512_max_ps(_mm512_max_ps(v[0], v[1]), _mm512_max_ps(v[2], v[3]));
    }
    return _mm512_cmp_ps_mask(largest, _mm512_set1_ps(low), _CMP_GE_OQ) != 0;
}

/* Stores every word's products; those of the next word overwrite unneeded ones. A branch instead
 * would be unpredictable. */
KGT_INLINE void reaching_some(const bool shifted, const uint8_t *queries, const int8_t *panels,
                              size_t groups, size_t n_words, const int32_t *start,
                              const kgt_bounds *bounds, const float *below, int32_t *out,
                              size_t stride, uint64_t *words) {
    float high[KGT_MOST_WORDS], low[KGT_BYTE_QUERIES][KGT_MOST_WORDS];
    const float *shift = bounds->shift;
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++) {
        FN(word_thresholds)(bounds + i, n_words, below[i], below[i], high, low[i]);
        words[i] = 0;
    }
    for (size_t word = 0; word < n_words; word++)
        for (size_t first = 0; first < KGT_BYTE_QUERIES; first += QUERIES) {
            __m512i sum[QUERIES][PANELS];
            word_products(queries + first * groups * 4, panels + word * PANELS * groups * 64,
                          groups, start + word * 64, sum);
            KGT_UNROLL
            for (size_t j = 0; j < QUERIES; j++) {
                const size_t i = first + j, n = (size_t)__builtin_popcountll(words[i]);
                put_down(sum[j], out + i * stride + n * 64);
                words[i] |= (uint64_t)reaches(sum[j], shifted ? shift + word * 64 : NULL,
                                              bounds[i].factor, low[i][word])
                            << word;
            }
        }
}

static void reaching_vnni(const uint8_t *queries, const int8_t *panels, size_t groups,
                          size_t n_words, const int32_t *start, const kgt_bounds *bounds,
                          const float *below, int32_t *out, size_t stride, uint64_t *words) {
    if (bounds->shift == NULL)
        reaching_some(false, queries, panels, groups, n_words, start, bounds, below, out, stride,
                      words);
    else
        reaching_some(true, queries, panels, groups, n_words, start, bounds, below, out, stride,
                      words);
}

KGT_TARGET_END

static bool available_vnni(void) { return available() && kgt_cpu_has(KGT_AVX512VNNI); }

const kgt_bytes kgt_bytes_avx512vnni = {
    .name = "avx512vnni",
    .available = available_vnni,
    .query_zero = 128,
    .dearer = 0.3, /* for a Zen 5, whose tiles take half a Zen 4's time */
    .dot = {product_vnni, reaching_vnni, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};
#endif
