/* Vectors of a factorised model and the formula of a score, for one element type. Part of
 * factors_vectors.h. */

KGT_INLINE const T *FN(vectors)(const void *table, int64_t row, int64_t dim) {
    return (const T *)table + row * dim;
}

/* The vector of a row of the entity table. Vectors in half precision, or that begin at an odd byte
 * (in an array mapped inside an archive), are copied into `copy`, of 2 * dim. */
KGT_INLINE const T *FN(entity)(const kgt_kernel *kernel, const kgt_factors *factors, int64_t row,
                               T *copy) {
    const size_t dim = (size_t)factors->dim;
    const bool half = factors->half_entities && sizeof(T) == sizeof(float);
    const size_t bytes = dim * (half ? sizeof(uint16_t) : sizeof(T));
    const char *x = (const char *)factors->entities + (size_t)row * bytes;
    if ((uintptr_t)x % (half ? sizeof(uint16_t) : sizeof(T)) != 0) x = memcpy(copy + dim, x, bytes);
    if (!half) return (const T *)(const void *)x;
    kernel->widen_f16((const uint16_t *)(const void *)x, dim, (float *)(void *)copy);
    return copy;
}

/* Whether the table holds neighbours' vectors one after the other, ready to use. */
KGT_INLINE bool FN(neighbours_in_place)(const kgt_factors *factors) {
    const bool half = factors->half_entities && sizeof(T) == sizeof(float);
    return factors->ids == NULL && !half && (uintptr_t)factors->entities % sizeof(T) == 0;
}

KGT_INLINE T FN(bias)(const kgt_factors *factors, int64_t row) {
    T bias = 0;
    if (factors->bias)
        memcpy(&bias, (const char *)factors->bias + (size_t)row * sizeof bias, sizeof bias);
    return bias;
}

/* The only place that computes a score from the sum over dimensions. */
KGT_INLINE T FN(score)(kgt_metric metric, T sum, T query_norm, T entity_norm, T bias) {
    if (metric == KGT_DOT) return sum + bias;
    return metric == KGT_L2 ? ((sum + sum - entity_norm) - query_norm) + bias : bias - sum;
}

KGT_INLINE T FN(query_norm)(const kgt_factors *factors, const kgt_kernel *kernel, int64_t query) {
    if (factors->metric != KGT_L2) return 0;
    const T *q = FN(vectors)(factors->queries, query, factors->dim);
    return kernel->OPS.pair(q, q, (size_t)factors->dim);
}
