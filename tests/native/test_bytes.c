/* Checks the primitives of 8-bit products and distances against plain ones. Also checks the theorem
 * of the bound: a pair's chain is always between the bounds of its path. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "factors/factors_codes.h"
#include "factors/factors_queries.h"
#include "native.h"

/* ---- vectors of all kinds ---- */

typedef enum {
    REALS,
    TAILS,     /* Cauchy-like: one value dwarfs the others */
    CANCEL,    /* neighbours that nearly cancel */
    CODES,     /* halfway between two codes */
    SMALL,     /* near the smallest with bounds */
    LARGE,     /* near the largest */
    DENORMAL,  /* a value of moderate size among denormal ones */
    ZEROS,     /* only zeros, of both signs */
    EQUAL_ALL, /* one value */
    HALVES,    /* one value, and others halfway between its 16-bit codes */
    N_KINDS,
    STEPS,         /* multiples of the step, of either sign */
    BETWEEN,       /* the opposite, and nearly half a step more */
    BETWEEN_FINE,  /* the same with 1 / 128 of a step */
    TO_BE_OPPOSED, /* as CODES, for queries that give entities their direction */
    WHOLE          /* codes without residual; only double to float loses */
} kind;

static float real(void) { return (float)((double)random_bits() * 0x1p-63 - 1.0); }

static void fill(float *x, size_t dim, kind what) {
    for (size_t k = 0; k < dim; k++) {
        const float value = real();
        x[k] = value;
        if (what == TAILS) x[k] = value / (float)(1e-4 + fabs((double)real()));
        if (what == CANCEL) x[k] = k % 2 ? -x[k - 1] * (1 + value * 0x1p-20f) : 100 * value;
        if (what == CODES || what == TO_BE_OPPOSED)
            x[k] = k == 0 ? 127 : (float)((int)random_below(254) - 127) + 0.5f;
        if (what == SMALL) x[k] = (k == 0 ? 1 : value) * 0x1p-31f;
        if (what == LARGE) x[k] = value * 0x1p32f;
        if (what == DENORMAL && k > 0) x[k] = value * 0x1p-130f;
        if (what == ZEROS) x[k] = k % 2 ? -0.0f : 0.0f;
        if (what == EQUAL_ALL) x[k] = 0.3f;
        const float sign = k * 2654435761u >> 13 & 1 ? -1 : 1;
        if (what == STEPS) x[k] = sign * 10;
        if (what == WHOLE) x[k] = sign * (k == 0 ? 127 : 64);
        if (what == BETWEEN) x[k] = -sign * (10 + 0.4999f);
        if (what == BETWEEN_FINE) x[k] = -sign * (10 + 0.4999f / 128);
        if (what == HALVES) x[k] = k == 0 ? 1 : copysignf(0.4999f / 32512, value);
    }
}

/* Doubles that round to these floats, up to half of a float's last bit away. */
static void widen(const float *x, size_t n, size_t dim, kind what, double *out) {
    for (size_t k = 0; k < n; k++) {
        const double further = what == WHOLE ? (double)(k % dim != 0) : (double)real() / 2;
        out[k] = (double)x[k] * (1 + 0x1p-24 * further);
    }
}

/* ---- primitives ---- */

/* Codes of n entities or queries, `length` apart, with products as large as possible. If the path
 * has a range, the vectors are nearly equal, and in some parts only; otherwise the codes are. */
static void fill_codes(const kgt_bytes *bytes, int8_t *codes, size_t n, size_t dim, size_t length,
                       bool query) {
    float *x = exact(dim, sizeof *x);
    const bool extreme = random_below(2);
    memset(codes, 0, n * length);
    for (size_t i = 0; i < n; i++) {
        const size_t part = i % 3 == 0 ? dim : 1 + random_below(dim), end = 1 + random_below(dim);
        for (size_t k = 0; k < dim; k++) {
            const float sign = k * 2654435761u >> 13 & 1 ? -1 : 1;
            x[k] = k + part < end || (i % 3 != 0 && k >= end) ? 0 : sign * (i % 2 ? 1 : -1);
            if (i % 5 == 4) x[k] *= 1 + real() * (i % 2 ? 1 : 0.01f);
            if (bytes->range == NULL)
                codes[i * length + k] = (int8_t)((extreme ? 127 : (int)random_below(255) - 127) *
                                                 ((i * length + k) % (query ? 3 : 5) ? 1 : -1));
        }
        kgt_quantised figures;
        const float largest = bytes->largest(x, dim);
        if (bytes->range != NULL)
            bytes->quantise(x, dim, bytes->range(x, dim, largest, query), codes + i * length,
                            &figures);
    }
    free(x);
}

/* Queries and entities in the layout of product; memory that is read has its exact size. */
typedef struct {
    size_t groups, length, n;
    int8_t *queries, *entities, *panels;
    uint8_t *taken; /* the queries */
    int32_t *start;
} operands;

static operands operands_of(const kgt_bytes *bytes, size_t dim, size_t n) {
    const size_t groups = kgt_byte_groups(dim), length = groups * 4;
    const operands x = {groups,
                        length,
                        n,
                        exact(KGT_BYTE_QUERIES, length),
                        exact(n, length),
                        kgt_allocate(n, length),
                        exact(KGT_BYTE_QUERIES, length),
                        exact(n, sizeof(int32_t))};
    fill_codes(bytes, x.queries, KGT_BYTE_QUERIES, dim, length, true);
    fill_codes(bytes, x.entities, n, dim, length, false);
    for (size_t i = 0; i < KGT_BYTE_QUERIES * length; i++)
        x.taken[i] = (uint8_t)(x.queries[i] + bytes->query_zero);
    for (size_t j = 0; j < n; j++) {
        int32_t sum = 0;
        for (size_t k = 0; k < length; k++) {
            const int8_t code = x.entities[j * length + k];
            const uint8_t byte = (uint8_t)(code + bytes->entity_zero);
            memcpy(x.panels + j / 16 * groups * 64 + k / 4 * 64 + j % 16 * 4 + k % 4, &byte, 1);
            sum += code;
        }
        x.start[j] = -(int32_t)bytes->query_zero * sum;
    }
    return x;
}

static void free_operands(operands x) {
    free(x.queries);
    free(x.entities);
    free(x.panels);
    free(x.taken);
    free(x.start);
}

static int32_t product_of(const operands *x, size_t query, size_t entity) {
    int32_t sum = 0;
    for (size_t k = 0; k < x->length; k++)
        sum += x->queries[query * x->length + k] * x->entities[entity * x->length + k];
    return sum;
}

static void check_product(const kgt_bytes *bytes, size_t dim, size_t n_panels) {
    const operands x = operands_of(bytes, dim, n_panels * KGT_BYTE_PANEL);
    const size_t stride = x.n + 16;
    int32_t *out = kgt_allocate(KGT_BYTE_QUERIES * stride, sizeof *out);
    memset(out, 0, KGT_BYTE_QUERIES * stride * sizeof *out);
    bytes->dot.product(x.taken, x.panels, x.groups, n_panels, x.start, out, stride);
    if (spoils("product")) out[stride - 17] ^= 1;
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++)
        for (size_t j = 0; j < stride; j++) {
            const int32_t due = j < x.n ? product_of(&x, i, j) : 0;
            expect(out[i * stride + j] == due, "product",
                   "dim %zu, %zu panels: query %zu, entity %zu is %d, should be %d", dim, n_panels,
                   i, j, out[i * stride + j], due);
        }
    free_operands(x);
    free(out);
}

/* The largest v of a word. */
static double largest_of(const operands *x, const kgt_bounds *bounds, size_t query, size_t word) {
    double largest = -INFINITY;
    for (size_t j = word * 64; j < word * 64 + 64; j++) {
        float value = (float)product_of(x, query, j);
        if (bounds->shift != NULL) value = fmaf(bounds->shift[j], bounds->factor, value);
        if ((double)value > largest) largest = (double)value;
    }
    return largest;
}

/* Checks which words reach, by an oracle in double that allows for roundings, and their products.
 */
static void check_reaching(const kgt_bytes *bytes, size_t dim, size_t n_words, bool shifted) {
    const operands x = operands_of(bytes, dim, n_words * 64);
    const size_t stride = x.n + 16;
    int32_t *out = exact((KGT_BYTE_QUERIES - 1) * stride + x.n, sizeof *out);
    float *figures = exact(3 * n_words, sizeof *figures), *shift = exact(x.n, sizeof *shift);
    kgt_bounds bounds[KGT_BYTE_QUERIES];
    float below[KGT_BYTE_QUERIES];
    uint64_t words[KGT_BYTE_QUERIES];
    for (size_t i = 0; i < n_words; i++) {
        figures[i] = 1 / (0.01f + fabsf(real()));
        figures[n_words + i] = fabsf(real()) * (float)dim * 300;
        figures[2 * n_words + i] = fabsf(real()) * 1000;
    }
    for (size_t j = 0; j < x.n; j++) shift[j] = real() * 1e4f;
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++) {
        const float spread = i % 5 == 4 ? INFINITY : (float)dim * 1e3f;
        bounds[i] = (kgt_bounds){figures,
                                 figures + n_words,
                                 figures + 2 * n_words,
                                 shifted ? shift : NULL,
                                 fabsf(real()),
                                 0.01f,
                                 0.5f};
        below[i] = i % 7 == 6 ? -INFINITY : real() * spread;
    }
    bytes->dot.reaching(x.taken, x.panels, x.groups, n_words, x.start, bounds, below, out, stride,
                        words);
    if (spoils("reaching")) words[1] ^= 1;
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++) {
        const int32_t *at = out + i * stride;
        expect(n_words == 64 || words[i] >> n_words == 0, "reaching", "words beyond %zu", n_words);
        for (size_t word = 0; word < n_words; word++) {
            const double margin =
                (double)bounds[i].norm *
                ((double)figures[n_words + word] + 0.01 * (double)figures[2 * n_words + word]);
            const double low = ((double)below[i] - margin) * (double)figures[word];
            const double largest = largest_of(&x, bounds + i, i, word);
            const double wide = 0x1p-16 * (fabs(largest) + margin * (double)figures[word]) + 1e-6;
            const bool reaches = words[i] >> word & 1;
            expect(reaches ? largest >= low - wide : largest < low, "reaching",
                   "dim %zu, %zu words: query %zu, word %zu", dim, n_words, i, word);
            for (size_t j = 0; reaches && j < 64; j++)
                expect(at[j] == product_of(&x, i, word * 64 + j), "reaching",
                       "dim %zu, %zu words: query %zu, word %zu, place %zu", dim, n_words, i, word,
                       j);
            if (reaches) at += 64;
        }
    }
    free_operands(x);
    free(out);
    free(figures);
    free(shift);
}

static void check_product_l1(const kgt_bytes *bytes, size_t dim, size_t n_panels) {
    const size_t groups = kgt_l1_groups(dim), n = n_panels * KGT_BYTE_PANEL, stride = n + 16;
    const size_t length = groups * 4;
    uint8_t *queries = exact(KGT_BYTE_QUERIES, length), *entities = exact(n, length);
    int8_t *panels = kgt_allocate(n, length);
    int32_t *out = kgt_allocate(KGT_BYTE_QUERIES * stride, sizeof *out);
    const bool extreme = random_below(2);
    for (size_t i = 0; i < KGT_BYTE_QUERIES * length; i++)
        queries[i] = extreme ? 255 : (uint8_t)random_below(256);
    for (size_t i = 0; i < n * length; i++)
        entities[i] = extreme ? i % 7 == 0 : (uint8_t)random_below(256);
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < length; k++)
            panels[j / 16 * groups * 64 + k / 8 * 128 + j % 2 * 64 + j % 16 / 2 * 8 + k % 8] =
                (int8_t)entities[j * length + k];
    bytes->l1.product(queries, panels, groups, n_panels, NULL, out, stride);
    if (spoils("product_l1")) out[stride - 17] ^= 1;
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++)
        for (size_t j = 0; j < n; j++) {
            int32_t due = 0;
            for (size_t k = 0; k < length; k++)
                due += abs(queries[i * length + k] - entities[j * length + k]);
            expect(out[i * stride + j] == -due, "product_l1",
                   "dim %zu, %zu panels: query %zu, entity %zu is %d, should be %d", dim, n_panels,
                   i, j, out[i * stride + j], -due);
        }
    free(queries);
    free(entities);
    free(panels);
    free(out);
}

/* Products of some of the words, one after the other. */
static void check_judge(const kgt_bytes *bytes, size_t n_words, size_t m, bool shifted) {
    const size_t n = n_words * 64;
    const uint64_t words = (random_below(3) ? random_bits() : ~(uint64_t)0) >> (64 - n_words);
    const size_t n_products = (size_t)__builtin_popcountll(words) * 64;
    int32_t *products = exact(n_products, sizeof *products), *next = products;
    float *figures = exact(3 * n_words, sizeof *figures), *shift = exact(n, sizeof *shift);
    float above[KGT_JUDGED], below[KGT_JUDGED];
    uint64_t *sure = exact(m * n_words, 8), *reach = exact(m * n_words, 8);
    for (size_t i = 0; i < n_products; i++) products[i] = (int32_t)random_below(2000000) - 1000000;
    for (size_t i = 0; i < n; i++) shift[i] = real() * 1e5f;
    for (size_t i = 0; i < n_words; i++) {
        figures[i] = 1 / (0.01f + fabsf(real()));
        figures[n_words + i] = fabsf(real()) * 1e4f;
        figures[2 * n_words + i] = fabsf(real()) * 1e6f;
    }
    const kgt_bounds bounds = {
        figures, figures + n_words, figures + 2 * n_words, shifted ? shift : NULL, 3.0f, 0.01f,
        0.5f};
    for (size_t t = 0; t < m; t++) {
        above[t] = real() * (t == 3 ? INFINITY : 1e6f);
        below[t] = t % 3 == 2 ? INFINITY : above[t];
    }
    bytes->judge(products, words, n_words, &bounds, above, below, m, sure, reach);
    if (spoils("judge") && words != 0) sure[__builtin_ctzll(words)] ^= 1;
    for (size_t i = 0; i < n; i++) {
        const size_t word = i / 64;
        if (!(words >> word & 1)) continue;
        float value = (float)*next++;
        if (shifted) value = fmaf(shift[i], bounds.factor, value);
        const double error = (double)bounds.base[word] + 0.01 * (double)bounds.code_norm[word];
        const double scale = 1 / (double)bounds.inverse[word], margin = 3 * error;
        const double lower = (double)value * scale - margin, upper = lower + 2 * margin;
        const double wide = 0x1p-16 * (fabs(lower) + fabs(upper) + margin);
        for (size_t t = 0; t < m; t++) {
            const size_t at = t * n_words + word;
            const bool s = sure[at] >> i % 64 & 1, r = reach[at] >> i % 64 & 1;
            expect((!s || lower > (double)above[t]) && (s || !(lower - wide > (double)above[t])) &&
                       (r || upper < (double)below[t]) &&
                       (!r || !(upper + wide < (double)below[t])),
                   "judge", "%zu words, threshold %zu of %zu, place %zu", n_words, t, m, i);
        }
    }
    free(products);
    free(figures);
    free(shift);
    free(sure);
    free(reach);
}

static void check_highest_lower(const kgt_bytes *bytes, size_t n_words, bool shifted) {
    const size_t n = n_words * 64;
    int32_t *products = exact(n, sizeof *products);
    float *figures = exact(3 * n_words, sizeof *figures), *shift = exact(n, sizeof *shift);
    uint64_t *outside = exact(n_words, sizeof *outside);
    float *out = exact(64, sizeof *out);
    const float *scale = figures, *base = figures + n_words, *code_norm = figures + 2 * n_words;
    for (size_t i = 0; i < n; i++) products[i] = (int32_t)random_below(2000000) - 1000000;
    for (size_t i = 0; i < n; i++) shift[i] = real() * 1e5f;
    for (size_t i = 0; i < 3 * n_words; i++) figures[i] = fabsf(real()) * (i < n_words ? 1 : 1e4f);
    for (size_t i = 0; i < n_words; i++) outside[i] = random_below(2) ? random_bits() : 0;
    const kgt_bounds bounds = {NULL, base, code_norm, shifted ? shift : NULL, 3.0f, 0.25f, 0.5f};
    bytes->highest_lower(products, n_words, &bounds, scale, 2.0f, outside, out);
    if (spoils("highest_lower")) out[63] = nextafterf(out[63], INFINITY);
    for (size_t j = 0; j < 64; j++) {
        float due = -INFINITY;
        for (size_t i = 0; i < n_words; i++) {
            const float error = base[i] + 0.25f * code_norm[i];
            float value = (float)products[i * 64 + j];
            if (shifted) value = fmaf(shift[i * 64 + j], 0.5f, value);
            const float lower = fmaf(value, scale[i], -2.0f * (error * (1 + 0x1p-20f)));
            if (!(outside[i] >> j & 1) && lower > due) due = lower;
        }
        expect(out[j] == due, "highest_lower", "%zu words, place %zu: %.9g, not %.9g", n_words, j,
               (double)out[j], (double)due);
    }
    free(products);
    free(figures);
    free(shift);
    free(outside);
    free(out);
}

/* Checks bits of some of n_words words; the others must not be read. */
static void check_bits(const kgt_bytes *bytes, size_t n_words) {
    const uint64_t words = (random_below(3) ? random_bits() : ~(uint64_t)0) >> (64 - n_words);
    uint64_t *reach = exact(n_words, 8), *sure = exact(n_words, 8);
    uint64_t *known = exact(n_words, 8), *removed = exact(n_words, 8);
    uint16_t *places = exact(n_words * 64 + KGT_SLACK, sizeof *places);
    for (size_t i = 0; i < n_words; i++) {
        reach[i] = random_bits() & random_bits() & random_bits();
        if (random_below(3) == 0) reach[i] = 0;
        if (random_below(9) == 0) reach[i] = ~(uint64_t)0;
        sure[i] = random_bits();
        known[i] = random_bits();
        removed[i] = random_bits();
    }
    int64_t due[2] = {0}, counted[2];
    size_t n = 0;
    const size_t except = random_below(3) ? random_below(n_words * 64) : SIZE_MAX;
    const bool with_sure = n_words % 3;
    const size_t n_open =
        bytes->undecided(with_sure ? sure : NULL, reach, known, removed, words, except, places);
    for (size_t i = 0; i < n_words * 64; i++) {
        const size_t at = i / 64;
        const uint64_t bit = (uint64_t)1 << i % 64;
        if (!(words >> at & 1)) continue;
        due[0] += (reach[at] & ~known[at] & bit) != 0;
        due[1] += (reach[at] & ~removed[at] & bit) != 0;
        if (i == except || !(reach[at] & bit)) continue;
        if ((with_sure && (sure[at] & bit)) || (known[at] & removed[at] & bit)) continue;
        expect(n < n_open && places[n] == i, "undecided", "%zu words: place %zu", n_words, n);
        n++;
    }
    expect(n == n_open, "undecided", "%zu words: %zu, should be %zu", n_words, n_open, n);
    bytes->count_bits(reach, known, removed, words, counted);
    expect(counted[0] == due[0] && counted[1] == due[1], "count_bits", "%zu words: %lld, %lld",
           n_words, (long long)counted[0], (long long)counted[1]);
    free(reach);
    free(sure);
    free(known);
    free(removed);
    free(places);
}

static void check_pairs(const kgt_sums *sums, bool l1, bool in_double, size_t dim, size_t n) {
    const char *what = in_double ? (l1 ? "pairs_l1_f64" : "pairs_f64") : l1 ? "pairs_l1" : "pairs";
    const size_t size = in_double ? sizeof(double) : sizeof(float);
    float *floats = exact(9 * dim, sizeof *floats);
    double *doubles = exact(9 * dim, sizeof *doubles), *out = exact(n, sizeof *out);
    const char *table = in_double ? (const char *)doubles : (const char *)floats;
    const void **a = exact(n, sizeof *a), **b = exact(n, sizeof *b);
    for (size_t i = 0; i < 9; i++) fill(floats + i * dim, dim, i % 2 ? CANCEL : REALS);
    widen(floats, 9 * dim, dim, REALS, doubles);
    for (size_t i = 0; i < n; i++) {
        a[i] = table + random_below(9) * dim * size;
        b[i] = table + random_below(9) * dim * size;
    }
    (in_double ? sums->pairs_f64 : sums->pairs_f32)(a, b, n, dim, out);
    if (n > 0 && spoils(what)) out[n - 1] = out[n - 1] * (1 + 0x1p-52) + 0x1p-1000;
    for (size_t i = 0; i < n; i++) {
        const kgt_ops_f32 *plain = &kgt_kernel_scalar.f32;
        const kgt_ops_f64 *wide = &kgt_kernel_scalar.f64;
        const double due = in_double ? (l1 ? wide->pair_l1 : wide->pair)(a[i], b[i], dim)
                                     : (double)(l1 ? plain->pair_l1 : plain->pair)(a[i], b[i], dim);
        expect(out[i] == due, what, "dim %zu, %zu of %zu", dim, i, n);
    }
    free(floats);
    free(doubles);
    free(out);
    free(a);
    free(b);
}

/* Codes with norms up to the largest allowed, and so with the largest products. */
static void fill_fine(int16_t *codes, size_t dim, bool l1) {
    const double most = l1 ? KGT_L1_MOST_FINE : 46340 / sqrt((double)dim);
    const double largest = most < 32767 ? most : 32767;
    for (size_t k = 0; k < dim; k++) codes[k] = (int16_t)((double)real() * largest);
    if (random_below(3) == 0)
        for (size_t k = 0; k < dim; k++) codes[k] = (int16_t)(l1 && k % 3 ? -largest : largest);
}

static void check_refine(const kgt_sums *sums, bool l1, size_t dim, size_t n) {
    const char *what = l1 ? "refine_l1" : "refine";
    enum { ENTITIES = 70 };
    const size_t stride = kgt_fine_stride(dim);
    int16_t *query = exact(stride, sizeof *query), *table = exact(ENTITIES * stride, sizeof *table);
    uint16_t *places = exact(n + KGT_SLACK, sizeof *places), *due = exact(n, sizeof *due);
    uint64_t sure[2] = {0, 0}, due_sure[2] = {0, 0};
    float *lower = exact(n, sizeof *lower), *upper = exact(n, sizeof *upper);
    const float norm = 3, relative = 0.25f, factor = 0.5f;
    float below = real() * 1e5f, above = below + fabsf(real()) * 1e4f;
    memset(query, 0, stride * sizeof *query);
    memset(table, 0, ENTITIES * stride * sizeof *table);
    fill_fine(query, dim, l1);
    for (size_t i = 0; i < n; i++) {
        places[i] = (uint16_t)(i * ENTITIES / n);
        int16_t *row = table + places[i] * stride;
        const kgt_figures x = {fabsf(real()) * 1e-3f, fabsf(real()) * 1e4f, fabsf(real()) * 1e4f,
                               random_below(2) ? real() * 1e5f : 0};
        fill_fine(row, dim, l1);
        memcpy(row + stride - KGT_FINE_FIGURES, &x, sizeof x);
        int64_t product = 0;
        for (size_t k = 0; k < dim; k++)
            product += l1 ? abs(query[k] - row[k]) : (int32_t)query[k] * row[k];
        if (l1) product = -product;
        const float value = fmaf(x.offset, factor, (float)product * x.scale);
        const float error = fmaf(relative, x.code_norm, x.base);
        lower[i] = fmaf(-norm, error, value);
        upper[i] = fmaf(norm, error, value);
    }
    if (n > 0 && random_below(2)) { /* thresholds equal to some bounds */
        above = lower[random_below(n)];
        below = upper[random_below(n)];
    }
    size_t n_due = 0;
    for (size_t i = 0; i < n; i++) {
        if (lower[i] > above)
            due_sure[places[i] / 64] |= (uint64_t)1 << places[i] % 64;
        else if (upper[i] >= below)
            due[n_due++] = places[i];
    }
    const size_t n_close =
        sums->refine(query, table, stride, norm, relative, factor, above, below, places, n, sure);
    if (spoils(what)) sure[1] ^= 1;
    expect(n_close == n_due && memcmp(places, due, n_due * sizeof *due) == 0 &&
               memcmp(sure, due_sure, sizeof sure) == 0,
           what, "dim %zu, %zu places: %zu close, should be %zu", dim, n, n_close, n_due);
    free(query);
    free(table);
    free(places);
    free(due);
    free(lower);
    free(upper);
}

/* Checks the figures of a vector and its codes: never too small, and not much too large. */
static void check_figures(const float *x, const void *codes, bool fine, size_t dim,
                          kgt_quantised got, const char *what, kind vectors) {
    double norm = 0, code_norm = 0, residual = 0, code_square = 0;
    int64_t sum = 0, largest = 0;
    for (size_t k = 0; k < dim; k++) {
        const int code = fine ? ((const int16_t *)codes)[k] : ((const int8_t *)codes)[k];
        const double stands_for = (double)got.scale * code, left = (double)x[k] - stands_for;
        norm += (double)x[k] * (double)x[k];
        code_norm += stands_for * stands_for;
        code_square += (double)code * code;
        residual += left * left;
        sum += code;
        if (abs(code) > largest) largest = abs(code);
    }
    if (spoils(what)) got.residual *= 0.97f;
    expect((double)got.norm >= sqrt(norm) && (double)got.code_norm >= sqrt(code_norm) &&
               (double)got.residual >= sqrt(residual) && got.sum == sum,
           what, "dim %zu, kind %d: residual %.9g, is %.9g", dim, (int)vectors,
           (double)got.residual, sqrt(residual));
    expect((double)got.norm <= sqrt(norm) * 1.001 + (double)got.scale * 1e-6, what,
           "dim %zu, kind %d: a norm of %g is far above %g", dim, (int)vectors, (double)got.norm,
           sqrt(norm));
    expect(largest <= (fine ? INT16_MAX : INT8_MAX) && (!fine || code_square < 0x1p31), what,
           "dim %zu, kind %d: codes up to %lld, their square %g", dim, (int)vectors,
           (long long)largest, code_square);
}

static void check_quantise(const kgt_bytes *bytes, size_t dim, kind what) {
    float *x = exact(dim, sizeof *x);
    int8_t *codes = exact(dim, 1);
    int16_t *fine_codes = exact(dim, sizeof *fine_codes);
    kgt_quantised got, fine;
    fill(x, dim, what);
    const float largest = bytes->largest(x, dim);
    double due = 0;
    for (size_t k = 0; k < dim; k++)
        if (fabs((double)x[k]) > due) due = fabs((double)x[k]); /* gcc 12 fails at fmax for ARM */
    expect((double)largest == due, "largest", "dim %zu, kind %d", dim, (int)what);
    bytes->quantise(x, dim, largest * (random_below(2) ? 1 : 1.7f), codes, &got);
    bytes->quantise_fine(x, dim, largest, &got, fine_codes, &fine);
    check_figures(x, codes, false, dim, got, "quantise", what);
    check_figures(x, fine_codes, true, dim, fine, "quantise_fine", what);
    x[dim / 2] = random_below(2) ? NAN : -INFINITY;
    expect(isnan(bytes->largest(x, dim)), "largest", "dim %zu: not a number", dim);
    free(x);
    free(codes);
    free(fine_codes);
}

/* Checks codes of any step and their residuals. */
static void check_quantise_l1(const kgt_bytes *bytes, size_t dim, kind what, bool fine) {
    const float most = fine ? KGT_L1_MOST_FINE : KGT_L1_MOST;
    const char *name = "quantise_l1";
    float *x = exact(dim, sizeof *x), largest = KGT_L1_SMALLEST;
    uint8_t *codes = exact(dim, 1);
    int16_t *fine_codes = exact(dim, sizeof *fine_codes);
    kgt_quantised_l1 got;
    fill(x, dim, what);
    for (size_t k = 0; k < dim; k++) largest = fmaxf(largest, fabsf(x[k]));
    const float step = fmaxf(KGT_L1_SMALLEST, largest / most * (0.1f + fabsf(real()) * 3));
    void *place = fine ? (void *)fine_codes : codes;
    bytes->quantise_l1(x, dim, step, fine, place, &got);
    double norm = 0, residual = 0;
    for (size_t k = 0; k < dim; k++) {
        const int code = fine ? fine_codes[k] : codes[k] - KGT_L1_ZERO;
        const double left = fabs((double)x[k] - (double)step * code);
        norm += fabs((double)x[k]);
        residual += left;
        expect(abs(code) <= (int)most, name, "dim %zu, kind %d: code %d", dim, (int)what, code);
        expect(abs(code) == (int)most || left <= 0.503 * (double)step, name,
               "dim %zu, kind %d: value %g is %d steps of %g", dim, (int)what, (double)x[k], code,
               (double)step);
    }
    if (spoils(name)) got.residual *= 0.97f;
    expect((double)got.norm >= norm && (double)got.residual >= residual, name,
           "dim %zu, kind %d: residual %.9g, is %.9g", dim, (int)what, (double)got.residual,
           residual);
    expect((double)got.norm <= norm * 1.001 && (double)got.residual <= residual * 1.001, name,
           "dim %zu, kind %d: norm %g is far above %g", dim, (int)what, (double)got.norm, norm);
    free(x);
    free(codes);
    free(fine_codes);
}

/* ---- the theorem ---- */

/* The bounds of a level for a pair: for the score plus Q, in units of its m s. */
typedef struct {
    const char *name, *own_name;
    float value, error, norm;
    double slack, own, inverse; /* own: the query's part of the slack */
    float spoilt;               /* factor that makes some pair's bound fail */
} interval;

static void expect_within(interval at, double due, const char *details, int64_t row,
                          int64_t place) {
    const float norm = at.norm * (spoils(at.name) ? at.spoilt : 1);
    const double slack = at.slack + at.own * (spoils(at.own_name) ? (double)at.spoilt : 1);
    const double lower = (double)fmaf(-norm, at.error, at.value) - slack;
    const double upper = (double)fmaf(norm, at.error, at.value) + slack;
    const double rounding = fabs(due) * 0x1p-50 + 0x1p-100;
    expect(lower <= due + rounding && due - rounding <= upper, at.name,
           "%s, row %lld, entity %lld: %.17g is not within %.9g and %.9g", details, (long long)row,
           (long long)place, due, lower, upper);
}

/* Checks that both levels' bounds contain the score. */
static void check_interval(const kgt_block *block, const kgt_queries *queries, int64_t row,
                           int32_t product, int64_t place, double score, const char *details) {
    const double absolute = 0x1p-20 * (block->largest_offset + queries->chain[row]);
    const bool l1 = block->factors->metric == KGT_L1;
    const int64_t word = place / 64;
    float value = (float)product;
    if (block->offset != NULL) value = fmaf(block->shift[place], queries->factor[row], value);
    const interval coarse = {l1 ? "bound l1" : "bound",
                             "query bound l1",
                             value / block->inverse[word],
                             block->base[word] + queries->relative[row] * block->code_norm[word],
                             queries->judged_norm[row],
                             absolute * queries->inverse[row],
                             queries->l1_error[row] * queries->inverse[row],
                             queries->inverse[row],
                             0.97f};
    const int16_t *x = block->fine + (size_t)place * block->fine_stride;
    const int16_t *q = queries->fine + (size_t)row * queries->fine_stride;
    kgt_figures figures;
    memcpy(&figures, x + block->fine_stride - KGT_FINE_FIGURES, sizeof figures);
    int32_t sum = 0;
    for (int64_t k = 0; k < block->factors->dim; k++)
        sum += l1 ? abs(q[k] - x[k]) : (int32_t)q[k] * x[k];
    const interval fine = {
        l1 ? "fine bound l1" : "fine bound",
        "query bound l1",
        fmaf(figures.offset, queries->fine_factor[row], (float)(l1 ? -sum : sum) * figures.scale),
        figures.base + queries->fine_relative[row] * figures.code_norm,
        queries->fine_norm[row],
        absolute * queries->fine_inverse[row],
        queries->fine_l1_error[row] * queries->fine_inverse[row],
        queries->fine_inverse[row],
        l1 ? 0.97f : 0.92f};
    const double shifted = score + queries->chain[row];
    expect_within(coarse, shifted * coarse.inverse, details, row, place);
    expect_within(fine, shifted * fine.inverse, details, row, place);
}

/* The worst case: a query of exact codes in the direction of x's residual. If entities are halfway
 * between codes, the error reaches 99 % of the bound. */
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

/* The same for 16-bit codes, with residuals in all but the first value of HALVES. */
static void oppose_fine(float *queries, const float *entities, size_t n, size_t dim) {
    for (size_t i = 0; i < n * dim; i++)
        queries[i] = i % dim == 0 && dim > 1 ? 0 : copysignf(1, entities[i]);
}

static void check_bounds_of(bool in_double, size_t dim, kind query_kind, kind entity_kind,
                            kgt_metric metric) {
    enum { ROWS = 33, ENTITIES = 70 };
    float *queries_at = exact(ROWS * dim, sizeof(float)), *bias = exact(ENTITIES, sizeof(float));
    float *entities = exact(ENTITIES * dim, sizeof(float));
    double *wide = exact((ROWS + ENTITIES) * dim + ENTITIES, sizeof(double));
    double *wide_entities = wide + ROWS * dim, *wide_bias = wide_entities + ENTITIES * dim;
    char details[100];
    snprintf(details, sizeof details, "%s, dim %zu, kinds %d and %d, metric %d",
             in_double ? "double" : "float", dim, (int)query_kind, (int)entity_kind, (int)metric);
    for (size_t i = 0; i < ENTITIES; i++) fill(entities + i * dim, dim, entity_kind);
    for (size_t i = 0; i < ENTITIES; i++) bias[i] = real() * (i % 7 ? 1.0f : 1000.0f);
    for (size_t i = 0; i < ROWS; i++) fill(queries_at + i * dim, dim, query_kind);
    if (query_kind == CODES) oppose(queries_at, entities, ROWS, dim);
    if (query_kind == TO_BE_OPPOSED) oppose(entities, queries_at, ROWS, dim);
    if (query_kind == HALVES) oppose_fine(queries_at, entities, ROWS, dim);
    if (query_kind == WHOLE && metric == KGT_L1) /* as far apart as possible */
        for (size_t k = 0; k < ROWS * dim; k++) queries_at[k] *= -1;
    widen(queries_at, ROWS * dim, dim, query_kind, wide);
    widen(entities, ENTITIES * dim, dim, entity_kind, wide_entities);
    widen(bias, ENTITIES, ENTITIES, REALS, wide_bias);
    const void *some_bias = in_double ? (const void *)wide_bias : bias;
    const kgt_factors factors = {.queries = in_double ? (const void *)wide : queries_at,
                                 .entities = in_double ? (const void *)wide_entities : entities,
                                 .bias = random_below(2) ? some_bias : NULL,
                                 .dtype = in_double ? KGT_F64 : KGT_F32,
                                 .metric = metric,
                                 .n_rows = ROWS,
                                 .n_entities = ENTITIES,
                                 .dim = (int64_t)dim};
    void *scores = exact(ROWS * ENTITIES, in_double ? sizeof(double) : sizeof(float));
    expect(kgt_factor_scores(&factors, scores) == KGT_OK, "bound", "no scores");
    kgt_block block;
    kgt_queries queries;
    kgt_steps steps = {1, 1.0f / 128, false}; /* as in STEPS and BETWEEN */
    expect(kgt_steps_choose(&factors, entity_kind < N_KINDS ? &steps : &(kgt_steps){0}) == KGT_OK,
           "bound", "no steps");
    if (entity_kind < N_KINDS && random_below(3) == 0) steps.coarse *= 4 * fabsf(real()) + 0.01f;
    if (entity_kind < N_KINDS && random_below(3) == 0) steps.fine *= 4 * fabsf(real()) + 0.01f;
    expect(kgt_block_open(&block, &factors, steps, kgt_block_width(&factors)) == KGT_OK, "bound",
           "no block");
    expect(kgt_queries_open(&queries, &factors, steps) == KGT_OK, "bound", "no queries");
    expect(kgt_block_encode(&block, 0, ENTITIES) == KGT_OK, "bound", "no memory");
    expect(block.bounded, "bound", "%s: the block has no bounds", details);
    if (spoils("rounding") && entity_kind == WHOLE) memset(block.base, 0, 2 * sizeof *block.base);
    const size_t stride = (size_t)block.width + 16;
    int32_t *products = kgt_allocate(KGT_BYTE_QUERIES * stride, sizeof *products);
    for (int64_t first = 0; first < ROWS; first += KGT_BYTE_QUERIES) {
        block.sums->product(queries.codes + (size_t)first * block.groups * 4, block.panels,
                            block.groups, (size_t)block.width / 16, block.start, products, stride);
        for (int64_t row = first; row < ROWS && row < first + KGT_BYTE_QUERIES; row++)
            for (int64_t i = 0; i < ENTITIES && queries.bounded[row]; i++) {
                const int64_t at = row * ENTITIES + block.place_of[i];
                check_interval(
                    &block, &queries, row, products[(size_t)(row - first) * stride + (size_t)i], i,
                    in_double ? ((double *)scores)[at] : (double)((float *)scores)[at], details);
            }
    }
    kgt_block_close(&block);
    kgt_queries_close(&queries);
    free(products);
    free(scores);
    free(queries_at);
    free(entities);
    free(wide);
    free(bias);
}

static void check_bounds(size_t dim, kind query_kind, kind entity_kind, kgt_metric metric) {
    check_bounds_of(false, dim, query_kind, entity_kind, metric);
    check_bounds_of(true, dim, query_kind, entity_kind, metric);
}

/* Checks the range of codes: at least the largest value, and not uselessly large. */
static void check_range(const kgt_bytes *bytes, size_t dim, kind what, bool query) {
    float *x = exact(dim, sizeof *x);
    fill(x, dim, what);
    const float largest = bytes->largest(x, dim);
    if (bytes->range != NULL) {
        const float range = bytes->range(x, dim, largest, query);
        expect(range >= largest && range <= 8 * largest, "range", "dim %zu, kind %d: %g of %g", dim,
               (int)what, (double)range, (double)largest);
    }
    free(x);
}

static void check_dot(const kgt_bytes *bytes, size_t dim) {
    check_product(bytes, dim, KGT_BYTE_PANELS);
    for (int what = 0; what < 2 * N_KINDS; what++)
        check_range(bytes, dim, (kind)(what / 2), what % 2);
    check_product(bytes, dim, 3 * KGT_BYTE_PANELS);
    if (bytes->dot.reaching != NULL) {
        check_reaching(bytes, dim, 1 + dim % 3, false);
        check_reaching(bytes, dim, 1 + dim % 5, true);
    }
    for (int what = 0; what < 2 * N_KINDS; what++)
        check_bounds(dim, what < N_KINDS ? (kind)what : REALS, (kind)(what % N_KINDS),
                     what % 2 ? KGT_L2 : KGT_DOT);
    check_bounds(dim, CODES, CODES, KGT_DOT);
    check_bounds(dim, CODES, REALS, KGT_L2);
    check_bounds(dim, TO_BE_OPPOSED, REALS, KGT_DOT);
    check_bounds(dim, HALVES, HALVES, KGT_DOT);
    check_bounds(dim, WHOLE, WHOLE, KGT_DOT);
    check_bounds(dim, WHOLE, WHOLE, KGT_L2);
}

static void check_l1(const kgt_bytes *bytes, size_t dim) {
    check_product_l1(bytes, dim, KGT_BYTE_PANELS);
    check_product_l1(bytes, dim, 3 * KGT_BYTE_PANELS);
    for (int what = 0; what < 2 * N_KINDS; what++) {
        check_quantise_l1(bytes, dim, (kind)(what / 2), what % 2);
        check_bounds(dim, what < N_KINDS ? (kind)what : REALS, (kind)(what % N_KINDS), KGT_L1);
    }
    for (kind what = BETWEEN; what <= BETWEEN_FINE; what++) {
        check_bounds(dim, STEPS, what, KGT_L1);
        check_bounds(dim, what, STEPS, KGT_L1);
    }
    check_bounds(dim, WHOLE, WHOLE, KGT_L1);
}

void check_bytes(void) {
    static const size_t dims[] = {1,  2,  3,  4,  5,  7,   8,   9,   15, 16,
                                  17, 31, 63, 64, 65, 100, 128, 129, 200};
    const kgt_bytes *bytes = kgt_bytes_active();
    if (bytes == NULL) return;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i += brief ? 6 : 1) {
        const size_t dim = dims[i];
        if (bytes->dot.product != NULL) check_dot(bytes, dim);
        check_l1(bytes, dim);
        for (size_t n = 0; n < 20; n++) {
            for (int in_double = 0; in_double < 2; in_double++) {
                check_pairs(&bytes->dot, false, in_double, dim, n);
                check_pairs(&bytes->l1, true, in_double, dim, n);
            }
            check_refine(&bytes->dot, false, dim, n);
            check_refine(&bytes->l1, true, dim, n);
        }
        for (int what = 0; what < N_KINDS; what++) check_quantise(bytes, dim, (kind)what);
    }
    if (bytes->dot.product != NULL) check_product(bytes, 1032, KGT_BYTE_PANELS);
    if (bytes->dot.reaching != NULL) check_reaching(bytes, 9, KGT_MOST_WORDS, false);
    check_product_l1(bytes, 1032, KGT_BYTE_PANELS); /* sums need more than 16 bits */
    for (size_t words = 1; words <= 8; words++)
        for (size_t m = 1; m <= KGT_JUDGED; m++) check_judge(bytes, words, m, m % 2 == words % 2);
    for (size_t words = 1; words <= 8; words++)
        for (int again = 0; again < 4; again++) check_highest_lower(bytes, words, again % 2);
    for (size_t words = 1; words <= KGT_MOST_WORDS; words++)
        for (int again = 0; again < 3; again++) check_bits(bytes, words);
}
