"""Facts with qualifiers: comma-separated statements (WD50K, JF17K), and JSON lines (WikiPeople)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError, UsageError
from kgtrec.graph.id_files import lines_of, refuse, text_of
from kgtrec.graph.readers.common import GraphTables, in_byte_order, split_files

__all__ = ["read_statement_file", "read_statements", "read_wikipeople"]

_STEMS = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
_JSON_STEMS = {split: tuple(f"n-ary_{stem}" for stem in stems) for split, stems in _STEMS.items()}
_FORM = (
    "a line is head,relation,tail, and behind them a relation and a value for each qualifier, with "
    "commas between them"
)
_JSON_FORM = (
    'a line is {"P166_h": head, "P166_t": tail, "P585": [value, ...], ...} with labels as texts; '
    '"N" is passed over'
)


def read_statements(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.txt`` and so on as in StarE's repository: lines of 3, 5, 7, ... labels."""
    _no_columns(columns)
    files = split_files(folder, _STEMS, (".txt", ".csv", ""))
    return _tables(files, {split: _fields(path) for split, path in files.items()}, _FORM)


def read_statement_file(path: str | PathLike[str]) -> GraphTables:
    """One file with lines as in a split; its split is called "known"."""
    return _tables({"known": path}, {"known": _fields(path)}, _FORM)


def read_wikipeople(folder: Path, columns: str | None = None) -> GraphTables:
    """``n-ary_train.json`` and so on: roles and values, those of the primary triple by ``_h`` and
    ``_t`` behind its relation."""
    _no_columns(columns)
    files = split_files(folder, _JSON_STEMS, (".json", ".jsonl"))
    return _tables(files, {split: _records(path) for split, path in files.items()}, _JSON_FORM)


def _no_columns(columns: str | None) -> None:
    if columns is not None:
        raise UsageError(f"columns={columns!r}: statements are head, relation, tail, qualifiers")


def _fields(path: str | PathLike[str]) -> Iterator[list[bytes]]:
    for line, text in lines_of(path):
        fields = text.split(b",")
        if len(fields) < 3 or b"" in fields:
            refuse(path, line, f"{text_of(text[:60])!r}", _FORM)
        if not len(fields) & 1:
            what = f"{len(fields)} labels: the qualifier relation {text_of(fields[-1][:60])!r} has "
            refuse(path, line, f"{what}no value", _FORM)
        yield fields


def _records(path: Path) -> Iterator[list[bytes]]:
    for line, text in lines_of(path):
        try:
            record = json.loads(text)
            fields = _statement(record) if isinstance(record, Mapping) else None
        except (ValueError, RecursionError) as error:  # of text that is no UTF-8, too
            refuse(path, line, f"{text_of(text[:60])!r} ({error})", _JSON_FORM)
        if fields is None:
            refuse(path, line, f"{text_of(text[:60])!r}", _JSON_FORM)
        yield fields


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


def _tables(
    files: Mapping[str, str | PathLike[str]],
    splits: Mapping[str, Iterable[Sequence[bytes]]],
    form: str,
) -> GraphTables:
    """Numbers statements: entities and relations take turns in them."""
    numbers: tuple[dict[bytes, int], ...] = ({}, {})  # entities, relations
    coded = {}
    for split, rows in splits.items():
        flat, sizes = array("i"), array("q")
        for fields in rows:
            sizes.append(len(fields))
            for place, label in enumerate(fields):
                own = numbers[place & 1]
                flat.append(own.setdefault(label, len(own)))
        if not sizes:
            raise FileError(files[split], found="nothing: the file is empty", hint=form)
        coded[split] = np.frombuffer(flat, np.int32), np.frombuffer(sizes, np.int64)
    (entity_place, entities), (relation_place, relations) = map(in_byte_order, numbers)
    places = np.concatenate([entity_place, relation_place])
    triples, qualifiers = {}, {}
    for split, (codes, counts) in coded.items():
        ends = np.cumsum(counts)
        column = np.arange(len(codes)) - np.repeat(ends - counts, counts)
        ids: npt.NDArray[np.int32] = places[codes + (column & 1) * len(entity_place)]
        triples[split] = ids[column < 3].reshape(-1, 3)
        offsets = np.append(0, np.cumsum((counts - 3) // 2))
        qualifiers[split] = offsets, ids[column >= 3].reshape(-1, 2)
    return GraphTables(triples, entities, relations, qualifiers=qualifiers)
