"""Similarity of two rankings of the same systems, and reproduction of a run by another.

tau-b is Kendall's (1945), as in `scipy.stats.kendalltau`. tau-AP (Yilmaz, Aslam and Robertson 2008)
gives pairs near the top more weight. Ties are as in Urbano and Marrero (2017): tau_AP,b is
symmetric, and a pair that a ranking ties is not in order. Intervals come from draws of systems
(`over_systems`) or of questions (`over_questions`).

Reproduction follows Breuer et al. (SIGIR 2020): Kendall's tau of the union of two lists,
rank-biased overlap (Webber, Moffat and Zobel, TOIS 2010), the root mean square of the differences
of queries, and the ratio of two experiments' mean improvements. The values equal those of their
program, repro_eval, except for the overlap. Version 0.5.0 uses p = 0.95 and does not extrapolate.
It divides the sum over the first 1,000 ranks by the sum of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.arguments import as_floats, random_generator, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import COMPARING, ROUNDING, Resampled, Resampling
from kgtrec._internal.table import Cell, ShownAsTables, ShownInLines, Table
from kgtrec.errors import InputError, UsageError, refuse_if
from kgtrec.study.comparison.samples import samples_of_runs
from kgtrec.study.comparison.significance import pairs_of
from kgtrec.trec.files.text import is_path

Signs = NDArray[np.int8]


@dataclass(frozen=True)
class RankingAgreement(ShownInLines):
    """Correlation of two rankings, with intervals.

    - tau, tau_ap: In [-1, 1]; NaN if one ranking ties all systems.
    - tau_interval, tau_ap_interval: Lower and upper end; NaN without draws.
    - over: Unit of resampling: "systems", "questions" or "nothing".
    """

    tau: float
    tau_ap: float
    tau_interval: tuple[float, float]
    tau_ap_interval: tuple[float, float]
    resampling: Resampling
    over: str
    n_systems: int

    @classmethod
    def from_values(
        cls,
        x: Float64,
        y: Float64,
        drawn: Sequence[Float64] = (np.empty(0), np.empty(0)),
        resampling: Resampling = COMPARING,
        over: str = "nothing",
    ) -> RankingAgreement:
        """Return the agreement of two rankings by values, float64 (s,), higher is better.

        `drawn` are tau-b and tau-AP on draws, from which the intervals are computed.
        """
        taus = float(tau_b(x, y)), float(tau_ap(x, y))
        of_tau, of_tau_ap = (percentile_interval(values, resampling) for values in drawn)
        return cls(*taus, of_tau, of_tau_ap, resampling, over, len(x))

    def _lines(self) -> tuple[str, str]:
        pairs = ((self.tau, self.tau_interval), (self.tau_ap, self.tau_ap_interval))
        taus = [f"{tau:.4f} ({low:.4f} to {high:.4f})" for tau, (low, high) in pairs]
        return (
            f"tau-b {taus[0]}, tau-AP {taus[1]}",
            f"{self.n_systems:,} systems, {self.over} drawn, {self.resampling.percent:g}% "
            "intervals",
        )


def tau_b(x: ArrayLike, y: ArrayLike) -> Float64:
    """Compute Kendall's tau-b along the last axis.

    Parameters
    ----------
    x, y : array-like of float, shapes (..., s)
        Values of s systems, in the same order; shapes broadcast.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN if `x` or `y` is constant, or there are fewer than two systems.

    Examples
    --------
    >>> float(tau_b([1, 2, 3, 4], [1, 2, 4, 3]))
    0.6666666666666666
    """
    return _tau_b(_signs(x), _signs(y))


def tau_ap(x: ArrayLike, y: ArrayLike) -> Float64:
    """Compute the symmetric AP correlation with ties, along the last axis.

    Higher values rank first. The result is the mean of both directions. A direction computes, for
    each system, a share of the systems strictly above it in the first ranking: those that are also
    above it in the second. Its value is twice the mean share, over all systems with another above
    them, minus 1.

    Parameters
    ----------
    x, y : array-like of float, shapes (..., s)
        Values of s systems, higher is better; shapes broadcast.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN if `x` or `y` is constant.
    """
    return _tau_ap(_signs(x), _signs(y))


def places_of(values: Float64) -> Int64:
    """Return the place of each system, from 1 on; int64 (..., s). Higher values are better.

    The place is 1 plus the number of better systems.
    """
    return np.asarray(1 + (values[..., None, :] > values[..., :, None]).sum(axis=-1))


def ranking_correlation(
    x: ArrayLike, y: ArrayLike, *, x_higher: bool = True, y_higher: bool = True
) -> tuple[float, float]:
    """Return tau-b and tau-AP of two rankings of systems.

    Their metrics may have opposite directions.

    Parameters
    ----------
    x, y : array_like of float, shape (n_systems,)
        Value of each system by either metric.
    x_higher, y_higher : bool, default True
        If higher values are better.

    Raises
    ------
    InputError
        Not two rows of the same number of finite values, at least two.
    """
    agreement = RankingAgreement.from_values(*_check_pair(x, y, x_higher, y_higher))
    return agreement.tau, agreement.tau_ap


def over_systems(
    x: ArrayLike,
    y: ArrayLike,
    *,
    x_higher: bool = True,
    y_higher: bool = True,
    resampling: Resampling = COMPARING,
) -> RankingAgreement:
    """Correlate two rankings, with a bootstrap interval over systems.

    Systems are drawn with replacement. A system that is drawn twice makes no pair with itself, so
    that repeats do not raise correlations. Draws without a correlation are ignored. The interval is
    a percentile interval. With few systems it is wide, and that is the message.

    Parameters
    ----------
    x, y : array-like of float, shape (s,)
        Values of the same systems under two metrics or two sets of labels.
    x_higher, y_higher : bool
        True if higher values are better.
    resampling : Resampling
        Number of draws, and level of the interval.

    Raises
    ------
    InputError
        Not two rows of the same number of finite values, at least three.
    """
    first, second = _check_pair(x, y, x_higher, y_higher, least=3)
    n = len(first)
    rng = random_generator(resampling.seed)
    weight = rng.multinomial(n, np.full(n, 1 / n), size=resampling.resamples).astype(np.float64)
    drawn = [correlate(_signs(first), _signs(second), weight) for correlate in (_tau_b, _tau_ap)]
    return RankingAgreement.from_values(first, second, drawn, resampling, "systems")


def over_questions(
    x: Resampled, y: Resampled, *, x_higher: bool = True, y_higher: bool = True
) -> RankingAgreement:
    """Correlate the rankings by two measures, with an interval over questions.

    Parameters
    ----------
    x, y : Resampled
        Two measures of the same systems, resampled the same way. With the same seed and the same
        questions, both have the same draws. Intervals have the level of `x`.

    Raises
    ------
    UsageError
        Different numbers of draws.
    InputError
        Not two rows of the same number of finite values, at least two.

    Notes
    -----
    The interval is a percentile interval, widened. Noise in the values of close systems pulls tau
    towards 0, and resampling questions adds the same noise again. With close systems, draws alone
    would miss the tau of infinitely many questions. A pair of systems is unsettled if the interval
    of their difference contains 0 by either measure. So the interval is widened until its outer end
    includes the tau that would result if all unsettled pairs agreed (disagreed, if tau is below 0).
    In simulations, such intervals cover at the level or above it, unless almost all systems are too
    close to distinguish.
    """
    require_type("x", x, Resampled, "Resampled (kgtrec.study.comparison.samples.resample)")
    require_type("y", y, Resampled, "Resampled (kgtrec.study.comparison.samples.resample)")
    first, second = _check_pair(x.estimate, y.estimate, x_higher, y_higher)
    if len(x.draws) != len(y.draws):
        raise UsageError(
            f"one has {len(x.draws)} draws, the other {len(y.draws)}; draw the same number for both"
        )
    signs = _signs(_orient(x.draws, x_higher)), _signs(_orient(y.draws, y_higher))
    drawn = [_tau_b(*signs), _tau_ap(*signs)]
    agreement = RankingAgreement.from_values(first, second, drawn, x.resampling, "questions")
    pairs = _signs(first), _signs(second), _find_unsettled(x) | _find_unsettled(y)
    tau, tau_ap = agreement.tau, agreement.tau_ap
    return replace(
        agreement,
        tau_interval=_widen_for_unsettled(agreement.tau_interval, tau, _tau_b, *pairs),
        tau_ap_interval=_widen_for_unsettled(agreement.tau_ap_interval, tau_ap, _tau_ap, *pairs),
    )


def _find_unsettled(resampled: Resampled) -> Bools:
    """Mark pairs of systems whose interval of the difference contains 0; bool (s, s)."""
    n = len(resampled.estimate)
    pairs = pairs_of(n)
    low, high = resampled.difference_interval(pairs)
    unsettled = np.zeros((n, n), bool)
    unsettled[pairs[:, 0], pairs[:, 1]] = (low <= 0) & (high >= 0)
    return unsettled | unsettled.T


def _widen_for_unsettled(
    ends: tuple[float, float],
    tau: float,
    correlate: Callable[..., Float64],
    x: Signs,
    y: Signs,
    unsettled: Bools,
) -> tuple[float, float]:
    """Widen the interval of `tau` to include the value that results if all unsettled pairs agree.

    If `tau` is below 0, it is the value that results if they all disagree.
    """
    low, high = ends
    if tau > 0:
        turned = np.where(unsettled & (x * y < 0), 1, 0)
        return low, max(high, float(correlate(x, y, turned=turned)))
    if tau < 0:
        turned = np.where(unsettled & (x * y > 0), -1, 0)
        return min(low, float(correlate(x, y, turned=turned))), high
    return low, high


def agreement_table(
    heads: Sequence[str],
    names: Iterable[Sequence[str]],
    agreements: Iterable[RankingAgreement],
    *,
    count_systems: bool = True,
) -> Table:
    """Return a table with a row per agreement: its names, and correlations with intervals.

    With `count_systems`, it has a column with the number of systems.
    """
    rows: list[tuple[Cell, ...]] = [
        (
            *name,
            *(agreement.n_systems,) * count_systems,
            agreement.tau,
            *agreement.tau_interval,
            agreement.tau_ap,
            *agreement.tau_ap_interval,
        )
        for name, agreement in zip(names, agreements, strict=True)
    ]
    taus = (
        "tau-b=tau_b:4",
        "low=tau_b.low:4",
        "high=tau_b.high:4",
        "tau-AP=tau_ap:4",
        "low=tau_ap.low:4",
        "high=tau_ap.high:4",
    )
    named = ((head, head.replace(" ", "_"), 0) for head in heads)
    return Table.from_rows([*named, *("systems",) * count_systems, *taus], rows, len(heads))


def percentile_interval(drawn: Float64, resampling: Resampling) -> tuple[float, float]:
    """Compute the percentile interval of the finite draws; NaN if there are none."""
    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, resampling.tails)
    return float(low), float(high)


def _orient(values: ArrayLike, higher: bool) -> Float64:
    """Return values as float64, negated if lower is better."""
    floats = as_floats("a ranking", values)
    return floats if higher else -floats


def _check_pair(
    x: ArrayLike, y: ArrayLike, x_higher: bool, y_higher: bool, least: int = 2
) -> tuple[Float64, Float64]:
    """Return two rows of values, higher is better; InputError unless they can be compared."""
    first, second = _orient(x, x_higher), _orient(y, y_higher)
    if first.ndim != 1 or first.shape != second.shape or len(first) < least:
        raise InputError(
            f"rankings have shapes {first.shape} and {second.shape}; give values of the same "
            f"systems (at least {least}) in both"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("a ranking has a value that is not finite; leave this system out")
    return first, second


def _signs(values: ArrayLike) -> Signs:
    """Return the sign of x_i - x_j for all i and j, int8 (..., s, s)."""
    x = as_floats("a ranking", values)
    gap = x[..., :, None] - x[..., None, :]
    slack = ROUNDING * np.abs(x).max(axis=-1, initial=0.0)[..., None, None]
    return (gap > slack).astype(np.int8) - (gap < -slack).astype(np.int8)


def _tau_b(x: Signs, y: Signs, weight: Float64 | None = None, turned: Any = None) -> Float64:
    """Compute tau-b from signs.

    - weight, (..., s): Weight of each system; 1 by default.
    - turned, (s, s): Pairs with 1 count as in order, and with -1 as not, whatever their signs.
    """
    weight = np.ones(x.shape[-1]) if weight is None else weight
    both = x * y if turned is None else np.where(turned != 0, turned, x * y)
    parts = [np.asarray(each, np.float64) for each in (both, x != 0, y != 0)]
    total, n_x, n_y = (((weight @ each) * weight).sum(axis=-1) for each in parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.sqrt(n_x * n_y))


def _tau_ap(x: Signs, y: Signs, weight: Float64 | None = None, turned: Any = None) -> Float64:
    """Compute tau-AP from signs; parameters as for `_tau_b`."""
    weight = np.ones(x.shape[-1]) if weight is None else weight
    # System j is above system i if the sign of x_i - x_j is -1.
    above_x, above_y = ((each < 0).astype(np.float64) for each in (x, y))
    whole = above_x * above_y
    directions = []
    for above in (above_x, above_y):
        both = whole if turned is None else np.where(turned != 0, above * (turned > 0), whole)
        over, agreeing = weight @ above.swapaxes(-1, -2), weight @ both.swapaxes(-1, -2)
        counted = (over > 0) * weight
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(over > 0, agreeing / over, 0.0)
            directions.append(2 * (share * counted).sum(axis=-1) / counted.sum(axis=-1) - 1)
    return np.asarray((directions[0] + directions[1]) / 2, np.float64)


DEPTH, PERSISTENCE = 1_000, 0.8
"""Number of documents of each list that are compared, and default p of `rank_biased_overlap`."""


@dataclass(frozen=True)
class Overlap(ShownInLines):
    """Rank-biased overlap of two lists that were cut.

    - low: Lowest possible value, if the lists share nothing beyond their ends.
    - residual: Difference of the highest and the lowest possible value.
    - extrapolated: Value if the lists agree beyond their ends as much as before.
    """

    low: float
    residual: float
    extrapolated: float

    def _lines(self) -> tuple[str, str]:
        ends = f"{self.low:.4f} to {self.low + self.residual:.4f}"
        return f"rank-biased overlap {self.extrapolated:.4f}", f"at least, and at most: {ends}"


def tau_union(first: Sequence[str], second: Sequence[str]) -> float:
    """Compute Kendall's tau of two lists, in which each document has its number in their union.

    The union is in the order of names, as in repro_eval. The longer list is cut to the length of
    the shorter. The result is NaN for lists of a single document.
    """
    for name, names in (("first", first), ("second", second)):
        require_type(name, names, Sequence, "a list of names")
    length = min(len(first), len(second))
    first, second = first[:length], second[:length]
    number = {name: i for i, name in enumerate(sorted({*first, *second}))}
    if length < 2:
        return math.nan
    return float(tau_b([number[name] for name in first], [number[name] for name in second]))


def rank_biased_overlap(
    first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE
) -> Overlap:
    """Compute the rank-biased overlap of two lists without repeats, of any lengths from 1.

    Parameters
    ----------
    first, second : sequence of str
        Best first.
    p : float
        Probability, in (0, 1), that a reader continues to the next rank.

    Raises
    ------
    UsageError
        p is out of range, a list is empty, or a list has an item twice.
    """
    for name, names in (("first", first), ("second", second)):
        require_type(name, names, Sequence, "a list of names")
    refuse_if(
        (not 0 < p < 1, f"p={p!r} is out of range; it must be between 0 and 1"),
        (
            not (len(first) and len(second)),
            "a list is empty and overlaps with nothing; leave this query out",
        ),
    )
    for items in (first, second):
        if len({*items}) < len(items):
            twice = next(item for i, item in enumerate(items) if item in items[:i])
            raise UsageError(f"a list has {twice!r} twice; keep the better rank of each item")
    short, long = sorted((first, second), key=len)
    s, n = len(short), len(long)
    common = _common(short, long)
    depth = np.arange(1, n + 1, dtype=np.float64)
    weight = p**depth
    scale = (1 - p) / p
    base = float((common / depth * weight).sum())
    whole = float(common[-1])
    # Beyond the lists: the sum over all depths of p^d / d, minus its part within the lists.
    rest = -math.log1p(-p)
    low = scale * (base + whole * (rest - float((weight / depth).sum())))
    f = n + s - int(whole)
    far = np.arange(1, f + 1, dtype=np.float64)
    known = np.concatenate([common, np.full(f - n, whole)])
    most = np.minimum(known + np.maximum(far - s, 0) + np.maximum(far - n, 0), far)
    beyond = p ** (f + 1) / (1 - p) - whole * (rest - float((p**far / far).sum()))
    residual = scale * (float(((most - known) / far * p**far).sum()) + beyond)
    at_s = float(common[s - 1])
    more = float((at_s * (depth[s:] - s) / (s * depth[s:]) * weight[s:]).sum())
    extrapolated = scale * (base + more) + ((whole - at_s) / n + at_s / s) * p**n
    return Overlap(low, max(residual, 0.0), extrapolated)


def _common(short: Sequence[str], long: Sequence[str]) -> Float64:
    """Count the documents that both lists have down to each depth of the longer; float64 (n,)."""
    index = {name: i for i, name in enumerate(short)}
    depths = [max(i, index[name]) for i, name in enumerate(long) if name in index]
    return np.cumsum(np.bincount(depths, minlength=len(long))).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Reproduction(ShownAsTables):
    """The reproduction of a first experiment by a second.

    - pairs: Runs and their reproductions.
    - tau, overlap, residual, float64 (n_pairs,): Means over the queries that both runs have: tau
      union, extrapolated RBO and its residual.
    - rmse, float64 (n_pairs, n_measures): Root mean square of the differences of queries.
    - effect_ratio, float64 (n_measures,) or None: For two pairs of baseline and advanced system,
      mean improvement of the second experiment divided by that of the first; NaN if this is 0.
    - improvement, float64 (n_measures,) or None: Relative improvement of the first experiment minus
      that of the second; NaN if a baseline has the mean 0.
    - means, float64 (n_measures, n_runs): Means of the runs, in the order of the call.
    """

    _shown = ("order_table", "table")

    pairs: Sequence[tuple[str, str]]
    measures: Sequence[str]
    tau: Float64
    overlap: Float64
    residual: Float64
    rmse: Float64
    effect_ratio: Float64 | None
    improvement: Float64 | None
    means: Float64

    def notes(self) -> list[str]:
        """Return sentences on measures whose effect ratio or relative improvement has no value."""
        if self.effect_ratio is None or self.improvement is None:
            return []
        (baseline, baseline_again), (advanced, _) = self.pairs
        sentences = []
        for measure, ratio, improvement, means in zip(
            self.measures, self.effect_ratio, self.improvement, self.means, strict=True
        ):
            if np.isnan(ratio):
                sentences.append(
                    f"{measure}: {baseline} and {advanced} have the same mean, so the first "
                    "experiment has no effect to reproduce; its effect ratio is nan"
                )
            if np.isnan(improvement):
                names = (baseline, baseline_again)
                zero = [name for name, mean in zip(names, means[::2], strict=True) if not mean]
                sentences.append(
                    f"{measure}: the mean of {' and of '.join(zero)} is 0, and nothing is relative "
                    "to 0; its delta RI is nan"
                )
        return sentences

    def order_table(self) -> Table:
        """Return a table with a row per pair: the similarity of its lists."""
        columns = "original, reproduced, tau union:4, RBO=rbo:4, residual=rbo_residual:4"
        names = zip(*self.pairs, strict=True)
        return Table.from_columns(columns, *names, self.tau, self.overlap, self.residual, names=2)

    def table(self) -> Table:
        """Return a table with a row per measure: RMSE of each pair, and effects of two pairs."""
        titles = [f"RMSE {second}" for _, second in self.pairs]
        columns = [*self.rmse]
        if self.effect_ratio is not None and self.improvement is not None:
            titles += ["effect ratio", "delta RI"]
            columns += [self.effect_ratio, self.improvement]
        heads = [(title, title.lower().replace(" ", "_"), 4) for title in titles]
        return Table.from_columns(["measure", *heads], self.measures, *columns)


def reproduction_of(
    qrels: Any, runs: Mapping[str, Any], measures: Sequence[str], *, ties: str | None = None
) -> tuple[Reproduction, dict[str, int]]:
    """Compare runs with their reproductions, over the first 1,000 documents of each list.

    Parameters
    ----------
    qrels, measures
        As for `samples_of_runs`.
    runs : mapping of str to path-like or RunColumns
        The original run and the reproduced one; or baseline and advanced system of the original
        experiment, then of the reproduced one.
    ties : {"expected", "min", "max", "name"}, optional
        Order of tied documents in measures; see `samples_of_runs`. tau union and RBO take the order
        by name.

    Returns
    -------
    Reproduction
    dict of str to int
        How many queries of the qrels each run lacks; they count 0.

    Raises
    ------
    UsageError
        There are neither two nor four runs.
    InputError
        A run and its reproduction share no query; see `samples_of_runs` for the rest.
    """
    require_type("runs", runs, Mapping, "a mapping of names to runs")
    if len(runs) not in (2, 4):
        raise UsageError(
            f"there are {len(runs)} runs; give the original and the reproduced one, or baseline "
            "and advanced system of the original, then of the reproduced experiment"
        )
    names, half = [*runs], len(runs) // 2
    pairs = [*zip(names[:half], names[half:], strict=True)]
    samples = samples_of_runs(qrels, runs, measures, ties=ties)
    values = np.stack([of_measure.values for of_measure in samples])  # measures, queries, runs
    first, second = values[:, :, :half], values[:, :, half:]
    rmse = np.sqrt(((first - second) ** 2).mean(axis=1)).T
    lists = {name: _lists(run) for name, run in runs.items()}
    orders = np.array([_orders(lists, pair) for pair in pairs])
    # For gm_*, these are geometric means, not means of logarithms.
    means = np.stack([of_measure.means() for of_measure in samples])
    ratio = improvement = None
    if half == 2:
        baseline, advanced, baseline_again, advanced_again = means.T
        gain = _difference(advanced, baseline)
        gain_again = _difference(advanced_again, baseline_again)
        ratio = _quotient(gain_again, gain)
        improvement = _difference(
            _quotient(advanced, baseline), _quotient(advanced_again, baseline_again)
        )
    names = [of_measure.name for of_measure in samples]
    tau, overlap, residual = orders.T
    result = Reproduction(pairs, names, tau, overlap, residual, rmse, ratio, improvement, means)
    return result, dict(samples[0].unanswered)


def _difference(values: Float64, others: Float64) -> Float64:
    """Return differences of values; 0 if two values differ only by rounding."""
    slack = ROUNDING * np.maximum(np.abs(values), np.abs(others))
    gap = values - others
    return np.where(np.abs(gap) <= slack, 0.0, gap)


def _quotient(values: Float64, others: Float64) -> Float64:
    """Return quotients of values; NaN if the divisor is 0."""
    return np.divide(values, others, out=np.full(len(values), np.nan), where=others != 0)


def _lists(run: Any) -> dict[str, list[str]]:
    """Return the documents of each query in trec_eval's order: by score, then name, descending."""
    from kgtrec.trec.files.run import read_run

    columns = read_run(run, as_="columns") if is_path(run) else run
    return {
        query: [name.decode("utf-8", "surrogateescape") for name in documents]
        for query, documents in columns.best(DEPTH).items()
    }


def _orders(
    lists: Mapping[str, dict[str, list[str]]], pair: tuple[str, str]
) -> tuple[float, float, float]:
    """Return the means over queries of tau union, RBO and its residual for a pair of runs.

    InputError if the runs share no query.
    """
    first, second = (lists[name] for name in pair)
    shared = [
        (first[query], second[query]) for query in first if first[query] and second.get(query)
    ]
    if not shared:
        raise InputError(f"{pair[0]} and {pair[1]} share no query; give runs of the same questions")
    taus = np.array([tau_union(*both) for both in shared])
    overlaps = [rank_biased_overlap(*both) for both in shared]
    defined = taus[~np.isnan(taus)]
    means = [
        np.mean([getattr(overlap, name) for overlap in overlaps])
        for name in ("extrapolated", "residual")
    ]
    return float(defined.mean()) if len(defined) else math.nan, float(means[0]), float(means[1])
