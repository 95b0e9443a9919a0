/* Settles one row in one block: by bounds, and by scores for pairs that they leave open. */
#include "factors_settle.h"

#include <math.h>

kgt_prices kgt_prices_of(const kgt_factors *factors) {
    const double d = (double)factors->dim, added = factors->metric == KGT_DOT ? 7 : 20;
    const double refine = 150 + 2.2 * d, chain = 500 + 20 * d;
    const double lanes = kgt_in_double(factors) ? 2 : 1; /* a register holds half as many doubles */
    if (factors->metric == KGT_L1)
        return (kgt_prices){
            lanes * (1.9 * d + added), lanes * 5, d / 3.6 + 20, 6, 20, refine, chain};
    const double dearer = kgt_bytes_active()->dearer;
    return (kgt_prices){
        lanes * (d + added),   lanes * 5, (d / 4 + 15) * (1 + dearer), 6 * (1 + dearer), 5,
        refine * (1 + dearer), chain};
}

static int32_t id_of(const kgt_block *block, int64_t place) {
    const kgt_factors *factors = block->factors;
    return factors->ids ? factors->ids[block->first + place]
                        : (int32_t)(factors->first_entity + block->first + place);
}

static int32_t id_in(const kgt_block *block, int64_t slot) {
    return id_of(block, block->place_of[slot]);
}

static bool bit(const uint64_t *bits, int64_t place) { return bits[place / 64] >> place % 64 & 1; }

/* Restricted entities skipped at once while searching one of a filter. */
#define STRIDE 32

/* Sets the bits of the filter's entities that the block holds, and of its padding. Moves `at` to
 * the first entity after the block. */
static void mark(const kgt_block *block, kgt_csr filter, int64_t question, int64_t *at,
                 uint64_t *bits) {
    const int64_t end = filter.offsets[question + 1], n = block->n;
    const int32_t first = id_of(block, 0), last = id_of(block, n - 1), *ids = filter.ids;
    const int32_t *entity_ids = block->factors->ids ? block->factors->ids + block->first : NULL;
    int64_t next = *at, place = 0;
    memset(bits, 0, kgt_block_padded(block) / 8);
    if (n % 64 != 0) bits[n / 64] = ~(uint64_t)0 << n % 64;
    while (next < end && ids[next] < first) next++;
    for (; next < end && ids[next] <= last; next++) {
        if (entity_ids == NULL) {
            place = ids[next] - first;
        } else {
            while (place + STRIDE < n && entity_ids[place + STRIDE] < ids[next]) place += STRIDE;
            while (entity_ids[place] < ids[next]) place++;
            if (entity_ids[place] != ids[next]) continue;
        }
        const int64_t slot = block->slot_of[place];
        bits[slot / 64] |= (uint64_t)1 << slot % 64;
    }
    *at = next;
}

/* More than an offset can lose by underflow when it is rounded to float, in that unit. */
#define LEAST_SLACK 0x1p-80

static kgt_row_state row_of(const kgt_run *r, const kgt_block *block, int64_t row,
                            const int32_t *products) {
    const kgt_queries *queries = &r->queries;
    const double absolute = 0x1p-20 * (1 + 0x1p-20) * (block->largest_offset + queries->chain[row]);
    const double inverse = queries->inverse[row], fine_inverse = queries->fine_inverse[row];
    return (kgt_row_state){
        .row = row,
        .task_row = r->call->first_row + row,
        .products = products,
        .bounds = {block->inverse, block->base, block->code_norm, block->shift,
                   queries->judged_norm[row], queries->relative[row], queries->factor[row]},
        .coarse = {inverse, (absolute + queries->l1_error[row]) * inverse + LEAST_SLACK},
        .fine = {fine_inverse,
                 (absolute + queries->fine_l1_error[row]) * fine_inverse + LEAST_SLACK},
        .chain = queries->chain[row],
    };
}

/* What a row has cost by bounds, apart from the product. If `expected`: what it will have cost, if
 * the next thresholds leave as much open as those before. */
static double row_cost(const kgt_run *r, const kgt_row_state *state, bool expected) {
    const double left =
        (double)state->open * r->prices.refine + (double)state->close * r->prices.chain;
    const double judged = (double)(state->n_judged * r->block->n) * r->prices.judge;
    if (!expected) return left + judged;
    return (left + judged) / (double)state->n_judged * (double)state->n_thresholds;
}

static double tiled_cost(const kgt_run *r, const kgt_row_state *state) {
    const int64_t n =
        state->n_thresholds < KGT_FEW_THRESHOLDS ? state->n_thresholds : KGT_FEW_THRESHOLDS;
    return (double)r->block->n * (r->prices.score + (double)n * r->prices.compare);
}

bool kgt_too_many_targets(const kgt_run *r, int64_t n) {
    return (double)n * r->prices.judge > r->prices.score + KGT_FEW_THRESHOLDS * r->prices.compare;
}

static bool too_much(const kgt_run *r, const kgt_row_state *state) {
    return row_cost(r, state, true) > tiled_cost(r, state);
}

/* Sets the thresholds for the upper and the lower bound, rounded outwards. A NaN passes neither. */
static void thresholds(const kgt_row_state *state, const kgt_level *at, double score, float *above,
                       float *below) {
    const double value = (score + state->chain) * at->inverse, most = 3e38;
    const double margin = at->slack + fabs(value) * 0x1p-22;
    *above = *below = INFINITY;
    if (fabs(value) < most) {
        *above = (float)(value + margin);
        *below = (float)(value - margin);
    } else if (value < 0) {
        *above = *below = -INFINITY; /* all scores with bounds are higher */
    }
}

/* The second level for n places that the first leaves open. Sets the bits in `sure` of those that
 * score higher; those that may score the same stay in places. Returns their number. Without `sure`,
 * all that may score at least as much stay. */
static int64_t refine(kgt_run *r, const kgt_row_state *state, double score, int64_t n,
                      uint64_t *sure) {
    const kgt_block *block = r->block;
    const kgt_queries *queries = &r->queries;
    const int64_t row = state->row;
    float above, below;
    thresholds(state, &state->fine, score, &above, &below);
    if (sure == NULL) {
        above = INFINITY;
        sure = r->sure;
    }
    return (int64_t)block->sums->refine(queries->fine + (size_t)row * queries->fine_stride,
                                        block->fine, block->fine_stride, queries->fine_norm[row],
                                        queries->fine_relative[row], queries->fine_factor[row],
                                        above, below, r->places, (size_t)n, sure);
}

/* The exact scores of n <= KGT_AT_HAND pairs; several chains run side by side. */
static void exact_scores(kgt_run *r, const kgt_pair *pairs, int64_t n, double *out) {
    const kgt_block *block = r->block;
    const kgt_factors *factors = r->factors;
    const void *queries[KGT_AT_HAND], *entities[KGT_AT_HAND];
    for (int64_t i = 0; i < n; i++) {
        entities[i] = kgt_vector_at(block, pairs[i].place, r->copies, (size_t)i);
        queries[i] = kgt_query(factors, pairs[i].row);
    }
    block->pairs(queries, entities, (size_t)n, (size_t)factors->dim, out);
    const bool plain = block->offset == NULL && factors->metric == KGT_DOT;
    for (int64_t i = 0; !plain && i < n; i++) {
        const uint16_t slot = pairs[i].place;
        const double norm = block->entity_norm ? block->entity_norm[slot] : 0;
        const double bias = kgt_bias(factors, block->first + block->place_of[slot]);
        out[i] = kgt_score(factors, out[i], r->queries.chain[pairs[i].row], norm, bias);
    }
}

/* Compares a pair's score with that of its target and counts it. */
static void count_pair(const kgt_run *r, const kgt_pair *pair, int32_t id, double score) {
    const kgt_counts *counts = r->call->counts;
    const int32_t *position = r->call->task->position;
    const int64_t target = pair->target;
    if (score > r->call->target_scores[target]) {
        counts->greater[target] += pair->in_micro;
        counts->macro_greater[target] += pair->in_macro;
    } else if (score == r->call->target_scores[target]) {
        const int32_t answer = r->call->task->targets.ids[target];
        const bool ahead = position ? position[id] > position[answer] : id > answer;
        counts->equal[target] += pair->in_micro;
        counts->tied_ahead[target] += pair->in_micro && ahead;
        counts->macro_equal[target] += pair->in_macro;
        counts->macro_tied_ahead[target] += pair->in_macro && ahead;
    }
}

void kgt_settle_pairs(kgt_run *r) {
    for (int64_t start = 0; start < r->n_pairs; start += KGT_AT_HAND) {
        const kgt_pair *pairs = r->pairs + start;
        const int64_t left = r->n_pairs - start, n = left < KGT_AT_HAND ? left : KGT_AT_HAND;
        double scores[KGT_AT_HAND];
        exact_scores(r, pairs, n, scores);
        for (int64_t i = 0; i < n; i++) {
            const int32_t id = id_in(r->block, pairs[i].place);
            if (pairs[i].target < 0)
                r->typed->keep(r, pairs[i].row, id, scores[i]);
            else
                count_pair(r, pairs + i, id, scores[i]);
        }
    }
    r->call->tally->close += r->n_pairs;
    r->n_pairs = 0;
}

/* Notes n places as pairs. */
static void put_down(kgt_run *r, const kgt_row_state *state, int64_t n, int64_t target) {
    for (int64_t i = 0; i < n; i++) {
        const uint16_t place = r->places[i];
        r->pairs[r->n_pairs++] = (kgt_pair){.target = target,
                                            .row = (int32_t)state->row,
                                            .place = place,
                                            .in_micro = !bit(r->known, place),
                                            .in_macro = !bit(r->removed, place)};
    }
}

/* The slot of an entity, or -1. */
static int64_t slot_in(const kgt_run *r, int32_t id) {
    const kgt_row row = {.ids = r->factors->ids ? r->factors->ids + r->block->first : NULL,
                         .n = r->block->n,
                         .first = id_of(r->block, 0)};
    const int64_t place = kgt_row_place(&row, id);
    return place < 0 ? -1 : r->block->slot_of[place];
}

/* Settles one target from its bits. False if too much is open. */
static bool settle_target(kgt_run *r, kgt_row_state *state, int64_t target, uint64_t *sure,
                          const uint64_t *reach, int64_t *greater) {
    const int64_t answer_slot =
        slot_in(r, r->call->task->targets.ids[target]); /* not its own candidate */
    const int64_t n = (int64_t)r->block->bytes->undecided(
        sure, reach, r->known, r->removed, state->words,
        answer_slot < 0 ? SIZE_MAX : (size_t)answer_slot, r->places);
    state->open += n;
    if (too_much(r, state)) return false;
    if (n > 0) {
        const int64_t n_close = refine(r, state, r->call->target_scores[target], n, sure);
        state->close += n_close;
        if (too_much(r, state)) return false;
        put_down(r, state, n_close, target);
    }
    r->block->bytes->count_bits(sure, r->known, r->removed, state->words, greater);
    return true;
}

/* Notes the entities of `reach` that can be among the best as pairs. False if there are too many.
 */
static bool settle_best(kgt_run *r, kgt_row_state *state, const uint64_t *reach) {
    const int64_t n = (int64_t)r->block->bytes->undecided(NULL, reach, r->removed, r->removed,
                                                          state->words, SIZE_MAX, r->places);
    state->open += n;
    if (too_much(r, state)) return false;
    if (n > 0) {
        const int64_t n_close = refine(r, state, state->bound, n, NULL);
        /* The first block raises the bound, so its pairs do not predict other blocks. */
        if (r->block->first > 0) state->close += n_close;
        if (too_much(r, state)) return false;
        put_down(r, state, n_close, -1);
    }
    return true;
}

/* A value that the lower bounds of `depth` of the block's entities reach, not counting r->removed.
 * -INFINITY if there are too few. `norm` replaces the query's. */
static double reached_by(const kgt_run *r, const kgt_block *block, const kgt_row_state *state,
                         float norm, int64_t depth) {
    float highest[KGT_FIRST_GROUPS];
    kgt_key_f32 keys[KGT_FIRST_GROUPS + KGT_SLACK], sorted[KGT_FIRST_GROUPS];
    block->bytes->highest_lower(state->products, kgt_block_padded(block) / 64, &state->bounds,
                                block->scale, norm, r->removed, highest);
    for (int j = 0; j < KGT_FIRST_GROUPS; j++) keys[j] = kgt_make_key_f32(highest[j], (uint32_t)j);
    kgt_kernel_active()->sort_keys(keys, KGT_FIRST_GROUPS, sorted);
    return (double)kgt_key_score_f32(sorted[depth - 1]);
}

static double lower_score(const kgt_row_state *state, double value) {
    const double score = value / state->coarse.inverse - state->chain;
    return (double)nextafterf((float)(score - fabs(score) * 0x1p-40), -INFINITY);
}

/* A score that at least `depth` candidates of the block reach. */
static double first_bound(const kgt_run *r, const kgt_row_state *state, int64_t depth) {
    const double reached = reached_by(r, r->block, state, state->bounds.norm, depth);
    if (reached == (double)-INFINITY) return reached;
    return lower_score(state, reached - fabs(reached) * 0x1p-20 - state->coarse.slack);
}

/* The thresholds of a row's target number `target`; after the last target, those of its best. */
static void row_thresholds(const kgt_run *r, const kgt_row_state *state, kgt_span targets,
                           int64_t target, float *above, float *below) {
    const int64_t first = r->call->task->targets.offsets[state->task_row];
    const double score = target < targets.n ? r->call->target_scores[first + target] : state->bound;
    thresholds(state, &state->coarse, score, above, below);
}

/* Writes what the block adds to the row's counts to gains, and notes the pairs that bounds leave
 * open. False if these are too many. */
static bool bound_row(kgt_run *r, kgt_row_state *state) {
    const int64_t first = r->call->task->targets.offsets[state->task_row];
    const kgt_span targets = kgt_span_of(r->call->task->targets, state->task_row);
    const int64_t n = state->n_thresholds;
    for (int64_t start = 0; start < n; start += KGT_JUDGED) {
        const int64_t m = n - start < KGT_JUDGED ? n - start : KGT_JUDGED;
        float above[KGT_JUDGED], below[KGT_JUDGED];
        for (int64_t j = 0; j < m; j++)
            row_thresholds(r, state, targets, start + j, above + j, below + j);
        r->block->bytes->judge(state->products, state->words, r->words, &state->bounds, above,
                               below, (size_t)m, r->sure, r->reach);
        for (int64_t j = 0; j < m; j++) {
            const int64_t target = start + j;
            state->n_judged = target + 1;
            uint64_t *sure = r->sure + (size_t)j * r->words;
            const uint64_t *reach = r->reach + (size_t)j * r->words;
            if (target == targets.n
                    ? !settle_best(r, state, reach)
                    : !settle_target(r, state, first + target, sure, reach, r->gains + 2 * target))
                return false;
        }
    }
    return true;
}

static void add_cost(kgt_costs *total, double spent, double due) {
    total->spent += spent;
    total->due += due;
}

float kgt_open_row(kgt_run *r, int64_t row, kgt_row_state *state) {
    *state = row_of(r, r->block, row, NULL);
    const kgt_csr targets = r->call->task->targets;
    const int64_t first = targets.offsets[state->task_row];
    double lowest = INFINITY;
    float above, below;
    state->n_targets = targets.offsets[state->task_row + 1] - first;
    for (int64_t i = first; i < first + state->n_targets; i++)
        if (r->call->target_scores[i] < lowest) lowest = r->call->target_scores[i];
    state->best = kgt_slot_of(r->call->best, state->task_row) >= 0;
    if (state->best) {
        state->bound = r->typed->bound(r, row);
        lowest = state->bound < lowest ? state->bound : lowest;
    }
    state->n_thresholds = state->n_targets + state->best;
    thresholds(state, &state->coarse, lowest, &above, &below);
    return below;
}

void kgt_fetch_row(const kgt_run *r, int64_t row) {
    const kgt_task *task = r->call->task;
    const int64_t task_row = r->call->first_row + row, question = task->row_question[task_row];
    const int64_t target = task->targets.offsets[task_row];
    KGT_PREFETCH(task->known.offsets + question + 1);
    KGT_PREFETCH(task->removed.offsets + question + 1);
    KGT_PREFETCH(task->known.ids + r->known_at[row]);
    KGT_PREFETCH(task->removed.ids + r->removed_at[row]);
    KGT_PREFETCH(r->call->counts->greater + target);
    KGT_PREFETCH(r->call->counts->macro_greater + target);
}

bool kgt_settle_row(kgt_run *r, kgt_row_state *state, kgt_costs *total) {
    const kgt_call *call = r->call;
    const kgt_task *task = call->task;
    const int64_t question = task->row_question[state->task_row], n_pairs = r->n_pairs;
    const int64_t row = state->row, depth = call->best->depth;
    const double due = tiled_cost(r, state);
    double spent = (double)r->block->n * (r->prices.product + (state->best ? r->prices.best : 0));
    mark(r->block, task->known, question, r->known_at + row, r->known);
    mark(r->block, task->removed, question, r->removed_at + row, r->removed);
    if (state->best && state->bound == (double)-INFINITY && depth <= KGT_FIRST_DEEPEST)
        r->typed->set_bound(r, row, state->bound = first_bound(r, state, depth));
    const bool settled = !(state->best && state->bound == (double)-INFINITY) && bound_row(r, state);
    spent += row_cost(r, state, false) + (settled ? 0 : due);
    add_cost(total, spent, due);
    if (state->n_thresholds <= KGT_FEW_THRESHOLDS) {
        r->n_few++;
        add_cost(&r->total, spent, due);
    }
    if (!settled) {
        r->n_pairs = n_pairs;
        return false;
    }
    const int64_t first = task->targets.offsets[state->task_row];
    for (int64_t j = 0; j < state->n_targets; j++) {
        call->counts->greater[first + j] += r->gains[2 * j];
        call->counts->macro_greater[first + j] += r->gains[2 * j + 1];
    }
    call->tally->open += state->open;
    return true;
}

bool kgt_guess_row(kgt_run *r, int64_t row, const int32_t *products) {
    const kgt_task *task = r->call->task;
    const kgt_block *sampled = &r->codes->sampled;
    const int64_t task_row = r->call->first_row + row, question = task->row_question[task_row];
    int64_t at = task->removed.offsets[question];
    mark(sampled, task->removed, question, &at, r->removed);
    const kgt_row_state state = row_of(r, sampled, row, products);
    /* A guess may be wrong, and errors are usually well below their bounds. */
    const double value = reached_by(r, sampled, &state, state.bounds.norm / 4, r->guessing_rank);
    if (value == (double)-INFINITY) return false;
    r->typed->set_bound(r, row, lower_score(&state, value - state.coarse.slack / 4));
    return true;
}
