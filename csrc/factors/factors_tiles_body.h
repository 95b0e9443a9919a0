/* Tiles of a factorised model's scores, for one element type.
 *
 * A score's bits depend only on the two vectors and the entity's bias. The tile kernel never splits
 * the sum over dimensions. Norms and biases are always computed in the same way, per entity or per
 * query. So tiles, ranges, threads and single pairs agree, and equal embeddings tie exactly. */

void FN(kgt_tiler_close)(FN(kgt_tiler) * tiler) {
    free(tiler->panels);
    free(tiler->entity_norms);
    free(tiler->bias);
    free(tiler->scores);
    free(tiler->queries);
    free(tiler->copy);
}

kgt_status FN(kgt_tiler_open)(FN(kgt_tiler) * tiler, const kgt_factors *factors, int64_t width) {
    const size_t dim = (size_t)factors->dim + 1; /* never a request for 0 bytes */
    const size_t query_dim = (size_t)kgt_query_dim(factors->metric, factors->dim) + 1;
    *tiler = (FN(kgt_tiler)){.kernel = kgt_kernel_active(), .factors = factors, .width = width};
    tiler->panels = kgt_allocate(dim * (size_t)width, sizeof(T));
    tiler->entity_norms = calloc((size_t)width, sizeof(T));
    tiler->bias = calloc((size_t)width, sizeof(T));
    tiler->scores = kgt_allocate(QUERY_TILE * (size_t)width, sizeof(T));
    tiler->queries = kgt_allocate(KGT_STRIP * query_dim, sizeof(T));
    tiler->copy = kgt_allocate((KGT_PANEL + 2) * dim, sizeof(T));
    if (tiler->panels && tiler->entity_norms && tiler->bias && tiler->scores && tiler->queries &&
        tiler->copy)
        return KGT_OK;
    FN(kgt_tiler_close)(tiler);
    return KGT_NO_MEMORY;
}

/* The vectors of n <= KGT_PANEL entities, one after the other, padded to a panel with zeros. If the
 * table already has this layout, no copy is made. */
static const T *FN(panel_vectors)(const FN(kgt_tiler) * tiler, int64_t first, int64_t n) {
    const kgt_factors *factors = tiler->factors;
    const size_t dim = (size_t)factors->dim;
    T *spare = tiler->copy + KGT_PANEL * dim;
    if (n == KGT_PANEL && FN(neighbours_in_place)(factors))
        return FN(vectors)(factors->entities, first, factors->dim);
    for (int64_t j = 0; j < KGT_PANEL; j++) {
        T *row = tiler->copy + (size_t)j * dim;
        if (j < n)
            memcpy(row,
                   FN(entity)(tiler->kernel, factors, kgt_table_row(factors, first + j), spare),
                   dim * sizeof(T));
        else
            memset(row, 0, dim * sizeof(T));
    }
    return tiler->copy;
}

/* Packs entities first .. first + n - 1 (n <= width), transposed, the last panel padded with zeros.
 */
void FN(kgt_tiler_pack)(FN(kgt_tiler) * tiler, int64_t first, int64_t n) {
    const kgt_factors *factors = tiler->factors;
    const size_t dim = (size_t)factors->dim;
    for (int64_t start = 0; start < n; start += KGT_PANEL) {
        const int64_t here = n - start < KGT_PANEL ? n - start : KGT_PANEL;
        T *panel = tiler->panels + (size_t)start * dim;
        tiler->kernel->OPS.transpose(FN(panel_vectors)(tiler, first + start, here), (ptrdiff_t)dim,
                                     dim, KGT_PANEL, panel, KGT_PANEL);
        for (int64_t j = start; j < start + here; j++)
            tiler->bias[j] = FN(bias)(factors, kgt_table_row(factors, first + j));
        if (factors->metric == KGT_L2)
            tiler->kernel->OPS.norms(panel, dim, tiler->entity_norms + start);
    }
}

static void (*FN(tile_of)(const kgt_kernel *kernel, kgt_metric metric))(const T *, const T *,
                                                                        size_t, T *, size_t) {
    switch (metric) {
        case KGT_L1:
            return kernel->OPS.tile_l1;
        case KGT_MODULI:
            return kernel->OPS.tile_moduli;
        case KGT_MODE:
            return kernel->OPS.tile_mode;
        case KGT_HAKE:
            return kernel->OPS.tile_hake;
        default:
            return kernel->OPS.tile;
    }
}

/* Scores of queries first .. first + n - 1 (n <= KGT_STRIP) against one packed panel. */
static void FN(score_panel)(FN(kgt_tiler) * tiler, int64_t first, int64_t n, int64_t panel_start) {
    const kgt_metric metric = tiler->factors->metric;
    const int64_t dim = tiler->factors->dim, query_dim = kgt_query_dim(metric, dim);
    const T *panel = tiler->panels + panel_start * dim;
    T *out = tiler->scores + (first % QUERY_TILE) * tiler->width + panel_start;
    const T *queries = FN(vectors)(tiler->factors->queries, first, query_dim);
    if (n < KGT_STRIP) {
        memset(tiler->queries, 0, KGT_STRIP * (size_t)query_dim * sizeof(T));
        memcpy(tiler->queries, queries, (size_t)(n * query_dim) * sizeof(T));
        queries = tiler->queries;
    }
    FN(tile_of)(tiler->kernel, metric)(queries, panel, (size_t)dim, out, (size_t)tiler->width);
}

/* Scores of one query tile, which starts at a multiple of QUERY_TILE, against the packed entities.
 */
void FN(kgt_tiler_score)(FN(kgt_tiler) * tiler, int64_t first_query, int64_t n_queries,
                         int64_t n_entities) {
    const kgt_factors *factors = tiler->factors;
    for (int64_t start = 0; start < n_entities; start += KGT_PANEL)
        for (int64_t i = 0; i < n_queries; i += KGT_STRIP) {
            const int64_t strip = n_queries - i < KGT_STRIP ? n_queries - i : KGT_STRIP;
            FN(score_panel)(tiler, first_query + i, strip, start);
        }
    if (factors->metric == KGT_DOT && factors->bias == NULL) return;
    for (int64_t i = 0; i < n_queries; i++) {
        const T norm = FN(query_norm)(factors, tiler->kernel, first_query + i);
        T *row = tiler->scores + i * tiler->width;
        for (int64_t j = 0; j < n_entities; j++)
            row[j] =
                FN(score)(factors->metric, row[j], norm, tiler->entity_norms[j], tiler->bias[j]);
    }
}

void FN(kgt_tiler_rank)(FN(kgt_tiler) * tiler, FN(kgt_worker) * worker, const int64_t *rows,
                        int64_t first_query, int64_t n_queries, int64_t first_entity,
                        int64_t n_entities, const kgt_call *call) {
    for (int64_t i = 0; i < n_queries; i++) {
        const kgt_row row = {
            .data = (const char *)(tiler->scores + i * tiler->width),
            .n = n_entities,
            .stride = sizeof(T),
            .next = (const char *)(tiler->scores + (i + 1) * tiler->width),
            .first = (int32_t)(tiler->factors->first_entity + first_entity),
            .ids = tiler->factors->ids ? tiler->factors->ids + first_entity : NULL,
            .dtype = OWN_DTYPE,
            .plain = true,
        };
        const int64_t row_number = rows ? rows[i] : first_query + i,
                      task_row = call->first_row + row_number;
        FN(kgt_top) *top = kgt_slot_of(call->best, task_row) < 0 ? NULL : worker->tops + row_number;
        const int64_t target = call->task->targets.offsets[task_row];
        FN(kgt_row_pass)(worker, &row, task_row, 0,
                         call->target_scores ? call->target_scores + target : NULL, top,
                         call->nans);
        FN(kgt_row_settle)(worker, &row, task_row, 0, call->counts);
    }
}

/* The outer loop is over entity tiles, so each is packed once for all queries of the call. */
kgt_status FN(kgt_rank_tiles)(const kgt_factors *factors, FN(kgt_worker) * worker, int64_t first,
                              int64_t end, const kgt_call *call) {
    FN(kgt_tiler) tiler;
    const int64_t n_rows = factors->n_rows;
    const kgt_status status =
        FN(kgt_tiler_open)(&tiler, factors, entities_per_tile(factors->dim, sizeof(T)));
    if (status != KGT_OK) return status;
    for (int64_t entity = first; entity < end; entity += tiler.width) {
        const int64_t width = end - entity < tiler.width ? end - entity : tiler.width;
        FN(kgt_tiler_pack)(&tiler, entity, width);
        for (int64_t query = 0; query < n_rows; query += QUERY_TILE) {
            const int64_t height = n_rows - query < QUERY_TILE ? n_rows - query : QUERY_TILE;
            FN(kgt_tiler_score)(&tiler, query, height, width);
            FN(kgt_tiler_rank)(&tiler, worker, NULL, query, height, entity, width, call);
        }
    }
    call->tally->tiled += n_rows * (end - first);
    FN(kgt_tiler_close)(&tiler);
    return KGT_OK;
}

kgt_status FN(kgt_rank_by_tiles)(const kgt_factors *factors, const kgt_call *call) {
    FN(kgt_worker) worker;
    const int64_t n_rows = factors->n_rows;
    kgt_status status =
        FN(kgt_worker_open)(&worker, call->task, call->first_row, n_rows, call->best, n_rows + 1);
    if (status != KGT_OK) return status;
    status = FN(kgt_rank_tiles)(factors, &worker, 0, factors->n_entities, call);
    for (int64_t i = 0; status == KGT_OK && i < n_rows; i++) {
        const int64_t slot = kgt_slot_of(call->best, call->first_row + i);
        if (slot >= 0) FN(kgt_row_best)(&worker, worker.tops + i, slot, call->best);
    }
    call->tally->pairs += n_rows * factors->n_entities;
    FN(kgt_worker_close)(&worker);
    return status;
}

static kgt_status FN(factor_scores)(const kgt_factors *factors, void *out) {
    FN(kgt_tiler) tiler;
    const int64_t n_rows = factors->n_rows, n_entities = factors->n_entities;
    const kgt_status status =
        FN(kgt_tiler_open)(&tiler, factors, entities_per_tile(factors->dim, sizeof(T)));
    if (status != KGT_OK) return status;
    for (int64_t entity = 0; entity < n_entities; entity += tiler.width) {
        const int64_t width = n_entities - entity < tiler.width ? n_entities - entity : tiler.width;
        FN(kgt_tiler_pack)(&tiler, entity, width);
        for (int64_t query = 0; query < n_rows; query += QUERY_TILE) {
            const int64_t height = n_rows - query < QUERY_TILE ? n_rows - query : QUERY_TILE;
            FN(kgt_tiler_score)(&tiler, query, height, width);
            for (int64_t i = 0; i < height; i++)
                memcpy((T *)out + (query + i) * n_entities + entity, tiler.scores + i * tiler.width,
                       (size_t)width * sizeof(T));
        }
    }
    FN(kgt_tiler_close)(&tiler);
    return KGT_OK;
}

static kgt_status FN(count_factors)(const kgt_factors *factors, kgt_pair_counts *counts) {
    FN(kgt_tiler) tiler;
    FN(kgt_pairs) pairs;
    const int64_t n_rows = factors->n_rows, n_entities = factors->n_entities;
    kgt_status status =
        FN(kgt_tiler_open)(&tiler, factors, entities_per_tile(factors->dim, sizeof(T)));
    if (status != KGT_OK) return status;
    status = FN(kgt_pairs_open)(&pairs, counts);
    for (int64_t entity = 0; status == KGT_OK && entity < n_entities; entity += tiler.width) {
        const int64_t width = n_entities - entity < tiler.width ? n_entities - entity : tiler.width;
        FN(kgt_tiler_pack)(&tiler, entity, width);
        for (int64_t query = 0; query < n_rows; query += QUERY_TILE) {
            const int64_t height = n_rows - query < QUERY_TILE ? n_rows - query : QUERY_TILE;
            FN(kgt_tiler_score)(&tiler, query, height, width);
            for (int64_t i = 0; i < height; i++) {
                const kgt_row row = {.data = (const char *)(tiler.scores + i * tiler.width),
                                     .n = width,
                                     .stride = sizeof(T),
                                     .dtype = OWN_DTYPE,
                                     .plain = true};
                FN(kgt_pairs_row)(&pairs, &row, (query + i) * n_entities + entity);
            }
        }
    }
    if (status == KGT_OK) FN(kgt_pairs_close)(&pairs);
    FN(kgt_tiler_close)(&tiler);
    return status;
}
