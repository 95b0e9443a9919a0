"""Judgements in groups, preferences and several assessors: lines of a file, or nested dicts.

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
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import FileError, InputError
from kgtrec.trec.files.columns import name_bytes
from kgtrec.trec.files.text import PathName, decoded, is_path, read_text

Ints = NDArray[np.int64]

COLUMNS = {
    "prefs": "query group subgroup document level",
    "qrels_prefs": "query group document level",
    "qrels_jg": "query group document relevance",
}


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
    path: PathName = "the qrels"
    line = None
    if is_path(qrels):
        path, numbers, rows = _rows_of_file(qrels, form)
        line = np.array(numbers, np.int64)
    else:
        rows = _rows_in_memory(qrels, form)
    *columns, levels = zip(*rows, strict=True)
    level = np.array(levels, np.int64 if form == "qrels_jg" else np.float64)
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


Row = tuple[Any, ...]
"""Names as bytes, and the level."""


def _rows_of_file(path: PathName, form: str) -> tuple[PathName, list[int], list[Row]]:
    """The path for messages, numbers of the lines that are not comments, and these lines."""
    read = read_text(path, is_run=False)
    path, columns = read.path, COLUMNS[form].split()
    numbers, rows = [], []
    texts = bytes(read.data[read.start :]).split(b"\n")[:-1]
    for number, text in enumerate(texts, 1):
        if text.startswith(b"#"):
            continue
        *names, token = text.split() or [b""]
        if not token:
            raise FileError(path, number, found="a blank line", hint="remove it")
        if len(names) + 1 != len(columns):
            problem = f"{len(names) + 1} columns in {decoded(b' '.join(text.split()))[:80]!r}"
            hint = f"a line of -R {form} must have {len(columns)}: {COLUMNS[form]}"
            raise FileError(path, number, found=problem, hint=hint)
        level = _level(token, form)
        if level is None:
            problem, hint = f"{columns[-1]} {decoded(token)!r}", f"the last column {_must(form)}"
            raise FileError(path, number, found=problem, hint=hint)
        numbers.append(number)
        rows.append((*names, level))
    if not rows:
        problem = f"this {form} file contains no lines"
        raise FileError(path, found=problem, hint=f"give lines of {COLUMNS[form]!r}")
    return path, numbers, rows


def _rows_in_memory(qrels: Any, form: str) -> list[Row]:
    *kinds, _ = COLUMNS[form].split()
    rows = []
    for *names, value in _nested(qrels, kinds, ()):
        level = _level(value, form)
        if level is None:
            raise InputError(f"the level of {tuple(names)} is {value!r}; it {_must(form)}")
        rows.append((*map(name_bytes, names, kinds), level))
    if not rows:
        raise InputError(f"the qrels are empty; give {form} with {COLUMNS[form]!r}")
    return rows


def _nested(data: Any, kinds: list[str], names: Row) -> Iterator[Row]:
    """Keys of the nested dicts down to every level, and the level."""
    if not kinds:
        yield (*names, data)
        return
    if not isinstance(data, Mapping):
        raise InputError(f"{names or 'the qrels'} has {data!r:.60}; give a dict by {kinds[0]}")
    for name, part in data.items():
        yield from _nested(part, kinds[1:], (*names, name))


def _must(form: str) -> str:
    kind = "whole number within 64 bits" if form == "qrels_jg" else "finite decimal number"
    return f"must be a {kind}"


def _level(value: Any, form: str) -> float | None:
    """The level that a token or a number states; None if it states none.

    Python's own notation, such as 1_000, is refused.
    """
    level: float
    try:
        if form == "qrels_jg":
            level = int(value) if isinstance(value, bytes) else operator.index(value)
            known = -(2**63) <= level < 2**63
        else:
            level = float(value) if isinstance(value, bytes) else value.__float__()
            known = math.isfinite(level)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return None
    return level if known and not (isinstance(value, bytes) and b"_" in value) else None


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
