/* Primitives that bound a factorised model's scores: products and distances of 8-bit codes, and the
 * steps that follow (factors_bounds.h). There is one table per instruction set that multiplies
 * bytes or sums their absolute differences. A path without a table computes every score. */
#ifndef KGT_ISA_BYTES_H
#define KGT_ISA_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa_kernel.h"

/* Entities per panel, the divisor of n_panels, and queries per product. */
#define KGT_BYTE_PANEL 16
#define KGT_BYTE_PANELS 4
#define KGT_BYTE_QUERIES 32
/* Thresholds compared at once. */
#define KGT_JUDGED 4
/* Most words of a block, with one bit per entity: as many as a word has bits. */
#define KGT_MOST_WORDS 64
/* Rows of 16-bit codes have a multiple of KGT_FINE_LANES codes. An entity's row ends with its
 * figures, where a query has zeros. So a comparison finds all that it needs in one place. */
#define KGT_FINE_LANES 32
#define KGT_FINE_FIGURES 8

/* A vector x as scale * codes. 8-bit codes are -127 to 127. The Euclidean norm of 16-bit codes is
 * below 2^15.5, so the products of two vectors and of their parts fit int32. The norms are never
 * too small: norm >= |x|, code_norm >= |scale * codes|, residual >= |x - scale * codes|. */
typedef struct {
    float scale, norm, code_norm, residual;
    int32_t sum; /* of the codes */
} kgt_quantised;

/* A vector x as step * codes for distances in L1. All vectors of a call have the same step. norm >=
 * the sum of |x_k|, residual >= the sum of |x_k - step * code|. */
typedef struct {
    float norm, residual;
} kgt_quantised_l1;

/* Largest magnitudes of codes for distances (KGT_L1_ZERO is added to 8-bit codes), and the smallest
 * step. */
#define KGT_L1_MOST 127
#define KGT_L1_MOST_FINE 16383
#define KGT_L1_ZERO 128
#define KGT_L1_SMALLEST 0x1p-60f

/* Turns products into bounds. With v = product + shift * factor and error = base + relative *
 * code_norm, lower = v / inverse - norm * error and upper = v / inverse + norm * error. The 64
 * entities of a word share all but the shift (NULL if 0 for all). */
typedef struct {
    const float *inverse, *base, *code_norm; /* of each word; inverse > 0 */
    const float *shift;                      /* of each entity */
    float norm, relative, factor;
} kgt_bounds;

/* The end of an entity's row of 16-bit codes. With v = product * scale + offset * factor and error
 * = base + relative * code_norm, lower = v - norm * error and upper = v + norm * error. Without
 * offsets, offset is 0. */
typedef struct {
    float scale, base, code_norm, offset;
} kgt_figures;

/* clang-format off */
/* A vector's bytes are padded with zeros to `groups` groups of four (kgt_byte_groups).
 *
 * product       out[i * stride + j] = start[j] + sum of query i times entity j, for KGT_BYTE_QUERIES queries
 *               and 16 * n_panels entities, n_panels a multiple of KGT_BYTE_PANELS. queries: row after row,
 *               query_zero added to each byte. panels: (n_panels, groups, KGT_BYTE_PANEL, 4), entity_zero (0 or
 *               128) added to each byte modulo 256. start: -query_zero * the sum of an entity's codes. The
 *               accumulator is int32, modulo 2^32; sums fit it, as groups <= 2^14. Codes respect `range`, if
 *               any.
 * reaching      NULL, or product with a first comparison. Query i gets words[i], one bit per word of 64
 *               entities: set if the upper of one of them may reach below[i]. (In the others, judge sets no
 *               bit for this threshold or a higher one.) out gets the products of these words only, one word
 *               after the other; it has space for all. The bounds are those of the same block.
 * largest       The largest magnitude of dim values, 1 <= dim <= 2^16. NaN if a value is not finite or the
 *               largest is neither 0 nor within 2^-32 .. 2^32.
 * range         NULL, or the least value of the largest code that keeps products exact, for an entity or a
 *               query with this largest magnitude.
 * quantise      The same values to codes. `largest` is at least their own largest magnitude and range; other
 *               vectors may share it.
 * quantise_fine The same vector to dim codes of 16 bits, for its own largest magnitude or range. coarse: the
 *               result of quantise for it.
 * quantise_l1   dim values to codes of 8 bits, or of 16 if `fine`, for a step of KGT_L1_SMALLEST to 2^40; no
 *               magnitude exceeds 2^32.
 * judge         Compares the products of `words` (one bit per word) with m <= KGT_JUDGED thresholds. If bit
 *               j of sure[t] is set, lower > above[t]. If bit j of reach[t] is clear, upper < below[t]. Both
 *               have n_words <= KGT_MOST_WORDS words per threshold, the block's; words that are not in
 *               `words` stay unchanged. It compares v with thresholds per word that are rounded outwards.
 * highest_lower out[place] = the largest lower among the entities at this place of n_words words, without
 *               those whose bit in `outside` is set; -INFINITY if none. lower is as in judge, with `norm`
 *               instead of the bounds'. scale: one per word.
 * refine        The second level, for n places: lower and upper as in judge, from an entity's figures and the
 *               product of the query with its row of the table (kgt_fine_stride codes each). Sets the bit in
 *               `sure` of each with lower > above. Of the others, those with upper >= below stay in places
 *               (KGT_SLACK to spare). Returns their number.
 * pairs         out[i] = the chain of pair (kgt_ops_f32 or kgt_ops_f64) for the vectors a[i] and b[i].
 * count_bits    In these words: out[0] = the number of bits in `bits` and not in `known`; out[1] = the same
 *               with `removed`.
 * undecided     In these words: the ascending numbers of the bits in reach, without those in sure, those in
 *               both known and removed, and `except`, to out (KGT_SLACK places to spare). Returns how many.
 *               sure may be NULL. */
/* clang-format on */

/* The sums over dimensions. For dot products they are as above. For L1, product gives minus the sum
 * of |query i - entity j| of unsigned bytes, from panels in the layout of kgt_l1_place and without
 * start. refine uses minus the same sum of 16-bit codes, and pairs the chains of pair_l1. */
typedef void kgt_pairs(const void *const *a, const void *const *b, size_t n, size_t dim,
                       double *out);
typedef struct {
    void (*product)(const uint8_t *queries, const int8_t *panels, size_t groups, size_t n_panels,
                    const int32_t *start, int32_t *out, size_t stride);
    void (*reaching)(const uint8_t *queries, const int8_t *panels, size_t groups, size_t n_words,
                     const int32_t *start, const kgt_bounds *bounds, const float *below,
                     int32_t *out, size_t stride, uint64_t *words);
    size_t (*refine)(const int16_t *query, const int16_t *table, size_t stride, float norm,
                     float relative, float factor, float above, float below, uint16_t *places,
                     size_t n, uint64_t *sure);
    kgt_pairs *pairs_f32, *pairs_f64;
} kgt_sums;

typedef struct {
    const char *name;
    bool (*available)(void);
    uint8_t query_zero, entity_zero;
    double dearer; /* extra cost of bounds over the prices: 0.3 is 30 % */
    kgt_sums dot, l1;
    float (*largest)(const float *x, size_t dim);
    float (*range)(const float *x, size_t dim, float largest, bool query);
    void (*quantise)(const float *x, size_t dim, float largest, int8_t *codes, kgt_quantised *out);
    void (*quantise_fine)(const float *x, size_t dim, float largest, const kgt_quantised *coarse,
                          int16_t *codes, kgt_quantised *out);
    void (*quantise_l1)(const float *x, size_t dim, float step, bool fine, void *codes,
                        kgt_quantised_l1 *out);
    void (*judge)(const int32_t *products, uint64_t words, size_t n_words, const kgt_bounds *bounds,
                  const float *above, const float *below, size_t m, uint64_t *sure,
                  uint64_t *reach);
    void (*highest_lower)(const int32_t *products, size_t n_words, const kgt_bounds *bounds,
                          const float *scale, float norm, const uint64_t *outside, float *out);
    void (*count_bits)(const uint64_t *bits, const uint64_t *known, const uint64_t *removed,
                       uint64_t words, int64_t *out);
    size_t (*undecided)(const uint64_t *sure, const uint64_t *reach, const uint64_t *known,
                        const uint64_t *removed, uint64_t words, size_t except, uint16_t *out);
} kgt_bytes;

/* Groups of a padded vector, at least one. */
KGT_INLINE size_t kgt_byte_groups(size_t dim) { return dim > 4 ? (dim + 3) / 4 : 1; }

/* For distances, a panel holds eight bytes per entity, first those of even entities, then those of
 * odd ones. Entity `place` has its eight at this offset. Groups still have four bytes. */
KGT_INLINE size_t kgt_l1_groups(size_t dim) { return (dim + 7) / 8 * 2; }
KGT_INLINE size_t kgt_l1_place(size_t place) {
    return place % 2 * KGT_BYTE_PANEL * 4 + place / 2 * 8;
}

/* Codes and figures of a row of 16-bit codes. */
KGT_INLINE size_t kgt_fine_stride(size_t dim) {
    return (dim + KGT_FINE_FIGURES + KGT_FINE_LANES - 1) / KGT_FINE_LANES * KGT_FINE_LANES;
}

/* Table entries that templates define: after the products, and the others. */
#define KGT_BYTES_DOT FN(refine), FN(pairs_f32), FN(pairs_f64)
#define KGT_BYTES_SHARED                                                                    \
    .l1 = {FN(product_l1), NULL, FN(refine_l1), FN(pairs_l1_f32), FN(pairs_l1_f64)},        \
    .largest = FN(largest), .quantise = FN(quantise), .quantise_fine = FN(quantise_fine),   \
    .quantise_l1 = FN(quantise_l1), .judge = FN(judge), .highest_lower = FN(highest_lower), \
    .count_bits = FN(count_bits), .undecided = FN(undecided)

extern const kgt_bytes kgt_bytes_scalar;
#if KGT_X86
extern const kgt_bytes kgt_bytes_avxvnni, kgt_bytes_avx512vnni;
extern const kgt_bytes kgt_bytes_avx2madd, kgt_bytes_avx512sad;
#endif
#if KGT_ARM64
extern const kgt_bytes kgt_bytes_neondot, kgt_bytes_neonsad;
#endif

/* The table of the active path; NULL if the path computes every score. If a path has only
 * distances, dot.product is NULL. */
const kgt_bytes *kgt_bytes_active(void);

#endif
