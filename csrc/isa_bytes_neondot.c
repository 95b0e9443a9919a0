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
#include "isa_bytes_neon_body.h"

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
    (void)start; /* both factors are signed: nothing to subtract */
    for (size_t j = 0; j < n_panels; j++)
        for (size_t i = 0; i < KGT_BYTE_QUERIES; i += QUERIES)
            product_registers(queries + i * groups * 4, panels + j * groups * 64, groups,
                              out + i * stride + j * KGT_BYTE_PANEL, stride);
}

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
    .dot = {product_bytes_neondot, NULL, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};
#endif
