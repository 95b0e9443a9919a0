/* Blocks stored column by column: scores.T of a matrix, or an array in Fortran order. Read row by
 * row, every score would cost a cache line. So a band of rows is transposed, one range of entities
 * at a time, and ranked from the copy. Computing type T. */

/* Rows per band, if so many can keep their best. Columns are pages apart; reading more of one at
 * once means fewer page look-ups. */
#define BAND_ROWS 256
#define FEWEST_BAND_ROWS 64
/* Entities per range. A band of this width fits the third-level cache. */
#define BAND_WIDTH (int64_t)(16384 / sizeof(T))
/* The rows of a band keep their best at the same time. From this depth on, even FEWEST_BAND_ROWS
 * would take too much memory. */
#define BAND_DEPTH 16384
/* Stride of the rows of a band, chosen so that their beginnings do not share cache lines. */
#define BAND_STRIDE (size_t)(BAND_WIDTH + 64 / sizeof(T))

static bool FN(by_columns)(const kgt_scores *scores, const kgt_task *task, const kgt_best *best) {
    const int64_t size = scores->dtype == KGT_F64 ? 8 : scores->dtype == KGT_F32 ? 4 : 2;
    const bool adjacent = scores->row_stride == size && scores->entity_stride != size &&
                          scores->entity_stride % size == 0;
    const bool aligned = (uintptr_t)scores->data % (uintptr_t)size == 0;
    if (!adjacent || !aligned || scores->n_rows < 2 || best->depth > BAND_DEPTH) return false;
    /* Candidates are gathered from whole rows. */
    return task->row_list == NULL || scores->n_entities <= BAND_WIDTH;
}

static int64_t FN(band_rows)(int64_t n_rows, int64_t depth) {
    int64_t rows = BAND_ROWS;
    while (rows > FEWEST_BAND_ROWS && depth > BAND_DEPTH * FEWEST_BAND_ROWS / rows) rows /= 2;
    return rows < n_rows ? rows : n_rows;
}

/* Copies the entities start .. start + n - 1 of the rows from `first` on to rows of `band`. */
static void FN(fill_band)(const kgt_kernel *kernel, const kgt_scores *scores, int64_t first,
                          int64_t rows, int64_t start, int64_t n, T *band) {
    const void *data =
        (const char *)scores->data + first * scores->row_stride + start * scores->entity_stride;
    const ptrdiff_t stride = (ptrdiff_t)(scores->entity_stride / scores->row_stride);
    const size_t height = (size_t)rows, width = (size_t)n;
    float *floats = (float *)(void *)band; /* 16-bit scores are widened to float */
    if (scores->dtype == KGT_F16)
        kernel->transpose_f16(data, stride, height, width, floats, BAND_STRIDE);
    else if (scores->dtype == KGT_BF16)
        kernel->transpose_bf16(data, stride, height, width, floats, BAND_STRIDE);
    else
        kernel->OPS.transpose(data, stride, height, width, band, BAND_STRIDE);
    for (size_t i = 0; scores->negate && i < height; i++)
        for (size_t j = 0; j < width; j++) band[i * BAND_STRIDE + j] = -band[i * BAND_STRIDE + j];
}

/* Ranks a band's rows against the range of entities that it holds. */
static void FN(rank_band)(FN(kgt_worker) * worker, const T *band, const kgt_scores *part,
                          int64_t first_row, const double *target_scores, const kgt_counts *counts,
                          const kgt_best *best, const kgt_nans *nans) {
    const kgt_task *task = worker->task;
    kgt_scores packed = *part;
    packed.data = band;
    packed.dtype = OWN_DTYPE;
    packed.row_stride = (int64_t)(BAND_STRIDE * sizeof(T));
    packed.entity_stride = sizeof(T);
    packed.negate = false;
    for (int64_t i = 0; i < part->n_rows; i++) {
        const int64_t task_row = first_row + i, target = task->targets.offsets[task_row];
        const double *answer_scores = target_scores + (target - task->targets.offsets[first_row]);
        const kgt_row row = row_of(&packed, task, i, task_row);
        FN(kgt_top) *top = kgt_slot_of(best, task_row) < 0 ? NULL : worker->tops + i;
        FN(kgt_row_pass)(worker, &row, task_row, 0, answer_scores, top, nans);
        FN(kgt_row_settle)(worker, &row, task_row, 0, counts);
    }
}

/* The answers' scores of a band's rows, one after another. */
static void FN(band_targets)(const FN(kgt_worker) * worker, const kgt_scores *scores, int64_t first,
                             int64_t rows, int64_t first_row, const double *target_scores,
                             double *out) {
    const int64_t *offsets = worker->task->targets.offsets + first_row + first;
    if (target_scores != NULL) {
        memcpy(out, target_scores + offsets[0], (size_t)(offsets[rows] - offsets[0]) * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        const kgt_row row = row_of(scores, worker->task, first + i, first_row + first + i);
        FN(kgt_row_target_scores)(worker, &row, first_row + first + i,
                                  out + (offsets[i] - offsets[0]));
    }
}

static kgt_status FN(rank_columns)(const kgt_scores *scores, const kgt_task *task,
                                   int64_t first_row, const double *target_scores,
                                   const kgt_counts *counts, const kgt_best *best,
                                   const kgt_nans *nans) {
    FN(kgt_worker) worker;
    const int64_t n_rows = scores->n_rows, n = scores->n_entities;
    const int64_t ranges = (n + BAND_WIDTH - 1) / BAND_WIDTH;
    const int64_t height = FN(band_rows)(n_rows, best->depth);
    const kgt_status status = FN(kgt_worker_open)(&worker, task, first_row, n_rows, best, height);
    if (status != KGT_OK) return status;
    T *band = kgt_allocate((size_t)height * BAND_STRIDE, sizeof(T));
    double *answer_scores = kgt_allocate((size_t)(worker.most_targets * height), sizeof(double));
    for (int64_t first = 0; band && answer_scores && first < n_rows; first += height) {
        const int64_t rows = n_rows - first < height ? n_rows - first : height;
        FN(band_targets)(&worker, scores, first, rows, first_row, target_scores, answer_scores);
        for (int64_t range = 0; range < ranges; range++) {
            const int64_t start = n * range / ranges, end = n * (range + 1) / ranges;
            kgt_scores part = *scores;
            part.n_rows = rows;
            part.n_entities = end - start;
            part.first_entity += (int32_t)start;
            FN(fill_band)(worker.kernel, scores, first, rows, start, end - start, band);
            FN(rank_band)(&worker, band, &part, first_row + first, answer_scores, counts, best,
                          nans);
        }
        for (int64_t i = 0; i < rows; i++) {
            const int64_t slot = kgt_slot_of(best, first_row + first + i);
            if (slot >= 0) FN(kgt_row_best)(&worker, worker.tops + i, slot, best);
        }
    }
    const bool complete = band && answer_scores;
    free(band);
    free(answer_scores);
    FN(kgt_worker_close)(&worker);
    return complete ? KGT_OK : KGT_NO_MEMORY;
}

#undef BAND_ROWS
#undef FEWEST_BAND_ROWS
#undef BAND_WIDTH
#undef BAND_DEPTH
#undef BAND_STRIDE
