"""Files named .npy: headers read by one thread at a time, and errors of the system's own.

numpy has Python parse headers as literals, and Python 3.11 raises a SystemError ("AST constructor
recursion depth mismatch") where two threads do that at once.
"""

from __future__ import annotations

from os import PathLike
from threading import RLock
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

__all__ = ["PARSING", "map_array", "write_array"]

PARSING = RLock()


def map_array(path: str | PathLike[str]) -> npt.NDArray[Any]:
    """The array of a ``.npy`` file, mapped to be read; errors are numpy's."""
    with PARSING:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def write_array(file: BinaryIO, array: npt.NDArray[Any]) -> None:
    """The bytes that `numpy.save` writes.

    numpy writes to real files past Python: of one that cannot be written, such as on a full disk,
    it says how many values are there, and nothing else.
    """
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    rows = array.T if header["fortran_order"] else array
    file.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
