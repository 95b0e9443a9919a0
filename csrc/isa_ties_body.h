/* Ties by position, places of scores among sorted levels, and cells on a grid, for element type T:
 * plain loops that the compiler vectorises for the ISA. */

static int64_t FN(tied_up_to)(const T *x, size_t n, T t, const int32_t *position, int32_t last) {
    int32_t ties = 0;
    for (size_t i = 0; i < n; i++) ties += (x[i] == t) & (position[i] <= last);
    return ties;
}

KGT_INLINE int32_t FN(cell)(T x, float least, const kgt_cells *grid) {
    float cell = ((float)x - grid->low) * grid->scale + KGT_UNDER;
    cell = cell > least ? cell : least;
    return (int32_t)(cell < grid->last ? cell : grid->last);
}

static bool FN(cells)(const T *x, size_t n, const kgt_cells *grid, int32_t *out) {
    float least[KGT_UNDER];
    int nan = 0;
    size_t i = 0;
    for (int j = 0; j < KGT_UNDER; j++) least[j] = (float)j;
    for (; i + KGT_UNDER <= n; i += KGT_UNDER)
        for (int j = 0; j < KGT_UNDER; j++) out[i + j] = FN(cell)(x[i + j], least[j], grid);
    for (int j = 0; i < n; i++, j++) out[i] = FN(cell)(x[i], least[j], grid);
    for (i = 0; i < n; i++) nan |= x[i] != x[i];
    return nan != 0;
}

#ifndef TAKE /* otherwise isa_locate_body.h searches in registers */

/* Scores searched for at once, because each step of a search waits for a level. */
#define ABREAST 16

/* The bins of ABREAST scores, without branches. */
KGT_INLINE void FN(search)(const T *x, const T *levels, int steps, int32_t *out) {
    int32_t below[ABREAST] = {0};
    for (int32_t step = (int32_t)1 << steps >> 1; step > 0; step >>= 1)
        for (int i = 0; i < ABREAST; i++) below[i] += step & -(levels[below[i] + step - 1] < x[i]);
    for (int i = 0; i < ABREAST; i++) out[i] = 2 * below[i] + (levels[below[i]] == x[i]);
}

static void FN(locate)(const T *x, size_t n, const T *levels, int steps, int32_t *out,
                       uint32_t *histogram) {
    size_t i = 0;
    for (; i + ABREAST <= n; i += ABREAST) FN(search)(x + i, levels, steps, out + i);
    if (i < n) {
        T rest[ABREAST] = {0};
        int32_t bins[ABREAST];
        memcpy(rest, x + i, (n - i) * sizeof(T));
        FN(search)(rest, levels, steps, bins);
        memcpy(out + i, bins, (n - i) * sizeof *bins);
    }
    for (i = 0; histogram != NULL && i < n; i++)
        histogram[KGT_TURNS * (size_t)out[i] + i % KGT_TURNS]++;
}

#undef ABREAST
#endif
