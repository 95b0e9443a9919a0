"""Three scorers that need nothing but the training split and a second of scipy.

Each function takes Questions and returns a score source for ``kgtrec.evaluate``. None of them uses
a valid or test triple: the questions only define the (given entity, relation, side) of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arguments import random_generator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from kgtrec import Factors
    from kgtrec.questions.api import Questions


# Chosen by their MRR on the valid split of the embedded graph.
RANK = 48
PRIOR_WEIGHT = 0.03  # breaks ties between entities without information in the factorisation
ROUNDING = 1e-9  # smaller factors are noise of the last bits, which differs by machine
DEGREE_POWER = 0.25  # 0 leaves popular entities dominant, 0.5 (cosine) lets rare ones take over


def random_scores(questions: Questions, seed: int = 0) -> NDArray[np.float32]:
    """Return uniform random scores, which show every measure for a model without knowledge.

    Shape: float32 (questions, entities).
    """
    shape = (len(questions), questions.n_entities)
    return random_generator(seed).random(shape, dtype=np.float32)


def popularity_scores(questions: Questions) -> NDArray[np.float32]:
    """Return how often each entity answers the question's relation and side in train.

    Shape: float32 (questions, entities).
    """
    counts = _answer_counts(questions)
    return counts[_slot(questions.relation, questions.side)].astype(np.float32)


def svd_factors(questions: Questions, rank: int = RANK, seed: int = 0) -> Factors:
    """Return a truncated SVD of the (given entity, relation, side) x entity training matrix.

    With ``V`` the right singular vectors (one row per entity) and ``X`` the training rows of one
    relation and side, a question about entity ``e`` is scored ``(x V + V[e] V' X V) V'``: its own
    training row ``x`` seen through the factorisation, plus the rows of entities like ``e``, which
    also exist for questions without a training row. Extra dimensions add a little popularity, so
    that the whole stays one pair of factors.
    """
    from kgtrec import Factors

    matrix = _training_matrix(questions)
    vectors = _right_singular_vectors(matrix, rank, seed)
    queries = _fold_in(questions, matrix, vectors)
    prior = _answer_counts(questions)
    prior /= np.maximum(prior.max(axis=1, keepdims=True), 1.0)
    weights = np.zeros((len(questions), len(prior)))
    weights[np.arange(len(questions)), _slot(questions.relation, questions.side)] = PRIOR_WEIGHT
    return Factors(
        np.hstack([queries, weights]).astype(np.float32),
        np.hstack([vectors, prior.T]).astype(np.float32),
    )


def _slot(
    relation: NDArray[np.integer[Any]], side: NDArray[np.integer[Any]] | int
) -> NDArray[np.int64]:
    """Return the number of a (relation, side) pair."""
    return relation.astype(np.int64) * 2 + side


def _training_cells(
    questions: Questions,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return given entity, slot (`_slot`) and answer of every training triple from both sides."""
    head, relation, tail = questions.graph.split("train").astype(np.int64).T
    return (
        np.concatenate([tail, head]),
        np.concatenate([_slot(relation, 0), _slot(relation, 1)]),
        np.concatenate([head, tail]),
    )


def _answer_counts(questions: Questions) -> NDArray[np.float64]:
    """Count the training answers by slot and entity; shape (2 relations, entities)."""
    _, slot, answer = _training_cells(questions)
    shape = (2 * questions.graph.n_relations, questions.n_entities)
    flat = np.bincount(slot * shape[1] + answer, minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.float64)


def _training_matrix(questions: Questions) -> csr_matrix:
    """Return the training matrix, in which counts of rows and columns damp the cells.

    The row is slot * entities + given entity, the column is the answer.
    """
    from scipy.sparse import csr_matrix, diags

    entity, slot, answer = _training_cells(questions)
    n = questions.n_entities
    shape = (2 * questions.graph.n_relations * n, n)
    cells = csr_matrix((np.ones(len(answer)), (slot * n + entity, answer)), shape=shape)
    rows, columns = (
        np.maximum(np.asarray(cells.sum(axis=axis)).ravel(), 1.0) ** -DEGREE_POWER
        for axis in (1, 0)
    )
    return csr_matrix(diags(rows) @ cells @ diags(columns))


def _right_singular_vectors(matrix: csr_matrix, rank: int, seed: int) -> NDArray[np.float64]:
    """Return the right singular vectors; shape (entities, at most rank)."""
    from scipy.sparse.linalg import svds

    used = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    smaller = min(used.shape)
    start = random_generator(seed).standard_normal(smaller)
    _, _, transposed = svds(used, k=min(rank, smaller - 1), v0=start)
    return _without_rounding(transposed.T)


def _fold_in(
    questions: Questions, matrix: csr_matrix, vectors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return unit vectors of the questions, shape (questions, rank).

    A vector is the question's training row plus the rows of similar questions.
    """
    n = questions.n_entities
    slots = _slot(questions.relation, questions.side)
    seen = matrix @ vectors
    queries = seen[slots * n + questions.entity]
    for slot in np.unique(slots):
        rows = np.flatnonzero(slots == slot)
        core = vectors.T @ seen[slot * n : (slot + 1) * n]
        queries[rows] += vectors[questions.entity[rows]] @ core
    length = np.linalg.norm(queries, axis=1, keepdims=True)
    return _without_rounding(queries / np.where(length > ROUNDING, length, 1.0))


def _without_rounding(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set noise to 0, so that entities without information tie on every machine."""
    return np.where(np.abs(values) > ROUNDING, values, 0.0)
