/* A call that ranks by bounds, and one of its rows in one block. Internal to the factors family. */
#ifndef KGT_FACTORS_SETTLE_H
#define KGT_FACTORS_SETTLE_H

#include "factors_codes.h"
#include "factors_queries.h"
#include "factors_tiles.h"

/* A pair that no bound decides. Its score is computed together with those of other pairs. */
typedef struct {
    int64_t target; /* its score is the threshold; -1: the pair may be among the row's best */
    int32_t row;
    uint16_t place;
    bool in_micro, in_macro;
} kgt_pair;

/* Costs of a row's counts, in steps of the chain of a score in a tile. By tiles: a score, and its
 * comparison with a threshold. By bounds: a product of bytes, the comparison of its bounds with a
 * threshold, keeping the best, and each pair left open at the first and at the second level.
 * Measured on a Zen 4 with AVX-512 VNNI; `dearer` of kgt_bytes says how much more bounds cost
 * elsewhere. Prices affect only the speed. */
#define KGT_FEW_THRESHOLDS 4 /* with more, tiles sort them and take no longer */
typedef struct {
    double score, compare, product, judge, best, refine, chain;
} kgt_prices;

/* What bounds have cost so far, and what tiles would have cost. */
typedef struct {
    double spent, due;
} kgt_costs;

/* Converts a score to the unit of a level's bounds: 1 / (m s), and the slack in that unit. */
typedef struct {
    double inverse, slack;
} kgt_level;

/* A row in a block: the figures of its query, and its bounds. */
typedef struct {
    int64_t row, task_row;
    const int32_t *products; /* for the entities of `words` */
    uint64_t words;
    kgt_bounds bounds;
    kgt_level coarse, fine;
    double chain; /* Q */
    double bound; /* of the row's best, if wanted */
    bool best;
    int64_t n_targets, open, close, n_thresholds, n_judged;
} kgt_row_state;

typedef struct kgt_run kgt_run;

/* The functions that depend on the type of the scores: from tiles to rows, and the best of rows
 * (factors_rows.c).
 *
 * close         May be called without open.
 * rank_waiting  Ranks r->rows from their scores in the block.
 * rank_range    Ranks all rows from their scores with the entities first .. end - 1.
 * bound         The lowest score that can still be among the best, given those kept.
 * keep          Keeps an entity with its score, unless the score is below the bound.
 * finish        Writes the best of a row. False, with nothing written, if the guess was too high.
 */
typedef struct {
    kgt_status (*open)(kgt_run *r);
    void (*close)(kgt_run *r);
    kgt_status (*rank_waiting)(kgt_run *r);
    kgt_status (*rank_range)(kgt_run *r, int64_t first, int64_t end);
    double (*bound)(kgt_run *r, int64_t row);
    void (*set_bound)(kgt_run *r, int64_t row, double bound);
    void (*keep)(kgt_run *r, int64_t row, int32_t id, double score);
    bool (*finish)(kgt_run *r, int64_t row, int64_t slot);
} kgt_typed;

extern const kgt_typed kgt_typed_f32, kgt_typed_f64;

struct kgt_run {
    const kgt_factors *factors;
    const kgt_call *call;
    const kgt_typed *typed;
    kgt_prices prices;
    kgt_codes own_codes; /* used if the call has none */
    const kgt_codes *codes;
    const kgt_block *block; /* the current one */
    int64_t guessing_rank;  /* 0: no guesses */
    kgt_queries queries;
    union {
        kgt_worker_f64 f64;
        kgt_worker_f32 f32;
    } worker;
    union {
        kgt_tiler_f64 f64;
        kgt_tiler_f32 f32;
    } tiler;           /* of rows ranked from scores; the first such row opens it */
    kgt_factors tiled; /* the queries of these rows */
    bool tiling;
    int64_t *rows, n_rows; /* to be ranked from scores of this block */
    int64_t *known_at, *removed_at;
    int64_t *gains; /* what a block adds to a row's counts: two per target */
    int32_t *products;
    size_t product_stride;
    kgt_row_state tile[KGT_BYTE_QUERIES];     /* the current rows */
    int32_t *pause, *next_pause, n_few;       /* rows with few thresholds */
    kgt_costs total;                          /* of these rows */
    uint64_t *sure, *reach, *known, *removed; /* bits of the block's entities */
    uint16_t *places;
    char *copies; /* of the vectors of pairs */
    kgt_pair *pairs;
    int64_t n_pairs;
    size_t words;  /* per set of such bits */
    bool *guessed; /* the bound of a row's best may be too high */
};

kgt_prices kgt_prices_of(const kgt_factors *factors);
/* Whether the comparisons alone cost a row of n targets more than tiles do. */
bool kgt_too_many_targets(const kgt_run *r, int64_t n);
/* Guesses the bound of a row's best from its products with the sample. False: no guess. */
bool kgt_guess_row(kgt_run *r, int64_t row, const int32_t *products);
/* Fills the state of a row in the current block, without products. Returns the lowest value that
 * its products are compared with, as `below` of kgt_bytes. */
float kgt_open_row(kgt_run *r, int64_t row, kgt_row_state *state);
/* Prefetches what kgt_settle_row reads of a row; the block before has displaced it from the nearer
 * caches. */
void kgt_fetch_row(const kgt_run *r, int64_t row);
/* Counts for a row's targets, notes its undecided pairs in the block and adds up the costs. False,
 * with nothing counted or noted, if bounds leave too much open. */
bool kgt_settle_row(kgt_run *r, kgt_row_state *state, kgt_costs *total);
/* Computes and settles the undecided pairs of a tile of queries. */
void kgt_settle_pairs(kgt_run *r);

/* The whole call (factors_run.c), if kgt_bounds_serve. */
kgt_status kgt_rank_bounds(const kgt_factors *factors, const kgt_call *call);

#endif
