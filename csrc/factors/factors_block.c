/* Converts entities to 8-bit and 16-bit codes, with figures that bound products and distances. */
#include "factors_block.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* The sums of the metric. */
static const kgt_sums *sums_of(const kgt_factors *factors) {
    const kgt_bytes *bytes = kgt_bytes_active();
    return factors->metric == KGT_L1 ? &bytes->l1 : &bytes->dot;
}

/* Above this, biases are too large for bounds in float. */
#define LARGEST_BIAS 0x1p40

/* So many bytes of vectors stay in the second-level cache with the block's codes. If the products
 * of the whole block are stored, so many words of products stay there too. */
#define BLOCK_BYTES (2 << 20)
#define MOST_WORDS_OF_ALL 32

int64_t kgt_block_width(const kgt_factors *factors) {
    const bool all = sums_of(factors)->reaching == NULL;
    const int64_t most_words = all ? MOST_WORDS_OF_ALL : KGT_MOST_WORDS;
    const int64_t words = (factors->n_entities + 63) / 64;
    int64_t most = BLOCK_BYTES / (int64_t)kgt_vector_bytes(factors) / 64;
    if (most > most_words) most = most_words;
    if (most < 1) most = 1;
    if (words <= most || all) return (words < most ? words : most) * 64;
    /* Wide blocks have similar widths. A first block with nearly all entities would leave too much
     * open, because only the guess bounds its best. */
    const int64_t n_blocks = (words + most - 1) / most;
    return (words + n_blocks - 1) / n_blocks * 64;
}

static bool has_offsets(const kgt_factors *factors) {
    return factors->metric == KGT_L2 || factors->bias != NULL;
}

/* Floats of a block: four per word, and two per entity with an offset. */
static size_t n_floats(const kgt_factors *factors, size_t n) {
    return n / 64 * 4 + (has_offsets(factors) ? 2 * n : 0);
}

size_t kgt_block_bytes(const kgt_factors *factors, int64_t width) {
    const size_t n = (size_t)width, norm = factors->metric == KGT_L2 ? sizeof(double) : 0;
    const size_t fine = kgt_fine_stride((size_t)factors->dim) * sizeof(int16_t);
    const size_t entity =
        kgt_code_groups(factors) * 4 + fine + sizeof(int32_t) + 2 * sizeof(uint16_t);
    return n * (entity + norm) + n_floats(factors, n) * sizeof(float);
}

kgt_status kgt_block_open(kgt_block *block, const kgt_factors *factors, kgt_steps steps,
                          int64_t width) {
    const kgt_sums *sums = sums_of(factors);
    const size_t n = (size_t)width, words = n / 64, groups = kgt_code_groups(factors);
    const size_t fine_stride = kgt_fine_stride((size_t)factors->dim);
    const bool distances = factors->metric == KGT_L2;
    *block = (kgt_block){.bytes = kgt_bytes_active(),
                         .factors = factors,
                         .sums = sums,
                         .pairs = kgt_in_double(factors) ? sums->pairs_f64 : sums->pairs_f32,
                         .steps = steps,
                         .groups = groups,
                         .width = width,
                         .fine_stride = fine_stride};
    block->panels = kgt_allocate(n, groups * 4);
    block->start = kgt_allocate(n, sizeof(int32_t));
    block->scale = kgt_allocate(n_floats(factors, n), sizeof(float));
    block->place_of = kgt_allocate(2 * n, sizeof(uint16_t));
    block->fine = kgt_allocate(n * fine_stride, sizeof(int16_t));
    if (distances) block->entity_norm = kgt_allocate(n, sizeof(double));
    if (!block->panels || !block->start || !block->scale || !block->place_of || !block->fine ||
        (distances && !block->entity_norm)) {
        kgt_block_close(block);
        return KGT_NO_MEMORY;
    }
    memset(block->panels, 0, n * groups * 4);
    memset(block->fine, 0, n * fine_stride * sizeof(int16_t));
    block->slot_of = block->place_of + n;
    block->inverse = block->scale + words;
    block->code_norm = block->inverse + words;
    block->base = block->code_norm + words;
    if (has_offsets(factors)) {
        block->offset = block->base + words;
        block->shift = block->offset + n;
    }
    return KGT_OK;
}

void kgt_block_close(kgt_block *block) {
    free(block->panels);
    free(block->start);
    free(block->scale);
    free(block->place_of);
    free(block->fine);
    free(block->entity_norm);
    *block = (kgt_block){0};
}

/* Scratch for encoding a block. */
typedef struct {
    float *largest;      /* magnitude, by place */
    uint16_t *half_done; /* order, by one digit */
    int8_t *codes;       /* of the current vector, padded with zeros */
    float *in_float;     /* that vector */
    char *copies;        /* converted vectors of its word */
} scratch;

static void scratch_close(scratch *s) {
    free(s->largest);
    free(s->half_done);
    free(s->codes);
    free(s->in_float);
    free(s->copies);
}

static kgt_status scratch_open(scratch *s, const kgt_block *block) {
    const size_t n = (size_t)block->width, dim = (size_t)block->factors->dim;
    s->largest = kgt_allocate(n, sizeof(float));
    s->half_done = kgt_allocate(n, sizeof(uint16_t));
    s->codes = kgt_allocate(block->groups, 4);
    s->in_float = kgt_allocate(dim, sizeof(float));
    s->copies = kgt_allocate(KGT_AT_HAND * 2, kgt_vector_bytes(block->factors));
    if (!s->largest || !s->half_done || !s->codes || !s->in_float || !s->copies) {
        scratch_close(s);
        return KGT_NO_MEMORY;
    }
    memset(s->codes, block->factors->metric == KGT_L1 ? KGT_L1_ZERO : 0, block->groups * 4);
    return KGT_OK;
}

/* A key that rises with the magnitude: 128 per power of two. */
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
static bool take_order(kgt_block *block, const scratch *s) {
    const kgt_factors *factors = block->factors;
    const int64_t n = block->n;
    for (int64_t i = 0; i < n; i++) {
        block->place_of[i] = block->slot_of[i] = (uint16_t)i;
        const void *x = kgt_vector_at(block, i, s->copies, 0);
        const float *vector = kgt_in_float(factors, x, s->in_float);
        const float largest = block->bytes->largest(vector, (size_t)factors->dim);
        s->largest[i] = kgt_code_range(block->bytes, factors, vector, largest, false);
        if (isnan(largest)) return false;
    }
    sort_by_digit(s->largest, 0, block->slot_of, n, s->half_done);
    sort_by_digit(s->largest, 8, s->half_done, n, block->place_of);
    for (int64_t i = 0; i < n; i++) block->slot_of[block->place_of[i]] = (uint16_t)i;
    return true;
}

/* Quantises the vector of a slot, writes its codes into its panel and raises the error bounds of
 * its word. */
static void take_codes(kgt_block *block, int64_t slot, const float *vector, float largest,
                       const scratch *s) {
    const size_t dim = (size_t)block->factors->dim, i = (size_t)slot, word = i / 64;
    const double rounding = kgt_rounding(block->factors);
    kgt_quantised x, fine;
    block->bytes->quantise(vector, dim, largest, s->codes, &x);
    block->bytes->quantise_fine(vector, dim, s->largest[block->place_of[slot]], &x,
                                block->fine + i * block->fine_stride, &fine);
    int8_t *codes = block->panels + i / KGT_BYTE_PANEL * KGT_BYTE_PANEL * block->groups * 4 +
                    i % KGT_BYTE_PANEL * 4;
    const uint32_t zeros = block->bytes->entity_zero * 0x01010101u; /* added by ^: 0 or 128 */
    for (size_t k = 0; k < block->groups; k++) {
        uint32_t four;
        memcpy(&four, s->codes + k * 4, sizeof four);
        four ^= zeros;
        memcpy(codes + k * KGT_BYTE_PANEL * 4, &four, sizeof four);
    }
    block->start[i] = -(int32_t)block->bytes->query_zero * x.sum;
    const float base = (float)(((double)x.residual + rounding * (double)x.norm) * KGT_UP);
    if (base > block->base[word]) block->base[word] = base;
    if (x.code_norm > block->code_norm[word]) block->code_norm[word] = x.code_norm;
    const float fine_base = (float)(((double)fine.residual + rounding * (double)x.norm) * KGT_UP);
    const kgt_figures figures = {fine.scale, fine_base, fine.code_norm, 0};
    memcpy(kgt_figures_of(block, slot), &figures, sizeof figures);
}

/* Takes the offsets of the entities of a word. False if a bias is too large for bounds. */
static bool take_offsets(kgt_block *block, const void *const *vectors, int64_t first, int64_t end) {
    const kgt_factors *factors = block->factors;
    if (block->entity_norm != NULL)
        block->pairs(vectors, vectors, (size_t)(end - first), (size_t)factors->dim,
                     block->entity_norm + first);
    for (int64_t i = first; i < end; i++) {
        const double bias = kgt_bias(factors, block->first + block->place_of[i]);
        if (!(fabs(bias) <= LARGEST_BIAS)) return false;
        const double norm = block->entity_norm ? block->entity_norm[i] : 0;
        block->offset[i] = (float)(bias - norm);
        block->shift[i] = block->offset[i] * block->inverse[i / 64];
        memcpy(kgt_figures_of(block, i) + offsetof(kgt_figures, offset), block->offset + i,
               sizeof(float));
        const double offset = fabs((double)block->offset[i]) + norm + fabs(bias);
        if (offset > block->largest_offset) block->largest_offset = offset;
    }
    return true;
}

/* The same for distances in L1. */
static void take_l1_codes(kgt_block *block, int64_t slot, const float *vector, int8_t *codes) {
    const size_t i = (size_t)slot, dim = (size_t)block->factors->dim;
    kgt_quantised_l1 x, fine;
    block->bytes->quantise_l1(vector, dim, block->steps.coarse, false, codes, &x);
    block->bytes->quantise_l1(vector, dim, block->steps.fine, true,
                              block->fine + i * block->fine_stride, &fine);
    int8_t *panel = block->panels + i / KGT_BYTE_PANEL * KGT_BYTE_PANEL * block->groups * 4 +
                    kgt_l1_place(i % KGT_BYTE_PANEL);
    for (size_t k = 0; k < block->groups; k += 2)
        memcpy(panel + k * KGT_BYTE_PANEL * 4, codes + k * 4, 8);
    block->start[i] = 0;
    const float error = (float)kgt_l1_error(x, block->factors);
    if (error > block->base[i / 64]) block->base[i / 64] = error;
    const kgt_figures figures = {1, (float)kgt_l1_error(fine, block->factors), 0, 0};
    memcpy(kgt_figures_of(block, slot), &figures, sizeof figures);
}

/* Takes the entities of a word, which share a scale. False if some have no bounds. */
static bool take_word(kgt_block *block, int64_t word, const scratch *s) {
    const int64_t first = word * 64, left = block->n - first, end = first + (left < 64 ? left : 64);
    const bool l1 = block->factors->metric == KGT_L1;
    const void *vectors[KGT_AT_HAND];
    float largest = 0;
    for (int64_t i = first; i < end; i++) {
        const float magnitude = s->largest[block->place_of[i]];
        largest = magnitude > largest ? magnitude : largest;
    }
    block->scale[word] = l1 ? 1 : largest / 127.0f;
    block->inverse[word] =
        block->scale[word] > 0 ? 1 / block->scale[word] : 1; /* any, if all are zero */
    block->base[word] = block->code_norm[word] = 0;
    for (int64_t i = first; i < end; i++) {
        const void *vector = kgt_vector_at(block, i, s->copies, (size_t)(i - first));
        const float *in_float = kgt_in_float(block->factors, vector, s->in_float);
        vectors[i - first] = vector;
        if (l1)
            take_l1_codes(block, i, in_float, s->codes);
        else
            take_codes(block, i, in_float, largest, s);
    }
    return block->offset == NULL || take_offsets(block, vectors, first, end);
}

kgt_status kgt_block_encode(kgt_block *block, int64_t first, int64_t n) {
    scratch s;
    if (scratch_open(&s, block) != KGT_OK) return KGT_NO_MEMORY;
    block->first = first;
    block->n = n;
    block->largest_offset = 0;
    block->bounded = take_order(block, &s);
    for (int64_t word = 0; block->bounded && word < (n + 63) / 64; word++)
        block->bounded = take_word(block, word, &s);
    /* Pads the last block with numbers whose comparisons nobody reads. */
    for (int64_t i = n; i < (int64_t)kgt_block_padded(block); i++) {
        block->start[i] = 0;
        if (block->offset != NULL) block->offset[i] = block->shift[i] = 0;
    }
    scratch_close(&s);
    return KGT_OK;
}
