/* A row of few entities, where reading the scores takes the least time. It needs no blocks and no
 * gathering, and its filters are bits of a few words. Computing type T; part of rank_row_body.h. */

/* Up to so many entities, the best are found by sorting all. */
#define SORTED 64

static bool FN(marks_at_once)(const FN(kgt_worker) * worker, const kgt_row *row) {
    return row->ids == NULL && worker->kernel->mark != NULL;
}

/* Sets the bits of the filter's entities that the row holds. */
KGT_INLINE void FN(mark_filter)(const FN(kgt_worker) * worker, const kgt_row *row, kgt_span filter,
                                uint64_t *words) {
    const int64_t n_words = (row->n + 63) / 64;
    if (row->ids == NULL && n_words == 1) {
        uint64_t word = 0;
        for (int64_t i = 0; i < filter.n; i++) word |= (uint64_t)1 << (filter.ids[i] - row->first);
        words[0] = word;
        return;
    }
    if (FN(marks_at_once)(worker, row)) {
        worker->kernel->mark(filter.ids, (size_t)filter.n, row->first, (size_t)n_words, words);
        return;
    }
    for (int64_t i = 0; i < n_words; i++) words[i] = 0;
    if (row->ids != NULL && row->n < filter.n) {
        for (int64_t i = 0; i < row->n; i++)
            words[i / 64] |= (uint64_t)kgt_holds(filter, row->ids[i]) << i % 64;
    } else if (row->ids != NULL) {
        for (int64_t i = 0; i < filter.n; i++) {
            const int64_t place = kgt_row_place(row, filter.ids[i]);
            if (place >= 0) words[place / 64] |= (uint64_t)1 << place % 64;
        }
    } else {
        /* Ids ascend, so a word stays in its register until it is complete. */
        uint64_t word = 0, last = 0;
        for (int64_t i = 0; i < filter.n; i++) {
            const uint64_t place = (uint64_t)(filter.ids[i] - row->first), at = place / 64;
            word = (word & -(uint64_t)(at == last)) | (uint64_t)1 << place % 64;
            words[at] = word;
            last = at;
        }
    }
}

/* Copies the words of the second filter to the first, and may add one entity to it. */
static void FN(mark_one_more)(const kgt_row *row, int32_t id, bool more, uint64_t *words) {
    const int64_t n_words = (row->n + 63) / 64, place = more ? kgt_row_place(row, id) : -1;
    for (int64_t i = 0; i < n_words; i++) words[i] = words[n_words + i];
    if (place >= 0) words[place / 64] |= (uint64_t)1 << place % 64;
}

/* Ties ahead of an answer if names are in another order than ids. */
static int64_t FN(short_ties)(const FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                              T threshold, int32_t answer, const uint64_t *outside) {
    const int32_t *position = worker->task->position;
    int64_t ahead = 0;
    for (int64_t i = 0; i < row->n; i++)
        ahead += x[i] == threshold && !(outside[i / 64] >> i % 64 & 1) &&
                 position[kgt_row_id(row, i)] > position[answer];
    return ahead;
}

/* The counts of one answer among the micro and the macro candidates; false if there is a NaN. */
static bool FN(short_target)(const FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                             int32_t answer, const double *target_score, const uint64_t *outside,
                             int64_t *count) {
    const int64_t place = kgt_row_place(row, answer), n_words = (row->n + 63) / 64;
    const T threshold = target_score ? (T)*target_score : x[place];
    const size_t after = (size_t)kgt_row_after(row, answer);
    if (worker->kernel->OPS.count_short(x, (size_t)row->n, threshold, after, outside, count))
        return false;
    const bool itself = threshold == threshold && place >= 0;
    for (int64_t filter = 0; filter < 2; filter++) {
        const uint64_t *words = outside + filter * n_words;
        int64_t *counts = count + 3 * filter;
        if (itself) counts[1] -= !(words[place / 64] >> place % 64 & 1);
        if (worker->task->position == NULL) continue;
        counts[2] = counts[1] > 0 ? FN(short_ties)(worker, row, x, threshold, answer, words) : 0;
    }
    return true;
}

/* Writes the places that may be among a row's best to worker->selected; returns their number. In a
 * copy, removed entities are NaN and reach no bound, so they are neither counted nor looked at. */
static int64_t FN(short_select)(FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                                kgt_span removed, int64_t depth) {
    const FN(kgt_ops) *ops = &worker->kernel->OPS;
    const size_t n = (size_t)row->n;
    T *open = worker->survivors;
    memcpy(open, x, n * sizeof(T));
    for (int64_t i = 0; i < removed.n; i++) {
        const int64_t place = kgt_row_place(row, removed.ids[i]);
        if (place >= 0) open[place] = NAN;
    }
    ops->count(open, n, NULL, 0, NULL, NULL, worker->maxima);
    const T bound = FN(find_bound)(worker, worker->maxima, KGT_MAXIMA(n), 0, depth);
    return (int64_t)ops->select(open, n, worker->maxima, bound, worker->selected);
}

/* Keys of the scores of a row at n places (its first n, if places is NULL). */
static void FN(short_keys)(const FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                           const int32_t *places, int64_t n, FN(kgt_key) * keys) {
    const int32_t *position = worker->task->position;
    if (places == NULL && row->ids == NULL && position == NULL) { /* vector code */
        const uint32_t first = (uint32_t)row->first;
        for (int64_t i = 0; i < n; i++) keys[i] = FN(kgt_make_key)(x[i], first + (uint32_t)i);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = places ? places[i] : i, id = kgt_row_id(row, place);
        keys[i] = FN(kgt_make_key)(x[place], (uint32_t)(position ? position[id] : id));
    }
}

/* The best of the row, sorted. With very few entities all are sorted, the removed ones last. */
static void FN(short_best)(FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                           kgt_span removed, const uint64_t *outside, int64_t slot,
                           const kgt_best *best) {
    FN(kgt_key) *keys = worker->keys + KGT_SHORT; /* no row in flight uses these */
    FN(kgt_top) top = {.keys = keys, .spare = worker->keys, .depth = best->depth, .used = row->n};
    int64_t used = row->n;
    if (row->n > SORTED) {
        used = top.used = FN(short_select)(worker, row, x, removed, best->depth);
        FN(short_keys)(worker, row, x, worker->selected, used, keys);
    } else {
        FN(short_keys)(worker, row, x, NULL, used, keys);
        for (uint64_t left = outside[0]; left != 0; left &= left - 1, used--)
            keys[__builtin_ctzll(left)] = 0; /* below every other */
    }
    FN(kgt_top_sort)(&top, worker->kernel);
    top.used = used < top.used ? used : top.used;
    FN(write_best)(worker, &top, slot, best);
}

/* Prefetches later rows while this one is ranked. */
static void FN(fetch_ahead)(const kgt_row *row) {
    for (int64_t at = 0; at < row->n * row->stride; at += 64)
        KGT_PREFETCH(row->data + KGT_AHEAD + at);
}

bool FN(kgt_row_short)(FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                       const double *target_scores, const kgt_counts *counts,
                       const kgt_best *best) {
    const kgt_task *task = worker->task;
    const kgt_span targets = kgt_span_of(task->targets, task_row);
    const int64_t slot = kgt_slot_of(best, task_row), question = task->row_question[task_row];
    if (row->n < 1 || row->n > KGT_SHORT) return false;
    if (targets.n < 1 || targets.n > KGT_FEW_TARGETS) return false;
    const T *x = FN(in_place)(row) ? (const T *)(const void *)row->data
                                   : FN(fetch)(worker, row, 0, row->n, worker->stretch);
    if (FN(in_place)(row)) FN(fetch_ahead)(row);
    const int64_t n_words = (row->n + 63) / 64, target = task->targets.offsets[task_row];
    uint64_t outside[2 * KGT_SHORT_WORDS];
    const kgt_span known = kgt_span_within(kgt_span_of(task->known, question), row);
    const kgt_span removed = kgt_span_within(kgt_span_of(task->removed, question), row);
    FN(mark_filter)(worker, row, removed, outside + n_words);
    const bool comparing = n_words > 1 && targets.n == 1 && !FN(marks_at_once)(worker, row);
    if (comparing && kgt_same_but(known, removed, targets.ids[0]))
        FN(mark_one_more)(row, targets.ids[0], known.n > removed.n, outside);
    else
        FN(mark_filter)(worker, row, known, outside);
    for (int64_t j = 0; j < targets.n; j++) {
        const double *answer_score = target_scores ? target_scores + j : NULL;
        int64_t count[6];
        if (!FN(short_target)(worker, row, x, targets.ids[j], answer_score, outside, count))
            return false;
        counts->greater[target + j] += count[0];
        counts->equal[target + j] += count[1];
        counts->tied_ahead[target + j] += count[2];
        counts->macro_greater[target + j] += count[3];
        counts->macro_equal[target + j] += count[4];
        counts->macro_tied_ahead[target + j] += count[5];
    }
    if (slot >= 0) FN(short_best)(worker, row, x, removed, outside + n_words, slot, best);
    return true;
}

#undef SORTED
