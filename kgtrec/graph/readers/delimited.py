"""CSV, and tab-separated files whose columns stand in another order than head, relation, tail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from kgtrec.errors import FileError
from kgtrec.graph.id_files import delimited_rows, lines_of, refuse, text_of
from kgtrec.graph.readers.common import GraphTables, label_rows, split_files
from kgtrec.graph.triples import COLUMNS

__all__ = ["read_csv", "read_tab_separated"]

_STEMS = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
_DECLARE = (
    "begin the file with a line that names its columns, head,relation,tail in any order, or say "
    "it: csv,hrt:DIR"
)
Row = tuple[bytes, bytes, bytes]


def read_csv(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.csv`` and so on, with a first line of names or with declared columns."""
    files = split_files(folder, _STEMS, (".csv",))
    return label_rows({split: _csv_rows(path, columns) for split, path in files.items()})


def read_tab_separated(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.txt`` and so on, whose columns are declared."""
    order = columns or "hrt"
    files = split_files(folder, _STEMS, (".txt", ".tsv", ""))
    return label_rows({split: _tab_rows(path, order) for split, path in files.items()})


def _tab_rows(path: Path, columns: str) -> Iterator[Row]:
    places = [columns.index(c) for c in "hrt"]
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) != 3 or b"" in fields:
            hint = f"a line is three labels with tabs between them, {columns}"
            refuse(path, line, f"{text_of(text[:60])!r}", hint)
        head, relation, tail = (fields[place] for place in places)
        yield head, relation, tail


def _csv_rows(path: Path, columns: str | None) -> Iterator[Row]:
    rows = delimited_rows(path, ",", "correct the line")
    _, first = next(rows, (1, []))
    if not first:
        raise FileError(path, found="nothing: the file is empty", hint="fill it")
    named = [field.strip().lower() for field in first]
    if set(COLUMNS) <= set(named):
        places = [named.index(name) for name in COLUMNS]
        twice = [name for name in COLUMNS if named.count(name) > 1]
        if twice:
            raise FileError(path, 1, found=f"two columns {twice[0]!r}", hint="keep one of them")
        letters = "".join(name[:1] for name in named)  # pandas gives its index an empty name
        if columns is not None and letters != columns:
            what = f"columns {', '.join(first)}, declared as {columns}"
            raise FileError(path, 1, found=what, hint="leave the declaration out")
    elif columns is None:
        what = f"{','.join(first)[:60]!r} names no columns head, relation, tail"
        raise FileError(path, 1, found=what, hint=_DECLARE)
    else:
        places, named = [columns.index(c) for c in "hrt"], list(columns)
        rows = chain([(1, first)], rows)
    for line, fields in rows:
        if len(fields) != len(named) or not all(fields[place] for place in places):
            what = f"{','.join(fields)[:60]!r}, where {len(named)} columns are filled"
            raise FileError(path, line, found=what, hint="correct the line")
        head, relation, tail = (
            fields[place].encode("utf-8", "surrogateescape") for place in places
        )
        yield head, relation, tail
