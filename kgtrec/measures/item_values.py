"""The value of each metric per item, before averaging: f(rank), or its mean over a tie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.tie_expectation import expected_hits, expected_log_rank, expected_reciprocal
from kgtrec.measures.tied_ranks import PairedTies, Ranked, Ties, Values

__all__ = [
    "hits",
    "log_rank",
    "mean_rank",
    "one",
    "power_of_rank",
    "reciprocal_log_rank",
    "reciprocal_rank",
]

Floats = NDArray[np.float64]


def _rank(ties: Ranked, rank_type: str) -> Floats:
    scaled, scale = ties.ranks(rank_type)
    return np.asarray(scaled / scale)


def mean_rank(ties: Ranked, rank_type: str, parameter: float) -> Values:
    """The rank. Expected: the realistic rank, or the exact mean of a question's first answer."""
    return ties.ranks(rank_type)


def reciprocal_rank(ties: Ranked, rank_type: str, parameter: float) -> Values:
    """1/rank."""
    if rank_type != "expected":
        return Values(1.0 / _rank(ties, rank_type), 1)
    if isinstance(ties, Ties):
        return Values(expected_reciprocal(ties.greater, ties.size, ties.answers), 1)
    return Values(ties.mean_of(np.reciprocal), 1)


def hits(ties: Ranked, rank_type: str, k: float) -> Values:
    """1 if rank <= k, else 0; expected: the probability of that."""
    k = int(min(k, 1 << 60))  # 4k must fit int64
    if rank_type != "expected":
        scaled, scale = ties.ranks(rank_type)
        return Values((scaled <= k * scale).astype(np.int64), 1)
    if isinstance(ties, Ties):
        return Values(expected_hits(ties.greater, ties.size, ties.answers, k), 1)
    return Values(ties.share_within(4 * k), 1)


def log_rank(ties: Ranked, rank_type: str, parameter: float) -> Values:
    """Natural logarithm of the rank; one answer per tie."""
    if rank_type != "expected":
        return Values(np.log(_rank(ties, rank_type)), 1)
    if isinstance(ties, PairedTies):
        return Values(ties.mean_of(np.log), 1)
    assert isinstance(ties, Ties)
    return Values(expected_log_rank(ties.greater, ties.size), 1)


def reciprocal_log_rank(ties: Ranked, rank_type: str, parameter: float) -> Values:
    """1 / log2(rank + 1); one answer per tie."""
    if rank_type == "expected":
        return Values(ties.mean_of(_reciprocal_log), 1)
    return Values(_reciprocal_log(_rank(ties, rank_type)), 1)


def _reciprocal_log(rank: Floats) -> Floats:
    return np.asarray(1.0 / np.log2(rank + 1.0))


def power_of_rank(ties: Ranked, rank_type: str, p: float) -> Values:
    """rank ** -p; one answer per tie."""
    if rank_type == "expected":
        return Values(ties.mean_of(lambda rank: rank**-p), 1)
    return Values(_rank(ties, rank_type) ** -p, 1)


def one(ties: Ranked, rank_type: str, parameter: float) -> Values:
    """1 for every item."""
    return Values(np.ones(len(ties), np.int64), 1)
