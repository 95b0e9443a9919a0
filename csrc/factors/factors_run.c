/* Ranks of a factorised model from bounds of its scores. A rank depends only on whether each
 * candidate scores above, at or below the answer. A product of bytes decides this for nearly all
 * (factors_bounds.h). 16-bit codes with narrower bounds decide most of the rest. For pairs still
 * open, the score is computed by its chain, with the same bits.
 *
 * The outer loop is over blocks of entities, the inner one over tiles of queries. If a block leaves
 * too much of a row open, or holds a vector without bounds, the row is ranked from a tile of
 * scores. Both ways give the same results. */
#include "factors_settle.h"

#include <math.h>
#include <stdlib.h>

/* A tile of queries that was ranked from scores skips FIRST_PAUSE blocks before the next try. Each
 * failure doubles the pause, up to LONGEST_PAUSE. */
#define FIRST_PAUSE 8
#define LONGEST_PAUSE 64
/* A tile is given up after FIRST_TRIES rows if they have cost FIRST_EXCESS times as much as by
 * tiles. Bounds suit rows with few thresholds best. While at least so many of these have cost more,
 * only one tile in EVERY is tried. */
#define FIRST_TRIES 4
#define FIRST_EXCESS 1.25
#define HOPELESS 8
#define EVERY 16
/* The row so many places further on in the tile is prefetched. */
#define AHEAD 2

static void run_close(kgt_run *r) {
    kgt_codes_end(&r->own_codes);
    kgt_queries_close(&r->queries);
    r->typed->close(r);
    free((void *)r->tiled.queries);
    free(r->rows);
    free(r->gains);
    free(r->products);
    free(r->pause);
    free(r->sure);
    free(r->places);
    free(r->copies);
    free(r->pairs);
    free(r->guessed);
}

/* Uses the codes of the call if they belong to this path, or makes its own; and their sample. */
static kgt_status codes_of(kgt_run *r) {
    kgt_status status = KGT_OK;
    r->codes = r->call->codes;
    if (r->codes == NULL || r->codes->bytes != kgt_bytes_active()) {
        r->codes = &r->own_codes;
        status = kgt_codes_begin(&r->own_codes, r->factors, r->call->best->depth, false);
        if (status == KGT_OK && r->own_codes.guessing_rank > 0)
            status = kgt_codes_encode(&r->own_codes, r->own_codes.n_blocks);
    }
    if (r->codes->sampled.bounded) r->guessing_rank = r->codes->guessing_rank;
    return status;
}

static kgt_status run_open(kgt_run *r, const kgt_factors *factors, const kgt_call *call) {
    const int64_t n_rows = factors->n_rows, n_tiles = n_rows / KGT_BYTE_QUERIES + 1;
    *r = (kgt_run){.factors = factors,
                   .call = call,
                   .typed = kgt_in_double(factors) ? &kgt_typed_f64 : &kgt_typed_f32,
                   .prices = kgt_prices_of(factors)};
    int64_t targets = 1;
    for (int64_t i = 0; i < n_rows; i++) {
        const int64_t n = kgt_span_of(call->task->targets, call->first_row + i).n;
        targets = n > targets ? n : targets;
    }
    if (codes_of(r) != KGT_OK ||
        kgt_queries_open(&r->queries, factors, r->codes->steps) != KGT_OK ||
        r->typed->open(r) != KGT_OK)
        return KGT_NO_MEMORY;
    const size_t width = (size_t)r->codes->width, words = width / 64;
    r->rows = kgt_allocate(3 * (size_t)n_rows, sizeof(int64_t));
    r->gains = kgt_allocate(2 * (size_t)targets, sizeof(int64_t));
    /* Rows whose stride is a power of two would share too few cache sets, so it is a line more. */
    r->product_stride = width + KGT_BYTE_PANEL;
    r->products = kgt_allocate(KGT_BYTE_QUERIES * r->product_stride, sizeof(int32_t));
    r->pause = calloc(2 * (size_t)n_tiles, sizeof(int32_t));
    r->sure = kgt_allocate((2 * KGT_JUDGED + 2) * words, sizeof(uint64_t));
    r->places = kgt_allocate(width + KGT_SLACK, sizeof(uint16_t));
    r->copies = kgt_allocate(KGT_AT_HAND * 2, kgt_vector_bytes(factors));
    /* Each pair costs at least a step of `refine`, and too_much() ends a row long before `width`.
     */
    r->pairs = kgt_allocate(KGT_BYTE_QUERIES * width, sizeof *r->pairs);
    r->guessed = calloc((size_t)n_rows + 1, sizeof(bool));
    r->tiled = *factors;
    r->tiled.queries = kgt_allocate(QUERY_TILE, kgt_vector_bytes(factors));
    if (!r->rows || !r->gains || !r->products || !r->pause || !r->sure || !r->places ||
        !r->copies || !r->pairs || !r->guessed || !r->tiled.queries)
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

/* Multiplies a tile's queries with a block. */
static void multiply(kgt_run *r, const kgt_block *block, int64_t tile) {
    const size_t first = (size_t)tile * KGT_BYTE_QUERIES, n = kgt_block_padded(block);
    block->sums->product(r->queries.codes + first * block->groups * 4, block->panels, block->groups,
                         n / KGT_BYTE_PANEL, block->start, r->products, r->product_stride);
}

/* Multiplies the current tile with the block; if the path supports it, only for words that reach
 * the rows' lowest thresholds. */
static void multiply_tile(kgt_run *r, int64_t tile, const float *below) {
    const kgt_block *block = r->block;
    uint64_t words[KGT_BYTE_QUERIES];
    if (block->sums->reaching == NULL) {
        multiply(r, block, tile);
        memset(words, 0xff, sizeof words);
    } else {
        kgt_bounds bounds[KGT_BYTE_QUERIES];
        const size_t first = (size_t)tile * KGT_BYTE_QUERIES;
        for (int i = 0; i < KGT_BYTE_QUERIES; i++) bounds[i] = r->tile[i].bounds;
        block->sums->reaching(r->queries.codes + first * block->groups * 4, block->panels,
                              block->groups, r->words, block->start, bounds, below, r->products,
                              r->product_stride, words);
    }
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++) {
        r->tile[i].products = r->products + i * r->product_stride;
        r->tile[i].words = words[i] & ~(uint64_t)0 >> (64 - r->words);
    }
}

/* ---- guesses ---- */

/* Guesses a bound for the best of each row of a tile from the sample. If fewer than depth
 * candidates reach it in the end, the row's best are ranked again without it. */
static void guess_tile(kgt_run *r, int64_t tile) {
    const int64_t first = tile * KGT_BYTE_QUERIES, left = r->queries.n - first;
    multiply(r, &r->codes->sampled, tile);
    for (int64_t i = 0; i < KGT_BYTE_QUERIES && i < left; i++) {
        const int64_t row = first + i, task_row = r->call->first_row + row;
        if (!r->queries.bounded[row] || kgt_slot_of(r->call->best, task_row) < 0) continue;
        r->guessed[row] = kgt_guess_row(r, row, r->products + (size_t)i * r->product_stride);
    }
}

/* ---- blocks ---- */

/* Ranks the waiting rows from scores of the block. */
static kgt_status rank_waiting(kgt_run *r) {
    if (r->n_rows == 0) return KGT_OK;
    const kgt_status status = r->typed->rank_waiting(r);
    if (status == KGT_OK) r->call->tally->tiled += r->n_rows * r->block->n;
    r->n_rows = 0;
    return status;
}

/* Whether a row is ranked from scores: it has no bounds or too many targets, or this is the first
 * block and must bound more of the best than first_bound can. */
static bool needs_scores(const kgt_run *r, int64_t row) {
    const kgt_csr targets = r->call->task->targets;
    if (!r->queries.bounded[row] ||
        kgt_too_many_targets(r, kgt_span_of(targets, r->call->first_row + row).n))
        return true;
    return r->block->first == 0 && r->call->best->depth > KGT_FIRST_DEEPEST && !r->guessed[row] &&
           kgt_slot_of(r->call->best, r->call->first_row + row) >= 0;
}

static bool hopeless(const kgt_run *r) {
    return r->n_few >= HOPELESS && r->total.spent > r->total.due;
}

/* Whether to try bounds; otherwise shortens the tile's pause by one block. */
static bool worth_a_try(kgt_run *r, int64_t tile) {
    if (!r->block->bounded) return false;
    if (r->pause[tile] > 0) {
        r->pause[tile]--;
        return false;
    }
    return tile % EVERY == 0 || !hopeless(r);
}

/* Sets the tile's pause from what its rows have cost. */
static void learn(kgt_run *r, int64_t tile, kgt_costs total) {
    if (total.due == 0) return;
    if (total.spent <= total.due) {
        r->next_pause[tile] = FIRST_PAUSE;
        return;
    }
    r->pause[tile] = r->next_pause[tile];
    if (r->next_pause[tile] < LONGEST_PAUSE) r->next_pause[tile] *= 2;
}

/* Opens the rows of a tile and multiplies them with the block. Returns one bit per row: set if it
 * is tried. */
static uint32_t open_tile(kgt_run *r, int64_t tile, int64_t n) {
    const int64_t first = tile * KGT_BYTE_QUERIES;
    const kgt_block *block = r->block;
    const kgt_bounds none = {block->inverse, block->base, block->code_norm, block->shift, 0, 0, 0};
    float below[KGT_BYTE_QUERIES];
    uint32_t tried = 0;
    for (int64_t i = 0; i < KGT_BYTE_QUERIES; i++) {
        below[i] = INFINITY; /* nothing reaches it */
        r->tile[i].bounds = none;
        if (i >= n || needs_scores(r, first + i)) continue;
        below[i] = kgt_open_row(r, first + i, r->tile + i);
        tried |= (uint32_t)1 << i;
    }
    if (tried) multiply_tile(r, tile, below);
    return tried;
}

static void settle_tile(kgt_run *r, int64_t tile) {
    const int64_t first = tile * KGT_BYTE_QUERIES, left = r->queries.n - first;
    const int64_t n = left < KGT_BYTE_QUERIES ? left : KGT_BYTE_QUERIES;
    const bool trying = worth_a_try(r, tile);
    int64_t n_tried = 0;
    kgt_costs total = {0, 0};
    if (trying && r->block->first == 0 && r->guessing_rank > 0) guess_tile(r, tile);
    const uint32_t tried = trying ? open_tile(r, tile, n) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) kgt_fetch_row(r, first + i + AHEAD);
        const bool given_up = n_tried >= FIRST_TRIES && total.spent > FIRST_EXCESS * total.due;
        bool waits = given_up || !(tried >> i & 1);
        if (!waits) {
            n_tried++;
            waits = !kgt_settle_row(r, r->tile + i, &total);
        }
        if (waits) r->rows[r->n_rows++] = first + i;
    }
    kgt_settle_pairs(r);
    learn(r, tile, total);
}

/* If bounds fail until the end of a block, the next blocks are ranked from scores without a try;
 * each time, more blocks. */
static kgt_status rank_blocks(kgt_run *r) {
    const int64_t n_entities = r->factors->n_entities, width = r->codes->width;
    const int64_t n_tiles = (r->queries.n + KGT_BYTE_QUERIES - 1) / KGT_BYTE_QUERIES;
    int64_t rest = FIRST_PAUSE;
    kgt_status status = KGT_OK;
    for (int64_t first = 0; first < n_entities && status == KGT_OK;) {
        if (!r->codes->shared &&
            (status = kgt_codes_encode(&r->own_codes, first / width)) != KGT_OK)
            break;
        r->block = kgt_codes_block(r->codes, first / width);
        r->words = kgt_block_padded(r->block) / 64;
        r->total = (kgt_costs){r->total.spent / 2, r->total.due / 2}; /* older costs count less */
        for (int64_t tile = 0; tile < n_tiles; tile++) settle_tile(r, tile);
        status = rank_waiting(r);
        first += width;
        if (!hopeless(r)) {
            rest = FIRST_PAUSE;
        } else if (status == KGT_OK && first < n_entities) {
            const int64_t end =
                n_entities - first < rest * width ? n_entities : first + rest * width;
            status = r->typed->rank_range(r, first, end);
            first = end;
            rest = rest < LONGEST_PAUSE ? 2 * rest : rest;
            memset(r->pause, 0, (size_t)n_tiles * sizeof *r->pause);
        }
    }
    return status;
}

/* Ranks the best of rows with wrong guesses again, by tiles, in a call without targets. */
static kgt_status rank_best_again(kgt_run *r) {
    const kgt_call *call = r->call;
    const size_t n = (size_t)r->n_rows, bytes = kgt_vector_bytes(r->factors);
    int64_t *numbers = calloc(4 * n + 1, sizeof(int64_t));
    int32_t *firsts = calloc(n, sizeof(int32_t));
    char *queries = kgt_allocate(n, bytes);
    kgt_status status = KGT_NO_MEMORY;
    if (numbers && firsts && queries) {
        int64_t *question = numbers, *slot = question + n, *nans = slot + n, *none = nans + n;
        for (size_t i = 0; i < n; i++) {
            const int64_t row = r->rows[i], task_row = call->first_row + row;
            question[i] = call->task->row_question[task_row];
            slot[i] = call->best->slot[task_row];
            memcpy(queries + i * bytes, kgt_query(r->factors, row), bytes);
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
        const kgt_call again = {&task,  0,   call->target_scores, call->counts, &best, &scratch,
                                &tally, NULL};
        status = kgt_rank_by_tiles(&factors, &again);
        call->tally->tiled += tally.tiled;
    }
    free(numbers);
    free(firsts);
    free(queries);
    return status;
}

/* ---- the call ---- */

kgt_status kgt_rank_bounds(const kgt_factors *factors, const kgt_call *call) {
    kgt_run r;
    kgt_status status = run_open(&r, factors, call);
    if (status == KGT_OK) status = rank_blocks(&r);
    r.n_rows = 0;
    for (int64_t i = 0; status == KGT_OK && i < factors->n_rows; i++) {
        const int64_t slot = kgt_slot_of(call->best, call->first_row + i);
        if (slot < 0) continue;
        if (!r.typed->finish(&r, i, slot)) r.rows[r.n_rows++] = i;
    }
    if (status == KGT_OK && r.n_rows > 0) status = rank_best_again(&r);
    call->tally->pairs += factors->n_rows * factors->n_entities;
    run_close(&r);
    return status;
}
