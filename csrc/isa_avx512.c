/* AVX-512 kernels (F, BW, DQ, VL): 16 float or 8 double lanes. Counters add under masks. */
#include "isa_kernel.h"

#if KGT_X86
#include <immintrin.h>
#include <math.h>

KGT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2,popcnt")

/* ---- indices of a search ---- */

KGT_INLINE __m512i doubled_epi32(__m512i at, __mmask16 keep) {
    const __m512i twice = _mm512_add_epi32(at, at);
    return _mm512_mask_add_epi32(twice, keep, twice, _mm512_set1_epi32(1));
}

KGT_INLINE __m512i doubled_epi64(__m512i at, __mmask8 keep) {
    const __m512i twice = _mm512_add_epi64(at, at);
    return _mm512_mask_add_epi64(twice, keep, twice, _mm512_set1_epi64(1));
}

KGT_INLINE __m512i spread_epi32(__m512i at, int shift) {
    const __m512i one = _mm512_set1_epi32(1), odd = _mm512_add_epi32(_mm512_add_epi32(at, at), one);
    return _mm512_sub_epi32(_mm512_sll_epi32(odd, _mm_cvtsi32_si128(shift)), one);
}

KGT_INLINE __m512i spread_epi64(__m512i at, int shift) {
    const __m512i one = _mm512_set1_epi64(1), odd = _mm512_add_epi64(_mm512_add_epi64(at, at), one);
    return _mm512_sub_epi64(_mm512_sll_epi64(odd, _mm_cvtsi32_si128(shift)), one);
}

/* ---- transposing, in place ---- */

KGT_INLINE void transpose_16_by_16(__m512 v[16]) {
    __m512 pairs[16], quads[16];
    KGT_UNROLL
    for (int i = 0; i < 16; i += 2) {
        pairs[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    KGT_UNROLL
    for (int i = 0; i < 16; i++) { /* within lanes of 128 bits: rows i .. i + 3 of 4 columns */
        const int from = i / 4 * 4 + i % 4 / 2;
        const __m512d a = _mm512_castps_pd(pairs[from]), b = _mm512_castps_pd(pairs[from + 2]);
        quads[i] = _mm512_castpd_ps(i % 2 ? _mm512_unpackhi_pd(a, b) : _mm512_unpacklo_pd(a, b));
    }
    KGT_UNROLL
    for (int i = 0; i < 4; i++) { /* then the lanes themselves, 4 by 4 */
        const __m512 a = _mm512_shuffle_f32x4(quads[i], quads[i + 4], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(quads[i], quads[i + 4], 0xDD);
        const __m512 c = _mm512_shuffle_f32x4(quads[i + 8], quads[i + 12], 0x88);
        const __m512 d = _mm512_shuffle_f32x4(quads[i + 8], quads[i + 12], 0xDD);
        v[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
        v[i + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
    }
}

KGT_INLINE void transpose_8_by_8(__m512d v[8]) {
    __m512d pairs[8];
    KGT_UNROLL
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);
    }
    KGT_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m512d a = _mm512_shuffle_f64x2(pairs[i], pairs[i + 2], 0x88);
        const __m512d b = _mm512_shuffle_f64x2(pairs[i], pairs[i + 2], 0xDD);
        const __m512d c = _mm512_shuffle_f64x2(pairs[i + 4], pairs[i + 6], 0x88);
        const __m512d d = _mm512_shuffle_f64x2(pairs[i + 4], pairs[i + 6], 0xDD);
        v[i] = _mm512_shuffle_f64x2(a, c, 0x88);
        v[i + 2] = _mm512_shuffle_f64x2(b, d, 0x88);
        v[i + 4] = _mm512_shuffle_f64x2(a, c, 0xDD);
        v[i + 6] = _mm512_shuffle_f64x2(b, d, 0xDD);
    }
}

/* ---- float ---- */
#define T float
#define X float
#define FN(op) op##_f32_avx512
#define VEC __m512
#define LANES 16
#define MASK(n) ((__mmask16)((1u << (n)) - 1u))
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_TAIL(p, n, fill) _mm512_mask_loadu_ps(_mm512_set1_ps(fill), MASK(n), p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SET1(s) _mm512_set1_ps(s)
#define LARGER(x, y) _mm512_max_ps(x, y)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA1(a, b, c) fmaf(a, b, c)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define ABS(a) _mm512_abs_ps(a)
#define ABS1(a) fabsf(a)
#define SQRT(a) _mm512_sqrt_ps(a)
#define SQRT1(a) sqrtf(a)
#define COUNTER __m512i
#define COUNTER_ZERO _mm512_setzero_si512()
#define COUNT_IF(c, mask) _mm512_mask_add_epi32(c, mask, c, _mm512_set1_epi32(1))
#define COUNT_GT(c, x, t) COUNT_IF(c, _mm512_cmp_ps_mask(x, t, _CMP_GT_OQ))
#define COUNT_GE(c, x, t) COUNT_IF(c, _mm512_cmp_ps_mask(x, t, _CMP_GE_OQ))
#define COUNTER_SUM(c) _mm512_reduce_add_epi32(c)
#define KEEP __mmask16
#define COMPARE(x, y, predicate) _mm512_cmp_ps_mask(x, y, predicate)
#define COMPRESS(keep, values) _mm512_maskz_compress_ps(keep, values)
#define ABOVE(x, t) _mm512_cmp_ps_mask(x, t, _CMP_GT_OQ)
#define EQUALS(x, t) _mm512_cmp_ps_mask(x, t, _CMP_EQ_OQ)
#define NANS __mmask16
#define NANS_NONE 0
#define NANS_ANY(seen) ((seen) != 0)
#define NANS_MEET(seen, x, y) (__mmask16)((seen) | _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q))
#define LOG_LANES 4
#define INDEX __m512i
#define INDEX_ZERO _mm512_setzero_si512()
#define TAKE(at, a) _mm512_permutexvar_ps(at, a)
#define TAKE_2(at, a, b) _mm512_permutex2var_ps(a, at, b)
#define TAKE_FROM(at, p) _mm512_i32gather_ps(at, p, 4)
#define HIGH(at, bit) _mm512_test_epi32_mask(at, _mm512_set1_epi32(bit))
#define DOUBLED(at, keep) doubled_epi32(at, keep)
#define SPREAD(at, shift) spread_epi32(at, shift)
#define BLEND(keep, a, b) _mm512_mask_blend_ps(keep, a, b)
#define STORE_INDEX(p, mask, at) _mm512_mask_storeu_epi32(p, mask, at)
#define TRANSPOSE(v) transpose_16_by_16(v)
#define TILE_ROWS 8
#define TILE_VECTORS 3
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_fold_body.h"
#include "isa_locate_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#include "isa_tile_body.h"
#include "isa_scaled_body.h"

/* Writes the indices first + lane of the kept lanes; returns their number. */
KGT_INLINE size_t put_indices_f32_avx512(__mmask16 keep, size_t first, int32_t *out) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i index = _mm512_add_epi32(lane, _mm512_set1_epi32((int32_t)first));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(keep, index));
    return (size_t)_mm_popcnt_u32(keep);
}

#include "isa_sift_body.h"
#include "isa_undef_load.h"

/* ---- 16 bits, as float ---- */
#define X uint16_t
#define FN(op) op##_f16_avx512
#define LOAD(p) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define LOAD_TAIL(p, n, fill) \
    _mm512_mask_cvtph_ps(_mm512_set1_ps(fill), MASK(n), _mm256_maskz_loadu_epi16(MASK(n), p))
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_undef_load.h"

#define X uint16_t
#define FN(op) op##_bf16_avx512
#define BITS(half) _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16)
#define LOAD(p) _mm512_castsi512_ps(BITS(_mm256_loadu_si256((const void *)(p))))
#define LOAD_TAIL(p, n, fill)                         \
    _mm512_mask_mov_ps(_mm512_set1_ps(fill), MASK(n), \
                       _mm512_castsi512_ps(BITS(_mm256_maskz_loadu_epi16(MASK(n), p))))
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#undef BITS
#include "isa_undef.h"

/* ---- double ---- */
#define T double
#define X double
#define FN(op) op##_f64_avx512
#define VEC __m512d
#define LANES 8
#define MASK(n) ((__mmask8)((1u << (n)) - 1u))
#define LOAD(p) _mm512_loadu_pd(p)
#define LOAD_TAIL(p, n, fill) _mm512_mask_loadu_pd(_mm512_set1_pd(fill), MASK(n), p)
#define STORE(p, v) _mm512_storeu_pd(p, v)
#define SET1(s) _mm512_set1_pd(s)
#define LARGER(x, y) _mm512_max_pd(x, y)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define FMA1(a, b, c) fma(a, b, c)
#define ADD(a, b) _mm512_add_pd(a, b)
#define SUB(a, b) _mm512_sub_pd(a, b)
#define ABS(a) _mm512_abs_pd(a)
#define ABS1(a) fabs(a)
#define SQRT(a) _mm512_sqrt_pd(a)
#define SQRT1(a) sqrt(a)
#define COUNTER __m512i
#define COUNTER_ZERO _mm512_setzero_si512()
#define COUNT_IF(c, mask) _mm512_mask_add_epi64(c, mask, c, _mm512_set1_epi64(1))
#define COUNT_GT(c, x, t) COUNT_IF(c, _mm512_cmp_pd_mask(x, t, _CMP_GT_OQ))
#define COUNT_GE(c, x, t) COUNT_IF(c, _mm512_cmp_pd_mask(x, t, _CMP_GE_OQ))
#define COUNTER_SUM(c) _mm512_reduce_add_epi64(c)
#define KEEP __mmask8
#define COMPARE(x, y, predicate) _mm512_cmp_pd_mask(x, y, predicate)
#define COMPRESS(keep, values) _mm512_maskz_compress_pd(keep, values)
#define ABOVE(x, t) _mm512_cmp_pd_mask(x, t, _CMP_GT_OQ)
#define EQUALS(x, t) _mm512_cmp_pd_mask(x, t, _CMP_EQ_OQ)
#define NANS __mmask16
#define NANS_NONE 0
#define NANS_ANY(seen) ((seen) != 0)
#define NANS_MEET(seen, x, y) (__mmask16)((seen) | _mm512_cmp_pd_mask(x, y, _CMP_UNORD_Q))
#define LOG_LANES 3
#define INDEX __m512i
#define INDEX_ZERO _mm512_setzero_si512()
#define TAKE(at, a) _mm512_permutexvar_pd(at, a)
#define TAKE_2(at, a, b) _mm512_permutex2var_pd(a, at, b)
#define TAKE_FROM(at, p) _mm512_i64gather_pd(at, p, 8)
#define HIGH(at, bit) _mm512_test_epi64_mask(at, _mm512_set1_epi64(bit))
#define DOUBLED(at, keep) doubled_epi64(at, keep)
#define SPREAD(at, shift) spread_epi64(at, shift)
#define BLEND(keep, a, b) _mm512_mask_blend_pd(keep, a, b)
#define STORE_INDEX(p, mask, at) _mm256_mask_storeu_epi32(p, mask, _mm512_cvtepi64_epi32(at))
#define TRANSPOSE(v) transpose_8_by_8(v)
#define TILE_ROWS 8
#define TILE_VECTORS 3
#include "isa_count_body.h"
#include "isa_transpose_body.h"
#include "isa_fold_body.h"
#include "isa_locate_body.h"
#include "isa_ties_body.h"
#include "isa_short_body.h"
#include "isa_tile_body.h"
#include "isa_scaled_body.h"

KGT_INLINE size_t put_indices_f64_avx512(__mmask8 keep, size_t first, int32_t *out) {
    const __m256i lane = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i index = _mm256_add_epi32(lane, _mm256_set1_epi32((int32_t)first));
    _mm256_storeu_si256((__m256i *)out, _mm256_maskz_compress_epi32(keep, index));
    return (size_t)_mm_popcnt_u32(keep);
}

#include "isa_sift_body.h"
#include "isa_undef.h"

/* ---- keys ---- */
#define FN(op) op##_avx512
#define KEYS __m512i
#define KEY_LANES 8
#define KEYS_LOAD(p) _mm512_loadu_si512(p)
#define KEYS_SET1(key) _mm512_set1_epi64((long long)(key))
#define KEYS_ZERO _mm512_setzero_si512()
#define KEYS_STORE(p, v) _mm512_storeu_si512(p, v)
#define KEYS_ABOVE(n, x, y) \
    _mm512_mask_add_epi64(n, _mm512_cmpgt_epu64_mask(x, y), n, _mm512_set1_epi64(1))
#include "isa_order_body.h"
#undef FN

static void mark_avx512(const int32_t *ids, size_t n, int32_t first, size_t n_words,
                        uint64_t *words) {
    const __m512i one = _mm512_set1_epi64(1), low_bits = _mm512_set1_epi64(63);
    __m512i marks[KGT_SHORT_WORDS]; /* per lane, so that no id waits for the one before */
    KGT_UNROLL
    for (int word = 0; word < KGT_SHORT_WORDS; word++) marks[word] = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 mask = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1u) : 0xFF;
        const __m256i id = _mm256_maskz_loadu_epi32(mask, ids + i);
        const __m512i place = _mm512_cvtepi32_epi64(_mm256_sub_epi32(id, _mm256_set1_epi32(first)));
        const __m512i bit = _mm512_sllv_epi64(one, _mm512_and_si512(place, low_bits));
        const __m512i word_of = _mm512_srli_epi64(place, 6);
        KGT_UNROLL
        for (int word = 0; word < KGT_SHORT_WORDS; word++) {
            const __mmask8 here =
                _mm512_mask_cmpeq_epi64_mask(mask, word_of, _mm512_set1_epi64(word));
            marks[word] = _mm512_mask_or_epi64(marks[word], here, marks[word], bit);
        }
    }
    KGT_UNROLL
    for (size_t word = 0; word < KGT_SHORT_WORDS; word++)
        if (word < n_words) words[word] = (uint64_t)_mm512_reduce_or_epi64(marks[word]);
}

static void widen_f16_avx512(const uint16_t *x, size_t n, float *out) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        KGT_PREFETCH((const char *)(x + i) + 2 * KGT_AHEAD);
        const __m512 first = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i)));
        const __m512 second = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i + 16)));
        _mm512_storeu_ps(out + i, first);
        _mm512_storeu_ps(out + i + 16, second);
    }
    for (; i < n; i += 16) {
        const __mmask16 mask = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1u) : 0xFFFF;
        const __m256i half = _mm256_maskz_loadu_epi16(mask, x + i);
        _mm512_mask_storeu_ps(out + i, mask, _mm512_cvtph_ps(half));
    }
}

KGT_TARGET_END

static bool available(void) {
    return kgt_cpu_has(KGT_AVX512F | KGT_AVX512BW | KGT_AVX512DQ | KGT_AVX512VL | KGT_AVX2 |
                       KGT_FMA | KGT_F16C | KGT_BMI2 | KGT_POPCNT);
}

const kgt_kernel kgt_kernel_avx512 = {
    .name = "avx512",
    .available = available,
    .f32 = {.count = count_f32_avx512,
            .compress = compress_f32_avx512,
            .select = select_f32_avx512,
            .fold = fold_f32_avx512,
            .locate = locate_f32_avx512,
            .in_registers = in_registers_f32_avx512,
            .cells = cells_f32_avx512,
            .tied_up_to = tied_up_to_f32_avx512,
            .count_short = count_short_f32_avx512,
            .transpose = transpose_f32_avx512,
            .tile = tile_f32_avx512,
            .tile_l1 = tile_l1_f32_avx512,
            .tile_moduli = tile_moduli_f32_avx512,
            .tile_mode = tile_mode_f32_avx512,
            .tile_hake = tile_hake_f32_avx512,
            .norms = norms_f32_avx512,
            .pair = pair_f32_avx512,
            .pair_l1 = pair_l1_f32_avx512,
            .pair_moduli = pair_moduli_f32_avx512,
            .pair_mode = pair_mode_f32_avx512,
            .pair_hake = pair_hake_f32_avx512},
    .f64 = {.count = count_f64_avx512,
            .compress = compress_f64_avx512,
            .select = select_f64_avx512,
            .fold = fold_f64_avx512,
            .locate = locate_f64_avx512,
            .in_registers = in_registers_f64_avx512,
            .cells = cells_f64_avx512,
            .tied_up_to = tied_up_to_f64_avx512,
            .count_short = count_short_f64_avx512,
            .transpose = transpose_f64_avx512,
            .tile = tile_f64_avx512,
            .tile_l1 = tile_l1_f64_avx512,
            .tile_moduli = tile_moduli_f64_avx512,
            .tile_mode = tile_mode_f64_avx512,
            .tile_hake = tile_hake_f64_avx512,
            .norms = norms_f64_avx512,
            .pair = pair_f64_avx512,
            .pair_l1 = pair_l1_f64_avx512,
            .pair_moduli = pair_moduli_f64_avx512,
            .pair_mode = pair_mode_f64_avx512,
            .pair_hake = pair_hake_f64_avx512},
    .widen_f16 = widen_f16_avx512,
    .count_f16 = count_f16_avx512,
    .count_bf16 = count_bf16_avx512,
    .transpose_f16 = transpose_f16_avx512,
    .transpose_bf16 = transpose_bf16_avx512,
    .sort_keys = sort_keys_avx512,
    .mark = mark_avx512,
};
#endif
