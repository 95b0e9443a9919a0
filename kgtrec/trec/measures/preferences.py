"""Measures of preferences: do a group of judgements and the run prefer the same document of two?

Documents of a query are numbered in the order of the run; missing documents come last. Each group
has a matrix: is the row's document preferred to the column's? A group of one subgroup ("simple")
prefers every line to those of a lower level, and counts repeated lines. A group of several prefers
what follows from all its subgroups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arrays import Float64, Int64
from kgtrec.trec.measures.judgement_groups import SUBGROUP, GroupView
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import ratio

Matrix = NDArray[np.bool_]

_MATRIX = 512  # most documents for a closure by matrix products


SCOPES = ("", "ret", "imp", "Rnonrel", "Rnonrel_ret")
"""Which preferences count, by the last part of a measure's name: all; those between two retrieved
documents; those that a retrieved document implies; as many relevant as non-relevant documents."""


def _simple(view: GroupView, rows: slice, position: Int64) -> tuple[Int64, Float64, Matrix]:
    """Read a simple group: positions of its lines, ascending, levels, and which are preferred."""
    order = np.argsort(position, kind="stable")
    position, level = position[order], view.level[rows][order]
    bad = np.flatnonzero((position[1:] == position[:-1]) & (level[1:] != level[:-1]))
    if len(bad):
        at = [rows.start + int(order[index]) for index in (bad[0], bad[0] + 1)]
        problem = f"Internal docid: document {view.name(at[0])} occurs with different levels"
        raise view.fault(at, problem, "keep one of the lines")
    return position, level, level[:, None] > level


def _several(
    view: GroupView, rows: slice, position: Int64, subgroup: Int64
) -> tuple[Int64, Float64, Matrix]:
    """Read a group of several subgroups: one position and level per document, and preferences."""
    level = view.level[rows]
    positions, document_of = np.unique(position, return_inverse=True)
    document_of = document_of.reshape(-1)
    size = len(positions)
    both = np.zeros(size, bool)  # at level 0, and above it
    both[document_of[level == 0]] = True
    both &= np.bincount(document_of[level > 0], minlength=size) > 0
    if both.any():
        lines = rows.start + np.flatnonzero(document_of == np.flatnonzero(both)[0])
        problem = f"doc {view.name(lines[0])} has both 0 and non-0 rel_level assigned"
        raise view.fault(lines.tolist(), problem, "give it the same of both in all subgroups")
    prefers = np.zeros((size, size), bool)
    cuts = np.flatnonzero(np.diff(subgroup)) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(subgroup)]):
        documents, levels = document_of[start:stop], level[start:stop]
        _add(prefers, documents, levels[:, None] > levels)
    np.fill_diagonal(prefers, False)
    prefers = _close_transitively(prefers)
    contrary = prefers & prefers.T
    np.fill_diagonal(contrary, False)
    if contrary.any():
        pair = [int(indices[0]) for indices in np.nonzero(contrary)]
        at = [rows.start + int(np.flatnonzero(document_of == document)[0]) for document in pair]
        names = " and ".join(map(view.name, at))
        problem = f"Pref inconsistency found: documents {names} are each preferred to the other"
        raise view.fault(at, problem, "remove a line of the group that contradicts the others")
    # The level of a document is the lowest in its last subgroup.
    order = np.lexsort((-level, subgroup))
    last = np.zeros(size, level.dtype)
    last[document_of[order]] = level[order]
    return positions, last, prefers


def _close_transitively(prefers: Matrix) -> Matrix:
    """Add implied preferences: a over c if a is preferred to b, and b to c."""
    size = len(prefers)
    if size > _MATRIX:  # row by row, eight documents to a byte
        packed = np.packbits(prefers, axis=1)
        for middle in range(size):
            byte, bit = divmod(middle, 8)
            reaching = (packed[:, byte] >> (7 - bit)) & 1 > 0
            packed[reaching] |= packed[middle]
        return np.unpackbits(packed, axis=1, count=size).astype(bool)
    while True:
        paths = prefers.astype(np.float32)
        extended = prefers | (paths @ paths > 0)
        if (extended == prefers).all():
            return prefers
        prefers = extended


def _count_preferences(
    position: Int64, level: Float64, prefers: Matrix, n_retrieved: int, is_simple: bool
) -> list[int]:
    """Count the fulfilled and possible preferences of a group, for each of `SCOPES`."""
    count: Callable[[Matrix], int] = np.count_nonzero
    n = int(np.searchsorted(position, n_retrieved))  # positions ascend: the first n are retrieved
    fulfilled = np.triu(prefers[:n])
    ful_ret, poss_ret = count(fulfilled[:, :n]), count(prefers[:n, :n])
    ful_all = ful_ret + count(fulfilled[:, n:])
    poss_imp = poss_ret + count(fulfilled[:, n:]) + count(prefers[n:, :n])
    poss_all = poss_imp + count(prefers[n:, n:])
    relevant = level > 0
    other = ~relevant if is_simple else level == 0
    balanced: list[int] = []
    for end, ful, poss in ((len(level), ful_all, poss_all), (n, ful_ret, poss_ret)):
        n_relevant = count(relevant[:end])
        surplus = n_relevant - count(other[:end])
        if surplus >= 0:
            ful += count(relevant[:n]) * surplus
            poss += count(relevant) * surplus
        else:
            if is_simple:  # the first of the lowest level, compared with all, as in trec_eval
                left = level > level.min()
                lowest = np.flatnonzero(~left)[:n_relevant]
                lowest = lowest[lowest < end]
                above = np.searchsorted(position, position[lowest])
                ful, poss = int(np.minimum(above, n).sum()), len(lowest) * end
            else:
                left, ful, poss = ~(other & (np.cumsum(other) > count(relevant))), 0, 0
            both = left[:end, None] & left[:end]
            ful += count(fulfilled[:, :end] & both[:n])
            poss += count(prefers[:end, :end] & both)
        balanced += [ful, poss]
    return [ful_all, poss_all, ful_ret, poss_ret, ful_all, poss_imp, *balanced]


def _over_pairs(forward: Int64, n: int) -> tuple[float, float, float]:
    """Average the share of fulfilled preferences over pairs of documents.

    Returns the means of all pairs, of those retrieved, and of those implied by `n` retrieved
    documents. ``forward[i, j]`` counts the groups that prefer i to j.
    """
    total = forward + forward.T
    pairs = np.triu(total > 0)
    near, beyond = (slice(n), slice(n)), (slice(n), slice(n, None))
    shares = [forward[part][pairs[part]] / total[part][pairs[part]] for part in (near, beyond)]
    running = np.cumsum(np.concatenate([[0.0], *shares]))
    both, whole = float(running[len(shares[0])]), float(running[-1])
    n_near, n_implied, n_pairs = len(shares[0]), len(running) - 1, np.count_nonzero(pairs)
    return (
        whole / n_pairs if n_pairs else 0.0,
        both / n_near if n_near else 0.0,
        whole / n_implied if n_implied else 0.0,
    )


@dataclass(frozen=True, eq=False)
class _Preferences:
    """Fulfilled and possible preferences of each group by scope, and means over pairs.

    Shapes: counts float64 (n_groups,), pairs float64 (3, n_queries).
    """

    counts: dict[str, Float64]
    pairs: Float64


def _find(view: GroupView) -> _Preferences:
    """Count the preferences of all groups, and average over pairs of documents."""
    position, size, retrieved = _positions(view)
    subgroup = view.groups.codes[SUBGROUP, view.row]  # lines of a group are sorted by subgroup
    starts = np.searchsorted(view.group, np.arange(len(view.query_of) + 1)).tolist()
    first = np.searchsorted(view.query_of, np.arange(view.n_queries + 1)).tolist()
    counts = np.zeros((len(view.query_of), 2 * len(SCOPES)))
    pairs = np.zeros((3, view.n_queries))
    # If no document of a query repeats, each pair is ordered once, and needs no matrix.
    repeated = np.bincount(view.query_of[view.group], minlength=view.n_queries) > size
    for query, n_documents in enumerate(np.where(repeated, size, 0).tolist()):
        forward = np.zeros((n_documents, n_documents), np.int32)
        for group in range(first[query], first[query + 1]):
            rows = slice(*starts[group : group + 2])
            is_simple = subgroup[rows.start] == subgroup[rows.stop - 1]
            read = _simple if is_simple else partial(_several, subgroup=subgroup[rows])
            documents, level, prefers = read(view, rows, position[rows])
            counts[group] = _count_preferences(
                documents, level, prefers, retrieved[query], is_simple
            )
            if repeated[query]:
                _add(forward, documents, prefers)
        pairs[:, query] = _over_pairs(forward, retrieved[query])
    by_scope = dict(zip(SCOPES, counts.T.reshape(len(SCOPES), 2, -1), strict=True))
    for means, both in zip(pairs, by_scope.values(), strict=False):
        once = ratio(*map(view.sum_groups, both))
        means[~repeated] = once[~repeated]
    return _Preferences(by_scope, pairs)


def _add(matrix: NDArray[Any], indices: Int64, cells: Matrix) -> None:
    """Add cells at rows and columns `indices`, of which some may repeat."""
    if len(np.unique(indices)) == len(indices):
        matrix[indices[:, None], indices] += cells
    else:
        np.add.at(matrix, (indices[:, None], indices), cells)


def _positions(view: GroupView) -> tuple[Int64, Int64, Int64]:
    """Return the position of each line's document in its query, the number of documents of each
    query, and that of retrieved ones."""
    documents, line = np.unique(view.document, return_inverse=True)
    query = np.zeros(len(documents), np.int64)
    rank = np.zeros(len(documents), np.int64)
    query[line], rank[line] = view.query_of[view.group], view.rank
    missing = rank < 0
    order = np.lexsort((np.where(missing, documents, rank), missing, query))
    position = np.zeros(len(documents), np.int64)
    position[order] = np.arange(len(documents)) - np.searchsorted(query[order], query[order])
    size, retrieved = (
        np.bincount(some, minlength=view.n_queries) for some in (query, query[~missing])
    )
    return position[line.reshape(-1)], size, retrieved


def value(view: GroupView, column: Column) -> Float64:
    """Compute the measure of every query; its name says what to divide and which preferences
    count."""
    if "preferences" not in view.memo:
        view.memo["preferences"] = _find(view)
    preferences: _Preferences = view.memo["preferences"]
    kind, _, scope = column.measure.removeprefix("prefs_").partition("_")
    if kind == "num":
        side, _, scope = scope.removeprefix("prefs_").partition("_")
        return view.sum_groups(preferences.counts[scope][int(side == "poss")])
    if kind == "pair":
        return preferences.pairs[SCOPES.index(scope)]
    part, whole = preferences.counts[scope]
    if kind == "simp":
        return ratio(view.sum_groups(part), view.sum_groups(whole))
    values = view.average_groups(ratio(part, whole))
    if scope.startswith("Rnonrel"):  # 0 if a group has nothing to compare, as in trec_eval
        values[view.query_of[whole == 0]] = 0.0
    return values
