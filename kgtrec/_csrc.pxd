# Mirror of csrc/kgtrec.h and the header a family behind it, and nothing else.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "<stdbool.h>":
    ctypedef bint c_bool "bool"


cdef extern from "kgt_status.h" nogil:
    ctypedef enum kgt_status:
        KGT_OK
        KGT_NO_MEMORY
        KGT_BAD_DTYPE


cdef extern from "rank.h" nogil:
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
        kgt_csr targets
        kgt_csr known
        kgt_csr removed
        const int64_t *row_list
        kgt_csr lists
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

    ctypedef struct kgt_pair_counts:
        int64_t n
        const double *thresholds
        int64_t *greater
        int64_t *at_least
        double bound
        int64_t capacity
        int64_t used
        int64_t *cells
        double *scores
        c_bool nan

    kgt_status kgt_count_rows(const kgt_scores *scores, kgt_pair_counts *counts)


cdef extern from "factors.h" nogil:
    ctypedef enum kgt_metric:
        KGT_DOT
        KGT_L2
        KGT_L1
        KGT_MODULI
        KGT_MODE
        KGT_HAKE

    int64_t kgt_query_dim(kgt_metric metric, int64_t dim)

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

    kgt_status kgt_target_scores(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                              double *out)
    kgt_status kgt_rank_rows(const kgt_scores *scores, const kgt_task *task, int64_t first_row,
                             const double *target_scores, const kgt_counts *counts,
                             const kgt_best *best, const kgt_nans *nans)
    kgt_status kgt_factor_target_scores(const kgt_factors *factors, const kgt_task *task,
                                     int64_t first_row, double *out)
    ctypedef struct kgt_tally:
        int64_t pairs
        int64_t tiled
        int64_t open
        int64_t close

    ctypedef struct kgt_codes:
        pass

    kgt_status kgt_codes_open(const kgt_factors *factors, int64_t call_rows, int64_t depth,
                              int64_t most_bytes, kgt_codes **codes)
    void kgt_codes_close(kgt_codes *codes)
    int64_t kgt_codes_parts(const kgt_codes *codes)
    kgt_status kgt_codes_encode(kgt_codes *codes, int64_t part)
    kgt_status kgt_rank_factors(const kgt_factors *factors, const kgt_task *task,
                                int64_t first_row, const double *target_scores,
                                const kgt_codes *codes, const kgt_counts *counts,
                                const kgt_best *best, const kgt_nans *nans, kgt_tally *tally)
    kgt_status kgt_count_factors(const kgt_factors *factors, kgt_pair_counts *counts)
    kgt_status kgt_factor_scores(const kgt_factors *factors, void *out)


cdef extern from "stat.h" nogil:
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

    ctypedef struct kgt_paired:
        const double *values
        int64_t n_rows
        int64_t n_columns
        uint64_t seed

    void kgt_sign_sums(const kgt_paired *paired, int64_t first, int64_t n, double *out)


cdef extern from "trec.h" nogil:
    ctypedef enum kgt_trec_kind:
        KGT_RUN
        KGT_QRELS
        KGT_SHORT_RUN
        KGT_SHORT_QRELS

    ctypedef struct kgt_text:
        const char *bytes
        int64_t size
        kgt_trec_kind kind
        c_bool comments

    ctypedef enum kgt_fault_kind:
        KGT_NO_FAULT
        KGT_BLANK_LINE
        KGT_COLUMNS
        KGT_SCORE
        KGT_RELEVANCE
        KGT_DUPLICATE
        KGT_LONG_NAME

    ctypedef struct kgt_fault:
        kgt_fault_kind kind
        int64_t line
        int64_t begin

    ctypedef struct kgt_scan:
        int64_t at
        int64_t line
        int64_t query
        int64_t n_comments
        kgt_fault fault

    int64_t kgt_trec_groups(const kgt_text *text, int64_t stop, int64_t capacity, kgt_scan *scan,
                            int64_t *begin, int64_t *line)
    kgt_status kgt_trec_queries(const kgt_text *text, int64_t n, const int64_t *begin,
                                int64_t *query_of, int64_t *name_begin, int64_t *name_size,
                                int64_t *n_queries)

    ctypedef struct kgt_lines:
        const kgt_text *text
        const int64_t *first
        const int64_t *group
        const int64_t *begin
        const int64_t *line

    ctypedef struct kgt_documents:
        const char *text
        const int64_t *offsets
        const int64_t *begin
        const int32_t *size
        const double *scores
        const int64_t *relevance

    kgt_status kgt_trec_documents(const kgt_lines *lines, int64_t first, int64_t n, int64_t *begin,
                                  int32_t *size, double *scores, int64_t *relevance,
                                  int64_t *count, kgt_fault *fault)

    ctypedef struct kgt_cut:
        int64_t depth
        c_bool keep_ties
        c_bool judged_only
        c_bool single

    ctypedef struct kgt_listing:
        const kgt_lines *lines
        const kgt_documents *documents
        const kgt_documents *judged
        const int64_t *judged_query
        kgt_cut cut
        int64_t unjudged
        c_bool ranked

    ctypedef struct kgt_signs:
        int64_t documents
        int64_t judged
        int64_t rises
        int64_t upper
        int64_t lower
        int64_t reversed

    kgt_status kgt_trec_lists(const kgt_listing *listing, int64_t first, int64_t n,
                              int64_t *relevance, double *scores, int64_t *length,
                              int64_t *retrieved, kgt_signs *signs, kgt_fault *fault)
    void kgt_add_signs(kgt_signs *total, const kgt_signs *query)
    enum: KGT_RISES

    ctypedef struct kgt_trec_qrels:
        pass

    kgt_trec_qrels *kgt_trec_open_qrels(const char *path, int64_t size, int64_t unjudged)
    void kgt_trec_close_qrels(kgt_trec_qrels *qrels)
    c_bool kgt_trec_same_qrels(const kgt_trec_qrels *qrels, const char *bytes, int64_t size)

    ctypedef struct kgt_trec_listed:
        int64_t n_queries
        int64_t n_shared
        int64_t n_documents
        int64_t tag_size
        int64_t foreign_size
        int64_t *query
        int64_t *length
        int64_t *retrieved
        int64_t *relevance
        double *scores
        char *tag
        char *foreign

    c_bool kgt_trec_list_file(const kgt_trec_qrels *qrels, const char *path, int64_t size,
                              kgt_cut cut, kgt_trec_listed *out)
    void kgt_trec_free_listed(kgt_trec_listed *listed)

    ctypedef enum kgt_measure:
        KGT_NUM_Q
        KGT_NUM_RET
        KGT_NUM_REL
        KGT_NUM_REL_RET
        KGT_NUM_NONREL_JUDGED_RET
        KGT_MAP
        KGT_MAP_CUT
        KGT_RELATIVE_MAP
        KGT_GM_MAP
        KGT_YAAP
        KGT_BPREF
        KGT_GM_BPREF
        KGT_INFAP
        KGT_RECIP_RANK
        KGT_RECIP_RANK_CUT
        KGT_P
        KGT_RECALL
        KGT_RELATIVE_P
        KGT_F1
        KGT_SUCCESS
        KGT_RPREC
        KGT_RPREC_MULT
        KGT_IPREC
        KGT_IPREC_9
        KGT_BING
        KGT_JUDGED_CUT
        KGT_UNJ
        KGT_SET_P
        KGT_SET_RECALL
        KGT_SET_RELATIVE_P
        KGT_SET_MAP
        KGT_SET_F
        KGT_DCG
        KGT_IDEAL_DCG
        KGT_NDCG
        KGT_NDCG_CUT
        KGT_N_MEASURES

    ctypedef struct kgt_column:
        kgt_measure measure
        double parameter

    ctypedef struct kgt_judged_lists:
        int64_t n_queries
        const int64_t *offsets
        const int64_t *rank
        const int64_t *relevance
        const int64_t *retrieved
        const int64_t *judged_query
        const int64_t *judged_offsets
        const int64_t *judged
        int64_t unjudged
        int64_t level

    kgt_status kgt_trec_values(const kgt_judged_lists *lists, const kgt_column *columns,
                               int64_t n_columns, double *values)

    ctypedef struct kgt_tied_places:
        const double *scores
        const int64_t *first
        const int64_t *size

    ctypedef struct kgt_tie_values:
        uint8_t *differs
        double *most
        double *least
        double *greatest
        double *expected

    kgt_status kgt_trec_ties(const kgt_judged_lists *lists, const kgt_tied_places *ties,
                             const kgt_column *columns, int64_t n_columns,
                             const kgt_tie_values *out)

    ctypedef struct kgt_score_rows:
        int64_t n_rows
        int64_t n
        int64_t stride
        int64_t names_stride
        const double *doubles
        const float *singles
        const int64_t *names
        c_bool decimal
        const int64_t *judged_query
        const int64_t *judged_offsets
        const int64_t *judged
        const int64_t *relevance

    ctypedef struct kgt_placed:
        int64_t *rank
        int64_t *relevance
        int64_t *first
        int64_t *size

    int64_t kgt_trec_places(const kgt_score_rows *rows, kgt_placed out, int64_t *count,
                            int64_t *retrieved, int64_t *seen, double *bounds)
    c_bool kgt_trec_score(const char *text, int64_t size, double *score)

    ctypedef struct kgt_names:
        const char *text
        const int64_t *offsets

    ctypedef struct kgt_run_lines:
        kgt_names queries
        kgt_names documents
        int64_t n_queries
        const int64_t *offsets
        const char *tag
        int64_t tag_size

    ctypedef struct kgt_run_block:
        int64_t first
        int64_t n
        const int64_t *document
        const float *singles
        const double *doubles

    int64_t kgt_trec_run_capacity(const kgt_run_lines *run, const kgt_run_block *block)
    int64_t kgt_trec_write_run(const kgt_run_lines *run, const kgt_run_block *block, char *out)


cdef extern from "map.h" nogil:
    void kgt_map_guard_begin()
    void kgt_map_guard_end()
    int64_t kgt_map_faults()


cdef extern from "isa.h" nogil:
    const char *kgt_path_name(int index)
    const char *kgt_path_best()
    const char *kgt_path_active()
    c_bool kgt_path_force(const char *name)


cdef extern from "label.h" nogil:
    ctypedef struct kgt_label:
        uint32_t begin
        uint32_t size
        uint64_t hash

    ctypedef struct kgt_label_scan:
        int64_t at
        int n_tabs
        c_bool blank
        c_bool faulty

    enum:
        KGT_LABEL_PAD

    int kgt_labels_of(int n_tabs)

    int64_t kgt_label_lines(const char *text, int64_t size, int64_t capacity,
                            kgt_label_scan *scan, kgt_label *labels)

    ctypedef struct kgt_label_table:
        char *records
        int64_t n
        int64_t n_bytes

    c_bool kgt_label_open(kgt_label_table *table)
    void kgt_label_close(kgt_label_table *table)
    kgt_status kgt_label_numbers(kgt_label_table *table, const char *text, int64_t n,
                                 int64_t stride, const kgt_label *labels, int32_t *numbers)
    kgt_status kgt_label_order(kgt_label_table *table, int64_t *offsets, char *bytes,
                               int32_t *position)
    void kgt_label_renumber(int32_t *triples, int64_t n, int64_t width,
                            const int32_t *entities, const int32_t *relations)
