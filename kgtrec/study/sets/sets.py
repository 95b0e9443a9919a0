"""Answer sets: which candidates a policy names per question, and how often they are right."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.csr import Csr, number_values
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import PathName, UsageError
from kgtrec.ranking.instances import term_of
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.slices import parse_by, rows_by_part
from kgtrec.study.sets.abstention import RiskCurve, abstention_table, risk_curve
from kgtrec.study.sets.conformal import units_of
from kgtrec.study.sets.measures import (
    MEASURES,
    binomial_interval,
    group_means,
    measure_intervals,
    question_columns,
    set_measures,
)

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

SLICED = ("size", "micro.precision", "micro.recall", "micro.f1", "macro.f1")


@dataclass(frozen=True, eq=False)
class Unanswerable:
    """Sizes of the sets of questions that have no answer, and their confidence, float64 (m,)."""

    sizes: Float64
    confidence: Float64 | None


@dataclass(frozen=True, eq=False)
class AnswerSets(ShownAsTables):
    """The sets of a policy, judged by the answers.

    - policy: Its text.
    - ranks: The instances (answers), and where they come from.
    - inside, float64 (n,): Probability that each answer is in its question's set: 0 or 1, unless
      ties have expected values.
    - sizes, float64 (Q,): Size of each set; questions in the order of their numbers.
    - any_and_all, float64 (2, Q): Probability that any, and that all answers are in the set.
    - claim: The claimed coverage, and the unit that it is about; NaN without a claim.
    - sets: The candidates of each set by id, best first; None if only sizes are known.
    - limits: The limit of each group, by relation; of all others by None.
    - confidence, float64 (Q,): How sure each set is, such as its best score; None: unknown.
    - unanswerable: Sets of questions without an answer, which no other measure counts.
    - notes: What readers must know.
    """

    policy: str
    ranks: Ranks
    inside: Float64
    sizes: Float64
    any_and_all: Float64
    resampling: Resampling
    claim: float = float("nan")
    unit: str = "answer"
    sets: Csr | None = None
    limits: dict[str | None, float] = field(default_factory=dict)
    confidence: Float64 | None = None
    unanswerable: Unanswerable | None = None
    notes: tuple[str, ...] = ()

    def _lines(self) -> tuple[str, str]:
        value = self["size"]
        return (
            f"{self.policy}: {len(self.sizes):,} questions, {len(self.inside):,} answers",
            f"coverage {self['micro.recall']:.4f}, mean size {value:.1f}",
        )

    @cached_property
    def question(self) -> Int64:
        """Index of each instance's question in `sizes`, int64 (n,)."""
        return np.asarray(number_values(self.ranks.question)[1], np.int64)

    @cached_property
    def columns(self) -> Float64:
        """Columns per question from which the measures are computed, float64 (Q, 10)."""
        n = len(self.sizes)
        answers = np.bincount(self.question, minlength=n).astype(np.float64)
        hits: Float64 = np.bincount(self.question, self.inside, n).astype(np.float64)
        return question_columns(answers, hits, self.sizes, self.any_and_all)

    @cached_property
    def values(self) -> dict[str, float]:
        """Every measure by its key."""
        values = dict(zip(MEASURES, set_measures(self.columns.mean(axis=0)).tolist(), strict=True))
        values["size.median"] = float(np.median(self.sizes))
        if self.claim == self.claim:
            values |= {"coverage": float(self._units[0].mean()), "covgap": self._coverage_gap()}
        return values

    def __getitem__(self, key: str) -> float:
        if key not in self.values:
            raise UsageError(f"no measure {key!r} of sets; there are {', '.join(self.values)}")
        return self.values[key]

    @cached_property
    def _units(self) -> tuple[Float64, Int64]:
        """Probability that each unit of the claim is covered, and the row of one of its answers."""
        if self.unit == "answer":
            return self.inside, np.arange(len(self.inside))
        rows = units_of(self.inside, self.question, self.unit)[1]
        return self.any_and_all[int(self.unit == "question-all")][self.question[rows]], rows

    def _coverage_gap(self) -> float:
        """Return the mean distance of coverage from the claim over relations; NaN without any."""
        term, (covered, rows) = term_of(self.ranks, "relation"), self._units
        if term is None:
            return float("nan")
        coverage = group_means(covered, np.asarray(number_values(term.codes[rows])[1], np.int64))
        return float(np.abs(coverage - self.claim).mean())

    def table(self) -> Table:
        """Return a row per measure with its interval: binomial for the claim, or over questions."""
        ends = measure_intervals(self.columns, self.resampling).T.tolist()
        rows: list[tuple[Cell, ...]] = [
            (title, key, self[key], *end)
            for (key, title), end in zip(MEASURES.items(), ends, strict=True)
        ]
        rows.insert(8, ("size, median", "size.median", self["size.median"], *[float("nan")] * 2))
        if self.claim == self.claim:
            units = self._units[0]
            low, high = binomial_interval(self["coverage"], len(units), self.resampling)
            title = f"coverage ({self.unit}), claim {self.claim:g}"
            rows.append((title, "coverage", self["coverage"], low, high))
            rows.append(("CovGap over relations", "covgap", self["covgap"], *[float("nan")] * 2))
        columns = ["measure", "key", "value:4", *self.resampling.columns(4)]
        return Table.from_rows(columns, rows)

    def slice(self, by: str | Iterable[str], *, graph: Graph | None = None) -> Table:
        """Return measures of parts of the questions; `by` and `graph` as for `Result.slice`.

        With a claim, the table has the coverage of each part.
        """
        parts = rows_by_part(self.ranks, by, graph=graph)
        covered, of_units = self._units
        rows: list[tuple[Cell, ...]] = []
        for names, members in parts.items():
            questions, counts = np.unique(self.question[members], return_counts=True)
            torn = int((counts < self.columns[questions, 0]).sum())
            if torn:
                raise UsageError(
                    f"{argument('by', by)} puts answers of {torn:,} questions into several parts, "
                    "and a set is that of a whole question; slice by relation, category or side"
                )
            values = set_measures(self.columns[questions].mean(axis=0)).tolist()
            values = dict(zip(MEASURES, values, strict=True))
            cells: list[Cell] = [len(questions), len(members), *(values[key] for key in SLICED)]
            if self.claim == self.claim:
                cells.append(float(covered[np.isin(of_units, members)].mean()))
            rows.append((*names, *cells))
        names = parse_by(by, None)
        titles = ["questions", "answers", "size:1", "precision=micro.precision:4"]
        titles += ["recall=micro.recall:4", "F1=micro.f1:4", "mean F1=macro.f1:4"]
        titles += ["coverage:4"] * (self.claim == self.claim)
        return Table.from_rows([*names, *titles], rows, len(names))

    def risk_curve(self) -> RiskCurve:
        """Risk against coverage by confidence; unanswerable questions are always wrong."""
        parts = [(self.confidence, 1 - self.any_and_all[0], self.sizes)]
        if (others := self.unanswerable) is not None:
            parts.append((others.confidence, np.ones(len(others.sizes)), others.sizes))
        confidence, wrong, sizes = zip(*parts, strict=True)
        known = [each for each in confidence if each is not None]
        if len(known) < len(parts):
            raise UsageError(
                "a curve of risk needs the confidence of each set, such as its best score; judge "
                "scores, or lists of pairs [label, score]"
            )
        return risk_curve(np.concatenate(known), np.concatenate(wrong), np.concatenate(sizes))

    def abstention(self) -> Table:
        """Precision, recall and F1 of empty sets, for questions without an answer."""
        if self.unanswerable is None:
            raise UsageError(
                f"abstention needs questions without an answer; give {argument('unanswerable')}"
            )
        return abstention_table(self.sizes, self.unanswerable.sizes)

    def write(self, path: PathName) -> None:
        """Write the sets as JSON lines, which `kgtrec rank --predictions` and policy lists read.

        Raises UsageError if the candidates are not kept, or the questions are not those of a graph.
        """
        labels, ranks = self.ranks.entity_labels, self.ranks
        if self.sets is None or labels is None or not np.isin(ranks.side, (0, 1)).all():
            raise UsageError(
                "only sets of candidates of head and tail questions can be written; judge scores"
            )
        relations = ranks.relation_labels or []
        rows = np.unique(self.question, return_index=True)[1]
        with atomic_write(path) as file:
            for number, row in enumerate(rows.tolist()):
                record = {
                    ("tail", "head")[ranks.side[row]]: labels[int(ranks.given[row])],
                    "relation": relations[int(ranks.relation[row])],
                    "predictions": [labels[entity] for entity in self.sets[number].tolist()],
                }
                file.write(f"{json.dumps(record)}\n".encode())
