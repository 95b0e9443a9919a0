"""Exact expectation of the median rank under a random scorer.

The median is the middle order statistic A of the n ranks, or the midpoint of the middle two. With
N(x) the number of ranks up to x, E[A] = sum over x >= 0 of P(A > x), and the k-th smallest rank
exceeds x if N(x) < k. N(x) is a sum of independent indicators with probabilities min(x / c, 1),
so its distribution follows from its characteristic function, a product over the items:

- Only x for which P(A > x) is neither 0 nor 1 to 1e-19 matter, by Hoeffding's bound (1963).
- Between two neighbouring numbers of candidates, P is smooth in x, so `sums_over` adds it up.
- At high frequencies the characteristic function is below 1e-19, so few frequencies matter.

The variance would need the joint distribution of the two middle ranks if n is even. That has no
such short form if the numbers of candidates differ, so kgtrec has no z-score of the median.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arrays import Float64, Indices, Int64
from kgtrec.measures.random_baseline import Chance, Tally
from kgtrec.measures.ties import sums_over

_NEGLIGIBLE = 45.0  # -ln of a probability that does not change a double
_CELLS = 1 << 19
_MOST_TANGENT = 0.7  # up to here a power series of the logarithms is cheaper than logarithms


def median(items: Tally, parameter: float) -> Chance:
    """Compute the expectation of the median of unweighted ranks.

    The variance is NaN (see the module).
    """
    law = _Law.from_tally(items)
    low, high = law.window()
    first, count, start = _pieces(law, low + 1, high)

    def exceeds(x: Float64, rows: Indices) -> Float64:
        rank, lower = np.broadcast_arrays(x, start[rows])
        return law.exceeds(rank.ravel(), lower.ravel()).reshape(rank.shape)

    return Chance(float(low + 1 + sums_over(exceeds, first, count).sum()), float("nan"))


@dataclass(frozen=True, eq=False)
class _Law:
    """Distribution of independent uniform ranks, by their numbers of candidates.

    - size, float64 (s,): Distinct numbers of candidates, ascending; `count` of each.
    - n: Number of ranks.
    - orders: The order statistics whose mean is the median: one or two numbers k.
    """

    size: Float64
    count: Float64
    n: int
    orders: tuple[int, ...]

    @classmethod
    def from_tally(cls, items: Tally) -> _Law:
        """Count the items by their numbers of candidates only."""
        size, index = np.unique(items.candidates, return_inverse=True)
        count = np.bincount(index.ravel(), items.count).astype(np.float64)
        n = int(count.sum())
        return cls(size, count, n, ((n + 1) // 2,) if n % 2 else (n // 2, n // 2 + 1))

    def mean_up_to(self, x: float) -> float:
        """Return the expected number of ranks up to x."""
        return float((self.count * np.minimum(x / self.size, 1.0)).sum())

    def window(self) -> tuple[int, int]:
        """Return the last rank that is surely below the median, and the first surely not below."""
        top = int(self.size[-1])
        low = _first(lambda x: not self._is_sure(x, below=True), 0, top) - 1
        return low, _first(lambda x: self._is_sure(x, below=False), max(low, 0), top)

    def _is_sure(self, x: int, below: bool) -> bool:
        """Return whether the median surely exceeds x (`below`), or surely does not."""
        certain = self.count[self.size <= x].sum()  # so that an expectation of 1 is exactly 1
        if x == 0 or certain >= self.orders[-1]:
            return below == (x == 0)
        k = self.orders[0] if below else self.orders[-1]
        mean = self.mean_up_to(x)
        if (mean < k) != below:
            return False
        return self.n * _divergence(k / self.n, mean / self.n) > _NEGLIGIBLE

    def exceeds(self, x: Float64, lower: Float64) -> Float64:
        """Compute P(median's order statistic > x), averaged over `orders`, float64 (m,).

        Items with c <= `lower` are surely up to x.
        """
        frequency, weight = self._transform()
        at_once = max(1, _CELLS // max(len(self.size), len(frequency)))
        out = np.empty(len(x))
        for begin in range(0, len(x), at_once):
            part = slice(begin, begin + at_once)
            above = self.size > lower[part, None]
            share = np.where(above, x[part, None] / self.size, 1.0)
            out[part] = self._tail(share, frequency, weight)
        return out

    def _transform(self) -> tuple[Float64, np.ndarray]:
        """Return frequencies t, and the factor of the characteristic function at each.

        Frequency 0 comes first; its factor is computed separately. The period is odd and so long
        that only values with a negligible probability alias.
        """
        reach = int(2 * np.sqrt(_NEGLIGIBLE / 2 * self.n)) + 2
        whole = 2 * reach >= self.n
        period = (self.n + 1) | 1 if whole else 2 * reach + 1
        t = 2 * np.pi * np.arange(1, (period + 1) // 2) / period
        factor = np.zeros(len(t), complex)
        for k in self.orders:
            length = k if whole else reach
            ends = np.exp(-1j * t * (k - length)) - np.exp(-1j * t * k)
            factor += ends / (1 - np.exp(-1j * t)) / len(self.orders)
        constant = np.mean([k if whole else reach for k in self.orders])
        return np.append(0.0, t), np.append(constant, 2 * factor) / period

    def _tail(self, share: Float64, t: Float64, factor: np.ndarray) -> Float64:
        """Sum the factors times the characteristic function, for each row of `share`."""
        variance = ((share * (1 - share)) @ self.count).min()
        kept = 2 * variance * np.sin(t / 2) ** 2 <= _NEGLIGIBLE
        t, factor = t[kept], factor[kept]
        tangent = np.tan(t / 2)
        if tangent[-1] <= _MOST_TANGENT:
            exponent = self._series(share, t, tangent)
        else:
            exponent = np.zeros((len(share), len(t)), complex)
            step = np.expm1(1j * t)
            for column, count in zip(share.T, self.count, strict=True):
                exponent += count * np.log1p(column[:, None] * step)
        return np.asarray((np.exp(exponent) @ factor).real)

    def _series(self, share: Float64, t: Float64, tangent: Float64) -> np.ndarray:
        """Expand the logarithm of the characteristic function in powers around the probability 1/2.

        1 + p (e^it - 1) = (1 + e^it) / 2 (1 + (2p - 1) i tan(t / 2)).
        """
        offset = 2 * share - 1
        terms = 1
        if tangent[-1] > 0:
            terms += int((_NEGLIGIBLE + np.log(self.n)) / -np.log(tangent[-1]))
        power, sums = np.ones_like(offset), np.empty((len(share), terms))
        for m in range(terms):
            power *= offset
            sums[:, m] = power @ self.count
        number = np.arange(1, terms + 1)[:, None]
        series = -((-1j * tangent) ** number) / number
        return self.n * np.log((1 + np.exp(1j * t)) / 2) + sums @ series


def _pieces(law: _Law, low: int, high: int) -> tuple[Int64, Int64, Float64]:
    """Divide low .. high - 1 into ranges in which P(A > x) is smooth: first, count and `lower`.

    They end at every number of candidates, and after about a standard deviation of N(x).
    """
    inside = law.size[(law.size > low) & (law.size < high)]
    ends = np.unique([low, *inside.astype(np.int64).tolist(), high])
    first = []
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        gained = law.mean_up_to(end) - law.mean_up_to(begin)
        parts = int(min(end - begin, 1 + gained / (1 + np.sqrt(law.n) / 2)))
        first += [begin + (end - begin) * i // parts for i in range(parts)]
    starts = np.array(first, np.int64)
    return starts, np.diff(starts, append=high), starts.astype(np.float64)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Find the least number in low .. high for which a condition holds.

    If it holds for a number, it must hold for all larger ones.
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _divergence(p: float, q: float) -> float:
    """Compute the Kullback-Leibler divergence of two coins: Hoeffding's exponent."""
    parts = ((p, q), (1 - p, 1 - q))
    return sum(a * np.log(a / b) if b > 0 else np.inf for a, b in parts if a > 0)
