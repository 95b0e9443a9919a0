"""Score matrices at URLs: of an array in an object store, the rows that are asked for."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.locations import RangedFile
from kgtrec.errors import FileError, InputError
from kgtrec.scores.sources import MatrixSource

__all__ = ["BY_COLUMN", "SAVE_ROWS", "RangedArray", "ranged_matrix"]

_HEADER = 1 << 16
_GAP = 1 << 20  # bytes between two rows that are read with them, rather than in two requests
_SPAN = 16 << 20  # bytes that are read at a time where only some of them are of use
BY_COLUMN = "its columns lie one after another, so that no row can be read alone"
SAVE_ROWS = "save numpy.ascontiguousarray(scores)"
_SAVE_AGAIN = "save the scores again with numpy.save, as an array of floats"


class RangedArray:
    """An array of one or two dimensions at a URL, of which only what is asked for is read.

    Parameters
    ----------
    file : RangedFile
    offset : int
        Of its first value, in bytes.
    shape : tuple of int
    dtype : numpy dtype
    """

    def __init__(self, file: RangedFile, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self._file, self.offset, self.shape = file, offset, shape
        self.dtype = np.dtype(dtype)
        self.ndim, self.itemsize = len(shape), self.dtype.itemsize
        self._width = int(np.prod(shape[1:], dtype=object))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> npt.NDArray[Any]:
        """Rows, by a slice or their numbers; some columns of them, a slice; or single elements, by
        a number of a row and one of a column each."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not isinstance(columns, slice):
            starts = np.asarray(rows, np.int64) * self._width + np.asarray(columns, np.int64)
            return self._gathered(starts, 1).reshape(-1)
        first, stop, _ = columns.indices(self._width)
        length = max(0, stop - first)
        if isinstance(rows, slice):
            low, high, _ = rows.indices(len(self))
            high = max(low, high)
            if length == self._width:
                values = self._read(low * length, (high - low) * length)
                return values.reshape(high - low, *self.shape[1:])
            rows = np.arange(low, high)
        starts = np.asarray(rows, np.int64) * self._width + first
        return self._gathered(starts, length).reshape(len(starts), *([length] * (self.ndim - 1)))

    def _gathered(self, starts: npt.NDArray[np.int64], length: int) -> npt.NDArray[Any]:
        """So many values from each start on, shape (starts, length)."""
        ordered, places = np.unique(starts, return_inverse=True)
        values = np.empty((len(ordered), length), self.dtype)
        if not values.size:
            return values[places.reshape(-1)]
        most = max(length, _SPAN // self.itemsize)
        breaks = np.flatnonzero(np.diff(ordered) > length + _GAP // self.itemsize) + 1
        first = 0
        for end in [*breaks.tolist(), len(ordered)]:
            while first < end:
                low = int(ordered[first])
                stop = min(end, int(np.searchsorted(ordered, low + most - length, "right")))
                data = self._read(low, int(ordered[stop - 1]) + length - low)
                windows = np.lib.stride_tricks.sliding_window_view(data, length)
                values[first:stop] = windows[ordered[first:stop] - low]
                first = stop
        return values[places.reshape(-1)]

    def _read(self, first: int, count: int) -> npt.NDArray[Any]:
        """So many values, from the one of this number on."""
        n_bytes = count * self.itemsize
        data = self._file.read(self.offset + first * self.itemsize, n_bytes) if n_bytes else b""
        if len(data) != n_bytes:
            problem = f"it was cut short: {len(data):,} of {n_bytes:,} bytes are there"
            raise FileError(self._file.url, found=problem, hint="try again when it stays as it is")
        return np.frombuffer(data, self.dtype)


def ranged_matrix(url: str) -> MatrixSource:
    """The matrix of a ``.npy`` file at a URL.

    Raises
    ------
    FileError
        It is not there, cut short, or something else; or its columns lie one after another.
    """
    file = RangedFile(url)
    try:
        start, shape, by_column, dtype = _header(io.BytesIO(bytes(file.read(0, _HEADER))))
    except FileError:
        raise
    except Exception as error:  # the header is parsed as Python, which has errors of its own
        said = " ".join(str(error).split())[:160]
        problem = f"not a readable .npy array ({said})"
        raise FileError(file.url, found=problem, hint=_SAVE_AGAIN) from None
    if dtype.hasobject:
        raise FileError(file.url, found="an array of Python objects", hint=_SAVE_AGAIN)
    if by_column:
        raise FileError(file.url, found=BY_COLUMN, hint=SAVE_ROWS)
    n_bytes = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if file.size < n_bytes:
        problem = f"it was cut short: {file.size:,} of {n_bytes:,} bytes are there"
        raise FileError(file.url, found=problem, hint=_SAVE_AGAIN)
    rows: Any = RangedArray(file, start, shape, dtype)
    watch: Any = file
    try:
        return MatrixSource(rows, file.url, watch)
    except InputError as error:
        problem, hint = str(error).split("; ", 1)
        raise FileError(file.url, found=problem, hint=hint) from None


def _header(head: io.BytesIO) -> tuple[int, tuple[int, ...], bool, np.dtype[Any]]:
    """Where the values begin, the shape, whether it is Fortran's order, and the dtype."""
    version = np.lib.format.read_magic(head)
    readers: dict[Any, Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"format {version} of .npy")
    shape, by_column, dtype = readers[version](head)
    return head.tell(), shape, by_column and len(shape) > 1, dtype
