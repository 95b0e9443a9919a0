"""Score sources, from which rows of scores come.

Every form of scores becomes a `Source`: consecutive blocks of score rows, read once. Factorised
models (`Factors`) are the exception: they are ranked from their vectors, without rows of scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from kgtrec._internal.csr import Array, Int64, offsets_of
from kgtrec.errors import InputError
from kgtrec.scores.arrays import as_block, on_device
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import Watch

BLOCK_BYTES = 64 << 20
"""Approximate size of a block: large enough to share out, small enough to show progress."""


class Source(ABC):
    """Consecutive blocks of score rows.

    ``n_rows`` is None if it is unknown before the end. ``place`` names the current block's file for
    messages; it is empty if there is no file.
    """

    n_rows: int | None = None
    place = ""

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """Arrays of shape (rows, entities), in row order, each read before the next one."""

    def check(self) -> None:  # noqa: B027 (nothing to check without files)
        """FileError if a file has changed; `blocks` checks between two blocks as well."""


def _slices(n_rows: int, matrix: Any) -> list[slice]:
    """Rows in blocks of about `BLOCK_BYTES`."""
    row_bytes = matrix.shape[1] * (
        matrix.element_size() if on_device(matrix) else matrix.dtype.itemsize
    )
    height = max(1, BLOCK_BYTES // max(1, row_bytes))
    return [slice(start, start + height) for start in range(0, n_rows, height)]


def _checked(matrix: Any) -> Any:
    if matrix.ndim != 2:
        raise InputError(
            f"scores have shape {tuple(matrix.shape)}; "
            "they must be two-dimensional: one row per question, one column per entity"
        )
    return matrix


class MatrixSource(Source):
    """One matrix, in memory or memory-mapped; ``watch`` watches its file since before opening."""

    def __init__(self, matrix: Array, place: str = "", watch: Watch | None = None) -> None:
        self.matrix, self.place, self.n_rows = _checked(matrix), place, len(matrix)
        self.watch = Watch.of_arrays(matrix) if watch is None else watch

    def blocks(self) -> Iterator[Array]:
        for rows in _slices(len(self.matrix), self.matrix):
            self.check()
            yield self.matrix[rows]
        self.check()

    def check(self) -> None:
        self.watch.check()


class DeviceSource(Source):
    """One matrix on a device, or some of its rows; its blocks are tensors there."""

    def __init__(self, matrix: Any, rows: Int64 | None = None) -> None:
        self.matrix, self.rows = _checked(matrix), rows
        self.n_rows = len(matrix) if rows is None else len(rows)

    def blocks(self) -> Iterator[Any]:
        for rows in _slices(self.n_rows or 0, self.matrix):
            yield self.matrix[rows if self.rows is None else self.rows[rows].tolist()]


class JoinedSource(Source):
    """Several sources of known length, one after another."""

    def __init__(self, parts: list[MatrixSource | DeviceSource]) -> None:
        self.parts = parts
        self.n_rows = sum(len(part.matrix) for part in parts)

    def blocks(self) -> Iterator[Any]:
        for part in self.parts:
            self.place = part.place
            yield from part.blocks()
        self.place = ""
        self.check()

    def check(self) -> None:
        for part in self.parts:
            part.check()


def alike(one: Any, other: Any) -> bool:
    """Whether two matrices have equally many columns of one type, in any byte order."""
    kinds = (matrix.dtype.newbyteorder("=") for matrix in (one, other))
    return bool(one.shape[1] == other.shape[1] and next(kinds) == next(kinds))


def by_part(lengths: list[int], rows: Int64) -> Iterator[tuple[int, Int64, Int64]]:
    """For each joined matrix with some rows: its number, and their places in ``rows`` and in it."""
    starts = offsets_of(lengths)
    owner = np.searchsorted(starts, rows, side="right") - 1
    for number in np.unique(owner).tolist():
        mine = np.flatnonzero(owner == number)
        yield number, mine, rows[mine] - starts[number]


class SelectedSource(JoinedSource):
    """Some rows of matrices, in any order."""

    def __init__(self, source: MatrixSource | JoinedSource, rows: Int64) -> None:
        super().__init__(source.parts if isinstance(source, JoinedSource) else [source])
        if not all(isinstance(part, MatrixSource) for part in self.parts):
            raise InputError(
                "rows can be selected from two matrices (one per side) only on the CPU; move them "
                "with .cpu(), or pass one matrix, or only the rows of the evaluated triples"
            )
        self.rows, self.place, self.n_rows = rows, source.place, len(rows)

    def blocks(self) -> Iterator[Array]:
        first = self.parts[0].matrix
        for part in self.parts:
            if not alike(part.matrix, first):
                self.place = part.place
                raise InputError(
                    f"this shard has {part.matrix.shape[1]} columns of {part.matrix.dtype}, but "
                    f"the first has {first.shape[1]} of {first.dtype}; write all shards alike"
                )
        lengths = [len(part.matrix) for part in self.parts]
        for selected in _slices(len(self.rows), first):
            rows = self.rows[selected]
            self.check()
            block = np.empty((len(rows), first.shape[1]), dtype=first.dtype)
            for number, mine, own in by_part(lengths, rows):
                block[mine] = self.parts[number].matrix[own]
            yield block
        self.check()


class StreamSource(Source):
    """Chunks from an iterator, each a matrix of consecutive rows."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = chunks

    def blocks(self) -> Iterator[Array]:
        for number, chunk in enumerate(self.chunks):
            yield as_block(chunk, f"scores, chunk {number}")


def called(score: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
    """The scores that a function gives to one batch of questions at a time."""
    for batch in batches:
        block = as_block(score(batch), "scores of the callable")
        if block.ndim != 2 or len(block) != len(batch):
            raise InputError(
                f"the callable returned shape {tuple(block.shape)} for {batch}; "
                f"it must return ({len(batch)}, entities)"
            )
        yield block


def selected(source: Source | Factors, rows: Int64) -> Source | Factors:
    """Some rows of a source with random access; any other source unchanged."""
    if isinstance(source, Factors):
        return Factors(source.queries[rows], *source.table)
    if isinstance(source, DeviceSource):
        return DeviceSource(source.matrix, rows)
    if isinstance(source, (MatrixSource, JoinedSource)) and not isinstance(source, SelectedSource):
        return SelectedSource(source, rows)
    return source
