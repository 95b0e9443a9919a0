/* The second level of bounds, with 16-bit codes, for every vector ISA: from products (FN(refine))
 * and from distances (FN(refine_l1)).
 *
 * The including file defines FN(op), FMA1(a, b, c), FINE, a vector of int32, FINE_LANES, how many
 * codes a step takes, FINE_ZERO, FINE_STEP(sum, p, q), which adds the products of FINE_LANES codes
 * at p and q to lanes of sum, FINE_STEP_L1(sum, p, q, w), which adds |p - q| w there, and
 * FINE_SUM4(out, v), the sums of four vectors. With FOUR_BOUNDS, isa_four_body.h has already
 * defined FN(four_bounds). */

/* Weights of the codes of a row: 0 for the figures at its end. */
static const int16_t FN(weights)[2 * KGT_FINE_LANES] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Multiplies four rows at once: their sums are independent, and the query is loaded only once. */
KGT_INLINE void FN(four_products)(const int16_t *query, const int16_t *const rows[4], size_t stride,
                                  int32_t *out) {
    FINE sum[4];
    KGT_UNROLL
    for (int i = 0; i < 4; i++) sum[i] = FINE_ZERO;
    for (size_t k = 0; k < stride; k += FINE_LANES) {
        KGT_UNROLL
        for (int i = 0; i < 4; i++) FINE_STEP(sum[i], query + k, rows[i] + k);
    }
    FINE_SUM4(out, sum);
}

KGT_INLINE void FN(four_distances)(const int16_t *query, const int16_t *const rows[4],
                                   size_t stride, int32_t *out) {
    FINE sum[4];
    KGT_UNROLL
    for (int i = 0; i < 4; i++) sum[i] = FINE_ZERO;
    for (size_t k = 0; k < stride; k += FINE_LANES) {
        const size_t left = stride - k;
        const int16_t *weights =
            FN(weights) + (left < 2 * KGT_FINE_LANES ? 2 * KGT_FINE_LANES - left : 0);
        KGT_UNROLL
        for (int i = 0; i < 4; i++) FINE_STEP_L1(sum[i], query + k, rows[i] + k, weights);
    }
    FINE_SUM4(out, sum);
}

#ifndef FOUR_BOUNDS
/* One bit per row with these figures and products: set if its lower bound is above `above`.
 * *reaching: the same for an upper bound that reaches `below`. */
KGT_INLINE unsigned FN(four_bounds)(const int16_t *const figures[4], const int32_t *products,
                                    float norm, float relative, float factor, float above,
                                    float below, unsigned *reaching) {
    unsigned greater = 0;
    *reaching = 0;
    for (int j = 0; j < 4; j++) {
        kgt_figures x;
        memcpy(&x, figures[j], sizeof x);
        const float value = FMA1(x.offset, factor, (float)products[j] * x.scale);
        const float error = FMA1(relative, x.code_norm, x.base);
        greater |= (unsigned)(FMA1(-norm, error, value) > above) << j;
        *reaching |= (unsigned)(FMA1(norm, error, value) >= below) << j;
    }
    return greater;
}
#endif

/* Rows of the next places are prefetched, because they are scattered in memory. */
#define AHEAD 8
KGT_INLINE void FN(fetch_row)(const int16_t *row, size_t stride) {
    for (size_t k = 0; k < stride; k += 32) KGT_PREFETCH(row + k);
}

KGT_INLINE size_t FN(refine_some)(const bool l1, const int16_t *query, const int16_t *table,
                                  size_t stride, float norm, float relative, float factor,
                                  float above, float below, uint16_t *places, size_t n,
                                  uint64_t *sure) {
    size_t n_close = 0;
    for (size_t i = 0; i < n && i < AHEAD; i++) FN(fetch_row)(table + places[i] * stride, stride);
    for (size_t i = 0; i < n; i += 4) {
        for (size_t j = i + AHEAD; j < i + AHEAD + 4 && j < n; j++)
            FN(fetch_row)(table + places[j] * stride, stride);
        const unsigned valid = n - i < 4 ? (1u << (n - i)) - 1 : 15;
        const int16_t *rows[4], *figures[4];
        size_t some[4];
        int32_t products[4];
        for (size_t j = 0; j < 4; j++) {
            some[j] = places[valid >> j & 1 ? i + j : i];
            rows[j] = table + some[j] * stride;
            figures[j] = rows[j] + stride - KGT_FINE_FIGURES;
        }
        if (l1)
            FN(four_distances)(query, rows, stride, products);
        else
            FN(four_products)(query, rows, stride, products);
        for (int j = 0; l1 && j < 4; j++) products[j] = -products[j];
        unsigned reaching;
        const unsigned greater =
            FN(four_bounds)(figures, products, norm, relative, factor, above, below, &reaching);
        const unsigned close = valid & reaching & ~greater;
        for (size_t j = 0; j < 4; j++) { /* no branch: it could not be predicted */
            sure[some[j] / 64] |= (uint64_t)(greater >> j & 1) << some[j] % 64;
            places[n_close] = (uint16_t)some[j];
            n_close += close >> j & 1;
        }
    }
    return n_close;
}

static size_t FN(refine)(const int16_t *query, const int16_t *table, size_t stride, float norm,
                         float relative, float factor, float above, float below, uint16_t *places,
                         size_t n, uint64_t *sure) {
    return FN(refine_some)(false, query, table, stride, norm, relative, factor, above, below,
                           places, n, sure);
}

static size_t FN(refine_l1)(const int16_t *query, const int16_t *table, size_t stride, float norm,
                            float relative, float factor, float above, float below,
                            uint16_t *places, size_t n, uint64_t *sure) {
    return FN(refine_some)(true, query, table, stride, norm, relative, factor, above, below, places,
                           n, sure);
}

#undef AHEAD
