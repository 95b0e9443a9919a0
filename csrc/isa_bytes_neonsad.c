/* Distances of 8-bit vectors by NEON, on processors without its dot product. */
#include "isa_bytes.h"

#if KGT_ARM64
#include <arm_neon.h>
#include <math.h>

#define FN(op) op##_bytes_neonsad
#include "isa_bytes_neon_body.h"

static bool available(void) { return true; }

const kgt_bytes kgt_bytes_neonsad = {
    .name = "neonsad",
    .available = available,
    .dot = {NULL, NULL, refine_bytes_neonsad, pairs_f32_bytes_neonsad, pairs_f64_bytes_neonsad},
    .l1 = {product_l1_bytes_neonsad, NULL, refine_l1_bytes_neonsad, pairs_l1_f32_bytes_neonsad,
           pairs_l1_f64_bytes_neonsad},
    .largest = largest_bytes_neonsad,
    .quantise = quantise_bytes_neonsad,
    .quantise_fine = quantise_fine_bytes_neonsad,
    .judge = judge_bytes_neonsad,
    .highest_lower = highest_lower_bytes_neonsad,
    .quantise_l1 = quantise_l1_bytes_neonsad,
    .count_bits = count_bits_bytes_neonsad,
    .undecided = undecided_bytes_neonsad,
};
#endif
