/* Packing the lanes of a mask to the front, for AVX2, which has no instruction for it: the lanes
 * that a mask keeps are looked up. Internal to isa_avx2.c. */
#ifndef KGT_ISA_AVX2_PACK_H
#define KGT_ISA_AVX2_PACK_H

#include <stdint.h>

/* For every mask of lanes, from 0 on: the lanes it keeps, ascending, a byte each, the first lowest.
 * The higher lane stands outside, so a lane that is kept goes before what is there. */
#define LANE_0(v) (v), (v) << 8
#define LANE_1(v) LANE_0(v), LANE_0((v) << 8 | 1)
#define LANE_2(v) LANE_1(v), LANE_1((v) << 8 | 2)
#define LANE_3(v) LANE_2(v), LANE_2((v) << 8 | 3)
#define LANE_4(v) LANE_3(v), LANE_3((v) << 8 | 4)
#define LANE_5(v) LANE_4(v), LANE_4((v) << 8 | 5)
#define LANE_6(v) LANE_5(v), LANE_5((v) << 8 | 6)
#define LANE_7(v) LANE_6(v), LANE_6((v) << 8 | 7)
static const uint64_t kgt_lanes_kept[256] = {LANE_7((uint64_t)0)};

/* The same for 4 lanes of two halves each, by which doubles are moved. */
#define HALVES_0(v) (v), (v) << 16 | 0x0100
#define HALVES_1(v) HALVES_0(v), HALVES_0((v) << 16 | 0x0302)
#define HALVES_2(v) HALVES_1(v), HALVES_1((v) << 16 | 0x0504)
#define HALVES_3(v) HALVES_2(v), HALVES_2((v) << 16 | 0x0706)
static const uint64_t kgt_halves_kept[16] = {HALVES_3((uint64_t)0)};

#endif
