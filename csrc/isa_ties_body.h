/* Ties by position, and places of scores among sorted levels, for element type T: plain loops,
 * which the compiler turns into what the ISA has. */

static int64_t FN(tied_up_to)(const T *x, size_t n, T t, const int32_t *position, int32_t last) {
    int32_t ties = 0;
    for (size_t i = 0; i < n; i++) ties += (x[i] == t) & (position[i] <= last);
    return ties;
}

#ifndef TAKE /* else isa_locate_body.h does it */
static void FN(locate)(const T *x, size_t n, const T *levels, int steps, int32_t *out,
                       uint32_t *histogram) {
    for (size_t i = 0; i < n; i++) {
        /* No branch: the searches of several scores overlap. */
        const T score = x[i];
        size_t below = 0;
        for (int k = steps - 1; k >= 0; k--) {
            const size_t step = (size_t)1 << k;
            below += step & (0 - (size_t)(levels[below + step - 1] < score));
        }
        const size_t bin = 2 * below + (levels[below] == score);
        out[i] = (int32_t)bin;
        if (histogram != NULL) histogram[KGT_TURNS * bin + i % KGT_TURNS]++;
    }
}
#endif
