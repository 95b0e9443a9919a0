/* The best entities of a row, in trec order, fed block by block. Computing type T.
 *
 * Only scores that reach the bound, the depth-th best so far, are looked at one by one, so all
 * depends on a good bound early. A row opens with the maxima of many small groups of its first
 * values: a score that depth of these reach is a bound, and few other values reach it. */

/* One row (or range) being offered to its top. */
typedef struct {
    FN(kgt_worker) * worker;
    const kgt_row *row;
    FN(kgt_top) * top;
    kgt_span removed; /* never kept */
    int64_t cursor;   /* into removed: the first that is not behind us */
    size_t group;     /* values a maximum while the row opens; 0: it is open */
    int64_t opening;  /* how many values it opens with */
    size_t n_maxima;
} FN(kgt_offer);

static void FN(offer_open)(FN(kgt_offer) * offer) {
    const FN(kgt_top) *top = offer->top;
    if (top->bound > -INFINITY || top->used > 0) return;
    /* A deep run needs many values for a bound that later ones seldom reach. */
    const int64_t opening = top->depth <= 64 ? KGT_OPENING / 2 : KGT_OPENING;
    offer->opening = offer->row->n < opening ? offer->row->n : opening;
    const int64_t group = offer->opening / (4 * top->depth);
    offer->group = group < 2 ? 0 : group > 64 ? 64 : (size_t)group;
}

/* Scores of the removed entities among n values of the row from `start` on; their number. They are
 * among the maxima, so as many more of these must reach the bound. */
static size_t FN(gather_removed)(FN(kgt_offer) * offer, int64_t start, int64_t n) {
    FN(kgt_worker) *worker = offer->worker;
    const kgt_span removed = offer->removed;
    size_t found = 0;
    for (int64_t i = kgt_lower_bound(removed, kgt_row_id(offer->row, start)); i < removed.n; i++) {
        const int64_t place = kgt_row_place(offer->row, removed.ids[i]);
        if (place >= start + n) break;
        if (place >= 0) worker->gathered[found++] = FN(value)(worker, offer->row, place);
    }
    return found;
}

/* The highest bound found in a few steps that at least `depth` candidates reach. Any such bound is
 * right; a lower one only costs time. The steps start between the least and the largest of a sample
 * of the maxima. */
static T FN(find_bound)(FN(kgt_worker) * worker, size_t n_maxima, size_t n_removed, int64_t depth) {
    const T *maxima = worker->maxima;
    T low = INFINITY, high = -INFINITY, bound = -INFINITY;
    for (size_t i = 0; i < n_maxima; i += 1 + n_maxima / 64) {
        if (!(maxima[i] > -INFINITY)) continue; /* an empty group */
        high = maxima[i] > high ? maxima[i] : high;
        low = maxima[i] < low ? maxima[i] : low;
    }
    int64_t reached = (int64_t)n_maxima;
    for (int pass = 0; pass < 8 && reached > depth + depth / 8 + 4; pass++) {
        T step[4];
        int64_t greater[4] = {0}, at_least[4] = {0}, removed[4] = {0};
        for (int j = 0; j < 4; j++)
            step[j] = low + (high - low) * (T)(pass == 0 ? j / 3.0 : 0.2 * (j + 1));
        if (!(step[3] > low && step[3] < INFINITY)) break; /* no number between, or none at all */
        worker->kernel->OPS.count(maxima, n_maxima, step, 4, greater, at_least);
        worker->kernel->OPS.count(worker->gathered, n_removed, step, 4, greater, removed);
        int j = 3;
        while (j >= 0 && at_least[j] - removed[j] < depth) j--;
        if (j < 3) high = step[j + 1];
        if (j < 0) {
            if (pass == 0) break; /* even the sample's least is too high */
            continue;
        }
        bound = low = step[j];
        reached = at_least[j] - removed[j];
    }
    return bound;
}

/* Keeps a value; the worst leave when there is no more room. */
static void FN(keep_value)(FN(kgt_top) * top, const int32_t *position, T value, int64_t id) {
    const uint32_t order = (uint32_t)(position ? position[id] : id);
    top->keys[top->used++] = FN(kgt_make_key)(value, order);
    if (top->used == kgt_top_capacity(top->depth)) FN(kgt_top_prune)(top);
}

/* A block in which very many tie with the bound, ids in the order of names: of the ties only the
 * last can be among the best, the depth of them that stand furthest behind. */
static void FN(offer_ties)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t found) {
    FN(kgt_top) *top = offer->top;
    const T bound = top->bound;
    int32_t *selected = offer->worker->selected;
    int64_t wanted = top->depth + offer->removed.n, i = found - 1;
    for (; i >= 0 && wanted > 0; i--) {
        const int64_t place = selected[i], id = kgt_row_id(offer->row, start + place);
        wanted -= x[place] == bound;
        if (x[place] >= top->bound && !kgt_holds(offer->removed, (int32_t)id))
            FN(keep_value)(top, NULL, x[place], id);
    }
    if (i < 0 || bound == INFINITY) return;
    /* Before those, only what beats the bound. */
    const T above = (T)(sizeof(T) == sizeof(float) ? nextafterf((float)bound, INFINITY)
                                                   : nextafter((double)bound, INFINITY));
    found =
        (int64_t)offer->worker->kernel->OPS.select(x, (size_t)selected[i] + 1, above, 0, selected);
    for (i = 0; i < found; i++) {
        const int64_t place = selected[i], id = kgt_row_id(offer->row, start + place);
        if (x[place] >= top->bound && !kgt_holds(offer->removed, (int32_t)id))
            FN(keep_value)(top, NULL, x[place], id);
    }
}

/* A better bound from the maxima of one block: for rows that keep rising. */
static void FN(raise_bound)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t n) {
    FN(kgt_worker) *worker = offer->worker;
    const int64_t depth = offer->top->depth, group = n / (4 * depth);
    if (group < 2) return;
    const size_t n_maxima =
        worker->kernel->OPS.fold(x, (size_t)n, group > 64 ? 64 : (size_t)group, worker->maxima);
    const size_t n_removed = FN(gather_removed)(offer, start, n);
    const T bound = FN(find_bound)(worker, n_maxima, n_removed, depth);
    if (bound > offer->top->bound) offer->top->bound = bound;
}

/* Offers values start .. start + n - 1 of the row. NaN is never selected: it compares false with
 * every bound. */
static void FN(offer_values)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t n) {
    FN(kgt_top) *top = offer->top;
    const kgt_span removed = offer->removed;
    const int32_t *position = offer->worker->task->position;
    const int64_t capacity = kgt_top_capacity(top->depth);
    const ptrdiff_t ahead = offer->row->ahead;
    size_t (*const select)(const T *, size_t, T, ptrdiff_t, int32_t *) =
        offer->worker->kernel->OPS.select;
    int32_t *selected = offer->worker->selected;
    for (int64_t seen = 0, step; seen < n; seen += step) {
        /* Without a bound every value is selected: stop as soon as there can be one. */
        step = top->bound == -INFINITY ? capacity - top->used : n;
        if (step > n - seen) step = n - seen;
        int64_t found = (int64_t)select(x + seen, (size_t)step, top->bound, ahead, selected);
        if (found > capacity) {
            FN(raise_bound)(offer, x + seen, start + seen, step);
            found = (int64_t)select(x + seen, (size_t)step, top->bound, ahead, selected);
        }
        if (found > capacity && position == NULL) {
            FN(offer_ties)(offer, x + seen, start + seen, found);
            continue;
        }
        for (int64_t i = 0; i < found; i++) {
            const int64_t place = seen + selected[i], id = kgt_row_id(offer->row, start + place);
            if (x[place] < top->bound) continue;
            while (offer->cursor < removed.n && removed.ids[offer->cursor] < id) offer->cursor++;
            if (offer->cursor < removed.n && removed.ids[offer->cursor] == id) continue;
            FN(keep_value)(top, position, x[place], id);
        }
    }
}

/* Offers the next block of the row. While it opens, only maxima are taken; then the values that it
 * has opened with, which are in cache still, are offered against the bound. */
static void FN(offer_block)(FN(kgt_offer) * offer, const T *x, int64_t start, int64_t n) {
    FN(kgt_worker) *worker = offer->worker;
    if (offer->group == 0) {
        FN(offer_values)(offer, x, start, n);
        return;
    }
    offer->n_maxima +=
        worker->kernel->OPS.fold(x, (size_t)n, offer->group, worker->maxima + offer->n_maxima);
    if (start + n < offer->opening) return;
    offer->group = 0;
    const size_t n_removed = FN(gather_removed)(offer, 0, start + n);
    offer->top->bound = FN(find_bound)(worker, offer->n_maxima, n_removed, offer->top->depth);
    for (int64_t i = 0; i < start + n; i += KGT_BLOCK) {
        const int64_t width = start + n - i < KGT_BLOCK ? start + n - i : KGT_BLOCK;
        FN(offer_values)(offer, FN(fetch)(worker, offer->row, i, width), i, width);
    }
}

void FN(kgt_row_best)(const FN(kgt_worker) * worker, FN(kgt_top) * top, int64_t slot,
                      const kgt_best *best) {
    FN(kgt_top_sort)(top);
    int32_t *ids = best->ids + slot * best->depth;
    T *scores = (T *)best->scores + slot * best->depth;
    const int32_t *entity_at = worker->task->entity_at;
    for (int64_t i = 0; i < top->used; i++) {
        const uint32_t order = (uint32_t)top->keys[i];
        ids[i] = entity_at ? entity_at[order] : (int32_t)order;
        scores[i] = FN(kgt_key_score)(top->keys[i]);
    }
    best->length[slot] = (int32_t)top->used;
    top->used = 0;
    top->bound = -INFINITY;
}
