/* Transposes columns to rows, for element type T and stored type X; macros as in isa_count_body.h,
 * and TRANSPOSE(v), which transposes LANES vectors in place.
 *
 * out[i * out_stride + j] = x[j * stride + i] for i < rows, j < n. Columns are often pages apart
 * and the processor does not predict the next one, so they are prefetched here. */

/* Columns prefetched ahead of those being transposed. */
#define AHEAD 48

static void FN(transpose)(const X *x, ptrdiff_t stride, size_t rows, size_t n, T *out,
                          size_t out_stride) {
    const ptrdiff_t ahead = AHEAD * stride * (ptrdiff_t)sizeof(X);
    const size_t whole = n - n % LANES, whole_rows = rows - rows % LANES;
    for (size_t j = 0; j < whole; j += LANES) {
        for (size_t i = 0; i < rows; i += LANES) {
            VEC v[LANES];
            KGT_UNROLL
            for (size_t k = 0; k < LANES; k++) {
                const X *at = x + (ptrdiff_t)(j + k) * stride + i;
                v[k] = i < whole_rows ? LOAD(at) : LOAD_TAIL(at, rows - i, 0);
                KGT_PREFETCH((const char *)((uintptr_t)at + (uintptr_t)ahead));
            }
            TRANSPOSE(v);
            KGT_UNROLL
            for (size_t k = 0; k < LANES; k++)
                if (i + k < rows) STORE(out + (i + k) * out_stride + j, v[k]);
        }
    }
    for (size_t j = whole; j < n; j++) /* the rest, less than a vector */
        for (size_t i = 0; i < rows; i++) {
            T lane[LANES];
            STORE(lane, LOAD_TAIL(x + (ptrdiff_t)j * stride + (ptrdiff_t)i, 1, 0));
            out[i * out_stride + j] = lane[0];
        }
}

#undef AHEAD
