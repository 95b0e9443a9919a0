/* Places of scores among sorted levels, for element type T, on ISAs that look values up in
 * registers. One search serves LANES scores.
 *
 * Besides the macros of isa_sift_body.h, the including file defines LOG_LANES; for vectors `at` of
 * LANES indices (INDEX, INDEX_ZERO): TAKE(at, a), the value of a at each, TAKE_2(at, a, b), of a
 * and b together; TAKE_FROM(at, p), from memory; HIGH(at, bit), a mask of the lanes with that bit;
 * DOUBLED(at, keep), twice the index, plus 1 where kept; SPREAD(at, shift), the index ((2 * at + 1)
 * << shift) - 1; BLEND(keep, a, b), b where kept; and STORE_INDEX(p, mask, at). */

/* Steps of the search that find their 1, 2, 4, and so on values in registers. */
enum { FN(in_registers) = LOG_LANES + 3 };

/* The histogram lags by so many scores, so that their bins have left the store buffer. */
#define BEHIND (size_t)(8 * LANES)

/* The levels that step k compares with after the decisions `at`. */
KGT_INLINE VEC FN(probe)(const VEC *tables, const int k, INDEX at) {
    if (k <= LOG_LANES) return TAKE(at, tables[k]);
    const VEC low = TAKE_2(at, tables[LOG_LANES + 1], tables[LOG_LANES + 2]);
    if (k == LOG_LANES + 1) return low;
    const VEC *rest = tables + LOG_LANES + 3;
    return BLEND(HIGH(at, 2 * LANES), TAKE_2(at, rest[0], rest[1]), TAKE_2(at, rest[2], rest[3]));
}

/* The levels of the first steps, ordered by the decisions that lead to them. */
KGT_INLINE void FN(fill_tables)(const T *levels, const int in_registers, int steps, VEC *tables) {
    for (int k = 0, used = 0; k < in_registers; k++) {
        T values[4 * LANES] = {0};
        for (size_t i = 0; i < (size_t)1 << k; i++)
            values[i] = levels[((2 * i + 1) << (steps - 1 - k)) - 1];
        const int vectors = k <= LOG_LANES ? 1 : 2 << (k - LOG_LANES - 1);
        for (int v = 0; v < vectors; v++) tables[used++] = LOAD(values + v * LANES);
    }
}

KGT_INLINE void FN(search)(const T *x, size_t n, const T *levels, const int in_registers,
                           const int steps, int32_t *out, uint32_t *histogram) {
    VEC tables[LOG_LANES + 7];
    size_t added = 0; /* to the histogram */
    FN(fill_tables)(levels, in_registers, steps, tables);
    for (size_t i = 0; i < n; i += LANES) {
        const size_t left = n - i < LANES ? n - i : LANES;
        const VEC score = left == LANES ? LOAD(x + i) : LOAD_TAIL(x + i, left, NAN);
        VEC lowest = SET1(NAN); /* level that is not below */
        INDEX at = INDEX_ZERO;
        KGT_UNROLL
        for (int k = 0; k < in_registers; k++) {
            const VEC value = FN(probe)(tables, k, at);
            const KEEP below = COMPARE(value, score, _CMP_LT_OQ);
            lowest = BLEND(below, value, lowest);
            at = DOUBLED(at, below);
        }
        for (int k = in_registers; k < steps; k++) {
            const VEC value = TAKE_FROM(SPREAD(at, steps - 1 - k), levels);
            const KEEP below = COMPARE(value, score, _CMP_LT_OQ);
            lowest = BLEND(below, value, lowest);
            at = DOUBLED(at, below);
        }
        const KEEP equal = COMPARE(lowest, score, _CMP_EQ_OQ);
        STORE_INDEX(out + i, MASK(left), DOUBLED(at, equal));
        if (histogram == NULL || i < BEHIND) continue;
        KGT_UNROLL /* runs in parallel with the vector units */
        for (size_t lane = 0; lane < LANES; lane++)
            histogram[KGT_TURNS * (size_t)out[i - BEHIND + lane] + lane % KGT_TURNS]++;
        added = i - BEHIND + LANES;
    }
    for (; histogram != NULL && added < n; added++)
        histogram[KGT_TURNS * (size_t)out[added] + added % KGT_TURNS]++;
}

static void FN(locate)(const T *x, size_t n, const T *levels, int steps, int32_t *out,
                       uint32_t *histogram) {
    if (steps == FN(in_registers) - 2)
        FN(search)(x, n, levels, FN(in_registers) - 2, FN(in_registers) - 2, out, histogram);
    else if (steps == FN(in_registers) - 1)
        FN(search)(x, n, levels, FN(in_registers) - 1, FN(in_registers) - 1, out, histogram);
    else if (steps == FN(in_registers))
        FN(search)(x, n, levels, FN(in_registers), FN(in_registers), out, histogram);
    else if (steps > FN(in_registers))
        FN(search)(x, n, levels, FN(in_registers), steps, out, histogram);
    else
        FN(search)(x, n, levels, steps, steps, out, histogram);
}

#undef BEHIND
