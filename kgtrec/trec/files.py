"""Strict readers of TREC run and qrels files: a fault is named with its line, never guessed at."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from kgtrec.errors import FileError

__all__ = ["DuplicateDocument", "RunFile", "read_qrels", "read_run", "read_run_file"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_RUN_COLUMNS = "query iter document rank score tag"
_QRELS_COLUMNS = "query iter document relevance"

PathName = str | os.PathLike[str]


class DuplicateDocument(FileError):
    """A document stands twice under one query (trec_eval's exit code: 4)."""

    exit_code = 4


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

    The iter and rank columns are ignored, lines may come in any order, blank lines are skipped.
    Ids are UTF-8; other bytes survive as lone surrogates ("surrogateescape").

    Parameters
    ----------
    path : str or path-like
        The file; a name that ends in ``.gz`` is decompressed.

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
    scores: dict[str, dict[str, float]] = {}
    current = tag = None
    documents: dict[str, float] = {}
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if len(fields) != 6:
                if not fields:
                    continue
                raise _wrong_columns(path, number, fields, _RUN_COLUMNS)
            query, _, name, _, text, tag = fields
            try:
                score = float(text)
            except ValueError:
                raise _bad_score(path, number, text) from None
            # float() takes 1_000 for a number, and NaN has no place in an order.
            if score != score or b"_" in text:
                raise _bad_score(path, number, text)
            if query != current:
                current = query
                documents = scores.setdefault(_text(query), {})
            document = name.decode("utf-8", "surrogateescape")
            if document in documents:
                raise _duplicate(path, number, query, document)
            documents[document] = score
    if tag is None:
        raise _empty(path, "run", _RUN_COLUMNS)
    return RunFile(scores, _text(tag))


def read_qrels(path: PathName) -> dict[str, dict[str, int]]:
    """Judgements of a TREC qrels file, lines ``query iter document relevance``.

    The iter column is ignored, lines may come in any order, lines that start with ``#`` are
    comments.

    Parameters
    ----------
    path : str or path-like
        The file; a name that ends in ``.gz`` is decompressed.

    Returns
    -------
    dict of str to dict of str to int
        Query, then document, to its relevance: from 1 relevant, 0 not, negative not judged.

    Raises
    ------
    FileError
        Naming the line: missing or surplus columns, a blank line, a relevance that is no whole
        number; or the file cannot be read or holds nothing. `DuplicateDocument` for a document
        that comes twice.
    """
    judged: dict[str, dict[str, int]] = {}
    current = None
    documents: dict[str, int] = {}
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if fields and fields[0].startswith(b"#"):
                continue
            if len(fields) != 4:
                raise _wrong_columns(path, number, fields, _QRELS_COLUMNS)
            query, _, name, text = fields
            try:
                relevance = int(text)
            except ValueError:
                raise _bad_relevance(path, number, text) from None
            if b"_" in text:
                raise _bad_relevance(path, number, text)
            if query != current:
                current = query
                documents = judged.setdefault(_text(query), {})
            document = name.decode("utf-8", "surrogateescape")
            if document in documents:
                raise _duplicate(path, number, query, document)
            documents[document] = relevance
    if not judged:
        raise _empty(path, "qrels", _QRELS_COLUMNS)
    return judged


@contextmanager
def _opened(path: PathName) -> Iterator[BinaryIO]:
    """The file's lines as bytes; what the system says against reading it becomes a FileError."""
    packed = os.fspath(path).endswith(".gz")
    try:
        with open(path, "rb") as raw:
            source = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw)), 1 << 18)
            lines = cast(BinaryIO, source) if packed else raw
            head = lines.peek(3)  # type: ignore[attr-defined]
            if head.startswith(_GZIP_MAGIC):
                mend = "give it a name that ends in .gz"
                raise FileError(path, found="the content is gzip data", mend=mend)
            if head.startswith(_BYTE_ORDER_MARK):
                lines.read(len(_BYTE_ORDER_MARK))
            yield lines
    except FileNotFoundError:
        mend = "check the name and the working folder"
        raise FileError(path, found="there is no such file", mend=mend) from None
    except IsADirectoryError:
        raise FileError(path, found="this is a folder", mend="name a file in it") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        found = f"the gzip data is damaged or cut short ({str(error).rstrip('.')})"
        raise FileError(path, found=found, mend="copy or compress the file again") from None
    except OSError as error:
        found = f"cannot be read ({error.strerror or error})"
        raise FileError(path, found=found, mend="check its permissions and the disk") from None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _quoted(raw: bytes, most: int = 60) -> str:
    text = _text(raw)
    return repr(text if len(text) <= most else text[:most] + "...")


def _wrong_columns(path: PathName, line: int, fields: list[bytes], wanted: str) -> FileError:
    columns = len(wanted.split())
    if not fields:
        return FileError(path, line, found="a blank line", mend="remove it")
    found = f"{len(fields)} column{'s' * (len(fields) != 1)} in {_quoted(b' '.join(fields))}"
    mend = f"a line has {columns}: {wanted}"
    if len(fields) > columns:
        mend += " (white space inside an id must be written as %20)"
    return FileError(path, line, found=found, mend=mend)


def _bad_score(path: PathName, line: int, text: bytes) -> FileError:
    mend = "the fifth column must be a decimal number, inf or -inf"
    return FileError(path, line, found=f"score {_quoted(text)}", mend=mend)


def _bad_relevance(path: PathName, line: int, text: bytes) -> FileError:
    mend = "the fourth column must be a whole number: 1 or more for relevant, 0 for not"
    return FileError(path, line, found=f"relevance {_quoted(text)}", mend=mend)


def _duplicate(path: PathName, line: int, query: bytes, document: str) -> FileError:
    found = f"document {document!r} comes a second time under query {_quoted(query)}"
    return DuplicateDocument(path, line, found=found, mend="keep one of the two lines")


def _empty(path: PathName, kind: str, wanted: str) -> FileError:
    return FileError(path, found=f"this {kind} file holds no line", mend=f"lines are {wanted!r}")
