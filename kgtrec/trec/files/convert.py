"""What a user may hand over as a run or as qrels, made into dicts or columns.

Frames hold a row a document; their columns are named as in ir_measures or in PyTerrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.files.columns import QrelsColumns, RunColumns
from kgtrec.trec.files.pack import QrelsData, RunData, name_bytes, pack_run
from kgtrec.trec.files.read import read_qrels_columns, read_run_columns
from kgtrec.trec.files.text import decoded, is_path

__all__ = ["is_frame", "name_buffers", "qrels_data", "run_columns", "run_data"]

Ints = NDArray[np.int64]
Grouped = tuple[list[str], Ints, Ints, NDArray[np.uint8], NDArray[Any]]

_QUERY = ("query_id", "qid")
_DOCUMENT = ("doc_id", "docno")
_SCORE = ("score",)
_RELEVANCE = ("relevance", "label")


def run_data(run: Any) -> RunData:
    """A dict or columns as they are; columns of a file, a pandas frame or the ranker's `Run`.

    Raises
    ------
    InputError
        What `run_of_frame` or the reader refuses.
    UsageError
        Something else.
    """
    if isinstance(run, (RunColumns, Mapping)):
        return run
    if is_path(run):
        return read_run_columns(run)
    if is_frame(run):
        return run_of_frame(run)
    from kgtrec.trec.files.run import Run

    if isinstance(run, Run):
        names = _names(run.docnos.to_arrow(), run.documents)
        scores = run.scores.astype(np.float64)
        return RunColumns(list(run.query_ids), run.offsets, *names, scores, "")
    forms = "a path, a dict of dicts, a pandas frame, RunColumns or a Run"
    raise UsageError(f"a run is {forms}, not {_described(run)}")


def run_columns(run: Any) -> RunColumns:
    """What `run_data` takes, as columns."""
    found = run_data(run)
    if isinstance(found, RunColumns):
        return found
    packed = pack_run(found)
    ends = np.append(0, np.cumsum(packed.size, dtype=np.int64))
    names = np.empty(int(ends[-1]), dtype=np.uint8)
    _core.copy_names(np.frombuffer(packed.text, np.uint8), packed.begin, packed.size, names)
    queries = [decoded(name) for name in packed.names]
    return RunColumns(queries, packed.offsets, ends, names, packed.values, "")


def qrels_data(qrels: Any) -> QrelsData:
    """A dict or columns as they are; columns of a file, a pandas frame or `Questions`.

    Raises
    ------
    InputError
        What `qrels_of_frame` or the reader refuses.
    UsageError
        Something else.
    """
    if isinstance(qrels, (QrelsColumns, Mapping)):
        return qrels
    if is_path(qrels):
        return read_qrels_columns(qrels)
    if is_frame(qrels):
        return qrels_of_frame(qrels)
    from kgtrec.questions.api import Questions

    if isinstance(qrels, Questions):
        answers = qrels.answers
        names = _names(qrels.graph.entities.docnos.to_arrow(), answers.ids)
        relevance = np.ones(len(answers.ids), np.int64)
        return QrelsColumns(list(qrels.ids), answers.offsets.astype(np.int64), *names, relevance)
    forms = "a path, a dict of dicts, a pandas frame, QrelsColumns or Questions"
    raise UsageError(f"qrels are {forms}, not {_described(qrels)}")


def _names(labels: Any, ids: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    import pyarrow as pa

    return name_buffers(labels.take(pa.array(ids)))


def _described(value: object) -> str:
    text = " ".join(repr(value).split())
    kind = type(value).__name__
    return f"{text if len(text) <= 40 else text[:40] + '...'} ({kind})"


# -- Frames --------------------------------------------------------------------------------------


def is_frame(data: object) -> bool:
    """Whether this is a pandas.DataFrame, found out without importing pandas."""
    return hasattr(data, "itertuples") and hasattr(data, "columns")


def run_of_frame(frame: Any) -> RunColumns:
    """A run of the columns query_id (or qid), doc_id (or docno) and score; others are ignored.

    Raises
    ------
    InputError
        A column that is missing, ids that are no texts, scores that are missing, NaN or no
        numbers, or a document twice under a query.
    """
    score = _column(frame, _SCORE)
    _check_numbers(frame, score, "iuf", "numbers", "float")
    values = score.to_numpy().astype(np.float64)
    return RunColumns(*_grouped(frame, values), tag="")


def qrels_of_frame(frame: Any) -> QrelsColumns:
    """Qrels of the columns query_id (or qid), doc_id (or docno) and relevance (or label).

    Raises
    ------
    InputError
        As for `run_of_frame`; a relevance that is not a whole number within 64 bits.
    """
    relevance = _column(frame, _RELEVANCE)
    _check_numbers(frame, relevance, "iub", "whole numbers", "int")
    values = relevance.to_numpy()
    if values.dtype.kind == "u" and values.max(initial=0) >= 2**63:
        raise InputError(f"a relevance is {values.max()}; it must be a number within 64 bits")
    return QrelsColumns(*_grouped(frame, values.astype(np.int64)))


def _column(frame: Any, names: tuple[str, ...]) -> Any:
    """The first column that has one of these names."""
    for name in names:
        if name in frame.columns:
            column = frame[name]
            if getattr(column, "ndim", 1) != 1:
                raise InputError(f"the frame has several columns {name!r}; keep one")
            return column
    either = " or ".join(map(repr, names))
    held = ", ".join(map(repr, frame.columns)) or "none"
    raise InputError(f"the frame has no column {either}; it has {held}: rename one")


def _check_numbers(frame: Any, column: Any, kinds: str, what: str, into: str) -> None:
    """Refuse what is missing, and a type that holds something else."""
    missing = column.isna().to_numpy()
    if missing.any():
        row = int(np.argmax(missing))
        query, document = (_column(frame, names).iloc[row] for names in (_QUERY, _DOCUMENT))
        raise InputError(
            f"the {column.name} of document {document!r} under query {query!r} is NaN or missing "
            f"(row {row}); remove the row"
        )
    kind = getattr(column.dtype, "kind", "O")
    if len(column) and kind not in kinds:
        hint = f"make them {what}: frame.astype({{{column.name!r}: {into}}})"
        raise InputError(f"column {column.name!r} is of type {column.dtype}; {hint}")


def _grouped(frame: Any, values: NDArray[Any]) -> Grouped:
    """Queries in order of appearance, their documents together, in order of the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    query, documents = _texts(_column(frame, _QUERY)), _texts(_column(frame, _DOCUMENT))
    encoded = pc.dictionary_encode(query)
    names = encoded.dictionary.to_pylist()
    owner = encoded.indices.to_numpy().astype(np.int64)
    _refuse_twice(names, owner, documents)
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
        documents, values = documents.take(pa.array(order)), values[order]
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=len(names)), out=offsets[1:])
    return [decoded(name) for name in names], offsets, *name_buffers(documents), values


def _texts(column: Any) -> Any:
    """Ids as one large_binary array; InputError for one that is not a text."""
    import pyarrow as pa

    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError):  # mixed types, or names that are no UTF-8
        return pa.array([_id_bytes(column, x, i) for i, x in enumerate(column)], pa.large_binary())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"column {column.name!r} lacks an id in row {row}; remove the row")
    if len(array) and not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        raise _no_text(column, column.iloc[0])
    return array.cast(pa.large_string()).cast(pa.large_binary())


def _id_bytes(column: Any, name: object, row: int) -> bytes:
    if name is None or name != name:
        raise InputError(f"column {column.name!r} lacks an id in row {row}; remove the row")
    if not isinstance(name, str):
        raise _no_text(column, name)
    return name_bytes(name, "id")


def _no_text(column: Any, name: object) -> InputError:
    name = name.item() if isinstance(name, np.generic) else name
    hint = f"frame.astype({{{column.name!r}: str}})"
    return InputError(
        f"column {column.name!r} holds {name!r}, which is not a text; ids are: {hint}"
    )


def _refuse_twice(queries: list[bytes], owner: Ints, documents: Any) -> None:
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(documents)
    key = owner * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(again):
        row = int(order[again + 1].min())
        document, query = decoded(documents[row].as_py()), decoded(queries[owner[row]])
        raise InputError(
            f"document {document!r} comes a second time under query {query!r} (row {row}); keep one"
        )


def name_buffers(names: Any) -> tuple[Ints, NDArray[np.uint8]]:
    """Offsets and bytes of a large_binary array."""
    _, ends, raw = names.buffers()
    if not len(names):
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    offsets = np.frombuffer(ends, np.int64)[names.offset : names.offset + len(names) + 1]
    return offsets, np.frombuffer(raw or b"", np.uint8)
