/* 8-bit products by AVX-512 VNNI: four bytes of 16 entities a step. */
#include "isa_bytes.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

KGT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,bmi2,popcnt")

#define FN(op) op##_bytes_avx512vnni
#include "isa_bytes_avx512_body.h"

/* The instruction takes the first factor unsigned: queries come with 128 added to each byte. */
#define QUERIES 4
#define PANELS KGT_BYTE_PANELS

KGT_INLINE void product_registers(const uint8_t *queries, const int8_t *panels, size_t groups,
                                  const int32_t *start, int32_t *out, size_t stride) {
    __m512i sum[QUERIES][PANELS];
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
            for (int j = 0; j < PANELS; j++)
                sum[i][j] = _mm512_dpbusd_epi32(sum[i][j], query, entity[j]);
        }
    }
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) {
        KGT_UNROLL
        for (int j = 0; j < PANELS; j++)
            _mm512_storeu_si512(out + (size_t)i * stride + j * 16, sum[i][j]);
    }
}

static void product_bytes_avx512vnni(const uint8_t *queries, const int8_t *panels, size_t groups,
                                     size_t n_panels, const int32_t *start, int32_t *out,
                                     size_t stride) {
    for (size_t j = 0; j < n_panels; j += PANELS)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += QUERIES)
            product_registers(queries + i * groups * 4, panels + j * groups * 64, groups,
                              start + j * 16, out + i * stride + j * 16, stride);
}

static void leave_alone(size_t groups) { (void)groups; }
static void nothing(void) {}

KGT_TARGET_END

static bool available(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

const kgt_bytes kgt_bytes_avx512vnni = {
    .name = "avx512vnni",
    .available = available,
    .query_zero = 128,
    .dearer = 0.3, /* as on a Zen 5, whose tiles take half a Zen 4's time */
    .open = leave_alone,
    .close = nothing,
    .dot = {product_bytes_avx512vnni, refine_bytes_avx512vnni, pairs_f32_bytes_avx512vnni,
            pairs_f64_bytes_avx512vnni},
    .l1 = {product_l1_bytes_avx512vnni, refine_l1_bytes_avx512vnni, pairs_l1_f32_bytes_avx512vnni,
           pairs_l1_f64_bytes_avx512vnni},
    .largest = largest_bytes_avx512vnni,
    .quantise = quantise_bytes_avx512vnni,
    .quantise_fine = quantise_fine_bytes_avx512vnni,
    .quantise_l1 = quantise_l1_bytes_avx512vnni,
    .judge = judge_bytes_avx512vnni,
    .count_bits = count_bits_bytes_avx512vnni,
    .undecided = undecided_bytes_avx512vnni,
};
#endif
