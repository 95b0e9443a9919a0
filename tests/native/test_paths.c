/* Checks every kernel path of this build against the scalar path, without Python. First come
 * primitives at all lane edges, in memory of exact size, then whole ranked blocks. CONTRIBUTING.md
 * says how to build it.
 *
 *     test_paths [--brief | --wrong WHAT] [PATH ...]
 *
 * Without a PATH, it checks all that this machine can run. --brief omits the slowest checks, for
 * tools that make a program some thirty times slower. --wrong adds a deliberate fault (see WRONGS)
 * and ends when a check finds it. Exit status 1 if anything differs. */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa_kernel.h"
#include "kgtrec.h"
#include "native.h"

static const char *const WRONGS[] = {
    "count_end",      "count_ties",    "count_nan",   "compress",     "select",
    "fold_low",       "fold_twice",    "fold_nan",    "tile",         "tile_l1",
    "norms",          "pair",          "pair_l1",     "widen_f16",    "count_f16",
    "maxima",         "rows",          "factors",     "overread",     "files",
    "lines",          "sort_keys",     "product",     "pairs",        "refine",
    "quantise",       "quantise_fine", "fine bound",  "bound",        "transpose",
    "locate",         "histogram",     "tied_up_to",  "labels",       "product_l1",
    "refine_l1",      "pairs_l1",      "quantise_l1", "bound l1",     "fine bound l1",
    "query bound l1", "count_short",   "pairs_f64",   "pairs_l1_f64", "rounding",
    "judge",          "highest_lower", "cells",       "cells_nan",    "codes",
    "reaching",       "mark",          "tile_moduli", "pair_moduli",  "tile_mode",
    "tile_hake",      "pair_mode",     "pair_hake",   "pair_counts",  "pair_vectors",
};

/* Most failures that are printed. */
#define MOST_PRINTED 20

const char *spoilt = "";
bool brief;
static const char *path_under_test = "";
static long long n_checks, n_failures;

bool spoils(const char *what) { return strcmp(spoilt, what) == 0; }

/* False where a libc's fma gives 0 for a product that underflows to -0, as that of ziglang 0.17 for
 * musl does. The scalar path calls this fma; the others use the processor's. */
static bool fma_keeps_sign(void) {
    volatile double small = 1e-200;
    return signbit(fma(-small, small, 0.0)) != 0;
}

static void fail(void) {
    printf("FAILED\n");
    exit(1);
}

void expect(bool holds, const char *what, const char *format, ...) {
    n_checks++;
    if (holds || n_failures++ >= MOST_PRINTED) return;
    va_list arguments;
    va_start(arguments, format);
    printf("%s: %s: ", path_under_test, what);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    if (n_failures == MOST_PRINTED && *spoilt) fail();
}

/* xorshift64* */
uint64_t random_bits(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}

size_t random_below(size_t n) { return (size_t)(random_bits() >> 33) % n; }

void *exact(size_t count, size_t size) {
    void *memory = malloc(count * size);
    if (memory == NULL && count > 0) {
        printf("no memory for the test itself\n");
        exit(1);
    }
    return memory;
}

typedef enum { TIES, EDGES, REALS, ONE_NAN, ALL_NAN, N_MIXES } mix;

#define T float
#define OPS f32
#define FN(op) op##_f32
#define NAME(op) op "_f32"
#define BITS uint32_t
#define SIGNALLING 0x7FA00000u
#define TINY 0x1p-149f
#define LARGE FLT_MAX
#include "primitives_body.h"
#include "wrong_body.h"
#undef T
#undef OPS
#undef FN
#undef NAME
#undef BITS
#undef SIGNALLING
#undef TINY
#undef LARGE

#define T double
#define OPS f64
#define FN(op) op##_f64
#define NAME(op) op "_f64"
#define BITS uint64_t
#define SIGNALLING 0x7FF4000000000000u
#define TINY 0x1p-1074
#define LARGE DBL_MAX
#include "primitives_body.h"
#include "wrong_body.h"

static void check_widen(const kgt_kernel *kernel, size_t n, size_t shift, uint16_t first) {
    uint16_t *memory = exact(n + shift, sizeof(uint16_t)), *x = memory + shift;
    float *out = exact(n, sizeof(float)), *due = exact(n, sizeof(float));
    for (size_t i = 0; i < n; i++) x[i] = (uint16_t)(first + i);
    kernel->widen_f16(x, n, out);
    kgt_kernel_scalar.widen_f16(x, n, due);
    expect_same_f32(out, due, n, "widen_f16", n);
    free(memory);
    free(out);
    free(due);
}

/* Wrong for the smallest halves: subnormals are lost. */
static void wrong_widen_f16(const uint16_t *x, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        const uint16_t half = x[i] & 0x7C00u ? x[i] : 0;
        kgt_kernel_scalar.widen_f16(&half, 1, out + i);
    }
}

typedef bool (*count_16)(const uint16_t *, size_t, const float *, size_t, int64_t *, int64_t *,
                         float *);

/* Checks counts of 16-bit scores against those of the widened scores. */
static void check_count_16(count_16 count, const uint16_t *x, const float *wide, size_t n,
                           const char *what) {
    float t[9], *maxima = exact(KGT_MAXIMA(n), sizeof(float));
    for (size_t m = 0; m <= 9; m++) {
        int64_t greater[9] = {0}, at_least[9] = {0}, due[9] = {0}, due_at_least[9] = {0};
        for (size_t j = 0; j < m; j++) t[j] = threshold_f32(wide, n);
        atomic_store(&kgt_stream_ahead, m / 2 % 2 == 0 ? 256 : 0);
        const bool nan = count(x, n, t, m, greater, at_least, m % 2 ? maxima : NULL);
        const bool due_nan = kgt_kernel_scalar.f32.count(wide, n, t, m, due, due_at_least, NULL);
        expect(nan == due_nan, what, "n %zu, m %zu: NaN seen: %d, should be %d", n, m, nan,
               due_nan);
        expect(memcmp(greater, due, sizeof due) == 0, what, "n %zu, m %zu: wrong >", n, m);
        expect(memcmp(at_least, due_at_least, sizeof due) == 0, what, "n %zu, m %zu: wrong >=", n,
               m);
        if (m % 2) check_maxima_f32(wide, n, KGT_GROUP, maxima, KGT_MAXIMA(n), what);
    }
    free(maxima);
}

static void check_16(const kgt_kernel *kernel, size_t n, size_t shift) {
    uint16_t *memory = exact(n + shift, sizeof(uint16_t)), *x = memory + shift;
    float *wide = exact(n, sizeof(float));
    const size_t few = 1 + random_below(70000); /* few: many ties */
    for (size_t i = 0; i < n; i++) x[i] = (uint16_t)(random_below(few) * 40503u);
    kgt_kernel_scalar.widen_f16(x, n, wide);
    check_count_16(kernel->count_f16, x, wide, n, "count_f16");
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(wide + i, &bits, sizeof bits);
    }
    check_count_16(kernel->count_bf16, x, wide, n, "count_bf16");
    free(memory);
    free(wide);
}

typedef void (*transpose_16)(const uint16_t *, ptrdiff_t, size_t, size_t, float *, size_t);

/* Transposes and widens every half: columns of `rows` to rows. */
static void check_transpose_16(transpose_16 transpose, transpose_16 scalar, size_t rows,
                               const char *what) {
    const size_t n = (1u << 16) / rows;
    uint16_t *x = exact(n * rows, sizeof *x);
    float *out = exact(n * rows, sizeof *out), *due = exact(n * rows, sizeof *due);
    for (size_t i = 0; i < n * rows; i++) x[i] = (uint16_t)i;
    transpose(x, (ptrdiff_t)rows, rows, n, out, n);
    scalar(x, (ptrdiff_t)rows, rows, n, due, n);
    expect_same_f32(out, due, n * rows, what, rows);
    free(x);
    free(out);
    free(due);
}

static count_16 honest_count_f16;

/* Wrong: misses a NaN. */
static bool wrong_count_f16(const uint16_t *x, size_t n, const float *t, size_t m, int64_t *greater,
                            int64_t *at_least, float *maxima) {
    honest_count_f16(x, n, t, m, greater, at_least, maxima);
    return false;
}

/* Distinct keys: far apart, or with equal leading halves, as the keys of tied scores have. */
static void check_sort_keys(const kgt_kernel *kernel, size_t n, bool ties) {
    uint64_t *keys = exact(n + KGT_SLACK, sizeof *keys);
    uint64_t *out = exact(n, sizeof *out), *due = exact(n, sizeof *due);
    for (size_t i = 0; i < n + KGT_SLACK; i++) {
        const uint64_t bits =
            random_bits() & 0xFFFFFFFFFFFF0000u; /* the places make keys distinct */
        keys[i] = (ties ? bits & 0x8000000000000000u : bits) | (i * 40503u & 0xFFFFu);
    }
    kernel->sort_keys(keys, n, out);
    kgt_kernel_scalar.sort_keys(keys, n, due);
    for (size_t i = 0; i < n; i++)
        expect(out[i] == due[i], "sort_keys", "n %zu: key %zu is %llx, should be %llx", n, i,
               (unsigned long long)out[i], (unsigned long long)due[i]);
    for (size_t i = 1; i < n; i++)
        expect(out[i - 1] > out[i], "sort_keys", "n %zu: key %zu is not above the next", n, i - 1);
    free(keys);
    free(out);
    free(due);
}

/* Wrong: compares keys as signed numbers. */
static void wrong_sort_keys(const uint64_t *keys, size_t n, uint64_t *out) {
    for (size_t i = 0; i < n; i++) {
        size_t place = 0;
        for (size_t j = 0; j < n; j++) place += (int64_t)keys[j] > (int64_t)keys[i];
        out[place] = keys[i];
    }
}

/* Checks some ids of a row of n entities, bit by bit. */
static void check_mark(const kgt_kernel *kernel, size_t n) {
    if (kernel->mark == NULL || n > KGT_SHORT) return;
    const size_t n_words = (n + 63) / 64, one_in = 1 + random_below(6);
    const int32_t first = (int32_t)random_below(1000);
    uint64_t *out = exact(n_words, sizeof *out), due[KGT_SHORT_WORDS] = {0};
    int32_t chosen[KGT_SHORT];
    size_t n_ids = 0;
    for (size_t place = 0; place < n; place++) {
        if (random_below(one_in) > 0) continue;
        due[place / 64] |= (uint64_t)1 << place % 64;
        chosen[n_ids++] = first + (int32_t)place;
    }
    int32_t *ids = exact(n_ids, sizeof *ids);
    if (n_ids > 0) memcpy(ids, chosen, n_ids * sizeof *ids);
    kernel->mark(ids, n_ids, first, n_words, out);
    for (size_t i = 0; i < n_words; i++)
        expect(out[i] == due[i], "mark", "n %zu: word %zu of %zu ids is %llx, should be %llx", n, i,
               n_ids, (unsigned long long)out[i], (unsigned long long)due[i]);
    free(ids);
    free(out);
}

/* Wrong: loses the last bit of a word. */
static void wrong_mark(const int32_t *ids, size_t n, int32_t first, size_t n_words,
                       uint64_t *words) {
    for (size_t i = 0; i < n_words; i++) words[i] = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t place = (size_t)(ids[i] - first);
        if (place % 64 < 63) words[place / 64] |= (uint64_t)1 << place % 64;
    }
}

static void check_primitives(const kgt_kernel *kernel) {
    static const size_t longer[] = {127,  128,  129,  191,  192,  255,  256,  257,  1023,
                                    1025, 2047, 2048, 2049, 4095, 4096, 4097, 4099, 8211};
    static const size_t dims[] = {0, 1, 2, 3, 7, 8, 9, 17, 64, 100};
    for (size_t i = 0; i < 80 + sizeof longer / sizeof longer[0]; i += brief ? 7 : 1) {
        const size_t n = i < 80 ? i : longer[i - 80];
        check_row_length_f32(kernel, n);
        check_row_length_f64(kernel, n);
        for (size_t shift = 0; shift < 3; shift++) {
            check_widen(kernel, n, shift, (uint16_t)random_bits());
            check_16(kernel, n, shift);
            if (n <= 257) check_sort_keys(kernel, n, shift == 1);
            check_mark(kernel, n);
        }
    }
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        check_dimension_f32(kernel, dims[i]);
        check_dimension_f64(kernel, dims[i]);
    }
    check_transposes_f32(kernel);
    check_transposes_f64(kernel);
    for (size_t rows = 1; rows <= 64; rows += 9) {
        check_transpose_16(kernel->transpose_f16, kgt_kernel_scalar.transpose_f16, rows,
                           "transpose_f16");
        check_transpose_16(kernel->transpose_bf16, kgt_kernel_scalar.transpose_bf16, rows,
                           "transpose_bf16");
    }
    if (!brief && kernel->f32.count != kgt_kernel_scalar.f32.count) {
        check_many_counts_f32(kernel);
        check_many_counts_f64(kernel);
    }
    check_widen(kernel, 1u << 16, 0, 0); /* every half */
}

static bool check_path(const char *name) {
    const long long checks_before = n_checks, failures_before = n_failures;
    path_under_test = name;
    if (!kgt_path_force(name)) {
        printf("%s: not a path that this build and machine can run; there are:", name);
        for (int i = 0; kgt_path_name(i) != NULL; i++) printf(" %s", kgt_path_name(i));
        printf("\n");
        return false;
    }
    kgt_kernel kernel = *kgt_kernel_active();
    spoil_f32(&kernel);
    spoil_f64(&kernel);
    if (spoils("widen_f16")) kernel.widen_f16 = wrong_widen_f16;
    honest_count_f16 = kernel.count_f16;
    if (spoils("sort_keys")) kernel.sort_keys = wrong_sort_keys;
    if (spoils("mark")) kernel.mark = wrong_mark;
    if (spoils("count_f16")) kernel.count_f16 = wrong_count_f16;
    check_labels();
    check_files();
    check_bytes();
    check_primitives(&kernel);
    check_rows(name);
    check_factors(name);
    check_pair_counts();
    const long long failures = n_failures - failures_before;
    printf("%s: %lld checks against scalar, %lld failed\n", name, n_checks - checks_before,
           failures);
    return failures == 0;
}

static bool is_wrong(const char *what) {
    for (size_t i = 0; i < sizeof WRONGS / sizeof WRONGS[0]; i++)
        if (strcmp(WRONGS[i], what) == 0) return true;
    return false;
}

int main(int argc, char **argv) {
    int first = 1;
    bool good = true;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* keeps earlier findings if a path crashes */
    if (argc > 1 && strcmp(argv[1], "--brief") == 0) {
        brief = true;
        first = 2;
    } else if (argc > 2 && strcmp(argv[1], "--wrong") == 0) {
        spoilt = argv[2];
        first = 3;
        if (!is_wrong(spoilt)) {
            printf("--wrong %s: nothing of that name can be spoilt\n", spoilt);
            return 1;
        }
    }
    for (int i = first; i < argc; i++) good &= check_path(argv[i]);
    for (int i = 0; first == argc && kgt_path_name(i) != NULL; i++)
        good &= check_path(kgt_path_name(i));
    if (!good) fail();
    printf("all paths agree\n");
    return 0;
}
