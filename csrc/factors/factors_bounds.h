/* The error bound of products and distances of codes (8 or 16 bits per value) that replace vectors,
 * and what the codes of entities and queries share. Internal to the factors family.
 *
 * THE BOUND. Let q and x be the vectors of a query and an entity. Let c and e be their codes, which
 * stand for q' = s c and x' = r e. Let u = 2^-24. By the triangle and the Cauchy-Schwarz inequality
 *
 *     |q.x - q'.x'| <= |q.(x - x')| + |(q - q').x'| <= |q| |x - x'| + |q - q'| |x'|,
 *
 * where P = c.e is an integer without error, and q'.x' = s r P. The score is not the real number
 * q.x. It is made from S, the chain of d fused multiply-adds in float, with one rounding per step:
 * |S - q.x| <= g |q| |x|, g = d u / (1 - d u). (Underflow adds at most d 2^-150. A vector with
 * bounds has a largest magnitude of 2^-32 or more, so this is within the u |q| |x| that g' below
 * has to spare. If the vector is zero, S is 0.) The metrics compute the score from S:
 *
 *     KGT_DOT   fl(S + b)                    within u (|S| + |b|) of S + b
 *     KGT_L2    fl(fl(fl(2 S - X) - Q) + b)  within 3 u (2 |S| + X + Q + |b|) (1 + 3 u)
 *                                            of 2 S - X - Q + b
 *
 * X and Q are the chains x.x and q.q, the same floats as in scores. Let o = b - X. Let m = 1 for
 * KGT_DOT (and X = Q = 0), and m = 2 for KGT_L2. In units of m s,
 *
 *     |score + Q - (m s r P + o)| / (m s)
 *         <= (|q| / s) (|x - x'| + k |x'| + g' |x|) + 16 u (|o| + X + |b| + Q) / (m s)
 *
 * if k >= |q - q'| / |q| and g' = (d + 16) u / (1 - (d + 16) u). The excess of g' over g, and of 16
 * over 3, covers two kinds of roundings: those of the score and those of the compared value. The
 * latter are the conversion of P, two for o / r, its product with factor, and the sum. Each is
 * within u of its value, and |s r P| <= |q'| |x'|. So let error = |x - x'| + k |x'| + g' |x|, norm
 * = |q| / s, factor = 1 / (m s), and v = P + (o / r) factor in float. Then (score + Q) / (m s) is
 * within norm error of r v, apart from a slack that depends only on the query and the block.
 *
 * The 64 entities of a word share r and one error, made from the largest of their |x - x'| + g' |x|
 * and the largest of their |x'|. The slack is part of the thresholds: t- and t+ are (t + Q) / (m s)
 * minus and plus the slack. A score t is surely less than the entity's if v > (t+ + norm error) /
 * r. It is surely more if v < (t- - norm error) / r. So judge compares v with two numbers per word.
 * 1 / r and these numbers have five roundings; they are moved outwards by 16 u of their value.
 *
 * THE SECOND LEVEL is the same theorem for other codes of the same vectors, with 16 bits. The norms
 * of these codes stay below 2^15.5, so |P| <= |c| |e| < 2^31 and P is again an integer without
 * error. The residuals and the bound are some hundred times smaller: |x - x'| is about |x| sqrt(d /
 * 12) / 45,000. Scales, norms, errors and s are those of these codes; o, X, Q and g' are unchanged.
 *
 * Here each entity has its own r and error, and r P + o factor -+ norm error are compared with the
 * thresholds directly. At either level, the figures of an entity serve every query. Its error for a
 * query is base + k |x'|. The rounding of this sum loses less than the rounding up of norm adds.
 *
 * UNDER L1 the score is fl(b - D). D is the chain of d differences and additions. Here |.| is the
 * sum of magnitudes, so D is within g (|q| + |x|) of the distance (sums that underflow are exact in
 * float). Codes count steps of one length s for all vectors, q' = s c and x' = s e. So P = -|c - e|
 * is an integer without error: minus the distance of q' and x', over s. By the triangle inequality
 *
 *     ||q - x| + s P| <= |(q - q') - (x - x')| <= |q - q'| + |x - x'|,
 *
 * also for clipped codes, and so, with o = b and m = 1,
 *
 *     |score - (s P + o)| / s
 *         <= ((|x - x'| + g' |x|) + (|q - q'| + g' |q|) + 16 u (|o| + |b|)) / s,
 *
 * where g' covers the roundings as above, because |s P| <= |q'| + |x'|. The entity's part is its
 * error, with norm = 1 / s, k = 0 and r = 1. The query's part, `l1_error`, belongs to the slack.
 * The second level has a smaller step, and codes below 2^14, so that differences fit 16 bits.
 *
 * IN DOUBLE, codes are made of the vectors rounded to float; q and x are these rounded vectors
 * here. Rounding takes at most u of each value. With dim <= 2^16, d 2^-53 < 2^-13 u. So the chain
 * of the original vectors is within 3 u |q| |x| of q.x, and under L1 within 3 u (|q| + |x|) of the
 * distance. Therefore 3 replaces d in g'. (Each underflow loses 2^-150, which g' has to spare, as
 * above. A vector that would become zero has no bounds.) X, Q, b and the score's roundings are
 * those of double; o is rounded to float.
 *
 * ROUNDING. Norms, residuals, k, g', norm, l1_error and slack are rounded up, by factors above the
 * roundings of their own computation. The threshold for lower is rounded up, that for upper down.
 * The rounding of codes and the order of sums do not matter. */
#ifndef KGT_FACTORS_BOUNDS_H
#define KGT_FACTORS_BOUNDS_H

#include "factors_vectors.h"
#include "isa_bytes.h"

/* More than the roundings of a few steps in double and of one to float. */
#define KGT_UP (1 + 0x1p-20)

/* g' of the bound. */
KGT_INLINE double kgt_rounding(const kgt_factors *factors) {
    const double chain = kgt_in_double(factors) ? 3 : (double)factors->dim;
    const double steps = (chain + 16) * 0x1p-24;
    return steps / (1 - steps) * (1 + 0x1p-20);
}

/* |x - x'| + g' |x| under L1, or the same of a query, rounded up. */
KGT_INLINE double kgt_l1_error(kgt_quantised_l1 x, const kgt_factors *factors) {
    return ((double)x.residual + kgt_rounding(factors) * (double)x.norm) * KGT_UP;
}

/* Groups of four codes of a vector. */
KGT_INLINE size_t kgt_code_groups(const kgt_factors *factors) {
    const size_t dim = (size_t)factors->dim;
    return factors->metric == KGT_L1 ? kgt_l1_groups(dim) : kgt_byte_groups(dim);
}

/* The least magnitude that the codes of a vector must reach. */
KGT_INLINE float kgt_code_range(const kgt_bytes *bytes, const kgt_factors *factors, const float *x,
                                float largest, bool query) {
    if (bytes->range == NULL || factors->metric == KGT_L1 || isnan(largest)) return largest;
    return bytes->range(x, (size_t)factors->dim, largest, query);
}

#endif
