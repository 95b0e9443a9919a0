/* Maxima of maxima, for element type T; macros as in count_body.h.
 *
 * Lane by lane, so a group is spread over `group` vectors; the last may be short of some. */
static size_t FN(fold)(const T *x, size_t n, size_t group, T *out) {
    size_t folded = 0;
    for (size_t i = 0; i < n; i += group * LANES) {
        VEC best = SET1(-INFINITY);
        for (size_t j = i; j < n && j < i + group * LANES; j += LANES) {
            const VEC values = n - j >= LANES ? LOAD(x + j) : LOAD_TAIL(x + j, n - j, -INFINITY);
            best = LARGER(values, best);
        }
        STORE(out + folded, best);
        folded += LANES;
    }
    return folded;
}
