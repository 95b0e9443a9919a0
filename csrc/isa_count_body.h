/* Compare-and-count, written once for every vector ISA and stored type.
 *
 * The including file defines: T, X (types of thresholds and of stored scores, which LOAD widens)
 * and FN(op) (function name); VEC, LANES, LOAD(p), LOAD_TAIL(p, n, fill), STORE(p, v), SET1(s);
 * COUNTER, COUNTER_ZERO, COUNT_GT(c, x, t), COUNT_GE(c, x, t), COUNTER_SUM(c); LARGER(x, y), which
 * is y where x is NaN; NANS, NANS_NONE, NANS_MEET(s, x, y), NANS_ANY(s). A lane's counter is at
 * most n / LANES < 2^31, so it cannot overflow. */

/* Thresholds compared per load of x: as many as fit in registers beside their two counters. */
#define WIDTH 4

KGT_INLINE bool FN(count_width)(const X *x, size_t n, const T *t, const int width,
                                const bool fetching, int64_t *greater, int64_t *at_least,
                                T *maxima) {
    VEC threshold[WIDTH];
    COUNTER gt[WIDTH], ge[WIDTH];
    NANS nans = NANS_NONE;
    KGT_UNROLL
    for (int j = 0; j < width; j++) {
        threshold[j] = SET1(t[j]);
        gt[j] = ge[j] = COUNTER_ZERO;
    }
    /* A long row is read as two streams, its halves, unless one stream is faster. */
    const bool whole_row = n > 2 * KGT_BLOCK, apart = whole_row && !kgt_reads_one_stream();
    const size_t whole = KGT_GROUP * LANES, pairs = n / (2 * whole);
    const size_t step = apart ? whole : 2 * whole, leap = apart ? pairs * whole : whole;
    const size_t ahead = apart       ? KGT_AHEAD_TWO_STREAMS / sizeof(X)
                         : whole_row ? kgt_ahead_one_stream()
                                     : KGT_AHEAD;
    for (size_t pair = 0; pair < pairs; pair++) {
        KGT_UNROLL
        for (int half = 0; half < 2; half++) {
            const X *start = x + pair * step + (half ? leap : 0);
            VEC best = SET1(-INFINITY);
            KGT_UNROLL
            for (int k = 0; k < KGT_GROUP; k += 2) {
                const X *at = start + k * LANES;
                const VEC first = LOAD(at), second = LOAD(at + LANES);
                if (fetching) KGT_PREFETCH((const char *)at + ahead);
                if (fetching && 2 * LANES * sizeof(X) > 64)
                    KGT_PREFETCH((const char *)(at + LANES) + ahead);
                nans = NANS_MEET(nans, first, second);
                if (maxima != NULL) best = LARGER(second, LARGER(first, best));
                KGT_UNROLL
                for (int j = 0; j < width; j++) {
                    gt[j] = COUNT_GT(gt[j], first, threshold[j]);
                    ge[j] = COUNT_GE(ge[j], first, threshold[j]);
                    gt[j] = COUNT_GT(gt[j], second, threshold[j]);
                    ge[j] = COUNT_GE(ge[j], second, threshold[j]);
                }
            }
            if (maxima != NULL) STORE(maxima + (size_t)(start - x) / KGT_GROUP, best);
        }
    }
    size_t i = 2 * pairs * whole, folded = i / KGT_GROUP;
    while (i < n) {
        const size_t end = n - i < whole ? n : i + whole;
        VEC best = SET1(-INFINITY);
        for (; i < end; i += LANES) {
            const size_t left = n - i < LANES ? n - i : LANES;
            /* NaN compares false with everything, so the padding is never counted. */
            const VEC rest = LOAD_TAIL(x + i, left, (T)NAN);
            const VEC seen = LOAD_TAIL(x + i, left, (T)0);
            nans = NANS_MEET(nans, seen, seen);
            best = LARGER(rest, best);
            KGT_UNROLL
            for (int j = 0; j < width; j++) {
                gt[j] = COUNT_GT(gt[j], rest, threshold[j]);
                ge[j] = COUNT_GE(ge[j], rest, threshold[j]);
            }
        }
        if (maxima != NULL) STORE(maxima + folded, best);
        folded += LANES;
    }
    for (; maxima != NULL && folded < KGT_MAXIMA(n); folded += LANES)
        STORE(maxima + folded, SET1(-INFINITY));
    KGT_UNROLL
    for (int j = 0; j < width; j++) {
        greater[j] += COUNTER_SUM(gt[j]);
        at_least[j] += COUNTER_SUM(ge[j]);
    }
    return NANS_ANY(nans);
}

/* The first thresholds of a block prefetch the next block. Later ones find it in cache; except in
 * groups of four they prefetch it again, which costs less than separate code. A prefetch past the
 * last row never faults. */
static bool FN(count)(const X *x, size_t n, const T *t, size_t m, int64_t *greater,
                      int64_t *at_least, T *maxima) {
    if (m == 1 && maxima != NULL)
        return FN(count_width)(x, n, t, 1, true, greater, at_least, maxima);
    bool nan = false;
    if (maxima != NULL) {
        nan = FN(count_width)(x, n, t, 0, true, greater, at_least, maxima);
        if (m == 0) return nan;
    }
    if (m == 0) return FN(count_width)(x, n, t, 0, true, greater, at_least, NULL);
    size_t j = 0;
    if (m >= 4) {
        nan = FN(count_width)(x, n, t, 4, true, greater, at_least, NULL);
        j = 4;
    }
    for (; j + 4 <= m; j += 4)
        FN(count_width)(x, n, t + j, 4, false, greater + j, at_least + j, NULL);
    const size_t left = m - j;
    if (left == 3) nan = FN(count_width)(x, n, t + j, 3, true, greater + j, at_least + j, NULL);
    if (left == 2) nan = FN(count_width)(x, n, t + j, 2, true, greater + j, at_least + j, NULL);
    if (left == 1) nan = FN(count_width)(x, n, t + j, 1, true, greater + j, at_least + j, NULL);
    return nan;
}

#undef WIDTH
