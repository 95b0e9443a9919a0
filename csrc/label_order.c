/* Sorts labels in byte order: a radix sort in place, with eight bytes of each label in its item.
 *
 * Labels are distinct and hold no NUL, so labels that end within the eight bytes are padded with
 * zeros. Labels that agree on eight bytes all continue after them. */
#include "label.h"

#include "trec_fields.h"

enum { HEAD = 8, FEW = 24 };

typedef struct {
    uint64_t key; /* eight bytes of the label, the first in the upper bits */
    const char *record;
} item;

/* Items that agree in the bytes before `depth`. */
typedef struct {
    item *items;
    int64_t n, depth;
} range;

static uint64_t key_at(const char *record, int64_t depth) {
    int64_t size = kgt_load32(record + 4);
    uint64_t key = 0;
    if (depth + 8 <= size) {
        key = kgt_load64(record + HEAD + depth);
#if KGT_LITTLE_ENDIAN
        key = __builtin_bswap64(key);
#endif
        return key;
    }
    for (int64_t i = depth; i < size; i++)
        key |= (uint64_t)(unsigned char)record[HEAD + i] << (56 - 8 * (i - depth));
    return key;
}

static bool before(const item *a, const item *b, int64_t depth) {
    if (a->key != b->key) return a->key < b->key;
    depth -= depth % 8;
    return kgt_compare_bytes(a->record + HEAD + depth, kgt_load32(a->record + 4) - (size_t)depth,
                             b->record + HEAD + depth,
                             kgt_load32(b->record + 4) - (size_t)depth) < 0;
}

static void insertion_sort(range some) {
    for (int64_t i = 1; i < some.n; i++) {
        item moved = some.items[i];
        int64_t at = i;
        for (; at > 0 && before(&moved, &some.items[at - 1], some.depth); at--)
            some.items[at] = some.items[at - 1];
        some.items[at] = moved;
    }
}

/* Moves every item into the part of its byte; ends[b] is the end of part b. */
static void part(range some, int shift, const int64_t *counts, int64_t *ends) {
    int64_t next[256], sum = 0;
    for (int b = 0; b < 256; b++) {
        next[b] = sum;
        ends[b] = sum += counts[b];
    }
    for (int b = 0; b < 256; b++) {
        while (next[b] < ends[b]) {
            item moved = some.items[next[b]];
            int to = (int)(moved.key >> shift & 255);
            while (to != b) {
                item other = some.items[next[to]];
                some.items[next[to]++] = moved;
                moved = other;
                to = (int)(moved.key >> shift & 255);
            }
            some.items[next[b]++] = moved;
        }
    }
}

/* The loop continues with the largest part, so calls are at most log2(n) deep for any labels. */
static void sort(range some) {
    int64_t counts[256], ends[256];
    while (some.n > FEW) {
        int shift = (int)(56 - 8 * (some.depth % 8)), largest = 0;
        memset(counts, 0, sizeof counts);
        if (shift == 56 && some.depth > 0)
            for (int64_t i = 0; i < some.n; i++)
                some.items[i].key = key_at(some.items[i].record, some.depth);
        for (int64_t i = 0; i < some.n; i++) counts[some.items[i].key >> shift & 255]++;
        for (int b = 1; b < 256; b++)
            if (counts[b] > counts[largest]) largest = b;
        range next = {some.items, counts[largest], some.depth + 1};
        if (next.n < some.n) {
            part(some, shift, counts, ends);
            for (int b = 0; b < 256; b++) {
                if (b == largest || counts[b] < 2) continue;
                range other = {some.items + ends[b] - counts[b], counts[b], some.depth + 1};
                /* the call has its own counts and ends */
                sort(other);
            }
            next.items += ends[largest] - counts[largest];
        }
        some = next;
    }
    if (some.depth % 8 == 0 && some.depth > 0)
        for (int64_t i = 0; i < some.n; i++)
            some.items[i].key = key_at(some.items[i].record, some.depth);
    insertion_sort(some);
}

kgt_status kgt_label_order(kgt_label_table *table, int64_t *offsets, char *bytes,
                           int32_t *position) {
    free(table->slots);
    table->slots = NULL;
    item *items = kgt_allocate((size_t)table->n, sizeof *items);
    if (items == NULL) return KGT_NO_MEMORY;
    const char *record = table->records;
    for (int64_t i = 0; i < table->n; i++) {
        items[i] = (item){key_at(record, 0), record};
        record += HEAD + kgt_load32(record + 4);
    }
    sort((range){items, table->n, 0});
    offsets[0] = 0;
    for (int64_t i = 0; i < table->n; i++) {
        if (i + 8 < table->n) KGT_PREFETCH(items[i + 8].record);
        uint32_t size = kgt_load32(items[i].record + 4);
        memcpy(bytes + offsets[i], items[i].record + HEAD, size);
        offsets[i + 1] = offsets[i] + size;
        position[kgt_load32(items[i].record)] = (int32_t)i;
    }
    free(items);
    return KGT_OK;
}
