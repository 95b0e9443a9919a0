"""Read documents of every query of a file, and format lines: in the native core, on all cores.

A text is scanned once for groups of lines with the same query; then queries are read one by one.
Threads share the queries in contiguous parts. A query's output depends only on its own lines and
has a fixed place. So the results, and the reported fault (the first in the file), are the same for
every number of threads. Lines to be written are formatted on all threads and written in their
order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import offsets_of
from kgtrec._internal.threads import available_cores, share_rows
from kgtrec.errors import InputError, RunWarning
from kgtrec.trec.files import text
from kgtrec.trec.files.faults import explain
from kgtrec.trec.files.text import Text, decode_name, last_tag

Fault = tuple[int, str, int]

_PART_BYTES = 4 << 20
_PART_DOCUMENTS = 1 << 17
_FEW_GROUPS = 1 << 12


@dataclass(frozen=True, eq=False)
class Groups:
    """Consecutive lines of the same query, and the names of the queries.

    - names: In order of appearance.
    - query_of: int64 (n_groups,)
    - begin, line, int64 (n_groups + 1,): Byte and line number of each group's start, and of
      the text's end.
    - fault: The first blank line of qrels.
    - n_comments: Number of lines that were skipped because they start with #.
    """

    text: Text
    names: list[bytes]
    query_of: Int64
    begin: Int64
    line: Int64
    fault: Fault | None
    native: _core.TrecText
    n_comments: int = 0

    def arrange(self, order: Int64) -> tuple[_core.TrecLines, Int64]:
        """Sort lines by query, queries in this order; also returns bounds on their documents."""
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        owner = position[self.query_of]
        group = np.argsort(owner, kind="stable")
        first = offsets_of(np.bincount(owner, minlength=len(order)))
        most = np.add.reduceat(np.diff(self.line)[group], first[:-1])
        return _core.TrecLines(self.native, first, group, self.begin, self.line), most


@dataclass(frozen=True, eq=False)
class Packed:
    """Queries and their documents: names in one text, and scores or relevance.

    - names: Of the queries.
    - offsets: int64 (n_queries + 1,)
    - begin, int64 (n,): Where each document's name begins in the text.
    - size: int32 (n,)
    - values, float64 or int64 (n,): Scores of a run, relevance of qrels.
    - tag: Of a run, if it has one.
    - ranks, int64 (n,) or None: Of a run in memory that has some.
    """

    names: list[bytes]
    offsets: Int64
    text: Any
    begin: Int64
    size: NDArray[np.int32]
    values: NDArray[Any]
    tag: str = ""
    ranks: Int64 | None = None

    def native(self) -> _core.TrecDocuments:
        """Return the same documents for the native core."""
        is_run = self.values.dtype == np.float64
        return _core.TrecDocuments(
            self.text, self.offsets, self.begin, self.size, self.values, is_run, self.ranks
        )

    def columns(self) -> tuple[list[str], Int64, Int64, NDArray[np.uint8], NDArray[Any]]:
        """Return queries, offsets, offsets and bytes of the names, and values, as of
        `RunColumns`."""
        ends = offsets_of(self.size)
        names = np.empty(int(ends[-1]), dtype=np.uint8)
        _core.copy_names(self.text, self.begin, self.size, names)
        return [decode_name(name) for name in self.names], self.offsets, ends, names, self.values

    def duplicate(self, at: int) -> InputError:
        """Return the error for a document that occurs twice in its query."""
        query = self.names[int(np.searchsorted(self.offsets, at, side="right")) - 1]
        name = bytes(self.text[self.begin[at] : self.begin[at] + self.size[at]])
        return InputError(
            f"query {decode_name(query)!r} has document {decode_name(name)!r} twice; keep one of "
            "them"
        )


def find_groups(text: Text, threads: int | None = None) -> Groups:
    """Scan a text; FileError if it has no line that is neither blank nor a comment."""
    threads = threads or available_cores()
    if text.start == len(text.data):
        raise text.empty()
    native = _core.TrecText(text.data, text.is_run, bool(text.form), text.comments)
    scans: dict[int, tuple[Int64, Int64, int, Fault | None, int]] = {}

    def scan(start: int, stop: int) -> None:
        scans[start] = _scan_part(native, start, stop)

    parts = _text_parts(text, threads)
    share_rows(scan, parts, threads)
    begins, lines, line, n_comments = [], [], text.first_line - 1, 0
    faults: list[Fault] = []
    for start, _ in parts:
        begin, number, n_lines, fault, n_skipped = scans[start]
        n_comments += n_skipped
        begins.append(begin)
        lines.append(number + line)
        if fault:
            faults.append((fault[0] + line, *fault[1:]))
        line += n_lines
    end = np.array([len(text.data)]), np.array([line + 1])
    fault = min(faults, default=None)
    begin = np.concatenate([*begins, end[0]])
    if len(begin) == 1:
        raise explain(text, fault) if fault else text.empty()
    names, query_of = _names(text, native, begin[:-1])
    number = np.concatenate([*lines, end[1]])
    return Groups(text, names, query_of, begin, number, fault, native, n_comments)


def _warn_of_comments(groups: Groups) -> None:
    """Warn if lines that were skipped as comments read like lines of a query: #q 0 d 1."""
    text, n_columns = groups.text, len(groups.text.columns.split())
    skipped = []
    for match in re.finditer(rb"^[ \t\r\v\f]*(#[^\n]*)", text.data, re.MULTILINE):
        fields = match[1].split()
        if len(fields) != n_columns:
            continue
        number = fields[4 if text.is_run else 3]
        is_line = _core.trec_score(number + b"\n") is not None if text.is_run else _is_whole(number)
        if is_line:
            skipped.append(match[1])
    if skipped:
        subject = f"{len(skipped):,} lines of {text.path} begin with # and were skipped"
        if len(skipped) == 1:
            subject = f"1 line of {text.path} begins with # and was skipped"
        remark = (
            f"{subject}; the first is {decode_name(skipped[0].rstrip())[:200]!r}. If # begins the "
            f"name of a query, evaluate with {argument('compat', 9)}: trec_eval 9.0.8 has no "
            "comments"
        )
        text.warn(RunWarning(remark))


def _is_whole(field: bytes) -> bool:
    """Return whether a field is a whole number."""
    return re.fullmatch(rb"[+-]?\d+", field) is not None


_TAIL = 4096  # bytes in which the last line of a group begins


def _warn_of_joined_lines(groups: Groups) -> None:
    """Warn if the last line of a query has more than six columns.

    If runs were joined without a newline after the first, that line holds two lines. Other
    lines are not checked: checking each would take as long as reading it.
    """
    data, n_lines, first = groups.text.data, 0, ""
    for group, (start, stop) in enumerate(pairwise(groups.begin.tolist())):
        from_here = max(start, stop - _TAIL)
        tail = bytes(data[from_here:stop]).rstrip()
        at = tail.rfind(b"\n") + 1
        line = tail[at:]
        is_comment = groups.text.comments and line.lstrip().startswith(b"#")
        if len(line.split(None, 6)) > 6 and not is_comment:
            number = int(groups.line[group]) + bytes(data[start : from_here + at]).count(b"\n")
            first = first or f"{groups.text.path}:{number}: {decode_name(line)[:200]!r}"
            n_lines += 1
    if n_lines:
        others = f" ({n_lines - 1:,} more lines at the end of queries also have too many)"
        groups.text.warn(
            RunWarning(
                f"{first} has more than the six columns of a run; columns after the tag are ignored"
                f"{others * (n_lines > 1)}. If this file joins runs, end each with a newline"
            )
        )


def _text_parts(text: Text, threads: int) -> list[tuple[int, int]]:
    """Split the text into parts that begin at a line's start."""
    size = len(text.data)
    n = max(1, (size - text.start) // _PART_BYTES) if threads > 1 else 1
    cuts = {text.start, size}
    for i in range(1, n):
        cuts.add(text.data.find(b"\n", text.start + (size - text.start) // n * i) + 1)
    return list(pairwise(sorted(cuts)))


def _scan_part(
    native: _core.TrecText, at: int, stop: int
) -> tuple[Int64, Int64, int, Fault | None, int]:
    """Find the groups between two bytes.

    Returns begin and line of each, lines counted from 1; the number of lines; the first fault; the
    number of comments.
    """
    begins, lines = [], []
    faults: list[Fault] = []
    line, query, capacity, n_comments = 1, -1, _FEW_GROUPS, 0
    while at < stop:
        begin, number = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.int64)
        n_groups, at, line, query, fault, n_skipped = native.groups(
            at, stop, line, query, begin, number
        )
        n_comments += n_skipped
        begins.append(begin[:n_groups])
        lines.append(number[:n_groups])
        if fault:
            faults.append(fault)
        capacity *= 2
    fault = min(faults, default=None)
    return np.concatenate(begins), np.concatenate(lines), line - 1, fault, n_comments


def _names(text: Text, native: _core.TrecText, begin: Int64) -> tuple[list[bytes], Int64]:
    """Return the names of the queries, and the query of each group."""
    query_of, name, size = (np.empty(len(begin), dtype=np.int64) for _ in range(3))
    n = native.queries(begin, query_of, name, size)
    data = text.data
    spans = zip(name[:n].tolist(), size[:n].tolist(), strict=True)
    return [bytes(data[at : at + size]) for at, size in spans], query_of


def share_queries(
    do_part: Callable[[int, int, slice], Fault | None],
    work: Int64,
    capacity: Int64,
    counts: Int64,
    threads: int | None,
) -> tuple[list[slice], Fault | None]:
    """Let threads fill the output for parts of the queries with about equal work.

    `do_part` takes a range of queries and their slice of the output, fills it from its start and
    sets their `counts`. Returns the filled parts of the slices, and the first
    fault.
    """
    total, done = offsets_of(capacity), offsets_of(work)
    parts, start = [], 0
    while start < len(work):
        stop = int(np.searchsorted(done, done[start] + _PART_DOCUMENTS, side="right")) - 1
        parts.append((start, max(stop, start + 1)))
        start = parts[-1][1]
    faults: list[Fault] = []

    def note_fault(first: int, stop: int) -> None:
        fault = do_part(first, stop, slice(int(total[first]), int(total[stop])))
        if fault:
            faults.append(fault)

    share_rows(note_fault, parts, threads or available_cores())
    filled = [
        slice(int(total[first]), int(total[first] + counts[first:stop].sum()))
        for first, stop in parts
    ]
    return filled, min(faults, default=None)


def gather(filled: Sequence[slice], *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Join the filled parts of arrays, without gaps; no copy if there are no gaps."""
    if all(a.stop == b.start for a, b in pairwise(filled)):
        return [array[: filled[-1].stop if filled else 0] for array in arrays]
    return [np.concatenate([array[part] for part in filled]) for array in arrays]


def order_lines(
    text: Text, threads: int | None, in_order: bool = True
) -> tuple[Groups, list[bytes], _core.TrecLines, Int64]:
    """Scan a text, and sort its lines by query.

    Returns its groups; names and lines of its queries in byte order, or in that of their first
    lines; and upper bounds on their documents.
    """
    groups = find_groups(text, threads)
    names = groups.names
    order = [*range(len(names))]
    if in_order:
        order.sort(key=names.__getitem__)
    return groups, [names[i] for i in order], *groups.arrange(np.array(order))


def pack_lines(text: Text, threads: int | None = None, *, in_order: bool = True) -> Packed:
    """Read the document and the score or relevance of each line, in csrc/trec_file.c.

    Queries are in the order of `order_lines`.
    """
    is_run = text.is_run
    groups, names, lines, capacity = order_lines(text, threads, in_order)
    count = np.zeros(len(names), dtype=np.int64)
    begin = np.empty(int(capacity.sum()), dtype=np.int64)
    size = np.empty(len(begin), dtype=np.int32)
    values = np.empty(len(begin), dtype=np.float64 if is_run else np.int64)

    def read(first: int, stop: int, part: slice) -> Fault | None:
        return lines.documents(
            first, stop, begin[part], size[part], values[part], count[first:stop]
        )

    filled, fault = share_queries(read, capacity, capacity, count, threads)
    raise_first(groups, fault)
    offsets = offsets_of(count)
    begin, size, values = gather(filled, begin, size, values)
    tag = last_tag(text) if is_run else ""
    return Packed(names, offsets, text.data, begin, size, values, tag)


def raise_first(groups: Groups, fault: Fault | None) -> None:
    """Raise the first fault of a file, or warn of a run that looks damaged."""
    both = [each for each in (groups.fault, fault) if each is not None]
    if both:
        raise explain(groups.text, min(both))
    if groups.n_comments and not groups.text.form:
        _warn_of_comments(groups)
    if groups.text.is_run and not groups.text.form:
        _warn_of_joined_lines(groups)


def name_buffers(names: Any) -> tuple[Int64, NDArray[np.uint8]]:
    """Return offsets and bytes of a large_binary array."""
    _, ends, raw = names.buffers()
    if not len(names):
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    offsets = np.frombuffer(ends, np.int64)[names.offset : names.offset + len(names) + 1]
    return offsets, np.frombuffer(raw or b"", np.uint8)


SHARES = 4
"""Parts of the lines per thread: a thread that finishes early takes over parts of others."""


LineColumns = Callable[[slice], tuple[Int64, NDArray[Any]]]


def write_run_lines(
    out: BinaryIO,
    queries: Sequence[bytes],
    offsets: Int64,
    documents: Any,
    columns: LineColumns,
    tag: bytes,
) -> None:
    """Write lines ``query Q0 document rank score tag``.

    Scores have the fewest digits that give the same number back. Lines are written while later
    lines are formatted, so that disk and cores work at the same time.

    Shapes: offsets int64 (n_queries + 1,).
    """
    spans = np.ascontiguousarray(offsets, np.int64)
    names = np.frombuffer(b"".join(queries), np.uint8), offsets_of([*map(len, queries)])
    run_lines = _core.RunLines(names, name_buffers(documents)[::-1], spans, tag)

    ready: list[memoryview] = []
    formatted: dict[int, memoryview] = {}
    writing = (-1, -1)

    def write_or_make(start: int, stop: int) -> None:
        if (start, stop) == writing:
            out.writelines(ready)
        else:
            formatted[start] = run_lines.text(start, *columns(slice(start, stop)))

    threads, n = available_cores(), int(offsets[-1])
    at_once = SHARES * threads
    step = max(1, text.LINES_AT_A_TIME // at_once)
    parts = [(start, min(start + step, n)) for start in range(0, n, step)]
    for first in range(0, len(parts), at_once):
        some = parts[first : first + at_once]
        share_rows(write_or_make, [writing, *some], threads)
        ready[:] = [formatted.pop(start) for start, _ in some]
    out.writelines(ready)
