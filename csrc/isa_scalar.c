/* Portable kernels in plain C11: the reference for every other path, and the fallback. */
#include <math.h>
#include <string.h>

#include "isa_kernel.h"

#define T float
#define FN(op) op##_f32_scalar
#define FMA1(a, b, c) fmaf(a, b, c)
#define ABS1(a) fabsf(a)
#define SQRT1(a) sqrtf(a)
#include "isa_scalar_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#undef T
#undef FN
#undef FMA1
#undef ABS1
#undef SQRT1

#define T double
#define FN(op) op##_f64_scalar
#define FMA1(a, b, c) fma(a, b, c)
#define ABS1(a) fabs(a)
#define SQRT1(a) sqrt(a)
#include "isa_scalar_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"

/* IEEE 754 binary16 to binary32 by bits: exact for every value, NaN stays NaN. */
static float half_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu, fraction = half & 0x3FFu;
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
    const uint32_t bits = sign | (wide << 23) | (fraction << 13);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void widen_f16_scalar(const uint16_t *x, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = half_to_float(x[i]);
}

static float bfloat_to_float(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 16-bit scores are widened piece by piece; a piece is a multiple of a group of maxima. */
#define COUNT_16(name, widened)                                                               \
    static bool name(const uint16_t *x, size_t n, const float *t, size_t m, int64_t *greater, \
                     int64_t *at_least, float *maxima) {                                      \
        float wide[512];                                                                      \
        bool nan = false;                                                                     \
        for (size_t i = 0; i < n; i += 512) {                                                 \
            const size_t piece = n - i < 512 ? n - i : 512;                                   \
            for (size_t j = 0; j < piece; j++) wide[j] = widened(x[i + j]);                   \
            nan |= count_f32_scalar(wide, piece, t, m, greater, at_least,                     \
                                    maxima == NULL ? NULL : maxima + i / KGT_GROUP);          \
        }                                                                                     \
        return nan;                                                                           \
    }

COUNT_16(count_f16_scalar, half_to_float)
COUNT_16(count_bf16_scalar, bfloat_to_float)

#define TRANSPOSE_16(name, widened)                                                          \
    static void name(const uint16_t *x, ptrdiff_t stride, size_t rows, size_t n, float *out, \
                     size_t out_stride) {                                                    \
        for (size_t j = 0; j < n; j++)                                                       \
            for (size_t i = 0; i < rows; i++)                                                \
                out[i * out_stride + j] = widened(x[(ptrdiff_t)j * stride + (ptrdiff_t)i]);  \
    }

TRANSPOSE_16(transpose_f16_scalar, half_to_float)
TRANSPOSE_16(transpose_bf16_scalar, bfloat_to_float)

static void sort_keys_scalar(const uint64_t *keys, size_t n, uint64_t *out) {
    for (size_t i = 0; i < n; i++) {
        size_t j = i;
        for (; j > 0 && out[j - 1] < keys[i]; j--) out[j] = out[j - 1];
        out[j] = keys[i];
    }
}

static bool available(void) { return true; }

const kgt_kernel kgt_kernel_scalar = {
    .name = "scalar",
    .available = available,
    .f32 = {.count = count_f32_scalar,
            .select = select_f32_scalar,
            .fold = fold_f32_scalar,
            .locate = locate_f32_scalar,
            .cells = cells_f32_scalar,
            .tied_up_to = tied_up_to_f32_scalar,
            .count_short = count_short_f32_scalar,
            .transpose = transpose_f32_scalar,
            .tile = tile_f32_scalar,
            .tile_l1 = tile_l1_f32_scalar,
            .tile_moduli = tile_moduli_f32_scalar,
            .tile_mode = tile_mode_f32_scalar,
            .tile_hake = tile_hake_f32_scalar,
            .norms = norms_f32_scalar,
            .pair = pair_f32_scalar,
            .pair_l1 = pair_l1_f32_scalar,
            .pair_moduli = pair_moduli_f32_scalar,
            .pair_mode = pair_mode_f32_scalar,
            .pair_hake = pair_hake_f32_scalar},
    .f64 = {.count = count_f64_scalar,
            .select = select_f64_scalar,
            .fold = fold_f64_scalar,
            .locate = locate_f64_scalar,
            .cells = cells_f64_scalar,
            .tied_up_to = tied_up_to_f64_scalar,
            .count_short = count_short_f64_scalar,
            .transpose = transpose_f64_scalar,
            .tile = tile_f64_scalar,
            .tile_l1 = tile_l1_f64_scalar,
            .tile_moduli = tile_moduli_f64_scalar,
            .tile_mode = tile_mode_f64_scalar,
            .tile_hake = tile_hake_f64_scalar,
            .norms = norms_f64_scalar,
            .pair = pair_f64_scalar,
            .pair_l1 = pair_l1_f64_scalar,
            .pair_moduli = pair_moduli_f64_scalar,
            .pair_mode = pair_mode_f64_scalar,
            .pair_hake = pair_hake_f64_scalar},
    .widen_f16 = widen_f16_scalar,
    .count_f16 = count_f16_scalar,
    .count_bf16 = count_bf16_scalar,
    .transpose_f16 = transpose_f16_scalar,
    .transpose_bf16 = transpose_bf16_scalar,
    .sort_keys = sort_keys_scalar,
};
