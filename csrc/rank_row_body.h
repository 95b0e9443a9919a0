/* One row in one pass: counts for every target, NaN detection and the best entities. Computing type
 * T. With few targets, a single pass over the row suffices. Otherwise the work goes block by block,
 * while the block is in the first-level cache. */

#include "rank_levels_body.h"

kgt_status FN(kgt_worker_open)(FN(kgt_worker) * worker, const kgt_task *task, int64_t first_row,
                               int64_t n_rows, const kgt_best *best, int64_t n_tops) {
    const int64_t depth = best ? best->depth : 0;
    int64_t targets = 1, known = 1;
    for (int64_t row = first_row; row < first_row + n_rows; row++) {
        const int64_t question = task->row_question[row];
        const int64_t lengths[2] = {kgt_span_of(task->known, question).n,
                                    kgt_span_of(task->removed, question).n};
        const int64_t row_targets = kgt_span_of(task->targets, row).n;
        if (row_targets > targets) targets = row_targets;
        for (int i = 0; i < 2; i++)
            if (lengths[i] > known) known = lengths[i];
    }
    const size_t n_targets = (size_t)targets, in_flight = n_targets * KGT_FLIGHT;
    const size_t stretch = KGT_STRETCH + KGT_SLACK, maxima = KGT_MAXIMA(KGT_STRETCH);
    *worker = (FN(kgt_worker)){.kernel = kgt_kernel_active(),
                               .task = task,
                               .slot = best ? best->slot : NULL,
                               .most_targets = targets};
    worker->stretch = kgt_allocate(
        stretch + KGT_BLOCK + KGT_SLACK + 2 * maxima + (size_t)known + in_flight, sizeof(T));
    worker->selected = kgt_allocate(stretch + (size_t)known, sizeof(int32_t));
    worker->greater = kgt_allocate(3 * in_flight + 2 * n_targets, sizeof(int64_t));
    worker->tops = kgt_allocate((size_t)n_tops, sizeof *worker->tops);
    const size_t capacity = (size_t)kgt_top_capacity(depth);
    const size_t of_tops = ((size_t)n_tops + 1) * capacity, of_short = 2 * KGT_SHORT;
    worker->keys =
        kgt_allocate((of_tops > of_short ? of_tops : of_short) + KGT_SLACK, sizeof *worker->keys);
    const bool has_levels = FN(levels_open)(&worker->levels, targets, known);
    if (!worker->stretch || !worker->selected || !worker->greater || !worker->tops ||
        !worker->keys || !has_levels) {
        FN(kgt_worker_close)(worker);
        return KGT_NO_MEMORY;
    }
    worker->gathered_ids = worker->selected + stretch;
    worker->survivors = worker->stretch + stretch;
    worker->maxima = worker->survivors + KGT_BLOCK + KGT_SLACK;
    worker->coarse = worker->maxima + maxima;
    worker->gathered = worker->coarse + maxima;
    worker->thresholds = worker->gathered + known;
    worker->at_least = worker->greater + in_flight;
    worker->behind = worker->at_least + in_flight;
    worker->filter_greater = worker->behind + in_flight;
    worker->filter_at_least = worker->filter_greater + n_targets;
    for (int64_t i = 0; i < n_tops; i++)
        worker->tops[i] = (FN(kgt_top)){.keys = worker->keys + ((size_t)i + 1) * capacity,
                                        .spare = worker->keys,
                                        .depth = depth,
                                        .bound = -INFINITY};
    return KGT_OK;
}

void FN(kgt_worker_close)(FN(kgt_worker) * worker) {
    FN(levels_close)(&worker->levels);
    free(worker->stretch);
    free(worker->selected);
    free(worker->greater);
    free(worker->tops);
    free(worker->keys);
}

/* ---- reading scores ---- */

static T FN(value)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t i) {
    const char *element = row->data + (row->gather ? row->gather[i] : i) * row->stride;
    T value = 0;
    if (row->dtype == OWN_DTYPE) {
        memcpy(&value, element, sizeof value);
    } else {
        uint16_t half;
        float wide;
        memcpy(&half, element, sizeof half);
        if (row->dtype == KGT_BF16) {
            const uint32_t bits = (uint32_t)half << 16;
            memcpy(&wide, &bits, sizeof wide);
        } else {
            worker->kernel->widen_f16(&half, 1, &wide);
        }
        value = (T)wide;
    }
    return row->negate ? -value : value;
}

/* Whether the scores can be read in place, as elements of T. */
static bool FN(in_place)(const kgt_row *row) { return row->plain && row->dtype == OWN_DTYPE; }

/* Copies with a step and a sign that the compiler knows, which is several times as fast. It
 * prefetches some way ahead, because the processor alone is too late. */
KGT_INLINE void FN(copy_some)(const T *x, const int64_t step, int64_t n, const bool negate,
                              T *copy) {
    const int64_t line = 64 / (int64_t)sizeof(T);
    const uintptr_t ahead =
        (uintptr_t)x + (kgt_ahead_one_stream() ? kgt_ahead_one_stream() : KGT_AHEAD);
    int64_t i = 0;
    for (; i + line <= n; i += line) {
        for (int64_t j = 0; j < step; j++)
            KGT_PREFETCH((const char *)ahead + (i * step + j * line) * (int64_t)sizeof(T));
        for (int64_t j = i; j < i + line; j++) copy[j] = negate ? -x[j * step] : x[j * step];
    }
    for (; i < n; i++) copy[i] = negate ? -x[i * step] : x[i * step];
}

/* Copies n scores that are `step` apart; negates them if lower is better. */
static void FN(copy_steps)(const T *x, int64_t step, int64_t n, bool negate, T *copy) {
    if (step == 1 && negate)
        FN(copy_some)(x, 1, n, true, copy);
    else if (step == 1)
        memcpy(copy, x, (size_t)n * sizeof(T));
    else if (step == 2 && negate)
        FN(copy_some)(x, 2, n, true, copy);
    else if (step == 2)
        FN(copy_some)(x, 2, n, false, copy);
    else if (step == -1)
        for (int64_t i = 0; i < n; i++) copy[i] = negate ? -x[-i] : x[-i];
    else
        for (int64_t i = 0; i < n; i++) copy[i] = negate ? -x[i * step] : x[i * step];
}

/* Scores start .. start + n - 1, in place or copied to `copy`. */
static const T *FN(fetch)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t start,
                          int64_t n, T *copy) {
    const char *element = row->data + start * row->stride;
    if (FN(in_place)(row)) return (const T *)(const void *)element;
    if (row->plain && row->dtype == KGT_F16) {
        worker->kernel->widen_f16((const uint16_t *)(const void *)element, (size_t)n,
                                  (float *)(void *)copy);
        return copy;
    }
    const int64_t size = sizeof(T);
    if (row->dtype == OWN_DTYPE && row->gather == NULL && row->stride % size == 0 &&
        (uintptr_t)row->data % (uintptr_t)size == 0) {
        FN(copy_steps)((const T *)(const void *)element, row->stride / size, n, row->negate, copy);
        return copy;
    }
    for (int64_t i = 0; i < n; i++) copy[i] = FN(value)(worker, row, start + i);
    return copy;
}

void FN(kgt_row_target_scores)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                               double *out) {
    const kgt_span targets = kgt_span_of(worker->task->targets, task_row);
    for (int64_t j = 0; j < targets.n; j++) {
        const int64_t place = kgt_row_place(row, targets.ids[j]);
        if (place >= 0) out[j] = (double)FN(value)(worker, row, place);
    }
}

#include "rank_best_body.h"

/* ---- counting ---- */

/* Counts scores in place; 16-bit scores are widened in registers. */
static bool FN(count_plain)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t start,
                            int64_t n, int64_t first_target, int64_t n_targets, int64_t *greater,
                            int64_t *at_least, T *maxima) {
    const kgt_kernel *kernel = worker->kernel;
    const void *x = row->data + start * row->stride, *t = worker->thresholds + first_target;
    const size_t length = (size_t)n, m = (size_t)n_targets;
    if (row->dtype == KGT_F16) return kernel->count_f16(x, length, t, m, greater, at_least, NULL);
    if (row->dtype == KGT_BF16) return kernel->count_bf16(x, length, t, m, greater, at_least, NULL);
    return kernel->OPS.count(x, length, t, m, greater, at_least, maxima);
}

/* Counts the scores of a block against all thresholds; true if it holds a NaN. maxima: as for the
 * primitive. Compressing pays if several thresholds share the survivors. */
static bool FN(count_block)(FN(kgt_worker) * worker, const T *x, int64_t n, int64_t n_targets,
                            T *maxima) {
    const FN(kgt_ops) *ops = &worker->kernel->OPS;
    const bool compressing = worker->sparse && n_targets > 2 && ops->compress != NULL;
    size_t n_values = (size_t)n;
    bool nan = false;
    if (!compressing && !worker->by_levels)
        return ops->count(x, n_values, worker->thresholds, (size_t)n_targets, worker->greater,
                          worker->at_least, maxima);
    if (!compressing || maxima != NULL) nan = ops->count(x, n_values, NULL, 0, NULL, NULL, maxima);
    if (compressing) {
        n_values = ops->compress(x, n_values, worker->lowest, worker->survivors, &nan);
        x = worker->survivors;
        worker->sparse = n_values < (size_t)n / 2;
    }
    if (worker->by_levels)
        FN(levels_count)(worker, x, n_values);
    else
        ops->count(x, n_values, worker->thresholds, (size_t)n_targets, worker->greater,
                   worker->at_least, NULL);
    return nan;
}

/* The number of counted scores that equal a target's. */
static int64_t FN(equal_so_far)(const FN(kgt_worker) * worker, int64_t target) {
    if (worker->by_levels) return FN(levels_equal)(&worker->levels, target);
    return worker->at_least[target] - worker->greater[target];
}

/* Sets behind[target], the number of ties at or behind an answer in trec order, once the block with
 * the answer is counted. If ids are in the order of names, ties ahead of the answer have higher
 * ids: they are all of its ties less `behind`. local: the answer's index in the block. */
static void FN(note_behind)(FN(kgt_worker) * worker, const T *x, int64_t n, int64_t local,
                            int64_t target) {
    const int64_t equal = FN(equal_so_far)(worker, target);
    const int64_t in_block = equal - worker->behind[target];
    worker->behind[target] = equal;
    if (in_block < 2 || local + 1 == n) return;
    int64_t greater = 0, at_least = 0;
    worker->kernel->OPS.count(x + local + 1, (size_t)(n - local - 1), worker->thresholds + target,
                              1, &greater, &at_least, NULL);
    worker->behind[target] -= at_least - greater;
}

#include "rank_ties_body.h"

#include "rank_cells_body.h"

/* ---- the row ---- */

/* The id of the first candidate with a NaN among the n scores from place `start` on; -1 if none. */
static int64_t FN(first_nan)(const kgt_row *row, const T *x, int64_t start, int64_t n,
                             kgt_span outside, kgt_span targets) {
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == x[i]) continue;
        const int32_t id = (int32_t)kgt_row_id(row, start + i);
        if (!kgt_holds(outside, id) || kgt_holds(targets, id)) return id;
    }
    return -1;
}

/* Adds the number of NaN candidates of a row that holds NaN: all NaN, less those that are no
 * candidates. */
static void FN(note_nans)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                          const kgt_nans *nans) {
    const kgt_task *task = worker->task;
    const kgt_csr filter = worker->slot[task_row] >= 0 ? task->removed : task->known;
    const kgt_span outside =
        kgt_span_within(kgt_span_of(filter, task->row_question[task_row]), row);
    const kgt_span targets = kgt_span_of(task->targets, task_row);
    const T lowest = -INFINITY;
    int64_t count = 0, first = -1, greater = 0;
    for (int64_t start = 0; start < row->n; start += KGT_BLOCK) {
        const int64_t n = row->n - start < KGT_BLOCK ? row->n - start : KGT_BLOCK;
        const T *x = FN(fetch)(worker, row, start, n, worker->stretch);
        int64_t numbers = 0;
        worker->kernel->OPS.count(x, (size_t)n, &lowest, 1, &greater, &numbers, NULL);
        count += n - numbers;
        if (numbers < n && first < 0 && nans->count[task_row] == 0)
            first = FN(first_nan)(row, x, start, n, outside, targets);
    }
    for (int64_t i = 0; i < outside.n; i++) {
        const int64_t place = kgt_row_place(row, outside.ids[i]);
        const T value = place < 0 ? 0 : FN(value)(worker, row, place);
        count -= value != value && !kgt_holds(targets, outside.ids[i]);
    }
    if (first >= 0) nans->first_entity[task_row] = (int32_t)first;
    nans->count[task_row] += count;
}

/* Whether a single pass suffices: few answers, and scores that need no copy. */
static bool FN(fits_single_pass)(const kgt_row *row, int64_t n_targets, const FN(kgt_top) * top) {
    if (!row->plain || n_targets > 2) return false;
    return FN(in_place)(row) || (top == NULL && sizeof(T) == sizeof(float));
}

static bool FN(single_pass)(FN(kgt_offer) * offer, kgt_span targets) {
    FN(kgt_worker) *worker = offer->worker;
    const kgt_row *row = offer->row;
    const int64_t stretch = offer->top != NULL ? KGT_STRETCH : row->n;
    T *maxima = offer->top != NULL ? worker->maxima : NULL;
    bool nan = false;
    for (int64_t start = 0; start < row->n; start += stretch) {
        const int64_t n = row->n - start < stretch ? row->n - start : stretch;
        nan |= FN(count_plain)(worker, row, start, n, 0, targets.n, worker->greater,
                               worker->at_least, maxima);
        if (offer->top == NULL) continue;
        const T *x = (const T *)(const void *)row->data;
        FN(offer_stretch)(offer, x + start, start, n);
    }
    for (int64_t j = 0; worker->task->position == NULL && j < targets.n; j++) {
        const int64_t equal = worker->at_least[j] - worker->greater[j];
        const bool inside = kgt_row_place(row, targets.ids[j]) >= 0;
        worker->behind[j] = equal;
        if (equal == inside) continue; /* it ties with itself at most */
        const int64_t after = kgt_row_after(row, targets.ids[j]);
        int64_t greater = 0, at_least = 0;
        FN(count_plain)(worker, row, after, row->n - after, j, 1, &greater, &at_least, NULL);
        worker->behind[j] -= at_least - greater;
    }
    return nan;
}

/* Counts the block at places start .. start + n - 1, and notes how many of its ties are behind the
 * answers. `next`: the first target whose id is not below the block. */
static bool FN(pass_block)(FN(kgt_worker) * worker, const kgt_row *row, const T *x, int64_t start,
                           int64_t n, kgt_span targets, int64_t *next, T *maxima) {
    if (worker->by_levels && FN(by_cells)(worker))
        return FN(cells_block)(worker, row, x, start, n, targets, next, maxima);
    if (worker->task->position != NULL) return FN(count_block)(worker, x, n, targets.n, maxima);
    const int64_t last = kgt_row_id(row, start + n - 1);
    int64_t end = *next;
    for (; end < targets.n && targets.ids[end] <= last; end++)
        worker->behind[end] = FN(equal_so_far)(worker, end);
    const bool nan = FN(count_block)(worker, x, n, targets.n, maxima);
    for (; *next < end; ++*next)
        FN(note_behind)(worker, x, n, kgt_row_place(row, targets.ids[*next]) - start, *next);
    return nan;
}

/* Passes over the scores of a row once. True if any is NaN, of a candidate or not. */
static bool FN(pass)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span targets,
                     kgt_span removed, FN(kgt_top) * top) {
    FN(kgt_offer) offer = {.worker = worker, .row = row, .top = top, .removed = removed};
    if (FN(fits_single_pass)(row, targets.n, top)) return FN(single_pass)(&offer, targets);
    int64_t next = row->n > 0 ? kgt_lower_bound(targets, kgt_row_id(row, 0)) : targets.n;
    bool nan = false;
    for (int64_t start = 0; start < row->n; start += KGT_BLOCK) {
        const int64_t n = row->n - start < KGT_BLOCK ? row->n - start : KGT_BLOCK;
        const int64_t at = top != NULL ? start % KGT_STRETCH : 0;
        const T *x = FN(fetch)(worker, row, start, n, worker->stretch + at);
        T *maxima = top != NULL ? worker->maxima + KGT_MAXIMA(at) : NULL;
        nan |= FN(pass_block)(worker, row, x, start, n, targets, &next, maxima);
        if (top != NULL && (at + n == KGT_STRETCH || start + n == row->n))
            FN(offer_stretch)(&offer, x - at, start - at, at + n);
    }
    /* Answers beyond this range: all of its ties are behind them. */
    for (; worker->task->position == NULL && next < targets.n; next++)
        worker->behind[next] = FN(equal_so_far)(worker, next);
    if (worker->by_levels) {
        FN(cells_read)(&worker->levels);
        FN(levels_read)(worker, targets.n);
    }
    return nan;
}

/* A copy of the worker for one row in flight: arrays per target begin with this row's targets. */
static FN(kgt_worker) FN(worker_at)(const FN(kgt_worker) * worker, int64_t offset) {
    FN(kgt_worker) row_worker = *worker;
    row_worker.thresholds += offset;
    row_worker.greater += offset;
    row_worker.at_least += offset;
    row_worker.behind += offset;
    return row_worker;
}

void FN(kgt_row_pass)(FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row, int64_t offset,
                      const double *target_scores, FN(kgt_top) * top, const kgt_nans *nans) {
    const kgt_task *task = worker->task;
    FN(kgt_worker) row_worker = FN(worker_at)(worker, offset);
    const kgt_span targets = kgt_span_of(task->targets, task_row);
    row_worker.lowest = INFINITY;
    for (int64_t j = 0; j < targets.n; j++) {
        const T threshold = target_scores
                                ? (T)target_scores[j]
                                : FN(value)(&row_worker, row, kgt_row_place(row, targets.ids[j]));
        row_worker.thresholds[j] = threshold;
        if (threshold < row_worker.lowest) row_worker.lowest = threshold;
        row_worker.greater[j] = row_worker.at_least[j] = row_worker.behind[j] = 0;
    }
    row_worker.sparse = true;
    row_worker.by_levels = targets.n > KGT_FEW_TARGETS;
    row_worker.levels.n_tied = 0;
    if (row_worker.by_levels) {
        FN(levels_build)(&row_worker, targets.n);
        FN(cells_build)(&row_worker, row->n);
    }
    kgt_span removed = {NULL, 0};
    if (top != NULL) removed = kgt_span_of(task->removed, task->row_question[task_row]);
    const bool nan = FN(pass)(&row_worker, row, targets, kgt_span_within(removed, row), top);
    if (task->position != NULL) FN(find_behind)(&row_worker, row, targets);
    worker->levels = row_worker.levels; /* for kgt_row_settle */
    if (nan) FN(note_nans)(&row_worker, row, task_row, nans);
}

#include "rank_settle_body.h"
#include "rank_short_body.h"
#include "rank_pairs_body.h"
