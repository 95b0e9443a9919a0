/* The primitives of 8-bit products against plain ones, and the theorem of the bound: the chain of a
 * pair of vectors always lies between the bounds that its path gives. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "factors_bounds.h"
#include "native.h"

/* ---- vectors of all kinds ---- */

typedef enum {
    REALS,
    TAILS,     /* Cauchy-like: one value dwarfs the others */
    CANCEL,    /* neighbours that nearly undo each other */
    CODES,     /* halfway between two codes */
    SMALL,     /* near the smallest that has bounds */
    LARGE,     /* near the largest */
    DENORMAL,  /* a value of moderate size among denormal ones */
    ZEROS,     /* all of them, both zeros */
    EQUAL_ALL, /* one value */
    N_KINDS
} kind;

static float real(void) { return (float)((double)random_bits() * 0x1p-63 - 1.0); }

static void fill(float *x, size_t dim, kind what) {
    for (size_t k = 0; k < dim; k++) {
        const float value = real();
        x[k] = value;
        if (what == TAILS) x[k] = value / (float)(1e-4 + fabs((double)real()));
        if (what == CANCEL) x[k] = k % 2 ? -x[k - 1] * (1 + value * 0x1p-20f) : 100 * value;
        if (what == CODES) x[k] = k == 0 ? 127 : (float)((int)random_below(254) - 127) + 0.5f;
        if (what == SMALL) x[k] = (k == 0 ? 1 : value) * 0x1p-31f;
        if (what == LARGE) x[k] = value * 0x1p32f;
        if (what == DENORMAL && k > 0) x[k] = value * 0x1p-130f;
        if (what == ZEROS) x[k] = k % 2 ? -0.0f : 0.0f;
        if (what == EQUAL_ALL) x[k] = 0.3f;
    }
}

/* ---- primitives ---- */

static void check_product(const kgt_bytes *bytes, size_t dim, size_t n_panels) {
    const size_t groups = kgt_byte_groups(dim), n = n_panels * KGT_BYTE_PANEL, stride = n + 16;
    uint8_t *queries = exact(KGT_BYTE_QUERIES, groups * 4);
    int8_t *panels = kgt_allocate(n, groups * 4);
    int32_t *start = exact(n, sizeof *start), *plain = exact(n, sizeof *plain);
    int32_t *out = kgt_allocate(KGT_BYTE_QUERIES * stride, sizeof *out);
    int32_t *due = exact(KGT_BYTE_QUERIES * stride, sizeof *due);
    const bool extreme = random_below(2);
    for (size_t i = 0; i < KGT_BYTE_QUERIES * groups * 4; i++)
        queries[i] = (uint8_t)((extreme ? 127 : (int)random_below(255) - 127) * (i % 3 ? 1 : -1));
    for (size_t i = 0; i < n * groups * 4; i++)
        panels[i] = (int8_t)((extreme ? 127 : (int)random_below(255) - 127) * (i % 5 ? 1 : -1));
    for (size_t j = 0; j < n; j++) {
        int32_t sum = 0;
        for (size_t k = 0; k < groups * 4; k++)
            sum += panels[j / 16 * groups * 64 + k / 4 * 64 + j % 16 * 4 + k % 4];
        start[j] = -(int32_t)bytes->query_zero * sum;
        plain[j] = 0;
    }
    memset(due, 0, KGT_BYTE_QUERIES * stride * sizeof *due);
    memset(out, 0, KGT_BYTE_QUERIES * stride * sizeof *out);
    kgt_bytes_scalar.product(queries, panels, groups, n_panels, plain, due, stride);
    for (size_t i = 0; i < KGT_BYTE_QUERIES * groups * 4; i++) queries[i] += bytes->query_zero;
    bytes->open(groups);
    bytes->product(queries, panels, groups, n_panels, start, out, stride);
    bytes->close();
    if (spoils("product")) out[stride - 17] ^= 1;
    for (size_t i = 0; i < KGT_BYTE_QUERIES * stride; i++)
        expect(out[i] == due[i], "product", "dim %zu, %zu panels: place %zu is %d, should be %d",
               dim, n_panels, i, out[i], due[i]);
    free(queries);
    free(panels);
    free(start);
    free(plain);
    free(out);
    free(due);
}

static void check_judge(const kgt_bytes *bytes, size_t n, size_t m, bool shifted) {
    int32_t *products = exact(n, sizeof *products);
    float *rows = exact(3 * n, sizeof *rows), above[KGT_JUDGED], below[KGT_JUDGED];
    uint64_t *sure = exact(m * n / 64, 8), *reach = exact(m * n / 64, 8);
    for (size_t i = 0; i < n; i++) {
        products[i] = (int32_t)random_below(2000000) - 1000000;
        rows[i] = 0.01f + fabsf(real());
        rows[n + i] = fabsf(real()) * 1e4f;
        rows[2 * n + i] = real() * 1e5f;
    }
    const kgt_bounds bounds = {rows, rows + n, shifted ? rows + 2 * n : NULL, 3.0f, 0.5f};
    for (size_t t = 0; t < m; t++) {
        above[t] = real() * 1e6f;
        below[t] = t % 3 == 2 ? INFINITY : above[t];
    }
    bytes->judge(products, n, &bounds, above, below, m, sure, reach);
    for (size_t t = 0; t < m; t++)
        for (size_t i = 0; i < n; i++) {
            float value = (float)products[i] * bounds.scale[i];
            if (shifted) value = fmaf(bounds.offset[i], bounds.factor, value);
            const bool s = fmaf(-bounds.norm, bounds.error[i], value) > above[t];
            const bool r = fmaf(bounds.norm, bounds.error[i], value) >= below[t];
            const size_t word = t * n / 64 + i / 64;
            expect((sure[word] >> i % 64 & 1) == s && (reach[word] >> i % 64 & 1) == r, "judge",
                   "n %zu, threshold %zu of %zu, place %zu", n, t, m, i);
        }
    free(products);
    free(rows);
    free(sure);
    free(reach);
}

static void check_bits(const kgt_bytes *bytes, size_t n_words) {
    uint64_t *bits = exact(n_words, 8), *but = exact(n_words, 8);
    uint16_t *places = exact(n_words * 64 + KGT_SLACK, sizeof *places);
    for (size_t i = 0; i < n_words; i++) {
        bits[i] = random_bits() & random_bits() & random_bits();
        if (random_below(3) == 0) bits[i] = 0;
        if (random_below(9) == 0) bits[i] = ~(uint64_t)0;
        but[i] = random_bits();
    }
    int64_t due = 0;
    size_t n = 0;
    const uint64_t *reach = bits, *known = but, *removed = but + n_words / 2;
    const size_t words = (n_words + 1) / 2, except = random_below(words * 64);
    const size_t n_open =
        bytes->undecided(n_words % 3 ? but : NULL, reach, known, removed, words, except, places);
    for (size_t i = 0; i < n_words * 64; i++) {
        const size_t at = i / 64;
        const uint64_t bit = (uint64_t)1 << i % 64;
        due += (bits[at] & ~but[at] & bit) != 0;
        if (at >= words || i == except || !(reach[at] & bit)) continue;
        if ((n_words % 3 && (but[at] & bit)) || (known[at] & removed[at] & bit)) continue;
        expect(n < n_open && places[n] == i, "undecided", "%zu words: place %zu", words, n);
        n++;
    }
    expect(n == n_open, "undecided", "%zu words: %zu, should be %zu", words, n_open, n);
    const int64_t counted = bytes->count_bits(bits, but, n_words);
    expect(counted == due, "count_bits", "%zu words: %lld", n_words, (long long)counted);
    free(bits);
    free(but);
    free(places);
}

static void check_dots(const kgt_bytes *bytes, size_t dim, size_t n) {
    const size_t stride = (dim + 15) / 16 * 16;
    float *query = exact(dim, sizeof *query), *table = exact(9 * stride, sizeof *table);
    float *out = exact(n, sizeof *out);
    uint16_t *places = exact(n, sizeof *places);
    const float **a = exact(n, sizeof *a), **b = exact(n, sizeof *b);
    memset(table, 0, 9 * stride * sizeof *table);
    fill(query, dim, REALS);
    for (size_t i = 0; i < 9; i++) fill(table + i * stride, dim, CANCEL);
    for (size_t i = 0; i < n; i++) {
        places[i] = (uint16_t)random_below(9);
        a[i] = query;
        b[i] = table + places[i] * stride;
    }
    bytes->dots(query, table, stride, dim, places, n, out);
    for (size_t i = 0; i < n; i++) {
        double dot = 0, size = 0;
        for (size_t k = 0; k < dim; k++) {
            dot += (double)query[k] * (double)b[i][k];
            size += fabs((double)query[k] * (double)b[i][k]);
        }
        expect(fabs((double)out[i] - dot) <= size * (double)dim * 0x1p-23, "dots",
               "dim %zu, %zu of %zu: %g, should be near %g", dim, i, n, (double)out[i], dot);
    }
    bytes->pairs(a, b, n, dim, out);
    for (size_t i = 0; i < n; i++)
        expect(out[i] == kgt_kernel_scalar.f32.pair(a[i], b[i], dim), "pairs",
               "dim %zu, %zu of %zu", dim, i, n);
    free(query);
    free(table);
    free(out);
    free(places);
    free(a);
    free(b);
}

static void check_quantise(const kgt_bytes *bytes, size_t dim, kind what) {
    float *x = exact(dim, sizeof *x);
    int8_t *codes = exact(dim, 1);
    kgt_quantised got;
    fill(x, dim, what);
    expect(bytes->quantise(x, dim, codes, &got), "quantise", "dim %zu, kind %d", dim, (int)what);
    double norm = 0, code_norm = 0, residual = 0;
    int32_t sum = 0;
    for (size_t k = 0; k < dim; k++) {
        const double stands_for = (double)got.scale * codes[k], left = (double)x[k] - stands_for;
        norm += (double)x[k] * (double)x[k];
        code_norm += stands_for * stands_for;
        residual += left * left;
        sum += codes[k];
        expect(codes[k] >= -127, "quantise", "dim %zu: code %d", dim, codes[k]);
    }
    if (spoils("residual")) got.residual *= 0.97f;
    expect((double)got.norm >= sqrt(norm) && (double)got.code_norm >= sqrt(code_norm) &&
               (double)got.residual >= sqrt(residual) && got.sum == sum,
           "quantise", "dim %zu, kind %d: residual %.9g, is %.9g", dim, (int)what,
           (double)got.residual, sqrt(residual));
    expect((double)got.norm <= sqrt(norm) * 1.001 + (double)got.scale * 1e-6, "quantise",
           "dim %zu, kind %d: a norm of %g is far above %g", dim, (int)what, (double)got.norm,
           sqrt(norm));
    x[dim / 2] = random_below(2) ? NAN : -INFINITY;
    expect(!bytes->quantise(x, dim, codes, &got), "quantise", "dim %zu: not a number", dim);
    free(x);
    free(codes);
}

/* ---- the theorem ---- */

/* Distances from lower to score to upper, in units of the bound; negative where it is left. */
static void check_interval(const kgt_block *block, const kgt_queries *queries, int64_t row,
                           int32_t product, int64_t place, double score, const char *details) {
    const double slack =
        0x1p-20 * (block->largest_offset + queries->chain[row]) * queries->inverse[row];
    const float norm = queries->judged_norm[row] * (spoils("bound") ? 0.97f : 1);
    const float error =
        (block->base[place] + queries->relative[row / KGT_BYTE_QUERIES] * block->code_norm[place]) *
        (1 + 0x1p-20f);
    float value = (float)product * block->scale[place];
    if (block->offset != NULL) value = fmaf(block->offset[place], queries->factor[row], value);
    const double lower = (double)fmaf(-norm, error, value) - slack;
    const double upper = (double)fmaf(norm, error, value) + slack;
    const double due = (score + queries->chain[row]) * queries->inverse[row];
    const double rounding = fabs(due) * 0x1p-50 + 0x1p-100;
    expect(lower <= due + rounding && due - rounding <= upper, "bound",
           "%s, row %lld, entity %lld: %.17g is not within %.9g and %.9g", details, (long long)row,
           (long long)place, due, lower, upper);
}

/* The worst there is: a query of exact codes in the direction of what the codes leave of x. With
 * entities halfway between codes that is the bound but for a per cent. */
static void oppose(float *queries, const float *entities, size_t n, size_t dim) {
    for (size_t i = 0; i < n; i++) {
        float largest = 0;
        const float *x = entities + i * dim;
        for (size_t k = 0; k < dim; k++) largest = fmaxf(largest, fabsf(x[k]));
        for (size_t k = 0; k < dim; k++) {
            const float unit = largest > 0 ? x[k] * (127 / largest) : 0;
            queries[i * dim + k] = unit < rintf(unit) ? -1.0f : 1.0f;
        }
    }
}

static void check_bounds(size_t dim, kind query_kind, kind entity_kind, kgt_metric metric) {
    enum { ROWS = 33, ENTITIES = 70 };
    float *queries_at = exact(ROWS * dim, sizeof(float)), *bias = exact(ENTITIES, sizeof(float));
    float *entities = exact(ENTITIES * dim, sizeof(float));
    char details[100];
    snprintf(details, sizeof details, "dim %zu, kinds %d and %d, metric %d", dim, (int)query_kind,
             (int)entity_kind, (int)metric);
    for (size_t i = 0; i < ENTITIES; i++) fill(entities + i * dim, dim, entity_kind);
    for (size_t i = 0; i < ENTITIES; i++) bias[i] = real() * (i % 7 ? 1.0f : 1000.0f);
    for (size_t i = 0; i < ROWS; i++) fill(queries_at + i * dim, dim, query_kind);
    if (query_kind == CODES) oppose(queries_at, entities, ROWS, dim);
    const kgt_factors factors = {.queries = queries_at,
                                 .entities = entities,
                                 .bias = random_below(2) ? bias : NULL,
                                 .dtype = KGT_F32,
                                 .metric = metric,
                                 .n_rows = ROWS,
                                 .n_entities = ENTITIES,
                                 .dim = (int64_t)dim};
    float *scores = exact(ROWS * ENTITIES, sizeof(float));
    expect(kgt_factor_scores(&factors, scores) == KGT_OK, "bound", "no scores");
    kgt_block block;
    kgt_queries queries;
    expect(kgt_block_open(&block, &factors) == KGT_OK, "bound", "no block");
    expect(kgt_queries_open(&queries, &factors, block.groups) == KGT_OK, "bound", "no queries");
    kgt_block_take(&block, 0, ENTITIES);
    expect(block.bounded, "bound", "%s: the block has no bounds", details);
    const size_t stride = (size_t)block.width + 16;
    int32_t *products = kgt_allocate(KGT_BYTE_QUERIES * stride, sizeof *products);
    block.bytes->open(block.groups);
    for (int64_t first = 0; first < ROWS; first += KGT_BYTE_QUERIES) {
        block.bytes->product(queries.codes + (size_t)first * block.groups * 4, block.panels,
                             block.groups, (size_t)block.width / 16, block.start, products, stride);
        for (int64_t row = first; row < ROWS && row < first + KGT_BYTE_QUERIES; row++)
            for (int64_t i = 0; i < ENTITIES && queries.bounded[row]; i++)
                check_interval(&block, &queries, row,
                               products[(size_t)(row - first) * stride + (size_t)i], i,
                               (double)scores[row * ENTITIES + i], details);
    }
    block.bytes->close();
    kgt_block_close(&block);
    kgt_queries_close(&queries);
    free(products);
    free(scores);
    free(queries_at);
    free(entities);
    free(bias);
}

void check_bytes(void) {
    static const size_t dims[] = {1, 2, 3, 4, 5, 15, 16, 17, 31, 63, 64, 65, 100, 128, 129, 200};
    const kgt_bytes *bytes = kgt_bytes_active();
    if (bytes == NULL) return;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        const size_t dim = dims[i];
        check_product(bytes, dim, KGT_BYTE_PANELS);
        check_product(bytes, dim, 3 * KGT_BYTE_PANELS);
        for (size_t n = 0; n < 20; n++) check_dots(bytes, dim, n);
        for (int what = 0; what < N_KINDS; what++) check_quantise(bytes, dim, (kind)what);
        for (int what = 0; what < 2 * N_KINDS; what++)
            check_bounds(dim, what < N_KINDS ? (kind)what : REALS, (kind)(what % N_KINDS),
                         what % 2 ? KGT_L2 : KGT_DOT);
        check_bounds(dim, CODES, CODES, KGT_DOT);
        check_bounds(dim, CODES, REALS, KGT_L2);
    }
    for (size_t n = 64; n <= 512; n += 64)
        for (size_t m = 1; m <= KGT_JUDGED; m++) check_judge(bytes, n, m, m % 2 == n / 64 % 2);
    for (size_t words = 1; words <= 2 * KGT_MOST_WORDS; words++) check_bits(bytes, words);
}
