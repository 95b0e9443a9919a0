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
from kgtrec._internal.bootstrap import Resampling, cluster_sums
from kgtrec._internal.csr import Csr, number_values
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import PathName, UsageError
from kgtrec.ranking.instances import term_of
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.slices import parse_by, rows_by_part
from kgtrec.study.sets.abstention import RiskCurve, abstention_table, risk_curve
from kgtrec.study.sets.measures import (
    MEASURES,
    NONE,
    binomial_interval,
    coverage_gap,
    gap_interval,
    measure_intervals,
    median_interval,
    question_columns,
    set_measures,
)

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

SLICED = {
    "size": "size:1",
    "micro.precision": "precision=micro.precision:4",
    "micro.recall": "recall=micro.recall:4",
    "micro.f1": "F1=micro.f1:4",
    "macro.f1": "mean F1=macro.f1:4",
}
"""Column of each measure in tables of parts."""


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
        return (
            f"{self.policy}: {len(self.sizes):,} questions, {len(self.inside):,} answers",
            f"coverage {self['micro.recall']:.4f}, mean size {self['size']:.1f}",
        )

    @property
    def claims(self) -> bool:
        """True if the policy claims a coverage."""
        return self.claim == self.claim

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
    def _units(self) -> Float64:
        """Covered units of the claim, and all units of each question, float64 (Q, 2)."""
        if self.unit == "answer":
            return self.columns[:, [1, 0]]
        covered = self.any_and_all[int(self.unit == "question-all")]
        return np.stack([covered, np.ones(len(covered))], axis=1)

    @cached_property
    def _relation(self) -> Int64 | None:
        """Number of each question's relation, int64 (Q,); None if it has none."""
        if (term := term_of(self.ranks, "relation")) is None:
            return None
        first = np.unique(self.question, return_index=True)[1]
        return np.asarray(number_values(term.codes[first])[1], np.int64)

    @cached_property
    def values(self) -> dict[str, float]:
        """Every measure by its key."""
        values = dict(zip(MEASURES, set_measures(self.columns.mean(axis=0)).tolist(), strict=True))
        values["size.median"] = float(np.median(self.sizes))
        if self.claims:
            values |= {"coverage": self._coverage(slice(None)), "covgap": float("nan")}
            if self._relation is not None:
                covered, units = cluster_sums(self._units, self._relation).T
                values["covgap"] = float(coverage_gap(covered, units, self.claim))
        return values

    def _coverage(self, questions: Int64 | slice) -> float:
        """Return the share of the units of some questions that are covered."""
        covered, units = self._units[questions].sum(axis=0).tolist()
        return float(covered / units)

    def __getitem__(self, key: str) -> float:
        if key not in self.values:
            raise UsageError(f"no measure {key!r} of sets; there are {', '.join(self.values)}")
        return self.values[key]

    def table(self) -> Table:
        """Return a row per measure with its interval: binomial for the claim, or over questions."""
        how, ends = self.resampling, measure_intervals(self.columns, self.resampling).tolist()
        rows: list[tuple[Cell, ...]] = [
            (title, key, self[key], *end)
            for (key, title), end in zip(MEASURES.items(), ends, strict=True)
        ]
        median = median_interval(self.sizes, how)
        rows.insert(8, ("size, median", "size.median", self["size.median"], *median))
        if self.claims:
            n, gap = int(self._units[:, 1].sum()), NONE
            if self._relation is not None:
                gap = gap_interval(self._units, self._relation, self.claim, how)
            binomial = binomial_interval(self["coverage"], n, how)
            title = f"coverage ({self.unit}), claim {self.claim:g}"
            rows.append((title, "coverage", self["coverage"], *binomial))
            rows.append(("CovGap over relations", "covgap", self["covgap"], *gap))
        return Table.from_rows(["measure", "key", "value:4", *how.columns(4)], rows)

    def slice(self, by: str | Iterable[str], *, graph: Graph | None = None) -> Table:
        """Return measures of parts of the questions; `by` and `graph` as for `Result.slice`.

        With a claim, the table has the coverage of each part.
        """
        names, rows = parse_by(by, None), []
        for part, members in rows_by_part(self.ranks, by, graph=graph).items():
            questions, counts = np.unique(self.question[members], return_counts=True)
            if torn := int((counts < self.columns[questions, 0]).sum()):
                raise UsageError(
                    f"{argument('by', by)} puts answers of {torn:,} questions into several parts, "
                    "and a set is that of a whole question; slice by relation, category or side"
                )
            values = set_measures(self.columns[questions].mean(axis=0)).tolist()
            values = dict(zip(MEASURES, values, strict=True))
            cells = [len(questions), len(members), *(values[key] for key in SLICED)]
            rows.append((*part, *cells, *[self._coverage(questions)] * self.claims))
        titles = ["questions", "answers", *SLICED.values(), *["coverage:4"] * self.claims]
        return Table.from_rows([*names, *titles], rows, len(names))

    def risk_curve(self) -> RiskCurve:
        """Risk against coverage by confidence; unanswerable questions are always wrong."""
        parts = [(self.confidence, 1 - self.any_and_all[0], self.sizes)]
        if (unanswerable := self.unanswerable) is not None:
            parts.append(
                (unanswerable.confidence, np.ones(len(unanswerable.sizes)), unanswerable.sizes)
            )
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
