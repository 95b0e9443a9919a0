"""Ties: what is known of the rank of an answer, and the ranks that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.tie_expectation import expected_rank, sums_over

__all__ = ["RANK_TYPES", "PairedTies", "Ranked", "Ties", "Values"]

Floats = NDArray[np.float64]
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


class Ranked(Protocol):
    """Items that have a rank, or a tie of several: instances, questions, triples."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: NDArray[Any]) -> Ranked:
        """Some of the items."""

    def ranks(self, rank_type: str) -> Values:
        """The rank; for ``expected`` its mean over the tie."""

    def mean_of(self, f: Callable[[Floats], Floats]) -> Floats:
        """Mean of a smooth ``f(rank)`` over the ranks that the tie allows, float64 (n,)."""

    def variance(self) -> Floats:
        """Variance of the rank over the tie, float64 (n,)."""

    def share_within(self, quarters: int) -> Floats:
        """Share of the tie at ranks up to ``quarters / 4``, float64 (n,)."""


@dataclass(frozen=True, eq=False)
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

    def __len__(self) -> int:
        return len(self.greater)

    def __getitem__(self, rows: NDArray[Any]) -> Ties:
        return Ties(self.greater[rows], self.equal[rows], self.tied_ahead[rows], self.answers[rows])

    @property
    def size(self) -> Ints:
        """Candidates in the tie, the answers included."""
        return self.equal + 1

    def twice_rank(self, rank_type: str) -> Ints:
        """2 x rank as integers (a realistic rank can end in a half); not for ``expected``."""
        twice = 2 * self.greater
        twice += 2
        if rank_type == "realistic":
            twice += self.equal
        elif rank_type == "pessimistic":
            twice += 2 * self.equal
        elif rank_type == "ordinal":
            twice += 2 * self.tied_ahead
        return twice

    def ranks(self, rank_type: str) -> Values:
        """The rank. Expected: the realistic rank, or the exact mean of a first answer's."""
        if rank_type != "expected":
            return Values(self.twice_rank(rank_type), 2)
        if np.all(self.answers == 1):
            return Values(self.twice_rank("realistic"), 2)
        return Values(expected_rank(self.greater, self.size, self.answers), 1)

    def mean_of(self, f: Callable[[Floats], Floats]) -> Floats:
        """See `Ranked`; for one answer a tie."""
        return sums_over(lambda x, rows: f(x), self.greater + 1, self.size) / self.size

    def variance(self) -> Floats:
        """See `Ranked`; for one answer a tie."""
        size = self.size.astype(np.float64)
        return (size * size - 1) / 12

    def share_within(self, quarters: int) -> Floats:
        """See `Ranked`; for one answer a tie."""
        return np.clip(quarters // 4 - self.greater, 0, self.size) / self.size


@dataclass(frozen=True, eq=False)
class PairedTies:
    """Triples, whose rank is the mean of two: of the head, and of the tail (Berrendorf et al.).

    The two ties of a triple are broken independently.

    Attributes
    ----------
    head, tail : Ties
        Of the same triples, in the same order; one answer a tie.
    """

    head: Ties
    tail: Ties

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, rows: NDArray[Any]) -> PairedTies:
        return PairedTies(self.head[rows], self.tail[rows])

    def ranks(self, rank_type: str) -> Values:
        """The mean of the two ranks."""
        kind = "realistic" if rank_type == "expected" else rank_type
        return Values(self.head.twice_rank(kind) + self.tail.twice_rank(kind), 4)

    def mean_of(self, f: Callable[[Floats], Floats]) -> Floats:
        """See `Ranked`: the number of pairs of ranks with a sum rises, stays, and falls again."""
        start = self.head.greater + self.tail.greater + 2
        narrow = np.minimum(self.head.size, self.tail.size)
        wide = np.maximum(self.head.size, self.tail.size)
        end = start + narrow + wide - 2

        def rising(x: Floats, rows: NDArray[np.intp]) -> Floats:
            return (x - (start[rows] - 1)) * f(x / 2)

        def level(x: Floats, rows: NDArray[np.intp]) -> Floats:
            return narrow[rows] * f(x / 2)

        def falling(x: Floats, rows: NDArray[np.intp]) -> Floats:
            return (end[rows] + 1 - x) * f(x / 2)

        total = sums_over(rising, start, narrow)
        total += sums_over(level, start + narrow, wide - narrow)
        total += sums_over(falling, start + wide, narrow - 1)
        return total / narrow / wide

    def variance(self) -> Floats:
        """See `Ranked`."""
        return (self.head.variance() + self.tail.variance()) / 4

    def share_within(self, quarters: int) -> Floats:
        """See `Ranked`: pairs of ranks up to a sum, by inclusion and exclusion."""
        total = quarters // 2 - self.head.greater - self.tail.greater
        first, second = self.head.size, self.tail.size
        pairs = _triangle(total) - _triangle(total - first) - _triangle(total - second)
        pairs += _triangle(total - first - second)
        return pairs / first / second


def _triangle(total: Ints) -> Floats:
    """Pairs of whole numbers from 1 on with a sum up to `total`."""
    total = np.maximum(total, 1).astype(np.float64)
    return total * (total - 1) / 2
