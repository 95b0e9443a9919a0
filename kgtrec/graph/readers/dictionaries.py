"""Dictionaries beside text triples: files that number a graph's entities and relations.

Other programs number entities by a file: ``entity2id.txt``, ``entities.dict``, ``entities.txt``
(line by line), MINERVA's ``vocab/entity_vocab.json``, LibKGE's ``entity_ids.del``; and so for
relations. ``stat.txt`` has only the sizes. The columns of these programs' scores follow such
numbers, and include entities that no triple names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgtrec._internal.arrays import Int32, Int64
from kgtrec.errors import FileError, refuse
from kgtrec.graph.id_files import bytes_of, lines_of
from kgtrec.graph.labels import Labels, whole_numbers
from kgtrec.graph.readers.common import GraphTables, NumberedLabels, labels_by_id
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv import quote_line, renumber_column

KINDS = ("entity", "relation")
PLURALS = ("entities", "relations")
_WORDS = {"entity": "(?:entity|entities|ents?)", "relation": "(?:relations?|rels?)"}
_PACKED = r"(?:\.gz|\.zst)?"
_NUMBERED = {
    kind: re.compile(
        rf"(?:{word}_?(?:2|to)_?ids?|{word}_ids?|ids?_?(?:2|to)_?{word})"
        rf"\.(?:txt|tsv|dict|del|json){_PACKED}|{word}\.dict{_PACKED}|vocab/{word}\w*\.json",
        re.IGNORECASE,
    )
    for kind, word in _WORDS.items()
}
_LISTED = {
    kind: re.compile(rf"{word}\.(?:txt|tsv){_PACKED}", re.IGNORECASE)
    for kind, word in _WORDS.items()
}
_UNREAD = re.compile(
    r"(?:entity|entities|ents?|nodes?)[_-]?(?:2|to)?[_-]?"
    r"(?:ids?|idx|ix|index|indices|num|numbers?|map|mapping|dict)\..+"
    r"|(?:idx|ix|index|num)[_-]?(?:2|to)[_-]?(?:entity|entities|ents?|nodes?)\..+",
    re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(r"ids?_?(2|to)|.*\.(dict|del|tsv)\b", re.IGNORECASE)
_FORM = "each line must be label<TAB>number (or number<TAB>label), with numbers from 0"
_STAT = "stat.txt"


class Dictionary(NamedTuple):
    """The labels of one file in the order of their numbers.

    - path: The file.
    - numbered: Labels, the line of each, and labels with several numbers.
    - is_list: Numbers are those of lines, which the file does not write out.
    """

    path: Path
    numbered: NumberedLabels
    is_list: bool

    @property
    def labels(self) -> Labels:
        """Labels in the order of their numbers."""
        return self.numbered.labels


def dictionary_files(folder: Path) -> dict[str, Path]:
    """Find files with names of dictionaries, and ``stat.txt``, in a folder; return them by name."""
    names = [path.name for path in folder.iterdir() if path.is_file()]
    names += [f"vocab/{path.name}" for path in folder.glob("vocab/*.json")]
    patterns = [*_NUMBERED.values(), *_LISTED.values()]
    return {
        name: folder / name
        for name in sorted(names)
        if name == _STAT or any(pattern.fullmatch(name) for pattern in patterns)
    }


def find_dictionary(
    folder: Path, kind: str, notes: list[str], lists: bool = True
) -> Dictionary | None:
    """Find the dictionary of a kind ("entity" or "relation"), or None.

    FileError if two files contradict each other. ``notes`` receives a sentence for each file that
    is not used. Without ``lists``, only files that write numbers count.
    """
    files = dictionary_files(folder)
    numbered = [
        _read_numbered(path) for name, path in files.items() if _NUMBERED[kind].fullmatch(name)
    ]
    for other in numbered[1:]:
        if other.labels != numbered[0].labels:
            first, second = numbered[0].path, other.path.name
            number, both = _first_difference(numbered[0].labels, other.labels)
            problem = f"number {number} is {both[0]} here, but {both[1]} in {second}"
            refuse(first, None, problem, "keep the file with the numbers of your model")
    best = numbered[0] if numbered else None
    for name, path in files.items():
        if not lists or not _LISTED[kind].fullmatch(name):
            continue
        listed = _read_list(path)
        if isinstance(listed, str):
            notes.append(f"{name} is not used: {listed}")
        elif best is None:
            best = listed
        elif best.labels != listed.labels:
            notes.append(f"{name} is not used: its order differs from that of {best.path.name}")
    return best


def _first_difference(labels: Labels, others: Labels) -> tuple[int, list[str]]:
    """Return the first number with different labels, and both labels for messages."""
    shortest = min(len(labels), len(others))
    number = next((i for i in range(shortest) if labels[i] != others[i]), shortest)
    return number, [repr(x[number]) if number < len(x) else "missing" for x in (labels, others)]


def _read_numbered(path: Path) -> Dictionary:
    """Read a dictionary with numbers; FileError if the file is not one."""
    if path.suffix == ".json":
        return Dictionary(path, labels_by_id(path, _json_rows(path), _FORM), False)
    lines = list(lines_of(path))
    rows = _rows(path, lines)
    if rows is None:
        bad = next((line for line in lines if not line[1].rpartition(b"\t")[2].isdigit()), None)
        line, text = bad or (lines[0] if lines else (None, b""))
        refuse(path, line, quote_line(text) if lines else "no labels: the file is empty", _FORM)
    n, numbered = rows
    return Dictionary(path, labels_by_id(path, numbered, _FORM, n), False)


def _read_list(path: Path) -> Dictionary | str:
    """Read a dictionary with a label per line, or with numbers; a text says why it is neither."""
    lines = list(lines_of(path))
    if not lines:
        return "it is empty"
    # Labels may have blanks, and end in a number: only tabs separate numbers from them.
    has_tabs = any(b"\t" in text for _, text in lines)
    if has_tabs and (rows := _rows(path, lines)) is not None:
        n, numbered = rows
        return Dictionary(path, labels_by_id(path, numbered, _FORM, n), False)
    if has_tabs:
        return "its lines have several columns, none of which numbers them from 0"
    digits = ((line, text, b"%d" % at, text) for at, (line, text) in enumerate(lines))
    return Dictionary(path, labels_by_id(path, digits, _FORM), True)


Row = tuple[int, bytes, bytes, bytes]


def _rows(path: Path, lines: Sequence[tuple[int, bytes]]) -> tuple[int | None, list[Row]] | None:
    """Return the declared number of labels, and a `Row` per line; None if no column has numbers.

    A first line may declare the number of labels, as in OpenKE's files; None if it does not.
    """
    n = None
    if len(lines) > 1 and lines[0][1].strip().isdigit():
        n, lines = int(lines[0][1].strip()), lines[1:]
    has_tabs = any(b"\t" in text for _, text in lines)
    split = [
        text.split(b"\t") if has_tabs else list(text.rpartition(b" ")[::2]) for _, text in lines
    ]
    if {b"id", b"ids", b"index"} & {field.strip().lower() for field in split[0]}:
        lines, split = lines[1:], split[1:]  # a heading, as PyKEEN and pandas write it
    if not split or not all(len(fields) > 1 and all(fields[:2]) for fields in split):
        return None
    columns = [at for at in (1, 0) if all(fields[at].strip().isdigit() for fields in split)]
    if not columns:
        return None
    at = _number_column(path, split, columns)
    return n, [
        (line, text, fields[at].strip(), fields[1 - at])
        for (line, text), fields in zip(lines, split, strict=True)
    ]


def _number_column(path: Path, split: list[list[bytes]], columns: list[int]) -> int:
    """Return the column that numbers labels from 0, or the usual one by the file's name."""
    whole = {b"%d" % number for number in range(len(split))}
    if len(columns) > 1:
        columns = [
            at for at in columns if {fields[at].strip() for fields in split} == whole
        ] or columns
    if len(columns) > 1 and re.match(
        r"ids?_?(2|to)|.*\.(dict|del|tsv)\b", path.name, re.IGNORECASE
    ):
        return 0
    return columns[0]


def _json_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a JSON object from labels to numbers."""
    hint = 'write {"label": number, ...}, with numbers from 0'
    try:
        table = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(path, found=f"not JSON ({error})", hint=hint) from None
    if not isinstance(table, dict) or not all(type(number) is int for number in table.values()):
        refuse(path, None, "not an object from labels to numbers", hint)
    for line, (label, number) in enumerate(table.items(), 1):
        text = bytes_of(f"{label}: {number}")
        yield line, text, b"%d" % number, bytes_of(label)


def read_sizes(folder: Path) -> tuple[int, int] | None:
    """Read the numbers of entities and relations from ``stat.txt``; None without two numbers."""
    path = folder / _STAT
    if not path.is_file():
        return None
    fields = next(lines_of(path, gaps=True), (1, b""))[1].split()
    if len(fields) < 2 or not all(field.isdigit() and len(field) < 10 for field in fields[:2]):
        return None
    return int(fields[0]), int(fields[1])


class Numbering(NamedTuple):
    """New numbers of the labels of one kind.

    - labels: All labels in the order of the new numbers.
    - ids, int32: The new number of each old one.
    - source: Name of the file that decides.
    """

    labels: Labels
    ids: Int32
    source: str

    @property
    def is_same(self) -> bool:
        """True if all numbers stay."""
        n = len(self.ids)
        return len(self.labels) == n and bool((self.ids == np.arange(n)).all())

    def describe_unnamed(self, noun: str) -> str:
        """Return a sentence on labels that no triple names; "" if there are none."""
        is_unnamed = np.ones(len(self.labels), bool)
        is_unnamed[self.ids] = False
        if not is_unnamed.any():
            return ""
        first = self.labels[int(np.flatnonzero(is_unnamed)[0])]
        n_unnamed, n_labels = int(is_unnamed.sum()), len(is_unnamed)
        return (
            f"no triple names {n_unnamed:,} of the {n_labels:,} {noun} of {self.source} "
            f"(first {first!r}); they are candidates, too"
        )


def number_by_dictionaries(folder: Path, tables: GraphTables) -> GraphTables:
    """Number entities and relations as the dictionaries in the folder do, or as ``stat.txt`` says.

    Triples may hold the labels of a dictionary, or its numbers; then numbers stay the labels.
    FileError if a dictionary with numbers lacks a label of the triples, or if both readings fit and
    differ. A list of labels (``entities.txt``) that lacks a label is ignored with a note.
    """
    if tables.entities is None:  # numbers that are their own labels
        n = [_n_numbers(tables, columns) for columns in ((0, 2), (1,))]
        tables = replace(tables, entities=Labels.decimal(n[0]), relations=Labels.decimal(n[1]))
    notes, sizes = [*tables.notes], read_sizes(folder)
    numberings = []
    for at, kind in enumerate(KINDS):
        dictionary = find_dictionary(folder, kind, notes)
        numbering = None if dictionary is None else _by_dictionary(dictionary, at, tables, notes)
        if sizes is not None:
            numbering = _by_size(folder / _STAT, sizes[at], numbering, at, tables, notes)
        if numbering is not None and not numbering.is_same and at == 0:
            notes.append(
                numbering.describe_unnamed(PLURALS[at])
                or f"columns are in the order of {numbering.source}"
            )
        numberings.append(numbering)
    if numberings[0] is None and (names := _unread_dictionaries(folder)):
        notes.append(
            f"{', '.join(names)} is not read, so columns are in the order of labels; if it numbers "
            "the columns of scores, write its lines as label<TAB>number into entity2id.txt"
        )
    numbers = None if numberings[0] else whole_numbers(tables.labels[0].to_arrow())
    if numbers is not None and (gap := _first_gap(numbers)) is not None:
        notes.append(
            f"labels of entities are whole numbers with gaps (no {gap:,}), so columns are in "
            "numeric order, unless scores have a column for every number"
        )
    tables = replace(tables, notes=tuple(notes), has_open_end=numbers is not None)
    return renumber_tables(tables, numberings)


def _unread_dictionaries(folder: Path) -> list[str]:
    """Return names of files that look like dictionaries of entities, but have an unknown form."""
    read = dictionary_files(folder)
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return [name for name in names if name not in read and _UNREAD.fullmatch(name)]


def _n_numbers(tables: GraphTables, columns: Sequence[int]) -> int:
    """Return the largest number in these columns of all splits, plus 1."""
    largest = (rows[:, at].max(initial=0) for rows in tables.splits.values() for at in columns)
    return 1 + int(max(largest))


def _first_gap(numbers: Int64) -> int | None:
    """Return the smallest number from 0 that ascending numbers lack, or None."""
    gaps = np.flatnonzero(numbers != np.arange(len(numbers)))
    return int(gaps[0]) if gaps.size else None


def renumber_tables(tables: GraphTables, numberings: Iterable[Numbering | None]) -> GraphTables:
    """Return the tables with new numbers of entities and relations; None keeps the old ones."""
    labels = [*tables.labels]
    for at, numbering in enumerate(numberings):
        if numbering is None:
            continue
        labels[at] = numbering.labels
        for rows in tables.splits.values():
            for column in (1,) if at else (0, 2):
                renumber_column(rows[:, column], numbering.ids)
        for _, pairs in (tables.qualifiers or {}).values():
            renumber_column(pairs[:, 1 - at], numbering.ids)
    return replace(tables, entities=labels[0], relations=labels[1])


def _by_dictionary(
    dictionary: Dictionary, at: int, tables: GraphTables, notes: list[str]
) -> Numbering | None:
    """Number labels by a dictionary; None, with a note, if a list of labels does not fit."""
    labels, path = tables.labels[at], dictionary.path
    array = labels.to_arrow()
    by_label, numbers = dictionary.labels.positions(array), whole_numbers(array)
    fits_label = bool((by_label >= 0).all())
    if numbers is not None and int(numbers.max()) >= len(dictionary.labels):
        numbers = None
    if fits_label and numbers is not None and not np.array_equal(by_label, numbers):
        first = int(np.flatnonzero(by_label != numbers)[0])
        problem = (
            f"{labels[first]!r} is a label with the number {by_label[first]}, and also a number: "
            "the triples may hold either"
        )
        refuse(path, None, problem, _AMBIGUOUS)
    if fits_label:
        refuse_repeated(dictionary, at, tables)
        return Numbering(dictionary.labels, by_label.astype(np.int32), path.name)
    if numbers is not None:
        every = Labels.decimal(len(dictionary.labels))
        return Numbering(every, numbers.astype(np.int32), path.name)
    missing = int(np.flatnonzero(by_label < 0)[0])
    more = int((by_label < 0).sum()) - 1
    where = f"{labels[missing]!r} ({_first_use(tables, at, missing)})"
    also = f" (nor are {more:,} more {PLURALS[at]})" if more else ""
    if dictionary.is_list:
        notes.append(f"{path.name} is not used: {where} is not in it{also}")
        return None
    refuse(path, None, f"{where} is not in it{also}", _MISSING)


_AMBIGUOUS = (
    "declare rotate:DIR if the splits hold labels, or dgl-ke,hrt:DIR if they hold numbers; or move "
    "the file away"
)
_MISSING = (
    "add a line for it; or declare the order of columns (as in tsv,htr:DIR) if it is not head, "
    "relation, tail; or move the file away, or declare tsv:DIR, to read the splits alone"
)


def refuse_repeated(dictionary: Dictionary, at: int, tables: GraphTables) -> None:
    """Raise FileError if a triple has a label with several numbers."""
    repeated = dictionary.numbered.repeated
    for label, numbers in repeated.items():
        used = tables.labels[at].positions(Labels.from_strings([label]).to_arrow())[0]
        if used >= 0:
            problem = (
                f"{label!r} ({_first_use(tables, at, int(used))}) has the numbers "
                f"{' and '.join(map(str, numbers))}"
            )
            hint = "rename the label in the lines of the numbers that the model does not use"
            refuse(dictionary.path, None, problem, hint)


def _by_size(
    path: Path,
    size: int,
    numbering: Numbering | None,
    at: int,
    tables: GraphTables,
    notes: list[str],
) -> Numbering | None:
    """Compare a numbering with the size in ``stat.txt``, or number by that size without one.

    FileError if labels are numbers, and it has no column for one of them.
    """
    labels = tables.labels[at]
    n = len(labels) if numbering is None else len(numbering.labels)
    numbers = whole_numbers(labels.to_arrow()) if numbering is None else None
    if numbers is not None and int(numbers.max()) < size:
        return Numbering(Labels.decimal(size), numbers.astype(np.int32), _STAT)
    if n != size and numbers is not None:
        last = int(numbers.argmax())
        used = f"{labels[last]!r} ({_first_use(tables, at, last)})"
        problem = f"{size:,} {PLURALS[at]}, numbered from 0, but the triples name {used}"
        hint = f"correct the {('first', 'second')[at]} number of its first line, or move it away"
        refuse(path, 1, problem, hint)
    if n != size:
        source = "the triples name" if numbering is None else f"{numbering.source} has"
        notes.append(f"{_STAT} counts {size:,} {PLURALS[at]}, but {source} {n:,}; it is not used")
    return numbering


def _first_use(tables: GraphTables, at: int, number: int) -> str:
    """Say where the splits first use an entity or relation: ``tail in line 3 of train.txt``."""
    for split, rows in tables.splits.items():
        hits = rows[:, 1:2] == number if at else rows[:, 0:3:2] == number
        if hits.any():
            row, column = map(int, np.argwhere(hits)[0])
            name = COLUMNS[1] if at else COLUMNS[2 * column]
            file = tables.files[split].name if split in tables.files else split
            return f"{name} in line {row + 1} of {file}"
    return "in a qualifier"
