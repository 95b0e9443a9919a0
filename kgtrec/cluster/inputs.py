"""Convert users' data to `Inputs`: files that workers open, with the requested rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec._internal.files import atomic_write, map_array, write_array
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import describe_file, hash_text, label_files
from kgtrec.cluster.parts import ONE_THREAD, Inputs
from kgtrec.cluster.question_store import Store, save_questions
from kgtrec.cluster.score_files import FactorFiles, Files, ScoreFiles, describe_scores, save_scores
from kgtrec.cluster.vectors import ModelVectors, describe_vectors
from kgtrec.errors import InputError, PathName, UsageError, about
from kgtrec.graph.formats import graph_files
from kgtrec.questions.api import Questions
from kgtrec.questions.questions import require_columns_by_id
from kgtrec.questions.requests import AnswerRequest, QuestionRequest
from kgtrec.ranking.rank import check_shape, rows_to_rank
from kgtrec.ranking.ranker import check_factors, prepare_rows
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import as_array
from kgtrec.scores.factors import Factors
from kgtrec.scores.sources import check_sides


def describe_request(request: QuestionRequest | AnswerRequest) -> dict[str, Any]:
    """Describe the content of all inputs of the questions, in plain JSON types."""
    if isinstance(request, AnswerRequest):
        return _describe_answers(request)
    names = ("split", "sides", "unknown", "columns", "outside", "min_answers")
    splits = graph_files(request.graph)
    labels = label_files(splits, request.lists["type_constraints"])
    options = {name: getattr(request, name) for name in names}
    return {
        "kgtrec": __version__,
        "graph": Path(request.graph).resolve().name,
        "splits": {name: describe_file(path) for name, path in splits.items()},
        "options": {"filter": request.filters[0], **options},
        "files": {
            option: [[path, describe_file(path)] for path in paths]
            for option, paths in request.lists.items()
        },
        "labels": [[path.name, describe_file(path)] for path in labels],
    }


def _describe_answers(request: AnswerRequest) -> dict[str, Any]:
    """Describe the content of all inputs of questions without a graph."""
    files = {option: [path, describe_file(path)] for option, path in request.files.items()}
    names = ("level", "known_has_answers", "exclude_query_document", "min_answers")
    options = {name: getattr(request, name) for name in names}
    return {"kgtrec": __version__, "options": options, "files": files}


def open_question_store(
    folder: PathName,
    request: QuestionRequest | AnswerRequest,
    rows: str,
    shape: tuple[int, int] = (0, 0),
) -> Store:
    """Open the store of a request's questions; write it if it does not exist yet.

    - rows: Meaning of a row of scores, "questions" or "instances".
    - shape: Rows and columns of the scores; (0, 0) if they are not known yet.
    """
    n_columns = shape[1]
    described = describe_request(request) | {"n_columns": n_columns}
    key = hash_text(json.dumps([described, rows], sort_keys=True))
    target = Path(folder) / f"questions-{key}"
    if not target.is_dir():
        questions = request.ask(*shape)
        if describe_request(request) | {"n_columns": n_columns} != described:
            name = (
                f"graph {described['graph']!r}"
                if "graph" in described
                else (f"questions of {next(iter(described['files'].values()))[0]!r}")
            )
            raise InputError(
                f"{name}: its files changed while they were read; "
                "try again when nothing writes to them"
            )
        target = save_questions(questions, rows, folder, key)
    return Store(target, verify=True)


def fit_files(files: Files, store: Store, higher_is_better: bool = True) -> Files:
    """Select the rows and columns of score files for the questions of a store; check the shape."""
    factors = isinstance(files, FactorFiles)
    questions, rows, n_rows = store.questions(), store.rows, store.n_rows
    selection = rows_to_rank(questions, rows, n_rows, files.n_rows, factors)
    shape = (files.n_rows if selection is None else len(selection), files.n_columns)
    with about(files.location):
        if factors:
            settings = Settings(rows=rows, higher_is_better=higher_is_better)
            check_factors(questions, n_rows, shape, settings)
        else:
            check_shape(questions, rows, n_rows, shape)
    folder = store.folder.resolve().parent
    if selection is not None:
        path = folder / f"rows-{questions.fingerprint}-{rows}-{files.n_rows}.npy"
        files = replace(files, selection=_write_ids(path, selection))
    if questions.column_of is not None:
        path = folder / f"columns-{store.folder.name.removeprefix('questions-')}.npy"
        files = replace(files, columns=_write_ids(path, questions.column_of))
    return files


def _write_ids(path: Path, ids: Int64) -> str:
    """Write numbers to a file unless it holds them; return its path."""
    if not _holds_ids(path, ids):
        with atomic_write(path) as file:
            write_array(file, ids.astype(np.int64))
    return str(path)


def _holds_ids(path: Path, rows: Int64) -> bool:
    """Return whether a file exists and holds these numbers."""
    try:
        return np.array_equal(map_array(path), rows)
    except Exception:  # missing, or damaged in any way
        return False


def build_inputs(
    source: Any, questions: Questions, folder: PathName, settings: Settings = ONE_THREAD
) -> Inputs:
    """Build the inputs of a ranking: write data in memory into a folder, describe data in files."""
    if isinstance(source, Mapping):  # a matrix per side has a row per triple
        settings = replace(settings, rows="instances")
    prepare_rows(questions, settings)  # checks the questions, with the ranker's messages
    store = Store(save_questions(questions, settings.rows, folder))
    return build_inputs_of_store(source, store, folder, settings)


def build_inputs_of_store(
    source: Any, store: Store, folder: PathName, settings: Settings
) -> Inputs:
    """Build the inputs of a ranking of stored questions, which are not copied."""
    if isinstance(source, Mapping) and store.rows != "instances":
        raise UsageError(
            "each side has a matrix with one row per triple, but the questions were stored with "
            f"{argument('rows', 'questions')}; store them with {argument('rows', 'instances')}"
        )
    files = None
    if source is None:
        require_columns_by_id(store.questions(), "a ranking of chunks of scores")
    else:
        files = _save_source(source, store, Path(folder) / "scores")
        files = fit_files(files, store, settings.higher_is_better)
    return Inputs(str(store.folder), files, replace(settings, rows=store.rows))


def _save_source(source: Any, store: Store, folder: Path) -> Files:
    """Return the files of a source of scores; write them if they are in memory.

    If each side has a matrix, use the sides that the questions ask.
    """
    if isinstance(source, (str, PathLike)):
        return describe_scores(source, folder)
    if isinstance(source, ModelVectors):
        return describe_vectors(source, store, folder)
    if isinstance(source, Mapping):
        names = check_sides(source, store.questions().sides)
        parts = [save_scores(as_array(source[side]), folder) for side in names]
        matrices = [part for part in parts if isinstance(part, ScoreFiles)]
        first = matrices[0]
        for part in matrices:
            if (part.n_columns, part.dtype) != (first.n_columns, first.dtype):
                raise InputError(
                    f"the scores of the two sides have {first.n_columns} columns of {first.dtype} "
                    f"and {part.n_columns} of {part.dtype}; save both with the same columns and "
                    "dtype"
                )
        return ScoreFiles(tuple(array for part in matrices for array in part.parts))
    if isinstance(source, Factors):
        return save_scores(source, folder)
    if hasattr(source, "__dlpack__") or hasattr(source, "__array__"):
        return save_scores(as_array(source), folder)
    raise UsageError(
        f"scores of type {type(source).__name__} have no file that workers can open; pass a "
        "path, a ModelFile, an array, Factors or a Dask array"
    )
