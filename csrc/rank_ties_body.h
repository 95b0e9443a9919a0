/* Ties at or behind the answers of a counted row, if names are in another order than ids. Computing
 * type T; part of rank_row_body.h.
 *
 * In most rows an answer ties only with itself. If a few answers have other ties, each is compared
 * with the row again. If more have, their positions in the order of names are sorted, level by
 * level. A search finds the first answer of its level that a tie is at or behind, and counts it
 * there. Sums of these counts are the ties of all. */

/* Up to so many answers with ties are compared one by one. */
#define FEW_TIED 128

/* The sorting key of many answers: the bin, then the position in the order of names. */
static FN(kgt_key) FN(tie_key)(int32_t bin, int32_t position) {
    return (FN(kgt_key))(uint32_t)bin << 32 | (uint32_t)position;
}

static void FN(sort_ties)(FN(kgt_worker) * worker, kgt_span targets) {
    FN(kgt_levels) *levels = &worker->levels;
    FN(kgt_top)
    sorted = {.keys = levels->keys,
              .spare = levels->keys + levels->capacity,
              .used = targets.n,
              .depth = targets.n + 1}; /* more than there are: none is dropped */
    for (int64_t j = 0; j < targets.n; j++)
        levels->keys[j] = FN(tie_key)(levels->of_target[j], worker->task->position[targets.ids[j]]);
    FN(kgt_top_sort)(&sorted, worker->kernel);
    levels->n_tied = targets.n;
}

/* The number of the last of the descending keys that is not below `key`; -1 if all are below. */
static int64_t FN(find_tie)(const FN(kgt_levels) * levels, FN(kgt_key) key) {
    const FN(kgt_key) *from = levels->keys;
    for (int64_t n = levels->n_tied, half; n > 0; n -= half) {
        half = n - n / 2;
        from += half & -(int64_t)(from[half - 1] >= key); /* no branch */
    }
    return from - levels->keys - 1;
}

/* Counts a score by its bin and position, if it ties with an answer. */
KGT_INLINE void FN(count_tie)(const FN(kgt_levels) * levels, int32_t bin, int32_t position) {
    if (bin % 2 == 0) return;
    const int64_t at = FN(find_tie)(levels, FN(tie_key)(bin, position));
    if (at >= 0) levels->filter[at] += levels->keys[at] >> 32 == (uint32_t)bin;
}

static void FN(clear_ties)(const FN(kgt_levels) * levels) {
    memset(levels->filter, 0, (size_t)levels->n_tied * sizeof *levels->filter);
}

/* Replaces the count at each key by the sum over the keys of its bin up to it. */
static void FN(sum_ties)(const FN(kgt_levels) * levels) {
    for (int64_t i = levels->n_tied - 2; i >= 0; i--)
        if (levels->keys[i] >> 32 == levels->keys[i + 1] >> 32)
            levels->filter[i] += levels->filter[i + 1];
}

/* The number of counted scores that tie with an answer and are at or behind it. */
static int64_t FN(ties_behind)(const FN(kgt_worker) * worker, kgt_span targets, int64_t target) {
    const FN(kgt_levels) *levels = &worker->levels;
    const int32_t position = worker->task->position[targets.ids[target]];
    return levels->filter[FN(find_tie)(levels, FN(tie_key)(levels->of_target[target], position))];
}

/* The positions in the order of names of the n entities from place `start` on. */
static const int32_t *FN(positions)(FN(kgt_worker) * worker, const kgt_row *row, int64_t start,
                                    int64_t n) {
    const int32_t *position = worker->task->position;
    if (row->ids == NULL) return position + row->first + start;
    for (int64_t i = 0; i < n; i++) worker->selected[i] = position[row->ids[start + i]];
    return worker->selected;
}

/* Goes through the row again for the answers with ties; their numbers are in filter_greater. */
static void FN(compare_ties)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span targets,
                             int64_t n_tied) {
    const FN(kgt_levels) *levels = &worker->levels;
    const FN(kgt_ops) *ops = &worker->kernel->OPS;
    const int32_t *position = worker->task->position;
    for (int64_t start = 0; start < row->n; start += KGT_BLOCK) {
        const int64_t n = row->n - start < KGT_BLOCK ? row->n - start : KGT_BLOCK;
        const T *x = FN(fetch)(worker, row, start, n, worker->stretch);
        const int32_t *positions = FN(positions)(worker, row, start, n);
        if (levels->n_tied > 0) {
            ops->locate(x, (size_t)n, levels->scores, levels->steps, levels->bins, NULL);
            for (int64_t i = 0; i < n; i++) FN(count_tie)(levels, levels->bins[i], positions[i]);
            continue;
        }
        for (int64_t i = 0; i < n_tied; i++) {
            const int64_t j = worker->filter_greater[i];
            worker->behind[j] += ops->tied_up_to(x, (size_t)n, worker->thresholds[j], positions,
                                                 position[targets.ids[j]]);
        }
    }
}

static void FN(find_behind)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span targets) {
    FN(kgt_levels) *levels = &worker->levels;
    int64_t n_tied = 0;
    for (int64_t j = 0; j < targets.n; j++) {
        const T threshold = worker->thresholds[j];
        const int64_t itself = threshold == threshold && kgt_row_place(row, targets.ids[j]) >= 0;
        const int64_t equal = worker->at_least[j] - worker->greater[j];
        worker->behind[j] = equal == itself ? itself : 0;
        /* filter_greater is unused until counts are settled, so it holds the targets with ties. */
        if (equal > itself) worker->filter_greater[n_tied++] = j;
    }
    if (n_tied == 0) return;
    if (worker->by_levels && n_tied > FEW_TIED) {
        FN(sort_ties)(worker, targets);
        FN(clear_ties)(levels);
    }
    FN(compare_ties)(worker, row, targets, n_tied);
    if (levels->n_tied == 0) return;
    FN(sum_ties)(levels);
    for (int64_t i = 0; i < n_tied; i++) {
        const int64_t j = worker->filter_greater[i];
        worker->behind[j] = FN(ties_behind)(worker, targets, j);
    }
}

/* The number of n gathered scores with known bins that tie with each answer and are ahead of it. */
static void FN(filter_ties)(FN(kgt_worker) * worker, const int32_t *gathered_ids, int64_t n,
                            kgt_span targets) {
    const FN(kgt_levels) *levels = &worker->levels;
    const int32_t *position = worker->task->position;
    FN(clear_ties)(levels);
    for (int64_t i = 0; i < n; i++)
        FN(count_tie)(levels, levels->bins[i], position[gathered_ids[i]]);
    FN(sum_ties)(levels);
    for (int64_t j = 0; j < targets.n; j++) {
        const int64_t equal = worker->filter_at_least[j] - worker->filter_greater[j];
        levels->ahead[j] = (int32_t)(equal - FN(ties_behind)(worker, targets, j));
    }
}

#undef FEW_TIED
