"""Means of 1/r and ln r over a run of consecutive ranks, without cancellation.

A tie spreads an answer's rank evenly over ``greater + 1 .. greater + size``. The textbook forms
``H(b) - H(a)`` and ``lgamma(b + 1) - lgamma(a + 1)`` subtract numbers that agree in nearly all
digits when the tie is short and the rank is deep, so the first `PEELED` terms are summed as they
stand, and what is left of a longer tie is an asymptotic *difference*, built on ``log1p``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["mean_log_rank", "mean_reciprocal_rank"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PEELED = 32
"""Terms summed one by one; beyond them the asymptotic series is exact to under 1e-16."""


def mean_reciprocal_rank(greater: Ints, size: Ints) -> Floats:
    """Mean of ``1/r`` over ``r = greater + 1 .. greater + size``.

    Parameters
    ----------
    greater : int64 array (n,)
        Candidates strictly above the tie, 0 or more.
    size : int64 array (n,)
        Candidates in the tie, the answer included, 1 or more.

    Returns
    -------
    float64 array (n,), in (0, 1], relative error below 1e-13.
    """
    return _mean(greater, size, lambda rank: 1.0 / rank, _harmonic_difference)


def mean_log_rank(greater: Ints, size: Ints) -> Floats:
    """Mean of ``ln r`` over ``r = greater + 1 .. greater + size``; arguments as above.

    Returns
    -------
    float64 array (n,), 0 or more, relative error below 1e-13.
    """
    return _mean(greater, size, np.log, _log_factorial_difference)


def _mean(
    greater: Ints,
    size: Ints,
    term: Callable[[Floats], Floats],
    difference: Callable[[Floats, Floats], Floats],
) -> Floats:
    start = greater.astype(np.float64)
    total = term(start + 1.0)
    tied = np.flatnonzero(size > 1)
    for offset in range(2, PEELED + 1):
        if not len(tied):
            break
        total[tied] += term(start[tied] + offset)
        tied = tied[size[tied] > offset]
    if len(tied):
        rest = (size[tied] - PEELED).astype(np.float64)
        total[tied] += difference(start[tied] + PEELED, rest)
    return total / size


def _harmonic_difference(a: Floats, length: Floats) -> Floats:
    """``H(a + length) - H(a)`` for ``a >= PEELED`` (Euler-Maclaurin, term by term)."""
    b = a + length
    linear = -length / (2.0 * a * b)
    square = length * (a + b) / (12.0 * (a * b) ** 2)
    return np.log1p(length / a) + linear + square + _tail(b) - _tail(a)


def _tail(x: Floats) -> Floats:
    """The harmonic series' terms in x^-4 and x^-6: too small for cancellation to matter."""
    inverse = 1.0 / (x * x)
    return inverse**2 / 120.0 - inverse**3 / 252.0


def _log_factorial_difference(a: Floats, length: Floats) -> Floats:
    """``ln((a + length)! / a!)`` for ``a >= PEELED``, from Stirling's series of each factorial."""
    b = a + length
    leading = length * (np.log(a) - 1.0) + (b + 0.5) * np.log1p(length / a)
    first = -length / (12.0 * a * b)
    third = (a**-3 - b**-3) / 360.0
    fifth = (b**-5 - a**-5) / 1260.0
    return leading + first + third + fifth
