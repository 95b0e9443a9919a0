/* Numbers as text. */
#ifndef KGT_TREC_DECIMAL_H
#define KGT_TREC_DECIMAL_H

#include "trec_fields.h"

/* Reads a decimal number, correctly rounded (half to even), or inf, infinity in any case, with or
 * without a sign. Returns the white space that ends it. NULL if the field at `at` is anything else:
 * NaN, hexadecimal, `1_000`, `abc`. The text ends at `text_end`, and the last byte before that is a
 * newline. */
const char *kgt_read_decimal(const char *at, const char *text_end, double *value);

/* The same for a whole number within int64. */
const char *kgt_read_whole(const char *at, int64_t *value);

#if KGT_LITTLE_ENDIAN
/* Number of digits at the start of a word of bytes, each of which is a digit's value if it is one.
 * The highest bits are exact up to the first byte that is not a digit, whose sum may carry. */
KGT_INLINE int kgt_count_digits(uint64_t word) {
    uint64_t others = ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
    return others == 0 ? 8 : __builtin_ctzll(others) / 8;
}

KGT_INLINE bool kgt_are_digits(uint64_t word) {
    return (((word + 0x7676767676767676u) | word) & 0x8080808080808080u) == 0;
}

/* The number that eight values of digits are, all at once: pairs, fours, all. */
KGT_INLINE uint64_t kgt_join_digits(uint64_t word) {
    word = word * 10 + (word >> 8);
    word = (word & 0x00ff00ff00ff00ffu) * 100 + ((word >> 16) & 0x00ff00ff00ff00ffu);
    return (word & 0xffff) * 10000 + ((word >> 32) & 0xffff);
}

/* The same number for a field from `at` to `end` with one to seven digits, and then nothing, or a
 * point and one to eight digits; false for any other field. Most scores are like that. Eight bytes
 * before and after `at` must be readable. Digits and power of ten are doubles: one rounding. */
KGT_INLINE bool kgt_read_short_decimal(const char *at, const char *end, double *value) {
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    static const uint64_t wholes[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    const bool negative = *at == '-';
    at += negative;
    const uint64_t zeros = 0x3030303030303030u, word = kgt_load64(at) ^ zeros;
    const int n = kgt_count_digits(word);
    if (n == 0 || n == 8) return false;
    const bool is_whole = at + n == end;
    const int64_t n_behind = is_whole ? 0 : end - at - n - 1, n_all = n + n_behind;
    if (!is_whole && (at[n] != '.' || n_behind < 1 || n_behind > 8)) return false;
    uint64_t digits;
    if (n_all <= 8) { /* put the fraction over the point, and all digits at the end of the word */
        const uint64_t whole = UINT64_MAX >> (64 - 8 * n);
        const uint64_t joined = (word & whole) | ((kgt_load64(at + 1) ^ zeros) & ~whole);
        const uint64_t placed = joined << (64 - 8 * n_all);
        if (!kgt_are_digits(placed)) return false;
        digits = kgt_join_digits(placed);
    } else {
        const int others = (int)(64 - 8 * n_behind);
        const uint64_t fraction = (kgt_load64(end - 8) ^ zeros) >> others << others;
        if (!kgt_are_digits(fraction)) return false;
        digits =
            kgt_join_digits(word << (64 - 8 * n)) * wholes[n_behind] + kgt_join_digits(fraction);
    }
    const double result = (double)(int64_t)digits / powers[n_behind];
    *value = negative ? -result : result;
    return true;
}
#else
KGT_INLINE bool kgt_read_short_decimal(const char *at, const char *end, double *value) {
    return (void)at, (void)end, (void)value, false;
}
#endif

/* Length of the longest decimal below, and number of bytes after one that may be overwritten. */
#define KGT_LONGEST_DECIMAL 24 /* -2.2250738585072014e-308 */
#define KGT_BEHIND_DECIMAL 24

/* Write the shortest decimal that reads back as the same number, and return its end. Numbers from
 * 10^-6 to below 10^10 have no exponent; infinities are inf, and NaN is nan. */
char *kgt_write_single(char *out, float value);
char *kgt_write_double(char *out, double value);
char *kgt_write_whole(char *out, uint64_t value);

#endif
