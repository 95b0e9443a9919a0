/* Maxima of maxima, for element type T; macros as in isa_count_body.h.
 *
 * A lane of `group` vectors is one group. The last group may be smaller. */
static size_t FN(fold)(const T *x, size_t n, size_t group, T *out) {
    size_t folded = 0;
    for (size_t i = 0; i < n; i += group * LANES) {
        /* Two chains, because each maximum waits for the one before it. */
        VEC best = SET1(-INFINITY), other = best;
        const size_t end = n - i < group * LANES ? n : i + group * LANES;
        size_t j = i;
        for (; j + 2 * LANES <= end; j += 2 * LANES) {
            best = LARGER(LOAD(x + j), best);
            other = LARGER(LOAD(x + j + LANES), other);
        }
        for (; j < end; j += LANES) {
            const VEC values = n - j >= LANES ? LOAD(x + j) : LOAD_TAIL(x + j, n - j, -INFINITY);
            best = LARGER(values, best);
        }
        STORE(out + folded, LARGER(other, best));
        folded += LANES;
    }
    return folded;
}
