"""Similarities of the entities of two graphs: from two tables of embeddings, or as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.scores.arrays import as_array, score_dtype
from kgtrec.scores.factors import Factors

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["SIMILARITIES", "Similarities", "similarities"]

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

SIMILARITIES = ("cosine", "dot", "l2", "l1")

_BLOCK_BYTES = 64 << 20


def similarities(left: Any, right: Any, similarity: Any, csls: int) -> Similarities:
    """Embeddings or a matrix, checked; parameters as of `kgtrec.align`."""
    if isinstance(csls, bool) or not isinstance(csls, (int, np.integer)) or csls < 0:
        raise UsageError(f"csls={csls!r} is not a number of neighbours; 10 is usual, 0 is none")
    if not isinstance(similarity, str):
        if left is not None or right is not None:
            raise UsageError("give embeddings, or a similarity matrix, not both")
        return _Matrix(similarity, int(csls))
    if similarity not in SIMILARITIES:
        raise UsageError(
            f"similarity={similarity!r} is unknown; choose one of {', '.join(SIMILARITIES)}, or "
            "hand over a matrix"
        )
    if left is None or right is None:
        raise UsageError("give left and right embeddings, or similarity=matrix")
    return _Tables(left, right, similarity, int(csls))


class Similarities(Protocol):
    """Similarities of all left and right entities, wherever they come from.

    Attributes
    ----------
    n_left, n_right : int
        Entities of the two graphs.
    name : str
        Of the similarity.
    csls : int
        Neighbours for cross-domain similarity local scaling; 0 is none.
    """

    n_left: int
    n_right: int
    name: str
    csls: int

    def scores(self, questions: Questions) -> Any:
        """What `kgtrec.rank` takes for these questions."""

    def blocks(self, own: Array, others: Array, side: int) -> Iterator[Array]:
        """Similarities of own entities (rows) to others (columns), in blocks of rows; ``side`` is
        that of the others, 1 if right."""


def _penalties(model: Similarities, lefts: Array, rights: Array) -> Float64:
    """Half the mean similarity of each candidate to its neighbours; 0 for others."""
    penalties = np.zeros(model.n_left + model.n_right)
    if not model.csls:
        return penalties
    for own, others, start, side in ((lefts, rights, 0, 1), (rights, lefts, model.n_left, 0)):
        k = min(model.csls, len(others))
        means = [
            np.sort(np.partition(block, -k, axis=1)[:, -k:], axis=1).mean(axis=1, dtype=np.float64)
            for block in model.blocks(own, others, side)
        ]
        penalties[start + own] = np.concatenate(means) / 2
    return penalties


def _heights(n_rows: int, width: int, itemsize: int) -> Iterator[slice]:
    """Rows of one block after another."""
    height = max(1, _BLOCK_BYTES // max(1, width * itemsize))
    return (slice(start, start + height) for start in range(0, n_rows, height))


class _Tables:
    """Two tables of embeddings, never multiplied out."""

    def __init__(self, left: Any, right: Any, similarity: str, csls: int) -> None:
        tables = [_table("left", left), _table("right", right)]
        if tables[0].shape[1] != tables[1].shape[1]:
            raise InputError(
                f"left embeddings have {tables[0].shape[1]} dimensions and right ones "
                f"{tables[1].shape[1]}; they must be of one space"
            )
        self.n_left, self.n_right = map(len, tables)
        self.name, self.csls = similarity, csls
        self.metric = "dot" if similarity == "cosine" else similarity
        if similarity == "cosine":
            tables = [_unit(*named) for named in zip(("left", "right"), tables, strict=True)]
        self.table = np.concatenate(tables)

    def scores(self, questions: Questions) -> Factors:
        lefts, rights = _candidates(questions, self.n_left)
        bias = _penalties(self, lefts, rights)
        dtype = np.float64 if self.table.dtype == np.float64 else np.float32
        return Factors(
            self.table[questions.entity],
            self.table,
            np.negative(bias, dtype=dtype, casting="same_kind") if self.csls else None,
            self.metric,
        )

    def blocks(self, own: Array, others: Array, side: int) -> Iterator[Array]:
        shift = (self.n_left, 0) if side == 0 else (0, self.n_left)
        factors = Factors(
            self.table[own + shift[0]], self.table[others + shift[1]], None, self.metric
        )
        for rows in _heights(len(own), len(others), factors.dtype.itemsize):
            yield factors.scores(rows.start, rows.stop)


class _Matrix:
    """A matrix of similarities, left by right."""

    name = "matrix"

    def __init__(self, matrix: Any, csls: int) -> None:
        self.matrix = as_array(matrix, "similarities")
        if self.matrix.ndim != 2 or 0 in self.matrix.shape:
            raise InputError(
                f"similarities have shape {self.matrix.shape}; expected (n_left, n_right)"
            )
        score_dtype(self.matrix, "similarities")
        self.n_left, self.n_right = self.matrix.shape
        self.csls = csls

    def scores(self, questions: Questions) -> Iterator[Array]:
        lefts, rights = _candidates(questions, self.n_left)
        bias = _penalties(self, lefts, rights)
        width = self.n_left + self.n_right
        dtype = np.dtype(np.float64) if self.csls else self.matrix.dtype
        for rows in _heights(len(questions), width, dtype.itemsize):
            # Other columns are no candidates: nothing looks at them.
            block = np.zeros((len(questions.side[rows]), width), dtype=dtype)
            side, known = questions.side[rows], questions.entity[rows]
            heads, tails = np.flatnonzero(side == 0), np.flatnonzero(side == 1)
            block[np.ix_(heads, lefts)] = self.matrix[np.ix_(lefts, known[heads] - self.n_left)].T
            block[np.ix_(tails, rights + self.n_left)] = self.matrix[np.ix_(known[tails], rights)]
            yield block - bias if self.csls else block

    def blocks(self, own: Array, others: Array, side: int) -> Iterator[Array]:
        matrix = self.matrix if side == 1 else self.matrix.T
        for rows in _heights(len(own), len(others), matrix.itemsize):
            block = matrix[np.ix_(own[rows], others)]
            if np.isnan(block).any():
                row, column = (int(index[0]) for index in np.nonzero(np.isnan(block)))
                place = own[rows][row], others[column]
                place = place if side == 1 else place[::-1]
                raise InputError(
                    f"similarities: NaN for left {place[0]} and right {place[1]}; fix the model"
                )
            yield block


def _candidates(questions: Questions, n_left: int) -> tuple[Array, Array]:
    """Left and right entities of the test alignments, by their own ids."""
    triples = questions.triples.astype(np.int64)
    return np.unique(triples[:, 0]), np.unique(triples[:, 2]) - n_left


def _table(name: str, values: Any) -> Array:
    table = as_array(values, f"{name} embeddings")
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(
            f"{name} embeddings have shape {table.shape}; expected (entities, dimensions)"
        )
    if table.dtype.name not in ("float16", "float32", "float64"):
        raise InputError(
            f"{name} embeddings have dtype {table.dtype}; they must be float16, float32 or float64"
        )
    for start in range(0, len(table), 1 << 16):
        wrong = ~np.isfinite(table[start : start + (1 << 16)])
        if wrong.any():
            row, column = (int(index[0]) for index in np.nonzero(wrong))
            raise InputError(
                f"{name} embeddings: {table[start + row, column]} in row {start + row}, column "
                f"{column}; fix the model"
            )
    return table


def _unit(name: str, table: Array) -> Array:
    """Rows of length 1, in float64 where they are that, else float32."""
    dtype = np.float64 if table.dtype == np.float64 else np.float32
    wide = table.astype(np.float64)
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    if not length.all():
        raise InputError(
            f"{name} embeddings: row {int(np.flatnonzero(length == 0)[0])} is zero and has no "
            "direction, so no cosine; take another similarity"
        )
    return (wide / length[:, None]).astype(dtype)
