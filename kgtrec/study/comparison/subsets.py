"""Measures on many subsets of the evaluated triples, from ranks alone: nothing is scored again.

What is left out of a subset is not asked, but is still known: micro ranks stay what they are, as
the filter does. Question-level ranks stay, too, because all answers of the evaluated split are
candidates; which of a question's answers is the first, and how many there are, depends on the
subset. So almost every measure is a product of a matrix of weights, subsets by items, with one of
values, items by systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES, Weighing, instance_ties, require_side, sides_present
from kgtrec.measures.metric import plain
from kgtrec.study.comparison.question_subsets import (
    SEEN,
    ByQuestion,
    by_question,
    item_values,
    over_answers,
    product,
    trec_family,
    triple_index,
)
from kgtrec.study.comparison.samples import Transform, transform_of

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["SubsetValues", "subset_values"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _One(Protocol):
    """One measure on any subset."""

    def of(self, subsets: Bools) -> Floats:
        """Values on subsets, float64 (B, s); NaN on one that leaves nothing to value."""
        ...


@dataclass(frozen=True, eq=False)
class SubsetValues:
    """Measures of several systems, on any subset of the triples.

    Attributes
    ----------
    n_measures, n_triples : int
    """

    n_measures: int
    n_triples: int
    _ones: Mapping[int, _One]
    _groups: Sequence[tuple[list[int], ByQuestion]]

    def of(self, subsets: Bools) -> Floats:
        """Values on subsets; NaN on one that leaves nothing to value.

        A metric that is adjusted for chance comes without it, where chance is the same for all
        systems: the order of systems is the same, and that is what subsets are for.

        Parameters
        ----------
        subsets : ndarray of bool, shape (B, n_triples)
            Triples ascending, as in ``numpy.unique(ranks.triple)``.

        Returns
        -------
        ndarray of float64, shape (n_measures, B, s)
        """
        results: list[Floats] = [np.empty(0)] * self.n_measures
        for number, one in self._ones.items():
            results[number] = one.of(subsets)
        for numbers, group in self._groups:
            for number, values in zip(numbers, group.of(subsets), strict=True):
                results[number] = values
        return np.array(results)


def subset_values(aligned: Mapping[str, Ranks], measures: Sequence[Measure]) -> SubsetValues:
    """How to value measures on subsets.

    Parameters
    ----------
    aligned : mapping of str to Ranks
        From `kgtrec.study.comparison.samples.align_ranks`.
    measures : sequence of Measure
        Any: those that are no (function of a) mean are valued subset by subset, which takes long.

    Raises
    ------
    UsageError
        A side that the ranks do not hold, or a trec_eval measure that does not follow from ranks.
    InputError
        Triple averages, and a triple of which only one side was asked.
    """
    first = next(iter(aligned.values()))
    present = sides_present(first)
    ones: dict[int, _One] = {}
    seen: dict[str, dict[str, list[int]]] = {}
    for number, measure in enumerate(measures):
        require_side(measure, measure.side, present)
        kind = _kind(measure)
        if kind in ("first", "place"):
            seen.setdefault(measure.side, {"first": [], "place": []})[kind].append(number)
        else:
            ones[number] = _one(aligned, measure, kind)
    groups = []
    for side, numbers in seen.items():
        parts = [[measures[number] for number in each] for each in numbers.values()]
        group = by_question(aligned, side, *parts)
        groups.append((numbers["first"] + numbers["place"], group))
    return SubsetValues(len(measures), len(np.unique(first.triple)), ones, groups)


def _kind(measure: Measure) -> str:
    """What is seen of a question's answers; empty for other averagings."""
    if measure.is_trec:
        return SEEN[trec_family(measure)[0]][0]
    # Expected ranks count the tied answers of a question together, which depends on the subset.
    return "first" if measure.averaging == "macro" and measure.rank_type != "expected" else ""


def _one(aligned: Mapping[str, Ranks], measure: Measure, kind: str) -> _One:
    if kind == "each":
        return over_answers(aligned, measure)
    if measure.averaging == "stratified":
        return _stratified(aligned, measure)
    measure = _in_same_order(measure)
    try:
        transform = transform_of(measure)
    except UsageError:
        return _OneByOne(aligned, measure)
    if measure.averaging == "macro":
        return _OneByOne(aligned, measure)
    return _linear(aligned, measure, transform)


def _in_same_order(measure: Measure) -> Measure:
    """The metric without its adjustment for chance, where that leaves the order of systems.

    Chance is the same for all systems, as their candidates are: adjusting is one affine function
    for all. Not so in a mean over relations, each of which has another.
    """
    metric, _ = measure.row
    if metric.chance is None or metric.finish is plain or measure.averaging == "macro_relation":
        return measure
    if metric.name == "gmr":
        return measure
    at = measure.metric.partition("@")[2]
    base = {"mean_rank": "mr", "reciprocal_rank": "mrr", "hits": f"hits@{at}", "log_rank": "gmr"}
    return replace(measure, metric=base[metric.value.__name__])


# -- Weights that depend on the subset only ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Linear:
    """Mean over items; or over owners (questions, relations) of the means over their items.

    Attributes
    ----------
    values : ndarray of float64, shape (n, s)
    triple : ndarray of int64, shape (n,)
        Place of each item's triple.
    starts : ndarray of int64 or None
        First item of each owner, the items being sorted by owner; None for a plain mean.
    weight : ndarray of float64, shape (owners,), or None
        None: all owners weigh the same.
    """

    values: Floats
    triple: Ints
    transform: Transform
    starts: Ints | None = None
    weight: Floats | None = None

    def of(self, subsets: Bools) -> Floats:
        chosen = subsets[:, self.triple].astype(np.float64)
        if self.starts is None:
            total = chosen.sum(axis=1)
        else:
            counts = np.add.reduceat(chosen, self.starts, axis=1)
            share = 1.0 if self.weight is None else self.weight
            each = np.where(counts > 0, share, 0.0)
            total = each.sum(axis=1)
            sizes = np.diff(self.starts, append=len(self.values))
            chosen *= np.repeat(each / np.maximum(counts, 1.0), sizes, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.transform(product(chosen, self.values) / total[:, None])


def _linear(aligned: Mapping[str, Ranks], measure: Measure, transform: Transform) -> _Linear:
    first = next(iter(aligned.values()))
    if measure.averaging == "triple":
        columns = [
            item_values(measure, Weighing.of(ranks, "triple", measure.side).ties)
            for ranks in aligned.values()
        ]
        values = np.ascontiguousarray(np.column_stack(columns))
        return _Linear(values, np.arange(len(values)), transform)
    rows = np.flatnonzero(np.isin(first.side, SIDES[measure.side]))
    owner = {"micro": None, "question": first.question}.get(measure.averaging, first.relation)
    starts = None
    if owner is not None:
        rows = rows[np.argsort(owner[rows], kind="stable")]
        starts = np.flatnonzero(np.diff(owner[rows], prepend=-1))
    columns = [item_values(measure, instance_ties(ranks)[rows]) for ranks in aligned.values()]
    values = np.ascontiguousarray(np.column_stack(columns))
    return _Linear(values, triple_index(first)[rows], transform, starts)


def _stratified(aligned: Mapping[str, Ranks], measure: Measure) -> _Linear:
    """Triples by weighted means of their sides, in equal parts of weighted relations."""
    first = next(iter(aligned.values()))
    beta_e, beta_r = measure.params
    rows = np.flatnonzero(np.isin(first.side, SIDES[measure.side]))
    rows = rows[np.lexsort((first.triple[rows], first.relation[rows]))]
    if beta_e > 0 and not first.answer_popularity[rows].all():
        raise InputError(f"{measure}: an answer has popularity 0, whose weight would be infinite")
    starts = np.flatnonzero(np.diff(first.triple[rows], prepend=-1))
    weight = first.answer_popularity[rows].astype(np.float64) ** -beta_e
    total = np.add.reduceat(weight, starts)
    columns = [
        np.add.reduceat(weight * item_values(measure, instance_ties(ranks)[rows]), starts) / total
        for ranks in aligned.values()
    ]
    heads = rows[starts]
    relation = first.relation[heads]
    owners = np.flatnonzero(np.diff(relation, prepend=-1))
    shares = first.relation_popularity[heads[owners]].astype(np.float64) ** -beta_r
    values = np.ascontiguousarray(np.column_stack(columns))
    return _Linear(values, triple_index(first)[heads], np.asarray, owners, shares)


# -- Anything else -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _OneByOne:
    """Every subset and system by itself: medians, deviations, expectations over questions."""

    aligned: Mapping[str, Ranks]
    measure: Measure

    def of(self, subsets: Bools) -> Floats:
        from kgtrec.results.result import Result

        triple = triple_index(next(iter(self.aligned.values())))
        values = np.full((len(subsets), len(self.aligned)), np.nan)
        for row, chosen in enumerate(subsets):
            if chosen.any():
                values[row] = [
                    Result(ranks.subset(chosen[triple]))[self.measure]
                    for ranks in self.aligned.values()
                ]
        return values
