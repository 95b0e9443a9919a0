"""Exact mean, variance and covariance of a question's metric in the paper's model.

Everything is summed over m, the number of missing answers, and M, how many of them are predicted.
Given both, the rank of a predicted test answer is uniform on 1 .. M + 1, and that of another one is
uniform on M + 1 .. F + m + 1, with F false candidates. The order inside a class is one for all
answers of the question, so two answers of one class fall into the same of G gaps with probability
2 / (G + 1), and into two given different ones with 1 / (G (G + 1)) each way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec.study.openworld.metrics import gain, sum_of_gains
from kgtrec.study.openworld.model import (
    ENTITIES,
    Strengths,
    binomial,
    check_entities,
    split_strength,
)

__all__ = ["Moments", "covariance", "expectation", "moments", "negative_part", "variance"]

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-15
"""Numbers of missing answers less likely than this are left out of sums."""
CELLS = 1 << 21
"""Terms (strengths x missing x predicted) that are summed at a time."""


@dataclass(frozen=True, eq=False)
class Moments:
    """A question's metric given how many of its answers are missing, for L strengths.

    Attributes
    ----------
    chance : ndarray of float64, shape (c,)
        Probability of each number of missing answers that is not negligible.
    predicted, others : ndarray of float64, shape (L, c)
        What predicted test answers add to the expectation, and what the others add.
    square : ndarray of float64, shape (L, c)
        Expectation of the metric's square; NaN where no answer is left to test.
    """

    chance: Floats
    predicted: Floats
    others: Floats
    square: Floats

    @property
    def mean(self) -> Floats:
        """Expectation over the number of missing answers: float64, shape (L,)."""
        return (self.predicted + self.others) @ self.chance

    @property
    def variance(self) -> Floats:
        """Variance of one question's metric: float64, shape (L,)."""
        return self.square @ self.chance - self.mean**2

    @property
    def covariance(self) -> Floats:
        """Of two models on one question with the same missing answers: float64, shape (L, L)."""
        means = self.predicted + self.others
        return (means * self.chance) @ means.T - np.outer(self.mean, self.mean)


def moments(
    strength: ArrayLike | Strengths,
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rho: float = 0.0,
    *,
    kept: bool = True,
) -> Moments:
    """Mean and square of a question's metric, number of missing answers by number.

    Parameters
    ----------
    strength : array-like of float in [0, 1], shape () or (L,); or Strengths
        Strengths are those on missing and on test answers; then `rho` is not looked at.
    beta : float in [0, 1)
        Sparsity.
    n_answers : int
        N, missing answers included.
    n_entities : int, default 14505
        Candidates of a question, its N answers included.
    metric : str, default "mrr"
        ``mrr``, ``hits@10``, ``log_mrr``, ``p_mrr@0.5``, ...
    rho : float, default 0
        Correlation of missing and predicted.
    kept : bool, default True
        Given that an answer is left to test, as in every evaluation. False: the number of missing
        answers is from Binomial(N, beta), as the lemmas have it.

    Raises
    ------
    UsageError
        A value out of range, an unknown metric, or an impossible correlation.
    """
    check_entities(n_answers, n_entities)
    split = strength if isinstance(strength, Strengths) else split_strength(strength, beta, rho)
    counts = np.arange(n_answers + (not kept))
    chance = binomial(counts, n_answers, beta)
    chance /= chance.sum() if kept else 1.0
    counts, chance = counts[chance > NEGLIGIBLE], chance[chance > NEGLIGIBLE]
    ranks = np.arange(1, n_entities + 2)
    sums = sum_of_gains(metric, n_entities + 1)
    squares = np.concatenate([[0.0], np.cumsum(gain(metric)(ranks) ** 2)])
    rows = max(CELLS // ((int(counts[-1]) + 1) * np.size(split.missing)), 1)
    blocks = [counts[start : start + rows] for start in range(0, len(counts), rows)]
    parts = [_given(block, n_entities - n_answers, split, sums, squares) for block in blocks]
    predicted, others, square = (np.concatenate(p, axis=-1) for p in zip(*parts, strict=True))
    left = n_answers - counts
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing left to test: no square
        square = np.where(left > 0, (square[0] + (left - 1) * square[1]) / left, np.nan)
    return Moments(chance, predicted, others, square)


def _given(
    counts: NDArray[np.int64], false: int, split: Strengths, sums: Floats, squares: Floats
) -> tuple[Floats, Floats, Floats]:
    """Given m missing answers (c,): both parts of the mean, and those of the square, (L, c) each.

    The square's parts are a single answer's, and that of two different answers multiplied.
    """
    l1, l2 = (np.atleast_1d(part)[:, None] for part in split)
    m, predicted = counts[:, None], np.arange(counts.max() + 1)
    weight = _nested(m, predicted, l1[:, :, None])
    gaps, last = predicted + 1, false + m + 1
    lower = np.maximum(last - predicted, 1)
    top, top2 = sums[gaps], squares[gaps]
    bottom, bottom2 = sums[last] - sums[predicted], squares[last] - squares[predicted]
    yes, no = top / gaps, bottom / lower
    above = weight @ np.column_stack([yes, top2 / gaps, (top**2 + top2) / (gaps * (gaps + 1))])
    below = (
        (weight * part).sum(axis=2)
        for part in (no, bottom2 / lower, (bottom**2 + bottom2) / (lower * (lower + 1)), yes * no)
    )
    no_mean, no_single, no_pair, mixed = below
    single = l2 * above[:, :, 1] + (1 - l2) * no_single
    pair = l2**2 * above[:, :, 2] + 2 * l2 * (1 - l2) * mixed + (1 - l2) ** 2 * no_pair
    return l2 * above[:, :, 0], (1 - l2) * no_mean, np.stack([single, pair])


def _nested(m: NDArray[np.int64], predicted: NDArray[np.int64], chance: Floats) -> Floats:
    """Probability that `predicted` of m are so, (L, c, M); 0 where there are not so many."""
    from scipy.special import gammaln

    rest = np.maximum(m - predicted, 0)
    ways = gammaln(m + 1) - gammaln(predicted + 1) - gammaln(rest + 1)
    p = np.clip(chance, 1e-300, None)
    q = np.clip(1.0 - chance, 1e-300, None)
    return np.asarray(
        np.where(predicted <= m, np.exp(ways + predicted * np.log(p) + rest * np.log(q)), 0.0)
    )


def expectation(
    strength: ArrayLike,
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rho: float = 0.0,
    *,
    kept: bool = False,
) -> Floats:
    """Exact expectation of a metric: Lemma 4.1 with its delta; with correlation, Lemma A.1.

    Parameters
    ----------
    strength, beta, n_answers, n_entities, metric, rho
        As for `moments`.
    kept : bool, default False
        False: the lemma. True: given that an answer is left to test, which is what an evaluation
        shows; it matters where beta^N is not small.

    Returns
    -------
    ndarray of float64, shaped as strength
    """
    result = moments(strength, beta, n_answers, n_entities, metric, rho, kept=kept)
    return result.mean.reshape(np.shape(strength))


def negative_part(
    strength: ArrayLike,
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rho: float = 0.0,
    *,
    kept: bool = False,
) -> Floats:
    """Delta of Lemma 4.1, exactly: what answers that are not predicted add to the expectation.

    The paper bounds it for MRR and then drops it; for log-MRR and p-MRR it is not small.
    Parameters and shape as for `expectation`.
    """
    result = moments(strength, beta, n_answers, n_entities, metric, rho, kept=kept)
    return (result.others @ result.chance).reshape(np.shape(strength))


def variance(
    strength: ArrayLike,
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rho: float = 0.0,
) -> Floats:
    """V(beta, l) of Theorem 4.2, exactly: the variance of one question's metric.

    The paper takes it from simulation. Given that an answer is left to test; otherwise as for
    `expectation`.
    """
    result = moments(strength, beta, n_answers, n_entities, metric, rho)
    return result.variance.reshape(np.shape(strength))


def covariance(
    strengths: tuple[float, float],
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
) -> float:
    """Covariance of two models' metric on a question of which the same answers are missing.

    Theorem 4.2 takes the models as independent; on the same test set what is missing is missing
    for both, which makes their difference a little steadier.
    """
    return float(moments(strengths, beta, n_answers, n_entities, metric).covariance[0, 1])
