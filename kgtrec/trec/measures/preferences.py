"""Measures of preferences: which of two documents a group of judgements prefers, and the run too.

Documents of a query are numbered in the order of the run, those that it lacks behind them. A group
of one subgroup ("simple") prefers every line to those of a lower level; its counts follow from
sorting, without a pair at hand. Groups of several subgroups and pairs of documents over all groups
are in `preference_pairs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgtrec.trec.measures.judgement_groups import GroupView
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.preference_pairs import Partial, pair_values, partial_groups
from kgtrec.trec.measures.relevant import Bools, Floats, Ints

__all__ = [
    "balanced", "balanced_retrieved", "fulfilled", "fulfilled_retrieved", "groups",
    "groups_implied", "groups_retrieved", "pairs", "pairs_implied", "pairs_retrieved", "possible",
    "simple", "simple_implied", "simple_retrieved",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Lines:
    """Lines of simple groups: group, ascending, and position, ascending within it, of each.

    Attributes
    ----------
    line : ndarray of int64, shape (n,)
        Number of the line in the view.
    group, position : ndarray of int64, shape (n,)
    level : ndarray of int64, shape (n,)
        Numbers of the levels, in their order.
    retrieved : ndarray of bool, shape (n,)
    n_groups : int
    """

    line: Ints
    group: Ints
    position: Ints
    level: Ints
    retrieved: Bools
    n_groups: int

    def __getitem__(self, rows: Bools) -> _Lines:
        return _Lines(
            self.line[rows], self.group[rows], self.position[rows], self.level[rows],
            self.retrieved[rows], self.n_groups,
        )  # fmt: skip

    def count(self, mask: Bools) -> Ints:
        """Lines of each group where `mask` holds."""
        return np.bincount(self.group[mask], minlength=self.n_groups)

    def total(self, group: Ints, weights: Ints) -> Ints:
        """Sum of weights over each group: exact below 2**53."""
        sums = np.bincount(group, weights=weights, minlength=self.n_groups)
        return sums.astype(np.int64)

    @cached_property
    def counts(self) -> _Counts:
        """Preferences between these lines."""
        n_ret, n_not = self.count(self.retrieved), self.count(~self.retrieved)
        width = int(self.level.max(initial=0)) + 1
        keys, place = np.unique(self.group * width + self.level, return_inverse=True)
        place, owner = place.reshape(-1), keys // width
        ret = np.bincount(place[self.retrieved], minlength=len(keys))
        missed = np.bincount(place[~self.retrieved], minlength=len(keys))
        lower = np.cumsum(missed) - missed
        lower -= lower[np.searchsorted(owner, owner)]
        return _Counts(
            ful_ret=self._descents(),
            poss_ret=_two_of(n_ret) - self.total(owner, _two_of(ret)),
            ful_imp=self.total(owner, ret * lower),
            poss_imp=n_ret * n_not - self.total(owner, ret * missed),
            neither=_two_of(n_not) - self.total(owner, _two_of(missed)),
        )

    def _descents(self) -> Ints:
        """Pairs of retrieved lines of a group of which the first has the higher level.

        The two levels differ first in some bit: bit by bit, from the highest, lines that agree so
        far form a block; of a block, each 0 makes a pair with every 1 before it.
        """
        group, level = self.group[self.retrieved], self.level[self.retrieved]
        pairs = np.zeros(self.n_groups, np.int64)
        block = group
        for bit in reversed(range(int(level.max(initial=0)).bit_length())):
            one = (level >> bit) & 1
            before = np.cumsum(one) - one
            before -= before[np.searchsorted(block, block)]
            pairs += self.total(group[one == 0], before[one == 0])
            order = np.argsort(block * 2 + one, kind="stable")
            group, level, block = group[order], level[order], (block * 2 + one)[order]
            block = np.cumsum(np.concatenate(([0], block[1:] != block[:-1])))[: len(block)]
        return pairs


def _two_of(n: Ints) -> Ints:
    return n * (n - 1) // 2


@dataclass(frozen=True, eq=False)
class _Counts:
    """Preferences of each group: int64 arrays of shape (n_groups,)."""

    ful_ret: Ints
    poss_ret: Ints
    ful_imp: Ints
    poss_imp: Ints
    neither: Ints


@dataclass(frozen=True, eq=False)
class _Preferences:
    """All that the measures need: counts of each group, and of the balanced comparison.

    Attributes
    ----------
    view : GroupView
    counts : _Counts
    balanced, balanced_ret : (ndarray of int64, ndarray of int64), each of shape (n_groups,)
        Fulfilled and possible, as prefs_avgjg_Rnonrel counts them.
    lines : _Lines
        Of the simple groups.
    partial : list of Partial
    retrieved : ndarray of int64, shape (n_queries,)
        Judged documents of each query that were retrieved.
    """

    view: GroupView
    counts: _Counts
    balanced: tuple[Ints, Ints]
    balanced_ret: tuple[Ints, Ints]
    lines: _Lines
    partial: list[Partial]
    retrieved: Ints

    def of_queries(self, counts: Ints) -> Ints:
        """Sums over the groups of each query."""
        sums = np.bincount(self.view.query_of, weights=counts, minlength=self.view.n_queries)
        return sums.astype(np.int64)

    def averaged(self, shares: Floats) -> Floats:
        """Means over the groups of each query, added in the order of their names."""
        sums = np.bincount(self.view.query_of, weights=shares, minlength=self.view.n_queries)
        return sums / np.maximum(self.view.n_groups, 1)

    @cached_property
    def pairs(self) -> tuple[Floats, Floats, Floats]:
        """Means over pairs of documents: all, retrieved, implied."""
        lines, view = self.lines, self.view
        # Where no document stands in two groups, or twice in one, each pair is ordered once.
        groups = np.concatenate([lines.group, *(
            np.full(len(part.position), part.group) for part in self.partial
        )])  # fmt: skip
        documents = np.concatenate([lines.position, *(part.position for part in self.partial)])
        query = view.query_of[groups]
        width = int(documents.max(initial=0)) + 1
        owner, times = np.unique(query * width + documents, return_counts=True)
        alone = np.ones(view.n_queries, bool)
        alone[owner[times > 1] // width] = False
        matrices = pair_values(
            view, self.retrieved, self.partial, (lines.group, lines.position, lines.level), ~alone
        )
        together = [
            _share(*map(self.of_queries, quotient(self.counts)))
            for quotient in (_all, _retrieved, _implied)
        ]
        whole, near, implied = (
            np.where(alone, one, other) for one, other in zip(together, matrices, strict=True)
        )
        return whole, near, implied


def _of(view: GroupView) -> _Preferences:
    if "preferences" not in view.memo:
        view.memo["preferences"] = _find(view)
    preferences: _Preferences = view.memo["preferences"]
    return preferences


def _find(view: GroupView) -> _Preferences:
    position, retrieved = _positions(view)
    n_groups = len(view.query_of)
    several = _several_subgroups(view)
    level = np.unique(view.level, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((position, view.group))
    order = order[~several[view.group[order]]]
    lines = _Lines(
        order, view.group[order], position[order], level[order],
        position[order] < retrieved[view.query_of[view.group[order]]], n_groups,
    )  # fmt: skip
    _refuse_two_levels(view, lines)
    parts = partial_groups(view, position, retrieved, np.flatnonzero(several))
    simple, whole, shown = lines.counts, *_balanced(view, lines)
    counts = _Counts(*(
        _merged(getattr(simple, name), parts, name) for name in simple.__dataclass_fields__
    ))  # fmt: skip
    names = ("balanced_ful", "balanced_poss"), ("balanced_ret_ful", "balanced_ret_poss")
    pairs = [
        (_merged(one[0], parts, ful), _merged(one[1], parts, poss))
        for one, (ful, poss) in zip((whole, shown), names, strict=True)
    ]
    return _Preferences(view, counts, pairs[0], pairs[1], lines, parts, retrieved)


def _merged(simple: Ints, parts: list[Partial], name: str) -> Ints:
    """Counts of all groups: of the simple ones, and of the others."""
    counts = simple.copy()
    for part in parts:
        counts[part.group] = getattr(part, name)
    return counts


def _positions(view: GroupView) -> tuple[Ints, Ints]:
    """Position of each line's document in its query; and documents retrieved by each query."""
    documents, line = np.unique(view.document, return_inverse=True)
    query = np.zeros(len(documents), np.int64)
    place = np.zeros(len(documents), np.int64)
    query[line], place[line] = view.query_of[view.group], view.place
    missing = place < 0
    order = np.lexsort((np.where(missing, documents, place), missing, query))
    position = np.zeros(len(documents), np.int64)
    position[order] = np.arange(len(documents)) - np.searchsorted(query[order], query[order])
    retrieved = np.bincount(query[~missing], minlength=view.n_queries)
    return position[line.reshape(-1)], retrieved


def _several_subgroups(view: GroupView) -> Bools:
    """Groups of two or more subgroups."""
    subgroup = view.groups.lines.subgroup[view.row]  # lines of a group come by subgroup
    first = subgroup[np.searchsorted(view.group, np.arange(len(view.query_of)))]
    several = np.zeros(len(view.query_of), bool)
    several[view.group[subgroup != first[view.group]]] = True
    return several


def _refuse_two_levels(view: GroupView, lines: _Lines) -> None:
    same = (lines.group[1:] == lines.group[:-1]) & (lines.position[1:] == lines.position[:-1])
    bad = np.flatnonzero(same & (lines.level[1:] != lines.level[:-1]))
    if len(bad):
        at = [int(lines.line[bad[0]]), int(lines.line[bad[0] + 1])]
        problem = f"Internal docid: document {view.name(at[0])} occurs with different levels"
        raise view.fault(at, problem, "keep one of the lines")


def _balanced(view: GroupView, lines: _Lines) -> list[tuple[Ints, Ints]]:
    """Fulfilled and possible of simple groups, as many non-relevant documents as relevant ones:
    of all documents, and of those retrieved."""
    counts, every = lines.counts, np.ones(len(lines.line), bool)
    relevant = view.level[lines.line] > 0
    above = lines[lines.level > _lowest(lines)[lines.group]].counts
    n_rel = lines.count(relevant)
    pairs = []
    for shown, ful, poss, ful_above, poss_above in (
        (every, counts.ful_ret + counts.ful_imp, counts.poss_ret + counts.poss_imp + counts.neither,
         above.ful_ret + above.ful_imp, above.poss_ret + above.poss_imp + above.neither),
        (lines.retrieved, counts.ful_ret, counts.poss_ret, above.ful_ret, above.poss_ret),
    ):  # fmt: skip
        rel, other = lines.count(relevant & shown), lines.count(~relevant & shown)
        got = lines.count(relevant & lines.retrieved)
        ful_z, poss_z = _against_lowest(lines, rel, shown)
        many = rel >= other
        pairs.append((
            np.where(many, ful + got * (rel - other), ful_above + ful_z),
            np.where(many, poss + n_rel * (rel - other), poss_above + poss_z),
        ))  # fmt: skip
    return pairs


def _lowest(lines: _Lines) -> Ints:
    """Lowest level of each group."""
    lowest = np.full(lines.n_groups, np.iinfo(np.int64).max)
    np.minimum.at(lowest, lines.group, lines.level)
    return lowest


def _against_lowest(lines: _Lines, most: Ints, shown: Bools) -> tuple[Ints, Ints]:
    """Each line against the first `most` lines of its group's lowest level, among those shown.

    Lines of the lowest level are compared with themselves, too, as in trec_eval.
    """
    is_lowest = lines.level == _lowest(lines)[lines.group]
    before = np.cumsum(is_lowest) - is_lowest
    ordinal = before - before[np.searchsorted(lines.group, lines.group)]
    chosen = is_lowest & (ordinal < most[lines.group]) & shown
    width = int(lines.position.max(initial=0)) + 1
    keys = lines.group * width + lines.position
    got = keys[lines.retrieved]
    start = np.searchsorted(got, lines.group[chosen] * width)
    above = np.searchsorted(got, keys[chosen]) - start
    return (
        lines.total(lines.group[chosen], above),
        lines.count(chosen) * lines.count(shown),
    )  # fmt: skip


# -- The measures --------------------------------------------------------------------------------


def _share(part: Ints, whole: Ints) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


Quotient = Callable[[_Counts], tuple[Ints, Ints]]


def _all(counts: _Counts) -> tuple[Ints, Ints]:
    return counts.ful_ret + counts.ful_imp, counts.poss_ret + counts.poss_imp + counts.neither


def _retrieved(counts: _Counts) -> tuple[Ints, Ints]:
    return counts.ful_ret, counts.poss_ret


def _implied(counts: _Counts) -> tuple[Ints, Ints]:
    return counts.ful_ret + counts.ful_imp, counts.poss_ret + counts.poss_imp


def possible(view: GroupView, column: Column) -> Floats:
    """Preferences of the judgements."""
    preferences = _of(view)
    return preferences.of_queries(_all(preferences.counts)[1]).astype(np.float64)


def fulfilled(view: GroupView, column: Column) -> Floats:
    """Preferences fulfilled."""
    preferences = _of(view)
    return preferences.of_queries(_all(preferences.counts)[0]).astype(np.float64)


def fulfilled_retrieved(view: GroupView, column: Column) -> Floats:
    """Preferences fulfilled between retrieved documents."""
    preferences = _of(view)
    return preferences.of_queries(preferences.counts.ful_ret).astype(np.float64)


def _together(quotient: Quotient) -> Callable[[GroupView, Column], Floats]:
    def over_all_groups(view: GroupView, column: Column) -> Floats:
        preferences = _of(view)
        part, whole = quotient(preferences.counts)
        return _share(preferences.of_queries(part), preferences.of_queries(whole))

    return over_all_groups


def _by_group(quotient: Quotient) -> Callable[[GroupView, Column], Floats]:
    def averaged(view: GroupView, column: Column) -> Floats:
        preferences = _of(view)
        return preferences.averaged(_share(*quotient(preferences.counts)))

    return averaged


def _by_pair(which: int) -> Callable[[GroupView, Column], Floats]:
    return lambda view, column: _of(view).pairs[which]


def _balance(preferences: _Preferences, counts: tuple[Ints, Ints]) -> Floats:
    """Averages; 0 for a query of which some group has nothing to compare, as in trec_eval."""
    values = preferences.averaged(_share(*counts))
    values[preferences.view.query_of[counts[1] == 0]] = 0.0
    return values


def balanced(view: GroupView, column: Column) -> Floats:
    """Averages over groups with as many non-relevant as relevant documents."""
    preferences = _of(view)
    return _balance(preferences, preferences.balanced)


def balanced_retrieved(view: GroupView, column: Column) -> Floats:
    """The same of retrieved documents."""
    preferences = _of(view)
    return _balance(preferences, preferences.balanced_ret)


simple, groups = _together(_all), _by_group(_all)
simple_retrieved, groups_retrieved = _together(_retrieved), _by_group(_retrieved)
simple_implied, groups_implied = _together(_implied), _by_group(_implied)
pairs, pairs_retrieved, pairs_implied = _by_pair(0), _by_pair(1), _by_pair(2)
