/* What bounds the error of products and distances of codes, 8 or 16 bits a value, in place of
 * vectors, and what the codes of entities and of queries share: internal to the factors family.
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

#include "factors_vectors.h"
#include "isa_bytes.h"

/* Above the roundings of a few steps in double, and of one to float. */
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
    return factors->metric == KGT_L1 ? kgt_l1_groups(dim)
                                     : kgt_byte_groups(kgt_bytes_active(), dim);
}

/* What the codes of a vector have to reach at least. */
KGT_INLINE float kgt_code_range(const kgt_bytes *bytes, const kgt_factors *factors, const float *x,
                                float largest, bool query) {
    if (bytes->range == NULL || factors->metric == KGT_L1 || isnan(largest)) return largest;
    return bytes->range(x, (size_t)factors->dim, largest, query);
}

#endif
