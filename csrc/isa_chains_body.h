/* Chains of some pairs of vectors of one element type: part of isa_pairs_body.h, which defines T,
 * TYPED(op), FUSED(a, b, c) and MAGNITUDE(a). */

/* Side by side: as many as there are registers for pointers to their vectors. */
#define PAIRS 6

/* Vectors of the next pairs, which lie anywhere, are fetched while chains wait for themselves. */
KGT_INLINE void TYPED(fetch_vectors)(const T *a, const T *b, size_t dim) {
    for (size_t k = 0; k < dim; k += 64 / sizeof(T)) {
        KGT_PREFETCH(a + k);
        KGT_PREFETCH(b + k);
    }
}

/* A chain waits for itself at every step; several of them side by side do not. */
KGT_INLINE void TYPED(pairs_some)(const bool l1, const void *const *a, const void *const *b,
                                  size_t n, size_t dim, double *out) {
    for (size_t i = 0; i < n; i += PAIRS) {
        const T *x[PAIRS], *y[PAIRS];
        T sum[PAIRS] = {0};
        for (size_t j = 0; j < PAIRS; j++) {
            x[j] = a[i + j < n ? i + j : i];
            y[j] = b[i + j < n ? i + j : i];
        }
        for (size_t j = i + PAIRS; j < i + 2 * PAIRS && j < n; j++)
            TYPED(fetch_vectors)(a[j], b[j], dim);
        for (size_t k = 0; k < dim; k++) {
            KGT_UNROLL
            for (int j = 0; j < PAIRS; j++)
                sum[j] =
                    l1 ? sum[j] + MAGNITUDE(x[j][k] - y[j][k]) : FUSED(x[j][k], y[j][k], sum[j]);
        }
        for (size_t j = 0; j < PAIRS && i + j < n; j++) out[i + j] = (double)sum[j];
    }
}

static void TYPED(pairs)(const void *const *a, const void *const *b, size_t n, size_t dim,
                         double *out) {
    TYPED(pairs_some)(false, a, b, n, dim, out);
}

static void TYPED(pairs_l1)(const void *const *a, const void *const *b, size_t n, size_t dim,
                            double *out) {
    TYPED(pairs_some)(true, a, b, n, dim, out);
}

#undef PAIRS
