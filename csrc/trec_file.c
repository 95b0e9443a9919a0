/* Run and qrels files: groups of lines, and the documents in a query's lines.
 *
 * Lines are
 *
 *     query iter document rank score tag       of a run
 *     query iter document relevance            of qrels
 *
 * with any white space between and around. Lines that start with # are comments. Blank lines of a
 * run are skipped. trec_eval ignores what follows the tag, and misreads a document name that
 * contains a space. So further columns are accepted only if nothing suggests a shift: the rank is
 * a whole number, and the tag is not a number.
 *
 * A query's lines are read independently of others, so threads can share the queries. The text is
 * read only; results go to memory that the caller owns.
 */
#include "trec_file.h"

#include <stdlib.h>

#include "trec_decimal.h"

/* ---- groups ---- */

/* Whether the line at `at` begins with that query; `left` bytes of text remain. */
static bool same_query(const char *at, int64_t left, kgt_field query) {
    int64_t size = query.end - query.begin;
    return size < left && kgt_same_bytes(at, query.begin, (size_t)size) && kgt_is_space(at[size]);
}

static kgt_field field_at(const char *at) {
    kgt_field field = {at, at};
    kgt_next_field(&at, &field);
    return field;
}

int64_t kgt_trec_groups(const kgt_text *text, int64_t stop, int64_t capacity, kgt_scan *scan,
                        int64_t *begin, int64_t *line) {
    const char *end = text->bytes + text->size, *at = text->bytes + scan->at;
    kgt_field query = {NULL, NULL};
    int64_t n_groups = 0;
    if (scan->query >= 0) query = field_at(text->bytes + scan->query);
    for (; at < text->bytes + stop; scan->line++) {
        const char *start = at;
        kgt_fetch_ahead(at);
        if (query.begin != NULL && same_query(at, end - at, query)) {
            at += query.end - query.begin;
        } else if (at = kgt_skip_space(at), *at == '\n') {
            if (text->kind == KGT_QRELS)
                kgt_note_fault(&scan->fault, KGT_BLANK_LINE, scan->line, start - text->bytes);
        } else if (*at != '#' && (query.begin == NULL || !same_query(at, end - at, query))) {
            if (n_groups == capacity) {
                at = start;
                break;
            }
            query = field_at(at);
            scan->query = begin[n_groups] = start - text->bytes;
            line[n_groups++] = scan->line;
        }
        at = kgt_line_end(at, end) + 1;
    }
    scan->at = at - text->bytes;
    return n_groups;
}

kgt_status kgt_trec_queries(const kgt_text *text, int64_t n, const int64_t *begin,
                            int64_t *query_of, int64_t *name_begin, int64_t *name_size,
                            int64_t *n_queries) {
    kgt_table table;
    if (!kgt_table_open(&table, n)) return KGT_NO_MEMORY;
    kgt_table_clear(&table, n);
    for (int64_t i = 0; i < n; i++) {
        kgt_field name = field_at(text->bytes + begin[i]);
        size_t size = (size_t)(name.end - name.begin);
        uint32_t hash = kgt_hash_bytes(name.begin, size);
        kgt_entry *known = kgt_table_find(&table, name.begin, (uint32_t)size, hash);
        if (known != NULL) {
            query_of[i] = known - table.entries;
            continue;
        }
        query_of[i] = table.n;
        name_begin[table.n] = name.begin - text->bytes;
        name_size[table.n] = (int64_t)size;
        table.entries[table.n] =
            (kgt_entry){.name = name.begin, .size = (uint32_t)size, .hash = hash};
        kgt_table_add(&table);
    }
    *n_queries = table.n;
    kgt_table_close(&table);
    return KGT_OK;
}

/* ---- documents of a query ---- */

bool kgt_table_open(kgt_table *table, int64_t most) {
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)most) slots *= 2;
    table->entries = malloc(((size_t)most + 1) * sizeof(kgt_entry));
    table->slots = malloc((size_t)slots * sizeof(uint64_t));
    if (table->entries != NULL && table->slots != NULL && most < UINT32_MAX) return true;
    kgt_table_close(table);
    return false;
}

void kgt_table_close(kgt_table *table) {
    free(table->entries);
    free(table->slots);
}

void kgt_table_clear(kgt_table *table, int64_t most) {
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)most) slots *= 2;
    table->mask = slots - 1;
    table->n = 0;
    memset(table->slots, 0, (size_t)slots * sizeof(uint64_t));
}

/* The slot of that name, or the free slot for it. */
static uint64_t *slot_of(const kgt_table *table, const char *name, uint32_t size, uint32_t hash) {
    for (uint64_t at = hash;; at++) {
        uint64_t *slot = &table->slots[at & table->mask];
        if (*slot == 0) return slot;
        if (*slot >> 32 != hash) continue;
        const kgt_entry *other = &table->entries[(uint32_t)*slot - 1];
        if (other->size == size && kgt_same_bytes(other->name, name, size)) return slot;
    }
}

kgt_entry *kgt_table_find(const kgt_table *table, const char *name, uint32_t size, uint32_t hash) {
    uint64_t slot = *slot_of(table, name, size, hash);
    return slot == 0 ? NULL : &table->entries[(uint32_t)slot - 1];
}

bool kgt_table_add(kgt_table *table) {
    const kgt_entry *entry = &table->entries[table->n];
    uint64_t *slot = slot_of(table, entry->name, entry->size, entry->hash);
    if (*slot != 0) return false;
    *slot = (uint64_t)entry->hash << 32 | (uint64_t)++table->n;
    return true;
}

/* ---- lines ---- */

void kgt_note_fault(kgt_fault *fault, kgt_fault_kind kind, int64_t line, int64_t begin) {
    if (fault->line == 0 || line < fault->line) *fault = (kgt_fault){kind, line, begin};
}

static bool is_decimal(const char *at, const char *end) {
    double value;
    return kgt_read_decimal(at, end, &value) != NULL;
}

/* Whether surplus columns are harmless, not a sign of white space in the document's name. */
static bool may_have_more(kgt_field rank, kgt_field tag, const char *end) {
    int64_t value;
    return kgt_read_whole(rank.begin, &value) != NULL && !is_decimal(tag.begin, end);
}

/* Reads the line whose first field is at *line; moves *line to its end unless it has a fault. */
static kgt_fault_kind read_run_line(const char **line, const char *end, kgt_field *document,
                                    double *score) {
    const char *at = *line, *ends[6];
    kgt_field skipped, rank, tag;
    if (kgt_split_plain(at, end, 6, ends) && (kgt_read_short_decimal(ends[3] + 1, ends[4], score) ||
                                              kgt_read_decimal(ends[3] + 1, end, score) != NULL)) {
        *document = (kgt_field){ends[1] + 1, ends[2]};
        *line = ends[5];
        return KGT_NO_FAULT;
    }
    if (!kgt_next_field(&at, &skipped) || !kgt_next_field(&at, &skipped) ||
        !kgt_next_field(&at, document) || !kgt_next_field(&at, &rank))
        return KGT_COLUMNS;
    const char *number = kgt_skip_space(at);
    at = kgt_read_decimal(number, end, score);
    bool wrong = at == NULL;
    if (wrong) at = kgt_field_end(number);
    if (!kgt_next_field(&at, &tag)) return KGT_COLUMNS;
    at = kgt_skip_space(at);
    if (*at != '\n') {
        if (!may_have_more(rank, tag, end)) return KGT_COLUMNS;
        at = kgt_line_end(at, end);
    }
    *line = at;
    return wrong ? KGT_SCORE : KGT_NO_FAULT;
}

static kgt_fault_kind read_qrels_line(const char **line, kgt_field *document, int64_t *relevance) {
    const char *at = *line;
    kgt_field skipped, number;
    if (!kgt_next_field(&at, &skipped) || !kgt_next_field(&at, &skipped) ||
        !kgt_next_field(&at, document) || !kgt_next_field(&at, &number) ||
        *(*line = kgt_skip_space(at)) != '\n')
        return KGT_COLUMNS;
    return kgt_read_whole(number.begin, relevance) != NULL ? KGT_NO_FAULT : KGT_RELEVANCE;
}

/* Adds the line at *line as the table's next document; *line moves to its end. */
static kgt_fault_kind load_line(const kgt_text *text, const char **line, kgt_table *table) {
    kgt_entry *entry = &table->entries[table->n];
    kgt_field document;
    kgt_fault_kind kind =
        text->kind == KGT_RUN
            ? read_run_line(line, text->bytes + text->size, &document, &entry->score)
            : read_qrels_line(line, &document, &entry->relevance);
    if (kind != KGT_NO_FAULT) return kind;
    if (document.end - document.begin > INT32_MAX) return KGT_LONG_NAME;
    entry->name = document.begin;
    entry->size = (uint32_t)(document.end - document.begin);
    entry->hash = kgt_hash_bytes(entry->name, entry->size);
    return kgt_table_add(table) ? KGT_NO_FAULT : KGT_DUPLICATE;
}

static bool load_group(const kgt_lines *lines, int64_t group, kgt_table *table, kgt_fault *fault) {
    const kgt_text *text = lines->text;
    const char *at = text->bytes + lines->begin[group], *end = text->bytes + text->size;
    const char *stop = text->bytes + lines->begin[group + 1];
    for (int64_t line = lines->line[group]; at < stop; line++, at++) {
        const char *start = at;
        kgt_fetch_ahead(at);
        at = kgt_skip_space(at);
        if (*at == '\n') continue;
        if (*at == '#') {
            at = kgt_line_end(at, end);
            continue;
        }
        kgt_fault_kind kind = load_line(text, &at, table);
        if (kind == KGT_NO_FAULT) continue;
        kgt_note_fault(fault, kind, line, start - text->bytes);
        return false;
    }
    return true;
}

int64_t kgt_most_lines(const kgt_lines *lines, int64_t query) {
    int64_t most = 0;
    for (int64_t i = lines->first[query]; i < lines->first[query + 1]; i++)
        most += lines->line[lines->group[i] + 1] - lines->line[lines->group[i]];
    return most;
}

bool kgt_load_lines(const kgt_lines *lines, int64_t query, kgt_table *table, kgt_fault *fault) {
    kgt_table_clear(table, kgt_most_lines(lines, query));
    for (int64_t i = lines->first[query]; i < lines->first[query + 1]; i++)
        if (!load_group(lines, lines->group[i], table, fault)) return false;
    return true;
}

kgt_status kgt_trec_documents(const kgt_lines *lines, int64_t first, int64_t n, int64_t *begin,
                              int32_t *size, double *scores, int64_t *relevance, int64_t *count,
                              kgt_fault *fault) {
    int64_t most = 0, used = 0;
    kgt_table table;
    for (int64_t i = 0; i < n; i++)
        if (kgt_most_lines(lines, first + i) > most) most = kgt_most_lines(lines, first + i);
    if (!kgt_table_open(&table, most)) return KGT_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        count[i] = 0;
        if (!kgt_load_lines(lines, first + i, &table, fault)) continue;
        count[i] = table.n;
        for (int64_t j = 0; j < table.n; j++, used++) {
            begin[used] = table.entries[j].name - lines->text->bytes;
            size[used] = (int32_t)table.entries[j].size;
            if (scores != NULL) scores[used] = table.entries[j].score;
            if (relevance != NULL) relevance[used] = table.entries[j].relevance;
        }
    }
    kgt_table_close(&table);
    return KGT_OK;
}

bool kgt_trec_score(const char *text, int64_t size, double *score) {
    return kgt_read_decimal(text, text + size, score) != NULL;
}
