/* A row of few entities, of which reading the scores is the least: no blocks, no gathering, and
 * what its filters take out is bits of a few words. Computing type T; part of rank_row_body.h. */

/* Up to so many entities, the best of them come by sorting all. */
#define SORTED 64

/* Sets the bits of those of a filter's entities that the row holds. */
static void FN(mark_filter)(const kgt_row *row, kgt_span filter, uint64_t *words) {
    const int64_t n_words = (row->n + 63) / 64;
    if (row->ids == NULL && n_words == 1) {
        uint64_t word = 0;
        for (int64_t i = 0; i < filter.n; i++) word |= (uint64_t)1 << (filter.ids[i] - row->first);
        words[0] = word;
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

/* The words of the second filter to those of the first, which may have one entity more. */
static void FN(mark_one_more)(const kgt_row *row, int32_t id, bool more, uint64_t *words) {
    const int64_t n_words = (row->n + 63) / 64, place = more ? kgt_row_place(row, id) : -1;
    for (int64_t i = 0; i < n_words; i++) words[i] = words[n_words + i];
    if (place >= 0) words[place / 64] |= (uint64_t)1 << place % 64;
}

/* Ties ahead of an answer where names are in another order than ids. */
static int64_t FN(short_ties)(const FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                              T threshold, int32_t answer, const uint64_t *outside) {
    const int32_t *position = worker->task->position;
    int64_t ahead = 0;
    for (int64_t i = 0; i < row->n; i++)
        ahead += x[i] == threshold && !(outside[i / 64] >> i % 64 & 1) &&
                 position[kgt_row_id(row, i)] > position[answer];
    return ahead;
}

/* The counts of one answer, among the micro and then the macro candidates; false at a NaN. */
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
        int64_t *own = count + 3 * filter;
        if (itself) own[1] -= !(words[place / 64] >> place % 64 & 1);
        if (worker->task->position == NULL) continue;
        own[2] = own[1] > 0 ? FN(short_ties)(worker, row, x, threshold, answer, words) : 0;
    }
    return true;
}

/* The best of the row: the keys of all but the removed, sorted. */
static void FN(short_best)(const FN(kgt_worker) * worker, const kgt_row *row, const T *x,
                           uint64_t removed, int64_t slot, const kgt_best *best) {
    FN(kgt_top) *top = worker->tops;
    const int32_t *position = worker->task->position;
    const int64_t n = row->n;
    FN(kgt_key) *keys = top->keys;
    int64_t used = n;
    if (row->ids == NULL && position == NULL) {
        const uint32_t first = (uint32_t)row->first;
        for (int64_t i = 0; i < n; i++) keys[i] = FN(kgt_make_key)(x[i], first + (uint32_t)i);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const int64_t id = kgt_row_id(row, i);
            keys[i] = FN(kgt_make_key)(x[i], (uint32_t)(position ? position[id] : id));
        }
    }
    for (; removed != 0; removed &= removed - 1, used--)
        keys[__builtin_ctzll(removed)] = 0; /* below every other */
    top->used = n;
    FN(kgt_top_sort)(top, worker->kernel);
    top->used = used < top->used ? used : top->used;
    FN(write_best)(worker, top, slot, best);
}

bool FN(kgt_row_short)(const FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                       const double *target_scores, const kgt_counts *counts,
                       const kgt_best *best) {
    const kgt_task *task = worker->task;
    const kgt_span targets = kgt_span_of(task->targets, task_row);
    const int64_t slot = kgt_slot_of(best, task_row), question = task->row_question[task_row];
    if (row->n < 1 || row->n > (slot < 0 ? KGT_SHORT : SORTED)) return false;
    if (targets.n < 1 || targets.n > KGT_FEW_TARGETS) return false;
    const T *x = FN(in_place)(row) ? (const T *)(const void *)row->data
                                   : FN(fetch)(worker, row, 0, row->n, worker->stretch);
    const int64_t n_words = (row->n + 63) / 64, target = task->targets.offsets[task_row];
    uint64_t outside[2 * KGT_SHORT_WORDS];
    const kgt_span known = kgt_span_within(kgt_span_of(task->known, question), row);
    const kgt_span removed = kgt_span_within(kgt_span_of(task->removed, question), row);
    FN(mark_filter)(row, removed, outside + n_words);
    if (n_words > 1 && targets.n == 1 && kgt_same_but(known, removed, targets.ids[0]))
        FN(mark_one_more)(row, targets.ids[0], known.n > removed.n, outside);
    else
        FN(mark_filter)(row, known, outside);
    for (int64_t j = 0; j < targets.n; j++) {
        const double *own = target_scores ? target_scores + j : NULL;
        int64_t count[6];
        if (!FN(short_target)(worker, row, x, targets.ids[j], own, outside, count)) return false;
        counts->greater[target + j] += count[0];
        counts->equal[target + j] += count[1];
        counts->tied_ahead[target + j] += count[2];
        counts->macro_greater[target + j] += count[3];
        counts->macro_equal[target + j] += count[4];
        counts->macro_tied_ahead[target + j] += count[5];
    }
    if (slot >= 0) FN(short_best)(worker, row, x, outside[n_words], slot, best);
    return true;
}

#undef SORTED
