/* Bounds from products, and their comparison with thresholds, for every vector ISA.
 *
 * The including file defines FN(op), VEC, LANES, LOAD(p), LOAD_INT(p) (int32 to float, to the
 * nearest), SET1(s), MUL(a, b), FMA(a, b, c), ABOVE(x, t) and REACHES(x, t): a bit for each lane
 * where x > t, x >= t, the first lane's lowest.
 *
 * Words are put together in registers: reading what narrower stores have just written would wait
 * for these. */

KGT_INLINE void FN(judge_some)(const int32_t *products, size_t n, const kgt_bounds *bounds,
                               const float *above, const float *below, const size_t m,
                               const bool shifted, uint64_t *sure, uint64_t *reach) {
    const VEC norm = SET1(bounds->norm), minus = SET1(-bounds->norm), factor = SET1(bounds->factor);
    for (size_t i = 0; i < n; i += 64) {
        uint64_t sure_word[KGT_JUDGED] = {0}, reach_word[KGT_JUDGED] = {0};
        for (size_t j = 0; j < 64; j += LANES) {
            const VEC error = LOAD(bounds->error + i + j);
            VEC value = MUL(LOAD_INT(products + i + j), LOAD(bounds->scale + i + j));
            if (shifted) value = FMA(LOAD(bounds->offset + i + j), factor, value);
            const VEC lower = FMA(minus, error, value), upper = FMA(norm, error, value);
            KGT_UNROLL
            for (size_t t = 0; t < m; t++) {
                sure_word[t] |= (uint64_t)ABOVE(lower, SET1(above[t])) << j;
                reach_word[t] |= (uint64_t)REACHES(upper, SET1(below[t])) << j;
            }
        }
        for (size_t t = 0; t < m; t++) {
            sure[t * (n / 64) + i / 64] = sure_word[t];
            reach[t * (n / 64) + i / 64] = reach_word[t];
        }
    }
}

static void FN(judge)(const int32_t *products, size_t n, const kgt_bounds *bounds,
                      const float *above, const float *below, size_t m, uint64_t *sure,
                      uint64_t *reach) {
#define WITH(m) FN(judge_some)(products, n, bounds, above, below, m, shifted, sure, reach)
#define EACH(m)                         \
    case m:                             \
        if (bounds->offset != NULL) {   \
            const bool shifted = true;  \
            WITH(m);                    \
        } else {                        \
            const bool shifted = false; \
            WITH(m);                    \
        }                               \
        break;
    switch (m) {
        EACH(1)
        EACH(2)
        EACH(3)
        EACH(4)
        default:
            break;
    }
#undef EACH
#undef WITH
}
