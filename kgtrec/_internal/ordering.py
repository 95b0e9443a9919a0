"""Orders and numbers of integers in passes over them, where sorting would compare each with others.

Ids and counts lie close together: a pass of a radix sort, or a table of all values, is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["numbered", "order_by"]

Int64 = npt.NDArray[np.int64]

_DIGIT = 16  # bits of the integers that numpy's stable sort puts in order without comparing


def order_by(*columns: npt.NDArray[np.integer[Any]]) -> Int64:
    """Rows in ascending order of integer columns, the first above all; equal rows as they stand."""
    order = np.arange(len(columns[0]))
    if not len(order):
        return order
    for column in reversed(columns):
        above_least = column - column.min()
        for shift in range(0, int(above_least.max()).bit_length(), _DIGIT):
            digit = (above_least >> shift).astype(np.uint16)
            order = order[np.argsort(digit[order], kind="stable")]
    return order


def numbered(values: npt.NDArray[np.integer[Any]]) -> tuple[Int64, Int64]:
    """The distinct values, ascending, and the place of each value among them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low > 8 * len(values):
        distinct, place = np.unique(values, return_inverse=True)
        return distinct, place.reshape(-1)
    present = np.zeros(high - low + 1, bool)
    present[values - low] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[values - low]
