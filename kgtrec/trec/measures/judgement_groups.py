"""Judgements in groups: their lines, the place of each judged document in a run, and values.

======================= ================================== ======================================
format                  line                               in Python
======================= ================================== ======================================
prefs                   query group subgroup docno level   query, group, subgroup, document: level
qrels_prefs             query group docno level            query, group, document: level
qrels_jg                query group docno relevance        query, group, document: relevance
======================= ================================== ======================================

The native reader lists a run with a relevance per document. Here, the relevance is the document's
number among the judged documents of its query. Values of preferences are in `preferences`. Those of
several assessors are here: each group is a separate list, and the values are averaged.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import FileError, InputError
from kgtrec.trec.files.columns import name_bytes
from kgtrec.trec.files.parse import Packed
from kgtrec.trec.files.text import PathName, decoded, is_path, read_text
from kgtrec.trec.measures.family import EvalOptions, function_of
from kgtrec.trec.measures.judge import JudgedQueries, judgements
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.own import core_values
from kgtrec.trec.measures.relevant import Floats, Ints, Lists, View, narrowed, placed_lists
from kgtrec.trec.measures.ties import differ, sorted_ties, tie_groups, with_ties

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


# -- Places in a run, and values -----------------------------------------------------------------


class Contradiction(FileError):
    """Judgements of a group that contradict each other (trec_eval's exit code: 4)."""

    exit_code = 4


@dataclass(frozen=True, eq=False)
class GroupJudgements:
    """Judgements in groups, read once for any number of runs.

    - judged: Each query's documents in byte order, numbered from 0.
    - pair, int64 (n_lines,): Number of each line's document among all documents of all queries.
    """

    lines: GroupLines
    judged: JudgedQueries
    pair: Ints

    @property
    def path(self) -> Any:
        """Path of the judgements, for messages."""
        return self.lines.path

    def __len__(self) -> int:
        return len(self.judged)


def read_groups(qrels: Any, form: str) -> GroupJudgements:
    """Read judgements of a format other than qrels; see `read_group_lines`."""
    lines = read_group_lines(qrels, form)
    width = len(lines.documents)
    pairs, pair = np.unique(lines.query * width + lines.document, return_inverse=True)
    count = np.bincount(pairs // width, minlength=len(lines.queries))
    offsets = np.concatenate(([0], np.cumsum(count)))
    number = np.arange(len(pairs)) - np.repeat(offsets[:-1], count)
    size = np.array([*map(len, lines.documents)], np.int64)
    begin = np.cumsum(size) - size
    document = pairs % width
    packed = Packed(
        lines.queries, offsets, b"".join(lines.documents), begin[document],
        size[document].astype(np.int32), number,
    )  # fmt: skip
    return GroupJudgements(lines, judgements(lines.path, packed), pair.reshape(-1))


@dataclass(frozen=True, eq=False)
class GroupView:
    """The judgements of the evaluated queries, and the places of their documents in the run.

    - row, int64 (n,): The lines of these queries; the arrays below have an entry for each.
    - group, int64 (n,): Number of its group, ascending by query and name.
    - place, int64 (n,): Rank of its document in the run, from 0; -1 if the run lacks it.
    - query_of, int64 (n_groups,): Query of each group.
    """

    groups: GroupJudgements
    options: EvalOptions
    n_queries: int
    row: Ints
    group: Ints
    place: Ints
    query_of: Ints

    @cached_property
    def memo(self) -> dict[str, Any]:
        """Intermediate results that several measures share."""
        return {}

    @cached_property
    def level(self) -> NDArray[Any]:
        """Level of each line."""
        return self.groups.lines.level[self.row]

    @cached_property
    def document(self) -> Ints:
        """Number of each line's document among all documents of all queries, in byte order."""
        return self.groups.pair[self.row]

    @cached_property
    def n_groups(self) -> Ints:
        """Groups of each query."""
        return np.bincount(self.query_of, minlength=self.n_queries)

    @cached_property
    def lists(self) -> View:
        """The relevant documents of each group, ranked in the group's own list."""
        relevant = self.level >= max(self.options.level, 0)
        count = np.bincount(self.group[relevant], minlength=len(self.query_of))
        order = np.lexsort((self.place, self.group))
        order = order[self.place[order] >= 0]
        place = self.place[order]
        if self.options.judged_only:  # each group drops documents that it has not judged
            order = order[self.level[order] >= 0]
            place = _ordinal(self.group[order])
        hits = relevant[order]
        lists = placed_lists(self.group[order][hits], place[hits], count, count)
        return View(lists, EvalOptions())

    @property
    def length(self) -> Ints:
        """One entry per query, for code that only counts queries."""
        return np.zeros(self.n_queries, np.int64)

    def fault(self, lines: Sequence[int], problem: str, hint: str) -> InputError:
        """The error for lines (by their numbers here) that contradict each other."""
        rows = [int(self.row[line]) for line in lines]
        problem = f"{problem} in {self.groups.lines.where(rows[0])}"
        if self.groups.lines.line is None:
            return InputError(f"{problem}; {hint}")
        at = max(self.groups.lines.at(row) or 0 for row in rows)
        return Contradiction(self.groups.path, at, found=problem, hint=hint)

    def name(self, line: int) -> str:
        """The document of a line, for messages."""
        return self.groups.lines.named(int(self.row[line]))


def group_values(
    groups: GroupJudgements, lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> dict[str, NDArray[Any]]:
    """Values of the measures of groups for every query.

    As in trec_eval, tied documents are in byte order for preferences, and in descending byte
    order for qrels_jg.
    """
    if groups.lines.form != "qrels_jg":
        lists = _ties_reversed(lists, options)
    return _values(groups, lists, columns, options)


def _values(
    groups: GroupJudgements, lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> dict[str, NDArray[Any]]:
    view = _view(groups, lists, options)
    columns = [column for column in columns if column.family != "runid"]
    return {c.name: function_of(c.row.function)(view, c) for c in columns}


def groups_with_ties(
    groups: GroupJudgements, lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> int:
    """Queries whose values differ between two orders of tied documents.

    The orders are by name, both ways, and by a document's sum of levels over groups, both ways.
    """
    lists = with_ties(lists, options)
    if not len(lists):
        return 0
    total = np.bincount(groups.pair, weights=groups.lines.level.astype(np.float64))
    worth = np.full(len(lists.relevance), total.min() - 1)  # of documents without a judgement
    some = np.flatnonzero(lists.relevance >= 0)
    worth[some] = total[_pairs(groups, lists, some)]
    orders = [lists, _ties_reversed(lists, options)]
    orders += [sorted_ties(lists, options, worth, best) for best in (True, False)]
    first, *others = (_values(groups, one, columns, options) for one in orders)
    changed = np.zeros(len(lists), bool)
    for other in others:
        for name, row in first.items():
            changed |= differ(row, other[name])
    return int(changed.sum())


def _numbers(groups: GroupJudgements, lists: Lists) -> Ints:
    """Numbers of the lists' queries in the judgements."""
    number = {decoded(name): i for i, name in enumerate(groups.judged.names)}
    return np.array([number[name] for name in lists.queries], np.int64)


def _pairs(groups: GroupJudgements, lists: Lists, places: Ints) -> Ints:
    """Numbers, as in ``groups.pair``, of the judged documents at some places of the lists."""
    query = _numbers(groups, lists)[np.searchsorted(lists.offsets, places, "right") - 1]
    return np.asarray(groups.judged.offsets[query] + lists.relevance[places], np.int64)


def _view(groups: GroupJudgements, lists: Lists, options: EvalOptions) -> GroupView:
    lines = groups.lines
    lists = narrowed(lists, replace(options, judged_only=False))
    chosen = _numbers(groups, lists)
    place = np.full(groups.judged.offsets[-1], -1, np.int64)
    some = np.flatnonzero(lists.relevance >= 0)
    listed = np.searchsorted(lists.offsets, some, "right") - 1
    place[_pairs(groups, lists, some)] = some - lists.offsets[listed]
    query = np.full(len(lines.queries), -1, np.int64)
    query[chosen] = np.arange(len(chosen))
    row = np.flatnonzero(query[lines.query] >= 0)
    q, name = query[lines.query[row]], lines.group[row]
    new = np.ones(len(row), bool)
    new[1:] = (q[1:] != q[:-1]) | (name[1:] != name[:-1])
    group = np.cumsum(new) - 1
    return GroupView(
        groups, options, len(lists), row, group, place[groups.pair[row]], q[new]
    )  # fmt: skip


def _ties_reversed(lists: Lists, options: EvalOptions) -> Lists:
    """The lists with each group of tied documents from its last to its first."""
    groups = tie_groups(lists, replace(options, most=None, judged_only=False))
    slots = groups.slots()
    first, size = groups.first[slots.group], groups.size[slots.group]
    relevance = lists.relevance.copy()
    relevance[first + slots.turn - 1] = lists.relevance[first + size - slots.turn]
    return replace(lists, relevance=relevance)


def _ordinal(group: Ints) -> Ints:
    """0 for the first of its group, 1 for the second, ...; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, group)


def _averaged(family: str, view: GroupView, column: Column) -> Floats:
    (values,) = core_values(view.lists, [replace(column, family=family)])
    total = np.bincount(view.query_of, weights=values, minlength=view.n_queries)
    return total / np.maximum(view.n_groups, 1)


def average_precision(view: GroupView, column: Column) -> Floats:
    """Average precision of each group, averaged."""
    return _averaged("map", view, column)


def precision(view: GroupView, column: Column) -> Floats:
    """Precision at a cutoff of each group, averaged."""
    return _averaged("P", view, column)


def r_precision_mult(view: GroupView, column: Column) -> Floats:
    """Precision at a multiple of each group's relevant documents, averaged."""
    return _averaged("Rprec_mult", view, column)
