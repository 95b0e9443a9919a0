/* Counts for many answers in one row. Their scores are sorted, and a search finds the place of
 * every score of the row among them. Its steps grow with the logarithm of their number. Computing
 * type T; part of rank_row_body.h.
 *
 * The distinct scores of the answers, ascending, are the levels. A score has bin 2 * d + 1 if it
 * equals level d; otherwise 2 * d, if d levels are below it. So a histogram of the bins gives every
 * answer's counts. */

static bool FN(levels_open)(FN(kgt_levels) * levels, int64_t targets, int64_t known) {
    *levels = (FN(kgt_levels)){0};
    if (targets <= KGT_FEW_TARGETS) return true; /* never used */
    const size_t bins = 2 * (size_t)targets + 2;
    const size_t capacity = (size_t)targets + KGT_SLACK;
    const size_t block = (size_t)(known > KGT_BLOCK ? known : KGT_BLOCK);
    levels->scores = kgt_allocate(2 * (size_t)targets + 1 + KGT_MOST_IN_CELL, sizeof(T));
    levels->keys = kgt_allocate(2 * capacity, sizeof *levels->keys);
    levels->histogram = kgt_allocate((KGT_TURNS + 1) * bins, sizeof(uint32_t));
    levels->bins = kgt_allocate(block + 4 * (size_t)targets, sizeof(int32_t));
    levels->counts = kgt_allocate(KGT_UNDER + KGT_MOST_CELLS + 1, sizeof *levels->counts);
    if (!levels->scores || !levels->keys || !levels->histogram || !levels->bins || !levels->counts)
        return false;
    levels->filter = levels->histogram + KGT_TURNS * bins;
    levels->of_target = levels->bins + block;
    levels->ahead = levels->of_target + targets;
    levels->holds = levels->ahead + targets;
    levels->cell_of = levels->holds + targets;
    levels->capacity = (int64_t)capacity;
    return true;
}

static void FN(levels_close)(FN(kgt_levels) * levels) {
    free(levels->scores);
    free(levels->keys);
    free(levels->histogram);
    free(levels->bins);
    free(levels->counts);
}

/* Fills up with NaN to the next power of two, and after it for a search that begins at the last
 * level. No score is above NaN. */
static void FN(levels_fill_up)(FN(kgt_levels) * levels) {
    levels->steps = 0;
    while ((int64_t)1 << levels->steps <= levels->n) levels->steps++;
    const int64_t end = ((int64_t)1 << levels->steps) + KGT_MOST_IN_CELL;
    for (int64_t i = levels->n; i < end; i++) levels->scores[i] = NAN;
}

/* The levels of a row's answers, and the bin of each answer. The bin of NaN stays empty. */
static void FN(levels_build)(FN(kgt_worker) * worker, int64_t n_targets) {
    FN(kgt_levels) *levels = &worker->levels;
    FN(kgt_top)
    sorted = {.keys = levels->keys,
              .spare = levels->keys + levels->capacity,
              .depth = n_targets + 1}; /* more than there are: none is dropped */
    for (int64_t j = 0; j < n_targets; j++) {
        const T threshold = worker->thresholds[j];
        levels->of_target[j] = -1;
        if (threshold == threshold)
            sorted.keys[sorted.used++] = FN(kgt_make_key)(threshold, (uint32_t)j);
    }
    FN(kgt_top_sort)(&sorted, worker->kernel);
    levels->n = 0;
    for (int64_t i = sorted.used - 1; i >= 0; i--) {
        const T score = FN(kgt_key_score)(sorted.keys[i]);
        if (levels->n == 0 || levels->scores[levels->n - 1] < score)
            levels->scores[levels->n++] = score;
        levels->of_target[(uint32_t)sorted.keys[i]] = (int32_t)(2 * levels->n - 1);
    }
    for (int64_t j = 0; j < n_targets; j++)
        if (levels->of_target[j] < 0) levels->of_target[j] = (int32_t)(2 * levels->n + 1);
    FN(levels_fill_up)(levels);
    memset(levels->histogram, 0, KGT_TURNS * (size_t)(2 * levels->n + 2) * sizeof(uint32_t));
}

/* Counts n <= KGT_BLOCK scores. */
static void FN(levels_count)(FN(kgt_worker) * worker, const T *x, size_t n) {
    const FN(kgt_levels) *levels = &worker->levels;
    worker->kernel->OPS.locate(x, n, levels->scores, levels->steps, levels->bins,
                               levels->histogram);
}

static int64_t FN(levels_in_bin)(const FN(kgt_levels) * levels, int64_t bin) {
    int64_t sum = 0;
    for (int64_t turn = 0; turn < KGT_TURNS; turn++)
        sum += levels->histogram[KGT_TURNS * bin + turn];
    return sum;
}

/* The number of counted scores that equal a target's. */
static int64_t FN(levels_equal)(const FN(kgt_levels) * levels, int64_t target) {
    const int64_t bin = levels->of_target[target], d = bin / 2;
    if (levels->n <= KGT_FEW_LEVELS) return levels->at_least[d] - levels->greater[d];
    return FN(levels_in_bin)(levels, bin);
}

/* The counts of every answer: those of its level, if levels are few; otherwise sums of the
 * histogram from above. */
static void FN(levels_read)(FN(kgt_worker) * worker, int64_t n_targets) {
    const FN(kgt_levels) *levels = &worker->levels;
    for (int64_t j = 0; levels->n <= KGT_FEW_LEVELS && j < n_targets; j++) {
        worker->at_least[j] = levels->at_least[levels->of_target[j] / 2];
        worker->greater[j] = levels->greater[levels->of_target[j] / 2];
    }
    if (levels->n <= KGT_FEW_LEVELS) return;
    uint32_t *sums = levels->filter; /* unused until the counts are settled */
    uint32_t above = 0;
    for (int64_t bin = 2 * levels->n + 1; bin >= 0; bin--)
        sums[bin] = above += (uint32_t)FN(levels_in_bin)(levels, bin);
    for (int64_t j = 0; j < n_targets; j++) {
        const int64_t bin = levels->of_target[j];
        worker->at_least[j] = sums[bin];
        worker->greater[j] = bin > 2 * levels->n ? 0 : sums[bin + 1];
    }
}

/* Counts n gathered scores for every answer. Also notes whether the answer is among them, and how
 * many ties have a higher id. The ids of the scores and of the answers both ascend. */
static void FN(levels_filter)(FN(kgt_worker) * worker, const int32_t *gathered_ids, int64_t n,
                              kgt_span targets) {
    const FN(kgt_levels) *levels = &worker->levels;
    uint32_t *counted = levels->filter;
    memset(counted, 0, (size_t)(2 * levels->n + 2) * sizeof *counted);
    worker->kernel->OPS.locate(worker->gathered, (size_t)n, levels->scores, levels->steps,
                               levels->bins, NULL);
    int64_t at = 0;
    for (int64_t j = 0; j < targets.n; j++) {
        for (; at < n && gathered_ids[at] <= targets.ids[j]; at++) counted[levels->bins[at]]++;
        levels->holds[j] = at > 0 && gathered_ids[at - 1] == targets.ids[j];
        levels->ahead[j] = (int32_t)counted[levels->of_target[j]];
    }
    for (; at < n; at++) counted[levels->bins[at]]++;
    uint32_t above = 0;
    for (int64_t bin = 2 * levels->n + 1; bin >= 0; bin--) counted[bin] = above += counted[bin];
    for (int64_t j = 0; j < targets.n; j++) {
        const int64_t bin = levels->of_target[j];
        worker->filter_at_least[j] = counted[bin];
        worker->filter_greater[j] = bin > 2 * levels->n ? 0 : counted[bin + 1];
        const int64_t equal = worker->filter_at_least[j] - worker->filter_greater[j];
        levels->ahead[j] = (int32_t)equal - levels->ahead[j];
    }
}
