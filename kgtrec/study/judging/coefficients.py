"""Coefficients of the agreement of annotators: Cohen's kappa, Krippendorff's alpha, Gwet's AC1.

All three subtract the agreement that chance would give, and differ in what they take chance to be.
Kappa [1]_ [2]_ is for two annotators. Alpha [3]_ and AC1 [4]_ are for any number of them, and each
triple may have labels of some of them. If nearly all labels are equal, kappa and alpha are low
although annotators hardly ever differ; AC1 stays high.

References
----------
.. [1] J. Cohen. A coefficient of agreement for nominal scales. 1960.
.. [2] J. L. Fleiss, J. Cohen, B. S. Everitt. Large sample standard errors of kappa and weighted
   kappa. 1969. Equation 13: the standard error around any kappa, not only around zero.
.. [3] K. Krippendorff. Computing Krippendorff's alpha-reliability. 2011. Section C: nominal data,
   missing labels.
.. [4] K. L. Gwet. Computing inter-rater reliability and its variance in the presence of high
   agreement. 2008.

"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.bootstrap import Resampling, percentile_interval

Coefficient = Callable[[Int64, Int64], Float64]


def cohen_kappa(counts: Int64) -> tuple[float, float]:
    """Compute Cohen's kappa and its large-sample standard error from counts (k, k) of two raters.

    Kappa is 1 for full agreement and 0 for chance agreement. Both are NaN without items, or if
    chance agreement is certain. The error is 0 if kappa is 1, or if one rater has a single
    category, so that kappa could only be 0: neither means certainty.
    """
    n = counts.sum()
    # No items, or all of them in one category, so that chance agreement is certain.
    if np.count_nonzero(counts) == np.count_nonzero(np.diag(counts)) < 2:
        return math.nan, math.nan
    p = counts / n
    first, second = p.sum(axis=1), p.sum(axis=0)
    chance = float(first @ second)
    kappa = (float(np.trace(p)) - chance) / (1 - chance)
    both = second[:, None] + first[None, :]  # row i, column j: p(.i) + p(j.)
    agreed = np.diag(p) @ (1 - np.diag(both) * (1 - kappa)) ** 2
    apart = (1 - kappa) ** 2 * float((p * both**2).sum() - np.diag(p) @ np.diag(both) ** 2)
    spread = agreed + apart - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(0.0, float(spread)) / n) / (1 - chance)


def krippendorff_alpha(labels: Int64, weights: Int64) -> Float64:
    """Compute Krippendorff's alpha for nominal labels: 1 - observed / expected disagreement.

    Parameters
    ----------
    labels : ndarray of int64, shape (n_patterns, n_categories)
        How many annotators gave each label; two or more in every row.
    weights : ndarray of int64, shape (n_draws, n_patterns)
        How many triples have these labels, in each draw.

    Returns
    -------
    ndarray of float64, shape (n_draws,)
        1 is full agreement, 0 chance. NaN if all labels are equal, so that nobody could disagree.
    """
    size = labels.sum(axis=1)
    unequal = (size**2 - (labels**2).sum(axis=1)) / (size - 1)
    totals = weights @ labels
    n = totals.sum(axis=1)
    expected = n**2 - (totals**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (n - 1) * (weights @ unequal) / expected, np.nan)


def gwet_ac1(labels: Int64, weights: Int64) -> Float64:
    """Compute Gwet's AC1: (agreement - chance) / (1 - chance), chance = sum pi (1 - pi) / (q - 1).

    pi is the mean share of a label, and q the number of labels. See `krippendorff_alpha` for the
    parameters. NaN without triples.
    """
    size = labels.sum(axis=1, keepdims=True)
    agreed = (labels * (labels - 1) / (size * (size - 1))).sum(axis=1)
    n = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = weights @ (labels / size) / n[:, None]
        chance = (share * (1 - share)).sum(axis=1) / (labels.shape[1] - 1)
        return np.asarray((weights @ agreed / n - chance) / (1 - chance))


def coefficient_interval(
    coefficient: Coefficient, labels: Int64, how: Resampling
) -> tuple[float, float, float]:
    """Compute a coefficient of all triples, and its percentile interval over draws of triples.

    Shape: labels (n_triples, n_categories). Triples with equal rows are interchangeable, so a draw
    is one of the numbers of triples per distinct row. The ends are NaN if fewer than half of the
    draws have a value.
    """
    patterns, counts = np.unique(labels, axis=0, return_counts=True)
    value = float(coefficient(patterns, counts[None, :])[0])
    drawn = random_generator(how.seed).multinomial(len(labels), counts / len(labels), how.resamples)
    low, high = percentile_interval(coefficient(patterns, drawn)[:, None], how)[0].tolist()
    return value, low, high
