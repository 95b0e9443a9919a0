"""From ranks and per-question trec_eval values to any measure, overall or per relation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.measures.measure import Measure
from kgtrec.measures.sample import (
    Cells,
    instance_ties,
    question_rows,
    question_ties,
    require_side,
    sides_present,
)
from kgtrec.measures.stratified import Strata, stratified_means, values_of
from kgtrec.measures.ties import Ties, Values

if TYPE_CHECKING:
    from kgtrec.ranks import Ranks

__all__ = ["Calculator"]

Floats = NDArray[np.float64]
Groups = list[NDArray[np.intp]]


class Calculator:
    """Computes measures, keeping only sums per (relation, side): a few numbers per metric.

    Parameters
    ----------
    ranks : Ranks
    trec : function (name) -> float64 array (questions,)
        A trec_eval measure per question, in ascending question number.

    Attributes
    ----------
    sides : tuple of str
        Side names that the ranks can answer for.
    """

    def __init__(self, ranks: Ranks, trec: Callable[[str], Floats]) -> None:
        self.sides = sides_present(ranks)
        self._ranks = ranks
        self._trec = trec
        self._sums: dict[object, Values] = {}
        self._strata: dict[str, Strata] = {}

    @cached_property
    def _instances(self) -> tuple[Cells, Ties]:
        return Cells(self._ranks.relation, self._ranks.side), instance_ties(self._ranks)

    @cached_property
    def _questions(self) -> tuple[Cells, Ties]:
        rows, index = question_rows(self._ranks)
        cells = Cells(self._ranks.relation[rows], self._ranks.side[rows])
        return cells, question_ties(self._ranks, rows, index)

    def value(self, measure: Measure) -> float:
        """The measure over all instances or questions of its side.

        Raises
        ------
        UsageError
            The side was not asked, or a trec_eval measure cannot be had.
        """
        require_side(measure, measure.side, self.sides)
        if measure.averaging == "stratified":
            return self._stratified(measure)
        cells = self._cells(measure)
        if measure.averaging == "macro_relation":
            return float(np.mean(self._grouped(measure, cells.by_relation(measure.side))))
        return float(self._grouped(measure, cells.of_side(measure.side))[0])

    def relations(self, side: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Relations on the side, ascending, and how many instances each has; int64 arrays."""
        cells = self._instances[0]
        groups = cells.by_relation(side)
        relation = np.array([cells.relation[group[0]] for group in groups])
        return relation, np.array([cells.count[group].sum() for group in groups])

    def count(self, side: str) -> tuple[int, int]:
        """Number of questions and of instances on the side."""
        tables = self._questions[0], self._instances[0]
        questions, instances = (int(c.count[c.of_side(side)[0]].sum()) for c in tables)
        return questions, instances

    def per_relation(self, measure: Measure) -> Floats:
        """The measure for each of ``relations(measure.side)``; float64 array."""
        if measure.averaging not in ("micro", "macro"):
            raise UsageError(
                f"{measure} weighs relations against each other, so one relation has no value "
                "of it; slice by relation with micro or macro measures"
            )
        return self._grouped(measure, self._cells(measure).by_relation(measure.side))

    def _cells(self, measure: Measure) -> Cells:
        return (self._questions if measure.averaging == "macro" else self._instances)[0]

    def _grouped(self, measure: Measure, groups: Groups) -> Floats:
        cells = self._cells(measure)
        if measure.is_trec:
            return self._trec_grouped(measure.metric, cells, groups)
        metric, k = measure.row
        macro = measure.averaging == "macro"
        ties = (self._questions if macro else self._instances)[1]
        asked = (macro, metric.value, measure.rank_type, k)
        assert measure.rank_type is not None
        if asked not in self._sums:
            self._sums[asked] = _summed(cells, metric.value(ties, measure.rank_type, k))
        mean = cells.mean(self._sums[asked], groups)
        return metric.finish(mean, mean if macro else self._chance(groups))

    def _chance(self, groups: Groups) -> Floats:
        """Mean rank of a random scorer: the mean of (candidates + 1) / 2."""
        cells = self._instances[0]
        if "chance" not in self._sums:
            self._sums["chance"] = _summed(cells, Values(self._ranks.candidates + 1, 2))
        return cells.mean(self._sums["chance"], groups)

    def _trec_grouped(self, name: str, cells: Cells, groups: Groups) -> Floats:
        if name not in self._sums:
            self._sums[name] = _summed(cells, Values(self._trec(name), 1))
        mean = cells.mean(self._sums[name], groups)
        if name.startswith("gm_"):  # per question these are logarithms, as in trec_eval
            return np.asarray(np.exp(mean))
        if name.startswith("num_"):
            return np.array([self._sums[name].scaled[group].sum() for group in groups])
        return mean

    def _stratified(self, measure: Measure) -> float:
        if measure.side not in self._strata:
            self._strata[measure.side] = Strata.of(self._ranks, measure.side)
        values = values_of(measure, self._instances[1])[None]
        betas = (np.array([beta]) for beta in measure.params)
        return float(stratified_means(values, self._strata[measure.side], *betas)[0, 0, 0])


def _summed(cells: Cells, values: Values) -> Values:
    scaled: NDArray[Any] = cells.sums(values.scaled)
    return Values(scaled, values.scale)
