"""Paired tests of all pairs of systems: is a system better than another, or is it chance?

============== ==============================================================================
t              Student's paired t-test, two-tailed, n - 1 degrees of freedom
wilcoxon       Wilcoxon's signed-rank test; zeros are dropped, ties have their mean rank; exact up
               to `EXACT` differences that are not zero, else normal with the variance of ties
randomisation  the sign of every item's difference is random if the systems are equal
               (Fisher's test); p = (b + 1) / (B + 1) of B random signs (Phipson and Smyth 2010)
bootstrap      questions are resampled; p = (b + 1) / (B + 1), b draws whose difference is
               further from the observed one than that is from 0
============== ==============================================================================

Tests treat items as independent. Instances are not fully independent; `Samples.by_cluster` converts
them to questions. The sorted p-values of all pairs show how well a measure separates systems (Sakai
2006; Zhou et al. 2022, section 5.1). They do not show that the differences are right.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from kgtrec import _core
from kgtrec._internal.arguments import (
    MOST_PERMUTATIONS,
    check_count,
    check_seed,
    require_items,
    require_type,
)
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import COMPARING, ROUNDING, Resampled
from kgtrec._internal.table import ShownAsTables, ShownInLines, Table
from kgtrec.errors import InputError, SampleWarning, UsageError, choose
from kgtrec.ranking.kernel import available_cores, share_rows
from kgtrec.study.comparison.samples import Samples, distinct_titles, resample, table_by_measure

TEST_NAMES = {
    "randomisation": "paired randomisation test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "bootstrap": "paired bootstrap test",
}
CORRECTION_NAMES = {
    "holm": "Holm's correction",
    "bh": "Benjamini and Hochberg's correction",
    "bonferroni": "Bonferroni's correction",
    "none": "no correction for the number of pairs",
}
PERMUTATIONS = 100_000
EXACT = 50
ENOUGH = 6
"""Fewest questions with which the exact randomisation test can have p below 0.05: 2 / 2 ** 6."""

_PART = 4096  # permutations per call


@dataclass(frozen=True, eq=False)
class PairTests(ShownInLines):
    """The tests of every pair of systems by a measure.

    - pairs, int64 (p, 2): Indices of both systems.
    - statistic, float64 (p,): t for ``t``. For ``wilcoxon``, the sum of the ranks of positive
      differences minus that of negative ones. Otherwise, the mean difference over items, first
      minus second.
    - p, corrected, float64 (p,): Two-sided p-values, as they are and corrected for the number of
      pairs.
    """

    samples: Samples
    test: str
    correction: str
    pairs: Int64
    statistic: Float64
    p: Float64
    corrected: Float64

    def _lines(self) -> tuple[str, str]:
        differ = int((self.corrected < 0.05).sum())
        return (
            f"{self.samples.name}: {len(self.pairs):,} pairs, {self.test} test",
            f"{differ:,} differ at 0.05, correction {self.correction}",
        )

    def better(self, level: float = 0.05) -> Bools:
        """Return True if system i is significantly better than system j, bool (s, s)."""
        means = self.samples.sign * self.samples.values.mean(axis=0)
        return better_pairs(means, self.pairs, self.corrected, level)


@dataclass(frozen=True, eq=False)
class Effects:
    """The size of the difference of every pair, which p-values do not show.

    - difference, float64 (p,): Value of the first system minus that of the second.
    - d_z, float64 (p,): Mean difference over items, in standard deviations of the differences
      (Cohen 1988); above 0 if the first system is better. It is 0 if all differences are 0, and
      infinite if all equal another number.
    - wins, float64 (p,): Share of items on which the first system is better, plus half of
      the ties; 0.5 means no difference.
    """

    difference: Float64
    d_z: Float64
    wins: Float64


def pairs_of(n_systems: int) -> Int64:
    """Return all pairs i < j, int64 (n (n - 1) / 2, 2)."""
    return np.array(list(combinations(range(n_systems), 2)), np.int64).reshape(-1, 2)


def better_pairs(values: Float64, pairs: Int64, p: Float64, level: float) -> Bools:
    """Return True if system i has a higher value than j, and p is below a level; bool (s, s)."""
    better = np.zeros((len(values),) * 2, bool)
    for i, j in pairs[p < level].tolist():
        better[i, j], better[j, i] = values[i] > values[j], values[j] > values[i]
    return better


def pairwise(
    samples: Samples,
    test: str = "randomisation",
    correction: str = "holm",
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    threads: int | None = None,
    resampled: Resampled | None = None,
) -> PairTests:
    """Test every pair of systems.

    Parameters
    ----------
    samples : Samples
        Samples of at least two items.
    test : {"randomisation", "t", "wilcoxon", "bootstrap"}
    correction : {"holm", "bh", "bonferroni", "none"}
        See `correct_p_values`.
    permutations : int
        Draws of the randomisation test.
    seed : int
        Seed of the randomisation test and the bootstrap; the same seed gives the same p-values.
    threads : int, optional
        Threads of the randomisation test. Every number gives the same p-values.
    resampled : Resampled, optional
        Existing draws for the bootstrap.

    Raises
    ------
    UsageError
        The test or correction is unknown, or there is a single item.
    """
    require_type("samples", samples, Samples, "Samples (study.samples_of_runs)")
    choose("test", test, TEST_NAMES)
    if len(samples) < 2:
        raise UsageError(
            f"{samples.name}: a test needs two or more {samples.unit}, not {len(samples)}"
        )
    pairs = pairs_of(len(samples.systems))
    if test in ("t", "wilcoxon"):
        test_pair = wilcoxon if test == "wilcoxon" else _t_test
        rows = [test_pair(gap) for gap in _gaps(samples.values, pairs)]
        statistic, p = np.array(rows).reshape(-1, 2).T
    elif test == "bootstrap":
        _warn_of_few(samples)
        drawn = resampled or resample(samples, replace(COMPARING, seed=seed))
        statistic = drawn.estimate[pairs[:, 0]] - drawn.estimate[pairs[:, 1]]
        p = p_of_draws(drawn, pairs)
    else:
        statistic = np.array([gap.mean() for gap in _gaps(samples.values, pairs)])
        p = _randomisation_tests(samples.values, pairs, permutations, seed, threads)
    return PairTests(
        samples, test, correction, pairs, statistic, p, correct_p_values(p, correction)
    )


def _warn_of_few(samples: Samples) -> None:
    """Warn if there are so few questions that draws are always near the observed difference."""
    n = samples.n_clusters
    if n < ENOUGH:
        warnings.warn(
            f"{samples.name}: a bootstrap test of {n} questions gives p-values that are far too "
            f"small, as draws of so few differ little; use the randomisation test, whose p is at "
            f"least {2 ** (1 - n):.4g} here, or compare on {ENOUGH} questions or more",
            SampleWarning,
            stacklevel=3,
        )


def correct_p_values(p: Float64, method: str = "holm") -> Float64:
    """Correct the p-values of several tests for their number; float64 (m,) in and out."""
    choose("correction", method, CORRECTION_NAMES)
    p = np.asarray(p, np.float64)
    m = len(p)
    if method == "none" or not m:
        return p.copy()
    if method == "bonferroni":
        return np.minimum(p * m, 1.0)
    order = np.argsort(p, kind="stable")
    if method == "holm":
        stepped = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    else:
        stepped = np.minimum.accumulate((p[order] * m / np.arange(1, m + 1))[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def effects(samples: Samples) -> Effects:
    """Compute the sizes of the differences of all pairs."""
    values = samples.means()
    rows = []
    pairs = pairs_of(len(samples.systems))
    for (i, j), gap in zip(pairs.tolist(), _gaps(samples.values, pairs), strict=True):
        gap = samples.sign * gap
        mean, deviation = gap.mean(), gap.std(ddof=1) if len(gap) > 1 else 0.0
        if deviation <= ROUNDING * np.abs(gap).max():
            d_z = np.copysign(np.inf, mean) if mean else 0.0
        else:
            d_z = mean / deviation
        close = np.abs(gap) <= ROUNDING * np.abs(gap).max()
        wins = np.where(close, 0.5, gap > 0).mean()
        rows.append((values[i] - values[j], d_z, wins))
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    return Effects(*np.ascontiguousarray(columns))


def _gaps(values: Float64, pairs: Int64) -> Iterator[Float64]:
    """Yield the differences of the items' values, float64 (n,), for each pair."""
    for i, j in pairs.tolist():
        yield values[:, i] - values[:, j]


def _t_test(gap: Float64) -> tuple[float, float]:
    """Return t and p of a pair, from the differences of its items."""
    from scipy.special import stdtr

    mean, error = float(gap.mean()), float(gap.std(ddof=1)) / math.sqrt(len(gap))
    t = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    return t, 2 * float(stdtr(len(gap) - 1, -abs(t)))


def wilcoxon(gap: Float64) -> tuple[float, float]:
    """Return the signed rank sum and p of a pair, from the differences of its items."""
    from scipy.special import ndtr

    size = np.abs(gap)
    step = ROUNDING * size.max()
    size, positive = size[size > step], gap[size > step] > 0
    if not len(size):
        return 0.0, 1.0
    twice, counts = _twice_ranks(size, step)
    signed = int(twice[positive].sum() - twice[~positive].sum())
    if len(size) <= EXACT:
        return signed / 2, _exact_tail(twice, abs(signed))
    n = float(len(size))
    variance = n * (n + 1) * (2 * n + 1) / 6 - float((counts**3.0 - counts).sum()) / 12
    return signed / 2, float(2 * ndtr(-abs(signed) / 2 / np.sqrt(variance)))


def _twice_ranks(size: Float64, step: float) -> tuple[Int64, Int64]:
    """Return twice the rank of each size, with ties at their mean, and the size of each tie."""
    order = np.argsort(size, kind="stable")
    group = np.cumsum(np.diff(size[order], prepend=-1.0) > step) - 1
    counts = np.bincount(group)
    last = np.cumsum(counts)
    twice = np.empty(len(size), np.int64)
    twice[order] = (2 * last - counts + 1)[group]
    return twice, counts


def _exact_tail(twice: Int64, least: int) -> float:
    """Return the probability that a rank sum with random signs is at least as far from 0.

    All combinations of signs are counted.
    """
    ways = np.ones(1)
    for rank in twice.tolist():
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] = ways
        longer[rank:] += ways
        ways = longer / 2
    # ways[u]: probability that the positive ranks sum to u / 2, of a total of (len - 1) / 2.
    signed = 2 * np.arange(len(ways)) - (len(ways) - 1)
    return min(1.0, float(ways[np.abs(signed) >= least].sum()))


def _randomisation_tests(
    values: Float64, pairs: Int64, permutations: int, seed: int, threads: int | None
) -> Float64:
    """Return p of every pair, float64 (p,), with the same random signs for all pairs.

    The sum of a pair's differences is the sum of a system minus that of the other, so a column per
    system is enough for all pairs. Values are relative to the first system. Rows on which all
    systems agree are then exactly 0, and are omitted. The error of a sum is less than (rows + 3)
    roundings of the sum of the sizes. Sums so close to the observed one tie with it, and ties count
    against a difference.
    """
    permutations = check_count("permutations", permutations, most=MOST_PERMUTATIONS)
    seed = check_seed(seed)
    relative = values - values[:, :1]
    relative = np.ascontiguousarray(relative[(relative != 0).any(axis=1), 1:])
    if not len(relative):
        return np.ones(len(pairs))
    first, second = (pairs[:, k] for k in (0, 1))

    def gaps(sums: Float64) -> Float64:
        whole = np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)
        return np.asarray(whole[:, first] - whole[:, second])

    size = np.concatenate([[0.0], np.abs(relative).sum(axis=0)])
    slack = (len(relative) + 3) * np.finfo(np.float64).eps * (size[first] + size[second])
    least = np.abs(gaps(relative.sum(axis=0, keepdims=True))[0]) - slack
    starts = range(0, permutations, _PART)
    beyond = np.zeros((len(starts), len(pairs)), np.int64)

    def count(start: int, stop: int) -> None:
        sums = np.empty((stop - start, relative.shape[1]))
        _core.sign_sums(relative, seed, start, sums)
        beyond[start // _PART] = (np.abs(gaps(sums)) >= least).sum(axis=0)

    parts = [(start, min(start + _PART, permutations)) for start in starts]
    share_rows(count, parts, available_cores() if threads is None else threads)
    return (beyond.sum(axis=0) + 1) / (permutations + 1)


def p_of_draws(resampled: Resampled, pairs: Int64) -> Float64:
    """Return p of the pairs (p, 2) of systems by their values on draws, float64 (p,)."""
    values, draws = resampled.estimate, resampled.draws
    first, second = pairs.T
    observed, drawn = values[first] - values[second], draws[:, first] - draws[:, second]
    slack = ROUNDING * np.abs(values).max()
    beyond = (np.abs(drawn - observed) >= np.abs(observed) - slack).sum(axis=0)
    return np.asarray((beyond + 1) / (len(drawn) + 1))


@dataclass(frozen=True, eq=False)
class Discrimination(ShownAsTables):
    """The p-values of all pairs of systems as a curve per measure.

    - p, float64 (m, pairs): Uncorrected p-values, sorted descending.
    - test: Name of the test.
    - correction: Correction for the number of significant pairs; the curves are uncorrected.
    """

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    p: Float64
    test: str
    correction: str = "holm"

    @property
    def area(self) -> Float64:
        """Area under each curve over the share of pairs, float64 (m,): the mean p-value, in (0, 1].

        A smaller area means more discriminative. Indistinguishable systems give 0.5.
        """
        return self.p.mean(axis=1)

    def table(self, level: float = 0.05) -> Table:
        """Return a table with a row per measure, the most discriminative first.

        It has the area and the number of significant pairs.
        """
        areas = self.area.tolist()
        order = sorted(range(len(areas)), key=lambda k: (areas[k], self.measures[k]))
        fixed = np.array([correct_p_values(p, self.correction) for p in self.p])
        counts = [(p < level).sum(axis=1) for p in (self.p, fixed)]
        columns = [
            "measure",
            "area:4",
            f"p < {level:g}=significant",
            f"{self.correction} < {level:g}=significant.corrected",
            "pairs",
        ]
        pairs = [self.p.shape[1]] * len(areas)
        return Table.from_columns(columns, self.titles, areas, *counts, pairs).in_order(order)

    def curves(self) -> Table:
        """Return a table with a column of descending p-values per measure."""
        positions = [(str(position),) for position in range(1, self.p.shape[1] + 1)]
        titles = dict(zip(self.measures, self.titles, strict=True))
        return table_by_measure(("pair",), positions, titles, self.p)


def discriminate(
    samples: Sequence[Samples],
    test: str = "t",
    *,
    correction: str = "holm",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Discrimination:
    """Compute the discriminative power of measures.

    Parameters
    ----------
    samples : sequence of Samples
        Measures of the same systems.
    test, correction, permutations, seed
        As for `kgtrec.study.comparison.significance.pairwise`; the paper uses the t-test.

    Raises
    ------
    InputError
        There are no samples, or they have different systems.
    """
    require_items("samples", samples, Samples, "Samples (study.samples_of_runs)")
    if not samples:
        raise InputError("no measure to compare; give samples of at least one")
    first, *others = samples
    for other in others:
        if other.systems != first.systems:
            raise InputError(
                f"{other.name} and {first.name} have different systems; give the same ones"
            )
    p_values = {}
    for of_measure in samples:
        tests = pairwise(of_measure, test, "none", permutations=permutations, seed=seed)
        p_values[of_measure.name] = tests.p
    titles = [
        of_measure.title
        if of_measure.unit == "queries"
        else f"{of_measure.title} ({of_measure.unit})"
        for of_measure in samples
    ]
    titles = list(distinct_titles(titles, [of_measure.name for of_measure in samples]))
    return discrimination_of(p_values, test, correction=correction, titles=titles)


def discrimination_of(
    p: Mapping[str, ArrayLike],
    test: str = "t",
    *,
    correction: str = "holm",
    titles: Sequence[str] | None = None,
) -> Discrimination:
    """Compute the discriminative power from given p-values, such as published ones.

    `p` has the p-values of all pairs by measure.
    """
    rows = [np.asarray(values, np.float64) for values in p.values()]
    if not rows or len({row.shape for row in rows}) > 1 or rows[0].ndim != 1 or not len(rows[0]):
        raise InputError(
            "the measures have different pairs; give one p-value per pair of systems for each "
            "measure"
        )
    whole = np.array(rows)
    if not ((whole >= 0) & (whole <= 1)).all():
        raise InputError("a p-value is not between 0 and 1; give p-values of tests")
    curves = -np.sort(-whole, axis=1)
    return Discrimination(tuple(p), tuple(titles or p), curves, test, correction)
