"""Score matrices at URLs: of a ``.npy`` file in an object store, the rows that are asked for."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.locations import RangedFile
from kgtrec.errors import FileError, InputError
from kgtrec.scores.sources import MatrixSource

__all__ = ["ranged_matrix"]

_HEADER = 1 << 16
_GAP = 1 << 20  # bytes between two rows that are read with them, rather than in two requests
_SAVE_AGAIN = "save the scores again with numpy.save, as an array of floats"


class _Rows:
    """A matrix of which rows are read: as much of an array as sources ask for."""

    def __init__(self, file: RangedFile, start: int, shape: tuple[int, ...], dtype: Any) -> None:
        self._file, self._start, self.shape, self.dtype = file, start, shape, dtype
        self.ndim, self.itemsize = len(shape), dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        if isinstance(rows, slice):
            first, stop, _ = rows.indices(len(self))
            return self._read(first, max(first, stop))
        numbers, places = np.unique(rows, return_inverse=True)
        values = np.empty((len(numbers), self.shape[1]), self.dtype)
        row_bytes = max(1, self.shape[1] * self.itemsize)
        breaks = np.flatnonzero(np.diff(numbers) * row_bytes > row_bytes + _GAP) + 1
        for group in np.split(np.arange(len(numbers)), breaks):
            if len(group):
                first, stop = int(numbers[group[0]]), int(numbers[group[-1]]) + 1
                values[group] = self._read(first, stop)[numbers[group] - first]
        return values[places.reshape(-1)]

    def _read(self, first: int, stop: int) -> npt.NDArray[Any]:
        row_bytes = self.shape[1] * self.itemsize
        n_bytes = (stop - first) * row_bytes
        data = self._file.read(self._start + first * row_bytes, n_bytes) if n_bytes else b""
        if len(data) != n_bytes:
            problem = f"it was cut short: {len(data):,} of {n_bytes:,} bytes from row {first} on"
            raise FileError(self._file.url, found=problem, hint="try again when it stays as it is")
        return np.frombuffer(data, self.dtype).reshape(stop - first, self.shape[1])


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
    except Exception as error:  # the header is parsed as Python, which has errors of its own
        said = " ".join(str(error).split())[:160]
        problem = f"not a readable .npy array ({said})"
        raise FileError(file.url, found=problem, hint=_SAVE_AGAIN) from None
    if dtype.hasobject:
        raise FileError(file.url, found="an array of Python objects", hint=_SAVE_AGAIN)
    if by_column:
        problem = "its columns lie one after another, so that no row can be read alone"
        raise FileError(file.url, found=problem, hint="save numpy.ascontiguousarray(scores)")
    n_bytes = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if file.size < n_bytes:
        problem = f"it was cut short: {file.size:,} of {n_bytes:,} bytes are there"
        raise FileError(file.url, found=problem, hint=_SAVE_AGAIN)
    rows: Any = _Rows(file, start, shape, dtype)
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
