/* The blocks of a model's entities, shared by several calls or encoded by one. Also the sample that
 * gives a guess for the best of a row, and the decision whether bounds pay. */
#include "factors_codes.h"

#include <math.h>
#include <stdlib.h>

/* With fewer rows, quantising the entities does not pay; with fewer entities, quantising the
 * queries does not. The scores of shorter vectors take no longer than their bounds. */
#define FEWEST_ROWS 48
#define FEWEST_ENTITIES 512
#define SHORTEST 32
#define DEEPEST 256
/* The sample has at most one entity in SAMPLED. It is used if the guess is among its MOST_GUESSING
 * best. */
#define SAMPLED 8
#define MOST_GUESSING 16

/* Chooses one entity of each stretch, spread over all, and writes their ids. */
static void sample(const kgt_factors *factors, int64_t n, int32_t *ids) {
    uint64_t bits = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = factors->n_entities * i / n;
        const int64_t length = factors->n_entities * (i + 1) / n - first;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        const int64_t place = first + (int64_t)((bits >> 33) % (uint64_t)length);
        ids[i] = factors->ids ? factors->ids[place] : (int32_t)(factors->first_entity + place);
    }
}

/* The rank in the sample whose score is below the best `depth` of all entities, except in one row
 * of a hundred. */
static int64_t guessing_rank(int64_t depth, int64_t n_sampled, int64_t n_entities) {
    const double mean = (double)depth * (double)n_sampled / (double)n_entities;
    return (int64_t)ceil(mean + 2 * sqrt(mean) + 1);
}

/* Chooses the sample, if the best of rows can be guessed from one. */
static kgt_status choose_sample(kgt_codes *codes, int64_t depth) {
    const int64_t n_entities = codes->factors.n_entities;
    int64_t n = codes->width;
    while (n > KGT_FIRST_GROUPS && n * SAMPLED > n_entities) n -= KGT_FIRST_GROUPS;
    const int64_t rank = guessing_rank(depth, n, n_entities);
    if (depth == 0 || n * SAMPLED > n_entities || rank > MOST_GUESSING || codes->steps.poor)
        return KGT_OK;
    codes->sampled_ids = kgt_allocate((size_t)n, sizeof *codes->sampled_ids);
    if (codes->sampled_ids == NULL) return KGT_NO_MEMORY;
    sample(&codes->factors, n, codes->sampled_ids);
    codes->sampled_of = codes->factors;
    codes->sampled_of.ids = codes->sampled_ids;
    codes->sampled_of.n_entities = n;
    codes->guessing_rank = rank;
    return KGT_OK;
}

kgt_status kgt_codes_begin(kgt_codes *codes, const kgt_factors *factors, int64_t depth,
                           bool shared) {
    const int64_t width = kgt_block_width(factors);
    *codes = (kgt_codes){.bytes = kgt_bytes_active(),
                         .factors = *factors,
                         .width = width,
                         .n_blocks = (factors->n_entities + width - 1) / width,
                         .shared = shared};
    codes->blocks = calloc(shared ? (size_t)codes->n_blocks : 1, sizeof *codes->blocks);
    if (codes->blocks == NULL ||
        (factors->metric == KGT_L1 && kgt_steps_choose(factors, &codes->steps) != KGT_OK))
        return KGT_NO_MEMORY;
    return choose_sample(codes, depth);
}

void kgt_codes_end(kgt_codes *codes) {
    for (int64_t i = 0; codes->blocks != NULL && i < (codes->shared ? codes->n_blocks : 1); i++)
        kgt_block_close(codes->blocks + i);
    kgt_block_close(&codes->sampled);
    free(codes->blocks);
    free(codes->sampled_ids);
}

/* Encodes entities of a model into a block that is opened for so many and filled once. */
static kgt_status encode_block(kgt_block *block, const kgt_factors *factors, kgt_steps steps,
                               int64_t first, int64_t n) {
    if (block->panels == NULL &&
        kgt_block_open(block, factors, steps, (n + 63) / 64 * 64) != KGT_OK)
        return KGT_NO_MEMORY;
    return kgt_block_encode(block, first, n);
}

kgt_status kgt_codes_encode(kgt_codes *codes, int64_t part) {
    if (part == codes->n_blocks)
        return encode_block(&codes->sampled, &codes->sampled_of, codes->steps, 0,
                            codes->sampled_of.n_entities);
    kgt_block *block = codes->blocks + (codes->shared ? part : 0);
    const int64_t first = part * codes->width, left = codes->factors.n_entities - first;
    return encode_block(block, &codes->factors, codes->steps, first,
                        left < codes->width ? left : codes->width);
}

int64_t kgt_codes_parts(const kgt_codes *codes) {
    return codes->n_blocks + (codes->guessing_rank > 0);
}

bool kgt_bounds_serve(const kgt_factors *factors, int64_t depth) {
    const kgt_bytes *bytes = kgt_bytes_active();
    const bool l1 = factors->metric == KGT_L1;
    return bytes != NULL && kgt_has_bounds(factors->metric) && (l1 || bytes->dot.product != NULL) &&
           (factors->dtype == KGT_F32 || factors->dtype == KGT_F64) &&
           factors->n_rows >= FEWEST_ROWS && factors->n_entities >= FEWEST_ENTITIES &&
           factors->dim >= SHORTEST && factors->dim <= 1 << 16 && depth <= DEEPEST;
}

kgt_status kgt_codes_open(const kgt_factors *factors, int64_t call_rows, int64_t depth,
                          int64_t most_bytes, kgt_codes **codes) {
    *codes = NULL;
    kgt_factors of_call = *factors;
    of_call.n_rows = call_rows;
    if (!kgt_bounds_serve(&of_call, depth)) return KGT_OK;
    const int64_t width = kgt_block_width(factors), n_blocks = factors->n_entities / width + 1;
    if ((int64_t)kgt_block_bytes(factors, width) > most_bytes / n_blocks) return KGT_OK;
    kgt_codes *opened = malloc(sizeof *opened);
    if (opened == NULL || kgt_codes_begin(opened, factors, depth, true) != KGT_OK) {
        kgt_codes_close(opened);
        return KGT_NO_MEMORY;
    }
    *codes = opened;
    return KGT_OK;
}

void kgt_codes_close(kgt_codes *codes) {
    if (codes != NULL) kgt_codes_end(codes);
    free(codes);
}
