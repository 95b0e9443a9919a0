/* The depth best of a stream of scored entities, in trec order. Keys have the order of (score,
 * position): the score's bits made monotone, then the place of the document name in byte order. No
 * two are equal. */
#ifndef KGT_RANK_TOPK_H
#define KGT_RANK_TOPK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "isa_kernel.h"

typedef uint64_t kgt_key_f32;
__extension__ typedef unsigned __int128 kgt_key_f64;

/* Inverts all bits of a negative number, and only the sign of others. There are no branches,
 * because half of all signs would be mispredicted. */
KGT_INLINE kgt_key_f32 kgt_make_key_f32(float score, uint32_t position) {
    const float canonical = score + 0.0f; /* -0 ties with 0 */
    uint32_t bits;
    memcpy(&bits, &canonical, sizeof bits);
    bits ^= (0u - (bits >> 31)) | 0x80000000u;
    return (uint64_t)bits << 32 | position;
}

KGT_INLINE float kgt_key_score_f32(kgt_key_f32 key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits ^= ((bits >> 31) - 1u) | 0x80000000u;
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

KGT_INLINE kgt_key_f64 kgt_make_key_f64(double score, uint32_t position) {
    const double canonical = score + 0.0;
    uint64_t bits;
    memcpy(&bits, &canonical, sizeof bits);
    bits ^= ((uint64_t)0 - (bits >> 63)) | (uint64_t)1 << 63;
    return (kgt_key_f64)bits << 32 | position;
}

KGT_INLINE double kgt_key_score_f64(kgt_key_f64 key) {
    uint64_t bits = (uint64_t)(key >> 32);
    bits ^= ((bits >> 63) - 1) | (uint64_t)1 << 63;
    double score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/* Places of a buffer. With more spare places beyond depth, selections are rarer. */
KGT_INLINE int64_t kgt_top_capacity(int64_t depth) { return 2 * depth + 64; }

/* bound: the lowest score that can still enter; lower scores are not kept. worst: 0, or, after keys
 * were dropped, the depth-th best key; keys below it need not be kept. spare: as many places as
 * keys has. */
#define KGT_TOP(suffix, T)                              \
    typedef struct {                                    \
        kgt_key_##suffix *keys, *spare, worst;          \
        int64_t used, depth;                            \
        T bound;                                        \
    } kgt_top_##suffix;                                 \
    void kgt_top_prune_##suffix(kgt_top_##suffix *top); \
    void kgt_top_sort_##suffix(kgt_top_##suffix *top, const kgt_kernel *kernel);

KGT_TOP(f32, float)
KGT_TOP(f64, double)

#endif
