/* From the documents of a query to its list: order, relevance, cuts.
 *
 * Most runs are in order, so that is checked first. Otherwise, if only a few of many documents are
 * needed, a heap finds the lowest score among them, and only documents with at least this score are
 * sorted. Documents of a query have different names, so the order is unique.
 */
#include <math.h>
#include <stdlib.h>

#include "trec_decimal.h"
#include "trec_file.h"

typedef struct kgt_scored {
    double score;
    uint32_t entry;
} scored;

static bool ahead(const kgt_table *table, scored a, scored b) {
    if (a.score != b.score) return a.score > b.score;
    const kgt_entry *x = &table->entries[a.entry], *y = &table->entries[b.entry];
    return kgt_compare_bytes(x->name, x->size, y->name, y->size) > 0;
}

/* ---- order ---- */

static bool in_order(const kgt_table *table, const scored *order, int64_t n) {
    int64_t i = 1;
    while (i < n && ahead(table, order[i - 1], order[i])) i++;
    return i >= n;
}

/* Sifts down the root of a heap with the lowest score on top. */
static void sift(double *heap, int64_t n) {
    double score = heap[0];
    int64_t at = 0;
    for (int64_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= score) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = score;
}

/* The score of the k-th best of n, k <= n. */
static double bound_of(double *heap, const scored *order, int64_t n, int64_t k) {
    for (int64_t i = 0; i < k; i++) { /* from the bottom up, each new score sinks or rises */
        int64_t at = i;
        for (; at > 0 && order[i].score < heap[(at - 1) / 2]; at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = order[i].score;
    }
    for (int64_t i = k; i < n; i++) {
        if (order[i].score <= heap[0]) continue;
        heap[0] = order[i].score;
        sift(heap, k);
    }
    return heap[0];
}

/* Merges runs of `width` entries, which are in order, in pairs. */
static void merge(const kgt_table *table, const scored *from, scored *to, int64_t n,
                  int64_t width) {
    for (int64_t start = 0; start < n; start += 2 * width) {
        int64_t a = start, end_a = start + width < n ? start + width : n;
        int64_t b = end_a, end_b = start + 2 * width < n ? start + 2 * width : n;
        for (int64_t i = start; i < end_b; i++) {
            bool take_b = a == end_a || (b < end_b && ahead(table, from[b], from[a]));
            to[i] = take_b ? from[b++] : from[a++];
        }
    }
}

static void sort(kgt_lister *at, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        merge(&at->table, at->order, at->spare, n, width);
        scored *sorted = at->spare;
        at->spare = at->order;
        at->order = sorted;
    }
}

/* Sorts at least the `depth` best of n entries, and all that tie with the last of them; returns
 * their number. */
static int64_t arrange(kgt_lister *at, int64_t n, int64_t depth) {
    if (in_order(&at->table, at->order, n)) return n;
    if (depth <= 0) return 0;
    if (depth < n / 2) {
        double bound = bound_of(at->heap, at->order, n, depth);
        int64_t n_best = 0;
        for (int64_t i = 0; i < n; i++)
            if (at->order[i].score >= bound) at->order[n_best++] = at->order[i];
        n = n_best;
    }
    sort(at, n);
    return n;
}

/* ---- signs ---- */

/* Reads the field behind a document's name. */
KGT_INLINE bool read_rank(const kgt_entry *entry, int64_t *rank) {
    const char *at = entry->name + entry->size + 1, *digit = at;
    int64_t value = 0;
    for (; *digit >= '0' && *digit <= '9' && digit - at < 18; digit++)
        value = 10 * value + (*digit - '0');
    *rank = value;
    if (digit > at && kgt_is_space(*digit)) return true;
    return kgt_read_whole(kgt_skip_space(at - 1), rank) != NULL;
}

/* Whether a score is higher, and not only because of rounding to single precision. */
static bool exceeds(double score, double other) {
    if (!(score > other)) return false;
    return isinf(score) || isinf(other) || score - other > 1e-6 * fmax(fabs(score), fabs(other));
}

/* Follows documents by rank, and compares each score with those of all lower ranks. */
typedef struct {
    int64_t rank, least_rank; /* of the last document, and of the one that scores `least` */
    double least, current;    /* lowest score of the ranks before `rank`, and of `rank` */
} descent;

/* Whether the next document's rank is not less than the last one, and its score fits. */
KGT_INLINE bool descends(descent *at, int64_t rank, double score) {
    if (rank < at->rank) return false;
    if (rank > at->rank) {
        if (at->current < at->least) {
            at->least = at->current;
            at->least_rank = at->rank;
        }
        at->current = INFINITY;
        at->rank = rank;
    }
    if (score > at->least && exceeds(score, at->least)) return false;
    if (score < at->current) at->current = score;
    return true;
}

static const descent NO_DOCUMENT = {INT64_MIN, 0, INFINITY, INFINITY};

/* Whether all ranks are whole numbers. They are the relevance of entries, as this is not known yet;
 * with in_lines, they are first read. `agree`: whether their order and that of the scores agree at
 * first sight. */
static bool read_ranks(kgt_table *table, bool in_lines, bool *agree) {
    descent at = NO_DOCUMENT;
    *agree = true;
    for (int64_t i = 0; i < table->n; i++) {
        kgt_entry *entry = &table->entries[i];
        if (in_lines && !read_rank(entry, &entry->relevance)) return false;
        *agree = *agree && descends(&at, entry->relevance, entry->score);
    }
    return true;
}

static int by_rank(const void *a, const void *b) {
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x > y) - (x < y);
}

/* Finds two ranks whose scores contradict them, with documents in order of their ranks. */
static void find_contradiction(kgt_lister *lister, kgt_signs *signs) {
    const kgt_table *table = &lister->table;
    const kgt_entry *entries = table->entries;
    descent at = NO_DOCUMENT;
    int64_t i = 0, n = table->n, best = 0;
    double lowest = INFINITY, of_first = -INFINITY;
    for (int64_t j = 0; j < n; j++)
        lister->order[j] = (scored){(double)entries[j].relevance, (uint32_t)j};
    qsort(lister->order, (size_t)n, sizeof(scored), by_rank);
    const int64_t first = entries[lister->order[0].entry].relevance;
    while (i < n && descends(&at, entries[lister->order[i].entry].relevance,
                             entries[lister->order[i].entry].score))
        i++;
    if (i == n) return;
    signs->upper = at.least_rank;
    signs->lower = entries[lister->order[i].entry].relevance;
    for (int64_t j = 0; j < n; j++) {
        lowest = fmin(lowest, entries[j].score);
        if (entries[j].score > entries[best].score) best = j;
        if (entries[j].relevance == first) of_first = fmax(of_first, entries[j].score);
    }
    if (of_first > lowest) return;
    signs->reversed = 1;
    signs->upper = first;
    signs->lower = entries[best].relevance;
}

/* Looks at the documents of a loaded query, in the order of the input. */
static void find_signs(kgt_lister *at, const kgt_listing *listing, kgt_signs *signs) {
    const kgt_documents *documents = listing->documents;
    const kgt_table *table = &at->table;
    const kgt_entry *entries = table->entries;
    bool agree;
    *signs = (kgt_signs){.documents = table->n};
    for (int64_t i = 1; i < table->n && signs->rises >= 0; i++) {
        if (entries[i].score < entries[i - 1].score)
            signs->rises = -1;
        else
            signs->rises += entries[i].score > entries[i - 1].score;
    }
    if (!listing->ranked && (documents == NULL || documents->relevance == NULL)) return;
    if (table->n < 2 || !read_ranks(&at->table, listing->ranked, &agree)) return;
    if (!agree) find_contradiction(at, signs);
    if (entries[0].relevance != entries[table->n - 1].relevance && signs->lower == signs->upper)
        signs->rises = -1;
}

void kgt_add_signs(kgt_signs *total, const kgt_signs *query) {
    total->documents += query->documents;
    total->judged += query->judged;
    if (total->rises >= 0) total->rises = query->rises < 0 ? -1 : total->rises + query->rises;
    if (total->upper != total->lower) return;
    total->upper = query->upper;
    total->lower = query->lower;
    total->reversed = query->reversed;
}

/* ---- relevance ---- */

/* Sets the relevance of documents; returns how many are judged. */
static int64_t judge(const kgt_listing *listing, int64_t query, kgt_table *table) {
    const kgt_documents *judged = listing->judged;
    int64_t n_judged = 0;
    for (int64_t i = 0; i < table->n; i++) table->entries[i].relevance = listing->unjudged;
    for (int64_t i = judged->offsets[query]; i < judged->offsets[query + 1]; i++) {
        const char *name = judged->text + judged->begin[i];
        uint32_t size = (uint32_t)judged->size[i], hash = kgt_hash_bytes(name, size);
        kgt_entry *entry = kgt_table_find(table, name, size, hash);
        if (entry == NULL) continue;
        entry->relevance = judged->relevance[i];
        n_judged++;
    }
    return n_judged;
}

/* Keeps documents of at least relevance 0 among the first n places; returns their number. */
static int64_t drop_unjudged(kgt_lister *at, int64_t n) {
    int64_t n_judged = 0;
    for (int64_t i = 0; i < n; i++)
        if (at->table.entries[at->order[i].entry].relevance >= 0)
            at->order[n_judged++] = at->order[i];
    return n_judged;
}

/* ---- lists ---- */

/* Decides which documents of a loaded and judged query are listed; returns their number. */
static int64_t choose(kgt_lister *at, const kgt_cut *cut, int64_t *retrieved) {
    int64_t n = at->table.n;
    for (int64_t i = 0; i < n; i++) {
        kgt_entry *entry = &at->table.entries[i];
        if (cut->single) entry->score = (double)(float)entry->score;
        at->order[i] = (scored){entry->score, (uint32_t)i};
    }
    if (cut->judged_only) n = drop_unjudged(at, n);
    *retrieved = n;
    int64_t listed = n < cut->depth ? n : cut->depth;
    int64_t ordered = arrange(at, n, listed);
    if (cut->keep_ties && listed > 0)
        while (listed < ordered && at->order[listed].score == at->order[listed - 1].score) listed++;
    return listed;
}

static bool load_documents(const kgt_documents *documents, int64_t query, kgt_table *table,
                           kgt_fault *fault) {
    kgt_table_clear(table, documents->offsets[query + 1] - documents->offsets[query]);
    for (int64_t i = documents->offsets[query]; i < documents->offsets[query + 1]; i++) {
        const char *name = documents->text + documents->begin[i];
        uint32_t size = (uint32_t)documents->size[i];
        table->entries[table->n] =
            (kgt_entry){name, size, kgt_hash_bytes(name, size), documents->scores[i],
                        documents->relevance == NULL ? 0 : documents->relevance[i]};
        if (!kgt_table_add(table)) {
            kgt_note_fault(fault, KGT_DUPLICATE, i + 1, 0);
            return false;
        }
    }
    return true;
}

static int64_t most_documents(const kgt_listing *listing, int64_t first, int64_t n) {
    int64_t most = 0;
    for (int64_t i = first; i < first + n; i++) {
        int64_t size = listing->lines != NULL
                           ? kgt_most_lines(listing->lines, i)
                           : listing->documents->offsets[i + 1] - listing->documents->offsets[i];
        most = size > most ? size : most;
    }
    return most;
}

/* Scratch for a query of n documents. */
static bool reserve(kgt_lister *at, int64_t n) {
    if (n <= at->capacity) return true;
    const size_t capacity = (size_t)n + 1;
    free(at->order);
    free(at->spare);
    free(at->heap);
    at->order = malloc(capacity * sizeof(scored));
    at->spare = malloc(capacity * sizeof(scored));
    at->heap = malloc(capacity * sizeof(double));
    at->capacity = n;
    return at->order != NULL && at->spare != NULL && at->heap != NULL;
}

bool kgt_open_lister(kgt_lister *at, int64_t most) {
    *at = (kgt_lister){.capacity = -1};
    return kgt_table_open(&at->table, most) && reserve(at, most);
}

void kgt_close_lister(kgt_lister *at) {
    kgt_table_close(&at->table);
    free(at->order);
    free(at->spare);
    free(at->heap);
}

int64_t kgt_list_query(kgt_lister *at, const kgt_listing *listing, int64_t judged,
                       int64_t *retrieved, int64_t *relevance, double *scores, kgt_signs *signs) {
    if (!reserve(at, at->table.n)) return -1;
    find_signs(at, listing, signs);
    signs->judged = judge(listing, judged, &at->table);
    const int64_t length = choose(at, &listing->cut, retrieved);
    for (int64_t i = 0; i < length; i++) {
        relevance[i] = at->table.entries[at->order[i].entry].relevance;
        scores[i] = at->order[i].score;
    }
    return length;
}

kgt_status kgt_trec_lists(const kgt_listing *listing, int64_t first, int64_t n, int64_t *relevance,
                          double *scores, int64_t *length, int64_t *retrieved, kgt_signs *signs,
                          kgt_fault *fault) {
    kgt_lister at;
    int64_t used = 0;
    if (!kgt_open_lister(&at, most_documents(listing, first, n))) {
        kgt_close_lister(&at);
        return KGT_NO_MEMORY;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t query = first + i, judged = listing->judged_query[query];
        length[i] = retrieved[i] = 0;
        signs[i] = (kgt_signs){0};
        bool sound = listing->lines != NULL
                         ? kgt_load_lines(listing->lines, query, &at.table, fault)
                         : load_documents(listing->documents, query, &at.table, fault);
        if (!sound || judged < 0) continue;
        length[i] = kgt_list_query(&at, listing, judged, &retrieved[i], relevance + used,
                                   scores + used, &signs[i]);
        used += length[i];
    }
    kgt_close_lister(&at);
    return KGT_OK;
}
