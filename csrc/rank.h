/* Ranks score rows: the task of a row, its counts and its best entities. */
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

/* The task of every score row. A row's targets are the answers whose counts are wanted. */
typedef struct {
    const int64_t *row_question; /* row -> index into known and removed */
    kgt_csr targets;             /* per row: answers, strictly ascending ids */
    kgt_csr known;               /* per question, strictly ascending: no micro candidates */
    kgt_csr removed; /* the same for macro (question-level) candidates; never has a target's id */
    /* Restricted candidates. row_list is the row of `lists` (strictly ascending ids) with a task
     * row's candidates, or -1 for all entities. columns, if not NULL, is the score column of each
     * id of lists. row_list NULL: no row is restricted. */
    const int64_t *row_list;
    kgt_csr lists;
    const int32_t *columns;
    const int32_t
        *position; /* id -> place in byte order of document names; NULL: ids have this order */
    const int32_t *entity_at; /* the inverse of position; NULL with it */
} kgt_task;

/* One value per target (index into task.targets.ids). Calls add to them, so counts over disjoint
 * entity ranges sum up. */
typedef struct {
    int64_t *greater, *equal, *tied_ahead;                   /* micro candidates */
    int64_t *macro_greater, *macro_equal, *macro_tied_ahead; /* macro candidates */
} kgt_counts;

/* The best macro candidates of every row, in trec order (score, then document name, both
 * descending). slot is the place of a task row's list, or -1 for none. ids and scores hold depth
 * places per slot; length is the number used. NaN is never kept. scores are float for KGT_F16,
 * KGT_BF16 and KGT_F32, double for KGT_F64. depth 0: nothing is kept. */
typedef struct {
    int64_t depth;
    const int64_t *slot;
    int32_t *ids;
    void *scores;
    int32_t *length;
} kgt_best;

/* The number of NaN among the candidates of each row, and the first such entity (unchanged if
 * none). Candidates are the row's targets and all others that are not in `removed` (not in `known`,
 * if the row has no slot for its best). */
typedef struct {
    int64_t *count;
    int32_t *first_entity;
} kgt_nans;

/* A block of score rows over the entities first_entity .. first_entity + n_entities - 1. Strides
 * are in bytes and may be negative; elements need no alignment. negate: lower is better. */
typedef struct {
    const void *data;
    kgt_dtype dtype;
    int64_t n_rows, n_entities;
    int64_t row_stride, entity_stride;
    int32_t first_entity;
    bool negate;
} kgt_scores;

/* Reads the scores of targets from rows that hold every entity (first_entity 0). out: one double
 * per target. */
kgt_status kgt_target_scores(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                             double *out);

/* Ranks a block of rows; block row i is task row first_row + i. target_scores is the output of
 * kgt_target_scores, or NULL if the rows hold every entity. */
kgt_status kgt_rank_rows(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                         const double *target_scores, const kgt_counts *counts,
                         const kgt_best *best, const kgt_nans *nans);

/* Scores of all rows of a call together: how many of them reach each threshold, and which reach a
 * bound. The caller owns the arrays. */
typedef struct {
    int64_t n;                   /* thresholds, none of them NaN */
    const double *thresholds;    /* (n) */
    int64_t *greater, *at_least; /* (n), added to */
    /* Cells with a score of at least `bound`, in any order: row * n_entities + column, within the
     * call. capacity 0: none are wanted. used counts those for which there was no space, too. */
    double bound;
    int64_t capacity, used;
    int64_t *cells;
    double *scores;
    bool nan; /* set if any score is NaN, which counts nowhere */
} kgt_pair_counts;

kgt_status kgt_count_rows(const kgt_scores *scores, kgt_pair_counts *counts);

#endif
