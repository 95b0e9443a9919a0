/* AVX2 kernels (with FMA and F16C): 8 float or 4 double lanes. Counters subtract masks. */
#include "isa_kernel.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "isa_avx2_pack.h"

KGT_TARGET_BEGIN("avx2,fma,f16c,bmi,bmi2,popcnt")

/* All ones in lanes below n, for masked loads that read nothing beyond the last element. */
KGT_INLINE __m256i lanes_f32(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

KGT_INLINE __m256i lanes_f64(size_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), _mm256_set_epi64x(3, 2, 1, 0));
}

KGT_INLINE __m256 padded(__m256 values, size_t n, float fill) {
    return _mm256_blendv_ps(_mm256_set1_ps(fill), values, _mm256_castsi256_ps(lanes_f32(n)));
}

KGT_INLINE __m256 load_tail_f32(const float *p, size_t n, float fill) {
    return padded(_mm256_maskload_ps(p, lanes_f32(n)), n, fill);
}

/* AVX2 has no masked load of 16-bit lanes. */
KGT_INLINE __m128i load_halves(const uint16_t *p, size_t n) {
    uint16_t halves[8] = {0};
    for (size_t i = 0; i < n; i++) halves[i] = p[i];
    return _mm_loadu_si128((const void *)halves);
}

KGT_INLINE __m256d load_tail_f64(const double *p, size_t n, double fill) {
    const __m256i lanes = lanes_f64(n);
    return _mm256_blendv_pd(_mm256_set1_pd(fill), _mm256_maskload_pd(p, lanes),
                            _mm256_castsi256_pd(lanes));
}

/* A counter minus a mask. The empty instruction stops gcc from adding up masks first, which would
 * run out of registers and spill most of them. */
KGT_INLINE __m256i minus_epi32(__m256i counter, __m256i mask) {
    counter = _mm256_sub_epi32(counter, mask);
    __asm__("" : "+x"(counter));
    return counter;
}

KGT_INLINE __m256i minus_epi64(__m256i counter, __m256i mask) {
    counter = _mm256_sub_epi64(counter, mask);
    __asm__("" : "+x"(counter));
    return counter;
}

KGT_INLINE int64_t sum_epi32(__m256i counter) {
    int32_t lane[8];
    _mm256_storeu_si256((__m256i *)lane, counter);
    int64_t sum = 0;
    for (int i = 0; i < 8; i++) sum += lane[i];
    return sum;
}

KGT_INLINE int64_t sum_epi64(__m256i counter) {
    int64_t lane[4];
    _mm256_storeu_si256((__m256i *)lane, counter);
    return lane[0] + lane[1] + lane[2] + lane[3];
}

/* A table's bytes as lanes of 32 bits. */
KGT_INLINE __m256i lanes_of(const uint64_t *bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)bytes));
}

KGT_INLINE __m256 compress_ps(unsigned keep, __m256 values) {
    return _mm256_permutevar8x32_ps(values, lanes_of(kgt_lanes_kept + keep));
}

KGT_INLINE __m256d compress_pd(unsigned keep, __m256d values) {
    const __m256 halves = _mm256_castpd_ps(values);
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(halves, lanes_of(kgt_halves_kept + keep)));
}

/* Writes the indices first + lane of the kept lanes; returns their number. */
KGT_INLINE size_t put_indices_f32_avx2(unsigned keep, size_t first, int32_t *out) {
    const __m256i index = lanes_of(kgt_lanes_kept + keep);
    _mm256_storeu_si256((void *)out, _mm256_add_epi32(index, _mm256_set1_epi32((int32_t)first)));
    return (size_t)_mm_popcnt_u32(keep);
}

KGT_INLINE size_t put_indices_f64_avx2(unsigned keep, size_t first, int32_t *out) {
    const __m128i index = _mm256_castsi256_si128(lanes_of(kgt_lanes_kept + keep));
    _mm_storeu_si128((void *)out, _mm_add_epi32(index, _mm_set1_epi32((int32_t)first)));
    return (size_t)_mm_popcnt_u32(keep);
}

/* ---- transposing, in place ---- */

KGT_INLINE void transpose_8_by_8(__m256 v[8]) {
    __m256 quads[8];
    KGT_UNROLL
    for (int i = 0; i < 8; i += 4) { /* within lanes of 128 bits */
        const __m256 a = _mm256_unpacklo_ps(v[i], v[i + 1]);
        const __m256 b = _mm256_unpackhi_ps(v[i], v[i + 1]);
        const __m256 c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
        const __m256 d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
        quads[i] = _mm256_shuffle_ps(a, c, 0x44);
        quads[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
        quads[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        quads[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
    }
    KGT_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
    }
}

KGT_INLINE void transpose_4_by_4(__m256d v[4]) {
    const __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    const __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

/* ---- float ---- */
#define T float
#define X float
#define FN(op) op##_f32_avx2
#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define LOAD_TAIL(p, n, fill) load_tail_f32(p, n, fill)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define SET1(s) _mm256_set1_ps(s)
#define LARGER(x, y) _mm256_max_ps(x, y)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA1(a, b, c) fmaf(a, b, c)
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)
#define ABS(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define ABS1(a) fabsf(a)
#define SQRT(a) _mm256_sqrt_ps(a)
#define SQRT1(a) sqrtf(a)
#define COUNTER __m256i
#define COUNTER_ZERO _mm256_setzero_si256()
#define COUNT_IF(c, mask) minus_epi32(c, _mm256_castps_si256(mask))
#define COUNT_GT(c, x, t) COUNT_IF(c, _mm256_cmp_ps(x, t, _CMP_GT_OQ))
#define COUNT_GE(c, x, t) COUNT_IF(c, _mm256_cmp_ps(x, t, _CMP_GE_OQ))
#define COUNTER_SUM(c) sum_epi32(c)
#define MASK(n) ((1u << (n)) - 1u)
#define KEEP unsigned
#define COMPARE(x, y, predicate) (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, y, predicate))
#define COMPRESS(keep, values) compress_ps(keep, values)
#define NANS __m256
#define NANS_NONE _mm256_setzero_ps()
#define NANS_MEET(seen, x, y) _mm256_or_ps(seen, _mm256_cmp_ps(x, y, _CMP_UNORD_Q))
#define NANS_ANY(seen) (_mm256_movemask_ps(seen) != 0)
#define ABOVE(x, t) COMPARE(x, t, _CMP_GT_OQ)
#define EQUALS(x, t) COMPARE(x, t, _CMP_EQ_OQ)
#define TRANSPOSE(v) transpose_8_by_8(v)
#define TILE_ROWS 4
#define TILE_VECTORS 3
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_fold_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#include "isa_tile_body.h"
#include "isa_scaled_body.h"
#include "isa_sift_body.h"
#include "isa_undef_load.h"

/* ---- 16 bits, as float ---- */
#define X uint16_t
#define FN(op) op##_f16_avx2
#define LOAD(p) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define LOAD_TAIL(p, n, fill) padded(_mm256_cvtph_ps(load_halves(p, n)), n, fill)
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_undef_load.h"

#define X uint16_t
#define FN(op) op##_bf16_avx2
#define WIDE(halves) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))
#define LOAD(p) WIDE(_mm_loadu_si128((const void *)(p)))
#define LOAD_TAIL(p, n, fill) padded(WIDE(load_halves(p, n)), n, fill)
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#undef WIDE
#include "isa_undef.h"

/* ---- double ---- */
#define T double
#define X double
#define FN(op) op##_f64_avx2
#define VEC __m256d
#define LANES 4
#define LOAD(p) _mm256_loadu_pd(p)
#define LOAD_TAIL(p, n, fill) load_tail_f64(p, n, fill)
#define STORE(p, v) _mm256_storeu_pd(p, v)
#define SET1(s) _mm256_set1_pd(s)
#define LARGER(x, y) _mm256_max_pd(x, y)
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define FMA1(a, b, c) fma(a, b, c)
#define ADD(a, b) _mm256_add_pd(a, b)
#define SUB(a, b) _mm256_sub_pd(a, b)
#define ABS(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define ABS1(a) fabs(a)
#define SQRT(a) _mm256_sqrt_pd(a)
#define SQRT1(a) sqrt(a)
#define COUNTER __m256i
#define COUNTER_ZERO _mm256_setzero_si256()
#define COUNT_IF(c, mask) minus_epi64(c, _mm256_castpd_si256(mask))
#define COUNT_GT(c, x, t) COUNT_IF(c, _mm256_cmp_pd(x, t, _CMP_GT_OQ))
#define COUNT_GE(c, x, t) COUNT_IF(c, _mm256_cmp_pd(x, t, _CMP_GE_OQ))
#define COUNTER_SUM(c) sum_epi64(c)
#define MASK(n) ((1u << (n)) - 1u)
#define KEEP unsigned
#define COMPARE(x, y, predicate) (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(x, y, predicate))
#define COMPRESS(keep, values) compress_pd(keep, values)
#define NANS __m256d
#define NANS_NONE _mm256_setzero_pd()
#define NANS_MEET(seen, x, y) _mm256_or_pd(seen, _mm256_cmp_pd(x, y, _CMP_UNORD_Q))
#define NANS_ANY(seen) (_mm256_movemask_pd(seen) != 0)
#define ABOVE(x, t) COMPARE(x, t, _CMP_GT_OQ)
#define EQUALS(x, t) COMPARE(x, t, _CMP_EQ_OQ)
#define TRANSPOSE(v) transpose_4_by_4(v)
#define TILE_ROWS 4
#define TILE_VECTORS 3
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_fold_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#include "isa_tile_body.h"
#include "isa_scaled_body.h"
#include "isa_sift_body.h"
#include "isa_undef.h"

/* ---- keys ---- */

/* AVX2 compares only signed numbers, which is correct for keys with the leading bit inverted. */
#define TURNED(keys) _mm256_xor_si256(keys, _mm256_set1_epi64x(INT64_MIN))
#define FN(op) op##_avx2
#define KEYS __m256i
#define KEY_LANES 4
#define KEYS_LOAD(p) TURNED(_mm256_loadu_si256((const void *)(p)))
#define KEYS_SET1(key) TURNED(_mm256_set1_epi64x((long long)(key)))
#define KEYS_ZERO _mm256_setzero_si256()
#define KEYS_STORE(p, v) _mm256_storeu_si256((void *)(p), v)
#define KEYS_ABOVE(n, x, y) _mm256_sub_epi64(n, _mm256_cmpgt_epi64(x, y))
#include "isa_order_body.h"
#undef FN

static void widen_f16_avx2(const uint16_t *x, size_t n, float *out) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    for (; i < n; i++) out[i] = _cvtsh_ss(x[i]);
}

KGT_TARGET_END

static bool available(void) {
    return kgt_cpu_has(KGT_AVX2 | KGT_FMA | KGT_F16C | KGT_BMI | KGT_BMI2 | KGT_POPCNT);
}

const kgt_kernel kgt_kernel_avx2 = {
    .name = "avx2",
    .available = available,
    .f32 = {.count = count_f32_avx2,
            .compress = compress_f32_avx2,
            .select = select_f32_avx2,
            .fold = fold_f32_avx2,
            .locate = locate_f32_avx2,
            .cells = cells_f32_avx2,
            .tied_up_to = tied_up_to_f32_avx2,
            .count_short = count_short_f32_avx2,
            .transpose = transpose_f32_avx2,
            .tile = tile_f32_avx2,
            .tile_l1 = tile_l1_f32_avx2,
            .tile_moduli = tile_moduli_f32_avx2,
            .tile_mode = tile_mode_f32_avx2,
            .tile_hake = tile_hake_f32_avx2,
            .norms = norms_f32_avx2,
            .pair = pair_f32_avx2,
            .pair_l1 = pair_l1_f32_avx2,
            .pair_moduli = pair_moduli_f32_avx2,
            .pair_mode = pair_mode_f32_avx2,
            .pair_hake = pair_hake_f32_avx2},
    .f64 = {.count = count_f64_avx2,
            .compress = compress_f64_avx2,
            .select = select_f64_avx2,
            .fold = fold_f64_avx2,
            .locate = locate_f64_avx2,
            .cells = cells_f64_avx2,
            .tied_up_to = tied_up_to_f64_avx2,
            .count_short = count_short_f64_avx2,
            .transpose = transpose_f64_avx2,
            .tile = tile_f64_avx2,
            .tile_l1 = tile_l1_f64_avx2,
            .tile_moduli = tile_moduli_f64_avx2,
            .tile_mode = tile_mode_f64_avx2,
            .tile_hake = tile_hake_f64_avx2,
            .norms = norms_f64_avx2,
            .pair = pair_f64_avx2,
            .pair_l1 = pair_l1_f64_avx2,
            .pair_moduli = pair_moduli_f64_avx2,
            .pair_mode = pair_mode_f64_avx2,
            .pair_hake = pair_hake_f64_avx2},
    .widen_f16 = widen_f16_avx2,
    .count_f16 = count_f16_avx2,
    .count_bf16 = count_bf16_avx2,
    .transpose_f16 = transpose_f16_avx2,
    .transpose_bf16 = transpose_bf16_avx2,
    .sort_keys = sort_keys_avx2,
};
#endif
