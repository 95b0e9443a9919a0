/* Ranks of a factorised model from bounds of its scores: a rank only asks on which side of the
 * answer's score each candidate lies, which a product of bytes settles for nearly all (see
 * factors_bounds.h). What it leaves open is computed, first as a plain dot product with bounds of
 * its own, and the chain, whose bits count, where that is too close as well.
 *
 * Blocks of entities outside, tiles of queries inside. Rows for which a block leaves too much open
 * are ranked from a tile of scores, as without bounds; so are all rows in a block that holds a
 * vector without bounds. Nothing that comes out depends on which way was taken. */
#include "factors_bounds.h"

#include <math.h>
#include <stdlib.h>

#define T float
#define OPS f32
#define FN(op) op##_f32
#include "factors_vectors_body.h"

/* Fewer rows than this do not pay for quantising the entities, fewer entities not for the queries;
 * and scores of short vectors are computed as fast as their bounds. */
#define FEWEST_ROWS 48
#define FEWEST_ENTITIES 512
#define SHORTEST 24
#define DEEPEST 256
/* Of a row's comparisons with a block, one in so many may be left open; of those that the plain dot
 * product leaves open, one in so many. */
#define OPEN_SHARE 6
#define CLOSE_SHARE 16
/* Tiles of queries that were ranked from scores leave so many blocks out before the next attempt,
 * doubled each time, up to the other. */
#define FIRST_PAUSE 8
#define LONGEST_PAUSE 64
/* Of a tile, so many rows are tried before it is given up, if all of them fail; and after so many
 * such tiles in a row, only one in EVERY is tried at all. */
#define FIRST_TRIES 4
#define HOPELESS 2
#define EVERY 16
/* Groups whose maxima give a row's best their first bound, which the block must be a multiple of,
 * and up to which depth they do. */
#define FIRST_GROUPS 64
#define FIRST_DEEPEST 32
/* The best of a row are sorted once so many wait. */
#define WAITING 6

typedef struct {
    const kgt_factors *factors;
    const kgt_call *call;
    kgt_block block;
    kgt_queries queries;
    kgt_worker_f32 worker;
    kgt_tiler_f32 tiler; /* of rows that are ranked from scores: opened by the first */
    kgt_factors tiled;   /* these rows' queries */
    bool tiling;
    int64_t *rows, n_rows; /* to be ranked from scores of this block */
    int64_t *known_at, *removed_at;
    int64_t *gains; /* what a block adds to the counts of a row: six for each target */
    int32_t *products;
    size_t product_stride;
    int32_t *pause, *next_pause, failing;     /* tiles in a row */
    uint64_t *sure, *reach, *known, *removed; /* bits of the block's entities */
    uint16_t *places;
    float *dots;
    const float **queries_of;
    int32_t *rows_of, *entering_rows; /* with places, with entering */
    uint16_t *entering;
    int64_t n_entering, words;
} run;

static void run_close(run *r) {
    kgt_block_close(&r->block);
    kgt_queries_close(&r->queries);
    kgt_worker_close_f32(&r->worker);
    if (r->tiling) kgt_tiler_close_f32(&r->tiler);
    free((void *)r->tiled.queries);
    free(r->rows);
    free(r->gains);
    free(r->products);
    free(r->pause);
    free(r->sure);
    free(r->places);
    free(r->dots);
    free(r->queries_of);
    free(r->rows_of);
    free(r->entering);
}

static kgt_status run_open(run *r, const kgt_factors *factors, const kgt_call *call) {
    const int64_t n_rows = factors->n_rows, n_tiles = n_rows / KGT_BYTE_QUERIES + 1;
    *r = (run){.factors = factors, .call = call};
    int64_t targets = 1;
    for (int64_t i = 0; i < n_rows; i++) {
        const int64_t n = kgt_span_of(call->task->targets, call->first_row + i).n;
        targets = n > targets ? n : targets;
    }
    if (kgt_block_open(&r->block, factors) != KGT_OK ||
        kgt_queries_open(&r->queries, factors, r->block.groups) != KGT_OK)
        return KGT_NO_MEMORY;
    kgt_worker_f32 worker;
    if (kgt_worker_open_f32(&worker, call->task, call->first_row, n_rows, call->best, n_rows + 1) !=
        KGT_OK)
        return KGT_NO_MEMORY;
    r->worker = worker;
    const size_t width = (size_t)r->block.width, words = width / 64;
    r->words = (int64_t)words;
    r->rows = kgt_allocate(3 * (size_t)n_rows, sizeof(int64_t));
    r->gains = kgt_allocate(6 * (size_t)targets, sizeof(int64_t));
    /* Rows a line apart from a power of two, which would share too few places in the cache. */
    r->product_stride = width + KGT_BYTE_PANEL;
    r->products = kgt_allocate(KGT_BYTE_QUERIES * r->product_stride, sizeof(int32_t));
    r->pause = calloc(2 * (size_t)n_tiles, sizeof(int32_t));
    r->sure = kgt_allocate((2 * KGT_JUDGED + 2) * words, sizeof(uint64_t));
    r->places = kgt_allocate(width + KGT_SLACK, sizeof(uint16_t));
    r->dots = kgt_allocate(width, sizeof(float));
    r->queries_of = kgt_allocate(width, sizeof *r->queries_of);
    r->rows_of = kgt_allocate((KGT_BYTE_QUERIES + 1) * width, sizeof(int32_t));
    r->entering = kgt_allocate(KGT_BYTE_QUERIES * width, sizeof(uint16_t));
    r->tiled = *factors;
    r->tiled.queries = kgt_allocate(QUERY_TILE * (size_t)factors->dim, sizeof(float));
    if (!r->rows || !r->gains || !r->products || !r->pause || !r->sure || !r->places || !r->dots ||
        !r->queries_of || !r->rows_of || !r->entering || !r->tiled.queries)
        return KGT_NO_MEMORY;
    r->known_at = r->rows + n_rows;
    r->removed_at = r->known_at + n_rows;
    r->next_pause = r->pause + n_tiles;
    r->entering_rows = r->rows_of + width;
    r->reach = r->sure + KGT_JUDGED * words;
    r->known = r->reach + KGT_JUDGED * words;
    r->removed = r->known + words;
    for (int64_t i = 0; i < n_rows; i++) {
        const int64_t question = call->task->row_question[call->first_row + i];
        r->known_at[i] = call->task->known.offsets[question];
        r->removed_at[i] = call->task->removed.offsets[question];
    }
    for (int64_t i = 0; i < n_tiles; i++) r->next_pause[i] = FIRST_PAUSE;
    return KGT_OK;
}

/* ---- one row and one block ---- */

static int32_t id_of(const run *r, int64_t place) {
    const kgt_factors *factors = r->factors;
    return factors->ids ? factors->ids[r->block.first + place]
                        : (int32_t)(factors->first_entity + r->block.first + place);
}

static bool bit(const uint64_t *bits, int64_t place) { return bits[place / 64] >> place % 64 & 1; }

/* The bits of those entities of a filter that the block holds, and of what pads it. `at` moves on
 * to the first that is behind the block. */
static void mark(const run *r, kgt_csr filter, int64_t question, int64_t *at, uint64_t *bits) {
    const int64_t end = filter.offsets[question + 1], n = r->block.n;
    const int32_t first = id_of(r, 0), last = id_of(r, n - 1), *ids = filter.ids;
    const int32_t *own = r->factors->ids ? r->factors->ids + r->block.first : NULL;
    int64_t next = *at, place = 0;
    memset(bits, 0, (size_t)r->words * sizeof *bits);
    if (n < r->block.width) bits[n / 64] = ~(uint64_t)0 << n % 64;
    for (int64_t i = n / 64 + 1; i < r->words; i++) bits[i] = ~(uint64_t)0;
    while (next < end && ids[next] < first) next++;
    for (; next < end && ids[next] <= last; next++) {
        if (own == NULL) {
            place = ids[next] - first;
        } else {
            while (own[place] < ids[next]) place++;
            if (own[place] != ids[next]) continue;
        }
        bits[place / 64] |= (uint64_t)1 << place % 64;
    }
    *at = next;
}

/* The row at hand: its query's figures, and what decides in this block. */
typedef struct {
    int64_t row, task_row;
    const float *query;
    const int32_t *products;
    kgt_bounds bounds;
    double inverse, chain; /* 1 / (m s), Q */
    double slack;          /* of the bounds, over unit */
    double tolerance;      /* of the plain dot product's score */
    int64_t open, close;
} row_state;

static row_state row_of(const run *r, int64_t row, const int32_t *products) {
    const kgt_queries *queries = &r->queries;
    const kgt_block *block = &r->block;
    const double weight = r->factors->metric == KGT_L2 ? 2 : 1;
    const double absolute = 0x1p-20 * (block->largest_offset + queries->chain[row]);
    return (row_state){
        .row = row,
        .task_row = r->call->first_row + row,
        .query = vectors_f32(r->factors->queries, row, r->factors->dim),
        .products = products,
        .bounds = {block->scale, block->error, block->offset, queries->judged_norm[row],
                   queries->factor[row]},
        .inverse = queries->inverse[row],
        .chain = queries->chain[row],
        .slack = absolute * queries->inverse[row] * (1 + 0x1p-20) + 0x1p-100,
        /* The plain dot product is as near to q.x as the chain is. */
        .tolerance = 2 * weight * kgt_rounding(r->factors->dim) * queries->norm[row] *
                         (double)block->largest_norm * (1 + 0x1p-20) +
                     absolute + 0x1p-100,
    };
}

/* A threshold for the upper and one for the lower bound, rounded outwards. Nothing passes either of
 * a threshold that is NaN. */
static void thresholds(const row_state *state, double score, float *above, float *below) {
    const double value = (score + state->chain) * state->inverse, most = 3e38;
    const double margin = state->slack + fabs(value) * 0x1p-22;
    *above = *below = INFINITY;
    if (fabs(value) < most) {
        *above = (float)(value + margin);
        *below = (float)(value - margin);
    } else if (value < 0) {
        *above = *below = -INFINITY; /* no score with bounds is as low */
    }
}

/* Plain dot products of n places, and from them scores plus or less the tolerance. */
static void approximate(run *r, const row_state *state, int64_t n) {
    const size_t dim = (size_t)r->factors->dim;
    r->block.bytes->dots(state->query, r->block.vectors, r->block.stride, dim, r->places, (size_t)n,
                         r->dots);
}

KGT_INLINE double near_score(const run *r, const row_state *state, int64_t i) {
    const double dot = (double)r->dots[i];
    if (r->block.offset == NULL) return dot;
    const int64_t place = r->places[i];
    const double offset = (double)r->block.bias[place] - (double)r->block.entity_norm[place];
    return (r->factors->metric == KGT_L2 ? 2 * dot : dot) + offset - state->chain;
}

/* The very scores of n pairs, of queries `queries_of` and entities `places`, into dots. */
static void exact_scores(run *r, const int32_t *rows, int64_t n) {
    const kgt_block *block = &r->block;
    const size_t dim = (size_t)r->factors->dim;
    const bool shifted = block->offset != NULL;
    for (int64_t i = 0; i < n; i++) {
        block->pointers[i] = block->vectors + r->places[i] * block->stride;
        r->queries_of[i] = vectors_f32(r->factors->queries, rows[i], r->factors->dim);
    }
    block->bytes->pairs(r->queries_of, block->pointers, (size_t)n, dim, r->dots);
    for (int64_t i = 0; shifted && i < n; i++) {
        const int64_t place = r->places[i];
        const float chain = (float)r->queries.chain[rows[i]];
        r->dots[i] = score_f32(r->factors->metric, r->dots[i], chain, block->entity_norm[place],
                               block->bias[place]);
    }
}

enum { GREATER, EQUAL, AHEAD, MACRO_GREATER, MACRO_EQUAL, MACRO_AHEAD };

/* Counts what is open of one target: greater entities and ties. False if too many are too close. */
static bool settle_open(run *r, row_state *state, int64_t n, int32_t answer, double score,
                        int64_t *gain) {
    int64_t n_close = 0, micro = 0, macro = 0;
    approximate(r, state, n);
    for (int64_t i = 0; i < n; i++) {
        const double distance = near_score(r, state, i) - score;
        const uint16_t place = r->places[i];
        const bool greater = distance > state->tolerance;
        micro += greater & !bit(r->known, place);
        macro += greater & !bit(r->removed, place);
        r->places[n_close] = place;
        n_close += fabs(distance) <= state->tolerance;
    }
    gain[GREATER] = micro;
    gain[MACRO_GREATER] = macro;
    if (n_close == 0) return true;
    state->close += n_close;
    if (state->close > r->block.n / CLOSE_SHARE + 4) return false;
    for (int64_t i = 0; i < n_close; i++) r->rows_of[i] = (int32_t)state->row;
    exact_scores(r, r->rows_of, n_close);
    const int32_t *position = r->call->task->position;
    for (int64_t i = 0; i < n_close; i++) {
        const int64_t place = r->places[i];
        const bool in_micro = !bit(r->known, place), in_macro = !bit(r->removed, place);
        gain[GREATER] += (double)r->dots[i] > score && in_micro;
        gain[MACRO_GREATER] += (double)r->dots[i] > score && in_macro;
        if ((double)r->dots[i] != score) continue;
        const int32_t id = id_of(r, place);
        const bool ahead = position ? position[id] > position[answer] : id > answer;
        gain[EQUAL] += in_micro;
        gain[AHEAD] += in_micro && ahead;
        gain[MACRO_EQUAL] += in_macro;
        gain[MACRO_AHEAD] += in_macro && ahead;
    }
    return true;
}

KGT_INLINE int64_t place_in(const run *r, int32_t id) {
    const kgt_row row = {.ids = r->factors->ids ? r->factors->ids + r->block.first : NULL,
                         .n = r->block.n,
                         .first = id_of(r, 0)};
    return kgt_row_place(&row, id);
}

/* One target from its bits. False if too much is open. */
static bool settle_target(run *r, row_state *state, int32_t answer, double score,
                          const uint64_t *sure, const uint64_t *reach, int64_t *gain) {
    const size_t words = (size_t)r->words;
    const int64_t own = place_in(r, answer); /* no candidate of itself */
    const int64_t n = (int64_t)r->block.bytes->undecided(
        sure, reach, r->known, r->removed, words, own < 0 ? SIZE_MAX : (size_t)own, r->places);
    memset(gain, 0, 6 * sizeof *gain);
    state->open += n;
    if (state->open > r->block.n / OPEN_SHARE + 4) return false;
    if (n > 0 && !settle_open(r, state, n, answer, score, gain)) return false;
    gain[GREATER] += r->block.bytes->count_bits(sure, r->known, words);
    gain[MACRO_GREATER] += r->block.bytes->count_bits(sure, r->removed, words);
    return true;
}

/* Puts down those of the entities `reach` that can be among the best. False if there are too many.
 */
static bool settle_best(run *r, row_state *state, const kgt_top_f32 *top, const uint64_t *reach) {
    const int64_t n = (int64_t)r->block.bytes->undecided(NULL, reach, r->removed, r->removed,
                                                         (size_t)r->words, SIZE_MAX, r->places);
    state->open += n;
    if (state->open > r->block.n / OPEN_SHARE + 4) return false;
    approximate(r, state, n);
    for (int64_t i = 0; i < n; i++) {
        r->entering[r->n_entering] = r->places[i];
        r->entering_rows[r->n_entering] = (int32_t)state->row;
        r->n_entering += near_score(r, state, i) + state->tolerance >= (double)top->bound;
    }
    return true;
}

/* Keeps what was put down, for all rows of a tile of queries together: chains of several pairs run
 * side by side. */
static void keep_entering(run *r) {
    const int32_t *position = r->call->task->position;
    for (int64_t start = 0; start < r->n_entering; start += r->block.width) {
        const int64_t left = r->n_entering - start,
                      n = left < r->block.width ? left : r->block.width;
        memcpy(r->places, r->entering + start, (size_t)n * sizeof *r->places);
        exact_scores(r, r->entering_rows + start, n);
        for (int64_t i = 0; i < n; i++) {
            kgt_top_f32 *top = r->worker.tops + r->entering_rows[start + i];
            if (!(r->dots[i] >= top->bound)) continue;
            const int32_t id = id_of(r, r->places[i]);
            top->keys[top->used++] =
                kgt_make_key_f32(r->dots[i], (uint32_t)(position ? position[id] : id));
            if (top->used == kgt_top_capacity(top->depth)) kgt_top_prune_f32(top);
        }
    }
    r->n_entering = 0;
}

/* As judge has them, but for roundings. */
static void lower_bounds(const int32_t *restrict products, const kgt_bounds *bounds, int64_t n,
                         float *restrict lower) {
    const float *scale = bounds->scale, *error = bounds->error, *offset = bounds->offset;
    const float norm = bounds->norm, factor = bounds->factor;
    for (int64_t i = 0; i < n; i++) lower[i] = (float)products[i] * scale[i] - norm * error[i];
    for (int64_t i = 0; offset != NULL && i < n; i++) lower[i] += offset[i] * factor;
}

/* A score that as many candidates of the block reach as are wanted: that of the lower bounds which
 * so many groups' largest reach. -INFINITY if there are too few. */
static float first_bound(run *r, const row_state *state, int64_t depth) {
    const kgt_bounds *bounds = &state->bounds;
    float largest[FIRST_GROUPS], *lower = r->dots;
    uint64_t keys[FIRST_GROUPS + KGT_SLACK] = {0}, sorted[FIRST_GROUPS];
    lower_bounds(state->products, bounds, r->block.width, lower);
    for (int64_t i = 0; i < r->words; i++)
        for (uint64_t word = r->removed[i]; word != 0; word &= word - 1)
            lower[i * 64 + __builtin_ctzll(word)] = -INFINITY;
    memcpy(largest, lower, sizeof largest);
    for (int64_t i = FIRST_GROUPS; i < r->block.width; i += FIRST_GROUPS)
        for (int j = 0; j < FIRST_GROUPS; j++)
            largest[j] = lower[i + j] > largest[j] ? lower[i + j] : largest[j];
    for (int j = 0; j < FIRST_GROUPS; j++) keys[j] = kgt_make_key_f32(largest[j], (uint32_t)j);
    r->worker.kernel->sort_keys(keys, FIRST_GROUPS, sorted);
    const double reached = (double)kgt_key_score_f32(sorted[depth - 1]);
    if (reached == (double)-INFINITY) return -INFINITY;
    const double safe = reached - fabs(reached) * 0x1p-20 - state->slack;
    const double score = safe / state->inverse - state->chain;
    return nextafterf((float)(score - fabs(score) * 0x1p-40), -INFINITY);
}

/* The bound as high as what is kept allows. */
static void tighten(const run *r, kgt_top_f32 *top) {
    if (top->used < top->depth + WAITING) return;
    kgt_top_sort_f32(top, r->worker.kernel);
    const float bound = kgt_key_score_f32(top->keys[top->depth - 1]);
    if (bound > top->bound) top->bound = bound;
}

/* Counts a row's targets and keeps its best in the block; false, and nothing has been counted or
 * kept, if bounds leave too much open. */
static bool settle_row(run *r, int64_t row, const int32_t *products) {
    const kgt_call *call = r->call;
    const kgt_task *task = call->task;
    row_state state = row_of(r, row, products);
    const int64_t question = task->row_question[state.task_row];
    const int64_t first = task->targets.offsets[state.task_row];
    const kgt_span targets = kgt_span_of(task->targets, state.task_row);
    const bool best = kgt_slot_of(call->best, state.task_row) >= 0;
    kgt_top_f32 *top = r->worker.tops + row;
    mark(r, task->known, question, r->known_at + row, r->known);
    mark(r, task->removed, question, r->removed_at + row, r->removed);
    if (best) {
        tighten(r, top);
        if (top->bound == -INFINITY && top->depth <= FIRST_DEEPEST)
            top->bound = first_bound(r, &state, top->depth);
        if (top->bound == -INFINITY) return false;
    }
    /* The best come last, when nothing can fail any more but they. */
    const int64_t n = targets.n + best;
    for (int64_t start = 0; start < n; start += KGT_JUDGED) {
        const int64_t m = n - start < KGT_JUDGED ? n - start : KGT_JUDGED;
        float above[KGT_JUDGED], below[KGT_JUDGED];
        for (int64_t j = 0; j < m; j++)
            thresholds(
                &state,
                start + j < targets.n ? call->target_scores[first + start + j] : (double)top->bound,
                above + j, below + j);
        r->block.bytes->judge(products, (size_t)r->block.width, &state.bounds, above, below,
                              (size_t)m, r->sure, r->reach);
        for (int64_t j = 0; j < m; j++) {
            const int64_t target = start + j;
            uint64_t *sure = r->sure + j * r->words, *reach = r->reach + j * r->words;
            if (target == targets.n ? !settle_best(r, &state, top, reach)
                                    : !settle_target(r, &state, targets.ids[target],
                                                     call->target_scores[first + target], sure,
                                                     reach, r->gains + 6 * target))
                return false;
        }
    }
    for (int64_t j = 0; j < targets.n; j++) {
        const int64_t *gain = r->gains + 6 * j;
        call->counts->greater[first + j] += gain[GREATER];
        call->counts->equal[first + j] += gain[EQUAL];
        call->counts->tied_ahead[first + j] += gain[AHEAD];
        call->counts->macro_greater[first + j] += gain[MACRO_GREATER];
        call->counts->macro_equal[first + j] += gain[MACRO_EQUAL];
        call->counts->macro_tied_ahead[first + j] += gain[MACRO_AHEAD];
    }
    call->tally->open += state.open;
    return true;
}

/* ---- blocks ---- */

/* Ranks the waiting rows from scores of the block. */
static kgt_status rank_waiting(run *r) {
    if (r->n_rows == 0) return KGT_OK;
    const size_t dim = (size_t)r->factors->dim;
    if (!r->tiling) {
        const int64_t width = (r->block.width + KGT_PANEL - 1) / KGT_PANEL * KGT_PANEL;
        const kgt_status status = kgt_tiler_open_f32(&r->tiler, &r->tiled, width);
        if (status != KGT_OK) return status;
        r->tiling = true;
    }
    kgt_tiler_pack_f32(&r->tiler, r->block.first, r->block.n);
    for (int64_t start = 0; start < r->n_rows; start += QUERY_TILE) {
        const int64_t left = r->n_rows - start, n = left < QUERY_TILE ? left : QUERY_TILE;
        float *queries = (float *)(void *)r->tiled.queries;
        for (int64_t i = 0; i < n; i++)
            memcpy(queries + (size_t)i * dim,
                   vectors_f32(r->factors->queries, r->rows[start + i], r->factors->dim),
                   dim * sizeof(float));
        kgt_tiler_score_f32(&r->tiler, 0, n, r->block.n);
        kgt_tiler_rank_f32(&r->tiler, &r->worker, r->rows + start, 0, n, r->block.first, r->block.n,
                           r->call);
    }
    r->call->tally->tiled += r->n_rows * r->block.n;
    r->n_rows = 0;
    return KGT_OK;
}

/* Whether a row must be ranked from scores: no bounds, or the first block if that shall give a
 * bound to more of the best than first_bound can. */
static bool needs_scores(const run *r, int64_t row) {
    if (!r->queries.bounded[row]) return true;
    return r->block.first == 0 && r->call->best->depth > FIRST_DEEPEST &&
           kgt_slot_of(r->call->best, r->call->first_row + row) >= 0;
}

/* Products of a tile's queries with the block, and what bounds their errors. */
static void multiply(run *r, int64_t tile) {
    const kgt_block *block = &r->block;
    const float relative = r->queries.relative[tile];
    const size_t first = (size_t)tile * KGT_BYTE_QUERIES;
    for (int64_t j = 0; j < block->width; j++)
        block->error[j] = (block->base[j] + relative * block->code_norm[j]) * (1 + 0x1p-20f);
    block->bytes->product(r->queries.codes + first * block->groups * 4, block->panels,
                          block->groups, (size_t)block->width / KGT_BYTE_PANEL, block->start,
                          r->products, r->product_stride);
}

/* Whether bounds are worth a try; a tile that rests comes nearer to its next one. */
static bool worth_a_try(run *r, int64_t tile) {
    if (!r->block.bounded) return false;
    if (r->pause[tile] > 0) {
        r->pause[tile]--;
        return false;
    }
    if (r->failing < HOPELESS || tile % EVERY == 0) return true;
    r->pause[tile] = r->next_pause[tile] - 1;
    return false;
}

/* What became of `tried` rows says how long to rest. */
static void learn(run *r, int64_t tile, int64_t tried, int64_t failed) {
    if (tried == 0) return;
    if (2 * failed <= tried) {
        r->next_pause[tile] = FIRST_PAUSE;
        r->failing = 0;
        return;
    }
    r->failing++;
    r->pause[tile] = r->next_pause[tile];
    if (r->next_pause[tile] < LONGEST_PAUSE) r->next_pause[tile] *= 2;
}

static void settle_tile(run *r, int64_t tile) {
    const int64_t first = tile * KGT_BYTE_QUERIES, left = r->queries.n - first;
    const int64_t n = left < KGT_BYTE_QUERIES ? left : KGT_BYTE_QUERIES;
    const bool trying = worth_a_try(r, tile);
    int64_t tried = 0, failed = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool hopeless = tried >= FIRST_TRIES && failed == tried;
        bool waits = !trying || hopeless || needs_scores(r, first + i);
        if (!waits) {
            if (tried++ == 0) multiply(r, tile);
            waits = !settle_row(r, first + i, r->products + (size_t)i * r->product_stride);
            failed += waits;
        }
        if (waits) r->rows[r->n_rows++] = first + i;
    }
    keep_entering(r);
    learn(r, tile, tried, failed);
}

/* Where bounds have failed to the end of a block, the next blocks are ranked from scores without a
 * try, more of them each time. */
static kgt_status rank_blocks(run *r) {
    const int64_t n_entities = r->factors->n_entities, width = r->block.width;
    const int64_t n_tiles = (r->queries.n + KGT_BYTE_QUERIES - 1) / KGT_BYTE_QUERIES;
    int64_t rest = FIRST_PAUSE;
    kgt_status status = KGT_OK;
    r->block.bytes->open(r->block.groups);
    for (int64_t first = 0; first < n_entities && status == KGT_OK;) {
        kgt_block_take(&r->block, first, n_entities - first < width ? n_entities - first : width);
        for (int64_t tile = 0; tile < n_tiles; tile++) settle_tile(r, tile);
        status = rank_waiting(r);
        first += width;
        if (r->failing < HOPELESS) {
            rest = FIRST_PAUSE;
        } else if (status == KGT_OK && first < n_entities) {
            const int64_t end =
                n_entities - first < rest * width ? n_entities : first + rest * width;
            status = kgt_rank_tiles_f32(r->factors, &r->worker, first, end, r->call);
            first = end;
            rest = rest < LONGEST_PAUSE ? 2 * rest : rest;
            memset(r->pause, 0, (size_t)n_tiles * sizeof *r->pause);
        }
    }
    r->block.bytes->close();
    return status;
}

bool kgt_bounds_serve(const kgt_factors *factors, const kgt_call *call) {
    return kgt_bytes_active() != NULL && factors->dtype == KGT_F32 && factors->metric != KGT_L1 &&
           factors->n_rows >= FEWEST_ROWS && factors->n_entities >= FEWEST_ENTITIES &&
           factors->dim >= SHORTEST && factors->dim <= 1 << 16 && call->best->depth <= DEEPEST &&
           (call->target_scores != NULL || factors->n_entities == 0);
}

kgt_status kgt_rank_bounds(const kgt_factors *factors, const kgt_call *call) {
    run r;
    kgt_status status = run_open(&r, factors, call);
    if (status == KGT_OK) status = rank_blocks(&r);
    for (int64_t i = 0; status == KGT_OK && i < factors->n_rows; i++) {
        const int64_t slot = kgt_slot_of(call->best, call->first_row + i);
        if (slot >= 0) kgt_row_best_f32(&r.worker, r.worker.tops + i, slot, call->best);
    }
    call->tally->pairs += factors->n_rows * factors->n_entities;
    run_close(&r);
    return status;
}
