/* One table of primitives per instruction set: filled in its own file, chosen in isa_dispatch.c. */
#ifndef KGT_ISA_KERNEL_H
#define KGT_ISA_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa_platform.h"

/* Scores are read and compared in blocks that stay in the first-level cache. */
#define KGT_BLOCK 2048
/* How far ahead of the comparison memory is fetched, in bytes: of blocks that are compared several
 * times, and of a long row's halves that are compared together (there divided by a score's size).
 */
#define KGT_AHEAD 3072
#define KGT_AHEAD_APART 4096
/* The same of a long row that is one stream, where a core gets more from memory in one stream than
 * in two; 0 where it does not. Set with the path, by the processor; only speed depends on it. */
extern atomic_uint kgt_stream_ahead;

KGT_INLINE size_t kgt_ahead_alone(void) {
    return atomic_load_explicit(&kgt_stream_ahead, memory_order_relaxed);
}
KGT_INLINE bool kgt_reads_one_stream(void) { return kgt_ahead_alone() > 0; }

/* Writers of packed survivors may store a whole vector past the last one. */
#define KGT_SLACK 64
/* So many scores of a row are counted before the best of them are picked: their maxima fit the
 * first-level cache, themselves the second-level one, and most benchmarks' rows whole. */
#define KGT_STRETCH 16384
/* Scores to a maximum, and places for those of n scores. */
#define KGT_GROUP 4
#define KGT_FOLD 16
#define KGT_MAXIMA(n) (((n) + KGT_GROUP * KGT_FOLD - 1) / (KGT_GROUP * KGT_FOLD) * KGT_FOLD)
/* Entities per packed panel of the tile product: a multiple of every path's vector length. */
#define KGT_PANEL 48
/* Queries per strip of the tile product. */
#define KGT_STRIP 8

/* Rows of up to so many scores are counted by bits, 64 in a word. */
#define KGT_SHORT 256
#define KGT_SHORT_WORDS (KGT_SHORT / 64)

/* Histograms that neighbours are counted in by turns: adding to a number waits until the addition
 * before is done, and many scores may be equal. */
#define KGT_TURNS 4

/* Cells that values lie in: of equal width from `low` on, the first of them KGT_UNDER. What lies
 * below shares the cells before, by turns; what lies above is in the last. */
#define KGT_UNDER 16
typedef struct {
    float low, scale; /* finite; cells to one */
    float last;
} kgt_cells;

/* clang-format off */
/* For element type T (float or double). Arrays hold exactly the elements named: nothing beyond them
 * is read, and only `out` of compress and select is written past what is returned.
 *
 * count     For each of m thresholds t: greater += #(x > t), at_least += #(x >= t), over n <= 2^31
 *           elements. True if any x is NaN, for m = 0 too; a NaN is in neither count. maxima, if
 *           not NULL, gets the maxima of groups of at most KGT_GROUP values, NaN passed over,
 *           -INFINITY for a group without a number: KGT_MAXIMA(n) of them. Which values form a
 *           group, and the order of groups, is the ISA's choice.
 * compress  The values x >= t, in order, to out (n + KGT_SLACK places); returns their number. Sets
 *           *nan if any x is NaN, else leaves it. NULL where the ISA has no cheap compress.
 * select    The indices of x >= t, ascending, to out (n + KGT_SLACK places); returns their number.
 *           maxima: what count gives for these x.
 * fold      The maxima of groups of at most `group` >= 1 values, as above but n / (group *
 *           KGT_FOLD), rounded up, times KGT_FOLD of them at most; returns their number.
 * locate    out[i] = the number of levels below x[i] plus that of levels not above it, 0 for NaN.
 *           There are 2^steps levels, 0 <= steps < 31, strictly ascending and then NaN, at least one.
 *           If histogram is not NULL, adds 1 to its place KGT_TURNS * out[i] + i % KGT_TURNS.
 * cells     out[i] = (x - low) * scale + KGT_UNDER in float, each step rounded, but at least
 *           i % KGT_UNDER, for NaN too, and at most `last`; rounded down. So it never falls while x
 *           rises, but below KGT_UNDER. True if any x is NaN.
 * tied_up_to  How many of n < 2^31 x equal t and have a position of at most `last`.
 * count_short  Of n <= KGT_SHORT x: how many are > t, how many equal t, and how many of the latter
 *           have an index of at least `after`, to out[0], out[1] and out[2]. Those whose bit is set in
 *           `outside` are not counted: bit i % 64 of word i / 64 is that of x[i]. There are two such
 *           sets of words, one after the other; the second one's counts go to out[3] to out[5]. True
 *           if any x is NaN.
 * transpose out[i * out_stride + j] = x[j * stride + i] for i < rows, j < n, where stride may be
 *           negative; other places of out are left alone.
 * tile      out[i * out_stride + j] = sum over k of queries[i * dim + k] * panel[k * KGT_PANEL + j]
 *           for i < KGT_STRIP, j < KGT_PANEL: each a chain of fused multiply-adds in ascending k
 *           from 0. The places between rows of out are left alone.
 * tile_l1   The same places of out, with the chain sum += |query - entity|: rounded after each step.
 * norms     The chain of tile for every panel column with itself, KGT_PANEL values to out.
 * pair      The chain of tile for one pair of vectors.
 * pair_l1   The chain of tile_l1 for one pair of vectors.
 *
 * Beside them: widen_f16, n values of IEEE binary16 to float, exactly; NaN stays NaN. count_f16 and
 * count_bf16 are count over such scores where they are, widened in registers; transpose_f16 and
 * transpose_bf16 likewise. sort_keys, n distinct keys to out in descending order, in O(n * n) steps; keys has KGT_SLACK readable places to
 * spare. mark, the bits of n ids in n_words <= KGT_SHORT_WORDS words, the others clear: that of `first`
 * is the lowest of the first word; NULL where the ISA has no shift of each lane by its own number.
 */
/* clang-format on */
typedef struct {
    bool (*count)(const float *x, size_t n, const float *t, size_t m, int64_t *greater,
                  int64_t *at_least, float *maxima);
    size_t (*compress)(const float *x, size_t n, float t, float *out, bool *nan);
    size_t (*select)(const float *x, size_t n, const float *maxima, float t, int32_t *out);
    size_t (*fold)(const float *x, size_t n, size_t group, float *out);
    void (*locate)(const float *x, size_t n, const float *levels, int steps, int32_t *out,
                   uint32_t *histogram);
    int in_registers; /* steps of locate whose levels are at hand, and which take little time */
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
    void (*norms)(const float *panel, size_t dim, float *out);
    float (*pair)(const float *a, const float *b, size_t dim);
    float (*pair_l1)(const float *a, const float *b, size_t dim);
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
    void (*norms)(const double *panel, size_t dim, double *out);
    double (*pair)(const double *a, const double *b, size_t dim);
    double (*pair_l1)(const double *a, const double *b, size_t dim);
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
