/* kgtrec's native core: tie-aware filtered ranks of score rows, in one pass over each row.
 *
 * The only public header. No Python, no numpy, no threads: a caller splits the rows (or questions)
 * over its own threads, which is legal because calls on disjoint rows write disjoint memory and
 * read shared input only. All memory belongs to the caller; a call allocates scratch and frees it
 * before it returns.
 *
 * Bounds: ids are int32, so a graph has at most 2^31 - 1 entities; counts are int64 everywhere.
 */
#ifndef KGTREC_H
#define KGTREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    KGT_OK = 0,
    KGT_NO_MEMORY = 1,
    KGT_BAD_DTYPE = 2,
} kgt_status;

typedef enum { KGT_F16 = 0, KGT_BF16 = 1, KGT_F32 = 2, KGT_F64 = 3 } kgt_dtype;

/* Rows of int32 ids: row i is ids[offsets[i]] .. ids[offsets[i + 1] - 1]. */
typedef struct {
    const int64_t *offsets;
    const int32_t *ids;
} kgt_csr;

/* What is asked of every score row. A row's jobs are the answers whose counts are wanted. */
typedef struct {
    const int64_t *row_question; /* row -> index into known and removed */
    kgt_csr jobs;                /* per row: answers, strictly ascending ids */
    kgt_csr known;   /* per question, strictly ascending: taken out of micro candidates */
    kgt_csr removed; /* the same for macro (question-level) candidates; never holds a job's id */
    /* Restricted candidates: row_domain names the row of domain, strictly ascending ids, that holds
     * a task row's candidates, or is -1 for every entity; columns, if any, is the score column of
     * each of its ids. row_domain NULL: no row is restricted. */
    const int64_t *row_domain;
    kgt_csr domain;
    const int32_t *columns;
    const int32_t
        *position; /* id -> place in byte order of document names; NULL: ids are in order */
    const int32_t *entity_at; /* the inverse of position; NULL with it */
} kgt_task;

/* One value per job (index into task.jobs.ids), added to: counts over disjoint entity ranges sum
 * up. */
typedef struct {
    int64_t *greater, *equal, *tied_ahead;                   /* micro candidates */
    int64_t *macro_greater, *macro_equal, *macro_tied_ahead; /* macro candidates */
} kgt_counts;

/* The best macro candidates of every row, in trec order (score, then document name, both
 * descending). slot says where a task row's entities go, -1 for nowhere. ids and scores hold depth
 * places a slot; length says how many are used. NaN is never kept. scores are float for KGT_F16,
 * KGT_BF16 and KGT_F32, double for KGT_F64. depth 0: nothing is kept. */
typedef struct {
    int64_t depth;
    const int64_t *slot;
    int32_t *ids;
    void *scores;
    int32_t *length;
} kgt_best;

/* NaN met among the macro candidates of each row, and the first such entity (untouched when none).
 */
typedef struct {
    int64_t *count;
    int32_t *first_entity;
} kgt_nans;

/* A block of score rows over the entities first_entity .. first_entity + n_entities - 1. Strides in
 * bytes, of any sign; elements need no alignment. negate: lower is better. */
typedef struct {
    const void *data;
    kgt_dtype dtype;
    int64_t n_rows, n_entities;
    int64_t row_stride, entity_stride;
    int32_t first_entity;
    bool negate;
} kgt_scores;

/* Scores of jobs, read from rows that hold every entity (first_entity 0). out: one double per job.
 */
kgt_status kgt_job_scores(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                          double *out);

/* Rank a block of rows; block row i is task row first_row + i. job_scores as kgt_job_scores gives
 * them, or NULL where the rows hold every entity. */
kgt_status kgt_rank_rows(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                         const double *job_scores, const kgt_counts *counts, const kgt_best *best,
                         const kgt_nans *nans);

typedef enum { KGT_DOT = 0, KGT_L2 = 1, KGT_L1 = 2 } kgt_metric;

/* A factorised model: score(row, entity) from their vectors. C-contiguous float or double.
 * KGT_DOT: q.x + bias; KGT_L2: 2 q.x - x.x - q.q + bias = -|q - x|^2 + bias;
 * KGT_L1: bias - (|q1 - x1| + |q2 - x2| + ...), summed in ascending dimension.
 * Every dot product is one chain of fused multiply-adds over ascending dimensions, so a (row,
 * entity) score has the same bits in every tile, thread, range and kernel path. */
typedef struct {
    const void *queries;  /* (n_rows, dim) of the rows ranked in this call */
    const void *entities; /* (n_entities, dim), the first is first_entity */
    const void *bias;     /* (n_entities) or NULL */
    kgt_dtype dtype;      /* KGT_F32 or KGT_F64 */
    kgt_metric metric;
    int64_t n_rows, n_entities, dim;
    int32_t first_entity;
    /* The table of entities is stored in float16 (with dtype KGT_F32): widened as it is packed. */
    bool half_entities;
    /* NULL, or the entities to rank: ascending rows of the table `entities`, whose first row is
     * entity first_entity; n_entities then counts them. */
    const int32_t *ids;
} kgt_factors;

/* As kgt_job_scores; jobs that the table of entities does not hold are left alone. */
kgt_status kgt_factor_job_scores(const kgt_factors *factors, const kgt_task *task,
                                 int64_t first_row, double *out);

/* As kgt_rank_rows, scored tile by tile: the score matrix never exists. */
kgt_status kgt_rank_factors(const kgt_factors *factors, const kgt_task *task, int64_t first_row,
                            const double *job_scores, const kgt_counts *counts,
                            const kgt_best *best, const kgt_nans *nans);

/* The scores themselves, (n_rows, n_entities) row after row, with the same bits as above. */
kgt_status kgt_factor_scores(const kgt_factors *factors, void *out);

/* -- From ranks to numbers -- */

/* Tied answers: `greater` candidates stand above `size` tied ones, `answers` of which are right.
 * 0 <= greater, 1 <= answers <= size, greater + size < 2^53. */
typedef struct {
    int64_t n;
    const int64_t *greater, *size, *answers;
} kgt_ties;

/* Expectations over all orders of each tie, into n doubles: 1 / rank of the first answer, the
 * chance that it ranks within k, and ln rank (of one answer; `answers` is not read). */
void kgt_expected_reciprocal(const kgt_ties *ties, double *out);
void kgt_expected_hits(const kgt_ties *ties, int64_t k, double *out);
void kgt_expected_log(const kgt_ties *ties, double *out);

/* Instances by triple, triples by relation, and the popularities that weigh them. Triple t holds
 * the instances triples[t] .. triples[t + 1] - 1; relation r holds triples in the same way. */
typedef struct {
    int64_t n_relations, n_triples, n_instances, n_popularities;
    const int64_t *relations, *triples; /* n_relations + 1, n_triples + 1 */
    const int64_t *row;                 /* instance -> column of kgt_grid.values */
    const int32_t *popularity_of;       /* instance -> place in popularity */
    const double *popularity;           /* the distinct ones of the predicted entities */
    const double *relation_popularity;  /* per relation */
} kgt_strata;

/* What is averaged, and where. values: (n_metrics, n_rows), row after row. */
typedef struct {
    const double *values, *beta_e, *beta_r;
    int64_t n_metrics, n_rows, n_beta_e, n_beta_r;
} kgt_grid;

/* Stratified means, (n_metrics, n_beta_e, n_beta_r): instances with weight popularity^-beta_e
 * within triples, triples equally within relations, relations with weight popularity^-beta_r.
 * float64 sums in the order of the strata. A triple, or all relations, without any weight give NaN.
 */
kgt_status kgt_stratify(const kgt_strata *strata, const kgt_grid *grid, double *out);

/* Values to sum under random signs: (n_rows, n_columns), row after row. */
typedef struct {
    const double *values;
    int64_t n_rows, n_columns;
    uint64_t seed;
} kgt_paired;

/* Sums of every column under the random signs of permutations first .. first + n - 1, into
 * (n, n_columns). A permutation gives each row one sign, the same for all columns; it depends on
 * the seed, the permutation and the row only, and terms are added in the order of the rows. */
void kgt_sign_sums(const kgt_paired *paired, int64_t first, int64_t n, double *out);

/* -- Run and qrels files -- */

typedef enum { KGT_RUN = 0, KGT_QRELS = 1 } kgt_trec_kind;

/* Bytes of a file. The last is a newline, which every scan relies on. Fields may hold any byte but
 * white space, NUL too. A file's first line is line 1. */
typedef struct {
    const char *bytes;
    int64_t size;
    kgt_trec_kind kind;
} kgt_text;

typedef enum {
    KGT_NO_FAULT = 0,
    KGT_BLANK_LINE = 1, /* in qrels */
    KGT_COLUMNS = 2,    /* not so many as there must be */
    KGT_SCORE = 3,      /* neither a decimal number nor an infinity */
    KGT_RELEVANCE = 4,  /* no whole number within int64 */
    KGT_DUPLICATE = 5,  /* a document that its query has already */
    KGT_LONG_NAME = 6,  /* of 2^31 bytes or more */
} kgt_fault_kind;

/* The first faulty line that a call has met (line 0: none yet), and where it begins. For documents
 * that come from no text, line is one more than the place of the document. */
typedef struct {
    kgt_fault_kind kind;
    int64_t line, begin;
} kgt_fault;

/* How far the groups are known: the next byte, the start of a line, and that line's number. */
typedef struct {
    int64_t at, line;
    int64_t query; /* where the last group begins, or -1 */
    kgt_fault fault;
} kgt_scan;

/* Finds groups: runs of lines with the same query, blank lines and comments among them included.
 * Group i begins with line line[i] at byte begin[i] and ends where the next begins. Goes on until
 * byte `stop` or until `capacity` groups are found; returns their number. The text may be scanned
 * in parts that start at a line's start: a query can have several groups anyway. The only faults
 * that it can see are blank lines in qrels, which the functions below skip. */
int64_t kgt_trec_groups(const kgt_text *text, int64_t stop, int64_t capacity, kgt_scan *scan,
                        int64_t *begin, int64_t *line);

/* Numbers the queries of n groups in order of appearance: query_of, (n); name_begin and name_size,
 * up to n, say where their names stand. n_queries: how many there are. */
kgt_status kgt_trec_queries(const kgt_text *text, int64_t n, const int64_t *begin,
                            int64_t *query_of, int64_t *name_begin, int64_t *name_size,
                            int64_t *n_queries);

/* The lines of every query: query i has the groups group[first[i]] .. group[first[i + 1] - 1],
 * ascending. begin and line have one entry more than there are groups: the end of the text. */
typedef struct {
    const kgt_text *text;
    const int64_t *first, *group, *begin, *line;
} kgt_lines;

/* Documents of queries: query i has those from offsets[i] to offsets[i + 1] - 1, whose names are
 * size[j] bytes from text[begin[j]] on. Either scores or relevance is set. */
typedef struct {
    const char *text;
    const int64_t *offsets, *begin;
    const int32_t *size;
    const double *scores;
    const int64_t *relevance;
} kgt_documents;

/* Documents of the queries first .. first + n - 1, in the order of the lines, one query after the
 * other: the fields of kgt_documents, but count, (n), for offsets. A query has room for as many as
 * its groups have lines. Scores correctly rounded. A run's line has six columns or more, see
 * trecfile.c; that of qrels has four. With a fault the rest of the output is worth nothing. */
kgt_status kgt_trec_documents(const kgt_lines *lines, int64_t first, int64_t n, int64_t *begin,
                              int32_t *size, double *scores, int64_t *relevance, int64_t *count,
                              kgt_fault *fault);

/* Which documents of a query are listed: if judged_only, those with a relevance of 0 or more; of
 * these the best `depth`, and if keep_ties all that score the same as the last of them. single:
 * scores are rounded to float before they are compared. */
typedef struct {
    int64_t depth;
    bool keep_ties, judged_only, single;
} kgt_cut;

/* Lists as trec_eval sees them: documents by score, then by name in bytes, both descending. Either
 * lines (of a run) or documents (with scores) is set. judged_query names the query of `judged` that
 * a query has, or -1: then its lines are checked, and nothing is listed.
 * The queries first .. first + n - 1 write their documents one after the other to relevance
 * (`unjudged` where there is none) and scores; length and retrieved, (n): how many are listed, and
 * how many there were before depth. */
typedef struct {
    const kgt_lines *lines;
    const kgt_documents *documents, *judged;
    const int64_t *judged_query;
    kgt_cut cut;
    int64_t unjudged;
} kgt_listing;

kgt_status kgt_trec_lists(const kgt_listing *listing, int64_t first, int64_t n, int64_t *relevance,
                          double *scores, int64_t *length, int64_t *retrieved, kgt_fault *fault);

/* The correctly rounded number that a field of a text is; false if it is none. The text goes on for
 * `size` bytes, the last of them a newline. */
bool kgt_trec_score(const char *text, int64_t size, double *score);

/* Kernel paths: names of those that this build and machine can run, best first; NULL past the last.
 */
const char *kgt_path_name(int index);
const char *kgt_path_active(void);
/* Force a path by name (NULL: back to the best). False when it is not available. */
bool kgt_path_force(const char *name);

#endif
