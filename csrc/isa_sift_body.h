/* compress and select for ISAs with masks of lanes that pack the kept values, for element type T.
 *
 * Besides the macros of isa_count_body.h, the including file defines KEEP (a mask of lanes),
 * COMPARE(x, y, predicate), COMPRESS(keep, values) and FN(put_indices), which writes the indices
 * first + lane of the kept lanes to out and returns their number. It stores whole vectors, so out
 * has KGT_SLACK places to spare. */

static size_t FN(compress)(const T *x, size_t n, T t, T *out, bool *nan) {
    const VEC threshold = SET1(t);
    NANS nans = NANS_NONE;
    size_t n_out = 0, i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        VEC values[4];
        KEEP keep[4];
        KGT_UNROLL
        for (int j = 0; j < 4; j++) {
            KGT_PREFETCH((const char *)(x + i + j * LANES) + KGT_AHEAD);
            values[j] = LOAD(x + i + j * LANES);
            keep[j] = COMPARE(values[j], threshold, _CMP_GE_OQ);
        }
        nans = NANS_MEET(nans, values[0], values[1]);
        nans = NANS_MEET(nans, values[2], values[3]);
        KGT_UNROLL
        for (int j = 0; j < 4; j++) {
            STORE(out + n_out, COMPRESS(keep[j], values[j]));
            n_out += (size_t)_mm_popcnt_u32(keep[j]);
        }
    }
    for (; i < n; i += LANES) {
        const size_t left = n - i < LANES ? n - i : LANES;
        const VEC values = LOAD_TAIL(x + i, left, -INFINITY);
        const KEEP keep = MASK(left) & COMPARE(values, threshold, _CMP_GE_OQ);
        nans = NANS_MEET(nans, values, values);
        STORE(out + n_out, COMPRESS(keep, values));
        n_out += (size_t)_mm_popcnt_u32(keep);
    }
    *nan |= NANS_ANY(nans);
    return n_out;
}

/* Maxima that select reads before it reads their groups. */
#define PIECE 256

static size_t FN(select)(const T *x, size_t n, const T *maxima, T t, int32_t *out) {
    const VEC threshold = SET1(t);
    const size_t whole = KGT_GROUP * LANES;
    size_t n_out = 0;
    for (size_t start = 0; start < n; start += PIECE * whole) {
        const size_t end = n - start < PIECE * whole ? n : start + PIECE * whole;
        /* First lists the groups that hold any, then reads them, so that neither loop has an
         * unpredictable branch. */
        uint32_t hits[PIECE];
        size_t n_hits = 0;
        for (size_t i = start; i < end; i += whole) {
            hits[n_hits] = (uint32_t)i;
            n_hits += COMPARE(LOAD(maxima + i / KGT_GROUP), threshold, _CMP_GE_OQ) != 0;
        }
        for (size_t hit = 0; hit < n_hits; hit++) {
            const size_t at = hits[hit];
            if (n - at < whole) { /* the row's last group */
                for (size_t i = at; i < n; i += LANES) {
                    const VEC values = n - i >= LANES ? LOAD(x + i) : LOAD_TAIL(x + i, n - i, NAN);
                    n_out +=
                        FN(put_indices)(COMPARE(values, threshold, _CMP_GE_OQ), i, out + n_out);
                }
                break;
            }
            KGT_UNROLL
            for (size_t i = 0; i < whole; i += LANES)
                n_out += FN(put_indices)(COMPARE(LOAD(x + at + i), threshold, _CMP_GE_OQ), at + i,
                                         out + n_out);
        }
    }
    return n_out;
}

#undef PIECE
