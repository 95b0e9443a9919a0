"""Expectations over questions that differ in how many answers they have.

The paper gives all questions N answers. Of a real question only the answers that somebody has
recorded are seen, n of them: N is taken to be n / (1 - sparsity), and where that is not a whole
number the question counts in parts as one of the two whole numbers beside it, so that the mean is
kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec.errors import UsageError
from kgtrec.study.openworld.metrics import sum_of_gains
from kgtrec.study.openworld.model import Strengths, binomial, checked_strength
from kgtrec.study.openworld.moments import moments

__all__ = ["Mixture"]

Floats = NDArray[np.float64]

FINE = 40
"""Up to here every number of answers is computed on its own. Where there are more different ones,
the larger are numbers 6 % apart, between which expectations are interpolated: they change slowly
there."""
STEP = 1.06
NODES = 17


@dataclass(frozen=True, eq=False)
class Mixture:
    """Questions with N answers each, in shares.

    Attributes
    ----------
    beta : float in [0, 1)
        Sparsity.
    n_answers : ndarray of int64, shape (k,)
        Numbers of answers, missing ones included.
    weight : ndarray of float64, shape (k,)
        Share of the questions, sums to 1.
    n_entities : int
        Candidates of a question, its answers included.
    """

    beta: float
    n_answers: NDArray[np.int64]
    weight: Floats
    n_entities: int

    @classmethod
    def of_seen(cls, seen: ArrayLike, beta: float, n_entities: int) -> Mixture:
        """From the answers of each question that the test set shows, array of numbers >= 1.

        Raises
        ------
        UsageError
            A sparsity out of range, a question without answers, or more answers than candidates.
        """
        checked_strength(0.0, beta)
        answers = np.asarray(seen, np.float64) / (1.0 - beta)
        if not len(answers) or not (answers >= 1.0).all():
            raise UsageError("every question needs 1 test answer or more; none can have fewer")
        if answers.max() >= n_entities - 1:
            raise UsageError(
                f"at sparsity {beta:g} a question would have {answers.max():.0f} answers among "
                f"{n_entities} candidates; give a lower sparsity"
            )
        points = _points(answers)
        upper = np.clip(np.searchsorted(points, answers), 1, len(points) - 1)
        low, high = points[upper - 1], points[upper]
        share = (answers - low) / (high - low)
        weight = np.bincount(upper, share, len(points)) + np.bincount(
            upper - 1, 1.0 - share, len(points)
        )
        used = weight > 0
        return cls(beta, points[used], weight[used] / len(answers), n_entities)

    def mean(self, strength: ArrayLike | Strengths, metric: str = "mrr") -> Floats:
        """Expected metric at each strength, given that questions have a test answer: (L,)."""
        parts = [
            weight * moments(strength, self.beta, count, self.n_entities, metric).mean
            for count, weight in zip(self.n_answers.tolist(), self.weight.tolist(), strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def ceiling(self, metric: str = "mrr") -> float:
        """Expected metric of a perfect model, strength 1."""
        total = 0.0
        sums = sum_of_gains(metric, int(self.n_answers.max()) + 1)
        for count, weight in zip(self.n_answers.tolist(), self.weight.tolist(), strict=True):
            places = np.arange(count)
            chance = binomial(places, count, self.beta)
            value = chance @ (sums[places + 1] / (places + 1)) / chance.sum()
            total += weight * float(value)
        return total

    def spread(self, pair: tuple[float, float], metric: str = "mrr") -> tuple[Floats, float]:
        """Mean variance of a question for two models, (2,), and their mean covariance.

        The covariance is that of models which share what is missing, and nothing else.
        """
        variance, covariance = np.zeros(2), 0.0
        for count, weight in zip(self.n_answers.tolist(), self.weight.tolist(), strict=True):
            both = moments(pair, self.beta, count, self.n_entities, metric)
            variance += weight * both.variance
            covariance += weight * float(both.covariance[0, 1])
        return variance, covariance

    def curve(self, metric: str = "mrr", nodes: int = NODES) -> tuple[Floats, Floats]:
        """Strengths from 0 to 1, and the expected metric at each."""
        strengths = np.linspace(0.0, 1.0, nodes)
        return strengths, self.mean(strengths, metric)


def _points(answers: Floats) -> NDArray[np.int64]:
    """Whole numbers to compute with, ascending: at least two, around every number of answers."""
    lower = np.floor(answers).astype(np.int64)
    points: NDArray[np.int64] = np.unique(np.concatenate([lower, lower + 1]))
    if len(points) <= FINE:
        return points
    coarse = list(range(1, FINE + 1))
    while coarse[-1] <= answers.max():
        coarse.append(max(coarse[-1] + 1, round(coarse[-1] * STEP)))
    return np.array(coarse, np.int64)
