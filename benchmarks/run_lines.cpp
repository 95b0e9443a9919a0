// The reference of P1: one plain loop that writes the lines of a run file, with the shortest
// decimals of the standard library. C has none, so this is C++17.
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace {
struct Names {
    const char *text;
    const std::int64_t *offsets;

    char *copy(char *out, std::int64_t i) const {
        const std::size_t size = offsets[i + 1] - offsets[i];
        std::memcpy(out, text + offsets[i], size);
        return out + size;
    }
};

char *copy(char *out, const char *text) {
    const std::size_t size = std::strlen(text);
    std::memcpy(out, text, size);
    return out + size;
}
} // namespace

extern "C" int write_run(const char *path, const char *query_text, const std::int64_t *query_spans,
                         std::int64_t n_queries, const std::int64_t *offsets,
                         const std::int32_t *documents, const float *scores,
                         const char *name_text, const std::int64_t *name_spans) {
    constexpr std::size_t at_once = 1 << 22, longest_line = 1 << 16;
    const Names queries{query_text, query_spans}, names{name_text, name_spans};
    std::vector<char> buffer(at_once + longest_line);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool sound = file >= 0;
    char *at = buffer.data();
    const auto flush = [&] {
        sound = sound && write(file, buffer.data(), at - buffer.data()) == at - buffer.data();
        at = buffer.data();
    };
    for (std::int64_t query = 0; query < n_queries; query++)
        for (std::int64_t line = offsets[query]; line < offsets[query + 1]; line++) {
            at = queries.copy(at, query);
            at = copy(at, " Q0 ");
            at = names.copy(at, documents[line]);
            *at++ = ' ';
            at = std::to_chars(at, at + 20, line - offsets[query] + 1).ptr;
            *at++ = ' ';
            at = std::to_chars(at, at + 60, scores[line], std::chars_format::fixed).ptr;
            at = copy(at, " kgtrec\n");
            if (at >= buffer.data() + at_once) flush();
        }
    flush();
    sound = sound && fsync(file) == 0;
    return file >= 0 && close(file) == 0 && sound ? 0 : -1;
}
