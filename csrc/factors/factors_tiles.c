/* Ranks factorised models: scores of query tiles times entity tiles, ranked while in cache. */
#include "factors_tiles.h"

#include <stdlib.h>

/* Entities per tile: the packed tile and its scores fit a second-level cache of 1 to 2 MB. */
static int64_t entities_per_tile(int64_t dim, size_t size) {
    int64_t panels = (int64_t)(640u << 10) / (KGT_PANEL * (int64_t)size * (dim > 0 ? dim : 1));
    if (panels > 32) panels = 32;
    if (panels < 8) panels = 8;
    return panels * KGT_PANEL;
}

#define T float
#define OWN_DTYPE KGT_F32
#define OPS f32
#define FN(op) op##_f32
#include "factors_tiles_body.h"
#undef T
#undef OWN_DTYPE
#undef OPS
#undef FN

#define T double
#define OWN_DTYPE KGT_F64
#define OPS f64
#define FN(op) op##_f64
#include "factors_tiles_body.h"

kgt_status kgt_rank_by_tiles(const kgt_factors *factors, const kgt_call *call) {
    if (factors->dtype == KGT_F32) return kgt_rank_by_tiles_f32(factors, call);
    if (factors->dtype == KGT_F64) return kgt_rank_by_tiles_f64(factors, call);
    return KGT_BAD_DTYPE;
}

kgt_status kgt_factor_scores(const kgt_factors *factors, void *out) {
    if (factors->dtype == KGT_F32) return factor_scores_f32(factors, out);
    if (factors->dtype == KGT_F64) return factor_scores_f64(factors, out);
    return KGT_BAD_DTYPE;
}

kgt_status kgt_count_factors(const kgt_factors *factors, kgt_pair_counts *counts) {
    if (factors->dtype == KGT_F32) return count_factors_f32(factors, counts);
    if (factors->dtype == KGT_F64) return count_factors_f64(factors, counts);
    return KGT_BAD_DTYPE;
}
