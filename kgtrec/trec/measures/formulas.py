"""Measures that kgtrec computes itself, from judged lists, for all queries at once.

Most depend only on the places and relevances of judged documents. The native core computes these,
with trec_eval's operations in trec_eval's order. The others, which have more parameters than a
cutoff, are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import offsets_of
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import (
    UNJUDGED,
    Places,
    View,
    discount,
    find_places,
    log2,
    ratio,
    running_sum,
)
from kgtrec.trec.measures.trec_measure import FIXED, OF_SETS, function_of

FLOOR = 1e-5
"""Least value in geometric means: lower ones are raised to it (trec_eval's MIN_GEO_MEAN)."""


def in_core(column: Column) -> bool:
    """Return whether the native core computes the measure, with these parameters."""
    is_known = column.measure in _core.TREC_MEASURES and not column.has_setting
    return is_known and not (column.gains or column.exponential)


_CORE_EXPECTATIONS = {
    *("map", "map_cut", "Rprec", "recip_rank", "recip_rank_cut", "P", "recall", "relative_P"),
    *("success", "dcg", "ndcg", "ndcg_cut", "relative_map", "F1"),
}


def has_core_ties(column: Column) -> bool:
    """Return whether the native core computes the measure over all orders of tied documents."""
    fixed = column.row.expected in (FIXED, OF_SETS)
    return in_core(column) and (fixed or column.measure in _CORE_EXPECTATIONS)


def core_columns(columns: Sequence[Column], compat: int) -> _core.TrecColumns:
    """Prepare columns that satisfy `in_core` for the native core."""
    return _core.TrecColumns([(c.measure, c.cutoff or 0.0) for c in columns], compat)


def core_values(view: View, columns: Sequence[Column]) -> Float64:
    """Compute measures that satisfy `in_core`.

    Shape: float64 (n_columns, n_queries).
    """
    out = np.empty((len(columns), len(view.num_ret)))
    core_columns(columns, view.options.compat).values(view.documents, out)
    return out


def compute_values(view: View, columns: Sequence[Column]) -> dict[str, NDArray[Any]]:
    """Compute measures for every query; returns arrays by name.

    Shape: float64 (n_queries,), or str.
    """
    native = [column for column in columns if in_core(column)]
    rows = dict(zip((c.name for c in native), core_values(view, native), strict=True))
    named = ((c.name, c) for c in columns)
    return {
        name: rows[name] if name in rows else function_of(c.row.function)(view, c)
        for name, c in named
    }


def eleven_points(view: View, column: Column) -> Float64:
    """Average the interpolated precision over points of recall."""
    points = [Column("iprec_at_recall", point) for point in sorted(column.numbers, reverse=True)]
    return np.cumsum(core_values(view, points), axis=0)[-1] / len(points)


def num_q(view: Any, column: Column) -> Float64:
    """Return 1 per query of judgements in groups; the core counts queries of qrels."""
    return np.ones(len(view.length))


def utility(view: View, column: Column) -> Float64:
    """Weigh the four cells of retrieved and relevant by the coefficients."""
    hit, missed, lost, other = column.numbers
    rel_ret, retrieved, relevant = view.num_rel_ret, view.num_ret, view.num_rel
    rest = view.options.collection + rel_ret - retrieved - relevant
    return (
        hit * rel_ret + missed * (retrieved - rel_ret) + lost * (relevant - rel_ret) + other * rest
    )


def residual(view: View, column: Column) -> Float64:
    """Compute the weight of unjudged documents in rank-biased precision, and of all after the
    list."""
    judged, length = view.judged, view.length
    weight = powers(column.persistence, int(length.max(initial=0)) + 1)
    # Few documents are judged: the weight of all minus theirs; never below 0 by rounding.
    all_weights = np.concatenate(([0.0], np.cumsum(weight)))[length]
    unjudged = np.maximum(all_weights - judged.total(weight[judged.rank]), 0.0)
    residual = weight[length] + (1 - column.persistence) * unjudged
    return np.where(judged.count < length, residual, 0.0)


def relevance_string(view: View, column: Column) -> NDArray[np.object_]:
    """Write the relevance of the first documents as a string per query."""
    offsets, most = view.lists.offsets.tolist(), int(column.cutoff or 0)
    strings = np.empty(len(view.length), dtype=object)
    for i, (start, stop) in enumerate(pairwise(offsets)):
        strings[i] = "".join(
            "-" if r == UNJUDGED else "." if r < 0 else ">" if r > 9 else str(r)
            for r in view.lists.relevance[start : min(stop, start + most)].tolist()
        )
    return strings


# -- Gains -------------------------------------------------------------------------------------

# A document of relevance r gains r, or as the measure's parameters say. Without a judgement of at
# least 0 it gains 0, unless a parameter names level -1 (not in the qrels) or -2 (below 0 in them).
# The ideal list has all judged documents, the highest gain first, down to the last above 0.


@dataclass(frozen=True, eq=False)
class _Gained:
    """Listed documents that may have a gain, and those of the ideal list with their top gains."""

    listed: Places
    gain: Float64
    best: Places
    top: Float64

    @cached_property
    def dcg(self) -> Float64:
        return self.listed.total(self.terms)

    @cached_property
    def ideal(self) -> Float64:
        return self.best.total(self.best_terms)

    @cached_property
    def terms(self) -> Float64:
        return self.gain / discount(self.listed.rank)

    @cached_property
    def best_terms(self) -> Float64:
        return self.top / discount(self.best.rank)


def _find_gains(view: View, column: Column) -> _Gained:
    """Find the documents with gains for the column's settings; shared by columns with the same."""
    key = ("gains", column.gains, column.exponential)
    if key not in view.memo:  # measures with the same gains are consecutive
        gains, exponential = dict(column.gains), column.exponential
        listed = view.gaining(gains, exponential=exponential)
        view.memo[key] = _Gained(*listed, *view.ideal(gains, exponential))
    return view.memo[key]


def dcg(view: View, column: Column) -> Float64:
    """Compute the discounted cumulated gain of each list."""
    return _find_gains(view, column).dcg


def ideal_dcg(view: View, column: Column) -> Float64:
    """Compute the discounted cumulated gain of the best list."""
    return _find_gains(view, column).ideal


def ndcg(view: View, column: Column) -> Float64:
    """Divide the discounted cumulated gain by that of the best list."""
    documents = _find_gains(view, column)
    return ratio(documents.dcg, documents.ideal)


def ndcg_cut(view: View, column: Column) -> Float64:
    """Compute nDCG among the first k."""
    documents, depth = _find_gains(view, column), int(column.cutoff or 0)
    listed, best = documents.listed, documents.best
    dcg = listed.total(np.where(listed.rank < depth, documents.terms, 0.0))
    ideal = best.total(np.where(best.rank < depth, documents.best_terms, 0.0))
    return ratio(dcg, ideal)


def _up_to(where: Places, sums: Float64, query: Int64, rank: Int64) -> Float64:
    """Return running sums of the queries before the ranks; 0 before the first document."""
    count = where.before(query, rank)
    index = where.start[query] + count - 1
    return np.where(count > 0, sums[np.maximum(index, 0)] if len(sums) else 0.0, 0.0)


def ndcg_at_relevant(view: View, column: Column) -> Float64:
    """Average nDCG at the relevant documents."""
    documents = _find_gains(view, column)
    listed, best = documents.listed, documents.best
    so_far = running_sum(documents.terms, listed)
    ideal_sums = running_sum(documents.best_terms, best)
    ideal_so_far = _up_to(best, ideal_sums, listed.query, listed.rank + 1)
    positive = documents.gain > 0
    at_each = np.where(positive, ratio(so_far, ideal_so_far), 0.0)
    missed = best.count - np.bincount(listed.query[positive], minlength=len(best.count))
    points = listed.total(at_each) + ratio(missed * documents.dcg, documents.ideal)
    return np.where(points > 0, ratio(points, best.count.astype(np.float64)), 0.0)


def ndcg_at_levels(view: View, column: Column) -> Float64:
    """Average nDCG at the ends of each level of gain in the best list."""
    documents = _find_gains(view, column)
    listed, best, top = documents.listed, documents.best, documents.top
    last = best.ordinal == best.count[best.query]
    drops = np.flatnonzero(last | (np.append(top[1:], np.nan) != top))
    query, depth = best.query[drops], best.rank[drops] + 1
    so_far = _up_to(listed, running_sum(documents.terms, listed), query, depth)
    ideal = running_sum(documents.best_terms, best)[drops]
    n_queries = len(best.count)
    points = np.bincount(query, weights=so_far / ideal, minlength=n_queries).astype(np.float64)
    number = np.bincount(query, minlength=n_queries)
    # The end of the list counts if it is beyond the document that follows the ideal list.
    ends = (best.count > 0) & (best.count + 1 < view.length)
    points = np.where(ends, points + ratio(documents.dcg, documents.ideal), points)
    averaged = ratio(points, (number + ends).astype(np.float64))
    return np.where(view.num_rel > 0, averaged, 0.0)


def gain_over_cost(view: View, column: Column) -> Float64:
    """Divide the discounted gain, whose discount grows with cost minus gain, by the best gain."""
    documents = _find_gains(view, column)
    listed, best, top = documents.listed, documents.best, documents.top
    large = find_places(top >= 1.0, offsets_of(best.count))
    sums = running_sum(top[large.position], large)
    depth = listed.rank + 1
    beyond = depth - np.minimum(depth, large.count[listed.query])
    cost = _up_to(large, sums, listed.query, depth) + beyond
    argument = 2 + cost - running_sum(documents.gain, listed)
    for query in np.flatnonzero(listed.total(abs(documents.gain)) + best.total(top) >= _EXACT):
        rows = slice(listed.start[query], listed.start[query] + listed.count[query])
        argument[rows] = _exact_costs(view, column, int(query), listed.position[rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = documents.gain / log2(argument)
    return ratio(listed.total(np.where(documents.gain != 0, terms, 0.0)), best.total(top))


_EXACT = 2.0**53  # sums of whole numbers below this are exact in float64


def _exact_costs(view: View, column: Column, query: int, listed: Int64) -> list[float]:
    """Compute 2 + cost - gain so far at each of these listed documents, as in `gain_over_cost`.

    Exact: the sums of large gains differ by less than float64 can tell.
    """
    lists, gains = view.lists, dict(column.gains)

    def gain_at(relevance: int) -> Fraction:
        level = relevance if relevance >= 0 else -1 if relevance == UNJUDGED else -2
        plain = 2 ** max(level, 0) - 1 if column.exponential else max(level, 0)
        return Fraction(gains.get(level, plain))

    judged = lists.judged[lists.judged_offsets[query] : lists.judged_offsets[query + 1]].tolist()
    large = sorted((gain for r in judged if r >= 0 and (gain := gain_at(r)) >= 1), reverse=True)
    ideal = [Fraction(0), *accumulate(large)]
    start = 0 if lists.kept_ranks is not None else int(lists.offsets[query])
    ranks = (listed - start if lists.kept_ranks is None else lists.kept_ranks[listed]) + 1
    gains_so_far = accumulate(map(gain_at, lists.relevance[listed].tolist()))
    return [
        float(2 + ideal[min(rank, len(large))] + max(rank - len(large), 0) - gain)
        for rank, gain in zip(ranks.tolist(), gains_so_far, strict=True)
    ]


def powers(base: float, count: int) -> Float64:
    """Return 1, base, base^2, ..., each by one more multiplication."""
    return np.multiply.accumulate(np.concatenate(([1.0], np.full(count, base))))[: max(count, 1)]


def _range_of_gains(highest: int, gains: Mapping[int, float]) -> tuple[float, float]:
    """Return the least and largest gain of the levels 0 to `highest` and of levels with
    parameters."""
    values = list(gains.values())
    for levels in (range(highest, -1, -1), range(highest + 1)):
        values += islice((float(level) for level in levels if level not in gains), 1)
    return (min(values), max(values)) if values else (0.0, 1.0)


def rank_biased(view: View, column: Column) -> Float64:
    """Compute rank-biased precision, with gains scaled to 0 .. 1."""
    gains = dict(column.gains)
    known, gain = view.gaining(gains, least=0)
    levels, level_of = np.unique(view.highest, return_inverse=True)
    ranges = np.array([_range_of_gains(level, gains) for level in levels.tolist()]).reshape(-1, 2)
    least, most = ranges[level_of.reshape(-1)].T if len(ranges) else np.zeros((2, 0))
    scaled = ((least < 0) | (most > 1))[known.query]
    span = (most - least)[known.query]
    gain = np.where(scaled, ratio(gain - least[known.query], span), gain)
    weight = powers(column.persistence, int(known.rank.max(initial=0)) + 1)
    return (1.0 - column.persistence) * known.total(gain * weight[known.rank])
