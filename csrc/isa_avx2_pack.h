/* Tables for AVX2 that pack the lanes of a mask to the front, because AVX2 has no instruction for
 * it. Internal to isa_avx2.c. */
#ifndef KGT_ISA_AVX2_PACK_H
#define KGT_ISA_AVX2_PACK_H

#include <stdint.h>

/* For every mask, from 0 on: the lanes it keeps, ascending, one byte each, the first in the lowest
 * byte. The outer macro handles the higher lane, so a lower lane is put before it. */
#define LANE_0(v) (v), (v) << 8
#define LANE_1(v) LANE_0(v), LANE_0((v) << 8 | 1)
#define LANE_2(v) LANE_1(v), LANE_1((v) << 8 | 2)
#define LANE_3(v) LANE_2(v), LANE_2((v) << 8 | 3)
#define LANE_4(v) LANE_3(v), LANE_3((v) << 8 | 4)
#define LANE_5(v) LANE_4(v), LANE_4((v) << 8 | 5)
#define LANE_6(v) LANE_5(v), LANE_5((v) << 8 | 6)
#define LANE_7(v) LANE_6(v), LANE_6((v) << 8 | 7)
static const uint64_t kgt_lanes_kept[256] = {LANE_7((uint64_t)0)};

/* The same for 4 lanes of two halves each, which move doubles. */
#define HALVES_0(v) (v), (v) << 16 | 0x0100
#define HALVES_1(v) HALVES_0(v), HALVES_0((v) << 16 | 0x0302)
#define HALVES_2(v) HALVES_1(v), HALVES_1((v) << 16 | 0x0504)
#define HALVES_3(v) HALVES_2(v), HALVES_2((v) << 16 | 0x0706)
static const uint64_t kgt_halves_kept[16] = {HALVES_3((uint64_t)0)};

#endif
