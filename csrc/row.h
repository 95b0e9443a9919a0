/* One score row, or one range of its entities: internal to rank.c and factors.c. */
#ifndef KGT_ROW_H
#define KGT_ROW_H

#include "kernel.h"
#include "kgtrec.h"
#include "topk.h"

typedef struct {
    const char *data; /* score of entity `first` */
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

/* The part of a span within entities first .. first + n - 1. */
KGT_INLINE kgt_span kgt_span_within(kgt_span span, int64_t first, int64_t n) {
    const int64_t low = kgt_lower_bound(span, first);
    return (kgt_span){span.ids + low, kgt_lower_bound(span, first + n) - low};
}

/* Scratch of one call (one thread), and the top-k buffers of the rows in flight. */
#define KGT_WORKER(suffix, T)                                                                     \
    typedef struct {                                                                              \
        const kgt_kernel *kernel;                                                                 \
        const kgt_task *task;                                                                     \
        T *block, *survivors, *maxima, *gathered, *thresholds;                                    \
        int32_t *selected;                                                                        \
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
