/* compress and select where the ISA packs the lanes of a mask, for element type T.
 *
 * Besides what count_body.h asks for, the including file defines KEEP (a mask of lanes), COMPARE(x,
 * y, predicate), COMPRESS(keep, values) and FN(put): the indices first + lane of the lanes kept, to
 * out; their number. Whole vectors are stored: out has KGT_SLACK places to spare.
 */

static size_t FN(compress)(const T *x, size_t n, T t, T *out, bool *nan) {
    const VEC threshold = SET1(t);
    KEEP nans = 0;
    size_t kept = 0, i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        VEC values[4];
        KEEP keep[4];
        KGT_UNROLL
        for (int j = 0; j < 4; j++) {
            KGT_PREFETCH((const char *)(x + i + j * LANES) + KGT_AHEAD);
            values[j] = LOAD(x + i + j * LANES);
            keep[j] = COMPARE(values[j], threshold, _CMP_GE_OQ);
        }
        nans |= COMPARE(values[0], values[1], _CMP_UNORD_Q);
        nans |= COMPARE(values[2], values[3], _CMP_UNORD_Q);
        KGT_UNROLL
        for (int j = 0; j < 4; j++) {
            STORE(out + kept, COMPRESS(keep[j], values[j]));
            kept += (size_t)_mm_popcnt_u32(keep[j]);
        }
    }
    for (; i < n; i += LANES) {
        const size_t left = n - i < LANES ? n - i : LANES;
        const VEC values = LOAD_TAIL(x + i, left, -INFINITY);
        const KEEP keep = MASK(left) & COMPARE(values, threshold, _CMP_GE_OQ);
        nans |= COMPARE(values, values, _CMP_UNORD_Q);
        STORE(out + kept, COMPRESS(keep, values));
        kept += (size_t)_mm_popcnt_u32(keep);
    }
    *nan |= nans != 0;
    return kept;
}

static size_t FN(select)(const T *x, size_t n, const T *maxima, T t, const char *next,
                         int32_t *out) {
    const VEC threshold = SET1(t);
    size_t kept = 0;
    for (size_t group = 0; group < KGT_MAXIMA(n); group += LANES) {
        kgt_fetch_next(next, n / 2 * sizeof(T), group);
        if (COMPARE(LOAD(maxima + group), threshold, _CMP_GE_OQ) == 0) continue;
        const size_t start = group * KGT_GROUP;
        for (size_t i = start; i < n && i < start + KGT_GROUP * LANES; i += LANES) {
            const VEC values = n - i >= LANES ? LOAD(x + i) : LOAD_TAIL(x + i, n - i, NAN);
            kept += FN(put)(COMPARE(values, threshold, _CMP_GE_OQ), i, out + kept);
        }
    }
    return kept;
}
