/* A vector to codes of 8 bits, for every ISA: plain loops that compilers turn into vectors. The
 * including file defines FN(op) and FMA1(a, b, c).
 *
 * Codes may be rounded in any way: what is promised is the residual, and that is measured. Every
 * sum below has at most dim / LANES + LANES roundings and three more a term, each within 2^-24 of
 * its value; the factor `slack` is above what they can take away from a norm, and the smallest
 * summand that underflows is far below 2^-50 of the scale. */
#include <math.h>
#include <string.h>

#define LANES 16

/* Sums of a vector's parts, by lane. */
typedef struct {
    float squares[LANES], residuals[LANES];
    int32_t code_squares[LANES], sums[LANES];
} FN(sums);

KGT_INLINE void FN(quantise_some)(const float *restrict x, float scale, float inverse,
                                  int8_t *restrict codes, FN(sums) *restrict sums) {
    int32_t code[LANES];
    for (size_t k = 0; k < LANES; k++) {
        const float unit = x[k] * inverse;
        const float shifted = unit + 12582912.0f; /* 1.5 * 2^23: its last bits are the code */
        memcpy(code + k, &shifted, sizeof *code);
        code[k] -= 0x4B400000;
        const float left = FMA1(-scale, (float)code[k], x[k]) * inverse;
        sums->squares[k] += unit * unit;
        sums->residuals[k] += left * left;
        sums->code_squares[k] += code[k] * code[k];
        sums->sums[k] += code[k];
    }
    for (size_t k = 0; k < LANES; k++) codes[k] = (int8_t)code[k];
}

static bool FN(quantise)(const float *x, size_t dim, int8_t *codes, kgt_quantised *out) {
    uint32_t largest_bits = 0;
    for (size_t k = 0; k < dim; k++) {
        uint32_t bits;
        memcpy(&bits, x + k, sizeof bits);
        bits &= 0x7FFFFFFFu;
        largest_bits = bits > largest_bits ? bits : largest_bits;
    }
    float largest;
    memcpy(&largest, &largest_bits, sizeof largest);
    if (!(largest <= 0x1p32f) || (largest != 0 && largest < 0x1p-32f)) return false;
    const float scale = largest / 127.0f, inverse = largest != 0 ? 127.0f / largest : 0.0f;
    FN(sums) sums = {{0}, {0}, {0}, {0}};
    size_t start = 0;
    for (; start + LANES <= dim; start += LANES)
        FN(quantise_some)(x + start, scale, inverse, codes + start, &sums);
    if (start < dim) {
        float rest[LANES] = {0};
        int8_t rest_codes[LANES];
        memcpy(rest, x + start, (dim - start) * sizeof *x);
        FN(quantise_some)(rest, scale, inverse, rest_codes, &sums);
        memcpy(codes + start, rest_codes, dim - start);
    }
    double square = 0, residual = 0, code_square = 0;
    out->sum = 0;
    for (size_t k = 0; k < LANES; k++) {
        square += (double)sums.squares[k];
        residual += (double)sums.residuals[k];
        code_square += (double)sums.code_squares[k];
        out->sum += sums.sums[k];
    }
    /* To float by the nearest, which `slack` covers too. */
    const double slack = (double)scale * (1 + (double)(dim + 64) * 0x1p-24);
    out->scale = scale;
    out->norm = (float)(slack * (sqrt(square) + 0x1p-50));
    out->code_norm = (float)(slack * sqrt(code_square));
    out->residual = (float)(slack * (sqrt(residual) + 0x1p-50));
    return true;
}

#undef LANES
