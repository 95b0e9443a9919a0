"""Score sources: where the rows of scores come from.

Whatever the user has becomes a `Source`: consecutive blocks of score rows, read once. Factorised
models (`Factors`) are the exception: they are ranked from their vectors, and have no rows to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError
from kgtrec.scores.arrays import as_block
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import Watch

if TYPE_CHECKING:
    pass


Array = npt.NDArray[Any]

BLOCK_BYTES = 64 << 20
"""Rows are handed on in blocks of about this size: large enough to share out, small enough for
progress."""


class Source(Protocol):
    """Consecutive blocks of score rows.

    ``n_rows`` is None where it is known only at the end. ``blocks`` yields arrays of shape
    (rows, entities), in row order, each read before the next is asked for. ``place`` names the file
    of the block at hand, for messages; it is empty where there is none. A file that is written to
    between two blocks is a FileError; ``check`` asks at any time.
    """

    n_rows: int | None
    place: str

    def blocks(self) -> Iterator[Array]: ...

    def check(self) -> None: ...


class MatrixSource:
    """One matrix, in memory or memory-mapped; ``watch`` is over its file, from before it was
    opened."""

    def __init__(self, matrix: Array, place: str = "", watch: Watch | None = None) -> None:
        if matrix.ndim != 2:
            raise InputError(
                f"scores have shape {matrix.shape}; "
                "they must be two-dimensional: a row per question, a column per entity"
            )
        self.matrix, self.place = matrix, place
        self.n_rows: int | None = len(matrix)
        self.watch = Watch.of_arrays(matrix) if watch is None else watch

    def blocks(self) -> Iterator[Array]:
        row_bytes = max(1, self.matrix.shape[1] * self.matrix.itemsize)
        height = max(1, BLOCK_BYTES // row_bytes)
        for start in range(0, len(self.matrix), height):
            self.check()
            yield self.matrix[start : start + height]
        self.check()

    def check(self) -> None:
        """FileError if its file is not what it was."""
        self.watch.check()


class DeviceSource:
    """One matrix on a device, or some of its rows; its blocks are tensors there."""

    def __init__(self, matrix: Any, rows: npt.NDArray[np.int64] | None = None) -> None:
        if matrix.ndim != 2:
            raise InputError(
                f"scores have shape {tuple(matrix.shape)}; "
                "they must be two-dimensional: a row per question, a column per entity"
            )
        self.matrix, self.rows, self.place = matrix, rows, ""
        self.n_rows: int | None = len(matrix) if rows is None else len(rows)

    def blocks(self) -> Iterator[Any]:
        total = len(self.matrix) if self.rows is None else len(self.rows)
        row_bytes = max(1, self.matrix.shape[1] * self.matrix.element_size())
        height = max(1, BLOCK_BYTES // row_bytes)
        for start in range(0, total, height):
            rows: Any = slice(start, start + height)
            yield self.matrix[rows if self.rows is None else self.rows[rows].tolist()]

    def check(self) -> None:
        """There is no file."""


class JoinedSource:
    """Several sources of known length, one after another."""

    def __init__(self, parts: list[MatrixSource | DeviceSource]) -> None:
        self.parts, self.place = parts, ""
        self.n_rows: int | None = sum(len(part.matrix) for part in parts)

    def blocks(self) -> Iterator[Array]:
        for part in self.parts:
            self.place = part.place
            yield from part.blocks()
        self.place = ""
        self.check()

    def check(self) -> None:
        """FileError if a file is not what it was."""
        for part in self.parts:
            part.check()


def alike(one: Any, other: Any) -> bool:
    """Whether two matrices have as many columns of one type; their byte order may differ."""
    kinds = (matrix.dtype.newbyteorder("=") for matrix in (one, other))
    return bool(one.shape[1] == other.shape[1] and next(kinds) == next(kinds))


class SelectedSource:
    """Some rows of matrices, in an order of their own."""

    def __init__(self, source: MatrixSource | JoinedSource, rows: npt.NDArray[np.int64]) -> None:
        parts = source.parts if isinstance(source, JoinedSource) else [source]
        if not all(isinstance(part, MatrixSource) for part in parts):
            raise InputError(
                "rows of both sides' matrices are chosen on the host; hand over one matrix, or "
                "those of the evaluated triples alone, or move them with .cpu()"
            )
        self.parts, self.rows, self.place = parts, rows, source.place
        self.n_rows: int | None = len(rows)

    def blocks(self) -> Iterator[Array]:
        first = self.parts[0].matrix
        for part in self.parts:
            if not alike(part.matrix, first):
                self.place = part.place
                raise InputError(
                    f"scores have {part.matrix.shape[1]} columns of {part.matrix.dtype} here, and "
                    f"{first.shape[1]} of {first.dtype} before; write all shards alike"
                )
        starts = np.cumsum([0] + [len(part.matrix) for part in self.parts])
        height = max(1, BLOCK_BYTES // max(1, first.shape[1] * first.itemsize))
        for start in range(0, len(self.rows), height):
            rows = self.rows[start : start + height]
            self.check()
            block = np.empty((len(rows), first.shape[1]), dtype=first.dtype)
            owner = np.searchsorted(starts, rows, side="right") - 1
            for number in np.unique(owner).tolist():
                mine = owner == number
                block[mine] = self.parts[number].matrix[rows[mine] - starts[number]]
            yield block
        self.check()

    def check(self) -> None:
        """FileError if a file is not what it was."""
        for part in self.parts:
            part.check()


class StreamSource:
    """Chunks from an iterator, each a matrix of consecutive rows."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks, self.place = chunks, ""
        self.n_rows: int | None = None

    def blocks(self) -> Iterator[Array]:
        for number, chunk in enumerate(self.chunks):
            yield as_block(chunk, f"scores, chunk {number}")

    def check(self) -> None:
        """There is no file."""


class CalledSource:
    """A function that scores one batch of questions at a time."""

    def __init__(self, score: Callable[[Any], Any], batches: Iterable[Any], n_rows: int) -> None:
        self.score, self.batches, self.place = score, batches, ""
        self.n_rows: int | None = n_rows

    def blocks(self) -> Iterator[Array]:
        for batch in self.batches:
            block = as_block(self.score(batch), "scores of the callable")
            if block.ndim != 2 or len(block) != len(batch):
                raise InputError(
                    f"the callable returned shape {tuple(block.shape)} for {batch}; "
                    f"it must return ({len(batch)}, entities)"
                )
            yield block

    def check(self) -> None:
        """There is no file."""


def selected(source: Source | Factors, rows: npt.NDArray[np.int64]) -> Source | Factors:
    """Some rows of a source that has them at hand; any other source as it is."""
    if isinstance(source, Factors):
        return Factors(source.queries[rows], *source.table)
    if isinstance(source, DeviceSource):
        return DeviceSource(source.matrix, rows)
    if isinstance(source, (MatrixSource, JoinedSource)):
        return SelectedSource(source, rows)
    return source
