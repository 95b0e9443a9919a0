/* Checks run and qrels files in memory of exact size, so that a read beyond the text is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kgtrec.h"
#include "native.h"

#define MOST 64

typedef struct {
    kgt_text text;
    int64_t begin[MOST + 1], line[MOST + 1], query_of[MOST], first[MOST + 1], group[MOST];
    int64_t name_begin[MOST], name_size[MOST], n_groups, n_queries;
    kgt_scan scan;
    kgt_lines lines;
} file;

/* Groups in steps of `step`, lines by query in order of appearance. */
static void file_open(file *at, const char *bytes, size_t size, kgt_trec_kind kind, int64_t step) {
    char *copy = exact(size, 1);
    memcpy(copy, bytes, size);
    at->text = (kgt_text){copy, (int64_t)size, kind, true};
    at->scan = (kgt_scan){0, 1, -1, 0, {KGT_NO_FAULT, 0, 0}};
    at->n_groups = at->n_queries = 0;
    while (at->scan.at < at->text.size)
        at->n_groups += kgt_trec_groups(&at->text, at->text.size, step, &at->scan,
                                        at->begin + at->n_groups, at->line + at->n_groups);
    at->begin[at->n_groups] = at->text.size;
    at->line[at->n_groups] = at->scan.line;
    kgt_trec_queries(&at->text, at->n_groups, at->begin, at->query_of, at->name_begin,
                     at->name_size, &at->n_queries);
    int64_t used = 0;
    for (int64_t query = 0; query < at->n_queries; query++) {
        at->first[query] = used;
        for (int64_t i = 0; i < at->n_groups; i++)
            if (at->query_of[i] == query) at->group[used++] = i;
    }
    at->first[at->n_queries] = used;
    at->lines = (kgt_lines){&at->text, at->first, at->group, at->begin, at->line};
}

static void file_close(file *at) { free((void *)at->text.bytes); }

static void check_lists(int64_t step) {
    static const char run_text[] =
        "b Q0 x 1 1.5 t\nb Q0 y 2 1.5 t\n\n# note\na Q0 long-enough-name 1 1e-310 t\r\n"
        "b Q0 zz 3 0.1234567890123456789 t\nb Q0 z 4 inf t u\n";
    static const char qrels_text[] = "a 0 long-enough-name 3\nb 0 x 1\n#\nb 0 none 2\nb 0 z -1\n";
    static const int64_t due_relevance[] = {-1, -9, 1, -9, 3};
    static const double due_scores[] = {1.0 / 0.0, 1.5, 1.5, 0.1234567890123456789, 1e-310};
    file run, qrels;
    int64_t begin[MOST], relevance[MOST], count[MOST], length[MOST], retrieved[MOST];
    int32_t size[MOST];
    double scores[MOST];
    const int64_t judged_query[] = {1, 0};
    kgt_fault fault = {KGT_NO_FAULT, 0, 0};
    file_open(&run, run_text, sizeof run_text - 1, KGT_RUN, step);
    file_open(&qrels, qrels_text, sizeof qrels_text - 1, KGT_QRELS, step);
    expect(
        run.n_queries == 2 && run.n_groups == 3 && run.scan.line == 8 && run.scan.n_comments == 1,
        "kgt_trec_groups", "%d queries in %d groups", (int)run.n_queries, (int)run.n_groups);
    kgt_trec_documents(&qrels.lines, 0, 2, begin, size, NULL, relevance, count, &fault);
    const int64_t offsets[] = {0, count[0], count[0] + count[1]};
    const kgt_documents judged = {qrels.text.bytes, offsets, begin, size, NULL, relevance};
    const kgt_listing listing = {
        &run.lines, NULL, &judged, judged_query, {MOST, false, false, false}, -9, true};
    int64_t listed[MOST];
    kgt_signs signs[2];
    kgt_trec_lists(&listing, 0, 2, listed, scores, length, retrieved, signs, &fault);
    expect(signs[0].documents == 4 && signs[0].judged == 2 && signs[0].upper == 3 &&
               signs[0].lower == 4 && signs[1].documents == 1 && signs[1].lower == 0,
           "kgt_trec_lists", "ranks %d and %d", (int)signs[0].upper, (int)signs[0].lower);
    expect(fault.kind == KGT_NO_FAULT && length[0] == 4 && length[1] == 1, "kgt_trec_lists",
           "%d and %d documents", (int)length[0], (int)length[1]);
    for (int i = 0; i < 5; i++) {
        const int64_t due = due_relevance[spoils("files") ? 4 - i : i];
        expect(listed[i] == due && scores[i] == due_scores[i], "kgt_trec_lists",
               "document %d has relevance %d and score %g", i, (int)listed[i], scores[i]);
    }
    file_close(&run);
    file_close(&qrels);
}

static void check_fault(const char *text, kgt_trec_kind kind, kgt_fault_kind due, int64_t line) {
    file read;
    int64_t begin[MOST], relevance[MOST], count[MOST];
    int32_t size[MOST];
    double scores[MOST];
    file_open(&read, text, strlen(text), kind, 2);
    kgt_fault fault = read.scan.fault;
    kgt_trec_documents(&read.lines, 0, read.n_queries, begin, size, scores, relevance, count,
                       &fault);
    expect(fault.kind == due && fault.line == line, "kgt_trec_documents",
           "fault %d in line %d of %.20s...", (int)fault.kind, (int)fault.line, text);
    file_close(&read);
}

/* Writes lines into memory of exactly the requested size. */
static void check_write(void) {
    static const int64_t offsets[] = {0, 0, 3, 4}, spans[] = {0, 1, 3, 4}, document[] = {2, 0, 1};
    static const float singles[] = {-1.5e-30f, 0.1f, 1e9f};
    static const double doubles[] = {-2.2250738585072014e-308, 1.0 / 3, 123456.75};
    static const char *const due[] = {
        "bc Q0 d 2 -1.5e-30 t\nbc Q0 a 3 0.1 t\n"
        "d Q0 bc 1 1000000000 t\n",
        "bc Q0 d 2 -2.2250738585072014e-308 t\n"
        "bc Q0 a 3 0.3333333333333333 t\nd Q0 bc 1 123456.75 t\n"};
    const kgt_names names = {"abcd", spans};
    const kgt_run_lines run = {names, names, 3, offsets, "t", 1};
    for (int i = 0; i < 2; i++) {
        const kgt_run_block block = {1, 3, document, i == 0 ? singles : NULL,
                                     i == 1 ? doubles : NULL};
        int64_t capacity = kgt_trec_run_capacity(&run, &block);
        char *out = exact((size_t)capacity, 1);
        int64_t size = kgt_trec_write_run(&run, &block, out);
        if (spoils("lines")) out[size - 2]++;
        expect(size == (int64_t)strlen(due[i]) && memcmp(out, due[i], (size_t)size) == 0,
               "kgt_trec_write_run", "%.*s", (int)size, out);
        free(out);
    }
}

void check_files(void) {
    check_write();
    for (int64_t step = 1; step < 4; step++) check_lists(step);
    check_fault("q 0 d 1 1 t\n", KGT_RUN, KGT_NO_FAULT, 0);
    check_fault("q 0 d 1 1\n", KGT_RUN, KGT_COLUMNS, 1);
    check_fault("q\n", KGT_RUN, KGT_COLUMNS, 1);
    check_fault("q 0 d 1 1 t\nr 0 d 1 nan t\nq 0 d 1 x t\n", KGT_RUN, KGT_SCORE, 2);
    check_fault("q 0 d 1 1 t\nr 0 d 1 1 t\nq 0 d 1 2 t\n", KGT_RUN, KGT_DUPLICATE, 3);
    check_fault("q 0 New York 1 1 t\n", KGT_RUN, KGT_COLUMNS, 1);
    check_fault("q 0 d 1\n\nq 0 e 1\n", KGT_QRELS, KGT_BLANK_LINE, 2);
    check_fault("q 0 d 9223372036854775808\n", KGT_QRELS, KGT_RELEVANCE, 1);
    check_fault("q 0 d 1 1\n", KGT_QRELS, KGT_COLUMNS, 1);
    check_fault("q 0 d 1.0\nq 0 e -2e0\nq 0 f 1.5\n", KGT_QRELS, KGT_RELEVANCE, 3);
    check_fault("q 0 d 1e16\n", KGT_QRELS, KGT_RELEVANCE, 1);
    check_fault("q d 1.5\n\n# r\nq e -3\n", KGT_SHORT_RUN, KGT_NO_FAULT, 0);
    check_fault("q d 1\nq e x\n", KGT_SHORT_RUN, KGT_SCORE, 2);
    check_fault("q d 1\nq d 2\n", KGT_SHORT_RUN, KGT_DUPLICATE, 2);
    check_fault("q 0 d 1\n", KGT_SHORT_RUN, KGT_COLUMNS, 1);
    check_fault("q d 1\nr d 2.0\n", KGT_SHORT_QRELS, KGT_NO_FAULT, 0);
    check_fault("q d 1\n\nr d 0.5\n", KGT_SHORT_QRELS, KGT_BLANK_LINE, 2);
    check_fault("q d 0.5\n", KGT_SHORT_QRELS, KGT_RELEVANCE, 1);
    check_fault("q d\n", KGT_SHORT_QRELS, KGT_COLUMNS, 1);
}
