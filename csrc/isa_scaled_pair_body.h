/* The chains of HAKE and ModE for one pair of vectors, the same on every path.
 *
 * The including file defines T, FN(op), FMA1(a, b, c), ABS1(a) and SQRT1(a). A fused sum with 0 is
 * a rounded product, here as in the vectors' tiles. */

static T FN(pair_mode)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = 0; k < dim; k++) sum += ABS1(a[k] - FMA1(a[dim + k], b[k], 0));
    return sum;
}

static T FN(pair_hake)(const T *a, const T *b, size_t dim) {
    const size_t n = dim / 3;
    const T *products = a + 2 * n, *factors = a + 3 * n, *weights = a + 4 * n;
    T phases = 0, squares = 0;
    for (size_t k = 0; k < n; k++)
        phases += ABS1(FMA1(a[n + k], b[k], 0) - FMA1(a[k], b[n + k], 0));
    for (size_t k = 0; k < n; k++) {
        const T away = products[k] - FMA1(factors[k], b[2 * n + k], 0);
        squares = FMA1(away, away, squares);
    }
    return FMA1(weights[0], phases, FMA1(weights[1], SQRT1(squares), 0));
}
