"""Temporal facts: tab-separated head, relation, tail and time, or the ends of an interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from kgtrec._internal.locations import fetched
from kgtrec.errors import FileError, UsageError
from kgtrec.graph.id_files import lines_of, refuse, text_of
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.common import GraphTables, split_files
from kgtrec.graph.tsv_triples import load_facts, renumber_column

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
    with fetched(path) as place:
        return _tables({"known": place})


def _tables(files: Mapping[str, Path]) -> GraphTables:
    n_tabs = {split: _n_tabs(path) for split, path in files.items()}
    facts, entities, relations, labels = load_facts(dict(files), n_tabs, _explain)
    texts = [label.replace(b"\t", b"/") for label in labels.to_pylist()]
    times = _in_time_order(set(texts))
    place = {time: i for i, time in enumerate(times)}
    for rows in facts.values():
        renumber_column(rows[:, 3], np.array([place[text] for text in texts], dtype=np.int32))
    return GraphTables(
        facts,
        Labels.from_arrow(entities, ascending=True),
        Labels.from_arrow(relations, ascending=True),
        times=[text_of(time) for time in times],
    )


def _n_tabs(path: Path) -> int:
    """Tabs of the first line, which all lines have."""
    return next(_checked(path)).count(b"\t")


def _explain(path: Path) -> None:
    for _ in _checked(path):
        pass


def _checked(path: Path) -> Iterator[bytes]:
    """Lines, up to the first that is not as it must be, of which FileError tells."""
    width = 0
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) not in (4, 5) or b"" in fields:
            refuse(path, line, f"{text_of(text[:60])!r}", _FORM)
        if width and len(fields) != width:
            refuse(path, line, f"{len(fields)} columns after lines of {width}", _FORM)
        if b"\0" in text or b"\r" in text:
            refuse(path, line, f"NUL, or a carriage return, in {text_of(text[:60])!r}", _FORM)
        width = len(fields)
        yield text
    if not width:
        raise FileError(path, found="nothing: the file is empty", hint=_FORM)


def _in_time_order(times: set[bytes]) -> list[bytes]:
    try:
        return sorted(times, key=lambda time: (int(time), time))
    except ValueError:
        return sorted(times)
