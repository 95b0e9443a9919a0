"""Measures of several systems on any subset of the test triples, without ranking anything again.

What is left out is not asked, but is still known: micro and question-level ranks stay. Almost every
measure is then a product of a matrix of weights, subsets by items, with one of values, items by
systems. What a question counts on a subset depends on the order of its answers, and that on the
system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec.errors import InputError, UsageError, must_be
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES, Weighing, instance_ties, require_side, sides_present
from kgtrec.measures.metric import OfMean, same
from kgtrec.measures.ties import Ties
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.comparison.samples import transform_of
from kgtrec.trec.measures.names import resolve

Valued = Callable[[Bools], Float64]
"""Values on subsets, bool (B, n_triples); float64 (..., B, s), NaN on a subset without items."""


def subset_values(aligned: Mapping[str, Ranks], measures: Sequence[Measure]) -> Valued:
    """How to value measures on subsets; float64 (measures, B, s), NaN on a subset without items.

    If chance is the same for all systems, an adjusted metric comes without the adjustment: subsets
    serve to order systems, and the order stays the same.
    """
    present = sides_present(next(iter(aligned.values())))
    parts: list[tuple[list[int], Valued]] = []
    together: dict[str, dict[str, dict[int, Measure]]] = {}
    for number, measure in enumerate(measures):
        measure = replace(measure, side=require_side(measure, measure.side, present))
        kind = _kind(measure)
        if kind in ("first", "place"):
            kinds = together.setdefault(measure.side, {"first": {}, "place": {}})
            kinds[kind][number] = measure
        else:
            parts.append(([number], _on_subsets(aligned, measure, kind)))
    for side, kinds in together.items():
        parts.append(([*kinds["first"], *kinds["place"]], _by_question(aligned, side, kinds)))

    def of(subsets: Bools) -> Float64:
        results: dict[int, Float64] = {}
        for numbers, valued in parts:
            values = valued(subsets).reshape(len(numbers), len(subsets), -1)
            results |= zip(numbers, values, strict=True)
        return np.array([results[number] for number in range(len(results))])

    return of


def _kind(measure: Measure) -> str:
    """How a metric sees a question's answers; empty for other averagings."""
    if measure.is_trec:
        return _SEEN[_trec_measure(measure)[0]][0]
    # Expected ranks count the tied answers of a question together, which depends on the subset.
    return "first" if measure.averaging == "macro" and measure.rank_type != "expected" else ""


def _on_subsets(aligned: Mapping[str, Ranks], measure: Measure, kind: str) -> Valued:
    if kind == "each":
        return _over_answers(aligned, measure)
    if measure.averaging == "stratified":
        return _stratified(aligned, measure)
    # All systems have the same candidates, so the same chance: adjusting is one affine function
    # for all. In a mean over relations, chance differs between relations.
    if measure.row[0].is_adjusted and measure.averaging != "macro_relation":
        measure = measure.base
    try:
        transform = None if measure.averaging == "macro" else transform_of(measure)
    except UsageError:
        transform = None
    if transform is None:
        return partial(_by_result, aligned, measure)
    return _linear(aligned, measure, transform)


# -- Weights that depend on the subset only ----------------------------------------------------


def _weighted(
    values: Float64,
    triple: Int64,
    transform: OfMean = same,
    starts: Int64 | None = None,
    weight: Float64 | float = 1.0,
    divisor: OfMean = same,
) -> Valued:
    """Mean over items; or over owners (questions, relations) of sums over their items.

    - values, triple: float64 (n, s), and int64 (n,) the place of each item's triple.
    - starts: First item of each owner, the items being sorted by owner; None for a plain mean.
    - weight: Of each owner, float64 (owners,), or of all.
    - divisor: Divisor of an owner's sum, from its number of kept items; the number itself: a mean.
    """

    def of(subsets: Bools) -> Float64:
        chosen = subsets[:, triple].astype(np.float64)
        if starts is None:
            total = chosen.sum(axis=1)
        else:
            counts = np.add.reduceat(chosen, starts, axis=1)
            each = np.where(counts > 0, weight, 0.0)
            total = each.sum(axis=1)
            sizes = np.diff(starts, append=len(values))
            chosen *= np.repeat(each / divisor(np.maximum(counts, 1.0)), sizes, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return transform(_product(chosen, values) / total[:, None])

    return of


def _linear(aligned: Mapping[str, Ranks], measure: Measure, transform: OfMean) -> Valued:
    first = next(iter(aligned.values()))
    if measure.averaging == "triple":
        values = _columns(
            aligned,
            lambda ranks: measure.per_item(Weighing.from_ranks(ranks, "triple", measure.side).ties),
        )
        return _weighted(values, np.arange(len(values)), transform)
    rows, starts = _of_side(first, measure.side), None
    if measure.averaging != "micro":
        owner = first.question if measure.averaging == "question" else first.relation
        rows, starts = _owned(rows, owner)
    values = _columns(aligned, lambda ranks: measure.per_item(instance_ties(ranks)[rows]))
    return _weighted(values, _triple_index(first)[rows], transform, starts)


def _over_answers(aligned: Mapping[str, Ranks], measure: Measure) -> Valued:
    """Over questions that keep an answer, as a plain sum over their answers."""
    name, k = _trec_measure(measure)
    first = next(iter(aligned.values()))
    rows, starts = _owned(_of_side(first, measure.side), first.question)
    values = _columns(aligned, lambda ranks: _answer_values(ranks, measure)[rows])
    triple = _triple_index(first)[rows]
    return _weighted(values, triple, starts=starts, divisor=_DIVISORS[name](k))


def _stratified(aligned: Mapping[str, Ranks], measure: Measure) -> Valued:
    """Triples by weighted means of their sides, in equal parts of weighted relations."""
    first = next(iter(aligned.values()))
    beta_e, beta_r = measure.params
    rows = _of_side(first, measure.side)
    rows = rows[np.lexsort((first.triple[rows], first.relation[rows]))]
    if beta_e > 0 and not first.answer_popularity[rows].all():
        raise InputError(
            f"{measure}: an answer has popularity 0, so its weight is infinite; choose another "
            "measure"
        )
    starts = np.flatnonzero(np.diff(first.triple[rows], prepend=-1))
    weight = first.answer_popularity[rows].astype(np.float64) ** -beta_e
    total = np.add.reduceat(weight, starts)
    values = _columns(
        aligned,
        lambda ranks: (
            np.add.reduceat(weight * measure.per_item(instance_ties(ranks)[rows]), starts) / total
        ),
    )
    heads = rows[starts]
    owners = np.flatnonzero(np.diff(first.relation[heads], prepend=-1))
    shares = first.relation_popularity[heads[owners]].astype(np.float64) ** -beta_r
    return _weighted(values, _triple_index(first)[heads], starts=owners, weight=shares)


def _of_side(ranks: Ranks, side: str) -> Int64:
    """Rows whose side is asked."""
    return np.flatnonzero(np.isin(ranks.side, SIDES[side]))


def _owned(rows: Int64, owner: Int64) -> tuple[Int64, Int64]:
    """Rows sorted by owner, and the first of each owner."""
    rows = rows[np.argsort(owner[rows], kind="stable")]
    return rows, np.flatnonzero(np.diff(owner[rows], prepend=-1))


def _columns(aligned: Mapping[str, Ranks], values: Callable[[Ranks], Float64]) -> Float64:
    """Values of each system, float64 (n, s)."""
    return np.column_stack([values(ranks) for ranks in aligned.values()])


def _triple_index(ranks: Ranks) -> Int64:
    """Place of each row's triple among all of them, ascending, int64 (n,)."""
    return np.unique(ranks.triple, return_inverse=True)[1].astype(np.int64)


def _product(left: Float64, right: Float64) -> Float64:
    """Matrix product in the calling thread: a BLAS's own threads would wait for each other here."""
    return np.asarray(np.einsum("ij,jk->ik", left, right))


# -- What an answer counts depends on those before it ------------------------------------------


def _ordinal(ranks: Ranks) -> Float64:
    """Place of each answer in a run of unlimited depth; infinite for unscored answers."""
    return np.where(ranks.macro_answer_nan, np.inf, ranks.macro_rank("ordinal"))


def _by_question(
    aligned: Mapping[str, Ranks], side: str, kinds: Mapping[str, Mapping[int, Measure]]
) -> Valued:
    """Several measures: sums over answers, averaged over the questions that keep an answer.

    Measures of the kind "first" only see the first answer of a question. Those of the kind "place",
    AP@k, sum place x value over the answers, and divide by their number. The answers of the side
    are question after question, in each system's own order.
    """
    first = next(iter(aligned.values()))
    of_side, triple = _of_side(first, side), _triple_index(first)
    question = first.question[of_side]
    sizes = np.unique(question, return_counts=True)[1]
    starts = np.cumsum(sizes) - sizes
    firsts, places = ([*kinds[kind].values()] for kind in ("first", "place"))
    systems: list[tuple[Any, ...]] = []
    for ranks in aligned.values():
        rows = of_side[np.lexsort((_ordinal(ranks)[of_side], question))]
        values = [
            np.array([_answer_values(ranks, measure)[rows] for measure in measures]).reshape(
                len(measures), len(rows)
            )
            for measures in (firsts, places)
        ]
        systems.append((triple[rows], *values, _tied_changes(ranks, rows, firsts)))

    def of(subsets: Bools) -> Float64:
        turned = np.ascontiguousarray(subsets.T).view(np.uint8)
        counts = np.add.reduceat(turned[systems[0][0]], starts, dtype=np.uint32)
        share = np.repeat(1.0 / np.maximum(counts, 1), sizes, axis=0)
        sums = np.empty((len(firsts) + len(places), len(subsets), len(systems)))
        for system, (own, by_first, by_place, changes) in enumerate(systems):
            chosen = turned[own]
            # How many answers of a question are chosen, up to each of them.
            running = np.cumsum(chosen, axis=0, dtype=np.uint32)
            running -= np.repeat(running[starts] - chosen[starts], sizes, axis=0)
            if firsts:
                weight = np.where(running == 1, chosen, np.uint8(0)).astype(np.float64)
                sums[: len(firsts), :, system] = _product(by_first, weight)
                sums[: len(firsts), :, system] += changes(chosen, weight)
            if places:
                sums[len(firsts) :, :, system] = _product(by_place, (chosen * running) * share)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / (counts > 0).sum(axis=0)[:, None])

    return of


def _tied_changes(
    ranks: Ranks, rows: Int64, measures: Sequence[Measure]
) -> Callable[[NDArray[np.uint8], Float64], Float64]:
    """By how much sums change if several answers of a tie are chosen: float64 (measures, B).

    Shapes of its arguments: chosen (answers, B), weight float64 (answers, B).
    """
    keys = np.column_stack([ranks.question[rows], ranks.macro_greater[rows]])
    _, tie, size = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    tie = tie.reshape(-1)
    shared = np.flatnonzero((size[tie] > 1) & (ranks.macro_equal[rows] > 0))
    most = int(size[tie[shared]].max(initial=1))
    # Values if 1, 2, ... answers of the tie are chosen.
    values = np.array(
        [
            [_answer_values(ranks, measure, count)[rows[shared]] for measure in measures]
            for count in range(1, most + 1)
        ]
    ).reshape(most, len(measures), len(shared))
    values = np.ascontiguousarray(values.transpose(1, 2, 0))
    ties, place = np.unique(tie[shared], return_inverse=True)
    place = place.reshape(-1)

    def changes(chosen: NDArray[np.uint8], weight: Float64) -> Float64:
        counts = np.zeros((len(ties), chosen.shape[1]), np.int64)
        np.add.at(counts, place, chosen[shared])
        each = np.maximum(counts[place] - 1, 0)
        gained = values[:, np.arange(len(shared))[:, None], each] - values[:, :, :1]
        return np.asarray((gained * weight[shared]).sum(axis=1))

    return changes


def _answer_values(ranks: Ranks, measure: Measure, tied: int = 1) -> Float64:
    """Value of each answer to a question-level measure, for each number of answers in its tie."""
    if measure.is_trec:
        name, k = _trec_measure(measure)
        return _SEEN[name][1](_ordinal(ranks), k)
    columns = (ranks.macro_greater, ranks.macro_equal, ranks.macro_tied_ahead)
    return measure.per_item(Ties(*columns, np.minimum(tied, ranks.macro_equal + 1)))


def _trec_measure(measure: Measure) -> tuple[str, int]:

    column = resolve([measure.metric])[0]
    if column.measure not in _SEEN:
        known = must_be(column.measure, _SEEN)
        raise UsageError(f"{measure} does not follow from ranks; {known}")
    return column.measure, int(column.cutoff or 0)


def _ideal(k: int) -> OfMean:
    gains = np.cumsum(1.0 / np.log2(np.arange(2.0, k + 2.0)))
    return lambda counts: gains[np.minimum(counts, k).astype(np.int64) - 1]


_DIVISORS: dict[str, Callable[[int], OfMean]] = {
    "ndcg_cut": _ideal,
    "recall": lambda k: same,
    "P": lambda k: lambda counts: np.full(counts.shape, float(k)),
}


def _within(rank: Float64, k: int) -> Float64:
    return (rank <= k).astype(np.float64)


_Row = tuple[str, Callable[[Float64, int], Float64]]

_SEEN: dict[str, _Row] = {
    "map_cut": ("place", lambda rank, k: np.where(rank <= k, 1.0 / rank, 0.0)),
    "success": ("first", _within),
    "recip_rank": ("first", lambda rank, k: 1.0 / rank),
    "ndcg_cut": ("each", lambda rank, k: np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)),
    "recall": ("each", _within),
    "P": ("each", _within),
}
"""How a metric sees a question's answers, and the value of an answer at a rank."""


# -- Anything else -----------------------------------------------------------------------------


def _by_result(aligned: Mapping[str, Ranks], measure: Measure, subsets: Bools) -> Float64:
    """Every subset and system separately: medians, deviations, expectations over questions."""
    triple = _triple_index(next(iter(aligned.values())))
    values = np.full((len(subsets), len(aligned)), np.nan)
    for row, chosen in enumerate(subsets):
        if chosen.any():
            values[row] = [
                Result(ranks.subset(chosen[triple]))[measure] for ranks in aligned.values()
            ]
    return values
