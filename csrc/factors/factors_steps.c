/* Chooses the step of codes for L1, one for all vectors of a call. Distances of codes bound those
 * of the vectors (factors_bounds.h). */
#include "factors_steps.h"

#include <math.h>
#include <stdlib.h>

/* Vectors sampled to choose a step, each padded to whole cache lines. */
#define ENTITIES 32
#define QUERIES 16
#define LANES 16
/* Number and ratio of the steps tried: a third of a power of two apart. The first clips nothing. */
#define STEPS 14
#define STEPS_RATIO 0.7937f
/* Codes are poor if they lose more than this part of the sum of magnitudes. */
#define MOST_LEFT (1.0 / 16)
/* 16-bit codes can represent values so many times larger than those of the sample. */
#define SPARE 2

/* Appends the magnitudes of a vector's values to the sample, unless some have no bounds. */
static void sample(const float *x, size_t dim, size_t stride, float *out, size_t *n) {
    bool bounded = true;
    float *magnitudes = out + *n * stride;
    memset(magnitudes, 0, stride * sizeof *out);
    for (size_t k = 0; k < dim; k++) {
        magnitudes[k] = fabsf(x[k]);
        bounded &= magnitudes[k] <= 0x1p32f;
    }
    *n += bounded;
}

/* The expected loss of a vector's 8-bit codes with this step: a quarter of a step per value, and
 * the clipped parts. */
static double left_of(const float *magnitudes, size_t stride, size_t dim, float step) {
    const float most = KGT_L1_MOST * step;
    float sums[LANES] = {0}, sum = 0;
    for (size_t start = 0; start < stride; start += LANES)
        for (size_t k = 0; k < LANES; k++) {
            const float beyond = magnitudes[start + k] - most;
            sums[k] += beyond > 0 ? beyond : 0;
        }
    for (size_t k = 0; k < LANES; k++) sum += sums[k];
    return (double)sum + (double)dim * (double)step / 4;
}

/* The step with the least sum of squared losses. Squares, because one large loss leaves more pairs
 * open than many small ones. */
static float best_step(const float *magnitudes, size_t n, size_t stride, size_t dim,
                       float largest) {
    float step = largest / KGT_L1_MOST, best = step;
    double least = INFINITY;
    for (int i = 0; i < STEPS; i++, step *= STEPS_RATIO) {
        double squares = 0;
        for (size_t j = 0; j < n; j++) {
            const double left = left_of(magnitudes + j * stride, stride, dim, step);
            squares += left * left;
        }
        if (squares >= least) continue;
        least = squares;
        best = step;
    }
    return best;
}

static bool is_poor(const float *magnitudes, size_t n, size_t stride, size_t dim, float step) {
    double left = 0, sum = 0;
    for (size_t j = 0; j < n; j++) left += left_of(magnitudes + j * stride, stride, dim, step);
    for (size_t k = 0; k < n * stride; k++) sum += (double)magnitudes[k];
    return left > sum * MOST_LEFT;
}

static float at_least(float step) { return step > KGT_L1_SMALLEST ? step : KGT_L1_SMALLEST; }

kgt_status kgt_steps_choose(const kgt_factors *factors, kgt_steps *steps) {
    const size_t dim = (size_t)factors->dim, stride = (dim + LANES - 1) / LANES * LANES;
    const size_t n_magnitudes = (ENTITIES + QUERIES) * stride;
    float *magnitudes = kgt_allocate(n_magnitudes + stride, sizeof(float)), largest = 0;
    void *spare = kgt_allocate(2, kgt_vector_bytes(factors));
    if (magnitudes == NULL || spare == NULL) {
        free(magnitudes);
        free(spare);
        return KGT_NO_MEMORY;
    }
    float *copy = magnitudes + n_magnitudes;
    size_t n = 0;
    for (int64_t i = 0; i < ENTITIES && i < factors->n_entities; i++) {
        const int64_t place = i * factors->n_entities / ENTITIES;
        const void *entity = kgt_entity(kgt_kernel_active(), factors, place, spare);
        sample(kgt_in_float(factors, entity, copy), dim, stride, magnitudes, &n);
    }
    for (int64_t i = 0; i < QUERIES && i < factors->n_rows; i++) {
        const void *query = kgt_query(factors, i * factors->n_rows / QUERIES);
        sample(kgt_in_float(factors, query, copy), dim, stride, magnitudes, &n);
    }
    for (size_t k = 0; k < n * stride; k++)
        largest = magnitudes[k] > largest ? magnitudes[k] : largest;
    steps->coarse = at_least(best_step(magnitudes, n, stride, dim, largest));
    steps->poor = is_poor(magnitudes, n, stride, dim, steps->coarse);
    steps->fine = at_least(largest * SPARE / KGT_L1_MOST_FINE);
    free(magnitudes);
    free(spare);
    return KGT_OK;
}
