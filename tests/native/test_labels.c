/* Checks labels of triples in memory of exact size, so that a read beyond the end is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kgtrec.h"
#include "native.h"

#define MOST 24
#define LONGEST 40

/* A text followed by readable bytes 0xff, which must have no effect. */
static char *text_of(const char *bytes, size_t size) {
    char *text = exact(size + KGT_LABEL_PAD, 1);
    memcpy(text, bytes, size);
    memset(text + size, 0xff, KGT_LABEL_PAD);
    return text;
}

/* Checks how many lines are read before the end or the first faulty line. */
static void check_lines(int n_tabs, const char *bytes, int64_t due, bool faulty) {
    int64_t size = (int64_t)strlen(bytes), n = 0;
    char *text = text_of(bytes, (size_t)size);
    kgt_label *labels = exact((size_t)kgt_labels_of(n_tabs) * 2, sizeof *labels);
    kgt_label_scan scan = {0, n_tabs, false, false};
    while (scan.at < size && !scan.faulty) n += kgt_label_lines(text, size, 2, &scan, labels);
    expect(n == due && scan.faulty == faulty, "kgt_label_lines", "%d lines of %.20s", (int)n,
           bytes);
    free(labels);
    free(text);
}

/* Labels of few letters, with long common beginnings. */
static size_t random_label(char *out) {
    size_t size = 1 + random_below(random_below(3) ? 6 : LONGEST);
    for (size_t i = 0; i < size; i++) out[i] = "ab\xff "[i + 9 < size ? 0 : random_below(4)];
    return size;
}

static int compare(const void *a, const void *b) { return strcmp(a, b); }

/* Checks the numbers of some labels, in one call or in several, and their order. */
static void check_numbers(int64_t n, int64_t step) {
    char (*names)[LONGEST + 1] = calloc((size_t)n, sizeof *names);
    char *bytes = exact((size_t)n * (LONGEST + 6) + 1, 1); /* and the 0 of sprintf */
    int64_t size = 0, read = 0;
    for (int64_t i = 0; i < n; i++) {
        random_label(names[i]);
        size += sprintf(bytes + size, "%s\tr\tt%s", names[i], i % 2 ? "\n" : "\r\n");
    }
    char *text = text_of(bytes, (size_t)size);
    kgt_label *labels = exact((size_t)(3 * step), sizeof *labels);
    int32_t *numbers = exact((size_t)(3 * n), sizeof *numbers);
    kgt_label_table table;
    kgt_label_scan scan = {0, 2, false, false};
    expect(kgt_label_open(&table), "kgt_label_open", "no memory");
    while (scan.at < size) {
        int64_t more = kgt_label_lines(text, size, step, &scan, labels);
        kgt_label_numbers(&table, text, more, 3, labels, numbers + 3 * read);
        read += more;
    }
    expect(read == n && !scan.faulty, "kgt_label_lines", "%d of %d lines", (int)read, (int)n);
    int64_t *offsets = exact((size_t)table.n + 1, sizeof *offsets);
    char *ordered = exact((size_t)table.n_bytes, 1);
    int32_t *place = exact((size_t)table.n, sizeof *place);
    int64_t distinct = table.n;
    kgt_label_order(&table, offsets, ordered, place);
    if (spoils("labels") && distinct > 1) place[0] = place[1];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place[numbers[3 * i]], length = (int64_t)strlen(names[i]);
        expect(offsets[at + 1] - offsets[at] == length &&
                   memcmp(ordered + offsets[at], names[i], (size_t)length) == 0,
               "kgt_label_order", "label %d of %d", (int)i, (int)n);
    }
    qsort(names, (size_t)n, sizeof *names, compare);
    int64_t due = 0;
    for (int64_t i = 0; i < n; i++) due += i == 0 || strcmp(names[i], names[i - 1]) != 0;
    expect(distinct == due, "kgt_label_numbers", "%d labels, not %d", (int)distinct, (int)due);
    for (int64_t i = 0; i + 1 < distinct; i++) {
        int64_t a = offsets[i + 1] - offsets[i], b = offsets[i + 2] - offsets[i + 1];
        int order = memcmp(ordered + offsets[i], ordered + offsets[i + 1], (size_t)(a < b ? a : b));
        expect(order < 0 || (order == 0 && a < b), "kgt_label_order", "label %d", (int)i);
    }
    kgt_label_close(&table);
    free(place), free(ordered), free(offsets), free(numbers), free(labels);
    free(text), free(bytes), free(names);
}

void check_labels(void) {
    check_lines(2, "a\tr\tb\n", 1, false);
    check_lines(2, "a\tr\tb\r\nc\tr\td\n\n\r\n", 2, false);
    check_lines(2, "\n\r\n", 0, false);
    check_lines(2, "a\tr\tb\n\na\tr\tb\n", 1, true);
    check_lines(2, "a\tr\tb\na\tr\n", 1, true);
    check_lines(2, "a\tr\tb\tc\n", 0, true);
    check_lines(2, "a\t\tb\n", 0, true);
    check_lines(2, "a\tr\t\r\n", 0, true);
    check_lines(2, "a\tr\tb\r\r\n", 0, true);
    check_lines(2, "a\rb\tr\tb\n", 0, true);
    check_lines(2, "a\x01\v\f\tr\tb\n", 1, false);
    check_lines(
        2, "a label that is longer than what is searched for its end in one go, by a few\tr\tb\n",
        1, false);
    check_lines(3, "a\tr\tb\t2020\r\nc\tr\td\t2021\n\n", 2, false);
    check_lines(3, "a\tr\tb\t2020\nc\tr\td\n", 1, true);
    check_lines(3, "a\tr\tb\t2020\nc\tr\td\t\n", 1, true);
    check_lines(3, "a\tr\t\t2020\n", 0, true);
    check_lines(3, "a\tr\tb\t2020\t2021\n", 0, true);
    check_lines(4, "a\tr\tb\t2020\t2021\nc\tr\td\t1\t2\r\n", 2, false);
    check_lines(4, "a\tr\tb\t2020\t2021\nc\tr\td\t1\n", 1, true);
    check_lines(4, "a\tr\tb\t2020\t2021\nc\tr\td\t1\t\n", 1, true);
    check_lines(4, "a\tr\tb\t\t2021\n", 0, true);
    check_lines(4, "a\tr\tb\t2020\t2021\t\n", 0, true);
    for (int64_t n = 1; n < MOST; n++) check_numbers(n, n % 3 + 1);
    check_numbers(500, 100);
    check_numbers(20000, 1000);
}
