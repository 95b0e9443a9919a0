/* 8-bit products by AVX-VNNI, for processors that have it and no AVX-512. */
#include "isa_bytes.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

KGT_TARGET_BEGIN("avx2,fma,bmi,bmi2,popcnt,avxvnni")

#define FN(op) op##_bytes_avxvnni
#include "isa_bytes_avx2_body.h"

/* The instruction takes the first factor unsigned: queries come with 128 added to each byte. Eight
 * entities, half a panel, and QUERIES queries at once. */
#define QUERIES 8

KGT_INLINE void product_registers(const uint8_t *queries, const int8_t *entities, size_t groups,
                                  const int32_t *start, int32_t *out, size_t stride) {
    __m256i sum[QUERIES];
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) sum[i] = _mm256_loadu_si256((const void *)start);
    for (size_t k = 0; k < groups; k++) {
        const __m256i entity = _mm256_loadu_si256((const void *)(entities + k * 64));
        KGT_UNROLL
        for (int i = 0; i < QUERIES; i++) {
            int32_t four;
            memcpy(&four, queries + ((size_t)i * groups + k) * 4, sizeof four);
            sum[i] = _mm256_dpbusd_avx_epi32(sum[i], _mm256_set1_epi32(four), entity);
        }
    }
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++)
        _mm256_storeu_si256((void *)(out + (size_t)i * stride), sum[i]);
}

static void product_bytes_avxvnni(const uint8_t *queries, const int8_t *panels, size_t groups,
                                  size_t n_panels, const int32_t *start, int32_t *out,
                                  size_t stride) {
    for (size_t j = 0; j < n_panels * KGT_BYTE_PANEL; j += 8)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += QUERIES)
            product_registers(queries + i * groups * 4, panels + j / 16 * groups * 64 + j % 16 * 4,
                              groups, start + j, out + i * stride + j, stride);
}

static void leave_alone(size_t groups) { (void)groups; }
static void nothing(void) {}

KGT_TARGET_END

static bool available(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && kgt_cpu_has_avxvnni();
}

const kgt_bytes kgt_bytes_avxvnni = {
    .name = "avxvnni",
    .available = available,
    .query_zero = 128,
    .open = leave_alone,
    .close = nothing,
    .dot = {product_bytes_avxvnni, NULL, refine_bytes_avxvnni, pairs_f32_bytes_avxvnni,
            pairs_f64_bytes_avxvnni},
    .l1 = {product_l1_bytes_avxvnni, NULL, refine_l1_bytes_avxvnni, pairs_l1_f32_bytes_avxvnni,
           pairs_l1_f64_bytes_avxvnni},
    .largest = largest_bytes_avxvnni,
    .quantise = quantise_bytes_avxvnni,
    .quantise_fine = quantise_fine_bytes_avxvnni,
    .quantise_l1 = quantise_l1_bytes_avxvnni,
    .judge = judge_bytes_avxvnni,
    .highest_lower = highest_lower_bytes_avxvnni,
    .count_bits = count_bits_bytes_avxvnni,
    .undecided = undecided_bytes_avxvnni,
};
#endif
