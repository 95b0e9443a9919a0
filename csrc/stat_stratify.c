/* Stratified means over a grid of exponents.
 *
 * The inner part, a mean per relation, depends only on beta_e; beta_r weights the relations' means.
 * So a grid costs (beta_e x instances) + (beta_e x beta_r x relations) per metric. Powers are
 * computed only of the distinct popularities. */
#include <math.h>
#include <stdlib.h>
#include "stat.h"

/* Metrics added together: one or two vectors of the baseline's width. */
#define LANES 4
/* Triples summed before they are added to a relation's sum. So rounding errors of n terms grow with
 * RUN + n / RUN instead of n. */
#define RUN 64

typedef struct {
    double of[LANES];
} lanes;

typedef struct {
    const kgt_strata *strata;
    int64_t n_groups; /* of LANES metrics; the last is padded with zeros */
    lanes *values;    /* (n_groups, n_instances) in the order of the strata */
    lanes *within;    /* (n_groups, n_relations): means per relation at one beta_e */
    double *weight;   /* (n_popularities) at one beta_e */
    double *share;    /* (n_beta_r, n_relations) */
} scratch;

static void pack(scratch *at, const double *values, int64_t n_metrics, int64_t n_rows) {
    const kgt_strata *strata = at->strata;
    for (int64_t group = 0; group < at->n_groups; group++) {
        lanes *packed = at->values + group * strata->n_instances;
        for (int lane = 0; lane < LANES; lane++) {
            int64_t metric = group * LANES + lane;
            for (int64_t i = 0; i < strata->n_instances; i++)
                packed[i].of[lane] =
                    metric < n_metrics ? values[metric * n_rows + strata->row[i]] : 0.0;
        }
    }
}

static void raise_all(const double *popularity, int64_t n, double beta, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = pow(popularity[i], -beta);
}

/* Adds the weighted mean over one triple's one or two instances to `sum`. */
static inline void add_triple(const scratch *at, const lanes *values, int64_t triple, lanes *sum) {
    const kgt_strata *strata = at->strata;
    double norm = 0;
    lanes total = {{0}};
    for (int64_t i = strata->triples[triple]; i < strata->triples[triple + 1]; i++) {
        double weight = at->weight[strata->popularity_of[i]];
        norm += weight;
        for (int lane = 0; lane < LANES; lane++) total.of[lane] += weight * values[i].of[lane];
    }
    for (int lane = 0; lane < LANES; lane++) sum->of[lane] += total.of[lane] / norm;
}

static lanes mean_of_relation(const scratch *at, const lanes *values, int64_t relation) {
    int64_t triple = at->strata->relations[relation], end = at->strata->relations[relation + 1];
    double count = (double)(end - triple);
    lanes mean = {{0}};
    while (triple < end) {
        int64_t stop = end - triple > RUN ? triple + RUN : end;
        lanes run = {{0}};
        for (; triple < stop; triple++) add_triple(at, values, triple, &run);
        for (int lane = 0; lane < LANES; lane++) mean.of[lane] += run.of[lane];
    }
    for (int lane = 0; lane < LANES; lane++) mean.of[lane] /= count;
    return mean;
}

static void relation_means(scratch *at, double beta_e) {
    const kgt_strata *strata = at->strata;
    raise_all(strata->popularity, strata->n_popularities, beta_e, at->weight);
    for (int64_t group = 0; group < at->n_groups; group++) {
        const lanes *values = at->values + group * strata->n_instances;
        lanes *within = at->within + group * strata->n_relations;
        for (int64_t relation = 0; relation < strata->n_relations; relation++)
            within[relation] = mean_of_relation(at, values, relation);
    }
}

static lanes mix(const lanes *within, const double *share, int64_t n_relations) {
    double norm = 0;
    lanes mean = {{0}};
    for (int64_t relation = 0; relation < n_relations; relation++) {
        norm += share[relation];
        for (int lane = 0; lane < LANES; lane++)
            mean.of[lane] += share[relation] * within[relation].of[lane];
    }
    for (int lane = 0; lane < LANES; lane++) mean.of[lane] /= norm;
    return mean;
}

/* One beta_e: relation means, then every beta_r. */
static void fill_line(scratch *at, const kgt_grid *grid, int64_t e, double *out) {
    int64_t n_relations = at->strata->n_relations;
    relation_means(at, grid->beta_e[e]);
    for (int64_t group = 0; group < at->n_groups; group++) {
        const lanes *within = at->within + group * n_relations;
        for (int64_t r = 0; r < grid->n_beta_r; r++) {
            lanes mean = mix(within, at->share + r * n_relations, n_relations);
            for (int lane = 0; lane < LANES && group * LANES + lane < grid->n_metrics; lane++)
                out[((group * LANES + lane) * grid->n_beta_e + e) * grid->n_beta_r + r] =
                    mean.of[lane];
        }
    }
}

kgt_status kgt_stratify(const kgt_strata *strata, const kgt_grid *grid, double *out) {
    int64_t n_groups = (grid->n_metrics + LANES - 1) / LANES;
    int64_t n_values = n_groups * strata->n_instances, n_within = n_groups * strata->n_relations;
    int64_t n_shares = grid->n_beta_r * strata->n_relations;
    size_t n_lanes = (size_t)(n_values + n_within);
    size_t n_doubles = (size_t)(strata->n_popularities + n_shares);
    lanes *memory = malloc(n_lanes * sizeof(lanes) + n_doubles * sizeof(double) + 1);
    if (!memory) return KGT_NO_MEMORY;
    scratch at = {strata, n_groups, memory, memory + n_values, (double *)(memory + n_lanes), NULL};
    at.share = at.weight + strata->n_popularities;

    pack(&at, grid->values, grid->n_metrics, grid->n_rows);
    for (int64_t r = 0; r < grid->n_beta_r; r++)
        raise_all(strata->relation_popularity, strata->n_relations, grid->beta_r[r],
                  at.share + r * strata->n_relations);
    for (int64_t e = 0; e < grid->n_beta_e; e++) fill_line(&at, grid, e, out);
    free(memory);
    return KGT_OK;
}
