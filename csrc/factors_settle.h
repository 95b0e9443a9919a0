/* A call that is ranked by bounds, and one row of it in one block: internal to the factors family.
 */
#ifndef KGT_FACTORS_SETTLE_H
#define KGT_FACTORS_SETTLE_H

#include "factors_codes.h"
#include "factors_queries.h"
#include "factors_tiles.h"

/* A pair that no bound decides: its score is computed with those of other pairs. */
typedef struct {
    int64_t target; /* whose score it is compared with, or -1: it may be among the row's best */
    int32_t row;
    uint16_t place;
    bool in_micro, in_macro;
} kgt_pair;

/* What the ways to a row's counts cost, in steps of the chain of a score in a tile: by tiles, a
 * score, and comparing it with a threshold; by bounds, a product of bytes, comparing its bounds
 * with a threshold, keeping the best, and what these leave open at the first and at the second
 * level. As measured on a Zen 4 with AVX-512 VNNI; `dearer` of kgt_bytes says how much more bounds
 * cost elsewhere. Only how long the work takes depends on it. */
#define KGT_FEW_THRESHOLDS 4 /* tiles compare with more in the same time: they are sorted */
typedef struct {
    double score, compare, product, judge, best, refine, chain;
} kgt_prices;

/* By bounds, so far, and what tiles would have cost. */
typedef struct {
    double spent, due;
} kgt_costs;

/* What takes a score to the unit of the bounds of a level: 1 / (m s), and their slack in it. */
typedef struct {
    double inverse, slack;
} kgt_level;

/* A row in a block: its query's figures, and what decides there. */
typedef struct {
    int64_t row, task_row;
    const int32_t *products; /* with the entities of `words` */
    uint64_t words;
    kgt_bounds bounds;
    kgt_level coarse, fine;
    double chain; /* Q */
    double bound; /* of its best, if it has any */
    bool best;
    int64_t n_targets, open, close, n_thresholds, n_judged;
} kgt_row_state;

typedef struct kgt_run kgt_run;

/* What depends on the type of the scores: the ways from tiles of them to rows, and the best of rows
 * (factors_rows.c).
 *
 * close         Also without open.
 * rank_waiting  Ranks r->rows from scores of the block.
 * rank_range    Ranks all rows from those of the entities first .. end - 1.
 * bound         Below the last of the best: as high as what is kept allows.
 * keep          An entity with its score, unless that is below the bound.
 * finish        Writes the best of a row; false, and nothing is written, if they were guessed
 * wrong. */
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
    kgt_codes own; /* where the call has none */
    const kgt_codes *codes;
    const kgt_block *block; /* the one at hand */
    int64_t guessing_rank;  /* 0: no guesses */
    kgt_queries queries;
    union {
        kgt_worker_f64 f64;
        kgt_worker_f32 f32;
    } worker;
    union {
        kgt_tiler_f64 f64;
        kgt_tiler_f32 f32;
    } tiler;           /* of rows that are ranked from scores: opened by the first */
    kgt_factors tiled; /* these rows' queries */
    bool tiling;
    int64_t *rows, n_rows; /* to be ranked from scores of this block */
    int64_t *known_at, *removed_at;
    int64_t *gains; /* what a block adds to the counts of a row: two for each target */
    int32_t *products;
    size_t product_stride;
    kgt_row_state tile[KGT_BYTE_QUERIES];     /* the rows at hand */
    int32_t *pause, *next_pause, n_few;       /* rows of few thresholds */
    kgt_costs total;                          /* theirs */
    uint64_t *sure, *reach, *known, *removed; /* bits of the block's entities */
    uint16_t *places;
    char *copies; /* of vectors of pairs */
    kgt_pair *pairs;
    int64_t n_pairs;
    size_t words;  /* of such bits */
    bool *guessed; /* the bound of a row's best may be too high */
};

kgt_prices kgt_prices_of(const kgt_factors *factors);
/* Whether comparing alone costs a row of n targets more than tiles do. */
bool kgt_too_many_targets(const kgt_run *r, int64_t n);
/* A guess of the bound of a row's best, from its products with the sample. False: there is none. */
bool kgt_guess_row(kgt_run *r, int64_t row, const int32_t *products);
/* A row in the block at hand, without products; the lowest value that it is compared with, as
 * `below` of kgt_bytes. */
float kgt_open_row(kgt_run *r, int64_t row, kgt_row_state *state);
/* Fetches what kgt_settle_row will read of a row: since the last block it has left the nearer
 * caches. */
void kgt_fetch_row(const kgt_run *r, int64_t row);
/* Counts a row's targets and puts down its pairs in the block, and adds up the costs; false, and
 * nothing has been counted or put down, if bounds leave too much open. */
bool kgt_settle_row(kgt_run *r, kgt_row_state *state, kgt_costs *total);
/* Settles the pairs that the bounds of a tile of queries have left. */
void kgt_settle_pairs(kgt_run *r);

/* The whole call (factors_run.c): where kgt_bounds_serve. */
kgt_status kgt_rank_bounds(const kgt_factors *factors, const kgt_call *call);

#endif
