# Mirror of csrc/kgtrec.h, and nothing else.
from libc.stdint cimport int32_t, int64_t


cdef extern from "<stdbool.h>":
    ctypedef bint c_bool "bool"


cdef extern from "kgtrec.h" nogil:
    ctypedef enum kgt_status:
        KGT_OK
        KGT_NO_MEMORY
        KGT_BAD_DTYPE

    ctypedef enum kgt_dtype:
        KGT_F16
        KGT_BF16
        KGT_F32
        KGT_F64

    ctypedef struct kgt_csr:
        const int64_t *offsets
        const int32_t *ids

    ctypedef struct kgt_task:
        const int64_t *row_question
        kgt_csr jobs
        kgt_csr known
        kgt_csr removed
        const int64_t *row_domain
        kgt_csr domain
        const int32_t *columns
        const int32_t *position
        const int32_t *entity_at

    ctypedef struct kgt_counts:
        int64_t *greater
        int64_t *equal
        int64_t *tied_ahead
        int64_t *macro_greater
        int64_t *macro_equal
        int64_t *macro_tied_ahead

    ctypedef struct kgt_best:
        int64_t depth
        const int64_t *slot
        int32_t *ids
        void *scores
        int32_t *length

    ctypedef struct kgt_nans:
        int64_t *count
        int32_t *first_entity

    ctypedef struct kgt_scores:
        const void *data
        kgt_dtype dtype
        int64_t n_rows
        int64_t n_entities
        int64_t row_stride
        int64_t entity_stride
        int32_t first_entity
        c_bool negate

    ctypedef enum kgt_metric:
        KGT_DOT
        KGT_L2
        KGT_L1

    ctypedef struct kgt_factors:
        const void *queries
        const void *entities
        const void *bias
        kgt_dtype dtype
        kgt_metric metric
        int64_t n_rows
        int64_t n_entities
        int64_t dim
        int32_t first_entity
        c_bool half_entities
        const int32_t *ids

    kgt_status kgt_job_scores(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                              double *out)
    kgt_status kgt_rank_rows(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                             const double *job_scores, const kgt_counts *counts,
                             const kgt_best *best, const kgt_nans *nans)
    kgt_status kgt_factor_job_scores(const kgt_factors *factors, const kgt_task *task,
                                     int64_t first_row, double *out)
    kgt_status kgt_rank_factors(const kgt_factors *factors, const kgt_task *task,
                                int64_t first_row, const double *job_scores,
                                const kgt_counts *counts, const kgt_best *best,
                                const kgt_nans *nans)
    kgt_status kgt_factor_scores(const kgt_factors *factors, void *out)

    ctypedef struct kgt_ties:
        int64_t n
        const int64_t *greater
        const int64_t *size
        const int64_t *answers

    void kgt_expected_reciprocal(const kgt_ties *ties, double *out)
    void kgt_expected_hits(const kgt_ties *ties, int64_t k, double *out)
    void kgt_expected_log(const kgt_ties *ties, double *out)

    ctypedef struct kgt_strata:
        int64_t n_relations
        int64_t n_triples
        int64_t n_instances
        int64_t n_popularities
        const int64_t *relations
        const int64_t *triples
        const int64_t *row
        const int32_t *popularity_of
        const double *popularity
        const double *relation_popularity

    ctypedef struct kgt_grid:
        const double *values
        const double *beta_e
        const double *beta_r
        int64_t n_metrics
        int64_t n_rows
        int64_t n_beta_e
        int64_t n_beta_r

    kgt_status kgt_stratify(const kgt_strata *strata, const kgt_grid *grid, double *out)

    const char *kgt_path_name(int index)
    const char *kgt_path_active()
    c_bool kgt_path_force(const char *name)
