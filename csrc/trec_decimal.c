/* Correctly rounded decimals.
 *
 * A number is w x 10^q with a whole w of up to 19 digits. There are three ways, cheapest first:
 *
 * exact      w and 10^|q| are doubles, so one multiplication or division rounds once, correctly
 *            (Clinger, How to Read Floating Point Numbers Accurately, 1990).
 * product    w x 5^q to 192 bits, from a table of powers with 128 bits (after Lemire, Number
 *            Parsing at a Gigabyte per Second, 2021). The powers are cut off, so the true product
 *            is at most 2^64 larger in its lowest place: enough, unless that can carry past a half.
 * strtod     what is left: doubtful halves, more than 19 digits that matter, and powers outside
 *            the table, among them all that overflow or are subnormal.
 */
#define _GNU_SOURCE /* kgt_strtod */
#include "trec_decimal.h"

#include <math.h>

#include "trec_decimal_powers.h"

#define MOST_DIGITS 19    /* of an uint64_t */
#define LARGEST_POWER 288 /* of ten, times any uint64_t: below the largest double */

typedef struct {
    uint64_t digits;
    int64_t exponent;   /* of ten */
    bool negative, cut; /* cut: further digits, not all 0, follow */
} decimal;

KGT_INLINE bool is_digit(char byte) { return (unsigned char)(byte - '0') < 10; }

#if KGT_LITTLE_ENDIAN
/* Value and number of the digits at the start of eight bytes, all at once. In a loop, the processor
 * would have to guess the number, which changes from line to line. */
KGT_INLINE int leading_digits(const char *at, uint64_t *value) {
    uint64_t word = kgt_load64(at) ^ 0x3030303030303030u;
    int n = kgt_count_digits(word);
    if (n > 0) *value = kgt_join_digits(word << (64 - 8 * n)); /* as if zeros came before them */
    return n;
}
#else
KGT_INLINE int leading_digits(const char *at, uint64_t *value) { return (void)at, (void)value, 0; }
#endif

/* Adds digits that fit to number->digits; returns the first byte that is not a digit. `used` counts
 * digits from the first that is not 0; digits that do not fit only raise the exponent. */
KGT_INLINE const char *read_digits(const char *at, const char *text_end, decimal *number,
                                   int64_t *used) {
    static const uint64_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    uint64_t value;
    for (int n = 8; n == 8 && *used <= MOST_DIGITS - 8 && text_end - at >= 8; at += n) {
        n = leading_digits(at, &value);
        if (n == 0) break;
        number->digits = number->digits * powers[n] + value;
        /* Leading zeros count as used, unless all are 0: that only costs a slower way. */
        *used += number->digits != 0 ? n : 0;
    }
    for (; is_digit(*at); at++) {
        if (*used < MOST_DIGITS) {
            number->digits = number->digits * 10 + (uint64_t)(*at - '0');
            *used += number->digits != 0;
        } else {
            number->exponent++;
            number->cut |= *at != '0';
        }
    }
    return at;
}

/* An exponent too large to matter stops growing. */
static const char *read_exponent(const char *at, decimal *number) {
    bool negative = *at == '-';
    int64_t exponent = 0;
    if (*at == '-' || *at == '+') at++;
    if (!is_digit(*at)) return NULL;
    for (; is_digit(*at); at++)
        if (exponent < INT64_MAX / 100) exponent = exponent * 10 + (*at - '0');
    number->exponent += negative ? -exponent : exponent;
    return at;
}

static const char *read_number(const char *at, const char *text_end, decimal *number) {
    int64_t used = 0;
    const char *whole = at;
    at = read_digits(at, text_end, number, &used);
    bool any = at > whole;
    if (*at == '.') {
        const char *fraction = ++at;
        at = read_digits(at, text_end, number, &used);
        number->exponent -= at - fraction;
        any |= at > fraction;
    }
    if (!any) return NULL;
    if (*at == 'e' || *at == 'E') at = read_exponent(at + 1, number);
    return at;
}

static bool exact(uint64_t digits, int64_t exponent, double *value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits > (uint64_t)1 << 53 || exponent < -22 || exponent > 22) return false;
    *value = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    return true;
}

#if KGT_HAS_U128
/* The product upper : middle : lower, rounded to 53 bits; its highest bit weighs 2^weight. */
static bool round_product(uint64_t upper, uint64_t middle, uint64_t lower, bool cut, int weight,
                          double *value) {
    uint64_t rest = upper & 0x7ff, mantissa = upper >> 11;
    /* All ones below the half: the power's error may reach it. Otherwise it changes nothing. */
    if (cut && rest == 0x3ff && middle >= UINT64_MAX - 1) return false;
    bool above = (rest & 0x3ff) != 0 || middle != 0 || lower != 0 || cut;
    bool up = (rest & 0x400) != 0 && (above || (mantissa & 1) != 0);
    /* Every result is a normal number. A carry out of the mantissa raises the exponent by itself.
     */
    uint64_t bits = ((uint64_t)(weight + 1023 - 1) << 52) + mantissa + up;
    memcpy(value, &bits, sizeof bits);
    return true;
}

static bool product(uint64_t digits, int64_t exponent, double *value) {
    if (exponent < KGT_FIRST_POWER || exponent > LARGEST_POWER || digits == 0) return false;
    const uint64_t *power = kgt_powers_of_five[exponent - KGT_FIRST_POWER];
    int shift = __builtin_clzll(digits);
    digits <<= shift;
    kgt_u128 low = (kgt_u128)digits * power[1], high = (kgt_u128)digits * power[0] + (low >> 64);
    uint64_t upper = (uint64_t)(high >> 64), middle = (uint64_t)high, lower = (uint64_t)low;
    /* q log2(5) rounded down, of a number that is never negative: what a shift of such gives is
     * the compiler's to choose. 32768 x 152170 = 76085 x 2^16. */
    int q = (int)exponent, log2_of_five = (int)((uint64_t)(q + 32768) * 152170 >> 16) - 76085;
    int weight = 64 - shift + q + log2_of_five;
    if (upper >> 63 == 0) {
        upper = upper << 1 | middle >> 63;
        middle = middle << 1 | lower >> 63;
        lower <<= 1;
        weight--;
    }
    bool cut = q < 0 || q > 55; /* 128 bits hold powers up to 5^55 */
    return round_product(upper, middle, lower, cut, weight, value);
}
#else
static bool product(uint64_t digits, int64_t exponent, double *value) {
    return (void)digits, (void)exponent, (void)value, false;
}
#endif

/* Known of a cut number: it is between two numbers with 19 digits. */
static bool quick(const decimal *number, double *value) {
    double above;
    if (exact(number->digits, number->exponent, value)) return !number->cut;
    if (!product(number->digits, number->exponent, value)) return false;
    if (!number->cut) return true;
    return product(number->digits + 1, number->exponent, &above) && above == *value;
}

static const char *read_infinity(const char *at) {
    static const char name[] = "infinity";
    size_t n = 0;
    while (n < 8 && (at[n] | 0x20) == name[n]) n++;
    return n == 3 || n == 8 ? at + n : NULL;
}

const char *kgt_read_decimal(const char *at, const char *text_end, double *value) {
    decimal number = {.negative = *at == '-'};
    const char *start = at, *end;
    if (*at == '-' || *at == '+') at++;
    if ((end = read_infinity(at)) != NULL) {
        *value = HUGE_VAL;
    } else {
        end = read_number(at, text_end, &number);
        if (end == NULL || !kgt_is_space(*end)) return NULL;
        if (number.digits == 0)
            *value = 0;
        else if (!quick(&number, value)) {
            *value = kgt_strtod(start);
            return end;
        }
    }
    if (number.negative) *value = -*value;
    return kgt_is_space(*end) ? end : NULL;
}

const char *kgt_read_whole(const char *at, int64_t *value) {
    bool negative = *at == '-';
    uint64_t size = 0, most = (uint64_t)INT64_MAX + negative;
    if (*at == '-' || *at == '+') at++;
    if (!is_digit(*at)) return NULL;
    for (; is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (size > (most - digit) / 10) return NULL;
        size = size * 10 + digit;
    }
    *value = (int64_t)(negative ? -size : size);
    return kgt_is_space(*at) ? at : NULL;
}
