/* Entities and queries to vectors of 8 and of 16 bits, and what bounds their products. */
#include "factors_bounds.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define T float
#define OPS f32
#define FN(op) op##_f32
#include "factors_vectors_body.h"

/* Biases beyond this leave no room for bounds in float. */
#define LARGEST_BIAS 0x1p80f

/* Vectors of this many bytes stay in the second-level cache with the block's codes. */
#define BLOCK_BYTES (1 << 20)
/* Floats of a line of the cache. */
#define LINE 16

static int64_t block_width(const kgt_factors *factors) {
    int64_t width = BLOCK_BYTES / (int64_t)sizeof(float) / factors->dim / 64 * 64;
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
    const int64_t width = block_width(factors);
    const size_t n = (size_t)width;
    *block = (kgt_block){.bytes = kgt_bytes_active(),
                         .kernel = kgt_kernel_active(),
                         .factors = factors,
                         .sums = l1 ? &kgt_bytes_active()->l1 : &kgt_bytes_active()->dot,
                         .steps = steps,
                         .groups = groups,
                         .width = width};
    block->panels = kgt_allocate(n, groups * 4);
    block->codes = kgt_allocate(groups, 4);
    block->start = kgt_allocate(n, sizeof(int32_t));
    block->scale = kgt_allocate(7 * n, sizeof(float));
    block->fine_stride = kgt_fine_stride(dim);
    block->fine = kgt_allocate(n * block->fine_stride, sizeof(int16_t));
    block->pointers = kgt_allocate(n, sizeof *block->pointers);
    block->stride = (dim + LINE - 1) / LINE * LINE;
    block->vectors = kgt_allocate(n * block->stride + 2 * dim, sizeof(float));
    if (!block->panels || !block->codes || !block->start || !block->scale || !block->pointers ||
        !block->vectors || !block->fine) {
        kgt_block_close(block);
        return KGT_NO_MEMORY;
    }
    memset(block->codes, l1 ? KGT_L1_ZERO : 0, groups * 4);
    memset(block->scale, 0, 7 * n * sizeof(float));
    memset(block->panels, 0, n * groups * 4);
    memset(block->vectors, 0, n * block->stride * sizeof(float));
    memset(block->fine, 0, n * block->fine_stride * sizeof(int16_t));
    block->code_norm = block->scale + n;
    block->error = block->code_norm + n;
    block->base = block->error + n;
    block->entity_norm = block->base + n;
    block->bias = block->entity_norm + n;
    if (factors->metric == KGT_L2 || factors->bias != NULL) block->offset = block->bias + n;
    return KGT_OK;
}

void kgt_block_close(kgt_block *block) {
    free(block->panels);
    free(block->codes);
    free(block->start);
    free(block->scale);
    free(block->pointers);
    free(block->vectors);
    free(block->fine);
    *block = (kgt_block){0};
}

/* Rows on lines of the cache. */
static void take_vectors(kgt_block *block, int64_t first, int64_t n) {
    const kgt_factors *factors = block->factors;
    const size_t dim = (size_t)factors->dim;
    float *spare = block->vectors + (size_t)block->width * block->stride;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = table_row_f32(factors, first + i);
        const float *x = entity_f32(block->kernel, factors, row, spare);
        memcpy(block->vectors + (size_t)i * block->stride, x, dim * sizeof(float));
    }
}

/* Quantises entity i of the block and puts its codes into its panel. */
static bool take_codes(kgt_block *block, int64_t i) {
    const size_t dim = (size_t)block->factors->dim;
    const double rounding = kgt_rounding(block->factors->dim);
    const float *vector = block->vectors + (size_t)i * block->stride;
    kgt_quantised x, fine;
    if (!block->bytes->quantise(vector, dim, block->codes, &x)) return false;
    block->bytes->quantise_fine(vector, dim, &x, block->fine + (size_t)i * block->fine_stride,
                                &fine);
    int8_t *place = block->panels +
                    (size_t)(i / KGT_BYTE_PANEL * KGT_BYTE_PANEL) * block->groups * 4 +
                    i % KGT_BYTE_PANEL * 4;
    for (size_t k = 0; k < block->groups; k++)
        memcpy(place + k * KGT_BYTE_PANEL * 4, block->codes + k * 4, 4);
    block->start[i] = -(int32_t)block->bytes->query_zero * x.sum;
    block->scale[i] = x.scale;
    block->code_norm[i] = x.code_norm;
    block->base[i] = (float)(((double)x.residual + rounding * (double)x.norm) * KGT_UP);
    const double residual =
        (double)fine.residual + (double)block->fine_relative * (double)fine.code_norm;
    const kgt_figures figures = {fine.scale,
                                 (float)((residual + rounding * (double)x.norm) * KGT_UP), 0, 0};
    memcpy(kgt_figures_of(block, i), &figures, sizeof figures);
    return true;
}

static bool take_offsets(kgt_block *block, int64_t first, int64_t n) {
    const kgt_factors *factors = block->factors;
    const size_t dim = (size_t)factors->dim;
    for (int64_t i = 0; i < n; i++) block->pointers[i] = block->vectors + (size_t)i * block->stride;
    if (factors->metric == KGT_L2)
        block->bytes->dot.pairs(block->pointers, block->pointers, (size_t)n, dim,
                                block->entity_norm);
    else
        memset(block->entity_norm, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        const float bias = bias_f32(factors, table_row_f32(factors, first + i));
        if (!(fabsf(bias) <= LARGEST_BIAS)) return false;
        const float norm = block->entity_norm[i];
        block->bias[i] = bias;
        block->offset[i] = bias - norm;
        memcpy(kgt_figures_of(block, i) + offsetof(kgt_figures, offset), block->offset + i,
               sizeof(float));
        const double offset = (double)fabsf(block->offset[i]) + (double)norm + (double)fabsf(bias);
        if (offset > block->largest_offset) block->largest_offset = offset;
    }
    return true;
}

void kgt_block_take(kgt_block *block, int64_t first, int64_t n) {
    block->first = first;
    block->n = n;
    block->largest_offset = 0;
    take_vectors(block, first, n);
    const bool l1 = block->factors->metric == KGT_L1;
    for (int64_t i = 0; i < n; i++)
        if (!(block->bounded = l1 ? kgt_l1_take_codes(block, i) : take_codes(block, i))) return;
    if (block->offset != NULL && !(block->bounded = take_offsets(block, first, n))) return;
    /* What pads the last block: zeros in number only, whose comparisons nobody looks at. */
    for (int64_t i = n; i < (int64_t)kgt_block_padded(block); i++) {
        block->start[i] = 0;
        block->scale[i] = block->code_norm[i] = block->base[i] = 0;
        if (block->offset != NULL) block->offset[i] = 0;
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

void kgt_block_errors(kgt_block *block, float relative) {
    const float *restrict base = block->base, *restrict code_norm = block->code_norm;
    float *restrict error = block->error;
    const size_t n = kgt_block_padded(block);
    for (size_t j = 0; j < n; j++) error[j] = (base[j] + relative * code_norm[j]) * (1 + 0x1p-20f);
}

/* k of the bound: |q - q'| / |q|, for a norm and a residual in units of s. */
static float relative(double residual, double norm) {
    return norm > 0 ? (float)(residual / norm * KGT_UP * KGT_UP) : 0;
}

/* The second level of query i. */
static void take_fine(kgt_queries *queries, const kgt_factors *factors, int64_t i,
                      const kgt_quantised *coarse) {
    const float *query = vectors_f32(factors->queries, i, factors->dim);
    kgt_quantised q;
    queries->bytes->quantise_fine(query, (size_t)factors->dim, coarse,
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
static bool take_query(kgt_queries *queries, const kgt_factors *factors, int64_t i, int8_t *codes) {
    const size_t dim = (size_t)factors->dim;
    const float *query = vectors_f32(factors->queries, i, factors->dim);
    kgt_quantised q;
    if (!queries->bytes->quantise(query, dim, codes, &q)) return false;
    uint8_t *row = queries->codes + (size_t)i * queries->groups * 4;
    for (size_t k = 0; k < dim; k++) row[k] = (uint8_t)(codes[k] + queries->bytes->query_zero);
    const double scale = q.scale > 0 ? (double)q.scale : 1; /* of a zero vector: any will do */
    const double norm = (double)q.norm / scale * KGT_UP;
    queries->inverse[i] = 1 / (factors->metric == KGT_L2 ? 2 * scale : scale);
    queries->judged_norm[i] = (float)(norm * KGT_UP);
    queries->factor[i] = (float)queries->inverse[i];
    take_fine(queries, factors, i, &q);
    const float own = relative((double)q.residual / scale, norm);
    if (own > queries->relative[i / KGT_BYTE_QUERIES])
        queries->relative[i / KGT_BYTE_QUERIES] = own;
    if (factors->metric == KGT_L2) {
        queries->bytes->dot.pairs(&query, &query, 1, dim, &q.norm);
        queries->chain[i] = (double)q.norm;
    }
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
    queries->codes = kgt_allocate(n_padded, groups * 4);
    queries->inverse = calloc(5 * n_padded, sizeof(double));
    queries->judged_norm = calloc(4 * n_padded + n_tiles, sizeof(float));
    queries->bounded = calloc(n_padded, sizeof(bool));
    queries->fine = kgt_allocate(n_padded * queries->fine_stride, sizeof(int16_t));
    if (!codes || !queries->codes || !queries->inverse || !queries->judged_norm ||
        !queries->bounded || !queries->fine) {
        free(codes);
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
    for (int64_t i = 0; i < n; i++)
        queries->bounded[i] =
            l1 ? kgt_l1_take_query(queries, factors, i) : take_query(queries, factors, i, codes);
    free(codes);
    return KGT_OK;
}
