/* Products and distances of 8-bit vectors and what becomes of them: the primitives by which a
 * factorised model's scores are bounded (factors_bounds.h). A table per instruction set that
 * multiplies bytes, or has sums of their absolute differences at least; a path without one computes
 * every score. */
#ifndef KGT_ISA_BYTES_H
#define KGT_ISA_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa_kernel.h"

/* Entities of a panel, panels that n must be a multiple of, and queries of a product. */
#define KGT_BYTE_PANEL 16
#define KGT_BYTE_PANELS 4
#define KGT_BYTE_QUERIES 32
/* Thresholds that are compared at once. */
#define KGT_JUDGED 4
/* Words of a bit for each entity of a block, at most: as many as a word has bits. */
#define KGT_MOST_WORDS 64
/* Codes of 16 bits come in rows of whole times as many. The last of an entity's row are the places
 * of its figures, where a query has zeros: what a comparison needs lies together. */
#define KGT_FINE_LANES 32
#define KGT_FINE_FIGURES 8

/* A vector x as scale * codes: of 8 bits, -127 to 127, or of 16 bits, the Euclidean norm of whose
 * codes is below 2^15.5, so that a product of two vectors, and of any of their parts, fits int32.
 * The norms are never too small: norm >= |x|, code_norm >= |scale * codes|, residual >= |x - scale
 * * codes|. */
typedef struct {
    float scale, norm, code_norm, residual;
    int32_t sum; /* of the codes */
} kgt_quantised;

/* A vector x as step * codes for distances in L1, where all vectors of a call have the same step:
 * norm >= the sum of |x_k|, residual >= that of |x_k - step * code|. */
typedef struct {
    float norm, residual;
} kgt_quantised_l1;

/* Codes for distances, up to so many steps to either side, with KGT_L1_ZERO added to those of 8
 * bits; and the smallest step. */
#define KGT_L1_MOST 127
#define KGT_L1_MOST_FINE 16383
#define KGT_L1_ZERO 128
#define KGT_L1_SMALLEST 0x1p-60f

/* What turns products into bounds. The 64 entities of a word share what they need but for their
 * shift, which may be NULL where that is 0: with v = product + shift * factor and error = base +
 * relative * code_norm, lower = v / inverse - norm * error and upper = v / inverse + norm * error.
 */
typedef struct {
    const float *inverse, *base, *code_norm; /* of each word; inverse > 0 */
    const float *shift;                      /* of each entity */
    float norm, relative, factor;
} kgt_bounds;

/* At the end of an entity's row of 16-bit codes, where v = product * scale + offset * factor, error
 * = base + relative * code_norm, lower = v - norm * error and upper = v + norm * error; offset is 0
 * where there is none. */
typedef struct {
    float scale, base, code_norm, offset;
} kgt_figures;

/* clang-format off */
/* Bytes of a vector are padded with zeros to `groups` groups of four, see kgt_byte_groups.
 *
 * open, close   Around the products of a thread; close may be called without open.
 * product       out[i * stride + j] = start[j] + sum of query i times entity j, for
 *               KGT_BYTE_QUERIES queries and 16 * n_panels entities, n_panels a multiple of
 *               KGT_BYTE_PANELS. queries: row after row, query_zero added to each byte. panels: (n_panels,
 *               groups, KGT_BYTE_PANEL, 4), entity_zero (0 or 128) added to each byte modulo 256.
 *               start: -query_zero * the sum of an entity's codes. The accumulator is int32, modulo
 *               2^32; sums fit it, as groups <= 2^14. Where there is `range`, codes respect it.
 * reaching      NULL, or product and a first comparison: for query i, words[i] is a bit for each word of 64
 *               entities that has one whose upper may reach below[i] (in the others judge sets no bit for this
 *               threshold or a higher one), and the products of these words stand in out, one word after the
 *               other. It has room for all; the bounds are of the same block.
 * largest       The largest magnitude of dim values, 1 <= dim <= 2^16. NaN if a value is not finite or
 *               the largest is neither 0 nor within 2^-32 .. 2^32.
 * range         NULL, or what the largest code has to stand for at least, so that products are without
 *               error: of an entity or a query, whose largest magnitude this is.
 * quantise      The same values to codes, for a largest magnitude that may be that of other vectors, too,
 *               and is no less than their own, nor than their range.
 * quantise_fine The same vector, of which quantise has made `coarse`, to dim codes of 16 bits, for its own
 *               largest magnitude or range.
 * quantise_l1   dim values to codes of 8 bits, or of 16 if `fine`, for a step of KGT_L1_SMALLEST to
 *               2^40; no magnitude exceeds 2^32.
 * judge         For the products of `words`, a bit for each, and m <= KGT_JUDGED thresholds: if bit j of sure[t]
 *               is set, lower > above[t], if that of reach[t] is not, upper < below[t]. Both take n_words <=
 *               KGT_MOST_WORDS, the block's, for each threshold; those that `words` leaves out stay as they are.
 *               What is compared is v with thresholds of the word that are rounded outwards.
 * highest_lower Of n_words words: the largest lower, as judge has it but for `norm` in place of the bounds',
 *               of the entities that have the same place in their words, to out[place]; those whose bit is
 *               set in `outside` apart. scale: of each word. -INFINITY where there is none.
 * refine        The second level. For n places: lower and upper as judge has them, with an entity's
 *               figures, from products of the query with rows of the table (kgt_fine_stride codes
 *               each). Sets the bit in `sure` of each whose lower > above; of the others those with
 *               upper >= below stay in places (KGT_SLACK to spare); how many these are.
 * pairs         out[i] = the chain of pair for the vectors a[i] and b[i], of kgt_ops_f32 or kgt_ops_f64.
 * count_bits    Of these words: how many bits are in `bits` and not in `known`, to out[0], nor in `removed`,
 *               to out[1].
 * undecided     Of these words: the numbers of the bits in reach that are neither in sure nor in both known
 *               and removed, nor are `except`, ascending, to out (KGT_SLACK places to spare); how many there
 *               are. sure may be NULL. */
/* clang-format on */

/* The sums over dimensions: for dot products as above; for distances in L1 product has minus the
 * sum of |query i - entity j| of unsigned bytes, in panels of kgt_l1_place, and without start,
 * refine minus that of 16-bit codes, and pairs the chains of pair_l1. */
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
    bool in_pieces;
    double dearer; /* bounds of products, than the prices of factors_settle.c say: 0.3 is 30 % */
    void (*open)(size_t groups);
    void (*close)(void);
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

/* Groups of a padded vector, at least one. Where it is multiplied in pieces of at most 16, which is
 * what a tile of AMX takes, each has as many. */
KGT_INLINE size_t kgt_byte_pieces(size_t dim) { return dim > 64 ? (dim + 63) / 64 : 1; }
KGT_INLINE size_t kgt_byte_groups(const kgt_bytes *bytes, size_t dim) {
    const size_t pieces = bytes->in_pieces ? kgt_byte_pieces(dim) : 1;
    const size_t groups = dim > 4 ? (dim + 3) / 4 : 1;
    return (groups + pieces - 1) / pieces * pieces;
}

/* For distances a panel has eights of bytes, those of its even entities before those of its odd
 * ones: where eight of entity `place` of a panel begin. Groups are of four bytes all the same. */
KGT_INLINE size_t kgt_l1_groups(size_t dim) { return (dim + 7) / 8 * 2; }
KGT_INLINE size_t kgt_l1_place(size_t place) {
    return place % 2 * KGT_BYTE_PANEL * 4 + place / 2 * 8;
}

/* Codes and figures of a row of 16-bit codes. */
KGT_INLINE size_t kgt_fine_stride(size_t dim) {
    return (dim + KGT_FINE_FIGURES + KGT_FINE_LANES - 1) / KGT_FINE_LANES * KGT_FINE_LANES;
}

/* What the templates give to the table of a path: behind the products, and besides. */
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
#if KGT_HAS_AMX
extern const kgt_bytes kgt_bytes_amx;
#endif
#endif
#if KGT_ARM64
extern const kgt_bytes kgt_bytes_neondot, kgt_bytes_neonsad;
#endif

/* Of the active path; NULL where it computes every score. A path may have distances alone: then its
 * dot.product is NULL. */
const kgt_bytes *kgt_bytes_active(void);

#endif
