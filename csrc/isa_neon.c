/* NEON kernels (AArch64): 4 float or 2 double lanes. Counters subtract masks. Every AArch64 target
 * has these instructions. */
#include "isa_kernel.h"

#if KGT_ARM64
#include <arm_neon.h>
#include <math.h>
#include <string.h>

/* NEON has no masked loads. 1 <= n <= lanes; nothing beyond the last element is read. */
KGT_INLINE float32x4_t load_tail_f32(const float *p, size_t n, float fill) {
    if (n == 4) return vld1q_f32(p);
    float32x4_t values = vld1q_lane_f32(p, vdupq_n_f32(fill), 0);
    if (n > 1) values = vld1q_lane_f32(p + 1, values, 1);
    if (n > 2) values = vld1q_lane_f32(p + 2, values, 2);
    return values;
}

KGT_INLINE float64x2_t load_tail_f64(const double *p, size_t n, double fill) {
    return n == 2 ? vld1q_f64(p) : vcombine_f64(vld1_f64(p), vdup_n_f64(fill));
}

/* x where x > y, else y: y where x is NaN, which NEON's own maximum is not. clang would make fmaxnm
 * of a comparison with a constant, which is NaN if x is a signalling NaN: so it must not see the
 * masks. */
KGT_INLINE float32x4_t larger_f32(float32x4_t x, float32x4_t y) {
    uint32x4_t greater = vcgtq_f32(x, y);
    __asm__("" : "+w"(greater));
    return vbslq_f32(greater, x, y);
}

KGT_INLINE float64x2_t larger_f64(float64x2_t x, float64x2_t y) {
    uint64x2_t greater = vcgtq_f64(x, y);
    __asm__("" : "+w"(greater));
    return vbslq_f64(greater, x, y);
}

/* It has no movemask either. So masks are narrowed until one 64-bit word holds those of 4 vectors,
 * one bit per lane, lane 0 lowest. */
KGT_INLINE uint64_t marks_f32(const uint32x4_t keep[4]) {
    const uint16x8_t low = vcombine_u16(vmovn_u32(keep[0]), vmovn_u32(keep[1]));
    const uint16x8_t high = vcombine_u16(vmovn_u32(keep[2]), vmovn_u32(keep[3]));
    const uint8x16_t lanes = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
    const uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(lanes), 4);
    return vget_lane_u64(vreinterpret_u64_u8(nibbles), 0) & 0x1111111111111111u;
}

KGT_INLINE uint64_t marks_f64(const uint64x2_t keep[4]) {
    const uint32x4_t low = vcombine_u32(vmovn_u64(keep[0]), vmovn_u64(keep[1]));
    const uint32x4_t high = vcombine_u32(vmovn_u64(keep[2]), vmovn_u64(keep[3]));
    const uint16x8_t lanes = vcombine_u16(vmovn_u32(low), vmovn_u32(high));
    return vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(lanes)), 0) & 0x0101010101010101u;
}

/* Writes the indices first + lane of the marked lanes, whose marks are `bits` apart; returns their
 * number. */
KGT_INLINE size_t put_indices(uint64_t marks, int bits, size_t first, int32_t *out) {
    size_t n_out = 0;
    for (; marks != 0; marks &= marks - 1)
        out[n_out++] = (int32_t)first + __builtin_ctzll(marks) / bits;
    return n_out;
}

/* ---- transposing, in place ---- */

KGT_INLINE void transpose_4_by_4(float32x4_t v[4]) {
    const float32x4x2_t low = vtrnq_f32(v[0], v[1]), high = vtrnq_f32(v[2], v[3]);
    v[0] = vcombine_f32(vget_low_f32(low.val[0]), vget_low_f32(high.val[0]));
    v[1] = vcombine_f32(vget_low_f32(low.val[1]), vget_low_f32(high.val[1]));
    v[2] = vcombine_f32(vget_high_f32(low.val[0]), vget_high_f32(high.val[0]));
    v[3] = vcombine_f32(vget_high_f32(low.val[1]), vget_high_f32(high.val[1]));
}

KGT_INLINE void transpose_2_by_2(float64x2_t v[2]) {
    const float64x2_t low = vzip1q_f64(v[0], v[1]);
    v[1] = vzip2q_f64(v[0], v[1]);
    v[0] = low;
}

/* ---- float ---- */
#define T float
#define X float
#define FN(op) op##_f32_neon
#define VEC float32x4_t
#define LANES 4
#define LOAD(p) vld1q_f32(p)
#define LOAD_TAIL(p, n, fill) load_tail_f32(p, n, fill)
#define STORE(p, v) vst1q_f32(p, v)
#define SET1(s) vdupq_n_f32(s)
#define LARGER(x, y) larger_f32(x, y)
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define FMA1(a, b, c) fmaf(a, b, c)
#define ADD(a, b) vaddq_f32(a, b)
#define SUB(a, b) vsubq_f32(a, b)
#define ABS(a) vabsq_f32(a)
#define ABS1(a) fabsf(a)
#define SQRT(a) vsqrtq_f32(a)
#define SQRT1(a) sqrtf(a)
#define COUNTER uint32x4_t
#define COUNTER_ZERO vdupq_n_u32(0)
#define COUNT_GT(c, x, t) vsubq_u32(c, vcgtq_f32(x, t))
#define COUNT_GE(c, x, t) vsubq_u32(c, vcgeq_f32(x, t))
#define COUNTER_SUM(c) (int64_t)vaddlvq_u32(c)
/* This is useful here: a running maximum becomes NaN at the first NaN, and stays so. */
#define NANS float32x4_t
#define NANS_NONE vdupq_n_f32(0)
#define NANS_MEET(seen, x, y) vmaxq_f32(seen, vmaxq_f32(x, y))
#define NANS_ANY(seen) (isnan(vmaxvq_f32(seen)) != 0)
/* 8 rows of 3 would fit as well, but gcc then loads all queries first, and spills sums. */
#define TRANSPOSE(v) transpose_4_by_4(v)
#define TILE_ROWS 4
#define TILE_VECTORS 4
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_fold_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#include "isa_tile_body.h"
#include "isa_scaled_body.h"

static size_t select_f32_neon(const float *x, size_t n, const float *maxima, float t,
                              int32_t *out) {
    const VEC threshold = SET1(t);
    size_t n_out = 0, i = 0;
    for (; i + KGT_GROUP * LANES <= n; i += KGT_GROUP * LANES) {
        uint32x4_t keep[KGT_GROUP];
        if (vmaxvq_f32(LOAD(maxima + i / KGT_GROUP)) < t) continue; /* maxima are numbers */
        KGT_UNROLL
        for (int j = 0; j < KGT_GROUP; j++) keep[j] = vcgeq_f32(LOAD(x + i + j * LANES), threshold);
        n_out += put_indices(marks_f32(keep), 4, i, out + n_out);
    }
    for (; i < n; i++)
        if (x[i] >= t) out[n_out++] = (int32_t)i;
    return n_out;
}

#include "isa_undef_load.h"

/* ---- 16 bits, as float ---- */

/* 1 <= n <= 4; nothing beyond the last element is read. */
KGT_INLINE uint16x4_t load_halves(const uint16_t *p, size_t n) {
    uint16_t halves[4] = {0};
    for (size_t i = 0; i < n; i++) halves[i] = p[i];
    return vld1_u16(halves);
}

KGT_INLINE float32x4_t padded(float32x4_t values, size_t n, float fill) {
    const uint32x4_t lane = {0, 1, 2, 3};
    return vbslq_f32(vcltq_u32(lane, vdupq_n_u32((uint32_t)n)), values, vdupq_n_f32(fill));
}

#define X uint16_t
#define FN(op) op##_f16_neon
#define WIDE(halves) vcvt_f32_f16(vreinterpret_f16_u16(halves))
#define LOAD(p) WIDE(vld1_u16(p))
#define LOAD_TAIL(p, n, fill) padded(WIDE(load_halves(p, n)), n, fill)
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#undef WIDE
#include "isa_undef_load.h"

#define X uint16_t
#define FN(op) op##_bf16_neon
#define WIDE(halves) vreinterpretq_f32_u32(vshll_n_u16(halves, 16))
#define LOAD(p) WIDE(vld1_u16(p))
#define LOAD_TAIL(p, n, fill) padded(WIDE(load_halves(p, n)), n, fill)
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#undef WIDE
#include "isa_undef.h"

/* ---- double ---- */
#define T double
#define X double
#define FN(op) op##_f64_neon
#define VEC float64x2_t
#define LANES 2
#define LOAD(p) vld1q_f64(p)
#define LOAD_TAIL(p, n, fill) load_tail_f64(p, n, fill)
#define STORE(p, v) vst1q_f64(p, v)
#define SET1(s) vdupq_n_f64(s)
#define LARGER(x, y) larger_f64(x, y)
#define FMA(a, b, c) vfmaq_f64(c, a, b)
#define FMA1(a, b, c) fma(a, b, c)
#define ADD(a, b) vaddq_f64(a, b)
#define SUB(a, b) vsubq_f64(a, b)
#define ABS(a) vabsq_f64(a)
#define ABS1(a) fabs(a)
#define SQRT(a) vsqrtq_f64(a)
#define SQRT1(a) sqrt(a)
#define COUNTER uint64x2_t
#define COUNTER_ZERO vdupq_n_u64(0)
#define COUNT_GT(c, x, t) vsubq_u64(c, vcgtq_f64(x, t))
#define COUNT_GE(c, x, t) vsubq_u64(c, vcgeq_f64(x, t))
#define COUNTER_SUM(c) (int64_t)vaddvq_u64(c)
#define NANS float64x2_t
#define NANS_NONE vdupq_n_f64(0)
#define NANS_MEET(seen, x, y) vmaxq_f64(seen, vmaxq_f64(x, y))
#define NANS_ANY(seen) (isnan(vmaxvq_f64(seen)) != 0)
#define TRANSPOSE(v) transpose_2_by_2(v)
#define TILE_ROWS 4
#define TILE_VECTORS 4
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_fold_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#include "isa_tile_body.h"
#include "isa_scaled_body.h"

static size_t select_f64_neon(const double *x, size_t n, const double *maxima, double t,
                              int32_t *out) {
    const VEC threshold = SET1(t);
    size_t n_out = 0, i = 0;
    for (; i + KGT_GROUP * LANES <= n; i += KGT_GROUP * LANES) {
        uint64x2_t keep[KGT_GROUP];
        if (vmaxvq_f64(LOAD(maxima + i / KGT_GROUP)) < t) continue; /* maxima are numbers */
        KGT_UNROLL
        for (int j = 0; j < KGT_GROUP; j++) keep[j] = vcgeq_f64(LOAD(x + i + j * LANES), threshold);
        n_out += put_indices(marks_f64(keep), 8, i, out + n_out);
    }
    for (; i < n; i++)
        if (x[i] >= t) out[n_out++] = (int32_t)i;
    return n_out;
}

#include "isa_undef.h"

/* ---- keys ---- */
#define FN(op) op##_neon
#define KEYS uint64x2_t
#define KEY_LANES 2
#define KEYS_LOAD(p) vld1q_u64(p)
#define KEYS_SET1(key) vdupq_n_u64(key)
#define KEYS_ZERO vdupq_n_u64(0)
#define KEYS_STORE(p, v) vst1q_u64(p, v)
#define KEYS_ABOVE(n, x, y) vsubq_u64(n, vcgtq_u64(x, y))
#include "isa_order_body.h"
#undef FN

static void widen_f16_neon(const uint16_t *x, size_t n, float *out) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float16x8_t half = vreinterpretq_f16_u16(vld1q_u16(x + i));
        vst1q_f32(out + i, vcvt_f32_f16(vget_low_f16(half)));
        vst1q_f32(out + i + 4, vcvt_high_f32_f16(half));
    }
    for (; i < n; i++) {
        const float16x4_t half = vreinterpret_f16_u16(vdup_n_u16(x[i]));
        out[i] = vgetq_lane_f32(vcvt_f32_f16(half), 0);
    }
}

static bool available(void) { return true; }

/* No compress: NEON has no instruction for it. */
const kgt_kernel kgt_kernel_neon = {
    .name = "neon",
    .available = available,
    .f32 = {.count = count_f32_neon,
            .select = select_f32_neon,
            .fold = fold_f32_neon,
            .locate = locate_f32_neon,
            .cells = cells_f32_neon,
            .tied_up_to = tied_up_to_f32_neon,
            .count_short = count_short_f32_neon,
            .transpose = transpose_f32_neon,
            .tile = tile_f32_neon,
            .tile_l1 = tile_l1_f32_neon,
            .tile_moduli = tile_moduli_f32_neon,
            .tile_mode = tile_mode_f32_neon,
            .tile_hake = tile_hake_f32_neon,
            .norms = norms_f32_neon,
            .pair = pair_f32_neon,
            .pair_l1 = pair_l1_f32_neon,
            .pair_moduli = pair_moduli_f32_neon,
            .pair_mode = pair_mode_f32_neon,
            .pair_hake = pair_hake_f32_neon},
    .f64 = {.count = count_f64_neon,
            .select = select_f64_neon,
            .fold = fold_f64_neon,
            .locate = locate_f64_neon,
            .cells = cells_f64_neon,
            .tied_up_to = tied_up_to_f64_neon,
            .count_short = count_short_f64_neon,
            .transpose = transpose_f64_neon,
            .tile = tile_f64_neon,
            .tile_l1 = tile_l1_f64_neon,
            .tile_moduli = tile_moduli_f64_neon,
            .tile_mode = tile_mode_f64_neon,
            .tile_hake = tile_hake_f64_neon,
            .norms = norms_f64_neon,
            .pair = pair_f64_neon,
            .pair_l1 = pair_l1_f64_neon,
            .pair_moduli = pair_moduli_f64_neon,
            .pair_mode = pair_mode_f64_neon,
            .pair_hake = pair_hake_f64_neon},
    .widen_f16 = widen_f16_neon,
    .count_f16 = count_f16_neon,
    .count_bf16 = count_bf16_neon,
    .transpose_f16 = transpose_f16_neon,
    .transpose_bf16 = transpose_bf16_neon,
    .sort_keys = sort_keys_neon,
};
#endif
