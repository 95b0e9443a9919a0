"""Preferences as matrices: groups of several subgroups, and pairs of documents over all groups.

A matrix has a row and a column for each judged document of a group, or of a query by blocks of
rows, where its groups may contradict one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kgtrec.trec.measures.judgement_groups import GroupView
from kgtrec.trec.measures.relevant import Bools, Floats, Ints

__all__ = ["Partial", "pair_values", "partial_groups"]

Matrix = NDArray[np.bool_]

_CELLS = 4_000_000  # of a block of a query's matrix
_MATRIX = 512  # documents up to which a closure multiplies matrices


@dataclass(frozen=True, eq=False)
class Partial:
    """A group of several subgroups.

    Attributes
    ----------
    group : int
    position : ndarray of int64, shape (k,)
        Of its documents, ascending.
    prefers : ndarray of bool, shape (k, k)
        Whether the document of the row is preferred to that of the column.
    ful_ret, poss_ret, ful_imp, poss_imp, neither : int
    balanced_ful, balanced_poss, balanced_ret_ful, balanced_ret_poss : int
        As prefs_avgjg_Rnonrel counts them.
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

    Parameters
    ----------
    view : GroupView
    position : ndarray of int64, shape (n,)
        Of each line's document in its query.
    retrieved : ndarray of int64, shape (n_queries,)
    groups : ndarray of int64
        Their numbers.

    Raises
    ------
    FileError
        Naming query, group and documents: a document of level 0 and of one above it, or two
        documents of which each is preferred to the other.
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
        raise view.fault(lines.tolist(), problem, "give it one of them in all subgroups")
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
    """With all that follows: a preferred to b, and b to c."""
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
    raise view.fault(lines, problem, "take out a line of the group that contradicts the others")


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
"""Positions of the documents of a simple group, their levels, and how often each stands there."""


def pair_values(
    view: GroupView,
    retrieved: Ints,
    partial: Sequence[Partial],
    lines: tuple[Ints, Ints, Ints],
    chosen: Bools,
) -> tuple[Floats, Floats, Floats]:
    """Means over pairs of documents of the share of their preferences that are fulfilled.

    Parameters
    ----------
    view : GroupView
    retrieved : ndarray of int64, shape (n_queries,)
    partial : sequence of Partial
    lines : group, position and level of the lines of simple groups
        By group and position.
    chosen : ndarray of bool, shape (n_queries,)
        The queries to look at; others have 0.

    Returns
    -------
    (ndarray, ndarray, ndarray) of float64, shape (n_queries,)
        Over all pairs, those of retrieved documents, and those with a retrieved one.
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
    """How often the documents of some rows are preferred to each other one, and it to them."""
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
    """Where ascending positions lie between two of them."""
    return slice(*np.searchsorted(position, (start, stop)).tolist())
