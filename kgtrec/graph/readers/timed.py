"""Temporal facts: tab-separated head, relation, tail and time, or the ends of an interval."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from kgtrec.errors import FileError, UsageError
from kgtrec.graph.id_files import lines_of, refuse, text_of
from kgtrec.graph.readers.common import GraphTables, split_files

__all__ = ["read_timed", "read_timed_file"]

_STEMS = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
_FORM = "a line is head, relation, tail and time, or since and until, with tabs between them"


def read_timed(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.txt`` and so on with four columns, as ICEWS has them; five are an interval's ends.

    An interval is one time, named ``since/until``. Times that are all whole numbers are in the
    order of these, others in byte order, in which dates such as 2014-07-01 ascend.
    """
    if columns is not None:
        raise UsageError(f"columns={columns!r}: a timed graph has head, relation, tail, time")
    return _tables(split_files(folder, _STEMS, (".txt", ".tsv", "")))


def read_timed_file(path: str | PathLike[str]) -> GraphTables:
    """One file with lines as in a split; its split is called "known"."""
    return _tables({"known": path})


def _tables(files: Mapping[str, str | PathLike[str]]) -> GraphTables:
    codes: tuple[dict[bytes, int], ...] = ({}, {}, {})  # entities, relations, times
    rows = {split: _coded(path, codes) for split, path in files.items()}
    kinds = (0, 1, 0, 2)
    ordered = [sorted(codes[0]), sorted(codes[1]), _in_time_order(codes[2])]
    places = []
    for names, numbers in zip(ordered, codes, strict=True):
        place = np.empty(len(names), dtype=np.int32)
        place[[numbers[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        places.append(place)
    splits = {
        split: np.stack([places[kind][coded[:, c]] for c, kind in enumerate(kinds)], axis=1)
        for split, coded in rows.items()
    }
    entities, relations, times = ([text_of(name) for name in names] for names in ordered)
    return GraphTables(splits, entities, relations, times=times)


def _coded(path: str | PathLike[str], codes: tuple[dict[bytes, int], ...]) -> np.ndarray:
    entities, relations, times = codes
    flat: list[int] = []
    width = 0
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) not in (4, 5) or b"" in fields:
            refuse(path, line, f"{text_of(text[:60])!r}", _FORM)
        if width and len(fields) != width:
            refuse(path, line, f"{len(fields)} columns after lines of {width}", _FORM)
        width = len(fields)
        head, relation, tail = fields[:3]
        flat += (
            entities.setdefault(head, len(entities)),
            relations.setdefault(relation, len(relations)),
            entities.setdefault(tail, len(entities)),
            times.setdefault(b"/".join(fields[3:]), len(times)),
        )
    if not flat:
        raise FileError(path, found="nothing: the file is empty", hint=_FORM)
    return np.array(flat, dtype=np.int32).reshape(-1, 4)


def _in_time_order(times: dict[bytes, int]) -> list[bytes]:
    try:
        return sorted(times, key=lambda time: (int(time), time))
    except ValueError:
        return sorted(times)
