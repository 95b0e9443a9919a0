"""Whatever the user has, as a source of score rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from kgtrec.errors import InputError
from kgtrec.questions.sides import NAMES, SIDES
from kgtrec.scores import sources
from kgtrec.scores.arrays import as_array
from kgtrec.scores.devices import on_device
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import load_scores
from kgtrec.scores.sources import (
    CalledSource,
    DeviceSource,
    JoinedSource,
    MatrixSource,
    Source,
    StreamSource,
)

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["as_source"]


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
        return load_scores(scores)
    if isinstance(scores, Mapping):
        return _join_sides(scores, questions)
    if on_device(scores):
        return DeviceSource(scores.detach())
    if hasattr(scores, "__dlpack__") or hasattr(scores, "__array__"):
        return MatrixSource(as_array(scores))
    if isinstance(scores, memoryview):  # which numpy reads, and which is iterable too
        return MatrixSource(as_array(scores))
    if hasattr(scores, "toarray"):
        raise InputError(
            f"scores are a sparse matrix ({type(scores).__name__}), which says nothing of how what "
            "it leaves out ranks; hand over .toarray(), if that is 0"
        )
    if callable(scores):
        size = max(1, min(1024, sources.BLOCK_BYTES // (4 * questions.n_labels)))
        return CalledSource(scores, batches(size), n_rows)
    if isinstance(scores, list) and scores and isinstance(scores[0], (list, tuple)):
        return MatrixSource(as_array(scores))
    if isinstance(scores, Iterable):
        return StreamSource(scores)
    raise InputError(
        f"scores of type {type(scores).__name__} are not understood; hand over an array, a path, "
        "Factors, a callable or an iterable of chunks"
    )


def _matrix(scores: Any) -> MatrixSource | DeviceSource:
    return DeviceSource(scores.detach()) if on_device(scores) else MatrixSource(as_array(scores))


def _join_sides(scores: Mapping[Any, Any], questions: Questions) -> Source:
    """Matrices of one row per triple for each side that is asked."""
    sides = tuple(NAMES[code] for code in SIDES[questions.sides])
    if set(scores) != set(sides):
        raise InputError(
            f"a mapping of scores has the keys {list(scores)}; these questions need {list(sides)}"
        )
    parts = {side: _matrix(scores[side]) for side in sides}
    n_triples = len(questions.triples)
    if all(part.n_rows == len(questions.graph.split(questions.split)) for part in parts.values()):
        return JoinedSource(list(parts.values()))
    for side, part in parts.items():
        if part.n_rows != n_triples:
            raise InputError(
                f"the {side!r} scores have {part.n_rows} rows; "
                f"expected {n_triples}, one per triple of split {questions.split!r}"
            )
    return JoinedSource(list(parts.values()))
