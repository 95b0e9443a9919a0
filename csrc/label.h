/* Labels of triples: split lines into fields, number the labels, sort them. */
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

/* Most tabs per line. A line has two; three with a time; four with an interval, whose two ends are
 * one label with a tab in it. */
enum { KGT_LABEL_TABS = 4 };

/* The state of reading lines. at: the next byte of the text. n_tabs: tabs per line. blank: a blank
 * line was met, after which only blank lines are valid. faulty: the next line is invalid. */
typedef struct {
    int64_t at;
    int n_tabs;
    bool blank, faulty;
} kgt_label_scan;

/* Labels per line. */
int kgt_labels_of(int n_tabs);

/* Splits the lines "head TAB relation TAB tail" or "head TAB relation TAB tail TAB time" from
 * scan->at on into labels. Stops after `capacity` lines, at the text's end, or at a faulty line:
 * another number of tabs, an empty field, NUL, or a carriage return before its end. Returns the
 * number of lines. The text ends with a newline, and KGT_LABEL_PAD bytes after it must be readable.
 */
enum { KGT_LABEL_PAD = 64 };
int64_t kgt_label_lines(const char *text, int64_t size, int64_t capacity, kgt_label_scan *scan,
                        kgt_label *labels);

/* Distinct labels, numbered in order of first appearance.
 *
 * records: one label after the other, each preceded by its number and its size. The lower 40 bits
 * of a slot are the start of a record, plus one; the others are bits of the hash. 0: free. */
typedef struct {
    uint64_t *slots;
    char *records;
    int64_t n, n_bytes, used, capacity;
    int bits; /* log2 of the number of slots */
} kgt_label_table;

/* False without memory. `close` frees the table's memory, and may be called at any time. */
bool kgt_label_open(kgt_label_table *table);
void kgt_label_close(kgt_label_table *table);

/* Numbers n labels of a text, at every `stride`-th place of labels and numbers. The caller ensures
 * that at most 2^31 - 1 labels are distinct. After KGT_NO_MEMORY the table is unusable. */
kgt_status kgt_label_numbers(kgt_label_table *table, const char *text, int64_t n, int64_t stride,
                             const kgt_label *labels, int32_t *numbers);

/* Sorts the labels in byte order, after freeing the slots. Label i has the bytes offsets[i] ..
 * offsets[i + 1] - 1 of `bytes`, (n_bytes). position[number], (n), is a label's position in the
 * order. No label holds NUL. */
kgt_status kgt_label_order(kgt_label_table *table, int64_t *offsets, char *bytes,
                           int32_t *position);

/* Replaces numbers by positions in n triples that begin `width` numbers apart. */
void kgt_label_renumber(int32_t *triples, int64_t n, int64_t width, const int32_t *entities,
                        const int32_t *relations);

#endif
