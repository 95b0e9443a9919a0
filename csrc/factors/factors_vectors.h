/* Vectors and single values of a factorised model of either type. Internal to the factors family.
 * Values of both types are passed as double. */
#ifndef KGT_FACTORS_VECTORS_H
#define KGT_FACTORS_VECTORS_H

#include <math.h>
#include <string.h>

#include "factors.h"
#include "isa_kernel.h"

#define T float
#define OPS f32
#define FN(op) op##_f32
#include "factors_vectors_body.h"
#undef T
#undef OPS
#undef FN

#define T double
#define OPS f64
#define FN(op) op##_f64
#include "factors_vectors_body.h"
#undef T
#undef OPS
#undef FN

KGT_INLINE bool kgt_in_double(const kgt_factors *factors) { return factors->dtype == KGT_F64; }

/* The metrics whose chains and bounds isa_bytes.h has. */
KGT_INLINE bool kgt_has_bounds(kgt_metric metric) {
    return metric == KGT_DOT || metric == KGT_L2 || metric == KGT_L1;
}

/* Of an entity; of a query, too, if the metric has bounds. */
KGT_INLINE size_t kgt_vector_bytes(const kgt_factors *factors) {
    return (size_t)factors->dim * (kgt_in_double(factors) ? sizeof(double) : sizeof(float));
}

/* Row of the entity table that holds ranked entity number `place`. */
KGT_INLINE int64_t kgt_table_row(const kgt_factors *factors, int64_t place) {
    return factors->ids ? factors->ids[place] - factors->first_entity : place;
}

KGT_INLINE const void *kgt_query(const kgt_factors *factors, int64_t i) {
    const size_t bytes = kgt_in_double(factors) ? sizeof(double) : sizeof(float);
    const int64_t dim = kgt_query_dim(factors->metric, factors->dim);
    return (const char *)factors->queries + (size_t)(i * dim) * bytes;
}

/* The vector of a row of the entity table; `copy` has space for two vectors. */
KGT_INLINE const void *kgt_table_vector(const kgt_kernel *kernel, const kgt_factors *factors,
                                        int64_t row, void *copy) {
    if (kgt_in_double(factors)) return entity_f64(kernel, factors, row, copy);
    return entity_f32(kernel, factors, row, copy);
}

KGT_INLINE double kgt_table_bias(const kgt_factors *factors, int64_t row) {
    return kgt_in_double(factors) ? bias_f64(factors, row) : (double)bias_f32(factors, row);
}

/* The same of ranked entity number `place`. */
KGT_INLINE const void *kgt_entity(const kgt_kernel *kernel, const kgt_factors *factors,
                                  int64_t place, void *copy) {
    return kgt_table_vector(kernel, factors, kgt_table_row(factors, place), copy);
}

KGT_INLINE double kgt_bias(const kgt_factors *factors, int64_t place) {
    return kgt_table_bias(factors, kgt_table_row(factors, place));
}

/* The chain q.q of KGT_L2, else 0. */
KGT_INLINE double kgt_query_norm(const kgt_factors *factors, const kgt_kernel *kernel, int64_t i) {
    return kgt_in_double(factors) ? query_norm_f64(factors, kernel, i)
                                  : (double)query_norm_f32(factors, kernel, i);
}

/* A score from the sum over dimensions, computed in the scores' type. */
KGT_INLINE double kgt_score(const kgt_factors *factors, double sum, double query_norm,
                            double entity_norm, double bias) {
    if (kgt_in_double(factors))
        return score_f64(factors->metric, sum, query_norm, entity_norm, bias);
    return (double)score_f32(factors->metric, (float)sum, (float)query_norm, (float)entity_norm,
                             (float)bias);
}

/* A vector in float: the vector itself, or rounded to nearest into `copy`. If rounding turns all
 * values into zero, the copy begins with NaN. */
KGT_INLINE const float *kgt_in_float(const kgt_factors *factors, const void *vector, float *copy) {
    if (!kgt_in_double(factors)) return vector;
    const double *x = vector;
    const int64_t dim = factors->dim;
    int64_t zeros = 0;
    for (int64_t k = 0; k < dim; k++) copy[k] = (float)x[k];
    while (zeros < dim && copy[zeros] == 0) zeros++;
    for (int64_t k = 0; zeros == dim && k < dim; k++)
        if (x[k] != 0) copy[0] = NAN;
    return copy;
}

#endif
