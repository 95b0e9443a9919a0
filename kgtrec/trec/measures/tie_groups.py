"""Tie groups: documents of a query that share a score, whose order the scores leave open.

Under -M the first documents of each order are looked at, so that a group at the limit may give any
of its documents; under -J, unjudged documents leave after that, as in trec_eval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.trec.measures.judged_lists import Lists
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.relevant import Bools, Floats, Ints, some_queries

__all__ = ["Slots", "TieGroups", "differ", "sorted_ties", "tie_groups", "with_ties"]

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Groups of equal score, queries ascending and inside one the best first.

    Attributes
    ----------
    lists : Lists
        Without unjudged documents under -J; not cut by -M.
    query, first, start, size : ndarray of int64, shape (n_groups,)
        Number of the query; where the first document stands in the flat arrays of `lists`;
        documents of the query above the group; documents in it, 1 or more.
    whole, drawn : ndarray of int64, shape (n_groups,)
        Size before -J, and how many of those -M leaves: `drawn` of `whole`, at random.
    """

    lists: Lists
    query: Ints
    first: Ints
    start: Ints
    size: Ints
    whole: Ints
    drawn: Ints

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, rows: NDArray[np.intp] | Bools) -> TieGroups:
        parts = (self.query, self.first, self.start, self.size, self.whole, self.drawn)
        return TieGroups(self.lists, *(part[rows] for part in parts))

    def count(self, mask: Bools) -> Ints:
        """Documents of each group where `mask`, an entry per document of `lists`, holds."""
        places = np.flatnonzero(mask)
        ends = np.searchsorted(places, self.first + self.size)
        return ends - np.searchsorted(places, self.first)

    def count_above(self, mask: Bools) -> Ints:
        """Documents of the query above each group where `mask` holds."""
        places = np.flatnonzero(mask)
        starts = np.searchsorted(places, self.lists.offsets[self.query])
        return np.searchsorted(places, self.first) - starts

    def slots(self) -> Slots:
        """Every place that a document of these groups may take."""
        group = np.repeat(np.arange(len(self)), self.size)
        turn = np.arange(len(group)) - np.repeat(np.cumsum(self.size) - self.size, self.size) + 1
        seen = np.ones(len(group))
        cut = self.drawn < self.whole
        sure = cut & (self.whole == self.size)
        seen[sure[group] & (turn > self.drawn[group])] = 0.0
        ends = np.cumsum(self.size)
        for place in np.flatnonzero(cut & ~sure).tolist():  # one a query at most
            size, end = int(self.size[place]), int(ends[place])
            chance = _chance_of_more(int(self.whole[place]), size, int(self.drawn[place]))
            seen[end - size : end] = chance
        return Slots(self, group, turn, self.start[group] + turn, seen)


@dataclass(frozen=True, eq=False)
class Slots:
    """Places of tied documents.

    Attributes
    ----------
    groups : TieGroups
    group, turn, rank : ndarray of int64, shape (n,)
        Number of the group; place in it, and in the list of the query, from 1.
    seen : ndarray of float64, shape (n,)
        Probability that the place is there after -M and -J; 1 without them.
    """

    groups: TieGroups
    group: Ints
    turn: Ints
    rank: Ints
    seen: Floats

    @property
    def query(self) -> Ints:
        """Number of the query of each."""
        return self.groups.query[self.group]


def tie_groups(lists: Lists, options: EvalOptions, singles: Bools | None = None) -> TieGroups:
    """The tie groups of judged lists.

    Parameters
    ----------
    lists : Lists
        With the last group of each query whole, where the lists are cut. `options.most` and
        `options.judged_only` have not been applied.
    options : EvalOptions
        Under ``compat=9``, scores are compared in single precision.
    singles : ndarray of bool, shape (n_documents,), optional
        Documents that make a group of their own where nothing ties with them; none without it.
        Most documents tie with nothing and are worth nothing, so that they need no group.
    """
    first, size = _runs(_tied_with_next(lists, options.compat), singles)
    query = np.searchsorted(lists.offsets, first, side="right") - 1
    start = first - lists.offsets[query]
    most = np.iinfo(np.int64).max if options.most is None else options.most
    groups = TieGroups(lists, query, first, start, size, size, np.clip(most - start, 0, size))
    return _judged_only(groups) if options.judged_only else groups


def _tied_with_next(lists: Lists, compat: int) -> Bools:
    """Whether a document has the score of the one that follows it in the list of its query."""
    scores = lists.scores
    if compat < 10:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32)
    same = np.zeros(len(scores), bool)
    np.equal(scores[1:], scores[:-1], out=same[:-1])
    ends = lists.offsets[1:]
    same[ends[ends > 0] - 1] = False
    return same


def _runs(same: Bools, singles: Bools | None) -> tuple[Ints, Ints]:
    """First place and length of every run of places that are tied, and of wanted single ones."""
    places = np.flatnonzero(same)
    breaks = np.flatnonzero(np.diff(places) > 1)
    first = places[np.concatenate(([0], breaks + 1))] if len(places) else places
    last = places[np.concatenate((breaks, [-1]))] + 1 if len(places) else places
    if singles is not None:
        alone = singles & ~same
        alone[1:] &= ~same[:-1]
        place = np.flatnonzero(alone)
        first, last = np.concatenate((first, place)), np.concatenate((last, place))
        order = np.argsort(first)
        first, last = first[order], last[order]
    return first, last - first + 1


def with_ties(lists: Lists, options: EvalOptions) -> Lists:
    """The queries that have a tie where -M looks."""
    groups = tie_groups(lists, replace(options, judged_only=False))
    return some_queries(lists, np.unique(groups.query[groups.drawn > 0]))


def sorted_ties(lists: Lists, options: EvalOptions, worth: NDArray[Any], best_first: bool) -> Lists:
    """The lists with the documents of each tie group by a number each, of all documents."""
    groups = tie_groups(lists, replace(options, judged_only=False))
    slots = groups.slots()
    where = groups.first[slots.group] + slots.turn - 1
    tied = worth[where].astype(np.float64)
    # Relevances beyond the digits of a float64 are told apart, too.
    exact = lists.relevance[where]
    order = np.lexsort((-exact, -tied, slots.group) if best_first else (exact, tied, slots.group))
    relevance = lists.relevance.copy()
    relevance[where] = exact[order]
    return replace(lists, relevance=relevance)


def differ(first: NDArray[Any], second: NDArray[Any]) -> Bools:
    """Not the same but for what rounding makes of sums in another order."""
    if first.dtype == object:
        return np.asarray(first != second, bool)
    return np.abs(first - second) > _ROUNDING * np.maximum(1.0, np.abs(first))


def _judged_only(groups: TieGroups) -> TieGroups:
    """The groups without unjudged documents; those of which nothing is left are gone."""
    lists = groups.lists
    keep = lists.relevance >= 0
    if keep.all():
        return groups
    new_index = np.concatenate(([0], np.cumsum(keep)))
    shorter = replace(
        lists,
        offsets=new_index[lists.offsets],
        relevance=lists.relevance[keep],
        scores=lists.scores[keep],
    )
    first = new_index[groups.first]
    start = first - shorter.offsets[groups.query]
    size = new_index[groups.first + groups.size] - first
    left = TieGroups(shorter, groups.query, first, start, size, groups.whole, groups.drawn)
    return left[size > 0]


def _chance_of_more(whole: int, size: int, drawn: int) -> Floats:
    """P(T >= 1), ..., P(T >= size), T how many of `size` are among `drawn` of `whole`.

    The hypergeometric distribution, from its mode outwards, where nothing can overflow.
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
