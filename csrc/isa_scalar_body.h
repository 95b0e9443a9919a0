/* Plain C kernels for element type T; see isa_kernel.h for what each one computes. */

static bool FN(count)(const T *x, size_t n, const T *t, size_t m, int64_t *greater,
                      int64_t *at_least, T *maxima) {
    int nan = 0;
    for (size_t i = 0; i < n; i++) nan |= x[i] != x[i];
    for (size_t j = 0; j < m; j++) {
        const T threshold = t[j];
        int32_t gt = 0, ge = 0;
        for (size_t i = 0; i < n; i++) {
            gt += x[i] > threshold;
            ge += x[i] >= threshold;
        }
        greater[j] += gt;
        at_least[j] += ge;
    }
    for (size_t group = 0; maxima != NULL && group < KGT_MAXIMA(n); group++) {
        maxima[group] = -INFINITY;
        for (size_t i = group * KGT_GROUP; i < n && i < (group + 1) * KGT_GROUP; i++)
            maxima[group] = x[i] > maxima[group] ? x[i] : maxima[group];
    }
    return nan != 0;
}

static size_t FN(select)(const T *x, size_t n, const T *maxima, T t, int32_t *out) {
    size_t n_out = 0;
    for (size_t group = 0; group * KGT_GROUP < n; group++) {
        if (maxima[group] < t) continue;
        for (size_t i = group * KGT_GROUP; i < n && i < (group + 1) * KGT_GROUP; i++) {
            out[n_out] = (int32_t)i;
            n_out += x[i] >= t;
        }
    }
    return n_out;
}

static size_t FN(fold)(const T *x, size_t n, size_t group, T *out) {
    size_t folded = 0;
    for (size_t i = 0; i < n; i += group * KGT_FOLD) {
        for (size_t lane = 0; lane < KGT_FOLD; lane++) out[folded + lane] = -INFINITY;
        const size_t end = n - i < group * KGT_FOLD ? n : i + group * KGT_FOLD;
        for (size_t j = i; j < end; j++) {
            T *best = out + folded + (j - i) % KGT_FOLD;
            *best = x[j] > *best ? x[j] : *best;
        }
        folded += KGT_FOLD;
    }
    return folded;
}

static void FN(transpose)(const T *x, ptrdiff_t stride, size_t rows, size_t n, T *out,
                          size_t out_stride) {
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < rows; i++)
            out[i * out_stride + j] = x[(ptrdiff_t)j * stride + (ptrdiff_t)i];
}

static T FN(pair)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = 0; k < dim; k++) sum = FMA1(a[k], b[k], sum);
    return sum;
}

static void FN(tile)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i++) {
        T *row = out + i * out_stride;
        for (size_t j = 0; j < KGT_PANEL; j++) row[j] = 0;
        for (size_t k = 0; k < dim; k++)
            for (size_t j = 0; j < KGT_PANEL; j++)
                row[j] = FMA1(queries[i * dim + k], panel[k * KGT_PANEL + j], row[j]);
    }
}

static void FN(norms)(const T *panel, size_t dim, T *out) {
    for (size_t j = 0; j < KGT_PANEL; j++) {
        out[j] = 0;
        for (size_t k = 0; k < dim; k++)
            out[j] = FMA1(panel[k * KGT_PANEL + j], panel[k * KGT_PANEL + j], out[j]);
    }
}

static T FN(pair_l1)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = 0; k < dim; k++) sum += ABS1(a[k] - b[k]);
    return sum;
}

static void FN(tile_l1)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i++) {
        T *row = out + i * out_stride;
        for (size_t j = 0; j < KGT_PANEL; j++) row[j] = 0;
        for (size_t k = 0; k < dim; k++)
            for (size_t j = 0; j < KGT_PANEL; j++)
                row[j] += ABS1(queries[i * dim + k] - panel[k * KGT_PANEL + j]);
    }
}

static T FN(pair_moduli)(const T *a, const T *b, size_t dim) {
    const size_t half = dim / 2;
    T sum = 0;
    for (size_t k = 0; k < half; k++) {
        const T re = a[k] - b[k], im = a[half + k] - b[half + k];
        sum += SQRT1(FMA1(re, re, im * im));
    }
    return sum;
}

static void FN(tile_moduli)(const T *queries, const T *panel, size_t dim, T *out,
                            size_t out_stride) {
    const size_t half = dim / 2;
    for (size_t i = 0; i < KGT_STRIP; i++) {
        T *row = out + i * out_stride;
        const T *query = queries + i * dim;
        for (size_t j = 0; j < KGT_PANEL; j++) row[j] = 0;
        for (size_t k = 0; k < half; k++)
            for (size_t j = 0; j < KGT_PANEL; j++) {
                const T re = query[k] - panel[k * KGT_PANEL + j];
                const T im = query[half + k] - panel[(half + k) * KGT_PANEL + j];
                row[j] += SQRT1(FMA1(re, re, im * im));
            }
    }
}

#include "isa_scaled_pair_body.h"

static void FN(tile_mode)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i++) {
        T *row = out + i * out_stride;
        const T *query = queries + i * 2 * dim;
        for (size_t j = 0; j < KGT_PANEL; j++) row[j] = 0;
        for (size_t k = 0; k < dim; k++)
            for (size_t j = 0; j < KGT_PANEL; j++)
                row[j] += ABS1(query[k] - FMA1(query[dim + k], panel[k * KGT_PANEL + j], 0));
    }
}

static void FN(tile_hake)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    const size_t n = dim / 3;
    for (size_t i = 0; i < KGT_STRIP; i++) {
        T *row = out + i * out_stride, squares[KGT_PANEL] = {0};
        const T *query = queries + i * (4 * n + 2), *products = query + 2 * n;
        const T *weights = query + 4 * n, *cosines = panel, *sines = panel + n * KGT_PANEL;
        const T *moduli = panel + 2 * n * KGT_PANEL;
        for (size_t j = 0; j < KGT_PANEL; j++) row[j] = 0;
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < KGT_PANEL; j++) {
                const size_t at = k * KGT_PANEL + j;
                row[j] += ABS1(FMA1(query[n + k], cosines[at], 0) - FMA1(query[k], sines[at], 0));
                const T away = products[k] - FMA1(products[n + k], moduli[at], 0);
                squares[j] = FMA1(away, away, squares[j]);
            }
        for (size_t j = 0; j < KGT_PANEL; j++)
            row[j] = FMA1(weights[0], row[j], FMA1(weights[1], SQRT1(squares[j]), 0));
    }
}
