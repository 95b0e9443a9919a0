"""Text: CSV, columns in any order, N-Triples, facts with qualifiers, facts with a time."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec.errors import PathName, refuse
from kgtrec.graph.id_files import bytes_of, delimited_rows, lines_of, regular_file, text_of
from kgtrec.graph.readers.common import (
    GraphTables,
    label_rows,
    labelled_tables,
    split_files,
    text_splits,
)
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv import load_facts, quoted, renumber_column

_DECLARE = (
    "begin the file with a line of column names (head,relation,tail in any order), or declare "
    "their order, as in csv,hrt:DIR"
)


def read_tab_separated(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.txt`` and so on, with declared columns."""
    return labelled_tables(text_splits(folder), columns or "hrt")


def _csv_rows(path: Path, columns: str | None) -> Iterator[list[bytes]]:
    """The first line names the columns, unless they are declared."""
    rows = delimited_rows(path, ",", "correct the line")
    _, first = next(rows, (1, []))
    if not first:
        refuse(path, None, "no triples: the file is empty", "add triples, or remove the file")
    named = [field.strip().lower() for field in first]
    if set(COLUMNS) <= set(named):
        places = [named.index(name) for name in COLUMNS]
        twice = [name for name in COLUMNS if named.count(name) > 1]
        if twice:
            refuse(path, 1, f"two columns {twice[0]!r}", "keep one of them")
        letters = "".join(name[:1] for name in named)  # pandas gives its index an empty name
        if columns is not None and letters != columns:
            what = f"the columns are {', '.join(first)}, but declared as {columns}"
            refuse(path, 1, what, "leave the declaration out")
    elif columns is None:
        what = f"{','.join(first)[:60]!r} does not name columns head, relation and tail"
        refuse(path, 1, what, _DECLARE)
    else:
        places, named = [columns.index(c) for c in "hrt"], list(columns)
        rows = chain([(1, first)], rows)
    for line, fields in rows:
        if len(fields) != len(named) or not all(fields[place] for place in places):
            what = f"{','.join(fields)[:60]!r} does not fill {len(named)} columns"
            refuse(path, line, what, "correct the line")
        yield [bytes_of(fields[place]) for place in places]


_NODE = rb"<([^<>\"{}|^`\\\s]+)>|(_:[^\s<>\"]+)"
_LINE = re.compile(rb"\s*(?:%s)\s+<([^<>\"{}|^`\\\s]+)>\s+(?:%s)\s*\.\s*(?:#.*)?" % (_NODE, _NODE))
_LITERAL = re.compile(rb"\s*\S+\s+<[^<>]*>\s*\"")
_HINT = "write <head> <relation> <tail> . with IRIs (without escapes) or blank nodes _:name"


def _nodes(path: Path, _: Any = None) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Labels are the IRIs without their brackets, and ``_:name``."""
    for line, text in lines_of(path, gaps=True):
        match = _LINE.fullmatch(text)
        if match is not None:
            head, blank_head, relation, tail, blank_tail = match.groups()
            yield head or blank_head or b"", relation, tail or blank_tail or b""
        elif text.strip() and not text.lstrip().startswith(b"#"):
            if _LITERAL.match(text):
                what = f"a literal in {quoted(text)}, which is not an entity"
                refuse(path, line, what, "leave triples with literals out of the file")
            refuse(path, line, quoted(text), _HINT)


_FORM = (
    "write head,relation,tail, then a relation and a value for each qualifier, all with commas "
    "between them"
)
_EMPTY = "no facts: the file is empty"
_JSON_FORM = (
    'write {"P166_h": head, "P166_t": tail, "P585": [value, ...], ...} with labels as texts; '
    '"N" is ignored'
)


def _fields(path: PathName, _: Any = None) -> Iterator[list[bytes]]:
    """Lines of 3, 5, 7, ... labels, as in StarE's repository."""
    fields: list[bytes] = []
    for line, text in lines_of(path):
        fields = text.split(b",")
        if len(fields) < 3 or b"" in fields:
            refuse(path, line, quoted(text), _FORM)
        if not len(fields) & 1:
            what = f"{len(fields)} labels: the qualifier relation {quoted(fields[-1])} has "
            refuse(path, line, f"{what}no value", _FORM)
        yield fields
    if not fields:
        refuse(path, None, _EMPTY, _FORM)


def _records(path: Path, _: Any = None) -> Iterator[list[bytes]]:
    """Roles and values; the triple's end in ``_h`` and ``_t``."""
    fields = None
    for line, text in lines_of(path):
        try:
            record = json.loads(text)
            fields = _statement(record) if isinstance(record, Mapping) else None
        except (ValueError, RecursionError) as error:  # also for text that is not UTF-8
            refuse(path, line, f"{quoted(text)} ({error})", _JSON_FORM)
        if fields is None:
            refuse(path, line, quoted(text), _JSON_FORM)
        yield fields
    if fields is None:
        refuse(path, None, _EMPTY, _JSON_FORM)


def _statement(record: Mapping[str, Any]) -> list[bytes] | None:
    """Head, relation, tail, then relations and values; None if the record is no statement."""
    ends = [key for key in record if key.endswith(("_h", "_t"))]
    relations = {key[:-2] for key in ends}
    if len(ends) != 2 or len(relations) != 1 or "" in relations:
        return None
    (relation,) = relations
    labels = [record[f"{relation}_h"], relation, record[f"{relation}_t"]]
    for role, values in record.items():
        if role != "N" and role not in ends:
            for value in values if isinstance(values, list) else [values]:
                labels += [role, value]
    if not all(isinstance(label, str) and label for label in labels):
        return None
    return [label.encode() for label in labels]


def _read(
    folder: Path,
    columns: str | None = None,
    *,
    rows: Callable[[Path, str | None], Iterator[Sequence[bytes]]],
    endings: tuple[str, ...],
    prefix: str = "",
    qualified: bool = False,
) -> GraphTables:
    """Files named ``prefix + split + ending`` with a row of labels per fact."""
    files = split_files(folder, endings, prefix)
    tables = label_rows({split: rows(path, columns) for split, path in files.items()}, qualified)
    return replace(tables, files=files)


read_csv = partial(_read, rows=_csv_rows, endings=(".csv",))
read_ntriples = partial(_read, rows=_nodes, endings=(".nt",))
read_statements = partial(_read, rows=_fields, endings=(".txt", ".csv", ""), qualified=True)
read_wikipeople = partial(
    _read, rows=_records, endings=(".json", ".jsonl"), prefix="n-ary_", qualified=True
)

_TIMED_FORM = "write head, relation, tail and time (or since and until), with tabs between them"


def read_timed(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.txt`` and so on with a time as in ICEWS, or an interval, which is ``since/until``.

    Whole numbers are in numeric order, other times in byte order, in which dates ascend.
    """
    return _timed_tables(text_splits(folder))


def read_known_file(path: PathName, context: str | None) -> GraphTables:
    """One file with lines as in a split of facts with this context; its split is called "known"."""
    if context == "qualifiers":
        return label_rows({"known": _fields(path)}, qualified=True)
    with regular_file(path) as place:
        if context == "time":
            return _timed_tables({"known": place})
        return labelled_tables({"known": place})


def _timed_tables(files: Mapping[str, Path]) -> GraphTables:
    n_tabs = {split: next(_checked(path)).count(b"\t") for split, path in files.items()}
    facts, entities, relations, labels = load_facts(
        dict(files), n_tabs, lambda path: deque(_checked(path), 0)
    )
    texts = [label.replace(b"\t", b"/") for label in labels.to_pylist()]
    try:
        times = sorted({*texts}, key=lambda time: (int(time), time))
    except ValueError:
        times = sorted({*texts})
    place = {time: i for i, time in enumerate(times)}
    for rows in facts.values():
        renumber_column(rows[:, 3], np.array([place[text] for text in texts], dtype=np.int32))
    return GraphTables(
        facts,
        entities,
        relations,
        times=[text_of(time) for time in times],
        files=files,
    )


def _checked(path: Path) -> Iterator[bytes]:
    """Lines up to the first malformed one, for which FileError is raised."""
    width = 0
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) not in (4, 5) or b"" in fields:
            refuse(path, line, quoted(text), _TIMED_FORM)
        if width and len(fields) != width:
            refuse(
                path, line, f"{len(fields)} columns, but {width} in the lines before", _TIMED_FORM
            )
        if b"\0" in text or b"\r" in text:
            refuse(path, line, f"a NUL byte or carriage return in {quoted(text)}", _TIMED_FORM)
        width = len(fields)
        yield text
    if not width:
        refuse(path, None, _EMPTY, _TIMED_FORM)
