/* Entities and queries to vectors of 8 and of 16 bits, and what bounds their products. */
#include "factors_bounds.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* Biases beyond this leave no room for bounds in float. */
#define LARGEST_BIAS 0x1p40

/* Vectors of this many bytes stay in the second-level cache with the block's codes. */
#define BLOCK_BYTES (2 << 20)
/* Bytes of a line of the cache. */
#define LINE 64

static int64_t block_width(const kgt_factors *factors) {
    int64_t width = BLOCK_BYTES / (int64_t)kgt_vector_bytes(factors) / 64 * 64;
    const int64_t needed = (factors->n_entities + 63) / 64 * 64;
    if (width > KGT_MOST_WORDS * 64) width = KGT_MOST_WORDS * 64;
    if (width < 64) width = 64;
    return width < needed ? width : needed;
}

/* Groups of four codes of a vector. */
static size_t groups_of(const kgt_factors *factors) {
    const size_t dim = (size_t)factors->dim;
    return factors->metric == KGT_L1 ? kgt_l1_groups(dim)
                                     : kgt_byte_groups(kgt_bytes_active(), dim);
}

kgt_status kgt_block_open(kgt_block *block, const kgt_factors *factors, kgt_steps steps) {
    const size_t dim = (size_t)factors->dim, groups = groups_of(factors);
    const bool l1 = factors->metric == KGT_L1;
    const kgt_sums *sums = l1 ? &kgt_bytes_active()->l1 : &kgt_bytes_active()->dot;
    const int64_t width = block_width(factors);
    const size_t n = (size_t)width, words = n / 64, vector = kgt_vector_bytes(factors);
    *block = (kgt_block){.bytes = kgt_bytes_active(),
                         .kernel = kgt_kernel_active(),
                         .factors = factors,
                         .sums = sums,
                         .pairs = kgt_in_double(factors) ? sums->pairs_f64 : sums->pairs_f32,
                         .steps = steps,
                         .groups = groups,
                         .width = width};
    block->panels = kgt_allocate(n, groups * 4);
    block->codes = kgt_allocate(groups, 4);
    block->start = kgt_allocate(n, sizeof(int32_t));
    block->scale = kgt_allocate(3 * n + 4 * words, sizeof(float));
    block->entity_norm = kgt_allocate(2 * n, sizeof(double));
    block->place_of = kgt_allocate(3 * n, sizeof(uint16_t));
    block->fine_stride = kgt_fine_stride(dim);
    block->fine = kgt_allocate(n * block->fine_stride, sizeof(int16_t));
    block->pointers = kgt_allocate(n, sizeof *block->pointers);
    block->stride = (vector + LINE - 1) / LINE * LINE;
    block->vectors = kgt_allocate(n * block->stride + 2 * vector, 1);
    block->in_float = kgt_allocate(dim, sizeof(float));
    if (!block->panels || !block->codes || !block->start || !block->scale || !block->entity_norm ||
        !block->pointers || !block->vectors || !block->in_float || !block->fine ||
        !block->place_of) {
        kgt_block_close(block);
        return KGT_NO_MEMORY;
    }
    memset(block->codes, l1 ? KGT_L1_ZERO : 0, groups * 4);
    memset(block->scale, 0, (3 * n + 4 * words) * sizeof(float));
    memset(block->entity_norm, 0, 2 * n * sizeof(double));
    memset(block->panels, 0, n * groups * 4);
    memset(block->vectors, 0, n * block->stride);
    memset(block->fine, 0, n * block->fine_stride * sizeof(int16_t));
    block->slot_of = block->place_of + n;
    block->inverse = block->scale + words;
    block->code_norm = block->inverse + words;
    block->base = block->code_norm + words;
    block->largest = block->base + words;
    block->bias = block->entity_norm + n;
    if (factors->metric == KGT_L2 || factors->bias != NULL) {
        block->offset = block->largest + n;
        block->shift = block->offset + n;
    }
    return KGT_OK;
}

void kgt_block_close(kgt_block *block) {
    free(block->panels);
    free(block->codes);
    free(block->start);
    free(block->scale);
    free(block->entity_norm);
    free(block->pointers);
    free(block->vectors);
    free(block->in_float);
    free(block->fine);
    free(block->place_of);
    *block = (kgt_block){0};
}

/* The vector in this place of the block, as it stands in the table or in memory to spare. */
static const void *vector_at(const kgt_block *block, int64_t place) {
    char *spare = block->vectors + (size_t)block->width * block->stride;
    return kgt_entity(block->kernel, block->factors, block->first + place, spare);
}

/* What the codes of a vector have to reach at least. */
static float range_of(const kgt_bytes *bytes, const kgt_factors *factors, const float *x,
                      float largest, bool query) {
    if (bytes->range == NULL || factors->metric == KGT_L1 || isnan(largest)) return largest;
    return bytes->range(x, (size_t)factors->dim, largest, query);
}

/* A key that rises with a magnitude: one of so many for each 128th of a power of two. */
static uint16_t magnitude_key(float largest) {
    uint32_t bits;
    memcpy(&bits, &largest, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* One digit of a radix sort of places. */
static void sort_by_digit(const float *largest, int shift, const uint16_t *from, int64_t n,
                          uint16_t *to) {
    uint32_t ends[257] = {0};
    for (int64_t i = 0; i < n; i++) ends[(magnitude_key(largest[i]) >> shift & 255) + 1]++;
    for (int i = 0; i < 256; i++) ends[i + 1] += ends[i];
    for (int64_t i = 0; i < n; i++) {
        const uint16_t place = from[i];
        to[ends[magnitude_key(largest[place]) >> shift & 255]++] = place;
    }
}

/* Orders the block's entities by largest magnitude. False if some entity has no bounds. */
static bool take_order(kgt_block *block) {
    const int64_t n = block->n;
    uint16_t *spare = block->slot_of + block->width;
    for (int64_t i = 0; i < n; i++) {
        const float *vector = kgt_in_float(block->factors, vector_at(block, i), block->in_float);
        const float largest = block->bytes->largest(vector, (size_t)block->factors->dim);
        block->largest[i] = range_of(block->bytes, block->factors, vector, largest, false);
        if (isnan(largest)) return false;
        block->slot_of[i] = (uint16_t)i;
    }
    sort_by_digit(block->largest, 0, block->slot_of, n, spare);
    sort_by_digit(block->largest, 8, spare, n, block->place_of);
    for (int64_t i = 0; i < n; i++) block->slot_of[block->place_of[i]] = (uint16_t)i;
    return true;
}

/* Quantises the vector of a slot, puts its codes into its panel and raises what bounds the errors
 * of its word. */
static void take_codes(kgt_block *block, int64_t slot, const float *vector, float largest) {
    const size_t dim = (size_t)block->factors->dim, i = (size_t)slot, word = i / 64;
    const int64_t place = block->place_of[slot];
    const double rounding = kgt_rounding(block->factors);
    kgt_quantised x, fine;
    block->bytes->quantise(vector, dim, largest, block->codes, &x);
    block->bytes->quantise_fine(vector, dim, block->largest[place], &x,
                                block->fine + i * block->fine_stride, &fine);
    int8_t *codes = block->panels + i / KGT_BYTE_PANEL * KGT_BYTE_PANEL * block->groups * 4 +
                    i % KGT_BYTE_PANEL * 4;
    const uint32_t zeros = block->bytes->entity_zero * 0x01010101u; /* added by ^: 0 or 128 */
    for (size_t k = 0; k < block->groups; k++) {
        uint32_t four;
        memcpy(&four, block->codes + k * 4, sizeof four);
        four ^= zeros;
        memcpy(codes + k * KGT_BYTE_PANEL * 4, &four, sizeof four);
    }
    block->start[i] = -(int32_t)block->bytes->query_zero * x.sum;
    const float base = (float)(((double)x.residual + rounding * (double)x.norm) * KGT_UP);
    if (base > block->base[word]) block->base[word] = base;
    if (x.code_norm > block->code_norm[word]) block->code_norm[word] = x.code_norm;
    const double residual =
        (double)fine.residual + (double)block->fine_relative * (double)fine.code_norm;
    const kgt_figures figures = {fine.scale,
                                 (float)((residual + rounding * (double)x.norm) * KGT_UP), 0, 0};
    memcpy(kgt_figures_of(block, slot), &figures, sizeof figures);
}

/* Takes the entities of a word, which share a scale; vectors on lines of the cache. */
static void take_word(kgt_block *block, int64_t word) {
    const int64_t first = word * 64, left = block->n - first, end = first + (left < 64 ? left : 64);
    const bool l1 = block->factors->metric == KGT_L1;
    float largest = 0;
    for (int64_t i = first; i < end; i++) {
        const float own = block->largest[block->place_of[i]];
        largest = own > largest ? own : largest;
    }
    block->scale[word] = l1 ? 1 : largest / 127.0f;
    block->inverse[word] = block->scale[word] > 0 ? 1 / block->scale[word] : 1; /* of zeros: any */
    block->base[word] = block->code_norm[word] = 0;
    for (int64_t i = first; i < end; i++) {
        char *vector = block->vectors + (size_t)i * block->stride;
        memcpy(vector, vector_at(block, block->place_of[i]), kgt_vector_bytes(block->factors));
        const float *in_float = kgt_in_float(block->factors, vector, block->in_float);
        if (l1)
            kgt_l1_take_codes(block, i, in_float);
        else
            take_codes(block, i, in_float, largest);
    }
}

static bool take_offsets(kgt_block *block) {
    const kgt_factors *factors = block->factors;
    const int64_t n = block->n;
    const size_t dim = (size_t)factors->dim;
    for (int64_t i = 0; i < n; i++) block->pointers[i] = block->vectors + (size_t)i * block->stride;
    if (factors->metric == KGT_L2)
        block->pairs(block->pointers, block->pointers, (size_t)n, dim, block->entity_norm);
    for (int64_t i = 0; i < n; i++) {
        const double bias = kgt_bias(factors, block->first + block->place_of[i]);
        if (!(fabs(bias) <= LARGEST_BIAS)) return false;
        const double norm = block->entity_norm[i];
        block->bias[i] = bias;
        block->offset[i] = (float)(bias - norm);
        block->shift[i] = block->offset[i] * block->inverse[i / 64];
        memcpy(kgt_figures_of(block, i) + offsetof(kgt_figures, offset), block->offset + i,
               sizeof(float));
        const double offset = fabs((double)block->offset[i]) + norm + fabs(bias);
        if (offset > block->largest_offset) block->largest_offset = offset;
    }
    return true;
}

void kgt_block_take(kgt_block *block, int64_t first, int64_t n) {
    block->first = first;
    block->n = n;
    block->largest_offset = 0;
    block->bounded = take_order(block);
    if (!block->bounded) return;
    for (int64_t word = 0; word < (n + 63) / 64; word++) take_word(block, word);
    if (block->offset != NULL && !(block->bounded = take_offsets(block))) return;
    /* What pads the last block: numbers only, whose comparisons nobody looks at. */
    for (int64_t i = n; i < (int64_t)kgt_block_padded(block); i++) {
        block->start[i] = 0;
        if (block->offset != NULL) block->offset[i] = block->shift[i] = 0;
    }
}

void kgt_queries_close(kgt_queries *queries) {
    free(queries->codes);
    free(queries->inverse);
    free(queries->judged_norm);
    free(queries->bounded);
    free(queries->fine);
    *queries = (kgt_queries){0};
}

/* k of the bound: |q - q'| / |q|, for a norm and a residual in units of s. */
static float relative(double residual, double norm) {
    return norm > 0 ? (float)(residual / norm * KGT_UP * KGT_UP) : 0;
}

/* The second level of query i. */
static void take_fine(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                      const float *query, float largest, const kgt_quantised *coarse) {
    kgt_quantised q;
    queries->bytes->quantise_fine(query, (size_t)factors->dim, largest, coarse,
                                  queries->fine + (size_t)i * queries->fine_stride, &q);
    const double scale = q.scale > 0 ? (double)q.scale : 1; /* of a zero vector: any will do */
    const double norm = (double)q.norm / scale * KGT_UP;
    queries->fine_inverse[i] = 1 / (factors->metric == KGT_L2 ? 2 * scale : scale);
    queries->fine_norm[i] = (float)(norm * KGT_UP);
    queries->fine_factor[i] = (float)queries->fine_inverse[i];
    const float own = relative((double)q.residual / scale, norm);
    if (own > queries->fine_relative) queries->fine_relative = own;
}

/* Quantises query i; false if it has no bounds. */
static bool take_query(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                       const float *query, int8_t *codes) {
    const size_t dim = (size_t)factors->dim;
    kgt_quantised q;
    const float largest = queries->bytes->largest(query, dim);
    if (isnan(largest)) return false;
    queries->bytes->quantise(query, dim, range_of(queries->bytes, factors, query, largest, true),
                             codes, &q);
    uint8_t *row = queries->codes + (size_t)i * queries->groups * 4;
    for (size_t k = 0; k < dim; k++) row[k] = (uint8_t)(codes[k] + queries->bytes->query_zero);
    const double scale = q.scale > 0 ? (double)q.scale : 1; /* of a zero vector: any will do */
    const double norm = (double)q.norm / scale * KGT_UP;
    queries->inverse[i] = 1 / (factors->metric == KGT_L2 ? 2 * scale : scale);
    queries->judged_norm[i] = (float)(norm * KGT_UP);
    queries->factor[i] = (float)queries->inverse[i];
    queries->relative[i] = relative((double)q.residual / scale, norm);
    take_fine(queries, factors, i, query, largest, &q);
    queries->chain[i] = kgt_query_norm(factors, kgt_kernel_active(), i);
    return true;
}

kgt_status kgt_queries_open(kgt_queries *queries, const kgt_factors *factors, kgt_steps steps) {
    const int64_t n = factors->n_rows;
    const size_t groups = groups_of(factors);
    const bool l1 = factors->metric == KGT_L1;
    const size_t n_tiles = (size_t)((n + KGT_BYTE_QUERIES - 1) / KGT_BYTE_QUERIES);
    const size_t n_padded = n_tiles * KGT_BYTE_QUERIES + 1; /* never a request for 0 bytes */
    *queries = (kgt_queries){.bytes = kgt_bytes_active(), .steps = steps, .groups = groups, .n = n};
    queries->fine_stride = kgt_fine_stride((size_t)factors->dim);
    int8_t *codes = kgt_allocate(groups, 4);
    float *copy = kgt_allocate((size_t)factors->dim, sizeof(float));
    queries->codes = kgt_allocate(n_padded, groups * 4);
    queries->inverse = calloc(5 * n_padded, sizeof(double));
    queries->judged_norm = calloc(5 * n_padded, sizeof(float));
    queries->bounded = calloc(n_padded, sizeof(bool));
    queries->fine = kgt_allocate(n_padded * queries->fine_stride, sizeof(int16_t));
    if (!codes || !copy || !queries->codes || !queries->inverse || !queries->judged_norm ||
        !queries->bounded || !queries->fine) {
        free(codes);
        free(copy);
        kgt_queries_close(queries);
        return KGT_NO_MEMORY;
    }
    queries->chain = queries->inverse + n_padded;
    queries->fine_inverse = queries->chain + n_padded;
    queries->own = queries->fine_inverse + n_padded;
    queries->fine_own = queries->own + n_padded;
    queries->factor = queries->judged_norm + n_padded;
    queries->fine_norm = queries->factor + n_padded;
    queries->fine_factor = queries->fine_norm + n_padded;
    queries->relative = queries->fine_factor + n_padded;
    memset(queries->codes, l1 ? KGT_L1_ZERO : queries->bytes->query_zero, n_padded * groups * 4);
    memset(queries->fine, 0, n_padded * queries->fine_stride * sizeof(int16_t));
    for (int64_t i = 0; i < n; i++) {
        const float *query = kgt_in_float(factors, kgt_query(factors, i), copy);
        queries->bounded[i] = l1 ? kgt_l1_take_query(queries, factors, i, query)
                                 : take_query(queries, factors, i, query, codes);
    }
    free(codes);
    free(copy);
    return KGT_OK;
}
