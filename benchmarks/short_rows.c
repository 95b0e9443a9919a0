/* What ranking rows of a few candidates comes to, if nothing but the counting is done: the least
 * that K9 can be held against. */
#include <stddef.h>
#include <stdint.h>

/* Per row one answer and its score; known and removed are offsets and ids of a row each. Six counts
 * a row: greater, equal and tied ahead among what `known` leaves, then among what `removed` does. */
void count_short_rows(const float *scores, int64_t n_rows, int64_t n, const int32_t *answer,
                      const int64_t *known_offsets, const int32_t *known,
                      const int64_t *removed_offsets, const int32_t *removed, int64_t *out) {
    for (int64_t row = 0; row < n_rows; row++) {
        const float *x = scores + row * n;
        const int32_t own = answer[row];
        const float t = x[own];
        int32_t greater = 0, equal = 0, ahead = 0;
        for (int32_t j = 0; j < n; j++) {
            greater += x[j] > t;
            equal += x[j] == t;
            ahead += x[j] == t && j > own;
        }
        equal--; /* itself */
        const int64_t *const offsets[2] = {known_offsets, removed_offsets};
        const int32_t *const ids[2] = {known, removed};
        for (int filter = 0; filter < 2; filter++) {
            int32_t counts[3] = {greater, equal, ahead};
            for (int64_t k = offsets[filter][row]; k < offsets[filter][row + 1]; k++) {
                const int32_t id = ids[filter][k];
                counts[0] -= x[id] > t;
                counts[1] -= x[id] == t && id != own;
                counts[2] -= x[id] == t && id > own;
            }
            for (int i = 0; i < 3; i++) out[6 * row + 3 * filter + i] = counts[i];
        }
    }
}
