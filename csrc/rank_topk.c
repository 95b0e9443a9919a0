/* Selection and sorting of top-k keys, for both key widths. */
#include "rank_topk.h"

#define KEY kgt_key_f32
#define FN(op) op##_f32
#include "rank_topk_body.h"
#undef KEY
#undef FN

#define KEY kgt_key_f64
#define FN(op) op##_f64
#include "rank_topk_body.h"

/* Up to so many, sorting all wide keys takes less time than selecting the best. */
#define FEW 48
/* From so many on, sorting by digits is faster than comparing each with each. */
#define RADIX_FROM 200
#define DIGITS 2048

/* Sorts keys in descending order. Two stable passes over the score's leading 22 bits put nearly all
 * in place. Insertion sorts the rest, unless it is too long. */
static void radix_sort(uint64_t *keys, uint64_t *spare, int64_t n) {
    uint32_t low[DIGITS] = {0}, high[DIGITS] = {0}, low_next = 0, high_next = 0;
    for (int64_t i = 0; i < n; i++) {
        low[~(keys[i] >> 42) % DIGITS]++;
        high[~(keys[i] >> 53) % DIGITS]++;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        const uint32_t in_low = low[digit], in_high = high[digit];
        low[digit] = low_next;
        high[digit] = high_next;
        low_next += in_low;
        high_next += in_high;
    }
    for (int64_t i = n - 1; i >= 0; i--) spare[low[~(keys[i] >> 42) % DIGITS]++] = keys[i];
    for (int64_t i = 0; i < n; i++) keys[high[~(spare[i] >> 53) % DIGITS]++] = spare[i];
    int64_t patience = 8 * n;
    for (int64_t i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1] < key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
        patience -= i - j;
        if (patience < 0) {
            sort_f32(keys, n);
            return;
        }
    }
}

void kgt_top_sort_f32(kgt_top_f32 *top, const kgt_kernel *kernel) {
    const int64_t used = top->used;
    if (used > top->depth) top->used = top->depth;
    if (in_order_f32(top->keys, used)) return;
    if (used >= RADIX_FROM) {
        radix_sort(top->keys, top->spare, used);
        return;
    }
    kernel->sort_keys(top->keys, (size_t)used, top->spare);
    memcpy(top->keys, top->spare, (size_t)top->used * sizeof *top->keys);
}

void kgt_top_sort_f64(kgt_top_f64 *top, const kgt_kernel *kernel) {
    (void)kernel; /* it sorts keys of one word */
    if (in_order_f64(top->keys, top->used)) {
        if (top->used > top->depth) top->used = top->depth;
        return;
    }
    if (top->used > FEW) kgt_top_prune_f64(top);
    sort_f64(top->keys, top->used);
    if (top->used > top->depth) top->used = top->depth;
}
