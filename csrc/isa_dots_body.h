/* Dot products of one vector with some rows of a table, and chains of pairs, for every vector ISA.
 *
 * The including file defines FN(op), VEC, LANES, LOAD(p), LOAD_TAIL(p, n, fill), SET1(s), FMA(a, b,
 * c), SUM4(out, v), the sums of four vectors, and FMA1(a, b, c). */

/* Four rows at once: their sums are independent, and a vector of the query is loaded once. */
KGT_INLINE void FN(four_dots)(const float *query, const float *const rows[4], size_t dim,
                              float *out) {
    VEC sum[4];
    KGT_UNROLL
    for (int i = 0; i < 4; i++) sum[i] = SET1(0);
    size_t k = 0;
    for (; k + LANES <= dim; k += LANES) {
        const VEC q = LOAD(query + k);
        KGT_UNROLL
        for (int i = 0; i < 4; i++) sum[i] = FMA(q, LOAD(rows[i] + k), sum[i]);
    }
    if (k < dim) {
        const VEC q = LOAD_TAIL(query + k, dim - k, 0);
        KGT_UNROLL
        for (int i = 0; i < 4; i++) sum[i] = FMA(q, LOAD(rows[i] + k), sum[i]);
    }
    SUM4(out, sum);
}

static void FN(dots)(const float *query, const float *table, size_t stride, size_t dim,
                     const uint16_t *places, size_t n, float *out) {
    for (size_t i = 0; i < n; i += 4) {
        const float *rows[4];
        float some[4];
        for (size_t j = 0; j < 4; j++) rows[j] = table + places[i + j < n ? i + j : i] * stride;
        FN(four_dots)(query, rows, dim, some);
        for (size_t j = 0; j < 4 && i + j < n; j++) out[i + j] = some[j];
    }
}

/* A chain waits for itself at every step; eight of them side by side do not. */
static void FN(pairs)(const float *const *a, const float *const *b, size_t n, size_t dim,
                      float *out) {
    for (size_t i = 0; i < n; i += 8) {
        const float *x[8], *y[8];
        float sum[8] = {0};
        for (size_t j = 0; j < 8; j++) {
            x[j] = a[i + j < n ? i + j : i];
            y[j] = b[i + j < n ? i + j : i];
        }
        for (size_t k = 0; k < dim; k++) {
            KGT_UNROLL
            for (int j = 0; j < 8; j++) sum[j] = FMA1(x[j][k], y[j][k], sum[j]);
        }
        for (size_t j = 0; j < 8 && i + j < n; j++) out[i + j] = sum[j];
    }
}
