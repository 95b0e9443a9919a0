/* One score row, or one range of its entities: internal to rank.c and factors.c. */
#ifndef KGT_ROW_H
#define KGT_ROW_H

#include "kernel.h"
#include "kgtrec.h"
#include "topk.h"

typedef struct {
    const char *data;      /* scores; place i is column gather[i], or i */
    const int32_t *gather; /* NULL: in order */
    const int32_t *ids;    /* entity of place i, ascending; NULL: first + i */
    int64_t n, stride;
    ptrdiff_t ahead; /* bytes to the next row, fetched while the best of this one are picked */
    int32_t first;
    kgt_dtype dtype;
    bool negate;
    bool plain; /* contiguous, aligned, of the computing type, not negated: read in place */
} kgt_row;

/* Jobs and filters of a row as spans of the task's arrays. */
typedef struct {
    const int32_t *ids;
    int64_t n;
} kgt_span;

KGT_INLINE kgt_span kgt_span_of(kgt_csr csr, int64_t row) {
    const int64_t start = csr.offsets[row];
    return (kgt_span){csr.ids + start, csr.offsets[row + 1] - start};
}

/* Where the best entities of a task row go, -1 for nowhere. */
KGT_INLINE int64_t kgt_slot_of(const kgt_best *best, int64_t task_row) {
    return best->depth > 0 ? best->slot[task_row] : -1;
}

KGT_INLINE int64_t kgt_row_id(const kgt_row *row, int64_t place) {
    return row->ids ? row->ids[place] : row->first + place;
}

/* First index whose id is not below `id`. */
KGT_INLINE int64_t kgt_lower_bound(kgt_span span, int64_t id) {
    int64_t low = 0, high = span.n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (span.ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

KGT_INLINE bool kgt_holds(kgt_span span, int32_t id) {
    const int64_t at = kgt_lower_bound(span, id);
    return at < span.n && span.ids[at] == id;
}

/* The place of an entity in a row; -1 if it has none. */
KGT_INLINE int64_t kgt_row_place(const kgt_row *row, int64_t id) {
    if (row->ids == NULL) {
        const int64_t place = id - row->first;
        return place >= 0 && place < row->n ? place : -1;
    }
    const int64_t place = kgt_lower_bound((kgt_span){row->ids, row->n}, id);
    return place < row->n && row->ids[place] == id ? place : -1;
}

/* The part of a span from the row's first entity to its last. */
KGT_INLINE kgt_span kgt_span_within(kgt_span span, const kgt_row *row) {
    if (row->n == 0) return (kgt_span){span.ids, 0};
    const int64_t low = kgt_lower_bound(span, kgt_row_id(row, 0));
    const int64_t high = kgt_lower_bound(span, kgt_row_id(row, row->n - 1) + 1);
    return (kgt_span){span.ids + low, high - low};
}

/* Scratch of one call (one thread), and the top-k buffers of the rows in flight. */
#define KGT_WORKER(suffix, T)                                                                     \
    typedef struct {                                                                              \
        const kgt_kernel *kernel;                                                                 \
        const kgt_task *task;                                                                     \
        T *block, *survivors, *maxima, *gathered, *thresholds;                                    \
        int32_t *selected, *held;                                                                 \
        int64_t *greater, *at_least, *behind; /* of the row, before filtering */                  \
        int64_t *filter_greater, *filter_at_least, *filter_ahead;                                 \
        T lowest;                                                                                 \
        bool sparse; /* few scores reach the lowest threshold: compress before counting */        \
        kgt_top_##suffix *tops;                                                                   \
        kgt_key_##suffix *keys;                                                                   \
    } kgt_worker_##suffix;                                                                        \
    kgt_status kgt_worker_open_##suffix(kgt_worker_##suffix *worker, const kgt_task *task,        \
                                        int64_t first_row, int64_t n_rows, int64_t depth,         \
                                        int64_t n_tops);                                          \
    void kgt_worker_close_##suffix(kgt_worker_##suffix *worker);                                  \
    void kgt_row_job_scores_##suffix(const kgt_worker_##suffix *worker, const kgt_row *row,       \
                                     int64_t task_row, double *out);                              \
    /* top NULL: the best are not asked. Adds the counts of one row (or range of it); job_scores  \
     * is indexed like jobs.ids, or NULL where the row holds every entity. */                     \
    void kgt_row_rank_##suffix(kgt_worker_##suffix *worker, const kgt_row *row, int64_t task_row, \
                               const double *job_scores, const kgt_counts *counts,                \
                               kgt_top_##suffix *top, const kgt_nans *nans);                      \
    void kgt_row_best_##suffix(const kgt_worker_##suffix *worker, kgt_top_##suffix *top,          \
                               int64_t task_row, const kgt_best *best);

KGT_WORKER(f32, float)
KGT_WORKER(f64, double)

#endif
