"""Whether what a shard holds can be a part of its ranking: a sound hash does not say so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from kgtrec.cluster.question_store import Store
from kgtrec.errors import FileError, UsageError
from kgtrec.ranking.part_file import read_about, read_parts
from kgtrec.ranking.partial import PartialRanks
from kgtrec.ranking.tolerance import checked_tolerance

__all__ = ["checked_about", "checked_blocks"]

PathName = str | os.PathLike[str]

_KINDS: dict[str, tuple[type, ...]] = {
    "questions": (str,), "rows": (str,), "run_depth": (int,), "higher_is_better": (bool,),
    "nan": (str,), "tolerance": (list,), "by": (str,), "count": (int,), "number": (int,),
}  # fmt: skip
_CHOICES = {"rows": ("questions", "instances"), "nan": ("error", "worst"),
            "by": ("questions", "entities")}  # fmt: skip
_DTYPES = ("float16", "bfloat16", "float32", "float64")


def checked_about(path: PathName) -> dict[str, Any]:
    """What a shard belongs to; FileError if that cannot be."""
    about = read_about(path)
    for name, kinds in _KINDS.items():
        value = about.get(name) if isinstance(about, dict) else None
        sound = type(value) in kinds and value in _CHOICES.get(name, (value,))
        if not sound or (type(value) is int and value < 1):
            raise _impossible(path, f"{name} is {value!r}")
    if not 1 <= about["number"] <= about["count"]:
        raise _impossible(path, f"it is shard {about['number']} of {about['count']}")
    try:
        checked_tolerance(*about["tolerance"])
    except (TypeError, UsageError):
        raise _impossible(path, f"tolerance is {about['tolerance']!r}") from None
    if os.path.basename(about["questions"]) != about["questions"]:
        raise _impossible(path, f"questions is {about['questions']!r}")
    return about


def checked_blocks(path: PathName, about: dict[str, Any], store: Store) -> Iterator[PartialRanks]:
    """The parts of a shard, in order.

    Raises
    ------
    FileError
        One is damaged, or is not a part of the ranking: other rows or entities than those of its
        shard, or arrays of other shapes, types or values than a part of these rows has.
    """
    rows, entities = (0, store.n_rows), (0, store.n_labels)
    total = store.n_rows if about["by"] == "questions" else store.n_labels
    own = tuple(total * n // about["count"] for n in (about["number"] - 1, about["number"]))
    rows, entities = (own, entities) if about["by"] == "questions" else (rows, own)
    plan = store.plan()
    at = rows[0]
    for part in read_parts(path):
        task = part.task
        numbers = (*task.rows, *task.entities)
        if not all(type(number) is int for number in numbers) or task.first_row != at:
            raise _impossible(path, f"a part of {task} where row {at} is next")
        if task.entities != entities or not at < task.stop_row <= rows[1]:
            raise _impossible(path, f"a part of {task}, which is not its share")
        n_answers = int(plan.target_offsets[task.stop_row] - plan.target_offsets[task.first_row])
        n_lists = int((plan.slot[task.first_row : task.stop_row] >= 0).sum())
        fault = _fault(part, n_answers, n_lists, about["run_depth"], about["tolerance"])
        if fault:
            raise _impossible(path, f"{fault} in {task}")
        at = task.stop_row
        yield part
    if at != rows[1]:
        raise _impossible(path, f"it ends at row {at} in place of {rows[1]}")


def _fault(
    part: PartialRanks, n_answers: int, n_lists: int, depth: int, tolerance: list[float]
) -> str:
    """What no part of so many answers and lists holds; "" if it could be one."""
    shapes = {"counts": (6, n_answers), "answer_nan": (n_answers,), "lengths": (n_lists,)}
    types = {"counts": "int64", "answer_nan": "bool", "lengths": "int32", "documents": "int32"}
    for name, shape in shapes.items():
        if getattr(part, name).shape != shape:
            return f"{name} of shape {getattr(part, name).shape} in place of {shape}"
    for name, kind in types.items():
        if getattr(part, name).dtype != kind:
            return f"{name} of type {getattr(part, name).dtype} in place of {kind}"
    if part.dtype not in _DTYPES or not isinstance(part.path, str):
        return f"dtype {part.dtype!r}, kernel path {part.path!r}"
    if list(part.tolerance or (0.0, 0.0)) != tolerance:
        return f"tie tolerance {part.tolerance}"
    if type(part.nan_count) is not int or part.nan_count < 0:
        return f"nan_count {part.nan_count!r}"
    if part.scores.dtype.name not in ("float32", "float64"):
        return f"scores of type {part.scores.dtype}"
    if n_lists and not 0 <= part.lengths.min() <= part.lengths.max() <= depth:
        return f"lengths from {part.lengths.min()} to {part.lengths.max()}, of {depth} at most"
    n_entries = int(part.lengths.astype(np.int64).sum())
    for name in ("documents", "scores"):
        if getattr(part, name).shape != (n_entries,):
            return f"{name} of shape {getattr(part, name).shape} in place of {(n_entries,)}"
    low, high = part.task.entities
    if n_entries and not low <= part.documents.min() <= part.documents.max() < high:
        return f"entities from {part.documents.min()} to {part.documents.max()}"
    if n_answers and part.counts.min() < 0:
        return "counts below 0"
    return ""


def _impossible(path: PathName, problem: str) -> FileError:
    return FileError(
        path, found=f"damaged: it holds what no shard does ({problem})",
        hint="rank this shard again, which replaces it",
    )  # fmt: skip
