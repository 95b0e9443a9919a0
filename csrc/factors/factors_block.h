/* A block of entities as 8-bit and 16-bit codes. Internal to the factors family. */
#ifndef KGT_FACTORS_BLOCK_H
#define KGT_FACTORS_BLOCK_H

#include "factors_steps.h"

/* At most `width` ranked entities; `width` is a multiple of 64. A block that was taken is only
 * read. */
typedef struct {
    const kgt_bytes *bytes;
    const kgt_factors *factors;
    const kgt_sums *sums; /* for the metric */
    kgt_pairs *pairs;     /* for the dtype */
    kgt_steps steps;
    size_t groups;
    int64_t width, first, n;
    bool bounded; /* every entity has bounds */
    int8_t *panels;
    int32_t *start;
    /* Entities are sorted by largest magnitude, so that the 64 of a word have similar ones. A slot
     * is a place in this order. The arrays below have one entry per slot, or one per word if the 64
     * entities share it. */
    uint16_t *place_of, *slot_of;
    float *scale, *inverse, *code_norm;
    float *base;   /* |x - x'| + g' |x| */
    float *offset; /* b - X; NULL if 0 for all */
    float *shift;  /* offset * inverse */
    int16_t *fine; /* second level: codes and figures, row after row */
    size_t fine_stride;
    double *entity_norm;   /* X; NULL if 0 for all */
    double largest_offset; /* of |o| + X + |b| */
} kgt_block;

/* Entities per block of a call (the last may have fewer), and the bytes that a block takes. */
int64_t kgt_block_width(const kgt_factors *factors);
size_t kgt_block_bytes(const kgt_factors *factors, int64_t width);
kgt_status kgt_block_open(kgt_block *block, const kgt_factors *factors, kgt_steps steps,
                          int64_t width);
void kgt_block_close(kgt_block *block);
/* Entities in a product: those of the block, padded to whole words of bits. */
KGT_INLINE size_t kgt_block_padded(const kgt_block *block) {
    return (size_t)(block->n + 63) / 64 * 64;
}
/* Encodes the ranked entities first .. first + n - 1, n <= width. */
kgt_status kgt_block_encode(kgt_block *block, int64_t first, int64_t n);

/* Copies of vectors kept at the same time, so that their chains run side by side: one word's. */
#define KGT_AT_HAND 64

/* The vector of an entity of a block: in the table, or widened into copy number i of KGT_AT_HAND. A
 * copy has space for two vectors. */
KGT_INLINE const void *kgt_vector_at(const kgt_block *block, int64_t slot, char *copies, size_t i) {
    return kgt_entity(kgt_kernel_active(), block->factors, block->first + block->place_of[slot],
                      copies + i * 2 * kgt_vector_bytes(block->factors));
}

/* The figures of an entity of a block. */
KGT_INLINE char *kgt_figures_of(const kgt_block *block, int64_t slot) {
    const size_t end = ((size_t)slot + 1) * block->fine_stride;
    return (char *)(block->fine + end - KGT_FINE_FIGURES);
}

#endif
