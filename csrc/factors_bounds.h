/* Entities and queries as vectors of 8 and of 16 bits, with what bounds the error of their
 * products and distances: internal to the factors family.
 *
 * THE BOUND. Let q and x be the vectors of a query and an entity, q' = s c and x' = r e what their
 * codes c and e stand for, u = 2^-24. By the triangle and the Cauchy-Schwarz inequality
 *
 *     |q.x - q'.x'| <= |q.(x - x')| + |(q - q').x'| <= |q| |x - x'| + |q - q'| |x'|,
 *
 * where P = c.e is an integer without error, and q'.x' = s r P. The score that counts is not the
 * real number q.x but the chain of d fused multiply-adds in float, S, with one rounding a step:
 * |S - q.x| <= g |q| |x|, g = d u / (1 - d u). (What underflows adds d 2^-150 at most. Vectors with
 * bounds have a largest magnitude of 2^-32 or more, or are zero, and then S is 0: it is within the
 * u |q| |x| that g' below has to spare.) Metrics put the score together from S:
 *
 *     KGT_DOT   fl(S + b)                              within u (|S| + |b|) of S + b
 *     KGT_L2    fl(fl(fl(2 S - X) - Q) + b)            within 3 u (2 |S| + X + Q + |b|) (1 + 3 u)
 * of 2 S - X - Q + b,
 *
 * X and Q being the chains x.x and q.q, the very floats. In units of m s, with m = 1 for KGT_DOT
 * (and X = Q = 0) and m = 2 for KGT_L2, and with o = b - X,
 *
 *     |score + Q - (m s r P + o)| / (m s)
 *         <= (|q| / s) (|x - x'| + k |x'| + g' |x|) + 16 u (|o| + X + |b| + Q) / (m s)
 *
 * if k >= |q - q'| / |q| and g' = (d + 16) u / (1 - (d + 16) u). What g' has beyond g, and 16
 * beyond 3, pays for the score's roundings and for those of what is compared: the conversion of P,
 * the two of o / r, those of its product with factor and of their sum are each within u of their
 * value, and |s r P| <= |q'| |x'|. So with error = |x - x'| + k |x'| + g' |x|, norm = |q| / s,
 * factor = 1 / (m s), and v = P + (o / r) factor in float, the score, plus Q, over m s is within
 * norm error of r v, but for a slack that depends on the query and the block only.
 *
 * The 64 entities of a word share r, and the largest of their |x - x'| + g' |x| and of their |x'|,
 * of which their error is made. The slack is put on the thresholds: with t- and t+ as (t + Q) / (m
 * s) less and more it, a score t is surely less than the entity's if v > (t+ + norm error) / r, and
 * surely more if v < (t- - norm error) / r. These are two numbers a word, which judge compares v
 * with; 1 / r and they have five roundings, and are moved outwards by 16 u of their value.
 *
 * THE SECOND LEVEL is the same theorem for other codes of the same vectors: 16 bits, whose norms
 * are held below 2^15.5, so that |P| <= |c| |e| < 2^31 and P is again an integer without error.
 * Their residuals are some hundred times smaller, and so is the bound: |x - x'| is about |x| sqrt(d
 * / 12) / 45,000. Scales, norms, errors and s are those of these codes, and o, X, Q and g' what
 * they were.
 *
 * There each entity has an r and an error of its own, and r P + o factor -+ norm error are compared
 * with the thresholds as they are. What is made of an entity is for any query, at either level: its
 * error is put together, base + k |x'|, where it meets one, and what that loses by rounding is less
 * than what norm is rounded up by.
 *
 * UNDER L1 the score is fl(b - D), D being the chain of d differences and additions, which is
 * within g (|q| + |x|) of the distance, as |.| here is the sum of magnitudes (and what underflows
 * is exact in float). Codes count steps of one length s for all vectors, so that P = -|c - e|,
 * minus the distance of q' = s c and x' = s e over s, is an integer without error. By the triangle
 * inequality
 *
 *     ||q - x| + s P| <= |(q - q') - (x - x')| <= |q - q'| + |x - x'|,
 *
 * codes that are cut off where they end included, and so, with o = b and m = 1,
 *
 *     |score - (s P + o)| / s
 *         <= ((|x - x'| + g' |x|) + (|q - q'| + g' |q|) + 16 u (|o| + |b|)) / s,
 *
 * where g' pays as above, for |s P| <= |q'| + |x'|. What the entity says is its error, with norm =
 * 1 / s and k = 0, and r is 1; what the query says, `own`, is part of the slack. The second
 * level has a smaller step, and codes below 2^14, whose differences fit 16 bits.
 *
 * IN DOUBLE codes are made of the vectors rounded to float, which q and x are from here on. Each
 * value has then lost at most u of itself, and vectors of dim <= 2^16 have d 2^-53 < 2^-13 u: the
 * chain of the vectors as they were is within 3 u |q| |x| of q.x, under L1 within 3 u (|q| + |x|)
 * of the distance. So 3 takes the place of d in g'. (What underflows is lost 2^-150 at a time,
 * which g' has to spare, as above; a vector that would be lost as a whole has no bounds.) X, Q, b
 * and the score's roundings are those of double, o is rounded to float, as it is there.
 *
 * ROUNDING. Norms, residuals, k, g', norm, own and slack are rounded up, by factors above the
 * roundings of their own computation; the threshold for lower is rounded up, that for upper down.
 * Neither the rounding of codes nor the order of a sum matters to any of this. */
#ifndef KGT_FACTORS_BOUNDS_H
#define KGT_FACTORS_BOUNDS_H

#include "factors_tiles.h"
#include "isa_bytes.h"

/* What codes of 8 and of 16 bits count under L1, where all vectors of a call share it. Those of 8
 * are poor if they leave much of the vectors: distances of codes are too small then. */
typedef struct {
    float coarse, fine;
    bool poor;
} kgt_steps;

/* Steps that suit a sample of the vectors; any are right. */
kgt_status kgt_steps_choose(const kgt_factors *factors, kgt_steps *steps);

/* A block of the ranked entities, at most `width`, a multiple of 64; once taken, it is only read.
 */
typedef struct {
    const kgt_bytes *bytes;
    const kgt_factors *factors;
    const kgt_sums *sums; /* the metric's */
    kgt_pairs *pairs;     /* and the type's */
    kgt_steps steps;
    size_t groups;
    int64_t width, first, n;
    bool bounded; /* false: some entity has no bounds */
    int8_t *panels;
    int32_t *start;
    /* Entities stand in order of their largest magnitudes, so that those of a word have much the
     * same: places of the block by slot, and slots by place. All that follows is by slot, but for
     * what the 64 of a word share. */
    uint16_t *place_of, *slot_of;
    float *scale, *inverse, *code_norm;
    float *base;   /* |x - x'| + g' |x| */
    float *offset; /* b - X; NULL where that is 0 for all */
    float *shift;  /* the same times inverse */
    int16_t *fine; /* the second level: codes and figures, row after row */
    size_t fine_stride;
    double *entity_norm;   /* X; NULL where that is 0 for all */
    double largest_offset; /* of |o| + X + |b| */
} kgt_block;

/* Entities of the blocks of a call, but for the last, and what one takes in memory. */
int64_t kgt_block_width(const kgt_factors *factors);
size_t kgt_block_bytes(const kgt_factors *factors, int64_t width);
kgt_status kgt_block_open(kgt_block *block, const kgt_factors *factors, kgt_steps steps,
                          int64_t width);
void kgt_block_close(kgt_block *block);
/* Entities to multiply with: the last block's, padded to whole words of bits. */
KGT_INLINE size_t kgt_block_padded(const kgt_block *block) {
    return (size_t)(block->n + 63) / 64 * 64;
}
/* Takes the ranked entities first .. first + n - 1, n <= width. */
kgt_status kgt_block_take(kgt_block *block, int64_t first, int64_t n);

/* Vectors that are at hand at a time, for their chains side by side: those of a word. */
#define KGT_AT_HAND 64

/* The vector of an entity of a block as the table has it, or in copy number i of KGT_AT_HAND, of
 * two vectors each. */
KGT_INLINE const void *kgt_vector_at(const kgt_block *block, int64_t slot, char *copies, size_t i) {
    return kgt_entity(kgt_kernel_active(), block->factors, block->first + block->place_of[slot],
                      copies + i * 2 * kgt_vector_bytes(block->factors));
}

/* The blocks of a model's entities, and a sample of the entities, from which the best of rows are
 * guessed. Either every block has a place of its own, and calls share them; or a call takes one
 * after the other, in the same place. */
struct kgt_codes {
    const kgt_bytes *bytes;
    kgt_factors factors;
    kgt_steps steps;
    int64_t width, n_blocks;
    bool shared;
    kgt_block *blocks, sampled;
    kgt_factors sampled_of; /* its entities alone */
    int32_t *sampled_ids;
    int64_t guessing_rank; /* of the sample's best the one that is the guess; 0: none */
};

/* Without taking anything yet. */
kgt_status kgt_codes_begin(kgt_codes *codes, const kgt_factors *factors, int64_t depth,
                           bool shared);
void kgt_codes_end(kgt_codes *codes);
/* Block number i, which has been taken. */
KGT_INLINE const kgt_block *kgt_codes_block(const kgt_codes *codes, int64_t i) {
    return codes->blocks + (codes->shared ? i : 0);
}

/* The queries of a call, in tiles of KGT_BYTE_QUERIES. */
typedef struct {
    const kgt_bytes *bytes;
    kgt_steps steps;
    size_t groups;
    int64_t n;
    uint8_t *codes;         /* row after row, as product takes them */
    double *inverse;        /* 1 / (m s) */
    double *chain;          /* Q */
    double *own, *fine_own; /* |q - q'| + g' |q| under L1, else 0 */
    float *judged_norm, *factor;
    float *relative; /* k */
    bool *bounded;
    int16_t *fine; /* the second level: codes, 1 / (m s), |q| / s, 1 / (m s) and k */
    size_t fine_stride;
    double *fine_inverse;
    float *fine_norm, *fine_factor, *fine_relative;
} kgt_queries;

/* Of the same steps as the blocks. */
kgt_status kgt_queries_open(kgt_queries *queries, const kgt_factors *factors, kgt_steps steps);
void kgt_queries_close(kgt_queries *queries);

/* Under L1: takes the codes of an entity of the block, with room for its first ones, padded with
 * zeros; of query i, false if it has no bounds. */
void kgt_l1_take_codes(kgt_block *block, int64_t slot, const float *vector, int8_t *codes);
bool kgt_l1_take_query(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                       const float *query);

/* Where the figures of an entity of a block stand. */
KGT_INLINE char *kgt_figures_of(const kgt_block *block, int64_t slot) {
    const size_t end = ((size_t)slot + 1) * block->fine_stride;
    return (char *)(block->fine + end - KGT_FINE_FIGURES);
}

/* g' of the bound. */
KGT_INLINE double kgt_rounding(const kgt_factors *factors) {
    const double chain = kgt_in_double(factors) ? 3 : (double)factors->dim;
    const double steps = (chain + 16) * 0x1p-24;
    return steps / (1 - steps) * (1 + 0x1p-20);
}

/* Above the roundings of a few steps in double, and of one to float. */
#define KGT_UP (1 + 0x1p-20)

#endif
