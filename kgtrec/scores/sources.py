"""Score sources, from which rows of scores come.

Every form of scores becomes a `Source`: consecutive blocks of score rows, read once. Factorised
models (`Factors`) are the exception: they are ranked from their vectors, without rows of scores.
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
"""Approximate size of a block: large enough to share out, small enough to show progress."""


class Matrix(NamedTuple):
    """A matrix in memory, memory-mapped, in an object store or on a device.

    - file: Its file, for messages; empty if there is none.
    - watch: Watches the file since before it was opened.
    """

    values: Any
    file: str
    watch: Any

    @classmethod
    def of(cls, values: Any, file: str = "", watch: Any = None) -> Matrix:
        """A matrix; InputError if the values have another number of dimensions."""
        if values.ndim != 2:
            raise InputError(
                f"scores have shape {tuple(values.shape)}; "
                "they must be two-dimensional: one row per question, one column per entity"
            )
        return cls(values, file, watch or Watch.of_arrays(values))

    def slices(self, n_rows: int) -> list[slice]:
        """Return slices of the first `n_rows` rows, of about `BLOCK_BYTES` each."""
        values = self.values
        itemsize = values.element_size() if on_device(values) else values.dtype.itemsize
        height = max(1, BLOCK_BYTES // max(1, values.shape[1] * itemsize))
        return [slice(start, start + height) for start in range(0, n_rows, height)]


class MatrixSource:
    """Matrices one after another, or some of their rows, in any order.

    ``place`` names the current block's file for messages; it is empty if there is no file.
    """

    def __init__(self, parts: Sequence[Matrix], rows: Int64 | None = None) -> None:
        self.parts, self.rows, self.place = parts, rows, ""
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
        """Arrays of shape (rows, entities), in row order, each read before the next one."""
        if self.rows is not None:
            yield from self._select_blocks(self.rows)
        for part in self.parts if self.rows is None else ():
            self.place = part.file
            for rows in part.slices(len(part.values)):
                part.watch.check()
                yield part.values[rows]
            part.watch.check()
        self.place = ""
        self.check()

    def _select_blocks(self, rows: Int64) -> Iterator[Any]:
        first, lengths = self.parts[0], [len(part.values) for part in self.parts]
        for part in self.parts:
            if len(self.parts) > 1 and not alike(part.values, first.values):
                self.place = part.file
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
        """FileError if a file has changed; `blocks` checks between two blocks as well."""
        for part in self.parts:
            part.watch.check()


def alike(left: Any, right: Any) -> bool:
    """Return whether two matrices have equally many columns of a type, in any byte order."""
    kinds = (matrix.dtype.newbyteorder("=") for matrix in (left, right))
    return bool(left.shape[1] == right.shape[1] and next(kinds) == next(kinds))


def by_part(lengths: list[int], rows: Int64) -> Iterator[tuple[int, Int64, Int64]]:
    """Yield per joined matrix with rows: its number, their indices in ``rows`` and in it."""
    starts = offsets_of(lengths)
    owner = np.searchsorted(starts, rows, side="right") - 1
    for number in np.unique(owner).tolist():
        in_rows = np.flatnonzero(owner == number)
        yield number, in_rows, rows[in_rows] - starts[number]


class StreamSource:
    """Chunks from an iterator, each a matrix of consecutive rows, until it ends."""

    n_rows, place = None, ""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = chunks

    def check(self) -> None:
        """Nothing to check without files."""

    def blocks(self) -> Iterator[Array]:
        """See `MatrixSource`."""
        for number, chunk in enumerate(self.chunks):
            yield as_block(chunk, f"scores, chunk {number}")


def called(score: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
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


def selected(source: Source | Factors, rows: Int64) -> Any:
    """Select rows of a source with random access; return any other source unchanged."""
    if isinstance(source, Factors):
        return Factors(source.queries[rows], *source.table)
    if isinstance(source, MatrixSource) and source.rows is None:
        return MatrixSource(source.parts, rows)
    return source
