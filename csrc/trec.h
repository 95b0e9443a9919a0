/* Run and qrels files. */
#ifndef KGT_TREC_H
#define KGT_TREC_H

#include <stdbool.h>
#include <stdint.h>

#include "kgt_status.h"

/* Short files have lines of three columns: query document value. */
typedef enum {
    KGT_RUN = 0,
    KGT_QRELS = 1,
    KGT_SHORT_RUN = 2,
    KGT_SHORT_QRELS = 3,
} kgt_trec_kind;

/* Bytes of a file. The last is a newline, which every scan relies on. Fields may hold any byte but
 * white space, NUL too. A file's first line is line 1. comments: whether lines that start with #
 * are skipped; otherwise they are lines like any other. */
typedef struct {
    const char *bytes;
    int64_t size;
    kgt_trec_kind kind;
    bool comments;
} kgt_text;

typedef enum {
    KGT_NO_FAULT = 0,
    KGT_BLANK_LINE = 1, /* in qrels */
    KGT_COLUMNS = 2,    /* not so many as there must be */
    KGT_SCORE = 3,      /* neither a decimal number nor an infinity */
    KGT_RELEVANCE = 4,  /* no whole number within int64, nor a decimal such as 1.0 up to 2^53 */
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
    int64_t n_comments;
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
 * size[j] bytes from text[begin[j]] on. Judgements have relevance; runs have scores, and as
 * relevance their ranks, if they are known. */
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
 * trec_file.c; that of qrels has four; those of short files have three. With a fault the rest of
 * the output is worth nothing. */
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
 * how many there were before depth. signs, (n): what may be wrong with each list.
 * ranked: names of documents lie in lines, before their ranks. Otherwise the relevance of
 * `documents` is their ranks, if they have any. */
typedef struct {
    const kgt_lines *lines;
    const kgt_documents *documents, *judged;
    const int64_t *judged_query;
    kgt_cut cut;
    int64_t unjudged;
    bool ranked;
} kgt_listing;

/* What shows whether a run is read as it was meant, of all documents of a query before the cut.
 * documents, judged: how many there are, and how many of them have a judgement.
 * rises: how many documents score more than the one before them in the input; -1 if any scores
 * less, or if the ranks confirm the scores.
 * upper, lower: two ranks, upper < lower, of which the lower one clearly has the higher score; both
 * 0 if ranks and scores agree. reversed: 1 if the first rank has the lowest score; then upper is
 * that rank. */
typedef struct {
    int64_t documents, judged, rises, upper, lower, reversed;
} kgt_signs;

kgt_status kgt_trec_lists(const kgt_listing *listing, int64_t first, int64_t n, int64_t *relevance,
                          double *scores, int64_t *length, int64_t *retrieved, kgt_signs *signs,
                          kgt_fault *fault);

/* Adds the signs of a query to those of others. rises stays -1 once it is; upper, lower and
 * reversed stay those of the first query that has them. */
void kgt_add_signs(kgt_signs *total, const kgt_signs *query);

/* Rises from which lists that all rise are a sign of distances; fewer may be chance. */
enum { KGT_RISES = 3 };

/* Judgements of a plain file, which kgt_trec_open_qrels reads: a file of `size` bytes about
 * which no caller must say anything. NULL for any other file, also of 1 or 2^31 bytes, and without
 * memory. A relevance up to `unjudged` is not plain either. The queries are in byte order. */
typedef struct kgt_trec_qrels kgt_trec_qrels;
kgt_trec_qrels *kgt_trec_open_qrels(const char *path, int64_t size, int64_t unjudged);
void kgt_trec_close_qrels(kgt_trec_qrels *qrels);

/* Whether that file had these bytes, the last of which is a newline. */
bool kgt_trec_same_qrels(const kgt_trec_qrels *qrels, const char *bytes, int64_t size);

/* Lists of a run: of n_queries queries n_shared are in the qrels, with the numbers `query`, in the
 * run's order. length, retrieved, relevance and scores as from kgt_trec_lists. tag: of the last
 * line. foreign: the first query in byte order that the qrels lack.
 */
typedef struct {
    int64_t n_queries, n_shared, n_documents, tag_size, foreign_size;
    int64_t *query, *length, *retrieved, *relevance;
    double *scores;
    char *tag, *foreign;
} kgt_trec_listed;

/* The lists of a plain file; false for any other file, or without memory. Free them always. */
bool kgt_trec_list_file(const kgt_trec_qrels *qrels, const char *path, int64_t size, kgt_cut cut,
                        kgt_trec_listed *out);
void kgt_trec_free_listed(kgt_trec_listed *listed);

/* Measures that follow from the places and the relevance of a query's judged documents. */
typedef enum {
    KGT_NUM_Q = 0,
    KGT_NUM_RET,
    KGT_NUM_REL,
    KGT_NUM_REL_RET,
    KGT_NUM_NONREL_JUDGED_RET,
    KGT_MAP,
    KGT_MAP_CUT,
    KGT_RELATIVE_MAP,
    KGT_GM_MAP,
    KGT_YAAP,
    KGT_BPREF,
    KGT_GM_BPREF,
    KGT_INFAP,
    KGT_RECIP_RANK,
    KGT_RECIP_RANK_CUT,
    KGT_P,
    KGT_RECALL,
    KGT_RELATIVE_P,
    KGT_F1,
    KGT_SUCCESS,
    KGT_RPREC,
    KGT_RPREC_MULT,
    KGT_IPREC,
    KGT_IPREC_9, /* of trec_eval 9 */
    KGT_BING,
    KGT_JUDGED_CUT,
    KGT_UNJ,
    KGT_SET_P,
    KGT_SET_RECALL,
    KGT_SET_RELATIVE_P,
    KGT_SET_MAP,
    KGT_SET_F,
    KGT_DCG,
    KGT_IDEAL_DCG,
    KGT_NDCG,
    KGT_NDCG_CUT,
    KGT_N_MEASURES,
} kgt_measure;

/* parameter: a cutoff, a recall point, a multiple or a beta, as the measure has. */
typedef struct {
    kgt_measure measure;
    double parameter;
} kgt_column;

/* Judged lists. Query i has the documents offsets[i] .. offsets[i + 1] - 1, best first: their
 * relevance (`unjudged`, or anything if they are left out) and their ranks from 0; where rank is
 * NULL, the number within the query. retrieved: documents in the run. judged: the relevance of all
 * judged documents, highest first, from judged_offsets[j] to judged_offsets[j + 1] - 1, where j is
 * judged_query[i], or i if that is NULL. A document is relevant from `level` on, and gains its
 * relevance from 1 on. */
typedef struct {
    int64_t n_queries;
    const int64_t *offsets, *rank, *relevance, *retrieved;
    const int64_t *judged_query, *judged_offsets, *judged;
    int64_t unjudged, level;
} kgt_judged_lists;

/* Writes values, (n_columns, n_queries). Sums run over the documents in order, one after the other:
 * they have trec_eval's bits. */
kgt_status kgt_trec_values(const kgt_judged_lists *lists, const kgt_column *columns,
                           int64_t n_columns, double *values);

/* What says which documents of judged lists tie: their scores, or, if those are NULL and the lists
 * have ranks and judged documents only, the first rank that has a document's score and how many
 * documents of the row do. */
typedef struct {
    const double *scores;
    const int64_t *first, *size;
} kgt_tied_places;

/* differs, (n_queries): whether the order of tied documents changes a measure by more than
 * rounding; most, (n_columns): by how much at most. least, greatest and expected, (n_columns,
 * n_queries) or NULL: the least, greatest and mean value over all orders, of the queries that
 * differ. Measures without a formula for the mean have the greatest there. */
typedef struct {
    uint8_t *differs;
    double *most, *least, *greatest, *expected;
} kgt_tie_values;

kgt_status kgt_trec_ties(const kgt_judged_lists *lists, const kgt_tied_places *ties,
                         const kgt_column *columns, int64_t n_columns, const kgt_tie_values *out);

/* Rows of scores: row i has n, from i * stride on, in the one dtype that is set; NaN: no document.
 * names: of the documents, n a row from i * names_stride on, or their positions if NULL; negative:
 * no document. `decimal`: in order of their decimal texts, else of the numbers. judged: names of
 * the judged documents of query judged_query[i], ascending, and their relevance. */
typedef struct {
    int64_t n_rows, n, stride, names_stride;
    const double *doubles;
    const float *singles;
    const int64_t *names;
    bool decimal;
    const int64_t *judged_query, *judged_offsets, *judged, *relevance;
} kgt_score_rows;

/* Judged documents, best first; first and size as in kgt_tied_places. */
typedef struct {
    int64_t *rank, *relevance, *first, *size;
} kgt_placed;

/* Writes what a row has of judged documents, one row after the other, and their number, count;
 * retrieved: documents of the row. out has room for every judged document; seen, which is 0, and
 * bounds have room for as many as a query has most. Returns the first row that has a judged
 * document twice, or -1. */
int64_t kgt_trec_places(const kgt_score_rows *rows, kgt_placed out, int64_t *count,
                        int64_t *retrieved, int64_t *seen, double *bounds);

/* The correctly rounded number that a field of a text is; false if it is none. The text goes on for
 * `size` bytes, the last of them a newline. */
bool kgt_trec_score(const char *text, int64_t size, double *score);

/* Names one after the other: name i has the bytes offsets[i] .. offsets[i + 1] - 1 of text. */
typedef struct {
    const char *text;
    const int64_t *offsets;
} kgt_names;

/* What the lines of a run share. Query i has the lines offsets[i] .. offsets[i + 1] - 1. */
typedef struct {
    kgt_names queries, documents;
    int64_t n_queries;
    const int64_t *offsets;
    const char *tag;
    int64_t tag_size;
} kgt_run_lines;

/* The lines first .. first + n - 1: the name of each one's document, and its score in the one of
 * the two dtypes that is set. */
typedef struct {
    int64_t first, n;
    const int64_t *document;
    const float *singles;
    const double *doubles;
} kgt_run_block;

/* Bytes that kgt_trec_write_run may touch. */
int64_t kgt_trec_run_capacity(const kgt_run_lines *run, const kgt_run_block *block);

/* Writes the lines "query Q0 document rank score tag", with ranks from 1 and the shortest decimals
 * of the scores (trec_decimal.h). Returns their size. */
int64_t kgt_trec_write_run(const kgt_run_lines *run, const kgt_run_block *block, char *out);

#endif
