"""Means over questions, from a judge's labels of all and people's labels of a random sample.

Let y be a measure of a question by people's labels, j by the judge's, c = j minus its mean over all
questions, p the probability with which a question was drawn, and l a factor in [0, 1]. Then

    sum of l c over all questions / Q + sum of (y - l c) / p over those drawn / sum of 1 / p

estimates the mean of y over the Q questions, whatever the judge does (Angelopoulos et al. 2023,
prediction-powered inference). l = 0 uses people alone. The best l is Cov(y, c) / Var(c). It is
computed on one random half (fold) of all questions and used for the other. Otherwise it would adapt
to the labels that it is applied to, and the estimate would be biased.

If all p are equal, the drawn questions of a fold are a simple random sample of it, given their
number. Each fold then has its weight by the number of its questions, and the estimate is exactly
unbiased. If p differ, the ratio of the two sums is biased by a share of its error that vanishes
with the size of the sample.

The target is the mean over these Q questions, not over others like them. If all were drawn, it is
known, and no interval is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.bootstrap import ROUNDING
from kgtrec._internal.student import student_quantile
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import refuse_if
from kgtrec.study.sampling.counts import check_level

LEAST = 10
"""Judged questions from which on there are intervals."""


@dataclass(frozen=True, eq=False)
class JudgedValues(ShownInLines):
    """Values of all questions by a judge's labels, and of drawn questions by people's.

    - judge, float64 (Q, k): A column per system and measure.
    - people, float64 (n, k): Rows for the drawn questions.
    - drawn, int64 (n,): Numbers of the drawn questions, ascending.
    - probability, float64 (n,): Probability with which each of them was drawn.
    - fold, int64 (Q,): Fold of every question, 0 or 1.
    """

    judge: Float64
    people: Float64
    drawn: Int64
    probability: Float64
    fold: Int64

    def __len__(self) -> int:
        return len(self.judge)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} questions, {len(self.drawn):,} of them judged by people",
            f"{self.judge.shape[1]:,} columns",
        )

    @property
    def is_census(self) -> bool:
        """True if people have judged all questions."""
        return len(self.drawn) == len(self)

    @property
    def is_even(self) -> bool:
        """True if all questions were drawn with equal probabilities."""
        return bool((self.probability == self.probability[0]).all())

    @property
    def centred(self) -> Float64:
        """The judge's values minus their means over all questions; float64 (Q, k)."""
        return np.asarray(self.judge - self.judge.mean(axis=0))


@dataclass(frozen=True, eq=False)
class Estimates(ShownInLines):
    """Estimated means of columns, and their errors.

    - value, float64 (k,): Estimated means over all questions.
    - deviations, float64 (n, k): Signed share of each drawn question in the error. The sum of
      products of two columns is their covariance.
    - alone, float64 (n, k): The same for people alone.
    - factor, float64 (k,): Mean of l over all questions.
    """

    value: Float64
    deviations: Float64
    alone: Float64
    factor: Float64

    def _lines(self) -> tuple[str, str]:
        return f"{len(self.value):,} estimated means", f"errors up to {self.error.max():.4g}"

    @property
    def error(self) -> Float64:
        """Standard error of each estimate, float64 (k,); 0 if the drawn questions do not differ."""
        return self._spread()[0]

    def _spread(self) -> tuple[Float64, Float64]:
        """Return the standard error of each estimate and its degrees of freedom, (k,) each.

        A judge that is nearly always right may err on no drawn question. So one more question
        counts, on which the judge does not help: a share 1 / n of the variance of people alone.
        The degrees of freedom are those of a variance from n squares: 2 divided by the variance of
        its relative error (Satterthwaite 1946).
        """
        n, squares = len(self.deviations), self.deviations**2
        assumed_question = np.maximum((self.alone**2).sum(axis=0) - squares.sum(axis=0), 0) / n
        total = squares.sum(axis=0) + assumed_question
        total[np.sqrt(total) <= ROUNDING * np.abs(self.value)] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = ((squares**2).sum(axis=0) + assumed_question**2) / total**2
            freedom = 2 / np.maximum(inverse - 1 / n, 2 / n)
        return np.sqrt(total), np.maximum(freedom, 1.0)

    def reach(self, level: float = 0.95) -> Float64:
        """Return half the width of each interval, by Student's distribution; float64 (k,).

        It is NaN with fewer than `LEAST` judged questions, and if these do not differ or are all
        questions.
        """
        check_level(level)
        error, freedom = self._spread()
        known = (error > 0) & (len(self.deviations) >= LEAST)
        with np.errstate(invalid="ignore"):
            return np.where(known, student_quantile(freedom, (1 + level) / 2) * error, np.nan)

    def p_values(self) -> Float64:
        """Return two-sided p-values of means against 0, (k,); NaN without an interval."""
        from scipy.special import stdtr

        error, freedom = self._spread()
        known = (error > 0) & (len(self.deviations) >= LEAST)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(known, 2 * stdtr(freedom, -np.abs(self.value) / error), np.nan)

    def differences(self, first: Int64, second: Int64) -> Estimates:
        """Return the estimates of some columns minus those of others, over the same questions."""
        return Estimates(
            self.value[first] - self.value[second],
            self.deviations[:, first] - self.deviations[:, second],
            self.alone[:, first] - self.alone[:, second],
            (self.factor[first] + self.factor[second]) / 2,
        )

    def quotients(self, above: Int64, below: Int64) -> Estimates:
        """Return the estimates of some columns over those of others, with linearised errors."""
        value = self.value[above] / self.value[below]
        deviations, alone = (
            (part[:, above] - value * part[:, below]) / self.value[below]
            for part in (self.deviations, self.alone)
        )
        return Estimates(value, deviations, alone, self.factor[above])


def assign_folds(n_questions: int, drawn: Int64, seed: int = 0) -> Int64:
    """Divide all questions into two random halves, each with half of the drawn ones.

    Returns 0 or 1 for each question, int64 (n_questions,). The same seed divides other samples in
    other ways, so that folds do not depend on the order of the questions.
    """
    rng = random_generator(seed, 2, crc32(np.ascontiguousarray(drawn, np.int64).tobytes()))
    not_drawn = np.setdiff1d(np.arange(n_questions), drawn)
    order = np.concatenate([rng.permutation(drawn), rng.permutation(not_drawn)])
    folds = np.empty(n_questions, np.int64)
    folds[order] = np.arange(n_questions) % 2
    return folds


def estimate_means(values: JudgedValues, factor: float | None = None) -> Estimates:
    """Estimate the means of people's values over all questions.

    Parameters
    ----------
    values : JudgedValues
    factor : float, optional
        The same l for all questions: 0 for people alone, 1 for the whole difference. By default,
        each fold has the best l of the other one.

    Raises
    ------
    UsageError
        No question was drawn, or a probability is not above 0 and up to 1.
    """
    _check_probabilities(values.probability)
    n_columns = values.people.shape[1]
    if values.is_census:
        nothing = np.zeros_like(values.people)
        return Estimates(values.people.mean(axis=0), nothing, nothing, np.zeros(n_columns))
    tuned = factor is None and _has_two_folds(values)
    together = np.zeros(len(values), np.int64)
    folds = values.fold if tuned else together
    factors = tune_factors(values) if tuned else np.full((2, n_columns), factor or 0.0)
    predicted = factors[folds] * values.centred
    residuals = values.people - predicted[values.drawn]
    value, deviations = _average(values, residuals, folds)
    alone = _average(values, values.people, together)[1]
    return Estimates(predicted.mean(axis=0) + value, deviations, alone, factors[folds].mean(axis=0))


def _average(values: JudgedValues, rest: Float64, folds: Int64) -> tuple[Float64, Float64]:
    """Estimate the mean over all questions of a value of the drawn ones, (n, k).

    Returns means (k,) and deviations (n, k). With equal probabilities, each fold is a sample of its
    own. Deviations are from the means of folds, or of all, which cost a degree of freedom each.
    """
    even, p = values.is_even, values.probability
    groups = folds[values.drawn] if even else np.zeros(len(values.drawn), np.int64)
    n, sizes = np.bincount(groups), np.bincount(folds)
    weights = (sizes / len(values) / n)[groups] if even else 1 / p / (1 / p).sum()
    remaining = (1 - n / sizes)[groups] if even else 1 - p
    remaining = remaining * np.divide(n, n - 1, out=np.ones(len(n)), where=n > 1)[groups]
    masks = np.equal.outer(np.arange(len(n)), groups) * weights
    means = (masks @ rest / masks.sum(axis=1, keepdims=True))[groups]
    deviations = (weights * np.sqrt(remaining))[:, None] * (rest - means)
    return weights @ rest, deviations


def tune_factors(values: JudgedValues) -> Float64:
    """Return the factor l that each fold uses, from the other fold, float64 (2, k).

    Each fold must have a drawn question.
    """
    of_drawn, judge = values.fold[values.drawn], values.judge[values.drawn]
    outside_fold = (of_drawn != 0, of_drawn != 1)
    return np.array(
        [best_factors(values.people[o], judge[o], 1 / values.probability[o]) for o in outside_fold]
    )


def best_factors(people: Float64, judge: Float64, weights: Float64) -> Float64:
    """Return Cov(y, j) / Var(j) of each column, between 0 and 1; 0 if Var(j) is 0.

    Shapes: people and judge float64 (n, k), weights (n,).
    """
    shares = weights / weights.sum()
    y, j = (column - shares @ column for column in (people, judge))
    covariance, variance = shares @ (y * j), shares @ j**2
    varies = np.ptp(judge, axis=0) > ROUNDING * np.abs(judge).max(axis=0)
    ratio = np.divide(covariance, variance, out=np.zeros(len(variance)), where=varies)
    return np.clip(ratio, 0.0, 1.0)


def _has_two_folds(values: JudgedValues) -> bool:
    """Return True if each fold has two or more drawn questions, enough for a variance."""
    return bool(np.bincount(values.fold[values.drawn], minlength=2).min() >= 2)


def _check_probabilities(probability: Float64) -> None:
    """Raise UsageError unless these can be the probabilities of a sample."""
    refuse_if(
        (not len(probability), "no question is judged by people; give a sample of some"),
        (
            not ((probability > 0) & (probability <= 1)).all(),
            "a probability of the sample is not above 0 and up to 1; give those of the draw",
        ),
    )


def match_people(people: Float64, corrected: Float64, judged: int, questions: int) -> Float64:
    """Return the number of questions that people alone need for the errors of `corrected`.

    Parameters
    ----------
    people, corrected : float64 (k,)
        Standard errors of people alone on `judged` questions, and of the corrected estimates.
    judged, questions : int
        Number of judged questions, and of all questions.

    Returns
    -------
    float64 (k,)
        At most `questions`; NaN if people alone have no error.
    """
    share = 1 / judged - 1 / questions  # the variance of a mean is proportional to this
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 / (share * (corrected / people) ** 2 + 1 / questions))
