"""Bootstrap of means over clustered items: how far would values move with other questions?

Whole clusters (questions) are drawn with replacement, as many as there are: the items of one
question stand or fall together, and intervals that draw them singly are too narrow.

Intervals of values are bias-corrected and accelerated (BCa; Efron 1987). Percentile intervals miss
on one side where values are skewed, as MR is by its few deep ranks, or lie near an end of their
range, as Hits@1 does; BCa corrects both to the second order, and costs no more here: a jackknife
over clusters is one subtraction. Differences of two systems are nearly symmetric, and there the
correction is but noise, which costs coverage when tails are heavy (88 against 93 of 95 % in a
simulation of 80 questions): their intervals are percentiles, as in the bootstrap test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.ranking.kernel import available_cores, share_rows
from kgtrec.study.comparison.samples import Samples, cluster_sums

__all__ = ["DRAWS", "Resampled", "bca_interval", "resample"]

Floats = NDArray[np.float64]

DRAWS = 5_000
_BLOCK = 50  # draws whose weights are in memory together


@dataclass(frozen=True, eq=False)
class Resampled:
    """Values of the systems, and what they are on other draws of the questions.

    Attributes
    ----------
    estimate : ndarray of float64, shape (s,)
    draws : ndarray of float64, shape (B, s)
        On each draw of as many clusters.
    jackknife : ndarray of float64, shape (clusters, s)
        Without each cluster in turn.
    """

    estimate: Floats
    draws: Floats
    jackknife: Floats

    def interval(self, confidence: float = 0.95) -> Floats:
        """BCa intervals of the values, float64 (2, s)."""
        return bca_interval(self.estimate, self.draws, self.jackknife, confidence)

    def difference_interval(self, pairs: NDArray[np.int64], confidence: float = 0.95) -> Floats:
        """Percentile intervals of the differences of pairs (p, 2) of systems, float64 (2, p)."""
        _check_confidence(confidence)
        gaps = self.draws[:, pairs[:, 0]] - self.draws[:, pairs[:, 1]]
        tails = [(1 - confidence) / 2, (1 + confidence) / 2]
        return np.asarray(np.quantile(gaps, tails, axis=0))


def resample(samples: Samples, draws: int = DRAWS, seed: int = 0) -> Resampled:
    """Draw the clusters anew, and value all systems on the same draws.

    Parameters
    ----------
    samples : Samples
    draws : int
        Bootstrap samples B; 100 at least.
    seed : int
        The same seed gives the same bits, for any number of threads.

    Raises
    ------
    UsageError
        Too few draws, or one cluster only.
    """
    if draws < 100:
        raise UsageError(f"draws={draws!r} are too few for an interval; take 100 or more")
    n_clusters = samples.n_clusters
    if n_clusters < 2:
        raise UsageError(
            f"{samples.name}: one question alone has no spread to draw from; give two or more"
        )
    ones = np.ones((len(samples), 1))
    sums = cluster_sums(np.column_stack([samples.values, ones]), samples.cluster)
    total = sums.sum(axis=0)
    drawn = _drawn_sums(sums, draws, seed)
    left = total - sums
    return Resampled(
        samples.transform(samples.values.mean(axis=0)),
        samples.transform(drawn[:, :-1] / drawn[:, -1:]),
        samples.transform(left[:, :-1] / left[:, -1:]),
    )


def _drawn_sums(sums: Floats, draws: int, seed: int) -> Floats:
    """Column sums over as many rows as there are, drawn with replacement; (draws, columns).

    Every block of draws has a generator of its own, so that threads can share them out.
    """
    n, out = len(sums), np.empty((draws, sums.shape[1]))
    columns = np.ascontiguousarray(sums.T)

    def fill(first: int, stop: int) -> None:
        rng = np.random.default_rng([seed, first])
        weight = np.empty((stop - first, n))
        for row in weight:
            row[:] = np.bincount(rng.integers(0, n, n, dtype=np.uint32), minlength=n)
        # No BLAS: its threads and ours would wait for one another.
        out[first:stop] = np.einsum("ij,kj->ik", weight, columns)

    parts = [(first, min(first + _BLOCK, draws)) for first in range(0, draws, _BLOCK)]
    share_rows(fill, parts, available_cores())
    return out


def bca_interval(
    estimate: Floats, draws: Floats, jackknife: Floats, confidence: float = 0.95
) -> Floats:
    """Bias-corrected and accelerated interval.

    Parameters
    ----------
    estimate : ndarray of float64, shape (k,)
    draws : ndarray of float64, shape (B, k)
    jackknife : ndarray of float64, shape (n, k)
    confidence : float
        In (0, 1).

    Returns
    -------
    ndarray of float64, shape (2, k)
        Lower and upper end. Where nothing varies, both are the estimate.
    """
    from scipy.special import ndtr, ndtri

    _check_confidence(confidence)
    n_draws = len(draws)
    below = (draws < estimate).sum(axis=0) + (draws == estimate).sum(axis=0) / 2
    bias: Any = ndtri(np.clip(below / n_draws, 0.5 / n_draws, 1 - 0.5 / n_draws))
    gap = jackknife.mean(axis=0) - jackknife
    spread = (gap**2).sum(axis=0) ** 1.5
    with np.errstate(invalid="ignore", divide="ignore"):
        pull = np.where(spread > 0, (gap**3).sum(axis=0) / (6 * spread), 0.0)
    ends = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = bias + ndtri(tail)
        at = ndtr(bias + z / (1 - pull * z))
        ends.append([np.quantile(draws[:, k], at[k]) for k in range(draws.shape[1])])
    return np.array(ends)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise UsageError(f"confidence={confidence!r} is not between 0 and 1; 0.95 is usual")
