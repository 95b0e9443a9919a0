/* Labels of triples: lines of text to fields, fields to numbers, numbers to the labels' order. */
#ifndef KGT_LABEL_H
#define KGT_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include "kgt_status.h"

/* A label in a text below 4 GB: `size` bytes from `begin` on, and their hash. */
typedef struct {
    uint32_t begin, size;
    uint64_t hash;
} kgt_label;

/* How many tabs a line has: two; three before a time, or four between the ends of an interval,
 * which are one label with a tab in it. */
enum { KGT_LABEL_TABS = 4 };

/* How far the lines of a file are read: the next byte of the text at hand; tabs of a line; whether
 * blank lines were met, which only further blank ones may follow; whether the next line is not as
 * it must be. */
typedef struct {
    int64_t at;
    int n_tabs;
    bool blank, faulty;
} kgt_label_scan;

/* Labels of a line. */
int kgt_labels_of(int n_tabs);

/* Labels of the lines "head TAB relation TAB tail" or "head TAB relation TAB tail TAB time" from
 * scan->at on, until `capacity` lines, the text's end, or a line with another number of tabs, an
 * empty field, NUL, or a carriage return before its end. Returns the number of lines. The text ends
 * with a newline; KGT_LABEL_PAD bytes behind it may be read. */
enum { KGT_LABEL_PAD = 64 };
int64_t kgt_label_lines(const char *text, int64_t size, int64_t capacity, kgt_label_scan *scan,
                        kgt_label *labels);

/* Distinct labels, numbered in order of first appearance.
 *
 * records: a label after the other, each with its number and its size before it. A slot holds where
 * a record begins, plus one, in its lower 40 bits and some bits of the hash above; 0: free. */
typedef struct {
    uint64_t *slots;
    char *records;
    int64_t n, n_bytes, used, capacity;
    int bits; /* of the number of slots */
} kgt_label_table;

/* False without memory; `close` frees what a table owns, and may be called at any time. */
bool kgt_label_open(kgt_label_table *table);
void kgt_label_close(kgt_label_table *table);

/* Numbers of n labels of a text, every `stride`-th of both. At most 2^31 - 1 labels are distinct,
 * which the caller sees to. Without memory the table is worth nothing more. */
kgt_status kgt_label_numbers(kgt_label_table *table, const char *text, int64_t n, int64_t stride,
                             const kgt_label *labels, int32_t *numbers);

/* The labels in byte order, which frees the slots first: label i has the bytes offsets[i] ..
 * offsets[i + 1] - 1 of `bytes`, (n_bytes); place[number] is where a label stands, (n). No label
 * holds NUL. */
kgt_status kgt_label_order(kgt_label_table *table, int64_t *offsets, char *bytes, int32_t *place);

/* Puts places for numbers, in n triples that begin `width` numbers apart. */
void kgt_label_renumber(int32_t *triples, int64_t n, int64_t width, const int32_t *entities,
                        const int32_t *relations);

#endif
