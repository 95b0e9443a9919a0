/* Bits of a block's entities, for every ISA: plain C that compiles to popcnt and tzcnt if
 * available. The including file defines FN(op). */

static void FN(count_bits)(const uint64_t *bits, const uint64_t *known, const uint64_t *removed,
                           uint64_t words, int64_t *out) {
    int64_t micro = 0, macro = 0;
    for (; words != 0; words &= words - 1) {
        const size_t i = (size_t)__builtin_ctzll(words);
        micro += __builtin_popcountll(bits[i] & ~known[i]);
        macro += __builtin_popcountll(bits[i] & ~removed[i]);
    }
    out[0] = micro;
    out[1] = macro;
}

#define TOP_BIT ((uint64_t)1 << 63)

static size_t FN(undecided)(const uint64_t *sure, const uint64_t *reach, const uint64_t *known,
                            const uint64_t *removed, uint64_t words, size_t except, uint16_t *out) {
    uint64_t open[KGT_MOST_WORDS], holding = 0;
    size_t n = 0;
    /* Branches cannot predict which words have bits, nor how many. So a first pass marks these
     * words, and the second writes four places per word, which is nearly always enough. */
    for (; words != 0; words &= words - 1) {
        const size_t i = (size_t)__builtin_ctzll(words);
        open[i] = reach[i] & ~((sure ? sure[i] : 0) | (known[i] & removed[i]));
        if (except / 64 == i) open[i] &= ~((uint64_t)1 << except % 64);
        holding |= (uint64_t)(open[i] != 0) << i;
    }
    for (; holding != 0; holding &= holding - 1) {
        const size_t at = (size_t)__builtin_ctzll(holding);
        uint64_t word = open[at];
        const size_t end = n + (size_t)__builtin_popcountll(word);
        do {
            for (size_t j = 0; j < 4; j++, word &= word - 1)
                out[n + j] = (uint16_t)(at * 64 + __builtin_ctzll(word | TOP_BIT));
            n += 4;
        } while (n < end);
        n = end;
    }
    return n;
}

#undef TOP_BIT
