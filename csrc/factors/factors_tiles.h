/* Scores of a factorised model, tile by tile. Internal to the factors family. */
#ifndef KGT_FACTORS_TILES_H
#define KGT_FACTORS_TILES_H

#include "factors_vectors.h"
#include "rank_row.h"

/* Queries scored against one packed entity tile before the scores are ranked. */
#define QUERY_TILE 64

/* The task of a call, and where its results go. */
typedef struct {
    const kgt_task *task;
    int64_t first_row;
    const double *target_scores;
    const kgt_counts *counts;
    const kgt_best *best;
    const kgt_nans *nans;
    kgt_tally *tally;
    const kgt_codes *codes; /* or NULL */
} kgt_call;

/* A tile of entities, and scores of a tile of queries with them. */
#define KGT_TILER(suffix, T)                                                                      \
    typedef struct {                                                                              \
        const kgt_kernel *kernel;                                                                 \
        const kgt_factors *factors;                                                               \
        int64_t width;   /* entities per tile, a multiple of KGT_PANEL */                         \
        T *panels;       /* packed tile: panel after panel, (dim, KGT_PANEL) each */              \
        T *entity_norms; /* x.x of the tile's entities, for KGT_L2 */                             \
        T *bias;         /* of the tile's entities; 0 for a model without */                      \
        T *scores;       /* (QUERY_TILE, width) */                                                \
        T *queries;      /* a strip of queries padded with zero rows */                           \
        T *copy;         /* a panel's entities, and one more */                                   \
    } kgt_tiler_##suffix;                                                                         \
    kgt_status kgt_tiler_open_##suffix(kgt_tiler_##suffix *tiler, const kgt_factors *factors,     \
                                       int64_t width);                                            \
    void kgt_tiler_close_##suffix(kgt_tiler_##suffix *tiler);                                     \
    /* Packs entities first .. first + n - 1, n <= width. */                                      \
    void kgt_tiler_pack_##suffix(kgt_tiler_##suffix *tiler, int64_t first, int64_t n);            \
    /* Scores of one query tile, which starts at a multiple of QUERY_TILE, with these. */         \
    void kgt_tiler_score_##suffix(kgt_tiler_##suffix *tiler, int64_t first_query,                 \
                                  int64_t n_queries, int64_t n_entities);                         \
    /* Ranks those scores. The queries are the rows `rows` of the call, or, if that is NULL,      \
     * first_query and on; top-k buffers are per row, they live across entity tiles. */           \
    void kgt_tiler_rank_##suffix(kgt_tiler_##suffix *tiler, kgt_worker_##suffix *worker,          \
                                 const int64_t *rows, int64_t first_query, int64_t n_queries,     \
                                 int64_t first_entity, int64_t n_entities, const kgt_call *call); \
    /* Ranks all rows of the call among the entities first .. end - 1. */                         \
    kgt_status kgt_rank_tiles_##suffix(const kgt_factors *factors, kgt_worker_##suffix *worker,   \
                                       int64_t first, int64_t end, const kgt_call *call);         \
    kgt_status kgt_rank_by_tiles_##suffix(const kgt_factors *factors, const kgt_call *call);

KGT_TILER(f32, float)
KGT_TILER(f64, double)

/* The whole call, from scores without bounds. */
kgt_status kgt_rank_by_tiles(const kgt_factors *factors, const kgt_call *call);

#endif
