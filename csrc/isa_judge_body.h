/* Bounds from products, and their comparison with thresholds, for every vector ISA.
 *
 * The including file defines FN(op), VEC, LANES, LOAD_INT(p) (int32 to float, to the nearest),
 * LOAD(p), STORE(p, v), SET1(s), FMA(a, b, c), LARGER(a, b), ABOVE(x, t) and REACHES(x, t): a bit
 * for each lane where x > t, x >= t, the first lane's lowest.
 *
 * Words are built in registers, because reading them back after narrower stores would stall. */

/* Converts thresholds to the unit of a word's products. If a product is above `high`, its lower is
 * above `above`. If it does not reach `low`, its upper does not reach `below`. */
static void FN(word_thresholds)(const kgt_bounds *bounds, size_t n_words, float above, float below,
                                float *restrict high, float *restrict low) {
    const float *restrict inverse = bounds->inverse, *restrict base = bounds->base,
                          *restrict code_norm = bounds->code_norm;
    const float norm = bounds->norm, relative = bounds->relative;
    const float more = 1 + 0x1p-20f, less = 1 - 0x1p-20f;
    for (size_t i = 0; i < n_words; i++) {
        const float margin = norm * ((base[i] + relative * code_norm[i]) * more);
        const float upwards = (above + margin) * inverse[i];
        const float downwards = (below - margin) * inverse[i];
        high[i] = upwards * (upwards > 0 ? more : less);
        low[i] = downwards * (downwards > 0 ? less : more);
    }
}

KGT_INLINE void FN(judge_some)(const int32_t *products, uint64_t words, size_t n_words,
                               const kgt_bounds *bounds, float high[][KGT_MOST_WORDS],
                               float low[][KGT_MOST_WORDS], const size_t m, const bool shifted,
                               uint64_t *sure, uint64_t *reach) {
    const VEC factor = SET1(bounds->factor);
    for (; words != 0; words &= words - 1, products += 64) {
        const size_t i = (size_t)__builtin_ctzll(words);
        uint64_t sure_word[KGT_JUDGED] = {0}, reach_word[KGT_JUDGED] = {0};
        for (size_t j = 0; j < 64; j += LANES) {
            VEC value = LOAD_INT(products + j);
            if (shifted) value = FMA(LOAD(bounds->shift + i * 64 + j), factor, value);
            KGT_UNROLL
            for (size_t t = 0; t < m; t++) {
                sure_word[t] |= (uint64_t)ABOVE(value, SET1(high[t][i])) << j;
                reach_word[t] |= (uint64_t)REACHES(value, SET1(low[t][i])) << j;
            }
        }
        for (size_t t = 0; t < m; t++) {
            sure[t * n_words + i] = sure_word[t];
            reach[t * n_words + i] = reach_word[t];
        }
    }
}

static void FN(judge)(const int32_t *products, uint64_t words, size_t n_words,
                      const kgt_bounds *bounds, const float *above, const float *below, size_t m,
                      uint64_t *sure, uint64_t *reach) {
    float high[KGT_JUDGED][KGT_MOST_WORDS], low[KGT_JUDGED][KGT_MOST_WORDS];
    for (size_t t = 0; t < m; t++)
        FN(word_thresholds)(bounds, n_words, above[t], below[t], high[t], low[t]);
#define WITH(m) FN(judge_some)(products, words, n_words, bounds, high, low, m, shifted, sure, reach)
#define EACH(m)                         \
    case m:                             \
        if (bounds->shift != NULL) {    \
            const bool shifted = true;  \
            WITH(m);                    \
        } else {                        \
            const bool shifted = false; \
            WITH(m);                    \
        }                               \
        break;
    switch (m) {
        EACH(1)
        EACH(2)
        EACH(3)
        EACH(4)
        default:
            break;
    }
#undef EACH
#undef WITH
}

static void FN(highest_lower)(const int32_t *products, size_t n_words, const kgt_bounds *bounds,
                              const float *scale, float norm, const uint64_t *outside, float *out) {
    VEC highest[64 / LANES];
    const VEC factor = SET1(bounds->factor);
    for (size_t j = 0; j < 64 / LANES; j++) highest[j] = SET1(-INFINITY);
    for (size_t i = 0; i < n_words; i++) {
        const float error = bounds->base[i] + bounds->relative * bounds->code_norm[i];
        const VEC times = SET1(scale[i]), less = SET1(-norm * (error * (1 + 0x1p-20f)));
        VEC lower[64 / LANES];
        for (size_t j = 0; j < 64 / LANES; j++) {
            const size_t at = i * 64 + j * LANES;
            VEC value = LOAD_INT(products + at);
            if (bounds->shift != NULL) value = FMA(LOAD(bounds->shift + at), factor, value);
            lower[j] = FMA(value, times, less);
        }
        if (outside[i] != 0) {
            float lanes[64];
            for (size_t j = 0; j < 64 / LANES; j++) STORE(lanes + j * LANES, lower[j]);
            for (uint64_t word = outside[i]; word != 0; word &= word - 1)
                lanes[__builtin_ctzll(word)] = -INFINITY;
            for (size_t j = 0; j < 64 / LANES; j++) lower[j] = LOAD(lanes + j * LANES);
        }
        for (size_t j = 0; j < 64 / LANES; j++) highest[j] = LARGER(lower[j], highest[j]);
    }
    for (size_t j = 0; j < 64 / LANES; j++) STORE(out + j * LANES, highest[j]);
}
