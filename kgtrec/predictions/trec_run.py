"""TREC runs as predicted lists: of a file, or as the ranker made them."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError, InputError
from kgtrec.predictions.lists import ANY, PredictedLists, ids_of
from kgtrec.questions.questions import QuestionData
from kgtrec.trec.files.run import Run

__all__ = ["lists_of_run", "read_trec_run"]

Int64 = npt.NDArray[np.int64]


def read_trec_run(path: str | PathLike[str], questions: QuestionData) -> PredictedLists:
    """Lists of a run file, whose queries are named as ``kgtrec convert --questions`` names them.

    Raises
    ------
    FileError
        Missing or malformed; the line is named.
    """
    from kgtrec.trec.files.read import read_run_columns

    columns = read_run_columns(path)
    encoded = columns.documents.dictionary_encode()
    ids = ids_of(questions.candidate_labels.docnos, encoded.dictionary)
    entities = ids[encoded.indices.to_numpy()]
    return _lists(path, questions, columns.queries, columns.offsets, entities, columns.scores)


def lists_of_run(run: Run, questions: QuestionData) -> PredictedLists:
    """Lists of a `Run` of the same graph."""
    if run.docnos != questions.candidate_labels.docnos:
        raise InputError(
            f"the run is of {len(run.docnos):,} other candidates than the graph's "
            f"{questions.n_labels:,}; give the questions that it was made for"
        )
    entities, scores = run.documents.astype(np.int64), run.scores.astype(np.float64)
    return _lists("predictions", questions, run.query_ids, run.offsets, entities, scores)


def _lists(
    path: str | PathLike[str],
    questions: QuestionData,
    names: Any,
    offsets: Int64,
    entities: Int64,
    scores: npt.NDArray[Any],
) -> PredictedLists:
    numbers = {name: number for number, name in enumerate(questions.ids)}
    positions = np.array([numbers.get(name, -1) for name in names], dtype=np.int64)
    if len(positions) and (positions < 0).all():
        raise FileError(
            path,
            found=f"none of its {len(positions):,} queries ({names[0]!r}, ...) is a question of "
            f"split {questions.split!r}, {questions.sides}",
            hint="name them as `kgtrec convert --questions` does: head0, ..., tail0, ...",
        )
    known = positions >= 0
    return PredictedLists(
        "trec",
        fspath(path),
        np.where(known, questions.side[positions], 0),
        np.where(known, questions.given[0][positions], -2),
        np.where(known, questions.given[1][positions], -2),
        np.full(len(positions), ANY),
        np.arange(1, len(positions) + 1),
        offsets,
        entities,
        scores,
        None if questions.context is None else np.where(known, questions.context[positions], -2),
    )
