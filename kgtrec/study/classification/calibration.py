"""Probabilities from scores, and how far they can be trusted.

Fitted on valid: Platt's logistic curve (Platt 1999, with his smoothed targets) or the best
non-decreasing step function (isotonic regression). Measured on test: the Brier score, the expected
calibration error over bins of equal size (ECE), and the reliability curve that it sums up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kgtrec._internal.bootstrap import (
    Resampling,
    cluster_sums,
    drawn_clusters,
    percentile_interval,
)  # fmt: skip
from kgtrec.study.classification.labelled_triples import LabelledTriples

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Calibrator:
    """Makes probabilities of scores.

    - name: As tables print it.
    - probabilities: Scores, float64 (n,), to probabilities that a triple is true, float64 (n,).
    """

    name: str
    probabilities: Callable[[Floats], Floats]


def calibrators(valid: LabelledTriples) -> list[Calibrator]:
    """What the scores say as they are, and after either fit on valid."""
    return [
        uncalibrated(valid.scores),
        platt(valid.labels, valid.scores),
        isotonic(valid.labels, valid.scores),
    ]


def uncalibrated(scores: Floats) -> Calibrator:
    """Scores themselves where all of valid are between 0 and 1, otherwise their sigmoid."""
    from scipy.special import expit

    if scores.min() >= 0 and scores.max() <= 1:
        return Calibrator("scores", lambda values: np.clip(values, 0.0, 1.0))
    return Calibrator("sigmoid of scores", expit)


def platt(labels: Bools, scores: Floats) -> Calibrator:
    """sigmoid(slope · score + intercept) of the largest likelihood, with Platt's targets.

    Shapes: labels bool (n,), scores float64 (n,).
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    n_true, n_false = int(labels.sum()), int((~labels).sum())
    target = np.where(labels, (n_true + 1) / (n_true + 2), 1 / (n_false + 2))
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    standard = (scores - centre) / spread

    def loss(curve: Floats) -> tuple[float, Floats]:
        margin = curve[0] * standard + curve[1]
        error = expit(margin) - target
        value = (np.logaddexp(0.0, margin) - target * margin).mean()
        return float(value), np.array([(error * standard).mean(), error.mean()])

    start = np.array([0.0, np.log((n_true + 1) / (n_false + 1))])
    slope, intercept = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return Calibrator("Platt", lambda values: expit(slope * (values - centre) / spread + intercept))


def isotonic(labels: Bools, scores: Floats) -> Calibrator:
    """The non-decreasing function of least squares, linear between scores of valid.

    Shapes: labels bool (n,), scores float64 (n,).
    """
    from scipy.optimize import isotonic_regression

    values, group = np.unique(scores, return_inverse=True)
    sizes = np.bincount(group).astype(np.float64)
    shares = np.bincount(group, labels) / sizes
    fitted = isotonic_regression(shares, weights=sizes).x
    return Calibrator("isotonic", lambda others: np.interp(others, values, fitted))


def equal_mass_bins(probabilities: Floats, n_bins: int) -> Int64:
    """Bin of each probability: as equal in size as ties allow, which stay in one bin.

    Shape: int64 (n,).
    """
    _, group, sizes = np.unique(probabilities, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - (sizes + 1) / 2
    return np.asarray(n_bins * middle / len(probabilities), np.int64)[group.reshape(-1)]


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted probability against the share that is true, bin by bin; empty bins are left out.

    - name: Of the calibrator.
    - predicted, observed, float64 (b,): Mean probability and share of true triples of each bin.
    - sizes: int64 (b,)
    - brier, ece, float64 (3,): Value, and the ends of its interval: the mean squared error of the
      probabilities, and the mean distance between predicted and observed, each triple counting
      once.
    """

    name: str
    predicted: Floats
    observed: Floats
    sizes: Int64
    brier: Floats
    ece: Floats


def reliability(
    calibrator: Calibrator,
    labels: Bools,
    scores: Floats,
    group: Int64,
    n_bins: int,
    how: Resampling,
) -> ReliabilityCurve:
    """How far a calibrator's probabilities agree with what is true.

    Shapes: labels, scores (n,), group int64 (n,).
    """
    probabilities = calibrator.probabilities(scores)
    bins = np.unique(equal_mass_bins(probabilities, n_bins), return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(bins)
    columns = np.zeros((len(bins), 2 + len(sizes)))  # triples, squared errors, errors by bin
    columns[:, 0], columns[:, 1] = 1, (probabilities - labels) ** 2
    columns[np.arange(len(bins)), 2 + bins] = probabilities - labels
    sums = cluster_sums(columns, group)
    sample = _shares(sums.sum(axis=0, keepdims=True))[0]
    times = drawn_clusters(len(sums), how, columns.shape[1])
    draws = np.concatenate([_shares(weights @ sums) for weights in times])
    predicted, observed = (np.bincount(bins, part) / sizes for part in (probabilities, labels))
    return ReliabilityCurve(
        calibrator.name, predicted, observed, sizes,
        np.append(sample[0], percentile_interval(draws[:, :1], how)),
        _with_ece_interval(sample[1:], draws[:, 1:], how),
    )  # fmt: skip


def _shares(totals: Floats) -> Floats:
    """Rows of totals (triples, squared errors, errors by bin), each divided by the triples."""
    return totals[:, 1:] / totals[:, :1]


def _with_ece_interval(errors: Floats, draws: Floats, how: Resampling) -> Floats:
    """ECE and its interval, from the errors of bins (b,) and of the same on draws (B, b).

    Chance adds to every bin's distance, and the bootstrap adds it once more: percentiles would lie
    too high. The lower end takes off all that chance may have added, which is at most what draws
    differ from the sample by; the upper end, a percentile, is too high rather than too low.
    """
    value = np.abs(errors).sum()
    added = percentile_interval(np.abs(draws - errors).sum(axis=1, keepdims=True), how)[0, 1]
    high = percentile_interval(np.abs(draws).sum(axis=1, keepdims=True), how)[0, 1]
    return np.array([value, max(0.0, value - added), high])
