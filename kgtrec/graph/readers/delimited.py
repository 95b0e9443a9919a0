"""CSV, and tab-separated files whose columns stand in another order than head, relation, tail."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from kgtrec.errors import FileError
from kgtrec.graph.id_files import lines_of, refuse, text_of
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
    rows = csv.reader(text_of(text) for _, text in lines_of(path))
    try:
        first = next(rows, [])
        if not first:
            raise FileError(path, found="nothing: the file is empty", hint="fill it")
        named = [field.strip().lower() for field in first]
        if set(COLUMNS) <= set(named):
            places = [named.index(name) for name in COLUMNS]
            letters = "".join(name[0] for name in named)
            if columns is not None and letters != columns:
                what = f"columns {', '.join(first)}, declared as {columns}"
                raise FileError(path, 1, found=what, hint="leave the declaration out")
            first = []
        elif columns is None:
            what = f"{','.join(first)[:60]!r} names no columns head, relation, tail"
            raise FileError(path, 1, found=what, hint=_DECLARE)
        else:
            places, named = [columns.index(c) for c in "hrt"], list(columns)
        for fields in filter(None, _with_first(first, rows)):
            if len(fields) != len(named) or not all(fields[place] for place in places):
                what = f"{','.join(fields)[:60]!r}, where {len(named)} columns are filled"
                raise FileError(path, rows.line_num, found=what, hint="correct the line")
            head, relation, tail = (
                fields[place].encode("utf-8", "surrogateescape") for place in places
            )
            yield head, relation, tail
    except csv.Error as error:
        raise FileError(path, rows.line_num, found=str(error), hint="correct the line") from None


def _with_first(first: list[str], rows: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rows
