/* Values over all orders of tied documents.
 *
 * Only groups of equal score that hold judged documents matter, and only if their members differ in
 * relevance. A measure is least with the best members of each group last, and greatest with them
 * first. In a group of n documents, R of them relevant, place i holds a relevant one with
 * probability R / n. If it does, earlier places of the group hold (i - 1) (R - 1) / (n - 1) more
 * on average (McSherry and Najork 2008). kgtrec/trec/measures/ties.py explains these sums.
 */
#include <math.h>
#include <stdlib.h>

#include "trec_query.h"

#define ROUNDING 1e-12

/* A judged document: first place with its score, number of documents with it, relevance. */
typedef struct {
    int64_t first, size, relevance;
} member;

/* Documents of the same score, some of them judged. */
typedef struct {
    int64_t first, size, hits;
    double gain;
} group;

typedef struct {
    member *members;
    group *groups;
    int64_t n_members, n_groups;
    int64_t *rank, *relevance; /* of the members in some order */
    double *least, *greatest;  /* of every column */
    kgt_query query;
} worker;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

static void collect(worker *at, const kgt_judged_lists *lists, const kgt_tied_places *ties,
                    int64_t i) {
    const int64_t start = lists->offsets[i], stop = lists->offsets[i + 1];
    const int64_t *relevance = lists->relevance;
    at->n_members = 0;
    if (ties->scores == NULL) {
        for (int64_t d = start; d < stop; d++)
            at->members[at->n_members++] = (member){ties->first[d], ties->size[d], relevance[d]};
        return;
    }
    for (int64_t d = start, end; d < stop; d = end) {
        end = d + 1;
        while (end < stop && ties->scores[end] == ties->scores[d]) end++;
        for (int64_t j = d; j < end; j++)
            if (relevance[j] != lists->unjudged)
                at->members[at->n_members++] = (member){d - start, end - d, relevance[j]};
    }
}

/* The end of the member's group. */
static int64_t end_of(const worker *at, int64_t i) {
    int64_t end = i + 1;
    while (end < at->n_members && at->members[end].first == at->members[i].first) end++;
    return end;
}

static bool matters(const worker *at) {
    for (int64_t i = 0, end; i < at->n_members; i = end) {
        end = end_of(at, i);
        if (end - i < at->members[i].size) return true;
        for (int64_t j = i + 1; j < end; j++)
            if (at->members[j].relevance != at->members[i].relevance) return true;
    }
    return false;
}

static int by_group_then_best(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->relevance < y->relevance) - (x->relevance > y->relevance);
}

/* Places of the members if the best of each group come first, or last. */
static void arrange(worker *at, bool best) {
    for (int64_t i = 0, end; i < at->n_members; i = end) {
        end = end_of(at, i);
        for (int64_t j = i; j < end; j++) {
            const member *one = &at->members[best ? j : end - 1 - (j - i)];
            at->rank[j] = one->first + (best ? j - i : one->size - (end - j));
            at->relevance[j] = one->relevance;
        }
    }
}

static void group_members(worker *at, int64_t level) {
    at->n_groups = 0;
    for (int64_t i = 0, end; i < at->n_members; i = end) {
        end = end_of(at, i);
        group one = {at->members[i].first, at->members[i].size, 0, 0.0};
        for (int64_t j = i; j < end; j++) {
            const int64_t relevance = at->members[j].relevance;
            one.hits += relevance >= level;
            one.gain += relevance > 0 ? (double)relevance : 0.0;
        }
        at->groups[at->n_groups++] = one;
    }
}

static double expected_precision_sum(const worker *at, int64_t depth) {
    double sum = 0;
    int64_t above = 0;
    for (int64_t g = 0; g < at->n_groups; g++) {
        const group *one = &at->groups[g];
        if (one->hits == 0) continue;
        const double share = (double)one->hits / (double)one->size;
        const double more = one->size > 1 ? (double)(one->hits - 1) / (double)(one->size - 1) : 0.0;
        for (int64_t turn = 0; turn < one->size && one->first + turn < depth; turn++)
            sum += share * ((double)(above + 1) + (double)turn * more) /
                   (double)(one->first + turn + 1);
        above += one->hits;
    }
    return sum;
}

static double expected_within(const worker *at, int64_t depth) {
    double sum = 0;
    for (int64_t g = 0; g < at->n_groups && at->groups[g].first < depth; g++) {
        const group *one = &at->groups[g];
        const double places = (double)smaller(depth - one->first, one->size);
        sum += places * (double)one->hits / (double)one->size;
    }
    return sum;
}

/* Sum, over the places of the first group with a relevant document, of the probability that the
 * place holds the first relevant one; divided by its rank if `reciprocal`. */
static double expected_first(const worker *at, int64_t depth, bool reciprocal) {
    int64_t g = 0;
    while (g < at->n_groups && at->groups[g].hits == 0) g++;
    if (g == at->n_groups) return 0.0;
    const group *one = &at->groups[g];
    double sum = 0, before = 1;
    for (int64_t turn = 0; turn < one->size && one->first + turn < depth; turn++) {
        const double left = (double)(one->size - turn);
        const double chance = before * ((double)one->hits / left);
        sum += reciprocal ? chance / (double)(one->first + turn + 1) : chance;
        before *= ((double)(one->size - turn - one->hits)) / left;
        if (before <= 0) return reciprocal ? sum : 1.0; /* not 1 - 1e-16 */
    }
    return sum;
}

static double expected_dcg(worker *at, int64_t depth) {
    double sum = 0;
    for (int64_t g = 0; g < at->n_groups; g++) {
        const group *one = &at->groups[g];
        if (one->gain <= 0) continue;
        const double mean = one->gain / (double)one->size;
        for (int64_t turn = 0; turn < one->size && one->first + turn < depth; turn++)
            sum += mean / kgt_query_discount(&at->query, one->first + turn);
    }
    return sum;
}

static double expected(worker *at, const kgt_column *columns, int64_t c) {
    const kgt_column *column = &columns[c];
    const int64_t all = INT64_MAX, cutoff = (int64_t)column->parameter, n_rel = at->query.n_rel;
    const double relevant = (double)n_rel;
    switch (column->measure) {
        case KGT_MAP:
            return ratio(expected_precision_sum(at, all), relevant);
        case KGT_MAP_CUT:
            return ratio(expected_precision_sum(at, cutoff), relevant);
        case KGT_RELATIVE_MAP:
            return ratio(expected_precision_sum(at, cutoff), (double)smaller(n_rel, cutoff));
        case KGT_F1:
            return 2.0 * expected_within(at, cutoff) / (column->parameter + relevant);
        case KGT_P:
            return expected_within(at, cutoff) / (double)cutoff;
        case KGT_RECALL:
            return ratio(expected_within(at, cutoff), relevant);
        case KGT_RELATIVE_P:
            return ratio(expected_within(at, cutoff), (double)smaller(n_rel, cutoff));
        case KGT_RPREC:
            return ratio(expected_within(at, n_rel), relevant);
        case KGT_RECIP_RANK:
            return expected_first(at, all, true);
        case KGT_RECIP_RANK_CUT:
            return expected_first(at, cutoff, true);
        case KGT_SUCCESS:
            return expected_first(at, cutoff, false);
        case KGT_DCG:
            return expected_dcg(at, all);
        case KGT_NDCG:
            return ratio(expected_dcg(at, all), kgt_query_ideal_dcg(&at->query, all));
        case KGT_NDCG_CUT:
            return ratio(expected_dcg(at, cutoff), kgt_query_ideal_dcg(&at->query, cutoff));
        default:
            return at->greatest[c]; /* no order changes it, or it has no expectation */
    }
}

/* Values of the best and of the worst order; whether one differs by more than rounding. */
static bool compare(worker *at, const kgt_judged_lists *lists, int64_t i, const kgt_column *columns,
                    int64_t n_columns, double *most) {
    const int64_t offsets[2] = {0, at->n_members};
    const int64_t judged = lists->judged_query == NULL ? i : lists->judged_query[i];
    const kgt_judged_lists one = {1,
                                  offsets,
                                  at->rank,
                                  at->relevance,
                                  &lists->retrieved[i],
                                  &judged,
                                  lists->judged_offsets,
                                  lists->judged,
                                  lists->unjudged,
                                  lists->level};
    bool differs = false;
    for (int best = 0; best < 2; best++) {
        arrange(at, best);
        kgt_query_load(&at->query, &one, 0);
        for (int64_t c = 0; c < n_columns; c++)
            (best ? at->greatest : at->least)[c] = kgt_query_value(&at->query, &columns[c]);
    }
    for (int64_t c = 0; c < n_columns; c++) {
        const double gap = fabs(at->greatest[c] - at->least[c]);
        if (!(gap > ROUNDING * fmax(1.0, fabs(at->greatest[c])))) continue;
        differs = true;
        most[c] = fmax(most[c], gap);
    }
    at->query.lists = NULL; /* the lists end here */
    return differs;
}

static bool open_worker(worker *at, int64_t most, int64_t n_columns) {
    const size_t room = (size_t)most + 1, columns = (size_t)n_columns + 1;
    at->members = malloc(room * sizeof(member));
    at->groups = malloc(room * sizeof(group));
    at->rank = malloc(room * sizeof(int64_t));
    at->relevance = malloc(room * sizeof(int64_t));
    at->least = malloc(columns * sizeof(double));
    at->greatest = malloc(columns * sizeof(double));
    return kgt_query_open(&at->query, most) && at->members != NULL && at->groups != NULL &&
           at->rank != NULL && at->relevance != NULL && at->least != NULL && at->greatest != NULL;
}

static void close_worker(worker *at) {
    kgt_query_close(&at->query);
    free(at->members);
    free(at->groups);
    free(at->rank);
    free(at->relevance);
    free(at->least);
    free(at->greatest);
}

/* Whether documents of query i are tied; most queries are done here. */
static bool has_ties(const kgt_judged_lists *lists, const kgt_tied_places *ties, int64_t i) {
    for (int64_t d = lists->offsets[i]; d < lists->offsets[i + 1]; d++)
        if (ties->scores == NULL ? ties->size[d] > 1
                                 : d > lists->offsets[i] && ties->scores[d] == ties->scores[d - 1])
            return true;
    return false;
}

kgt_status kgt_trec_ties(const kgt_judged_lists *lists, const kgt_tied_places *ties,
                         const kgt_column *columns, int64_t n_columns, const kgt_tie_values *out) {
    worker at = {.members = NULL};
    bool sound = true;
    for (int64_t c = 0; c < n_columns; c++) out->most[c] = 0.0;
    for (int64_t i = 0; sound && i < lists->n_queries; i++) {
        out->differs[i] = has_ties(lists, ties, i);
        if (!out->differs[i]) continue;
        if (at.members == NULL) sound = open_worker(&at, kgt_most_documents(lists), n_columns);
        if (!sound) break;
        collect(&at, lists, ties, i);
        out->differs[i] = matters(&at);
        if (!out->differs[i]) continue;
        qsort(at.members, (size_t)at.n_members, sizeof(member), by_group_then_best);
        out->differs[i] = compare(&at, lists, i, columns, n_columns, out->most);
        if (!out->differs[i] || out->expected == NULL) continue;
        group_members(&at, lists->level);
        for (int64_t c = 0; c < n_columns; c++) {
            const int64_t cell = c * lists->n_queries + i;
            out->expected[cell] = expected(&at, columns, c);
            out->least[cell] = at.least[c];
            out->greatest[cell] = at.greatest[c];
        }
    }
    close_worker(&at);
    return sound ? KGT_OK : KGT_NO_MEMORY;
}
