/* A block of entities as vectors of 8 and of 16 bits: internal to the factors family. */
#ifndef KGT_FACTORS_BLOCK_H
#define KGT_FACTORS_BLOCK_H

#include "factors_steps.h"

/* A block of the ranked entities, at most `width`, a multiple of 64; once taken, it is only read.
 */
typedef struct {
    const kgt_bytes *bytes;
    const kgt_factors *factors;
    const kgt_sums *sums; /* the metric's */
    kgt_pairs *pairs;     /* and the type's */
    kgt_steps steps;
    size_t groups;
    int64_t width, first, n;
    bool bounded; /* false: some entity has no bounds */
    int8_t *panels;
    int32_t *start;
    /* Entities stand in order of their largest magnitudes, so that those of a word have much the
     * same: places of the block by slot, and slots by place. All that follows is by slot, but for
     * what the 64 of a word share. */
    uint16_t *place_of, *slot_of;
    float *scale, *inverse, *code_norm;
    float *base;   /* |x - x'| + g' |x| */
    float *offset; /* b - X; NULL where that is 0 for all */
    float *shift;  /* the same times inverse */
    int16_t *fine; /* the second level: codes and figures, row after row */
    size_t fine_stride;
    double *entity_norm;   /* X; NULL where that is 0 for all */
    double largest_offset; /* of |o| + X + |b| */
} kgt_block;

/* Entities of the blocks of a call, but for the last, and what one takes in memory. */
int64_t kgt_block_width(const kgt_factors *factors);
size_t kgt_block_bytes(const kgt_factors *factors, int64_t width);
kgt_status kgt_block_open(kgt_block *block, const kgt_factors *factors, kgt_steps steps,
                          int64_t width);
void kgt_block_close(kgt_block *block);
/* Entities to multiply with: the last block's, padded to whole words of bits. */
KGT_INLINE size_t kgt_block_padded(const kgt_block *block) {
    return (size_t)(block->n + 63) / 64 * 64;
}
/* Takes the ranked entities first .. first + n - 1, n <= width. */
kgt_status kgt_block_take(kgt_block *block, int64_t first, int64_t n);

/* Vectors that are at hand at a time, for their chains side by side: those of a word. */
#define KGT_AT_HAND 64

/* The vector of an entity of a block as the table has it, or in copy number i of KGT_AT_HAND, of
 * two vectors each. */
KGT_INLINE const void *kgt_vector_at(const kgt_block *block, int64_t slot, char *copies, size_t i) {
    return kgt_entity(kgt_kernel_active(), block->factors, block->first + block->place_of[slot],
                      copies + i * 2 * kgt_vector_bytes(block->factors));
}

/* Where the figures of an entity of a block stand. */
KGT_INLINE char *kgt_figures_of(const kgt_block *block, int64_t slot) {
    const size_t end = ((size_t)slot + 1) * block->fine_stride;
    return (char *)(block->fine + end - KGT_FINE_FIGURES);
}

#endif
