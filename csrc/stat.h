/* Statistics of ranks: expectations under ties, stratified means, sums under random signs. */
#ifndef KGT_STAT_H
#define KGT_STAT_H

#include <stdint.h>

#include "kgt_status.h"

/* Tied answers: `greater` candidates are ahead of `size` tied ones; `answers` of the tied ones are
 * right. 0 <= greater, 1 <= answers <= size, greater + size < 2^53. */
typedef struct {
    int64_t n;
    const int64_t *greater, *size, *answers;
} kgt_ties;

/* Expectations over all orders of each tie, n doubles: 1 / rank of the first answer, the
 * probability that it ranks within k, and ln rank (of one answer; `answers` is not read). */
void kgt_expected_reciprocal(const kgt_ties *ties, double *out);
void kgt_expected_hits(const kgt_ties *ties, int64_t k, double *out);
void kgt_expected_log(const kgt_ties *ties, double *out);

/* Instances by triple, triples by relation, and the popularities that weight them. Triple t has the
 * instances triples[t] .. triples[t + 1] - 1; relation r has triples in the same way. */
typedef struct {
    int64_t n_relations, n_triples, n_instances, n_popularities;
    const int64_t *relations, *triples; /* n_relations + 1, n_triples + 1 */
    const int64_t *row;                 /* instance -> column of kgt_grid.values */
    const int32_t *popularity_of;       /* instance -> place in popularity */
    const double *popularity;           /* distinct, of the predicted entities */
    const double *relation_popularity;  /* per relation */
} kgt_strata;

/* Values to average, and the exponents. values: (n_metrics, n_rows), row after row. */
typedef struct {
    const double *values, *beta_e, *beta_r;
    int64_t n_metrics, n_rows, n_beta_e, n_beta_r;
} kgt_grid;

/* Stratified means, (n_metrics, n_beta_e, n_beta_r): instances with weight popularity^-beta_e
 * within triples, triples equally within relations, relations with weight popularity^-beta_r.
 * float64 sums in the order of the strata. If a triple or all relations have no weight, the mean is
 * NaN. */
kgt_status kgt_stratify(const kgt_strata *strata, const kgt_grid *grid, double *out);

/* Values to sum under random signs: (n_rows, n_columns), row after row. */
typedef struct {
    const double *values;
    int64_t n_rows, n_columns;
    uint64_t seed;
} kgt_paired;

/* Sums of every column under the random signs of permutations first .. first + n - 1, into (n,
 * n_columns). A permutation gives each row one sign for all columns, which depends only on the
 * seed, the permutation and the row. Terms are added in the order of the rows. */
void kgt_sign_sums(const kgt_paired *paired, int64_t first, int64_t n, double *out);

#endif
