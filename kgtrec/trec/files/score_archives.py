"""Runs as arrays: an ``.npz`` with a matrix of scores and the ids of its queries and documents."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array
from kgtrec._internal.csr import offsets_of
from kgtrec._internal.integers import exact_floats
from kgtrec._internal.locations import is_location, local_copy
from kgtrec.errors import FileError, InputError
from kgtrec.scores.archives import array_names, read_arrays
from kgtrec.scores.mapped_files import Watch
from kgtrec.trec.files.forms import TREC_RUN
from kgtrec.trec.files.parse import Packed
from kgtrec.trec.files.text import DuplicateDocument, PathName, decode_name

_ARRAYS = ("scores", "queries", "documents")
_SAVE = "numpy.savez(FILE, scores=..., queries=..., documents=...)"


def is_score_archive(path: PathName) -> bool:
    """Return whether a run is an ``.npz`` by its name and, unless it is a URL, by its content."""
    name = os.fspath(path)
    if not name.endswith(".npz"):
        return False
    if is_location(name):
        return True
    try:
        with open(name, "rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False  # the reader of lines explains it


def read_score_archive(path: PathName, form: str | None = None, *, in_order: bool = True) -> Packed:
    """Read a run from arrays: every document with a score was retrieved.

    The arrays are ``scores`` (queries, documents), numbers; ``queries`` (queries,); and
    ``documents`` (documents,), or (queries, documents) if each query has its own. Ids are texts or
    whole numbers. Nothing is unpickled.

    With `in_order`, queries are in byte order. `form` is the requested form of runs.

    Raises
    ------
    FileError
        For missing or other arrays, other shapes or dtypes, NaN, a query that comes twice;
        `DuplicateDocument` for a document that comes twice.
    """
    if form not in (None, TREC_RUN):
        problem = f"NumPy arrays, not the form {form!r}"
        raise FileError(path, found=problem, hint="leave out the form, or give another file")
    with local_copy(path) as copy:
        watch = Watch([copy])
        _check_names(path, array_names(copy))
        arrays = read_arrays(copy, _ARRAYS, texts=_ARRAYS[1:])
        watch.check()
    scores, queries, documents = (arrays[name] for name in _ARRAYS)
    _check_shapes(path, scores, queries, documents)
    names = _ids(path, "queries", queries)
    if (twice := _repeated(names)) is not None:
        problem = f"'queries' has {decode_name(twice)!r} twice"
        raise FileError(path, found=problem, hint="give each row of the scores its own query")
    order = sorted(range(len(names)), key=names.__getitem__)
    if in_order and order != [*range(len(names))]:
        names = [names[row] for row in order]
        scores = scores[order]
        documents = documents[order] if documents.ndim == 2 else documents
    return _pack(path, scores, names, documents)


def _check_names(path: PathName, names: list[str]) -> None:
    """Raise FileError unless these are the arrays of a run."""
    if sorted(names) == sorted(_ARRAYS):
        return
    problem = f"arrays {sorted(names)}, but a run has {_listed(_ARRAYS)}"
    hint = f"save it with {_SAVE}"
    if {"queries", "entities"} <= {*names}:
        hint = "rank vectors with `kgtrec rank --qrels ... --scores ...`, and evaluate its run"
    raise FileError(path, found=problem, hint=hint)


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}"


def _check_shapes(path: PathName, scores: Array, queries: Array, documents: Array) -> None:
    """Raise FileError for arrays that do not fit together."""
    if scores.ndim != 2 or scores.dtype.kind not in "iuf":
        raise FileError(
            path,
            found=f"'scores' has dtype {scores.dtype} and shape {scores.shape}",
            hint="give numbers, one row per query and one column per document",
        )
    if not scores.size:
        problem = f"'scores' has shape {scores.shape}, no score"
        raise FileError(path, found=problem, hint="give a row per query, a column per document")
    fits = queries.shape == scores.shape[:1] and documents.shape in (scores.shape, scores.shape[1:])
    if not fits:
        shapes = f"'scores' has shape {scores.shape}, 'queries' {queries.shape} and 'documents' "
        raise FileError(
            path,
            found=f"{shapes}{documents.shape}",
            hint="give one id per row of the scores in 'queries' and one per column in 'documents'",
        )


def _ids(path: PathName, array: str, ids: Array) -> list[bytes]:
    """Return ids as bytes, row by row; whole numbers in decimal."""
    if ids.dtype.kind not in "USiu":
        problem = f"{array!r} has dtype {ids.dtype}"
        raise FileError(path, found=problem, hint="give ids as texts or whole numbers")
    values: list[Any] = ids.ravel().tolist()
    if ids.dtype.kind == "S":
        return values
    return [str(value).encode("utf-8", "surrogatepass") for value in values]


def _repeated(names: list[bytes]) -> bytes | None:
    """Return the first name that comes twice; None if all differ."""
    if len({*names}) == len(names):
        return None
    seen: set[bytes] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _pack(path: PathName, scores: Array, queries: list[bytes], documents: Array) -> Packed:
    """Pack all documents of all queries; FileError for NaN, `DuplicateDocument`."""
    rows, width = scores.shape
    names = _ids(path, "documents", documents)
    size = np.array([*map(len, names)], np.int32)
    begin = offsets_of(size)[:-1]
    if documents.ndim == 1:  # all queries share the text of the names
        begin, size = np.tile(begin, rows), np.tile(size, rows)
    for row in range(rows if documents.ndim == 2 else 1):
        twice = _repeated(names[row * width : (row + 1) * width])
        if twice is not None:
            problem = (
                f"query {decode_name(queries[row])!r} has document {decode_name(twice)!r} twice"
            )
            raise DuplicateDocument(path, found=problem, hint="keep one of the two columns")
    try:
        values = np.ascontiguousarray(exact_floats(scores), np.float64).ravel()
    except InputError as error:
        raise FileError(path, found=str(error), hint="save them again") from None
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        row, column = divmod(int(missing[0]), width)
        document = decode_name(names[column if documents.ndim == 1 else int(missing[0])])
        problem = f"the score of document {document!r} under query {decode_name(queries[row])!r} "
        raise FileError(path, found=f"{problem}is NaN", hint="give it a number")
    text = np.frombuffer(b"".join(names), np.uint8)
    return Packed(queries, offsets_of(np.full(rows, width)), text, begin, size, values)
