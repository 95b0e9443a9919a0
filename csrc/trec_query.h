/* Data that the measures of one query share: for trec_values.c and trec_ties.c. */
#ifndef KGT_TREC_QUERY_H
#define KGT_TREC_QUERY_H

#include "trec.h"

/* A relevant document: its rank from 0, and numbers of judged non-relevant and pooled before. */
typedef struct {
    int64_t rank, worse, pooled;
} kgt_hit;

typedef struct {
    int64_t rank;
    double gain;
} kgt_gainer;

typedef struct {
    kgt_hit *hits;
    kgt_gainer *gainers;
    double *best; /* best precision at this hit or a later one */
    int64_t n_hits, n_gainers, n_rel, n_nonrel, n_judged, n_ret, n_misses;
    const int64_t *judged;
    bool has_best;
    const kgt_judged_lists *lists;
    int64_t start, stop; /* in the lists */
    double *logarithms;
    int64_t n_logarithms;
} kgt_query;

/* Memory for queries of up to this many documents; false if there is none. Close it always. */
bool kgt_query_open(kgt_query *at, int64_t most);
void kgt_query_close(kgt_query *at);

/* Largest number of documents of a query. */
int64_t kgt_most_documents(const kgt_judged_lists *lists);

/* Finds the shared data of query i, from which kgt_query_value computes measures. */
void kgt_query_load(kgt_query *at, const kgt_judged_lists *lists, int64_t i);
double kgt_query_value(kgt_query *at, const kgt_column *column);

double kgt_query_ideal_dcg(kgt_query *at, int64_t depth);

/* log2(rank + 2), each computed once. */
double kgt_query_discount(kgt_query *at, int64_t rank);

#endif
