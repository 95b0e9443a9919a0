/* One score row, or one range of its entities. Internal to the rank and factors families. */
#ifndef KGT_RANK_ROW_H
#define KGT_RANK_ROW_H

#include "isa_kernel.h"
#include "rank.h"
#include "rank_topk.h"

typedef struct {
    const char *data;      /* scores; place i is column gather[i], or i */
    const int32_t *gather; /* NULL: in order */
    const int32_t *ids;    /* entity of place i, ascending; NULL: first + i */
    int64_t n, stride;
    const char *next; /* the next row, prefetched in portions while the best are picked */
    int32_t first;
    kgt_dtype dtype;
    bool negate;
    bool plain; /* contiguous, in order, aligned, not negated: can be read in place */
} kgt_row;

/* Rows in flight: so many given rows are counted before they are settled. Settling reads scattered
 * memory, which delays the stream of rows for longer than settling takes. So several rows are
 * settled together, few enough to be in the second-level cache still. */
#define KGT_FLIGHT 8

/* Cache lines of the next row that are prefetched at a time while the best of a row are picked. */
#define KGT_PORTION 16

/* Up to so many answers of a row are compared with every score. */
#define KGT_FEW_TARGETS 16
/* And up to so many different scores of more answers. */
#define KGT_FEW_LEVELS 8
/* Most cells of a grid over more levels. Their counts fit the second-level cache. */
#define KGT_MOST_CELLS 16384
/* Most levels in a cell. If a cell has more, the grid is not used. */
#define KGT_MOST_IN_CELL 15

/* Targets and filters of a row, as spans of the task's arrays. */
typedef struct {
    const int32_t *ids;
    int64_t n;
} kgt_span;

KGT_INLINE kgt_span kgt_span_of(kgt_csr csr, int64_t row) {
    const int64_t start = csr.offsets[row];
    return (kgt_span){csr.ids + start, csr.offsets[row + 1] - start};
}

/* The slot of a task row's best entities, or -1 for none. */
KGT_INLINE int64_t kgt_slot_of(const kgt_best *best, int64_t task_row) {
    return best->depth > 0 ? best->slot[task_row] : -1;
}

KGT_INLINE int64_t kgt_row_id(const kgt_row *row, int64_t place) {
    return row->ids ? row->ids[place] : row->first + place;
}

/* First index whose id is not below `id`. Its steps depend only on the length. A branch that
 * depends on the ids is mispredicted half the time, which costs more than the whole search. */
KGT_INLINE int64_t kgt_lower_bound(kgt_span span, int64_t id) {
    const int32_t *from = span.ids;
    for (int64_t n = span.n, half; n > 0; n -= half) {
        half = n - n / 2;
        from += half & -(int64_t)(from[half - 1] < id); /* compilers turn ?: into a branch */
    }
    return from - span.ids;
}

KGT_INLINE bool kgt_holds(kgt_span span, int32_t id) {
    const int64_t at = kgt_lower_bound(span, id);
    return at < span.n && span.ids[at] == id;
}

/* Whether `known` is `removed`, apart from `id`. This is usual for rows with a single answer. */
KGT_INLINE bool kgt_same_but(kgt_span known, kgt_span removed, int32_t id) {
    if (known.n != removed.n && known.n != removed.n + 1) return false;
    const int64_t at = kgt_lower_bound(known, id);
    const int64_t after = at + (at < known.n && known.ids[at] == id);
    const size_t size = sizeof *known.ids;
    return known.n - after == removed.n - at &&
           memcmp(known.ids, removed.ids, (size_t)at * size) == 0 &&
           memcmp(known.ids + after, removed.ids + at, (size_t)(removed.n - at) * size) == 0;
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

/* The first place with an id higher than `id`; the number of places if none. */
KGT_INLINE int64_t kgt_row_after(const kgt_row *row, int64_t id) {
    if (row->ids != NULL) return kgt_lower_bound((kgt_span){row->ids, row->n}, id + 1);
    const int64_t after = id - row->first + 1;
    return after < 0 ? 0 : after < row->n ? after : row->n;
}

/* The part of a span from the row's first entity to its last. */
KGT_INLINE kgt_span kgt_span_within(kgt_span span, const kgt_row *row) {
    if (row->n == 0 || span.n == 0) return (kgt_span){span.ids, 0};
    const int64_t first = kgt_row_id(row, 0), last = kgt_row_id(row, row->n - 1);
    if (span.ids[0] >= first && span.ids[span.n - 1] <= last) return span;
    const int64_t low = kgt_lower_bound(span, first), high = kgt_lower_bound(span, last + 1);
    return (kgt_span){span.ids + low, high - low};
}

/* The sorted scores of a row with many answers (rank_levels_body.h). Arrays are NULL if no row of
 * the call has many. */
#define KGT_LEVELS(suffix, T)                                                                  \
    typedef struct {                                                                           \
        T *scores; /* distinct, ascending; NaN up to 2^steps, and after the last of a cell */  \
        int64_t n; /* how many are distinct */                                                 \
        int steps;                                                                             \
        kgt_key_##suffix *keys; /* two buffers of `capacity` for sorting */                    \
        int64_t capacity;                                                                      \
        uint32_t *histogram, *filter; /* of the row's scores and of gathered ones, by bin */   \
        int32_t *bins;                /* of the current scores */                              \
        /* Per target: its bin; ties ahead of it in a filter; whether the filter holds it. */  \
        int32_t *of_target, *ahead, *holds;                                                    \
        kgt_cells grid; /* rank_cells_body.h; n_cells 0: none */                               \
        int64_t n_cells;                                                                       \
        uint32_t *counts;                                                                      \
        int32_t *cell_of; /* per level */                                                      \
        int32_t window;   /* a power of two; cells have at most 2 * window - 1 levels */       \
        bool sifting;     /* few scores share their cell with a level */                       \
        int64_t n_tied;   /* keys of answers in `keys`, if many have ties: rank_ties_body.h */ \
        int64_t greater[KGT_FEW_LEVELS + 1], at_least[KGT_FEW_LEVELS + 1]; /* of few levels */ \
    } kgt_levels_##suffix;

KGT_LEVELS(f32, float)
KGT_LEVELS(f64, double)

/* Scratch of one call (one thread), and the top-k buffers of the rows in flight. */
#define KGT_WORKER(suffix, T)                                                                      \
    typedef struct {                                                                               \
        const kgt_kernel *kernel;                                                                  \
        const kgt_task *task;                                                                      \
        const int64_t *slot; /* as in kgt_best */                                                  \
        /* Scores: copied ones, those that compress keeps, maxima of groups, maxima of maxima,     \
         * those of a filter's entities. Then indices that select returns, and a filter's ids. */  \
        T *stretch, *survivors, *maxima, *coarse, *gathered;                                       \
        int32_t *selected, *gathered_ids;                                                          \
        /* Per target of the rows in flight: scores, and the counts of the pass. */                \
        T *thresholds;                                                                             \
        int64_t *greater, *at_least, *behind;                                                      \
        int64_t *filter_greater, *filter_at_least; /* per target of one row */                     \
        int64_t most_targets;                      /* of any row */                                \
        T lowest;                                                                                  \
        bool sparse; /* few scores reach the lowest threshold: compress before counting */         \
        kgt_levels_##suffix levels;                                                                \
        bool by_levels; /* the row has many answers: count by levels */                            \
        kgt_top_##suffix *tops;                                                                    \
        kgt_key_##suffix *keys;                                                                    \
    } kgt_worker_##suffix;                                                                         \
    /* best NULL: only target scores are wanted. */                                                \
    kgt_status kgt_worker_open_##suffix(kgt_worker_##suffix *worker, const kgt_task *task,         \
                                        int64_t first_row, int64_t n_rows, const kgt_best *best,   \
                                        int64_t n_tops);                                           \
    void kgt_worker_close_##suffix(kgt_worker_##suffix *worker);                                   \
    /* Writes the scores of the targets that a row holds to their places in out. */                \
    void kgt_row_target_scores_##suffix(const kgt_worker_##suffix *worker, const kgt_row *row,     \
                                        int64_t task_row, double *out);                            \
    /* The pass over one row (or range of it): counts every entity, finds NaN and the best. Its    \
     * targets are those in flight from `offset` on. top NULL: the best are not asked.             \
     * target_scores has one for each of them, or is NULL where the row holds every entity. */     \
    void kgt_row_pass_##suffix(kgt_worker_##suffix *worker, const kgt_row *row, int64_t task_row,  \
                               int64_t offset, const double *target_scores, kgt_top_##suffix *top, \
                               const kgt_nans *nans);                                              \
    /* After the pass: adds its counts, less those of the known entities. */                       \
    void kgt_row_settle_##suffix(kgt_worker_##suffix *worker, const kgt_row *row,                  \
                                 int64_t task_row, int64_t offset, const kgt_counts *counts);      \
    /* Pass and settle at once, for a row of few entities. Returns false and does nothing if the   \
     * row is longer, has no or many answers, or holds a NaN. target_scores: as for the pass. */   \
    bool kgt_row_short_##suffix(kgt_worker_##suffix *worker, const kgt_row *row, int64_t task_row, \
                                const double *target_scores, const kgt_counts *counts,             \
                                const kgt_best *best);                                             \
    void kgt_row_best_##suffix(const kgt_worker_##suffix *worker, kgt_top_##suffix *top,           \
                               int64_t task_row, const kgt_best *best);

KGT_WORKER(f32, float)
KGT_WORKER(f64, double)

/* Rows whose scores are counted together, see kgt_pair_counts. Not to be copied: `worker` refers to
 * the other members. */
#define KGT_PAIRS(suffix)                                                                     \
    typedef struct {                                                                          \
        kgt_worker_##suffix worker;                                                           \
        kgt_task task;                                                                        \
        int64_t targets[2]; /* the thresholds, as offsets of the task's one row */            \
        int64_t counted;    /* scores since the last flush */                                 \
        int64_t rows;                                                                         \
        kgt_pair_counts *out;                                                                 \
    } kgt_pairs_##suffix;                                                                     \
    kgt_status kgt_pairs_open_##suffix(kgt_pairs_##suffix *pairs, kgt_pair_counts *out);      \
    /* Counts a row whose place 0 is the given cell. */                                       \
    void kgt_pairs_row_##suffix(kgt_pairs_##suffix *pairs, const kgt_row *row, int64_t cell); \
    /* Adds the counts to those of `out`. */                                                  \
    void kgt_pairs_close_##suffix(kgt_pairs_##suffix *pairs);

KGT_PAIRS(f32)
KGT_PAIRS(f64)

#endif
