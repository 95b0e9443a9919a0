/* Chains of pairs of vectors, for one element type. Part of isa_pairs_body.h, which defines T,
 * TYPED(op), FUSED(a, b, c) and MAGNITUDE(a). */

#define STEP(l1, a, b, sum) ((l1) ? (sum) + MAGNITUDE((a) - (b)) : FUSED(a, b, sum))

/* The sums of ABREAST pairs. Each step of a chain waits for the step before, so several chains run
 * side by side. */
#ifdef PARTS
#include "isa_lanes_body.h"
#else
#define ABREAST 6 /* as many as there are registers for pointers to their vectors */

KGT_INLINE void TYPED(chains)(const bool l1, const T *const *x, const T *const *y, size_t dim,
                              T *sums) {
    T sum[ABREAST] = {0};
    for (size_t k = 0; k < dim; k++) {
        KGT_UNROLL
        for (int j = 0; j < ABREAST; j++) sum[j] = STEP(l1, x[j][k], y[j][k], sum[j]);
    }
    memcpy(sums, sum, sizeof sum);
}
#endif

/* Prefetches the second vectors of the next pairs, which are scattered in memory. */
KGT_INLINE void TYPED(fetch_vector)(const T *vector, size_t dim) {
    for (size_t k = 0; k < dim; k += 64 / sizeof(T)) KGT_PREFETCH(vector + k);
}

KGT_INLINE void TYPED(pairs_some)(const bool l1, const void *const *a, const void *const *b,
                                  size_t n, size_t dim, double *out) {
    for (size_t i = 0; i < n; i += ABREAST) {
        const T *x[ABREAST], *y[ABREAST];
        T sums[ABREAST];
        for (size_t j = 0; j < ABREAST; j++) {
            x[j] = a[i + j < n ? i + j : i];
            y[j] = b[i + j < n ? i + j : i];
        }
        for (size_t j = i + ABREAST; j < i + 2 * ABREAST && j < n; j++)
            TYPED(fetch_vector)(b[j], dim);
        TYPED(chains)(l1, x, y, dim, sums);
        for (size_t j = 0; j < ABREAST && i + j < n; j++) out[i + j] = (double)sums[j];
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

#undef STEP
#undef ABREAST
#undef PER_PART
#undef PER_REGISTER
