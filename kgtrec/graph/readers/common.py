"""Common parts of the readers of graphs: their tables, rows by label, and rows by number."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arrays import Array, Bools, Int32, Int64
from kgtrec._internal.csr import offsets_of, spans
from kgtrec.errors import GraphWarning, PathName, refuse
from kgtrec.graph.id_files import arrow_bytes, lines_of, refuse_repeat, text_of
from kgtrec.graph.labels import MAX_ID, Labels, order_labels
from kgtrec.graph.triples import COLUMNS, SPLITS, names_of
from kgtrec.graph.tsv import check_folder, entries_of, pick_splits, quote_line, split_names

Triples = Int32

_LINES = 1 << 16  # lines read at once
_DIGITS = 18  # so many digits fit into int64
# Ids from here on count as damage unless the files declare the number of ids.
_LIKELY, _LIKELY_PER_TRIPLE = 1 << 20, 64


@dataclass(frozen=True, eq=False)
class GraphTables:
    """The result of a reader.

    - splits, (n, 3): Split name (train, valid, test) to rows head, relation, tail.
    - entities, relations: Labels in id order; None: ids are their own labels.
    - n_entities, n_relations: Numbers that the files declare, if there are no labels.
    - times: Labels of a fourth column of `splits`, in the order of time.
    - qualifiers: By split, offsets and (relation, value) pairs, as `Graph.from_arrays` takes them.
    - has_open_end: Labels of entities are whole numbers, and no file says how many there are.
    - files: By split, the file that it was read from, if a split is one file.
    - with_heading: Splits whose facts begin in the second line of their file.
    - notes: Sentences on what users should know about the files.
    """

    splits: dict[str, Array]
    entities: Sequence[str] | None = None
    relations: Sequence[str] | None = None
    n_entities: int | None = None
    n_relations: int | None = None
    times: Sequence[str] | None = None
    qualifiers: dict[str, tuple[Array, Array]] | None = None
    has_open_end: bool = False
    files: Mapping[str, Path] = field(default_factory=dict)
    with_heading: Collection[str] = ()
    notes: tuple[str, ...] = ()

    def line_of(self, split: str, row: int) -> int:
        """Return the line of a fact in its file."""
        return row + 1 + (split in self.with_heading)

    @property
    def labels(self) -> tuple[Any, Any]:
        """The labels of entities and of relations."""
        return self.entities, self.relations


def split_files(folder: Path, endings: Sequence[str], prefix: str = "") -> dict[str, Path]:
    """Find the files of the splits, plain or packed, in the order train, valid (or dev), test."""
    advice = "give the folder with the splits"
    names = [entry.name for entry in entries_of(folder, advice) if entry.is_file()]
    files = pick_splits(folder, names, split_names(endings, prefix))
    if not files:
        expected = ", ".join(f"{prefix}{split}{endings[0]}" for split in SPLITS)
        refuse(folder, None, "no split of this format", f"add at least one of {expected}")
    return files


def text_splits(folder: Path) -> dict[str, Path]:
    """Find text files of the splits; refuse or report files that look like further splits."""
    files = split_files(folder, (".txt", ".tsv", ""))
    check_folder(folder, files)
    return files


def id_column(path: Path, name: str, ids: Array, hint: str) -> Int64:
    """Return numbers as int64; FileError names the first that cannot be an id."""
    bad = (ids < 0) | (ids >= MAX_ID)
    if bad.any():
        row = int(np.argmax(bad))
        refuse(path, None, f"{name} is {ids[row]} in row {row}", hint)
    return ids.astype(np.int64)


def check_likely(
    files: Mapping[str, Path], splits: Mapping[str, Array], column: int, hint: str
) -> None:
    """Refuse an id far above the number of triples: all smaller ids would be candidates."""
    likely = max(_LIKELY, _LIKELY_PER_TRIPLE * sum(map(len, splits.values())))
    for split, rows in splits.items():
        largest = int(rows[:, column].max(initial=0))
        if largest >= likely:
            n_triples = sum(map(len, splits.values()))
            problem = f"{COLUMNS[column]} {largest} is too large for {n_triples:,} triples"
            refuse(files[split], None, problem, hint)


def label_rows(
    files: Mapping[str, Iterable[Sequence[bytes]]], qualified: bool = False
) -> GraphTables:
    """Number facts in the order of their labels: head, relation, tail, then any qualifiers."""
    numbers: tuple[dict[bytes, int], ...] = ({}, {})  # entities, relations
    coded = {}
    for split, rows in files.items():
        flat, sizes = array("i"), array("q")
        for fields in rows:
            sizes.append(len(fields))
            flat.extend(
                ids.setdefault(label, len(ids)) for ids, label in zip(cycle(numbers), fields)
            )
        coded[split] = np.array(flat, np.int32), np.array(sizes, np.int64)
    (entity_ids, entities), (relation_ids, relations) = map(in_id_order, numbers)
    all_ids = np.concatenate([entity_ids, relation_ids])
    triples, qualifiers = {}, {}
    for split, (codes, counts) in coded.items():
        column = spans(0, counts)[1]
        ids: Int32 = all_ids[codes + (column & 1) * len(entity_ids)]
        triples[split] = ids[column < 3].reshape(-1, 3)
        qualifiers[split] = offsets_of((counts - 3) // 2), ids[column >= 3].reshape(-1, 2)
    return GraphTables(triples, entities, relations, qualifiers=qualifiers if qualified else None)


def outsiders(
    files: Mapping[str, Path], tables: GraphTables, known: Sequence[Bools]
) -> Iterator[tuple[Path, int, int, str, int]]:
    """Yield, per split with unknown labels, where the first is and how many lines have one.

    Items: file, line, column, label, number of lines. ``known`` masks entities and relations.
    """
    for split, path in files.items():
        rows = tables.splits[split]
        outside = ~np.stack([known[at & 1][rows[:, at]] for at in range(3)], axis=1)
        if outside.any():
            row, at = map(int, np.argwhere(outside)[0])
            label = tables.labels[at & 1][int(rows[row, at])]
            yield path, tables.line_of(split, row), at, label, int(outside.any(axis=1).sum())


def sort_labels(arrays: list[Any]) -> Labels:
    """Return the distinct labels of Arrow arrays, in the order of `order_labels`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    every = pc.unique(pa.concat_arrays(arrays))
    return order_labels(every.take(pc.sort_indices(every)))[0]


def in_id_order(numbers: Mapping[bytes, int]) -> tuple[Triples, Labels]:
    """Order labels by `order_labels`; return the id of each number, int32 (n,), and the labels."""
    ordered = sorted(numbers)
    ids_of_numbers = np.empty(len(ordered), dtype=np.int32)
    ids_of_numbers[[numbers[label] for label in ordered]] = np.arange(len(ordered), dtype=np.int32)
    labels, ids = order_labels(arrow_bytes(ordered))
    return ids_of_numbers if ids is None else ids[ids_of_numbers], labels


def read_number_triples(
    files: Mapping[str, Path],
    labels: Sequence[Labels | None],
    columns: str,
    form: str,
    lines_in: Callable[[Path], Iterator[tuple[int, bytes]]] = lines_of,
) -> GraphTables:
    """Read lines of three numbers in the order of `columns`.

    ``labels`` are those of entities and of relations; numbers must be below their lengths.
    """
    sizes = [MAX_ID if known is None else len(known) for known in labels]
    limits = np.array([sizes[c == "r"] for c in columns])
    splits = {
        split: _number_rows(path, lines_in(path), columns, limits, form)
        for split, path in files.items()
    }
    return GraphTables({**splits}, labels[0], labels[1])


def _number_rows(
    path: PathName, lines: Iterator[tuple[int, bytes]], columns: str, limits: Int64, form: str
) -> Triples:
    """Read the lines of a file as head, relation, tail: int32 (n, 3)."""
    parts = [np.empty((0, 3), np.int32)]
    while batch := list(islice(lines, _LINES)):
        rows = [text.split() for _, text in batch]
        fields = [*chain.from_iterable(rows)]
        sound = {*map(len, rows)} == {3} and b"".join(fields).isdigit()
        sound = sound and max(map(len, fields)) <= _DIGITS
        if not sound or ((numbers := np.array(rows).astype(np.int64)) >= limits).any():
            _refuse_first(path, batch, columns, limits, form)
        parts.append(numbers[:, [columns.index(c) for c in "hrt"]].astype(np.int32))
    return np.concatenate(parts)


def _refuse_first(
    path: PathName, batch: list[tuple[int, bytes]], columns: str, limits: Int64, form: str
) -> None:
    """Raise FileError for the first bad line of a batch."""
    names = names_of(columns)
    for number, text in batch:
        fields = text.split()
        if len(fields) != 3 or not all(map(bytes.isdigit, fields)):
            refuse(path, number, quote_line(text), form)
        for noun, digits, limit in zip(names, fields, limits, strict=True):
            if len(digits) > _DIGITS or int(digits) >= limit:
                problem = f"{noun} {text_of(digits[:60])} is not below {limit}"
                refuse(path, number, problem, "correct the number")


class NumberedLabels(NamedTuple):
    """The labels of a dictionary.

    - labels: In the order of their numbers, all distinct.
    - lines: The line of each number.
    - repeated: Labels with several numbers, and these numbers. Only the first number keeps the
      label; the others have the label with their number behind it.
    """

    labels: Labels
    lines: list[int]
    repeated: dict[str, list[int]]


def labels_by_id(
    path: PathName, rows: Iterable[tuple[int, bytes, bytes, bytes]], hint: str, n: int | None = None
) -> NumberedLabels:
    """Put labels in id order, from rows (line, text, id, label); `n` is the number of ids.

    Repeated labels become distinct, with a GraphWarning.
    """
    names: dict[int, bytes] = {}
    at_id: dict[Any, int] = {}
    for line, text, digits, label in rows:
        sound = label and digits.isdigit() and len(digits) <= _DIGITS
        if not sound or (n is not None and int(digits) >= n):
            less = "" if n is None else f" is not a label with an id below {n}"
            refuse(path, line, f"{quote_line(text)}{less}", hint)
        number = int(digits)
        refuse_repeat(path, at_id, number, line, f"id {number!r}", "keep one of the lines")
        names[number] = label
    due = len(names) if n is None else n
    if not due:
        refuse(path, None, "no labels", hint)
    if (missing := next((i for i in range(due) if i not in names), None)) is not None:
        says = "" if n is None else "the first line says "
        refuse(path, None, f"no line for id {missing}, but {says}{due} ids", hint)
    labels, repeated = _distinct([names[i] for i in range(due)])
    if repeated:
        first, numbers = next(iter(repeated.items()))
        last, n_further = labels[numbers[-1]], len(repeated) - 1
        note_on_further = f" ({n_further:,} more labels have several numbers)" if n_further else ""
        warnings.warn(
            f"{path}: label {first!r} has the numbers {' and '.join(map(str, numbers))}"
            f"{note_on_further}; number {numbers[-1]} is called {text_of(last)!r} here",
            GraphWarning,
            stacklevel=2,
        )
    lines = [at_id[i] for i in range(due)]
    return NumberedLabels(Labels.from_arrow(arrow_bytes(labels)), lines, repeated)


def _distinct(names: list[bytes]) -> tuple[list[bytes], dict[str, list[int]]]:
    """Rename repeated labels. Return all labels, and the numbers of each repeated one."""
    if len(known := set(names)) == len(names):
        return names, {}
    numbers: dict[bytes, list[int]] = {}
    for number, label in enumerate(names):
        numbers.setdefault(label, []).append(number)
    labels, repeated = list(names), {}
    for label, same in numbers.items():
        if len(same) > 1:
            repeated[text_of(label)] = same
        for number in same[1:]:
            new = b"%s#%d" % (label, number)
            while new in known:
                new += b"#"
            known.add(new)
            labels[number] = new
    return labels, repeated
