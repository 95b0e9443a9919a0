/* Counts the scores of many rows together, as pair ranking does, and compares with a loop over all
 * cells. The oracle does not use the package's code. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kgtrec.h"
#include "native.h"

/* Scores whose values the oracle knows: multiples of 1/4 up to 31.75, which every type holds, so
 * that many tie; infinities; and NaN if `nans`. */
static double random_value(bool nans) {
    const size_t kind = random_below(64);
    if (kind == 0) return random_below(2) ? INFINITY : -INFINITY;
    if (kind == 1 && nans) return NAN;
    const double size = (double)random_below(128) / 4;
    return random_below(4) == 0 ? size : -size;
}

static uint16_t half_of(double value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return 0x7E01;
    if (isinf(value)) return sign | 0x7C00;
    if (value == 0) return sign;
    int exponent;
    const double part = frexp(fabs(value), &exponent); /* 0.5 <= part < 1 */
    return (uint16_t)(sign | (exponent + 14) << 10 | (int)((part * 2 - 1) * 1024));
}

static void write_value(char *place, kgt_dtype dtype, double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint16_t half = half_of(value), brain = (uint16_t)(bits >> 16);
    if (dtype == KGT_F64) memcpy(place, &value, sizeof value);
    if (dtype == KGT_F32) memcpy(place, &single, sizeof single);
    if (dtype == KGT_F16) memcpy(place, &half, sizeof half);
    if (dtype == KGT_BF16) memcpy(place, &brain, sizeof brain);
}

/* What a call should give and gives, in memory of exact size. */
typedef struct {
    int64_t n, n_cells, capacity;
    double *thresholds, bound;
    kgt_pair_counts got;
} request;

/* Thresholds in any order, some or most of them equal. The bound is low, high, or none (NaN). */
static request random_request(int64_t n, int64_t n_cells, int64_t capacity) {
    static const double bounds[] = {-INFINITY, -3, 20, INFINITY, NAN};
    request made = {.n = n, .n_cells = n_cells, .capacity = capacity};
    made.thresholds = exact((size_t)n, sizeof(double));
    const bool few = random_below(2); /* distinct values */
    for (int64_t i = 0; i < n; i++)
        made.thresholds[i] = few ? 24.0 + (double)random_below(3)
                                 : random_value(false) + (double)random_below(2) / 8;
    made.bound = bounds[random_below(5)];
    made.got = (kgt_pair_counts){.n = n,
                                 .thresholds = made.thresholds,
                                 .greater = exact((size_t)n, sizeof(int64_t)),
                                 .at_least = exact((size_t)n, sizeof(int64_t)),
                                 .bound = made.bound,
                                 .capacity = capacity,
                                 .cells = exact((size_t)capacity, sizeof(int64_t)),
                                 .scores = exact((size_t)capacity, sizeof(double))};
    for (int64_t i = 0; i < n; i++) made.got.greater[i] = made.got.at_least[i] = 1000 + i;
    return made;
}

static void request_close(request *made) {
    free(made->thresholds);
    free(made->got.greater);
    free(made->got.at_least);
    free(made->got.cells);
    free(made->got.scores);
}

static void expect_counts(const request *made, const double *values, const char *details) {
    bool nan = false;
    for (int64_t cell = 0; cell < made->n_cells; cell++) nan |= isnan(values[cell]);
    expect(made->got.nan == nan, "kgt_pairs", "%s: nan %d, should be %d", details, made->got.nan,
           nan);
    for (int64_t i = 0; i < made->n; i++) {
        int64_t greater = 1000 + i, at_least = 1000 + i; /* added to */
        for (int64_t cell = 0; cell < made->n_cells; cell++) {
            greater += values[cell] > made->thresholds[i];
            at_least += values[cell] >= made->thresholds[i];
        }
        expect(made->got.greater[i] == greater && made->got.at_least[i] == at_least, "kgt_pairs",
               "%s: %lld above %g and %lld at least, should be %lld and %lld", details,
               (long long)made->got.greater[i], made->thresholds[i],
               (long long)made->got.at_least[i], (long long)greater, (long long)at_least);
    }
}

/* The cells are distinct, reach the bound, and are all of them, or as many as there is space. */
static void expect_cells(const request *made, const double *values, const char *details) {
    int64_t reach = 0;
    for (int64_t cell = 0; cell < made->n_cells; cell++) reach += values[cell] >= made->bound;
    if (made->capacity == 0) reach = 0;
    expect(made->got.used == reach, "kgt_pairs", "%s: %lld cells reach %g, should be %lld", details,
           (long long)made->got.used, made->bound, (long long)reach);
    char *seen = calloc((size_t)made->n_cells + 1, 1);
    bool good = seen != NULL;
    for (int64_t i = 0; good && i < made->got.used && i < made->capacity; i++) {
        const int64_t cell = made->got.cells[i];
        good = 0 <= cell && cell < made->n_cells && !seen[cell];
        good = good && values[cell] >= made->bound && made->got.scores[i] == values[cell];
        if (good) seen[cell] = 1;
    }
    expect(good, "kgt_pairs", "%s: a cell is wrong, or is there twice", details);
    free(seen);
}

static void check_relation(int64_t n_rows, int64_t width, int64_t n, kgt_dtype dtype) {
    const int64_t n_cells = n_rows * width, size = dtype == KGT_F64 ? 8 : dtype == KGT_F32 ? 4 : 2;
    const int64_t step = size * (1 + (int64_t)random_below(2));
    const bool negate = random_below(2), nans = random_below(2);
    request made = random_request(n, n_cells, (int64_t)random_below(3) * (n_cells / 2 + 1));
    char *memory = exact((size_t)((n_cells - 1) * step + size), 1), details[120];
    double *values = exact((size_t)n_cells, sizeof(double));
    memset(memory, 0, (size_t)((n_cells - 1) * step + size));
    for (int64_t cell = 0; cell < n_cells; cell++) {
        values[cell] = random_value(nans);
        write_value(memory + cell * step, dtype, negate ? -values[cell] : values[cell]);
    }
    snprintf(details, sizeof details, "%lld x %lld, %lld thresholds, capacity %lld, dtype %d",
             (long long)n_rows, (long long)width, (long long)n, (long long)made.capacity,
             (int)dtype);
    if (spoils("pair_counts")) values[0] = values[0] > 0 ? -INFINITY : INFINITY;
    const kgt_scores scores = {.data = memory,
                               .dtype = dtype,
                               .n_rows = n_rows,
                               .n_entities = width,
                               .row_stride = width * step,
                               .entity_stride = step,
                               .negate = negate};
    const kgt_status status = kgt_count_rows(&scores, &made.got);
    expect(status == KGT_OK, "kgt_pairs", "status %d", (int)status);
    expect_counts(&made, values, details);
    expect_cells(&made, values, details);
    request_close(&made);
    free(memory);
    free(values);
}

/* Products of small integers, which no order of additions rounds. */
static void check_vectors(int64_t n_rows, int64_t width, int64_t n, kgt_dtype dtype) {
    const int64_t dim = 1 + (int64_t)random_below(9), size = dtype == KGT_F64 ? 8 : 4;
    const int64_t n_cells = n_rows * width;
    double *numbers = exact((size_t)((n_rows + width) * dim), sizeof(double));
    double *values = exact((size_t)n_cells, sizeof(double));
    char *queries = exact((size_t)(n_rows * dim * size), 1), details[120];
    char *entities = exact((size_t)(width * dim * size), 1);
    for (int64_t i = 0; i < (n_rows + width) * dim; i++) {
        numbers[i] = (double)random_below(9) - 4;
        const int64_t at = i - n_rows * dim;
        write_value(at < 0 ? queries + i * size : entities + at * size, dtype, numbers[i]);
    }
    for (int64_t cell = 0; cell < n_cells; cell++) {
        values[cell] = 0;
        for (int64_t d = 0; d < dim; d++)
            values[cell] +=
                numbers[cell / width * dim + d] * numbers[(n_rows + cell % width) * dim + d];
    }
    snprintf(details, sizeof details, "%lld x %lld vectors, %lld thresholds, dtype %d",
             (long long)n_rows, (long long)width, (long long)n, (int)dtype);
    request made = random_request(n, n_cells, (int64_t)random_below(2) * n_cells);
    if (spoils("pair_vectors")) values[n_cells - 1] = INFINITY;
    const kgt_factors factors = {.queries = queries,
                                 .entities = entities,
                                 .dtype = dtype,
                                 .metric = KGT_DOT,
                                 .n_rows = n_rows,
                                 .n_entities = width,
                                 .dim = dim};
    const kgt_status status = kgt_count_factors(&factors, &made.got);
    expect(status == KGT_OK, "kgt_pairs", "status %d", (int)status);
    expect_counts(&made, values, details);
    expect_cells(&made, values, details);
    request_close(&made);
    free(numbers);
    free(values);
    free(queries);
    free(entities);
}

void check_pair_counts(void) {
    /* Few thresholds are compared with each score; more are sorted, and histograms count. Rows end
     * around lanes and blocks, and more than 64 of them are compressed again. */
    static const int64_t thresholds[] = {1, 3, 16, 17, 40, 700};
    static const int64_t widths[] = {1, 15, 33, 255, 2049, 4111};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j += brief ? 2 : 1)
            for (int variant = 0; variant < 4; variant++) {
                const int64_t n_rows = widths[j] < 100 ? 131 : 1 + (int64_t)random_below(4);
                check_relation(n_rows, widths[j], thresholds[i], (kgt_dtype)variant);
                if (variant < 2)
                    check_vectors(n_rows, widths[j], thresholds[i], variant ? KGT_F32 : KGT_F64);
            }
}
