/* Counts of a short row by bits of words, for every ISA and element type T.
 *
 * For an ISA with masks of lanes, the including file defines the macros of isa_count_body.h, and
 * ABOVE(x, t) and EQUALS(x, t): one bit per lane where x > t, x == t, the first lane's lowest.
 * Without masks, the bits are computed one by one. */

static bool FN(count_short)(const T *x, size_t n, T t, size_t after, const uint64_t *outside,
                            int64_t *out) {
    const size_t n_words = (n + 63) / 64;
    for (int i = 0; i < 6; i++) out[i] = 0;
#ifdef ABOVE
    const VEC threshold = SET1(t);
    NANS nans = NANS_NONE;
#else
    bool nan = false;
#endif
    for (size_t word = 0; word < n_words; word++) {
        const size_t start = 64 * word, end = n - start < 64 ? n : start + 64;
        uint64_t greater = 0, equal = 0;
#ifdef ABOVE
        for (size_t i = start; i < end; i += LANES) {
            const bool whole = end - i >= LANES;
            const VEC values = whole ? LOAD(x + i) : LOAD_TAIL(x + i, end - i, (T)0);
            nans = NANS_MEET(nans, values, values);
            greater |= (uint64_t)ABOVE(values, threshold) << (i - start);
            equal |= (uint64_t)EQUALS(values, threshold) << (i - start);
        }
#else
        for (size_t i = start; i < end; i++) {
            nan |= x[i] != x[i];
            greater |= (uint64_t)(x[i] > t) << (i - start);
            equal |= (uint64_t)(x[i] == t) << (i - start);
        }
#endif
        const uint64_t behind = after <= start       ? ~(uint64_t)0
                                : after < start + 64 ? ~(uint64_t)0 << (after - start)
                                                     : 0;
        const uint64_t valid = ~(uint64_t)0 >> (64 - (end - start)); /* the rest is padding */
        for (size_t filter = 0; filter < 2; filter++) {
            const uint64_t inside = valid & ~outside[filter * n_words + word];
            out[3 * filter] += __builtin_popcountll(greater & inside);
            out[3 * filter + 1] += __builtin_popcountll(equal & inside);
            out[3 * filter + 2] += __builtin_popcountll(equal & inside & behind);
        }
    }
#ifdef ABOVE
    return NANS_ANY(nans);
#else
    return nan;
#endif
}
