"""Sources of score rows.

Every form of scores becomes a `Source`: consecutive blocks of score rows, read once. Factorised
models (`Factors`) are the exception. They are ranked from their vectors, without rows of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.csr import offsets_of
from kgtrec.errors import InputError, PathName
from kgtrec.questions.api import Questions
from kgtrec.questions.terms import NAMES, SIDES
from kgtrec.scores.arrays import as_block, on_device
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import read_scores
from kgtrec.scores.matrices import Matrix, alike

BLOCK_BYTES = 64 << 20
"""Approximate size of a block: large enough for all threads, small enough to show progress."""


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
            for rows in _slices(part.values, len(part.values)):
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
        for chosen in _slices(first.values, len(rows)):
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


def _slices(values: Any, n_rows: int) -> list[slice]:
    """Return slices of the first `n_rows` rows of a matrix, of about `BLOCK_BYTES` each."""
    itemsize = values.element_size() if on_device(values) else values.dtype.itemsize
    if not on_device(values) and values.dtype.kind in "iu":
        itemsize = 8  # they become float64
    height = max(1, BLOCK_BYTES // max(1, values.shape[1] * itemsize))
    return [slice(start, start + height) for start in range(0, n_rows, height)]


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


def load_scores(path: PathName) -> MatrixSource | Factors:
    """Load scores from a file or folder, as `kgtrec.scores.files.read_scores` describes."""
    scores = read_scores(path)
    return scores if isinstance(scores, Factors) else MatrixSource(scores)


def as_source(
    scores: Any, questions: Questions, batches: Callable[[int], Iterable[Any]]
) -> Source | Factors:
    """Return scores in any form as a source; InputError for an unsupported type."""
    if isinstance(scores, np.ndarray):
        return MatrixSource([_matrix(scores)])
    if isinstance(scores, (Factors, MatrixSource)):
        return scores
    if isinstance(scores, (str, PathLike)):
        return load_scores(scores)
    if isinstance(scores, Mapping):
        return _join_sides(scores, questions)
    is_array = hasattr(scores, "__dlpack__") or hasattr(scores, "__array__")
    if is_array or on_device(scores) or isinstance(scores, memoryview):  # which is also iterable
        return MatrixSource([_matrix(scores)])
    if hasattr(scores, "toarray"):
        raise InputError(
            f"scores are a sparse matrix ({type(scores).__name__}), which does not define the "
            "scores that it leaves out; pass .toarray() if they are 0"
        )
    if callable(scores):
        size = max(1, min(1024, BLOCK_BYTES // (4 * questions.n_labels)))
        return StreamSource(call_batches(scores, batches(size)))
    if isinstance(scores, list) and scores and isinstance(scores[0], (list, tuple)):
        return MatrixSource([_matrix(scores)])
    if isinstance(scores, Iterable):
        return StreamSource(scores)
    raise InputError(
        f"scores have the unsupported type {type(scores).__name__}; pass an array, a path, "
        "Factors, a callable or an iterable of chunks"
    )


def _matrix(scores: Any) -> Matrix:
    """Return an array of any framework as a matrix."""
    return Matrix.from_values(as_block(scores))


def check_sides(scores: Mapping[str, object], sides: str) -> list[str]:
    """Return the asked sides, in order; InputError unless a mapping has scores of each."""
    names = [NAMES[code] for code in SIDES[sides]]
    if set(scores) != set(names):
        raise InputError(
            f"the mapping of scores has the keys {list(scores)}; these questions need {names}"
        )
    return names


def _join_sides(scores: Mapping[Any, Any], questions: Questions) -> Source:
    """Return the source of a mapping from each asked side to a matrix with a row per triple."""
    sides = check_sides(scores, questions.sides)
    parts = {side: _matrix(scores[side]) for side in sides}
    n_triples = len(questions.triples)
    n_split = len(questions.graph.split(questions.of_graph().split))
    whole = all(len(part.values) == n_split for part in parts.values())
    for side, part in parts.items():
        if len(part.values) != n_triples and not whole:
            raise InputError(
                f"the {side!r} scores have {len(part.values)} rows; "
                f"expected {n_triples}, one per triple of split {questions.split!r}"
            )
    return MatrixSource(list(parts.values()))
