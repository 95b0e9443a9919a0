"""Tolerant ties: candidates whose scores are almost the answer's count as tied with it.

A candidate c ties with the answer a if ``s(c) == s(a)``, or if ``|s(c) - s(a)|`` is finite and at
most ``atol + rtol |s(a)|``, computed in the dtype of the scores: LibKGE's meaning. The difference
rises with s(c), rounded too, so that the tied scores are an interval around s(a). Its two ends go
to the kernel as thresholds in place of s(a), and what it counts above them gives both counts:
exactly, without a word of it in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import contains, to_keys
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.kernel import NativeRanking

__all__ = ["Tolerance", "checked_tolerance", "thresholds", "widen_ties"]

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


class Tolerance(NamedTuple):
    """How far a score may be from the answer's to tie with it: ``atol + rtol |s(a)|``."""

    atol: float
    rtol: float


def checked_tolerance(atol: Any, rtol: Any) -> Tolerance | None:
    """None if both are 0; UsageError if one is not a finite number from 0."""
    for name, value in (("atol", atol), ("rtol", rtol)):
        is_number = isinstance(value, (int, float, np.integer, np.floating))
        if not is_number or isinstance(value, bool) or not 0 <= value < float("inf"):
            raise UsageError(f"{name}={value!r}; it must be a number from 0, such as 1e-5")
    return Tolerance(float(atol), float(rtol)) if atol or rtol else None


def thresholds(own: Float64, dtype: str, tolerance: Tolerance) -> tuple[Float64, Float64]:
    """The largest score that ties with each of the answers' scores, and the largest below them all.

    Parameters
    ----------
    own : ndarray of float64, shape (n,)
        Values of ``dtype``.
    dtype : {"float32", "float64", "float16"}

    Raises
    ------
    InputError
        Another dtype, in which numpy cannot compute.
    """
    if dtype not in _BITS:
        raise InputError(
            f"ties with a tolerance are computed in the scores' dtype, and {dtype} is none of "
            f"{', '.join(_BITS)}; cast the scores, or leave atol and rtol out"
        )
    center = own.astype(dtype)
    center = np.where(np.isfinite(center), center, np.zeros_like(center))  # the others: no matter
    kind = center.dtype.type
    with np.errstate(over="ignore"):
        allowed = kind(tolerance.atol) + np.abs(kind(tolerance.rtol) * center)
    high, low = (_farthest(center, allowed, sign).astype(np.float64) for sign in (1, -1))
    with np.errstate(over="ignore"):  # below the least number there is
        below = np.nextafter(low.astype(_computed(dtype)), -np.inf, dtype=_computed(dtype))
    odd = ~np.isfinite(own)
    return np.where(odd, own, high), np.where(odd, own, below.astype(np.float64))


_BITS: dict[str, Any] = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


def _computed(dtype: str) -> Any:
    """What the kernel compares in."""
    return np.float64 if dtype == "float64" else np.float32


def _farthest(center: Array, allowed: Array, sign: int) -> Array:
    """The finite score farthest from the center, upward or downward, that still ties with it.

    A search by bisection among all floats in their order, in which ties end once.
    """
    name = center.dtype.name
    near = _ordinal(sign * center, name)
    far = np.full_like(near, _ordinal(np.array([np.finfo(center.dtype).max]), name)[0])
    while (far > near).any():
        # Between them, never `near` itself, by halves that overflow nothing.
        middle = (far >> 1) + (near >> 1) + (((far & 1) + (near & 1) + 1) >> 1)
        with np.errstate(over="ignore"):
            apart = np.abs(sign * _float(middle, name) - center)
        tied = np.isfinite(apart) & (apart <= allowed)
        near, far = np.where(tied, middle, near), np.where(tied, far, middle - 1)
    return sign * _float(near, name)


def _ordinal(values: Array, dtype: str) -> npt.NDArray[np.int64]:
    """Places of floats in their order; 0.0 and -0.0 are one."""
    bits = np.ascontiguousarray(values, dtype=dtype).view(_BITS[dtype])
    sign = np.iinfo(_BITS[dtype]).min
    wide = bits.astype(np.int64)
    return np.where(wide < 0, sign - wide, wide)


def _float(places: Array, dtype: str) -> Array:
    sign = np.iinfo(_BITS[dtype]).min
    bits = np.where(places < 0, sign - places, places)
    return bits.astype(_BITS[dtype]).view(dtype)


def widen_ties(
    state: NativeRanking,
    start: int,
    stop: int,
    own: Float64,
    tolerance: Tolerance,
    rank: Callable[[NativeRanking, Float64], Any],
    entities: tuple[int, int] | None = None,
) -> None:
    """Give rows that were ranked by exact ties the micro counts that they have under a tolerance.

    Ordinal ranks stay: what was greater and is tied now still stands ahead. The interval of tied
    scores is that of the answer's score alone, so that counts of ranges of entities add up.

    Parameters
    ----------
    state : NativeRanking
    start, stop : int
        The rows.
    own : ndarray of float64
        Scores of their answers.
    tolerance : Tolerance
    rank : function (ranking, thresholds)
        Ranks the rows by other thresholds than the answers' scores.
    entities : (int, int), optional
        First entity that the rows hold, and the first behind the last; by default all.
    """
    offsets = state.plan.target_offsets
    targets = slice(offsets[start], offsets[stop])
    above = []
    for limits in thresholds(own, state.dtype, tolerance):
        part = state.without_best(start, stop)
        rank(part, limits)
        above.append(part.counts[0])
    # Above the lower end stands the answer, too, unless the filter takes it out, or the range.
    n_labels, answers = part.lists.n_labels, part.plan.targets
    row = np.repeat(np.arange(stop - start), np.diff(part.plan.target_offsets))
    itself = ~contains(to_keys(part.lists.known, n_labels), row * n_labels + answers)
    first, behind = entities or (0, n_labels)
    itself &= (answers >= first) & (answers < behind)
    exact, finite = state.counts[:3, targets], np.isfinite(own)
    greater = np.where(finite, above[0], exact[0])
    equal = np.where(finite, above[1] - itself - greater, exact[1])
    ahead = exact[0] + exact[2] - greater
    state.counts[:3, targets] = np.stack([greater, equal, ahead])
