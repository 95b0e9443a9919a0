"""Read documents of every query of a file, and format lines: in the native core, on all cores.

A text is scanned once for groups of lines with the same query; then queries are read one by one.
Threads share the queries in contiguous parts. A query's output depends only on its own lines and
has a fixed place. So the results, and the reported fault (the first in the file), are the same for
every number of threads. Lines to be written are formatted on all threads and written in their
order.

Judgements in groups, preferences and several assessors, are read here too:

======================= ================================== ======================================
format                  line                               in Python
======================= ================================== ======================================
prefs                   query group subgroup docno level   query, group, subgroup, document: level
qrels_prefs             query group docno level            query, group, document: level
qrels_jg                query group docno relevance        query, group, document: relevance
======================= ================================== ======================================
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.runtime import available_cores, share_rows
from kgtrec.errors import FileError, InputError, RunWarning
from kgtrec.trec.files import text
from kgtrec.trec.files.text import PathName, Text, decoded, explain, is_path, read_text, texts

Ints = NDArray[np.int64]
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
    """

    text: Text
    names: list[bytes]
    query_of: Ints
    begin: Ints
    line: Ints
    fault: Fault | None
    native: _core.TrecText

    def arrange(self, order: Ints) -> tuple[_core.TrecLines, Ints]:
        """Lines by query, queries in this order, and an upper bound on the documents of each."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        owner = place[self.query_of]
        group = np.argsort(owner, kind="stable")
        first = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(np.bincount(owner, minlength=len(order)), out=first[1:])
        most = np.add.reduceat(np.diff(self.line)[group], first[:-1])
        return _core.TrecLines(self.native, first, group, self.begin, self.line), most


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents of queries, by the places of their names in the text.

    - offsets: int64 (n_queries + 1,)
    - begin: int64 (n,)
    - size: int32 (n,)
    - values, float64 or int64 (n,): Scores of a run, relevance of qrels.
    """

    offsets: Ints
    begin: Ints
    size: NDArray[np.int32]
    values: NDArray[Any]


def find_groups(text: Text, threads: int | None = None) -> Groups:
    """Scan a text; FileError if it has no line that is neither blank nor a comment."""
    threads = threads or available_cores()
    if text.start == len(text.data):
        raise text.empty()
    native = _core.TrecText(text.data, text.is_run)
    scans: dict[int, tuple[Ints, Ints, int, Fault | None]] = {}

    def scan(start: int, stop: int) -> None:
        scans[start] = _scan_part(native, start, stop)

    parts = _text_parts(text, threads)
    share_rows(scan, parts, threads)
    begins, lines, line = [], [], 0
    faults: list[Fault] = []
    for start, _ in parts:
        begin, number, n_lines, fault = scans[start]
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
    return Groups(text, names, query_of, begin, number, fault, native)


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
        if len(line.split(None, 6)) > 6 and not line.lstrip().startswith(b"#"):
            number = int(groups.line[group]) + bytes(data[start : from_here + at]).count(b"\n")
            first = first or f"{groups.text.path}:{number}: {decoded(line)[:200]!r}"
            n_lines += 1
    if n_lines:
        others = f" ({n_lines - 1:,} more lines at the end of queries also have too many)"
        warnings.warn(
            f"{first} has more than the six columns of a run; columns after the tag are ignored"
            f"{others * (n_lines > 1)}. If this file joins runs, end each with a newline",
            RunWarning,
            stacklevel=2,
        )


def _text_parts(text: Text, threads: int) -> list[tuple[int, int]]:
    """Parts of the text that begin at a line's start."""
    size = len(text.data)
    n = max(1, (size - text.start) // _PART_BYTES) if threads > 1 else 1
    cuts = {text.start, size}
    for i in range(1, n):
        cuts.add(text.data.find(b"\n", text.start + (size - text.start) // n * i) + 1)
    return list(pairwise(sorted(cuts)))


def _scan_part(native: _core.TrecText, at: int, stop: int) -> tuple[Ints, Ints, int, Fault | None]:
    """Begin and line of the groups between two bytes, lines counted from 1; number of lines."""
    begins, lines = [], []
    faults: list[Fault] = []
    line, query, capacity = 1, -1, _FEW_GROUPS
    while at < stop:
        begin, number = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.int64)
        n_groups, at, line, query, fault = native.groups(at, stop, line, query, begin, number)
        begins.append(begin[:n_groups])
        lines.append(number[:n_groups])
        if fault:
            faults.append(fault)
        capacity *= 2
    return np.concatenate(begins), np.concatenate(lines), line - 1, min(faults, default=None)


def _names(text: Text, native: _core.TrecText, begin: Ints) -> tuple[list[bytes], Ints]:
    query_of, name, size = (np.empty(len(begin), dtype=np.int64) for _ in range(3))
    n = native.queries(begin, query_of, name, size)
    data = text.data
    spans = zip(name[:n].tolist(), size[:n].tolist(), strict=True)
    return [bytes(data[at : at + size]) for at, size in spans], query_of


def share_queries(
    do_part: Callable[[int, int, slice], Fault | None],
    work: Ints,
    capacity: Ints,
    counts: Ints,
    threads: int | None,
) -> tuple[list[slice], Fault | None]:
    """Let threads fill the output for parts of the queries with about equal work.

    `do_part` takes a range of queries and their slice of the output, fills it from its start and
    sets their `counts`. Returns the filled parts of the slices, and the first
    fault.
    """
    total = np.concatenate(([0], np.cumsum(capacity)))
    done = np.concatenate(([0], np.cumsum(work)))
    parts, start = [], 0
    while start < len(work):
        stop = int(np.searchsorted(done, done[start] + _PART_DOCUMENTS, side="right")) - 1
        parts.append((start, max(stop, start + 1)))
        start = parts[-1][1]
    faults: list[Fault] = []

    def do(first: int, stop: int) -> None:
        fault = do_part(first, stop, slice(int(total[first]), int(total[stop])))
        if fault:
            faults.append(fault)

    share_rows(do, parts, threads or available_cores())
    filled = [
        slice(int(total[first]), int(total[first] + counts[first:stop].sum()))
        for first, stop in parts
    ]
    return filled, min(faults, default=None)


def gather(filled: Sequence[slice], *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """The filled parts of arrays, without gaps; no copy if there are no gaps."""
    if all(a.stop == b.start for a, b in pairwise(filled)):
        return [array[: filled[-1].stop if filled else 0] for array in arrays]
    return [np.concatenate([array[part] for part in filled]) for array in arrays]


def read_documents(groups: Groups, order: Ints, threads: int | None = None) -> Documents:
    """Documents of all queries: queries in this order, documents in the order of the file."""
    lines, capacity = groups.arrange(order)
    count = np.zeros(len(order), dtype=np.int64)
    begin = np.empty(int(capacity.sum()), dtype=np.int64)
    size = np.empty(len(begin), dtype=np.int32)
    values = np.empty(len(begin), dtype=np.float64 if groups.text.is_run else np.int64)

    def read(first: int, stop: int, part: slice) -> Fault | None:
        return lines.documents(
            first, stop, begin[part], size[part], values[part], count[first:stop]
        )

    filled, fault = share_queries(read, capacity, capacity, count, threads)
    raise_first(groups, fault)
    offsets = np.concatenate(([0], np.cumsum(count)))
    return Documents(offsets, *gather(filled, begin, size, values))


def raise_first(groups: Groups, fault: Fault | None) -> None:
    """Raise the first fault of a file, or warn of a run that looks damaged."""
    both = [each for each in (groups.fault, fault) if each is not None]
    if both:
        raise explain(groups.text, min(both))
    if groups.text.is_run:
        _warn_of_joined_lines(groups)


SHARES = 4
"""Parts of the lines per thread: a thread that finishes early takes over parts of others."""


LineColumns = Callable[[slice], tuple[Ints, NDArray[Any]]]


def write_run_lines(
    out: BinaryIO,
    queries: Sequence[bytes],
    offsets: Ints,
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
    run_lines = _core.RunLines(_packed(texts(list(queries))), _packed(documents), spans, tag)

    def formatted(start: int, stop: int) -> memoryview:
        return run_lines.text(start, *columns(slice(start, stop)))

    threads, n = available_cores(), int(offsets[-1])
    step = max(1, text.LINES_AT_A_TIME // (SHARES * threads))
    parts = [(start, min(start + step, n)) for start in range(0, n, step)]
    ready: list[memoryview] = []
    for first in range(0, len(parts), SHARES * threads):
        at_once = parts[first : first + SHARES * threads]
        ready = _write_and_format(out, ready, formatted, at_once, threads)
    out.writelines(ready)


def _write_and_format(
    out: BinaryIO,
    ready: list[memoryview],
    formatted: Callable[[int, int], memoryview],
    parts: list[tuple[int, int]],
    threads: int,
) -> list[memoryview]:
    """Format the parts, and write them in order as soon as they are ready."""
    texts_by_start: dict[int, memoryview] = {}
    writing = (-1, -1)

    def do(start: int, stop: int) -> None:
        if (start, stop) == writing:
            out.writelines(ready)
        else:
            texts_by_start[start] = formatted(start, stop)

    share_rows(do, [writing, *parts], threads)
    return [texts_by_start[start] for start, _ in parts]


def _packed(array: Any) -> tuple[NDArray[np.uint8], Ints]:
    """Bytes and offsets of an array of large_binary without nulls."""
    _, offsets, text = array.buffers()
    spans = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(text or b"", np.uint8), spans


COLUMNS = {
    "prefs": "query group subgroup document level",
    "qrels_prefs": "query group document level",
    "qrels_jg": "query group document relevance",
}

_BLANKS = np.zeros(256, bool)
_BLANKS[list(b" \t\n\r\v\f")] = True


@dataclass(frozen=True, eq=False)
class GroupLines:
    """Lines by query, group, subgroup and document, all in byte order.

    - path: For messages.
    - form: A key of `COLUMNS`.
    - queries, groups, subgroups, documents: Names in byte order; qrels_prefs and qrels_jg have one
      subgroup.
    - query, group, subgroup, document, int64 (n_lines,): Numbers of names.
    - level: float64 or int64 (n_lines,)
    - line, int64 (n_lines,) or None: Line number in the file, from 1; None for judgements from
      memory.
    """

    path: PathName
    form: str
    queries: list[bytes]
    groups: list[bytes]
    subgroups: list[bytes]
    documents: list[bytes]
    query: Ints
    group: Ints
    subgroup: Ints
    document: Ints
    level: NDArray[Any]
    line: Ints | None

    def where(self, line: int) -> str:
        """Query and group of a line, for messages."""
        query = decoded(self.queries[self.query[line]])
        return f"query {query!r}, group {decoded(self.groups[self.group[line]])!r}"

    def named(self, line: int) -> str:
        """The document of a line, for messages."""
        return repr(decoded(self.documents[self.document[line]]))

    def at(self, line: int) -> int | None:
        """Number of a line in its file."""
        return None if self.line is None else int(self.line[line])


def read_group_lines(qrels: Any, form: str) -> GroupLines:
    """Read judgements of a format."""
    if is_path(qrels):
        columns, level, line, path = _columns_of_file(qrels, form)
    else:
        columns, level = _columns_in_memory(qrels, form)
        line, path = None, "the qrels"
    coded = [_coded(column) for column in columns]
    if form != "prefs":
        coded.insert(2, ([b""], np.zeros(len(level), np.int64)))
    (queries, query), (groups, group), (subgroups, subgroup), (documents, document) = coded
    order = np.lexsort((document, subgroup, group, query))
    lines = GroupLines(
        path, form, queries, groups, subgroups, documents, query[order], group[order],
        subgroup[order], document[order], level[order], None if line is None else line[order],
    )  # fmt: skip
    if form == "qrels_jg":
        _refuse_duplicates(lines)
    return lines


def _coded(tokens: Sequence[bytes]) -> tuple[list[bytes], Ints]:
    """Distinct names in byte order, and the number of each token's name."""
    names = sorted(set(tokens))
    number = dict(zip(names, range(len(names)), strict=True))
    return names, np.fromiter(map(number.__getitem__, tokens), np.int64, len(tokens))


# -- From files ----------------------------------------------------------------------------------


def _columns_of_file(
    path: PathName, form: str
) -> tuple[list[list[bytes]], NDArray[Any], Ints, PathName]:
    read = read_text(path, is_run=False)
    text = bytes(read.data[read.start :])
    if text and not text.endswith(b"\n"):
        text += b"\n"
    line, tokens = _fields(read.path, form, text)
    if not tokens:
        problem = f"this {form} file contains no lines"
        raise FileError(read.path, found=problem, hint=f"give lines of {COLUMNS[form]!r}")
    width = len(COLUMNS[form].split())
    columns = [tokens[place::width] for place in range(width)]
    level = _levels(read.path, form, columns.pop(), line)
    return columns, level, line, read.path


def _fields(path: PathName, form: str, text: bytes) -> tuple[Ints, list[bytes]]:
    """Numbers of the lines that are not comments, and the fields of these lines."""
    raw = np.frombuffer(text, np.uint8)
    if not len(raw):
        return np.zeros(0, np.int64), []
    blank = _BLANKS[raw]
    starts = np.flatnonzero(~blank & np.concatenate(([True], blank[:-1])))
    ends = np.flatnonzero(raw == ord("\n"))
    owner = np.searchsorted(ends, starts)
    counts = np.bincount(owner, minlength=len(ends))
    comment = raw[np.concatenate(([0], ends[:-1] + 1))] == ord("#")
    width = len(COLUMNS[form].split())
    wrong = np.flatnonzero((counts != width) & ~comment)
    if len(wrong):
        at = int(wrong[0])
        raise _wrong_fields(path, form, at + 1, text.split(b"\n")[at].split())
    tokens = text.split()
    if comment.any():
        tokens = list(compress(tokens, (~comment[owner]).tolist()))
    return np.flatnonzero(~comment) + 1, tokens


def _wrong_fields(path: PathName, form: str, line: int, fields: list[bytes]) -> FileError:
    columns = COLUMNS[form]
    if not fields:
        return FileError(path, line, found="a blank line", hint="remove it")
    problem = f"{len(fields)} columns in {decoded(b' '.join(fields))[:80]!r}"
    hint = f"a line of -R {form} must have {len(columns.split())}: {columns}"
    return FileError(path, line, found=problem, hint=hint)


def _levels(path: PathName, form: str, tokens: list[bytes], line: Ints) -> NDArray[Any]:
    """Levels as numbers; Python's own notation, such as 1_000, is refused."""
    whole = form == "qrels_jg"
    try:
        level = np.array([*map(int if whole else float, tokens)], np.int64 if whole else np.float64)
        if np.isfinite(level).all() and b"_" not in b"".join(tokens):
            return level
    except (ValueError, OverflowError):
        pass
    at = next(i for i, token in enumerate(tokens) if not _is_level(token, whole))
    what = "whole number within 64 bits" if whole else "finite decimal number"
    problem = f"{COLUMNS[form].split()[-1]} {decoded(tokens[at])!r}"
    raise FileError(path, int(line[at]), found=problem, hint=f"the last column must be a {what}")


def _is_level(token: bytes, whole: bool) -> bool:
    try:
        value = int(token) if whole else float(token)
    except ValueError:
        return False
    return b"_" not in token and (-(2**63) <= value < 2**63 if whole else math.isfinite(value))


def _refuse_duplicates(lines: GroupLines) -> None:
    same = np.ones(max(len(lines.level) - 1, 0), bool)
    for column in (lines.query, lines.group, lines.document):
        same &= column[1:] == column[:-1]
    if same.any():
        at = int(np.flatnonzero(same)[0]) + 1
        problem = f"duplicate docs: {lines.where(at)} has {lines.named(at)} twice"
        if lines.line is None:
            raise InputError(f"{problem}; keep one of them")
        number = int(max(lines.line[at - 1 : at + 1]))
        raise FileError(lines.path, number, found=problem, hint="keep one of the two lines")


# -- From memory ---------------------------------------------------------------------------------


def _columns_in_memory(qrels: Any, form: str) -> tuple[list[list[bytes]], NDArray[Any]]:
    from kgtrec.trec.files.columns import name_bytes

    depth = len(COLUMNS[form].split()) - 1
    rows = [*_rows(qrels, COLUMNS[form].split()[:depth], ())]
    if not rows:
        raise InputError(f"the qrels are empty; give {form} with {COLUMNS[form]!r}")
    whole = form == "qrels_jg"
    for *names, level in rows:
        number = hasattr(level, "__index__") if whole else hasattr(level, "__float__")
        if not number or not (-(2**63) <= level < 2**63 if whole else math.isfinite(level)):
            what = "whole number within 64 bits" if whole else "finite number"
            raise InputError(f"the level of {tuple(names)} is {level!r}; it must be a {what}")
    *columns, levels = (list(column) for column in zip(*rows, strict=True))
    kinds = COLUMNS[form].split()
    raw = [
        [name_bytes(name, kind) for name in column]
        for column, kind in zip(columns, kinds, strict=False)
    ]
    return raw, np.array(levels, np.int64 if whole else np.float64)


def _rows(data: Any, kinds: list[str], names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Keys of the nested dicts down to every level, and the level."""
    if not kinds:
        yield (*names, data)
        return
    if not isinstance(data, Mapping):
        raise InputError(f"{names or 'the qrels'} has {data!r:.60}; give a dict by {kinds[0]}")
    for name, part in data.items():
        yield from _rows(part, kinds[1:], (*names, name))
