/* Score rows in, counts and best lists out; what is asked of a row. */
#ifndef KGT_RANK_H
#define KGT_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "kgt_status.h"

typedef enum { KGT_F16 = 0, KGT_BF16 = 1, KGT_F32 = 2, KGT_F64 = 3 } kgt_dtype;

/* Rows of int32 ids: row i is ids[offsets[i]] .. ids[offsets[i + 1] - 1]. */
typedef struct {
    const int64_t *offsets;
    const int32_t *ids;
} kgt_csr;

/* What is asked of every score row. A row's targets are the answers whose counts are wanted. */
typedef struct {
    const int64_t *row_question; /* row -> index into known and removed */
    kgt_csr targets;             /* per row: answers, strictly ascending ids */
    kgt_csr known;   /* per question, strictly ascending: taken out of micro candidates */
    kgt_csr removed; /* the same for macro (question-level) candidates; never holds a target's id */
    /* Restricted candidates: row_list names the row of lists, strictly ascending ids, that holds
     * a task row's candidates, or is -1 for every entity; columns, if any, is the score column of
     * each of its ids. row_list NULL: no row is restricted. */
    const int64_t *row_list;
    kgt_csr lists;
    const int32_t *columns;
    const int32_t
        *position; /* id -> place in byte order of document names; NULL: ids are in order */
    const int32_t *entity_at; /* the inverse of position; NULL with it */
} kgt_task;

/* One value per target (index into task.targets.ids), added to: counts over disjoint entity ranges
 * sum up. */
typedef struct {
    int64_t *greater, *equal, *tied_ahead;                   /* micro candidates */
    int64_t *macro_greater, *macro_equal, *macro_tied_ahead; /* macro candidates */
} kgt_counts;

/* The best macro candidates of every row, in trec order (score, then document name, both
 * descending). slot says where a task row's entities go, -1 for nowhere. ids and scores hold depth
 * places a slot; length says how many are used. NaN is never kept. scores are float for KGT_F16,
 * KGT_BF16 and KGT_F32, double for KGT_F64. depth 0: nothing is kept. */
typedef struct {
    int64_t depth;
    const int64_t *slot;
    int32_t *ids;
    void *scores;
    int32_t *length;
} kgt_best;

/* NaN met among the candidates of each row, and the first such entity (untouched when none).
 * Candidates are the row's targets and what `removed` leaves of the others; where the row has no
 * slot for its best, what `known` leaves. */
typedef struct {
    int64_t *count;
    int32_t *first_entity;
} kgt_nans;

/* A block of score rows over the entities first_entity .. first_entity + n_entities - 1. Strides in
 * bytes, of any sign; elements need no alignment. negate: lower is better. */
typedef struct {
    const void *data;
    kgt_dtype dtype;
    int64_t n_rows, n_entities;
    int64_t row_stride, entity_stride;
    int32_t first_entity;
    bool negate;
} kgt_scores;

/* Scores of targets, read from rows that hold every entity (first_entity 0). out: one double per
 * target.
 */
kgt_status kgt_target_scores(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                             double *out);

/* Rank a block of rows; block row i is task row first_row + i. target_scores as kgt_target_scores
 * gives them, or NULL where the rows hold every entity. */
kgt_status kgt_rank_rows(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                         const double *target_scores, const kgt_counts *counts,
                         const kgt_best *best, const kgt_nans *nans);

#endif
