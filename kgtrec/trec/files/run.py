"""The ranker's runs, and run and qrels files as dicts, frames and columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_count
from kgtrec._internal.csr import spans
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import ShownInLines, import_pandas
from kgtrec.errors import UsageError, choose
from kgtrec.trec.files.columns import QrelsColumns, RunColumns
from kgtrec.trec.files.documents import read_documents
from kgtrec.trec.files.forms import TREC_QRELS, TREC_RUN
from kgtrec.trec.files.parse import Packed, write_run_lines
from kgtrec.trec.files.text import PathName, identifiers, is_path

if TYPE_CHECKING:
    import pandas

    from kgtrec.graph.labels import Labels


@dataclass(frozen=True, eq=False, repr=False)
class Run(ShownInLines):
    """The best candidates of every question, in trec_eval's order.

    Attributes
    ----------
    query_ids : sequence of str, length n_questions
        Names of the questions, such as "head0".
    offsets : ndarray of int64, shape (n_questions + 1,)
        Question i has the candidates ``offsets[i]`` to ``offsets[i + 1] - 1``.
    documents : ndarray of int32, shape (n,)
        Entity ids, best first: score descending, then docno descending in byte order.
        Candidates with a NaN score are never here.
    scores : ndarray of float32 or float64, shape (n,)
        Scores in the dtype of the input; negated if low scores are good, because a TREC run is
        read with the highest score first.
    docnos : Labels
        Name of every entity as written to files: percent-encoded, without white space.
    depth : int
        Most candidates kept per question; 0 if none were requested.
    """

    query_ids: Sequence[str]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    scores: NDArray[Any]
    docnos: Labels
    depth: int

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.query_ids) + 1:
            raise UsageError(
                f"offsets has {len(self.offsets)} entries for {len(self.query_ids)} questions; "
                "it must have one entry more than there are questions"
            )
        if not len(self.documents) == len(self.scores) == self.offsets[-1]:
            raise UsageError(
                f"documents has {len(self.documents)} entries, scores {len(self.scores)}, and "
                f"offsets ends at {self.offsets[-1]}; the three must be equal"
            )
        if self.scores.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise UsageError(
                f"scores of a run are {self.scores.dtype}; they must be float32 or float64"
            )

    def __len__(self) -> int:
        return len(self.query_ids)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} questions, {len(self.documents):,} candidates, depth {self.depth}",
            f"scores {self.scores.dtype}",
        )

    def write(self, path: str | os.PathLike[str], tag: str = "kgtrec") -> None:
        """Write a TREC run file: lines ``query Q0 document rank score tag``.

        Scores have the fewest digits that give the same number back, so that reading the file
        and sorting it as trec_eval does restores the order, ties included.

        Parameters
        ----------
        path : str or path-like
            Target, which appears only when it is complete; ``.gz`` and ``.zst`` compress.
        tag : str
            Name of the run, without white space.

        Raises
        ------
        UsageError
            If the run was made with depth 0, the scores of a question rise, or an id or the tag
            has white space or is empty.
        FileError
            If the target cannot be written.
        """
        with atomic_write(path) as out:
            self.write_to(out, tag)

    def write_to(self, out: BinaryIO, tag: str = "kgtrec", names: Any = None) -> None:
        """Append the lines to an open file.

        If many runs share names, pass ``names`` from ``docnos.to_arrow()``. UsageError as
        `write`.
        """
        if self.depth <= 0:
            raise UsageError(
                f"the run has no candidates; rank with a depth, as in {argument('run_depth', 1000)}"
            )
        self._check_order()
        (name,) = identifiers([tag])
        queries = identifiers(self.query_ids, first=True)
        names = self.docnos.to_arrow() if names is None else names
        write_run_lines(out, queries, self.offsets, names, self._columns, name)

    def cut(self, depth: int) -> Run:
        """Return the run with at most ``depth`` candidates per question."""
        check_count("depth", depth, 0)
        if depth >= self.depth:
            return self
        lengths = np.minimum(np.diff(self.offsets), depth)
        offsets, rows = spans(self.offsets[:-1], lengths)
        return replace(
            self,
            offsets=offsets,
            documents=self.documents[rows],
            scores=self.scores[rows],
            depth=depth,
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas frame with a row per candidate: query_id, doc_id, rank, score.

        Ranks start at 1. Documents have their names of TREC files, as `write` writes them.
        """
        pandas = import_pandas("write")
        lengths = np.diff(self.offsets)
        rank = np.arange(len(self.documents)) - np.repeat(self.offsets[:-1], lengths) + 1
        return pandas.DataFrame(
            {
                "query_id": np.repeat(np.array(self.query_ids, dtype=object), lengths),
                "doc_id": self.docnos[self.documents],
                "rank": rank,
                "score": self.scores,
            }
        )

    def _columns(self, rows: slice) -> tuple[NDArray[np.int64], NDArray[Any]]:
        return self.documents[rows].astype(np.int64), np.ascontiguousarray(self.scores[rows])

    def _check_order(self) -> None:
        """Refuse rising scores: readers sort by score and would silently see another run."""
        rises = self.scores[1:] > self.scores[:-1]
        starts = self.offsets[1:-1]
        rises[starts[(starts > 0) & (starts < len(self.scores))] - 1] = False
        if rises.any():
            query = int(np.searchsorted(self.offsets, int(np.argmax(rises)), side="right")) - 1
            raise UsageError(
                f"the scores of question {self.query_ids[query]!r} increase, but a run must have "
                "the highest scores first; if lower scores are better, negate them"
            )


def check_tag(tag: str) -> None:
    """Raise UsageError if a run file cannot hold this name of the run."""
    identifiers([tag])


Form = Literal["dict", "frame", "columns"]


@overload
def read_run(
    path: PathName, as_: Literal["dict"] = "dict", *, run_format: str = TREC_RUN
) -> dict[str, dict[str, float]]: ...
@overload
def read_run(
    path: PathName, as_: Literal["columns"], *, run_format: str = TREC_RUN
) -> RunColumns: ...
@overload
def read_run(path: PathName, as_: Form, *, run_format: str = TREC_RUN) -> Any: ...
def read_run(path: PathName, as_: Form = "dict", *, run_format: str = TREC_RUN) -> Any:
    """Read the scores of a run: TREC's lines ``query iter document rank score tag``, or another
    form.

    The iter and rank columns are ignored, lines may come in any order, blank lines and those that
    start with ``#`` are skipped. Columns beyond the sixth are ignored, as trec_eval does, unless
    they look like a document name with white space in it.
    Ids are UTF-8; other bytes survive as lone surrogates ("surrogateescape").

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz, .zst or .lz4; ``-`` for standard input. An
        ``.npz`` of NumPy has the arrays ``scores`` (queries, documents), ``queries`` and
        ``documents``; the latter may have the shape of the scores.
    as_ : {"dict", "frame", "columns"}
        What to return.
    run_format : {"trec_results", "msmarco", "scores", "json"}
        The form: "msmarco" has lines ``query document rank``, "scores" lines ``query document
        score``, "json" is {query: {document: score}}. By default TREC's lines; other forms are
        recognised by a heading, by ranks 1, 2, 3, ... in every query, or as JSON, with a
        `FormatNote`. Scores of ranks are negative ranks.

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
        If `as_` or `run_format` is unknown.
    """
    return _in_form(as_, read_run_columns, path, run_format)


@overload
def read_qrels(
    path: PathName, as_: Literal["dict"] = "dict", *, qrels_format: str = TREC_QRELS
) -> dict[str, dict[str, int]]: ...
@overload
def read_qrels(
    path: PathName, as_: Literal["columns"], *, qrels_format: str = TREC_QRELS
) -> QrelsColumns: ...
@overload
def read_qrels(path: PathName, as_: Form, *, qrels_format: str = TREC_QRELS) -> Any: ...
def read_qrels(path: PathName, as_: Form = "dict", *, qrels_format: str = TREC_QRELS) -> Any:
    """Read the judgements of qrels: TREC's lines ``query iter document relevance``, or another
    form.

    The iter column is ignored, lines may come in any order, lines that start with ``#`` are
    comments. A relevance is a whole number; 1.0 is 1.

    Parameters
    ----------
    path, as_
        As of `read_run`.
    qrels_format : {"qrels", "beir", "json"}
        The form: "beir" has lines ``query document relevance``, with or without a heading, "json"
        is {query: {document: relevance}}. By default TREC's lines; other forms are recognised by a
        heading, or as JSON, with a `FormatNote`.

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
        If `as_` or `qrels_format` is unknown.
    """
    return _in_form(as_, read_qrels_columns, path, qrels_format)


def _in_form(form: Form, read: Callable[..., Any], path: PathName, file_format: str) -> Any:
    """Read a file, and return it as dict, frame or columns."""
    choose("as_", form, ("dict", "frame", "columns"))
    columns = read(path, form=file_format)
    if form == "columns":
        return columns
    return columns.to_frame() if form == "frame" else columns.to_dict()


def read_run_columns(
    path: PathName, *, threads: int | None = None, form: str | None = None
) -> RunColumns:
    """Read a run file as columns; accepts and refuses the same files as `read_run`."""
    packed = _read(path, True, threads, form)
    return RunColumns(*packed.columns(), packed.tag, path=os.fspath(path))


def read_qrels_columns(
    path: PathName, *, threads: int | None = None, form: str | None = None
) -> QrelsColumns:
    """Read a qrels file as columns; accepts and refuses the same files as `read_qrels`."""
    return QrelsColumns(*_read(path, False, threads, form).columns())


def _read(path: PathName, is_run: bool, threads: int | None, form: str | None) -> Packed:
    """Read the documents of a file; UsageError if this is not a path."""
    if not is_path(path):
        raise UsageError(f"{path!r} is not a path; give a file")
    return read_documents(path, is_run, threads, in_order=False, form=form)
