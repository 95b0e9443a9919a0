"""Confidence intervals of means over queries: the percentile bootstrap (Efron 1979).

Queries are drawn with replacement, as many as there are; the interval lies between two quantiles
of what the draws give. Every metric, and every run of the same queries, sees the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError

__all__ = ["Resampling", "ratio_intervals"]

Floats = NDArray[np.float64]

_DRAWN_AT_A_TIME = 4_000_000
_EXACT_BITS = 52  # of a float64: sums of whole numbers below 2**53 are exact in any order


@dataclass(frozen=True)
class Resampling:
    """How intervals are made.

    Attributes
    ----------
    percent : float
        Confidence, 1 to 99.9.
    resamples : int
        Draws of all queries, 100 or more.
    seed : int
        Of the random numbers, 0 or more.

    Raises
    ------
    UsageError
        If one of them is out of range.
    """

    percent: float = 95.0
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.percent <= 99.9:
            raise UsageError(f"the confidence (--ci) is {self.percent:g}; it must be 1 to 99.9")
        if not 100 <= self.resamples <= 1_000_000:
            raise UsageError(
                f"the number of resamples is {self.resamples}; it must be 100 to 1,000,000"
            )
        if self.seed < 0:
            raise UsageError(f"the seed is {self.seed}; it must be 0 or more")

    @property
    def name(self) -> str:
        """``ci95``, ``ci99.9``."""
        return f"ci{self.percent:g}"


def ratio_intervals(
    numerators: Sequence[Floats], denominators: Sequence[Floats | None], how: Resampling
) -> Floats:
    """Ends of the intervals of ``sum of numerators / sum of denominators`` over queries.

    Parameters
    ----------
    numerators : sequence of ndarray of float64, shape (n_queries,)
    denominators : sequence of (ndarray of float64, shape (n_queries,), or None)
        None for a mean: 1 for every query.
    how : Resampling

    Returns
    -------
    ndarray of float64, shape (n_ratios, 2)
        Low and high; NaN where a value is not finite, or most draws have nothing to divide by.
        The same bits on every machine: sums are taken over whole multiples of a power of two, by
        which values are rounded at about 1e-11 of the largest.
    """
    if not numerators or not len(numerators[0]):
        return np.full((len(numerators), 2), np.nan)
    distinct = {id(part): part for part in (*numerators, *denominators) if part is not None}
    place = {key: number for number, key in enumerate(distinct)}
    columns = np.stack([*distinct.values()], axis=1).astype(np.float64)
    totals = _drawn_totals(columns, how)
    n_queries = float(len(columns))
    tail = (100.0 - how.percent) / 200.0
    ends = np.empty((len(numerators), 2))
    for row, (numerator, denominator) in enumerate(zip(numerators, denominators, strict=True)):
        above = totals[:, place[id(numerator)]]
        below = n_queries if denominator is None else totals[:, place[id(denominator)]]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = above / below
        if denominator is not None:  # draws without an answer say nothing
            ratios = ratios[totals[:, place[id(denominator)]] > 0]
        ends[row] = np.quantile(ratios, (tail, 1 - tail)) if len(ratios) else np.nan
    return ends


def _drawn_totals(columns: Floats, how: Resampling) -> Floats:
    """Sum of every column over the queries of each draw, shape (resamples, n_columns)."""
    n_queries = len(columns)
    finite = np.isfinite(columns).all(axis=0)
    whole, scale = _whole_multiples(np.where(finite, columns, 0.0))
    random = np.random.default_rng(how.seed)
    totals = np.empty((how.resamples, columns.shape[1]))
    at_once = max(1, _DRAWN_AT_A_TIME // n_queries)
    for start in range(0, how.resamples, at_once):
        stop = min(start + at_once, how.resamples)
        totals[start:stop] = _counts(random, stop - start, n_queries) @ whole
    totals = totals / scale
    totals[:, ~finite] = np.nan
    return totals


def _whole_multiples(columns: Floats) -> tuple[Floats, Floats]:
    """The columns in units so small that the sum over any draw is just below 2**53."""
    most = np.abs(columns).max(axis=0)
    _, exponent = np.frexp(np.where(most > 0, most, 1.0))
    _, bits = np.frexp(float(len(columns)))
    scale = np.ldexp(1.0, _EXACT_BITS - exponent - int(bits))
    return np.rint(columns * scale), scale


def _counts(random: np.random.Generator, n_draws: int, n_queries: int) -> NDArray[np.float64]:
    """How often each draw takes each query, shape (n_draws, n_queries)."""
    chosen = random.integers(0, n_queries, (n_draws, n_queries), dtype=np.int32)
    rows = np.arange(n_draws, dtype=np.int64)[:, None] * n_queries
    flat = np.bincount((rows + chosen).reshape(-1), minlength=n_draws * n_queries)
    return flat.reshape(n_draws, n_queries).astype(np.float64)
