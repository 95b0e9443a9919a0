/* Compiler differences, kept in one place. */
#ifndef KGT_ISA_PLATFORM_H
#define KGT_ISA_PLATFORM_H

#ifdef _GNU_SOURCE
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__GNUC__) || defined(__clang__)
#define KGT_INLINE static inline __attribute__((always_inline, unused))
#define KGT_PREFETCH(address) __builtin_prefetch((address), 0, 3)     /* to the first level */
#define KGT_PREFETCH_FAR(address) __builtin_prefetch((address), 0, 2) /* to the second */
#define KGT_UNROLL _Pragma("GCC unroll 16")
#else
#define KGT_INLINE static inline
#define KGT_PREFETCH(address) ((void)(address))
#define KGT_PREFETCH_FAR(address) ((void)(address))
#define KGT_UNROLL
#endif

/* Scratch on a cache-line boundary, so that no vector load spans two lines. Free it with free().
 * NULL without memory. (On Windows free() takes no such memory, so loads may span two lines.) */
KGT_INLINE void *kgt_allocate(size_t count, size_t size) {
#ifdef _WIN32
    return malloc((count * size / 64 + 1) * 64);
#else
    return aligned_alloc(64, (count * size / 64 + 1) * 64);
#endif
}

#ifdef _GNU_SOURCE /* a file that needs it defines this before its first include */
/* strtod with a decimal point in every locale. */
KGT_INLINE double kgt_strtod(const char *text) {
#ifdef _WIN32
    _locale_t plain = _create_locale(LC_ALL, "C");
    if (plain == NULL) return strtod(text, NULL);
    double value = _strtod_l(text, NULL, plain);
    _free_locale(plain);
    return value;
#else
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) return strtod(text, NULL);
    double value = strtod_l(text, NULL, plain);
    freelocale(plain);
    return value;
#endif
}
#endif

#if defined(__SIZEOF_INT128__)
#define KGT_HAS_U128 1
__extension__ typedef unsigned __int128 kgt_u128;
#else
#define KGT_HAS_U128 0
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KGT_LITTLE_ENDIAN 1
#else
#define KGT_LITTLE_ENDIAN 0
#endif

/* Every build holds all x86-64 kernels and chooses one at run time, so no -march flag is needed.
 * Each ISA file opens with KGT_TARGET_BEGIN("...") and closes with KGT_TARGET_END. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KGT_X86 1
#else
#define KGT_X86 0
#endif

/* The NEON code assumes that lanes have the order of memory: little-endian. */
#if defined(__aarch64__) && defined(__ARM_NEON) && KGT_LITTLE_ENDIAN
#define KGT_ARM64 1
#else
#define KGT_ARM64 0
#endif

#define KGT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define KGT_TARGET_BEGIN(features) \
    KGT_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define KGT_TARGET_END KGT_PRAGMA(clang attribute pop)
#else
#define KGT_TARGET_BEGIN(features) KGT_PRAGMA(GCC push_options) KGT_PRAGMA(GCC target(features))
#define KGT_TARGET_END KGT_PRAGMA(GCC pop_options)
#endif

#if KGT_X86
#include <cpuid.h>

/* Bits of kgt_cpu_features. */
enum {
    KGT_FMA = 1 << 0,
    KGT_F16C = 1 << 1,
    KGT_POPCNT = 1 << 2,
    KGT_BMI = 1 << 3,
    KGT_BMI2 = 1 << 4,
    KGT_AVX2 = 1 << 5,
    KGT_AVX512F = 1 << 6,
    KGT_AVX512DQ = 1 << 7,
    KGT_AVX512BW = 1 << 8,
    KGT_AVX512VL = 1 << 9,
    KGT_AVX512VNNI = 1 << 10,
    KGT_AVXVNNI = 1 << 11,
};

/* Which vector registers the system saves when it changes threads: XCR0. 0 without XGETBV. */
KGT_INLINE unsigned kgt_saved_registers(unsigned leaf_1_ecx) {
    if ((leaf_1_ecx >> 27 & 1) == 0) return 0;
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (void)high, low;
}

/* Features that the processor has and the system supports. The compiler's builtin is not enough: in
 * some builds (zig's clang, for musl, Windows and old glibc) it answers no to everything. */
KGT_INLINE unsigned kgt_cpu_features(void) {
    const unsigned avx_state = 0x6, avx512_state = 0xe6;
    unsigned a = 0, b = 0, c = 0, d = 0, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    const unsigned saved = kgt_saved_registers(c);
    if ((c >> 23 & 1) != 0) features |= KGT_POPCNT;
    const bool avx = (saved & avx_state) == avx_state && (c >> 28 & 1) != 0;
    if (avx && (c >> 12 & 1) != 0) features |= KGT_FMA;
    if (avx && (c >> 29 & 1) != 0) features |= KGT_F16C;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
    if ((b >> 3 & 1) != 0) features |= KGT_BMI;
    if ((b >> 8 & 1) != 0) features |= KGT_BMI2;
    if (avx && (b >> 5 & 1) != 0) features |= KGT_AVX2;
    if (avx && (saved & avx512_state) == avx512_state) {
        if ((b >> 16 & 1) != 0) features |= KGT_AVX512F;
        if ((b >> 17 & 1) != 0) features |= KGT_AVX512DQ;
        if ((b >> 30 & 1) != 0) features |= KGT_AVX512BW;
        if ((b >> 31 & 1) != 0) features |= KGT_AVX512VL;
        if ((c >> 11 & 1) != 0) features |= KGT_AVX512VNNI;
    }
    if (avx && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0)
        features |= KGT_AVXVNNI;
    return features;
}

KGT_INLINE bool kgt_cpu_has(unsigned features) {
    return (kgt_cpu_features() & features) == features;
}

/* Compares the maker's name, in three registers. */
KGT_INLINE bool kgt_cpu_is_amd(void) {
    unsigned a, b = 0, c = 0, d = 0;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
           d == signature_AMD_edx;
}

KGT_INLINE unsigned kgt_cpu_family(void) {
    unsigned a = 0, b, c, d;
    __get_cpuid(1, &a, &b, &c, &d);
    const unsigned family = a >> 8 & 15;
    return family == 15 ? family + (a >> 20 & 255) : family;
}
#endif

#endif
