/* Places of judged documents among rows of scores, counted, not sorted: few documents are judged.
 */
#include <math.h>
#include <string.h>

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

static int64_t greater_of(const kgt_score_rows *rows, int64_t start, double bound, int64_t *same) {
    int64_t greater = 0, equal = 0;
    if (rows->doubles != NULL) {
        const double *scores = rows->doubles + start;
        for (int64_t i = 0; i < rows->n; i++) {
            greater += scores[i] > bound;
            equal += scores[i] == bound;
        }
    } else {
        const float *scores = rows->singles + start;
        const float single = (float)bound;
        for (int64_t i = 0; i < rows->n; i++) {
            greater += scores[i] > single;
            equal += scores[i] == single;
        }
    }
    *same = equal;
    return greater;
}

typedef struct {
    const kgt_score_rows *rows;
    const int64_t *names;
    int64_t start;
    bool gaps; /* some scores have no document and do not count */
} row;

static bool is_document(const row *at, int64_t i) {
    return (at->names == NULL || at->names[i] >= 0) && !isnan(score_at(at->rows, at->start + i));
}

static int64_t name_of(const row *at, int64_t i) { return at->names == NULL ? i : at->names[i]; }

typedef struct {
    int64_t place, relevance, first, size;
} document;

/* The document in column `own`; the caller sets its relevance. */
static document locate(const row *at, int64_t own) {
    const kgt_score_rows *rows = at->rows;
    const double bound = score_at(rows, at->start + own);
    int64_t same, greater = greater_of(rows, at->start, bound, &same), ahead = 0;
    if (same == 1 && !at->gaps) return (document){greater, 0, greater, 1};
    greater = same = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        double score = score_at(rows, at->start + i);
        if (score < bound || !is_document(at, i)) continue;
        greater += score > bound;
        same += score == bound;
        ahead += score == bound && name_after(rows, name_of(at, i), name_of(at, own));
    }
    return (document){greater + ahead, 0, greater, same};
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

/* Inserts a document among the first n by its place. */
static void insert(kgt_placed out, int64_t n, document new) {
    int64_t i = n;
    for (; i > 0 && out.place[i - 1] > new.place; i--) {
        out.place[i] = out.place[i - 1];
        out.relevance[i] = out.relevance[i - 1];
        out.first[i] = out.first[i - 1];
        out.size[i] = out.size[i - 1];
    }
    out.place[i] = new.place;
    out.relevance[i] = new.relevance;
    out.first[i] = new.first;
    out.size[i] = new.size;
}

static int64_t documents_of(row *at) {
    int64_t n = 0;
    for (int64_t i = 0; i < at->rows->n; i++) n += is_document(at, i);
    at->gaps = n < at->rows->n;
    return n;
}

int64_t kgt_trec_places(const kgt_score_rows *rows, kgt_placed out, int64_t *count,
                        int64_t *retrieved, int64_t *seen) {
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const int64_t query = rows->judged_query[i], first = rows->judged_offsets[query];
        const int64_t n_judged = rows->judged_offsets[query + 1] - first;
        const int64_t *judged = rows->judged + first, *names = rows->names;
        row at = {rows, names == NULL ? NULL : names + i * rows->names_stride, i * rows->stride,
                  false};
        int64_t n = 0;
        retrieved[i] = documents_of(&at);
        for (int64_t j = 0; j < (names == NULL ? n_judged : rows->n); j++) {
            int64_t column = names == NULL ? judged[j] : j;
            int64_t position = names == NULL ? j : find(judged, n_judged, name_of(&at, j));
            if (position < 0 || column < 0 || column >= rows->n || !is_document(&at, column))
                continue;
            if (seen[position] == i + 1) return i;
            seen[position] = i + 1;
            document new = locate(&at, column);
            new.relevance = rows->relevance[first + position];
            insert(out, n++, new);
        }
        count[i] = n;
        out = (kgt_placed){out.place + n, out.relevance + n, out.first + n, out.size + n};
    }
    return -1;
}
