"""Text: CSV, columns in any order, N-Triples, facts with qualifiers, facts with a time."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.structured import parse_json
from kgtrec.errors import PathName, refuse
from kgtrec.graph.id_files import bytes_of, lines_of, read_delimited_rows, regular_file, text_of
from kgtrec.graph.readers.common import GraphTables, label_rows, split_files, text_splits
from kgtrec.graph.readers.faults import refuse_time
from kgtrec.graph.readers.fields import add_notes, below_headings, fact_tables, read_label_triples
from kgtrec.graph.readers.headings import FURTHER, Heading, parse_column_names
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv import quote_line, renumber_column

_DECLARE = (
    "if it is a triple, begin the file with a line of column names (head,relation,tail in any "
    "order), or declare their order, as in csv,hrt:DIR; if it names the columns, rename them to "
    "head, relation and tail"
)


def read_tab_separated(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train.txt`` and so on; columns are hrt unless declared or named in a heading."""
    return read_label_triples(text_splits(folder), columns, form="tsv")


def read_multihopkg(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train.triples`` and so on: head, tail, relation."""
    return read_label_triples(split_files(folder, (".triples",)), columns or "htr")


def read_csv(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train.csv`` and so on; the first line names the columns, unless they are declared."""
    files = split_files(folder, (".csv",))
    headings = {
        split: heading for split, path in files.items() if (heading := _csv_heading(path, columns))
    }

    def load(with_heading: frozenset[str]) -> GraphTables:
        rows = {
            split: _csv_rows(path, headings[split] if split in with_heading else None, columns)
            for split, path in files.items()
        }
        return replace(label_rows(rows), files=files, with_heading=with_heading)

    as_before = all(heading.labels == [*map(str.encode, COLUMNS)] for heading in headings.values())
    return below_headings(headings, load, is_required=columns is None or as_before)


def _csv_heading(path: Path, columns: str | None) -> Heading | None:
    """Return the first line if it names the columns; FileError if it must and does not."""
    _, first = next(read_delimited_rows(path, ",", "correct the line"), (1, []))
    if not first:
        refuse(path, None, "no triples: the file is empty", "add triples, or remove the file")
    words = [field.strip().lower() for field in first]
    if twice := [name for name in COLUMNS if words.count(name) > 1]:
        refuse(path, 1, f"two columns {twice[0]!r}", "keep one of them")
    letters = parse_column_names(words, others=columns is None or set(COLUMNS) <= set(words))
    if columns is None and not letters:
        problem = f"{','.join(first)[:60]!r} does not name columns head, relation and tail"
        refuse(path, 1, problem, _DECLARE)
    order = letters.replace(FURTHER, "")
    if letters and columns not in (None, order):
        problem = f"the columns are {', '.join(first)}, but declared as {columns}"
        refuse(path, 1, problem, "leave the declaration out")
    line = b"\t".join(map(bytes_of, words))
    return Heading(path, line, letters) if letters else None


def _csv_rows(path: Path, heading: Heading | None, columns: str | None) -> Iterator[list[bytes]]:
    """Yield head, relation and tail of each line below the heading."""
    order = heading.columns if heading else columns or ""
    fields_of_fact = [order.index(letter) for letter in "hrt"]
    for line, fields in read_delimited_rows(path, ",", "correct the line"):
        if line == 1 and heading:
            continue
        if len(fields) != len(order) or not all(fields[index] for index in fields_of_fact):
            problem = f"{','.join(fields)[:60]!r} does not fill {len(order)} columns"
            refuse(path, line, problem, "correct the line")
        yield [bytes_of(fields[index]) for index in fields_of_fact]


_NODE = rb"<([^<>\"{}|^`\\\s]+)>|(_:[^\s<>\"]+)"
_LINE = re.compile(rb"\s*(?:%s)\s+<([^<>\"{}|^`\\\s]+)>\s+(?:%s)\s*\.\s*(?:#.*)?" % (_NODE, _NODE))
_LITERAL = re.compile(rb"\s*\S+\s+<[^<>]*>\s*\"")
_HINT = "write <head> <relation> <tail> . with IRIs (without escapes) or blank nodes _:name"


def _nodes(path: Path, _: Any = None) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield head, relation and tail of N-Triples: IRIs without brackets, or ``_:name``."""
    for line, text in lines_of(path, gaps=True):
        match = _LINE.fullmatch(text)
        if match is not None:
            head, blank_head, relation, tail, blank_tail = match.groups()
            yield head or blank_head or b"", relation, tail or blank_tail or b""
        elif text.strip() and not text.lstrip().startswith(b"#"):
            if _LITERAL.match(text):
                problem = f"a literal in {quote_line(text)}, which is not an entity"
                refuse(path, line, problem, "leave triples with literals out of the file")
            refuse(path, line, quote_line(text), _HINT)


_FORM = (
    "write head, relation, tail, then a relation and a value for each qualifier, with commas or "
    "tabs between them"
)
_HYPE_FORM = "write the relation, then two or more entities, with tabs between them"
_EMPTY = "no facts: the file is empty"
_JSON_FORM = (
    'write {"P166_h": head, "P166_t": tail, "P585": [value, ...], ...} with labels as texts; '
    '"N" is ignored'
)


def _fields(path: PathName, _: Any = None) -> Iterator[list[bytes]]:
    """Yield the 3, 5, 7, ... labels of each line: a triple, then its qualifiers.

    Commas separate them as in StarE's repository, or tabs as in HyNT's, whose first line is the
    number of facts.
    """
    n_facts, declared, separator = 0, None, b""
    for line, text in lines_of(path):
        if line == 1 and text.strip().isdigit():
            declared = int(text)
            continue
        separator = separator or (b"\t" if b"\t" in text else b",")
        fields = text.split(separator)
        if len(fields) < 3 or b"" in fields:
            refuse(path, line, quote_line(text), _FORM)
        if not len(fields) & 1:
            problem = f"{len(fields)} labels: the qualifier relation {quote_line(fields[-1])} has "
            refuse(path, line, f"{problem}no value", _FORM)
        n_facts += 1
        yield fields
    if declared not in (None, n_facts):
        problem = f"{n_facts:,} facts, but the first line says {declared:,}"
        hint = "copy the file again if it is cut short, or correct its first line"
        refuse(path, None, problem, hint)
    if not n_facts:
        refuse(path, None, _EMPTY, _FORM)


def _roles(path: Path, _: Any = None) -> Iterator[list[bytes]]:
    """Yield facts of HypE's lines, which have a relation and its entities.

    The first two entities are head and tail. Others are values of qualifiers, which are named by
    the relation and the position.
    """
    fields = None
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) < 3 or b"" in fields:
            refuse(path, line, quote_line(text), _HYPE_FORM)
        relation, head, tail, *others = fields
        row = [head, relation, tail]
        for position, value in enumerate(others, start=3):
            row += [b"%s#%d" % (relation, position), value]
        yield row
    if fields is None:
        refuse(path, None, _EMPTY, _HYPE_FORM)


def _records(path: Path, _: Any = None) -> Iterator[list[bytes]]:
    """Yield facts of JSON lines of roles and values.

    The roles of head and tail end in ``_h`` and ``_t``, or one role has a list of both.
    """
    fields = None
    for line, text in lines_of(path):
        try:
            record = parse_json(text)
            fields = _statement(record) if isinstance(record, Mapping) else None
        except ValueError as error:  # also for text that is not UTF-8
            refuse(path, line, f"{quote_line(text)} ({error})", _JSON_FORM)
        if fields is None:
            refuse(path, line, quote_line(text), _JSON_FORM)
        yield fields
    if fields is None:
        refuse(path, None, _EMPTY, _JSON_FORM)


def _statement(record: Mapping[str, Any]) -> list[bytes] | None:
    """Return head, relation, tail, then relations and values; None for other lines."""
    roles = [role for role in record if role != "N"]
    ends = [role for role in roles if role.endswith(("_h", "_t"))]
    relations = {role[:-2] for role in ends}
    labels = []
    if len(ends) == 2 and len(relations) == 1 and "" not in relations:
        (relation,) = relations
        labels = [record[f"{relation}_h"], relation, record[f"{relation}_t"]]
    elif not ends and roles and _is_pair(record[roles[0]]):  # HINGE's form of JF17K
        head, tail = record[roles[0]]
        labels, ends = [head, roles[0], tail], roles[:1]
    for role in roles:
        if role not in ends:
            values = record[role]
            for value in values if isinstance(values, list) else [values]:
                labels += [role, value]
    if len(labels) < 3 or not all(isinstance(label, str) and label for label in labels):
        return None
    return [label.encode() for label in labels] if ends else None


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2


def _read(
    folder: Path,
    columns: str | None = None,
    *,
    rows: Callable[[Path, str | None], Iterator[Sequence[bytes]]],
    endings: tuple[str, ...],
    prefix: str = "",
    qualified: bool = False,
) -> GraphTables:
    """Read files named ``prefix + split + ending``, which ``rows`` turns into labels per fact."""
    files = split_files(folder, endings, prefix)
    tables = label_rows({split: rows(path, columns) for split, path in files.items()}, qualified)
    return add_notes(replace(tables, files=files), has_lines=False)


read_ntriples = partial(_read, rows=_nodes, endings=(".nt",))
read_statements = partial(_read, rows=_fields, endings=(".txt", ".csv", ""), qualified=True)
read_hype = partial(_read, rows=_roles, endings=(".txt", ".tsv", ""), qualified=True)
read_wikipeople = partial(
    _read, rows=_records, endings=(".json", ".jsonl"), prefix="n-ary_", qualified=True
)

_TIMED_FORM = "write head, relation, tail and time (or since and until), with tabs between them"


def read_timed(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train.txt`` and so on with a time as in ICEWS, or an interval ``since/until``.

    Numbers are in numeric order, other times in byte order, in which dates ascend. A fifth column
    that is always 0 or -1, as in RE-Net's files, is not the end of an interval.
    """
    return _read_timed_files(text_splits(folder), columns)


def read_known_file(path: PathName, context: str | None, columns: str | None = None) -> GraphTables:
    """Read a file like a split of facts with this context; its split is called "known".

    The order of columns is that of facts with qualifiers, ``columns``, or hrt; a first line that
    names the columns may say another one instead of hrt.
    """
    if context == "qualifiers":
        return label_rows({"known": _fields(path)}, qualified=True)
    with regular_file(path) as local_path:
        if context == "time":
            return _read_timed_files({"known": local_path}, columns)
        return read_label_triples({"known": local_path}, columns)


def _read_timed_files(files: Mapping[str, Path], columns: str | None = None) -> GraphTables:
    every = [*files.values()]
    n_tabs = {split: next(_check_lines(path, every)).count(b"\t") for split, path in files.items()}
    tables, labels = fact_tables(
        files, n_tabs, lambda path: deque(_check_lines(path, every), 0), columns, form="timed"
    )
    parts = [tuple(part.strip() for part in label.split(b"\t")) for label in labels.to_pylist()]
    ends = {part[1:] for part in parts}
    if len(ends) == 1 and ends <= {(b"0",), (b"-1",)}:
        parts = [part[:1] for part in parts]
        note = (
            f"the fifth column is always {ends.pop()[0].decode()}, as in RE-Net's files, so it is "
            "ignored: the fourth is the time"
        )
        tables = replace(tables, notes=(*tables.notes, note))
    times = sorted({*parts}, key=_time_order(parts))
    rank = {time: i for i, time in enumerate(times)}
    for rows in tables.splits.values():
        renumber_column(rows[:, 3], np.array([rank[part] for part in parts], dtype=np.int32))
    return replace(tables, times=[text_of(b"/".join(time)) for time in times])


_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?")
_DIGIT = re.compile(rb"[0-9]")


def _time_order(times: Collection[tuple[bytes, ...]]) -> Callable[[tuple[bytes, ...]], Any]:
    """Return a sort key of times (points or intervals): by number, or by bytes.

    Words without a digit, as for an open interval, do not prevent the order by number: as a start
    they come first of all times, as an end last.
    """
    if any(_DIGIT.search(part) and not _NUMBER.fullmatch(part) for time in times for part in time):
        return lambda time: b"/".join(time)

    def key(time: tuple[bytes, ...]) -> Any:
        numbers = [
            Fraction(part.decode()) if _NUMBER.fullmatch(part) else (math.inf if at else -math.inf)
            for at, part in enumerate(time)
        ]
        return numbers, time

    return key


def _check_lines(path: Path, files: Collection[Path]) -> Iterator[bytes]:
    """Yield lines; FileError for the first malformed one."""
    width = 0
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) not in (4, 5) or b"" in fields or (width and len(fields) != width):
            refuse_time(path, line, text, width, files, _TIMED_FORM)
        if b"\0" in text or b"\r" in text:
            refuse(path, line, f"a NUL byte or carriage return in {quote_line(text)}", _TIMED_FORM)
        width = len(fields)
        yield text
    if not width:
        refuse(path, None, _EMPTY, _TIMED_FORM)
