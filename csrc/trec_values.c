/* From judged lists to the measures of every query.
 *
 * One scan of a query's list finds what all measures share: its relevant documents, with the
 * documents of other kinds before each, and its documents with a gain. Then each measure is a loop
 * over these. Every formula does trec_eval's operations in trec_eval's order.
 */
#include <math.h>
#include <stdlib.h>

#include "trec_query.h"

#define FLOOR 1e-5   /* trec_eval's MIN_GEO_MEAN */
#define EPSILON 1e-5 /* of infAP, against division by 0 */
#define LOGARITHMS 1024

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static double share(double part, double whole) { return whole != 0 ? part / whole : 0.0; }
static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }
static double floored(double value) { return log(value > FLOOR ? value : FLOOR); }

static int64_t rank_of(const kgt_judged_lists *lists, int64_t start, int64_t i) {
    return lists->rank == NULL ? i - start : lists->rank[i];
}

double kgt_query_discount(kgt_query *at, int64_t rank) {
    if (rank >= LOGARITHMS) return log2((double)rank + 2.0);
    while (at->n_logarithms <= rank) {
        at->logarithms[at->n_logarithms] = log2((double)at->n_logarithms + 2.0);
        at->n_logarithms++;
    }
    return at->logarithms[rank];
}

void kgt_query_load(kgt_query *at, const kgt_judged_lists *lists, int64_t i) {
    int64_t worse = 0, pooled = 0;
    at->lists = lists;
    at->n_hits = at->n_gainers = 0;
    at->start = lists->offsets[i];
    at->stop = lists->offsets[i + 1];
    for (int64_t d = at->start; d < at->stop; d++) {
        int64_t relevance = lists->relevance[d];
        if (relevance == lists->unjudged) continue;
        int64_t rank = rank_of(lists, at->start, d);
        if (relevance >= lists->level)
            at->hits[at->n_hits++] = (kgt_hit){rank, worse, pooled};
        else if (relevance >= 0)
            worse++;
        else
            pooled++;
        if (relevance >= 1) at->gainers[at->n_gainers++] = (kgt_gainer){rank, (double)relevance};
    }
    int64_t judged = lists->judged_query == NULL ? i : lists->judged_query[i];
    at->judged = lists->judged + lists->judged_offsets[judged];
    at->n_judged = lists->judged_offsets[judged + 1] - lists->judged_offsets[judged];
    at->n_rel = at->n_nonrel = 0;
    for (int64_t j = 0; j < at->n_judged && at->judged[j] >= smaller(lists->level, 0); j++) {
        if (at->judged[j] >= lists->level)
            at->n_rel++;
        else if (at->judged[j] >= 0)
            at->n_nonrel++;
    }
    at->n_misses = worse;
    at->n_ret = lists->retrieved[i];
    at->has_best = false;
}

static int64_t hits_within(const kgt_query *at, int64_t depth) {
    int64_t n = 0;
    while (n < at->n_hits && at->hits[n].rank < depth) n++;
    return n;
}

/* Number of judged documents of at least relevance 0, or of any, among the first `depth`. */
static int64_t known_within(const kgt_query *at, int64_t depth, bool pooled) {
    int64_t n = 0;
    for (int64_t d = at->start; d < at->stop; d++) {
        if (rank_of(at->lists, at->start, d) >= depth) break;
        int64_t relevance = at->lists->relevance[d];
        n += relevance != at->lists->unjudged && (pooled || relevance >= 0);
    }
    return n;
}

static double precision_sum(const kgt_query *at, int64_t depth) {
    double sum = 0;
    for (int64_t h = 0; h < at->n_hits && at->hits[h].rank < depth; h++)
        sum += (double)(h + 1) / (double)(at->hits[h].rank + 1);
    return sum;
}

static double average_precision(const kgt_query *at, int64_t depth) {
    return share(precision_sum(at, depth), (double)at->n_rel);
}

static double bpref(const kgt_query *at) {
    double sum = 0, most = (double)smaller(at->n_nonrel, at->n_rel);
    for (int64_t h = 0; h < at->n_hits; h++) {
        int64_t worse = at->hits[h].worse;
        sum += worse > 0 ? 1.0 - share((double)smaller(worse, at->n_rel), most) : 1.0;
    }
    return share(sum, (double)at->n_rel);
}

static double inferred_ap(const kgt_query *at) {
    double sum = 0;
    for (int64_t h = 0; h < at->n_hits; h++) {
        double rank = (double)at->hits[h].rank, before = (double)h;
        double worse = (double)at->hits[h].worse, pooled = (double)at->hits[h].pooled;
        double expected = (rank / (rank + 1.0)) * share(before + worse + pooled, rank);
        expected *= (before + EPSILON) / ((before + worse) + 2 * EPSILON);
        sum += at->hits[h].rank == 0 ? 1.0 : 1.0 / (rank + 1.0) + expected;
    }
    return share(sum, (double)at->n_rel);
}

static double reciprocal_rank(const kgt_query *at, int64_t depth) {
    if (at->n_hits == 0 || at->hits[0].rank >= depth) return 0.0;
    return 1.0 / (double)(at->hits[0].rank + 1);
}

static double interpolated_precision(kgt_query *at, double point, bool rounds) {
    double exact = point * (double)at->n_rel;
    double needed = floor(rounds ? exact : exact + 0.9);
    if (rounds && exact - floor(exact) >= 0.5) needed += 1;
    if (needed < 1) needed = 1;
    if (needed > (double)at->n_hits) return 0.0;
    if (!at->has_best) {
        double best = 0;
        for (int64_t h = at->n_hits - 1; h >= 0; h--) {
            double precision = (double)(h + 1) / (double)(at->hits[h].rank + 1);
            at->best[h] = best = precision > best ? precision : best;
        }
        at->has_best = true;
    }
    return at->best[(int64_t)needed - 1];
}

static double binary_gain(const kgt_query *at) {
    double sum = 0;
    for (int64_t h = 0; h < at->n_hits; h++) sum += 1.0 / log2((double)(2 + at->hits[h].rank - h));
    return share(sum, (double)at->n_rel);
}

static double set_f(const kgt_query *at, double weight) {
    double precision = share((double)at->n_hits, (double)at->n_ret);
    double recall = share((double)at->n_hits, (double)at->n_rel);
    return share((weight + 1.0) * precision * recall, weight * precision + recall);
}

static double dcg(kgt_query *at, int64_t depth) {
    double sum = 0;
    for (int64_t g = 0; g < at->n_gainers && at->gainers[g].rank < depth; g++)
        sum += at->gainers[g].gain / kgt_query_discount(at, at->gainers[g].rank);
    return sum;
}

double kgt_query_ideal_dcg(kgt_query *at, int64_t depth) {
    double sum = 0;
    for (int64_t j = 0; j < smaller(at->n_judged, depth) && at->judged[j] > 0; j++)
        sum += (double)at->judged[j] / kgt_query_discount(at, j);
    return sum;
}

double kgt_query_value(kgt_query *at, const kgt_column *column) {
    const double hits = (double)at->n_hits, relevant = (double)at->n_rel;
    const double retrieved = (double)at->n_ret, parameter = column->parameter;
    const int64_t all = INT64_MAX, cutoff = (int64_t)parameter;
    switch (column->measure) {
        case KGT_NUM_Q:
            return 1.0;
        case KGT_NUM_RET:
            return retrieved;
        case KGT_NUM_REL:
            return relevant;
        case KGT_NUM_REL_RET:
            return hits;
        case KGT_NUM_NONREL_JUDGED_RET:
            return (double)at->n_misses;
        case KGT_MAP:
            return average_precision(at, all);
        case KGT_MAP_CUT:
            return average_precision(at, cutoff);
        case KGT_RELATIVE_MAP:
            return share(precision_sum(at, cutoff), (double)smaller(at->n_rel, cutoff));
        case KGT_GM_MAP:
            return floored(average_precision(at, all));
        case KGT_YAAP: {
            double sum = precision_sum(at, all);
            return log((1.0 + sum) / (1.0 + relevant - sum));
        }
        case KGT_BPREF:
            return bpref(at);
        case KGT_GM_BPREF:
            return floored(bpref(at));
        case KGT_INFAP:
            return inferred_ap(at);
        case KGT_RECIP_RANK:
            return reciprocal_rank(at, all);
        case KGT_RECIP_RANK_CUT:
            return reciprocal_rank(at, cutoff);
        case KGT_P:
            return (double)hits_within(at, cutoff) / (double)cutoff;
        case KGT_RECALL:
            return share((double)hits_within(at, cutoff), relevant);
        case KGT_RELATIVE_P:
            return share((double)hits_within(at, cutoff), (double)smaller(at->n_rel, cutoff));
        case KGT_F1:
            return 2.0 * (double)hits_within(at, cutoff) / (parameter + relevant);
        case KGT_SUCCESS:
            return hits_within(at, cutoff) > 0 ? 1.0 : 0.0;
        case KGT_RPREC:
            return share((double)hits_within(at, at->n_rel), relevant);
        case KGT_RPREC_MULT: {
            double depth = floor(parameter * relevant + 0.9);
            return depth > 0 ? (double)hits_within(at, (int64_t)depth) / depth : 0.0;
        }
        case KGT_IPREC:
            return interpolated_precision(at, parameter, true);
        case KGT_IPREC_9:
            return interpolated_precision(at, parameter, false);
        case KGT_BING:
            return binary_gain(at);
        case KGT_JUDGED_CUT:
            return share((double)known_within(at, cutoff, true),
                         (double)smaller(at->n_ret, cutoff));
        case KGT_UNJ:
            return (double)(smaller(at->n_ret, cutoff) - known_within(at, cutoff, false)) /
                   (double)cutoff;
        case KGT_SET_P:
            return share(hits, retrieved);
        case KGT_SET_RECALL:
            return share(hits, relevant);
        case KGT_SET_RELATIVE_P:
            return share(hits, (double)smaller(at->n_ret, at->n_rel));
        case KGT_SET_MAP:
            return share(hits * hits, retrieved * relevant);
        case KGT_SET_F:
            return set_f(at, parameter);
        case KGT_DCG:
            return dcg(at, all);
        case KGT_IDEAL_DCG:
            return kgt_query_ideal_dcg(at, all);
        case KGT_NDCG:
            return ratio(dcg(at, all), kgt_query_ideal_dcg(at, all));
        case KGT_NDCG_CUT:
            return ratio(dcg(at, cutoff), kgt_query_ideal_dcg(at, cutoff));
        default:
            return NAN;
    }
}

bool kgt_query_open(kgt_query *at, int64_t most) {
    size_t room = (size_t)most + 1;
    *at = (kgt_query){.n_logarithms = 0};
    at->hits = malloc(room * sizeof(kgt_hit));
    at->gainers = malloc(room * sizeof(kgt_gainer));
    at->best = malloc(room * sizeof(double));
    at->logarithms = malloc(LOGARITHMS * sizeof(double));
    return at->hits != NULL && at->gainers != NULL && at->best != NULL && at->logarithms != NULL;
}

void kgt_query_close(kgt_query *at) {
    free(at->hits);
    free(at->gainers);
    free(at->best);
    free(at->logarithms);
}

int64_t kgt_most_documents(const kgt_judged_lists *lists) {
    int64_t most = 0;
    for (int64_t i = 0; i < lists->n_queries; i++) {
        int64_t n = lists->offsets[i + 1] - lists->offsets[i];
        most = n > most ? n : most;
    }
    return most;
}

kgt_status kgt_trec_values(const kgt_judged_lists *lists, const kgt_column *columns,
                           int64_t n_columns, double *values) {
    kgt_query at;
    bool sound = kgt_query_open(&at, kgt_most_documents(lists));
    for (int64_t i = 0; sound && i < lists->n_queries; i++) {
        kgt_query_load(&at, lists, i);
        for (int64_t c = 0; c < n_columns; c++)
            values[c * lists->n_queries + i] = kgt_query_value(&at, &columns[c]);
    }
    kgt_query_close(&at);
    return sound ? KGT_OK : KGT_NO_MEMORY;
}
