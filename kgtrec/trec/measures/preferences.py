"""Measures of preferences: do a group of judgements and the run prefer the same document of two?

Documents of a query are numbered in the order of the run; missing documents come last. A group of
one subgroup ("simple") prefers every line to those of a lower level: its counts follow from
sorting. A group of several (`Partial`), and a query whose groups may disagree, need matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kgtrec.trec.measures.judgement_groups import GroupView
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import Bools, Floats, Ints

Matrix = NDArray[np.bool_]

_CELLS = 4_000_000  # in a block of a query's matrix
_MATRIX = 512  # most documents for a closure by matrix products


@dataclass(frozen=True, eq=False)
class Partial:
    """A group of several subgroups: `position` (k,) of its documents, ascending, and `prefers`
    (k, k), whether the row's document is preferred to the column's.

    The balanced counts are those of prefs_avgjg_Rnonrel.
    """

    group: int
    position: Ints
    prefers: Matrix
    ful_ret: int
    poss_ret: int
    ful_imp: int
    poss_imp: int
    neither: int
    balanced_ful: int
    balanced_poss: int
    balanced_ret_ful: int
    balanced_ret_poss: int


def partial_groups(view: GroupView, position: Ints, retrieved: Ints, groups: Ints) -> list[Partial]:
    """The groups of several subgroups, closed transitively.

    Shapes: position int64 (n,), retrieved int64 (n_queries,).
    """
    subgroup = view.groups.lines.subgroup[view.row]
    starts = np.searchsorted(view.group, groups)
    stops = np.searchsorted(view.group, groups, "right")
    return [
        _partial(view, group, slice(start, stop), position[start:stop], subgroup[start:stop],
                 int(retrieved[view.query_of[group]]))
        for group, start, stop in zip(groups.tolist(), starts.tolist(), stops.tolist(), strict=True)
    ]  # fmt: skip


def _partial(
    view: GroupView, group: int, rows: slice, position: Ints, subgroup: Ints, n_retrieved: int
) -> Partial:
    level = view.level[rows]
    positions, own = np.unique(position, return_inverse=True)
    own = own.reshape(-1)
    size = len(positions)
    both = np.zeros(size, bool)  # at level 0, and above it
    both[own[level == 0]] = True
    both &= np.bincount(own[level > 0], minlength=size) > 0
    if both.any():
        lines = rows.start + np.flatnonzero(own == np.flatnonzero(both)[0])
        problem = f"doc {view.name(lines[0])} has both 0 and non-0 rel_level assigned"
        raise view.fault(lines.tolist(), problem, "give it the same of both in all subgroups")
    prefers = np.zeros((size, size), bool)
    cuts = np.flatnonzero(np.diff(subgroup)) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(subgroup)]):
        documents, levels = own[start:stop], level[start:stop]
        higher = levels[:, None] > levels[None, :]
        if np.bincount(documents).max() == 1:
            prefers[documents[:, None], documents] |= higher
        else:
            np.logical_or.at(prefers, (documents[:, None], documents[None, :]), higher)
    np.fill_diagonal(prefers, False)
    prefers = _closed(prefers)
    _refuse_cycle(view, rows, own, prefers)
    # The level of a document is the lowest in its last subgroup.
    order = np.lexsort((-level, subgroup))
    last = np.zeros(size, level.dtype)
    last[own[order]] = level[order]
    return _counted(group, positions, prefers, last, n_retrieved)


def _closed(prefers: Matrix) -> Matrix:
    """The transitive closure: a preferred to b, and b to c."""
    size = len(prefers)
    if size > _MATRIX:  # row by row, eight documents to a byte
        packed = np.packbits(prefers, axis=1)
        for middle in range(size):
            byte, bit = divmod(middle, 8)
            reaching = (packed[:, byte] >> (7 - bit)) & 1 > 0
            packed[reaching] |= packed[middle]
        return np.unpackbits(packed, axis=1, count=size).astype(bool)
    while True:
        one = prefers.astype(np.float32)
        more = prefers | (one @ one > 0)
        if (more == prefers).all():
            return prefers
        prefers = more


def _refuse_cycle(view: GroupView, rows: slice, own: Ints, prefers: Matrix) -> None:
    both = prefers & prefers.T
    if not both.any():
        return
    i, j = (int(place[0]) for place in np.nonzero(both))
    lines = [rows.start + int(np.flatnonzero(own == document)[0]) for document in (i, j)]
    names = " and ".join(view.name(line) for line in lines)
    problem = f"Pref inconsistency found: documents {names} are each preferred to the other"
    raise view.fault(lines, problem, "remove a line of the group that contradicts the others")


def _counted(
    group: int, position: Ints, prefers: Matrix, level: NDArray[np.float64], n_retrieved: int
) -> Partial:
    count: Callable[[Matrix], int] = np.count_nonzero
    n = int(np.searchsorted(position, n_retrieved))  # positions ascend: the first n are retrieved
    fulfilled = prefers & ~np.tri(len(position), dtype=bool)
    ful_ret, poss_ret = count(fulfilled[:n, :n]), count(prefers[:n, :n])
    ful_imp = count(prefers[:n, n:])
    poss_imp = ful_imp + count(prefers[n:, :n])
    neither = count(prefers[n:, n:])
    relevant, other = level > 0, level == 0
    n_rel, n_other = count(relevant), count(other)
    got, got_other = count(relevant[:n]), count(other[:n])
    left = ~(other & (np.cumsum(other) > n_rel))  # the first n_rel of the others, and the relevant
    if n_rel >= n_other:
        ful = ful_ret + ful_imp + got * (n_rel - n_other)
        poss = poss_ret + poss_imp + neither + n_rel * (n_rel - n_other)
    else:
        ful = count(fulfilled[:n] & left[:n, None] & left)
        poss = count(prefers & left[:, None] & left)
    if got >= got_other:
        shown_ful = ful_ret + got * (got - got_other)
        shown_poss = poss_ret + n_rel * (got - got_other)
    else:
        both = left[:n, None] & left[:n]
        shown_ful, shown_poss = count(fulfilled[:n, :n] & both), count(prefers[:n, :n] & both)
    return Partial(group, position, prefers, ful_ret, poss_ret, ful_imp, poss_imp, neither, ful,
                   poss, shown_ful, shown_poss)  # fmt: skip


# -- Pairs of documents over all groups ----------------------------------------------------------

Simple = tuple[Ints, Ints, NDArray[np.int64]]
"""Positions of the documents of a simple group, their levels, and the count of each."""


def pair_values(
    view: GroupView,
    retrieved: Ints,
    partial: Sequence[Partial],
    lines: tuple[Ints, Ints, Ints],
    chosen: Bools,
) -> tuple[Floats, Floats, Floats]:
    """Means over pairs of documents of the share of fulfilled preferences.

    Shapes: retrieved int64 (n_queries,), chosen bool (n_queries,) -> float64 (n_queries,).
    """
    group, position, level = lines
    matrices = {part.group: part for part in partial}
    first = np.searchsorted(group, np.arange(len(view.query_of) + 1))
    n_documents = np.zeros(view.n_queries, np.int64)
    np.maximum.at(n_documents, view.query_of[group], position + 1)
    for part in partial:
        query = view.query_of[part.group]
        n_documents[query] = max(n_documents[query], part.position[-1] + 1)
    bounds = np.searchsorted(view.query_of, np.arange(view.n_queries + 1)).tolist()
    means = np.zeros((3, view.n_queries))
    for query in np.flatnonzero(chosen).tolist():
        start, stop = bounds[query : query + 2]
        simple: list[Simple] = []
        for one in range(start, stop):
            rows = slice(first[one], first[one + 1])
            if rows.stop > rows.start:
                simple.append(_collapsed(position[rows], level[rows]))
        several = [matrices[one] for one in range(start, stop) if one in matrices]
        means[:, query] = _of_query(
            simple, several, int(n_documents[query]), int(retrieved[query])
        )  # fmt: skip
    return means[0], means[1], means[2]


def _collapsed(position: Ints, level: Ints) -> Simple:
    new = np.concatenate(([True], position[1:] != position[:-1]))
    if new.all():
        return position, level, np.ones(len(position), np.int64)
    return position[new], level[new], np.diff(np.append(np.flatnonzero(new), len(position)))


def _of_query(
    simple: Sequence[Simple], partial: Sequence[Partial], size: int, retrieved: int
) -> tuple[float, float, float]:
    """Sums run over i, then j, of i < j < ret; then of i < ret <= j."""
    terms: list[Floats] = []
    beyond: list[Floats] = []
    n_pairs = n_implied = n_retrieved = 0
    step = max(1, _CELLS // max(size, 1))
    for start in range(0, size, step):
        stop = min(start + step, size)
        fulfilled, reverse = _block(simple, partial, start, stop, size)
        total = fulfilled + reverse
        pairs = (total > 0) & (np.arange(size) > np.arange(start, stop)[:, None])
        n_pairs += int(pairs.sum())
        held = pairs[: max(retrieved - start, 0)]
        n_implied += int(held.sum())
        near = held[:, :retrieved]
        n_retrieved += int(near.sum())
        share = np.divide(fulfilled, total, out=np.zeros(total.shape), where=total > 0)[: len(held)]
        terms.append(share[:, :retrieved][near])
        beyond.append(share[:, retrieved:][held[:, retrieved:]])
    running = np.cumsum(np.concatenate([[0.0], *terms, *beyond]))
    both, whole = float(running[sum(map(len, terms))]), float(running[-1])
    return (
        whole / n_pairs if n_pairs else 0.0,
        both / n_retrieved if n_retrieved else 0.0,
        whole / n_implied if n_implied else 0.0,
    )


def _block(
    simple: Sequence[Simple], partial: Sequence[Partial], start: int, stop: int, size: int
) -> tuple[Ints, Ints]:
    """How often the documents of some rows are preferred to each other document, and vice versa."""
    forward = np.zeros((stop - start, size), np.int64)
    is_whole = stop - start == size
    backward = forward.T if is_whole else np.zeros_like(forward)
    for position, level, times in simple:
        rows = slice(None) if is_whole else _within(position, start, stop)
        cells = position[rows][:, None] - start, position
        weight = times[rows][:, None] * times
        forward[cells] += (level[rows][:, None] > level) * weight
        if not is_whole:
            backward[cells] += (level[rows][:, None] < level) * weight
    for part in partial:
        rows = slice(None) if is_whole else _within(part.position, start, stop)
        cells = part.position[rows][:, None] - start, part.position
        forward[cells] += part.prefers[rows]
        if not is_whole:
            backward[cells] += part.prefers.T[rows]
    return forward, backward


def _within(position: Ints, start: int, stop: int) -> slice:
    """The range of ascending positions from `start` to `stop`."""
    return slice(*np.searchsorted(position, (start, stop)).tolist())


@dataclass(frozen=True, eq=False)
class _Lines:
    """Lines of simple groups, by group and position, ascending; each array has (n,) rows: the
    line's number in the view (`line`), `group`, `position`, `level` as numbered, `retrieved`."""

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
        """Number of lines of each group where `mask` holds."""
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
        """Count pairs of retrieved lines of a group whose first has the higher level. From the
        highest bit down, lines that agree form a block; each 0 pairs with each 1 before it."""
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
    """Counts of each group, also of prefs_avgjg_Rnonrel's balanced comparison.

    `balanced` and `balanced_ret` are fulfilled and possible pairs, `lines` those of simple groups,
    `retrieved` (n_queries,) the judged documents that were retrieved.
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
        # If no document is in two groups, or twice in one, each pair is ordered once.
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
    """Position of each line's document in its query; number of documents retrieved per query."""
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
    subgroup = view.groups.lines.subgroup[view.row]  # lines of a group are sorted by subgroup
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
    """Fulfilled and possible pairs of simple groups, with as many non-relevant as relevant
    documents: of all documents, and of retrieved ones."""
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
    """Compare each line with the first `most` shown lines of its group's lowest level.

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
    """Averages; 0 for a query with a group that has nothing to compare, as in trec_eval."""
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
