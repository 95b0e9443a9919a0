"""Questions and scores as they are on disk, brought together: what is asked, which rows hold it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.cluster.array_files import FactorFiles, Files
from kgtrec.cluster.question_store import Store, hash_text, save_questions
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.rank import check_shape, wanted_rows

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["fit_files", "stored_questions"]


def stored_questions(
    folder: str | os.PathLike[str],
    describe: Callable[[], dict[str, Any]],
    ask: Callable[[], Questions],
    rows: str,
) -> Store:
    """The store of the questions that a request describes; asked only if it is not there yet.

    Parameters
    ----------
    folder : path
        Made if need be.
    describe : callable
        See `kgtrec.cluster.content_hash.describe_request`.
    ask : callable
        Reads the graph and asks the questions.
    rows : {"questions", "instances"}

    Raises
    ------
    InputError
        The files changed while they were read.
    """
    request = describe()
    key = hash_text(json.dumps([request, rows], sort_keys=True))
    target = Path(folder) / f"questions-{key}"
    if not target.is_dir():
        questions = ask()
        if describe() != request:
            raise InputError(
                f"graph {request['graph']!r}: its files were written to while they were read; "
                "try again when they stay as they are"
            )
        target = save_questions(questions, rows, folder, key)
    return Store(target, verify=True)


def fit_files(files: Files, store: Store, higher_is_better: bool = True) -> Files:
    """The files with their rows chosen for the questions of a store, their shape checked.

    Raises
    ------
    InputError
        A wrong shape.
    UsageError
        Distances asked of a factorised model.
    """
    factors = isinstance(files, FactorFiles)
    if factors and not higher_is_better:
        raise UsageError(
            "Factors score higher-is-better (metric='l2' is minus the squared distance); "
            "leave higher_is_better as it is (no --lower-is-better)"
        )
    questions, rows, n_rows = store.questions(), store.rows, store.n_rows
    chosen = wanted_rows(questions, rows, n_rows, files.n_rows, factors)
    try:
        shape = (files.n_rows if chosen is None else len(chosen), files.n_columns)
        check_shape(questions, rows, n_rows, shape, factors)
    except InputError as error:
        raise InputError(f"{files.place}: {error}" if files.place else str(error)) from None
    if chosen is None:
        return files
    name = f"rows-{questions.fingerprint}-{rows}-{files.n_rows}.npy"
    path = store.folder.resolve().parent / name
    if not path.exists():
        with atomic_write(path) as file:
            np.lib.format.write_array(file, chosen.astype(np.int64), allow_pickle=False)
    return replace(files, selection=str(path))
