/* Distinct labels in an open-addressing table with 8 bytes per slot.
 *
 * With millions of labels, most time is spent waiting for memory: first for a slot, then for its
 * record. Both are prefetched some labels ahead, so that several waits overlap. */
#define _GNU_SOURCE /* MADV_HUGEPAGE, under -std=c11 */
#include "label.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "trec_fields.h"

enum { FIRST_BITS = 12, FIRST_BYTES = 1 << 16, PLACE_BITS = 40, HEAD = 8, AHEAD = 12 };
static const uint64_t PLACES = (UINT64_C(1) << PLACE_BITS) - 1;

bool kgt_label_open(kgt_label_table *table) {
    *table = (kgt_label_table){.bits = FIRST_BITS, .capacity = FIRST_BYTES};
    table->slots = calloc((size_t)1 << FIRST_BITS, sizeof *table->slots);
    table->records = malloc(FIRST_BYTES);
    return table->slots != NULL && table->records != NULL;
}

void kgt_label_close(kgt_label_table *table) {
    free(table->slots);
    free(table->records);
    *table = (kgt_label_table){.n = 0};
}

/* The upper bits of a hash are the number of the first slot to look at. The slot holds as many of
 * the next bits as fit. */
static uint64_t first_slot(const kgt_label_table *table, uint64_t hash) {
    return hash >> (64 - table->bits);
}

static uint64_t mark_of(const kgt_label_table *table, uint64_t hash) {
    return hash << table->bits & ~PLACES;
}

static const char *record_of(const kgt_label_table *table, uint64_t slot) {
    return table->records + (slot & PLACES) - 1;
}

/* Large pages cause fewer TLB misses. If there are none, nothing changes. */
static void use_large_pages(void *memory, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t page = (uintptr_t)1 << 21;
    uintptr_t begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);
    if (end > begin) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)memory, (void)size;
#endif
}

/* Doubles the slots and fills them from the records, which are read in order. */
static bool grow_slots(kgt_label_table *table) {
    size_t n_slots = (size_t)1 << (table->bits + 1), mask = n_slots - 1;
    free(table->slots);
    table->slots = calloc(n_slots, sizeof *table->slots);
    if (table->slots == NULL) return false;
    use_large_pages(table->slots, n_slots * sizeof *table->slots);
    table->bits++;
    for (int64_t at = 0; at < table->used;) {
        uint32_t size = kgt_load32(table->records + at + 4);
        uint64_t hash = kgt_hash64_bytes(table->records + at + HEAD, size);
        uint64_t slot = first_slot(table, hash);
        while (table->slots[slot] != 0) slot = (slot + 1) & mask;
        table->slots[slot] = mark_of(table, hash) | (uint64_t)(at + 1);
        at += HEAD + size;
    }
    return true;
}

/* Adds a label, whose free slot is known; false without memory. */
static bool add(kgt_label_table *table, const char *bytes, const kgt_label *label, uint64_t slot) {
    int64_t used = table->used + HEAD + label->size;
    if (used > table->capacity) {
        int64_t capacity = used + used / 2;
        if ((uint64_t)capacity > PLACES) return false;
        char *records = realloc(table->records, (size_t)capacity);
        if (records == NULL) return false;
        table->records = records;
        table->capacity = capacity;
    }
    char *record = table->records + table->used;
    uint32_t number = (uint32_t)table->n++;
    memcpy(record, &number, 4);
    memcpy(record + 4, &label->size, 4);
    memcpy(record + HEAD, bytes, label->size);
    table->slots[slot] = mark_of(table, label->hash) | (uint64_t)(table->used + 1);
    table->used = used;
    table->n_bytes += label->size;
    return table->n <= (int64_t)(UINT64_C(3) << table->bits >> 2) || grow_slots(table);
}

/* The record of a label, or 0, and the slot that is free for it. */
static const char *find(const kgt_label_table *table, const char *bytes, const kgt_label *label,
                        uint64_t *slot) {
    uint64_t mark = mark_of(table, label->hash), mask = (UINT64_C(1) << table->bits) - 1;
    for (*slot = first_slot(table, label->hash); table->slots[*slot] != 0;
         *slot = (*slot + 1) & mask) {
        if ((table->slots[*slot] & ~PLACES) != mark) continue;
        const char *record = record_of(table, table->slots[*slot]);
        if (kgt_load32(record + 4) == label->size &&
            kgt_same_bytes(record + HEAD, bytes, label->size))
            return record;
    }
    return NULL;
}

static void fetch_record(const kgt_label_table *table, uint64_t hash) {
    uint64_t slot = table->slots[first_slot(table, hash)];
    if (slot != 0) KGT_PREFETCH(record_of(table, slot));
}

kgt_status kgt_label_numbers(kgt_label_table *table, const char *text, int64_t n, int64_t stride,
                             const kgt_label *labels, int32_t *numbers) {
    for (int64_t i = 0; i < n; i++) {
        if (i + 2 * AHEAD < n) {
            const kgt_label *later = labels + (i + 2 * AHEAD) * stride;
            KGT_PREFETCH(table->slots + first_slot(table, later->hash));
            fetch_record(table, labels[(i + AHEAD) * stride].hash);
        }
        const kgt_label *label = labels + i * stride;
        const char *bytes = text + label->begin, *record;
        uint64_t slot;
        if ((record = find(table, bytes, label, &slot)) != NULL) {
            numbers[i * stride] = (int32_t)kgt_load32(record);
        } else {
            numbers[i * stride] = (int32_t)table->n;
            if (!add(table, bytes, label, slot)) return KGT_NO_MEMORY;
        }
    }
    return KGT_OK;
}

void kgt_label_renumber(int32_t *triples, int64_t n, int64_t width, const int32_t *entities,
                        const int32_t *relations) {
    for (int64_t i = 0; i < width * n; i += width) {
        triples[i] = entities[triples[i]];
        triples[i + 1] = relations[triples[i + 1]];
        triples[i + 2] = entities[triples[i + 2]];
    }
}
