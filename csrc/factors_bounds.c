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
#define SHORTEST 32
#define DEEPEST 256
/* Tiles of queries that were ranked from scores leave so many blocks out before the next attempt,
 * doubled each time, up to the other. */
#define FIRST_PAUSE 8
#define LONGEST_PAUSE 64
/* Of a tile, so many rows are tried before it may be given up, if they have cost so much more than
 * by tiles. While so many or more rows of few thresholds, which bounds suit best, have cost more,
 * only one tile in EVERY is tried. */
#define FIRST_TRIES 4
#define FIRST_EXCESS 1.25
#define HOPELESS 8
#define EVERY 16
/* Groups whose maxima give a row's best their first bound, which the block must be a multiple of,
 * and up to which depth they do. */
#define FIRST_GROUPS 64
#define FIRST_DEEPEST 32
/* The best of a row are sorted once so many wait. */
#define WAITING 6
/* Bounds are guessed from a sample of one entity in so many or fewer, if the guess is among so many
 * of the sample's best. */
#define SAMPLED 8
#define MOST_GUESSING 16

/* A pair that no bound decides: its score is computed with those of other pairs. */
typedef struct {
    int64_t target; /* whose score it is compared with, or -1: it may be among the row's best */
    int32_t row;
    uint16_t place;
    bool in_micro, in_macro;
} undecided_pair;

/* What the ways to a row's counts cost, in steps of the chain of a score in a tile: by tiles, a
 * score, and comparing it with a threshold; by bounds, a product of bytes, comparing its bounds
 * with a threshold, keeping the best, and what these leave open at the first and at the second
 * level. As measured, with AVX-512 VNNI; only how long the work takes depends on it. */
#define FEW_THRESHOLDS 4 /* tiles compare with more in the same time: they are sorted */
typedef struct {
    double score, compare, product, judge, best, refine, chain;
} prices;

static prices prices_of(const kgt_factors *factors) {
    const double d = (double)factors->dim, added = factors->metric == KGT_L2 ? 20 : 7;
    return (prices){d + added, 5, d / 5 + 33, 6, 20, 150 + 2.2 * d, 500 + 20 * d};
}

/* By bounds, so far, and what tiles would have cost. */
typedef struct {
    double spent, due;
} costs;

typedef struct {
    const kgt_factors *factors;
    const kgt_call *call;
    prices prices;
    kgt_block block, sampled; /* sampled: for guesses */
    kgt_factors sampled_of;   /* its entities alone */
    int32_t *sampled_ids;
    int64_t guessing_rank; /* 0: no guesses */
    kgt_queries queries;
    kgt_worker_f32 worker;
    kgt_tiler_f32 tiler; /* of rows that are ranked from scores: opened by the first */
    kgt_factors tiled;   /* these rows' queries */
    bool tiling;
    int64_t *rows, n_rows; /* to be ranked from scores of this block */
    int64_t *known_at, *removed_at;
    int64_t *gains; /* what a block adds to the counts of a row: two for each target */
    int32_t *products;
    size_t product_stride;
    int32_t *pause, *next_pause, n_few;       /* rows of few thresholds */
    costs total;                              /* theirs */
    uint64_t *sure, *reach, *known, *removed; /* bits of the block's entities */
    uint16_t *places;
    float *dots;
    const float **queries_of;
    undecided_pair *pairs;
    int64_t n_pairs;
    size_t words;  /* of such bits */
    bool *guessed; /* the bound of a row's best may be too high */
} run;

static void run_close(run *r) {
    kgt_block_close(&r->block);
    kgt_block_close(&r->sampled);
    free(r->sampled_ids);
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
    free(r->pairs);
    free(r->guessed);
}

static kgt_status run_open(run *r, const kgt_factors *factors, const kgt_call *call) {
    const int64_t n_rows = factors->n_rows, n_tiles = n_rows / KGT_BYTE_QUERIES + 1;
    *r = (run){.factors = factors, .call = call, .prices = prices_of(factors)};
    int64_t targets = 1;
    for (int64_t i = 0; i < n_rows; i++) {
        const int64_t n = kgt_span_of(call->task->targets, call->first_row + i).n;
        targets = n > targets ? n : targets;
    }
    if (kgt_block_open(&r->block, factors) != KGT_OK ||
        kgt_queries_open(&r->queries, factors, r->block.groups) != KGT_OK)
        return KGT_NO_MEMORY;
    r->block.fine_relative = r->queries.fine_relative;
    kgt_worker_f32 worker;
    if (kgt_worker_open_f32(&worker, call->task, call->first_row, n_rows, call->best, n_rows + 1) !=
        KGT_OK)
        return KGT_NO_MEMORY;
    r->worker = worker;
    const size_t width = (size_t)r->block.width, words = width / 64;
    r->rows = kgt_allocate(3 * (size_t)n_rows, sizeof(int64_t));
    r->gains = kgt_allocate(2 * (size_t)targets, sizeof(int64_t));
    /* Rows a line apart from a power of two, which would share too few places in the cache. */
    r->product_stride = width + KGT_BYTE_PANEL;
    r->products = kgt_allocate(KGT_BYTE_QUERIES * r->product_stride, sizeof(int32_t));
    r->pause = calloc(2 * (size_t)n_tiles, sizeof(int32_t));
    r->sure = kgt_allocate((2 * KGT_JUDGED + 2) * words, sizeof(uint64_t));
    r->places = kgt_allocate(width + KGT_SLACK, sizeof(uint16_t));
    r->dots = kgt_allocate(width, sizeof(float));
    r->queries_of = kgt_allocate(width, sizeof *r->queries_of);
    /* Each pair costs at least a step of `refine`, and too_much() ends a row long before `width`.
     */
    r->pairs = kgt_allocate(KGT_BYTE_QUERIES * width, sizeof *r->pairs);
    r->guessed = calloc((size_t)n_rows + 1, sizeof(bool));
    r->tiled = *factors;
    r->tiled.queries = kgt_allocate(QUERY_TILE * (size_t)factors->dim, sizeof(float));
    if (!r->rows || !r->gains || !r->products || !r->pause || !r->sure || !r->places || !r->dots ||
        !r->queries_of || !r->pairs || !r->guessed || !r->tiled.queries)
        return KGT_NO_MEMORY;
    r->known_at = r->rows + n_rows;
    r->removed_at = r->known_at + n_rows;
    r->next_pause = r->pause + n_tiles;
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

static int32_t id_of(const kgt_block *block, int64_t place) {
    const kgt_factors *factors = block->factors;
    return factors->ids ? factors->ids[block->first + place]
                        : (int32_t)(factors->first_entity + block->first + place);
}

static bool bit(const uint64_t *bits, int64_t place) { return bits[place / 64] >> place % 64 & 1; }

/* The bits of those entities of a filter that the block holds, and of what pads it. `at` moves on
 * to the first that is behind the block. */
static void mark(const kgt_block *block, kgt_csr filter, int64_t question, int64_t *at,
                 uint64_t *bits) {
    const int64_t end = filter.offsets[question + 1], n = block->n;
    const int32_t first = id_of(block, 0), last = id_of(block, n - 1), *ids = filter.ids;
    const int32_t *own = block->factors->ids ? block->factors->ids + block->first : NULL;
    int64_t next = *at, place = 0;
    memset(bits, 0, kgt_block_padded(block) / 8);
    if (n % 64 != 0) bits[n / 64] = ~(uint64_t)0 << n % 64;
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

/* What takes a score to the unit of the bounds of a level: 1 / (m s), and their slack in it. */
typedef struct {
    double inverse, slack;
} level;

/* The row at hand: its query's figures, and what decides in this block. */
typedef struct {
    int64_t row, task_row;
    const int32_t *products;
    kgt_bounds bounds;
    level coarse, fine;
    double chain; /* Q */
    int64_t open, close, n_thresholds, n_judged;
} row_state;

static row_state row_of(const run *r, const kgt_block *block, int64_t row,
                        const int32_t *products) {
    const kgt_queries *queries = &r->queries;
    const double absolute = 0x1p-20 * (1 + 0x1p-20) * (block->largest_offset + queries->chain[row]);
    const double inverse = queries->inverse[row], fine_inverse = queries->fine_inverse[row];
    return (row_state){
        .row = row,
        .task_row = r->call->first_row + row,
        .products = products,
        .bounds = {block->scale, block->error, block->offset, queries->judged_norm[row],
                   queries->factor[row]},
        .coarse = {inverse, absolute * inverse + 0x1p-100},
        .fine = {fine_inverse, absolute * fine_inverse + 0x1p-100},
        .chain = queries->chain[row],
    };
}

/* What a row has cost by bounds beside the product, or, if `expected`, will have cost if the
 * thresholds to come leave as much open as those before. */
static double row_cost(const run *r, const row_state *state, bool expected) {
    const double left =
        (double)state->open * r->prices.refine + (double)state->close * r->prices.chain;
    const double judged = (double)(state->n_judged * r->block.n) * r->prices.judge;
    if (!expected) return left + judged;
    return (left + judged) / (double)state->n_judged * (double)state->n_thresholds;
}

static double tiled_cost(const run *r, const row_state *state) {
    const int64_t n = state->n_thresholds < FEW_THRESHOLDS ? state->n_thresholds : FEW_THRESHOLDS;
    return (double)r->block.n * (r->prices.score + (double)n * r->prices.compare);
}

/* Whether comparing alone costs a row more than tiles do. */
static bool too_many_targets(const run *r, int64_t n) {
    return (double)n * r->prices.judge > r->prices.score + FEW_THRESHOLDS * r->prices.compare;
}

static bool too_much(const run *r, const row_state *state) {
    return row_cost(r, state, true) > tiled_cost(r, state);
}

/* A threshold for the upper and one for the lower bound, rounded outwards. Nothing passes either of
 * a threshold that is NaN. */
static void thresholds(const row_state *state, const level *at, double score, float *above,
                       float *below) {
    const double value = (score + state->chain) * at->inverse, most = 3e38;
    const double margin = at->slack + fabs(value) * 0x1p-22;
    *above = *below = INFINITY;
    if (fabs(value) < most) {
        *above = (float)(value + margin);
        *below = (float)(value - margin);
    } else if (value < 0) {
        *above = *below = -INFINITY; /* no score with bounds is as low */
    }
}

/* The second level for n places that the first leaves open: sets the bits in `sure` of those that
 * score higher; those that may score the same stay in places. How many these are. Without `sure`,
 * all that may score as much stay. */
static int64_t refine(run *r, const row_state *state, double score, int64_t n, uint64_t *sure) {
    const kgt_block *block = &r->block;
    const kgt_queries *queries = &r->queries;
    const int64_t row = state->row;
    float above, below;
    thresholds(state, &state->fine, score, &above, &below);
    if (sure == NULL) {
        above = INFINITY;
        sure = r->sure;
    }
    return (int64_t)block->bytes->refine(queries->fine + (size_t)row * queries->fine_stride,
                                         block->fine, block->fine_stride, queries->fine_norm[row],
                                         queries->fine_factor[row], above, below, r->places,
                                         (size_t)n, sure);
}

/* The very scores of n pairs, into dots: chains of several run side by side. */
static void exact_scores(run *r, const undecided_pair *pairs, int64_t n) {
    const kgt_block *block = &r->block;
    const size_t dim = (size_t)r->factors->dim;
    for (int64_t i = 0; i < n; i++) {
        block->pointers[i] = block->vectors + pairs[i].place * block->stride;
        r->queries_of[i] = vectors_f32(r->factors->queries, pairs[i].row, r->factors->dim);
    }
    block->bytes->pairs(r->queries_of, block->pointers, (size_t)n, dim, r->dots);
    for (int64_t i = 0; block->offset != NULL && i < n; i++) {
        const uint16_t place = pairs[i].place;
        r->dots[i] =
            score_f32(r->factors->metric, r->dots[i], (float)r->queries.chain[pairs[i].row],
                      block->entity_norm[place], block->bias[place]);
    }
}

/* A pair's score beside that of its target. */
static void count_pair(const run *r, const undecided_pair *pair, double score) {
    const kgt_counts *counts = r->call->counts;
    const int32_t *position = r->call->task->position;
    const int64_t target = pair->target;
    if (score > r->call->target_scores[target]) {
        counts->greater[target] += pair->in_micro;
        counts->macro_greater[target] += pair->in_macro;
    } else if (score == r->call->target_scores[target]) {
        const int32_t id = id_of(&r->block, pair->place),
                      answer = r->call->task->targets.ids[target];
        const bool ahead = position ? position[id] > position[answer] : id > answer;
        counts->equal[target] += pair->in_micro;
        counts->tied_ahead[target] += pair->in_micro && ahead;
        counts->macro_equal[target] += pair->in_macro;
        counts->macro_tied_ahead[target] += pair->in_macro && ahead;
    }
}

static void keep_pair(run *r, const undecided_pair *pair, float score) {
    const int32_t *position = r->call->task->position;
    kgt_top_f32 *top = r->worker.tops + pair->row;
    if (!(score >= top->bound)) return;
    const int32_t id = id_of(&r->block, pair->place);
    top->keys[top->used++] = kgt_make_key_f32(score, (uint32_t)(position ? position[id] : id));
    if (top->used == kgt_top_capacity(top->depth)) kgt_top_prune_f32(top);
}

/* Settles what bounds have left of a tile of queries. */
static void settle_pairs(run *r) {
    for (int64_t start = 0; start < r->n_pairs; start += r->block.width) {
        const undecided_pair *pairs = r->pairs + start;
        const int64_t left = r->n_pairs - start, n = left < r->block.width ? left : r->block.width;
        exact_scores(r, pairs, n);
        for (int64_t i = 0; i < n; i++) {
            if (pairs[i].target < 0)
                keep_pair(r, pairs + i, r->dots[i]);
            else
                count_pair(r, pairs + i, (double)r->dots[i]);
        }
    }
    r->call->tally->close += r->n_pairs;
    r->n_pairs = 0;
}

/* Puts n places down as pairs. */
static void put_down(run *r, const row_state *state, int64_t n, int64_t target) {
    for (int64_t i = 0; i < n; i++) {
        const uint16_t place = r->places[i];
        r->pairs[r->n_pairs++] = (undecided_pair){.target = target,
                                                  .row = (int32_t)state->row,
                                                  .place = place,
                                                  .in_micro = !bit(r->known, place),
                                                  .in_macro = !bit(r->removed, place)};
    }
}

static int64_t place_in(const run *r, int32_t id) {
    const kgt_row row = {.ids = r->factors->ids ? r->factors->ids + r->block.first : NULL,
                         .n = r->block.n,
                         .first = id_of(&r->block, 0)};
    return kgt_row_place(&row, id);
}

/* One target from its bits. False if too much is open. */
static bool settle_target(run *r, row_state *state, int64_t target, uint64_t *sure,
                          const uint64_t *reach, int64_t *greater) {
    const int64_t own =
        place_in(r, r->call->task->targets.ids[target]); /* no candidate of itself */
    const int64_t n = (int64_t)r->block.bytes->undecided(
        sure, reach, r->known, r->removed, r->words, own < 0 ? SIZE_MAX : (size_t)own, r->places);
    state->open += n;
    if (too_much(r, state)) return false;
    if (n > 0) {
        const int64_t n_close = refine(r, state, r->call->target_scores[target], n, sure);
        state->close += n_close;
        if (too_much(r, state)) return false;
        put_down(r, state, n_close, target);
    }
    r->block.bytes->count_bits(sure, r->known, r->removed, r->words, greater);
    return true;
}

/* Puts down those of the entities `reach` that can be among the best. False if there are too many.
 */
static bool settle_best(run *r, row_state *state, const kgt_top_f32 *top, const uint64_t *reach) {
    const int64_t n = (int64_t)r->block.bytes->undecided(NULL, reach, r->removed, r->removed,
                                                         r->words, SIZE_MAX, r->places);
    state->open += n;
    if (too_much(r, state)) return false;
    if (n > 0) {
        const int64_t n_close = refine(r, state, (double)top->bound, n, NULL);
        /* The first block raises the bound: what reaches it says nothing of other blocks. */
        if (r->block.first > 0) state->close += n_close;
        if (too_much(r, state)) return false;
        put_down(r, state, n_close, -1);
    }
    return true;
}

/* The value that `depth` of the block's entities reach by `product * scale + offset * factor - norm
 * * error`, or a lower one; those of r->removed apart. -INFINITY if there are too few. */
static double reached_by(const run *r, const kgt_block *block, const row_state *state, float norm,
                         int64_t depth) {
    const int64_t n = (int64_t)kgt_block_padded(block);
    const kgt_bounds *bounds = &state->bounds;
    const float *restrict scale = bounds->scale, *restrict error = bounds->error;
    const int32_t *restrict products = state->products;
    float largest[FIRST_GROUPS], *restrict values = r->dots;
    kgt_key_f32 keys[FIRST_GROUPS + KGT_SLACK], sorted[FIRST_GROUPS];
    for (int64_t i = 0; i < n; i++) values[i] = (float)products[i] * scale[i] - norm * error[i];
    for (int64_t i = 0; bounds->offset != NULL && i < n; i++)
        values[i] += bounds->offset[i] * bounds->factor;
    for (int64_t i = 0; i < n / 64; i++)
        for (uint64_t word = r->removed[i]; word != 0; word &= word - 1)
            values[i * 64 + __builtin_ctzll(word)] = -INFINITY;
    memcpy(largest, values, sizeof largest);
    for (int64_t i = FIRST_GROUPS; i < n; i += FIRST_GROUPS)
        for (int j = 0; j < FIRST_GROUPS; j++)
            largest[j] = values[i + j] > largest[j] ? values[i + j] : largest[j];
    for (int j = 0; j < FIRST_GROUPS; j++) keys[j] = kgt_make_key_f32(largest[j], (uint32_t)j);
    r->worker.kernel->sort_keys(keys, FIRST_GROUPS, sorted);
    return (double)kgt_key_score_f32(sorted[depth - 1]);
}

static float lower_score(const row_state *state, double value) {
    const double score = value / state->coarse.inverse - state->chain;
    return nextafterf((float)(score - fabs(score) * 0x1p-40), -INFINITY);
}

/* A score that `depth` candidates of the block surely reach. */
static float first_bound(const run *r, const row_state *state, int64_t depth) {
    const double reached = reached_by(r, &r->block, state, state->bounds.norm, depth);
    if (reached == (double)-INFINITY) return -INFINITY;
    return lower_score(state, reached - fabs(reached) * 0x1p-20 - state->coarse.slack);
}

/* The bound as high as what is kept allows. */
static void tighten(const run *r, kgt_top_f32 *top) {
    if (top->used < top->depth + WAITING) return;
    kgt_top_sort_f32(top, r->worker.kernel);
    const float bound = kgt_key_score_f32(top->keys[top->depth - 1]);
    if (bound > top->bound) top->bound = bound;
}

/* Thresholds of a row's target number `target`, or, after the last, of its best. */
static void row_thresholds(const run *r, const row_state *state, kgt_span targets, int64_t target,
                           float *above, float *below) {
    const int64_t first = r->call->task->targets.offsets[state->task_row];
    const double score = target < targets.n ? r->call->target_scores[first + target]
                                            : (double)r->worker.tops[state->row].bound;
    thresholds(state, &state->coarse, score, above, below);
}

/* From bounds: what the block adds to the row's counts, to gains, and the pairs that they leave.
 * False if that is too much. */
static bool bound_row(run *r, row_state *state) {
    const int64_t first = r->call->task->targets.offsets[state->task_row];
    const kgt_span targets = kgt_span_of(r->call->task->targets, state->task_row);
    const int64_t n = state->n_thresholds;
    for (int64_t start = 0; start < n; start += KGT_JUDGED) {
        const int64_t m = n - start < KGT_JUDGED ? n - start : KGT_JUDGED;
        float above[KGT_JUDGED], below[KGT_JUDGED];
        for (int64_t j = 0; j < m; j++)
            row_thresholds(r, state, targets, start + j, above + j, below + j);
        r->block.bytes->judge(state->products, r->words * 64, &state->bounds, above, below,
                              (size_t)m, r->sure, r->reach);
        for (int64_t j = 0; j < m; j++) {
            const int64_t target = start + j;
            state->n_judged = target + 1;
            uint64_t *sure = r->sure + (size_t)j * r->words;
            const uint64_t *reach = r->reach + (size_t)j * r->words;
            if (target == targets.n
                    ? !settle_best(r, state, r->worker.tops + state->row, reach)
                    : !settle_target(r, state, first + target, sure, reach, r->gains + 2 * target))
                return false;
        }
    }
    return true;
}

static void add_cost(costs *total, double spent, double due) {
    total->spent += spent;
    total->due += due;
}

/* Counts a row's targets and puts down its pairs in the block, and adds up the costs; false, and
 * nothing has been counted or put down, if bounds leave too much open. */
static bool settle_row(run *r, int64_t row, const int32_t *products, costs *total) {
    const kgt_call *call = r->call;
    const kgt_task *task = call->task;
    row_state state = row_of(r, &r->block, row, products);
    const int64_t question = task->row_question[state.task_row], n_pairs = r->n_pairs;
    const int64_t n_targets = kgt_span_of(task->targets, state.task_row).n;
    const bool best = kgt_slot_of(call->best, state.task_row) >= 0;
    state.n_thresholds = n_targets + best;
    const double due = tiled_cost(r, &state);
    double spent = (double)r->block.n * (r->prices.product + (best ? r->prices.best : 0));
    kgt_top_f32 *top = r->worker.tops + row;
    mark(&r->block, task->known, question, r->known_at + row, r->known);
    mark(&r->block, task->removed, question, r->removed_at + row, r->removed);
    if (best) {
        tighten(r, top);
        if (top->bound == -INFINITY && top->depth <= FIRST_DEEPEST)
            top->bound = first_bound(r, &state, top->depth);
    }
    const bool settled = !(best && top->bound == -INFINITY) && bound_row(r, &state);
    spent += row_cost(r, &state, false) + (settled ? 0 : due);
    add_cost(total, spent, due);
    if (state.n_thresholds <= FEW_THRESHOLDS) {
        r->n_few++;
        add_cost(&r->total, spent, due);
    }
    if (!settled) {
        r->n_pairs = n_pairs;
        return false;
    }
    const int64_t first = task->targets.offsets[state.task_row];
    for (int64_t j = 0; j < n_targets; j++) {
        call->counts->greater[first + j] += r->gains[2 * j];
        call->counts->macro_greater[first + j] += r->gains[2 * j + 1];
    }
    call->tally->open += state.open;
    return true;
}

/* Products of a tile's queries with a block, and what bounds their errors. */
static void multiply(run *r, kgt_block *block, int64_t tile) {
    const size_t first = (size_t)tile * KGT_BYTE_QUERIES, n = kgt_block_padded(block);
    kgt_block_errors(block, r->queries.relative[tile]);
    block->bytes->product(r->queries.codes + first * block->groups * 4, block->panels,
                          block->groups, n / KGT_BYTE_PANEL, block->start, r->products,
                          r->product_stride);
}

/* ---- guesses ---- */

/* The places of entities spread over all, one of each stretch, and their ids. */
static void sample(const kgt_factors *factors, int64_t n, int32_t *ids) {
    uint64_t bits = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = factors->n_entities * i / n;
        const int64_t length = factors->n_entities * (i + 1) / n - first;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        const int64_t place = first + (int64_t)((bits >> 33) % (uint64_t)length);
        ids[i] = factors->ids ? factors->ids[place] : (int32_t)(factors->first_entity + place);
    }
}

/* Of so many sampled entities, which one scores below `depth` of all, but for one row in some
 * hundred. */
static int64_t guessing_rank(int64_t depth, int64_t n_sampled, int64_t n_entities) {
    const double mean = (double)depth * (double)n_sampled / (double)n_entities;
    return (int64_t)ceil(mean + 3 * sqrt(mean) + 1);
}

/* A bound for the best of each row of a tile, from the sample. It is a guess: where fewer than
 * depth reach it in the end, the row's best are ranked again without. */
static void guess_tile(run *r, int64_t tile) {
    kgt_block *sampled = &r->sampled;
    const kgt_task *task = r->call->task;
    const int64_t first = tile * KGT_BYTE_QUERIES, left = r->queries.n - first;
    multiply(r, sampled, tile);
    for (int64_t i = 0; i < KGT_BYTE_QUERIES && i < left; i++) {
        const int64_t row = first + i, task_row = r->call->first_row + row;
        if (!r->queries.bounded[row] || kgt_slot_of(r->call->best, task_row) < 0) continue;
        const int64_t question = task->row_question[task_row];
        int64_t at = task->removed.offsets[question];
        mark(sampled, task->removed, question, &at, r->removed);
        const row_state state =
            row_of(r, sampled, row, r->products + (size_t)i * r->product_stride);
        /* A guess need not be sure: errors are well below their bounds. */
        const double value =
            reached_by(r, sampled, &state, state.bounds.norm / 4, r->guessing_rank);
        if (value == (double)-INFINITY) continue;
        r->worker.tops[row].bound = lower_score(&state, value);
        r->guessed[row] = true;
    }
}

/* Takes a sample of the entities, if the best of rows can be guessed from one. */
static kgt_status take_sample(run *r) {
    const int64_t depth = r->call->best->depth, n_entities = r->factors->n_entities;
    int64_t n = r->block.width;
    while (n > FIRST_GROUPS && n * SAMPLED > n_entities) n -= FIRST_GROUPS;
    const int64_t rank = guessing_rank(depth, n, n_entities);
    if (depth == 0 || n * SAMPLED > n_entities || rank > MOST_GUESSING) return KGT_OK;
    r->sampled_ids = kgt_allocate((size_t)n, sizeof *r->sampled_ids);
    if (r->sampled_ids == NULL) return KGT_NO_MEMORY;
    sample(r->factors, n, r->sampled_ids);
    r->sampled_of = *r->factors;
    r->sampled_of.ids = r->sampled_ids;
    r->sampled_of.n_entities = n;
    const kgt_status status = kgt_block_open(&r->sampled, &r->sampled_of);
    if (status != KGT_OK) return status;
    kgt_block_take(&r->sampled, 0, n);
    if (r->sampled.bounded) r->guessing_rank = rank;
    return KGT_OK;
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

/* Whether a row is ranked from scores: no bounds, too many targets, or the first block if that
 * shall give a bound to more of the best than first_bound can. */
static bool needs_scores(const run *r, int64_t row) {
    const kgt_csr targets = r->call->task->targets;
    if (!r->queries.bounded[row] ||
        too_many_targets(r, kgt_span_of(targets, r->call->first_row + row).n))
        return true;
    return r->block.first == 0 && r->call->best->depth > FIRST_DEEPEST && !r->guessed[row] &&
           kgt_slot_of(r->call->best, r->call->first_row + row) >= 0;
}

static bool hopeless(const run *r) { return r->n_few >= HOPELESS && r->total.spent > r->total.due; }

/* Whether bounds are worth a try; a tile that rests comes nearer to its next one. */
static bool worth_a_try(run *r, int64_t tile) {
    if (!r->block.bounded) return false;
    if (r->pause[tile] > 0) {
        r->pause[tile]--;
        return false;
    }
    return tile % EVERY == 0 || !hopeless(r);
}

/* What the rows of a tile have cost says how long to rest. */
static void learn(run *r, int64_t tile, costs total) {
    if (total.due == 0) return;
    if (total.spent <= total.due) {
        r->next_pause[tile] = FIRST_PAUSE;
        return;
    }
    r->pause[tile] = r->next_pause[tile];
    if (r->next_pause[tile] < LONGEST_PAUSE) r->next_pause[tile] *= 2;
}

static void settle_tile(run *r, int64_t tile) {
    const int64_t first = tile * KGT_BYTE_QUERIES, left = r->queries.n - first;
    const int64_t n = left < KGT_BYTE_QUERIES ? left : KGT_BYTE_QUERIES;
    const bool trying = worth_a_try(r, tile);
    int64_t tried = 0;
    costs total = {0, 0};
    if (trying && r->block.first == 0 && r->guessing_rank > 0) guess_tile(r, tile);
    for (int64_t i = 0; i < n; i++) {
        const bool given_up = tried >= FIRST_TRIES && total.spent > FIRST_EXCESS * total.due;
        bool waits = !trying || given_up || needs_scores(r, first + i);
        if (!waits) {
            if (tried++ == 0) multiply(r, &r->block, tile);
            waits = !settle_row(r, first + i, r->products + (size_t)i * r->product_stride, &total);
        }
        if (waits) r->rows[r->n_rows++] = first + i;
    }
    settle_pairs(r);
    learn(r, tile, total);
}

/* Where bounds have failed to the end of a block, the next blocks are ranked from scores without a
 * try, more of them each time. */
static kgt_status rank_blocks(run *r) {
    const int64_t n_entities = r->factors->n_entities, width = r->block.width;
    const int64_t n_tiles = (r->queries.n + KGT_BYTE_QUERIES - 1) / KGT_BYTE_QUERIES;
    int64_t rest = FIRST_PAUSE;
    kgt_status status = KGT_OK;
    for (int64_t first = 0; first < n_entities && status == KGT_OK;) {
        kgt_block_take(&r->block, first, n_entities - first < width ? n_entities - first : width);
        r->words = kgt_block_padded(&r->block) / 64;
        r->total = (costs){r->total.spent / 2, r->total.due / 2}; /* of long ago: less */
        for (int64_t tile = 0; tile < n_tiles; tile++) settle_tile(r, tile);
        status = rank_waiting(r);
        first += width;
        if (!hopeless(r)) {
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
    return status;
}

/* The best of rows that were guessed wrong, by tiles: a call of its own, without targets. */
static kgt_status rank_best_again(run *r) {
    const kgt_call *call = r->call;
    const size_t n = (size_t)r->n_rows, dim = (size_t)r->factors->dim;
    int64_t *numbers = calloc(4 * n + 1, sizeof(int64_t));
    int32_t *firsts = calloc(n, sizeof(int32_t));
    float *queries = kgt_allocate(n * dim, sizeof(float));
    kgt_status status = KGT_NO_MEMORY;
    if (numbers && firsts && queries) {
        int64_t *question = numbers, *slot = question + n, *nans = slot + n, *none = nans + n;
        for (size_t i = 0; i < n; i++) {
            const int64_t row = r->rows[i], task_row = call->first_row + row;
            question[i] = call->task->row_question[task_row];
            slot[i] = call->best->slot[task_row];
            memcpy(queries + i * dim, vectors_f32(r->factors->queries, row, r->factors->dim),
                   dim * sizeof(float));
        }
        kgt_factors factors = *r->factors;
        kgt_task task = *call->task;
        kgt_best best = *call->best;
        const kgt_nans scratch = {nans, firsts};
        factors.queries = queries;
        factors.n_rows = (int64_t)n;
        task.row_question = question;
        task.targets = (kgt_csr){none, NULL};
        task.row_list = NULL;
        best.slot = slot;
        kgt_tally tally = {0};
        const kgt_call again = {&task,    0,     call->target_scores, call->counts, &best,
                                &scratch, &tally};
        status = kgt_rank_by_tiles_f32(&factors, &again);
        call->tally->tiled += tally.tiled;
    }
    free(numbers);
    free(firsts);
    free(queries);
    return status;
}

/* ---- the call ---- */

bool kgt_bounds_serve(const kgt_factors *factors, const kgt_call *call) {
    return kgt_bytes_active() != NULL && factors->dtype == KGT_F32 && factors->metric != KGT_L1 &&
           factors->n_rows >= FEWEST_ROWS && factors->n_entities >= FEWEST_ENTITIES &&
           factors->dim >= SHORTEST && factors->dim <= 1 << 16 && call->best->depth <= DEEPEST &&
           (call->target_scores != NULL || factors->n_entities == 0);
}

kgt_status kgt_rank_bounds(const kgt_factors *factors, const kgt_call *call) {
    run r;
    kgt_status status = run_open(&r, factors, call);
    if (status == KGT_OK) {
        r.block.bytes->open(r.block.groups);
        status = take_sample(&r);
        if (status == KGT_OK) status = rank_blocks(&r);
        r.block.bytes->close();
    }
    r.n_rows = 0;
    for (int64_t i = 0; status == KGT_OK && i < factors->n_rows; i++) {
        const int64_t slot = kgt_slot_of(call->best, call->first_row + i);
        if (slot < 0) continue;
        if (r.guessed[i] && r.worker.tops[i].used < call->best->depth)
            r.rows[r.n_rows++] = i;
        else
            kgt_row_best_f32(&r.worker, r.worker.tops + i, slot, call->best);
    }
    if (status == KGT_OK && r.n_rows > 0) status = rank_best_again(&r);
    call->tally->pairs += factors->n_rows * factors->n_entities;
    run_close(&r);
    return status;
}
