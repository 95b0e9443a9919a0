"""How alike two rankings of the same systems are: tau-b and AP correlation, with intervals.

============== ==============================================================================
tau-b          share of pairs of systems in the same order less that in the opposite one, with
               Kendall's (1945) correction for ties; what `scipy.stats.kendalltau` gives
tau-AP         Yilmaz, Aslam and Robertson (2008): the same, but pairs near the top weigh more.
               With ties as in Urbano and Marrero (2017), tau_AP,b: symmetric in both rankings, a
               pair that is tied in one ranking is not in order in it
============== ==============================================================================

Two kinds of chance are told apart: of the systems that happened to be compared (`over_systems`),
and of the questions that happened to be asked (`over_questions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.bootstrap import DRAWS, Resampled
from kgtrec._internal.notebook import ShownInLines
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.significance import pairs_of

__all__ = ["Agreement", "correlation_table", "over_questions", "over_systems",
           "ranking_correlation", "tau_ap", "tau_b"]  # fmt: skip

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Signs = tuple[NDArray[np.int8], NDArray[np.int8]]

TIED = 1e-12
"""Values closer than this share of the largest tie: sums that differ in their last bits only."""


@dataclass(frozen=True)
class Agreement(ShownInLines):
    """Correlation of two rankings, and where it lies.

    Attributes
    ----------
    tau, tau_ap : float
        In [-1, 1]; NaN where one ranking ties all systems.
    tau_interval, tau_ap_interval : tuple of float
        Lower and upper end.
    confidence : float
    over : str
        What was drawn anew: "systems" or "questions".
    n_systems : int
    """

    tau: float
    tau_ap: float
    tau_interval: tuple[float, float]
    tau_ap_interval: tuple[float, float]
    confidence: float
    over: str
    n_systems: int

    def _lines(self) -> tuple[str, str]:
        pairs = ((self.tau, self.tau_interval), (self.tau_ap, self.tau_ap_interval))
        taus = [f"{tau:.4f} ({low:.4f} to {high:.4f})" for tau, (low, high) in pairs]
        return (
            f"tau-b {taus[0]}, tau-AP {taus[1]}",
            f"{self.n_systems:,} systems, {self.over} drawn, {self.confidence:.0%} intervals",
        )


def tau_b(x: ArrayLike, y: ArrayLike) -> Floats:
    """Kendall's tau-b along the last axis.

    Parameters
    ----------
    x, y : array-like of float, shapes (..., s)
        Values of s systems, in the same order; shapes broadcast.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN where `x` or `y` is constant, or there are fewer than two systems.

    Examples
    --------
    >>> float(tau_b([1, 2, 3, 4], [1, 2, 4, 3]))
    0.6666666666666666
    """
    return _tau_b(_signs(x), _signs(y), None)


def tau_ap(x: ArrayLike, y: ArrayLike) -> Floats:
    """Symmetric AP correlation with ties, along the last axis; higher values stand on top.

    Mean of both directions. One direction walks down the one ranking: of the systems that stand
    truly above a system there, which share stands above it in the other, too? Twice the mean of
    these shares, over all systems that have one above them, less 1.

    Parameters
    ----------
    x, y : array-like of float, shapes (..., s)
        Values of s systems, higher is better; shapes broadcast.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN where `x` or `y` is constant.
    """
    return _tau_ap(_signs(x), _signs(y), None)


def ranking_correlation(
    x: ArrayLike, y: ArrayLike, *, x_higher: bool = True, y_higher: bool = True
) -> tuple[float, float]:
    """tau-b and tau-AP of two rankings of systems, which may be by metrics of other directions.

    Raises
    ------
    InputError
        Not two rows of equally many finite values, two at least.
    """
    first, second = _oriented(x, x_higher), _oriented(y, y_higher)
    _check(first, second)
    return float(tau_b(first, second)), float(tau_ap(first, second))


def over_systems(
    x: ArrayLike,
    y: ArrayLike,
    *,
    x_higher: bool = True,
    y_higher: bool = True,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> Agreement:
    """Correlation of two rankings, with a bootstrap interval over systems.

    Systems are drawn with replacement. A system that is drawn twice makes no pair with itself, so
    that correlations are not raised by repeats; draws that leave nothing to correlate are passed
    over. Percentile interval. With few systems it is wide, and that is the message.

    Parameters
    ----------
    x, y : array-like of float, shape (s,)
        Values of the same systems under two metrics or two sets of labels.
    x_higher, y_higher : bool
        Whether higher is better.

    Raises
    ------
    InputError
        Not two rows of equally many finite values, three at least.
    """
    first, second = _oriented(x, x_higher), _oriented(y, y_higher)
    _check(first, second, least=3)
    n = len(first)
    rng = np.random.default_rng(seed)
    weight = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
    signs = _signs(first), _signs(second)
    drawn = [_tau_b(*signs, weight), _tau_ap(*signs, weight)]
    return _agreement(first, second, drawn, confidence, "systems")


def over_questions(
    x: Resampled, y: Resampled, *, x_higher: bool = True, y_higher: bool = True,
    confidence: float = 0.95,
) -> Agreement:  # fmt: skip
    """Correlation of the rankings by two measures, with an interval over questions.

    Parameters
    ----------
    x, y : Resampled
        Two measures of the same systems, from the same number of draws. With the same seed and
        the same questions, both saw the same draws.

    Notes
    -----
    Percentile interval, widened. Noise in the values of close systems draws tau towards 0, and
    drawing questions anew adds the same noise once more: with close systems, draws alone would
    miss the tau that endless questions would give. So the end that lies further from 0 reaches at
    least to where tau would be if each pair of systems whose order is not settled (the interval of
    their difference holds 0, by the one measure or the other) were to agree, or to disagree where
    tau is below 0. In simulations this covers at the level or above it, unless hardly any system
    can be told from another.
    """
    first, second = _oriented(x.estimate, x_higher), _oriented(y.estimate, y_higher)
    _check(first, second)
    if len(x.draws) != len(y.draws):
        raise UsageError(f"{len(x.draws)} draws of one and {len(y.draws)} of the other; draw alike")
    signs = _signs(_oriented(x.draws, x_higher)), _signs(_oriented(y.draws, y_higher))
    drawn = [_tau_b(*signs, None), _tau_ap(*signs, None)]
    agreement = _agreement(first, second, drawn, confidence, "questions")
    loose = _unsettled(x, confidence) | _unsettled(y, confidence)
    own = _signs(first), _signs(second)
    return replace(
        agreement,
        tau_interval=_reaching(agreement.tau_interval, agreement.tau, _tau_b, own, loose),
        tau_ap_interval=_reaching(agreement.tau_ap_interval, agreement.tau_ap, _tau_ap, own, loose),
    )


def _unsettled(resampled: Resampled, confidence: float) -> Bools:
    """Whether the interval of the difference of two systems holds 0, bool (s, s)."""
    n = len(resampled.estimate)
    pairs = pairs_of(n)
    low, high = resampled.difference_interval(pairs, confidence)
    loose = np.zeros((n, n), bool)
    loose[pairs[:, 0], pairs[:, 1]] = (low <= 0) & (high >= 0)
    return loose | loose.T


def _reaching(
    ends: tuple[float, float], tau: float, of: Callable[..., Floats], signs: Signs, loose: Bools
) -> tuple[float, float]:
    """The interval, its further end at least where unsettled pairs can take the correlation."""
    low, high = ends
    x, y = signs
    if tau > 0:
        return low, max(high, float(of(x, y, None, np.where(loose & (x * y < 0), 1, 0))))
    if tau < 0:
        return min(low, float(of(x, y, None, np.where(loose & (x * y > 0), -1, 0)))), high
    return low, high


def correlation_table(
    names: Sequence[tuple[str, str]],
    agreements: Sequence[Agreement],
    heads: tuple[str, str] = ("ranking by", "and by"),
) -> Table:
    """A row per agreement, with two names under two headings: correlations and their intervals."""
    rows: list[tuple[Cell, ...]] = [
        (*name, one.n_systems, one.tau, *one.tau_interval, one.tau_ap, *one.tau_ap_interval)
        for name, one in zip(names, agreements, strict=True)
    ]
    titles = (*heads, "systems", "tau-b", "low", "high", "tau-AP", "low", "high")
    ends = [f"{tau}{end}" for tau in ("tau_b", "tau_ap") for end in ("", ".low", ".high")]
    keys = (*(head.replace(" ", "_") for head in heads), "systems", *ends)
    return Table(titles, keys, (0, 0, 0, 4, 4, 4, 4, 4, 4), rows, 2)


def _agreement(
    first: Floats, second: Floats, drawn: Sequence[Floats], confidence: float, over: str
) -> Agreement:
    kendall, top_heavy = (_ends(values, confidence) for values in drawn)
    taus = float(tau_b(first, second)), float(tau_ap(first, second))
    return Agreement(*taus, kendall, top_heavy, confidence, over, len(first))


def _ends(drawn: Floats, confidence: float) -> tuple[float, float]:
    """Percentile interval of the draws that have a value."""
    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _oriented(values: ArrayLike, higher: bool) -> Floats:
    floats = np.asarray(values, np.float64)
    return floats if higher else -floats


def _check(first: Floats, second: Floats, least: int = 2) -> None:
    if first.ndim != 1 or first.shape != second.shape or len(first) < least:
        raise InputError(
            f"rankings of shapes {first.shape} and {second.shape}; give the values of the same "
            f"systems, {least} at least, under both"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("a value of a ranking is not finite; leave that system out")


def _signs(values: ArrayLike) -> NDArray[np.int8]:
    """Sign of x_i - x_j for all i and j, int8 (..., s, s)."""
    x = np.asarray(values, np.float64)
    gap = x[..., :, None] - x[..., None, :]
    slack = TIED * np.abs(x).max(axis=-1, initial=0.0)[..., None, None]
    return (gap > slack).astype(np.int8) - (gap < -slack).astype(np.int8)


def _tau_b(
    x: NDArray[np.int8], y: NDArray[np.int8], weight: Floats | None, turned: Any = None
) -> Floats:
    """From signs; ``weight`` (..., s) says how often each system counts.

    Pairs of which ``turned`` (s, s) is 1 or -1 count as in order, or not, whatever their signs.
    """
    both, of_x, of_y = (x * y).astype(np.float64), x != 0, y != 0
    if turned is not None:
        both = np.where(turned != 0, turned, both)
    if weight is None:
        total, n_x, n_y = (each.sum(axis=(-2, -1)) for each in (both, of_x, of_y))
    else:
        parts = [np.asarray(each, np.float64) for each in (both, of_x, of_y)]
        total, n_x, n_y = (((weight @ each) * weight).sum(axis=-1) for each in parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.sqrt(n_x * np.asarray(n_y, np.float64)), np.float64)


def _tau_ap(
    x: NDArray[np.int8], y: NDArray[np.int8], weight: Floats | None, turned: Any = None
) -> Floats:
    """As `_tau_b`."""
    # The other above this one: the sign of x_i - x_j is -1.
    above_x, above_y = ((each < 0).astype(np.float64) for each in (x, y))
    whole = above_x * above_y
    directions = []
    for above in (above_x, above_y):
        both = whole if turned is None else np.where(turned != 0, above * (turned > 0), whole)
        if weight is None:
            over, agreeing = above.sum(axis=-1), both.sum(axis=-1)
            counted = (over > 0).astype(np.float64)
        else:
            over, agreeing = weight @ above.swapaxes(-1, -2), weight @ both.swapaxes(-1, -2)
            counted = (over > 0) * weight
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(over > 0, agreeing / over, 0.0)
            directions.append(2 * (share * counted).sum(axis=-1) / counted.sum(axis=-1) - 1)
    return np.asarray((directions[0] + directions[1]) / 2, np.float64)
