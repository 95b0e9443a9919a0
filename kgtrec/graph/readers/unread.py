"""Unread files with triples in a graph's folder: a sentence per file.

Reads only the first lines of a file, so that large files cost nothing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgtrec._internal.argument_names import argument
from kgtrec.errors import FileError, refuse
from kgtrec.graph.formats import NUMBERED as NUMBERED_FORMATS
from kgtrec.graph.formats import TEXTS
from kgtrec.graph.id_files import arrow_bytes
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.dictionaries import dictionary_files
from kgtrec.graph.readers.folders import list_named_files
from kgtrec.graph.tsv import NEGATIVES, NUMBERED, is_split_like, open_packed

_N_LINES = 5
_N_BYTES = 1 << 14
_FACTS = re.compile(r"facts(\.(txt|tsv))?(\.(gz|zst))?", re.IGNORECASE)


_OF_OPENKE = re.compile(r"[1n]-[1n]\.txt|type_constrain\.txt|test2id_all\.txt")
_OF_LIBKGE = re.compile(r"(train|valid|test)(_sample|_without_unseen)?\.(txt|del)")


def unread_files(
    folder: Path,
    form: str,
    read: set[Path],
    entities: Labels,
    relations: Labels,
    sizes: Mapping[str, Collection[int]],
) -> Iterator[str]:
    """Yield a sentence per file of the folder that holds triples and is not read.

    ``sizes`` are the numbers of triples of each split, with and without repeated ones.
    """
    if form in TEXTS:
        yield from _unread_texts(folder, read, entities, relations)
        yield from _differing_numbers(folder, sizes)
    if form in NUMBERED_FORMATS:
        yield from _unread_numbers(folder, form, read, entities, relations)


def _unread_numbers(
    folder: Path, program: str, read: set[Path], entities: Labels, relations: Labels
) -> Iterator[str]:
    """Yield sentences for folders of OpenKE or LibKGE, whose triples are numbers.

    Files that the program has derived from the splits hold no other triples.
    """
    known = {path.resolve() for path in read}
    files = _OF_LIBKGE if program == "libkge" else _OF_OPENKE
    derived = list_named_files(folder) if program == "libkge" else set()
    is_dictionary = dictionary_files(folder)
    for path in sorted(folder.iterdir()):
        name = path.name
        if name.startswith(".") or not path.is_file() or path.resolve() in known:
            continue
        if name in derived or files.fullmatch(name) or name in is_dictionary:
            continue
        # `find_split_files` reports names like those of splits, but reads no folder of LibKGE.
        if program == "openke" and (
            name.endswith(NUMBERED) or (is_split_like(name) and not NEGATIVES.match(name))
        ):
            continue
        if not (rows := _first_triples(path, entities, relations, by_number=True)):
            continue
        yield f"{name!r} holds triples, but is not part of the graph; " + _remedy(
            path, rows, relations, "move it away", by_number=True
        )


def _unread_texts(
    folder: Path, read: set[Path], entities: Labels, relations: Labels
) -> Iterator[str]:
    """Yield sentences for folders whose triples are labels.

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
            path, rows, relations, _SILENCE
        )


def _differing_numbers(folder: Path, sizes: Mapping[str, Collection[int]]) -> Iterator[str]:
    """Yield a sentence per file of OpenKE that has not as many triples as its split of labels."""
    for split, counts in sizes.items():
        path = folder / f"{split}{NUMBERED}"
        first = b"".join(_first_lines(path)[:1]).strip() if path.is_file() else b""
        if first.isdigit() and int(first) not in counts:
            yield (
                f"{path.name!r} has {int(first):,} triples, but split {split!r} has "
                f"{max(counts):,} in its file of labels, which is read; keep the right file"
            )


_OF_FACTS = (
    "declare neural-lp:DIR if it is a part of the training graph, as for Neural LP, DRUM and "
    "RED-GNN; or tsv:DIR to read the splits alone"
)


_SILENCE = "move it away, or declare tsv:DIR, to read the splits alone without this line"
_OF_NUMBERS = (
    "if they are true, filter them: give their numbers, in the order head, relation, tail, as "
    "extra_known= of graph.questions, or write their labels into a file and pass "
    f"{argument('known')}"
)


def _remedy(
    path: Path, rows: list[list[bytes]], relations: Labels, silence: str, by_number: bool = False
) -> str:
    """Return advice on a file of triples with these first rows."""
    are_numbers = by_number and all(field.isdigit() for row in rows for field in row)
    if NEGATIVES.match(path.name):
        use = "" if are_numbers else " (`kgtrec classify` evaluates them)"
        return f"by its name, its triples are false, so they filter nothing{use}; {silence}"
    if are_numbers:
        return f"{_OF_NUMBERS}; or {silence}"
    if (
        len(rows[0]) == 3
        and (relations.positions(arrow_bytes([row[1] for row in rows])) >= 0).any()
    ):
        return f"if they are true, filter them with {argument('known', str(path))}; or {silence}"
    return f"their relations are not those of the graph; {silence}"


def _first_triples(
    path: Path, entities: Labels, relations: Labels, by_number: bool = False
) -> list[list[bytes]]:
    """Return the fields of the first lines of a file of triples; empty for other files.

    Three columns with tabs are triples, and so are three numbers if the graph's are ``by_number``.
    Other separators, or a fourth and fifth column, need labels of the graph, because they also
    occur in other files.
    """
    lines = _first_lines(path)
    if len(lines) > 1 and lines[0].strip().isdigit():
        lines = lines[1:]  # a count
    for separator in (b"\t", b",", None):
        rows = [[field.strip() for field in line.split(separator)] for line in lines]
        sizes = {len(row) for row in rows}
        if len(sizes) != 1 or not sizes <= {3, 4, 5} or not all(map(all, rows)):
            continue
        is_number = by_number and all(field.isdigit() for row in rows for field in row)
        is_plain = sizes == {3} and (separator == b"\t" or is_number)
        if is_plain or _has_labels(rows, entities, relations):
            return rows
    return []


def _has_labels(rows: list[list[bytes]], entities: Labels, relations: Labels) -> bool:
    """Return whether rows look like triples of the graph, by labels in their first three fields.

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
    """Return the first whole lines of a text file, without line ends; empty if it is not text."""
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
