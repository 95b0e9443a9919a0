"""Scores in files, as matrices or factorised models.

A file is a ``.npy`` matrix, a folder of ``.npy`` shards, or an ``.npz`` with `Factors`. Only
requested rows of a matrix in an object store are read. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.files import PARSING, map_array
from kgtrec._internal.locations import RangedFile, is_location, local_copy, names_in
from kgtrec._internal.locks import call_locked
from kgtrec.errors import FileError, InputError, PathName
from kgtrec.scores.archives import one_line, unreadable
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import Watch
from kgtrec.scores.matrices import Matrix

_MAGIC = b"\x93NUMPY"
_SAVE_AGAIN = "save the scores again with numpy.save, as an array of floats"


def read_scores(path: PathName) -> list[Matrix] | Factors:
    """Read a ``.npy`` matrix, a folder of ``.npy`` shards, or an ``.npz`` with `Factors`.

    Shards are joined in the order of their names, with numbers in numeric order: ``2.npy`` comes
    before ``10.npy``. Hidden files are ignored.
    """
    if is_location(path):
        return _load_from_url(os.fspath(path))
    path = Path(path)
    try:
        os.stat(path)
        if path.is_dir():
            names = [entry.name for entry in os.scandir(path)]
            return [_load_shard(path / name) for name in _shards(path, names)]
        if path.suffix == ".npz":
            return Factors.load(path)
        return [_load_matrix(path)]
    except OSError as error:
        raise unreadable(path, error) from None


def load_matrix(path: PathName) -> Array:
    """Map the matrix of a ``.npy`` file; FileError if it is another kind of file.

    Read the matrix within `reading`, which notices a file that changes. For a URL, it is a copy,
    which takes space on the disk until the matrix is dropped.
    """
    with local_copy(path) as copy:
        try:
            os.stat(copy)
            matrix = _load_matrix(copy)
            matrix.watch.keep_for(matrix.values)
            return matrix.values
        except OSError as error:
            raise unreadable(copy, error) from None


def _load_from_url(url: str) -> list[Matrix] | Factors:
    """Read scores from a URL as `read_scores` does; rows of matrices are read on request."""
    if url.endswith(".npz"):
        with local_copy(url) as copy:
            return Factors.load(copy)
    names = names_in(url)
    if names is not None:
        base = url.rstrip("/")
        return [open_url_matrix(f"{base}/{name}") for name in _shards(url, names)]
    if not url.endswith(".npy"):
        problem = _kind(Path(url))
        raise FileError("", found=problem, hint="save the scores as .npy").at(url)
    return [open_url_matrix(url)]


def _shards(folder: str | Path, names: list[str]) -> list[str]:
    """Return the names of shards in their order; FileError if there are none."""
    shown = (name for name in names if not name.startswith("."))
    shards = sorted((name for name in shown if name.endswith(".npy")), key=_by_number)
    if not shards:
        problem = "no .npy shard in this folder"
        raise FileError("", found=problem, hint="give another folder").at(str(folder))
    return shards


def _by_number(name: str) -> tuple[list[str | int], str]:
    """Return a sort key in which digits count as numbers; texts and numbers alternate."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if number % 2 else part for number, part in enumerate(parts)], name


def _load_matrix(path: Path) -> Matrix:
    """Map the matrix of a ``.npy`` file; FileError if it is another kind of file."""
    if path.suffix != ".npy":
        raise FileError(path, found=_kind(path), hint="save the scores with numpy.save as .npy")
    watch = Watch([path])
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC))
    if start and not _MAGIC.startswith(start):
        raise FileError(
            path,
            found=f"not a .npy array: it begins with {start!r}, not {_MAGIC!r}",
            hint=_SAVE_AGAIN,
        )
    try:
        matrix = map_array(path)
    except OSError:
        raise
    except Exception as error:  # the header is parsed as Python, with its own errors
        raise FileError(
            path,
            found=f"not a readable .npy array ({one_line(error)})",
            hint=f"the file may be cut short or contain Python objects: {_SAVE_AGAIN}",
        ) from None
    return _matrix_of(matrix, str(path), watch)


class ScoreShard:
    """A matrix in a file that is mapped again for each read, with the interface of `RangedArray`.

    A map keeps a file descriptor open while it exists, and a folder may have more shards than a
    process may open files.
    """

    def __init__(self, path: Path, matrix: Any) -> None:
        self.path, self.shape, self.dtype = path, matrix.shape, matrix.dtype
        self.ndim, self.itemsize = matrix.ndim, matrix.itemsize
        self.offset: int = matrix.offset  # of the first value in the file, in bytes
        self.by_column = matrix.flags.f_contiguous and not matrix.flags.c_contiguous

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        """Read rows by a slice, which maps them, or by numbers, which copies them."""
        rows: Array = map_array(self.path)[key]
        return rows


def _load_shard(path: Path) -> Matrix:
    """Open a shard of a folder and check it; the result keeps no file open."""
    matrix = _load_matrix(path)
    return matrix._replace(values=ScoreShard(path, matrix.values))


def _matrix_of(matrix: Any, file: str, watch: Any) -> Matrix:
    """Return the matrix of a file; FileError if it is not two-dimensional."""
    try:
        return Matrix.from_values(matrix, file, watch)
    except InputError as error:
        problem, hint = str(error).split("; ", 1)
        raise FileError(file, found=problem, hint=hint) from None


def _kind(path: Path) -> str:
    """Return the problem that a file with this suffix is not a score matrix."""
    if path.suffix == ".parquet":
        return (
            "a Parquet file is not a score matrix (Ranks.load and kgtrec report read saved ranks)"
        )
    name = f"named {path.suffix}" if path.suffix else "without suffix"
    return f"a file {name} is not a score matrix"


_HEADER = 1 << 16
_GAP = 1 << 20
_SPAN = 16 << 20  # bytes that are read at a time if only some are needed
BY_COLUMN = "it is stored by column, so its rows cannot be read one by one"
SAVE_ROWS = "save numpy.ascontiguousarray(scores)"


class RangedArray:
    """An array of one or two dimensions at a URL, of which only requested values are read.

    - file: RangedFile, or another object with `url` and `read`.
    - offset, int: Byte offset of the first value.
    - shape, dtype: tuple of int, numpy dtype
    - gap, int: If fewer bytes are between two rows, these are read too, to save a request.
    """

    def __init__(
        self, file: Any, offset: int, shape: tuple[int, ...], dtype: Any, gap: int = _GAP
    ) -> None:
        self._file, self.offset, self.shape, self._gap = file, offset, shape, gap
        self.dtype = np.dtype(dtype)
        self.ndim, self.itemsize = len(shape), self.dtype.itemsize
        self._width = int(np.prod(shape[1:], dtype=object))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        """Read rows by a slice or numbers, a slice of columns, or values by row and column."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not isinstance(columns, slice):
            starts = np.asarray(rows, np.int64) * self._width + np.asarray(columns, np.int64)
            return self._gather(starts, 1).reshape(-1)
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
        return self._gather(starts, length).reshape(len(starts), *([length] * (self.ndim - 1)))

    def _gather(self, starts: Int64, length: int) -> Array:
        """Read `length` values from each start on; shape (starts, length)."""
        ordered, index = np.unique(starts, return_inverse=True)
        values = np.empty((len(ordered), length), self.dtype)
        if not values.size:
            return values[index.reshape(-1)]
        most = max(length, _SPAN // self.itemsize)
        breaks = np.flatnonzero(np.diff(ordered) > length + self._gap // self.itemsize) + 1
        first = 0
        for end in [*breaks.tolist(), len(ordered)]:
            while first < end:
                low = int(ordered[first])
                stop = min(end, int(np.searchsorted(ordered, low + most - length, "right")))
                data = self._read(low, int(ordered[stop - 1]) + length - low)
                windows = np.lib.stride_tricks.sliding_window_view(data, length)
                values[first:stop] = windows[ordered[first:stop] - low]
                first = stop
        return values[index.reshape(-1)]

    def _read(self, first: int, count: int) -> Array:
        """Read `count` values, from value number `first` on; FileError if the file is shorter."""
        n_bytes = count * self.itemsize
        data = self._file.read(self.offset + first * self.itemsize, n_bytes) if n_bytes else b""
        if len(data) != n_bytes:
            problem = f"it was cut short: it has {len(data):,} of {n_bytes:,} bytes"
            raise FileError(
                self._file.url, found=problem, hint="try again when nothing writes to it"
            )
        return np.frombuffer(data, self.dtype)


def open_url_matrix(url: str) -> Matrix:
    """Return the matrix of a ``.npy`` file at a URL; FileError if it cannot be read by rows."""
    file = RangedFile(url)
    try:
        start, shape, by_column, dtype = npy_header(io.BytesIO(bytes(file.read(0, _HEADER))))
    except FileError:
        raise
    except Exception as error:  # the header is parsed as Python, with its own errors
        problem = f"not a readable .npy array ({one_line(error)})"
        raise FileError(file.url, found=problem, hint=_SAVE_AGAIN) from None
    if dtype.hasobject:
        raise FileError(file.url, found="an array of Python objects", hint=_SAVE_AGAIN)
    if by_column:
        raise FileError(file.url, found=BY_COLUMN, hint=SAVE_ROWS)
    n_bytes = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if file.size < n_bytes:
        problem = f"it was cut short: it has {file.size:,} of {n_bytes:,} bytes"
        raise FileError(file.url, found=problem, hint=_SAVE_AGAIN)
    return _matrix_of(RangedArray(file, start, shape, dtype), file.url, file)


def npy_header(head: BinaryIO) -> tuple[int, tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a ``.npy`` file.

    Returns the offset of the values, the shape, True if they are stored by column, and the dtype.
    """
    version = np.lib.format.read_magic(head)
    readers: dict[Any, Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"the .npy format has an unknown version {version}")
    shape, by_column, dtype = call_locked(PARSING, lambda: readers[version](head))
    return head.tell(), shape, by_column and len(shape) > 1, dtype
