"""Whatever the user has, as `Inputs`: files that workers open, with the rows that are wanted."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.files import atomic_write, map_array, write_array
from kgtrec.cluster.content_hash import WHOLE, hash_text
from kgtrec.cluster.question_store import Store, save_questions
from kgtrec.cluster.ranges import ONE_THREAD, Inputs
from kgtrec.cluster.score_files import (
    FactorFiles,
    Files,
    ScoreFiles,
    describe_scores,
    save_scores,
)
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.questions import NAMES, SIDES
from kgtrec.ranking.rank import check_shape, rows_to_rank
from kgtrec.ranking.ranker import Ranker
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import as_array
from kgtrec.scores.factors import Factors

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions


def stored_questions(
    folder: str | os.PathLike[str],
    describe: Callable[[], dict[str, Any]],
    ask: Callable[[], Questions],
    rows: str,
) -> Store:
    """The store of the questions that a request describes; asked only if it is not there yet."""
    request = describe()
    key = hash_text(json.dumps([request, rows], sort_keys=True))
    target = Path(folder) / f"questions-{key}"
    if not target.is_dir():
        questions = ask()
        if describe() != request:
            raise InputError(
                f"{_named(request)}: its files were written to while they were read; "
                "try again when they stay as they are"
            )
        target = save_questions(questions, rows, folder, key)
    return Store(target, verify=True)


def _named(request: dict[str, Any]) -> str:
    if "graph" in request:
        return f"graph {request['graph']!r}"
    return f"questions of {next(iter(request['files'].values()))[0]!r}"


def fit_files(files: Files, store: Store, higher_is_better: bool = True) -> Files:
    """The files with their rows chosen for the questions of a store, their shape checked."""
    factors = isinstance(files, FactorFiles)
    if factors and not higher_is_better:
        raise UsageError(
            "Factors score higher-is-better (metric='l2' is minus the squared distance); "
            "leave higher_is_better as it is (no --lower-is-better)"
        )
    questions, rows, n_rows = store.questions(), store.rows, store.n_rows
    chosen = rows_to_rank(questions, rows, n_rows, files.n_rows, factors)
    try:
        shape = (files.n_rows if chosen is None else len(chosen), files.n_columns)
        check_shape(questions, rows, n_rows, shape, factors)
    except InputError as error:
        raise InputError(f"{files.place}: {error}" if files.place else str(error)) from None
    if chosen is None:
        return files
    name = f"rows-{questions.fingerprint}-{rows}-{files.n_rows}.npy"
    path = store.folder.resolve().parent / name
    if not _holds(path, chosen):
        with atomic_write(path) as file:
            write_array(file, chosen.astype(np.int64))
    return replace(files, selection=str(path))


def _holds(path: Path, rows: npt.NDArray[np.int64]) -> bool:
    """Whether a file has been written with these rows, and still holds them."""
    try:
        return np.array_equal(map_array(path), rows)
    except Exception:  # missing or damaged, however that shows
        return False


def make_inputs(
    source: Any,
    questions: Questions,
    folder: str | PathLike[str],
    settings: Settings = ONE_THREAD,
) -> Inputs:
    """Write what is in memory into a work folder, and describe what is in files."""
    if isinstance(source, Mapping):  # a matrix per side has a row per triple
        settings = replace(settings, rows="instances")
    Ranker.of(questions, settings)  # checks the questions, with the messages that users know
    work = Path(folder)
    files = None if source is None else _files(source, questions.sides, work / "scores")
    store = save_questions(questions, settings.rows, work)
    if files is not None:
        files = fit_files(files, Store(store), settings.higher_is_better)
    return Inputs(str(store), files, settings)


def inputs_of_store(
    source: Any,
    store: Store,
    folder: str | os.PathLike[str],
    settings: Settings,
) -> Inputs:
    """As `make_inputs`, of questions that are stored already and stay where they are."""
    if isinstance(source, Mapping) and store.rows != "instances":
        raise UsageError(
            "a matrix per side has a row per triple; store the questions with rows='instances'"
        )
    files = _files(source, store.body["asked"]["sides"], Path(folder) / "scores")
    files = fit_files(files, store, settings.higher_is_better)
    return Inputs(str(store.folder), files, replace(settings, rows=store.rows))


def _files(source: Any, sides: str, folder: Path) -> Files:
    """Files of a source; of ``sides`` ("head", "tail", "both"), if it has one for each."""
    if isinstance(source, (str, PathLike)):
        return describe_scores(source, folder)
    if isinstance(source, Mapping):
        names = tuple(NAMES[code] for code in SIDES[sides])
        if set(source) != set(names):
            raise InputError(
                f"a mapping of scores has the keys {list(source)}; "
                f"these questions need {list(names)}"
            )
        parts = [_saved(as_array(source[side]), folder) for side in names]
        matrices = [part for part in parts if isinstance(part, ScoreFiles)]
        first = matrices[0]
        for part in matrices:
            if (part.n_columns, part.dtype) != (first.n_columns, first.dtype):
                raise InputError(
                    f"the scores of the two sides have {first.n_columns} columns of {first.dtype} "
                    f"and {part.n_columns} of {part.dtype}; they must be alike"
                )
        return ScoreFiles(tuple(array for part in matrices for array in part.parts))
    if isinstance(source, Factors):
        return _saved(source, folder)
    if hasattr(source, "__dlpack__") or hasattr(source, "__array__"):
        return _saved(as_array(source), folder)
    raise UsageError(
        f"scores of type {type(source).__name__} have no file that workers could open; hand over a "
        "path, an array, Factors or a Dask array"
    )


def _saved(source: npt.NDArray[Any] | Factors, folder: Path) -> Files:
    """Files named after their content, so that one call does not write over those of another."""
    if isinstance(source, Factors):
        members = (source.queries, source.entities, source.bias)
        arrays = [array for array in members if array is not None]
    else:
        arrays = [source]
    hasher = hashlib.blake2b(digest_size=16)
    if sum(array.nbytes for array in arrays) > WHOLE:
        hasher.update(secrets.token_bytes(16))
    else:
        for array in arrays:
            hasher.update(f"{array.shape} {array.dtype}".encode())
            hasher.update(np.ascontiguousarray(array).data)
    return save_scores(source, folder / hasher.hexdigest())
