/* Queries as vectors of 8 and of 16 bits: internal to the factors family. */
#ifndef KGT_FACTORS_QUERIES_H
#define KGT_FACTORS_QUERIES_H

#include "factors_steps.h"

/* The queries of a call, in tiles of KGT_BYTE_QUERIES. */
typedef struct {
    const kgt_bytes *bytes;
    kgt_steps steps;
    size_t groups;
    int64_t n;
    uint8_t *codes;         /* row after row, as product takes them */
    double *inverse;        /* 1 / (m s) */
    double *chain;          /* Q */
    double *own, *fine_own; /* |q - q'| + g' |q| under L1, else 0 */
    float *judged_norm, *factor;
    float *relative; /* k */
    bool *bounded;
    int16_t *fine; /* the second level: codes, 1 / (m s), |q| / s, 1 / (m s) and k */
    size_t fine_stride;
    double *fine_inverse;
    float *fine_norm, *fine_factor, *fine_relative;
} kgt_queries;

/* Of the same steps as the blocks. */
kgt_status kgt_queries_open(kgt_queries *queries, const kgt_factors *factors, kgt_steps steps);
void kgt_queries_close(kgt_queries *queries);

#endif
