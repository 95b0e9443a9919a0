"""Compute any measure, overall or per relation, from ranks and per-question trec_eval values.

If answers are missing from their lists, values are intervals from the best to the worst case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import Interval, Value
from kgtrec.errors import UsageError
from kgtrec.measures.averaging import (
    Groups,
    Weighing,
    require_graph,
    require_side,
    sides_present,
)
from kgtrec.measures.measure import Measure, term_of_group
from kgtrec.measures.metric import GroupMoments
from kgtrec.measures.stratified import Strata, average_strata
from kgtrec.measures.ties import Ranked, Scaled
from kgtrec.trec.measures.values import MeasuresOfRanks

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


PER_RELATION = ("micro", "macro", "question", "triple")
"""Averagings that have a value for one relation."""

OF_GRAPHS = ("relation", "triple", "macro_relation", "stratified")
"""Averagings that need relations or triples."""


class Calculator:
    """Computes measures and caches only sums per (relation, side).

    ``trec`` maps a trec_eval measure to its values per question, in ascending question number.
    """

    def __init__(self, ranks: Ranks, trec: Callable[[str], Float64]) -> None:
        self.sides = sides_present(ranks)
        self.ranks = ranks
        self.per_question = trec
        self._weighings: dict[tuple[str, object], Weighing] = {}
        self._strata: dict[str, Strata] = {}

    def value(self, measure: Measure) -> Value:
        """Return the measure over all instances or questions of its side."""
        return self.single_value(measure)

    def single_value(self, measure: Measure) -> float:
        """Return the value that the columns of the ranks give, a float in all classes."""
        side = require_side(measure, measure.side, self.sides)
        measure = measure if side == measure.side else replace(measure, side=side)
        if measure.averaging in OF_GRAPHS:
            require_graph(measure, self.ranks)
        if measure.averaging == "stratified":
            return self._average_strata(measure)
        if measure.averaging == "group":
            return float(np.mean(self._by_term(measure)))
        weighing = self._weighing(measure.averaging, measure.side)
        if measure.averaging == "macro_relation":
            values = self._average(measure, weighing, weighing.cells.by_relation(measure.side))
            return float(np.mean(values))
        return float(self._average(measure, weighing, weighing.cells.of_side(measure.side))[0])

    def _by_term(self, measure: Measure) -> Float64:
        """Compute the measure for each group of questions that share a value of its term."""
        term, names = term_of_group(measure, self.ranks)
        key = f"group {measure.term.partition(':')[0]}", measure.is_trec
        if key not in self._weighings:
            averaging = "macro" if measure.is_trec else "question"
            self._weighings[key] = Weighing.from_ranks(
                self.ranks, averaging, measure.side, term.codes
            )
        weighing = self._weighings[key]
        groups = weighing.cells.by_relation(measure.side)
        if names:
            codes = [int(weighing.cells.relation[group[0]]) for group in groups]
            by_name = dict(zip(term.texts(np.array(codes)), groups, strict=True))
            groups = [by_name[name] for name in names if name in by_name]
        return self._average(measure, weighing, groups)

    def relations(self, side: str) -> tuple[Int64, Int64]:
        """Return the relations on the side, ascending, and their numbers of instances."""
        cells = self._weighing("micro", side).cells
        groups = cells.by_relation(side)
        relation = np.array([cells.relation[group[0]] for group in groups])
        return relation, np.array([cells.count[group].sum() for group in groups])

    def count(self, side: str) -> tuple[int, int]:
        """Count the questions and the instances on the side."""
        both = (self._weighing(averaging, side) for averaging in ("macro", "micro"))
        questions, instances = (int(w.cells.count[w.cells.of_side(side)[0]].sum()) for w in both)
        return questions, instances

    def per_relation(self, measure: Measure) -> Float64:
        """Compute the measure for each of ``relations(measure.side)``; float64 array."""
        if measure.averaging not in PER_RELATION:
            raise UsageError(
                f"{measure} weighs relations against each other, so it has no value for one "
                f"relation; slice by relation with {' or '.join(PER_RELATION)} measures"
            )
        if measure.averaging in ("macro", "question") and self.ranks.kind == "relation":
            pairs = np.unique(np.stack([self.ranks.question, self.ranks.relation]), axis=1)
            if torn := int((np.unique(pairs[0], return_counts=True)[1] > 1).sum()):
                return self._per_answer(measure, torn)
        weighing = self._weighing(measure.averaging, measure.side)
        return self._average(measure, weighing, weighing.cells.by_relation(measure.side))

    def _per_answer(self, measure: Measure, torn: int) -> Float64:
        """Compute `per_relation` if `torn` questions have answers of several relations."""
        if measure.averaging == "macro":
            raise UsageError(
                f"{measure} is about whole questions, but {torn:,} questions have answers of "
                "several relations; slice by relation with micro or question measures"
            )
        weighing = self._weighing("micro", measure.side)
        parts = [weighing.cells.rows(group) for group in weighing.cells.by_relation(measure.side)]
        return np.array([float(self.part(rows, ()).value(measure)) for rows in parts])

    def part(self, members: Int64, trec: Iterable[str]) -> Calculator:
        """Make a calculator for some instances, in row order, with these trec_eval measures."""
        rows = np.sort(members)
        indices = np.searchsorted(
            np.unique(self.ranks.question), np.unique(self.ranks.question[rows])
        )
        values = {name: self.per_question(name)[indices] for name in trec}
        return Calculator(self.ranks.subset(rows), values.__getitem__)

    def _weighing(self, averaging: str, side: str) -> Weighing:
        """Return the items and weights of an averaging, from the cache if possible."""
        name = "micro" if averaging in ("macro_relation", "stratified") else averaging
        key = name, side if name == "relation" else ""  # only its weights depend on the side
        if key not in self._weighings:
            self._weighings[key] = Weighing.from_ranks(self.ranks, name, side)
        return self._weighings[key]

    def _average(self, measure: Measure, weighing: Weighing, groups: Groups) -> Float64:
        """Compute the measure for each group of cells, float64 (groups,)."""
        if measure.rank_type is not None:
            metric, parameter = measure.row
            return metric.of_groups(
                GroupMoments(metric, measure.rank_type, parameter, weighing, groups)
            )
        column = measure.column

        def per_question(_: Ranked, rows: Any) -> Scaled:
            return Scaled(self.per_question(column.name)[rows], 1)

        if column.is_count:
            return np.asarray(weighing.sums(column.name, per_question, groups).scaled)
        return np.asarray(column.of_mean(weighing.mean(column.name, per_question, groups)))

    def _average_strata(self, measure: Measure) -> float:
        """Compute a stratified measure."""
        if measure.side not in self._strata:
            self._strata[measure.side] = Strata.from_ranks(self.ranks, measure.side)
        values = measure.per_item(self._weighing("micro", measure.side).ties)[None]
        betas = (np.array([beta]) for beta in measure.params)
        return float(average_strata(values, self._strata[measure.side], *betas)[0, 0, 0])


def calculator_of(ranks: Ranks, trec: Callable[[str], Float64]) -> Calculator:
    """Make the calculator for these ranks; `trec` as for `Calculator`."""
    ends = ranks.best_and_worst()
    if ends is None:
        return Calculator(ranks, trec)
    return ListedCalculator(ranks, trec, [Calculator(end, MeasuresOfRanks(end)) for end in ends])


class ListedCalculator(Calculator):
    """A calculator whose values are intervals around the value of the ranks' columns.

    These columns place each unlisted answer in the middle of its possible ranks, regardless of the
    question's other answers. If that is worse than any case, the value is the nearer end. ``ends``
    are calculators for unlisted answers right behind their lists, and for unlisted answers last.
    """

    def __init__(
        self, ranks: Ranks, trec: Callable[[str], Float64], ends: list[Calculator]
    ) -> None:
        super().__init__(ranks, trec)
        self._ends = ends

    def value(self, measure: Measure) -> Value:
        """Compute a value as `Calculator` does; UsageError for spread, which ends do not bound."""
        self._check_bounded(measure)
        if _counts_listed(measure):
            return self.single_value(measure)
        first, second = (end.single_value(measure) for end in self._ends)
        return Interval.enclosing(self.single_value(measure), first, second)

    def per_relation(self, measure: Measure) -> Any:
        """Compute values as `Calculator` does; return an object array of intervals."""
        self._check_bounded(measure)
        if _counts_listed(measure):
            return super().per_relation(measure)
        columns = super().per_relation(measure), *(e.per_relation(measure) for e in self._ends)
        rows = zip(*map(np.ndarray.tolist, columns), strict=True)
        return np.array([Interval.enclosing(*values) for values in rows], dtype=object)

    def part(self, members: Int64, trec: Iterable[str]) -> Calculator:
        """Return a part as `Calculator` does."""
        names = list(trec)
        whole = super().part(members, names)
        ends = [end.part(members, names) for end in self._ends]
        return ListedCalculator(whole.ranks, whole.per_question, ends)

    def _check_bounded(self, measure: Measure) -> None:
        """Refuse measures of spread: the ends do not bound them."""
        if measure.is_trec or measure.higher_is_better is not None:
            return
        if measure.row[0].name != "count":
            raise UsageError(
                f"{measure} has no interval: the ranks of {self.ranks.n_unlisted:,} answers beyond "
                "their lists are unknown, and a spread has no simple bounds; use a mean, such as "
                "mrr"
            )


def _counts_listed(measure: Measure) -> bool:
    """Return whether answers beyond their lists have a known value, 0."""
    return not measure.is_trec and measure.row[0].counts_listed
