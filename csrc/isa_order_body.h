/* Sorts few keys: for each, it counts how many are larger. No step depends on the keys. A sort that
 * branches on them spends most of its time on mispredicted branches.
 *
 * The including file defines FN(op), KEYS, KEY_LANES, KEYS_LOAD(p), KEYS_SET1(key), KEYS_ZERO,
 * KEYS_STORE(p, v) and KEYS_ABOVE(n, x, y), which is n + 1 where x > y; keys are unsigned. */

/* Vectors of keys that each key is compared with at once. */
#define OWN 4

static void FN(sort_keys)(const uint64_t *keys, size_t n, uint64_t *out) {
    for (size_t i = 0; i < n; i += OWN * KEY_LANES) {
        KEYS own[OWN], larger[OWN];
        uint64_t place[OWN * KEY_LANES];
        KGT_UNROLL
        for (int v = 0; v < OWN; v++) {
            own[v] = KEYS_LOAD(keys + i + v * KEY_LANES);
            larger[v] = KEYS_ZERO;
        }
        for (size_t j = 0; j < n; j++) {
            const KEYS other = KEYS_SET1(keys[j]);
            KGT_UNROLL
            for (int v = 0; v < OWN; v++) larger[v] = KEYS_ABOVE(larger[v], other, own[v]);
        }
        KGT_UNROLL
        for (int v = 0; v < OWN; v++) KEYS_STORE(place + v * KEY_LANES, larger[v]);
        for (size_t k = 0; k < OWN * KEY_LANES && i + k < n; k++) out[place[k]] = keys[i + k];
    }
}

#undef OWN
