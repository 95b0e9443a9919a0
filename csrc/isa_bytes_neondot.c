/* 8-bit products by NEON's dot product (an extension of ARMv8.2). */
#include "isa_bytes.h"

#if KGT_ARM64
#include <arm_neon.h>
#include <math.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

KGT_TARGET_BEGIN("arch=armv8.2-a+dotprod")

#define FN(op) op##_bytes_neondot
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"

KGT_INLINE uint32_t bits_of(uint32x4_t mask) {
    const uint32x4_t bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, bit));
}

KGT_INLINE int32x4_t step(int32x4_t sum, const int16_t *p, const int16_t *q) {
    const int16x8_t a = vld1q_s16(p), b = vld1q_s16(q);
    return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b)), a, b);
}

#define VEC float32x4_t
#define LANES 4
#define LOAD(p) vld1q_f32(p)
#define LOAD_INT(p) vcvtq_f32_s32(vld1q_s32(p))
#define SET1(s) vdupq_n_f32(s)
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define ABOVE(x, t) bits_of(vcgtq_f32(x, t))
#define REACHES(x, t) bits_of(vcgeq_f32(x, t))
#include "isa_judge_body.h"
#define FINE int32x4_t
#define FINE_LANES 8
#define FINE_ZERO vdupq_n_s32(0)
#define FINE_STEP(sum, p, q) sum = step(sum, p, q)
#define FINE_SUM4(out, v) \
    vst1q_s32(out, vpaddq_s32(vpaddq_s32((v)[0], (v)[1]), vpaddq_s32((v)[2], (v)[3])))
#include "isa_pairs_body.h"
#include "isa_refine_body.h"

#define QUERIES 4

KGT_INLINE void product_registers(const uint8_t *queries, const int8_t *panel, size_t groups,
                                  int32_t *out, size_t stride) {
    int32x4_t sum[QUERIES][4];
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) {
        KGT_UNROLL
        for (int j = 0; j < 4; j++) sum[i][j] = vdupq_n_s32(0);
    }
    for (size_t k = 0; k < groups; k++) {
        int8x16_t entity[4];
        KGT_UNROLL
        for (int j = 0; j < 4; j++) entity[j] = vld1q_s8(panel + k * 64 + j * 16);
        KGT_UNROLL
        for (int i = 0; i < QUERIES; i++) {
            const void *four = queries + ((size_t)i * groups + k) * 4;
            const int8x16_t query =
                vreinterpretq_s8_u8(vreinterpretq_u8_u32(vld1q_dup_u32((const uint32_t *)four)));
            KGT_UNROLL
            for (int j = 0; j < 4; j++) sum[i][j] = vdotq_s32(sum[i][j], entity[j], query);
        }
    }
    KGT_UNROLL
    for (int i = 0; i < QUERIES; i++) {
        KGT_UNROLL
        for (int j = 0; j < 4; j++) vst1q_s32(out + (size_t)i * stride + j * 4, sum[i][j]);
    }
}

static void product_bytes_neondot(const uint8_t *queries, const int8_t *panels, size_t groups,
                                  size_t n_panels, const int32_t *start, int32_t *out,
                                  size_t stride) {
    (void)start; /* signed by signed: nothing to take back */
    for (size_t j = 0; j < n_panels; j++)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += QUERIES)
            product_registers(queries + i * groups * 4, panels + j * groups * 64, groups,
                              out + i * stride + j * KGT_BYTE_PANEL, stride);
}

static void leave_alone(size_t groups) { (void)groups; }
static void nothing(void) {}

KGT_TARGET_END

static bool available(void) {
#ifdef __linux__
    return (getauxval(AT_HWCAP) >> 20 & 1) != 0; /* HWCAP_ASIMDDP */
#else
    return false;
#endif
}

const kgt_bytes kgt_bytes_neondot = {
    .name = "neondot",
    .available = available,
    .query_zero = 0,
    .open = leave_alone,
    .close = nothing,
    .product = product_bytes_neondot,
    .largest = largest_bytes_neondot,
    .quantise = quantise_bytes_neondot,
    .quantise_fine = quantise_fine_bytes_neondot,
    .judge = judge_bytes_neondot,
    .refine = refine_bytes_neondot,
    .pairs = pairs_bytes_neondot,
    .count_bits = count_bits_bytes_neondot,
    .undecided = undecided_bytes_neondot,
};
#endif
