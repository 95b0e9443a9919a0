"""Estimates of full-ranking metrics from drawn candidates and a few questions ranked in full.

The Horvitz-Thompson estimate of the mean rank is unbiased. MRR and Hits@k are not linear in the
counts: drawn candidates alone give no useful unbiased estimate. So a second draw selects some
questions, which are ranked among all candidates. Let m be the metric at an estimated rank, f at the
true one, and p a question's probability of this draw. Then

    estimate = (sum of m over all answers + sum of (f - m) / p over those ranked in full) / answers

is unbiased for every m, because given the first draw its expectation is the mean of f. The better
the candidates, the smaller f - m, and the fewer questions are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.student import student_quantile
from kgtrec._internal.table import ShownAsTables, ShownInLines, Table
from kgtrec.errors import UsageError, choose
from kgtrec.questions.api import Questions
from kgtrec.questions.selection import instances_of
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.sampling.counts import (
    COLUMNS,
    DECREASING,
    SampledCounts,
    check_level,
    count_sampled,
    mean_bounds,
    rank_some,
    sums_of,
)
from kgtrec.study.sampling.draw import cap_probabilities, draw_candidates


@dataclass(frozen=True, eq=False)
class FullCheck(ShownInLines):
    """The questions that are ranked among all candidates.

    - questions: Numbers of these questions, ascending.
    - probability, float64 (Q,): Probability of the independent draw of each question; 0 if all of
      its candidates were drawn.
    """

    questions: Int64
    probability: Float64
    seed: int

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.questions):,} of {len(self.probability):,} questions, seed {self.seed}",
            f"{int((self.probability == 1).sum()):,} of them with probability 1",
        )


def draw_check(counts: SampledCounts, size: float, seed: int = 0) -> FullCheck:
    """Draw questions to be ranked among all candidates.

    A question's probability is proportional to the sum of 1 / sqrt(sampled rank) over its answers,
    and at most 1. A full rank is never smaller than the sampled one, so answers far down the sample
    cannot change much; and questions with many answers change more than others.

    Parameters
    ----------
    counts : SampledCounts
    size : float
        Expected number of questions, or their share if below 1.
    seed : int

    Raises
    ------
    UsageError
        A size of 0 or less.
    """
    require_type("counts", counts, SampledCounts, "SampledCounts (study.count_sampled)")
    require_type("size", size, Real, "a number")
    if not size > 0:
        raise UsageError(
            f"{argument('full', size)}; give the number of questions to rank in full, or a share "
            "of them "
            "below 1"
        )
    weights = importance(counts)
    expected = size * len(weights) if size < 1 else float(size)
    probability = cap_probabilities(weights, expected)
    uniform = random_generator(seed, 1).random(len(weights))  # other than the draw's
    return FullCheck(np.flatnonzero(uniform < probability), probability, seed)


def importance(counts: SampledCounts) -> Float64:
    """Estimate how much a question's answers change from the sample to all candidates, (Q,)."""
    shares = counts.incomplete / np.sqrt(counts.ranks.rank())
    return sums_of(counts.question, shares, len(counts.draw.questions))


@dataclass(frozen=True, eq=False)
class FullEstimates(ShownAsTables):
    """Estimates of metrics among all candidates.

    ``estimates["mrr"]``, ``["mr"]`` and ``["hits@10"]`` are the estimates; NaN if there is none.

    - counts: Counts of the drawn candidates; ``counts.ranks`` are the sampled ranks.
    - check: The questions ranked among all candidates; `full` are their ranks, None without any.
    - level: Probability of each single interval.
    """

    counts: SampledCounts
    check: FullCheck
    full: Ranks | None
    level: float

    def __getitem__(self, key: str) -> float:
        estimates = {str(row[0]).lower(): float(row[2]) for row in self.table().rows}
        choose("estimate", key.lower(), estimates)
        return estimates[key.lower()]

    def _lines(self) -> tuple[str, str]:
        sampled = float((1 / self.counts.ranks.rank()).mean())
        return (
            f"from {self._describe()}; {self.cost():.1%} of the scores",
            f"sampled MRR {sampled:.4f}, estimated MRR among all {self['mrr']:.4f}",
        )

    def __str__(self) -> str:
        return self.text()

    def text(self, within: float = 0.002) -> str:
        """Return the table with the meaning of its columns and the `notes`."""
        heading = (
            f"sampled: among {self._describe()}\n"
            f"estimate, low, high: what ranking among all candidates would give, with "
            f"{100 * self.level:g} % confidence"
        )
        return "\n".join([heading, "", self.table().to_text(), "", *self.notes(within)])

    def notes(self, within: float = 0.002) -> list[str]:
        """Return sentences on the cost, and the questions needed for an MRR within ± `within`."""
        number, questions = len(self.check.questions), len(self.counts.draw.questions)
        lines = [
            f"{number:,} of {questions:,} questions ranked among all candidates; "
            f"{self.cost():.1%} of the scores of full ranking"
        ]
        if not self.counts.incomplete.any():
            return [*lines, "every candidate was drawn: sampled and full ranks are the same"]
        if not number:
            return [
                *lines,
                "without such questions, MRR and Hits@k have bounds instead of estimates",
            ]
        needed = self.questions_needed("MRR", within)
        if needed is not None:
            share = self.cost(needed)
            lines.append(
                f"MRR within ±{within:g} needs {needed:,} questions, {share:.1%} of the scores"
            )
        return lines

    def _describe(self) -> str:
        draw = self.counts.draw
        return f"{draw.drawn.sum(axis=1).mean():,.0f} candidates per question, by {draw.source}"

    def table(self) -> Table:
        """Return a table with one row per measure: its sampled value, and its estimate.

        Columns sampled, estimate (NaN if there is none), low, high. Intervals are for the metric of
        these same questions in a full ranking. MRR and Hits@k have an estimate if some questions
        were ranked in full. Otherwise low and high are bounds that hold for every size, from the
        exact tails of the draw and Hoeffding's inequality. If all questions were ranked in full,
        every value is exact, and its interval a point.
        """
        sampled, mean = self.counts.ranks.rank(), float(self.counts.estimate_ranks().mean())
        reach = half_width(self.counts.rank_variances(), self.level) / len(sampled)
        exact = self._exact_ranks()
        if exact is not None:
            mean, reach = float(exact.mean()), 0.0
        most = float(self.counts.draw.questions.candidates.mean())
        rows = [
            ("MR", float(sampled.mean()), mean, max(1.0, mean - reach), min(most, mean + reach))
        ]
        for name, f in DECREASING.items():
            value = float(f(sampled).mean())
            rows.append((name, value, *(self._correct(name) or self._bound(name))))
        return Table.from_rows(COLUMNS, rows)

    def _exact_ranks(self) -> Float64 | None:
        """Return the ranks among all candidates, (n,); None if one of them is unknown."""
        ranks, unknown = self.counts.estimate_ranks().copy(), self.counts.incomplete.copy()
        if self.full is not None:
            ranks[self._checked_instances], unknown[self._checked_instances] = (
                self.full.rank(),
                False,
            )
        return None if unknown.any() else ranks

    @property
    def _checked_instances(self) -> Int64:
        """Instances of the questions that were ranked in full."""
        return instances_of(self.counts.draw.questions, self.check.questions)

    def questions_needed(self, measure: str = "MRR", within: float = 0.002) -> int | None:
        """Estimate the number of questions to rank in full for an interval of ± `within`.

        The estimate is noisy. It uses the questions that were ranked in full; None if there are
        none.
        """
        from scipy.special import ndtri

        choose("measure", measure, DECREASING)
        if not within > 0:
            raise UsageError(
                f"{argument('within', within)}; give a half width above 0, such as 0.002"
            )
        if self.full is None:
            return None
        weights, chosen = importance(self.counts), self.check.questions
        squares = self._differences[measure] ** 2 / self.check.probability[chosen]
        target = (within * len(self.counts.question) / float(ndtri((1 + self.level) / 2))) ** 2

        def variance(size: int) -> float:
            p = cap_probabilities(weights, size)[chosen]
            return float(((1 - p) / p * squares).sum())

        low, high = 0, int(np.count_nonzero(weights))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if variance(middle) <= target else (middle, high)
        return high

    def cost(self, full_questions: float | None = None) -> float:
        """Return the number of computed scores, as a share of those of full ranking."""
        draw = self.counts.draw
        sizes = draw.population.sum(axis=1) + draw.questions.answers.lengths
        number = len(draw.questions)
        chosen = len(self.check.questions) if full_questions is None else full_questions
        lists = float(draw.lists.lengths.sum() / sizes.sum())
        return lists + chosen / number * (1 - lists)

    @cached_property
    def _differences(self) -> dict[str, Float64]:
        """Sums of f - m over the answers of each question that was ranked in full."""
        if self.full is None:
            return {}
        estimated, true = self.counts.estimate_ranks()[self._checked_instances], self.full.rank()
        number = len(self.check.questions)
        return {
            name: sums_of(self.full.question, f(true) - f(estimated), number)
            for name, f in DECREASING.items()
        }

    def _correct(self, name: str) -> tuple[float, float, float] | None:
        """Return the estimate and interval of a metric; None without questions ranked in full."""
        if self.full is None:
            return None
        n, f = len(self.counts.question), DECREASING[name]
        p = self.check.probability[self.check.questions]
        difference = self._differences[name] / p
        total = float(f(self.counts.estimate_ranks()).sum() + difference.sum())
        reach = half_width((1 - p) * difference**2, self.level)
        reach = reach or self._unseen_width(name)
        return total / n, max(0.0, (total - reach) / n), min(1.0, (total + reach) / n)

    def _unseen_width(self, name: str) -> float:
        """Return half the width of the interval if no question that was ranked in full changed.

        Others may still change. The draw misses -log(p) of them with probability p = (1 - level) /
        2. Each of these is assumed to change as much as its answers allow.
        """
        questions, f = self.counts.draw.questions, DECREASING[name]
        value = f(self.counts.estimate_ranks())
        most = np.maximum(value, f(self.counts.ranks.rank()) - value)
        squares = sums_of(self.counts.question, most**2, len(questions))[self.check.questions]
        p = self.check.probability[self.check.questions]
        typical = float(np.sqrt(np.mean((1 - p) * squares / p**2)))
        return float(-np.log((1 - self.level) / 2)) * typical

    def _bound(self, name: str) -> tuple[float, float, float]:
        """Return NaN and the bounds of a metric, or its value if all candidates were drawn."""
        incomplete, f = self.counts.incomplete, DECREASING[name]
        if not incomplete.any():  # these are the ranks among all
            value = float(f(self.counts.estimate_ranks()).mean())
            return value, value, value
        miss = (1 - self.level) / 10
        unsure = self.counts.question, incomplete
        ends = mean_bounds(f, *self.counts.rank_bounds(miss), *unsure, self.level, miss)
        return float("nan"), *ends


def half_width(variances: Float64, level: float) -> float:
    """Return half the width of the interval of a sum, from the variance of each of its terms.

    It uses Student's distribution. The degrees of freedom are the effective number of terms: the
    square of the sum of the variances over the sum of their squares.
    """
    total = float(variances.sum())
    if total == 0:
        return 0.0
    freedom = total**2 / float((variances**2).sum())
    return float(student_quantile(freedom, (1 + level) / 2)) * total**0.5


def full_estimates(
    counts: SampledCounts,
    check: FullCheck | None = None,
    full: Ranks | None = None,
    level: float = 0.95,
) -> FullEstimates:
    """Estimate metrics from earlier rankings.

    Parameters
    ----------
    counts : SampledCounts
        From `count_sampled`.
    check : FullCheck, optional
        From `draw_check`.
    full : Ranks, optional
        Ranks of the questions of `check`, from `rank_some`.
    level : float
        Probability of each single interval.

    Raises
    ------
    UsageError
        Only one of check and full, ranks of other questions, or a level that is not a probability.
    """
    require_type("counts", counts, SampledCounts, "SampledCounts (study.count_sampled)")
    check_level(level)
    if (check is None) != (full is None):
        present = "check" if full is None else "full"
        raise UsageError(
            f"only {present} was given; give both check (the questions) and full (their ranks "
            "among all candidates), or neither"
        )
    if check is not None and full is not None:
        instances = instances_of(counts.draw.questions, check.questions)
        if not np.array_equal(full.answer, counts.ranks.answer[instances]) or full.sampled:
            raise UsageError(
                "full does not contain the ranks of check's questions among all candidates; rank "
                "these questions with rank_some"
            )
    nothing = FullCheck(np.empty(0, np.int64), np.zeros(len(counts.draw.questions)), 0)
    return FullEstimates(counts, check or nothing, full, level)


def estimate_full(
    scores: Any,
    questions: Questions,
    size: int = 300,
    by: Any = "frequency",
    *,
    full: float = 0.1,
    seed: int = 0,
    level: float = 0.95,
    **options: Any,
) -> FullEstimates:
    """Estimate full-ranking MR, MRR and Hits@k from drawn candidates and a few full rankings.

    Parameters
    ----------
    scores : object
        As for `kgtrec.rank`, but not an iterable of matrices: some questions are read twice. (To
        score only the drawn candidates, take the steps one by one: `draw_candidates`,
        `count_sampled`, `draw_check`, `rank_some`, `full_estimates`.)
    questions : Questions
    size, by
        As for `draw_candidates`.
    full : float
        As for `draw_check`: number or share of questions to rank among all candidates. With 0, MRR
        and Hits@k have bounds instead of estimates.
    seed : int
        Seed of both draws.
    level : float
        Probability of each single interval.
    **options
        Options of `kgtrec.rank`: ``higher_is_better``, ``nan``, ``threads``, ``progress``.
    """
    draw = draw_candidates(questions, size, by, seed=seed)
    counts = count_sampled(draw, scores, **options)
    check = draw_check(counts, full, seed) if full else None
    # If all candidates were drawn, or by chance, no question may have been chosen.
    if check is None or not len(check.questions):
        return full_estimates(counts, level=level)
    ranks = rank_some(scores, questions, check.questions, **options)
    return full_estimates(counts, check, ranks, level)
