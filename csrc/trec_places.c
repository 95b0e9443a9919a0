/* Places of judged documents among rows of scores, counted, not sorted: few documents are judged.
 */
#include <math.h>

#include "isa_kernel.h"
#include "trec.h"

/* Whether the decimal text of a comes after that of b; both are at least 0. */
static bool text_after(int64_t a, int64_t b) {
    int64_t x = a, y = b, power_x = 1, power_y = 1;
    for (int64_t i = a; i >= 10; i /= 10) power_x *= 10;
    for (int64_t i = b; i >= 10; i /= 10) power_y *= 10;
    /* Digit by digit from the front; a prefix comes first. */
    while (power_x > 0 && power_y > 0) {
        int64_t digit = x / power_x, other = y / power_y;
        if (digit != other) return digit > other;
        x -= digit * power_x;
        y -= other * power_y;
        power_x /= 10;
        power_y /= 10;
    }
    return power_x > 0;
}

static bool name_after(const kgt_score_rows *rows, int64_t a, int64_t b) {
    return rows->decimal ? text_after(a, b) : a > b;
}

static double score_at(const kgt_score_rows *rows, int64_t at) {
    return rows->doubles != NULL ? rows->doubles[at] : (double)rows->singles[at];
}

typedef struct {
    const kgt_score_rows *rows;
    const int64_t *names;
    int64_t start;
    bool hides; /* some columns have no document: their names are negative */
} row;

static int64_t name_of(const row *at, int64_t i) { return at->names == NULL ? i : at->names[i]; }

static bool is_document(const row *at, int64_t i) {
    return name_of(at, i) >= 0 && !isnan(score_at(at->rows, at->start + i));
}

/* The position of a name among ascending ones, or -1. */
static int64_t find(const int64_t *names, int64_t n, int64_t name) {
    int64_t low = 0;
    for (int64_t high = n; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (names[middle] < name)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && names[low] == name ? low : -1;
}

/* Counts into first the scores that exceed each of m bounds, and into size those that are not
 * below. True if a score is NaN. */
static bool count(const row *at, const void *bounds, size_t m, int64_t *first, int64_t *size) {
    const kgt_kernel *kernel = kgt_kernel_active();
    const kgt_score_rows *rows = at->rows;
    bool nan = false;
    for (size_t j = 0; j < m; j++) first[j] = size[j] = 0;
    for (int64_t i = 0; i < rows->n; i += KGT_BLOCK) {
        const size_t n = rows->n - i < KGT_BLOCK ? (size_t)(rows->n - i) : KGT_BLOCK;
        if (rows->doubles != NULL)
            nan |=
                kernel->f64.count(rows->doubles + at->start + i, n, bounds, m, first, size, NULL);
        else
            nan |=
                kernel->f32.count(rows->singles + at->start + i, n, bounds, m, first, size, NULL);
    }
    return nan;
}

static int64_t documents_of(row *at, bool nan) {
    int64_t n = 0;
    for (int64_t i = 0; at->names != NULL && i < at->rows->n; i++) at->hides |= at->names[i] < 0;
    if (!nan && !at->hides) return at->rows->n;
    for (int64_t i = 0; i < at->rows->n; i++) n += is_document(at, i);
    return n;
}

/* Turns the column of document j into its rank, and its two counts into its group of ties. */
static void locate(const row *at, kgt_placed out, int64_t j) {
    const kgt_score_rows *rows = at->rows;
    const int64_t column = out.rank[j];
    const double bound = score_at(rows, at->start + column);
    int64_t greater = 0, same = 0, ahead = 0;
    out.size[j] -= out.first[j];
    out.rank[j] = out.first[j];
    if (out.size[j] == 1 && !at->hides) return;
    for (int64_t i = 0; i < rows->n; i++) {
        double score = score_at(rows, at->start + i);
        if (!(score >= bound) || name_of(at, i) < 0) continue;
        greater += score > bound;
        same += score == bound;
        ahead += score == bound && name_after(rows, name_of(at, i), name_of(at, column));
    }
    out.first[j] = greater;
    out.size[j] = same;
    out.rank[j] = greater + ahead;
}

/* Moves document n before those that it precedes, which are in order. */
static void insert(kgt_placed out, int64_t n) {
    const int64_t rank = out.rank[n], relevance = out.relevance[n];
    const int64_t first = out.first[n], size = out.size[n];
    int64_t i = n;
    for (; i > 0 && out.rank[i - 1] > rank; i--) {
        out.rank[i] = out.rank[i - 1];
        out.relevance[i] = out.relevance[i - 1];
        out.first[i] = out.first[i - 1];
        out.size[i] = out.size[i - 1];
    }
    out.rank[i] = rank;
    out.relevance[i] = relevance;
    out.first[i] = first;
    out.size[i] = size;
}

int64_t kgt_trec_places(const kgt_score_rows *rows, kgt_placed out, int64_t *n_placed,
                        int64_t *retrieved, int64_t *seen, double *bounds) {
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const int64_t query = rows->judged_query[i], start = rows->judged_offsets[query];
        const int64_t n_judged = rows->judged_offsets[query + 1] - start;
        const int64_t *judged = rows->judged + start, *names = rows->names;
        row at = {rows, names == NULL ? NULL : names + i * rows->names_stride, i * rows->stride,
                  false};
        int64_t n = 0;
        for (int64_t j = 0; j < (names == NULL ? n_judged : rows->n); j++) {
            int64_t column = names == NULL ? judged[j] : j;
            int64_t position = names == NULL ? j : find(judged, n_judged, name_of(&at, j));
            if (position < 0 || column < 0 || column >= rows->n || !is_document(&at, column))
                continue;
            if (seen[position] == i + 1) return i;
            seen[position] = i + 1;
            if (rows->doubles != NULL)
                bounds[n] = rows->doubles[at.start + column];
            else
                ((float *)bounds)[n] = rows->singles[at.start + column];
            out.rank[n] = column;
            out.relevance[n++] = rows->relevance[start + position];
        }
        retrieved[i] = documents_of(&at, count(&at, bounds, (size_t)n, out.first, out.size));
        for (int64_t j = 0; j < n; j++) {
            locate(&at, out, j);
            insert(out, j);
        }
        n_placed[i] = n;
        out = (kgt_placed){out.rank + n, out.relevance + n, out.first + n, out.size + n};
    }
    return -1;
}
