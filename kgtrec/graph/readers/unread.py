"""Files of a graph's folder that hold triples but are not read: a line for each.

Only the first lines of a file are looked at, so that large files cost nothing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgtrec._internal.argument_names import argument
from kgtrec.errors import FileError, refuse
from kgtrec.graph.id_files import arrow_bytes
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.dictionaries import dictionary_files
from kgtrec.graph.tsv import NEGATIVES, NUMBERED, is_split_like, open_packed

_N_LINES = 5
_N_BYTES = 1 << 14
_FACTS = re.compile(r"facts(\.(txt|tsv))?(\.(gz|zst))?", re.IGNORECASE)


def unread_triples(
    folder: Path, read: set[Path], entities: Labels, relations: Labels
) -> Iterator[str]:
    """A sentence for each file of a folder that holds triples and is not one of those read.

    FileError for ``facts.txt``, which is most of the training graph in some programs' folders.
    """
    known = {path.resolve() for path in read} | {
        path.resolve() for path in dictionary_files(folder).values()
    }
    for path in sorted(folder.iterdir()):
        name = path.name
        if name.startswith(".") or not path.is_file() or path.resolve() in known:
            continue
        if is_split_like(name) and not NEGATIVES.match(name):  # `find_split_files` reports it
            continue
        if name.endswith(NUMBERED) or not (rows := _first_triples(path, entities, relations)):
            continue
        if _FACTS.fullmatch(name):
            refuse(path, None, "triples beside those of the split 'train'", _OF_FACTS)
        yield f"{name!r} holds triples, but is not part of the graph; " + _remedy(
            path, rows, relations
        )


_OF_FACTS = (
    "declare neural-lp:DIR if it is a part of the training graph, as for Neural LP, DRUM and "
    "RED-GNN; or tsv:DIR to read the splits alone"
)


def _remedy(path: Path, rows: list[list[bytes]], relations: Labels) -> str:
    """What the user can do about a file of triples, after a look at its first lines."""
    silence = "move it away, or declare tsv:DIR, to read the splits alone without this line"
    if NEGATIVES.match(path.name):
        return (
            "by its name, its triples are false, so they filter nothing (`kgtrec classify` "
            f"evaluates them); {silence}"
        )
    if (
        len(rows[0]) == 3
        and (relations.positions(arrow_bytes([row[1] for row in rows])) >= 0).any()
    ):
        return f"if they are true, filter them with {argument('known', str(path))}; or {silence}"
    return f"their relations are not those of the graph; {silence}"


def _first_triples(path: Path, entities: Labels, relations: Labels) -> list[list[bytes]]:
    """Fields of the first lines of a file of triples; empty for other files.

    Three columns with tabs are triples. Other separators, or a fourth and fifth column, need
    labels of the graph, because they also occur in other files.
    """
    lines = _first_lines(path)
    if len(lines) > 1 and lines[0].strip().isdigit():
        lines = lines[1:]  # a count
    for separator in (b"\t", b",", None):
        rows = [[field.strip() for field in line.split(separator)] for line in lines]
        sizes = {len(row) for row in rows}
        if len(sizes) != 1 or not sizes <= {3, 4, 5} or not all(map(all, rows)):
            continue
        if (separator == b"\t" and sizes == {3}) or _has_labels(rows, entities, relations):
            return rows
    return []


def _has_labels(rows: list[list[bytes]], entities: Labels, relations: Labels) -> bool:
    """Whether rows look like triples of the graph, by the labels in their first three fields.

    Each has a label of an entity. Some have one of a relation, or all have two entities: the file
    may have relations that the graph lacks.
    """
    fields = arrow_bytes([field for row in rows for field in row[:3]])
    is_entity, is_relation = (
        (labels.positions(fields) >= 0).reshape(-1, 3) for labels in (entities, relations)
    )
    n_entities = is_entity.sum(axis=1)
    return bool(n_entities.all()) and bool(is_relation.any() or (n_entities > 1).all())


def _first_lines(path: Path) -> list[bytes]:
    """The first whole lines of a text file, without their ends; empty if it is no text."""
    try:
        raw, stream = open_packed(path)
        with raw:
            text: Any = stream.read(_N_BYTES)
    except (OSError, FileError):
        return []
    if b"\0" in text or not text:
        return []
    lines = io.BytesIO(text).readlines()
    if len(text) == _N_BYTES:
        lines = lines[:-1]
    stripped = [line.rstrip(b"\r\n") for line in lines[:_N_LINES]]
    return [line for line in stripped if line]
