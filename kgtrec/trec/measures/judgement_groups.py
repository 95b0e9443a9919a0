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

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import number_values, offsets_of, owners
from kgtrec.errors import FileError, InputError
from kgtrec.trec.files.columns import name_bytes
from kgtrec.trec.files.parse import Packed
from kgtrec.trec.files.text import PathName, decode_name, is_path, read_text
from kgtrec.trec.measures.formulas import core_values
from kgtrec.trec.measures.judge import JudgedQueries, judgements
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import Lists, View, lists_of_judged, narrow_lists, some_queries
from kgtrec.trec.measures.ties import differ, find_tied_queries, sort_ties
from kgtrec.trec.measures.trec_measure import EvalOptions, function_of

QUERY, GROUP, SUBGROUP, DOCUMENT = range(4)
COLUMNS = {
    "prefs": "query group subgroup document level",
    "qrels_prefs": "query group document level",
    "qrels_jg": "query group document relevance",
}


def _number_names(tokens: Sequence[bytes]) -> tuple[list[bytes], Int64]:
    """Return the distinct names in byte order, and the number of each token's name."""
    names = sorted(set(tokens))
    number = dict(zip(names, range(len(names)), strict=True))
    return names, np.fromiter(map(number.__getitem__, tokens), np.int64, len(tokens))


Row = tuple[Any, ...]
"""Names as bytes, and the level."""


def _rows_of_file(path: PathName, form: str) -> tuple[PathName, list[int], list[Row]]:
    """Read a file: its path for messages, numbers of the lines that are not comments, and these
    lines."""
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
            problem = f"{len(names) + 1} columns in {decode_name(b' '.join(text.split()))[:80]!r}"
            hint = f"a line of {form} must have {len(columns)}: {COLUMNS[form]}"
            raise FileError(path, number, found=problem, hint=hint)
        level = _level(token, form)
        if level is None:
            problem, hint = (
                f"{columns[-1]} {decode_name(token)!r}",
                f"the last column {_must(form)}",
            )
            raise FileError(path, number, found=problem, hint=hint)
        numbers.append(number)
        rows.append((*names, level))
    if not rows:
        problem = f"this {form} file contains no lines"
        raise FileError(path, found=problem, hint=f"give lines of {COLUMNS[form]!r}")
    return path, numbers, rows


def _rows_in_memory(qrels: Any, form: str) -> list[Row]:
    """Read nested dicts as rows of names and a level."""
    *kinds, _ = COLUMNS[form].split()
    rows = []
    for *names, value in _walk_levels(qrels, kinds, ()):
        level = _level(value, form)
        if level is None:
            raise InputError(f"the level of {tuple(names)} is {value!r}; it {_must(form)}")
        rows.append((*map(name_bytes, names, kinds), level))
    if not rows:
        raise InputError(f"the qrels are empty; give {form} with {COLUMNS[form]!r}")
    return rows


def _walk_levels(data: Any, kinds: list[str], names: Row) -> Iterator[Row]:
    """Yield the keys of the nested dicts down to every level, and the level."""
    if not kinds:
        yield (*names, data)
        return
    if not isinstance(data, Mapping):
        raise InputError(f"{names or 'the qrels'} has {data!r:.60}; give a dict by {kinds[0]}")
    for name, part in data.items():
        yield from _walk_levels(part, kinds[1:], (*names, name))


def _must(form: str) -> str:
    """Say how a level must look."""
    kind = "whole number within 64 bits" if form == "qrels_jg" else "finite decimal number"
    return f"must be a {kind}"


def _whole(value: Any) -> int:
    """Return the whole number that a token or a number states; 1.0 is 1. ValueError for others."""
    if not isinstance(value, bytes) and hasattr(type(value), "__index__"):
        return operator.index(value)
    if isinstance(value, bytes) and value.lstrip(b"+-").isdigit():
        return int(value)
    number = float(value) if isinstance(value, bytes) else value.__float__()
    if not (number.is_integer() and abs(number) <= 2**53):
        raise ValueError
    return int(number)


def _level(value: Any, form: str) -> float | None:
    """Return the level that a token or a number states; None if it states none.

    Python's own notation, such as 1_000, is refused.
    """
    level: float
    try:
        if form == "qrels_jg":
            level = _whole(value)
            known = -(2**63) <= level < 2**63
        else:
            level = float(value) if isinstance(value, bytes) else value.__float__()
            known = math.isfinite(level)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return None
    return level if known and not (isinstance(value, bytes) and b"_" in value) else None


# -- Places in a run, and values -----------------------------------------------------------------


class Contradiction(FileError):
    """Judgements of a group that contradict each other (trec_eval's exit code: 4)."""

    exit_code = 4


@dataclass(frozen=True, eq=False)
class GroupJudgements:
    """Judgements in groups, read once for any number of runs.

    Lines are sorted by query, group, subgroup and document, all in byte order.

    - form: A key of `COLUMNS`.
    - names: Of the queries, groups, subgroups and documents, each in byte order; qrels_prefs and
      qrels_jg have one subgroup.
    - codes, int64 (4, n_lines): Numbers of the names of each line.
    - level: float64 or int64 (n_lines,)
    - line, int64 (n_lines,) or None: Line number in the file, from 1; None for judgements from
      memory.
    - judged: Each query's documents in byte order, numbered from 0.
    - pair, int64 (n_lines,): Number of each line's document among all documents of all queries.
    """

    path: PathName
    form: str
    names: list[list[bytes]]
    codes: Int64
    level: NDArray[Any]
    line: Int64 | None
    judged: JudgedQueries
    pair: Int64

    def __len__(self) -> int:
        return len(self.judged)

    def name(self, column: int, row: int) -> str:
        """Return a name of a line, for messages."""
        return repr(decode_name(self.names[column][self.codes[column, row]]))

    def where(self, row: int) -> str:
        """Name the query and the group of a line, for messages."""
        return f"query {self.name(QUERY, row)}, group {self.name(GROUP, row)}"

    def fault(self, kind: type[FileError], rows: Sequence[int], problem: str, hint: str) -> Any:
        """Make the error for lines that exclude each other."""
        if self.line is None:
            return InputError(f"{problem}; {hint}")
        return kind(self.path, int(self.line[rows].max()), found=problem, hint=hint)


def read_groups(qrels: Any, form: str) -> GroupJudgements:
    """Read judgements of a format other than qrels."""
    path: PathName = "the qrels"
    line = None
    if is_path(qrels):
        path, numbers, rows = _rows_of_file(qrels, form)
        line = np.array(numbers, np.int64)
    else:
        rows = _rows_in_memory(qrels, form)
    *columns, levels = zip(*rows, strict=True)
    level = np.array(levels, np.int64 if form == "qrels_jg" else np.float64)
    coded = [_number_names(column) for column in columns]
    if form != "prefs":
        coded.insert(SUBGROUP, ([b""], np.zeros(len(level), np.int64)))
    codes = np.array([codes for _, codes in coded])
    order = np.lexsort(codes[::-1])
    codes, level, line = codes[:, order], level[order], None if line is None else line[order]
    names = [names for names, _ in coded]
    pairs, pair = number_values(codes[QUERY] * len(names[DOCUMENT]) + codes[DOCUMENT])
    judged = _documents(path, names, *np.divmod(pairs, len(names[DOCUMENT])))
    groups = GroupJudgements(path, form, names, codes, level, line, judged, pair)
    again = 1 + np.flatnonzero((codes[:, 1:] == codes[:, :-1]).all(axis=0))
    if form == "qrels_jg" and len(again):
        at = int(again[0])
        problem = f"duplicate docs: {groups.where(at)} has {groups.name(DOCUMENT, at)} twice"
        hint = f"keep one of {'them' if line is None else 'the two lines'}"
        raise groups.fault(FileError, [at - 1, at], problem, hint)
    return groups


def _documents(
    path: PathName, names: list[list[bytes]], query: Int64, document: Int64
) -> JudgedQueries:
    """Make qrels of the documents of each query, with their numbers as the relevance."""
    offsets = offsets_of(np.bincount(query, minlength=len(names[QUERY])))
    size = np.array([*map(len, names[DOCUMENT])], np.int64)
    packed = Packed(
        names[QUERY],
        offsets,
        b"".join(names[DOCUMENT]),
        offsets_of(size)[document],
        size[document].astype(np.int32),
        np.arange(len(query)) - offsets[query],
    )
    return judgements(path, packed)


@dataclass(frozen=True, eq=False)
class GroupView:
    """Judgements of the evaluated queries, and the ranks of their documents in the run.

    - row, int64 (n,): The lines of these queries; the arrays below have an entry for each.
    - group, int64 (n,): Number of its group, ascending by query and name.
    - rank, int64 (n,): Rank of its document in the run, from 0; -1 if the run lacks it.
    - query_of, int64 (n_groups,): Query of each group.
    """

    groups: GroupJudgements
    options: EvalOptions
    n_queries: int
    row: Int64
    group: Int64
    rank: Int64
    query_of: Int64

    @cached_property
    def memo(self) -> dict[str, Any]:
        """Intermediate results that several measures share."""
        return {}

    @cached_property
    def level(self) -> NDArray[Any]:
        """Level of each line."""
        return self.groups.level[self.row]

    @cached_property
    def document(self) -> Int64:
        """Number of each line's document among all documents of all queries, in byte order."""
        return self.groups.pair[self.row]

    @cached_property
    def n_groups(self) -> Int64:
        """Number of groups of each query."""
        return np.bincount(self.query_of, minlength=self.n_queries)

    @cached_property
    def lists(self) -> View:
        """Relevant documents of each group, ranked in the group's own list."""
        relevant = self.level >= max(self.options.level, 0)
        count = np.bincount(self.group[relevant], minlength=len(self.query_of))
        order = np.lexsort((self.rank, self.group))
        order = order[self.rank[order] >= 0]
        rank = self.rank[order]
        if self.options.judged_only:  # each group drops documents that it has not judged
            order = order[self.level[order] >= 0]
            group = self.group[order]
            rank = np.arange(len(group)) - np.searchsorted(group, group)
        hits = relevant[order]
        lists = lists_of_judged(self.group[order][hits], rank[hits], count, count)
        return View(lists, EvalOptions())

    @property
    def length(self) -> Int64:
        """One entry per query, for code that only counts queries."""
        return np.zeros(self.n_queries, np.int64)

    def fault(self, lines: Sequence[int], problem: str, hint: str) -> Any:
        """Make the error for lines (by their numbers here) that contradict each other."""
        rows = [int(self.row[line]) for line in lines]
        where = self.groups.where(rows[0])
        return self.groups.fault(Contradiction, rows, f"{problem} in {where}", hint)

    def name(self, line: int) -> str:
        """Return the document of a line, for messages."""
        return self.groups.name(DOCUMENT, int(self.row[line]))

    def sum_groups(self, counts: Int64 | Float64) -> Float64:
        """Sum over the groups of each query, in the order of their names, float64 (n_queries,)."""
        sums = np.bincount(self.query_of, weights=counts, minlength=self.n_queries)
        return sums.astype(np.float64, copy=False)

    def average_groups(self, shares: Float64) -> Float64:
        """Average over the groups of each query, float64 (n_queries,)."""
        return self.sum_groups(shares) / np.maximum(self.n_groups, 1)


def group_values(
    groups: GroupJudgements, lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> dict[str, NDArray[Any]]:
    """Compute the measures of groups for every query.

    As in trec_eval, tied documents are in byte order for preferences, and in descending byte
    order for qrels_jg.
    """
    if groups.form != "qrels_jg":
        lists = _ties_reversed(lists, options)
    return _values(groups, lists, columns, options)


def _values(
    groups: GroupJudgements, lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> dict[str, NDArray[Any]]:
    """Compute the measures for lists in which tied documents already have their order."""
    view = _view(groups, lists, options)
    columns = [column for column in columns if column.measure != "runid"]
    return {c.name: function_of(c.row.function)(view, c) for c in columns}


def groups_with_ties(
    groups: GroupJudgements, lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> int:
    """Count the queries whose values differ between two orders of tied documents.

    The orders are by name, both ways, and by a document's sum of levels over groups, both ways.
    """
    lists = some_queries(lists, find_tied_queries(lists, options))
    if not len(lists):
        return 0
    total = np.bincount(groups.pair, weights=groups.level.astype(np.float64))
    worth = np.full(len(lists.relevance), total.min() - 1)  # of documents without a judgement
    some, pair = _pairs(groups, lists)
    worth[some] = total[pair]
    orders = [lists, _ties_reversed(lists, options)]
    orders += [sort_ties(lists, options, worth, best) for best in (True, False)]
    first, *others = (_values(groups, ordered, columns, options) for ordered in orders)
    changed = np.zeros(len(lists), bool)
    for other in others:
        for name, row in first.items():
            changed |= differ(row, other[name])
    return int(changed.sum())


def _numbers(groups: GroupJudgements, lists: Lists) -> Int64:
    """Return the numbers of the lists' queries in the judgements."""
    number = {name: i for i, name in enumerate(groups.judged.texts)}
    return np.array([number[name] for name in lists.queries], np.int64)


def _pairs(groups: GroupJudgements, lists: Lists) -> tuple[Int64, Int64]:
    """Return the indices of the judged documents in the lists, and their numbers as in
    ``groups.pair``."""
    some = np.flatnonzero(lists.relevance >= 0)
    query = _numbers(groups, lists)[owners(lists.offsets)[some]]
    return some, groups.judged.offsets[query] + lists.relevance[some]


def _view(groups: GroupJudgements, lists: Lists, options: EvalOptions) -> GroupView:
    """Find the lines and groups of the lists' queries, and the ranks of their documents."""
    lists = narrow_lists(lists, replace(options, judged_only=False))
    some, pair = _pairs(groups, lists)
    rank = np.full(groups.judged.offsets[-1], -1, np.int64)
    rank[pair] = lists.ranks[some]
    query = np.full(len(groups), -1, np.int64)
    query[_numbers(groups, lists)] = np.arange(len(lists))
    row = np.flatnonzero(query[groups.codes[QUERY]] >= 0)
    n_names = len(groups.names[GROUP])
    keys, group = number_values(
        query[groups.codes[QUERY, row]] * n_names + groups.codes[GROUP, row]
    )
    query_of = keys.astype(np.int64) // n_names
    return GroupView(groups, options, len(lists), row, group, rank[groups.pair[row]], query_of)


def _ties_reversed(lists: Lists, options: EvalOptions) -> Lists:
    """Reverse each group of tied documents."""
    return sort_ties(lists, options, np.arange(len(lists.relevance)), best_first=True)


def value(view: GroupView, column: Column) -> Float64:
    """Average the measure of each group over the groups: ``P_avgjg`` is ``P``."""
    ungrouped = replace(column, measure=column.measure.removesuffix("_avgjg"))
    return view.average_groups(core_values(view.lists, [ungrouped])[0])
