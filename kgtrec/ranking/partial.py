"""Partial rankings: what some rows contribute against some entities, and how these become one.

`Ranker` makes the one part of all rows and entities; `kgtrec.ranking.ranges` parts of the entities;
the tasks and shards of `kgtrec.cluster` parts of both. Counts add up, the best candidates merge
(`merge`), and parts of all entities become `Ranks` and `Run` (`assemble`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import UsageError
from kgtrec.ranking.kernel import NativeRanking, active_path
from kgtrec.ranking.row_plan import RowPlan, Rows
from kgtrec.ranking.tolerance import Tolerance

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = [
    "PartialRanks",
    "Task",
    "assemble",
    "describe_parts",
    "join_paths",
    "merge",
    "take_partial",
]

Array = npt.NDArray[Any]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_SORTED = 1 << 18  # candidates that are sorted at a time


@dataclass(frozen=True, order=True)
class Task:
    """Rows ``first_row`` to ``stop_row - 1`` against entities ``first_entity`` to
    ``stop_entity - 1``. With restricted candidates the range must be that of all entities."""

    first_row: int
    stop_row: int
    first_entity: int
    stop_entity: int

    def __str__(self) -> str:
        return (
            f"rows {self.first_row} to {self.stop_row - 1}, "
            f"entities {self.first_entity} to {self.stop_entity - 1}"
        )

    @property
    def rows(self) -> tuple[int, int]:
        """First row, and the first behind the last."""
        return self.first_row, self.stop_row

    @property
    def entities(self) -> tuple[int, int]:
        """First entity, and the first behind the last."""
        return self.first_entity, self.stop_entity


@dataclass(frozen=True, eq=False)
class PartialRanks(ShownInLines):
    """What some rows contribute against a range of the entities.

    Attributes
    ----------
    task : Task
        Which rows and entities.
    counts : ndarray of int64, shape (6, n_targets)
        Greater, equal and tied ahead, micro and macro, of the answers counted in the rows.
    answer_nan : ndarray of bool, shape (n_targets,)
        The answer's own score is NaN.
    lengths : ndarray of int32, shape (rows that give a question's run,)
        Candidates kept.
    documents, scores : ndarray of int32; of float32 or float64
        The candidates kept, row after row, best first.
    nan_count : int
        NaN candidates met.
    dtype, path : str
        Of the scores; of the kernel.
    depth : int
        Asked run depth.
    nan : {"error", "worst"}
        What a NaN among the candidates is.
    questions_hash : str
        What the scores answer.
    tolerance : Tolerance or None
        Within which micro counts take scores as tied with the answer's.
    """

    task: Task
    counts: Int64
    answer_nan: npt.NDArray[np.bool_]
    lengths: Int32
    documents: Int32
    scores: Array
    nan_count: int
    dtype: str
    path: str
    depth: int
    nan: str
    questions_hash: str
    tolerance: Tolerance | None = None

    def _lines(self) -> tuple[str, str]:
        return (
            f"counts of {self.counts.shape[1]:,} answers, {len(self.documents):,} candidates kept",
            f"scores {self.dtype}, path {self.path}, run depth {self.depth:,}",
        )


def take_partial(
    state: NativeRanking,
    task: Task,
    depth: int,
    nan: str,
    questions_hash: str,
    shift: int = 0,
    rows: Int64 | None = None,
    tolerance: Tolerance | None = None,
    *,
    apart: bool = False,
) -> PartialRanks:
    """What a native ranking has found, in all rows or in some.

    ``shift`` leads from its numbers of entities to ids; ``tolerance`` is what it was ranked with.
    Arrays may be the ranking's own; ``apart``: none is.
    """
    plan: Rows = state.plan
    counts, answer_nan, nan_count = state.counts, state.target_nan, state.nan_count
    if rows is not None:
        plan, targets = plan.selected(rows)
        counts, answer_nan = counts[:, targets], answer_nan[targets]
        nan_count = nan_count[rows]
    elif apart:
        counts, answer_nan = counts.copy(), answer_nan.copy()
    slots: Any = _listed(plan.slot)
    every = len(slots) == len(state.best_length) and bool((slots[1:] > slots[:-1]).all())
    if every:
        slots = slice(None)  # no copy of what may be large
    lengths = state.best_length[slots].copy()
    best = [state.best_ids[slots], state.best_scores[slots]]
    width = state.best_ids.shape[1]
    if (lengths == width).all():
        documents, scores = (each.flatten() if apart and every else each.ravel() for each in best)
    else:
        used = np.arange(width) < lengths[:, None]
        documents, scores = (each[used] for each in best)
    if shift:
        documents = documents + np.int32(shift)
    return PartialRanks(
        task,
        counts,
        answer_nan,
        lengths,
        documents,
        scores,
        int(nan_count.sum()),
        state.dtype,
        active_path(),
        depth,
        nan,
        questions_hash,
        tolerance,
    )


def _listed(slot: Int64) -> Int64:
    """The slots of rows that give a question's run."""
    return slot[slot >= 0] if (slot < 0).any() else slot


def merge(parts: Iterable[PartialRanks], place: Callable[[Int32], Int32] | None) -> PartialRanks:
    """One part of several of the same rows with adjacent ranges, which come in ascending order.

    Parameters
    ----------
    parts : iterable of PartialRanks
    place : function, or None
        Place of entities' names in byte order, for their ids; None: ids are in that order.

    Raises
    ------
    UsageError
        Other rows, a gap, an overlap, or scores of another dtype.
    """
    return reduce(lambda one, other: _merge_two(one, other, place), parts)


def _merge_two(
    one: PartialRanks, other: PartialRanks, place: Callable[[Int32], Int32] | None
) -> PartialRanks:
    if one.task.rows != other.task.rows or one.task.stop_entity != other.task.first_entity:
        raise UsageError(f"parts do not fit together: {one.task} and {other.task}")
    _check_alike(one, other)
    return PartialRanks(
        Task(*one.task.rows, one.task.first_entity, other.task.stop_entity),
        one.counts + other.counts,
        one.answer_nan | other.answer_nan,
        *_merge_best(one, other, place),
        one.nan_count + other.nan_count,
        one.dtype,
        join_paths([one.path, other.path]),
        one.depth,
        one.nan,
        one.questions_hash,
        one.tolerance,
    )


def _check_alike(one: PartialRanks, other: PartialRanks) -> None:
    if one.questions_hash != other.questions_hash:
        raise UsageError(f"parts were ranked for other questions: {one.task} and {other.task}")
    names = ("dtype", "depth", "nan", "tolerance")
    mine, its = ([getattr(part, name) for name in names] for part in (one, other))
    if mine != its:
        raise UsageError(
            f"{one.task} have dtype, run depth, nan and tie tolerance {mine}; {other.task} have "
            f"{its}; rank all ranges alike"
        )


def join_paths(paths: Iterable[str]) -> str:
    """Kernel paths of several machines; their results have the same bits."""
    return ", ".join(sorted({name for path in paths for name in path.split(", ")}))


def _merge_best(
    one: PartialRanks, other: PartialRanks, place: Callable[[Int32], Int32] | None
) -> tuple[Int32, Int32, Array]:
    """The best of both, in trec order: score, then document name, both descending.

    A few rows at a time: sorting takes many times the memory of what is sorted.
    """
    depth = one.depth
    lengths = np.minimum(one.lengths.astype(np.int64) + other.lengths, depth).astype(np.int32)
    documents = np.empty(int(lengths.sum()), dtype=np.int32)
    scores = np.empty(len(documents), dtype=one.scores.dtype)
    step, at = max(1, _SORTED // max(1, 2 * depth)), [0, 0, 0]
    for start in range(0, len(lengths), step):
        rows = slice(start, start + step)
        n_rows = len(lengths[rows])
        sizes = [int(each.lengths[rows].sum()) for each in (one, other)]
        spans = [slice(low, low + size) for low, size in zip(at, sizes, strict=False)]
        pairs = list(zip((one, other), spans, strict=True))
        row = np.concatenate([np.repeat(np.arange(n_rows), p.lengths[rows]) for p, _ in pairs])
        ids = np.concatenate([part.documents[span] for part, span in pairs])
        value = np.concatenate([part.scores[span] for part, span in pairs])
        places = ids if place is None else place(ids)
        order = np.lexsort((-places, -value, row))
        row = row[order]
        order = order[np.arange(len(row)) - np.searchsorted(row, row) < depth]
        target = slice(at[2], at[2] + len(order))
        documents[target], scores[target] = ids[order], value[order]
        at = [at[0] + sizes[0], at[1] + sizes[1], target.stop]
    return lengths, documents, scores


def assemble(
    parts: Sequence[PartialRanks],
    plan: RowPlan,
    questions: Questions,
    *,
    rows: str,
    higher_is_better: bool,
    entity_ranges: int | None = None,
) -> tuple[Ranks, Run]:
    """Ranks and run, the very ones of one pass, from parts with all entities.

    Parameters
    ----------
    parts : sequence of PartialRanks
        Of disjoint rows that are all rows together, in any order.
    plan : RowPlan
        Of all rows.
    questions : Questions
    rows : {"questions", "instances"}
        What a row stands for.
    higher_is_better : bool
    entity_ranges : int, optional
        Ranges of entities that the scores came in, for the manifest.

    Raises
    ------
    UsageError
        A gap, an overlap, a part of the entities only, or parts that were ranked differently.
    """
    from kgtrec.ranking.ranks import assemble_ranks
    from kgtrec.trec.files.run import Run

    ordered = sorted(parts, key=lambda part: part.task)
    described = describe_parts(ordered, plan.n_rows, questions, rows, higher_is_better)
    if entity_ranges is not None:
        tolerance = {key: described.pop(key) for key in ("tie_tolerance",) if key in described}
        described |= {"entity_ranges": entity_ranges} | tolerance
    counts = _joined([part.counts for part in ordered], axis=1)
    unscored = _joined([part.answer_nan for part in ordered])
    ranks = assemble_ranks(questions, *plan.collect(counts, unscored), described)
    offsets, documents, scores = _by_question(ordered, plan.slot)
    run = Run(
        query_ids=questions.ids,
        offsets=offsets,
        documents=documents,
        scores=scores,
        docnos=questions.candidate_labels.docnos,
        depth=ordered[0].depth,
    )
    return ranks, run


def describe_parts(
    ordered: Sequence[PartialRanks],
    n_rows: int,
    questions: Questions,
    rows: str,
    higher_is_better: bool,
) -> dict[str, Any]:
    """What the manifest says of the scores that parts in the order of their rows were made from.

    Only what describes them is read, no counts; see `assemble` for the errors.
    """
    _check_rows(ordered, n_rows, questions)
    described: dict[str, Any] = {
        "dtype": ordered[0].dtype,
        "rows": rows,
        "higher_is_better": higher_is_better,
        "nan": ordered[0].nan,
        "nan_count": sum(part.nan_count for part in ordered),
        "kernel_path": join_paths(part.path for part in ordered),
    }
    if ordered[0].tolerance is not None:
        described["tie_tolerance"] = ordered[0].tolerance._asdict()
    return described


def _joined(columns: list[Array], axis: int = 0) -> Array:
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=axis)


def _by_question(parts: Sequence[PartialRanks], slot: Int64) -> tuple[Int64, Int32, Array]:
    """Candidates kept, from the order of rows to that of questions."""
    lengths = _joined([part.lengths for part in parts])
    documents = _joined([part.documents for part in parts])
    scores = _joined([part.scores for part in parts])
    question, starts = _listed(slot), _offsets(lengths)
    if (question[1:] > question[:-1]).all():
        return starts, documents, scores
    order = np.argsort(question, kind="stable")
    offsets = _offsets(lengths[order])
    at = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], lengths[order])
    return offsets, documents[at], scores[at]


def _offsets(lengths: Int32) -> Int64:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _check_rows(parts: Sequence[PartialRanks], n_rows: int, questions: Questions) -> None:
    if not parts:
        raise UsageError("there are no parts to join")
    for part in parts:
        if part.task.entities != (0, questions.n_labels):
            raise UsageError(f"not all entities: {part.task}; merge() the ranges of a block first")
        if part.questions_hash != questions.fingerprint:
            raise UsageError(f"{part.task} were ranked for other questions")
        _check_alike(parts[0], part)
    if parts[0].task.first_row or parts[-1].task.stop_row != n_rows:
        raise UsageError(f"parts of the rows are missing: {parts[0].task} to {parts[-1].task}")
    for one, other in pairwise(parts):
        if one.task.stop_row != other.task.first_row:
            raise UsageError(f"parts do not follow one another: {one.task} and {other.task}")
