/* Computes the scores of the answers of a factorised model's questions, before ranking. */
#include <stdlib.h>

#include "factors_vectors.h"
#include "isa_bytes.h"
#include "rank_row.h"

/* Pairs of vectors whose chains run side by side. */
#define TOGETHER 64

typedef struct {
    const void *queries[TOGETHER], *entities[TOGETHER];
    int64_t table_row[TOGETHER], place[TOGETHER]; /* of the entity; among the scores */
    size_t n;
    char *copies; /* converted entities, two vectors each */
} answers;

static float (*pair_of_f32(const kgt_kernel *kernel, kgt_metric metric))(const float *,
                                                                         const float *, size_t) {
    if (metric == KGT_MODULI) return kernel->f32.pair_moduli;
    if (metric == KGT_MODE) return kernel->f32.pair_mode;
    if (metric == KGT_HAKE) return kernel->f32.pair_hake;
    return metric == KGT_L1 ? kernel->f32.pair_l1 : kernel->f32.pair;
}

static double (*pair_of_f64(const kgt_kernel *kernel, kgt_metric metric))(const double *,
                                                                          const double *, size_t) {
    if (metric == KGT_MODULI) return kernel->f64.pair_moduli;
    if (metric == KGT_MODE) return kernel->f64.pair_mode;
    if (metric == KGT_HAKE) return kernel->f64.pair_hake;
    return metric == KGT_L1 ? kernel->f64.pair_l1 : kernel->f64.pair;
}

/* The sums over dimensions of n pairs of vectors, by the chain of a metric. */
static void chains(const kgt_factors *factors, kgt_metric metric, const void *const *a,
                   const void *const *b, size_t n, double *out) {
    const kgt_kernel *kernel = kgt_kernel_active();
    const kgt_bytes *bytes = kgt_bytes_active();
    const size_t dim = (size_t)factors->dim;
    const bool in_double = kgt_in_double(factors);
    if (bytes != NULL && kgt_has_bounds(metric)) {
        const kgt_sums *sums = metric == KGT_L1 ? &bytes->l1 : &bytes->dot;
        (in_double ? sums->pairs_f64 : sums->pairs_f32)(a, b, n, dim, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (in_double)
            out[i] = pair_of_f64(kernel, metric)(a[i], b[i], dim);
        else
            out[i] = (double)pair_of_f32(kernel, metric)(a[i], b[i], dim);
    }
}

static void score(const kgt_factors *factors, answers *some, double *out) {
    double sums[TOGETHER], query_norms[TOGETHER] = {0}, norms[TOGETHER] = {0};
    const size_t n = some->n;
    chains(factors, factors->metric, some->queries, some->entities, n, sums);
    if (factors->metric == KGT_L2) {
        chains(factors, KGT_DOT, some->queries, some->queries, n, query_norms);
        chains(factors, KGT_DOT, some->entities, some->entities, n, norms);
    }
    for (size_t i = 0; i < n; i++)
        out[some->place[i]] = kgt_score(factors, sums[i], query_norms[i], norms[i],
                                        kgt_table_bias(factors, some->table_row[i]));
    some->n = 0;
}

static void add(const kgt_factors *factors, answers *some, int64_t row, int64_t table_row,
                int64_t place) {
    char *copy = some->copies + some->n * 2 * kgt_vector_bytes(factors);
    some->queries[some->n] = kgt_query(factors, row);
    some->entities[some->n] = kgt_table_vector(kgt_kernel_active(), factors, table_row, copy);
    some->table_row[some->n] = table_row;
    some->place[some->n++] = place;
}

kgt_status kgt_factor_target_scores(const kgt_factors *factors, const kgt_task *task,
                                    int64_t first_row, double *out) {
    if (factors->dtype != KGT_F32 && factors->dtype != KGT_F64) return KGT_BAD_DTYPE;
    answers some = {.copies = kgt_allocate(TOGETHER * 2, kgt_vector_bytes(factors) + 1)};
    if (some.copies == NULL) return KGT_NO_MEMORY;
    for (int64_t i = 0; i < factors->n_rows; i++) {
        const kgt_span targets = kgt_span_of(task->targets, first_row + i);
        const int64_t first = task->targets.offsets[first_row + i];
        for (int64_t j = 0; j < targets.n; j++) {
            const int64_t entity = targets.ids[j] - factors->first_entity;
            if (factors->ids == NULL && (entity < 0 || entity >= factors->n_entities)) continue;
            add(factors, &some, i, entity, first + j);
            if (some.n == TOGETHER) score(factors, &some, out);
        }
    }
    score(factors, &some, out);
    free(some.copies);
    return KGT_OK;
}
