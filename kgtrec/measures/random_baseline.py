"""Exact expectations and variances of the metrics under a random scorer.

Each rank is uniform on 1 .. c, independently, where c is the item's number of candidates. Items
with equal c and weight are counted first, so the cost depends on the distinct numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.arrays import Array, Float64, Indices
from kgtrec.errors import InputError
from kgtrec.measures.ties import expected_reciprocal, sums_over


class Chance(NamedTuple):
    """Expectation and variance of a metric under a random scorer."""

    mean: float
    variance: float


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct pairs of (candidates, weight), ascending by weight first, and their counts."""

    candidates: Float64
    weight: Float64
    count: Float64

    @classmethod
    def from_items(cls, candidates: ArrayLike, weight: ArrayLike | None = None) -> Tally:
        """Count the items with equal numbers of candidates and equal weights."""
        numbers = np.asarray(candidates)
        _check(numbers, weight)
        if weight is None:
            sizes, count = np.unique(numbers, return_counts=True)
            return cls(sizes.astype(np.float64), np.ones(len(sizes)), count.astype(np.float64))
        sizes, size_index = np.unique(numbers, return_inverse=True)
        weights, weight_index = np.unique(np.asarray(weight, np.float64), return_inverse=True)
        code, count = np.unique(
            weight_index * np.int64(len(sizes)) + size_index, return_counts=True
        )
        pairs = sizes[code % len(sizes)], weights[code // len(sizes)], count
        return cls(*(column.astype(np.float64) for column in pairs))

    def mean(self, per_item: Float64) -> float:
        """Average one value per pair, by weight and count."""
        weights = self.count * self.weight
        # Both sums add in the same order, so the mean of ones is exactly 1.
        return float((weights * per_item).sum() / weights.sum())

    def variance_of_mean(self, per_item: Float64) -> float:
        """Compute the variance of the weighted mean of independent items from their variances."""
        total = (self.count * self.weight).sum()
        return float((self.count * (self.weight / total) ** 2 * per_item).sum())


def _check(numbers: Array, weight: ArrayLike | None) -> None:
    """Refuse numbers of candidates and weights that do not fit; see `random_scorer`."""
    if numbers.ndim != 1 or not len(numbers):
        raise InputError(f"candidates has shape {numbers.shape}; give one number per item")
    if not np.all(numbers >= 1):
        raise InputError(
            f"candidates contains {numbers.min()}; the answer is a candidate, so give 1 or more"
        )
    if weight is None:
        return
    weights = np.asarray(weight, np.float64)
    if weights.shape != numbers.shape:
        raise InputError(
            f"weight has shape {weights.shape}; candidates has {numbers.shape}; give one per item"
        )
    if not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
        raise InputError("weights must be 0 or more, finite, and not all of them 0")


ChanceOf = Callable[[Tally, float], Chance]


def mean_rank(items: Tally, parameter: float) -> Chance:
    """Compute the chance level of the rank: (c + 1) / 2 and (c^2 - 1) / 12."""
    c = items.candidates
    return Chance(items.mean((c + 1) / 2), items.variance_of_mean((c * c - 1) / 12))


def reciprocal(items: Tally, parameter: float) -> Chance:
    """Compute the chance level of 1 / rank: H(c) / c and (c H2(c) - H(c)^2) / c^2.

    H and H2 are harmonic numbers of order 1 and 2.
    """
    c = items.candidates
    whole = c.astype(np.int64)
    mean = expected_reciprocal(np.zeros_like(whole), whole, np.ones_like(whole))
    square = sums_over(lambda x, rows: x**-2.0, np.ones_like(whole), whole) / c
    return Chance(items.mean(mean), items.variance_of_mean(square - mean * mean))


def reciprocal_continuous(items: Tally, parameter: float) -> Chance:
    """Compute ln c / (c - 1), as if ranks were real numbers; the variance is the exact one."""
    c = items.candidates
    above = np.maximum(c - 1, 0.5)
    mean = np.where(c > 1, np.log1p(c - 1) / above, 1.0)
    return Chance(items.mean(mean), reciprocal(items, parameter).variance)


def reciprocal_log(items: Tally, parameter: float) -> Chance:
    """Compute the chance level of 1 / log2(r + 1), for r uniform on 1 .. c."""
    return _smooth(items, lambda rank: np.asarray(1.0 / np.log2(rank + 1.0)))


def power(items: Tally, p: float) -> Chance:
    """Compute the chance level of r^-p, for r uniform on 1 .. c."""
    return _smooth(items, lambda rank: rank**-p)


def _smooth(items: Tally, f: Callable[[Float64], Float64]) -> Chance:
    """Compute the chance level of a smooth function f of the rank."""
    whole = items.candidates.astype(np.int64)
    first = np.ones_like(whole)
    mean = sums_over(lambda x, rows: f(x), first, whole) / items.candidates

    def square_off_mean(x: Float64, rows: Indices) -> Float64:
        return np.asarray((f(x) - mean[rows]) ** 2)  # around the mean, to avoid cancellation

    spread = sums_over(square_off_mean, first, whole) / items.candidates
    return Chance(items.mean(mean), items.variance_of_mean(spread))


def hits(items: Tally, k: float) -> Chance:
    """Compute the chance level of Hits@k: p = min(k / c, 1) and p (1 - p)."""
    p = np.minimum(k / items.candidates, 1.0)
    return Chance(items.mean(p), items.variance_of_mean(p * (1 - p)))


def geometric(items: Tally, parameter: float) -> Chance:
    """Compute the chance level of the geometric mean rank.

    It is a product of r^t with t = w / W over the items. With y = r^t - 1 = expm1(t ln r), E[r^t] =
    1 + E[y], and E[r^2t] / E[r^t]^2 is 1 + Var[y] / (1 + E[y])^2: small numbers stay small, and
    nothing cancels.
    """
    c = items.candidates
    power = (items.weight / (items.count * items.weight).sum())[:, None]
    whole = c.astype(np.int64)
    ones = np.ones_like(whole)

    def above_one(x: Float64, rows: Indices) -> Float64:
        return np.asarray(np.expm1(power[rows[:, 0]] * np.log(x)))

    first = sums_over(above_one, ones, whole) / c
    second = sums_over(lambda x, rows: above_one(x, rows) ** 2, ones, whole) / c
    spread = np.maximum(second - first * first, 0.0) / (1 + first) ** 2
    log_mean = (items.count * np.log1p(first)).sum()
    log_spread = (items.count * np.log1p(spread)).sum()
    return Chance(float(np.exp(log_mean)), float(np.exp(2 * log_mean) * np.expm1(log_spread)))
