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

#endif
