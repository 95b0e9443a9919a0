"""Expectations under ties: the mean of a metric over every rank that a tie allows.

A tie holds ``size`` candidates below ``greater`` others; ``answers`` of them are right (always 1
for an instance, and 1 or more for a question, whose rank is that of its first answer). All orders
of the tie are equally likely. The named sums are native, see ``csrc/stat_expected.c``; `sums_over`
adds up any other smooth function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core

__all__ = [
    "expected_hits",
    "expected_log_rank",
    "expected_rank",
    "expected_reciprocal",
    "sums_over",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Smooth = Callable[[Floats, NDArray[np.intp]], Floats]

# Terms that are added one by one; from there on differences of order 7 are below 1e-14.
_PEELED = 64
_N_NODES = 32
_CELLS = 1 << 19  # terms at a time: a few megabytes


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss and Legendre; few need them, and their import takes 10 ms."""
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return nodes, weights


def expected_rank(greater: Ints, size: Ints, answers: Ints) -> Floats:
    """Expected rank of the first answer: ``greater + (size + 1) / (answers + 1)``."""
    return greater + (size + 1) / (answers + 1)


def expected_reciprocal(greater: Ints, size: Ints, answers: Ints) -> Floats:
    """Expected ``1/rank`` of the first answer.

    Parameters
    ----------
    greater : int64 array (n,)
        Candidates strictly above the tie, 0 or more.
    size : int64 array (n,)
        Candidates in the tie, the answers included, 1 or more.
    answers : int64 array (n,)
        Right ones among them, 1 .. size.

    Returns
    -------
    float64 array (n,), in (0, 1]. Relative error below 1e-13 for one answer, 1e-12 for several.
    """
    out = np.empty(len(greater))
    _core.expected_reciprocal(greater, size, np.ascontiguousarray(answers), out)
    return out


def expected_hits(greater: Ints, size: Ints, answers: Ints, k: int) -> Floats:
    """Probability that the first answer ranks within `k`; arguments as above.

    Returns
    -------
    float64 array (n,), in [0, 1], relative error below 1e-13.
    """
    out = np.empty(len(greater))
    _core.expected_hits(greater, size, np.ascontiguousarray(answers), k, out)
    return out


def expected_log_rank(greater: Ints, size: Ints) -> Floats:
    """Expected ``ln rank`` of the one answer of a tie; arguments as above.

    Returns
    -------
    float64 array (n,), 0 or more, relative error below 1e-13.
    """
    out = np.log(greater + 1.0)  # the bits that every other rank type has where nothing is tied
    tied = np.flatnonzero(size > 1)
    means = np.empty(len(tied))
    _core.expected_log(greater[tied], size[tied], means)
    out[tied] = means
    return out


def sums_over(f: Smooth, first: Ints, count: Ints) -> Floats:
    """``sum of f(x) for x = first .. first + count - 1``, for every row.

    Parameters
    ----------
    f : function (x, rows) -> float64 array
        Defined on x > 0, and as smooth as powers and logarithms of x are. ``x`` is (m, terms);
        ``rows`` (m, 1) says which row each line is of.
    first : int64 array (n,)
        1 or more.
    count : int64 array (n,)
        0 or more.

    Returns
    -------
    float64 array (n,). The cost of a row does not grow with its count beyond 64 terms; relative
    error below 1e-12 for sums whose terms have one sign.

    Notes
    -----
    The sum over whole numbers is the integral between half numbers, less a series of central
    differences at both ends (Gauss's form of Euler and Maclaurin's formula). The integral is taken
    in ln x, in which powers and logarithms are tame.
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


def _parts(rows: NDArray[np.intp], width: int) -> list[NDArray[np.intp]]:
    at_once = _CELLS // width
    return [rows[i : i + at_once] for i in range(0, len(rows), at_once)]


def _long_sums(f: Smooth, start: Floats, length: Floats, rows: NDArray[np.intp]) -> Floats:
    """Sums over ``start + 1 .. start + length``; columns (m, 1) in, (m,) out."""
    nodes, weights = _nodes()
    half = np.log1p(length / (start + 0.5)) / 2
    x = (start + 0.5) * np.exp(half * (nodes + 1))
    integral = (f(x, rows) * x * weights).sum(axis=1) * half[:, 0]
    ends = _end_terms(f, start + length, rows) - _end_terms(f, start, rows)
    return np.asarray(integral - ends)


def _end_terms(f: Smooth, end: Floats, rows: NDArray[np.intp]) -> Floats:
    """What the midpoint rule misses at one end: d/24 - 17 d3/5760 + 367 d5/967680."""
    values = f(end + np.arange(-2, 4), rows)
    first = np.diff(values, axis=1)
    third = np.diff(first, n=2, axis=1)
    fifth = np.diff(third, n=2, axis=1)
    return np.asarray(first[:, 2] / 24 - 17 / 5760 * third[:, 1] + 367 / 967680 * fifth[:, 0])
