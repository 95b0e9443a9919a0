"""Run and qrels files as columns and as dicts; a fault is named with its line, never guessed at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.trec.documents import find_groups, read_documents
from kgtrec.trec.reading import last_tag
from kgtrec.trec.text import DuplicateDocument, PathName, decoded, read_text

__all__ = [
    "DuplicateDocument",
    "QrelsColumns",
    "RunColumns",
    "RunFile",
    "read_qrels",
    "read_qrels_columns",
    "read_run",
    "read_run_columns",
    "read_run_file",
]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Columns:
    """What run and qrels have in common."""

    queries: list[str]
    offsets: Ints
    name_offsets: Ints
    name_bytes: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def documents(self) -> Any:
        """Names of the documents: a pyarrow LargeBinaryArray over the same memory."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.name_offsets), pa.py_buffer(self.name_bytes)]
        return pa.Array.from_buffers(pa.large_binary(), len(self.name_offsets) - 1, buffers)

    def _dicts(self, values: list[Any]) -> dict[str, dict[str, Any]]:
        raw, ends = self.name_bytes.tobytes(), self.name_offsets.tolist()
        if raw.isascii():  # a slice of a text is cheaper than decoding each
            text = raw.decode("ascii")
            names = [text[a:b] for a, b in pairwise(ends)]
        else:
            names = [decoded(raw[a:b]) for a, b in pairwise(ends)]
        spans = pairwise(self.offsets.tolist())
        return {
            query: dict(zip(names[a:b], values[a:b], strict=True))
            for query, (a, b) in zip(self.queries, spans, strict=True)
        }


@dataclass(frozen=True, eq=False)
class RunColumns(_Columns):
    """A run as columns.

    Attributes
    ----------
    queries : list of str, length n_queries
        In order of their first line. UTF-8; other bytes are lone surrogates ("surrogateescape").
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query i has the documents ``offsets[i]`` to ``offsets[i + 1] - 1``, in order of the lines.
    documents : pyarrow.LargeBinaryArray, length n
        Their names. `name_offsets` and `name_bytes` are its buffers.
    scores : ndarray of float64, shape (n,)
        Correctly rounded; infinities are possible, NaN is not.
    tag : str
        Last column of the last line: what trec_eval prints as runid.
    """

    scores: NDArray[np.float64]
    tag: str


@dataclass(frozen=True, eq=False)
class QrelsColumns(_Columns):
    """Qrels as columns: as `RunColumns`, with relevance in place of scores and tag.

    Attributes
    ----------
    relevance : ndarray of int64, shape (n,)
        From 1 relevant, 0 not, negative not judged.
    """

    relevance: Ints


@dataclass(frozen=True)
class RunFile:
    """A run as it was read.

    Attributes
    ----------
    scores : dict of str to dict of str to float
        Query, then document, to its score, in the order of the file.
    tag : str
        Last column of the last line: what trec_eval prints as runid.
    """

    scores: dict[str, dict[str, float]]
    tag: str


def read_run(path: PathName) -> dict[str, dict[str, float]]:
    """Scores of a TREC run file, lines ``query iter document rank score tag``.

    The iter and rank columns are ignored, lines may come in any order, blank lines and those that
    start with ``#`` are skipped. Columns beyond the sixth are ignored, as trec_eval does, unless
    they look like a document name with white space in it.
    Ids are UTF-8; other bytes survive as lone surrogates ("surrogateescape").

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.

    Returns
    -------
    dict of str to dict of str to float
        Query, then document, to its score (float64, correctly rounded; infinities allowed).

    Raises
    ------
    FileError
        Naming the line: missing or surplus columns, a score that is no number or NaN; or the file
        cannot be read or holds nothing. `DuplicateDocument` for a document that comes twice.
    """
    return read_run_file(path).scores


def read_run_file(path: PathName) -> RunFile:
    """Like `read_run`, with the run's tag."""
    columns = read_run_columns(path)
    return RunFile(columns._dicts(columns.scores.tolist()), columns.tag)


def read_qrels(path: PathName) -> dict[str, dict[str, int]]:
    """Judgements of a TREC qrels file, lines ``query iter document relevance``.

    The iter column is ignored, lines may come in any order, lines that start with ``#`` are
    comments.

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.

    Returns
    -------
    dict of str to dict of str to int
        Query, then document, to its relevance: from 1 relevant, 0 not, negative not judged.

    Raises
    ------
    FileError
        Naming the line: missing or surplus columns, a blank line, a relevance that is no whole
        number within 64 bits; or the file cannot be read or holds nothing. `DuplicateDocument`
        for a document that comes twice.
    """
    columns = read_qrels_columns(path)
    return columns._dicts(columns.relevance.tolist())


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
    text = read_text(path, is_run)
    groups = find_groups(text, threads)
    found = read_documents(groups, np.arange(len(groups.names)), threads)
    ends = np.concatenate(([0], np.cumsum(found.size, dtype=np.int64)))
    names = np.empty(int(ends[-1]), dtype=np.uint8)
    _core.copy_names(text.data, found.begin, found.size, names)
    queries = [decoded(name) for name in groups.names]
    columns = queries, found.offsets, ends, names, found.values
    return (*columns, last_tag(text)) if is_run else columns
