"""Integers as float64, without different ones becoming equal."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

import numpy as np

from kgtrec._internal.arrays import Array
from kgtrec.errors import InputError

EXACT = 2**53
"""float64 has every integer up to here, but only some beyond it."""


def exact_floats(array: Array, name: str = "scores") -> Array:
    """Return integer scores as float64, and floats unchanged.

    Raises
    ------
    InputError
        float64 does not have one of the integers, so that different scores could tie.
    """
    if array.dtype.kind not in "iu":
        return array
    floats = array.astype(np.float64)
    if array.itemsize == 8 and (np.abs(floats) >= EXACT).any():
        inside = floats < 2.0 ** (63 + (array.dtype.kind == "u"))  # rounded up, it may not be
        back = np.where(inside, floats, 0).astype(array.dtype)
        wrong = np.flatnonzero(~inside | (back != array))
        if len(wrong):
            raise rounded_integer(name, int(array.flat[int(wrong[0])]))
    return floats


def rounded_integer(name: str, value: SupportsIndex) -> InputError:
    """Return the error for an integer that float64 does not have."""
    integer = index(value)
    return InputError(
        f"{name}: the integer {integer} is beyond 2^53, and float64 rounds it to "
        f"{int(float(integer))}, so different scores could tie; subtract a constant from all, or "
        "convert them to float64 if ties are fine"
    )
