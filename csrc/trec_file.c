/* Run and qrels files: groups of lines, and the documents in a query's lines.
 *
 * Lines are
 *
 *     query iter document rank score tag       of a run
 *     query iter document relevance            of qrels
 *     query document score                     of a short run
 *     query document relevance                 of short qrels
 *
 * with any white space between and around. Lines that start with # are comments, unless the text
 * has none. Blank lines of a run are skipped. trec_eval ignores what follows the tag, and misreads
 * a document name that contains a space. So further columns are accepted only if nothing suggests a
 * shift: the rank is a whole number, and the tag is not a number.
 *
 * A query's lines are read independently of others, so threads can share the queries. The text is
 * read only; results go to memory that the caller owns.
 */
#include "trec_file.h"

#include <math.h>
#include <stdlib.h>

#include "trec_decimal.h"

/* ---- groups ---- */

static bool is_qrels(const kgt_text *text) {
    return text->kind == KGT_QRELS || text->kind == KGT_SHORT_QRELS;
}

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
            if (is_qrels(text))
                kgt_note_fault(&scan->fault, KGT_BLANK_LINE, scan->line, start - text->bytes);
        } else if (*at == '#' && text->comments) {
            scan->n_comments++;
        } else if (query.begin == NULL || !same_query(at, end - at, query)) {
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

/* Slots for that many entries. In a fuller table, many lines would meet another's slot first, and
 * the processor cannot predict which. */
static uint64_t slots_for(int64_t most) {
    uint64_t slots = 16;
    while (slots < 4 * (uint64_t)most) slots *= 2;
    return slots;
}

/* Memory for that many entries, of which the first stay. */
static bool resize(kgt_table *table, int64_t capacity) {
    kgt_entry *entries = realloc(table->entries, ((size_t)capacity + 1) * sizeof(kgt_entry));
    if (entries != NULL) table->entries = entries;
    uint64_t *slots = realloc(table->slots, (size_t)slots_for(capacity) * sizeof(uint64_t));
    if (slots != NULL) table->slots = slots;
    table->capacity = capacity;
    return entries != NULL && slots != NULL && capacity < UINT32_MAX;
}

bool kgt_table_open(kgt_table *table, int64_t most) {
    *table = (kgt_table){NULL, NULL, 0, 0, 0};
    if (!resize(table, most)) return kgt_table_close(table), false;
    kgt_table_clear(table, most);
    return true;
}

void kgt_table_close(kgt_table *table) {
    free(table->entries);
    free(table->slots);
    *table = (kgt_table){NULL, NULL, 0, 0, 0};
}

void kgt_table_clear(kgt_table *table, int64_t most) {
    table->mask = slots_for(most) - 1;
    table->n = 0;
    memset(table->slots, 0, (size_t)(table->mask + 1) * sizeof(uint64_t));
}

KGT_INLINE bool kgt_table_has_room(const kgt_table *table) {
    return table->n < table->capacity && 4 * (uint64_t)table->n < table->mask;
}

bool kgt_table_grow(kgt_table *table) {
    const int64_t n = table->n, most = 2 * n + 8;
    if (kgt_table_has_room(table)) return true;
    if (most > table->capacity && !resize(table, most)) return false;
    kgt_table_clear(table, most);
    while (table->n < n) kgt_table_add(table);
    return true;
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

/* A line of a run: most lines differ from the last one only from `document` to `behind`. */
typedef struct {
    const char *begin, *document, *behind, *end; /* behind: the score */
} shape;

/* Reads a line like the last one; false for any other line. */
KGT_INLINE bool read_alike(const shape *last, const char **line, const char *end,
                           kgt_field *document, double *score) {
    const size_t n_before = (size_t)(last->document - last->begin);
    const size_t n_behind = (size_t)(last->end - last->behind); /* with the newline */
    const char *at = *line + n_before, *ends[3];
    if ((size_t)(end - *line) < n_before + 64 + n_behind ||
        !kgt_same_near(*line, last->begin, n_before) || !kgt_find_three(at, ends) ||
        *ends[0] != at[-1] || *ends[1] != at[-1] ||
        !kgt_same_near(ends[2], last->behind, n_behind) ||
        !(kgt_read_short_decimal(ends[1] + 1, ends[2], score) ||
          kgt_read_decimal(ends[1] + 1, end, score) != NULL))
        return false;
    *document = (kgt_field){at, ends[0]};
    *line = ends[2] + n_behind - 1;
    return true;
}

/* Reads the line at *line; moves *line to its end unless it has a fault. */
static kgt_fault_kind read_run_line(const char **line, const char *end, kgt_field *document,
                                    double *score, shape *last) {
    const char *at = *line;
    kgt_field skipped, rank, tag;
    if (!kgt_next_field(&at, &skipped) || !kgt_next_field(&at, &skipped) ||
        !kgt_next_field(&at, document) || !kgt_next_field(&at, &rank))
        return KGT_COLUMNS;
    const char *number = kgt_skip_space(at);
    const char *behind = kgt_read_decimal(number, end, score);
    at = behind == NULL ? kgt_field_end(number) : behind;
    if (!kgt_next_field(&at, &tag)) return KGT_COLUMNS;
    at = kgt_skip_space(at);
    *last = (shape){*line, document->begin, behind, at + 1};
    if (*at != '\n') {
        if (!may_have_more(rank, tag, end)) return KGT_COLUMNS;
        at = kgt_line_end(at, end);
        last->begin = NULL;
    }
    *line = at;
    return behind == NULL ? KGT_SCORE : KGT_NO_FAULT;
}

/* Whether a decimal has no digit but 0 before its exponent: 0.0 has none, and 1e-400 has one. */
static bool is_zero(const char *at) {
    while (*at == '+' || *at == '-' || *at == '.' || *at == '0') at++;
    return *at == 'e' || *at == 'E' || kgt_is_space(*at);
}

/* Reads a relevance: a whole number, or a decimal without a fraction, such as 1.0, up to 2^53.
 * A fraction that is too small for a double is not 0. */
static bool read_relevance(const char *at, const char *end, int64_t *relevance) {
    double value;
    if (kgt_read_whole(at, relevance) != NULL) return true;
    if (kgt_read_decimal(at, end, &value) == NULL || !(fabs(value) <= 0x1p53)) return false;
    *relevance = (int64_t)value;
    return (double)*relevance == value && (value != 0 || is_zero(at));
}

static kgt_fault_kind read_qrels_line(const char **line, const char *end, kgt_field *document,
                                      int64_t *relevance) {
    const char *at = *line;
    kgt_field skipped, number;
    if (!kgt_next_field(&at, &skipped) || !kgt_next_field(&at, &skipped) ||
        !kgt_next_field(&at, document) || !kgt_next_field(&at, &number) ||
        *(*line = kgt_skip_space(at)) != '\n')
        return KGT_COLUMNS;
    return read_relevance(number.begin, end, relevance) ? KGT_NO_FAULT : KGT_RELEVANCE;
}

/* Reads a line of three columns into the entry's score, or its relevance if these are qrels. */
static kgt_fault_kind read_short_line(const kgt_text *text, const char **line, kgt_field *document,
                                      kgt_entry *entry) {
    const char *at = *line, *end = text->bytes + text->size;
    kgt_field skipped, number;
    if (!kgt_next_field(&at, &skipped) || !kgt_next_field(&at, document) ||
        !kgt_next_field(&at, &number) || *(*line = kgt_skip_space(at)) != '\n')
        return KGT_COLUMNS;
    if (is_qrels(text))
        return read_relevance(number.begin, end, &entry->relevance) ? KGT_NO_FAULT : KGT_RELEVANCE;
    return kgt_read_decimal(number.begin, end, &entry->score) != NULL ? KGT_NO_FAULT : KGT_SCORE;
}

static kgt_fault_kind read_line(const kgt_text *text, const char **line, kgt_field *document,
                                kgt_entry *entry, shape *last) {
    const char *end = text->bytes + text->size;
    if (text->kind == KGT_RUN) return read_run_line(line, end, document, &entry->score, last);
    if (text->kind == KGT_QRELS) return read_qrels_line(line, end, document, &entry->relevance);
    return read_short_line(text, line, document, entry);
}

KGT_INLINE bool add_document(kgt_table *table, kgt_field document, kgt_fault_kind *fault) {
    kgt_entry *entry = &table->entries[table->n];
    const size_t size = (size_t)(document.end - document.begin);
    entry->name = document.begin;
    entry->size = (uint32_t)size;
    entry->hash = kgt_hash_bytes(document.begin, size);
    return kgt_table_add(table) || (*fault = KGT_DUPLICATE, false);
}

/* Adds the document of the line at *line, which moves to the line's end. Blank lines and comments
 * have none. False if the line is not the query's (NULL: any line is), or has a fault. */
static bool load_line(const kgt_text *text, const kgt_field *query, const char **line,
                      kgt_table *table, shape *last, kgt_fault_kind *fault) {
    const char *end = text->bytes + text->size, *at = *line = kgt_skip_space(*line);
    kgt_entry *entry = &table->entries[table->n];
    kgt_field document;
    *fault = KGT_NO_FAULT;
    const bool comment = *at == '#' && text->comments;
    if (comment) *line = kgt_line_end(at, end);
    if (*at == '\n' || comment) return true;
    if (query != NULL && table->n > 0 && !same_query(at, end - at, *query)) return false;
    *fault = read_line(text, line, &document, entry, last);
    if (*fault != KGT_NO_FAULT) return false;
    if (document.end - document.begin > INT32_MAX) return *fault = KGT_LONG_NAME, false;
    return add_document(table, document, fault);
}

/* Adds documents of lines like the last one, which ends at *line, while the table has room. Any
 * other line, or one that repeats a document, is left to load_line. */
static void load_alike(const kgt_text *text, const char *stop, const char **line, kgt_table *table,
                       const shape *given) {
    const char *end = text->bytes + text->size;
    const shape last = *given; /* in registers, because nobody else can change it */
    kgt_table known = *table;
    kgt_field document;
    kgt_fault_kind fault;
    if (last.begin == NULL) return;
    for (const char *at = *line + 1; at < stop && kgt_table_has_room(&known); *line = at++) {
        kgt_fetch_ahead(at);
        if (!read_alike(&last, &at, end, &document, &known.entries[known.n].score) ||
            !add_document(&known, document, &fault))
            break;
    }
    table->n = known.n;
}

static bool load_group(const kgt_lines *lines, int64_t group, kgt_table *table, kgt_fault *fault) {
    const kgt_text *text = lines->text;
    const char *at = text->bytes + lines->begin[group];
    const char *stop = text->bytes + lines->begin[group + 1];
    shape last = {.begin = NULL};
    kgt_fault_kind kind;
    for (int64_t line = lines->line[group]; at < stop; line++, at++) {
        const char *start = at;
        if (!load_line(text, NULL, &at, table, &last, &kind)) {
            kgt_note_fault(fault, kind, line, start - text->bytes);
            return false;
        }
        const int64_t n = table->n;
        load_alike(text, stop, &at, table, &last);
        line += table->n - n;
    }
    return true;
}

bool kgt_load_next(const kgt_text *text, const char **line, kgt_table *table, kgt_field *query,
                   const char **last_line) {
    const char *end = text->bytes + text->size;
    shape last = {.begin = NULL};
    kgt_fault_kind fault;
    kgt_table_clear(table, table->n);
    for (const char *at = *line; at < end; *line = ++at) {
        const int64_t n = table->n;
        if (!kgt_table_grow(table)) return false;
        if (!load_line(text, query, &at, table, &last, &fault)) return fault == KGT_NO_FAULT;
        if (table->n == n) continue;
        *last_line = *line;
        if (n == 0) *query = field_at(*line);
        load_alike(text, end, &at, table, &last);
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
