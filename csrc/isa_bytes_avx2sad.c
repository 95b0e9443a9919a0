/* Distances of 8-bit vectors by AVX2, on processors that do not multiply bytes. */
#include "isa_bytes.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

KGT_TARGET_BEGIN("avx2,fma,bmi,bmi2,popcnt")

#define FN(op) op##_bytes_avx2sad
#include "isa_bytes_avx2_body.h"

KGT_TARGET_END

static bool available(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

const kgt_bytes kgt_bytes_avx2sad = {
    .name = "avx2sad",
    .available = available,
    .dot = {NULL, refine_bytes_avx2sad, pairs_bytes_avx2sad},
    .l1 = {product_l1_bytes_avx2sad, refine_l1_bytes_avx2sad, pairs_l1_bytes_avx2sad},
    .largest = largest_bytes_avx2sad,
    .quantise = quantise_bytes_avx2sad,
    .quantise_fine = quantise_fine_bytes_avx2sad,
    .judge = judge_bytes_avx2sad,
    .quantise_l1 = quantise_l1_bytes_avx2sad,
    .count_bits = count_bits_bytes_avx2sad,
    .undecided = undecided_bytes_avx2sad,
};
#endif
