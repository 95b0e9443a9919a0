/* Shared by the NEON paths: everything except the product. The including file defines FN(op). */
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"
#include "isa_quantise_l1_body.h"

KGT_INLINE uint32_t FN(bits_of)(uint32x4_t mask) {
    const uint32x4_t bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, bit));
}

KGT_INLINE int32x4_t FN(step)(int32x4_t sum, const int16_t *p, const int16_t *q) {
    const int16x8_t a = vld1q_s16(p), b = vld1q_s16(q);
    return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b)), a, b);
}

KGT_INLINE int32x4_t FN(step_l1)(int32x4_t sum, const int16_t *p, const int16_t *q,
                                 const int16_t *weights) {
    const int16x8_t a = vabdq_s16(vld1q_s16(p), vld1q_s16(q)), b = vld1q_s16(weights);
    return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b)), a, b);
}

#define VEC float32x4_t
#define LANES 4
#define LOAD(p) vld1q_f32(p)
#define LOAD_INT(p) vcvtq_f32_s32(vld1q_s32(p))
#define STORE(p, v) vst1q_f32(p, v)
#define LARGER(a, b) vmaxq_f32(a, b)
#define SET1(s) vdupq_n_f32(s)
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define ABOVE(x, t) FN(bits_of)(vcgtq_f32(x, t))
#define REACHES(x, t) FN(bits_of)(vcgeq_f32(x, t))
#include "isa_judge_body.h"
#define FINE int32x4_t
#define FINE_LANES 8
#define FINE_ZERO vdupq_n_s32(0)
#define FINE_STEP(sum, p, q) sum = FN(step)(sum, p, q)
#define FINE_STEP_L1(sum, p, q, w) sum = FN(step_l1)(sum, p, q, w)
#define FINE_SUM4(out, v) \
    vst1q_s32(out, vpaddq_s32(vpaddq_s32((v)[0], (v)[1]), vpaddq_s32((v)[2], (v)[3])))
#include "isa_pairs_body.h"
#include "isa_refine_body.h"

/* Distances: two entities per vector. 16-bit lanes hold sums of two bytes, for as many steps as
 * fit; then as in isa_bytes_avx512_body.h. */
#define L1_QUERIES 4
#define L1_STEPS 128

KGT_INLINE void FN(l1_registers)(const uint8_t *queries, const int8_t *entities, size_t groups,
                                 int32_t *out, size_t stride) {
    uint32x4_t even[L1_QUERIES], odd[L1_QUERIES];
    KGT_UNROLL
    for (int i = 0; i < L1_QUERIES; i++) even[i] = odd[i] = vdupq_n_u32(0);
    for (size_t start = 0; start < groups; start += 2 * L1_STEPS) {
        const size_t end = groups - start < 2 * L1_STEPS ? groups : start + 2 * L1_STEPS;
        uint16x8_t some_even[L1_QUERIES], some_odd[L1_QUERIES];
        KGT_UNROLL
        for (int i = 0; i < L1_QUERIES; i++) some_even[i] = some_odd[i] = vdupq_n_u16(0);
        for (size_t k = start; k < end; k += 2) {
            const uint8x16_t evens = vld1q_u8((const uint8_t *)entities + k * 64);
            const uint8x16_t odds = vld1q_u8((const uint8_t *)entities + k * 64 + 64);
            KGT_UNROLL
            for (int i = 0; i < L1_QUERIES; i++) {
                const uint8x8_t eight = vld1_u8(queries + ((size_t)i * groups + k) * 4);
                const uint8x16_t query = vcombine_u8(eight, eight);
                some_even[i] = vpadalq_u8(some_even[i], vabdq_u8(query, evens));
                some_odd[i] = vpadalq_u8(some_odd[i], vabdq_u8(query, odds));
            }
        }
        KGT_UNROLL
        for (int i = 0; i < L1_QUERIES; i++) {
            even[i] = vpadalq_u16(even[i], some_even[i]);
            odd[i] = vpadalq_u16(odd[i], some_odd[i]);
        }
    }
    KGT_UNROLL
    for (int i = 0; i < L1_QUERIES; i++) {
        const uint64x2_t both =
            vorrq_u64(vpaddlq_u32(even[i]), vshlq_n_u64(vpaddlq_u32(odd[i]), 32));
        vst1q_s32(out + (size_t)i * stride, vnegq_s32(vreinterpretq_s32_u64(both)));
    }
}

static void FN(product_l1)(const uint8_t *queries, const int8_t *panels, size_t groups,
                           size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    (void)start;
    for (size_t j = 0; j < n_panels * KGT_BYTE_PANEL; j += 4)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += L1_QUERIES)
            FN(l1_registers)(queries + i * groups * 4, panels + j / 16 * groups * 64 + j % 16 * 4,
                             groups, out + i * stride + j, stride);
}
