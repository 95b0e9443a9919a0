"""Ties: what is known of the rank of an answer, and the ranks that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.expected import (
    expected_hits,
    expected_log_rank,
    expected_rank,
    expected_reciprocal,
)

__all__ = ["RANK_TYPES", "Ties", "Values", "hits", "log_rank", "mean_rank", "reciprocal_rank"]

Ints = NDArray[np.int64]

RANK_TYPES = {
    "optimistic": "greater + 1: every tie is won",
    "realistic": "greater + 1 + equal / 2: the middle of the tie",
    "pessimistic": "greater + equal + 1: every tie is lost",
    "expected": "the metric's exact mean over all ranks that the tie allows",
    "ordinal": "the place in the run file: ties by entity label, descending, as trec_eval does",
}


class Values(NamedTuple):
    """A metric's value per item, times `scale`: integers stay integers, so their sums are exact."""

    scaled: NDArray[np.int64] | NDArray[np.float64]
    scale: int


@dataclass(frozen=True)
class Ties:
    """Counts per item: an instance (micro) or the best answer of a question (macro).

    Attributes
    ----------
    greater, equal, tied_ahead : int64 array (n,)
        Candidates above; other candidates at the same score; those of them that trec order puts
        ahead.
    answers : int64 array (n,)
        Answers inside the tie: 1 for an instance, 1 .. equal + 1 for a question.
    """

    greater: Ints
    equal: Ints
    tied_ahead: Ints
    answers: Ints

    def twice_rank(self, rank_type: str) -> Ints:
        """2 x rank as integers (a realistic rank can end in a half); not for ``expected``."""
        twice = 2 * self.greater + 2
        if rank_type == "realistic":
            return twice + self.equal
        if rank_type == "pessimistic":
            return twice + 2 * self.equal
        if rank_type == "ordinal":
            return twice + 2 * self.tied_ahead
        return twice


def mean_rank(ties: Ties, rank_type: str, k: int) -> Values:
    """The rank. Expected: the realistic rank, or the exact mean of a question's first answer."""
    if rank_type != "expected":
        return Values(ties.twice_rank(rank_type), 2)
    if np.all(ties.answers == 1):
        return Values(ties.twice_rank("realistic"), 2)
    return Values(expected_rank(ties.greater, ties.equal + 1, ties.answers), 1)


def reciprocal_rank(ties: Ties, rank_type: str, k: int) -> Values:
    """1/rank."""
    if rank_type == "expected":
        return Values(expected_reciprocal(ties.greater, ties.equal + 1, ties.answers), 1)
    return Values(2.0 / ties.twice_rank(rank_type), 1)


def hits(ties: Ties, rank_type: str, k: int) -> Values:
    """1 if rank <= k, else 0; expected: the probability of that."""
    k = min(k, 1 << 61)  # 2k must fit int64
    if rank_type == "expected":
        return Values(expected_hits(ties.greater, ties.equal + 1, ties.answers, k), 1)
    return Values((ties.twice_rank(rank_type) <= 2 * k).astype(np.int64), 1)


def log_rank(ties: Ties, rank_type: str, k: int) -> Values:
    """Natural logarithm of the rank; micro only (one answer per tie)."""
    if rank_type == "expected":
        return Values(expected_log_rank(ties.greater, ties.equal + 1), 1)
    return Values(np.log(ties.twice_rank(rank_type) / 2.0), 1)
