/* Rows that are computed from the vectors of a factorised model. */
#ifndef KGT_FACTORS_H
#define KGT_FACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "kgt_status.h"
#include "rank.h"

typedef enum { KGT_DOT = 0, KGT_L2 = 1, KGT_L1 = 2 } kgt_metric;

/* A factorised model: score(row, entity) from their vectors. C-contiguous float or double.
 * KGT_DOT: q.x + bias; KGT_L2: 2 q.x - x.x - q.q + bias = -|q - x|^2 + bias;
 * KGT_L1: bias - (|q1 - x1| + |q2 - x2| + ...), summed in ascending dimension.
 * Every dot product is one chain of fused multiply-adds over ascending dimensions, so a (row,
 * entity) score has the same bits in every tile, thread, range and kernel path. */
typedef struct {
    const void *queries;  /* (n_rows, dim) of the rows ranked in this call */
    const void *entities; /* (n_entities, dim), the first is first_entity */
    const void *bias;     /* (n_entities) or NULL */
    kgt_dtype dtype;      /* KGT_F32 or KGT_F64 */
    kgt_metric metric;
    int64_t n_rows, n_entities, dim;
    int32_t first_entity;
    /* The table of entities is stored in float16 (with dtype KGT_F32): widened as it is packed. */
    bool half_entities;
    /* NULL, or the entities to rank: ascending rows of the table `entities`, whose first row is
     * entity first_entity; n_entities then counts them. */
    const int32_t *ids;
} kgt_factors;

/* As kgt_target_scores; targets that the table of entities does not hold are left alone. */
kgt_status kgt_factor_target_scores(const kgt_factors *factors, const kgt_task *task,
                                    int64_t first_row, double *out);

/* How many scores there were to compare with; how many of them were computed tile by tile; how many
 * comparisons the bounds of 8 bits left open, and how many of these those of 16 bits, whose scores
 * were computed one by one. Added to. */
typedef struct {
    int64_t pairs, tiled, open, close;
} kgt_tally;

/* What ranking by bounds makes of the entities of a model, made once for all calls that rank its
 * rows: opened, taken in parts, each of them once, by as many threads, and from then on only read.
 */
typedef struct kgt_codes kgt_codes;

/* For the rows of `factors`, in calls of call_rows at least, with so many best. NULL and KGT_OK
 * where each call does without: bounds are of no use, or this would take more than most_bytes. The
 * entities stay where they are. */
kgt_status kgt_codes_open(const kgt_factors *factors, int64_t call_rows, int64_t depth,
                          int64_t most_bytes, kgt_codes **codes);
void kgt_codes_close(kgt_codes *codes);
int64_t kgt_codes_parts(const kgt_codes *codes);
kgt_status kgt_codes_take(kgt_codes *codes, int64_t part);

/* As kgt_rank_rows, from bounds of the scores or from tiles of them: the score matrix never exists.
 * codes: NULL, or those of the same entities (and bias), all parts taken. */
kgt_status kgt_rank_factors(const kgt_factors *factors, const kgt_task *task, int64_t first_row,
                            const double *target_scores, const kgt_codes *codes,
                            const kgt_counts *counts, const kgt_best *best, const kgt_nans *nans,
                            kgt_tally *tally);

/* The scores themselves, (n_rows, n_entities) row after row, with the same bits as above. */
kgt_status kgt_factor_scores(const kgt_factors *factors, void *out);

#endif
