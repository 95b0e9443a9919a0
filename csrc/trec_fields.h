/* Fields of a line of text. The text ends with a newline, which ends every scan, so that the end of
 * the text need not be known. White space is as in isspace() in the C locale. */
#ifndef KGT_TREC_FIELDS_H
#define KGT_TREC_FIELDS_H

#include <stddef.h>
#include <string.h>

#include "isa_platform.h"

#if KGT_X86
#include <immintrin.h>
#endif

typedef struct {
    const char *begin, *end;
} kgt_field;

KGT_INLINE bool kgt_is_space(char byte) {
    return byte == ' ' || (unsigned char)(byte - '\t') < 5; /* \t \n \v \f \r */
}

/* The first byte that is not white space, or the end of the line. */
KGT_INLINE const char *kgt_skip_space(const char *at) {
    while (*at != '\n' && kgt_is_space(*at)) at++;
    return at;
}

/* The first white space. */
KGT_INLINE const char *kgt_field_end(const char *at) {
    while ((unsigned char)*at > ' ' || !kgt_is_space(*at)) at++;
    return at;
}

/* The next field of a line; moves `at` behind it. False if the line has none. */
KGT_INLINE bool kgt_next_field(const char **at, kgt_field *field) {
    field->begin = kgt_skip_space(*at);
    if (*field->begin == '\n') return false;
    *at = field->end = kgt_field_end(field->begin);
    return true;
}

/* Finds the first three bytes up to a blank among 48, which control characters are, too. False if
 * there are fewer, or two next to each other. Checking many bytes at once takes half as long as
 * checking them one by one. */
KGT_INLINE bool kgt_find_three(const char *at, const char **found) {
#if KGT_X86 /* implies SSE2 */
    uint64_t all = 0;
    for (int i = 0; i < 48; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(at + i));
        const __m128i lower = _mm_min_epu8(bytes, _mm_set1_epi8(' '));
        all |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, lower)) << i;
    }
    const uint64_t second = all & (all - 1), third = second & (second - 1);
    if (third == 0 || (all & all << 1 & (third ^ (third - 1))) != 0) return false;
    found[0] = at + __builtin_ctzll(all);
    found[1] = at + __builtin_ctzll(second);
    found[2] = at + __builtin_ctzll(third);
    return true;
#else
    return (void)at, (void)found, false;
#endif
}

KGT_INLINE const char *kgt_line_end(const char *at, const char *text_end) {
    return memchr(at, '\n', (size_t)(text_end - at));
}

/* Prefetch, called once per line: the hardware prefetches only to the end of a page. Does nothing
 * beyond the end of the text. */
KGT_INLINE void kgt_fetch_ahead(const char *at) {
    KGT_PREFETCH((const void *)((uintptr_t)at + 2048));
}

KGT_INLINE uint64_t kgt_load64(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

KGT_INLINE uint32_t kgt_load32(const char *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Compares bytes without the cost of calling memcmp: names are short. Reads only n bytes. */
KGT_INLINE bool kgt_same_bytes(const char *a, const char *b, size_t n) {
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8)
            if (kgt_load64(a + i) != kgt_load64(b + i)) return false;
        return kgt_load64(a + n - 8) == kgt_load64(b + n - 8);
    }
    if (n >= 4)
        return kgt_load32(a) == kgt_load32(b) && kgt_load32(a + n - 4) == kgt_load32(b + n - 4);
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* The same for n > 0, often faster: also reads up to 15 bytes behind. */
KGT_INLINE bool kgt_same_near(const char *a, const char *b, size_t n) {
#if KGT_X86
    for (;; a += 16, b += 16, n -= 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)a);
        const __m128i y = _mm_loadu_si128((const __m128i *)b);
        const unsigned others = ~(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y));
        if (n <= 16) return others << (32 - n) == 0;
        if (others << 16 != 0) return false;
    }
#else
    return kgt_same_bytes(a, b, n);
#endif
}

/* Byte order; a prefix comes first. */
KGT_INLINE int kgt_compare_bytes(const char *a, size_t n_a, const char *b, size_t n_b) {
    int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

/* A multiplicative hash, so its upper bits are the better ones; reads only n bytes. */
KGT_INLINE uint64_t kgt_hash64_bytes(const char *at, size_t n) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t hash = n * odd, word = 0;
    const char *last = at + n;
    for (; last - at > 8; at += 8) {
        hash = (hash ^ kgt_load64(at)) * odd;
        hash ^= hash >> 29;
    }
    if (n >= 8) {
        word = kgt_load64(last - 8);
    } else if (n >= 4) {
        word = (uint64_t)kgt_load32(at) << 32 | kgt_load32(last - 4);
    } else if (n > 0) {
        word = (uint64_t)(unsigned char)at[0] << 16 | (uint64_t)(unsigned char)at[n / 2] << 8 |
               (unsigned char)last[-1];
    }
    hash = (hash ^ word) * odd;
    hash ^= hash >> 32;
    return hash * odd;
}

KGT_INLINE uint32_t kgt_hash_bytes(const char *at, size_t n) {
    return (uint32_t)(kgt_hash64_bytes(at, n) >> 32);
}

#endif
