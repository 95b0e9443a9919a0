/* Subtracts the entities of a row's filters from its counts. They are gathered and counted in the
 * same way, which costs O(known), not O(entities). Computing type T; part of rank_row_body.h. */

/* Gathers the scores and ids of the entities of a filter that the row holds. */
static int64_t FN(gather)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span filter,
                          const int32_t **gathered_ids) {
    T *gathered = worker->gathered;
    if (FN(in_place)(row) && row->ids == NULL) {
        const T *x = (const T *)(const void *)row->data;
        for (int64_t i = 0; i < filter.n; i++) gathered[i] = x[filter.ids[i] - row->first];
        *gathered_ids = filter.ids;
        return filter.n;
    }
    if (row->plain && row->ids == NULL && row->dtype == KGT_F16) {
        const uint16_t *x = (const uint16_t *)(const void *)row->data;
        uint16_t *halves = (uint16_t *)(void *)worker->gathered_ids;
        for (int64_t i = 0; i < filter.n; i++) halves[i] = x[filter.ids[i] - row->first];
        worker->kernel->widen_f16(halves, (size_t)filter.n, (float *)(void *)gathered);
        *gathered_ids = filter.ids;
        return filter.n;
    }
    int64_t n = 0;
    for (int64_t i = 0; i < filter.n; i++) {
        const int64_t place = kgt_row_place(row, filter.ids[i]);
        if (place < 0) continue;
        worker->gathered_ids[n] = filter.ids[i];
        gathered[n++] = FN(value)(worker, row, place);
    }
    *gathered_ids = worker->gathered_ids;
    return n;
}

/* The number of the n gathered scores that tie with an answer and are ahead of it in trec order. */
static int64_t FN(tied_ahead)(const FN(kgt_worker) * worker, const int32_t *gathered_ids, int64_t n,
                              int32_t answer, T threshold) {
    const int32_t *position = worker->task->position;
    int64_t ahead = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool later =
            position ? position[gathered_ids[i]] > position[answer] : gathered_ids[i] > answer;
        ahead += later && worker->gathered[i] == threshold;
    }
    return ahead;
}

/* Adds the row's counts for each target, less those of the filter's entities that the row holds. A
 * target's own entity ties with itself, whether or not the filter holds it. */
static void FN(add_counts)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span filter,
                           kgt_span targets, int64_t *greater, int64_t *equal,
                           int64_t *tied_ahead) {
    const int32_t *gathered_ids;
    const int64_t n = FN(gather)(worker, row, filter, &gathered_ids);
    for (int64_t j = 0; j < targets.n; j++)
        worker->filter_greater[j] = worker->filter_at_least[j] = 0;
    const bool by_levels = targets.n > KGT_FEW_TARGETS;
    const bool sorted_ties = worker->levels.n_tied > 0;
    if (n > 0 && by_levels) {
        FN(levels_filter)(worker, gathered_ids, n, targets);
        if (sorted_ties) FN(filter_ties)(worker, gathered_ids, n, targets);
    } else if (n > 0)
        worker->kernel->OPS.count(worker->gathered, (size_t)n, worker->thresholds,
                                  (size_t)targets.n, worker->filter_greater,
                                  worker->filter_at_least, NULL);
    for (int64_t j = 0; j < targets.n; j++) {
        const int32_t id = targets.ids[j];
        const T threshold = worker->thresholds[j];
        const bool itself = threshold == threshold && kgt_row_place(row, id) >= 0;
        const int64_t row_equal = worker->at_least[j] - worker->greater[j];
        int64_t others = worker->filter_at_least[j] - worker->filter_greater[j];
        if (others > 0)
            others -= itself && (by_levels ? worker->levels.holds[j] : kgt_holds(filter, id));
        greater[j] += worker->greater[j] - worker->filter_greater[j];
        equal[j] += row_equal - others - itself;
        tied_ahead[j] += row_equal - worker->behind[j];
        if (others <= 0) continue;
        if (by_levels && (worker->task->position == NULL || sorted_ties))
            tied_ahead[j] -= worker->levels.ahead[j];
        else
            tied_ahead[j] -= FN(tied_ahead)(worker, gathered_ids, n, id, threshold);
    }
}

/* Settles a row with one answer whose filters differ at most in this answer, with one count for
 * both. The answer's tie with itself counts in neither. If the threshold is not its own score, the
 * answer may be above it; then only `known` removes it. */
static void FN(settle_once)(FN(kgt_worker) * worker, const kgt_row *row, kgt_span known,
                            kgt_span removed, kgt_span targets, int64_t target,
                            const kgt_counts *counts) {
    int64_t greater = 0, equal = 0, tied_ahead = 0;
    FN(add_counts)(worker, row, removed, targets, &greater, &equal, &tied_ahead);
    counts->macro_greater[target] += greater;
    counts->macro_equal[target] += equal;
    counts->macro_tied_ahead[target] += tied_ahead;
    const int64_t place = known.n > removed.n ? kgt_row_place(row, targets.ids[0]) : -1;
    if (place >= 0) greater -= FN(value)(worker, row, place) > worker->thresholds[0];
    counts->greater[target] += greater;
    counts->equal[target] += equal;
    counts->tied_ahead[target] += tied_ahead;
}

void FN(kgt_row_settle)(FN(kgt_worker) * worker, const kgt_row *row, int64_t task_row,
                        int64_t offset, const kgt_counts *counts) {
    const kgt_task *task = worker->task;
    FN(kgt_worker) row_worker = FN(worker_at)(worker, offset);
    const int64_t target = task->targets.offsets[task_row], question = task->row_question[task_row];
    const kgt_span targets = kgt_span_of(task->targets, task_row);
    const kgt_span known = kgt_span_within(kgt_span_of(task->known, question), row);
    const kgt_span removed = kgt_span_within(kgt_span_of(task->removed, question), row);
    if (targets.n == 1 && kgt_same_but(known, removed, targets.ids[0])) {
        FN(settle_once)(&row_worker, row, known, removed, targets, target, counts);
        return;
    }
    FN(add_counts)(&row_worker, row, known, targets, counts->greater + target,
                   counts->equal + target, counts->tied_ahead + target);
    FN(add_counts)(&row_worker, row, removed, targets, counts->macro_greater + target,
                   counts->macro_equal + target, counts->macro_tied_ahead + target);
}
