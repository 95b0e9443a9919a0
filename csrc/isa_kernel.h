/* One table of primitives per instruction set. Its own file fills it; isa_dispatch.c chooses it. */
#ifndef KGT_ISA_KERNEL_H
#define KGT_ISA_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa_platform.h"

/* Scores are read and compared in blocks that stay in the first-level cache. */
#define KGT_BLOCK 2048
/* How far ahead of the comparison scores are prefetched, in bytes: for blocks that are compared
 * several times, and for a long row that is read as two streams, its halves. For halves, the
 * distance is divided by the size of a score. */
#define KGT_AHEAD 3072
#define KGT_AHEAD_TWO_STREAMS 4096
/* The same for a long row that is read as one stream; 0 on processors that read two streams faster.
 * It is set with the path and affects only the speed. */
extern atomic_uint kgt_stream_ahead;

KGT_INLINE size_t kgt_ahead_one_stream(void) {
    return atomic_load_explicit(&kgt_stream_ahead, memory_order_relaxed);
}
KGT_INLINE bool kgt_reads_one_stream(void) { return kgt_ahead_one_stream() > 0; }

/* Functions that pack values may store a whole vector past the last one. */
#define KGT_SLACK 64
/* Scores of a row that are counted before the best of them are picked. Their maxima fit the
 * first-level cache, the scores the second-level one. Most benchmarks' rows are no longer. */
#define KGT_STRETCH 16384
/* Scores per maximum. The number of maxima is rounded up to a multiple of KGT_FOLD; KGT_MAXIMA(n)
 * is their number for n scores. */
#define KGT_GROUP 4
#define KGT_FOLD 16
#define KGT_MAXIMA(n) (((n) + KGT_GROUP * KGT_FOLD - 1) / (KGT_GROUP * KGT_FOLD) * KGT_FOLD)
/* Entities per packed panel of the tile product: a multiple of every path's vector length. */
#define KGT_PANEL 48
/* Queries per strip of the tile product. */
#define KGT_STRIP 8

/* Rows of at most so many scores are counted by bits, 64 per word. */
#define KGT_SHORT 256
#define KGT_SHORT_WORDS (KGT_SHORT / 64)

/* Neighbouring scores are counted in different histograms, in turn. Otherwise, equal scores would
 * make each addition wait for the one before. */
#define KGT_TURNS 4

/* A grid over the scores: cells of equal width from `low` on, where cell KGT_UNDER begins. Lower
 * scores go to the cells before it, in turn. Scores above the grid go to cell `last`. */
#define KGT_UNDER 16
typedef struct {
    float low, scale; /* finite; scale: cells per unit */
    float last;       /* number of the last cell */
} kgt_cells;

/* clang-format off */
/* For element type T (float or double). Arrays hold exactly the elements named. Nothing beyond them is read;
 * only `out` of compress and select is written beyond the result.
 *
 * count     For each of m thresholds t: greater += #(x > t), at_least += #(x >= t), over n <= 2^31 elements.
 *           Returns true if any x is NaN, for m = 0 too; a NaN is in neither count. maxima: NULL, or
 *           KGT_MAXIMA(n) maxima of groups of at most KGT_GROUP values, ignoring NaN, -INFINITY for a group
 *           without a number. The ISA chooses which values form a group, and the order of groups.
 * compress  The values x >= t, in order, to out (n + KGT_SLACK places); returns their number. Sets *nan if any
 *           x is NaN, else leaves it. NULL if the ISA has no cheap compress.
 * select    The indices of x >= t, ascending, to out (n + KGT_SLACK places); returns their number. maxima: from
 *           count, for these x.
 * fold      The maxima of groups of at most `group` >= 1 values, as above; returns their number, at most
 *           KGT_FOLD times n / (group * KGT_FOLD) rounded up.
 * locate    out[i] = the number of levels below x[i] plus the number of levels not above it; 0 for NaN. There
 *           are 2^steps levels, 0 <= steps < 31: strictly ascending, followed by at least one NaN. If histogram
 *           is not NULL, adds 1 to its place KGT_TURNS * out[i] + i % KGT_TURNS.
 * cells     out[i] = (x - low) * scale + KGT_UNDER in float, each step rounded; limited to i % KGT_UNDER (also
 *           for NaN) to `last`, then rounded down. So from KGT_UNDER on, it never falls while x rises. True if
 *           any x is NaN.
 * tied_up_to  How many of n < 2^31 x equal t and have a position of at most `last`.
 * count_short For n <= KGT_SHORT x: out[0] = #(x > t), out[1] = #(x == t), out[2] = those of the latter with
 *            an index of at least `after`. Not counted are x whose bit in `outside` is set: x[i] has bit i %
 *            64 of word i / 64. `outside` is two such sets of words, one after the other; the counts without
 *            the second go to out[3] to out[5]. True if any x is NaN.
 * transpose  out[i * out_stride + j] = x[j * stride + i] for i < rows, j < n. stride may be negative. Other
 *            places of out are not written.
 * tile      out[i * out_stride + j] = sum over k of queries[i * dim + k] * panel[k * KGT_PANEL + j] for i <
 *           KGT_STRIP, j < KGT_PANEL: each a chain of fused multiply-adds in ascending k from 0. The places
 *           between rows of out are not written.
 * tile_l1   As tile, with the chain sum += |query - entity|, rounded after each step.
 * tile_moduli  As tile for vectors of dim / 2 complex numbers, real parts first: the chain sum +=
 *           sqrt(re * re + im * im) of query - entity, where im * im is rounded, then the fused sum, its root
 *           and each addition.
 * tile_mode  As tile for entities x of dim and queries of 2 * dim numbers, q and then w: the chain sum += |q - w * x|,
 *           rounded after each step.
 * tile_hake  As tile for entities of dim = 3 n and queries of 4 n + 2 numbers. n dimensions of phases have cosines and
 *           then sines of their halves: the chain p += |S * c - C * s|, C and S of the query. n dimensions of moduli
 *           have x, and q and then w: the fused chain m += (q - w * x)^2. Two weights follow in the query; the result
 *           is weight_1 * p + weight_2 * sqrt(m), fused in the first product.
 * norms     The chain of tile for every panel column with itself, KGT_PANEL values to out.
 * pair      The chain of tile for one pair of vectors.
 * pair_l1   The chain of tile_l1 for one pair of vectors.
 * pair_moduli, pair_mode, pair_hake  The chains of their tiles for one pair of vectors.
 *
 * For other types: widen_f16 converts n values of IEEE binary16 to float, exactly; NaN stays NaN. count_f16,
 * count_bf16, transpose_f16 and transpose_bf16 widen 16-bit scores in registers. sort_keys writes n distinct
 * keys to out in descending order, in O(n * n) steps; keys has KGT_SLACK readable places to spare. mark sets
 * the bits of n ids in n_words <= KGT_SHORT_WORDS words and clears the others; `first` is the lowest bit of the
 * first word. mark is NULL if the ISA cannot shift each lane by its own number. */
/* clang-format on */
typedef struct {
    bool (*count)(const float *x, size_t n, const float *t, size_t m, int64_t *greater,
                  int64_t *at_least, float *maxima);
    size_t (*compress)(const float *x, size_t n, float t, float *out, bool *nan);
    size_t (*select)(const float *x, size_t n, const float *maxima, float t, int32_t *out);
    size_t (*fold)(const float *x, size_t n, size_t group, float *out);
    void (*locate)(const float *x, size_t n, const float *levels, int steps, int32_t *out,
                   uint32_t *histogram);
    int in_registers; /* most steps of locate with all levels in registers, which is quick */
    bool (*cells)(const float *x, size_t n, const kgt_cells *grid, int32_t *out);
    int64_t (*tied_up_to)(const float *x, size_t n, float t, const int32_t *position, int32_t last);
    bool (*count_short)(const float *x, size_t n, float t, size_t after, const uint64_t *outside,
                        int64_t *out);
    void (*transpose)(const float *x, ptrdiff_t stride, size_t rows, size_t n, float *out,
                      size_t out_stride);
    void (*tile)(const float *queries, const float *panel, size_t dim, float *out,
                 size_t out_stride);
    void (*tile_l1)(const float *queries, const float *panel, size_t dim, float *out,
                    size_t out_stride);
    void (*tile_moduli)(const float *queries, const float *panel, size_t dim, float *out,
                        size_t out_stride);
    void (*tile_mode)(const float *queries, const float *panel, size_t dim, float *out,
                      size_t out_stride);
    void (*tile_hake)(const float *queries, const float *panel, size_t dim, float *out,
                      size_t out_stride);
    void (*norms)(const float *panel, size_t dim, float *out);
    float (*pair)(const float *a, const float *b, size_t dim);
    float (*pair_l1)(const float *a, const float *b, size_t dim);
    float (*pair_moduli)(const float *a, const float *b, size_t dim);
    float (*pair_mode)(const float *a, const float *b, size_t dim);
    float (*pair_hake)(const float *a, const float *b, size_t dim);
} kgt_ops_f32;

typedef struct {
    bool (*count)(const double *x, size_t n, const double *t, size_t m, int64_t *greater,
                  int64_t *at_least, double *maxima);
    size_t (*compress)(const double *x, size_t n, double t, double *out, bool *nan);
    size_t (*select)(const double *x, size_t n, const double *maxima, double t, int32_t *out);
    size_t (*fold)(const double *x, size_t n, size_t group, double *out);
    void (*locate)(const double *x, size_t n, const double *levels, int steps, int32_t *out,
                   uint32_t *histogram);
    int in_registers;
    bool (*cells)(const double *x, size_t n, const kgt_cells *grid, int32_t *out);
    int64_t (*tied_up_to)(const double *x, size_t n, double t, const int32_t *position,
                          int32_t last);
    bool (*count_short)(const double *x, size_t n, double t, size_t after, const uint64_t *outside,
                        int64_t *out);
    void (*transpose)(const double *x, ptrdiff_t stride, size_t rows, size_t n, double *out,
                      size_t out_stride);
    void (*tile)(const double *queries, const double *panel, size_t dim, double *out,
                 size_t out_stride);
    void (*tile_l1)(const double *queries, const double *panel, size_t dim, double *out,
                    size_t out_stride);
    void (*tile_moduli)(const double *queries, const double *panel, size_t dim, double *out,
                        size_t out_stride);
    void (*tile_mode)(const double *queries, const double *panel, size_t dim, double *out,
                      size_t out_stride);
    void (*tile_hake)(const double *queries, const double *panel, size_t dim, double *out,
                      size_t out_stride);
    void (*norms)(const double *panel, size_t dim, double *out);
    double (*pair)(const double *a, const double *b, size_t dim);
    double (*pair_l1)(const double *a, const double *b, size_t dim);
    double (*pair_moduli)(const double *a, const double *b, size_t dim);
    double (*pair_mode)(const double *a, const double *b, size_t dim);
    double (*pair_hake)(const double *a, const double *b, size_t dim);
} kgt_ops_f64;

typedef struct {
    const char *name;
    bool (*available)(void);
    kgt_ops_f32 f32;
    kgt_ops_f64 f64;
    void (*widen_f16)(const uint16_t *x, size_t n, float *out);
    bool (*count_f16)(const uint16_t *x, size_t n, const float *t, size_t m, int64_t *greater,
                      int64_t *at_least, float *maxima);
    bool (*count_bf16)(const uint16_t *x, size_t n, const float *t, size_t m, int64_t *greater,
                       int64_t *at_least, float *maxima);
    void (*transpose_f16)(const uint16_t *x, ptrdiff_t stride, size_t rows, size_t n, float *out,
                          size_t out_stride);
    void (*transpose_bf16)(const uint16_t *x, ptrdiff_t stride, size_t rows, size_t n, float *out,
                           size_t out_stride);
    void (*sort_keys)(const uint64_t *keys, size_t n, uint64_t *out);
    void (*mark)(const int32_t *ids, size_t n, int32_t first, size_t n_words, uint64_t *words);
} kgt_kernel;

extern const kgt_kernel kgt_kernel_scalar;
#if KGT_X86
extern const kgt_kernel kgt_kernel_avx2;
extern const kgt_kernel kgt_kernel_avx512;
#endif
#if KGT_ARM64
extern const kgt_kernel kgt_kernel_neon;
#endif

const kgt_kernel *kgt_kernel_active(void);

#endif
