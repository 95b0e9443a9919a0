/* Products and distances of 8-bit vectors with AVX2. There are two paths with different products;
 * the shared code is compiled once. */
#include "isa_bytes.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

KGT_TARGET_BEGIN("avx2,fma,bmi,bmi2,popcnt")

#define FN(op) op##_bytes_avx2
#include "isa_bytes_avx2_body.h"

/* ---- for processors that have no instruction for sums of four ----
 *
 * vpmaddubsw multiplies unsigned by signed bytes and adds two products. The sum fits 16 bits if the
 * unsigned bytes (an entity's codes plus 128) meet signed codes of a query with 7 bits. The sums of
 * a chunk of the vectors are added modulo 2^16. They start at minus the effect of the added 128. So
 * each result is a product of codes, of two values in four of the chunk. It is correct if it fits
 * 16 bits. By Cauchy and Schwarz it does if the norm of the query's codes is below 128 and that of
 * the entity's below 256. `range` makes codes coarse enough for this. */

/* Most groups per chunk. With fewer, adding up takes more time; with more, vectors of similar
 * values get fewer code levels. Also the norm of an entity's codes before rounding, which adds up
 * to half the root of their number, twice MOST_GROUPS. */
#define MOST_GROUPS 9
#define MOST_NORM 252.0f

static size_t chunk_groups(size_t groups) {
    const size_t n = (groups + MOST_GROUPS - 1) / MOST_GROUPS;
    return (groups + n - 1) / n;
}

static float range_madd(const float *x, size_t dim, float largest, bool query) {
    const size_t length = chunk_groups(kgt_byte_groups(dim)) * 4;
    float most = 0;
    for (size_t start = 0; start < dim; start += length) {
        const size_t end = dim - start < length ? dim : start + length;
        float squares[4] = {0};
        size_t k = start;
        for (; k + 4 <= end; k += 4)
            for (size_t j = 0; j < 4; j++) squares[j] += x[k + j] * x[k + j];
        for (; k < end; k++) squares[k % 4] += x[k] * x[k];
        const float first = squares[0] + squares[1], second = squares[2] + squares[3];
        const float square = first > second ? first : second;
        most = square > most ? square : most;
    }
    const float needed = sqrtf(most) * (127 / MOST_NORM);
    return (needed > largest ? needed : largest) * (query ? 2 : 1);
}

/* Queries per step, and chunks whose first sums are kept at a time. */
#define QUERIES 4
#define CHUNKS 16

/* Minus the sums of 128 times the codes, as pairs of 16 bits. */
static int32_t first_sums(const uint8_t *query, size_t n_groups) {
    __m128i sum = _mm_setzero_si128();
    for (size_t k = 0; k < n_groups; k++) {
        int32_t four;
        memcpy(&four, query + k * 4, sizeof four);
        sum =
            _mm_sub_epi16(sum, _mm_maddubs_epi16(_mm_set1_epi8(INT8_MIN), _mm_cvtsi32_si128(four)));
    }
    return _mm_cvtsi128_si32(sum);
}

/* Products of a panel with the queries, from one chunk; added to those of earlier chunks. */
KGT_INLINE void product_registers(const uint8_t *queries, const int8_t *panel, size_t stride,
                                  size_t n_groups, const int32_t *first, bool adding, int32_t *out,
                                  size_t out_stride) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[QUERIES][2];
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) sum[i][0] = sum[i][1] = _mm256_set1_epi32(first[i]);
    for (size_t k = 0; k < n_groups; k++) {
        const __m256i low = _mm256_loadu_si256((const void *)(panel + k * 64));
        const __m256i high = _mm256_loadu_si256((const void *)(panel + k * 64 + 32));
        KGT_UNROLL
        for (int i = 0; i < QUERIES; i++) {
            int32_t four;
            memcpy(&four, queries + (size_t)i * stride + k * 4, sizeof four);
            const __m256i query = _mm256_set1_epi32(four);
            sum[i][0] = _mm256_add_epi16(sum[i][0], _mm256_maddubs_epi16(low, query));
            sum[i][1] = _mm256_add_epi16(sum[i][1], _mm256_maddubs_epi16(high, query));
        }
    }
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) {
        KGT_UNROLL
        for (int j = 0; j < 2; j++) {
            __m256i *place = (__m256i *)(void *)(out + (size_t)i * out_stride + j * 8);
            const __m256i four_each = _mm256_madd_epi16(sum[i][j], ones);
            _mm256_storeu_si256(
                place, adding ? _mm256_add_epi32(four_each, _mm256_loadu_si256(place)) : four_each);
        }
    }
}

static void product_madd(const uint8_t *queries, const int8_t *panels, size_t groups,
                         size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    const size_t length = chunk_groups(groups);
    (void)start;
    for (size_t begin = 0; begin < groups; begin += CHUNKS * length) {
        const size_t end = groups - begin < CHUNKS * length ? groups : begin + CHUNKS * length;
        int32_t first[CHUNKS][KGT_BYTE_QUERIES];
        for (size_t k = begin, c = 0; k < end; k += length, c++)
            for (size_t i = 0; i < KGT_BYTE_QUERIES; i++)
                first[c][i] =
                    first_sums(queries + (i * groups + k) * 4, end - k < length ? end - k : length);
        for (size_t j = 0; j < n_panels; j++)
            for (size_t i = 0; i < KGT_BYTE_QUERIES; i += QUERIES)
                for (size_t k = begin, c = 0; k < end; k += length, c++)
                    product_registers(queries + (i * groups + k) * 4,
                                      panels + (j * groups + k) * 64, groups * 4,
                                      end - k < length ? end - k : length, first[c] + i, k > 0,
                                      out + i * stride + j * KGT_BYTE_PANEL, stride);
    }
}

KGT_TARGET_END

static bool available(void) {
    return kgt_cpu_has(KGT_AVX2 | KGT_FMA | KGT_BMI | KGT_BMI2 | KGT_POPCNT);
}

const kgt_bytes kgt_bytes_avx2madd = {
    .name = "avx2madd",
    .available = available,
    .entity_zero = 128,
    .dearer = 0.3,
    .range = range_madd,
    .dot = {product_madd, NULL, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};

/* ---- AVX-VNNI, for processors that have it and no AVX-512 ---- */

KGT_TARGET_BEGIN("avx2,fma,bmi,bmi2,popcnt,avxvnni")

/* The first factor of the instruction is unsigned, so queries have 128 added to each byte. One step
 * multiplies eight entities, half a panel, with VNNI_QUERIES queries. */
#define VNNI_QUERIES 8

KGT_INLINE void vnni_registers(const uint8_t *queries, const int8_t *entities, size_t groups,
                               const int32_t *start, int32_t *out, size_t stride) {
    __m256i sum[VNNI_QUERIES];
    KGT_UNROLL
    for (int i = 0; i < VNNI_QUERIES; i++) sum[i] = _mm256_loadu_si256((const void *)start);
    for (size_t k = 0; k < groups; k++) {
        const __m256i entity = _mm256_loadu_si256((const void *)(entities + k * 64));
        KGT_UNROLL
        for (int i = 0; i < VNNI_QUERIES; i++) {
            int32_t four;
            memcpy(&four, queries + ((size_t)i * groups + k) * 4, sizeof four);
            sum[i] = _mm256_dpbusd_avx_epi32(sum[i], _mm256_set1_epi32(four), entity);
        }
    }
    KGT_UNROLL
    for (int i = 0; i < VNNI_QUERIES; i++)
        _mm256_storeu_si256((void *)(out + (size_t)i * stride), sum[i]);
}

static void product_vnni(const uint8_t *queries, const int8_t *panels, size_t groups,
                         size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    for (size_t j = 0; j < n_panels * KGT_BYTE_PANEL; j += 8)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += VNNI_QUERIES)
            vnni_registers(queries + i * groups * 4, panels + j / 16 * groups * 64 + j % 16 * 4,
                           groups, start + j, out + i * stride + j, stride);
}

KGT_TARGET_END

static bool available_vnni(void) { return available() && kgt_cpu_has(KGT_AVXVNNI); }

const kgt_bytes kgt_bytes_avxvnni = {
    .name = "avxvnni",
    .available = available_vnni,
    .query_zero = 128,
    .dot = {product_vnni, NULL, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};
#endif
