/* Splits lines of triples into labels. It searches 64 bytes at a time for bytes that may end a
 * label. */
#include "label.h"

#include "trec_fields.h"

enum { STRIDE = 64, HELD = 1024 };

/* Places of bytes up to '\r' (13), as bits: tabs, line ends, refused bytes, and a few control
 * characters that are ignored. */
#if KGT_X86 /* and so SSE2 */
static uint64_t low_bytes(const char *at) {
    const __m128i most = _mm_set1_epi8('\r');
    uint64_t mask = 0;
    for (int i = 0; i < STRIDE; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(at + i));
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, most), bytes);
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(low) << i;
    }
    return mask;
}
#else
static uint64_t low_bytes(const char *at) {
    uint64_t mask = 0;
    for (int i = 0; i < STRIDE; i++) mask |= (uint64_t)((unsigned char)at[i] <= '\r') << i;
    return mask;
}
#endif

/* Writes the offsets of low bytes between `at` and `stop`, at most HELD, and moves *at to where the
 * search continues. */
static int find_low(const char *text, int64_t *at, int64_t stop, uint32_t *offsets) {
    int n = 0;
    for (; *at < stop && n <= HELD - STRIDE; *at += STRIDE) {
        uint64_t mask = low_bytes(text + *at);
        if (stop - *at < STRIDE) mask &= (UINT64_C(1) << (stop - *at)) - 1;
        for (; mask != 0; mask &= mask - 1) offsets[n++] = (uint32_t)(*at + __builtin_ctzll(mask));
    }
    return n;
}

static bool set_label(kgt_label *label, const char *text, uint32_t begin, uint32_t end) {
    label->begin = begin;
    label->size = end - begin;
    label->hash = kgt_hash64_bytes(text + begin, end - begin);
    return end > begin;
}

/* The parts of a line, from its bytes up to '\r'. */
typedef struct {
    uint32_t tabs[KGT_LABEL_TABS];
    int n_tabs;
    bool sound;
} line_parts;

static void take_low(line_parts *parts, const char *text, uint32_t at) {
    char byte = text[at];
    if (byte == '\t') {
        if (parts->n_tabs < KGT_LABEL_TABS) parts->tabs[parts->n_tabs] = at;
        parts->n_tabs++;
    } else if (byte == '\0' || (byte == '\r' && text[at + 1] != '\n')) {
        parts->sound = false;
    }
}

/* Sets the labels of a line; false if the line is faulty. */
static bool set_line(kgt_label *labels, const char *text, uint32_t begin, uint32_t end,
                     const line_parts *parts, int n_tabs) {
    if (!parts->sound || parts->n_tabs != n_tabs) return false;
    const uint32_t *tabs = parts->tabs;
    const bool head = set_label(labels, text, begin, tabs[0]);
    const bool relation = set_label(labels + 1, text, tabs[0] + 1, tabs[1]);
    const bool tail = set_label(labels + 2, text, tabs[1] + 1, n_tabs == 2 ? end : tabs[2]);
    if (!head || !relation || !tail || n_tabs == 2) return head && relation && tail;
    const bool ends = n_tabs == 3 || (tabs[3] > tabs[2] + 1 && tabs[3] + 1 < end);
    return set_label(labels + 3, text, tabs[2] + 1, end) && ends;
}

/* Whether the next low bytes are exactly a line's tabs and its end. */
static bool is_plain(const char *text, const uint32_t *offsets, int n_tabs) {
    for (int i = 0; i < n_tabs; i++)
        if (text[offsets[i]] != '\t') return false;
    return text[offsets[n_tabs]] == '\n';
}

int kgt_labels_of(int n_tabs) { return n_tabs < 3 ? 3 : 4; }

int64_t kgt_label_lines(const char *text, int64_t size, int64_t capacity, kgt_label_scan *scan,
                        kgt_label *labels) {
    const int n_tabs = scan->n_tabs, n_labels = kgt_labels_of(n_tabs);
    uint32_t offsets[HELD];
    int64_t n = 0, searched = scan->at;
    int n_offsets = 0, next = 0;
    uint32_t begin = (uint32_t)scan->at;
    line_parts parts = {.sound = true};
    while (n < capacity) {
        if (next == n_offsets) {
            n_offsets = find_low(text, &searched, size, offsets);
            next = 0;
            if (n_offsets == 0) break;
        }
        if (parts.n_tabs == 0 && n_offsets - next > n_tabs &&
            is_plain(text, offsets + next, n_tabs)) {
            parts.n_tabs = n_tabs;
            memcpy(parts.tabs, offsets + next, (size_t)n_tabs * sizeof *parts.tabs);
            next += n_tabs;
        }
        uint32_t at = offsets[next++];
        if (text[at] != '\n') {
            take_low(&parts, text, at);
            continue;
        }
        uint32_t end = at > begin && text[at - 1] == '\r' ? at - 1 : at;
        if (end == begin) {
            scan->blank = true;
        } else if (scan->blank ||
                   !set_line(labels + n_labels * n, text, begin, end, &parts, n_tabs)) {
            scan->faulty = true;
            break;
        } else {
            n++;
        }
        parts = (line_parts){.sound = true};
        begin = at + 1;
    }
    scan->at = begin;
    return n;
}
