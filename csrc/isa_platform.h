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

/* Scratch on a cache-line boundary, so that no vector load is split over two lines (Windows has no
 * such memory that free() takes back: loads may be split there); NULL without memory. Freed with
 * free(). */
KGT_INLINE void *kgt_allocate(size_t count, size_t size) {
#ifdef _WIN32
    return malloc((count * size / 64 + 1) * 64);
#else
    return aligned_alloc(64, (count * size / 64 + 1) * 64);
#endif
}

#ifdef _GNU_SOURCE /* who needs it defines that before the first include */
/* strtod with a decimal point, whatever the locale of the program. */
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

/* x86-64 kernels are compiled into every build and chosen at run time, so no -march flag is needed:
 * each ISA file opens with KGT_TARGET_BEGIN("...") and closes with KGT_TARGET_END. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KGT_X86 1
#else
#define KGT_X86 0
#endif

/* Lanes are put together and taken apart in the order of memory, which needs little-endian. */
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

/* Compilers that know the tiles of AMX, on a system that can be asked for them. */
#if KGT_X86 && defined(__linux__) && \
    ((defined(__clang__) && __clang_major__ >= 13) || (!defined(__clang__) && __GNUC__ >= 11))
#define KGT_HAS_AMX 1
#else
#define KGT_HAS_AMX 0
#endif

#if KGT_X86
#include <cpuid.h>

/* Not every gcc and clang lets its builtin be asked for f16c. Whether the system saves the vector
 * registers is part of the builtin's answer for avx2, which is always asked for too. */
KGT_INLINE bool kgt_cpu_has_f16c(void) {
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

/* Nor for these, by numbers of Intel's manual. That the system saves tiles is for who uses them to
 * ask it. */
KGT_INLINE bool kgt_cpu_has_amx_tile(void) {
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) != 0;
}

KGT_INLINE bool kgt_cpu_has_amx_int8(void) {
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 25 & 1) != 0;
}

/* By the maker's name, in three registers. */
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

KGT_INLINE bool kgt_cpu_has_avxvnni(void) {
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
}
#endif

#endif
