"""Inductive benchmarks: what is asked is asked of an inference graph, not of the one trained on.

The graph that is read is the inference graph: its triples are the split ``train``, its entities are
the candidates, and entities of valid and test that it lacks are an error. The graph that was
trained on gives its relations alone, which the two share.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError
from kgtrec.graph.id_files import text_of
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.common import GraphTables, check_order
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv_triples import load_triples

__all__ = ["read_grail", "read_ilpc", "read_ultra"]


class _Layout(NamedTuple):
    """Names of the files in a folder; valid may be missing."""

    training: str
    inference: str
    valid: str
    test: str


_ILPC = _Layout("train.txt", "inference.txt", "inference_validation.txt", "inference_test.txt")
_ULTRA = (
    _Layout("transductive_train.txt", "inference_graph.txt", "inf_valid.txt", "inf_test.txt"),
    _Layout("train.txt", "train_ind.txt", "valid_ind.txt", "test_ind.txt"),
)


def read_ilpc(folder: Path, columns: str | None = None) -> GraphTables:
    """ILPC 2022: ``train``, ``inference``, ``inference_validation`` and ``inference_test``."""
    check_order(columns)
    return _read(folder, [_ILPC])


def read_ultra(folder: Path, columns: str | None = None) -> GraphTables:
    """The raw folders of ULTRA's inductive datasets, in either of their two layouts."""
    check_order(columns)
    return _read(folder, _ULTRA)


def read_grail(folder: Path, columns: str | None = None) -> GraphTables:
    """GraIL: a folder NAME that was trained on, and the inference graph in ``NAME_ind`` beside."""
    check_order(columns)
    folder = folder.resolve()
    base = folder.with_name(folder.name.removesuffix("_ind"))
    ind = f"{base.name}_ind"
    layout = _Layout(
        f"{base.name}/train.txt", f"{ind}/train.txt", f"{ind}/valid.txt", f"{ind}/test.txt"
    )
    return _read(base.parent, [layout])


def _read(folder: Path, layouts: tuple[_Layout, ...] | list[_Layout]) -> GraphTables:
    needed = [
        [name for name in (one.training, one.inference, one.test) if not (folder / name).is_file()]
        for one in layouts
    ]
    layout = next((one for one, lacks in zip(layouts, needed, strict=True) if not lacks), None)
    if layout is None:
        lacks = min(needed, key=len)
        hint = "it holds " + ", or ".join(", ".join(one) for one in layouts)
        raise FileError(folder, found=f"no {' and no '.join(lacks)}", hint=hint)
    files = {"train": folder / layout.inference, "test": folder / layout.test}
    if (folder / layout.valid).is_file():
        files["valid"] = folder / layout.valid
    triples, entities, relations = load_triples(files, False)
    seen = np.zeros(len(entities), dtype=bool)
    seen[triples["train"][:, [0, 2]]] = True
    for split, path in files.items():
        _check_entities(path, triples[split], seen, entities, files["train"])
    _, _, trained = load_triples({"train": folder / layout.training}, False)
    places, shared = _together(relations, trained)
    for rows in triples.values():
        rows[:, 1] = places[rows[:, 1]]
    return GraphTables(dict(triples), Labels.from_arrow(entities), Labels.from_arrow(shared))


def _check_entities(
    path: Path,
    rows: npt.NDArray[np.int32],
    seen: npt.NDArray[np.bool_],
    labels: object,
    inference: Path,
) -> None:
    outside = ~seen[rows[:, [0, 2]]]
    if not outside.any():
        return
    row, end = (int(place) for place in np.argwhere(outside)[0])
    label = text_of(labels[int(rows[row, 2 * end])].as_py())  # type: ignore[index]
    raise FileError(
        path,
        row + 1,
        found=f"{COLUMNS[2 * end]} {label!r} is not in the inference graph {inference.name}, and "
        f"so no candidate, as in {int(outside.any(axis=1).sum()):,} triples",
        hint="leave these triples out, or add the entity's triples to the inference graph",
    )


def _together(relations: object, trained: object) -> tuple[npt.NDArray[np.int32], object]:
    """Place of every relation among those of both graphs in byte order, and these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    every = pc.unique(pa.concat_arrays([relations, trained]))
    every = every.take(pc.sort_indices(every))
    places = pc.index_in(relations, value_set=every)
    return places.to_numpy(zero_copy_only=False).astype(np.int32), every
