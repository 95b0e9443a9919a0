/* Tiles of distances whose entities the query scales, for every vector ISA and element type: ModE
 * and HAKE. Macros as for isa_tile_body.h.
 *
 * Every sum is a chain in ascending k, so a score does not depend on its tile and equals
 * FN(pair_mode) or FN(pair_hake). */
#include "isa_scaled_pair_body.h"

#define PRODUCT(a, b) FMA(a, b, SET1(0))
#define SCALED_AWAY(query, factor, entity) SUB(SET1(query), PRODUCT(SET1(factor), entity))

#define EACH_SUM(statement)                      \
    KGT_UNROLL                                   \
    for (int i = 0; i < TILE_ROWS; i++) {        \
        KGT_UNROLL                               \
        for (int j = 0; j < TILE_VECTORS; j++) { \
            statement                            \
        }                                        \
    }

#define OUT (out + (size_t)i * out_stride + j * LANES)

/* Queries are `stride` apart; the panel has n dimensions, the query's products come before its n
 * factors. */
KGT_INLINE void FN(tile_mode_registers)(const T *queries, const T *panel, size_t n, T *out,
                                        size_t out_stride) {
    VEC sum[TILE_ROWS][TILE_VECTORS];
    EACH_SUM(sum[i][j] = SET1(0);)
    for (size_t k = 0; k < n; k++) {
        EACH_SUM(const T *query = queries + (size_t)i * 2 * n + k;
                 const VEC entity = LOAD(panel + k * KGT_PANEL + j * LANES);
                 sum[i][j] = ADD(sum[i][j], ABS(SCALED_AWAY(query[0], query[n], entity)));)
    }
    EACH_SUM(STORE(OUT, sum[i][j]);)
}

/* The sums of |sin| of half the differences of phases, from their cosines and then sines. */
KGT_INLINE void FN(tile_phases_registers)(const T *queries, size_t stride, const T *panel, size_t n,
                                          T *out, size_t out_stride) {
    VEC sum[TILE_ROWS][TILE_VECTORS];
    EACH_SUM(sum[i][j] = SET1(0);)
    for (size_t k = 0; k < n; k++) {
        const T *cosine = panel + k * KGT_PANEL, *sine = cosine + n * KGT_PANEL;
        EACH_SUM(const T *query = queries + (size_t)i * stride + k;
                 const VEC one = PRODUCT(SET1(query[n]), LOAD(cosine + j * LANES));
                 const VEC other = PRODUCT(SET1(query[0]), LOAD(sine + j * LANES));
                 sum[i][j] = ADD(sum[i][j], ABS(SUB(one, other)));)
    }
    EACH_SUM(STORE(OUT, sum[i][j]);)
}

/* Adds the distances of moduli to the sums of phases in `out`, both weighted. */
KGT_INLINE void FN(tile_scaled_registers)(const T *queries, size_t stride, const T *panel, size_t n,
                                          T *out, size_t out_stride) {
    VEC sum[TILE_ROWS][TILE_VECTORS];
    EACH_SUM(sum[i][j] = SET1(0);)
    for (size_t k = 0; k < n; k++) {
        EACH_SUM(const T *query = queries + (size_t)i * stride + k;
                 const VEC entity = LOAD(panel + k * KGT_PANEL + j * LANES);
                 const VEC away = SCALED_AWAY(query[0], query[n], entity);
                 sum[i][j] = FMA(away, away, sum[i][j]);)
    }
    EACH_SUM(const T *weights = queries + (size_t)i * stride + 2 * n;
             const VEC moduli = PRODUCT(SET1(weights[1]), SQRT(sum[i][j]));
             STORE(OUT, FMA(SET1(weights[0]), LOAD(OUT), moduli));)
}

static void FN(tile_mode)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i += TILE_ROWS)
        for (size_t j = 0; j < KGT_PANEL; j += TILE_VECTORS * LANES)
            FN(tile_mode_registers)(queries + i * 2 * dim, panel + j, dim, out + i * out_stride + j,
                                    out_stride);
}

static void FN(tile_hake)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    const size_t n = dim / 3, stride = 4 * n + 2;
    for (size_t i = 0; i < KGT_STRIP; i += TILE_ROWS)
        for (size_t j = 0; j < KGT_PANEL; j += TILE_VECTORS * LANES) {
            const T *query = queries + i * stride;
            T *tile = out + i * out_stride + j;
            FN(tile_phases_registers)(query, stride, panel + j, n, tile, out_stride);
            FN(tile_scaled_registers)(query + 2 * n, stride, panel + j + 2 * n * KGT_PANEL, n, tile,
                                      out_stride);
        }
}

#undef PRODUCT
#undef SCALED_AWAY
#undef EACH_SUM
#undef OUT
