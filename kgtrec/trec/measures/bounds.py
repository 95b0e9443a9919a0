"""Exact bounds of measures over all possible labels of open documents.

A document is open if nobody has judged it and it may be relevant (1) or not (0). A query with u
open documents has 2^u labellings. The bounds are the extremes over all of them; at most u + 1
labellings per end suffice to find them.

Take the labellings in which the same number t of open documents is relevant. They share the number
R of relevant documents, the number N of judged non-relevant documents, and the ideal list. Let p(h)
be the place of the h-th relevant document, infinite if fewer were retrieved.
If the first t open documents of the list are relevant, then no other choice of t has more relevant
documents down to any place: every p(h) is minimal. If the last t are relevant (documents that were
not retrieved come after the list), every p(h) is maximal. Every measure here is a sum, maximum or
count over h of terms that never rise with p(h). The terms are h / p(h) in AP and interpolated
precision; the discount at p(h) in dcg and rbp, in ndcg_rel divided by the ideal list's sum down to
p(h); p(h) - h, the number of non-relevant documents above, in binG and G; the same in bpref, but
only of judged and open documents, whose places no labelling changes; and [p(h) <= k], k fixed or a
function of R, in P, recall, success, Rprec and sets. So the first t give the best value for t, and
the last t the worst.

It remains to try every t. If a larger R with the same places never raises a value, it suffices to
try the t that differ in what the measure sees; if R plays no part, one t suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import offsets_of, owners
from kgtrec.errors import UsageError
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import Lists
from kgtrec.trec.measures.trec_measure import EITHER, FALLING, PLACES
from kgtrec.trec.measures.values import values

_BPREF = frozenset({"bpref", "gm_bpref"})


def why_unbounded(column: Column) -> str:
    """Say why a measure has no `bounds`; "" if it has."""
    if column.has_setting:
        return "it has its own level or judged-only lists"
    if column.gains:
        return "it has other gains than relevant and not relevant"
    return "" if column.row.bounds in (PLACES, FALLING, EITHER) else column.row.bounds


def bounds(
    lists: Lists, is_open: Bools, outside: Int64, columns: Sequence[Column]
) -> dict[str, tuple[Float64, Float64]]:
    """Compute the lowest and highest value of every query over all labels of its open documents.

    The columns have bounds (see `why_unbounded`), and the judgements are 0 and 1.
    Shapes: is_open bool (n_documents,), outside int64 (n_queries,).
    """
    if (lists.relevance[is_open] >= 0).any():
        raise UsageError(
            "a judged document is marked as open; mark only documents without judgement"
        )
    worlds = _Worlds(lists, is_open, np.asarray(outside, np.int64))
    intervals: dict[str, tuple[Float64, Float64]] = {}
    for column in columns:
        seen = worlds.condensed if column.measure in _BPREF else worlds.cut(column.sees)
        intervals[column.name] = seen.extremes(column)
    return intervals


@dataclass(frozen=True, eq=False)
class _Worlds:
    """Lists with open documents, and the labellings of these that can be extreme.

    - is_open: bool (n_documents,)
    - outside: int64 (n_queries,)
    """

    lists: Lists
    is_open: Bools
    outside: Int64

    @cached_property
    def owner(self) -> Int64:
        """Query of every open document."""
        return owners(self.lists.offsets)[self.is_open]

    @cached_property
    def inside(self) -> Int64:
        """Number of open documents in every list."""
        return np.bincount(self.owner, minlength=len(self.lists))

    @cached_property
    def ordinal(self) -> Int64:
        """1 for the first open document of a list, 2 for the second, ..."""
        start = np.cumsum(self.inside) - self.inside
        return np.arange(1, len(self.owner) + 1) - start[self.owner]

    @cached_property
    def _judged(self) -> tuple[Int64, Int64, Int64]:
        """Offsets, query and label of documents judged in every labelling; open ones have label
        0."""
        lists = self.lists
        decided = lists.judged >= 0
        n_open = self.inside + self.outside
        labels = np.concatenate([lists.judged[decided], np.zeros(n_open.sum(), np.int64)])
        owner = np.concatenate(
            [owners(lists.judged_offsets)[decided], np.repeat(np.arange(len(lists)), n_open)]
        )
        order = np.lexsort((-labels, owner))
        counts = np.bincount(owner, minlength=len(lists))
        return offsets_of(counts), owner[order], labels[order]

    @cached_property
    def _relevant(self) -> Int64:
        """Number of relevant documents of every query, without open ones."""
        _, owner, labels = self._judged
        return np.bincount(owner[labels > 0], minlength=len(self.lists))

    def values(self, column: Column, first: Int64, last: Int64, count: Int64) -> Float64:
        """Compute values if the `first` first and `last` last listed open documents are
        relevant.

        `count` is the total number of relevant open documents, also outside the lists.
        """
        lists, owner = self.lists, self.owner
        relevance = lists.relevance.copy()
        from_end = self.inside[owner] - self.ordinal
        chosen = (self.ordinal <= first[owner]) | (from_end < last[owner])
        relevance[self.is_open] = chosen
        offsets, query, labels = self._judged
        rank = np.arange(len(query)) - offsets[query]
        turned = (labels == 0) & (rank < (self._relevant + count)[query])
        judged = np.where(turned, 1, labels)
        world = replace(lists, relevance=relevance, judged_offsets=offsets, judged=judged)
        return values(world, [column])[column.name]

    def extremes(self, column: Column) -> tuple[Float64, Float64]:
        """Return the lowest and the highest value of every query."""
        none = np.zeros(len(self.lists), np.int64)
        low, high = np.full(len(none), np.inf), np.full(len(none), -np.inf)
        whole = self.inside + self.outside
        tried = whole if column.row.bounds == EITHER else self.inside
        steps: Iterable[int] = range(int(tried.max(initial=0)) + 1)
        if column.row.bounds == PLACES:
            steps = (0,)
        for step in steps:
            # The first step makes all open documents that the measure sees relevant, or none:
            # sufficient if R plays no part.
            best = np.maximum(tried - step, 0)
            listed = np.minimum(best, self.inside)
            np.maximum(high, self.values(column, listed, none, best), out=high)
            worst = whole - tried + np.minimum(step, tried)
            listed = np.maximum(worst - self.outside, 0)
            np.minimum(low, self.values(column, none, listed, worst), out=low)
        return low, high

    def cut(self, depth: int | None) -> _Worlds:
        """Cut the lists at `depth` documents; the others count as outside."""
        lists = self.lists
        if depth is None or (np.diff(lists.offsets) <= depth).all():
            return self
        return self._select(lists.ranks < depth)

    @cached_property
    def condensed(self) -> _Worlds:
        """The same worlds without documents that no labelling judges, which bpref ignores."""
        worlds = self._select((self.lists.relevance >= 0) | self.is_open)
        length = np.diff(worlds.lists.offsets)
        return _Worlds(replace(worlds.lists, retrieved=length), worlds.is_open, worlds.outside)

    def _select(self, keep: Bools) -> _Worlds:
        """Keep the marked documents; open ones that are dropped count as outside."""
        left = _Worlds(self.lists.select(keep), self.is_open[keep], self.outside)
        return replace(left, outside=self.outside + self.inside - left.inside)
