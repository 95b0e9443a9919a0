/* Distances of 8-bit vectors by AVX-512, on processors that do not multiply bytes. */
#include "isa_bytes.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

KGT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt")

#define FN(op) op##_bytes_avx512sad
#include "isa_bytes_avx512_body.h"

KGT_TARGET_END

static bool available(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

const kgt_bytes kgt_bytes_avx512sad = {
    .name = "avx512sad",
    .available = available,
    .dot = {NULL, NULL, refine_bytes_avx512sad, pairs_f32_bytes_avx512sad,
            pairs_f64_bytes_avx512sad},
    .l1 = {product_l1_bytes_avx512sad, NULL, refine_l1_bytes_avx512sad,
           pairs_l1_f32_bytes_avx512sad, pairs_l1_f64_bytes_avx512sad},
    .largest = largest_bytes_avx512sad,
    .quantise = quantise_bytes_avx512sad,
    .quantise_fine = quantise_fine_bytes_avx512sad,
    .judge = judge_bytes_avx512sad,
    .highest_lower = highest_lower_bytes_avx512sad,
    .quantise_l1 = quantise_l1_bytes_avx512sad,
    .count_bits = count_bits_bytes_avx512sad,
    .undecided = undecided_bytes_avx512sad,
};
#endif
