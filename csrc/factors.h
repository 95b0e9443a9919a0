/* Ranks score rows that are computed from the vectors of a factorised model. */
#ifndef KGT_FACTORS_H
#define KGT_FACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "kgt_status.h"
#include "rank.h"

typedef enum {
    KGT_DOT = 0,
    KGT_L2 = 1,
    KGT_L1 = 2,
    KGT_MODULI = 3,
    KGT_MODE = 4,
    KGT_HAKE = 5
} kgt_metric;

/* A factorised model: score(row, entity) from their vectors. C-contiguous float or double.
 * KGT_DOT: q.x + bias; KGT_L2: 2 q.x - x.x - q.q + bias = -|q - x|^2 + bias;
 * KGT_L1: bias - (|q1 - x1| + |q2 - x2| + ...), summed in ascending dimension.
 * KGT_MODULI: the same of complex vectors, all real parts first, so `dim` is even: bias - the sum
 * of sqrt(re * re + im * im) of q - x.
 * KGT_MODE, KGT_HAKE: the query scales the entity; see tile_mode and tile_hake in isa_kernel.h.
 * Only here queries are longer than entities, by kgt_query_dim. Every dot product is one chain of
 * fused multiply-adds over ascending dimensions, so a (row, entity) score has the same bits in
 * every tile, thread, range and kernel path. */
typedef struct {
    const void *queries;  /* (n_rows, kgt_query_dim) of the rows ranked in this call */
    const void *entities; /* (n_entities, dim), the first is first_entity */
    const void *bias;     /* (n_entities) or NULL */
    kgt_dtype dtype;      /* KGT_F32 or KGT_F64 */
    kgt_metric metric;
    int64_t n_rows, n_entities, dim;
    int32_t first_entity;
    /* The entity table is stored in float16 (with dtype KGT_F32). Packing widens it. */
    bool half_entities;
    /* NULL, or the entities to rank: ascending ids. Row 0 of `entities` is entity first_entity.
     * n_entities then counts the ids. */
    const int32_t *ids;
} kgt_factors;

/* Numbers of a query, for entities of `dim` numbers. */
static inline int64_t kgt_query_dim(kgt_metric metric, int64_t dim) {
    if (metric == KGT_MODE) return 2 * dim;
    return metric == KGT_HAKE ? dim / 3 * 4 + 2 : dim;
}

/* As kgt_target_scores. Targets outside the entity table keep their places of out. */
kgt_status kgt_factor_target_scores(const kgt_factors *factors, const kgt_task *task,
                                    int64_t first_row, double *out);

/* Statistics of calls; each call adds to them. pairs: scores to compare with. tiled: scores that
 * were computed tile by tile. open: comparisons that the 8-bit bounds left open. close: those that
 * the 16-bit bounds left open too; their scores were computed one by one. */
typedef struct {
    int64_t pairs, tiled, open, close;
} kgt_tally;

/* The entities of a model as codes, which all calls that rank its rows can share. Open it, then
 * encode each part once; threads may encode different parts at the same time. After that it is only
 * read. */
typedef struct kgt_codes kgt_codes;

/* Codes for the rows of `factors`, ranked in calls of at least call_rows, with `depth` best. Sets
 * NULL and returns KGT_OK if shared codes do not pay or need more than most_bytes. The codes refer
 * to the entities' memory. */
kgt_status kgt_codes_open(const kgt_factors *factors, int64_t call_rows, int64_t depth,
                          int64_t most_bytes, kgt_codes **codes);
void kgt_codes_close(kgt_codes *codes);
int64_t kgt_codes_parts(const kgt_codes *codes);
kgt_status kgt_codes_encode(kgt_codes *codes, int64_t part);

/* As kgt_rank_rows, from bounds of the scores or from tiles of scores; the score matrix never
 * exists. codes: NULL, or those of the same entities and bias, with all parts encoded. */
kgt_status kgt_rank_factors(const kgt_factors *factors, const kgt_task *task, int64_t first_row,
                            const double *target_scores, const kgt_codes *codes,
                            const kgt_counts *counts, const kgt_best *best, const kgt_nans *nans,
                            kgt_tally *tally);

/* As kgt_count_rows, from tiles of scores. */
kgt_status kgt_count_factors(const kgt_factors *factors, kgt_pair_counts *counts);

/* Computes the scores, (n_rows, n_entities) in C order, with the same bits as above. */
kgt_status kgt_factor_scores(const kgt_factors *factors, void *out);

#endif
