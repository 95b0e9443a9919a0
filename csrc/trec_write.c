/* Lines of a run: query Q0 document rank score tag. */
#include <string.h>

#include "trec.h"
#include "trec_decimal.h"

/* Bytes of a line besides its names and its tag: Q0, blanks, the newline. */
#define BETWEEN 8

KGT_INLINE int64_t size_of(const kgt_names *names, int64_t i) {
    return names->offsets[i + 1] - names->offsets[i];
}

KGT_INLINE char *copy(char *out, const char *text, int64_t size) {
    memcpy(out, text, (size_t)size);
    return out + size;
}

KGT_INLINE char *copy_name(char *out, const kgt_names *names, int64_t i) {
    return copy(out, names->text + names->offsets[i], size_of(names, i));
}

/* The query of line `line`: the last that begins there or before, because other queries that begin
 * at the same line are empty. */
static int64_t query_of(const kgt_run_lines *run, int64_t line) {
    int64_t low = 0, high = run->n_queries;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (run->offsets[middle] <= line)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t kgt_trec_run_capacity(const kgt_run_lines *run, const kgt_run_block *block) {
    int64_t capacity = block->n * (BETWEEN + run->tag_size + 2 * KGT_LONGEST_DECIMAL);
    int64_t query = block->n > 0 ? query_of(run, block->first) : 0;
    for (int64_t at = block->first, end = at + block->n; at < end; query++) {
        int64_t stop = run->offsets[query + 1] < end ? run->offsets[query + 1] : end;
        capacity += (stop - at) * size_of(&run->queries, query);
        at = stop;
    }
    for (int64_t i = 0; i < block->n; i++) capacity += size_of(&run->documents, block->document[i]);
    return capacity + KGT_BEHIND_DECIMAL;
}

int64_t kgt_trec_write_run(const kgt_run_lines *run, const kgt_run_block *block, char *out) {
    char *at = out;
    int64_t query = block->n > 0 ? query_of(run, block->first) : 0;
    for (int64_t i = 0; i < block->n; i++) {
        while (block->first + i >= run->offsets[query + 1]) query++;
        at = copy_name(at, &run->queries, query);
        at = copy(at, " Q0 ", 4);
        at = copy_name(at, &run->documents, block->document[i]);
        *at++ = ' ';
        at = kgt_write_whole(at, (uint64_t)(block->first + i - run->offsets[query] + 1));
        *at++ = ' ';
        at = block->singles != NULL ? kgt_write_single(at, block->singles[i])
                                    : kgt_write_double(at, block->doubles[i]);
        *at++ = ' ';
        at = copy(at, run->tag, run->tag_size);
        *at++ = '\n';
    }
    return at - out;
}
