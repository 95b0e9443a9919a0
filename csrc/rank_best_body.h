/* The best entities of a row, in trec order, fed stretch by stretch. Computing type T.
 *
 * Only scores that reach the bound, the depth-th best so far, are looked at one by one. So an early
 * good bound matters. Counting gives the maxima of many small groups. A score that depth of these
 * reach is a bound; few other values reach it. Only groups whose maximum does are looked at. */

/* One row (or range) that is offered to its top. */
typedef struct {
    FN(kgt_worker) * worker;
    const kgt_row *row;
    FN(kgt_top) * top;
    kgt_span removed; /* never kept */
} FN(kgt_offer);

/* Memory would be idle while the best are picked. So the steps of picking also prefetch the
 * beginnings of the next row's two halves (of the row, if it is one stream). They do this portion
 * by portion, because one burst would delay their own loads. A prefetch past the last row never
 * faults. */
static void FN(fetch_next)(const FN(kgt_offer) * offer, size_t portion) {
    const kgt_row *row = offer->row;
    const size_t half = (size_t)(row->n / 2) * sizeof(T);
    const size_t other = kgt_reads_one_stream() ? 4 * KGT_PORTION * 64 : half;
    for (size_t line = portion * KGT_PORTION; line < (portion + 1) * KGT_PORTION; line++) {
        KGT_PREFETCH_FAR(row->next + line * 64);
        KGT_PREFETCH_FAR(row->next + other + line * 64);
    }
}

/* Gathers the removed entities among n values of the row, x, from place `start` on, and their
 * scores. Returns their number. The maxima include them, so as many more maxima must reach the
 * bound. */
static size_t FN(gather_removed)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t n) {
    const FN(kgt_worker) *worker = offer->worker;
    const kgt_row *row = offer->row;
    const kgt_span removed = offer->removed;
    int32_t *gathered_ids = worker->gathered_ids;
    T *gathered = worker->gathered;
    const int64_t from = kgt_lower_bound(removed, kgt_row_id(row, start));
    const int64_t to = kgt_lower_bound(removed, kgt_row_id(row, start + n - 1) + 1);
    if (row->ids == NULL) {
        const int64_t first = row->first + start;
        for (int64_t i = from; i < to; i++) {
            gathered_ids[i - from] = removed.ids[i];
            gathered[i - from] = x[removed.ids[i] - first];
        }
        return (size_t)(to - from);
    }
    size_t n_gathered = 0;
    for (int64_t i = from; i < to; i++) {
        const int64_t place = kgt_row_place(row, removed.ids[i]);
        if (place < 0) continue;
        gathered_ids[n_gathered] = removed.ids[i];
        gathered[n_gathered++] = x[place - start];
    }
    return n_gathered;
}

/* Keeps those that reach the bound and returns their number. Most rows have few, so a survivor is
 * compared with few. */
static size_t FN(reaching)(const FN(kgt_worker) * worker, size_t n_removed, T bound) {
    size_t n_reaching = 0;
    for (size_t i = 0; i < n_removed; i++) {
        worker->gathered_ids[n_reaching] = worker->gathered_ids[i];
        n_reaching += worker->gathered[i] >= bound;
    }
    return n_reaching;
}

/* The least and the largest of a sample of maxima, without those of empty groups. */
static void FN(range)(const T *maxima, size_t n, T *low, T *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < n; i += 1 + n / 64) {
        if (!(maxima[i] > -INFINITY)) continue;
        *high = maxima[i] > *high ? maxima[i] : *high;
        *low = maxima[i] < *low ? maxima[i] : *low;
    }
}

/* The highest bound that a few steps find and that at least `depth` candidates reach. Any such
 * bound is correct; a lower one only costs time. If few are wanted, the steps start between the
 * maxima of the maxima, otherwise from the whole range. The largest value is tried too, because
 * many may tie with it. */
static T FN(find_bound)(FN(kgt_worker) * worker, const T *maxima, size_t n_maxima, size_t n_removed,
                        int64_t depth) {
    const FN(kgt_ops) *ops = &worker->kernel->OPS;
    const bool few = depth <= 2 * KGT_FOLD;
    const double stride = few ? 0.15 : 1 / 3.0; /* for few, the bound is near the lower end */
    T low, high, bound = -INFINITY, top[KGT_FOLD];
    if (!few)
        FN(range)(maxima, n_maxima, &low, &high);
    else
        FN(range)(top, ops->fold(maxima, n_maxima, 1 + n_maxima / KGT_FOLD, top), &low, &high);
    int64_t reached = (int64_t)n_maxima;
    for (int pass = 0; pass < 8 && reached > depth + depth / 8 + 4; pass++) {
        const bool bounded = bound > -INFINITY; /* it equals `low` then */
        T step[4];
        int64_t greater[4] = {0}, at_least[4] = {0}, removed[4] = {0};
        for (int j = 0; j < 4; j++)
            step[j] = low + (high - low) * (T)(bounded ? 0.2 * (j + 1) : stride * j);
        if (!bounded) step[3] = high;
        /* No number is between, or there is none. At first all may be the same. */
        if (!(step[3] >= low && step[3] < INFINITY) || (bounded && step[3] == low)) break;
        ops->count(maxima, n_maxima, step, 4, greater, at_least, NULL);
        if (n_removed > 0) ops->count(worker->gathered, n_removed, step, 4, greater, removed, NULL);
        int j = 3;
        while (j >= 0 && at_least[j] - removed[j] < depth) j--;
        if (j < 3) high = step[j + 1];
        if (j >= 0) {
            bound = low = step[j];
            reached = at_least[j] - removed[j];
        } else if (!bounded) {
            T largest;
            FN(range)(maxima, n_maxima, &low, &largest);
            if (!(low < high)) break; /* even the lowest is too high */
        }
    }
    return bound;
}

/* Keeps a value; if the buffer is full, the worst are dropped. */
static void FN(keep_value)(FN(kgt_top) * top, const int32_t *position, T value, int64_t id) {
    const uint32_t order = (uint32_t)(position ? position[id] : id);
    const FN(kgt_key) key = FN(kgt_make_key)(value, order);
    const int64_t used = top->used + (key >= top->worst);
    top->keys[top->used] = key;
    top->used = used;
    if (used == kgt_top_capacity(top->depth)) FN(kgt_top_prune)(top);
}

/* Offers a stretch in which very many tie with the bound, with ids in the order of names. Of these
 * ties, only the last `depth` can be among the best. */
static void FN(offer_ties)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t n,
                           int64_t n_selected) {
    FN(kgt_top) *top = offer->top;
    const T bound = top->bound;
    int32_t *selected = offer->worker->selected;
    const kgt_span removed = offer->removed;
    int64_t remaining = top->depth + removed.n, i = n_selected - 1;
    int64_t before = removed.n; /* number of removed ids up to the current one */
    for (; i >= 0 && remaining > 0; i--) {
        const int64_t place = selected[i], id = kgt_row_id(offer->row, start + place);
        remaining -= x[place] == bound;
        while (before > 0 && removed.ids[before - 1] > id) before--;
        if (before > 0 && removed.ids[before - 1] == id) continue;
        if (x[place] >= top->bound) FN(keep_value)(top, NULL, x[place], id);
    }
    if (i < 0 || bound == INFINITY) return;
    /* Before these ties, only scores above the bound count. */
    const int64_t last = selected[i];
    const T above = (T)(sizeof(T) == sizeof(float) ? nextafterf((float)bound, INFINITY)
                                                   : nextafter((double)bound, INFINITY));
    n_selected = (int64_t)offer->worker->kernel->OPS.select(x, (size_t)n, offer->worker->maxima,
                                                            above, selected);
    for (i = 0; i < n_selected && selected[i] <= last; i++) {
        const int64_t place = selected[i], id = kgt_row_id(offer->row, start + place);
        if (x[place] >= top->bound && !kgt_holds(offer->removed, (int32_t)id))
            FN(keep_value)(top, NULL, x[place], id);
    }
}

/* The bound from the maxima of a stretch. */
static T FN(stretch_bound)(FN(kgt_offer) * offer, size_t n_removed, int64_t n) {
    FN(kgt_worker) *worker = offer->worker;
    const int64_t depth = offer->top->depth;
    const T *maxima = worker->maxima;
    size_t n_maxima = KGT_MAXIMA((size_t)n);
    /* No more than needed, because all of them are counted several times. */
    const size_t group = n_maxima / (6 * (size_t)depth);
    if (group >= 2) {
        n_maxima =
            worker->kernel->OPS.fold(maxima, n_maxima, group > 32 ? 32 : group, worker->coarse);
        maxima = worker->coarse;
    }
    return FN(find_bound)(worker, maxima, n_maxima, n_removed, depth);
}

/* Selects the indices of the values of a stretch that reach the bound; returns their number. */
static int64_t FN(reach_bound)(const FN(kgt_offer) * offer, const T *x, int64_t n) {
    const FN(kgt_worker) *worker = offer->worker;
    return (int64_t)worker->kernel->OPS.select(x, (size_t)n, worker->maxima, offer->top->bound,
                                               worker->selected);
}

/* Offers values start .. start + n - 1 of the row; the worker has their maxima. NaN is never
 * selected, because it compares false with every bound. */
static void FN(offer_stretch)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t n) {
    FN(kgt_top) *top = offer->top;
    const FN(kgt_worker) *worker = offer->worker;
    const int32_t *position = worker->task->position, *selected = worker->selected;
    FN(fetch_next)(offer, 0);
    const size_t n_removed = FN(gather_removed)(offer, x, start, n);
    FN(fetch_next)(offer, 1);
    int64_t n_selected = top->bound > -INFINITY ? FN(reach_bound)(offer, x, n) : n;
    /* There is no bound yet, or most scores of a rising row exceed it. */
    if (n_selected > kgt_top_capacity(top->depth) || top->bound == -INFINITY) {
        const T bound = FN(stretch_bound)(offer, n_removed, n);
        if (bound > top->bound) top->bound = bound;
        FN(fetch_next)(offer, 2);
        n_selected = FN(reach_bound)(offer, x, n);
    }
    FN(fetch_next)(offer, 3);
    if (n_selected > kgt_top_capacity(top->depth) && top->bound > -INFINITY && position == NULL) {
        FN(offer_ties)(offer, x, start, n, n_selected);
        return;
    }
    const size_t n_held = FN(reaching)(worker, n_removed, top->bound);
    size_t cursor = 0; /* the first of them that is not passed yet */
    for (int64_t i = 0; i < n_selected; i++) {
        const int64_t place = selected[i], id = kgt_row_id(offer->row, start + place);
        while (cursor < n_held && worker->gathered_ids[cursor] < id) cursor++;
        if (cursor < n_held && worker->gathered_ids[cursor] == id) continue;
        if (x[place] >= top->bound) FN(keep_value)(top, position, x[place], id);
    }
}

/* Writes the sorted keys of a top to their slot and empties the top. */
static void FN(write_best)(const FN(kgt_worker) * worker, FN(kgt_top) * top, int64_t slot,
                           const kgt_best *best) {
    int32_t *ids = best->ids + slot * best->depth;
    T *scores = (T *)best->scores + slot * best->depth;
    const int32_t *entity_at = worker->task->entity_at;
    const FN(kgt_key) *keys = top->keys;
    const int64_t used = top->used;
    for (int64_t i = 0; i < used; i++) {
        const FN(kgt_key) key = keys[i];
        ids[i] = (int32_t)(uint32_t)key;
        scores[i] = FN(kgt_key_score)(key);
    }
    for (int64_t i = 0; entity_at != NULL && i < used; i++) ids[i] = entity_at[ids[i]];
    best->length[slot] = (int32_t)used;
    top->used = 0;
    top->bound = -INFINITY;
    top->worst = 0;
}

void FN(kgt_row_best)(const FN(kgt_worker) * worker, FN(kgt_top) * top, int64_t slot,
                      const kgt_best *best) {
    FN(kgt_top_sort)(top, worker->kernel);
    FN(write_best)(worker, top, slot, best);
}
