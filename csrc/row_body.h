/* One row in one pass: counts for every job, NaN detection and the best entities, block by block
 * while the block is in the first-level cache; then what the filters take out is gathered and
 * subtracted, which costs O(known), not O(entities). Computing type T. */

kgt_status FN(kgt_worker_open)(FN(kgt_worker) * worker, const kgt_task *task, int64_t first_row,
                               int64_t n_rows, int64_t depth, int64_t n_tops) {
    int64_t jobs = 1, known = 1;
    for (int64_t row = first_row; row < first_row + n_rows; row++) {
        const int64_t question = task->row_question[row];
        const int64_t lengths[2] = {kgt_span_of(task->known, question).n,
                                    kgt_span_of(task->removed, question).n};
        const int64_t row_jobs = kgt_span_of(task->jobs, row).n;
        if (row_jobs > jobs) jobs = row_jobs;
        for (int i = 0; i < 2; i++)
            if (lengths[i] > known) known = lengths[i];
    }
    const size_t n_jobs = (size_t)jobs, block = KGT_BLOCK + KGT_SLACK;
    *worker = (FN(kgt_worker)){.kernel = kgt_kernel_active(), .task = task};
    worker->block = kgt_allocate(2 * block + KGT_MAXIMA + (size_t)known + n_jobs, sizeof(T));
    worker->selected = kgt_allocate(block + (size_t)known, sizeof(int32_t));
    worker->greater = kgt_allocate(6 * n_jobs, sizeof(int64_t));
    worker->tops = kgt_allocate((size_t)n_tops, sizeof *worker->tops);
    const size_t capacity = (size_t)kgt_top_capacity(depth);
    worker->keys = kgt_allocate(((size_t)n_tops + 1) * capacity, sizeof *worker->keys);
    if (!worker->block || !worker->selected || !worker->greater || !worker->tops || !worker->keys) {
        FN(kgt_worker_close)(worker);
        return KGT_NO_MEMORY;
    }
    worker->held = worker->selected + block;
    worker->survivors = worker->block + block;
    worker->maxima = worker->survivors + block;
    worker->gathered = worker->maxima + KGT_MAXIMA;
    worker->thresholds = worker->gathered + known;
    worker->at_least = worker->greater + n_jobs;
    worker->behind = worker->at_least + n_jobs;
    worker->filter_greater = worker->behind + n_jobs;
    worker->filter_at_least = worker->filter_greater + n_jobs;
    worker->filter_ahead = worker->filter_at_least + n_jobs;
    for (int64_t i = 0; i < n_tops; i++)
        worker->tops[i] = (FN(kgt_top)){.keys = worker->keys + ((size_t)i + 1) * capacity,
                                        .spare = worker->keys,
                                        .depth = depth,
                                        .bound = -INFINITY};
    return KGT_OK;
}

void FN(kgt_worker_close)(FN(kgt_worker) * worker) {
    free(worker->block);
    free(worker->selected);
    free(worker->greater);
    free(worker->tops);
    free(worker->keys);
}

/* ---- reading scores ---- */

static T FN(value)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t i) {
    const char *place = row->data + (row->gather ? row->gather[i] : i) * row->stride;
    T value = 0;
    if (row->dtype == OWN_DTYPE) {
        memcpy(&value, place, sizeof value);
    } else {
        uint16_t half;
        float wide;
        memcpy(&half, place, sizeof half);
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

static const T *FN(fetch)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t start,
                          int64_t n) {
    if (row->plain) return (const T *)(const void *)row->data + start;
    const char *place = row->data + start * row->stride;
    if (row->gather == NULL && sizeof(T) == sizeof(float) && row->dtype == KGT_F16 &&
        row->stride == 2 && !row->negate && (uintptr_t)place % 2 == 0) {
        worker->kernel->widen_f16((const uint16_t *)(const void *)place, (size_t)n,
                                  (float *)(void *)worker->block);
        return worker->block;
    }
    for (int64_t i = 0; i < n; i++) worker->block[i] = FN(value)(worker, row, start + i);
    return worker->block;
}

void FN(kgt_row_job_scores)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                            double *out) {
    const int64_t start = worker->task->jobs.offsets[task_row];
    const kgt_span jobs = kgt_span_of(worker->task->jobs, task_row);
    for (int64_t j = 0; j < jobs.n; j++) {
        const int64_t place = kgt_row_place(row, jobs.ids[j]);
        if (place >= 0) out[start + j] = (double)FN(value)(worker, row, place);
    }
}

#include "best_body.h"

/* ---- counting ---- */

/* True if the block holds a NaN. Compressing pays once several thresholds share the survivors. */
static bool FN(count_block)(FN(kgt_worker) * worker, const T *x, int64_t n, int64_t n_jobs) {
    const bool compressing = worker->sparse && n_jobs > 2 && worker->kernel->OPS.compress != NULL;
    if (!compressing)
        return worker->kernel->OPS.count(x, (size_t)n, worker->thresholds, (size_t)n_jobs,
                                         worker->greater, worker->at_least);
    bool nan = false;
    const size_t kept =
        worker->kernel->OPS.compress(x, (size_t)n, worker->lowest, worker->survivors, &nan);
    worker->kernel->OPS.count(worker->survivors, kept, worker->thresholds, (size_t)n_jobs,
                              worker->greater, worker->at_least);
    worker->sparse = kept < (size_t)n / 2;
    return nan;
}

/* Ties ahead of an answer in trec order are those with a later document name. With ids in the order
 * of names that is "a higher id", so it is enough to know how many ties stand at or behind the
 * answer: `behind` is set when the pass leaves the block that holds it. */
static void FN(note_behind)(FN(kgt_worker) * worker, const T *x, int64_t n, int64_t local,
                            int64_t job) {
    const int64_t equal = worker->at_least[job] - worker->greater[job];
    const int64_t in_block = equal - worker->behind[job];
    worker->behind[job] = equal;
    if (in_block < 2 || local + 1 == n) return;
    int64_t greater = 0, at_least = 0;
    worker->kernel->OPS.count(x + local + 1, (size_t)(n - local - 1), worker->thresholds + job, 1,
                              &greater, &at_least);
    worker->behind[job] -= at_least - greater;
}

/* With names in another order, ties are looked at one by one, in blocks that hold any. */
static void FN(note_behind_by_position)(FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                                        int64_t start, int64_t n, int32_t answer, int64_t job,
                                        int64_t equal_before) {
    const int64_t place = kgt_row_place(row, answer);
    const T own_score = worker->thresholds[job];
    /* The answer ties with itself, and stands at its own place. */
    const int64_t itself = place >= start && place < start + n && own_score == own_score;
    if (worker->at_least[job] - worker->greater[job] == equal_before + itself) {
        worker->behind[job] += itself;
        return;
    }
    const int32_t *position = worker->task->position;
    const int32_t own = position[answer];
    const T threshold = worker->thresholds[job];
    int64_t behind = 0;
    for (int64_t i = 0; i < n; i++)
        behind += (x[i] == threshold) & (position[kgt_row_id(row, start + i)] <= own);
    worker->behind[job] += behind;
}

/* ---- filtering ---- */

/* Counts, among the ids of a filter that the row holds, what the pass has counted for each job. */
static void FN(count_filter)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span filter,
                             kgt_span jobs) {
    const int32_t *position = worker->task->position;
    for (int64_t j = 0; j < jobs.n; j++)
        worker->filter_greater[j] = worker->filter_at_least[j] = worker->filter_ahead[j] = 0;
    T *gathered = worker->gathered;
    int32_t *held = worker->held;
    int64_t n = 0;
    for (int64_t i = 0; i < filter.n; i++) {
        const int64_t place = kgt_row_place(row, filter.ids[i]);
        if (place < 0) continue;
        held[n] = filter.ids[i];
        gathered[n++] = FN(value)(worker, row, place);
    }
    if (n == 0) return;
    worker->kernel->OPS.count(gathered, (size_t)n, worker->thresholds, (size_t)jobs.n,
                              worker->filter_greater, worker->filter_at_least);
    for (int64_t j = 0; j < jobs.n; j++) {
        if (worker->filter_at_least[j] == worker->filter_greater[j]) continue;
        const int32_t answer = jobs.ids[j];
        for (int64_t i = 0; i < n; i++) {
            const bool later = position ? position[held[i]] > position[answer] : held[i] > answer;
            worker->filter_ahead[j] += later && gathered[i] == worker->thresholds[j];
        }
    }
}

/* Adds the row's counts less the filter's. A job's own entity ties with itself: it is taken out
 * here unless the filter, which holds it then, has done so. */
static void FN(add_counts)(const FN(kgt_worker) * worker, const kgt_row *row, kgt_span filter,
                           kgt_span jobs, int64_t *greater, int64_t *equal, int64_t *tied_ahead) {
    for (int64_t j = 0; j < jobs.n; j++) {
        const int32_t id = jobs.ids[j];
        const bool inside = kgt_row_place(row, id) >= 0;
        const bool counted = inside && worker->thresholds[j] == worker->thresholds[j];
        const int64_t own = counted && !kgt_holds(filter, id);
        const int64_t row_equal = worker->at_least[j] - worker->greater[j];
        greater[j] += worker->greater[j] - worker->filter_greater[j];
        equal[j] += row_equal - (worker->filter_at_least[j] - worker->filter_greater[j]) - own;
        tied_ahead[j] += row_equal - worker->behind[j] - worker->filter_ahead[j];
    }
}

static void FN(note_nans)(const FN(kgt_worker) * worker, const kgt_row *row, kgt_span removed,
                          int64_t task_row, const kgt_nans *nans) {
    for (int64_t i = 0; i < row->n; i++) {
        const T value = FN(value)(worker, row, i);
        const int32_t id = (int32_t)kgt_row_id(row, i);
        if (value == value || kgt_holds(removed, id)) continue;
        if (nans->count[task_row]++ == 0) nans->first_entity[task_row] = id;
    }
}

/* ---- the row ---- */

/* Counts the block at places start .. start + n - 1, and notes what of its ties stands behind the
 * answers. `next`: the first job whose id is not below the block. */
static bool FN(pass_block)(FN(kgt_worker) * worker, const kgt_row *row, const T *x, int64_t start,
                           int64_t n, kgt_span jobs, int64_t *next) {
    if (worker->task->position != NULL) {
        int64_t *before = worker->filter_ahead; /* free until the filters are counted */
        for (int64_t j = 0; j < jobs.n; j++) before[j] = worker->at_least[j] - worker->greater[j];
        const bool nan = FN(count_block)(worker, x, n, jobs.n);
        for (int64_t j = 0; j < jobs.n; j++)
            FN(note_behind_by_position)(worker, row, x, start, n, jobs.ids[j], j, before[j]);
        return nan;
    }
    const int64_t last = kgt_row_id(row, start + n - 1);
    int64_t end = *next;
    for (; end < jobs.n && jobs.ids[end] <= last; end++)
        worker->behind[end] = worker->at_least[end] - worker->greater[end];
    const bool nan = FN(count_block)(worker, x, n, jobs.n);
    for (; *next < end; ++*next)
        FN(note_behind)(worker, x, n, kgt_row_place(row, jobs.ids[*next]) - start, *next);
    return nan;
}

/* The one pass over the scores. True if a NaN was met, candidate or not. */
static bool FN(pass)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span jobs, kgt_span removed,
                     FN(kgt_top) * top) {
    FN(kgt_offer) offer = {.worker = worker, .row = row, .top = top, .removed = removed};
    if (top != NULL) FN(offer_open)(&offer);
    int64_t next = row->n > 0 ? kgt_lower_bound(jobs, kgt_row_id(row, 0)) : jobs.n;
    bool nan = false;
    /* What goes over the scores once and in place needs no blocks. */
    const int64_t block = row->plain && top == NULL && jobs.n <= 2 ? ONCE : KGT_BLOCK;
    for (int64_t start = 0; start < row->n; start += block) {
        const int64_t n = row->n - start < block ? row->n - start : block;
        const T *x = FN(fetch)(worker, row, start, n);
        nan |= FN(pass_block)(worker, row, x, start, n, jobs, &next);
        if (top != NULL) FN(offer_block)(&offer, x, start, n);
    }
    /* Answers beyond this range: all its ties stand behind them. */
    for (; worker->task->position == NULL && next < jobs.n; next++)
        worker->behind[next] = worker->at_least[next] - worker->greater[next];
    return nan;
}

void FN(kgt_row_rank)(FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                      const double *job_scores, const kgt_counts *counts, FN(kgt_top) * top,
                      const kgt_nans *nans) {
    const kgt_task *task = worker->task;
    const int64_t job = task->jobs.offsets[task_row], question = task->row_question[task_row];
    const kgt_span jobs = kgt_span_of(task->jobs, task_row);
    const kgt_span known = kgt_span_within(kgt_span_of(task->known, question), row);
    const kgt_span removed = kgt_span_within(kgt_span_of(task->removed, question), row);
    worker->lowest = INFINITY;
    for (int64_t j = 0; j < jobs.n; j++) {
        const T threshold = job_scores ? (T)job_scores[job + j]
                                       : FN(value)(worker, row, kgt_row_place(row, jobs.ids[j]));
        worker->thresholds[j] = threshold;
        if (threshold < worker->lowest) worker->lowest = threshold;
        worker->greater[j] = worker->at_least[j] = worker->behind[j] = 0;
    }
    worker->sparse = true;
    if (FN(pass)(worker, row, jobs, removed, top))
        FN(note_nans)(worker, row, removed, task_row, nans);
    FN(count_filter)(worker, row, known, jobs);
    FN(add_counts)(worker, row, known, jobs, counts->greater + job, counts->equal + job,
                   counts->tied_ahead + job);
    FN(count_filter)(worker, row, removed, jobs);
    FN(add_counts)(worker, row, removed, jobs, counts->macro_greater + job,
                   counts->macro_equal + job, counts->macro_tied_ahead + job);
}
