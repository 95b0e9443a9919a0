/* Ranks blocks of given score rows. */
#include "rank_row.h"

#include <stdlib.h>
#include <string.h>

/* Row i of a block, for a row of the task. Elements that are not aligned to their own size are read
 * through memcpy. */
static kgt_row row_of(const kgt_scores *scores, const kgt_task *task, int64_t i, int64_t task_row) {
    const size_t size = scores->dtype == KGT_F64 ? 8 : scores->dtype == KGT_F32 ? 4 : 2;
    const char *data = (const char *)scores->data + i * scores->row_stride;
    const bool packed = scores->entity_stride == (int64_t)size && (uintptr_t)data % size == 0;
    kgt_row row = {
        .data = data,
        .n = scores->n_entities,
        .stride = scores->entity_stride,
        .next = data + scores->row_stride,
        .first = scores->first_entity,
        .dtype = scores->dtype,
        .negate = scores->negate,
        .plain = packed && !scores->negate,
    };
    if (task->row_list != NULL && task->row_list[task_row] >= 0) {
        const int64_t start = task->lists.offsets[task->row_list[task_row]];
        const kgt_span lists = kgt_span_of(task->lists, task->row_list[task_row]);
        row.ids = lists.ids;
        row.gather = task->columns ? task->columns + start : lists.ids;
        row.n = lists.n;
        row.plain = false;
    }
    return row;
}

/* Prefetches the answers' scores, scattered over a row that is not in cache yet, while the row
 * before is ranked. */
static void prefetch_targets(const kgt_scores *scores, const kgt_task *task, int64_t i,
                             int64_t first_row) {
    const kgt_span targets = kgt_span_of(task->targets, first_row + i);
    const char *row = (const char *)scores->data + i * scores->row_stride;
    for (int64_t j = 0; j < targets.n && j < 64 && task->row_list == NULL; j++)
        KGT_PREFETCH(row + (targets.ids[j] - scores->first_entity) * scores->entity_stride);
}

#define T float
#define OWN_DTYPE KGT_F32
#define OPS f32
#define FN(op) op##_f32
#include "rank_rows_body.h"
#include "rank_columns_body.h"
#undef T
#undef OWN_DTYPE
#undef OPS
#undef FN

#define T double
#define OWN_DTYPE KGT_F64
#define OPS f64
#define FN(op) op##_f64
#include "rank_rows_body.h"
#include "rank_columns_body.h"

kgt_status kgt_target_scores(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                             double *out) {
    if (scores->dtype == KGT_F64) return target_scores_f64(scores, task, first_row, out);
    return target_scores_f32(scores, task, first_row, out);
}

kgt_status kgt_rank_rows(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                         const double *target_scores, const kgt_counts *counts,
                         const kgt_best *best, const kgt_nans *nans) {
    if (scores->dtype == KGT_F64) {
        if (by_columns_f64(scores, task, best))
            return rank_columns_f64(scores, task, first_row, target_scores, counts, best, nans);
        return rank_rows_f64(scores, task, first_row, target_scores, counts, best, nans);
    }
    if (by_columns_f32(scores, task, best))
        return rank_columns_f32(scores, task, first_row, target_scores, counts, best, nans);
    return rank_rows_f32(scores, task, first_row, target_scores, counts, best, nans);
}

kgt_status kgt_count_rows(const kgt_scores *scores, kgt_pair_counts *counts) {
    if (scores->dtype == KGT_F64) return count_rows_f64(scores, counts);
    return count_rows_f32(scores, counts);
}
