/* Compare-and-count, written once for every vector ISA and element type.
 *
 * The including file defines: T and FN(op) (element type, function name); VEC, LANES, LOAD(p),
 * LOAD_TAIL(p, n, fill), SET1(s); COUNTER, COUNTER_ZERO, COUNT_GT(c, x, t), COUNT_GE(c, x, t),
 * COUNTER_SUM(c); NANS, NANS_NONE, NANS_MEET(s, x, y), NANS_ANY(s).
 * A lane's counter holds at most n / LANES < 2^31: it can't overflow.
 */

/* Thresholds compared per load of x: as many as fit in registers beside their two counters. */
#define WIDTH 4

KGT_INLINE bool FN(count_width)(const T *x, size_t n, const T *t, const int width, int64_t *greater,
                                int64_t *at_least) {
    VEC threshold[WIDTH];
    COUNTER gt[WIDTH], ge[WIDTH];
    NANS nans = NANS_NONE;
    KGT_UNROLL
    for (int j = 0; j < width; j++) {
        threshold[j] = SET1(t[j]);
        gt[j] = ge[j] = COUNTER_ZERO;
    }
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const VEC first = LOAD(x + i), second = LOAD(x + i + LANES);
        nans = NANS_MEET(nans, first, second);
        KGT_UNROLL
        for (int j = 0; j < width; j++) {
            gt[j] = COUNT_GT(gt[j], first, threshold[j]);
            ge[j] = COUNT_GE(ge[j], first, threshold[j]);
            gt[j] = COUNT_GT(gt[j], second, threshold[j]);
            ge[j] = COUNT_GE(ge[j], second, threshold[j]);
        }
    }
    for (; i < n; i += LANES) {
        const size_t left = n - i < LANES ? n - i : LANES;
        /* NaN compares false with everything, so the padding is never counted. */
        const VEC rest = LOAD_TAIL(x + i, left, (T)NAN);
        const VEC seen = LOAD_TAIL(x + i, left, (T)0);
        nans = NANS_MEET(nans, seen, seen);
        KGT_UNROLL
        for (int j = 0; j < width; j++) {
            gt[j] = COUNT_GT(gt[j], rest, threshold[j]);
            ge[j] = COUNT_GE(ge[j], rest, threshold[j]);
        }
    }
    KGT_UNROLL
    for (int j = 0; j < width; j++) {
        greater[j] += COUNTER_SUM(gt[j]);
        at_least[j] += COUNTER_SUM(ge[j]);
    }
    return NANS_ANY(nans);
}

static bool FN(count)(const T *x, size_t n, const T *t, size_t m, int64_t *greater,
                      int64_t *at_least) {
    bool nan = false;
    size_t j = 0;
    for (; j + 4 <= m; j += 4) nan |= FN(count_width)(x, n, t + j, 4, greater + j, at_least + j);
    const size_t left = m - j;
    if (left == 3) nan |= FN(count_width)(x, n, t + j, 3, greater + j, at_least + j);
    if (left == 2) nan |= FN(count_width)(x, n, t + j, 2, greater + j, at_least + j);
    if (left == 1) nan |= FN(count_width)(x, n, t + j, 1, greater + j, at_least + j);
    return nan;
}

#undef WIDTH
