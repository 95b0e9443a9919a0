"""Arrays and scores in files, as descriptions of a few hundred bytes that open them in place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.locations import RangedFile, is_location
from kgtrec._internal.npy_files import map_array
from kgtrec.cluster.question_store import gather
from kgtrec.errors import FileError
from kgtrec.scores.factors import Factors
from kgtrec.scores.ranged import RangedArray

__all__ = ["ArrayFile", "FactorFiles", "Files", "HeldScores", "ScoreFiles"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArrayFile:
    """An array of at most two dimensions that stands in a file as it does in memory.

    ``path`` is that of a file, or the URL of an object.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    fortran: bool = False

    @property
    def is_remote(self) -> bool:
        """Whether it lies in an object store, of which every worker reads what it needs."""
        return is_location(self.path)

    def open(self) -> Any:
        """A new memory map: its pages leave this process's memory when it is dropped; or an array
        at a URL, of which what is asked for is read."""
        if 0 in self.shape:
            return np.empty(self.shape, dtype=self.dtype)
        if self.is_remote:
            return RangedArray(RangedFile(self.path), self.offset, self.shape, self.dtype)
        order: Any = "F" if self.fortran else "C"
        try:
            return np.memmap(
                self.path, self.dtype, "r", offset=self.offset, shape=self.shape, order=order
            )
        except (OSError, ValueError) as error:
            raise FileError(
                self.path,
                found=f"cannot be mapped any more ({error})",
                hint="it must stay as it is, where it is, until all is ranked",
            ) from None

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ScoreFiles:
    """Matrices of consecutive rows.

    Attributes
    ----------
    parts : tuple of ArrayFile
    selection : str
        A ``.npy`` with the file row of each row of the ranking; empty: they are the same.
    place : str
        What the user named.
    """

    parts: tuple[ArrayFile, ...]
    selection: str = ""
    place: str = ""

    @property
    def n_rows(self) -> int:
        """Rows in the files."""
        return sum(part.shape[0] for part in self.parts)

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return self.parts[0].shape[1]

    @property
    def dtype(self) -> str:
        """Name of the dtype in which scores are compared."""
        return np.dtype(self.parts[0].dtype).name

    @property
    def itemsize(self) -> int:
        """Bytes of a score."""
        return self.parts[0].itemsize

    def rows(self, first: int, stop: int) -> Int64:
        """File rows of rows of the ranking."""
        return _selected(self.selection, first, stop)

    def block(self, first: int, stop: int, columns: slice) -> Array:
        """Scores of rows of the ranking, (stop - first, columns): mapped if they are in one file
        and in order, else copied."""
        rows = self.rows(first, stop)
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        if (owner == owner[0]).all() and rows[-1] - rows[0] == len(rows) - 1 and _rising(rows):
            low = int(rows[0] - self._starts[owner[0]])
            whole: Array = self.parts[owner[0]].open()[low : low + len(rows), columns]
            return whole
        width = len(range(*columns.indices(self.n_columns)))
        block = np.empty((len(rows), width), dtype=self.parts[0].dtype)
        for number in np.unique(owner).tolist():
            mine = np.flatnonzero(owner == number)
            matrix, start = self.parts[number].open(), self._starts[number]
            if isinstance(matrix, RangedArray):
                block[mine] = matrix[rows[mine] - start, columns]
                continue
            for row in mine.tolist():
                block[row] = matrix[rows[row] - start, columns]
        return block

    def elements(self, rows: Int64, columns: npt.NDArray[Any]) -> Array:
        """Single scores, one per (row of the ranking, column)."""
        values = np.empty(len(rows), dtype=self.parts[0].dtype)
        if not len(rows):
            return values
        first = int(rows.min())
        rows = self.rows(first, int(rows.max()) + 1)[rows - first]
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(owner).tolist():
            mine = np.flatnonzero(owner == number)
            part, row = self.parts[number], rows[mine] - self._starts[number]
            if part.fortran or 0 in part.shape:
                values[mine] = part.open()[row, columns[mine]]
                continue
            flat = replace(part, shape=(part.shape[0] * part.shape[1],))
            values[mine] = gather(flat.open(), row * part.shape[1] + columns[mine])
        return values

    @property
    def _starts(self) -> Int64:
        return np.cumsum([0] + [part.shape[0] for part in self.parts])


@dataclass(frozen=True, eq=False)
class HeldScores(ScoreFiles):
    """Some consecutive rows of a matrix, in memory, in place of its files.

    Attributes
    ----------
    first : int
        Which row of the ranking is the first.
    held : ndarray, shape (rows, columns)
    """

    first: int = 0
    held: Array = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))

    def block(self, first: int, stop: int, columns: slice) -> Array:
        """As that of `ScoreFiles`."""
        return self.held[first - self.first : stop - self.first, columns]

    def elements(self, rows: Int64, columns: npt.NDArray[Any]) -> Array:
        """As that of `ScoreFiles`."""
        values: Array = self.held[rows - self.first, columns]
        return values


@dataclass(frozen=True)
class FactorFiles:
    """A factorised model, array by array; see `ScoreFiles` and `Factors`."""

    queries: ArrayFile
    entities: ArrayFile
    bias: ArrayFile | None = None
    metric: str = "dot"
    selection: str = ""
    place: str = ""

    @property
    def n_rows(self) -> int:
        """Query vectors in the file."""
        return self.queries.shape[0]

    @property
    def n_columns(self) -> int:
        """Entities."""
        return self.entities.shape[0]

    @property
    def arrays(self) -> list[ArrayFile]:
        """All arrays."""
        return [array for array in (self.queries, self.entities, self.bias) if array is not None]

    @property
    def dtype(self) -> str:
        """Computing type: float32 or float64."""
        double = any(np.dtype(array.dtype).itemsize == 8 for array in self.arrays)
        return "float64" if double else "float32"

    @property
    def itemsize(self) -> int:
        """Bytes of a score."""
        return np.dtype(self.dtype).itemsize

    def some_queries(self, first: int, stop: int) -> Array:
        """Query vectors of rows of the ranking, copied."""
        if not self.selection:
            return np.array(self.queries.open()[first:stop])
        return gather(self.queries.open(), _selected(self.selection, first, stop))

    def factors(self, queries: Array, entities: slice | npt.NDArray[Any]) -> Factors:
        """The model of some queries and entities; a slice of them is mapped."""
        bias = None if self.bias is None else _some(self.bias, entities)
        table = _some(self.entities, entities)
        # The computing type must not hang on which part of the model is looked at.
        if self.dtype == "float64":
            queries = queries.astype(np.float64, copy=False)
        return Factors(queries, table, bias, self.metric)


def _some(array: ArrayFile, rows: slice | npt.NDArray[Any]) -> Array:
    some: Array = array.open()[rows] if isinstance(rows, slice) else gather(array.open(), rows)
    return some


Files = ScoreFiles | FactorFiles


def _selected(selection: str, first: int, stop: int) -> Int64:
    if not selection:
        return np.arange(first, stop)
    rows = map_array(selection)
    return np.array(rows[first:stop])


def _rising(rows: Int64) -> bool:
    return bool((np.diff(rows) > 0).all())
