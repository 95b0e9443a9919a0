"""Triples files line by line: the slow way, which finds the first bad line and explains it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgtrec.errors import FileError
from kgtrec.graph.triples import COLUMNS

__all__ = ["BOM", "CODECS", "WANTED", "damaged", "open_packed", "scan"]

CODECS = {".gz": "gzip", ".zst": "zstd"}
WANTED = "each line must be head<TAB>relation<TAB>tail"
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
BOM = b"\xef\xbb\xbf"
OPENKE_HINT = (
    "every split of a graph in OpenKE's format begins with one, and these do not: fix the others, "
    "or delete this line"
)


def open_packed(path: Path) -> tuple[Any, Any]:
    """The file as it lies on disk, and the stream of its unpacked bytes."""
    try:
        raw = open(path, "rb")  # noqa: SIM115 (closed by the callers, with the stream over it)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            path, found=f"cannot be read ({reason})", hint="check that the file may be read"
        ) from None
    codec = CODECS.get(path.suffix)
    if codec is None:
        return raw, raw
    import pyarrow as pa

    return raw, pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec)


def damaged(path: Path, error: OSError) -> FileError:
    """What to raise when the bytes of a file cannot be read or unpacked."""
    return FileError(
        path, found=f"reading failed ({error})", hint="the file is damaged: fetch or pack it again"
    )


def scan(path: Path) -> int:
    """Walk a file line by line up to the first bad line.

    Returns
    -------
    int
        Length in bytes of the longest line, if every line is well-formed.

    Raises
    ------
    FileError
        With the first bad line, what stands there, and a hint.
    """
    longest, blank, number = 0, 0, 0
    raw, stream = open_packed(path)
    with raw:
        try:
            for number, line in enumerate(_lines(stream), start=1):
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                if not text:
                    blank = blank or number
                    continue
                if blank:
                    raise FileError(path, blank, found="an empty line", hint="delete it: " + WANTED)
                _check_line(path, number, text)
                longest = max(longest, len(line))
        except OSError as error:
            raise damaged(path, error) from None
    if longest == 0:
        raise FileError(
            path, found="no triples: the file is empty", hint="fill it, or remove the file"
        )
    return longest


def _lines(stream: Any) -> Iterator[bytes]:
    reader = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
    first = True
    for line in reader:
        yield line.removeprefix(BOM) if first else line
        first = False


def _check_line(path: Path, number: int, line: bytes) -> None:
    if number == 1:
        _check_binary(path, line)
    if b"\0" in line:
        raise FileError(
            path,
            number,
            found=f"a NUL byte in {_quote(line)}",
            hint="take NUL bytes out: they end a text in many programs",
        )
    fields = line.split(b"\t")
    if b"\r" in line:
        raise FileError(
            path,
            number,
            found=f"a carriage return inside the line {_quote(line)}",
            hint="end lines with LF or CRLF, and keep carriage returns out of labels",
        )
    if len(fields) != 3:
        raise _wrong_columns(path, number, line, len(fields))
    for column, field in zip(COLUMNS, fields, strict=True):
        if not field:
            raise FileError(
                path,
                number,
                found=f"an empty {column} in {_quote(line)}",
                hint="every head, relation and tail needs a label",
            )


def _check_binary(path: Path, line: bytes) -> None:
    for magic, suffix in _MAGIC.items():
        if line.startswith(magic):
            raise FileError(
                path,
                found=f"data packed as {suffix}, in a file not named so",
                hint=f"add {suffix} to the file name",
            )
    if line[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in line:
        raise FileError(path, found="UTF-16 text", hint="save the file as UTF-8")
    controls = sum(byte < 32 and byte not in b"\t\r" for byte in line[:1024])
    if controls > 0.1 * min(len(line), 1024):
        raise FileError(
            path, 1, found=f"binary data: {_quote(line)}", hint="give a text file: " + WANTED
        )


def _wrong_columns(path: Path, number: int, line: bytes, columns: int) -> FileError:
    count = "1 column" if columns == 1 else f"{columns} columns"
    problem, hint = f"{count} in place of 3: {_quote(line)}", WANTED
    if columns == 1:
        if number == 1 and line.strip().isdigit():
            problem += ", a count as in OpenKE's format"
            hint = OPENKE_HINT
        elif line.count(b",") == 2:
            problem += ", which looks comma-separated"
            hint = f"turn the commas into tabs: {WANTED}"
        elif len(line.split()) == 3:
            problem += ", which looks space-separated"
            hint = f"turn the spaces into tabs: {WANTED}"
    elif columns > 3:
        timed = "; or, if the fourth is a time, read it as timed:DIR" if columns in (4, 5) else ""
        hint = f"cut the other columns off (cut -f 1-3): {WANTED}{timed}"
    return FileError(path, number, found=problem, hint=hint)


def _quote(line: bytes, limit: int = 60) -> str:
    text = line[: limit * 4].decode("utf-8", "backslashreplace")
    return repr(text) if len(text) <= limit else repr(text[:limit]) + "..."
