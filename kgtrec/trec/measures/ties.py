"""Values under ties: their mean, least and greatest over all orders that respect the scores.

A tie group holds documents of a query that share a score; all its orders are equally likely
(McSherry and Najork 2008). So a mean is a sum over places. In a group with n documents, R of them
relevant, place i holds a relevant one with probability R / n. If it does, the earlier places of the
group hold (i - 1) (R - 1) / (n - 1) more on average. The first relevant one has place i with the
probability that i - 1 draws without replacement fail and the next does not. Least and greatest are
the values of the orders with the relevant documents last and first in each group.

-M evaluates the first documents of each order, so a group at the limit may give any of its
documents; -J drops unjudged ones after that, as in trec_eval. If nothing is tied, all three are
trec_eval's value, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import owners, spans
from kgtrec.errors import UsageError
from kgtrec.trec.measures.formulas import core_columns, in_core
from kgtrec.trec.measures.names import TABLE, Column
from kgtrec.trec.measures.relevant import (
    Lists,
    TieEffect,
    View,
    discount,
    gain_of,
    log2,
    parts,
    ratio,
    some_queries,
)
from kgtrec.trec.measures.trec_measure import FIXED, OF_SCORES, OF_SETS, EvalOptions, function_of
from kgtrec.trec.measures.values import values

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Groups of equal score, queries ascending, and the best score first within a query.

    - lists: Without unjudged documents under -J; not cut by -M.
    - query, first, start, size, int64 (n_groups,): Number of the query; index of the first document
      in the flat arrays of `lists`; number of the query's documents above the group; number in it,
      1 or more.
    - whole, drawn, int64 (n_groups,): Size before -J, and how many of these -M keeps: `drawn` of
      `whole`, at random.
    """

    lists: Lists
    query: Int64
    first: Int64
    start: Int64
    size: Int64
    whole: Int64
    drawn: Int64

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, rows: NDArray[np.intp] | Bools) -> TieGroups:
        parts = (self.query, self.first, self.start, self.size, self.whole, self.drawn)
        return TieGroups(self.lists, *(part[rows] for part in parts))

    def count(self, mask: Bools) -> Int64:
        """Count the documents of each group where `mask`, with an entry per document, holds."""
        positions = np.flatnonzero(mask)
        ends = np.searchsorted(positions, self.first + self.size)
        return ends - np.searchsorted(positions, self.first)

    def count_above(self, mask: Bools) -> Int64:
        """Count the query's documents above each group where `mask` holds."""
        positions = np.flatnonzero(mask)
        starts = np.searchsorted(positions, self.lists.offsets[self.query])
        return np.searchsorted(positions, self.first) - starts

    def slots(self) -> Slots:
        """Return every position that a document of these groups may take."""
        group = np.repeat(np.arange(len(self)), self.size)
        turn = np.arange(len(group)) - np.repeat(np.cumsum(self.size) - self.size, self.size) + 1
        seen = np.ones(len(group))
        cut = self.drawn < self.whole
        sure = cut & (self.whole == self.size)
        seen[sure[group] & (turn > self.drawn[group])] = 0.0
        ends = np.cumsum(self.size)
        for index in np.flatnonzero(cut & ~sure).tolist():  # at most one per query
            size, end = int(self.size[index]), int(ends[index])
            chance = _chance_of_more(int(self.whole[index]), size, int(self.drawn[index]))
            seen[end - size : end] = chance
        return Slots(self, group, turn, self.start[group] + turn, seen)


@dataclass(frozen=True, eq=False)
class Slots:
    """Positions that tied documents may take.

    - group, turn, rank, int64 (n,): Number of the group; position in it, and in the query's list,
      from 1.
    - seen, float64 (n,): Probability that the position exists after -M and -J; 1 without them.
    """

    groups: TieGroups
    group: Int64
    turn: Int64
    rank: Int64
    seen: Float64

    @property
    def query(self) -> Int64:
        """Number of each position's query."""
        return self.groups.query[self.group]


def tie_groups(lists: Lists, options: EvalOptions, singles: Bools | None = None) -> TieGroups:
    """Find the tie groups of judged lists, and each of the `singles` that is tied with nothing.

    Shapes: singles bool (n_documents,).
    """
    scores = _comparable_scores(lists, options.compat)
    new = np.ones(len(scores), bool)
    np.not_equal(scores[1:], scores[:-1], out=new[1:])
    new[lists.offsets[lists.offsets < len(scores)]] = True
    first = np.flatnonzero(new)
    size = np.diff(first, append=len(scores))
    kept = size > 1 if singles is None else (size > 1) | singles[first]
    first, size = first[kept], size[kept]
    query = np.searchsorted(lists.offsets, first, side="right") - 1
    start = first - lists.offsets[query]
    most = np.iinfo(np.int64).max if options.most is None else options.most
    groups = TieGroups(lists, query, first, start, size, size, np.clip(most - start, 0, size))
    return _drop_unjudged(groups) if options.judged_only else groups


def _comparable_scores(lists: Lists, compat: int) -> NDArray[np.floating[Any]]:
    """Return scores in the precision of comparisons."""
    with np.errstate(over="ignore"):
        return lists.scores if compat >= 10 else lists.scores.astype(np.float32)


def find_tied_queries(lists: Lists, options: EvalOptions) -> Int64:
    """Return the numbers of the queries that have a tie within the limit of -M."""
    groups = tie_groups(lists, replace(options, judged_only=False))
    return np.unique(groups.query[groups.drawn > 0])


def sort_ties(lists: Lists, options: EvalOptions, worth: NDArray[Any], best_first: bool) -> Lists:
    """Sort each tie group of the lists by `worth`, one number per document."""
    groups = tie_groups(lists, replace(options, judged_only=False))
    slots = groups.slots()
    where = groups.first[slots.group] + slots.turn - 1
    tied = worth[where].astype(np.float64)
    # This also distinguishes relevances beyond the digits of a float64.
    exact = lists.relevance[where]
    order = np.lexsort((-exact, -tied, slots.group) if best_first else (exact, tied, slots.group))
    relevance = lists.relevance.copy()
    relevance[where] = exact[order]
    return replace(lists, relevance=relevance)


def differ(first: NDArray[Any], second: NDArray[Any]) -> Bools:
    """Return where values differ by more than the rounding of sums in another order."""
    if first.dtype == object:
        return np.asarray(first != second, bool)
    return np.abs(first - second) > _ROUNDING * np.maximum(1.0, np.abs(first))


def _drop_unjudged(groups: TieGroups) -> TieGroups:
    """Drop unjudged documents, and groups that become empty."""
    keep = groups.lists.relevance >= 0
    if keep.all():
        return groups
    new_index = np.concatenate(([0], np.cumsum(keep)))
    shorter = groups.lists.select(keep)
    first = new_index[groups.first]
    start = first - shorter.offsets[groups.query]
    size = new_index[groups.first + groups.size] - first
    left = TieGroups(shorter, groups.query, first, start, size, groups.whole, groups.drawn)
    return left[size > 0]


def _chance_of_more(whole: int, size: int, drawn: int) -> Float64:
    """Compute P(T >= 1), ..., P(T >= size), where T of `size` are among `drawn` of `whole`.

    The hypergeometric distribution, computed from its mode outwards to avoid overflow.
    """
    low, high = max(0, drawn - (whole - size)), min(size, drawn)
    t = np.arange(low, high, dtype=np.float64)
    ratio = (size - t) * (drawn - t) / ((t + 1) * (whole - size - drawn + t + 1))
    mode = int((ratio > 1).sum())
    upward = np.cumprod(ratio[mode:])
    downward = np.cumprod(1 / ratio[:mode][::-1])[::-1]
    weight = np.concatenate((downward, [1.0], upward))
    tail = np.cumsum(weight[::-1])[::-1] / weight.sum()
    chance = np.zeros(size)
    chance[:low] = 1.0  # so many are always drawn
    chance[low:high] = tail[1:]
    return chance


TIES = {
    "expected": "the mean over all orders of tied documents",
    "min": "the lowest value over all orders of tied documents",
    "max": "the highest value over all orders of tied documents",
}

_PART_DOCUMENTS = 1_000_000


def has_tie_form(column: Column, options: EvalOptions) -> bool:
    """Return whether `values_over_ties` knows the measure; for gains, with its default gains
    only."""
    if not column.row.expected or column.row.expected in (FIXED, OF_SETS, OF_SCORES):
        return _is_fixed(column, options)
    return not column.gains


def _is_fixed(column: Column, options: EvalOptions) -> bool:
    """Return whether no order of tied documents changes the value."""
    row = column.row
    is_whole = options.most is None
    return row.expected == FIXED or (row.expected in (OF_SETS, OF_SCORES) and is_whole)


def check_tie_forms(columns: Sequence[Column], options: EvalOptions) -> None:
    """Raise `UsageError` that names the measures without and with a form under ties."""
    without = [column.name for column in columns if not has_tie_form(column, options)]
    if without:
        every = [Column(measure) for measure in TABLE]
        fixed = [column.measure for column in every if _is_fixed(column, options)]
        forms = [c.measure for c in every if has_tie_form(c, options) and c.measure not in fixed]
        raise UsageError(
            f"{argument('ties')} does not support {', '.join(without)}; leave them out. It "
            "supports "
            f"{', '.join(forms)}; no order of ties changes {', '.join(sorted(fixed))}"
        )


def tie_effect(
    lists: Lists, columns: Sequence[Column], options: EvalOptions | None = None
) -> TieEffect:
    """Measure the effect of the order of tied documents on the values.

    Compares the values of the best and the worst order, by the documents' worth to the measure.
    Under -M, which may cut a group of ties, it also puts the judged non-relevant documents first
    and last.
    """
    options = options or EvalOptions()
    columns = [column for column in columns if column.row.expected != FIXED]
    is_whole = options.most is None and not options.judged_only
    native = [column for column in columns if is_whole and in_core(column)]
    others = [column for column in columns if column not in native]
    changed, most = np.zeros(len(lists), bool), {column.name: 0.0 for column in columns}
    if native:
        scores = np.ascontiguousarray(_comparable_scores(lists, options.compat), np.float64)
        core = core_columns(native, options.compat)
        if native_effect := core.ties(View(lists, options).documents, scores, False):
            changed |= np.frombuffer(native_effect[0], bool)
            most.update(zip((column.name for column in native), native_effect[1], strict=True))
    for start, _, part in parts(lists, _PART_DOCUMENTS) if others else ():
        chosen = find_tied_queries(part, options)
        tied = some_queries(part, chosen)
        for best, worst in _extremes(tied, others, options) if len(tied) else ():
            for name in best:
                differs = differ(best[name], worst[name])
                changed[start + chosen] |= differs
                if differs.any() and best[name].dtype != object:
                    gap = float(np.abs(best[name] - worst[name])[differs].max())
                    most[name] = max(most[name], gap)
    return TieEffect.from_changes(int(changed.sum()), most)


def _extremes(
    lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> Iterator[tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]]:
    """Yield values of the best and the worst order, for measures that give documents the same
    worth."""
    for gains in dict.fromkeys(column.gains for column in columns):
        alike = [column for column in columns if column.gains == gains]
        worth: list[NDArray[Any]] = [gain_of(lists.relevance, dict(gains))] if gains else []
        worth.append(lists.relevance)
        if options.most is not None:
            worth.append((lists.relevance >= 0) & (lists.relevance < options.level))
        for key in worth:
            best, worst = (sort_ties(lists, options, key, first) for first in (True, False))
            yield values(best, alike, options), values(worst, alike, options)
    ends = {
        column.name: function_of(column.row.ends)(lists, column, options)
        for column in columns
        if column.row.ends
    }
    yield {name: pair[1] for name, pair in ends.items()}, {n: pair[0] for n, pair in ends.items()}


def values_over_ties(
    lists: Lists, columns: Sequence[Column], options: EvalOptions | None = None, *, ties: str
) -> dict[str, NDArray[Any]]:
    """Compute values per query over all orders of tied documents; see `check_tie_forms`."""
    options = options or EvalOptions()
    if ties != "expected":
        ends = values(sort_ties(lists, options, lists.relevance, ties == "max"), columns, options)
        for column in columns:
            if column.row.ends:
                least, greatest = function_of(column.row.ends)(lists, column, options)
                ends[column.name] = least if ties == "min" else greatest
        return ends
    columns = [column for column in columns if column.measure != "runid"]
    fixed = values(lists, [c for c in columns if _is_fixed(c, options)], options)
    pieces: dict[str, list[Float64]] = {c.name: [] for c in columns if c.name not in fixed}
    for _, _, part in parts(lists, _PART_DOCUMENTS) if pieces else ():
        worth = part.relevance >= min(options.level, 1)
        tied = _Tied(part, tie_groups(part, options, worth), options)
        for column in columns:
            if column.name in pieces:
                pieces[column.name].append(function_of(column.row.expected)(tied, column))
    results = {name: np.concatenate(arrays or [np.zeros(0)]) for name, arrays in pieces.items()}
    results.update(fixed)
    return {column.name: results[column.name] for column in columns}


@dataclass(frozen=True, eq=False)
class _Tied:
    """Tie groups, and intermediate results that the expectations share."""

    lists: Lists
    groups: TieGroups
    options: EvalOptions

    @cached_property
    def num_rel(self) -> Int64:
        return View(self.lists, self.options).num_rel

    @cached_property
    def hits(self) -> tuple[Slots, Int64, Int64]:
        """Positions in groups with relevant documents, the number of these, and the number
        above."""
        mask = self.groups.lists.relevance >= self.options.level
        count = self.groups.count(mask)
        some = np.flatnonzero(count > 0)
        groups = self.groups[some]
        return groups.slots(), count[some], groups.count_above(mask)

    @cached_property
    def precision(self) -> Float64:
        """Probability that a position has a relevant document, times the number down to it."""
        slots, count, above = self.hits
        size, n = slots.groups.size[slots.group], count[slots.group]
        others = (slots.turn - 1) * ((n - 1) / np.maximum(size - 1, 1))
        return (n / size) * (above[slots.group] + 1 + others)

    def within(self, depth: Int64) -> Float64:
        """Compute the expected number of relevant documents among the first `depth` of each
        query."""
        slots, count, _ = self.hits
        near = slots.seen * (slots.rank <= depth[slots.query])
        expected = np.bincount(slots.group, weights=near, minlength=len(count))
        return self.total(slots.groups.query, expected * count / slots.groups.size)

    @cached_property
    def first(self) -> tuple[Slots, Float64, Bools]:
        """Positions in the first group of each query with relevant documents.

        With each come the probability that the first relevant document is there, and whether it is
        there or earlier in any order.
        """
        hits, count, above = self.hits
        leading = np.flatnonzero(above == 0)
        slots = hits.groups[leading].slots()
        size, n = slots.groups.size[slots.group], count[leading][slots.group]
        fail = np.maximum(size - n - slots.turn + 1, 0) / (size - slots.turn + 1)
        still = fail.copy()
        several = slots.groups.size > 1
        ends = np.cumsum(slots.groups.size)[several]
        starts = ends - slots.groups.size[several]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            np.multiply.accumulate(fail[start:end], out=still[start:end])
        before = np.where(slots.turn > 1, np.concatenate(([1.0], still[:-1])), 1.0)
        return slots, before * (n / (size - slots.turn + 1)), still == 0

    @cached_property
    def memo(self) -> dict[bool, tuple[Slots, Float64]]:
        """Results of `mean_gains`."""
        return {}

    def mean_gains(self, exponential: bool) -> tuple[Slots, Float64]:
        """Return positions in groups with a gain, and the mean gain of each, discounted by its
        rank."""
        if exponential not in self.memo:
            self.memo[exponential] = self._compute_mean_gains(exponential)
        return self.memo[exponential]

    def _compute_mean_gains(self, exponential: bool) -> tuple[Slots, Float64]:
        """Compute `mean_gains`, which caches it."""
        gain = gain_of(self.groups.lists.relevance, {}, exponential)
        offsets, rows = spans(self.groups.first, self.groups.size)
        total = np.bincount(owners(offsets), gain[rows], minlength=len(self.groups.size))
        some = np.flatnonzero(total > 0)
        slots = self.groups[some].slots()
        mean = (total[some] / self.groups.size[some])[slots.group]
        return slots, mean / log2(slots.rank + 1.0)

    def ideal(self, depth: int | None, exponential: bool) -> Float64:
        """Compute the DCG of the best order of all judged documents."""
        best, top = View(self.lists, self.options).ideal({}, exponential)
        some = best.rank < (np.inf if depth is None else depth)
        return self.total(best.query[some], top[some] / discount(best.rank[some]))

    def total(self, query: Int64, terms: Float64) -> Float64:
        """Sum one term per position over every query, in order."""
        return np.bincount(query, weights=terms, minlength=len(self.lists)).astype(np.float64)


def _rank(column: Column) -> int:
    return int(column.cutoff or 0)


def _near(slots: Slots, column: Column) -> Float64:
    """Return the probability that the position exists, and 0 beyond the cutoff."""
    return slots.seen if column.cutoff is None else slots.seen * (slots.rank <= column.cutoff)


def average_precision(tied: _Tied, column: Column) -> Float64:
    slots, _, _ = tied.hits
    terms = _near(slots, column) * tied.precision / slots.rank
    return ratio(tied.total(slots.query, terms), tied.num_rel)


def _at(tied: _Tied, column: Column) -> Float64:
    return tied.within(np.full(len(tied.lists), _rank(column)))


def precision(tied: _Tied, column: Column) -> Float64:
    return _at(tied, column) / _rank(column)


def recall(tied: _Tied, column: Column) -> Float64:
    return ratio(_at(tied, column), tied.num_rel)


def relative_precision(tied: _Tied, column: Column) -> Float64:
    return ratio(_at(tied, column), np.minimum(tied.num_rel, _rank(column)))


def relative_average_precision(tied: _Tied, column: Column) -> Float64:
    slots, _, _ = tied.hits
    terms = _near(slots, column) * tied.precision / slots.rank
    return ratio(tied.total(slots.query, terms), np.minimum(tied.num_rel, _rank(column)))


def f_measure(tied: _Tied, column: Column) -> Float64:
    return 2.0 * _at(tied, column) / (_rank(column) + tied.num_rel)


def r_precision(tied: _Tied, column: Column) -> Float64:
    return ratio(tied.within(tied.num_rel), tied.num_rel)


def reciprocal_rank(tied: _Tied, column: Column) -> Float64:
    slots, chance, _ = tied.first
    return tied.total(slots.query, _near(slots, column) * chance / slots.rank)


def success(tied: _Tied, column: Column) -> Float64:
    slots, chance, sure = tied.first
    near = _near(slots, column)
    chances = tied.total(slots.query, near * chance)
    chances[slots.query[sure & (near == 1)]] = 1.0  # not 1 - 1e-16
    return chances


def dcg(tied: _Tied, column: Column) -> Float64:
    slots, terms = tied.mean_gains(column.exponential)
    return tied.total(slots.query, _near(slots, column) * terms)


def ndcg(tied: _Tied, column: Column) -> Float64:
    depth = None if column.cutoff is None else _rank(column)
    return ratio(dcg(tied, column), tied.ideal(depth, column.exponential))
