/* Converts queries to 8-bit and 16-bit codes, with figures that bound products and distances. */
#include "factors_queries.h"

#include <math.h>
#include <stdlib.h>

void kgt_queries_close(kgt_queries *queries) {
    free(queries->codes);
    free(queries->inverse);
    free(queries->judged_norm);
    free(queries->bounded);
    free(queries->fine);
    *queries = (kgt_queries){0};
}

/* k of the bound: |q - q'| / |q|, for a norm and a residual in units of s. */
static float relative(double residual, double norm) {
    return norm > 0 ? (float)(residual / norm * KGT_UP * KGT_UP) : 0;
}

/* The second level of query i. */
static void take_fine(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                      const float *query, float largest, const kgt_quantised *coarse) {
    kgt_quantised q;
    queries->bytes->quantise_fine(query, (size_t)factors->dim, largest, coarse,
                                  queries->fine + (size_t)i * queries->fine_stride, &q);
    const double scale = q.scale > 0 ? (double)q.scale : 1; /* of a zero vector: any will do */
    const double norm = (double)q.norm / scale * KGT_UP;
    queries->fine_inverse[i] = 1 / (factors->metric == KGT_L2 ? 2 * scale : scale);
    queries->fine_norm[i] = (float)(norm * KGT_UP);
    queries->fine_factor[i] = (float)queries->fine_inverse[i];
    queries->fine_relative[i] = relative((double)q.residual / scale, norm);
}

/* Quantises query i; false if it has no bounds. */
static bool take_query(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                       const float *query, int8_t *codes) {
    const size_t dim = (size_t)factors->dim;
    kgt_quantised q;
    const float largest = queries->bytes->largest(query, dim);
    if (isnan(largest)) return false;
    queries->bytes->quantise(
        query, dim, kgt_code_range(queries->bytes, factors, query, largest, true), codes, &q);
    uint8_t *row = queries->codes + (size_t)i * queries->groups * 4;
    for (size_t k = 0; k < dim; k++) row[k] = (uint8_t)(codes[k] + queries->bytes->query_zero);
    const double scale = q.scale > 0 ? (double)q.scale : 1; /* of a zero vector: any will do */
    const double norm = (double)q.norm / scale * KGT_UP;
    queries->inverse[i] = 1 / (factors->metric == KGT_L2 ? 2 * scale : scale);
    queries->judged_norm[i] = (float)(norm * KGT_UP);
    queries->factor[i] = (float)queries->inverse[i];
    queries->relative[i] = relative((double)q.residual / scale, norm);
    take_fine(queries, factors, i, query, largest, &q);
    queries->chain[i] = kgt_query_norm(factors, kgt_kernel_active(), i);
    return true;
}

/* The same for distances in L1. */
static bool take_l1_query(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                          const float *query) {
    const size_t dim = (size_t)factors->dim;
    const kgt_steps steps = queries->steps;
    kgt_quantised_l1 q, fine;
    if (isnan(queries->bytes->largest(query, dim))) return false;
    queries->bytes->quantise_l1(query, dim, steps.coarse, false,
                                queries->codes + (size_t)i * queries->groups * 4, &q);
    queries->bytes->quantise_l1(query, dim, steps.fine, true,
                                queries->fine + (size_t)i * queries->fine_stride, &fine);
    queries->inverse[i] = 1 / (double)steps.coarse;
    queries->fine_inverse[i] = 1 / (double)steps.fine;
    queries->judged_norm[i] = (float)(queries->inverse[i] * KGT_UP);
    queries->fine_norm[i] = (float)(queries->fine_inverse[i] * KGT_UP);
    queries->factor[i] = (float)queries->inverse[i];
    queries->fine_factor[i] = (float)queries->fine_inverse[i];
    queries->l1_error[i] = kgt_l1_error(q, factors);
    queries->fine_l1_error[i] = kgt_l1_error(fine, factors);
    return true;
}

kgt_status kgt_queries_open(kgt_queries *queries, const kgt_factors *factors, kgt_steps steps) {
    const int64_t n = factors->n_rows;
    const size_t groups = kgt_code_groups(factors);
    const bool l1 = factors->metric == KGT_L1;
    const size_t n_tiles = (size_t)((n + KGT_BYTE_QUERIES - 1) / KGT_BYTE_QUERIES);
    const size_t n_padded = n_tiles * KGT_BYTE_QUERIES + 1; /* never a request for 0 bytes */
    *queries = (kgt_queries){.bytes = kgt_bytes_active(), .steps = steps, .groups = groups, .n = n};
    queries->fine_stride = kgt_fine_stride((size_t)factors->dim);
    int8_t *codes = kgt_allocate(groups, 4);
    float *copy = kgt_allocate((size_t)factors->dim, sizeof(float));
    queries->codes = kgt_allocate(n_padded, groups * 4);
    queries->inverse = calloc(5 * n_padded, sizeof(double));
    queries->judged_norm = calloc(6 * n_padded, sizeof(float));
    queries->bounded = calloc(n_padded, sizeof(bool));
    queries->fine = kgt_allocate(n_padded * queries->fine_stride, sizeof(int16_t));
    if (!codes || !copy || !queries->codes || !queries->inverse || !queries->judged_norm ||
        !queries->bounded || !queries->fine) {
        free(codes);
        free(copy);
        kgt_queries_close(queries);
        return KGT_NO_MEMORY;
    }
    queries->chain = queries->inverse + n_padded;
    queries->fine_inverse = queries->chain + n_padded;
    queries->l1_error = queries->fine_inverse + n_padded;
    queries->fine_l1_error = queries->l1_error + n_padded;
    queries->factor = queries->judged_norm + n_padded;
    queries->fine_norm = queries->factor + n_padded;
    queries->fine_factor = queries->fine_norm + n_padded;
    queries->relative = queries->fine_factor + n_padded;
    queries->fine_relative = queries->relative + n_padded;
    memset(queries->codes, l1 ? KGT_L1_ZERO : queries->bytes->query_zero, n_padded * groups * 4);
    memset(queries->fine, 0, n_padded * queries->fine_stride * sizeof(int16_t));
    for (int64_t i = 0; i < n; i++) {
        const float *query = kgt_in_float(factors, kgt_query(factors, i), copy);
        queries->bounded[i] = l1 ? take_l1_query(queries, factors, i, query)
                                 : take_query(queries, factors, i, query, codes);
    }
    free(codes);
    free(copy);
    return KGT_OK;
}
