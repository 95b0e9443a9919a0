/* Selection and sorting of top-k keys, for both key widths. */
#include "topk.h"

#define KEY kgt_key_f32
#define FN(op) op##_f32
#include "topk_body.h"
#undef KEY
#undef FN

#define KEY kgt_key_f64
#define FN(op) op##_f64
#include "topk_body.h"

/* From here on, sorting digit by digit beats comparing. */
#define RADIX_FROM 200

/* Keys in ascending position, to descending (score, position): a stable radix sort on the score's
 * four bytes, fed from the end. */
static void radix_sort(uint64_t *keys, uint64_t *spare, int64_t n) {
    uint32_t place[4][256] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int byte = 0; byte < 4; byte++)
            place[byte][255 - (keys[i] >> (32 + 8 * byte) & 255)]++;
    for (int byte = 0; byte < 4; byte++) {
        uint32_t next = 0;
        for (int digit = 0; digit < 256; digit++) {
            const uint32_t count = place[byte][digit];
            place[byte][digit] = next;
            next += count;
        }
    }
    for (int byte = 0; byte < 4; byte++) {
        for (int64_t i = 0; i < n; i++) {
            const uint64_t key = keys[byte == 0 ? n - 1 - i : i];
            spare[place[byte][255 - (key >> (32 + 8 * byte) & 255)]++] = key;
        }
        uint64_t *filled = spare;
        spare = keys;
        keys = filled;
    }
}

void kgt_top_sort_f32(kgt_top_f32 *top) {
    if (top->ordered && top->used >= RADIX_FROM) {
        radix_sort(top->keys, top->spare, top->used);
        if (top->used > top->depth) top->used = top->depth;
        return;
    }
    kgt_top_prune_f32(top);
    sort_f32(top->keys, top->used);
}

void kgt_top_sort_f64(kgt_top_f64 *top) {
    kgt_top_prune_f64(top);
    sort_f64(top->keys, top->used);
}
