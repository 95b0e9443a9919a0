"""Order statistics and spread of ranks: median, median absolute deviation, variance.

Under ties, ``expected`` medians are those of the pooled ranks: every item's weight is spread evenly
over the ranks that its tie allows. The variance is the exact expectation over all ways to break the
ties, each independently.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.metric import Moments
from kgtrec.measures.tied_ranks import Ranked

__all__ = ["TO_DEVIATION", "deviation", "median", "median_deviation", "variance"]

Floats = NDArray[np.float64]

TO_DEVIATION = 1.482602218505602
"""1 / (third quartile of the standard normal): makes the MAD of normal values their deviation."""
_ROUNDING = 1e-12


def median(moments: Moments) -> Floats:
    """Median rank per group."""
    expected = moments.rank_type == "expected"
    return np.array(
        [
            _pooled_median(ties, weight) / 4 if expected
            else _median(_ranks(ties, moments.rank_type), weight)
            for ties, weight in moments.items()
        ]
    )  # fmt: skip


def median_deviation(moments: Moments) -> Floats:
    """Median absolute deviation from the median rank, times `TO_DEVIATION`."""
    deviations = []
    for ties, weight in moments.items():
        if moments.rank_type == "expected":
            middle = int(_pooled_median(ties, weight))
            deviations.append(_pooled_median(ties, weight, around=middle) / 4)
        else:
            ranks = _ranks(ties, moments.rank_type)
            deviations.append(_median(np.abs(ranks - _median(ranks, weight)), weight))
    return TO_DEVIATION * np.array(deviations)


def variance(moments: Moments) -> Floats:
    """Variance of the ranks, divided by the sum of the weights (not by n - 1)."""
    variances = []
    for ties, weight in moments.items():
        shares = np.full(len(ties), 1 / len(ties)) if weight is None else weight / weight.sum()
        ranks = _ranks(ties, moments.rank_type)
        value = (shares * (ranks - (shares * ranks).sum()) ** 2).sum()
        if moments.rank_type == "expected":
            value += (shares * (1 - shares) * ties.variance()).sum()
        variances.append(value)
    return np.array(variances)


def deviation(moments: Moments) -> Floats:
    """Square root of the variance."""
    return np.asarray(np.sqrt(variance(moments)))


def _ranks(ties: Ranked, rank_type: str) -> Floats:
    scaled, scale = ties.ranks(rank_type)
    return np.asarray(scaled / scale)


def _median(values: Floats, weight: Floats | None) -> float:
    """Least value with half of the weight up to it; midpoint with the next at exactly half."""
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    half = share[-1] / 2
    low, high = (
        np.searchsorted(share, half * (1 + side * _ROUNDING), side="left") for side in (-1, 1)
    )
    return float(values[order[low]] + values[order[high]]) / 2


def _pooled_median(ties: Ranked, weight: Floats | None, around: int | None = None) -> float:
    """Median of the pooled ranks, or of their distance from `around`; in quarters of a rank."""
    weights = np.ones(len(ties)) if weight is None else weight
    total = weights.sum()

    def share(quarters: int) -> float:
        if around is None:
            inside = ties.share_within(quarters)
        else:
            inside = ties.share_within(around + quarters)
            inside = inside - ties.share_within(around - quarters - 1)
        return float((weights * inside).sum() / total)

    scaled, scale = ties.ranks("pessimistic")
    top = int(scaled.max()) * 4 // scale
    low, high = (_first(share, 0.5 + side * _ROUNDING, top) for side in (-1, 1))
    return (low + high) / 2


def _first(share: Callable[[int], float], least: float, top: int) -> int:
    """Least number in 0 .. top whose share reaches `least`."""
    low, high = 0, top
    while low < high:
        middle = (low + high) // 2
        if share(middle) >= least:
            high = middle
        else:
            low = middle + 1
    return low
