"""How many questions people should judge, and with which probabilities.

The error of a corrected mean comes from e = y - l c - mean, per question. From a pilot, its spread
is known for equal probabilities. A judge's probabilities give more: candidates are drawn true or
false with these, which gives many values y of each question. The best probability of a question is
proportional to the root of the mean of its e squared. This trusts the judge only for the number of
questions: the estimates stay unbiased if its probabilities are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator, require_items, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.student import student_quantile
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.study.judged.draw import probabilities_of
from kgtrec.study.judged.estimate import LEAST, best_factors
from kgtrec.study.judged.labels import JudgeLabels
from kgtrec.study.judged.report import CorrectedMeasures
from kgtrec.study.judged.values import MEASURES, SystemMeasures
from kgtrec.study.pooling.lists import RankedLists
from kgtrec.study.sampling.counts import check_level

_DRAWS = 50
"""Draws of all labels from the judge's probabilities."""


@dataclass(frozen=True, eq=False)
class JudgingPlan(ShownAsTables):
    """Numbers of questions for intervals of ± `target`.

    - names: Measure and system of each row.
    - even, int64 (k,): Questions if all have the same probability.
    - best, int64 (k,): Questions (expected) with the best probabilities; empty from a pilot.
    - weights, float64 (Q,): The best probabilities are proportional to these; empty from a pilot.
    """

    names: list[tuple[str, str]]
    even: Int64
    best: Int64
    weights: Float64
    target: float
    questions: int

    def table(self) -> Table:
        """Return a row per measure and system."""
        heads = "measure, system, questions"
        columns = [*zip(*self.names, strict=True), self.even]
        if len(self.best):
            heads, columns = f"{heads}, if chosen=chosen_questions", [*columns, self.best]
        return Table.from_columns(heads, *columns, names=2)

    @property
    def size(self) -> int:
        """Questions that suffice for every row, with the best known probabilities."""
        return int((self.best if len(self.best) else self.even).max())


def plan_from_pilot(pilot: CorrectedMeasures, target: float) -> JudgingPlan:
    """Compute the questions for intervals of ± `target` from questions that people have judged.

    Raises
    ------
    UsageError
        A target of 0 or less, or fewer than `LEAST` judged questions.
    """
    require_type("pilot", pilot, CorrectedMeasures, "CorrectedMeasures (study.correct_measures)")
    if pilot.judged < LEAST:
        raise UsageError(
            f"a plan from {pilot.judged} judged questions is a guess; let people judge {LEAST} or "
            "more"
        )
    share = 1 / pilot.judged - 1 / pilot.questions
    spread = pilot.corrected.error / math.sqrt(share) if share > 0 else pilot.corrected.error
    even = [needed_questions(s, target, pilot.questions, pilot.level) for s in spread.tolist()]
    nothing = np.empty(0)
    return JudgingPlan(
        [*product(pilot.measures, pilot.systems)],
        np.array(even),
        nothing.astype(np.int64),
        nothing,
        target,
        pilot.questions,
    )


def plan_from_probabilities(
    systems: Sequence[RankedLists],
    labels: JudgeLabels,
    target: float,
    measures: Sequence[str] = MEASURES,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> JudgingPlan:
    """Compute the questions for intervals of ± `target` from a judge's own probabilities.

    Weights are for the mean square over all systems and measures, each divided by its mean over the
    questions.

    Raises
    ------
    UsageError
        A target of 0 or less, or a judge without a probability between 0 and 1.
    """
    require_items(
        "systems", systems, RankedLists, "RankedLists (study.run_lists or study.score_lists)"
    )
    require_type("labels", labels, JudgeLabels, "JudgeLabels (study.read_judge)")
    if not ((labels.probability > 0) & (labels.probability < 1)).any():
        raise UsageError(
            "the judge gives labels only, which do not say where it is unsure; give probabilities, "
            "or a sample that people have judged, for a plan"
        )
    evaluation = SystemMeasures.from_names(systems, measures, labels.qrels)
    squares = _estimate_squares(evaluation, labels, seed)
    total = len(squares)
    means = squares.mean(axis=0)
    scaled = np.divide(squares, means, out=np.ones_like(squares), where=means > 0)
    weights = np.sqrt(scaled.mean(axis=1))
    best = [_search_by_weights(column, weights, target, level) for column in squares.T]
    even = [needed_questions(s, target, total, level) for s in np.sqrt(means).tolist()]
    return JudgingPlan(evaluation.names, np.array(even), np.array(best), weights, target, total)


def _estimate_squares(evaluation: SystemMeasures, labels: JudgeLabels, seed: int) -> Float64:
    """Estimate the mean squared error that the judge leaves per question and column, (Q, k).

    True labels are drawn several times with the judge's probabilities. The error is the rest of a
    question's value that the judge's value does not explain.
    """
    rng = random_generator(seed, 5)
    judge = _per_question(evaluation, evaluation.evaluate(labels.qrels))
    draws = []
    for _ in range(_DRAWS):
        true = rng.random(len(labels.probability)) < labels.probability
        drawn = evaluation.evaluate(labels.with_labels(true.astype(np.int64)))
        draws.append(_per_question(evaluation, drawn))
    people = np.stack(draws)
    rows = people.reshape(-1, judge.shape[1])
    factors = best_factors(rows, np.tile(judge, (_DRAWS, 1)), np.ones(len(rows)))
    residuals = people - factors * judge
    return np.asarray(((residuals - residuals.mean(axis=(0, 1))) ** 2).mean(axis=0))


def _per_question(evaluation: SystemMeasures, evaluated: Float64) -> Float64:
    """Return values whose mean over questions is the measure, also for micro metrics; (Q, k).

    A micro metric M = A / B is linearised: M + (a - M b) / mean(b).
    """
    above, below = np.split(evaluated, 2, axis=1)
    measure = evaluation.mean(evaluated)
    return np.asarray(measure + (above - measure * below) / below.mean(axis=0))


def needed_questions(spread: float, target: float, questions: int, level: float = 0.95) -> int:
    """Return the number of questions for an interval of ± `target`, with equal probabilities.

    - spread: Standard deviation of y - l c over questions.
    """
    return _search(lambda n: spread * math.sqrt((1 - n / questions) / n), target, questions, level)


def _search_by_weights(squares: Float64, weights: Float64, target: float, level: float) -> int:
    """Search the expected number of questions, with probabilities proportional to weights."""

    def error(n: int) -> float:
        p = probabilities_of(weights, n)
        return float(np.sqrt(((1 - p) / p * squares).sum())) / len(weights)

    return _search(error, target, len(weights), level)


def _search(error: Callable[[int], float], target: float, questions: int, level: float) -> int:
    """Return the least number of questions, from `LEAST`, whose interval is within ± `target`."""
    check_level(level)
    if not (target > 0 and math.isfinite(target)):
        raise UsageError(f"{argument('target', target)}; give a half width above 0, such as 0.01")
    low, high = LEAST - 1, max(questions, LEAST)
    while high - low > 1:
        n = (low + high) // 2
        fits = float(student_quantile(n - 1, (1 + level) / 2)) * error(n) <= target
        low, high = (low, n) if fits else (n, high)
    return min(high, questions)
