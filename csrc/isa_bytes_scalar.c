/* 8-bit products and bounds in plain C, the reference for other paths. It is slower than computing
 * the scores, so only tests use it. */
#include "isa_bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FN(op) op##_bytes_scalar
#define FMA1(a, b, c) fmaf(a, b, c)
#include "isa_bits_body.h"
#include "isa_quantise_body.h"
#include "isa_quantise_l1_body.h"

static void product_bytes_scalar(const uint8_t *queries, const int8_t *panels, size_t groups,
                                 size_t n_panels, const int32_t *start, int32_t *out,
                                 size_t stride) {
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++)
        for (size_t j = 0; j < n_panels * KGT_BYTE_PANEL; j++) {
            const int8_t *query = (const int8_t *)queries + i * groups * 4;
            const int8_t *entity =
                panels + j / KGT_BYTE_PANEL * groups * KGT_BYTE_PANEL * 4 + j % KGT_BYTE_PANEL * 4;
            int32_t sum = start[j];
            for (size_t k = 0; k < groups * 4; k++)
                sum += query[k] * entity[k / 4 * KGT_BYTE_PANEL * 4 + k % 4];
            out[i * stride + j] = sum;
        }
}

static void product_l1_bytes_scalar(const uint8_t *queries, const int8_t *panels, size_t groups,
                                    size_t n_panels, const int32_t *start, int32_t *out,
                                    size_t stride) {
    (void)start;
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++)
        for (size_t j = 0; j < n_panels * KGT_BYTE_PANEL; j++) {
            const uint8_t *query = queries + i * groups * 4;
            const uint8_t *entity = (const uint8_t *)panels +
                                    j / KGT_BYTE_PANEL * groups * KGT_BYTE_PANEL * 4 +
                                    kgt_l1_place(j % KGT_BYTE_PANEL);
            int32_t sum = 0;
            for (size_t k = 0; k < groups * 4; k++)
                sum += abs(query[k] - entity[k / 8 * KGT_BYTE_PANEL * 8 + k % 8]);
            out[i * stride + j] = -sum;
        }
}

#define VEC float
#define LANES 1
#define LOAD(p) (*(p))
#define LOAD_INT(p) ((float)*(p))
#define STORE(p, v) *(p) = (v)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SET1(s) (s)
#define FMA(a, b, c) fmaf(a, b, c)
#define ABOVE(x, t) ((x) > (t))
#define REACHES(x, t) ((x) >= (t))
#include "isa_judge_body.h"

static void reaching_bytes_scalar(const uint8_t *queries, const int8_t *panels, size_t groups,
                                  size_t n_words, const int32_t *start, const kgt_bounds *bounds,
                                  const float *below, int32_t *out, size_t stride,
                                  uint64_t *words) {
    const uint64_t all = ~(uint64_t)0 >> (64 - n_words);
    uint64_t sure[KGT_MOST_WORDS], reach[KGT_MOST_WORDS];
    product_bytes_scalar(queries, panels, groups, n_words * KGT_BYTE_PANELS, start, out, stride);
    for (size_t i = 0; i < KGT_BYTE_QUERIES; i++) {
        int32_t *products = out + i * stride, *next = products;
        judge_bytes_scalar(products, all, n_words, bounds + i, below + i, below + i, 1, sure,
                           reach);
        words[i] = 0;
        for (size_t j = 0; j < n_words; j++) {
            if (reach[j] == 0) continue;
            memmove(next, products + j * 64, 64 * sizeof *next);
            next += 64;
            words[i] |= (uint64_t)1 << j;
        }
    }
}

#define FINE int32_t
#define FINE_LANES 1
#define FINE_ZERO 0
#define FINE_STEP(sum, p, q) sum += *(p) * *(q)
#define FINE_STEP_L1(sum, p, q, w) sum += abs(*(p) - *(q)) * *(w)
#define FINE_SUM4(out, v) memcpy(out, v, 4 * sizeof(int32_t))
#include "isa_pairs_body.h"
#include "isa_refine_body.h"

static bool available(void) { return true; }

const kgt_bytes kgt_bytes_scalar = {
    .name = "scalar8",
    .available = available,
    .query_zero = 0,
    .dot = {product_bytes_scalar, reaching_bytes_scalar, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};
