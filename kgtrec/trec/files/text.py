"""The bytes of a run or qrels file in memory, messages about wrong lines, and lists of plain runs.

This module is loaded before numpy, see `ReadAhead`.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import sys
import warnings
import zlib
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
from typing import Any, BinaryIO, NamedTuple, TypeGuard

from kgtrec import _core
from kgtrec._internal.encodings import explain_encoding, wide_encoding
from kgtrec._internal.locations import is_location, local_copy
from kgtrec._internal.system import (
    IS_WINDOWS,
    empty_memory,
    names_folder,
    read_at,
    read_into,
    reason_of,
)
from kgtrec._internal.threads import available_cores, share_rows
from kgtrec._internal.unpacking import UnpackedStream, check_expansion
from kgtrec.errors import FileError, KgtrecWarning, UsageError

LINES_AT_A_TIME = 250_000
UNJUDGED = 1 - 2**63
"""Relevance of a retrieved document that the qrels lack. Judgements with this number, or a lower
one, are listed with the next higher: all relevances below 0 mean the same."""

_ALL = 2**63 - 1
_MOST_BYTES = 16 << 20  # of a file: threads share the parts of a larger one
_INTERVAL = 5e-4  # seconds that the thread waits for the lock; Python waits ten times as long

_COMMENT = b"#"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def identifiers(ids: Sequence[str], *, first: bool = False) -> list[bytes]:
    """Return ids or tags as bytes; UsageError if a reader would split one.

    With `first` they start a line: then ids that a reader would skip or cut are refused, too.
    """
    for text in ids:
        if not isinstance(text, str):
            raise UsageError(f"{text!r} is not a text; ids and tags of a TREC file must be texts")
    raw = [text.encode("utf-8", "surrogateescape") for text in ids]
    for text, each in zip(ids, raw, strict=True):
        if each.split() != [each]:
            hint = "use a name without white space"
            raise UsageError(f"{text!r} cannot be written to a TREC file; {hint}")
        if first and each.startswith((_COMMENT, _BYTE_ORDER_MARK)):
            hint = "readers skip comments (#) and byte order marks; rename the query"
            raise UsageError(f"query {text!r} cannot begin a line of a TREC file; {hint}")
    return raw


_RUN_COLUMNS = "query iter document rank score tag"
_QRELS_COLUMNS = "query iter document relevance"

_LZ4 = b"\x04\x22\x4d\x18"
_MAGIC = {
    b"\x1f\x8b\x08": ("gzip", ".gz", "zcat"),
    b"\x28\xb5\x2f\xfd": ("zstd", ".zst", "zstdcat"),
    _LZ4: ("lz4", ".lz4", "lz4cat"),
}
_PIECE = 1 << 20
_PART = 16 << 20

PathName = str | os.PathLike[str]


def is_path(data: object) -> TypeGuard[PathName]:
    """Return whether this names a file."""
    return isinstance(data, (str, os.PathLike))


Warn = Callable[[KgtrecWarning], object]
"""What a reader does with its warnings: `warnings.warn`, or append them to a list in a thread."""


class DuplicateDocument(FileError):
    """A document occurs twice under one query (trec_eval's exit code: 4)."""

    exit_code = 4


@dataclass(frozen=True, eq=False)
class Text:
    """All bytes of a file, unpacked; the last is a newline unless there are none.

    - data: In memory, not mapped. Scans rely on the last newline, and a mapped file could lose it
      if others write to it or cut it short.
    - start: Start of the first line, after a byte order mark and a heading.
    - comments: Whether lines that start with # are comments.
    - first_line: Number of that line in the file.
    - form: A key of `forms.RUN_FORMATS` or `forms.QRELS_FORMATS`, or "" for TREC's lines.
      "ranks?" is a run of three columns whose values must be ranks.
    - columns: Names of the columns of a line.
    - warn: Receives warnings about the text.
    """

    path: PathName
    is_run: bool
    data: bytes | bytearray | mmap.mmap
    start: int
    first_line: int = 1
    comments: bool = True
    form: str = ""
    columns: str = ""
    warn: Warn = warnings.warn

    def __post_init__(self) -> None:
        if not self.columns:
            columns = _RUN_COLUMNS if self.is_run else _QRELS_COLUMNS
            object.__setattr__(self, "columns", columns)

    def column(self, name: str) -> int:
        """Return the index of a column, from 0."""
        return self.columns.split().index(name)

    def empty(self) -> FileError:
        """Return the error for a file of only comments and blank lines."""
        kind = "run" if self.is_run else "qrels"
        problem = f"this {kind} file contains no lines"
        return FileError(self.path, found=problem, hint=f"give lines of {self.columns!r}")


def read_text(path: PathName, is_run: bool) -> Text:
    """Read the bytes of a file.

    Files whose names end in .gz, .zst or .lz4 are unpacked; ``-`` is standard input.
    """
    if is_location(path):
        with local_copy(path) as copy:
            return replace(read_text(copy, is_run), path=path)
    name = os.fspath(path)
    data: bytes | bytearray | mmap.mmap
    if name == "-":
        path = "standard input"
        if sys.stdin is None:
            raise FileError(path, found="it is closed", hint="pipe a file into it, or give a file")
        with _explain_errors(path):
            data = _read(sys.stdin.buffer)
        _refuse_packed(path, bytes(data[:10]), "unpack it first: {2} FILE | kgtrec ... -")
    else:
        with _explain_errors(path), open(path, "rb") as raw, _check_unchanged(path, raw):
            kind = next((kind for kind, end, _ in _MAGIC.values() if name.endswith(end)), None)
            if kind == "lz4" and not raw.peek(4).startswith(_LZ4):
                kind = None  # lines under that name
            if kind is not None:
                data = _unpack(path, raw, kind)
            else:
                data = _read_plain(raw)
                _refuse_packed(path, bytes(data[:10]), "give it a name that ends in {1}")
                _refuse_arrays(path, bytes(data[:6]))
    first = bytes(data[:256]).partition(b"\n")[0]
    is_marked = first.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
    is_wide = is_marked or 5 * first.count(0) >= 2 * len(first) > 31
    if is_wide and (encoding := wide_encoding(first)):
        problem, hint = explain_encoding(encoding)
        raise FileError(path, found=problem, hint=hint)
    start = len(_BYTE_ORDER_MARK) if data[:3] == _BYTE_ORDER_MARK else 0
    if isinstance(data, bytearray) and len(data) > start and data[-1] != ord("\n"):
        data += b"\n"
    return Text(path, is_run, data, start)


@contextmanager
def _explain_errors(path: PathName) -> Iterator[None]:
    """Turn the system's errors on reading into a FileError."""
    try:
        yield
    except FileNotFoundError:
        hint = "check the name and the working folder"
        raise FileError(path, found="the file does not exist", hint=hint) from None
    except OSError as error:
        if names_folder(error):
            hint = "give a file in this folder"
            raise FileError(path, found="this is a folder", hint=hint) from None
        problem = f"cannot be read ({reason_of(error)})"
        raise FileError(path, found=problem, hint="check its permissions and the disk") from None


@contextmanager
def _check_unchanged(path: PathName, raw: BinaryIO) -> Iterator[None]:
    """Raise FileError if a file changes while it is read, also after another error.

    Only plain files are checked: a pipe always changes as it is read.
    """
    from kgtrec.scores.mapped_files import Watch

    plain = stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    watch = Watch([path] if plain else [])
    try:
        yield
    finally:
        watch.check()


def _refuse_packed(path: PathName, head: bytes, hint: str) -> None:
    """Refuse packed data under a name that does not say so."""
    for magic, names in _MAGIC.items():
        if head.startswith(magic):
            problem = f"the content is {names[0]} data"
            raise FileError(path, found=problem, hint=hint.format(*names))
    for name, program, pattern in _OTHER_MAGIC:
        if pattern.match(head):
            hint = f"unpack it first ({program}), or compress it as .gz, .zst or .lz4"
            raise FileError(path, found=f"the content is {name} data", hint=hint)


_OTHER_MAGIC = (
    ("bzip2", "bunzip2", re.compile(rb"BZh[1-9]1AY&SY")),
    ("xz", "unxz", re.compile(rb"\xfd7zXZ\0")),
)
"""Compressed forms that are not read: name, program that unpacks, beginning of the data."""


def _refuse_arrays(path: PathName, head: bytes) -> None:
    """Refuse NumPy arrays, which may be the scores of a run without their ids."""
    if head == b"\x93NUMPY" or (head.startswith(b"PK") and str(path).endswith(".npz")):
        problem = "NumPy arrays, not lines of text"
        hint = (
            "for scores of a model, use `kgtrec rank`; for a run, save scores and ids: "
            "numpy.savez('run.npz', scores=..., queries=..., documents=...)"
        )
        raise FileError(path, found=problem, hint=hint)


def _read(raw: Any) -> bytearray:
    """Read all bytes of a stream."""
    data = bytearray()
    while piece := raw.read(_PIECE):
        data += piece
    return data


def _read_plain(raw: BinaryIO) -> bytes | bytearray | mmap.mmap:
    """Read all bytes into memory of our own; adds a newline if the last one is missing.

    Small files are read at once, into memory that earlier files have left: new pages cost more than
    the bytes. An anonymous map is zeroed as it is filled, a bytearray before. It may have huge
    pages, and threads share both tasks. So this takes little more time than mapping the file.
    """
    status = os.fstat(raw.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size <= len(_BYTE_ORDER_MARK):
        return _read(raw)  # a pipe; or nothing but the mark, without a line
    if status.st_size <= _PART:
        content = read_at(raw.fileno(), status.st_size, 0)
        if len(content) == status.st_size:
            return content if content.endswith(b"\n") else content + b"\n"
    ends = read_at(raw.fileno(), 1, status.st_size - 1) == b"\n"
    size = status.st_size + (not ends)
    try:
        data = empty_memory(size)
    except OSError:  # ENOMEM: not a fault of the file
        raise MemoryError(f"no memory for {size:,} bytes of {os.fsdecode(raw.name)}") from None
    with memoryview(data) as view:

        def fill(at: int, stop: int) -> None:
            while at < stop and (got := read_into(raw.fileno(), view[at:stop], at)):
                at += got

        cuts = [*range(0, status.st_size, _PART), status.st_size]
        share_rows(fill, [*pairwise(cuts)], available_cores())
    data[size - 1 :] = b"\n"  # also if the file was cut short: `_check_unchanged` reports it
    return data


def _gunzip(path: PathName, raw: BinaryIO) -> bytearray:
    """Unpack all members; zeros that pad a block may follow. GzipFile takes a sixth longer."""
    data, unpack = bytearray(), zlib.decompressobj(31)
    while piece := raw.read(_PIECE):
        check_expansion(path, raw.tell(), len(data))
        while piece:
            if unpack.eof:
                piece = piece.lstrip(b"\0")
                if not piece:
                    break
                unpack = zlib.decompressobj(31)
            data += unpack.decompress(piece)
            piece = unpack.unused_data
    if not unpack.eof:
        raise EOFError("it ends before its end mark")
    return data


def _unpack(path: PathName, raw: BinaryIO, kind: str) -> bytearray:
    """Unpack all members of a gzip file, or frames of a zstd or lz4 file."""
    if not raw.peek(1):  # type: ignore[attr-defined]
        return bytearray()
    try:
        if kind == "gzip":
            if not raw.peek(2).startswith(b"\x1f\x8b"):  # type: ignore[attr-defined]
                problem = "the content is not gzip data, as the name says"
                raise FileError(path, found=problem, hint="take .gz off the name, or compress it")
            return _gunzip(path, raw)
        import pyarrow as pa

        with pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), kind) as stream:
            return _read(UnpackedStream(path, raw, stream))
    except (OSError, EOFError, zlib.error) as error:
        problem = f"the {kind} data is damaged or cut short ({str(error).rstrip('.')})"
        raise FileError(path, found=problem, hint="copy or compress the file again") from None


def decode_name(raw: bytes) -> str:
    """Return a name as text: UTF-8, other bytes as lone surrogates ("surrogateescape")."""
    return raw.decode("utf-8", "surrogateescape")


def number_of(field: bytes) -> float | None:
    """Return the number below 2^63 that a field states, or None."""
    try:
        value = float(field)
    except ValueError:
        return None
    return value if abs(value) < 2.0**63 and b"_" not in field else None


def quote_bytes(raw: bytes, most: int = 60) -> str:
    """Quote bytes of a file for messages, cut to `most` characters."""
    text = decode_name(raw)
    return repr(text if len(text) <= most else text[:most] + "...")


def last_tag(text: Text) -> str:
    """Return the sixth column of the last line that is neither blank nor a comment, or ""."""
    if text.form:
        return ""
    end = len(text.data) - 1
    while end > text.start:
        start = text.data.rfind(b"\n", text.start, end) + 1 or text.start
        fields = bytes(text.data[start:end]).split(maxsplit=6)
        if len(fields) > 5 and not (text.comments and fields[0].startswith(b"#")):
            return decode_name(fields[5])
        end = start - 1
    return ""


# -- Lists of plain files, each by one call of the core -------------------------------------------


class Cut(NamedTuple):
    """Which documents of a query to list; see `kgtrec.trec.measures.judge.read_lists`."""

    depth: int | None = None
    keep_ties: bool = False
    judged_only: bool = False
    single: bool = False

    @property
    def most(self) -> int:
        """The depth, or a number that no list reaches."""
        return _ALL if self.depth is None else min(self.depth, _ALL)


WHOLE = Cut()


class ReadAhead:
    """Reader of runs on a thread of its own, inside `with`, until `stop`; and then on request.

    Imports take a third of the time of a command that reads a hundred runs, and use one core. The
    thread needs Python's lock only between two files, but soon: it reads one in 2 ms.

    It raises no errors and warns of nothing. It has no lists of a file that is not plain: packed,
    large, changed meanwhile, faulty, or worth a warning. Such a file must be read again.
    """

    def __init__(self, qrels: str, runs: Sequence[str], cut: Cut) -> None:
        self._qrels, self.cut = qrels, cut
        self._states = {path: _state(path) for path in (qrels, *runs) if runs}
        self._waiting = iter(runs)
        self._lists: dict[str, _core.ListedRun | None] = {}
        self._judged: _core.TrecQrels | None = None
        self._reading, self._ended = Lock(), True
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> ReadAhead:
        self._reading.acquire()
        self._ended = False
        sys.setswitchinterval(_INTERVAL)
        try:
            start_new_thread(self._read_all, ())
        except RuntimeError:  # no more threads
            self._ended = True
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let the thread end with the file that it reads, and wait for it.

        If it is interrupted, it can be called again.
        """
        self._waiting = iter(())
        if not self._ended:
            self._reading.acquire()
        sys.setswitchinterval(self._interval)

    def has_read(self, judged: _core.TrecDocuments) -> bool:
        """Return whether it has read the qrels, with the bytes that these documents come from."""
        return self._judged is not None and self._judged.has(judged)

    def lists(self, run: str, cut: Cut) -> _core.ListedRun | None:
        """Return the lists of a run, once; None if the file is not plain."""
        state = self._states.get(run)
        if state is None or cut != self.cut:
            return None
        listed = self._lists.pop(run) if run in self._lists else self._read(run)
        return listed if _state(run) == state else None

    def _read_all(self) -> None:
        """Read the qrels and then the runs, until `stop`."""
        try:
            if state := self._states.get(self._qrels):
                judged = _core.TrecQrels(os.fsencode(self._qrels), state[0], UNJUDGED)
                self._judged = judged if judged else None
            while self._judged and (run := next(self._waiting, None)):
                self._lists[run] = self._read(run)
        except MemoryError:
            pass  # the main thread meets it again
        finally:
            self._ended = True
            self._reading.release()

    def _read(self, run: str) -> _core.ListedRun | None:
        """Read one run by one call of the core."""
        state = self._states[run]
        if state is None or self._judged is None:
            return None
        return self._judged.lists(os.fsencode(run), state[0], self.cut.most, *self.cut[1:])


def _state(path: str) -> tuple[int, ...] | None:
    """Return a value that changes when a file is written or replaced; None if it cannot be
    plain."""
    if path == "-" or path.endswith((".gz", ".zst", ".lz4", ".npz")) or is_location(path):
        return None
    if IS_WINDOWS and not path.isascii():
        return None  # the core opens files by names in the system's code page
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(now.st_mode) or not 2 <= now.st_size <= _MOST_BYTES:
        return None
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev
