/* All blocks of a model. Internal to the factors family. */
#ifndef KGT_FACTORS_CODES_H
#define KGT_FACTORS_CODES_H

#include "factors_block.h"

/* The maxima of so many groups give the first bound of a row's best, for depths up to the second
 * number. The block's width must be a multiple of the number of groups. */
#define KGT_FIRST_GROUPS 64
#define KGT_FIRST_DEEPEST 32

/* The blocks of a model's entities, and a sample of the entities that gives a guess for the best of
 * rows. Either calls share all blocks (shared), or a call takes one block after the other into the
 * same memory. */
struct kgt_codes {
    const kgt_bytes *bytes;
    kgt_factors factors;
    kgt_steps steps;
    int64_t width, n_blocks;
    bool shared;
    kgt_block *blocks, sampled;
    kgt_factors sampled_of; /* its entities alone */
    int32_t *sampled_ids;
    int64_t guessing_rank; /* which of the sample's best is the guess; 0: none */
};

/* Whether calls that rank the rows of `factors`, with `depth` best, are faster by bounds. */
bool kgt_bounds_serve(const kgt_factors *factors, int64_t depth);
/* Opens the codes without taking a part. */
kgt_status kgt_codes_begin(kgt_codes *codes, const kgt_factors *factors, int64_t depth,
                           bool shared);
void kgt_codes_end(kgt_codes *codes);
/* Block number i, which must have been taken. */
KGT_INLINE const kgt_block *kgt_codes_block(const kgt_codes *codes, int64_t i) {
    return codes->blocks + (codes->shared ? i : 0);
}

#endif
