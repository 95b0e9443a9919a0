/* Converts a vector to 8-bit or 16-bit codes for distances in L1, for every ISA, in plain loops
 * that compilers vectorise. The including file defines FN(op) and FMA1(a, b, c).
 *
 * As in isa_quantise_body.h, codes may be rounded in any way, and clipped, because the residual is
 * measured. A value's remainder has one rounding (step * code is a multiple of 2^-63 then, so
 * nothing underflows), and a sum has at most dim / LANES + LANES. `slack` is more than these and
 * the last rounding, to float. */
#include <math.h>
#include <string.h>

#define LANES 16

/* Sums of a vector's parts, by lane. */
typedef struct {
    float norms[LANES], residuals[LANES];
} FN(sums_l1);

KGT_INLINE void FN(code_some_l1)(const float *restrict x, float step, float inverse,
                                 const bool fine, void *restrict codes,
                                 FN(sums_l1) *restrict sums) {
    const float most = fine ? KGT_L1_MOST_FINE : KGT_L1_MOST;
    int32_t code[LANES];
    for (size_t k = 0; k < LANES; k++) {
        float unit = x[k] * inverse;
        unit = unit > most ? most : unit;
        unit = unit < -most ? -most : unit;
        const float shifted = unit + 12582912.0f; /* 1.5 * 2^23: its last bits are the code */
        memcpy(code + k, &shifted, sizeof *code);
        code[k] -= 0x4B400000;
        sums->norms[k] += fabsf(x[k]);
        sums->residuals[k] += fabsf(FMA1(-step, (float)code[k], x[k]));
    }
    for (size_t k = 0; k < LANES; k++) {
        if (fine)
            ((int16_t *)codes)[k] = (int16_t)code[k];
        else
            ((uint8_t *)codes)[k] = (uint8_t)(code[k] + KGT_L1_ZERO);
    }
}

static void FN(quantise_l1)(const float *x, size_t dim, float step, bool fine, void *codes,
                            kgt_quantised_l1 *out) {
    const size_t size = fine ? sizeof(int16_t) : sizeof(int8_t);
    const float inverse = 1 / step;
    FN(sums_l1) sums = {{0}, {0}};
    size_t start = 0;
    for (; start + LANES <= dim; start += LANES) {
        void *place = (char *)codes + start * size;
        if (fine)
            FN(code_some_l1)(x + start, step, inverse, true, place, &sums);
        else
            FN(code_some_l1)(x + start, step, inverse, false, place, &sums);
    }
    if (start < dim) {
        float rest[LANES] = {0};
        int16_t rest_codes[LANES];
        memcpy(rest, x + start, (dim - start) * sizeof *x);
        FN(code_some_l1)(rest, step, inverse, fine, rest_codes, &sums);
        memcpy((char *)codes + start * size, rest_codes, (dim - start) * size);
    }
    double norm = 0, residual = 0;
    for (size_t k = 0; k < LANES; k++) {
        norm += (double)sums.norms[k];
        residual += (double)sums.residuals[k];
    }
    const double slack = 1 + (double)(dim + 64) * 0x1p-24;
    out->norm = (float)(slack * norm);
    out->residual = (float)(slack * residual);
}

#undef LANES
