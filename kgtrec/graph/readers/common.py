"""What readers of graphs share: the tables that they return, rows by label and by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from kgtrec._internal.csr import Array, Int32, Int64
from kgtrec.errors import FileError, PathName, choose
from kgtrec.graph.id_files import refuse, text_of
from kgtrec.graph.triples import COLUMNS, SPLITS

Triples = Int32

MAX_ID = (1 << 31) - 1
_LINES = 1 << 16  # lines read at once
_PACKED = ("", ".gz", ".zst")
_ORDERS = ("hrt", "htr", "rht", "rth", "thr", "trh")
_DIGITS = 18  # so many digits fit into int64
# Ids from here on count as damage unless the files declare the number of ids.
_LIKELY, _LIKELY_PER_TRIPLE = 1 << 20, 64


@dataclass(frozen=True, eq=False)
class GraphTables:
    """What a reader found.

    - splits, (n, 3): Split name (train, valid, test) to rows head, relation, tail.
    - entities, relations: Labels in id order; None: ids are their own labels.
    - n_entities, n_relations: Numbers that the files declare, if there are no labels.
    - times: Labels of a fourth column of `splits`, in the order of time.
    - qualifiers: By split, offsets and (relation, value) pairs, as `Graph.from_arrays` takes them.
    """

    splits: dict[str, Array]
    entities: Sequence[str] | None = None
    relations: Sequence[str] | None = None
    n_entities: int | None = None
    n_relations: int | None = None
    times: Sequence[str] | None = None
    qualifiers: dict[str, tuple[Array, Array]] | None = None


def checked_columns(columns: str | None) -> str | None:
    """An order of columns, such as "htr"; UsageError for anything else."""
    if columns is not None:
        choose("columns", columns, _ORDERS)
    return columns


def split_files(folder: Path, endings: Sequence[str], prefix: str = "") -> dict[str, Path]:
    """Files of the splits, plain or packed, in the order train, valid (or dev), test."""
    if not folder.is_dir():
        problem = "a file, not a folder" if folder.exists() else "this folder does not exist"
        raise FileError(folder, found=problem, hint="give the folder with the splits")
    files: dict[str, Path] = {}
    for split in SPLITS:
        stems = ("valid", "dev") if split == "valid" else (split,)
        names = [prefix + s + e + p for s in stems for e in endings for p in _PACKED]
        there = [folder / name for name in names if (folder / name).is_file()]
        if len(there) > 1:
            both = " and ".join(repr(path.name) for path in there)
            raise FileError(folder, found=f"two files for split {split!r}: {both}",
                            hint="keep one of them")  # fmt: skip
        if there:
            files[split] = there[0]
    if not files:
        expected = ", ".join(f"{prefix}{split}{endings[0]}" for split in SPLITS)
        raise FileError(
            folder, found="no split of this format", hint=f"add at least one of {expected}"
        )
    return files


def check_likely(
    files: Mapping[str, Path], splits: Mapping[str, Array], column: int, hint: str
) -> None:
    """Refuse a number far beyond what triples can name: each number below it would count as another
    entity (or relation), and as a candidate.
    """
    likely = max(_LIKELY, _LIKELY_PER_TRIPLE * sum(map(len, splits.values())))
    for split, rows in splits.items():
        largest = int(rows[:, column].max(initial=0))
        if largest >= likely:
            n_triples = sum(map(len, splits.values()))
            what = f"{COLUMNS[column]} {largest} is too large for {n_triples:,} triples"
            raise FileError(files[split], found=what, hint=hint)


def label_rows(
    files: Mapping[str, Iterable[tuple[bytes, bytes, bytes]]],
) -> GraphTables:
    """Numbers rows of head, relation and tail labels: ids in byte order of the labels."""
    entities: dict[bytes, int] = {}
    relations: dict[bytes, int] = {}
    coded = {}
    for split, rows in files.items():
        flat = [
            code
            for head, relation, tail in rows
            for code in (
                entities.setdefault(head, len(entities)),
                relations.setdefault(relation, len(relations)),
                entities.setdefault(tail, len(entities)),
            )
        ]
        coded[split] = np.array(flat, dtype=np.int32).reshape(-1, 3)
    places, names = zip(*map(in_byte_order, (entities, relations)), strict=True)
    splits = {
        split: np.stack([places[c == 1][rows[:, c]] for c in range(3)], axis=1)
        for split, rows in coded.items()
    }
    return GraphTables(splits, *names)


def in_byte_order(numbers: Mapping[bytes, int]) -> tuple[Triples, list[str]]:
    """Place of every number's label among the sorted labels, and the sorted labels."""
    ordered = sorted(numbers)
    place = np.empty(len(ordered), dtype=np.int32)
    place[[numbers[label] for label in ordered]] = np.arange(len(ordered), dtype=np.int32)
    return place, [text_of(label) for label in ordered]


def number_rows(
    path: PathName,
    lines: Iterator[tuple[int, bytes]],
    columns: str,
    n_entities: int,
    n_relations: int,
    form: str,
) -> Triples:
    """Triples from lines of three numbers, shape (n, 3), as head, relation, tail."""
    limits = np.array([n_relations if c == "r" else n_entities for c in columns])
    parts = [np.empty((0, 3), np.int32)]
    while batch := list(islice(lines, _LINES)):
        rows = [text.split() for _, text in batch]
        if set(map(len, rows)) != {3} or not b"".join(chain.from_iterable(rows)).isdigit():
            _refuse_first(path, batch, columns, limits, form)
        if max(map(len, chain.from_iterable(rows))) > _DIGITS:
            _refuse_first(path, batch, columns, limits, form)
        numbers = np.array(rows).astype(np.int64)
        if (numbers >= limits).any():
            _refuse_first(path, batch, columns, limits, form)
        parts.append(numbers[:, [columns.index(c) for c in "hrt"]].astype(np.int32))
    return np.concatenate(parts)


def _refuse_first(
    path: PathName,
    batch: list[tuple[int, bytes]],
    columns: str,
    limits: Int64,
    form: str,
) -> None:
    """Name the first bad line of a batch that has one."""
    names = [COLUMNS["hrt".index(c)] for c in columns]
    for number, text in batch:
        fields = text.split()
        if len(fields) != 3 or not all(field.isdigit() for field in fields):
            refuse(path, number, f"{text_of(text[:60])!r}", form)
        for what, field, limit in zip(names, fields, limits, strict=True):
            if len(field) > _DIGITS or int(field) >= limit:
                problem = f"{what} {text_of(field[:60])} is not below {limit}"
                refuse(path, number, problem, "correct the number")


def labels_by_id(path: Path, rows: Iterable[tuple[int, Sequence[bytes]]], hint: str) -> list[str]:
    """Labels in id order from n rows (id, label) with the ids 0 to n - 1."""
    names: dict[int, bytes] = {}
    lines: dict[bytes, int] = {}
    for line, fields in rows:
        number = fields[0] if len(fields) == 2 else b""
        if not number.isdigit() or len(number) > _DIGITS or not fields[1]:
            refuse(path, line, f"{text_of(b' '.join(fields)[:60])!r}", hint)
        label = fields[1]
        if int(number) in names or label in lines:
            what = f"id {int(number)}" if int(number) in names else f"label {text_of(label)!r}"
            refuse(path, line, f"{what} is repeated", "keep one of the lines")
        names[int(number)], lines[label] = label, line
    missing = next((i for i in range(len(names)) if i not in names), None)
    if missing is not None or not names:
        problem = "no labels" if not names else f"no line for id {missing}, but {len(names)} ids"
        raise FileError(path, found=problem, hint=hint)
    return [text_of(names[i]) for i in range(len(names))]
