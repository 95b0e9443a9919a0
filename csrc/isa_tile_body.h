/* The tile product of a factorised model, written once for every vector ISA and element type.
 *
 * The including file defines T, FN(op), VEC, LANES, LOAD(p), STORE(p, v), SET1(s), FMA(a, b, c),
 * ADD(a, b), SUB(a, b), ABS(a), SQRT(a), FMA1(a, b, c), ABS1(a) and SQRT1(a) for scalars, TILE_ROWS
 * and TILE_VECTORS (register tile; KGT_STRIP and KGT_PANEL / LANES are multiples of them).
 *
 * No reduction is ever split: an output is one chain of fused multiply-adds in ascending k. So a
 * score does not depend on its tile and equals FN(pair). */

#define TILE(step)                                                                                \
    VEC sum[TILE_ROWS][TILE_VECTORS];                                                             \
    KGT_UNROLL                                                                                    \
    for (int i = 0; i < TILE_ROWS; i++) {                                                         \
        KGT_UNROLL                                                                                \
        for (int j = 0; j < TILE_VECTORS; j++) sum[i][j] = SET1(0);                               \
    }                                                                                             \
    for (size_t k = 0; k < dim; k++) {                                                            \
        VEC entity[TILE_VECTORS];                                                                 \
        KGT_UNROLL                                                                                \
        for (int j = 0; j < TILE_VECTORS; j++)                                                    \
            entity[j] = LOAD(panel + k * KGT_PANEL + j * LANES);                                  \
        KGT_UNROLL                                                                                \
        for (int i = 0; i < TILE_ROWS; i++) {                                                     \
            const VEC query = SET1(queries[(size_t)i * dim + k]);                                 \
            KGT_UNROLL                                                                            \
            for (int j = 0; j < TILE_VECTORS; j++) sum[i][j] = step(query, entity[j], sum[i][j]); \
        }                                                                                         \
    }                                                                                             \
    KGT_UNROLL                                                                                    \
    for (int i = 0; i < TILE_ROWS; i++) {                                                         \
        KGT_UNROLL                                                                                \
        for (int j = 0; j < TILE_VECTORS; j++)                                                    \
            STORE(out + (size_t)i * out_stride + j * LANES, sum[i][j]);                           \
    }

#define ADD_DISTANCE(a, b, c) ADD(c, ABS(SUB(a, b)))

KGT_INLINE void FN(tile_registers)(const T *queries, const T *panel, size_t dim, T *out,
                                   size_t out_stride){TILE(FMA)}

KGT_INLINE void FN(tile_l1_registers)(const T *queries, const T *panel, size_t dim, T *out,
                                      size_t out_stride) {
    TILE(ADD_DISTANCE)
}

static void FN(tile)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i += TILE_ROWS)
        for (size_t j = 0; j < KGT_PANEL; j += TILE_VECTORS * LANES)
            FN(tile_registers)(queries + i * dim, panel + j, dim, out + i * out_stride + j,
                               out_stride);
}

static void FN(tile_l1)(const T *queries, const T *panel, size_t dim, T *out, size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i += TILE_ROWS)
        for (size_t j = 0; j < KGT_PANEL; j += TILE_VECTORS * LANES)
            FN(tile_l1_registers)(queries + i * dim, panel + j, dim, out + i * out_stride + j,
                                  out_stride);
}

/* The modulus of each complex difference. FMA(im, im, 0) is the rounded square. */
#define MODULUS(re, im) SQRT(FMA(re, re, FMA(im, im, SET1(0))))

KGT_INLINE void FN(tile_moduli_registers)(const T *queries, const T *panel, size_t dim, T *out,
                                          size_t out_stride) {
    const size_t half = dim / 2;
    VEC sum[TILE_ROWS][TILE_VECTORS];
    KGT_UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        KGT_UNROLL
        for (int j = 0; j < TILE_VECTORS; j++) sum[i][j] = SET1(0);
    }
    for (size_t k = 0; k < half; k++) {
        const T *real = panel + k * KGT_PANEL, *imaginary = real + half * KGT_PANEL;
        KGT_UNROLL
        for (int i = 0; i < TILE_ROWS; i++) {
            const T *query = queries + (size_t)i * dim + k;
            KGT_UNROLL
            for (int j = 0; j < TILE_VECTORS; j++) {
                const VEC re = SUB(SET1(query[0]), LOAD(real + j * LANES));
                const VEC im = SUB(SET1(query[half]), LOAD(imaginary + j * LANES));
                sum[i][j] = ADD(sum[i][j], MODULUS(re, im));
            }
        }
    }
    KGT_UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        KGT_UNROLL
        for (int j = 0; j < TILE_VECTORS; j++)
            STORE(out + (size_t)i * out_stride + j * LANES, sum[i][j]);
    }
}

static void FN(tile_moduli)(const T *queries, const T *panel, size_t dim, T *out,
                            size_t out_stride) {
    for (size_t i = 0; i < KGT_STRIP; i += TILE_ROWS)
        for (size_t j = 0; j < KGT_PANEL; j += TILE_VECTORS * LANES)
            FN(tile_moduli_registers)(queries + i * dim, panel + j, dim, out + i * out_stride + j,
                                      out_stride);
}

static void FN(norms)(const T *panel, size_t dim, T *out) {
    for (size_t j = 0; j < KGT_PANEL; j += LANES) {
        VEC sum = SET1(0);
        for (size_t k = 0; k < dim; k++) {
            const VEC x = LOAD(panel + k * KGT_PANEL + j);
            sum = FMA(x, x, sum);
        }
        STORE(out + j, sum);
    }
}

static T FN(pair)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = 0; k < dim; k++) sum = FMA1(a[k], b[k], sum);
    return sum;
}

static T FN(pair_l1)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = 0; k < dim; k++) sum += ABS1(a[k] - b[k]);
    return sum;
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

#undef TILE
#undef MODULUS
#undef ADD_DISTANCE
