"""Orders and numbers of integers in passes over them, where sorting would compare each with others.

Ids and counts lie close together: a pass of a radix sort, or a table of all values, is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import position_type

__all__ = ["numbered", "order_by"]

Integers = npt.NDArray[np.signedinteger[Any]]

_ROWS = 1 << 18
_DIGIT = 16  # bits of the integers that numpy's stable sort puts in order without comparing


def order_by(*columns: npt.NDArray[np.integer[Any]]) -> Integers:
    """Rows in ascending order of integer columns, the first above all; equal rows as they stand."""
    order: Integers | None = None
    for column in reversed(columns):
        for digit in _digits(column):
            order = _order_of(digit) if order is None else order[_order_of(digit[order])]
    return np.arange(len(columns[0])) if order is None else order


def _order_of(digit: npt.NDArray[np.uint16]) -> Integers:
    """The stable order of one digit, some rows at a time: numpy's takes 16 bytes a row more."""
    if len(digit) <= _ROWS:
        return np.argsort(digit, kind="stable")
    counts = np.bincount(digit)
    place = np.cumsum(counts) - counts
    order = np.empty(len(digit), position_type(len(digit)))
    for start in range(0, len(digit), _ROWS):
        some = np.argsort(digit[start : start + _ROWS], kind="stable")
        ordered = digit[start + some]
        counts = np.bincount(ordered, minlength=len(place))
        first = np.cumsum(counts) - counts
        order[np.arange(len(some)) + (place - first)[ordered]] = start + some
        place += counts
    return order


def _digits(column: npt.NDArray[np.integer[Any]]) -> Iterator[npt.NDArray[np.uint16]]:
    """A column's digits, the last one first; none of equal values."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    for shift in range(0, (high - low).bit_length(), _DIGIT):
        digit = column - low
        digit >>= shift
        yield digit.astype(np.uint16)


def numbered(values: npt.NDArray[np.integer[Any]]) -> tuple[Integers, Integers]:
    """The distinct values, ascending, and the place of each value among them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low > 8 * len(values):
        distinct, place = np.unique(values, return_inverse=True)
        return distinct, place.reshape(-1)
    present = np.zeros(high - low + 1, bool)
    present[values - low] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[values - low]
