/* Ranks blocks of rows and of factors by the public functions. Every output of the path under test
 * must have the same bits as the scalar path's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "factors/factors_codes.h"
#include "kgtrec.h"
#include "native.h"

/* ---- outputs ---- */

enum {
    GREATER,
    EQUAL,
    TIED_AHEAD,
    MACRO_GREATER,
    MACRO_EQUAL,
    MACRO_TIED_AHEAD,
    NAN_COUNT,
    NAN_FIRST,
    BEST_IDS,
    BEST_SCORES,
    BEST_LENGTH,
    JOB_SCORES,
    FACTOR_SCORES,
    N_OUTPUTS
};
static const char *const OUTPUT_NAMES[N_OUTPUTS] = {
    "greater",          "equal",         "tied_ahead",    "macro_greater", "macro_equal",
    "macro_tied_ahead", "nan count",     "first nan",     "best ids",      "best scores",
    "best length",      "target scores", "factor scores",
};

typedef struct {
    void *data[N_OUTPUTS];
    size_t size[N_OUTPUTS];
} outputs;

static void outputs_open(outputs *out, size_t n_targets, size_t n_rows, size_t depth,
                         size_t n_scores) {
    for (int i = 0; i < N_OUTPUTS; i++) out->size[i] = n_targets * sizeof(int64_t);
    out->size[NAN_COUNT] = n_rows * sizeof(int64_t);
    out->size[NAN_FIRST] = out->size[BEST_LENGTH] = n_rows * sizeof(int32_t);
    out->size[BEST_IDS] = n_rows * depth * sizeof(int32_t);
    out->size[BEST_SCORES] = n_rows * depth * sizeof(double);
    out->size[FACTOR_SCORES] = n_scores * sizeof(double);
    for (int i = 0; i < N_OUTPUTS; i++) {
        out->data[i] = exact(out->size[i], 1);
        if (out->size[i] > 0) memset(out->data[i], 0, out->size[i]);
    }
}

static void outputs_close(outputs *out) {
    for (int i = 0; i < N_OUTPUTS; i++) free(out->data[i]);
}

static void expect_same_outputs(const outputs *got, const outputs *due, const char *what,
                                const char *details) {
    for (int i = 0; i < N_OUTPUTS; i++) {
        const char *a = got->data[i], *b = due->data[i];
        size_t at = 0;
        while (at < due->size[i] && a[at] == b[at]) at++;
        expect(at == due->size[i], what, "%s: %s differ from byte %zu on", details, OUTPUT_NAMES[i],
               at);
    }
}

/* ---- tasks ---- */

typedef struct {
    int64_t *offsets;
    int32_t *ids;
    int64_t n_rows;
} lists;

/* Lists that hold each entity with probability 1 / `rarity`; of `named`, if any, all or none. */
static lists random_lists(int64_t n_rows, int64_t n_entities, size_t rarity, const lists *named,
                          bool all) {
    lists made = {exact((size_t)n_rows + 1, sizeof(int64_t)), NULL, n_rows};
    int32_t *ids = exact((size_t)(n_rows * n_entities), sizeof(int32_t));
    int64_t used = 0;
    made.offsets[0] = 0;
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t next = named ? named->offsets[row] : 0;
        for (int32_t id = 0; id < n_entities; id++) {
            const bool is_named = named && next < named->offsets[row + 1] && named->ids[next] == id;
            next += is_named;
            if (is_named ? all : random_below(rarity) == 0) ids[used++] = id;
        }
        made.offsets[row + 1] = used;
    }
    made.ids = exact((size_t)used, sizeof(int32_t)); /* so that a read beyond is found */
    if (used > 0) memcpy(made.ids, ids, (size_t)used * sizeof(int32_t));
    free(ids);
    return made;
}

/* The ids of one without those of the other, row by row. */
static lists without(const lists *all, const lists *others) {
    const int64_t n_rows = all->n_rows;
    lists made = {exact((size_t)n_rows + 1, sizeof(int64_t)), NULL, n_rows};
    made.ids = exact((size_t)all->offsets[n_rows], sizeof(int32_t));
    int64_t used = made.offsets[0] = 0;
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t next = others->offsets[row];
        for (int64_t i = all->offsets[row]; i < all->offsets[row + 1]; i++) {
            while (next < others->offsets[row + 1] && others->ids[next] < all->ids[i]) next++;
            if (next == others->offsets[row + 1] || others->ids[next] != all->ids[i])
                made.ids[used++] = all->ids[i];
        }
        made.offsets[row + 1] = used;
    }
    return made;
}

typedef struct {
    lists targets, known, removed, lists;
    int64_t *row_question, *row_list, *slot;
    int32_t *position, *entity_at;
    kgt_task task;
    size_t n_targets;
} assignment;

/* Every row has its own question. A third of the rows keep no best. If candidates are restricted, a
 * quarter of the rows still have all entities. */
static assignment random_task(int64_t n_rows, int64_t n_entities, bool shuffled, bool restricted) {
    const size_t n = (size_t)n_entities;
    assignment made = {.row_question = exact((size_t)n_rows, sizeof(int64_t)),
                       .row_list = exact((size_t)n_rows, sizeof(int64_t)),
                       .slot = exact((size_t)n_rows, sizeof(int64_t)),
                       .position = exact(n, sizeof(int32_t)),
                       .entity_at = exact(n, sizeof(int32_t))};
    made.targets = random_lists(n_rows, n_entities, 1 + n / 6, NULL, false);
    made.known = random_lists(n_rows, n_entities, 3 + n / 40, NULL, false);
    made.removed = random_below(2) == 0
                       ? without(&made.known, &made.targets)
                       : random_lists(n_rows, n_entities, 3 + n / 30, &made.targets, false);
    made.lists = random_lists(n_rows, n_entities, 2, &made.targets, true);
    made.n_targets = (size_t)made.targets.offsets[n_rows];
    for (int64_t row = 0; row < n_rows; row++) {
        made.row_question[row] = row;
        made.row_list[row] = row % 4 == 3 ? -1 : row;
        made.slot[row] = row % 3 == 2 ? -1 : row;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t other = random_below(i + 1);
        made.entity_at[i] = made.entity_at[other];
        made.entity_at[other] = (int32_t)i;
    }
    for (size_t i = 0; i < n; i++) made.position[made.entity_at[i]] = (int32_t)i;
    made.task = (kgt_task){.row_question = made.row_question,
                           .targets = {made.targets.offsets, made.targets.ids},
                           .known = {made.known.offsets, made.known.ids},
                           .removed = {made.removed.offsets, made.removed.ids},
                           .row_list = restricted ? made.row_list : NULL,
                           .lists = {made.lists.offsets, made.lists.ids},
                           .position = shuffled ? made.position : NULL,
                           .entity_at = shuffled ? made.entity_at : NULL};
    return made;
}

static void task_close(assignment *made) {
    const lists all[4] = {made->targets, made->known, made->removed, made->lists};
    for (int i = 0; i < 4; i++) {
        free(all[i].offsets);
        free(all[i].ids);
    }
    free(made->row_question);
    free(made->row_list);
    free(made->slot);
    free(made->position);
    free(made->entity_at);
}

static kgt_counts counts_of(const outputs *out) {
    return (kgt_counts){out->data[GREATER],     out->data[EQUAL],
                        out->data[TIED_AHEAD],  out->data[MACRO_GREATER],
                        out->data[MACRO_EQUAL], out->data[MACRO_TIED_AHEAD]};
}

static kgt_best best_of(const outputs *out, const assignment *made, int64_t depth) {
    return (kgt_best){depth, made->slot, out->data[BEST_IDS], out->data[BEST_SCORES],
                      out->data[BEST_LENGTH]};
}

static kgt_nans nans_of(const outputs *out) {
    return (kgt_nans){out->data[NAN_COUNT], out->data[NAN_FIRST]};
}

/* ---- rows ---- */

typedef enum { PACKED, STRIDED, REVERSED, SHIFTED, COLUMNS, N_LAYOUTS } layout;

/* Few values, so that many tie; sometimes a zero of either sign, an infinity or NaN. */
static void write_score(char *place, kgt_dtype dtype, bool nans) {
    static const double values[] = {0.0, -0.0, 1.0, 2.5, -3.0, 0.5, INFINITY, -INFINITY, 1.0, 2.0};
    static const uint16_t halves[] = {0, 0x8000, 0x3C00, 0x4100, 0xC200, 0x3800, 0x7C00, 0xFC00};
    static const uint16_t brains[] = {0, 0x8000, 0x3F80, 0x4020, 0xC040, 0x3F00, 0x7F80, 0xFF80};
    const bool nan = nans && random_below(50) == 0;
    const double wide = nan ? NAN : values[random_below(10)];
    const float single = (float)wide;
    const uint16_t half = nan ? 0x7E01 : halves[random_below(8)];
    const uint16_t brain = nan ? 0xFFC1 : brains[random_below(8)];
    if (dtype == KGT_F64) memcpy(place, &wide, sizeof wide);
    if (dtype == KGT_F32) memcpy(place, &single, sizeof single);
    if (dtype == KGT_F16) memcpy(place, &half, sizeof half);
    if (dtype == KGT_BF16) memcpy(place, &brain, sizeof brain);
}

/* A block at the very end of its memory. */
static kgt_scores random_scores(int64_t n_rows, int64_t n_entities, kgt_dtype dtype, layout layout,
                                bool nans, char **memory) {
    const int64_t size = dtype == KGT_F64 ? 8 : dtype == KGT_F32 ? 4 : 2;
    const int64_t step = layout == STRIDED ? 3 * size : size, shift = layout == SHIFTED;
    const int64_t span = (n_rows * n_entities - 1) * step + size;
    *memory = exact((size_t)(span + shift), 1);
    memset(*memory, 0, (size_t)(span + shift));
    for (int64_t i = 0; i < n_rows * n_entities; i++)
        write_score(*memory + shift + i * step, dtype, nans);
    const bool reversed = layout == REVERSED, columns = layout == COLUMNS;
    return (kgt_scores){.data = *memory + shift + (reversed ? (n_entities - 1) * step : 0),
                        .dtype = dtype,
                        .n_rows = n_rows,
                        .n_entities = n_entities,
                        .row_stride = columns ? step : n_entities * step,
                        .entity_stride = columns    ? n_rows * step
                                         : reversed ? -step
                                                    : step};
}

/* Ranks whole rows, or two ranges of their entities one after the other. */
static void rank_rows(const kgt_scores *scores, const assignment *made, int64_t depth, bool ranges,
                      const outputs *out) {
    const kgt_counts counts = counts_of(out);
    const kgt_best best = best_of(out, made, depth);
    const kgt_nans nans = nans_of(out);
    double *target_scores = out->data[JOB_SCORES];
    kgt_status status = kgt_target_scores(scores, &made->task, 0, target_scores);
    const int64_t cut = ranges ? scores->n_entities / 3 : 0;
    if (ranges) {
        kgt_scores part = *scores;
        part.n_entities = cut;
        status |= kgt_rank_rows(&part, &made->task, 0, target_scores, &counts, &best, &nans);
    }
    kgt_scores rest = *scores;
    rest.data = (const char *)scores->data + cut * scores->entity_stride;
    rest.first_entity = (int32_t)cut;
    rest.n_entities -= cut;
    status |=
        kgt_rank_rows(&rest, &made->task, 0, ranges ? target_scores : NULL, &counts, &best, &nans);
    expect(status == KGT_OK, "kgt_rank_rows", "status %d", (int)status);
}

static void check_block(const char *path, int64_t n_rows, int64_t n_entities, int64_t depth,
                        int variant) {
    const kgt_dtype dtype = (kgt_dtype)(variant % 4);
    const layout layout = variant / 4 % N_LAYOUTS;
    const bool negate = random_below(2), shuffled = random_below(2), ranges = random_below(2);
    const bool restricted = !ranges && random_below(2);
    char *memory, details[160];
    snprintf(details, sizeof details,
             "%lld rows, %lld entities, depth %lld, dtype %d, layout %d, negate %d, shuffled %d, "
             "ranges %d, restricted %d",
             (long long)n_rows, (long long)n_entities, (long long)depth, (int)dtype, (int)layout,
             negate, shuffled, ranges, restricted);
    assignment made = random_task(n_rows, n_entities, shuffled, restricted);
    kgt_scores scores = random_scores(n_rows, n_entities, dtype, layout, random_below(2), &memory);
    scores.negate = negate;
    outputs got, due;
    outputs_open(&got, made.n_targets, (size_t)n_rows, (size_t)depth, 0);
    outputs_open(&due, made.n_targets, (size_t)n_rows, (size_t)depth, 0);
    kgt_path_force("scalar");
    rank_rows(&scores, &made, depth, ranges, &due);
    kgt_path_force(path);
    if (spoils("rows")) write_score(memory + (layout == SHIFTED), dtype, true);
    rank_rows(&scores, &made, depth, ranges, &got);
    expect_same_outputs(&got, &due, "kgt_rank_rows", details);
    outputs_close(&got);
    outputs_close(&due);
    task_close(&made);
    free(memory);
}

void check_rows(const char *path) {
    static const int64_t entities[] = {1, 5, 17, 64, 130, 256, 2049, 7001};
    static const int64_t depths[] = {0, 1, 10, 300};
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i += brief ? 2 : 1)
        for (int variant = 0; variant < 4 * N_LAYOUTS; variant++)
            check_block(path, variant / 4 == COLUMNS ? (entities[i] < 3000 ? 261 : 67) : 5,
                        entities[i], depths[random_below(4)], variant);
}

/* ---- factors ---- */

/* Random reals, so that every rounding shows. The second half of the rows copies the first, so that
 * some tie. */
static void *random_table(int64_t n_rows, int64_t dim, kgt_dtype dtype) {
    const size_t n = (size_t)(n_rows * dim), size = dtype == KGT_F64 ? 8 : 4;
    char *table = exact(n, size);
    for (size_t i = 0; i < n; i++) {
        const double wide = (double)random_bits() * 0x1p-63 - 1.0;
        const float single = (float)wide;
        if (dtype == KGT_F64)
            memcpy(table + i * size, &wide, size);
        else
            memcpy(table + i * size, &single, size);
    }
    const size_t half = (size_t)(n_rows / 2 * dim) * size;
    if (half > 0) memcpy(table + n * size - half, table, half);
    return table;
}

/* The codes of a model for two calls with half its rows each. Parts are taken from last to first.
 * NULL if the path has none. */
static kgt_codes *codes_of(const kgt_factors *factors, int64_t depth) {
    kgt_codes *codes;
    kgt_status status = kgt_codes_open(factors, factors->n_rows / 2, depth, 1 << 24, &codes);
    for (int64_t i = codes ? kgt_codes_parts(codes) : 0; i-- > 0;)
        status |= kgt_codes_encode(codes, i);
    expect(status == KGT_OK, "kgt_codes_open", "status %d", (int)status);
    if (codes == NULL || !spoils("codes") || codes->n_blocks < 2) return codes;
    const kgt_block first = codes->blocks[0];
    codes->blocks[0] = codes->blocks[1];
    codes->blocks[1] = first;
    return codes;
}

static void rank_factors(const kgt_factors *factors, const assignment *made, int64_t depth,
                         const outputs *out, bool shared) {
    const kgt_counts counts = counts_of(out);
    const kgt_best best = best_of(out, made, depth);
    const kgt_nans nans = nans_of(out);
    double *target_scores = out->data[JOB_SCORES];
    kgt_tally tally = {0, 0, 0, 0};
    kgt_status status = kgt_factor_target_scores(factors, &made->task, 0, target_scores);
    kgt_codes *codes = shared ? codes_of(factors, depth) : NULL;
    kgt_factors half = *factors;
    half.n_rows = codes ? factors->n_rows / 2 : factors->n_rows;
    for (int64_t row = 0; row < factors->n_rows; row += half.n_rows) {
        half.queries = (const char *)factors->queries + (size_t)row * kgt_vector_bytes(factors);
        if (row + 2 * half.n_rows > factors->n_rows) half.n_rows = factors->n_rows - row;
        status |= kgt_rank_factors(&half, &made->task, row, target_scores, codes, &counts, &best,
                                   &nans, &tally);
    }
    kgt_codes_close(codes);
    status |= kgt_factor_scores(factors, out->data[FACTOR_SCORES]);
    expect(status == KGT_OK, "kgt_rank_factors", "status %d", (int)status);
}

/* Checks that an answer's own score is its score in the tile. */
static void expect_targets_in_scores(const kgt_factors *factors, const assignment *made,
                                     const outputs *out, const char *details) {
    const double *target_scores = out->data[JOB_SCORES];
    for (int64_t row = 0; row < factors->n_rows; row++)
        for (int64_t j = made->targets.offsets[row]; j < made->targets.offsets[row + 1]; j++) {
            const size_t at = (size_t)(row * factors->n_entities + made->targets.ids[j]);
            const double in_tile = factors->dtype == KGT_F64
                                       ? ((const double *)out->data[FACTOR_SCORES])[at]
                                       : (double)((const float *)out->data[FACTOR_SCORES])[at];
            expect(target_scores[j] == in_tile, "kgt_factor_target_scores",
                   "%s: %.17g, in its tile %.17g", details, target_scores[j], in_tile);
        }
}

static void check_model(const char *path, int64_t n_rows, int64_t n_entities, int64_t dim,
                        kgt_metric metric, kgt_dtype dtype) {
    const int64_t depth = random_below(2) ? 20 : 0;
    char details[120];
    snprintf(details, sizeof details, "%lld rows, %lld entities, dim %lld, dtype %d, metric %d",
             (long long)n_rows, (long long)n_entities, (long long)dim, (int)dtype, (int)metric);
    assignment made = random_task(n_rows, n_entities, random_below(2), false);
    void *queries = random_table(n_rows, dim, dtype), *bias = random_table(n_entities, 1, dtype);
    void *entities = random_table(n_entities, dim, dtype);
    const kgt_factors factors = {.queries = queries,
                                 .entities = entities,
                                 .bias = random_below(2) ? bias : NULL,
                                 .dtype = dtype,
                                 .metric = metric,
                                 .n_rows = n_rows,
                                 .n_entities = n_entities,
                                 .dim = dim};
    outputs got, due;
    outputs_open(&got, made.n_targets, (size_t)n_rows, (size_t)depth,
                 (size_t)(n_rows * n_entities));
    outputs_open(&due, made.n_targets, (size_t)n_rows, (size_t)depth,
                 (size_t)(n_rows * n_entities));
    kgt_path_force("scalar");
    rank_factors(&factors, &made, depth, &due, false);
    kgt_path_force(path);
    if (spoils("factors")) ((char *)entities)[0] ^= 1; /* the last bit of one number */
    rank_factors(&factors, &made, depth, &got, random_below(2) || n_entities > 2048);
    expect_same_outputs(&got, &due, "kgt_rank_factors", details);
    expect_targets_in_scores(&factors, &made, &got, details);
    outputs_close(&got);
    outputs_close(&due);
    task_close(&made);
    free(queries);
    free(entities);
    free(bias);
}

void check_factors(const char *path) {
    static const int64_t rows[] = {1, 9, 67, 130}, entities[] = {1, 47, 49, 1600},
                         dims[] = {1, 7, 32};
    for (int variant = 0; variant < 6; variant++) {
        const kgt_metric metric = (kgt_metric)(variant % 3);
        const kgt_dtype dtype = variant < 3 ? KGT_F32 : KGT_F64;
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < 4; j += brief ? 3 : 1)
                check_model(path, rows[i], entities[j], dims[random_below(3)], metric, dtype);
        /* In several blocks, each metric and both types. */
        if (variant == 0 || (variant % 2 == 0 && !brief))
            check_model(path, 130, 4200, 32, metric, dtype);
    }
}
