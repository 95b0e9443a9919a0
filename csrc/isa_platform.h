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

/* Not every gcc and clang has f16c in its builtin. Callers also ask the builtin for avx2, and that
 * answer includes whether the system saves the vector registers. */
KGT_INLINE bool kgt_cpu_has_f16c(void) {
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
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

KGT_INLINE bool kgt_cpu_has_avxvnni(void) {
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
}
#endif

#endif
