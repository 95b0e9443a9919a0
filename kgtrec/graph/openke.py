"""OpenKE's files: triples by number, the labels of the numbers, and type constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec.errors import FileError, PathName, refuse
from kgtrec.graph.id_files import check_unknown, find_ids, lines_of, refuse_repeat
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.common import (
    GraphTables,
    NumberedLabels,
    labels_by_id,
    read_number_triples,
)
from kgtrec.graph.triples import names_of
from kgtrec.graph.tsv import NUMBERED, find_split_files, quote_line

_FORM = "the first line must be the number of triples, each other line {}, as numbers from 0"
_TRIPLES = _FORM.format("head tail relation")
_DECLARE = "declare it, as in openke,hrt:DIR"
_MANY = 10  # with fewer triples, the numbers of relations and tails say nothing


def is_numbered(files: Mapping[str, Path]) -> bool:
    """Return whether the files of a graph's splits are in OpenKE's format.

    Their names are ``*2id.txt``, or each file begins with a line that holds only a number.
    """
    return all(path.name.endswith(NUMBERED) or _begins_with_count(path) for path in files.values())


def _begins_with_count(path: Path) -> bool:
    try:
        return next(lines_of(path), (1, b""))[1].strip().isdigit()
    except FileError:  # the reader will report it
        return False


def read_openke(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train2id.txt`` and so on; ids are OpenKE's own numbers."""
    files = find_split_files(folder)
    labels: list[Labels | None] = []
    for name in ("entity2id.txt", "relation2id.txt"):
        needed = any(path.name.endswith(NUMBERED) for path in files.values())
        known = needed or (folder / name).is_file()
        labels.append(read_openke_ids(folder / name).labels if known else None)
    totals: dict[Path, int] = {}

    def lines_in(path: Path) -> Iterator[tuple[int, bytes]]:
        lines = lines_of(path)
        totals[path] = _count(path, lines, _TRIPLES)
        return lines

    form = _TRIPLES if columns is None else _FORM.format(" ".join(names_of(columns)))
    try:
        tables = read_number_triples(files, labels, columns or "htr", form, lines_in)
    except FileError as error:
        if columns is None and (hint := _other_form(files, labels, lines_in)):
            raise FileError(error.path, error.line, found=error.found, hint=hint) from None
        raise
    for split, path in files.items():
        if (n := len(tables.splits[split])) != totals[path]:
            problem = f"{n:,} triples, but the first line says {totals[path]:,}"
            hint = "copy the file again if it is cut short, or correct its first line"
            refuse(path, None, problem, hint)
        if not n:
            refuse(path, None, "no triples", "add triples, or remove the file")
    if columns is None and (doubt := _order_doubt(tables)):
        tables = replace(tables, notes=(doubt,))
    return tables


def _other_form(
    files: Mapping[str, Path],
    labels: list[Labels | None],
    lines_in: Callable[[Path], Iterator[tuple[int, bytes]]],
) -> str:
    """Return a hint to declare another format that begins with a count; "" if none fits."""
    seconds = [next(islice(lines_of(path), 1, None), (2, b""))[1] for path in files.values()]
    are_statements = all(line.count(b"\t") in range(2, 100, 2) for line in seconds)
    if are_statements and not all(line.replace(b"\t", b"").isdigit() for line in seconds):
        return "if these are labels, with qualifiers as in HyNT's files, declare statements:DIR"
    with suppress(FileError):
        read_number_triples(files, labels, "hrt", _TRIPLES, lines_in)
        return f"correct the number; or, if the order is head relation tail, {_DECLARE}"
    return ""


def _order_doubt(tables: GraphTables) -> str:
    """Return a warning if there are more relations than tails, as if these were exchanged."""
    rows = np.concatenate([*tables.splits.values()])
    n_relations, n_tails = len(np.unique(rows[:, 1])), len(np.unique(rows[:, 2]))
    if len(rows) < _MANY or n_relations <= n_tails:
        return ""
    return (
        f"the third column, the relation, has {n_relations:,} different numbers, but the second, "
        f"the tail, only {n_tails:,}: if the order is head relation tail, {_DECLARE}"
    )


def read_type_constraints(
    path: PathName, entities: Labels, relations: Labels, unknown: str = "error"
) -> tuple[dict[int, Int64], dict[int, Int64], dict[str, Any]]:
    """Read the heads and tails that each relation admits from OpenKE's ``type_constrain.txt``.

    The file begins with the number of relations; each has two lines of a relation id, the number of
    ids that follow, and ids of entities: the heads first, then the tails. ``entity2id.txt`` and
    ``relation2id.txt`` beside it have the labels of OpenKE's ids, which lead to the graph's.
    """
    check_unknown(unknown)
    folder = Path(path).parent
    names = read_openke_ids(folder / "entity2id.txt"), read_openke_ids(folder / "relation2id.txt")
    lists = _type_lists(path, len(names[0].labels), len(names[1].labels))
    # Only ids in the lists must be in the graph.
    used = np.unique(np.concatenate([np.empty(0, np.int64), *(ids for _, ids in lists)]))
    entity, missed = _map_ids(folder / "entity2id.txt", names[0], used, entities, unknown)
    relation_ids = np.unique(np.array([relation for relation, _ in lists], dtype=np.int64))
    relation_of, lost = _map_ids(
        folder / "relation2id.txt", names[1], relation_ids, relations, unknown
    )
    sides: tuple[dict[int, Int64], dict[int, Int64]] = ({}, {})
    for number, (relation, ids) in enumerate(lists):
        if relation_of[relation] >= 0:
            mapped = entity[ids]
            sides[number % 2][int(relation_of[relation])] = mapped[mapped >= 0]
    details = {"file": str(path), "relations": len(sides[0]), "unknown": missed + lost}
    return *sides, details


def read_openke_ids(path: PathName) -> NumberedLabels:
    """Read the labels of an OpenKE ``*2id.txt`` in id order, and the line of each."""
    form = "the first line must be the number of ids, each other line label<TAB>id, with ids from 0"
    lines = lines_of(path)
    total = _count(path, lines, form)
    rows = (
        (line, text, *text.rpartition(b"\t" if b"\t" in text else b" ")[::-2])
        for line, text in lines
    )
    return labels_by_id(path, rows, form, total)


def _type_lists(path: PathName, n_entities: int, n_relations: int) -> list[tuple[int, Int64]]:
    """Read relation and entity ids of every line; heads and tails alternate."""
    form = "each relation has two lines, heads then tails: relation id, number of ids, the ids"
    lines = lines_of(path)
    total = _count(path, lines, f"the first line must be the number of relations; then {form}")
    lists: list[tuple[int, Int64]] = []
    seen: dict[int, int] = {}
    for number, text in lines:
        fields = text.split()
        # More digits are more than int64 holds.
        if len(fields) < 2 or not all(field.isdigit() and len(field) <= 18 for field in fields):
            refuse(path, number, quote_line(text), form)
        values = np.array(fields, dtype=np.int64)
        relation, size, ids = int(values[0]), int(values[1]), values[2:]
        if relation >= n_relations:
            refuse(
                path, number, f"relation {relation} is not below {n_relations}", "correct the id"
            )
        if size != len(ids):
            refuse(path, number, f"{len(ids)} ids, but the line says {size}", form)
        if len(ids) and ids.max() >= n_entities:
            refuse(path, number, f"entity {ids.max()} is not below {n_entities}", "correct the id")
        if len(lists) % 2 == 0:
            noun = f"relation {relation}"
            refuse_repeat(path, seen, relation, number, noun, "keep one of them")
        elif lists[-1][0] != relation:
            problem = f"relation {relation} follows the heads of relation {lists[-1][0]}"
            refuse(path, number, problem, form)
        lists.append((relation, ids))
    if len(lists) != 2 * total:
        problem = (
            f"{len(lists)} lists, but the first line says {total} relations, which need {2 * total}"
        )
        refuse(path, None, problem, form)
    return lists


def _map_ids(
    path: Path, names: NumberedLabels, used: Int64, labels: Labels, unknown: str
) -> tuple[Int64, int]:
    """Map OpenKE's ids to the graph's; also return the number of unknown ids.

    The map is int64 (OpenKE's ids,), with -1 for ids that are unknown or not used.
    """
    openke_labels, lines, _ = names
    at = [lines[i] for i in used.tolist()]
    ids, missed = find_ids(path, labels, openke_labels.arrow_of(used), at, unknown, drop=False)
    mapped = np.full(len(openke_labels), -1, dtype=np.int64)
    mapped[used] = ids
    return mapped, missed


def _count(path: PathName, lines: Iterator[tuple[int, bytes]], form: str) -> int:
    """Read the count in the first line; FileError if it is not a number."""
    number, text = next(lines, (1, b""))
    if not text.strip().isdigit() or len(text.strip()) > 18:
        refuse(path, number, f"{quote_line(text)} instead of a number", form)
    return int(text)
