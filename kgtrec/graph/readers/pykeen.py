"""PyKEEN's datasets as ``to_directory_binary`` writes them: triples by number, and the labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgtrec.errors import FileError
from kgtrec.graph.id_files import delimited_rows
from kgtrec.graph.readers.common import GraphTables, labels_by_id, number_rows

__all__ = ["read_pykeen"]

_FOLDERS = {"train": "training", "valid": "validation", "test": "testing"}
_TRIPLES = "after the first line, head relation tail, lines are three numbers from 0"
_MAP = "after the first line, id label, lines are number<TAB>label, numbers from 0"


def read_pykeen(folder: Path, columns: str | None = None) -> GraphTables:
    """The splits of a dataset's folder, under PyKEEN's own numbers.

    The labels are those of the training folder, which the others share.
    """
    homes = {split: folder / name for split, name in _FOLDERS.items() if (folder / name).is_dir()}
    if not homes and (folder / "numeric_triples.tsv.gz").is_file():
        homes = {"train": folder}
    if not homes:
        hint = "name the folder that dataset.to_directory_binary has written"
        raise FileError(folder, found="no training, validation or testing folder", hint=hint)
    first = next(iter(homes.values()))
    labels = _labels(first)
    for home in homes.values():
        if labels != _labels(home):
            raise FileError(
                home, found=f"other labels than those of {first}",
                hint="make the factories of the splits with entity_to_id= and relation_to_id=",
            )  # fmt: skip
    sizes = len(labels[0]), len(labels[1])
    splits: dict[str, Any] = {}
    for split, home in homes.items():
        path = home / "numeric_triples.tsv.gz"
        rows = _after_header(path, ["head", "relation", "tail"])
        numbers = (
            (line, "\t".join(fields).encode("utf-8", "surrogateescape")) for line, fields in rows
        )
        splits[split] = number_rows(path, numbers, "hrt", *sizes, _TRIPLES)
    return GraphTables(splits, *labels)


def _labels(home: Path) -> tuple[list[str], list[str]]:
    return _labels_of(home, "entity"), _labels_of(home, "relation")


def _labels_of(home: Path, kind: str) -> list[str]:
    path = home / f"{kind}_to_id.tsv.gz"
    rows = _after_header(path, ["id", "label"])
    encoded = (
        (line, [field.encode("utf-8", "surrogateescape") for field in fields])
        for line, fields in rows
    )
    return labels_by_id(path, encoded, _MAP)


def _after_header(path: Path, header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Fields of every line, quoted ones as pandas writes them."""
    rows = delimited_rows(path, "\t", "write it anew")
    _, first = next(rows, (1, []))
    if first != header:
        problem = f"a first line {' '.join(first)[:60]!r}"
        raise FileError(path, 1, found=problem, hint=f"it is {' '.join(header)!r}")
    yield from rows
