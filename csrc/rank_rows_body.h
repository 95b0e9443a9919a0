/* Drivers over the rows of a block, for one computing type. */

static kgt_status FN(target_scores)(const kgt_scores *scores, const kgt_task *task,
                                    int64_t first_row, double *out) {
    FN(kgt_worker) worker;
    const kgt_status status =
        FN(kgt_worker_open)(&worker, task, first_row, scores->n_rows, NULL, 1);
    if (status != KGT_OK) return status;
    for (int64_t i = 0; i < scores->n_rows; i++) {
        const kgt_row row = row_of(scores, task, i, first_row + i);
        FN(kgt_row_target_scores)(&worker, &row, first_row + i,
                                  out + task->targets.offsets[first_row + i]);
    }
    FN(kgt_worker_close)(&worker);
    return KGT_OK;
}

static kgt_status FN(count_rows)(const kgt_scores *scores, kgt_pair_counts *counts) {
    static const kgt_task unrestricted = {0};
    FN(kgt_pairs) pairs;
    const kgt_status status = FN(kgt_pairs_open)(&pairs, counts);
    if (status != KGT_OK) return status;
    for (int64_t i = 0; i < scores->n_rows; i++) {
        const kgt_row row = row_of(scores, &unrestricted, i, 0);
        FN(kgt_pairs_row)(&pairs, &row, i * scores->n_entities);
    }
    FN(kgt_pairs_close)(&pairs);
    return KGT_OK;
}

/* If target_scores is NULL, the rows hold every entity, and the answers' scores are read with their
 * row. */
static kgt_status FN(rank_rows)(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                                const double *target_scores, const kgt_counts *counts,
                                const kgt_best *best, const kgt_nans *nans) {
    FN(kgt_worker) worker;
    kgt_status status = FN(kgt_worker_open)(&worker, task, first_row, scores->n_rows, best, 1);
    if (status != KGT_OK) return status;
    for (int64_t start = 0, n; start < scores->n_rows; start += n) {
        const int64_t left = scores->n_rows - start;
        n = left < KGT_FLIGHT ? left : KGT_FLIGHT;
        const int64_t *target = task->targets.offsets + first_row + start;
        bool settled[KGT_FLIGHT];
        for (int64_t i = 0; i < n; i++) {
            const int64_t task_row = first_row + start + i, slot = kgt_slot_of(best, task_row);
            const kgt_row row = row_of(scores, task, start + i, task_row);
            const double *answer_scores = target_scores ? target_scores + target[i] : NULL;
            settled[i] = FN(kgt_row_short)(&worker, &row, task_row, answer_scores, counts, best);
            if (settled[i]) continue;
            if (target_scores == NULL && i + 1 < left)
                prefetch_targets(scores, task, start + i + 1, first_row);
            FN(kgt_top) *top = slot < 0 ? NULL : worker.tops;
            FN(kgt_row_pass)(&worker, &row, task_row, target[i] - target[0], answer_scores, top,
                             nans);
            if (top != NULL) FN(kgt_row_best)(&worker, top, slot, best);
            /* The worker has levels for one row only: settle this row before the next. */
            if (target[i + 1] - target[i] > KGT_FEW_TARGETS) n = i + 1;
        }
        for (int64_t i = 0; i < n; i++) {
            if (settled[i]) continue;
            const int64_t task_row = first_row + start + i;
            const kgt_row row = row_of(scores, task, start + i, task_row);
            FN(kgt_row_settle)(&worker, &row, task_row, target[i] - target[0], counts);
        }
    }
    FN(kgt_worker_close)(&worker);
    return KGT_OK;
}
