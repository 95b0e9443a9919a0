/* Queries as 8-bit and 16-bit codes. Internal to the factors family. */
#ifndef KGT_FACTORS_QUERIES_H
#define KGT_FACTORS_QUERIES_H

#include "factors_steps.h"

/* The queries of a call, in tiles of KGT_BYTE_QUERIES. */
typedef struct {
    const kgt_bytes *bytes;
    kgt_steps steps;
    size_t groups;
    int64_t n;
    uint8_t *codes;                   /* row after row, in the layout of product */
    double *inverse;                  /* 1 / (m s) */
    double *chain;                    /* Q */
    double *l1_error, *fine_l1_error; /* |q - q'| + g' |q| under L1, else 0 */
    float *judged_norm, *factor;
    float *relative; /* k */
    bool *bounded;
    int16_t *fine; /* second level: codes, 1 / (m s), |q| / s, 1 / (m s) and k */
    size_t fine_stride;
    double *fine_inverse;
    float *fine_norm, *fine_factor, *fine_relative;
} kgt_queries;

/* `steps` must be those of the blocks. */
kgt_status kgt_queries_open(kgt_queries *queries, const kgt_factors *factors, kgt_steps steps);
void kgt_queries_close(kgt_queries *queries);

#endif
