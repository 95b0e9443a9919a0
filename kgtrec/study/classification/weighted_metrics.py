"""Metrics of binary predictions, for many weightings of the triples at once.

Weights are how often a bootstrap draws each triple; a value of the sample itself has weights of 1.
All shapes are (draws, triples) or (draws,). A value without a denominator is 0, as in scikit-learn,
but for areas under curves, which are NaN unless there are true and false triples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["METRICS", "binary_metrics"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

METRICS = ("accuracy", "precision", "recall", "f1", "mcc", "auc_roc", "auc_pr")


def binary_metrics(labels: Bools, scores: Floats, predicted: Bools, weights: Floats) -> Floats:
    """All of `METRICS`, in their order.

    Parameters
    ----------
    labels, predicted : ndarray of bool, shape (n,)
    scores : ndarray of float64, shape (n,)
    weights : ndarray of float64, shape (draws, n)
        Whole numbers, not negative.

    Returns
    -------
    ndarray of float64, shape (draws, len(METRICS))
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    ordered = weights[:, order]
    every = np.cumsum(ordered, axis=1)[:, ends]
    true = np.cumsum(ordered * labels[order], axis=1)[:, ends]
    false = every - true  # weights are whole numbers: exact
    counted = _of_counts(
        *(weights @ kind.astype(np.float64) for kind in (
            labels & predicted, ~labels & predicted, labels & ~predicted, ~labels & ~predicted,
        ))
    )  # fmt: skip
    return np.stack([*counted, _area_roc(true, false), _area_pr(true, false)], axis=1)


def _of_counts(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> list[Floats]:
    """Metrics of the four counts: accuracy, precision, recall, F1 and Matthews' correlation."""
    product = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return [
        _ratio(tp + tn, tp + fp + fn + tn),
        _ratio(tp, tp + fp),
        _ratio(tp, tp + fn),
        _ratio(2 * tp, 2 * tp + fp + fn),
        _ratio(tp * tn - fp * fn, product),
    ]


def _area_roc(true: Floats, false: Floats) -> Floats:
    """Probability that a true triple scores above a false one, ties counting half."""
    steps = np.diff(false, axis=1, prepend=0.0)
    before = np.concatenate([np.zeros((len(true), 1)), true[:, :-1]], axis=1)
    area = (steps * (true + before)).sum(axis=1) / 2
    return _ratio(area, true[:, -1] * false[:, -1], np.nan)


def _area_pr(true: Floats, false: Floats) -> Floats:
    """Average precision: precision at each score, weighted by the recall that it adds."""
    steps = np.diff(true, axis=1, prepend=0.0)
    area = (steps * _ratio(true, true + false)).sum(axis=1)
    both = (true[:, -1] > 0) & (false[:, -1] > 0)
    return np.where(both, _ratio(area, true[:, -1]), np.nan)


def _ratio(above: Floats, below: Floats, otherwise: float = 0.0) -> Floats:
    return np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0)
