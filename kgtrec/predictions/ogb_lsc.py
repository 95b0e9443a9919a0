"""Submissions of OGB-LSC's WikiKG90Mv2: the ten best entities of each triple, as an ``.npz``."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError
from kgtrec.graph.id_files import load_arrays
from kgtrec.predictions.lists import PredictedLists
from kgtrec.questions.questions import QuestionData

__all__ = ["read_ogb_lsc"]

_ARRAYS = ("h_pred_top10", "t_pred_top10")  # by side
_HINT = (
    "save t_pred_top10 (and h_pred_top10), integer entity numbers of shape (triples, k), best "
    "first, a row for each triple of the split in its order, with numpy.savez"
)


def read_ogb_lsc(path: str | PathLike[str], questions: QuestionData) -> PredictedLists:
    """Lists of entity numbers, those of the graph; -1 stands for none.

    Raises
    ------
    FileError
        Missing arrays, another shape than one row a triple, or a number that is not an entity.
    """
    arrays = load_arrays(path, _ARRAYS, _HINT)
    triples = questions.triples.astype(np.int64)
    columns: list[list[npt.NDArray[Any]]] = [[] for _ in range(7)]
    for side, name in enumerate(_ARRAYS):
        if name not in arrays:
            continue
        rows = arrays[name]
        _check(path, name, rows, questions)
        entity_column, answer_column = (2, 0) if side == 0 else (0, 2)
        listed = rows >= 0
        parts = (
            np.full(len(rows), side),
            triples[:, entity_column],
            triples[:, 1],
            triples[:, answer_column],
            np.arange(1, len(rows) + 1),
            listed.sum(axis=1),
            rows[listed].astype(np.int64),
        )
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    side_of, entity_of, relation, answer, line, lengths, entities = map(np.concatenate, columns)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    where = fspath(path)
    return PredictedLists(
        "ogb-lsc", where, side_of, entity_of, relation, answer, line, offsets, entities, None
    )


def _check(
    path: str | PathLike[str], name: str, rows: npt.NDArray[Any], questions: QuestionData
) -> None:
    n_triples = len(questions.triples)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or len(rows) != n_triples:
        what = f"{name} is {rows.dtype} of shape {rows.shape}, for {n_triples:,} triples"
        dropped = questions.graph.duplicates.get(questions.split, 0)
        more = f"; {dropped:,} repeated triples of the split count once" if dropped else ""
        raise FileError(path, found=what, hint=_HINT + more)
    bad = (rows < -1) | (rows >= questions.n_entities)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        what = f"{name}[{row}, {column}] is {rows[row, column]}, of {questions.n_entities:,}"
        raise FileError(path, found=f"{what} entities", hint="number entities as the graph does")
