"""Measures of systems by a judge alone, by people alone, and corrected: tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from kgtrec._internal.arguments import random_generator, require_items, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.study.comparison.correlation import tau_b
from kgtrec.study.comparison.significance import correct_p_values, pairs_of
from kgtrec.study.judged.draw import QuestionSample
from kgtrec.study.judged.estimate import (
    LEAST,
    Estimates,
    JudgedValues,
    assign_folds,
    match_people,
)
from kgtrec.study.judged.labels import JudgeLabels
from kgtrec.study.judged.values import MEASURES, SystemMeasures
from kgtrec.study.pooling.completion import Completion
from kgtrec.study.pooling.lists import RankedLists

_DRAWS = 2000
"""Number of draws of the corrected values for the intervals of tau."""
BIASED = (
    "judge alone is biased: its errors are part of it, so it has no interval. people alone and "
    "corrected are unbiased, whatever the judge does"
)


@dataclass(frozen=True, eq=False)
class CorrectedMeasures(ShownAsTables):
    """Measures of systems over all questions, estimated in three ways.

    - systems, measures: Names; a column of values per measure and system, measure by measure.
    - judge, float64 (k,): Measures by the judge's labels of all questions.
    - alone, corrected: Estimates from people's labels alone, and from both.
    - judged, questions: Number of questions that people have judged, and of all.
    - level: Probability of each single interval.
    """

    _shown = ("table", "pair_table", "order_table")

    systems: Sequence[str]
    measures: Sequence[str]
    judge: Float64
    alone: Estimates
    corrected: Estimates
    judged: int
    questions: int
    level: float
    seed: int

    def table(self) -> Table:
        """Return a row per measure and system: the three values, and half widths of intervals.

        Also the factor l, and how many more questions people alone would have to judge for the
        interval of the corrected value.
        """
        names = [*product(self.measures, self.systems)]
        return Table.from_columns(
            "measure, system, judge alone=judge:4, people alone=people:4, ±=people_half_width:4, "
            "corrected:4, ±=corrected_half_width:4, l=factor:2, more people=more_questions",
            *zip(*names, strict=True),
            self.judge,
            self.alone.value,
            self.alone.reach(self.level),
            self.corrected.value,
            self.corrected.reach(self.level),
            self.corrected.factor,
            self.more_questions,
            names=2,
        )

    @cached_property
    def more_questions(self) -> Int64:
        """Questions that people alone would have to judge in addition, int64 (k,)."""
        needed = match_people(self.alone.error, self.corrected.error, self.judged, self.questions)
        # A corrected interval as wide as that of people alone saves no judging.
        return np.ceil(np.maximum(np.nan_to_num(needed) - self.judged, 0)).astype(np.int64)

    def pair_table(self) -> Table:
        """Return a row per measure and pair of systems: their corrected difference.

        Differences are paired: both systems have the same questions. p is corrected by Holm's
        method for the number of pairs of a measure. Differences that are the same number in every
        drawn question have no interval and no p.
        """
        rows: list[tuple[Cell, ...]] = []
        for number, measure in enumerate(self.measures):
            pairs = pairs_of(len(self.systems))
            first, second = pairs.T + number * len(self.systems)
            gaps = self.corrected.differences(first, second)
            p = gaps.p_values()
            holm, known = p.copy(), np.isfinite(p)
            holm[known] = correct_p_values(p[known], "holm")
            columns = (gaps.value, gaps.reach(self.level), p, holm)
            cells = zip(*(column.tolist() for column in columns), strict=True)
            for (i, j), values in zip(pairs.tolist(), cells, strict=True):
                rows.append((measure, self.systems[i], self.systems[j], *values))
        return Table.from_rows(
            "measure, first, second, difference:4, ±=half_width:4, p:4, p (Holm)=p_holm:4",
            rows,
            names=3,
        )

    def order_table(self) -> Table:
        """Return Kendall's tau-b of each order of systems with that by people on all questions.

        The latter is not known: the corrected values are drawn again from their errors. Columns:
        the mean tau over these draws, and the ends of its interval.
        """
        noise = random_generator(self.seed, 4).standard_normal((_DRAWS, self.judged))
        drawn = self.corrected.value + noise @ self.corrected.deviations
        ends = 100 * np.array([(1 - self.level) / 2, (1 + self.level) / 2])
        kinds = {
            "judge alone": self.judge,
            "people alone": self.alone.value,
            "corrected": self.corrected.value,
        }
        rows: list[tuple[Cell, ...]] = []
        for number, measure in enumerate(self.measures):
            part = slice(number * len(self.systems), (number + 1) * len(self.systems))
            for kind, values in kinds.items():
                tau = tau_b(values[part], drawn[:, part])
                low, high = np.percentile(tau, ends)
                known = self.judged >= LEAST
                cells = (float(tau.mean()), float(low), float(high)) if known else (np.nan,) * 3
                rows.append((measure, kind, *cells))
        return Table.from_rows("measure, order, tau-b=tau:3, low:3, high:3", rows, names=2)

    def sentences(self) -> list[str]:
        """Return sentences on the results in the tables, and on missing intervals."""
        if self.judged == self.questions:
            return [f"people have judged all {self.questions:,} questions: nothing is estimated"]
        if self.judged < LEAST:
            return [
                BIASED,
                f"people have judged {self.judged} questions, too few for intervals; let them "
                f"judge {LEAST - self.judged} more, drawn at random ({LEAST} are needed)",
            ]
        by_measure = self.more_questions.reshape(len(self.measures), -1)
        n_further = np.median(by_measure, axis=1).astype(np.int64).tolist()
        listed = ", ".join(
            f"{count:,} ({name})" for name, count in zip(self.measures, n_further, strict=True)
        )
        return [
            BIASED,
            f"people have judged {self.judged:,} of {self.questions:,} questions; alone, they "
            f"would have to judge this many more for the same intervals (median over systems): "
            f"{listed}",
        ]


def correct_measures(
    systems: Sequence[RankedLists],
    labels: JudgeLabels,
    completion: Completion,
    sample: QuestionSample,
    measures: Sequence[str] = MEASURES,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> CorrectedMeasures:
    """Estimate the measures of systems over all questions in three ways.

    Parameters
    ----------
    systems : sequence of RankedLists
    labels : JudgeLabels
        The judge's labels of all questions.
    completion : Completion
        People's labels; only those of drawn questions count.
    sample : QuestionSample
        The questions whose whole pool people have judged.
    measures : sequence of str
        Measures of trec_eval, and micro metrics such as kg_mrr.
    level : float
        Probability of each single interval.
    seed : int
        Seed of the two folds, and of the draws for tau.

    Raises
    ------
    UsageError
        No system, no drawn question, or a measure that is unknown or not a mean.
    """
    require_items(
        "systems", systems, RankedLists, "RankedLists (study.run_lists or study.score_lists)"
    )
    require_type("labels", labels, JudgeLabels, "JudgeLabels (study.read_judge)")
    evaluation = SystemMeasures.from_names(systems, measures, labels.qrels)
    by_judge = evaluation.evaluate(labels.qrels)
    by_people = evaluation.evaluate(completion.qrels())[sample.drawn]
    folds = assign_folds(len(by_judge), sample.drawn, seed)
    values = JudgedValues(by_judge, by_people, sample.drawn, sample.probability, folds)
    return CorrectedMeasures(
        systems=tuple(lists.name for lists in systems),
        measures=tuple(column.name for column in evaluation.columns),
        judge=evaluation.mean(by_judge),
        alone=evaluation.estimate(values, 0.0),
        corrected=evaluation.estimate(values),
        judged=len(sample),
        questions=len(by_judge),
        level=level,
        seed=seed,
    )
