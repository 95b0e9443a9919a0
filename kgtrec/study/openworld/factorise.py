"""Factorisations that are trained in seconds with numpy and scipy, and get stronger step by step.

Each takes training triples and yields checkpoints, as a model that is trained longer would be:
a step is the number of dimensions. They answer tail questions: a row for each (head, relation),
whose candidates are the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.scores.factors import Factors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from kgtrec.questions.api import Questions

__all__ = ["MODELS", "Checkpoint", "Model", "cp", "rescal", "svd"]

Floats = NDArray[np.float64]

RIDGE = 0.1
START = 0.1  # spread of the random factors that an iteration starts from
OVERSAMPLING = 16
POWERS = 6


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model at one step of its training.

    Attributes
    ----------
    step : int
        Rank.
    ask : function (heads, relations) -> ndarray, shape (questions, d)
        Query vectors of tail questions.
    tails : ndarray of float64, shape (entities, d)
    """

    step: int
    ask: Callable[[NDArray[np.int64], NDArray[np.int64]], Floats]
    tails: Floats

    def factors(self, questions: Questions) -> Factors:
        """A score source for tail questions."""
        columns = (questions.entity, questions.relation)
        queries = self.ask(*(column.astype(np.int64) for column in columns))
        return Factors(queries.astype(np.float32), self.tails.astype(np.float32))


@dataclass(frozen=True)
class Model:
    """A way of training with its settings; `label` is what tables and legends say."""

    label: str
    train: Callable[..., Iterator[Checkpoint]]
    setting: float
    steps: Sequence[int]

    def checkpoints(
        self, triples: NDArray[Any], n_entities: int, n_relations: int, seed: int
    ) -> Iterator[Checkpoint]:
        """Train, stopping at each step.

        Parameters
        ----------
        triples : ndarray of int, shape (n, 3)
        n_entities, n_relations : int
        seed : int
        """
        slices = _slices(triples, n_entities, n_relations)
        return self.train(slices, self.setting, self.steps, np.random.default_rng(seed))


def svd(
    slices: list[csr_matrix], power: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """Truncated SVD of the (relation, head) x tail matrix; a step is the number of vectors kept.

    A question is scored by its own row and by the rows of its relation, weighted by how like its
    head theirs are, both seen through the singular vectors; cells are damped by the counts of row
    and column to the power given.
    """
    from scipy.sparse import diags, vstack

    count = slices[0].shape[0]
    stacked = vstack(slices).tocsr()
    rows, columns = (
        np.maximum(np.asarray(stacked.sum(axis=axis)).ravel(), 1.0) ** -power for axis in (1, 0)
    )
    damped = (diags(rows) @ stacked @ diags(columns)).tocsr()
    most = min(max(steps), *damped.shape)
    vectors = _right_vectors(damped, most, rng)
    seen = damped @ vectors
    cores = [vectors.T @ seen[r * count : (r + 1) * count] for r in range(len(slices))]

    def asking(step: int) -> Callable[[NDArray[np.int64], NDArray[np.int64]], Floats]:
        def ask(heads: NDArray[np.int64], relations: NDArray[np.int64]) -> Floats:
            queries = seen[relations * count + heads, :step]
            for relation in np.unique(relations):
                mask = relations == relation
                queries[mask] += vectors[heads[mask], :step] @ cores[relation][:step, :step]
            return queries

        return ask

    for step in steps:
        if step <= most:
            yield Checkpoint(step, asking(step), vectors[:, :step])


def _right_vectors(matrix: csr_matrix, count: int, rng: np.random.Generator) -> Floats:
    """Leading right singular vectors, (columns, count), by subspace iteration (Halko et al. 2011).

    Lanczos iteration takes minutes here: families that look alike have singular values that are
    nearly equal.
    """
    width = min(count + OVERSAMPLING, *matrix.shape)
    basis = np.linalg.qr(rng.standard_normal((matrix.shape[1], width)))[0]
    gram = matrix.T @ matrix
    for _ in range(POWERS):
        basis = np.linalg.qr(gram @ basis)[0]
    _, turned = np.linalg.eigh(basis.T @ (gram @ basis))
    return np.asarray((basis @ turned[:, ::-1])[:, :count])


def rescal(
    slices: list[csr_matrix], rounds: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """RESCAL, X_r = A R_r A', by rounds of alternating least squares; a step is the rank."""
    for rank in steps:
        if rank > slices[0].shape[0]:
            return
        entity = rng.standard_normal((slices[0].shape[0], rank)) * START
        core = _cores(slices, entity)
        for _ in range(int(rounds)):
            gram = entity.T @ entity
            both = sum(r @ gram @ r.T + r.T @ gram @ r for r in core) + RIDGE * np.eye(rank)
            right = sum(
                cells @ (entity @ r.T) + cells.T @ (entity @ r)
                for cells, r in zip(slices, core, strict=True)
            )
            entity = _solve(both, np.asarray(right))
            core = _cores(slices, entity)
        yield _bilinear(rank, core, entity)


def _cores(slices: list[csr_matrix], entity: Floats) -> list[Floats]:
    """R of each relation that is nearest to X = A R A', with a ridge, by A's singular vectors."""
    left, size, right = np.linalg.svd(entity, full_matrices=False)
    weight = np.outer(size, size)
    weight = weight / (weight**2 + RIDGE)
    return [right.T @ (weight * (left.T @ (cells @ left))) @ right for cells in slices]


def _bilinear(step: int, core: list[Floats], entity: Floats) -> Checkpoint:
    def ask(heads: NDArray[np.int64], relations: NDArray[np.int64]) -> Floats:
        queries = np.empty((len(heads), entity.shape[1]))
        for relation in np.unique(relations):
            mask = relations == relation
            queries[mask] = entity[heads[mask]] @ core[relation]
        return queries

    return Checkpoint(step, ask, entity)


def cp(
    slices: list[csr_matrix], rounds: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """CP, a sum of head x relation x tail, by rounds of least squares; a step is the rank."""
    count = slices[0].shape[0]
    for rank in steps:
        head, tail = (rng.standard_normal((count, rank)) * START for _ in range(2))
        weight = rng.standard_normal((len(slices), rank)) * START
        ridge = RIDGE * np.eye(rank)
        for _ in range(int(rounds)):
            forward = [cells @ tail for cells in slices]
            total = sum(part * w for part, w in zip(forward, weight, strict=True))
            head = _solve((tail.T @ tail) * (weight.T @ weight) + ridge, np.asarray(total))
            backward = [cells.T @ head for cells in slices]
            total = sum(part * w for part, w in zip(backward, weight, strict=True))
            tail = _solve((head.T @ head) * (weight.T @ weight) + ridge, np.asarray(total))
            sums = np.array([(part * tail).sum(axis=0) for part in backward])
            weight = _solve((head.T @ head) * (tail.T @ tail) + ridge, sums)
        yield _trilinear(rank, head, weight, tail)


def _trilinear(step: int, head: Floats, weight: Floats, tail: Floats) -> Checkpoint:
    return Checkpoint(step, lambda heads, relations: head[heads] * weight[relations], tail)


def _solve(gram: Floats, right: Floats) -> Floats:
    """Rows x with x gram = right; gram is symmetric."""
    return np.asarray(np.linalg.solve(gram, right.T).T)


def _slices(triples: NDArray[Any], n_entities: int, n_relations: int) -> list[csr_matrix]:
    """Adjacency matrix of each relation, float64."""
    from scipy.sparse import csr_matrix

    shape = (n_entities, n_entities)
    slices = []
    for relation in range(n_relations):
        rows = triples[triples[:, 1] == relation]
        slices.append(csr_matrix((np.ones(len(rows)), (rows[:, 0], rows[:, 2])), shape=shape))
    return slices


RANKS = (2, 4, 8, 16, 32, 64, 128, 192)

MODELS = (
    Model("SVD, plain", svd, 0.0, RANKS),
    Model("SVD, damped 1/8", svd, 0.125, RANKS),
    Model("SVD, damped 1/4", svd, 0.25, RANKS),
    Model("RESCAL, 1 round", rescal, 1, RANKS),
    Model("RESCAL, 2 rounds", rescal, 2, RANKS),
    Model("RESCAL, 4 rounds", rescal, 4, RANKS),
    Model("CP, 1 round", cp, 1, RANKS),
    Model("CP, 2 rounds", cp, 2, RANKS),
    Model("CP, 4 rounds", cp, 4, RANKS),
)
"""What the study compares: three ways of training with three settings each, growing in rank."""
