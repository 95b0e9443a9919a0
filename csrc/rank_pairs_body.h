/* Scores of many rows, counted together against the same thresholds: the pairs of a relation.
 * Computing type T; part of rank_row_body.h.
 *
 * Most scores are below the lowest threshold of a good model, so a row is compressed before it is
 * counted, for as long as that drops at least half of it. */

/* Scores between two flushes: the histograms have 32 bits. */
#define MOST_COUNTED ((int64_t)1 << 30)

/* Rows after which a row is compressed and sifted again, although an earlier one was dense. */
#define ROWS_DENSE 64

static void FN(pairs_begin)(FN(kgt_pairs) * pairs) {
    FN(kgt_worker) *worker = &pairs->worker;
    const int64_t n = pairs->out->n;
    pairs->counted = 0;
    worker->lowest = INFINITY;
    for (int64_t j = 0; j < n; j++) {
        const T threshold = worker->thresholds[j] = (T)pairs->out->thresholds[j];
        if (threshold < worker->lowest) worker->lowest = threshold;
        worker->greater[j] = worker->at_least[j] = 0;
    }
    worker->by_levels = n > KGT_FEW_TARGETS;
    if (!worker->by_levels) return;
    FN(levels_build)(worker, n);
    FN(cells_build)(worker, KGT_MOST_CELLS);
}

static void FN(pairs_flush)(FN(kgt_pairs) * pairs) {
    FN(kgt_worker) *worker = &pairs->worker;
    if (worker->by_levels) {
        FN(cells_read)(&worker->levels);
        FN(levels_read)(worker, pairs->out->n);
    }
    for (int64_t j = 0; j < pairs->out->n; j++) {
        pairs->out->greater[j] += worker->greater[j];
        pairs->out->at_least[j] += worker->at_least[j];
    }
}

kgt_status FN(kgt_pairs_open)(FN(kgt_pairs) * pairs, kgt_pair_counts *out) {
    static const int64_t nothing[2] = {0, 0};
    static const int32_t no_id[1] = {0};
    *pairs = (FN(kgt_pairs)){.out = out, .targets = {0, out->n}};
    pairs->task = (kgt_task){.row_question = nothing,
                             .targets = {pairs->targets, no_id},
                             .known = {nothing, no_id},
                             .removed = {nothing, no_id}};
    const kgt_status status = FN(kgt_worker_open)(&pairs->worker, &pairs->task, 0, 1, NULL, 1);
    if (status == KGT_OK) FN(pairs_begin)(pairs);
    return status;
}

void FN(kgt_pairs_close)(FN(kgt_pairs) * pairs) {
    FN(pairs_flush)(pairs);
    FN(kgt_worker_close)(&pairs->worker);
}

/* Counts scores for many thresholds: those that compression kept, or all. True if any is NaN; for
 * kept scores, compression has told. */
static bool FN(pairs_by_levels)(FN(kgt_worker) * worker, const T *x, int64_t n, bool kept) {
    bool nan = false;
    if (FN(levels_few)(&worker->levels)) return FN(compare_levels)(worker, x, n);
    if (FN(by_cells)(worker)) {
        const int64_t n_left = FN(find_bins)(worker, x, n, &nan);
        FN(add_bins)(worker, 0, n_left, n);
        return nan;
    }
    if (!kept) nan = worker->kernel->OPS.count(x, (size_t)n, NULL, 0, NULL, NULL, NULL);
    FN(levels_count)(worker, x, (size_t)n);
    return nan;
}

/* How many scores reach the bound. */
static int64_t FN(count_reach)(const FN(kgt_pairs) * pairs, const T *x, int64_t n) {
    const T bound = (T)pairs->out->bound;
    int64_t greater = 0, reach = 0;
    pairs->worker.kernel->OPS.count(x, (size_t)n, &bound, 1, &greater, &reach, NULL);
    return reach;
}

/* Writes down the cells of the `reach` scores that reach the bound. */
static void FN(sieve)(FN(kgt_pairs) * pairs, const T *x, int64_t n, int64_t cell, int64_t reach) {
    kgt_pair_counts *out = pairs->out;
    const T bound = (T)out->bound;
    for (int64_t i = 0; reach > 0 && i < n; i++) {
        if (!(x[i] >= bound)) continue;
        reach--;
        if (out->used < out->capacity) {
            out->cells[out->used] = cell + i;
            out->scores[out->used] = (double)x[i];
        }
        out->used++;
    }
}

/* Counts n <= KGT_BLOCK scores of neighbouring cells. */
static void FN(pairs_block)(FN(kgt_pairs) * pairs, const T *x, int64_t n, int64_t cell) {
    FN(kgt_worker) *worker = &pairs->worker;
    const FN(kgt_ops) *ops = &worker->kernel->OPS;
    if (pairs->counted > MOST_COUNTED) {
        FN(pairs_flush)(pairs);
        FN(pairs_begin)(pairs);
    }
    pairs->counted += n;
    const bool compressing = worker->by_levels && worker->sparse && ops->compress != NULL;
    const T *kept = x;
    int64_t n_kept = n;
    if (compressing) {
        kept = worker->survivors;
        n_kept = (int64_t)ops->compress(x, (size_t)n, worker->lowest, worker->survivors,
                                        &pairs->out->nan);
        worker->sparse = n_kept < n / 2;
    }
    if (pairs->out->capacity > 0) {
        /* Scores that reach the bound of the best usually reach the lowest threshold, too. */
        const bool among_kept = (T)pairs->out->bound >= worker->lowest;
        const int64_t reach =
            among_kept ? FN(count_reach)(pairs, kept, n_kept) : FN(count_reach)(pairs, x, n);
        if (reach > 0) FN(sieve)(pairs, x, n, cell, reach);
    }
    pairs->out->nan |= worker->by_levels ? FN(pairs_by_levels)(worker, kept, n_kept, compressing)
                                         : FN(count_block)(worker, x, n, pairs->out->n, NULL);
}

void FN(kgt_pairs_row)(FN(kgt_pairs) * pairs, const kgt_row *row, int64_t cell) {
    FN(kgt_worker) *worker = &pairs->worker;
    if (pairs->rows++ % ROWS_DENSE == 0) {
        worker->sparse = true;
        worker->levels.sifting = worker->levels.n_cells > 0;
    }
    for (int64_t start = 0; start < row->n; start += KGT_BLOCK) {
        const int64_t n = row->n - start < KGT_BLOCK ? row->n - start : KGT_BLOCK;
        FN(pairs_block)(pairs, FN(fetch)(worker, row, start, n, worker->stretch), n, cell + start);
    }
}

#undef MOST_COUNTED
#undef ROWS_DENSE
