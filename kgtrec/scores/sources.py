"""Score sources: where the rows of scores come from.

Whatever the user has becomes a `Source`: consecutive blocks of score rows, read once. Factorised
models (`Factors`) are the exception: they are ranked from their vectors, and have no rows to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError

if TYPE_CHECKING:
    from kgtrec.questions.questions import Questions

__all__ = ["Factors", "Source", "as_array", "as_source", "score_dtype", "selected"]

Array = npt.NDArray[Any]

BLOCK_BYTES = 64 << 20
"""Rows are handed on in blocks of about this size: large enough to share out, small enough for
progress."""

METRICS = ("dot", "l2", "l1")
"""How a factorised model scores; the native core knows them by these names."""

_FLOATS = ("float16", "bfloat16", "float32", "float64")


class Source(Protocol):
    """Consecutive blocks of score rows.

    ``n_rows`` is None where it is known only at the end. ``blocks`` yields arrays of shape
    (rows, entities), in row order, each read before the next is asked for. ``place`` names the file
    of the block at hand, for messages; it is empty where there is none.
    """

    n_rows: int | None
    place: str

    def blocks(self) -> Iterator[Array]: ...


class Factors:
    """A factorised model, ranked tile by tile: its score matrix never exists.

    Parameters
    ----------
    queries : array of float16, float32 or float64, shape (rows, dim)
        One vector per row: per question, or per (triple, side), as the caller of `rank` declares.
    entities : array, shape (n_entities, dim)
        One vector per entity, in id order.
    bias : array, shape (n_entities,), optional
        Added to every score of an entity.
    metric : {"dot", "l2", "l1"}
        ``dot``: q·x + bias. ``l2``: -‖q - x‖² + bias, computed as 2 q·x - x·x - q·q.
        ``l1``: bias - (|q1 - x1| + |q2 - x2| + ...).

    Notes
    -----
    Computed in float64 if any array is float64, else in float32; entities in float16 are kept so,
    and widened as they are used, which halves their memory. Each dot product is one chain of
    fused multiply-adds in ascending dimension, so a score has the same bits in every tile, thread,
    chunk and kernel path, and entities with equal vectors (and biases) tie exactly. Distances that
    are equal for other reasons may differ in the last bits, as in any floating-point sum. No BLAS
    is called: its threads can't multiply with those that share the rows.

    Raises
    ------
    InputError
        Shapes or dtypes do not fit together.
    """

    def __init__(self, queries: Any, entities: Any, bias: Any = None, metric: str = "dot") -> None:
        if metric not in METRICS:
            raise UsageError(f"metric={metric!r} is unknown; choose one of {', '.join(METRICS)}")
        arrays = [_vectors("queries", queries, 2), _vectors("entities", entities, 2)]
        if bias is not None:
            arrays.append(_vectors("bias", bias, 1))
        if arrays[0].shape[1] != arrays[1].shape[1]:
            raise InputError(
                f"queries have {arrays[0].shape[1]} dimensions and entities {arrays[1].shape[1]}; "
                "they must be the same"
            )
        if bias is not None and len(arrays[2]) != len(arrays[1]):
            raise InputError(
                f"bias has {len(arrays[2])} values for {len(arrays[1])} entities; give one each"
            )
        double = any(array.dtype == np.float64 for array in arrays)
        dtype = np.dtype(np.float64 if double else np.float32)
        half = arrays[1].dtype == np.float16 and not double
        arrays = [
            np.ascontiguousarray(array, dtype=np.float16 if half and number == 1 else dtype)
            for number, array in enumerate(arrays)
        ]
        # The core takes entities and bias at any byte of a mapped file, queries as C has them.
        self.queries, self.entities = np.require(arrays[0], requirements="A"), arrays[1]
        self.bias = arrays[2] if bias is not None else None
        self.metric = metric

    @property
    def dtype(self) -> np.dtype[Any]:
        """Computing type: float32 or float64."""
        return self.queries.dtype

    @property
    def table(self) -> tuple[Array, Array | None, str]:
        """Entities, bias and metric, as the native core takes them."""
        return self.entities, self.bias, self.metric

    def __repr__(self) -> str:
        bias = ", bias" if self.bias is not None else ""
        return (
            f"Factors({len(self.queries)} queries, {len(self.entities)} entities, "
            f"dim {self.queries.shape[1]}{bias}, {self.metric}, {self.dtype})"
        )

    def scores(self, start: int = 0, stop: int | None = None) -> Array:
        """The scores of some rows, shape (rows, n_entities), with the bits that ranking sees."""
        from kgtrec import _core

        queries = self.queries[start:stop]
        out = np.empty((len(queries), len(self.entities)), dtype=self.dtype)
        _core.factor_scores(queries, self.entities, self.bias, self.metric, out)
        return out


def _vectors(name: str, array: Any, ndim: int) -> Array:
    values = as_array(array, name)
    if values.ndim != ndim or values.dtype.name not in ("float16", "float32", "float64"):
        raise InputError(
            f"{name} has shape {values.shape} and dtype {values.dtype}; "
            f"it must be {ndim}-dimensional, of float16, float32 or float64"
        )
    return values


def as_array(scores: Any, name: str = "scores") -> Array:
    """A numpy view of an array of any framework, by DLPack or ``__array__``, without importing it.

    Raises
    ------
    InputError
        The framework refuses (a tensor on a GPU, a dtype that numpy does not know), or values are
        masked.
    """
    if isinstance(scores, np.ma.MaskedArray) and np.ma.is_masked(scores):
        raise InputError(
            f"{name} are a masked array with {np.ma.count_masked(scores)} masked values, which say "
            "nothing of how they rank; fill them, for example with .filled(-numpy.inf)"
        )
    if isinstance(scores, np.ndarray):
        return scores
    if hasattr(scores, "resolve_neg"):  # torch exports a lazily negated tensor without its sign
        scores = scores.resolve_neg()
    if hasattr(scores, "detach"):  # a torch tensor that records gradients refuses to be exported
        scores = scores.detach()
    if str(getattr(scores, "dtype", "")) == "torch.bfloat16":
        scores = scores.float()  # numpy has no such type; widening is exact and keeps ties
    try:
        if hasattr(scores, "__dlpack__"):
            return np.from_dlpack(scores)
        return np.asarray(scores)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        if hasattr(scores, "__dlpack__") and hasattr(scores, "__array__"):
            try:
                return np.asarray(scores)
            except (TypeError, ValueError, RuntimeError, BufferError):
                pass  # the first refusal says more
        kind = f"{type(scores).__module__}.{type(scores).__qualname__}"
        raise InputError(
            f"{name}: {kind} cannot be read as an array ({error}); "
            "move it to the CPU and to float32, or hand over a numpy array"
        ) from None


def score_dtype(array: Array, name: str = "scores") -> str:
    """Name of the dtype in which scores are compared.

    Raises
    ------
    InputError
        Not a floating-point type that can be ranked.
    """
    if array.dtype.name not in _FLOATS:
        raise InputError(
            f"{name} have dtype {array.dtype}; they must be one of {', '.join(_FLOATS)}: "
            "convert them with .astype('float32')"
        )
    return array.dtype.name


class MatrixSource:
    """One matrix, in memory or memory-mapped."""

    def __init__(self, matrix: Array, place: str = "") -> None:
        if matrix.ndim != 2:
            raise InputError(
                f"scores have shape {matrix.shape}; "
                "they must be two-dimensional: a row per question, a column per entity"
            )
        self.matrix, self.place = matrix, place
        self.n_rows: int | None = len(matrix)

    def blocks(self) -> Iterator[Array]:
        row_bytes = max(1, self.matrix.shape[1] * self.matrix.itemsize)
        height = max(1, BLOCK_BYTES // row_bytes)
        for start in range(0, len(self.matrix), height):
            yield self.matrix[start : start + height]


class JoinedSource:
    """Several sources of known length, one after another."""

    def __init__(self, parts: list[MatrixSource]) -> None:
        self.parts, self.place = parts, ""
        self.n_rows: int | None = sum(len(part.matrix) for part in parts)

    def blocks(self) -> Iterator[Array]:
        for part in self.parts:
            self.place = part.place
            yield from part.blocks()
        self.place = ""


class SelectedSource:
    """Some rows of matrices, in an order of their own."""

    def __init__(self, source: MatrixSource | JoinedSource, rows: npt.NDArray[np.int64]) -> None:
        parts = source.parts if isinstance(source, JoinedSource) else [source]
        self.parts, self.rows, self.place = parts, rows, source.place
        self.n_rows: int | None = len(rows)

    def blocks(self) -> Iterator[Array]:
        first = self.parts[0].matrix
        for part in self.parts:
            if (part.matrix.shape[1], part.matrix.dtype) != (first.shape[1], first.dtype):
                self.place = part.place
                raise InputError(
                    f"scores have {part.matrix.shape[1]} columns of {part.matrix.dtype} here, and "
                    f"{first.shape[1]} of {first.dtype} before; write all shards alike"
                )
        starts = np.cumsum([0] + [len(part.matrix) for part in self.parts])
        height = max(1, BLOCK_BYTES // max(1, first.shape[1] * first.itemsize))
        for start in range(0, len(self.rows), height):
            rows = self.rows[start : start + height]
            block = np.empty((len(rows), first.shape[1]), dtype=first.dtype)
            owner = np.searchsorted(starts, rows, side="right") - 1
            for number in np.unique(owner).tolist():
                mine = owner == number
                block[mine] = self.parts[number].matrix[rows[mine] - starts[number]]
            yield block


class StreamSource:
    """Chunks from an iterator, each a matrix of consecutive rows."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks, self.place = chunks, ""
        self.n_rows: int | None = None

    def blocks(self) -> Iterator[Array]:
        for number, chunk in enumerate(self.chunks):
            yield as_array(chunk, f"scores, chunk {number}")


class CalledSource:
    """A function that scores one batch of questions at a time."""

    def __init__(self, score: Callable[[Any], Any], batches: Iterable[Any], n_rows: int) -> None:
        self.score, self.batches, self.place = score, batches, ""
        self.n_rows: int | None = n_rows

    def blocks(self) -> Iterator[Array]:
        for batch in self.batches:
            block = as_array(self.score(batch), "scores of the callable")
            if block.ndim != 2 or len(block) != len(batch):
                raise InputError(
                    f"the callable returned shape {block.shape} for {batch}; "
                    f"it must return ({len(batch)}, entities)"
                )
            yield block


def selected(source: Source | Factors, rows: npt.NDArray[np.int64]) -> Source | Factors:
    """Some rows of a source that has them at hand; any other source as it is."""
    if isinstance(source, Factors):
        return Factors(source.queries[rows], *source.table)
    if isinstance(source, (MatrixSource, JoinedSource)):
        return SelectedSource(source, rows)
    return source


def as_source(
    scores: Any, questions: Questions, batches: Callable[[int], Iterable[Any]], n_rows: int
) -> Source | Factors:
    """Whatever the user has, as a source.

    Parameters
    ----------
    scores : object
        A matrix (numpy or anything with DLPack or ``__array__``), a path to a ``.npy`` file, to a
        folder of ``.npy`` shards or to an ``.npz`` with a factorised model, a mapping with ``head``
        and ``tail`` matrices, `Factors`, a callable ``score(batch)``, or an iterable of matrices.
    questions : Questions
        What the scores answer.
    batches : callable
        Makes the batches that a callable is asked to score.
    n_rows : int
        Rows that are wanted in all.
    """
    if isinstance(scores, Factors):
        return scores
    if isinstance(scores, (str, PathLike)):
        from kgtrec.scores.files import load_scores

        return load_scores(scores)
    if isinstance(scores, Mapping):
        return _join_sides(scores, questions)
    if hasattr(scores, "__dlpack__") or hasattr(scores, "__array__"):
        return MatrixSource(as_array(scores))
    if callable(scores):
        size = max(1, min(1024, BLOCK_BYTES // (4 * questions.n_entities)))
        return CalledSource(scores, batches(size), n_rows)
    if isinstance(scores, list) and scores and isinstance(scores[0], (list, tuple)):
        return MatrixSource(as_array(scores))
    if isinstance(scores, Iterable):
        return StreamSource(scores)
    raise InputError(
        f"scores of type {type(scores).__name__} are not understood; hand over an array, a path, "
        "Factors, a callable or an iterable of chunks"
    )


def _join_sides(scores: Mapping[Any, Any], questions: Questions) -> Source:
    """Matrices of one row per triple for each side that is asked."""
    asked = ("head", "tail") if questions.sides == "both" else (questions.sides,)
    if set(scores) != set(asked):
        raise InputError(
            f"a mapping of scores has the keys {list(scores)}; these questions need {list(asked)}"
        )
    parts = {side: MatrixSource(as_array(scores[side])) for side in asked}
    wanted = len(questions.triples)
    if all(part.n_rows == len(questions.graph.split(questions.split)) for part in parts.values()):
        return JoinedSource(list(parts.values()))
    for side, part in parts.items():
        if part.n_rows != wanted:
            raise InputError(
                f"the {side!r} scores have {part.n_rows} rows; "
                f"expected {wanted}, one per triple of split {questions.split!r}"
            )
    return JoinedSource(list(parts.values()))
