"""Is one system better than another, or is it the questions? Paired tests of all pairs of systems.

============== ==============================================================================
t              Student's paired t-test, two-tailed, n - 1 degrees of freedom
wilcoxon       Wilcoxon's signed-rank test; zeros dropped, ties at their mean rank; exact up to
               `EXACT` differences that are not zero, else normal with the variance of ties
randomisation  the sign of every item's difference is random if the systems are equal
               (Fisher's test); p = (b + 1) / (B + 1) of B random signs (Phipson and Smyth 2010)
bootstrap      questions are resampled; p = (b + 1) / (B + 1), b draws whose difference is
               further from the observed one than that is from 0
============== ==============================================================================

Tests treat items as independent. Instances are not quite; `Samples.by_cluster` turns them into
questions. The sorted p-values of all pairs show how well a measure separates systems (Sakai 2006;
Zhou et al. 2022, section 5.1), not whether the differences are right.
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
from kgtrec._internal.arguments import MOST_PERMUTATIONS, check_count, check_seed
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
"""Questions from which the exact randomisation test can have p below 0.05: 2 of 2 ** 6 signs."""

_PART = 4096  # permutations of one call


@dataclass(frozen=True, eq=False)
class PairTests(ShownInLines):
    """A test of every pair of systems by one measure.

    - pairs, int64 (p, 2): Places of both systems.
    - statistic, float64 (p,): t for ``t``; for ``wilcoxon`` the sum of the ranks of positive
      differences minus that of negative ones; otherwise the mean difference over items, first minus
      second.
    - p, corrected, float64 (p,): Two-sided; and corrected for the number of pairs.
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
        """Whether each system is significantly better than each other, bool (s, s)."""
        means = self.samples.sign * self.samples.values.mean(axis=0)
        return better_pairs(means, self.pairs, self.corrected, level)


@dataclass(frozen=True, eq=False)
class Effects:
    """The size of the difference of every pair, which p-values do not show.

    - difference, float64 (p,): Value of the first system minus that of the second.
    - d_z, float64 (p,): Mean difference over items, in standard deviations of the differences
      (Cohen 1988), above 0 if the first is better; 0 if all are 0, infinite if all equal another
      number.
    - superiority, float64 (p,): Share of items on which the first system is better, plus half of
      the ties; 0.5: no difference.
    """

    difference: Float64
    d_z: Float64
    superiority: Float64


def pairs_of(n_systems: int) -> Int64:
    """All pairs i < j, int64 (n (n - 1) / 2, 2)."""
    return np.array(list(combinations(range(n_systems), 2)), np.int64).reshape(-1, 2)


def better_pairs(values: Float64, pairs: Int64, p: Float64, level: float) -> Bools:
    """Whether p is below a level and the first system has the higher value, bool (s, s)."""
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
        See `corrected`.
    permutations : int
        Draws of the randomisation test.
    seed : int
        Seed of the randomisation test and the bootstrap; the same seed gives the same p-values.
    threads : int, optional
        For the randomisation test. Any number gives the same p-values.
    resampled : Resampled, optional
        Existing draws for the bootstrap.

    Raises
    ------
    UsageError
        No such test or correction, or one item only.
    """
    choose("test", test, TEST_NAMES)
    if len(samples) < 2:
        raise UsageError(
            f"{samples.name}: a test needs two or more {samples.unit}, not {len(samples)}"
        )
    pairs = pairs_of(len(samples.systems))
    if test in ("t", "wilcoxon"):
        of_one = wilcoxon if test == "wilcoxon" else _t_test
        rows = [of_one(gap) for gap in _gaps(samples.values, pairs)]
        statistic, p = np.array(rows).reshape(-1, 2).T
    elif test == "bootstrap":
        _warn_of_few(samples)
        drawn = resampled or resample(samples, replace(COMPARING, seed=seed))
        statistic = drawn.estimate[pairs[:, 0]] - drawn.estimate[pairs[:, 1]]
        p = p_of_draws(drawn, pairs)
    else:
        statistic = np.array([gap.mean() for gap in _gaps(samples.values, pairs)])
        p = _randomisation_tests(samples.values, pairs, permutations, seed, threads)
    return PairTests(samples, test, correction, pairs, statistic, p, corrected(p, correction))


def _warn_of_few(samples: Samples) -> None:
    """Warn if draws of so few questions cannot be far from the observed difference."""
    n = samples.n_clusters
    if n < ENOUGH:
        warnings.warn(
            f"{samples.name}: a bootstrap test of {n} questions gives p-values that are far too "
            f"small, as draws of so few differ little; use the randomisation test, whose p is at "
            f"least {2 ** (1 - n):.4g} here, or compare on {ENOUGH} questions or more",
            SampleWarning,
            stacklevel=3,
        )


def corrected(p: Float64, method: str = "holm") -> Float64:
    """p-values of several tests, corrected for their number.

    Shapes: p float64 (m,) -> float64 (m,).
    """
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
    """Sizes of the differences of all pairs."""
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
        superiority = np.where(close, 0.5, gap > 0).mean()
        rows.append((values[i] - values[j], d_z, superiority))
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    return Effects(*np.ascontiguousarray(columns))


def _gaps(values: Float64, pairs: Int64) -> Iterator[Float64]:
    """Differences of the items' values, pair by pair."""
    for i, j in pairs.tolist():
        yield values[:, i] - values[:, j]


def _t_test(gap: Float64) -> tuple[float, float]:
    """t and p of one pair."""
    from scipy.special import stdtr

    mean, error = float(gap.mean()), float(gap.std(ddof=1)) / math.sqrt(len(gap))
    t = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    return t, 2 * float(stdtr(len(gap) - 1, -abs(t)))


def wilcoxon(gap: Float64) -> tuple[float, float]:
    """Signed rank sum and p of one pair."""
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
    """Twice the rank of each size, ties at the mean; and how many each tie holds."""
    order = np.argsort(size, kind="stable")
    group = np.cumsum(np.diff(size[order], prepend=-1.0) > step) - 1
    counts = np.bincount(group)
    last = np.cumsum(counts)
    twice = np.empty(len(size), np.int64)
    twice[order] = (2 * last - counts + 1)[group]
    return twice, counts


def _exact_tail(twice: Int64, least: int) -> float:
    """Probability that the rank sum under random signs is as far from 0, by counting all signs."""
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
    """p of every pair under the same random signs.

    The sum of a pair's differences is one system's sum minus the other's, so one column per system
    serves all pairs. Values are relative to the first system: rows on which all systems agree are
    exactly 0, and are omitted. A sum is off by less than (rows + 3) roundings of the sum of the
    sizes. Sums that close to the observed one tie with it, and ties count against a difference.
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
    """p of the pairs (p, 2) of systems by their values on draws, float64 (p,)."""
    values, draws = resampled.estimate, resampled.draws
    first, second = pairs.T
    observed, drawn = values[first] - values[second], draws[:, first] - draws[:, second]
    slack = ROUNDING * np.abs(values).max()
    beyond = (np.abs(drawn - observed) >= np.abs(observed) - slack).sum(axis=0)
    return np.asarray((beyond + 1) / (len(drawn) + 1))


@dataclass(frozen=True, eq=False)
class Discrimination(ShownAsTables):
    """p-values of all pairs of systems, a curve for each measure.

    - p, float64 (m, pairs): Uncorrected, sorted descending.
    - test, correction: The correction is for counting significant pairs, not for the curves.
    """

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    p: Float64
    test: str
    correction: str = "holm"

    @property
    def area(self) -> Float64:
        """Area under each curve over the share of pairs: the mean p-value, in (0, 1], float64 (m,).

        The smaller, the more discriminative; indistinguishable systems give 0.5.
        """
        return self.p.mean(axis=1)

    def table(self, level: float = 0.05) -> Table:
        """A row per measure, the most discriminative first: area and significant pairs."""
        areas = self.area.tolist()
        order = sorted(range(len(areas)), key=lambda k: (areas[k], self.measures[k]))
        fixed = np.array([corrected(p, self.correction) for p in self.p])
        counts = [(p < level).sum(axis=1) for p in (self.p, fixed)]
        columns = [
            "measure",
            "area:4",
            f"p < {level:g}=significant",
            f"{self.correction} < {level:g}=significant.corrected",
            "pairs",
        ]
        pairs = [self.p.shape[1]] * len(areas)
        return Table.of_columns(columns, self.titles, areas, *counts, pairs).in_order(order)

    def curves(self) -> Table:
        """One row per place, the largest p-value first, and one column per measure."""
        places = [(str(place),) for place in range(1, self.p.shape[1] + 1)]
        return table_by_measure(
            ("pair",), places, dict(zip(self.measures, self.titles, strict=True)), self.p
        )


def discriminate(
    samples: Sequence[Samples],
    test: str = "t",
    *,
    correction: str = "holm",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Discrimination:
    """Discriminative power of measures.

    Parameters
    ----------
    samples : sequence of Samples
        Measures of the same systems.
    test, correction, permutations, seed
        As for `kgtrec.study.comparison.significance.pairwise`; the paper takes the t-test.

    Raises
    ------
    InputError
        No samples, or samples of different systems.
    """
    if not samples:
        raise InputError("no measure to compare; give samples of at least one")
    for one in samples:
        if one.systems != samples[0].systems:
            raise InputError(
                f"{one.name} and {samples[0].name} have different systems; give the same ones"
            )
    p_values = {
        one.name: pairwise(one, test, "none", permutations=permutations, seed=seed).p
        for one in samples
    }
    titles = [
        one.title if one.unit == "queries" else f"{one.title} ({one.unit})" for one in samples
    ]
    titles = list(distinct_titles(titles, [one.name for one in samples]))
    return discrimination_of(p_values, test, correction=correction, titles=titles)


def discrimination_of(
    p: Mapping[str, ArrayLike],
    test: str = "t",
    *,
    correction: str = "holm",
    titles: Sequence[str] | None = None,
) -> Discrimination:
    """The same from given p-values, such as published ones: one row of all pairs per measure."""
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
