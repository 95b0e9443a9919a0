"""OGB's link-prediction splits, its dictionaries saved with ``numpy.savez``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError
from kgtrec.graph.id_files import load_arrays
from kgtrec.graph.readers.common import MAX_ID, GraphTables, check_likely, split_files
from kgtrec.graph.triples import COLUMNS

__all__ = ["read_ogb"]

_SIZES = ("num_nodes", "num_relations")
_HINT = (
    "save each split's arrays head, relation and tail, integers of one length, with numpy.savez; "
    "and num_nodes and num_relations, if some have no triple"
)


def read_ogb(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.npz``, ``valid.npz`` and ``test.npz`` under OGB's own numbers."""
    stems = {"train": ("train",), "valid": ("valid",), "test": ("test",)}
    splits: dict[str, npt.NDArray[Any]] = {}
    sizes: dict[str, int] = {}
    files = split_files(folder, stems, (".npz",))
    for split, path in files.items():
        arrays = load_arrays(path, (*COLUMNS, *_SIZES), _HINT)
        parts = [_column(path, arrays, name) for name in COLUMNS]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(f"{name} {len(p)}" for name, p in zip(COLUMNS, parts, strict=True))
            what = f"arrays of different lengths: {lengths}"
            raise FileError(path, found=what, hint=_HINT)
        splits[split] = np.stack(parts, axis=1)
        sizes |= {name: int(arrays[name].max()) for name in _SIZES if _is_size(arrays.get(name))}
    for place, name in enumerate(COLUMNS):
        key = _SIZES[place == 1]
        if key not in sizes:
            check_likely(files, splits, place, f"correct it, or save {key} as well")
            continue
        for split, rows in splits.items():
            if rows[:, place].max(initial=0) >= sizes[key]:
                what = f"{name} {rows[:, place].max(initial=0)}, of {sizes[key]:,} by {key}"
                raise FileError(files[split], found=what, hint="correct one of them")
    return GraphTables(splits, None, None, sizes.get("num_nodes"), sizes.get("num_relations"))


def _column(path: Path, arrays: dict[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    column = arrays.get(name)
    if column is None or column.ndim != 1 or column.dtype.kind not in "iu":
        shape = "no" if column is None else f"{column.dtype} of shape {column.shape}:"
        raise FileError(path, found=f"{shape} array {name}", hint=_HINT)
    bad = (column < 0) | (column >= MAX_ID)
    if bad.any():
        row = int(np.argmax(bad))
        raise FileError(path, found=f"{name}[{row}] is {column[row]}", hint="ids count from 0")
    return column.astype(np.int64)


def _is_size(array: npt.NDArray[Any] | None) -> bool:
    return array is not None and array.size == 1 and array.dtype.kind in "iu"
