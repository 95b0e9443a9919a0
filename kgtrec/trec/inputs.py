"""What a user may hand over as a run or as qrels, made into dicts or columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.trec.columns import QrelsColumns, RunColumns
from kgtrec.trec.files import read_qrels_columns, read_run_columns
from kgtrec.trec.frames import buffers, is_frame, qrels_of_frame, run_of_frame
from kgtrec.trec.packed import QrelsData, RunData

__all__ = ["is_path", "qrels_data", "run_data"]


def is_path(data: object) -> bool:
    """Whether this names a file."""
    return isinstance(data, (str, os.PathLike))


def run_data(run: Any) -> RunData:
    """A dict or columns as they are; columns of a file, a pandas frame or the ranker's `Run`.

    Raises
    ------
    InputError
        What `kgtrec.trec.frames.run_of_frame` or the reader refuses.
    UsageError
        Something else.
    """
    if isinstance(run, (RunColumns, Mapping)):
        return run
    if is_path(run):
        return read_run_columns(run)
    if is_frame(run):
        return run_of_frame(run)
    from kgtrec.trec.run import Run

    if isinstance(run, Run):
        names = _names(run.docnos.to_arrow(), run.documents)
        scores = run.scores.astype(np.float64)
        return RunColumns(list(run.query_ids), run.offsets, *names, scores, "")
    forms = "a path, a dict of dicts, a pandas frame, RunColumns or a Run"
    raise UsageError(f"a run is {forms}, not {_described(run)}")


def qrels_data(qrels: Any) -> QrelsData:
    """A dict or columns as they are; columns of a file, a pandas frame or `Questions`.

    Raises
    ------
    InputError
        What `kgtrec.trec.frames.qrels_of_frame` or the reader refuses.
    UsageError
        Something else.
    """
    if isinstance(qrels, (QrelsColumns, Mapping)):
        return qrels
    if is_path(qrels):
        return read_qrels_columns(qrels)
    if is_frame(qrels):
        return qrels_of_frame(qrels)
    from kgtrec.questions import Questions

    if isinstance(qrels, Questions):
        answers = qrels.answers
        names = _names(qrels.graph.entities.docnos.to_arrow(), answers.ids)
        relevance = np.ones(len(answers.ids), np.int64)
        return QrelsColumns(list(qrels.ids), answers.offsets.astype(np.int64), *names, relevance)
    forms = "a path, a dict of dicts, a pandas frame, QrelsColumns or Questions"
    raise UsageError(f"qrels are {forms}, not {_described(qrels)}")


def _names(labels: Any, ids: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    import pyarrow as pa

    return buffers(labels.take(pa.array(ids)))


def _described(value: object) -> str:
    text = " ".join(repr(value).split())
    kind = type(value).__name__
    return f"{text if len(text) <= 40 else text[:40] + '...'} ({kind})"
