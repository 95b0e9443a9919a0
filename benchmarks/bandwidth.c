/* Streaming reads, to know how fast this machine can look at every byte of an array once.
 *
 * Float sums may not be reordered by the compiler, so the ones that shall become vector code say
 * themselves which partial sums they keep. Integer sums are reordered freely. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

float read_plain(const void *bytes, size_t n_bytes) {
    const float *x = bytes;
    float sum = 0;
    for (size_t i = 0; i < n_bytes / sizeof *x; i++) sum += x[i];
    return sum;
}

float read_words(const void *bytes, size_t n_bytes) {
    const uint64_t *x = bytes;
    uint64_t sum = 0;
    for (size_t i = 0; i < n_bytes / sizeof *x; i++) sum += x[i];
    return (float)sum;
}

#define READ_LANES(LANES)                                                    \
    float read_lanes_##LANES(const void *bytes, size_t n_bytes) {            \
        const float *x = bytes;                                              \
        float lanes[LANES] = {0}, sum = 0;                                   \
        const size_t n = n_bytes / sizeof *x / LANES;                        \
        for (size_t i = 0; i < n; i++)                                       \
            for (size_t j = 0; j < LANES; j++) lanes[j] += x[i * LANES + j]; \
        for (size_t j = 0; j < LANES; j++) sum += lanes[j];                  \
        return sum;                                                          \
    }

READ_LANES(16)
READ_LANES(32)
READ_LANES(64)
READ_LANES(128)
