/* All blocks of a model: internal to the factors family. */
#ifndef KGT_FACTORS_CODES_H
#define KGT_FACTORS_CODES_H

#include "factors_block.h"

/* Groups whose maxima give a row's best their first bound, which the block must be a multiple of,
 * and up to which depth they do. */
#define KGT_FIRST_GROUPS 64
#define KGT_FIRST_DEEPEST 32

/* The blocks of a model's entities, and a sample of the entities, from which the best of rows are
 * guessed. Either every block has a place of its own, and calls share them; or a call takes one
 * after the other, in the same place. */
struct kgt_codes {
    const kgt_bytes *bytes;
    kgt_factors factors;
    kgt_steps steps;
    int64_t width, n_blocks;
    bool shared;
    kgt_block *blocks, sampled;
    kgt_factors sampled_of; /* its entities alone */
    int32_t *sampled_ids;
    int64_t guessing_rank; /* of the sample's best the one that is the guess; 0: none */
};

/* Whether calls that rank the rows of `factors`, with so many best, are faster by bounds. */
bool kgt_bounds_serve(const kgt_factors *factors, int64_t depth);
/* Without taking anything yet. */
kgt_status kgt_codes_begin(kgt_codes *codes, const kgt_factors *factors, int64_t depth,
                           bool shared);
void kgt_codes_end(kgt_codes *codes);
/* Block number i, which has been taken. */
KGT_INLINE const kgt_block *kgt_codes_block(const kgt_codes *codes, int64_t i) {
    return codes->blocks + (codes->shared ? i : 0);
}

#endif
