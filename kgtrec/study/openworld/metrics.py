"""Rank metrics as the open-world paper writes them: the mean of 1/f(rank)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec.errors import UsageError

__all__ = ["GAINS", "gain", "sum_of_gains", "tied_gains", "title_of"]

Floats = NDArray[np.float64]

GAINS = {
    "mrr": "1/r",
    "hits@K": "1 where r <= K, else 0",
    "log_mrr": "1/log2(r + 1)",
    "p_mrr@P": "r^-P, 0 < P < 1: p_mrr@0.5 is 1/sqrt(r)",
}
"""Names of the metrics that have formulas, and what a rank r counts (section 5)."""


def gain(metric: str) -> Callable[[Any], Floats]:
    """The function 1/f of a metric: what a rank counts, 1 at rank 1, never rising.

    Parameters
    ----------
    metric : str
        ``mrr``, ``hits@10``, ``log_mrr``, ``p_mrr@0.5``, ... (see `GAINS`).

    Returns
    -------
    function (ranks) -> float64 array
        Ranks are at least 1.

    Raises
    ------
    UsageError
        An unknown name, or a parameter out of range.
    """
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
    """As tables and plots call it: MRR, Hits@10, log-MRR, p-MRR (p = 0.5)."""
    name, _, suffix = metric.partition("@")
    names = {"hits": "Hits", "mrr": "MRR", "log_mrr": "log-MRR", "ndcg": "nDCG", "map": "MAP"}
    if name == "p_mrr":
        return f"p-MRR({suffix})"
    cut = f"@{suffix}" if suffix else ""
    return f"{names[name]}{cut}" if name in names else metric


def sum_of_gains(metric: str, last: int) -> Floats:
    """Sums F(0) = 0, F(1), ..., F(last) of the gains of ranks 1 to r: float64, (last + 1,)."""
    ranks = np.arange(1, last + 1)
    return np.concatenate([[0.0], np.cumsum(gain(metric)(ranks))])


def tied_gains(metric: str, greater: ArrayLike, equal: ArrayLike) -> Floats:
    """Mean gain of an answer whose ties are broken at random, as the paper breaks them.

    Parameters
    ----------
    metric : str
    greater, equal : array-like of int, shape (n,)
        Candidates above the answer, and others at its score.

    Returns
    -------
    ndarray of float64, shape (n,)
        The mean over the ranks greater + 1 .. greater + equal + 1.
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
