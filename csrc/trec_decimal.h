/* Numbers as text. */
#ifndef KGT_TREC_DECIMAL_H
#define KGT_TREC_DECIMAL_H

#include "isa_platform.h"

/* Reads a decimal number, correctly rounded (half to even), or inf, infinity in any case, with or
 * without a sign. Returns the white space that ends it. NULL if the field at `at` is anything else:
 * NaN, hexadecimal, `1_000`, `abc`. The text ends at `text_end`, and the last byte before that is a
 * newline. */
const char *kgt_read_decimal(const char *at, const char *text_end, double *value);

/* The same for a whole number within int64. */
const char *kgt_read_whole(const char *at, int64_t *value);

/* Length of the longest decimal below, and number of bytes after one that may be overwritten. */
#define KGT_LONGEST_DECIMAL 24 /* -2.2250738585072014e-308 */
#define KGT_BEHIND_DECIMAL 24

/* Write the shortest decimal that reads back as the same number, and return its end. Numbers from
 * 10^-6 to below 10^10 have no exponent; infinities are inf, and NaN is nan. */
char *kgt_write_single(char *out, float value);
char *kgt_write_double(char *out, double value);
char *kgt_write_whole(char *out, uint64_t value);

#endif
