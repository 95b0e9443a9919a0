/* The reference of Q3: distances of complex vectors, pair by pair, in one thread. */
#include <math.h>
#include <stddef.h>

/* A distance sums sqrt(re * re + im * im) of the differences; real parts come first in a vector.
 * out: the distances of one query. */
void sum_moduli(const float *queries, size_t n_queries, const float *entities, size_t n_entities,
                size_t dim, float *out) {
    for (size_t i = 0; i < n_queries; i++)
        for (size_t j = 0; j < n_entities; j++) {
            const float *q = queries + i * 2 * dim, *x = entities + j * 2 * dim;
            float sum = 0;
            for (size_t k = 0; k < dim; k++) {
                const float re = q[k] - x[k], im = q[dim + k] - x[dim + k];
                sum += sqrtf(re * re + im * im);
            }
            out[j] = sum;
        }
}
