"""Measures of answer sets, from a few numbers per question.

Micro measures divide sums over all questions. Macro measures are means over questions; the mean
precision is over questions whose set is not empty, and an empty set has recall and F1 0.
"""

from __future__ import annotations

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.bootstrap import Resampling, on_draws, percentile_interval, resample_means

MEASURES = {
    "micro.precision": "precision, micro",
    "micro.recall": "recall, micro",
    "micro.f1": "F1, micro",
    "macro.precision": "precision, mean of named sets",
    "macro.recall": "recall, mean",
    "macro.f1": "F1, mean",
    "macro.f1_of_means": "F1 of mean precision and recall",
    "size": "size, mean",
    "empty": "share of empty sets",
    "single": "share of sets of one",
    "any": "questions with any answer",
    "all": "questions with all answers",
}
"""Title of each measure by its key."""
NONE = [float("nan")] * 2
"""An interval that is unknown."""


def question_columns(answers: Float64, hits: Float64, size: Float64, shares: Float64) -> Float64:
    """Return the columns whose means over questions give all measures, float64 (Q, 10).

    - answers, hits, size, float64 (Q,): Number of answers of each question, number of these in its
      set, and the size of the set.
    - shares, float64 (2, Q): Probability that any, and that all answers are in the set.
    """
    named = size > 0
    precision = np.divide(hits, size, out=np.zeros(len(size)), where=named)
    f1 = 2 * hits / (size + answers)
    columns = (answers, hits, size, named, precision, hits / answers, f1, size == 1, *shares)
    return np.stack(columns, axis=-1).astype(np.float64)


def set_measures(means: Float64) -> Float64:
    """Compute `MEASURES`, float64 (..., 12), from means of `question_columns`, (..., 10)."""
    answers, hits, size, named, precision, recall, f1, single, some, every = np.moveaxis(
        means, -1, 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # no set is named
        mean_precision = precision / named
        f1_of_means = 2 * mean_precision * recall / (mean_precision + recall)
        micro = (hits / size, hits / answers, 2 * hits / (size + answers))
    f1_of_means = np.where(recall > 0, f1_of_means, 0.0)
    macro = (mean_precision, recall, f1, f1_of_means)
    return np.stack([*micro, *macro, size, 1 - named, single, some, every], axis=-1)


def measure_intervals(columns: Float64, how: Resampling) -> Float64:
    """Compute the intervals of `MEASURES` by resampling questions, float64 (12, 2)."""
    if len(columns) < 2:
        return np.full((len(MEASURES), 2), np.nan)
    return resample_means(columns, np.arange(len(columns)), set_measures, how).interval().T


def median_interval(sizes: Float64, how: Resampling) -> list[float]:
    """Compute the interval of the median size by resampling questions."""
    n, order = len(sizes), np.argsort(sizes)
    ordered, middle = sizes[order], np.array([(n - 1) // 2, n // 2])

    def medians(times: Float64) -> Float64:
        before = times[:, order].cumsum(axis=1)
        positions = [(before <= index).sum(axis=1) for index in middle]
        return np.asarray(ordered[positions].mean(axis=0))[:, None]

    return percentile_interval(on_draws(medians, n, how), how)[0].tolist() if n > 1 else NONE


def coverage_gap(covered: Float64, units: Float64, claim: float) -> Float64:
    """Compute CovGap: the mean over groups of the distance of coverage from the claim.

    Returns float64 (...).

    - covered, units, float64 (..., groups): Covered units, and all units of each group. A group
      without units does not count.
    """
    with np.errstate(invalid="ignore"):
        gaps = np.abs(covered / units - claim)
    return np.asarray(np.nansum(gaps, axis=-1) / (units > 0).sum(axis=-1))


def gap_interval(columns: Float64, group: Int64, claim: float, how: Resampling) -> list[float]:
    """Compute the interval of `coverage_gap` by resampling questions.

    Draws add noise to the distances, and so a bias: the interval has the spread of the draws, but
    the value instead of their mean.

    - columns, float64 (Q, 2): Covered units, and units of each question.
    - group, int64 (Q,): Group of each question, numbered without gaps.
    """
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))

    def sums(times: Float64, column: Float64) -> Float64:
        return np.add.reduceat(times[:, order] * column[order], starts, axis=1)

    def gaps(times: Float64) -> Float64:
        return coverage_gap(sums(times, columns[:, 0]), sums(times, columns[:, 1]), claim)[:, None]

    if len(group) < 2:
        return NONE
    value = gaps(np.ones((1, len(group))))
    drawn = on_draws(gaps, len(group), how)
    centred = np.maximum(drawn - drawn.mean() + value, 0.0)
    return percentile_interval(centred, how)[0].tolist()


def binomial_interval(share: float, n: int, how: Resampling) -> list[float]:
    """Compute the interval of Clopper and Pearson for a share of n independent units."""
    from scipy.special import betaincinv

    k, (low, high) = share * n, how.tails
    start = betaincinv(k, n - k + 1, low) if k > 0 else 0.0
    return [float(start), float(betaincinv(k + 1, n - k, high)) if k < n else 1.0]
