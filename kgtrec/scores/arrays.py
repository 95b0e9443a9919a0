"""Arrays of any framework as numpy sees them, and the types in which scores are compared."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError

__all__ = ["as_array", "comparable", "directed", "score_dtype"]

Array = npt.NDArray[Any]

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def as_array(scores: Any, name: str = "scores") -> Array:
    """A numpy view of an array of any framework, by DLPack or ``__array__``, without importing it.

    Raises
    ------
    InputError
        The framework refuses (a tensor on a GPU, a dtype that numpy does not know), or values are
        masked.
    """
    # Whoever has a masked array has imported numpy.ma, which takes numpy a while.
    if "numpy.ma" in sys.modules and np.ma.is_masked(scores):
        raise InputError(
            f"{name} are a masked array with {np.ma.count_masked(scores)} masked values, which say "
            "nothing of how they rank; fill them, for example with .filled(-numpy.inf)"
        )
    if isinstance(scores, np.ndarray):
        return scores
    if hasattr(scores, "resolve_neg"):  # torch exports a lazily negated tensor without its sign
        scores = scores.resolve_neg()
    if hasattr(scores, "detach"):  # a torch tensor that records gradients refuses to be exported
        scores = scores.detach()
    if str(getattr(scores, "dtype", "")) == "torch.bfloat16":
        scores = scores.float()  # numpy has no such type; widening is exact and keeps ties
    try:
        if hasattr(scores, "__dlpack__"):
            return np.from_dlpack(scores)
        return np.asarray(scores)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        if hasattr(scores, "__dlpack__") and hasattr(scores, "__array__"):
            try:
                return np.asarray(scores)
            except (TypeError, ValueError, RuntimeError, BufferError):
                pass  # the first refusal says more
        kind = f"{type(scores).__module__}.{type(scores).__qualname__}"
        raise InputError(
            f"{name}: {kind} cannot be read as an array ({error}); "
            "move it to the CPU and to float32, or hand over a numpy array"
        ) from None


def score_dtype(array: Array, name: str = "scores") -> str:
    """Name of the dtype in which scores are compared.

    Raises
    ------
    InputError
        Not a floating-point type that can be ranked.
    """
    if array.dtype.name not in _FLOATS:
        raise InputError(
            f"{name} have dtype {array.dtype}; they must be one of {', '.join(_FLOATS)}: "
            "convert them with .astype('float32')"
        )
    return array.dtype.name


def comparable(block: Array, dtype: str) -> Array:
    """The block in the machine's byte order, bfloat16 as its bits."""
    if not block.dtype.isnative:
        block = block.astype(block.dtype.newbyteorder("="))
    return block.view(np.uint16) if dtype == "bfloat16" else block


def directed(row: Array, dtype: str, higher_is_better: bool) -> Array:
    """One row of a comparable block as float64, higher is better."""
    if dtype == "bfloat16":
        row = (np.asarray(row, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # widening a signalling NaN
        values: Array = np.asarray(row, dtype=np.float64)
    return values if higher_is_better else -values
