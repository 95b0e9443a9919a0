/* Shared by the parts of the native test, which tests one path at a time against the scalar path.
 */
#ifndef KGT_NATIVE_H
#define KGT_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts a check of the path under test. If it fails, prints which check and how. */
void expect(bool holds, const char *what, const char *format, ...);

/* The name of a deliberate fault, which the checks must find; "" for none. */
extern const char *spoilt;
bool spoils(const char *what);

/* Run fewer of the slow checks. */
extern bool brief;

/* The same sequence in every run. */
uint64_t random_bits(void);
size_t random_below(size_t n);

/* Memory of exactly this size, so that a sanitizer or valgrind sees one element too many. */
void *exact(size_t count, size_t size);

/* Blocks of rows and of factors, ranked on the forced path and on the scalar one. */
void check_rows(const char *path);
void check_factors(const char *path);

/* Scores of the pairs of a relation, counted together. */
void check_pair_counts(void);

/* Products of bytes, and bounds from them, if the path has any. */
void check_bytes(void);

/* Run and qrels files; the same on every path. */
void check_files(void);

/* Labels of triples; the same on every path. */
void check_labels(void);

#endif
