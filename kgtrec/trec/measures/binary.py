"""Measures that kgtrec computes itself, from judged lists, for all queries at once.

Some are not in pytrec_eval: those of trec_eval 10, its way of rounding recall points, strings,
parameters of utility and set_F, and RR@k and Judged@k. The others take over where handing the lists
to pytrec_eval would be the bottleneck, see `kgtrec.trec.measures.values`; they do the same
operations in the same order. Measures of gains stand in `kgtrec.trec.measures.graded`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.trec.measures.family import function_of
from kgtrec.trec.measures.graded import powers
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import UNJUDGED, Floats, Ints, Places, View, log2

FLOOR = 1e-5
"""Below it, values count as this in geometric means (trec_eval's MIN_GEO_MEAN)."""

_EPSILON = 1e-5  # of infAP, against division by 0


def own_values(view: View, column: Column) -> NDArray[Any]:
    """Values of a measure for every query.

    Shape: float64 (n_queries,).
    """
    result: NDArray[Any] = function_of(column.row.function)(view, column)
    return result


def _share(part: Ints | Floats, whole: Ints | Floats) -> Floats:
    """Part over whole, 0 where the whole is 0."""
    zeros = np.zeros(np.broadcast_shapes(np.shape(part), np.shape(whole)))
    return np.divide(part, whole, out=zeros, where=np.asarray(whole) != 0)


def _rank(column: Column) -> int:
    return int(column.cutoff or 0)


# -- Average precision and its kin --------------------------------------------------------------


def _precision_sum(view: View, depth: int | None = None) -> Floats:
    hits = view.hits
    terms = hits.ordinal / (hits.place + 1)
    return hits.total(terms if depth is None else np.where(hits.place < depth, terms, 0.0))


def average_precision(view: View, column: Column) -> Floats:
    return _share(_precision_sum(view), view.num_rel)


def average_precision_cut(view: View, column: Column) -> Floats:
    return _share(_precision_sum(view, _rank(column)), view.num_rel)


def yaap(view: View, column: Column) -> Floats:
    precision_sum = _precision_sum(view)
    odds = (1.0 + precision_sum) / (1.0 + view.num_rel.astype(np.float64) - precision_sum)
    return np.array([math.log(one) for one in odds.tolist()], np.float64)


def bpref(view: View, column: Column) -> Floats:
    hits, relevant = view.hits, view.num_rel
    worse = view.misses.before(hits.query, hits.place)
    bound = relevant[hits.query]
    most = np.minimum(view.num_nonrel, relevant)[hits.query]
    lost = _share(np.minimum(worse, bound), most)
    return _share(hits.total(np.where(worse > 0, 1.0 - lost, 1.0)), relevant)


def inferred_ap(view: View, column: Column) -> Floats:
    hits = view.hits
    before = hits.ordinal - 1
    worse = view.misses.before(hits.query, hits.place)
    pooled = view.pooled.before(hits.query, hits.place)
    place = hits.place.astype(np.float64)
    expected = (place / (place + 1.0)) * _share(before + worse + pooled, place)
    expected *= (before + _EPSILON) / ((before + worse) + 2 * _EPSILON)
    terms = np.where(hits.place == 0, 1.0, 1.0 / (place + 1.0) + expected)
    return _share(hits.total(terms), view.num_rel)


def _geometric(values: Callable[[View, Column], Floats]) -> Callable[[View, Column], Floats]:
    def logarithms(view: View, column: Column) -> Floats:
        floored = np.maximum(values(view, column), FLOOR).tolist()
        return np.array([math.log(one) for one in floored], np.float64)

    return logarithms


# -- Ranks and cutoffs --------------------------------------------------------------------------


def _first_place(view: View) -> Floats:
    """Rank from 1 of the first relevant document; inf without one."""
    hits = view.hits
    first = np.full(len(hits.count), np.inf)
    some = hits.count > 0
    first[some] = hits.place[hits.start[some]] + 1
    return first


def reciprocal_rank(view: View, column: Column) -> Floats:
    return 1.0 / _first_place(view)


def reciprocal_rank_cut(view: View, column: Column) -> Floats:
    first = _first_place(view)
    return np.where(first <= _rank(column), 1.0 / first, 0.0)


def precision(view: View, column: Column) -> Floats:
    return view.hits.within(_rank(column)) / _rank(column)


def recall(view: View, column: Column) -> Floats:
    return _share(view.hits.within(_rank(column)), view.num_rel)


def relative_precision(view: View, column: Column) -> Floats:
    hits = view.hits.within(_rank(column))
    return _share(hits, np.minimum(view.num_rel, _rank(column)))


def success(view: View, column: Column) -> Floats:
    return (view.hits.within(_rank(column)) > 0).astype(np.float64)


def judged(view: View, column: Column) -> Floats:
    known = view.judged.within(_rank(column)) + view.pooled.within(_rank(column))
    return _share(known, np.minimum(view.num_ret, _rank(column)))


def unjudged(view: View, column: Column) -> Floats:
    looked_at = np.minimum(view.num_ret, _rank(column))
    return (looked_at - view.judged.within(_rank(column))) / _rank(column)


def _found_within(view: View, depth: Ints) -> Ints:
    """Relevant documents among the first `depth`, which differs from query to query."""
    return view.hits.before(np.arange(len(depth)), np.minimum(depth, view.length))


def r_precision(view: View, column: Column) -> Floats:
    return _share(_found_within(view, view.num_rel), view.num_rel)


def r_precision_mult(view: View, column: Column) -> Floats:
    depth = np.maximum(((column.cutoff or 0.0) * view.num_rel + 0.9).astype(np.int64), 0)
    return _share(_found_within(view, depth), depth)


def _interpolated(view: View, points: tuple[float, ...]) -> list[Floats]:
    """Best precision at any rank that reaches each recall point."""
    hits, relevant = view.hits, view.num_rel
    if "best precision" not in view.memo:
        view.memo["best precision"] = _best_precision(hits)
    best = view.memo["best precision"]
    precisions = []
    for point in points:
        exact = point * relevant
        if view.options.compat >= 10:
            needed = np.floor(exact) + (exact - np.floor(exact) >= 0.5)
        else:
            needed = np.floor(exact + 0.9)
        needed = np.maximum(needed, 1).astype(np.int64)
        values = np.zeros(len(relevant))
        reached = needed <= hits.count
        values[reached] = best[hits.start[reached] + needed[reached] - 1]
        precisions.append(values)
    return precisions


def _best_precision(hits: Places) -> Floats:
    """Best precision at any relevant document from this one on."""
    best = hits.ordinal / (hits.place + 1)
    left = hits.count[hits.query] - hits.ordinal
    step = 1
    while step <= left.max(initial=0):  # each round, the maximum of twice as many
        has = np.flatnonzero(left >= step)
        best[has] = np.maximum(best[has], best[has + step])
        step *= 2
    return best


def interpolated_precision(view: View, column: Column) -> Floats:
    return _interpolated(view, (column.cutoff or 0.0,))[0]


def eleven_points(view: View, column: Column) -> Floats:
    total = np.zeros(len(view.num_rel))
    for values in reversed(_interpolated(view, tuple(sorted(column.numbers)))):
        total += values
    return total / len(column.numbers)


def binary_gain(view: View, column: Column) -> Floats:
    hits = view.hits
    terms = 1.0 / log2((3 + hits.place - hits.ordinal).astype(np.float64))
    return _share(hits.total(terms), view.num_rel)


# -- Sets and counts ----------------------------------------------------------------------------


def set_precision(view: View, column: Column) -> Floats:
    return _share(view.num_rel_ret, view.num_ret)


def set_recall(view: View, column: Column) -> Floats:
    return _share(view.num_rel_ret, view.num_rel)


def set_relative(view: View, column: Column) -> Floats:
    return _share(view.num_rel_ret, np.minimum(view.num_ret, view.num_rel))


def set_map(view: View, column: Column) -> Floats:
    hits = view.num_rel_ret.astype(np.float64)
    return _share(hits * hits, view.num_ret.astype(np.float64) * view.num_rel)


def set_f(view: View, column: Column) -> Floats:
    weight = column.cutoff if column.cutoff is not None else 1.0
    precision = set_precision(view, column)
    recall = set_recall(view, column)
    return _share((weight + 1.0) * precision * recall, weight * precision + recall)


def utility(view: View, column: Column) -> Floats:
    hit, missed, lost, other = column.numbers
    rel_ret, retrieved, relevant = view.num_rel_ret, view.num_ret, view.num_rel
    rest = view.options.collection + rel_ret - retrieved - relevant
    return (
        hit * rel_ret + missed * (retrieved - rel_ret) + lost * (relevant - rel_ret) + other * rest
    )


def residual(view: View, column: Column) -> Floats:
    judged, length = view.judged, view.length
    weight = powers(column.persistence, int(length.max(initial=0)) + 1)
    # Few documents are judged: what all weigh, without them; never below 0 by rounding.
    all_weights = np.concatenate(([0.0], np.cumsum(weight)))[length]
    unjudged = np.maximum(all_weights - judged.total(weight[judged.place]), 0.0)
    residual = weight[length] + (1 - column.persistence) * unjudged
    return np.where(judged.count < length, residual, 0.0)


def relevance_string(view: View, column: Column) -> NDArray[np.object_]:
    offsets, most = view.lists.offsets.tolist(), int(column.cutoff or 0)
    strings = np.empty(len(view.length), dtype=object)
    for i, (start, stop) in enumerate(pairwise(offsets)):
        strings[i] = "".join(
            "-" if r == UNJUDGED else "." if r < 0 else ">" if r > 9 else str(r)
            for r in view.lists.relevance[start : min(stop, start + most)].tolist()
        )
    return strings


def _number(count: Callable[[View], Ints]) -> Callable[[View, Column], Floats]:
    return lambda view, column: count(view).astype(np.float64)


num_q = _number(lambda view: np.ones(len(view.length), np.int64))
num_ret = _number(lambda view: view.num_ret)
num_rel = _number(lambda view: view.num_rel)
num_rel_ret = _number(lambda view: view.num_rel_ret)
num_nonrel_judged_ret = _number(lambda view: view.misses.count)
geometric_map = _geometric(average_precision)
geometric_bpref = _geometric(bpref)
