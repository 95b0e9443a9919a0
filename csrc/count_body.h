/* Compare-and-count, written once for every vector ISA and element type.
 *
 * The including file defines: T and FN(op) (element type, function name); VEC, LANES, LOAD(p),
 * LOAD_TAIL(p, n, fill), SET1(s); COUNTER, COUNTER_ZERO, COUNT_GT(c, x, t), COUNT_GE(c, x, t),
 * COUNTER_SUM(c); LARGER(x, y), which is y where x is NaN; STORE(p, v); NANS, NANS_NONE,
 * NANS_MEET(s, x, y), NANS_ANY(s). A lane's counter holds at most n / LANES < 2^31: it can't
 * overflow.
 */

/* Thresholds compared per load of x: as many as fit in registers beside their two counters. */
#define WIDTH 4

KGT_INLINE bool FN(count_width)(const T *x, size_t n, const T *t, const int width,
                                const bool fetching, int64_t *greater, int64_t *at_least) {
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
        if (fetching) KGT_PREFETCH((const char *)(x + i) + KGT_AHEAD);
        if (fetching && 2 * LANES * sizeof(T) > 64)
            KGT_PREFETCH((const char *)(x + i + LANES) + KGT_AHEAD);
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

/* The first thresholds of a block fetch the next one from memory; the others find it in cache. A
 * prefetch past the last row is harmless: it never faults. */
static bool FN(count)(const T *x, size_t n, const T *t, size_t m, int64_t *greater,
                      int64_t *at_least) {
    if (m == 1) return FN(count_width)(x, n, t, 1, true, greater, at_least);
    if (m == 2) return FN(count_width)(x, n, t, 2, true, greater, at_least);
    if (m == 3) return FN(count_width)(x, n, t, 3, true, greater, at_least);
    if (m == 0) return FN(count_width)(x, n, t, 0, true, greater, at_least);
    const bool nan = FN(count_width)(x, n, t, 4, true, greater, at_least);
    size_t j = 4;
    for (; j + 4 <= m; j += 4) FN(count_width)(x, n, t + j, 4, false, greater + j, at_least + j);
    const size_t left = m - j;
    if (left == 3) FN(count_width)(x, n, t + j, 3, false, greater + j, at_least + j);
    if (left == 2) FN(count_width)(x, n, t + j, 2, false, greater + j, at_least + j);
    if (left == 1) FN(count_width)(x, n, t + j, 1, false, greater + j, at_least + j);
    return nan;
}

/* Lane by lane, so a group is spread over `group` vectors; the last may be short of some. */
static size_t FN(fold)(const T *x, size_t n, size_t group, T *out) {
    size_t folded = 0;
    for (size_t i = 0; i < n; i += group * LANES) {
        VEC best = SET1(-INFINITY);
        for (size_t j = i; j < n && j < i + group * LANES; j += LANES) {
            const VEC values = n - j >= LANES ? LOAD(x + j) : LOAD_TAIL(x + j, n - j, -INFINITY);
            best = LARGER(values, best);
        }
        STORE(out + folded, best);
        folded += LANES;
    }
    return folded;
}

#undef WIDTH
