/* 8-bit products by AMX: tiles of 16 queries and of 16 entities, 64 bytes deep. */
#define _GNU_SOURCE
#include "isa_bytes.h"

#if KGT_X86 && KGT_HAS_AMX
#include <immintrin.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

KGT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt,amx-tile,amx-int8")

#define FN(op) op##_bytes_amx
#include "isa_bytes_avx512_body.h"

/* Sums are in tiles 0 to 3, or 0 and 1; queries in 4 and 5, or 2 to 5; entities in 6 and 7. Each
 * takes as much of a vector as a piece has, so that nothing but zeros of padding is multiplied in
 * vain. */
static void open_bytes_amx(size_t groups) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    const size_t depth = groups / kgt_byte_pieces(groups * 4);
    const bool is_short = groups <= 32;
    for (int tile = 0; tile < 8; tile++) {
        config.rows[tile] = tile < 6 ? 16 : (uint8_t)depth;
        const bool of_queries = tile == 4 || tile == 5 || (is_short && (tile == 2 || tile == 3));
        config.row_bytes[tile] = of_queries ? (uint16_t)(depth * 4) : 64;
    }
    /* Some compilers' intrinsic lets the stores to all but the first 8 bytes be dropped. */
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

static void close_bytes_amx(void) { _tile_release(); }

/* Vectors of one or two pieces: the queries stay in tiles, and entities pass by. */
KGT_INLINE void product_short(const uint8_t *queries, const int8_t *panels, size_t pieces,
                              size_t depth, size_t n_panels, int32_t *out, size_t stride) {
    const size_t row = pieces * depth * 4;
    _tile_loadd(2, queries, row);
    _tile_loadd(3, queries + 16 * row, row);
    if (pieces == 2) {
        _tile_loadd(4, queries + depth * 4, row);
        _tile_loadd(5, queries + 16 * row + depth * 4, row);
    }
    for (size_t j = 0; j < n_panels; j++) {
        const int8_t *panel = panels + j * pieces * depth * 64;
        _tile_zero(0);
        _tile_zero(1);
        _tile_loadd(6, panel, 64);
        _tile_dpbssd(0, 2, 6);
        _tile_dpbssd(1, 3, 6);
        if (pieces == 2) {
            _tile_loadd(7, panel + depth * 64, 64);
            _tile_dpbssd(0, 4, 7);
            _tile_dpbssd(1, 5, 7);
        }
        _tile_stored(0, out + j * KGT_BYTE_PANEL, stride * 4);
        _tile_stored(1, out + j * KGT_BYTE_PANEL + 16 * stride, stride * 4);
    }
}

static void product_bytes_amx(const uint8_t *queries, const int8_t *panels, size_t groups,
                              size_t n_panels, const int32_t *start, int32_t *out, size_t stride) {
    (void)start; /* signed by signed: nothing to take back */
    const size_t pieces = kgt_byte_pieces(groups * 4), depth = groups / pieces;
    const size_t row = groups * 4;
    if (pieces == 1) {
        product_short(queries, panels, 1, depth, n_panels, out, stride);
        return;
    }
    if (pieces == 2) {
        product_short(queries, panels, 2, depth, n_panels, out, stride);
        return;
    }
    for (size_t j = 0; j < n_panels; j += 2) {
        const int8_t *first = panels + j * groups * 64, *second = first + groups * 64;
        int32_t *place = out + j * KGT_BYTE_PANEL, *below = place + 16 * stride;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (size_t k = 0; k < pieces; k++) {
            _tile_loadd(4, queries + k * depth * 4, row);
            _tile_loadd(5, queries + 16 * row + k * depth * 4, row);
            _tile_loadd(6, first + k * depth * 64, 64);
            _tile_loadd(7, second + k * depth * 64, 64);
            _tile_dpbssd(0, 4, 6);
            _tile_dpbssd(1, 4, 7);
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        }
        _tile_stored(0, place, stride * 4);
        _tile_stored(1, place + 16, stride * 4);
        _tile_stored(2, below, stride * 4);
        _tile_stored(3, below + 16, stride * 4);
    }
}

KGT_TARGET_END

/* Linux saves the tiles of a process that has asked for it, once; it may refuse. */
static bool permitted(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    static _Atomic int answer; /* 0: not asked; a race only asks again */
    if (answer == 0) answer = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 ? 1 : -1;
    return answer == 1;
}

static bool available(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
           kgt_cpu_has_amx_tile() && kgt_cpu_has_amx_int8() && permitted();
}

const kgt_bytes kgt_bytes_amx = {
    .name = "amx",
    .available = available,
    .query_zero = 0,
    .in_pieces = true,
    .open = open_bytes_amx,
    .close = close_bytes_amx,
    .dot = {product_bytes_amx, NULL, refine_bytes_amx, pairs_f32_bytes_amx, pairs_f64_bytes_amx},
    .l1 = {product_l1_bytes_amx, NULL, refine_l1_bytes_amx, pairs_l1_f32_bytes_amx,
           pairs_l1_f64_bytes_amx},
    .largest = largest_bytes_amx,
    .quantise = quantise_bytes_amx,
    .quantise_fine = quantise_fine_bytes_amx,
    .quantise_l1 = quantise_l1_bytes_amx,
    .judge = judge_bytes_amx,
    .highest_lower = highest_lower_bytes_amx,
    .count_bits = count_bits_bytes_amx,
    .undecided = undecided_bytes_amx,
};
#endif
