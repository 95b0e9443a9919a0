/* Qrels, and lists of runs by them, from plain files in one call each.
 *
 * A file is plain if nobody needs to be told anything about it: it has no fault, and no query's
 * last line has surplus columns. All others are left to the calls in parts, whose caller says what
 * is wrong. Queries of a run are read in the order of the qrels, the unjudged ones last.
 */
#include <stdio.h>
#include <stdlib.h>

#include "trec_file.h"

enum { FEW_GROUPS = 256 };

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

static bool read_bytes(file *at, const char *path, int64_t size, kgt_trec_kind kind) {
    if (size < 2 || size > INT32_MAX) return false;
    char *bytes = malloc((size_t)size + 1);
    at->text = (kgt_text){bytes, size, kind};
    FILE *from = bytes == NULL ? NULL : fopen(path, "rb");
    if (from == NULL) return false;
    bool whole = fread(bytes, 1, (size_t)size, from) == (size_t)size;
    fclose(from);
    /* Packed files and byte order marks begin with other bytes. */
    if (!whole || (unsigned char)bytes[0] > 126 || (unsigned char)bytes[1] > 126) return false;
    bytes[size] = '\n';
    at->text.size += bytes[size - 1] != '\n';
    return true;
}

static bool grow(int64_t **array, int64_t n) {
    int64_t *grown = realloc(*array, ((size_t)n + 1) * sizeof(int64_t));
    if (grown != NULL) *array = grown;
    return grown != NULL;
}

static bool find_groups(file *at) {
    kgt_scan scan = {.line = 1, .query = -1};
    for (int64_t room = FEW_GROUPS; scan.at < at->text.size; room *= 2) {
        if (!grow(&at->begin, room) || !grow(&at->line, room)) return false;
        at->n_groups += kgt_trec_groups(&at->text, at->text.size, room - at->n_groups, &scan,
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
    return read_bytes(at, path, size, kind) && find_groups(at) && find_queries(at);
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
    kgt_table_clear(names, at->n_queries);
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

/* The last line of a group that is neither blank nor a comment: its first line is such a line. */
static const char *last_line(const char *begin, const char *stop) {
    for (const char *end = stop - 1;; end--) {
        const char *start = end;
        while (start > begin && start[-1] != '\n') start--;
        const char *first = kgt_skip_space(start);
        if (start == begin || (*first != '\n' && *first != '#')) return start;
        end = start;
    }
}

/* Whether no query ends with a line of more than six columns. Finds the last line's tag. */
static bool check_ends(const file *run, kgt_field *tag) {
    for (int64_t i = 0; i < run->n_groups; i++) {
        const char *text = run->text.bytes;
        const char *at = last_line(text + run->begin[i], text + run->begin[i + 1]);
        for (int column = 0; column < 6; column++)
            if (!kgt_next_field(&at, tag)) return false;
        if (*kgt_skip_space(at) != '\n') return false;
    }
    return true;
}

/* Gives the run's queries their places: those of the qrels first, in their order. */
static bool match_queries(const kgt_trec_qrels *qrels, file *run, kgt_trec_listed *out) {
    const int64_t n = qrels->file.n_queries;
    int64_t *query_of = numbers(n), k = 0;
    out->query = numbers(run->n_queries);
    if (query_of != NULL && out->query != NULL) {
        for (int64_t i = 0; i < n; i++) query_of[i] = -1;
        for (int64_t i = 0; i < run->n_queries; i++) {
            const uint32_t size = (uint32_t)run->name_size[i];
            const uint32_t hash = kgt_hash_bytes(name_of(run, i), size);
            const kgt_entry *judged = kgt_table_find(&qrels->names, name_of(run, i), size, hash);
            run->place[i] = -1;
            if (judged != NULL) query_of[judged - qrels->names.entries] = i;
        }
        for (int64_t i = 0; i < n; i++) {
            if (query_of[i] < 0) continue;
            run->place[query_of[i]] = k;
            out->query[k++] = i;
        }
        out->n_shared = k;
        for (int64_t i = 0; i < run->n_queries; i++) {
            if (run->place[i] >= 0) continue;
            run->place[i] = k;
            out->query[k++] = -1;
        }
        arrange(run);
    }
    free(query_of);
    return out->query != NULL && k == run->n_queries;
}

static bool make_lists(const kgt_trec_qrels *qrels, const file *run, kgt_cut cut,
                       kgt_trec_listed *out) {
    const int64_t n = run->line[run->n_groups] - 1;
    const kgt_listing listing = {&run->lines, NULL, &qrels->documents,
                                 out->query,  cut,  qrels->unjudged};
    kgt_fault fault = {KGT_NO_FAULT, 0, 0};
    out->length = numbers(run->n_queries);
    out->retrieved = numbers(run->n_queries);
    out->relevance = numbers(n);
    out->scores = malloc(((size_t)n + 1) * sizeof(double));
    if (out->length == NULL || out->retrieved == NULL || out->relevance == NULL ||
        out->scores == NULL ||
        kgt_trec_lists(&listing, 0, run->n_queries, out->relevance, out->scores, out->length,
                       out->retrieved, &fault) != KGT_OK)
        return false;
    out->n_queries = run->n_queries;
    for (int64_t i = 0; i < out->n_shared; i++) out->n_documents += out->length[i];
    return fault.line == 0;
}

bool kgt_trec_list_file(const kgt_trec_qrels *qrels, const char *path, int64_t size, kgt_cut cut,
                        kgt_trec_listed *out) {
    file run = {.n_groups = 0};
    kgt_field tag = {NULL, NULL};
    *out = (kgt_trec_listed){.n_queries = 0};
    bool plain = open_file(&run, path, size, KGT_RUN) && match_queries(qrels, &run, out) &&
                 make_lists(qrels, &run, cut, out) && check_ends(&run, &tag);
    if (plain) {
        out->tag_size = tag.end - tag.begin;
        out->tag = malloc((size_t)out->tag_size + 1);
        plain = out->tag != NULL;
        if (plain) memcpy(out->tag, tag.begin, (size_t)out->tag_size);
    }
    close_file(&run);
    return plain;
}

void kgt_trec_free_listed(kgt_trec_listed *listed) {
    free(listed->query);
    free(listed->length);
    free(listed->retrieved);
    free(listed->relevance);
    free(listed->scores);
    free(listed->tag);
}
