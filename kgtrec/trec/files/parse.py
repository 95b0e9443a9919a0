"""Documents of every query of a file, through the native core and on all cores.

A text is scanned once for groups of lines with the same query; then each query is read by itself.
Queries are shared out over threads in contiguous parts, which is legal because a query's output
depends on its own lines only and has places of its own: the results, and the fault that is
reported (the first in the file), are the same for every number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.threads import available_cores, share_rows
from kgtrec.trec.files.text import Text, explain

__all__ = ["Documents", "Groups", "find_groups", "gather", "raise_first", "read_documents",
           "share_queries"]  # fmt: skip

Ints = NDArray[np.int64]
Fault = tuple[int, str, int]

_PART_BYTES = 4 << 20
_PART_DOCUMENTS = 1 << 17
_FEW_GROUPS = 1 << 12


@dataclass(frozen=True, eq=False)
class Groups:
    """Consecutive lines of the same query, and the names of the queries.

    Attributes
    ----------
    text : Text
    names : list of bytes, length n_queries
        In order of appearance.
    query_of : ndarray of int64, shape (n_groups,)
    begin, line : ndarray of int64, shape (n_groups + 1,)
        Byte and number of the first line of each group, and of the text's end.
    fault : tuple or None
        The first blank line of qrels.
    """

    text: Text
    names: list[bytes]
    query_of: Ints
    begin: Ints
    line: Ints
    fault: Fault | None
    native: _core.TrecText

    def arrange(self, order: Ints) -> tuple[_core.TrecLines, Ints]:
        """Lines by query, queries in this order, and the most documents that each can have."""
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
    """Documents of queries, by where their names stand in the text.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_queries + 1,)
    begin : ndarray of int64, shape (n,)
    size : ndarray of int32, shape (n,)
    values : ndarray of float64 or int64, shape (n,)
        Scores of a run, relevance of qrels.
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
    return Groups(text, names, query_of, begin, np.concatenate([*lines, end[1]]), fault, native)


def _text_parts(text: Text, threads: int) -> list[tuple[int, int]]:
    """Parts of the text that begin at a line's start."""
    size = len(text.data)
    n = max(1, (size - text.start) // _PART_BYTES) if threads > 1 else 1
    cuts = {text.start, size}
    for i in range(1, n):
        cuts.add(text.data.find(b"\n", text.start + (size - text.start) // n * i) + 1)
    return list(pairwise(sorted(cuts)))


def _scan_part(native: _core.TrecText, at: int, stop: int) -> tuple[Ints, Ints, int, Fault | None]:
    """Begin and line of the groups from byte to byte, counting lines from 1; how many lines."""
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
    """Let parts of the queries, of even work, fill the room for their documents, on threads.

    `do_part` is given a range of queries and the slice of the output that is theirs, fills it from
    its start and sets their `counts`. Returns the slices as far as they are filled, and the first
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
    """The filled parts of arrays, without what lies between; no copy where nothing does."""
    if all(a.stop == b.start for a, b in pairwise(filled)):
        return [array[: filled[-1].stop if filled else 0] for array in arrays]
    return [np.concatenate([array[part] for part in filled]) for array in arrays]


def read_documents(groups: Groups, order: Ints, threads: int | None = None) -> Documents:
    """Documents of all queries, queries in this order, documents in that of the file.

    Raises
    ------
    FileError
        The first line that is wrong.
    """
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
    """Raise the first fault of a file, if it has any."""
    both = [each for each in (groups.fault, fault) if each is not None]
    if both:
        raise explain(groups.text, min(both))
