"""Estimates of full-ranking metrics from ranks among drawn candidates.

The mean rank is linear in the counts, and its Horvitz-Thompson estimate is unbiased. MRR and Hits@k
are not: 1 over an estimated rank is too large on average, since a candidate that outranks the
answer and was not drawn counts for nothing, and no correction from the drawn candidates alone is
both unbiased and of use. (From an even draw of k of n candidates exactly the polynomials of degree
k of the rank can be estimated without bias, and 1/rank is none below k = n. Where every candidate
is drawn by itself there are unbiased estimates of any function, but their terms grow like
(1/probability)^rank.)

So some questions are drawn once more, and ranked among all candidates (`full_check`). With m the
metric at an estimated rank, f at the true one, and p a question's probability of this second draw,

    estimate = (sum of m over all answers + sum of (f - m) / p over those ranked in full) / answers

is unbiased whatever m is, because given the first draw its expectation is the mean of f. The better
the candidates, the smaller f - m, and the fewer questions it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.study.sampling.bounds import (
    DECREASING,
    hoeffding_slack,
    mean_bounds,
    normal_quantile,
)
from kgtrec.study.sampling.counts import SampledCounts, count_sampled, sums_of
from kgtrec.study.sampling.draw import draw_candidates
from kgtrec.study.sampling.full_check import FullCheck, capped, draw_check, importance
from kgtrec.study.sampling.subset import instances_of, rank_some

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks

__all__ = ["FullEstimates", "estimate_full", "full_estimates"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FullEstimates(ShownAsTables):
    """What metrics would be among all candidates.

    Attributes
    ----------
    counts : SampledCounts
        Of the drawn candidates; ``counts.ranks`` are the sampled ranks.
    check : FullCheck or None
        The questions that were ranked among all candidates.
    full : Ranks or None
        Their ranks.
    level : float
        Probability of each interval by itself.
    """

    counts: SampledCounts
    check: FullCheck | None
    full: Ranks | None
    level: float

    def _lines(self) -> tuple[str, str]:
        sampled = float((1 / self.counts.ranks.rank()).mean())
        value = (self._corrected("MRR") or (float("nan"),))[0]
        return (
            f"from {self._described()}; {self.cost():.1%} of the scores",
            f"sampled MRR {sampled:.4f}, estimated MRR among all {value:.4f}",
        )

    def __str__(self) -> str:
        return "\n".join([self.heading(), "", self.table().to_text(), "", *self.notes()])

    def heading(self) -> str:
        """What the columns of `table` are."""
        return (
            f"sampled: among {self._described()}\n"
            f"estimate, low, high: what ranking among all candidates would give, with "
            f"{100 * self.level:g} % confidence"
        )

    def notes(self, within: float = 0.002) -> list[str]:
        """What the estimates cost, and how many full rankings an MRR within ± `within` takes."""
        number = 0 if self.check is None else len(self.check.questions)
        questions = len(self.counts.draw.questions)
        lines = [
            f"{number:,} of {questions:,} questions ranked among all candidates; "
            f"{self.cost():.1%} of the scores of full ranking"
        ]
        if not self.counts.incomplete.any():
            return [*lines, "every candidate was drawn: sampled and full ranks are the same"]
        if not number:
            return [*lines, "MRR and Hits@k have no estimate without these, but bounds"]
        needed = self.needed("MRR", within)
        if needed is not None:
            share = self.cost(needed)
            lines.append(f"MRR within {within:g}: {needed:,} questions, {share:.1%} of the scores")
        return lines

    def _described(self) -> str:
        draw = self.counts.draw
        return f"{draw.drawn.sum(axis=1).mean():,.0f} candidates a question, by {draw.source}"

    def table(self) -> Table:
        """A row a measure: among the sampled candidates, and estimated among all.

        Columns sampled, estimate (NaN where there is none), low, high. Intervals are of the metric
        on these very questions, as full ranking would give it. MRR and Hits@k have an estimate if
        some questions were ranked in full; otherwise low and high are bounds that hold for every
        size, from the exact tails of the draw and Hoeffding's inequality.
        """
        sampled, mean = self.counts.ranks.rank(), float(self.counts.estimated_ranks().mean())
        reach = half_width(self.counts.rank_variances(), self.level) / len(sampled)
        most = float(self.counts.draw.questions.candidates.mean())
        rows: list[tuple[Cell, ...]] = [
            ("MR", float(sampled.mean()), mean, max(1.0, mean - reach), min(most, mean + reach))
        ]
        for name, f in DECREASING.items():
            value = float(f(sampled).mean())
            rows.append((name, value, *(self._corrected(name) or self._bounded(name))))
        names = ("measure", "sampled", "estimate", "low", "high")
        return Table(names, names, (4,) * len(names), rows)

    def needed(self, measure: str = "MRR", within: float = 0.002) -> int | None:
        """How many questions have to be ranked in full for an interval of ± `within`.

        Estimated from the questions that were, with as much noise as they leave; None if none was.

        Parameters
        ----------
        measure : {"MRR", "Hits@1", "Hits@3", "Hits@10"}
        within : float
            Half the width of the interval.

        Raises
        ------
        UsageError
            Another measure, or a width that is not above 0.
        """
        if measure not in DECREASING or not within > 0:
            raise UsageError(
                f"measure={measure!r}, within={within!r}; name one of {', '.join(DECREASING)} and "
                "a half width above 0"
            )
        if self.check is None:
            return None
        weights, chosen = importance(self.counts), self.check.questions
        squares = self._differences[measure] ** 2 / self.check.probability[chosen]
        target = (within * len(self.counts.question) / normal_quantile((1 + self.level) / 2)) ** 2

        def variance(size: int) -> float:
            p = capped(weights, size)[chosen]
            return float(((1 - p) / p * squares).sum())

        low, high = 0, int(np.count_nonzero(weights))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if variance(middle) <= target else (middle, high)
        return high

    def cost(self, full_questions: float | None = None) -> float:
        """Scores that are computed, as a share of those of full ranking.

        Parameters
        ----------
        full_questions : float, optional
            Questions that are ranked in full, if other than those that were.
        """
        draw = self.counts.draw
        sizes = draw.population.sum(axis=1) + draw.questions.answers.lengths
        number = len(draw.questions)
        chosen = 0 if self.check is None else len(self.check.questions)
        more = (chosen if full_questions is None else full_questions) / number
        lists = float(draw.lists.lengths.sum() / sizes.sum())
        return lists + more * (1 - lists)

    @cached_property
    def _differences(self) -> dict[str, Float64]:
        """Sums of f - m over the answers of each question that was ranked in full."""
        if self.check is None or self.full is None:
            return {}
        own = instances_of(self.counts.draw.questions, self.check.questions)
        estimated, true = self.counts.estimated_ranks()[own], self.full.rank()
        number = len(self.check.questions)
        return {
            name: sums_of(self.full.question, f(true) - f(estimated), number)
            for name, f in DECREASING.items()
        }

    def _corrected(self, name: str) -> tuple[float, float, float] | None:
        """Estimate and interval from the questions that were ranked in full."""
        if self.check is None or not len(self.check.questions):
            return None
        n, f = len(self.counts.question), DECREASING[name]
        p = self.check.probability[self.check.questions]
        difference = self._differences[name] / p
        total = float(f(self.counts.estimated_ranks()).sum() + difference.sum())
        reach = half_width((1 - p) * difference**2, self.level)
        reach = reach or self._unseen_width(name, self.check)
        return total / n, max(0.0, (total - reach) / n), min(1.0, (total + reach) / n)

    def _unseen_width(self, name: str, check: FullCheck) -> float:
        """Half a width where no question that was ranked in full has changed.

        One that does may be among the others all the same: with probability (1 - level) / 2 as many
        are as -log of that, and each changes as much as its answers allow.
        """
        questions, f = self.counts.draw.questions, DECREASING[name]
        value = f(self.counts.estimated_ranks())
        most = np.maximum(value, f(self.counts.ranks.rank()) - value)
        squares = sums_of(self.counts.question, most**2, len(questions))[check.questions]
        p = check.probability[check.questions]
        typical = float(np.sqrt(np.mean((1 - p) * squares / p**2)))
        return float(-np.log((1 - self.level) / 2)) * typical

    def _bounded(self, name: str) -> tuple[float, float, float]:
        incomplete, f = self.counts.incomplete, DECREASING[name]
        if not incomplete.any():  # these are the ranks among all
            value = float(f(self.counts.estimated_ranks()).mean())
            return value, value, value
        miss = (1 - self.level) / 10
        low, high = self.counts.rank_bounds(miss)
        slack = hoeffding_slack(self.counts.question, incomplete, self.level)
        return float("nan"), *mean_bounds(f(high), f(low), miss, slack)


def half_width(variances: Float64, level: float) -> float:
    """Half the width of an interval of a sum, from the estimated variance of each of its terms.

    By Student's distribution with as many degrees of freedom as terms that count: the square of
    the sum of the variances over the sum of their squares.
    """
    from scipy.special import stdtrit

    total = float(variances.sum())
    if total == 0:
        return 0.0
    freedom = total**2 / float((variances**2).sum())
    return float(stdtrit(freedom, (1 + level) / 2)) * total**0.5


def full_estimates(
    counts: SampledCounts, check: FullCheck | None = None, full: Ranks | None = None,
    level: float = 0.95,
) -> FullEstimates:  # fmt: skip
    """Estimates from what was ranked before.

    Parameters
    ----------
    counts : SampledCounts
        From `count_sampled`.
    check : FullCheck, optional
        From `draw_check`.
    full : Ranks, optional
        Of the questions of `check`, from `rank_some`.
    level : float
        Probability of each interval by itself.

    Raises
    ------
    UsageError
        One of check and full without the other, ranks of other questions, or a level that is not a
        probability.
    """
    if not 0 < level < 1:
        raise UsageError(f"level={level!r} is not a probability between 0 and 1, such as 0.95")
    if (check is None) != (full is None):
        raise UsageError("check and full go together: the questions, and their ranks among all")
    if check is not None and full is not None:
        own = instances_of(counts.draw.questions, check.questions)
        if not np.array_equal(full.answer, counts.ranks.answer[own]) or full.sampled:
            raise UsageError("full holds other ranks than those of check's questions among all")
    return FullEstimates(counts, check, full, level)


def estimate_full(
    scores: Any, questions: Questions, size: int = 300, by: Any = "frequency", *,
    full: float = 0.1, seed: int = 0, level: float = 0.95, **options: Any,
) -> FullEstimates:  # fmt: skip
    """Estimate full-ranking MR, MRR and Hits@k from drawn candidates and a few full rankings.

    Parameters
    ----------
    scores : object
        As for `kgtrec.rank`, but not an iterable of matrices: some questions are read twice. (Where
        a model shall score drawn candidates alone, take the steps one by one: `draw_candidates`,
        `count_sampled`, `draw_check`, `rank_some`, `full_estimates`.)
    questions : Questions
    size, by
        As for `draw_candidates`.
    full : float
        As for `draw_check`: questions that are ranked among all candidates, or a share of them; 0
        for none, which leaves bounds in place of estimates of MRR and Hits@k.
    seed : int
        Of both draws.
    level : float
        Probability of each interval by itself.
    **options
        Of `kgtrec.rank`: ``higher_is_better``, ``nan``, ``threads``, ``progress``.

    Raises
    ------
    UsageError
        As for the steps.
    InputError, FileError
        As for `kgtrec.rank`.
    """
    draw = draw_candidates(questions, size, by, seed=seed)
    counts = count_sampled(draw, scores, **options)
    if not full:
        return full_estimates(counts, level=level)
    check = draw_check(counts, full, seed)
    if not len(check.questions):  # everything was drawn, or chance has chosen none
        return full_estimates(counts, level=level)
    return full_estimates(
        counts, check, rank_some(scores, questions, check.questions, **options), level
    )
