"""Judgements in groups: preferences, and several assessors, from files and from dicts.

======================= ================================== ======================================
format                  a line                             in Python
======================= ================================== ======================================
prefs                   query group subgroup docno level   query, group, subgroup, document: level
qrels_prefs             query group docno level            query, group, document: level
qrels_jg                query group docno relevance        query, group, document: relevance
======================= ================================== ======================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import FileError, InputError
from kgtrec.trec.files.pack import name_bytes
from kgtrec.trec.files.text import PathName, decoded, is_path, read_text

__all__ = ["COLUMNS", "GroupLines", "read_group_lines"]

Ints = NDArray[np.int64]

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

    Attributes
    ----------
    path : str or path-like
        For messages.
    form : str
        A key of `COLUMNS`.
    queries, groups, subgroups, documents : list of bytes
        Names in byte order; qrels_prefs and qrels_jg have one subgroup.
    query, group, subgroup, document : ndarray of int64, shape (n_lines,)
        Numbers of names.
    level : ndarray of float64 or int64, shape (n_lines,)
    line : ndarray of int64, shape (n_lines,), or None
        Where each stands in the file, from 1; None for what was in memory.
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
    """Read judgements of a format.

    Parameters
    ----------
    qrels : str, path-like or mapping
        A file, unpacked if its name ends in .gz or .zst, ``-`` for standard input; lines that
        begin with ``#`` are comments. Or dicts, as in the table above.
    form : str
        A key of `COLUMNS`.

    Raises
    ------
    FileError
        Naming the line: columns, a blank line, a level that is not a finite number (in qrels_jg no
        whole number within 64 bits); in qrels_jg a document that a query's group has twice. Or
        the file cannot be read or holds nothing.
    InputError
        The same in memory.
    """
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
    """Distinct names in byte order, and the number of each token's."""
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
        problem = f"this {form} file holds no line"
        raise FileError(read.path, found=problem, hint=f"lines are {COLUMNS[form]!r}")
    width = len(COLUMNS[form].split())
    columns = [tokens[place::width] for place in range(width)]
    level = _levels(read.path, form, columns.pop(), line)
    return columns, level, line, read.path


def _fields(path: PathName, form: str, text: bytes) -> tuple[Ints, list[bytes]]:
    """Numbers of the lines that are no comments, and the fields of all of them."""
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
    hint = f"a line of -R {form} has {len(columns.split())}: {columns}"
    return FileError(path, line, found=problem, hint=hint)


def _levels(path: PathName, form: str, tokens: list[bytes], line: Ints) -> NDArray[Any]:
    """Levels as numbers; Python's own notation, such as 1_000, is none of a file."""
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
        problem = f"duplicate docs: {lines.named(at)} comes a second time in {lines.where(at)}"
        if lines.line is None:
            raise InputError(f"{problem}; keep one")
        number = int(max(lines.line[at - 1 : at + 1]))
        raise FileError(lines.path, number, found=problem, hint="keep one of the two lines")


# -- From memory ---------------------------------------------------------------------------------


def _columns_in_memory(qrels: Any, form: str) -> tuple[list[list[bytes]], NDArray[Any]]:
    depth = len(COLUMNS[form].split()) - 1
    rows = [*_rows(qrels, COLUMNS[form].split()[:depth], ())]
    if not rows:
        raise InputError(f"the qrels hold no judgement; {form} has {COLUMNS[form]!r}")
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
    """Names on the way to every level, and the level."""
    if not kinds:
        yield (*names, data)
        return
    if not isinstance(data, Mapping):
        raise InputError(
            f"{names or 'the qrels'} holds {data!r:.60}; it must hold a dict by {kinds[0]}"
        )
    for name, part in data.items():
        yield from _rows(part, kinds[1:], (*names, name))
