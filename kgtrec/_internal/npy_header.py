"""Headers of .npy files, read by one thread at a time.

numpy has Python parse them as literals, and Python 3.11 raises a SystemError ("AST constructor
recursion depth mismatch") where two threads do that at once.
"""

from __future__ import annotations

from os import PathLike
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PARSING", "map_array"]

PARSING = RLock()


def map_array(path: str | PathLike[str]) -> npt.NDArray[Any]:
    """The array of a ``.npy`` file, mapped to be read; errors are numpy's."""
    with PARSING:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
