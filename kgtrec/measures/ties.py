"""Ties: bounds on the rank of an answer, its rank by each rank type, and expectations.

A tie holds ``size`` candidates below ``greater`` others; ``answers`` of them are right. That is 1
for an instance, and 1 or more for a question, whose rank is that of its first answer. All orders
of the tie are equally likely. The named sums are native, see ``csrc/stat_expected.c``; `sums_over`
adds up any other smooth function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kgtrec import _core
from kgtrec._internal.arrays import Array, Bools, Float64, Indices, Int64

RANK_TYPES = {
    "optimistic": "greater + 1: every tie is won",
    "realistic": "greater + 1 + equal / 2: the middle of the tie",
    "pessimistic": "greater + equal + 1: every tie is lost",
    "expected": "the metric's exact mean over all ranks that the tie allows",
    "ordinal": "the place in the run file: ties by entity label, descending, as trec_eval does",
}


class Scaled(NamedTuple):
    """Values of a metric per item, times `scale`: integers stay integers, with exact sums."""

    scaled: Int64 | Float64
    scale: int


@dataclass(frozen=True, eq=False)
class Ties:
    """Counts per item: an instance (micro) or the best answer of a question (macro).

    - greater, equal, tied_ahead, int64 (n,): Candidates above; other candidates with the same
      score; those of them that precede in trec order.
    - answers, int64 (n,): Answers inside the tie: 1 for an instance, 1 .. equal + 1 for a question.
    - candidates, int64 (n,): Number of candidates, the answer included; None where only metrics
      that do not use it are computed.
    - unlisted, bool (n,): True for answers beyond the end of their predicted list; None if there
      are none.
    """

    greater: Int64
    equal: Int64
    tied_ahead: Int64
    answers: Int64
    candidates: Int64 | None = None
    unlisted: Bools | None = None

    def __len__(self) -> int:
        return len(self.greater)

    def __getitem__(self, rows: Array) -> Ties:
        candidates = None if self.candidates is None else self.candidates[rows]
        unlisted = None if self.unlisted is None else self.unlisted[rows]
        counts = self.greater[rows], self.equal[rows], self.tied_ahead[rows], self.answers[rows]
        return Ties(*counts, candidates, unlisted)

    @property
    def size(self) -> Int64:
        """Number of candidates in the tie, the answers included."""
        return self.equal + 1

    def twice_rank(self, rank_type: str) -> Int64:
        """Return 2 x rank as integers (a realistic rank can end in a half); not for ``expected``.

        Of several answers in a tie the first counts: at worst, all candidates of the tie that are
        not answers precede it.
        """
        twice = 2 * self.greater
        twice += 2
        if rank_type == "realistic":
            twice += self.size - self.answers
        elif rank_type == "pessimistic":
            twice += 2 * (self.size - self.answers)
        elif rank_type == "ordinal":
            twice += 2 * self.tied_ahead
        return twice

    def ranks(self, rank_type: str) -> Scaled:
        """Return the rank of each item.

        For ``expected``, it is the mean over the tie, as for a question's first answer.
        """
        if rank_type != "expected":
            return Scaled(self.twice_rank(rank_type), 2)
        if np.all(self.answers == 1):
            return Scaled(self.twice_rank("realistic"), 2)
        return Scaled(expected_rank(self.greater, self.size, self.answers), 1)

    def mean_of(self, f: Callable[[Float64], Float64]) -> Float64:
        """Average a smooth ``f(rank)`` over the ranks of a tie with one answer, float64 (n,)."""
        return sums_over(lambda x, rows: f(x), self.greater + 1, self.size) / self.size

    def variance(self) -> Float64:
        """Compute the variance of the rank over a tie with one answer, float64 (n,)."""
        size = self.size.astype(np.float64)
        return (size * size - 1) / 12

    def share_within(self, quarters: int) -> Float64:
        """Return the share of a tie with one answer at ranks up to ``quarters / 4``; (n,)."""
        return np.clip(quarters // 4 - self.greater, 0, self.size) / self.size


@dataclass(frozen=True, eq=False)
class PairedTies:
    """Ties of triples, whose rank is the mean of the head's and the tail's (Berrendorf et al.).

    The two ties of a triple are broken independently.

    - head, tail: Ties of the same triples, in the same order; one answer per tie.
    """

    head: Ties
    tail: Ties

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, rows: Array) -> PairedTies:
        return PairedTies(self.head[rows], self.tail[rows])

    def ranks(self, rank_type: str) -> Scaled:
        """Return the mean of the two ranks."""
        kind = "realistic" if rank_type == "expected" else rank_type
        return Scaled(self.head.twice_rank(kind) + self.tail.twice_rank(kind), 4)

    def mean_of(self, f: Callable[[Float64], Float64]) -> Float64:
        """Average ``f(rank)`` over all pairs of ranks; see `Ties`.

        The number of pairs with the same sum rises, stays constant, and falls.
        """
        start = self.head.greater + self.tail.greater + 2
        narrow = np.minimum(self.head.size, self.tail.size)
        wide = np.maximum(self.head.size, self.tail.size)
        end = start + narrow + wide - 2

        def rising(x: Float64, rows: Indices) -> Float64:
            return (x - (start[rows] - 1)) * f(x / 2)

        def level(x: Float64, rows: Indices) -> Float64:
            return narrow[rows] * f(x / 2)

        def falling(x: Float64, rows: Indices) -> Float64:
            return (end[rows] + 1 - x) * f(x / 2)

        total = sums_over(rising, start, narrow)
        total += sums_over(level, start + narrow, wide - narrow)
        total += sums_over(falling, start + wide, narrow - 1)
        return total / narrow / wide

    def variance(self) -> Float64:
        """Compute the variance of the rank; see `Ties`."""
        return (self.head.variance() + self.tail.variance()) / 4

    def share_within(self, quarters: int) -> Float64:
        """Count pairs of ranks up to a sum, by inclusion and exclusion; see `Ties`."""
        total = quarters // 2 - self.head.greater - self.tail.greater
        first, second = self.head.size, self.tail.size
        pairs = _triangle(total) - _triangle(total - first) - _triangle(total - second)
        pairs += _triangle(total - first - second)
        return pairs / first / second


Ranked = Ties | PairedTies
"""Items that have a rank, or a tie of several: instances or questions, or triples."""


def _triangle(total: Int64) -> Float64:
    """Count the pairs of whole numbers from 1 on with a sum up to `total`."""
    total = np.maximum(total, 1).astype(np.float64)
    return total * (total - 1) / 2


Smooth = Callable[[Float64, Indices], Float64]

# Terms to add one by one; beyond these, differences of order 7 are below 1e-14.
_PEELED = 64
_N_NODES = 32
_CELLS = 1 << 19  # terms at a time: a few megabytes


@cache
def _nodes() -> tuple[Float64, Float64]:
    """Compute Gauss-Legendre nodes and weights, when first needed: their import takes 10 ms."""
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return nodes, weights


def expected_rank(greater: Int64, size: Int64, answers: Int64) -> Float64:
    """Compute the expected rank of the first answer: ``greater + (size + 1) / (answers + 1)``."""
    return greater + (size + 1) / (answers + 1)


def expected_reciprocal(greater: Int64, size: Int64, answers: Int64) -> Float64:
    """Compute the expected ``1/rank`` of the first answer, float64 (n,)."""
    out = np.empty(len(greater))
    _core.expected_reciprocal(greater, size, np.ascontiguousarray(answers), out)
    return out


def expected_hits(greater: Int64, size: Int64, answers: Int64, k: int) -> Float64:
    """Compute the probability that the first answer ranks within `k`, float64 (n,)."""
    out = np.empty(len(greater))
    _core.expected_hits(greater, size, np.ascontiguousarray(answers), k, out)
    return out


def expected_log_rank(greater: Int64, size: Int64) -> Float64:
    """Compute the expected ``ln rank`` of the only answer of a tie, float64 (n,)."""
    out = np.log(greater + 1.0)  # without a tie: the same bits as other rank types
    tied = np.flatnonzero(size > 1)
    means = np.empty(len(tied))
    _core.expected_log(greater[tied], size[tied], means)
    out[tied] = means
    return out


def sums_over(f: Smooth, first: Int64, count: Int64) -> Float64:
    """Compute ``sum of f(x) for x = first .. first + count - 1``, for every row.

    The sum over whole numbers is the integral between half numbers, minus a series of central
    differences at both ends (Gauss's form of Euler and Maclaurin's formula). The integral is over
    ln x, in which powers and logarithms are smooth.

    Shapes: first int64 (n,), count int64 (n,) -> float64 (n,).
    """
    out = np.zeros(len(first))
    for low, high in pairwise((0, 1, 4, 16, _PEELED)):
        top = np.inf if high == _PEELED else high
        steps = np.arange(high)
        for part in _parts(np.flatnonzero((count > low) & (count <= top)), high):
            x = (first[part, None] + steps).astype(np.float64)
            terms = np.where(steps < count[part, None], f(x, part[:, None]), 0.0)
            out[part] = terms.sum(axis=1)
    for part in _parts(np.flatnonzero(count > _PEELED), _N_NODES):
        start = (first[part] + (_PEELED - 1)).astype(np.float64)[:, None]
        length = (count[part] - _PEELED).astype(np.float64)[:, None]
        out[part] += _long_sums(f, start, length, part[:, None])
    return out


def _parts(rows: Indices, width: int) -> list[Indices]:
    """Split rows into parts of at most `_CELLS` terms."""
    at_once = _CELLS // width
    return [rows[i : i + at_once] for i in range(0, len(rows), at_once)]


def _long_sums(f: Smooth, start: Float64, length: Float64, rows: Indices) -> Float64:
    """Sum over ``start + 1 .. start + length``; columns (m, 1) in, (m,) out."""
    nodes, weights = _nodes()
    half = np.log1p(length / (start + 0.5)) / 2
    x = (start + 0.5) * np.exp(half * (nodes + 1))
    integral = (f(x, rows) * x * weights).sum(axis=1) * half[:, 0]
    ends = end_terms(f, start + length, rows) - end_terms(f, start, rows)
    return np.asarray(integral - ends)


def end_terms(f: Smooth, end: Float64, rows: Indices) -> Float64:
    """Compute the correction of the midpoint rule at one end: d/24 - 17 d3/5760 + 367 d5/967680."""
    values = f(end + np.arange(-2, 4), rows)
    first = np.diff(values, axis=1)
    third = np.diff(first, n=2, axis=1)
    fifth = np.diff(third, n=2, axis=1)
    return np.asarray(first[:, 2] / 24 - 17 / 5760 * third[:, 1] + 367 / 967680 * fifth[:, 0])
