/* Documents of the current query: in the order of the file, and in a hash table. */
#ifndef KGT_TREC_FILE_H
#define KGT_TREC_FILE_H

#include "trec.h"
#include "trec_fields.h"

typedef struct {
    const char *name;
    uint32_t size, hash;
    double score;
    int64_t relevance;
} kgt_entry;

typedef struct {
    kgt_entry *entries;
    uint64_t *slots; /* hash in the upper half, 1 + place in entries in the lower; 0: free */
    uint64_t mask;
    int64_t n, capacity; /* capacity: of entries */
} kgt_table;

/* An empty table for up to `most` documents; false without memory. */
bool kgt_table_open(kgt_table *table, int64_t most);
void kgt_table_close(kgt_table *table);

/* Forgets the last query; `most`: documents of the next one, at most the number at opening. */
void kgt_table_clear(kgt_table *table, int64_t most);

/* Grows a full table; false without memory. */
bool kgt_table_grow(kgt_table *table);

/* The document of that name, or NULL. */
kgt_entry *kgt_table_find(const kgt_table *table, const char *name, uint32_t size, uint32_t hash);

/* Adds entries[n], whose name is set; false if the name is there already. */
bool kgt_table_add(kgt_table *table);

/* Most documents that a query may have: its number of lines. */
int64_t kgt_most_lines(const kgt_lines *lines, int64_t query);

/* Reads all documents of a query; false if a line is wrong, whose fault it notes. */
bool kgt_load_lines(const kgt_lines *lines, int64_t query, kgt_table *table, kgt_fault *fault);

/* Reads the query of the next line at *line, and all its documents up to the next query, where
 * *line is then. *last_line: the last line, or one with the same tag. False if a line is wrong, or
 * without memory. An empty table: there was no query. */
bool kgt_load_next(const kgt_text *text, const char **line, kgt_table *table, kgt_field *query,
                   const char **last_line);

/* Keeps the earlier of two faults. */
void kgt_note_fault(kgt_fault *fault, kgt_fault_kind kind, int64_t line, int64_t begin);

/* A query's documents, and scratch to order them. */
typedef struct {
    kgt_table table;
    int64_t capacity; /* documents that the scratch can hold */
    struct kgt_scored *order, *spare;
    double *heap;
} kgt_lister;

/* Can hold `most` documents at first; false without memory. Close it always. */
bool kgt_open_lister(kgt_lister *at, int64_t most);
void kgt_close_lister(kgt_lister *at);

/* Lists the query in the table, which has that number among the judgements, as kgt_trec_lists does.
 * Returns the length, or -1 without memory. */
int64_t kgt_list_query(kgt_lister *at, const kgt_listing *listing, int64_t judged,
                       int64_t *retrieved, int64_t *relevance, double *scores, kgt_signs *signs);

#endif
