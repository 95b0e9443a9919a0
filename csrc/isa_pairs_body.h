/* Chains of some pairs of vectors, for every ISA. The including file defines FN(op) and FMA1(a, b,
 * c). */

/* Side by side: as many as there are registers for pointers to their vectors. */
#define PAIRS 6

/* Vectors of the next pairs, which lie anywhere, are fetched while chains wait for themselves. */
KGT_INLINE void FN(fetch_vectors)(const float *a, const float *b, size_t dim) {
    for (size_t k = 0; k < dim; k += 16) {
        KGT_PREFETCH(a + k);
        KGT_PREFETCH(b + k);
    }
}

/* A chain waits for itself at every step; several of them side by side do not. */
KGT_INLINE void FN(pairs_some)(const bool l1, const float *const *a, const float *const *b,
                               size_t n, size_t dim, float *out) {
    for (size_t i = 0; i < n; i += PAIRS) {
        const float *x[PAIRS], *y[PAIRS];
        float sum[PAIRS] = {0};
        for (size_t j = 0; j < PAIRS; j++) {
            x[j] = a[i + j < n ? i + j : i];
            y[j] = b[i + j < n ? i + j : i];
        }
        for (size_t j = i + PAIRS; j < i + 2 * PAIRS && j < n; j++)
            FN(fetch_vectors)(a[j], b[j], dim);
        for (size_t k = 0; k < dim; k++) {
            KGT_UNROLL
            for (int j = 0; j < PAIRS; j++)
                sum[j] = l1 ? sum[j] + fabsf(x[j][k] - y[j][k]) : FMA1(x[j][k], y[j][k], sum[j]);
        }
        for (size_t j = 0; j < PAIRS && i + j < n; j++) out[i + j] = sum[j];
    }
}

static void FN(pairs)(const float *const *a, const float *const *b, size_t n, size_t dim,
                      float *out) {
    FN(pairs_some)(false, a, b, n, dim, out);
}

static void FN(pairs_l1)(const float *const *a, const float *const *b, size_t n, size_t dim,
                         float *out) {
    FN(pairs_some)(true, a, b, n, dim, out);
}

#undef PAIRS
