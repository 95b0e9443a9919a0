"""Sources of score rows.

Every form of scores becomes a `Source`: consecutive blocks of score rows, read once. Factorised
models (`Factors`) are the exception. They are ranked from their vectors, without rows of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.csr import offsets_of
from kgtrec.errors import InputError
from kgtrec.scores.arrays import as_block, on_device
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import Watch

BLOCK_BYTES = 64 << 20
"""Approximate size of a block: large enough for all threads, small enough to show progress."""


class Matrix(NamedTuple):
    """A matrix in memory, memory-mapped, in an object store or on a device.

    - file: Path or URL for messages; "" if there is none.
    - watch: Watch of the file that began before it was opened.
    """

    values: Any
    file: str
    watch: Any

    @classmethod
    def from_values(cls, values: Any, file: str = "", watch: Any = None) -> Matrix:
        """Return the matrix of an array; InputError if it is not two-dimensional."""
        if values.ndim != 2:
            raise InputError(
                f"scores have shape {tuple(values.shape)}; "
                "they must be two-dimensional: one row per question, one column per entity"
            )
        return cls(values, file, watch or Watch.from_arrays(values))

    def slices(self, n_rows: int) -> list[slice]:
        """Return slices of the first `n_rows` rows, of about `BLOCK_BYTES` each."""
        values = self.values
        itemsize = values.element_size() if on_device(values) else values.dtype.itemsize
        height = max(1, BLOCK_BYTES // max(1, values.shape[1] * itemsize))
        return [slice(start, start + height) for start in range(0, n_rows, height)]


class MatrixSource:
    """A source of rows of matrices, one after another, or of some of their rows in any order.

    `file` is the path or URL of the current block for messages; "" if there is none.
    """

    def __init__(self, parts: Sequence[Matrix], rows: Int64 | None = None) -> None:
        self.parts, self.rows, self.file = parts, rows, ""
        self.n_rows = sum(len(part.values) for part in parts) if rows is None else len(rows)
        if rows is not None and len(parts) > 1 and any(on_device(part.values) for part in parts):
            raise InputError(
                "rows can be selected from two matrices (one per side) only on the CPU; move them "
                "with .cpu(), or pass one matrix, or only the rows of the evaluated triples"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of the first matrix."""
        return self.n_rows, int(self.parts[0].values.shape[1])

    def blocks(self) -> Iterator[Any]:
        """Yield arrays of shape (rows, entities), in row order; read each before the next one."""
        if self.rows is not None:
            yield from self._select_blocks(self.rows)
        for part in self.parts if self.rows is None else ():
            self.file = part.file
            for rows in part.slices(len(part.values)):
                part.watch.check()
                yield part.values[rows]
            part.watch.check()
        self.file = ""
        self.check()

    def _select_blocks(self, rows: Int64) -> Iterator[Any]:
        """Yield blocks of rows of all matrices; InputError if these differ in type or width."""
        first, lengths = self.parts[0], [len(part.values) for part in self.parts]
        for part in self.parts:
            if len(self.parts) > 1 and not alike(part.values, first.values):
                self.file = part.file
                raise InputError(
                    f"this shard has {part.values.shape[1]} columns of {part.values.dtype}, but "
                    f"the first has {first.values.shape[1]} of {first.values.dtype}; write all "
                    "shards alike"
                )
        for chosen in first.slices(len(rows)):
            self.check()
            if on_device(first.values):
                yield first.values[rows[chosen].tolist()]
                continue
            block = np.empty((len(rows[chosen]), first.values.shape[1]), first.values.dtype)
            for number, in_rows, in_part in by_part(lengths, rows[chosen]):
                block[in_rows] = self.parts[number].values[in_part]
            yield block

    def check(self) -> None:
        """Raise FileError if a file has changed; `blocks` also checks between blocks."""
        for part in self.parts:
            part.watch.check()


def alike(left: Any, right: Any) -> bool:
    """Return True if two matrices have the same number of columns and type, in any byte order."""
    kinds = (matrix.dtype.newbyteorder("=") for matrix in (left, right))
    return bool(left.shape[1] == right.shape[1] and next(kinds) == next(kinds))


def by_part(lengths: list[int], rows: Int64) -> Iterator[tuple[int, Int64, Int64]]:
    """Divide rows of joined matrices by matrix.

    Yields per matrix its number, the indices of its rows in `rows`, and these rows in the matrix.
    """
    starts = offsets_of(lengths)
    owner = np.searchsorted(starts, rows, side="right") - 1
    for number in np.unique(owner).tolist():
        in_rows = np.flatnonzero(owner == number)
        yield number, in_rows, rows[in_rows] - starts[number]


class StreamSource:
    """A source of chunks from an iterator, each a matrix of consecutive rows."""

    n_rows, file = None, ""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = chunks

    def check(self) -> None:
        """Do nothing; there are no files."""

    def blocks(self) -> Iterator[Array]:
        """Yield the chunks as `MatrixSource.blocks` does."""
        for number, chunk in enumerate(self.chunks):
            yield as_block(chunk, f"scores, chunk {number}")


def call_batches(score: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the scores that a function returns for each batch of questions."""
    for batch in batches:
        block = as_block(score(batch), "scores of the callable")
        if block.ndim != 2 or len(block) != len(batch):
            raise InputError(
                f"the callable returned shape {tuple(block.shape)} for {batch}; "
                f"it must return ({len(batch)}, entities)"
            )
        yield block


Source = MatrixSource | StreamSource


def select_rows(source: Source | Factors, rows: Int64) -> Any:
    """Select rows of a source with random access; return any other source unchanged."""
    if isinstance(source, Factors):
        return Factors(source.queries[rows], *source.table)
    if isinstance(source, MatrixSource) and source.rows is None:
        return MatrixSource(source.parts, rows)
    return source
