"""Expected Hits@k of an answer among candidates that are drawn at random.

GraIL's protocol ranks an answer among itself and n - 1 other candidates. NBFNet and ULTRA compute
the expectation (``hits@10_50``) from the rank r among all c candidates. Each of n - 1 draws is
above the answer with probability (r - 1) / (c - 1), independently. So the number of draws above it
is binomial, and the answer is a hit if this number is below k.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kgtrec._internal.arrays import Float64, Indices, Int64
from kgtrec.measures.ties import Ranked, Scaled, Ties, end_terms

_CELLS = 1 << 19  # terms at a time: a few megabytes
_PEELED = 3  # ranks at each end of a long tie, whose differences would need values beyond the tie
_SHORT = 512  # ranks of a tie to add one by one
_MOST_DRAWS = 1000  # the nodes of more take seconds
_SMOOTH = 64  # candidates per draw from which differences of order 7 are below 1e-14


def sampled_hits(ties: Ranked, rank_type: str, parameter: tuple[int, int]) -> Scaled:
    """Compute the probability that an answer is among the first k of n; `parameter` is (k, n).

    Expected: the exact mean over the ranks that the tie allows. An answer without other candidates
    is a hit.
    """
    assert isinstance(ties, Ties)
    assert ties.candidates is not None
    if rank_type == "expected":
        return Scaled(_mean_chances(ties, *parameter), 1)
    scaled, scale = ties.ranks(rank_type)
    return Scaled(_chances(np.asarray(scaled / scale), ties.candidates, *parameter), 1)


def _chances(rank: Float64, candidates: Int64, k: int, n: int) -> Float64:
    """Compute P(fewer than k of n - 1 draws are above the answer), for arrays that broadcast."""
    from scipy.special import betainc  # not needed by other metrics

    if k >= n:
        return np.ones(np.broadcast(rank, candidates).shape)
    n_negatives = np.maximum(candidates - 1, 1)
    below = np.where(candidates > 1, (candidates - rank) / n_negatives, 1.0)
    return np.asarray(betainc(n - k, k, below), np.float64)


def _mean_chances(ties: Ties, k: int, n: int) -> Float64:
    """Average `_chances` over the ranks of every tie, float64 (n,)."""
    assert ties.candidates is not None
    first, size, candidates = ties.greater + 1, ties.size, ties.candidates
    out = _chances(first.astype(np.float64), candidates, k, n)
    is_long = (size > _SHORT) & (candidates > _SMOOTH * n) & (n <= _MOST_DRAWS)
    short, long = np.flatnonzero((size > 1) & ~is_long), np.flatnonzero(is_long)
    if len(short):
        rows = np.stack([first[short], size[short], candidates[short]])
        (start, length, of), owner = np.unique(rows, axis=1, return_inverse=True)
        out[short] = (_sum_each(start, length, of, k, n) / length)[owner.reshape(-1)]
    if len(long):
        out[long] = _sum_long(first[long], size[long], candidates[long], k, n) / size[long]
    return out


def _sum_each(first: Int64, size: Int64, candidates: Int64, k: int, n: int) -> Float64:
    """Sum `_chances` over the ranks of ties, one by one, float64 (ties,)."""
    ends = np.cumsum(size)
    sums = np.zeros(len(size))
    for start in range(0, int(ends[-1]), _CELLS):
        term = np.arange(start, min(start + _CELLS, int(ends[-1])))
        tie = np.searchsorted(ends, term, side="right")
        rank = first[tie] + (term - (ends - size)[tie])
        values = _chances(rank.astype(np.float64), candidates[tie], k, n)
        sums += np.bincount(tie, weights=values, minlength=len(sums))
    return sums


@lru_cache(maxsize=8)
def _nodes(number: int) -> tuple[Float64, Float64]:
    """Compute Gauss-Legendre nodes and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return nodes, weights


def _sum_long(first: Int64, size: Int64, candidates: Int64, k: int, n: int) -> Float64:
    """Sum `_chances` over the ranks of long ties, float64 (ties,).

    The chance is a polynomial of the rank, of degree n - 1, so few nodes integrate it exactly. The
    sum over whole numbers is the integral between half numbers minus a series of differences at
    both ends, as in `kgtrec.measures.ties.sums_over`.
    """
    last = first + size - 1
    edge = np.arange(_PEELED)

    def at(rank: Float64, rows: Indices) -> Float64:
        return _chances(rank, candidates[rows], k, n)

    nodes, weights = _nodes((n - 1) // 2 + 1)
    at_once = max(1, _CELLS // len(nodes))
    sums = np.empty(len(first))
    for start in range(0, len(first), at_once):
        rows = np.arange(start, min(start + at_once, len(first)))[:, None]
        low = (first[rows] + _PEELED - 1).astype(np.float64)
        high = (last[rows] - _PEELED).astype(np.float64)
        half = (high - low) / 2
        middle = low + 0.5 + half * (nodes + 1)
        integral = (at(middle, rows) * weights).sum(axis=1) * half[:, 0]
        ends = at(np.hstack([first[rows] + edge, last[rows] - edge]).astype(np.float64), rows)
        corrections = end_terms(at, high, rows) - end_terms(at, low, rows)
        sums[start : start + at_once] = integral + ends.sum(axis=1) - corrections
    return sums
