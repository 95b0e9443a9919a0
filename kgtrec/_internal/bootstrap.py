"""The bootstrap (Efron 1979): how much would means change with other queries or questions?

It draws as many whole clusters as there are, with replacement. A cluster is a query, or a question
with all of its items. The items of one question are dependent, so drawing them singly would give
too narrow intervals. Every measure and every system uses the same draws.

Intervals of ``kgtrec eval`` and of differences of two systems are percentiles (`ratio_intervals`).
They are nearly symmetric, so a correction would only add noise, and lose coverage with heavy tails
(88 against 93 of 95 % in a simulation of 80 questions). Values of ranks have bias-corrected and
accelerated intervals (BCa; Efron 1987). Percentile intervals miss on one side if values are
skewed, as MR by its few deep ranks, or near an end of their range, as Hits@1. BCa corrects both to
the second order. It costs no more here, because a jackknife over clusters is one subtraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_seed, random_generator, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.threads import available_cores, share_rows
from kgtrec.errors import UsageError

_BLOCK = 50  # draws whose weights are in memory together
_WEIGHTS_AT_A_TIME = 1 << 22
_COUNTED_AT_A_TIME = 1 << 14
ROUNDING = 1e-12
"""Share of the largest value: two values that are closer count as equal."""
_EXACT_BITS = 52  # of a float64: sums of whole numbers below 2**53 are exact in any order of terms


@dataclass(frozen=True)
class Resampling:
    """Settings of bootstrap intervals.

    Parameters
    ----------
    percent : float
        Confidence of the intervals, 1 to 99.9.
    resamples : int
        Number of draws of all queries or questions, 100 to 1,000,000.
    seed : int
        Seed of the draws, 0 or more; the same seed gives the same bits.

    Raises
    ------
    UsageError
        A value out of its range.
    """

    percent: float = 95.0
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        require_type("percent", self.percent, Real, "a number")
        require_type("resamples", self.resamples, Real, "a number")
        if not 1 <= self.percent <= 99.9:
            example = f"; write {self.percent * 100:g}" if 0.5 <= self.percent < 1 else ""
            raise UsageError(
                f"{argument('percent', self.percent, option='ci')} is not a confidence in percent; "
                f"it must be 1 to 99.9{example}"
            )
        if not 100 <= self.resamples <= 1_000_000:
            raise UsageError(
                f"the number of resamples is {self.resamples}; it must be 100 to 1,000,000"
            )
        check_seed(self.seed)

    @property
    def name(self) -> str:
        """Name in keys, such as ``ci95`` or ``ci99.9``."""
        return f"ci{self.percent:g}"

    @property
    def tails(self) -> tuple[float, float]:
        """Shares of the draws below the two ends of a percentile interval."""
        tail = (100.0 - self.percent) / 200.0
        return tail, 1 - tail

    def columns(self, digits: int, keys: str = "") -> tuple[str, str]:
        """Return the two ends as columns of `Table.from_rows`; `keys` begins their keys."""
        return f"{self.percent:g}% from={keys}low:{digits}", f"to={keys}high:{digits}"


COMPARING = Resampling(resamples=5_000)
"""Default settings of studies that compare systems."""


def _draw_sums(
    columns: Float64, draws: int, generator: Callable[[int], np.random.Generator], threads: int
) -> Float64:
    """Draw n of the n rows with replacement, and sum them; float64 (draws, c) of rows (n, c).

    `generator` returns the random generator of the block that begins at a draw. Threads may share
    blocks only if every block has its own generator.
    """
    n = len(columns)
    sums = np.empty((draws, columns.shape[1]))
    by_column = np.ascontiguousarray(columns.T)

    def fill(first: int, stop: int) -> None:
        times = _times_drawn(generator(first), stop - first, n, np.uint32)
        # No BLAS: its threads and ours would wait for one another.
        sums[first:stop] = np.einsum("ij,kj->ik", times, by_column)

    blocks = [(first, min(first + _BLOCK, draws)) for first in range(0, draws, _BLOCK)]
    share_rows(fill, blocks, threads)
    return sums


def _times_drawn(random: np.random.Generator, draws: int, n: int, kind: Any) -> Float64:
    """Draw n of n rows with replacement; return how often each draw has each row, (draws, n).

    The type of integers decides which numbers a seed gives. Few rows are counted for many draws in
    one call, which takes as long as one draw alone.
    """
    times = np.empty((draws, n))
    step = max(1, _COUNTED_AT_A_TIME // max(1, n))
    for first in range(0, draws, step):
        some = times[first : first + step]
        rows = random.integers(0, n, some.shape, dtype=kind) + n * np.arange(len(some))[:, None]
        some[:] = np.bincount(rows.ravel(), minlength=some.size).reshape(some.shape)
    return times


# -- Quotients of sums over queries --------------------------------------------------------------


def ratio_intervals(
    numerators: Sequence[Float64], denominators: Sequence[Float64 | None], how: Resampling
) -> Float64:
    """Return intervals of ``sum of numerators / sum of denominators`` over queries.

    Shapes: numerators and denominators, float64 (n_queries,) each -> float64 (n_ratios, 2).
    """
    if not numerators or not len(numerators[0]):
        return np.full((len(numerators), 2), np.nan)
    distinct = {id(part): part for part in (*numerators, *denominators) if part is not None}
    column_of = {key: number for number, key in enumerate(distinct)}
    columns = np.stack([*distinct.values()], axis=1).astype(np.float64)
    finite = np.isfinite(columns).all(axis=0)
    whole, scale = _whole_multiples(np.where(finite, columns, 0.0))
    random = random_generator(how.seed)
    totals = _draw_sums(whole, how.resamples, lambda _first: random, threads=1) / scale
    totals[:, ~finite] = np.nan
    n_queries = float(len(columns))
    ends = np.empty((len(numerators), 2))
    for row, (numerator, denominator) in enumerate(zip(numerators, denominators, strict=True)):
        above = totals[:, column_of[id(numerator)]]
        below = n_queries if denominator is None else totals[:, column_of[id(denominator)]]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = above / below
        if denominator is not None:  # ignore draws without an answer
            ratios = ratios[totals[:, column_of[id(denominator)]] > 0]
        ends[row] = np.quantile(ratios, how.tails) if len(ratios) else np.nan
    return ends


def _whole_multiples(columns: Float64) -> tuple[Float64, Float64]:
    """Return columns as whole multiples of units, and the units' scale.

    Units are so small that the sum over any draw is just below 2**53.
    """
    most = np.abs(columns).max(axis=0)
    _, exponent = np.frexp(np.where(most > 0, most, 1.0))
    _, bits = np.frexp(float(len(columns)))
    scale = np.ldexp(1.0, _EXACT_BITS - exponent - int(bits))
    return np.rint(columns * scale), scale


# -- Values that are not means ---------------------------------------------------------------------


def on_draws(
    values: Callable[[Float64], Float64], n_clusters: int, how: Resampling, items: int = 1
) -> Float64:
    """Return the values of a function for all draws, a row per draw.

    It receives some draws at a time: how often each draw has each cluster, (draws, n_clusters).
    `items` is the number of columns that it computes from them.
    """
    random = random_generator(how.seed)
    step = max(1, _WEIGHTS_AT_A_TIME // max(items, n_clusters))
    sizes = [min(step, how.resamples - first) for first in range(0, how.resamples, step)]
    return np.concatenate([values(_times_drawn(random, n, n_clusters, np.int64)) for n in sizes])


def over_runs(runs: Float64, random: np.random.Generator) -> Float64:
    """Draw n of the n runs of each row of (B, n) with replacement; return their means (B,)."""
    chosen = random.integers(0, runs.shape[1], runs.shape)
    return np.asarray(np.take_along_axis(runs, chosen, axis=1).mean(axis=1))


def percentile_interval(draws: Float64, how: Resampling) -> Float64:
    """Return the low and the high end of each column of draws (B, k), float64 (k, 2).

    NaN if fewer than half of the draws have a value.
    """
    ends = np.full((draws.shape[1], 2), np.nan)
    for column, values in enumerate(draws.T):
        known = values[~np.isnan(values)]
        if 2 * len(known) >= len(values):
            ends[column] = np.quantile(known, how.tails)
    return ends


# -- Means of systems over clustered items ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Resampled:
    """Values of the systems, and their values on other draws of the questions.

    - draws, float64 (B, s): On each draw of as many clusters; ``estimate`` (s,) has no draw.
    - jackknife, float64 (clusters, s): Without each cluster in turn; None if runs are drawn, too.
    - resampling: The number of draws, and the confidence of intervals.
    """

    estimate: Float64
    draws: Float64
    jackknife: Float64 | None
    resampling: Resampling = COMPARING

    def interval(self) -> Float64:
        """Return BCa intervals of the values, float64 (2, s); percentiles without a jackknife."""
        if self.jackknife is None:
            return np.asarray(np.quantile(self.draws, self.resampling.tails, axis=0))
        from scipy.special import ndtr, ndtri

        n_draws, draws = len(self.draws), self.draws
        # A draw of the same values in another order has the same mean, but for its last bits.
        slack = ROUNDING * np.maximum(np.abs(self.estimate), np.abs(draws).max(axis=0))
        lower, higher = draws < self.estimate - slack, draws > self.estimate + slack
        below = (n_draws + lower.sum(axis=0) - higher.sum(axis=0)) / 2  # ties count half
        bias: Any = ndtri(np.clip(below / n_draws, 0.5 / n_draws, 1 - 0.5 / n_draws))
        gap = self.jackknife.mean(axis=0) - self.jackknife
        spread = (gap**2).sum(axis=0) ** 1.5
        with np.errstate(invalid="ignore", divide="ignore"):
            pull = np.where(spread > 0, (gap**3).sum(axis=0) / (6 * spread), 0.0)
        ends = []
        for tail in self.resampling.tails:
            z = bias + ndtri(tail)
            at = ndtr(bias + z / (1 - pull * z))
            ends.append([np.quantile(draws[:, k], at[k]) for k in range(draws.shape[1])])
        return np.array(ends)

    def difference_interval(self, pairs: Int64) -> Float64:
        """Return percentile intervals of differences of pairs (p, 2) of systems, float64 (2, p)."""
        gaps = self.draws[:, pairs[:, 0]] - self.draws[:, pairs[:, 1]]
        return np.asarray(np.quantile(gaps, self.resampling.tails, axis=0))


def resample_means(
    values: Float64,
    cluster: Int64,
    transform: Callable[[Float64], Float64],
    how: Resampling,
    weight: Float64 | None = None,
) -> Resampled:
    """Resample the means of values (n, s) by clusters, which are numbered without gaps.

    `transform` turns means into values of a measure. `weight` (n,): factors in the values, with a
    mean of 1. One seed gives the same bits for any number of threads.
    """
    shares = np.ones(len(values)) if weight is None else weight
    sums = cluster_sums(np.column_stack([values, shares]), cluster)
    drawn = _draw_sums(
        sums, how.resamples, lambda at: random_generator(how.seed, at), available_cores()
    )
    left = sums.sum(axis=0) - sums
    return Resampled(
        transform(values.mean(axis=0)),
        transform(drawn[:, :-1] / drawn[:, -1:]),
        transform(left[:, :-1] / left[:, -1:]),
        how,
    )


def cluster_sums(values: Float64, cluster: Int64) -> Float64:
    """Sum the rows of each cluster; float64 (clusters, columns)."""
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))
