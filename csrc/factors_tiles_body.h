/* Tiles of a factorised model's scores, for one element type.
 *
 * A score's bits depend on the two vectors (and the entity's bias) alone: the tile kernel never
 * splits the sum over dimensions, and what is added to it is computed per entity or per query,
 * always the same way. So tiles, ranges, threads and single pairs agree, and equal embeddings tie
 * exactly. */

typedef struct {
    const kgt_kernel *kernel;
    const kgt_factors *factors;
    int64_t width;   /* entities per tile */
    T *panels;       /* packed tile: panel after panel, (dim, KGT_PANEL) each */
    T *entity_norms; /* x.x of the tile's entities, for KGT_L2 */
    T *bias;         /* of the tile's entities; 0 for a model without */
    T *scores;       /* (QUERY_TILE, width) */
    T *queries;      /* a strip of queries padded with zero rows */
    T *copy;         /* room for FN(entity) */
} FN(tiler);

static void FN(tiler_close)(FN(tiler) * tiler) {
    free(tiler->panels);
    free(tiler->entity_norms);
    free(tiler->bias);
    free(tiler->scores);
    free(tiler->queries);
    free(tiler->copy);
}

static kgt_status FN(tiler_open)(FN(tiler) * tiler, const kgt_factors *factors) {
    const size_t dim = (size_t)factors->dim + 1; /* never a request for 0 bytes */
    const int64_t width = entities_per_tile(factors->dim, sizeof(T));
    *tiler = (FN(tiler)){.kernel = kgt_kernel_active(), .factors = factors, .width = width};
    tiler->panels = kgt_allocate(dim * (size_t)width, sizeof(T));
    tiler->entity_norms = calloc((size_t)width, sizeof(T));
    tiler->bias = calloc((size_t)width, sizeof(T));
    tiler->scores = kgt_allocate(QUERY_TILE * (size_t)width, sizeof(T));
    tiler->queries = kgt_allocate(KGT_STRIP * dim, sizeof(T));
    tiler->copy = kgt_allocate(2 * dim, sizeof(T));
    if (tiler->panels && tiler->entity_norms && tiler->bias && tiler->scores && tiler->queries &&
        tiler->copy)
        return KGT_OK;
    FN(tiler_close)(tiler);
    return KGT_NO_MEMORY;
}

static const T *FN(vectors)(const void *table, int64_t row, int64_t dim) {
    return (const T *)table + row * dim;
}

/* The vector of a row of the entity table. What is stored in half precision, or begins at an odd
 * byte (an array mapped where it stands in an archive), is brought into `copy`, of 2 * dim. */
static const T *FN(entity)(const kgt_kernel *kernel, const kgt_factors *factors, int64_t row,
                           T *copy) {
    const size_t dim = (size_t)factors->dim;
    const bool half = factors->half_entities && sizeof(T) == sizeof(float);
    const size_t bytes = dim * (half ? sizeof(uint16_t) : sizeof(T));
    const char *x = (const char *)factors->entities + (size_t)row * bytes;
    if ((uintptr_t)x % (half ? sizeof(uint16_t) : sizeof(T)) != 0) x = memcpy(copy + dim, x, bytes);
    if (!half) return (const T *)(const void *)x;
    kernel->widen_f16((const uint16_t *)(const void *)x, dim, (float *)(void *)copy);
    return copy;
}

static T FN(bias)(const kgt_factors *factors, int64_t row) {
    T bias = 0;
    if (factors->bias)
        memcpy(&bias, (const char *)factors->bias + (size_t)row * sizeof bias, sizeof bias);
    return bias;
}

/* The one place where a score is put together from the sum over dimensions. */
KGT_INLINE T FN(score)(kgt_metric metric, T sum, T query_norm, T entity_norm, T bias) {
    if (metric == KGT_L1) return bias - sum;
    return metric == KGT_L2 ? ((sum + sum - entity_norm) - query_norm) + bias : sum + bias;
}

static T FN(query_norm)(const kgt_factors *factors, const kgt_kernel *kernel, int64_t query) {
    if (factors->metric != KGT_L2) return 0;
    const T *q = FN(vectors)(factors->queries, query, factors->dim);
    return kernel->OPS.pair(q, q, (size_t)factors->dim);
}

/* Row of the entity table that holds the ranked entity number `place`. */
static int64_t FN(table_row)(const kgt_factors *factors, int64_t place) {
    return factors->ids ? factors->ids[place] - factors->first_entity : place;
}

/* Packs entities first .. first + n - 1 (n <= width), transposed, the last panel padded with zeros.
 */
static void FN(pack)(FN(tiler) * tiler, int64_t first, int64_t n) {
    const kgt_factors *factors = tiler->factors;
    const int64_t dim = factors->dim;
    for (int64_t start = 0; start < n; start += KGT_PANEL) {
        T *panel = tiler->panels + start * dim;
        for (int64_t j = 0; j < KGT_PANEL; j++) {
            const bool padding = start + j >= n;
            const int64_t entity = FN(table_row)(factors, padding ? first : first + start + j);
            const T *x = FN(entity)(tiler->kernel, factors, entity, tiler->copy);
            for (int64_t k = 0; k < dim; k++) panel[k * KGT_PANEL + j] = padding ? 0 : x[k];
            if (!padding) tiler->bias[start + j] = FN(bias)(factors, entity);
        }
        if (factors->metric == KGT_L2)
            tiler->kernel->OPS.norms(panel, (size_t)dim, tiler->entity_norms + start);
    }
}

/* Scores of queries first .. first + n - 1 (n <= KGT_STRIP) against one packed panel. */
static void FN(score_panel)(FN(tiler) * tiler, int64_t first, int64_t n, int64_t panel_start) {
    const int64_t dim = tiler->factors->dim;
    const T *panel = tiler->panels + panel_start * dim;
    T *out = tiler->scores + (first % QUERY_TILE) * tiler->width + panel_start;
    const T *queries = FN(vectors)(tiler->factors->queries, first, dim);
    if (n < KGT_STRIP) {
        memset(tiler->queries, 0, KGT_STRIP * (size_t)dim * sizeof(T));
        memcpy(tiler->queries, queries, (size_t)(n * dim) * sizeof(T));
        queries = tiler->queries;
    }
    if (tiler->factors->metric == KGT_L1)
        tiler->kernel->OPS.tile_l1(queries, panel, (size_t)dim, out, (size_t)tiler->width);
    else
        tiler->kernel->OPS.tile(queries, panel, (size_t)dim, out, (size_t)tiler->width);
}

/* Scores of one query tile, which starts at a multiple of QUERY_TILE, against the packed entities.
 */
static void FN(score_tile)(FN(tiler) * tiler, int64_t first_query, int64_t n_queries,
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

static kgt_status FN(factor_job_scores)(const kgt_factors *factors, const kgt_task *task,
                                        int64_t first_row, double *out) {
    const kgt_kernel *kernel = kgt_kernel_active();
    const size_t dim = (size_t)factors->dim;
    T *copy = kgt_allocate(2 * dim, sizeof(T));
    if (copy == NULL) return KGT_NO_MEMORY;
    for (int64_t i = 0; i < factors->n_rows; i++) {
        const kgt_span jobs = kgt_span_of(task->jobs, first_row + i);
        const int64_t start = task->jobs.offsets[first_row + i];
        const T *query = FN(vectors)(factors->queries, i, factors->dim);
        const T query_norm = FN(query_norm)(factors, kernel, i);
        for (int64_t j = 0; j < jobs.n; j++) {
            const int64_t entity = jobs.ids[j] - factors->first_entity;
            if (factors->ids == NULL && (entity < 0 || entity >= factors->n_entities)) continue;
            const T *x = FN(entity)(kernel, factors, entity, copy);
            const T sum = factors->metric == KGT_L1 ? kernel->OPS.pair_l1(query, x, dim)
                                                    : kernel->OPS.pair(query, x, dim);
            const T norm = factors->metric == KGT_L2 ? kernel->OPS.pair(x, x, dim) : 0;
            out[start + j] = (double)FN(score)(factors->metric, sum, query_norm, norm,
                                               FN(bias)(factors, entity));
        }
    }
    free(copy);
    return KGT_OK;
}

/* Ranks the scores of one query tile; top-k buffers are per row, they live across entity tiles. */
static void FN(rank_tile)(FN(tiler) * tiler, FN(kgt_worker) * worker, int64_t first_query,
                          int64_t n_queries, int64_t first_entity, int64_t n_entities,
                          int64_t first_row, const double *job_scores, const kgt_counts *counts,
                          const kgt_best *best, const kgt_nans *nans) {
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
        const int64_t query = first_query + i, task_row = first_row + query;
        FN(kgt_top) *top = kgt_slot_of(best, task_row) < 0 ? NULL : worker->tops + query;
        FN(kgt_row_pass)(worker, &row, task_row, 0, job_scores, top, nans);
        FN(kgt_row_settle)(worker, &row, task_row, 0, counts);
    }
}

/* Entity tiles outside, query tiles inside: a tile is packed once for all queries of the call. */
static kgt_status FN(rank_factors)(const kgt_factors *factors, const kgt_task *task,
                                   int64_t first_row, const double *job_scores,
                                   const kgt_counts *counts, const kgt_best *best,
                                   const kgt_nans *nans) {
    FN(tiler) tiler;
    FN(kgt_worker) worker;
    const int64_t n_rows = factors->n_rows, n_entities = factors->n_entities;
    kgt_status status = FN(tiler_open)(&tiler, factors);
    if (status != KGT_OK) return status;
    status = FN(kgt_worker_open)(&worker, task, first_row, n_rows, best->depth, n_rows + 1);
    if (status != KGT_OK) {
        FN(tiler_close)(&tiler);
        return status;
    }
    for (int64_t entity = 0; entity < n_entities; entity += tiler.width) {
        const int64_t width = n_entities - entity < tiler.width ? n_entities - entity : tiler.width;
        FN(pack)(&tiler, entity, width);
        for (int64_t query = 0; query < n_rows; query += QUERY_TILE) {
            const int64_t height = n_rows - query < QUERY_TILE ? n_rows - query : QUERY_TILE;
            FN(score_tile)(&tiler, query, height, width);
            FN(rank_tile)(&tiler, &worker, query, height, entity, width, first_row, job_scores,
                          counts, best, nans);
        }
    }
    for (int64_t i = 0; i < n_rows; i++) {
        const int64_t slot = kgt_slot_of(best, first_row + i);
        if (slot >= 0) FN(kgt_row_best)(&worker, worker.tops + i, slot, best);
    }
    FN(kgt_worker_close)(&worker);
    FN(tiler_close)(&tiler);
    return KGT_OK;
}

static kgt_status FN(factor_scores)(const kgt_factors *factors, void *out) {
    FN(tiler) tiler;
    const int64_t n_rows = factors->n_rows, n_entities = factors->n_entities;
    const kgt_status status = FN(tiler_open)(&tiler, factors);
    if (status != KGT_OK) return status;
    for (int64_t entity = 0; entity < n_entities; entity += tiler.width) {
        const int64_t width = n_entities - entity < tiler.width ? n_entities - entity : tiler.width;
        FN(pack)(&tiler, entity, width);
        for (int64_t query = 0; query < n_rows; query += QUERY_TILE) {
            const int64_t height = n_rows - query < QUERY_TILE ? n_rows - query : QUERY_TILE;
            FN(score_tile)(&tiler, query, height, width);
            for (int64_t i = 0; i < height; i++)
                memcpy((T *)out + (query + i) * n_entities + entity, tiler.scores + i * tiler.width,
                       (size_t)width * sizeof(T));
        }
    }
    FN(tiler_close)(&tiler);
    return KGT_OK;
}
