/* Counts for many answers in one row, block by block, if one search per score would take too long:
 * with more levels than fit registers. Computing type T; part of rank_row_body.h.
 *
 * A grid with several times as many cells covers the levels. A score in a cell without a level is
 * counted by its cell: all such scores of the cell are between the same two levels. Only the rest,
 * a few of a hundred, is searched for. If there are few levels, for instance because many answers
 * tie, each level is compared with all scores. */

/* Set in a cell that holds levels. Its other bits are the number of the first, not a count. */
#define HELD (uint32_t)0x80000000

/* Cells per level, except for short rows. */
#define TO_A_LEVEL 64

/* Whether each level is compared with every score, because there are few. */
static bool FN(levels_few)(const FN(kgt_levels) * levels) { return levels->n <= KGT_FEW_LEVELS; }

/* Whether this file counts the blocks. */
static bool FN(by_cells)(const FN(kgt_worker) * worker) {
    const FN(kgt_levels) *levels = &worker->levels;
    return FN(levels_few)(levels) || levels->steps > worker->kernel->OPS.in_registers;
}

/* Enters the levels into their cells. False if some cell has too many. */
static bool FN(enter_levels)(FN(kgt_levels) * levels) {
    uint32_t *counts = levels->counts;
    int64_t most = 1, in_cell = 0;
    memset(counts, 0, (size_t)levels->n_cells * sizeof *counts);
    for (int64_t d = levels->n - 1; d >= 0; d--) {
        uint32_t *count = counts + levels->cell_of[d];
        in_cell = *count == 0 ? 1 : in_cell + 1;
        most = in_cell > most ? in_cell : most;
        *count = HELD | (uint32_t)d;
    }
    levels->window = 1;
    while (2 * levels->window - 1 < most) levels->window *= 2;
    return most <= KGT_MOST_IN_CELL;
}

/* Builds the grid for a row of n scores. If there is none, because levels are infinite or very
 * close together, all scores are searched for. */
static void FN(cells_build)(FN(kgt_worker) * worker, int64_t n) {
    FN(kgt_levels) *levels = &worker->levels;
    levels->n_cells = 0;
    levels->sifting = false;
    if (FN(levels_few)(levels)) {
        for (int64_t d = 0; d <= levels->n; d++) levels->greater[d] = levels->at_least[d] = 0;
        return;
    }
    if (!FN(by_cells)(worker)) return;
    int64_t cells = 1;
    while (cells < KGT_MOST_CELLS && cells < TO_A_LEVEL * levels->n && cells < n) cells *= 2;
    const float low = (float)levels->scores[0], width = (float)levels->scores[levels->n - 1] - low;
    const float scale = (float)(cells - 1) / width;
    if (!(width < INFINITY && scale < INFINITY)) return;
    levels->grid = (kgt_cells){low, scale, (float)(KGT_UNDER + cells)};
    worker->kernel->OPS.cells(levels->scores, (size_t)levels->n, &levels->grid, levels->cell_of);
    levels->n_cells = KGT_UNDER + cells + 1; /* one above */
    levels->sifting = FN(enter_levels)(levels);
    if (!levels->sifting) levels->n_cells = 0;
}

/* Counts a score by its cell, or notes its place if the cell holds a level. Returns how many were
 * noted. There is no branch, because it could not be predicted. */
KGT_INLINE int64_t FN(sift_one)(uint32_t *cell, int64_t place, int32_t *left) {
    const uint32_t count = *cell, held = count >> 31;
    *cell = count + 1 - held;
    *left = (int32_t)place;
    return held;
}

/* Counts scores by cell. Writes the places of those in cells with levels; returns their number. */
static int64_t FN(sift)(FN(kgt_worker) * worker, int64_t n, int32_t *places) {
    const int32_t *cell = worker->levels.bins;
    uint32_t *counts = worker->levels.counts;
    int64_t n_left = 0, i = 0;
    for (; i + 4 <= n; i += 4) {
        KGT_UNROLL
        for (int64_t j = i; j < i + 4; j++)
            n_left += FN(sift_one)(counts + cell[j], j, places + n_left);
    }
    for (; i < n; i++) n_left += FN(sift_one)(counts + cell[i], i, places + n_left);
    return n_left;
}

/* Finds the bins of scores in cells that hold levels; they overwrite the cells. */
static void FN(search_cells)(FN(kgt_levels) * levels, const T *x, const int32_t *places,
                             int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const T score = x[places[i]];
        int32_t below = (int32_t)(levels->counts[levels->bins[places[i]]] & ~HELD);
        for (int32_t step = levels->window; step > 0; step >>= 1)
            below += step & -(levels->scores[below + step - 1] < score);
        levels->bins[i] = 2 * below + (levels->scores[below] == score);
    }
}

/* Writes the places of scores that cells do not count to worker->selected, and their bins. Returns
 * their number. If these are most of the block, the next blocks are not sifted. */
static int64_t FN(find_bins)(FN(kgt_worker) * worker, const T *x, int64_t n, bool *nan) {
    FN(kgt_levels) *levels = &worker->levels;
    const FN(kgt_ops) *ops = &worker->kernel->OPS;
    int32_t *places = worker->selected;
    if (levels->sifting) {
        *nan |= ops->cells(x, (size_t)n, &levels->grid, levels->bins);
        const int64_t n_left = FN(sift)(worker, n, places);
        FN(search_cells)(levels, x, places, n_left);
        levels->sifting = n_left <= n / 2;
        return n_left;
    }
    *nan |= ops->count(x, (size_t)n, NULL, 0, NULL, NULL, NULL);
    for (int64_t i = 0; i < n; i++) places[i] = (int32_t)i;
    ops->locate(x, (size_t)n, levels->scores, levels->steps, levels->bins, NULL);
    return n;
}

/* Adds the remaining scores from the at-th on, with places before `end`, to the histogram. Returns
 * the number of the next. */
static int64_t FN(add_bins)(FN(kgt_worker) * worker, int64_t at, int64_t n_left, int64_t end) {
    const FN(kgt_levels) *levels = &worker->levels;
    for (; at < n_left && worker->selected[at] < end; at++)
        levels->histogram[KGT_TURNS * (int64_t)levels->bins[at] + at % KGT_TURNS]++;
    return at;
}

static bool FN(compare_levels)(FN(kgt_worker) * worker, const T *x, int64_t n) {
    FN(kgt_levels) *levels = &worker->levels;
    return worker->kernel->OPS.count(x, (size_t)n, levels->scores, (size_t)levels->n,
                                     levels->greater, levels->at_least, NULL);
}

/* Counts the block at places start .. start + n - 1 in pieces that end at the answers, so that the
 * ties at or behind each are known. If ids are not in the order of names, it is one piece. True if
 * the block holds a NaN. */
static bool FN(cells_block)(FN(kgt_worker) * worker, const kgt_row *row, const T *x, int64_t start,
                            int64_t n, kgt_span targets, int64_t *next, T *maxima) {
    const bool few = FN(levels_few)(&worker->levels);
    int64_t at = 0, left = 0, n_left = 0;
    bool nan = false;
    if (maxima != NULL) worker->kernel->OPS.count(x, (size_t)n, NULL, 0, NULL, NULL, maxima);
    if (!few) n_left = FN(find_bins)(worker, x, n, &nan);
    const int64_t last = kgt_row_id(row, start + n - 1);
    while (at < n) {
        const bool ends =
            worker->task->position == NULL && *next < targets.n && targets.ids[*next] <= last;
        int64_t end = ends ? kgt_row_after(row, targets.ids[*next]) - start : n;
        if (end < at) end = at;
        if (few && end > at)
            nan |= FN(compare_levels)(worker, x + at, end - at);
        else if (!few)
            left = FN(add_bins)(worker, left, n_left, end);
        if (ends) {
            worker->behind[*next] = FN(equal_so_far)(worker, *next);
            ++*next;
        }
        at = end;
    }
    return nan;
}

/* Adds the counts of the cells to the bins between the levels. */
static void FN(cells_read)(FN(kgt_levels) * levels) {
    uint32_t *counts = levels->counts, sum = 0, below = 0;
    if (levels->n_cells == 0) return;
    for (int64_t d = 0; d < levels->n; d++) counts[levels->cell_of[d]] = 0; /* searched for */
    for (int64_t cell = 0; cell < levels->n_cells; cell++) counts[cell] = sum += counts[cell];
    for (int64_t d = 0; d < levels->n; d++) {
        const uint32_t up_to = counts[levels->cell_of[d]];
        levels->histogram[KGT_TURNS * 2 * d] += up_to - below;
        below = up_to;
    }
    levels->histogram[KGT_TURNS * 2 * levels->n] += sum - below;
}

#undef HELD
#undef TO_A_LEVEL
