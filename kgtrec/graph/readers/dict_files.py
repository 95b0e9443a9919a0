"""RotatE's and DGL-KE's datasets: ``entities.dict`` and ``relations.dict`` beside the splits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgtrec.errors import FileError
from kgtrec.graph.id_files import lines_of, refuse, text_of
from kgtrec.graph.readers.common import (
    GraphTables,
    labels_by_id,
    number_rows,
    split_files,
)

__all__ = ["DECLARE", "read_dgl_ke", "read_rotate"]

_STEMS = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
_ENDINGS = (".txt", ".tsv", "")
_MAP = "lines are number<TAB>label, numbers from 0"
DECLARE = (
    "no file says what its columns are; say it: rotate:DIR for labels in the order head, relation, "
    "tail, rotate,htr:DIR for another one, dgl-ke,hrt:DIR for numbers, or tsv:DIR to leave the "
    "numbers aside"
)


def read_rotate(folder: Path, columns: str | None = None) -> GraphTables:
    """Splits by label, under the numbers of the two dictionaries; columns are hrt if not given."""
    entities, relations = _dictionary(folder, "entities"), _dictionary(folder, "relations")
    numbers = [
        {label.encode("utf-8", "surrogateescape"): i for i, label in enumerate(names)}
        for names in (entities, relations)
    ]
    sizes, order = (len(entities), len(relations)), columns or "hrt"
    splits = {
        split: number_rows(path, _numbered(path, order, *numbers), "hrt", *sizes, form="")
        for split, path in split_files(folder, _STEMS, _ENDINGS).items()
    }
    return GraphTables(dict(splits), entities, relations)


def read_dgl_ke(folder: Path, columns: str | None = None) -> GraphTables:
    """Splits by number, whose columns have to be declared, as in DGL-KE's ``udd_hrt``."""
    if columns is None:
        raise FileError(folder, found="no order of columns", hint="write dgl-ke,hrt:DIR, say")
    entities, relations = _dictionary(folder, "entities"), _dictionary(folder, "relations")
    form = f"lines are three numbers from 0, in the order {columns}"
    sizes = len(entities), len(relations)
    splits = {
        split: number_rows(path, lines_of(path), columns, *sizes, form=form)
        for split, path in split_files(folder, _STEMS, _ENDINGS).items()
    }
    return GraphTables(dict(splits), entities, relations)


def _dictionary(folder: Path, name: str) -> list[str]:
    paths = [folder / f"{name}.dict", folder / f"{name}.tsv"]
    path = next((path for path in paths if path.is_file()), paths[0])
    rows = ((line, text.split(b"\t", 1)) for line, text in lines_of(path))
    return labels_by_id(path, rows, _MAP)


def _numbered(
    path: Path, columns: str, entities: dict[bytes, int], relations: dict[bytes, int]
) -> Iterator[tuple[int, bytes]]:
    """Lines of labels as lines of numbers: head, relation, tail."""
    order = [columns.index(c) for c in "hrt"]
    for line, text in lines_of(path):
        fields = text.split(b"\t")
        if len(fields) != 3:
            refuse(path, line, f"{text_of(text[:60])!r}", f"lines are three labels, {columns}")
        head, relation, tail = (fields[place] for place in order)
        for label, numbers, kind in (
            (head, entities, "entities"), (relation, relations, "relations"),
            (tail, entities, "entities"),
        ):  # fmt: skip
            if label not in numbers:
                what = f"{text_of(label)!r} is not in {kind}.dict"
                refuse(path, line, what, f"correct it, or the order of columns ({columns})")
        yield line, b"%d %d %d" % (entities[head], relations[relation], entities[tail])
