/* Converts a vector to 8-bit and 16-bit codes, for every ISA, in plain loops that compilers
 * vectorise. The including file defines FN(op) and FMA1(a, b, c).
 *
 * Codes may be rounded in any way, because the residual is measured. Every sum below has at most
 * dim / LANES + LANES roundings and three more per term, each within 2^-24 of its value. The factor
 * `slack` is more than they can take from a norm. A summand that underflows is far below 2^-50 of
 * the scale. */
#include <math.h>
#include <string.h>

#define LANES 16
/* Norm of 16-bit codes before rounding. Rounding adds less than sqrt(2^16) / 2. */
#define FINE_NORM 45000.0f

/* Sums of a vector's parts, by lane. */
typedef struct {
    float squares[LANES], residuals[LANES], code_squares[LANES];
    int32_t sums[LANES];
} FN(sums);

/* Codes of 8 bits, or of 16 if `fine`. */
KGT_INLINE void FN(code_some)(const float *restrict x, float scale, float inverse, const bool fine,
                              void *restrict codes, FN(sums) *restrict sums) {
    int32_t code[LANES];
    for (size_t k = 0; k < LANES; k++) {
        const float unit = x[k] * inverse;
        const float shifted = unit + 12582912.0f; /* 1.5 * 2^23: its last bits are the code */
        memcpy(code + k, &shifted, sizeof *code);
        code[k] -= 0x4B400000;
        const float rounded = (float)code[k];
        const float left = FMA1(-scale, rounded, x[k]) * inverse;
        sums->squares[k] += unit * unit;
        sums->residuals[k] += left * left;
        sums->code_squares[k] += rounded * rounded;
        sums->sums[k] += code[k];
    }
    for (size_t k = 0; k < LANES; k++) {
        if (fine)
            ((int16_t *)codes)[k] = (int16_t)code[k];
        else
            ((int8_t *)codes)[k] = (int8_t)code[k];
    }
}

KGT_INLINE void FN(code_all)(const float *x, size_t dim, float scale, float inverse,
                             const bool fine, void *codes, kgt_quantised *out) {
    const size_t size = fine ? sizeof(int16_t) : sizeof(int8_t);
    FN(sums) sums = {{0}, {0}, {0}, {0}};
    size_t start = 0;
    for (; start + LANES <= dim; start += LANES)
        FN(code_some)(x + start, scale, inverse, fine, (char *)codes + start * size, &sums);
    if (start < dim) {
        float rest[LANES] = {0};
        int16_t rest_codes[LANES];
        memcpy(rest, x + start, (dim - start) * sizeof *x);
        FN(code_some)(rest, scale, inverse, fine, rest_codes, &sums);
        memcpy((char *)codes + start * size, rest_codes, (dim - start) * size);
    }
    double square = 0, residual = 0, code_square = 0;
    out->sum = 0;
    for (size_t k = 0; k < LANES; k++) {
        square += (double)sums.squares[k];
        residual += (double)sums.residuals[k];
        code_square += (double)sums.code_squares[k];
        out->sum += sums.sums[k];
    }
    /* Conversion to float rounds to nearest; `slack` covers this too. */
    const double slack = (double)scale * (1 + (double)(dim + 64) * 0x1p-24);
    out->scale = scale;
    out->norm = (float)(slack * (sqrt(square) + 0x1p-50));
    out->code_norm = (float)(slack * sqrt(code_square));
    out->residual = (float)(slack * (sqrt(residual) + 0x1p-50));
}

static float FN(largest)(const float *x, size_t dim) {
    uint32_t largest_bits = 0;
    for (size_t k = 0; k < dim; k++) {
        uint32_t bits;
        memcpy(&bits, x + k, sizeof bits);
        bits &= 0x7FFFFFFFu;
        largest_bits = bits > largest_bits ? bits : largest_bits;
    }
    float largest;
    memcpy(&largest, &largest_bits, sizeof largest);
    const bool bounded = largest <= 0x1p32f && (largest == 0 || largest >= 0x1p-32f);
    return bounded ? largest : NAN;
}

static void FN(quantise)(const float *x, size_t dim, float largest, int8_t *codes,
                         kgt_quantised *out) {
    FN(code_all)(x, dim, largest / 127.0f, largest != 0 ? 127.0f / largest : 0.0f, false, codes,
                 out);
}

/* Makes codes as large as the limits of their norm and of int16 allow. */
static void FN(quantise_fine)(const float *x, size_t dim, float largest,
                              const kgt_quantised *coarse, int16_t *codes, kgt_quantised *out) {
    const float by_norm = coarse->norm / FINE_NORM, by_largest = largest / (127.0f * 256);
    const float scale = by_norm > by_largest ? by_norm : by_largest;
    FN(code_all)(x, dim, scale, scale > 0 ? 1 / scale : 0.0f, true, codes, out);
}

#undef FINE_NORM
#undef LANES
