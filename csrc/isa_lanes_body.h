/* Chains of pairs of vectors, one pair per lane. Part of isa_chains_body.h for registers with PARTS
 * parts of 128 bits. Every lane takes the steps of a scalar chain in their order, so the bits are
 * the same. But a load gets several values of a vector; a scalar chain loads each value. */

#define PER_PART (16 / sizeof(T)) /* values per vector; pairs per part of the sums */
#define PER_REGISTER (PARTS * PER_PART)
#define ABREAST (REGISTERS * PER_REGISTER)

/* Transposes values k .. k + PER_PART - 1 of PER_REGISTER vectors; out[i] gets the values k + i. */
KGT_INLINE void TYPED(turned)(const T *const *v, size_t k, WORDS out[4]) {
    WORDS part[4], pairs[4];
    KGT_UNROLL
    for (size_t i = 0; i < PER_PART; i++) part[i] = JOINED(v + i, PER_PART, k);
    if (PER_PART == 2) {
        out[0] = W(unpacklo_epi64)(part[0], part[1]);
        out[1] = W(unpackhi_epi64)(part[0], part[1]);
        return;
    }
    pairs[0] = W(unpacklo_epi32)(part[0], part[1]);
    pairs[1] = W(unpacklo_epi32)(part[2], part[3]);
    pairs[2] = W(unpackhi_epi32)(part[0], part[1]);
    pairs[3] = W(unpackhi_epi32)(part[2], part[3]);
    KGT_UNROLL
    for (int i = 0; i < 4; i += 2) {
        out[i] = W(unpacklo_epi64)(pairs[i], pairs[i + 1]);
        out[i + 1] = W(unpackhi_epi64)(pairs[i], pairs[i + 1]);
    }
}

KGT_INLINE void TYPED(chains)(const bool l1, const T *const *x, const T *const *y, size_t dim,
                              T *sums) {
    const size_t whole = dim - dim % PER_PART;
    VECTOR sum[REGISTERS];
    for (int r = 0; r < REGISTERS; r++) sum[r] = OP(setzero)();
    for (size_t k = 0; k < whole; k += PER_PART) {
        WORDS a[REGISTERS][4], b[REGISTERS][4];
        KGT_UNROLL
        for (int r = 0; r < REGISTERS; r++) {
            TYPED(turned)(x + r * PER_REGISTER, k, a[r]);
            TYPED(turned)(y + r * PER_REGISTER, k, b[r]);
        }
        KGT_UNROLL
        for (size_t i = 0; i < PER_PART; i++) {
            KGT_UNROLL
            for (int r = 0; r < REGISTERS; r++) {
                const VECTOR p = AS_VECTOR(a[r][i]), q = AS_VECTOR(b[r][i]);
                sum[r] = l1 ? OP(add)(sum[r], OP(andnot)(OP(set1)((T)-0.0), OP(sub)(p, q)))
                            : OP(fmadd)(p, q, sum[r]);
            }
        }
    }
    for (int r = 0; r < REGISTERS; r++) OP(storeu)(sums + r * PER_REGISTER, sum[r]);
    for (size_t j = 0; j < ABREAST && whole < dim; j++)
        for (size_t k = whole; k < dim; k++) sums[j] = STEP(l1, x[j][k], y[j][k], sums[j]);
}
