/* The shortest decimal that reads back as the same number. Of several, the nearest to the number;
 * of two equally near ones, that with an even last digit.
 *
 * After Giulietti, The Schubfach way to render doubles, 2021. A decimal nearer to a number than to
 * its neighbours reads back as that number. The interval of these decimals is scaled by a power of
 * ten, so that it holds at least one whole number and at most one multiple of ten. That multiple is
 * the shortest, if there is one. Scaled ends are rounded to odd: cut off, with the last bit set if
 * anything was lost. So they compare with whole numbers as the exact values do.
 */
#include <string.h>

#include "trec_decimal.h"
#include "trec_decimal_powers.h"

#define SINGLE_BITS 23 /* of the significand, as stored */
#define DOUBLE_BITS 52
#define COPIED KGT_BEHIND_DECIMAL /* digits copied at once: cheaper than the exact number */

typedef struct {
    uint64_t digits;
    int exponent; /* of ten */
} decimal;

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

/* value / 2^shift, rounded down, also below 0. |value| < 2^40. */
KGT_INLINE int floor_shifted(int64_t value, int shift) {
    return (int)((uint64_t)(value + ((int64_t)1 << 40)) >> shift) - (1 << (40 - shift));
}

/* Of 2^power, and with `narrow` of 3/4 2^power; |power| up to 1,100. */
KGT_INLINE int floor_log10(int power, bool narrow) {
    return floor_shifted((int64_t)power * 1262611 - (narrow ? 524031 : 0), 22);
}

/* Of 10^power; |power| up to 330. */
KGT_INLINE int floor_log2(int power) { return floor_shifted((int64_t)power * 1741647, 19); }

/* a x b: the lower half, and the upper one to *upper. */
KGT_INLINE uint64_t multiply(uint64_t a, uint64_t b, uint64_t *upper) {
#if KGT_HAS_U128
    kgt_u128 both = (kgt_u128)a * b;
    *upper = (uint64_t)(both >> 64);
    return (uint64_t)both;
#else
    const uint64_t mask = UINT32_MAX;
    uint64_t low = (a & mask) * (b & mask), cross = (a >> 32) * (b & mask) + (low >> 32);
    uint64_t other = (a & mask) * (b >> 32) + (cross & mask);
    *upper = (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
    return other << 32 | (low & mask);
#endif
}

/* power x factor / 2^128, rounded to odd. The power is rounded up to make up for its cut bits. */
KGT_INLINE uint64_t round_to_odd(const uint64_t power[2], bool cut, uint64_t factor) {
    uint64_t carry, whole;
    multiply(power[1] + cut, factor, &carry);
    uint64_t fraction = multiply(power[0], factor, &whole) + carry;
    whole += fraction < carry;
    return whole | (fraction > 1);
}

/* Of significand x 2^power; narrow: the next smaller number is half as far as the next larger. */
static decimal shortest(uint64_t significand, int power, bool narrow) {
    const int exponent = floor_log10(power, narrow), q = -exponent;
    const int shift = power + floor_log2(q) + 1;
    const uint64_t *scale = kgt_powers_of_five[q - KGT_FIRST_POWER];
    const bool cut = q < 0 || q > 55; /* 5^55 is the last that 128 bits hold */
    /* In quarters. Ends read back as the number if its significand is even. */
    const uint64_t quarters = 4 * significand, odd = significand & 1;
    uint64_t low = round_to_odd(scale, cut, (quarters - 2 + narrow) << shift) + odd;
    uint64_t value = round_to_odd(scale, cut, quarters << shift);
    uint64_t high = round_to_odd(scale, cut, (quarters + 2) << shift) - odd;
    uint64_t below = value / 4, tens = below / 10;
    if (below >= 10) {
        bool under = low <= 40 * tens, over = 40 * tens + 40 <= high;
        if (under != over) return (decimal){tens + over, exponent + 1};
    }
    bool under = low <= 4 * below, over = 4 * below + 4 <= high;
    if (under != over) return (decimal){below + over, exponent};
    uint64_t half = 4 * below + 2;
    bool up = value > half || (value == half && (below & 1) != 0);
    return (decimal){below + up, exponent};
}

/* The eight digits of value < 10^8, zeros in front. */
KGT_INLINE void write_eight(char *out, uint32_t value) {
    uint32_t upper = value / 10000, lower = value % 10000;
    memcpy(out, pairs + 2 * (upper / 100), 2);
    memcpy(out + 2, pairs + 2 * (upper % 100), 2);
    memcpy(out + 4, pairs + 2 * (lower / 100), 2);
    memcpy(out + 6, pairs + 2 * (lower % 100), 2);
}

/* Writes the digits so that they end at `end`, with room for COPIED; returns the first that counts.
 */
KGT_INLINE const char *digits_before(char *end, uint64_t value) {
    const char *first = end - 8;
    write_eight(end - 8, (uint32_t)(value % 100000000));
    for (value /= 100000000; value != 0; value /= 100000000) {
        first -= 8;
        write_eight((char *)first, (uint32_t)(value % 100000000));
    }
    while (first < end - 1 && *first == '0') first++;
    return first;
}

char *kgt_write_whole(char *out, uint64_t value) {
    char digits[COPIED];
    const char *first = digits_before(digits + COPIED, value);
    size_t n = (size_t)(digits + COPIED - first);
    memcpy(out, first, n);
    return out + n;
}

/* n digits, the first of which weighs 10^exponent: 0.00012, 12000, 1.2. */
static char *write_fixed(char *out, const char *digits, int n, int exponent) {
    if (exponent < 0) {
        memcpy(out, "0.00000", 8);
        memcpy(out + 1 - exponent, digits, COPIED);
        return out + 1 - exponent + n;
    }
    memcpy(out, digits, COPIED);
    if (exponent >= n - 1) {
        for (int i = n; i <= exponent; i++) out[i] = '0';
        return out + exponent + 1;
    }
    out[exponent + 1] = '.';
    memcpy(out + exponent + 2, digits + exponent + 1, COPIED);
    return out + n + 1;
}

/* 1.2e+20, 1e-7. */
static char *write_scientific(char *out, const char *digits, int n, int exponent) {
    *out++ = digits[0];
    if (n > 1) {
        *out++ = '.';
        memcpy(out, digits + 1, COPIED);
        out += n - 1;
    }
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    return kgt_write_whole(out, (uint64_t)(exponent < 0 ? -exponent : exponent));
}

static char *write_number(char *out, decimal number) {
    char digits[2 * COPIED] = {0};
    const char *end = digits + COPIED, *first = digits_before(digits + COPIED, number.digits);
    int exponent = number.exponent + (int)(end - first) - 1;
    while (end[-1] == '0' && end - 1 > first) end--;
    int n = (int)(end - first);
    if (exponent >= -6 && exponent < 10) return write_fixed(out, first, n, exponent);
    return write_scientific(out, first, n, exponent);
}

/* Of the parts of an IEEE 754 number: `stored` of `bits` bits, and an exponent from 0 on. */
KGT_INLINE char *write_parts(char *out, bool negative, uint64_t stored, int exponent, int bits,
                             int most) {
    const int bias = most / 2 + bits;
    if (exponent == most && stored != 0) return memcpy(out, "nan", 3), out + 3;
    if (negative) *out++ = '-';
    if (exponent == most) return memcpy(out, "inf", 3), out + 3;
    if (exponent == 0) {
        if (stored == 0) return *out = '0', out + 1;
        return write_number(out, shortest(stored, 1 - bias, false));
    }
    const uint64_t significand = stored | (uint64_t)1 << bits;
    return write_number(out, shortest(significand, exponent - bias, stored == 0 && exponent > 1));
}

char *kgt_write_single(char *out, float value) {
    uint32_t all;
    memcpy(&all, &value, sizeof all);
    return write_parts(out, all >> 31, all & ((1u << SINGLE_BITS) - 1),
                       (int)(all >> SINGLE_BITS & 0xff), SINGLE_BITS, 0xff);
}

char *kgt_write_double(char *out, double value) {
    uint64_t all;
    memcpy(&all, &value, sizeof all);
    return write_parts(out, all >> 63, all & (((uint64_t)1 << DOUBLE_BITS) - 1),
                       (int)(all >> DOUBLE_BITS & 0x7ff), DOUBLE_BITS, 0x7ff);
}
