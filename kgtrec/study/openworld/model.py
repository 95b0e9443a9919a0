"""The open-world paper's model of missing facts and predictions (section 4), and its metrics.

Rank metrics are written as the mean of 1/f(rank).

A question has N true answers outside the training set. Each is *missing* from the test set with
probability beta, the sparsity. A model of strength l predicts each of them (classifies it as
positive) with probability l, and classifies everything else as negative; positives come first, and
inside a class the order is random, one order per question. Missing answers that are predicted rank
above test answers and count as mistakes.

With correlation rho between being missing and being predicted (Definition 4.1), a missing answer is
predicted with probability l1 and a test answer with probability l2; rho = 0 makes both l.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.csr import Float64
from kgtrec.errors import UsageError

GAINS = {
    "mrr": "1/r",
    "hits@K": "1 where r <= K, else 0",
    "log_mrr": "1/log2(r + 1)",
    "p_mrr@P": "r^-P, 0 < P < 1: p_mrr@0.5 is 1/sqrt(r)",
}
"""Names of the metrics that have formulas, and the gain of a rank r (section 5)."""


def gain(metric: str) -> Callable[[Any], Float64]:
    """The function 1/f of a metric: the gain of a rank, 1 at rank 1, never rising."""
    name, _, suffix = metric.partition("@")
    parameter = _number(suffix)
    if name == "mrr" and not suffix:
        return lambda rank: 1.0 / np.asarray(rank, np.float64)
    if name == "log_mrr" and not suffix:
        return lambda rank: 1.0 / np.log2(np.asarray(rank, np.float64) + 1.0)
    if name == "hits" and parameter >= 1 and parameter == int(parameter):
        return lambda rank: (np.asarray(rank) <= parameter).astype(np.float64)
    if name == "p_mrr" and 0 < parameter < 1:
        return lambda rank: np.asarray(rank, np.float64) ** -parameter
    known = "; ".join(f"{key}: {text}" for key, text in GAINS.items())
    raise UsageError(f"metric {metric!r} has no open-world formula; choose one of: {known}")


def title_of(metric: str) -> str:
    """The name in tables and plots: MRR, Hits@10, log-MRR, p-MRR(0.5)."""
    name, _, suffix = metric.partition("@")
    names = {"hits": "Hits", "mrr": "MRR", "log_mrr": "log-MRR", "ndcg": "nDCG", "map": "MAP"}
    if name == "p_mrr":
        return f"p-MRR({suffix})"
    cut = f"@{suffix}" if suffix else ""
    return f"{names[name]}{cut}" if name in names else metric


def sum_of_gains(metric: str, last: int) -> Float64:
    """Sums F(0) = 0, F(1), ..., F(last) of the gains of ranks 1 to r: float64, (last + 1,)."""
    ranks = np.arange(1, last + 1)
    return np.concatenate([[0.0], np.cumsum(gain(metric)(ranks))])


def tied_gains(metric: str, greater: ArrayLike, equal: ArrayLike) -> Float64:
    """Mean gain of an answer with ties broken at random, as in the paper.

    Shapes: greater, equal (n,) -> float64 (n,).
    """
    above, tied = np.asarray(greater, np.int64), np.asarray(equal, np.int64)
    alone = gain(metric)(above + 1)
    if not tied.any():
        return alone
    total = sum_of_gains(metric, int((above + tied).max()) + 1)
    mean = (total[above + tied + 1] - total[above]) / (tied + 1)
    return np.where(tied > 0, mean, alone)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


ENTITIES = 14505
"""Entities of FB15k-237 as the paper counts them (appendix A.2)."""
ROUNDING = 1e-12


class Strengths(NamedTuple):
    """Probability that an answer is predicted: ``missing`` is l1, ``recorded`` is l2."""

    missing: Float64
    recorded: Float64


def sparsity_of_density(density: float, train_share: float) -> float:
    """Sparsity beta of the test set of a graph that holds a share of all true facts (appendix A.3).

    alpha = d (1 - eta) / (1 - d eta): a share d of all true facts is recorded, and eta of those
    train. The test set is sparser than the graph, because all missing facts are missing there.

    Parameters
    ----------
    density : float in (0, 1]
        d, the share of the true facts that the graph contains.
    train_share : float in [0, 1)
        eta, the share of the graph's facts that are not in the test set.

    Returns
    -------
    float in [0, 1)

    Raises
    ------
    UsageError
        A share out of range.
    """
    if not 0 < density <= 1:
        raise UsageError(
            f"density={density} is not a share of facts; give a number above 0 and up to 1"
        )
    if not 0 <= train_share < 1:
        raise UsageError(f"train_share={train_share}; give a share of at least 0 and below 1")
    return 1.0 - density * (1.0 - train_share) / (1.0 - density * train_share)


def correlation_range(strength: float, beta: float) -> tuple[float, float]:
    """Lowest and highest correlation with l1 and l2 between 0 and 1 (Definition 4.1).

    Parameters
    ----------
    strength : float in [0, 1]
    beta : float in [0, 1)

    Returns
    -------
    (float, float)
        (0, 0) if nothing can correlate: the strength is 0 or 1, or nothing is missing.
    """
    checked_strength(strength, beta)
    if strength in (0, 1) or beta == 0:
        return 0.0, 0.0
    odds, missing = strength / (1 - strength), beta / (1 - beta)
    same, other = math.sqrt(odds * missing), math.sqrt(odds / missing)
    return -min(same, 1 / same), min(other, 1 / other)


def split_strength(strength: ArrayLike, beta: float, rho: float = 0.0) -> Strengths:
    """Strength on missing and on test answers: l1 = P(Y|X), l2 = P(Y|not X) (section 4.3).

    Parameters
    ----------
    strength : array-like of float in [0, 1]
    beta : float in [0, 1)
    rho : float in [-1, 1], default 0

    Raises
    ------
    UsageError
        A value out of range, or a correlation that this strength and sparsity cannot have.
    """
    whole = checked_strength(strength, beta)
    if rho == 0 or beta == 0:
        return Strengths(whole, whole)
    spread = np.sqrt(whole * (1 - whole))
    missing = whole + spread * math.sqrt((1 - beta) / beta) * rho
    recorded = whole - spread * math.sqrt(beta / (1 - beta)) * rho
    both = np.stack([missing, recorded])
    # If everything or nothing is predicted, nothing correlates with it.
    wrong = ~((both >= -ROUNDING) & (both <= 1 + ROUNDING)).all(axis=0) | (spread == 0)
    if wrong.any():
        first = float(np.extract(wrong, whole)[0])
        low, high = correlation_range(first, beta)
        raise UsageError(
            f"rho={rho} is impossible at strength {first:g} and sparsity {beta:g}; give a value "
            f"from {low:.4f} to {high:.4f}"
        )
    return Strengths(np.clip(missing, 0, 1), np.clip(recorded, 0, 1))


def binomial(counts: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Float64:
    """Probability of each count (last axis) in a number of trials, per chance (other axes)."""
    from scipy.special import gammaln, xlog1py, xlogy

    k, p = np.asarray(counts), np.asarray(chance, np.float64)[..., None]
    rest = np.maximum(trials - k, 0)
    ways = gammaln(np.add(trials, 1)) - gammaln(k + 1) - gammaln(rest + 1)
    return np.where(k <= trials, np.exp(ways + xlogy(k, p) + xlog1py(rest, -p)), 0.0)


def checked_strength(strength: ArrayLike, beta: float) -> Float64:
    """The strength as float64; UsageError unless it is a probability and beta a sparsity."""
    values = np.asarray(strength, np.float64)
    if not np.all((values >= 0) & (values <= 1)):
        raise UsageError(f"strength={strength!r} is not a probability; give numbers from 0 to 1")
    if not 0 <= beta < 1:
        raise UsageError(
            f"sparsity beta={beta} is not a share; give a number of at least 0 and below 1"
        )
    return values


def check_answers(n_answers: int) -> None:
    """Raise UsageError unless it is a number of answers."""
    if n_answers < 1 or n_answers != int(n_answers):
        raise UsageError(f"n_answers={n_answers}; give a whole number of 1 or more")


def check_entities(n_answers: int, n_entities: int) -> None:
    """Raise UsageError unless there are candidates besides the answers."""
    check_answers(n_answers)
    if n_entities <= n_answers:
        raise UsageError(
            f"n_entities={n_entities} is too small for {n_answers} answers; give the number of all "
            "candidates, including the answers"
        )
