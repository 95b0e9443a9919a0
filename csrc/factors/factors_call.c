/* Ranks of a factorised model: from bounds of its scores if these pay, otherwise from tiles of
 * scores. */
#include "factors_settle.h"

kgt_status kgt_rank_factors(const kgt_factors *factors, const kgt_task *task, int64_t first_row,
                            const double *target_scores, const kgt_codes *codes,
                            const kgt_counts *counts, const kgt_best *best, const kgt_nans *nans,
                            kgt_tally *tally) {
    const kgt_call call = {task, first_row, target_scores, counts, best, nans, tally, codes};
    if (target_scores != NULL && kgt_bounds_serve(factors, best->depth))
        return kgt_rank_bounds(factors, &call);
    return kgt_rank_by_tiles(factors, &call);
}
