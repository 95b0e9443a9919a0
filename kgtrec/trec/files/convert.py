"""Convert everything that users pass as a run or as qrels to dicts or columns.

Frames hold one row per document; their columns are named as in ir_measures or in PyTerrier. Names
that are whole numbers are replaced by their decimal form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import offsets_of
from kgtrec._internal.integers import exact_floats
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.files.columns import (
    QrelsColumns,
    QrelsData,
    RunColumns,
    RunData,
    name_bytes,
    pack_qrels,
    pack_run,
    whole_relevance,
)
from kgtrec.trec.files.levels import advice_for_values
from kgtrec.trec.files.parse import name_buffers
from kgtrec.trec.files.run import Run, read_qrels_columns, read_run_columns
from kgtrec.trec.files.text import PathName, decode_name, is_path

Name = str | int


class Frame(Protocol):
    """Frame of pandas or polars, one row per document."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


class RanxData(Protocol):
    """Run or Qrels of ranx."""

    def to_dict(self) -> Any: ...


class QuestionsLike(Protocol):
    """Questions of `kgtrec.questions`, whose answers are qrels."""

    @property
    def answers(self) -> Any: ...

    @property
    def grades(self) -> Any: ...

    @property
    def candidate_labels(self) -> Any: ...


RunLike: TypeAlias = (
    "PathName | Mapping[Name, Mapping[Name, float]] | Mapping[str, Mapping[str, float]]"
    " | Mapping[int, Mapping[int, float]] | Iterable[tuple[Any, ...]] | Frame | RanxData"
    " | RunColumns | Run"
)
QrelsLike: TypeAlias = (
    "PathName | Mapping[Any, Mapping[Any, Any]] | Iterable[tuple[Any, ...]] | Frame | RanxData"
    " | QrelsColumns | QuestionsLike"
)
"""Accepted forms of a run, and of qrels (with one more level for judgements in groups)."""

Grouped = tuple[list[str], Int64, Int64, NDArray[np.uint8], NDArray[Any]]

_QUERY = ("query_id", "qid")
_DOCUMENT = ("doc_id", "docno")


class _Kind(NamedTuple):
    """Differences between runs and qrels.

    - forms: Accepted forms, for messages.
    - columns: Names of the values' column; the first is also the name of a tuple's field.
    - kinds, dtype: Accepted kinds of numpy types of values, and the type they are converted to.
    - noun, convert, wrong: Wording of messages; `convert` is Python that converts a column.
    """

    forms: str
    columns: tuple[str, ...]
    kinds: str
    dtype: type
    noun: str
    convert: str
    wrong: tuple[str, str]
    make: Callable[..., Any]
    read: Callable[[PathName], Any]


_RUN = _Kind(
    "a run must be a path, a dict of dicts, a pandas or polars frame, tuples of ir_measures, a Run "
    "of ranx, RunColumns or a Run",
    ("score",),
    "iuf",
    np.float64,
    "numbers",
    "frame.astype({{{0!r}: float}})",
    ("scores are", "they must be numbers"),
    partial(RunColumns, tag=""),
    read_run_columns,
)
_QRELS = _Kind(
    "qrels must be a path, a dict of dicts, a pandas or polars frame, tuples of ir_measures, Qrels "
    "of ranx, QrelsColumns or Questions",
    ("relevance", "label"),
    "iub",
    np.int64,
    "numbers",
    "frame.astype({{{0!r}: float}})",
    ("relevance is", "it must have whole numbers within 64 bits"),
    QrelsColumns,
    read_qrels_columns,
)


def run_data(run: Any) -> RunData:
    """Return a dict or columns unchanged; convert a file, a pandas frame or the ranker's `Run`."""
    if isinstance(run, Run):
        names = _names(run.docnos.to_arrow(), run.documents)
        scores = run.scores.astype(np.float64)
        return RunColumns(list(run.query_ids), run.offsets, *names, scores, "")
    data: RunData = run if isinstance(run, RunColumns) else _data(run, _RUN)
    return data


def qrels_data(qrels: Any) -> QrelsData:
    """Return a dict or columns unchanged; convert a file, a pandas frame or `Questions`."""
    if hasattr(qrels, "candidate_labels"):  # Questions, whose folder imports this one
        answers, grades = qrels.answers, qrels.grades
        names = _names(qrels.candidate_labels.docnos.to_arrow(), answers.ids)
        relevance = np.ones(len(answers.ids), np.int64) if grades is None else grades
        return QrelsColumns(list(qrels.ids), answers.offsets.astype(np.int64), *names, relevance)
    data: QrelsData = qrels if isinstance(qrels, QrelsColumns) else _data(qrels, _QRELS)
    return data


def _data(data: Any, kind: _Kind) -> Any:
    """Convert data that are not columns yet to a dict or columns."""
    if isinstance(data, Mapping):
        return data
    if is_path(data):
        return kind.read(data)
    ranks = None
    if is_frame(data) or _is_of(data, "polars"):
        columns = _frame_columns(data, kind)
        ranks = _ranks(data) if kind is _RUN else None
    elif _is_of(data, "ranx"):
        return data.to_dict()
    else:
        columns = _tuple_columns(data, kind)
    query, documents, values = columns
    if kind is _QRELS:
        values = whole_relevance(values)
        if values.dtype.kind == "f":
            raise _fractions(data, values)
    beyond = kind.dtype is np.int64 and len(values) and values.max() >= 2**63
    if values.dtype.kind not in kind.kinds or beyond:
        subject, hint = kind.wrong
        raise InputError(f"{subject} of type {values.dtype}; {hint}")
    grouped, order = _group_rows(query, documents, values.astype(kind.dtype))
    converted = kind.make(*grouped)
    if ranks is None:
        return converted
    return replace(converted, ranks=ranks if order is None else ranks[order])


def _fractions(data: Any, values: NDArray[Any]) -> InputError:
    """Return the error for relevances with fractions, with advice that keeps their values."""
    value = values[np.flatnonzero(values != np.floor(values))[:1]].tolist()
    if not value or not np.isfinite(values).all():
        worst = values[np.argmax(np.where(np.isfinite(values), abs(values), np.inf))]
        return InputError(f"a relevance is {worst}; it must be a whole number within 64 bits")
    if is_frame(data):
        name = repr(next(name for name in _QRELS.columns if name in data.columns))
        change = f"qrels.assign(**{{{{{name}: qrels[{name}].map({{levels}})}}}})"
    elif _is_of(data, "polars"):
        name = repr(next(name for name in _QRELS.columns if name in data.columns))
        change = f"qrels.with_columns(polars.col({name}).replace_strict({{levels}}))"
    else:
        change = "[row._replace(relevance={levels}[row.relevance]) for row in qrels]"
    return InputError(
        f"a relevance is {value[0]}; it must be a whole number; "
        + advice_for_values(values.tolist(), change)
    )


def run_columns(run: Any, form: str | None = None) -> RunColumns:
    """Return columns of anything that `run_data` accepts, with the queries in their order.

    `form` is the form of a file, a key of `forms.RUN_FORMATS`.
    """
    data = read_run_columns(run, form=form) if is_path(run) else run_data(run)
    return (
        data
        if isinstance(data, RunColumns)
        else RunColumns(*pack_run(data, in_order=False).columns(), "")
    )


def qrels_columns(qrels: Any) -> QrelsColumns:
    """Return columns of anything that `qrels_data` accepts, with the queries in their order."""
    data = qrels_data(qrels)
    if isinstance(data, QrelsColumns):
        return data
    return QrelsColumns(*pack_qrels(data, in_order=False).columns())


def _names(labels: Any, ids: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return offsets and bytes of the names of some ids."""
    import pyarrow as pa

    return name_buffers(labels.take(pa.array(ids)))


def _describe(value: object) -> str:
    """Show a value with its type, in at most 40 characters."""
    text = " ".join(repr(value).split())
    kind = type(value).__name__
    return f"{text if len(text) <= 40 else text[:40] + '...'} ({kind})"


# -- Frames --------------------------------------------------------------------------------------


def is_frame(data: object) -> bool:
    """Return whether this is a pandas.DataFrame; does not import pandas."""
    return hasattr(data, "itertuples") and hasattr(data, "columns")


def _frame_columns(frame: Any, kind: _Kind) -> tuple[Any, Any, NDArray[Any]]:
    """Return queries, documents and values of a frame."""
    is_polars = not is_frame(frame)
    if is_polars and not hasattr(frame, "to_arrow"):
        raise UsageError(f"{type(frame).__name__} has no data yet; give frame.collect()")
    query, documents, column = (
        _column(frame, names) for names in (_QUERY, _DOCUMENT, kind.columns)
    )
    missing = (column.is_null() if is_polars else column.isna()).to_numpy()
    if missing.any():
        row = int(np.argmax(missing))
        document, query_id = documents.to_list()[row], query.to_list()[row]
        raise InputError(
            f"the {column.name} of document {document!r} under query {query_id!r} is NaN or "
            f"missing (row {row}); remove the row"
        )
    held = kind.kinds if is_polars else getattr(column.dtype, "kind", "O")
    if len(column) and held not in kind.kinds + "f":
        hint = f"convert it to {kind.noun}: {kind.convert.format(column.name)}"
        raise InputError(f"column {column.name!r} is of type {column.dtype}; {hint}")
    values = column.to_numpy()
    if values.dtype == object and not is_polars:  # a nullable type of pandas
        values = values.astype(
            {"f": np.float64, "i": np.int64, "u": np.uint64}.get(held, kind.dtype)
        )
    if kind.dtype == np.float64:
        values = exact_floats(values, f"column {column.name!r}")
    return _texts(query), _texts(documents), values


def _column(frame: Any, names: tuple[str, ...]) -> Any:
    """Return the first column that has one of these names."""
    for name in names:
        if name in frame.columns:
            column = frame[name]
            if getattr(column, "ndim", 1) != 1:
                raise InputError(f"the frame has several columns {name!r}; keep one")
            return column
    either = " or ".join(map(repr, names))
    held = ", ".join(map(repr, frame.columns)) or "none"
    raise InputError(f"the frame has no column {either}, only {held}; rename one of them")


def _ranks(frame: Any) -> Int64 | None:
    """Return the column `rank` of a frame, if it has whole numbers."""
    if "rank" not in frame.columns or getattr(frame["rank"], "ndim", 1) != 1:
        return None
    ranks = frame["rank"].to_numpy()
    return np.ascontiguousarray(ranks, np.int64) if ranks.dtype.kind in "iu" else None


def _group_rows(query: Any, documents: Any, values: NDArray[Any]) -> tuple[Grouped, Int64 | None]:
    """Group rows by query, in order of appearance; documents keep the order of the rows.

    Returns the columns, and the order of the rows: None if it is unchanged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(query)
    names = encoded.dictionary.to_pylist()
    owner = encoded.indices.to_numpy().astype(np.int64)
    _refuse_twice(names, owner, documents)
    order = None
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
        documents, values = documents.take(pa.array(order)), values[order]
    offsets = offsets_of(np.bincount(owner, minlength=len(names)))
    grouped = [decode_name(name) for name in names], offsets, *name_buffers(documents), values
    return grouped, order


def _texts(column: Any) -> Any:
    """Return ids as one large_binary array; InputError for one that is not a text."""
    import pyarrow as pa

    types = pa.types
    try:
        is_polars = hasattr(column, "to_arrow")
        array = column.to_arrow() if is_polars else pa.array(column, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError):  # mixed types, or names that are not UTF-8
        return pa.array([_id_bytes(column, x, i) for i, x in enumerate(column)], pa.large_binary())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        raise _no_id(column, int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))))
    known = types.is_integer, types.is_string, types.is_large_string, types.is_string_view
    if types.is_floating(array.type) and len(array):
        array = _whole_ids(column, array)
    if len(array) and not any(kind(array.type) for kind in known):
        raise _no_text(column, next(iter(column)))
    return array.cast(pa.large_string()).cast(pa.large_binary())


def _whole_ids(column: Any, array: Any) -> Any:
    """Convert ids that are floats without fractions to whole numbers.

    pandas makes such columns if an id was once missing.
    """
    import pyarrow as pa

    values = array.to_numpy(zero_copy_only=False).astype(np.float64)
    whole = (values == np.floor(values)) & (abs(values) <= 2**53)
    if not whole.all():
        raise _no_text(column, float(values[np.argmin(whole)]))
    return pa.array(values.astype(np.int64))


def _id_bytes(column: Any, name: object, row: int) -> bytes:
    """Return the bytes of an id; InputError if it is missing or not a text."""
    if name is None or name != name:
        raise _no_id(column, row)
    try:
        return name_bytes(name, "id")  # type: ignore[arg-type]
    except InputError:
        raise _no_text(column, name) from None


def _no_id(column: Any, row: int) -> InputError:
    """Return the error for a missing id."""
    return InputError(f"column {column.name!r} lacks an id in row {row}; remove the row")


def _no_text(column: Any, name: object) -> InputError:
    """Return the error for an id that is not a text, with the command that converts ids."""
    name = name.item() if isinstance(name, np.generic) else name
    is_polars, key = hasattr(column, "to_arrow"), repr(column.name)
    change = (
        f"frame.cast({{{key}: polars.String}})" if is_polars else f"frame.astype({{{key}: str}})"
    )
    if isinstance(name, bytes) and not is_polars:  # str() would give "b'10'"
        change = f"frame.assign(**{{{key}: frame[{key}].str.decode('utf-8')}})"
    return InputError(
        f"column {column.name!r} has {name!r}, which is not a text; convert ids: {change}"
    )


# -- Tuples --------------------------------------------------------------------------------------


def _is_of(data: object, library: str) -> bool:
    """Return whether the class of the data is of this library; does not import it."""
    return type(data).__module__.partition(".")[0] == library


def _tuple_columns(data: object, kind: _Kind) -> tuple[Any, Any, NDArray[Any]]:
    """Return columns of ir_measures' ScoredDoc and Qrel, or of other tuples with their fields."""
    import pyarrow as pa

    value = kind.columns[0]
    rows = list(data) if isinstance(data, Iterable) and not isinstance(data, bytes) else [data]
    if rows and not hasattr(rows[0], value):
        raise UsageError(f"{_describe(data)} was given; {kind.forms}")
    queries, documents, values = [], [], []
    for number, row in enumerate(rows):
        if not isinstance(row, tuple) or len(row) < 3 or not hasattr(row, value):
            raise InputError(
                f"row {number} is {_describe(row)}; give tuples (query_id, doc_id, {value}), like "
                "those of ir_measures"
            )
        queries.append(name_bytes(row.query_id, "query"))  # type: ignore[attr-defined]
        documents.append(name_bytes(row.doc_id, "document"))  # type: ignore[attr-defined]
        values.append(getattr(row, value))
    array = np.array(values) if values else np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        bad = next((v for v in values if not isinstance(v, (int, float, np.number))), values[:1])
        raise InputError(f"a {value} is {bad!r}; it must be a number")
    return pa.array(queries, pa.large_binary()), pa.array(documents, pa.large_binary()), array


def _refuse_twice(queries: list[bytes], owner: Int64, documents: Any) -> None:
    """Refuse a document that occurs twice in a query."""
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(documents)
    key = owner * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(again):
        row = int(order[again + 1].min())
        document, query = decode_name(documents[row].as_py()), decode_name(queries[owner[row]])
        raise InputError(
            f"query {query!r} has document {document!r} again in row {row}; keep one of them"
        )
