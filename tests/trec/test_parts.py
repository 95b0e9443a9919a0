"""Run and qrels files that are read in parts, on threads: the parts never show.

Nor does it show which lines are split at a look at many bytes, and which byte by byte.
"""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import fuzz_readers
import pyarrow as pa
import pytest

from kgtrec.errors import FileError
from kgtrec.trec.files import parse
from kgtrec.trec.files.read import read_run_columns

THREADS = (1, 2, 3, 7)

# Queries go on over any cut, come back later, and begin alike; lines of all kinds between them.
RUNS = {
    "sound": b"a 0 d1 1 9 t\na 0 d2 2 8 t\n\n#a 0 d1\nab 0 d1 1 1e1 t\n a 0 d3 3 7 t\nb 0 d1 1 2 t"
    b"\r\nb 0 d2 2 3 t x\nab 0 d2 9 9 last",
    "a document twice, in two parts": b"a 0 d1 1 9 t\nb 0 d1 1 8 t\nb 0 d2 2 7 t\na 0 d1 2 6 t\n",
    "two faults": b"a 0 d1 1 9 t\nb 0 d1 1 8 t\nb 0 d2 2 x t\na 0 d2 2 6\nb 0 d1 3 5 t\n",
    "a fault, then a document twice": b"a 0 d 1 9 t\n\nb 0 d 1 y t\na 0 d 1 9 t\n",
    "comments only": b"#a 0 d 1 9 t\n\n# b\n",
}
QRELS = {
    "sound": b"a 0 d1 1\na 0 d2 0\n#a\nab 0 d1 2\n a 0 d3 -1\nb 0 d1 1\r\nab 0 d2 3",
    "blank lines": b"a 0 d1 1\nb 0 d1 1\n \nb 0 d2 1\n\na 0 d2 1\n",
    "a fault before a blank line": b"a 0 d1 1\nb 0 d1 1.5\nb 0 d2 1\n\na 0 d2 1\n",
    "a document twice, in two parts": b"a 0 d1 1\nb 0 d1 0\na 0 d1 0\n\n",
}
TEXTS = [(kind, is_run, text) for is_run, texts in ((True, RUNS), (False, QRELS))
         for kind, text in texts.items()]  # fmt: skip


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("kind", "is_run", "text"), TEXTS, ids=lambda x: str(x)[:24])
def test_cut_at_any_byte(tmp_path: Path, monkeypatch, threads, kind, is_run, text) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    monkeypatch.setattr(parse, "_PART_DOCUMENTS", 1)
    monkeypatch.setattr(parse, "_FEW_GROUPS", 1)
    for cut in range(len(text)):
        monkeypatch.setattr(parse, "_text_parts", lambda *_, c=cut: _two_parts(text, c))
        fuzz_readers.check_columns(path, text, is_run, threads)


def _two_parts(text: bytes, cut: int) -> list[tuple[int, int]]:
    """The second begins with the first line that begins behind the cut."""
    text = text if text.endswith(b"\n") else text + b"\n"
    begin = text.find(b"\n", cut) + 1
    return [(0, begin), (begin, len(text))] if begin < len(text) else [(0, len(text))]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("kind", "is_run", "text"), TEXTS, ids=lambda x: str(x)[:24])
def test_parts_of_any_size(tmp_path: Path, monkeypatch, threads, kind, is_run, text) -> None:
    path = tmp_path / "file"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + text)
        for size in range(1, len(text)):
            monkeypatch.setattr(parse, "_PART_BYTES", size)
            monkeypatch.setattr(parse, "_PART_DOCUMENTS", size % 5)
            fuzz_readers.check_columns(path, mark + text, is_run, threads)


def test_parts_begin_at_lines_and_cover_the_text(monkeypatch) -> None:
    data = bytearray(b"".join(b"x" * (i % 7) + b"\n" for i in range(60)))
    text = parse.Text("file", True, data, 3)
    for size in range(1, len(data) + 2):
        monkeypatch.setattr(parse, "_PART_BYTES", size)
        for threads in THREADS:
            parts = parse._text_parts(text, threads)
            assert parts[0][0] == 3
            assert parts[-1][1] == len(data)
            assert all(a[1] == b[0] and data[b[0] - 1] == ord("\n")
                       for a, b in pairwise(parts))  # fmt: skip
            assert (len(parts) > 1) == (threads > 1 and size <= (len(data) - 3) // 2)


@pytest.mark.parametrize("kind", RUNS)
def test_packed_files_and_standard_input_in_parts(tmp_path: Path, monkeypatch, kind: str) -> None:
    text = RUNS[kind]
    monkeypatch.setattr(parse, "_PART_BYTES", 20)
    monkeypatch.setattr(parse, "_PART_DOCUMENTS", 1)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    contents = {
        "run": text,
        "run.gz": gzip.compress(text[:30]) + gzip.compress(text[30:]),
        "run.zst": pa.compress(text, "zstd", asbytes=True),
    }
    texts = {_text_of("-", "standard input")}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        texts.add(_text_of(tmp_path / name, str(tmp_path / name)))
    assert len(texts) == 1


def _text_of(path: Path | str, name: str) -> str:
    """All that comes of a run, or the sentence against it."""
    try:
        columns = read_run_columns(path, threads=7)
    except FileError as error:
        return str(error).removeprefix(name)
    documents = columns.documents.to_pylist()
    return repr((columns.queries, documents, columns.scores.tolist(), columns.tag))


# -- Lines that are split at a look ------------------------------------------------------------

LINE = b"q1 Q0 doc 12 3.25 tag"
BEHIND = [b"# " * 50 + b"\n", b"#" * 100 + b"\n"]  # far from the end; with and without white space


def check_line(folder: Path, line: bytes) -> None:
    path = folder / "file"
    for behind in BEHIND:
        text = b"q1 Q0 first 1 9.5 tag\n" + line + b"\n" + behind
        path.write_bytes(text)
        fuzz_readers.check_columns(path, text, True, 1)


def test_any_byte_at_any_place_of_a_line(tmp_path: Path) -> None:
    odd = b" \t\n\v\f\r\0\x08\x0e\x1f!#.0-e\x80\xa0\xff"
    for place in range(len(LINE) + 1):
        for byte in odd:
            check_line(tmp_path, LINE[:place] + bytes([byte]) + LINE[place:])
            check_line(tmp_path, LINE[:place] + bytes([byte]) + LINE[place + 1 :])


@pytest.mark.parametrize("place", [0, 2, 6, 9, 13, 19, len(LINE)])
def test_lines_of_any_length(tmp_path: Path, place: int) -> None:
    for n in range(1, 140):
        for filler in (b"0" * n, b" " * n, b" 1" * n, b" " + b"x" * n):
            check_line(tmp_path, LINE[:place] + filler + LINE[place:])


def test_a_line_at_any_distance_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for n in range(140):
        for end in (b"", b"\n"):
            text = b"a 0 d 1 0.5 t\n" + LINE + b"\n" + b"#" * n + end
            path.write_bytes(text)
            fuzz_readers.check_columns(path, text, True, 1)
