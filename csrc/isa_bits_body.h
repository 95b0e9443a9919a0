/* Bits of a block's entities, for every ISA: plain C that becomes popcnt and tzcnt where they are.
 * The including file defines FN(op). */

static int64_t FN(count_bits)(const uint64_t *bits, const uint64_t *but, size_t n_words) {
    int64_t n = 0;
    for (size_t i = 0; i < n_words; i++) n += __builtin_popcountll(bits[i] & ~but[i]);
    return n;
}

#define TOP_BIT ((uint64_t)1 << 63)

static size_t FN(places)(const uint64_t *bits, size_t n_words, uint16_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < n_words; i++) {
        const size_t end = n + (size_t)__builtin_popcountll(bits[i]);
        uint64_t word = bits[i];
        /* Most words hold a few, so that how many is not foreseen: four are written always. */
        do {
            for (size_t j = 0; j < 4; j++, word &= word - 1)
                out[n + j] = (uint16_t)(i * 64 + (size_t)__builtin_ctzll(word | TOP_BIT));
            n += 4;
        } while (n < end);
        n = end;
    }
    return n;
}

#undef TOP_BIT
