/* Numbers as text writes them. */
#ifndef KGT_TREC_DECIMAL_H
#define KGT_TREC_DECIMAL_H

#include "isa_platform.h"

/* Reads a decimal number, correctly rounded (half to even), or inf, infinity in any case, with a
 * sign or without. Returns the white space that ends it, or NULL if the field at `at` is nothing
 * of that kind: NaN, hexadecimal, `1_000`, `abc`. The text goes on to `text_end` and the last
 * byte before that is a newline. */
const char *kgt_read_decimal(const char *at, const char *text_end, double *value);

/* The same for a whole number within int64. */
const char *kgt_read_whole(const char *at, int64_t *value);

/* The longest of the decimals below, and how many bytes behind one may be overwritten. */
#define KGT_LONGEST_DECIMAL 24 /* -2.2250738585072014e-308 */
#define KGT_BEHIND_DECIMAL 24

/* Write the shortest decimal that reads back as the same number, and return its end. Numbers from
 * 10^-6 to below 10^10 stand without an exponent; infinities are inf, and NaN is nan. */
char *kgt_write_single(char *out, float value);
char *kgt_write_double(char *out, double value);
char *kgt_write_whole(char *out, uint64_t value);

#endif
