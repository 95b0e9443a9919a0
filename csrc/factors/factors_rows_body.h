/* Ranks rows of a run from tiles of scores, and keeps their best, for one element type. */

static void FN(close)(kgt_run *r) {
    FN(kgt_worker_close)(&r->worker.OPS);
    if (r->tiling) FN(kgt_tiler_close)(&r->tiler.OPS);
}

static kgt_status FN(open)(kgt_run *r) {
    const kgt_call *call = r->call;
    const int64_t n_rows = r->factors->n_rows;
    FN(kgt_worker) worker;
    const kgt_status status =
        FN(kgt_worker_open)(&worker, call->task, call->first_row, n_rows, call->best, n_rows + 1);
    if (status == KGT_OK) r->worker.OPS = worker;
    return status;
}

static kgt_status FN(rank_waiting)(kgt_run *r) {
    FN(kgt_tiler) *tiler = &r->tiler.OPS;
    const size_t bytes = kgt_vector_bytes(r->factors);
    if (!r->tiling) {
        const int64_t width = (r->codes->width + KGT_PANEL - 1) / KGT_PANEL * KGT_PANEL;
        const kgt_status status = FN(kgt_tiler_open)(tiler, &r->tiled, width);
        if (status != KGT_OK) return status;
        r->tiling = true;
    }
    FN(kgt_tiler_pack)(tiler, r->block->first, r->block->n);
    for (int64_t start = 0; start < r->n_rows; start += QUERY_TILE) {
        const int64_t left = r->n_rows - start, n = left < QUERY_TILE ? left : QUERY_TILE;
        char *queries = (char *)r->tiled.queries;
        for (int64_t i = 0; i < n; i++)
            memcpy(queries + (size_t)i * bytes, kgt_query(r->factors, r->rows[start + i]), bytes);
        FN(kgt_tiler_score)(tiler, 0, n, r->block->n);
        FN(kgt_tiler_rank)(tiler, &r->worker.OPS, r->rows + start, 0, n, r->block->first,
                           r->block->n, r->call);
    }
    return KGT_OK;
}

static kgt_status FN(rank_range)(kgt_run *r, int64_t first, int64_t end) {
    return FN(kgt_rank_tiles)(r->factors, &r->worker.OPS, first, end, r->call);
}

/* Sorts a row's best once WAITING more than the depth are kept. */
static double FN(bound)(kgt_run *r, int64_t row) {
    FN(kgt_top) *top = r->worker.OPS.tops + row;
    if (top->used >= top->depth + WAITING) {
        FN(kgt_top_sort)(top, r->worker.OPS.kernel);
        const T bound = FN(kgt_key_score)(top->keys[top->depth - 1]);
        if (bound > top->bound) top->bound = bound;
    }
    return (double)top->bound;
}

static void FN(set_bound)(kgt_run *r, int64_t row, double bound) {
    r->worker.OPS.tops[row].bound = (T)bound;
}

static void FN(keep)(kgt_run *r, int64_t row, int32_t id, double score) {
    const int32_t *position = r->call->task->position;
    FN(kgt_top) *top = r->worker.OPS.tops + row;
    if (!(score >= (double)top->bound)) return;
    top->keys[top->used++] = FN(kgt_make_key)((T)score, (uint32_t)(position ? position[id] : id));
    if (top->used == kgt_top_capacity(top->depth)) FN(kgt_top_prune)(top);
}

static bool FN(finish)(kgt_run *r, int64_t row, int64_t slot) {
    FN(kgt_top) *top = r->worker.OPS.tops + row;
    if (r->guessed[row] && top->used < top->depth) return false;
    FN(kgt_row_best)(&r->worker.OPS, top, slot, r->call->best);
    return true;
}

const kgt_typed FN(kgt_typed) = {
    .open = FN(open),
    .close = FN(close),
    .rank_waiting = FN(rank_waiting),
    .rank_range = FN(rank_range),
    .bound = FN(bound),
    .set_bound = FN(set_bound),
    .keep = FN(keep),
    .finish = FN(finish),
};
