"""Groups of documents that tie, and the places that each may take under -M and -J."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec.trec.measures.relevant import Lists
from kgtrec.trec.measures.trec_measure import EvalOptions


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
            chance = chance_of_more(int(self.whole[index]), size, int(self.drawn[index]))
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
    scores = comparable_scores(lists, options.compat)
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


def comparable_scores(lists: Lists, compat: int) -> NDArray[np.floating[Any]]:
    """Return scores in the precision of comparisons."""
    with np.errstate(over="ignore"):
        return lists.scores if compat >= 10 else lists.scores.astype(np.float32)


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


def chance_of_more(whole: int, size: int, drawn: int) -> Float64:
    """Compute P(T >= 1), ..., P(T >= size), where T of `size` are among `drawn` of `whole`."""
    low, weights = hypergeometric(whole, size, drawn)
    chance = np.zeros(size)
    chance[:low] = 1.0  # so many are always drawn
    chance[low : low + len(weights) - 1] = np.cumsum(weights[::-1])[::-1][1:]
    return chance


def hypergeometric(whole: int, size: int, drawn: int) -> tuple[int, Float64]:
    """Compute P(T = low), P(T = low + 1), ..., where T of `size` are among `drawn` of `whole`.

    Returns the least possible T, low, and the probabilities up to the greatest. They are computed
    from the mode outwards to avoid overflow.
    """
    low, high = max(0, drawn - (whole - size)), min(size, drawn)
    t = np.arange(low, high, dtype=np.float64)
    ratio = (size - t) * (drawn - t) / ((t + 1) * (whole - size - drawn + t + 1))
    mode = int((ratio > 1).sum())
    upward = np.cumprod(ratio[mode:])
    downward = np.cumprod(1 / ratio[:mode][::-1])[::-1]
    weights = np.concatenate((downward, [1.0], upward))
    return low, weights / weights.sum()
