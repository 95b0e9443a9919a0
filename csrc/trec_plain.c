/* Qrels, and lists of runs by them, from plain files in one call each.
 *
 * A file is plain if nobody needs to be told anything about it: it has no fault and no line that
 * starts with #, no query's last line has surplus columns, and nothing shows that a run is not read
 * as it was meant. A plain run also has each query's lines together, so that one pass
 * suffices. All others are left to the calls in parts, whose caller says what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "trec_file.h"

enum { FEW = 256 };

/* A file by query. place: of each query, in order of appearance. */
typedef struct {
    kgt_text text;
    kgt_lines lines;
    int64_t n_groups, n_queries;
    int64_t *begin, *line, *query_of, *name_begin, *name_size, *place, *first, *group;
} file;

struct kgt_trec_qrels {
    file file;
    kgt_documents documents;
    int64_t *offsets, *begin, *relevance;
    int32_t *size;
    kgt_table names; /* in byte order */
    int64_t unjudged;
};

static int64_t *numbers(int64_t n) { return malloc(((size_t)n + 1) * sizeof(int64_t)); }

/* ---- a file by query ---- */

/* Whether a line starts with #. */
static bool has_comment(const char *bytes, int64_t size) {
    const char *end = bytes + size, *mark = bytes;
    while ((mark = memchr(mark, '#', (size_t)(end - mark))) != NULL) {
        const char *before = mark++;
        while (before > bytes && before[-1] != '\n' && kgt_is_space(before[-1])) before--;
        if (before == bytes || before[-1] == '\n') return true;
    }
    return false;
}

static bool read_bytes(kgt_text *text, const char *path, int64_t size, kgt_trec_kind kind) {
    if (size < 2 || size > INT32_MAX) return false;
    char *bytes = malloc((size_t)size + 1);
    *text = (kgt_text){bytes, size, kind, true};
    FILE *from = bytes == NULL ? NULL : fopen(path, "rb");
    if (from == NULL) return false;
    bool whole = fread(bytes, 1, (size_t)size, from) == (size_t)size;
    fclose(from);
    /* Packed files and byte order marks begin with other bytes. */
    if (!whole || (unsigned char)bytes[0] > 126 || (unsigned char)bytes[0] < '\t' ||
        (unsigned char)bytes[1] > 126)
        return false;
    bytes[size] = '\n';
    text->size += bytes[size - 1] != '\n';
    return !has_comment(bytes, size);
}

static bool grow(int64_t **array, int64_t n) {
    int64_t *grown = realloc(*array, ((size_t)n + 1) * sizeof(int64_t));
    if (grown != NULL) *array = grown;
    return grown != NULL;
}

static bool find_groups(file *at) {
    kgt_scan scan = {.line = 1, .query = -1};
    for (int64_t capacity = FEW; scan.at < at->text.size; capacity *= 2) {
        if (!grow(&at->begin, capacity) || !grow(&at->line, capacity)) return false;
        at->n_groups += kgt_trec_groups(&at->text, at->text.size, capacity - at->n_groups, &scan,
                                        at->begin + at->n_groups, at->line + at->n_groups);
    }
    if (at->n_groups == 0 || scan.fault.line != 0) return false;
    at->begin[at->n_groups] = at->text.size;
    at->line[at->n_groups] = scan.line;
    return true;
}

static bool find_queries(file *at) {
    at->query_of = numbers(at->n_groups);
    at->name_begin = numbers(at->n_groups);
    at->name_size = numbers(at->n_groups);
    at->place = numbers(at->n_groups);
    at->group = numbers(at->n_groups);
    at->first = calloc((size_t)at->n_groups + 2, sizeof(int64_t));
    return at->query_of != NULL && at->name_begin != NULL && at->name_size != NULL &&
           at->place != NULL && at->group != NULL && at->first != NULL &&
           kgt_trec_queries(&at->text, at->n_groups, at->begin, at->query_of, at->name_begin,
                            at->name_size, &at->n_queries) == KGT_OK;
}

static bool open_file(file *at, const char *path, int64_t size, kgt_trec_kind kind) {
    return read_bytes(&at->text, path, size, kind) && find_groups(at) && find_queries(at);
}

static void close_file(file *at) {
    int64_t *arrays[] = {at->begin,     at->line,  at->query_of, at->name_begin,
                         at->name_size, at->place, at->first,    at->group};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    free((char *)at->text.bytes);
}

static const char *name_of(const file *at, int64_t query) {
    return at->text.bytes + at->name_begin[query];
}

/* Orders the groups by the places of their queries. */
static void arrange(file *at) {
    for (int64_t i = 0; i < at->n_groups; i++) at->first[at->place[at->query_of[i]] + 2]++;
    for (int64_t i = 2; i <= at->n_queries; i++) at->first[i] += at->first[i - 1];
    for (int64_t i = 0; i < at->n_groups; i++)
        at->group[at->first[at->place[at->query_of[i]] + 1]++] = i;
    at->lines = (kgt_lines){&at->text, at->first, at->group, at->begin, at->line};
}

/* ---- qrels ---- */

static int in_byte_order(const void *a, const void *b) {
    const kgt_entry *x = a, *y = b;
    return kgt_compare_bytes(x->name, x->size, y->name, y->size);
}

/* Sorts the names, and makes a table of them. */
static bool order_names(kgt_trec_qrels *qrels) {
    file *at = &qrels->file;
    kgt_table *names = &qrels->names;
    if (!kgt_table_open(names, at->n_queries)) return false;
    for (int64_t i = 0; i < at->n_queries; i++) {
        const uint32_t size = (uint32_t)at->name_size[i];
        const uint32_t hash = kgt_hash_bytes(name_of(at, i), size);
        names->entries[i] = (kgt_entry){name_of(at, i), size, hash, 0, i};
    }
    qsort(names->entries, (size_t)at->n_queries, sizeof(kgt_entry), in_byte_order);
    for (int64_t i = 0; i < at->n_queries; i++) {
        at->place[names->entries[i].relevance] = i;
        kgt_table_add(names);
    }
    arrange(at);
    return true;
}

static bool read_documents(kgt_trec_qrels *qrels) {
    file *at = &qrels->file;
    const int64_t n = at->line[at->n_groups] - 1;
    kgt_fault fault = {KGT_NO_FAULT, 0, 0};
    qrels->offsets = numbers(at->n_queries);
    qrels->begin = numbers(n);
    qrels->relevance = numbers(n);
    qrels->size = malloc(((size_t)n + 1) * sizeof(int32_t));
    if (qrels->offsets == NULL || qrels->begin == NULL || qrels->relevance == NULL ||
        qrels->size == NULL ||
        kgt_trec_documents(&at->lines, 0, at->n_queries, qrels->begin, qrels->size, NULL,
                           qrels->relevance, qrels->offsets + 1, &fault) != KGT_OK ||
        fault.line != 0)
        return false;
    qrels->offsets[0] = 0;
    for (int64_t i = 0; i < at->n_queries; i++) qrels->offsets[i + 1] += qrels->offsets[i];
    for (int64_t i = 0; i < qrels->offsets[at->n_queries]; i++)
        if (qrels->relevance[i] <= qrels->unjudged) return false;
    qrels->documents = (kgt_documents){at->text.bytes, qrels->offsets, qrels->begin,
                                       qrels->size,    NULL,           qrels->relevance};
    return true;
}

kgt_trec_qrels *kgt_trec_open_qrels(const char *path, int64_t size, int64_t unjudged) {
    kgt_trec_qrels *qrels = calloc(1, sizeof *qrels);
    if (qrels == NULL) return NULL;
    qrels->unjudged = unjudged;
    if (open_file(&qrels->file, path, size, KGT_QRELS) && order_names(qrels) &&
        read_documents(qrels))
        return qrels;
    kgt_trec_close_qrels(qrels);
    return NULL;
}

void kgt_trec_close_qrels(kgt_trec_qrels *qrels) {
    if (qrels == NULL) return;
    close_file(&qrels->file);
    kgt_table_close(&qrels->names);
    free(qrels->offsets);
    free(qrels->begin);
    free(qrels->relevance);
    free(qrels->size);
    free(qrels);
}

bool kgt_trec_same_qrels(const kgt_trec_qrels *qrels, const char *bytes, int64_t size) {
    return size == qrels->file.text.size &&
           memcmp(bytes, qrels->file.text.bytes, (size_t)size) == 0;
}

/* ---- runs ---- */

typedef struct {
    const kgt_trec_qrels *qrels;
    kgt_text text;
    kgt_listing listing;
    kgt_lister lister;
    kgt_table names;
    kgt_field tag, foreign;
    kgt_signs signs;
    int64_t query_capacity, document_capacity;
} run;

/* Whether the last line of a query has six columns. Keeps the tag. */
static bool check_end(run *at, const char *line) {
    for (int column = 0; column < 6; column++)
        if (!kgt_next_field(&line, &at->tag)) return false;
    return *kgt_skip_space(line) == '\n';
}

enum { UNJUDGED = -1, REPEATED = -2 };

/* The query's number in the qrels, or UNJUDGED; REPEATED also without memory. */
static int64_t number_of(run *at, kgt_field query) {
    const uint32_t size = (uint32_t)(query.end - query.begin);
    const uint32_t hash = kgt_hash_bytes(query.begin, size);
    if (!kgt_table_grow(&at->names)) return REPEATED;
    at->names.entries[at->names.n] = (kgt_entry){query.begin, size, hash, 0, 0};
    if (!kgt_table_add(&at->names)) return REPEATED;
    const kgt_table *judged = &at->qrels->names;
    const kgt_entry *entry = kgt_table_find(judged, query.begin, size, hash);
    return entry == NULL ? UNJUDGED : entry - judged->entries;
}

static bool reserve(run *at, kgt_trec_listed *out, int64_t documents) {
    if (out->n_shared == at->query_capacity) {
        const int64_t capacity = at->query_capacity = 2 * at->query_capacity + FEW;
        if (!grow(&out->query, capacity) || !grow(&out->length, capacity) ||
            !grow(&out->retrieved, capacity))
            return false;
    }
    if (out->n_documents + documents <= at->document_capacity) return true;
    const int64_t capacity = at->document_capacity = 2 * (out->n_documents + documents) + FEW;
    double *scores = realloc(out->scores, (size_t)capacity * sizeof(double));
    if (scores != NULL) out->scores = scores;
    return scores != NULL && grow(&out->relevance, capacity);
}

static bool list_query(run *at, kgt_trec_listed *out, int64_t number) {
    const int64_t n = at->lister.table.n, i = out->n_shared, used = out->n_documents;
    const kgt_cut *cut = &at->listing.cut;
    if (!reserve(at, out, cut->keep_ties || n < cut->depth ? n : cut->depth)) return false;
    out->query[i] = number;
    kgt_signs signs;
    out->length[i] = kgt_list_query(&at->lister, &at->listing, number, &out->retrieved[i],
                                    out->relevance + used, out->scores + used, &signs);
    kgt_add_signs(&at->signs, &signs);
    if (out->length[i] < 0 || signs.upper != signs.lower) return false;
    out->n_documents += out->length[i];
    out->n_shared++;
    return true;
}

/* Keeps the first query in byte order that the qrels lack. */
static void keep_foreign(run *at, kgt_field query) {
    const kgt_field kept = at->foreign;
    if (kept.begin == NULL || kgt_compare_bytes(query.begin, (uint32_t)(query.end - query.begin),
                                                kept.begin, (uint32_t)(kept.end - kept.begin)) < 0)
        at->foreign = query;
}

/* Whether nothing about the lists needs to be said. */
static bool is_plain(const run *at, const kgt_trec_listed *out) {
    const kgt_signs *signs = &at->signs;
    const bool any_judged = signs->judged > 0 || signs->documents == 0;
    return out->n_queries > 0 && any_judged && signs->rises < KGT_RISES;
}

static char *copy_of(kgt_field field, int64_t *size) {
    *size = field.end - field.begin;
    char *copy = malloc((size_t)*size + 1);
    if (copy != NULL && *size > 0) memcpy(copy, field.begin, (size_t)*size);
    return copy;
}

static bool list_queries(run *at, kgt_trec_listed *out) {
    const char *line = at->text.bytes, *last;
    kgt_field query;
    while (kgt_load_next(&at->text, &line, &at->lister.table, &query, &last)) {
        if (at->lister.table.n == 0) return is_plain(at, out);
        const int64_t number = number_of(at, query);
        if (number == REPEATED || !check_end(at, last)) return false;
        if (number == UNJUDGED)
            keep_foreign(at, query);
        else if (!list_query(at, out, number))
            return false;
        out->n_queries++;
    }
    return false;
}

bool kgt_trec_list_file(const kgt_trec_qrels *qrels, const char *path, int64_t size, kgt_cut cut,
                        kgt_trec_listed *out) {
    run at = {.qrels = qrels,
              .listing = {NULL, NULL, &qrels->documents, NULL, cut, qrels->unjudged, true}};
    *out = (kgt_trec_listed){.n_queries = 0};
    bool plain = kgt_open_lister(&at.lister, FEW);
    plain = kgt_table_open(&at.names, FEW) && plain;
    plain = plain && read_bytes(&at.text, path, size, KGT_RUN) && list_queries(&at, out);
    if (plain) {
        out->tag = copy_of(at.tag, &out->tag_size);
        out->foreign = copy_of(at.foreign, &out->foreign_size);
        plain = out->tag != NULL && out->foreign != NULL;
    }
    kgt_close_lister(&at.lister);
    kgt_table_close(&at.names);
    free((char *)at.text.bytes);
    return plain;
}

void kgt_trec_free_listed(kgt_trec_listed *listed) {
    free(listed->query);
    free(listed->length);
    free(listed->retrieved);
    free(listed->relevance);
    free(listed->scores);
    free(listed->tag);
    free(listed->foreign);
}
