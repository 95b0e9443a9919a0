"""Expectations of measures over all orders of tied documents; `kgtrec.trec.measures.ties` explains
the sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import owners, spans
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import (
    UNJUDGED,
    Lists,
    View,
    discount,
    find_places,
    gain_of,
    log2,
    ratio,
)
from kgtrec.trec.measures.tie_groups import Slots, TieGroups, chance_of_more, tie_groups
from kgtrec.trec.measures.trec_measure import EvalOptions


@dataclass(frozen=True, eq=False)
class Tied:
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
        occupied = np.flatnonzero(count > 0)
        groups = self.groups[occupied]
        return groups.slots(), count[occupied], groups.count_above(mask)

    @cached_property
    def precision(self) -> Float64:
        """Probability that a position has a relevant document, times the number down to it."""
        slots, count, above = self.hits
        size, n = slots.groups.size[slots.group], count[slots.group]
        others = (slots.turn - 1) * ((n - 1) / np.maximum(size - 1, 1))
        return (n / size) * (above[slots.group] + 1 + others)

    @property
    def retrieved(self) -> Int64:
        """Number of documents of every query after -M; -J may drop some of them."""
        most = self.options.most
        retrieved = self.lists.retrieved
        return retrieved if most is None else np.minimum(retrieved, most)

    def marked(self, mask: Bools, depth: int) -> Float64:
        """Compute the expected number of documents with `mask`, bool (n_documents,), among the
        first `depth` of each query. Without -J only."""
        groups = tie_groups(self.lists, self.options, mask)
        groups = groups[groups.count(mask) > 0]
        count, slots = groups.count(mask), groups.slots()
        near = slots.seen * (slots.rank <= depth)
        expected = np.bincount(slots.group, weights=near, minlength=len(count))
        return self.total(groups.query, expected * count / groups.size)

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
        gaining = np.flatnonzero(total > 0)
        slots = self.groups[gaining].slots()
        mean = (total[gaining] / self.groups.size[gaining])[slots.group]
        return slots, mean / log2(slots.rank + 1.0)

    def ideal(self, depth: int | None, exponential: bool) -> Float64:
        """Compute the DCG of the best order of all judged documents."""
        best, top = View(self.lists, self.options).ideal({}, exponential)
        counted = best.rank < (np.inf if depth is None else depth)
        return self.total(best.query[counted], top[counted] / discount(best.rank[counted]))

    def total(self, query: Int64, terms: Float64) -> Float64:
        """Sum one term per position over every query, in order."""
        return np.bincount(query, weights=terms, minlength=len(self.lists)).astype(np.float64)


def _rank(column: Column) -> int:
    return int(column.cutoff or 0)


def _near(slots: Slots, column: Column) -> Float64:
    """Return the probability that the position exists, and 0 beyond the cutoff."""
    return slots.seen if column.cutoff is None else slots.seen * (slots.rank <= column.cutoff)


def average_precision(tied: Tied, column: Column) -> Float64:
    slots, _, _ = tied.hits
    terms = _near(slots, column) * tied.precision / slots.rank
    return ratio(tied.total(slots.query, terms), tied.num_rel)


def _at(tied: Tied, column: Column) -> Float64:
    return tied.within(np.full(len(tied.lists), _rank(column)))


def precision(tied: Tied, column: Column) -> Float64:
    return _at(tied, column) / _rank(column)


def recall(tied: Tied, column: Column) -> Float64:
    return ratio(_at(tied, column), tied.num_rel)


def relative_precision(tied: Tied, column: Column) -> Float64:
    return ratio(_at(tied, column), np.minimum(tied.num_rel, _rank(column)))


def relative_average_precision(tied: Tied, column: Column) -> Float64:
    slots, _, _ = tied.hits
    terms = _near(slots, column) * tied.precision / slots.rank
    return ratio(tied.total(slots.query, terms), np.minimum(tied.num_rel, _rank(column)))


def f_measure(tied: Tied, column: Column) -> Float64:
    return 2.0 * _at(tied, column) / (_rank(column) + tied.num_rel)


def r_precision(tied: Tied, column: Column) -> Float64:
    return ratio(tied.within(tied.num_rel), tied.num_rel)


def r_precision_multiple(tied: Tied, column: Column) -> Float64:
    depth = np.floor((column.cutoff or 0.0) * tied.num_rel + 0.9)
    return ratio(tied.within(depth.astype(np.int64)), depth)


def judged(tied: Tied, column: Column) -> Float64:
    if tied.options.judged_only:  # all that is left is judged: 1 if there is any document
        every = tie_groups(tied.lists, tied.options, np.ones(len(tied.lists.relevance), bool))
        slots = every.slots()
        first = slots.rank == 1
        return tied.total(slots.query[first], slots.seen[first])
    depth = _rank(column)
    known = tied.marked(tied.lists.relevance != UNJUDGED, depth)
    return ratio(known, np.minimum(tied.retrieved, depth))


def unjudged(tied: Tied, column: Column) -> Float64:
    depth = _rank(column)
    if tied.options.judged_only:
        return np.zeros(len(tied.lists))
    known = tied.marked(tied.lists.relevance >= 0, depth)
    return (np.minimum(tied.retrieved, depth) - known) / depth


def bpref(tied: Tied, column: Column) -> Float64:
    """Average over the place of each relevant document among the judged others of its group.

    If m of these are not relevant, it is behind j of them with probability 1 / (m + 1), for
    j = 0 ... m.
    """
    slots, count, _ = tied.hits
    groups, rel, level = slots.groups, tied.num_rel, tied.options.level
    worse = (groups.lists.relevance >= 0) & (groups.lists.relevance < level)
    inside, above = groups.count(worse), groups.count_above(worse)
    n_judged = find_places(tied.lists.judged >= 0, tied.lists.judged_offsets).count
    most = np.minimum(n_judged - rel, rel)[groups.query]
    rel = rel[groups.query]
    # The sum of min(above + j, R) over j = 0 ... inside, in whole numbers.
    rising = np.clip(rel - above, 0, inside + 1)
    behind = rising * above + rising * (rising - 1) // 2 + (inside + 1 - rising) * rel
    share = 1.0 - ratio(np.asarray(behind / (inside + 1)), most)
    share[groups.drawn == 0] = 0.0
    for index in np.flatnonzero((groups.drawn > 0) & (groups.drawn < groups.whole)).tolist():
        # It is kept behind j others if -M keeps at least j + 1 of these m + 1 documents.
        m, limit = int(inside[index]), int(rel[index])
        kept = chance_of_more(int(groups.whole[index]), m + 1, int(groups.drawn[index]))
        lost = np.minimum(above[index] + np.arange(m + 1), limit) / max(int(most[index]), 1)
        share[index] = (kept * (1.0 - lost)).sum() / (m + 1)
    return ratio(tied.total(groups.query, share * count), tied.num_rel)


EPSILON = 1e-5
"""What infAP adds to counts of judged documents (trec_eval's INFAP_EPSILON)."""

_PART_TERMS = 2_000_000


def inferred_ap(tied: Tied, column: Column) -> Float64:
    """Sum over the place of a relevant document and the number of judged documents before it.

    Given these, the relevant ones among the judged, and the pooled ones among the others, are
    independent, and the value is linear in both: their means suffice.
    """
    slots, count, _ = tied.hits
    terms = np.zeros(len(slots.group))
    pairs = np.minimum(slots.turn, slots.groups.size[slots.group])
    part = np.cumsum(pairs) // _PART_TERMS
    for number in np.unique(part).tolist():
        rows = slice(*np.searchsorted(part, [number, number + 1]).tolist())
        terms[rows] = _inferred_precision(tied, rows)
    chance = slots.seen * (count / slots.groups.size)[slots.group]
    return ratio(tied.total(slots.query, chance * terms / slots.rank), tied.num_rel)


def _inferred_precision(tied: Tied, rows: slice) -> Float64:
    """Return the expected precision times the rank, if a relevant document is at the positions."""
    slots, count, above = tied.hits
    groups, relevance = slots.groups, slots.groups.lists.relevance
    is_worse = (relevance >= 0) & (relevance < tied.options.level)
    is_pooled = (relevance < 0) & (relevance != UNJUDGED)
    worse_above, pooled_above = groups.count_above(is_worse), groups.count_above(is_pooled)
    others = count - 1 + groups.count(is_worse)  # judged ones of the group, without this document
    not_judged = groups.size - 1 - others
    group, earlier = slots.group[rows], slots.turn[rows] - 1
    low = np.maximum(0, earlier - not_judged[group])
    high = np.minimum(others[group], earlier)
    offsets, s = spans(low, high - low + 1)
    row = owners(offsets)
    group, earlier = group[row], earlier[row]
    table = _log_factorials(int(groups.size.max(initial=1)))

    def log_ways(total: Int64, drawn: Int64) -> Float64:
        return np.asarray(table[total] - table[drawn] - table[total - drawn])

    weights = np.exp(
        log_ways(others[group], s)
        + log_ways(not_judged[group], earlier - s)
        - log_ways(others[group] + not_judged[group], earlier)
    )
    hits = above[group] + s * ratio((count - 1).astype(np.float64), others)[group]
    before = (above + worse_above)[group] + s
    share = ratio(groups.count(is_pooled).astype(np.float64), not_judged)
    pooled = pooled_above[group] + (earlier - s) * share[group]
    values = 1.0 + (before + pooled) * (hits + EPSILON) / (before + 2 * EPSILON)
    total = np.bincount(row, weights=weights * values, minlength=len(low))
    return np.asarray(total / np.bincount(row, weights=weights, minlength=len(low)))


def _log_factorials(most: int) -> Float64:
    """Return the logarithms of 0!, 1!, ..., most!."""
    return np.array([math.lgamma(i + 1.0) for i in range(most + 1)])


def reciprocal_rank(tied: Tied, column: Column) -> Float64:
    slots, chance, _ = tied.first
    return tied.total(slots.query, _near(slots, column) * chance / slots.rank)


def success(tied: Tied, column: Column) -> Float64:
    slots, chance, sure = tied.first
    near = _near(slots, column)
    chances = tied.total(slots.query, near * chance)
    chances[slots.query[sure & (near == 1)]] = 1.0  # not 1 - 1e-16
    return chances


def dcg(tied: Tied, column: Column) -> Float64:
    slots, terms = tied.mean_gains(column.exponential)
    return tied.total(slots.query, _near(slots, column) * terms)


def ndcg(tied: Tied, column: Column) -> Float64:
    depth = None if column.cutoff is None else _rank(column)
    return ratio(dcg(tied, column), tied.ideal(depth, column.exponential))
