/* Sums under random signs: the reference distribution of paired randomisation tests.
 *
 * Four rows have sixteen sums, one per choice of their signs. These are computed once, and every
 * permutation looks them up. So a permutation costs a quarter of a vector addition per row, and one
 * random word per 64 rows. */
#include <string.h>
#include "stat.h"

#define LANES 16   /* columns added together */
#define QUAD 4     /* rows of one table */
#define QUADS 16   /* tables per word of random bits; together they fit a 32 KB cache */
#define BLOCK 1024 /* permutations whose sums stay in the second-level cache */

typedef struct {
    double of[LANES];
} lanes;

typedef lanes table[1 << QUAD];

/* A good hash of its argument (the finaliser of SplitMix64). */
static inline uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Signs of 64 rows in one permutation. They depend only on these three numbers, so any thread can
 * make any part. */
static inline uint64_t signs_of(uint64_t seed, uint64_t permutation, uint64_t word) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    return mixed(mixed(seed + golden * (permutation + 1)) + golden * (word + 1));
}

static void load_row(const kgt_paired *paired, int64_t row, int64_t first, lanes *out) {
    memset(out, 0, sizeof *out);
    if (row >= paired->n_rows) return;
    const double *values = paired->values + row * paired->n_columns;
    for (int64_t k = 0; k < LANES && first + k < paired->n_columns; k++)
        out->of[k] = values[first + k];
}

/* All sixteen sums of four rows; bit j of the index is the sign of row j, set for plus. */
static void fill_table(const kgt_paired *paired, int64_t row, int64_t first, table sums) {
    lanes rows[QUAD];
    for (int j = 0; j < QUAD; j++) load_row(paired, row + j, first, &rows[j]);
    for (int choice = 0; choice < 1 << QUAD; choice++) {
        memset(&sums[choice], 0, sizeof(lanes));
        for (int j = 0; j < QUAD; j++) {
            double sign = choice >> j & 1 ? 1.0 : -1.0;
            for (int k = 0; k < LANES; k++) sums[choice].of[k] += sign * rows[j].of[k];
        }
    }
}

static void add_word(const table *tables, uint64_t signs, lanes *sum) {
    lanes total = *sum;
    for (int quad = 0; quad < QUADS; quad++) {
        const lanes *term = &tables[quad][signs >> (quad * QUAD) & ((1 << QUAD) - 1)];
        for (int k = 0; k < LANES; k++) total.of[k] += term->of[k];
    }
    *sum = total;
}

/* Columns first .. first + LANES - 1 of a block of permutations. */
static void sum_block(const kgt_paired *paired, int64_t column, int64_t first, int64_t n,
                      double *out) {
    table tables[QUADS];
    lanes sums[BLOCK];
    memset(sums, 0, sizeof sums);
    int64_t words = (paired->n_rows + QUAD * QUADS - 1) / (QUAD * QUADS);
    for (int64_t word = 0; word < words; word++) {
        for (int quad = 0; quad < QUADS; quad++)
            fill_table(paired, (word * QUADS + quad) * QUAD, column, tables[quad]);
        for (int64_t p = 0; p < n; p++)
            add_word((const table *)tables,
                     signs_of(paired->seed, (uint64_t)(first + p), (uint64_t)word), &sums[p]);
    }
    for (int64_t p = 0; p < n; p++)
        for (int64_t k = 0; k < LANES && column + k < paired->n_columns; k++)
            out[p * paired->n_columns + column + k] = sums[p].of[k];
}

void kgt_sign_sums(const kgt_paired *paired, int64_t first, int64_t n, double *out) {
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t size = n - begin < BLOCK ? n - begin : BLOCK;
        for (int64_t column = 0; column < paired->n_columns; column += LANES)
            sum_block(paired, column, first + begin, size, out + begin * paired->n_columns);
    }
}
