"""Run and qrels files as dicts, frames and columns; a fault is named with its line."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, overload

import numpy as np

from kgtrec import _core
from kgtrec.errors import UsageError
from kgtrec.trec.files.columns import QrelsColumns, RunColumns
from kgtrec.trec.files.parse import find_groups, read_documents
from kgtrec.trec.files.text import (
    DuplicateDocument,
    PathName,
    decoded,
    is_path,
    last_tag,
    read_text,
)

__all__ = [
    "DuplicateDocument",
    "QrelsColumns",
    "RunColumns",
    "read_qrels",
    "read_qrels_columns",
    "read_run",
    "read_run_columns",
]

Form = Literal["dict", "frame", "columns"]
Columns = TypeVar("Columns", RunColumns, QrelsColumns)


@overload
def read_run(path: PathName, as_: Literal["dict"] = "dict") -> dict[str, dict[str, float]]: ...
@overload
def read_run(path: PathName, as_: Literal["columns"]) -> RunColumns: ...
@overload
def read_run(path: PathName, as_: Form) -> Any: ...
def read_run(path: PathName, as_: Form = "dict") -> Any:
    """Scores of a TREC run file, lines ``query iter document rank score tag``.

    The iter and rank columns are ignored, lines may come in any order, blank lines and those that
    start with ``#`` are skipped. Columns beyond the sixth are ignored, as trec_eval does, unless
    they look like a document name with white space in it.
    Ids are UTF-8; other bytes survive as lone surrogates ("surrogateescape").

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.
    as_ : {"dict", "frame", "columns"}
        What to return.

    Returns
    -------
    dict of str to dict of str to float
        Query, then document, to its score (float64, correctly rounded; infinities allowed), as
        pytrec_eval takes it. With ``"frame"`` a pandas.DataFrame with the columns query_id,
        doc_id and score, as ir_measures takes it; with ``"columns"`` `RunColumns`, which are
        quick to read, small, and hold the tag.

    Raises
    ------
    FileError
        Naming the line: missing or surplus columns, a score that is not a number or NaN; or the
        file cannot be read or holds nothing. `DuplicateDocument` for a document that comes twice.
    UsageError
        If `as_` is none of the three.
    """
    _check_form(as_)
    return _in_form(read_run_columns(path), as_)


@overload
def read_qrels(path: PathName, as_: Literal["dict"] = "dict") -> dict[str, dict[str, int]]: ...
@overload
def read_qrels(path: PathName, as_: Literal["columns"]) -> QrelsColumns: ...
@overload
def read_qrels(path: PathName, as_: Form) -> Any: ...
def read_qrels(path: PathName, as_: Form = "dict") -> Any:
    """Judgements of a TREC qrels file, lines ``query iter document relevance``.

    The iter column is ignored, lines may come in any order, lines that start with ``#`` are
    comments.

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.
    as_ : {"dict", "frame", "columns"}
        What to return.

    Returns
    -------
    dict of str to dict of str to int
        Query, then document, to its relevance: from 1 relevant, 0 not, negative not judged. With
        ``"frame"`` a pandas.DataFrame with the columns query_id, doc_id and relevance, with
        ``"columns"`` `QrelsColumns`.

    Raises
    ------
    FileError
        Naming the line: missing or surplus columns, a blank line, a relevance that is not a whole
        number within 64 bits; or the file cannot be read or holds nothing. `DuplicateDocument`
        for a document that comes twice.
    UsageError
        If `as_` is none of the three.
    """
    _check_form(as_)
    return _in_form(read_qrels_columns(path), as_)


def _check_form(form: str) -> None:
    if form not in ("dict", "frame", "columns"):
        raise UsageError(f"as_={form!r} is unknown; it must be 'dict', 'frame' or 'columns'")


def _in_form(columns: Columns, form: Form) -> Any:
    if form == "columns":
        return columns
    return columns.to_frame() if form == "frame" else columns.to_dict()


def read_run_columns(path: PathName, *, threads: int | None = None) -> RunColumns:
    """A run file as columns; what it takes and refuses is the same as for `read_run`.

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.
    threads : int, optional
        By default, the cores that this process may use. The result is the same.
    """
    return RunColumns(*_columns(path, True, threads))


def read_qrels_columns(path: PathName, *, threads: int | None = None) -> QrelsColumns:
    """A qrels file as columns; what it takes and refuses is the same as for `read_qrels`.

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.
    threads : int, optional
        By default, the cores that this process may use. The result is the same.
    """
    return QrelsColumns(*_columns(path, False, threads))


def _columns(path: PathName, is_run: bool, threads: int | None) -> tuple[Any, ...]:
    if not is_path(path):
        raise UsageError(f"{path!r} is not a path; name a file")
    text = read_text(path, is_run)
    groups = find_groups(text, threads)
    documents = read_documents(groups, np.arange(len(groups.names)), threads)
    ends = np.concatenate(([0], np.cumsum(documents.size, dtype=np.int64)))
    names = np.empty(int(ends[-1]), dtype=np.uint8)
    _core.copy_names(text.data, documents.begin, documents.size, names)
    queries = [decoded(name) for name in groups.names]
    columns = queries, documents.offsets, ends, names, documents.values
    return (*columns, last_tag(text)) if is_run else columns
