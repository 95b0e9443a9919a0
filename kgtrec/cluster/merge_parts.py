"""How parts of a ranking become one: ranges of the same rows, then all rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.part import Inputs, Partial, Task, answer_scores, partial
from kgtrec.cluster.question_store import Store, gather
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["finish", "join_paths", "merge", "perform"]

Array = npt.NDArray[Any]

_SORTED = 1 << 18  # candidates that are sorted at a time


def perform(rows: tuple[int, int], ranges: Sequence[tuple[int, int]], inputs: Inputs) -> Partial:
    """Rank a block of rows among adjacent ranges of entities, one after another."""
    answers = None
    if len(ranges) > 1 or ranges[0] != (0, inputs.store().n_entities):
        everything = Task(*rows, 0, inputs.store().n_entities)
        answers = answer_scores(everything, inputs)[0]
    parts = (partial(Task(*rows, *entities), inputs, answers) for entities in ranges)
    return merge(parts, inputs)


def merge(parts: Iterable[Partial], inputs: Inputs) -> Partial:
    """One part of several of the same rows with adjacent ranges, which come in ascending order.

    Raises
    ------
    UsageError
        Other rows, a gap, an overlap, or another dtype.
    """
    store = inputs.store()
    return reduce(lambda one, other: _merge_two(one, other, inputs.run_depth, store), parts)


def _merge_two(one: Partial, other: Partial, depth: int, store: Store) -> Partial:
    if one.task.rows != other.task.rows or one.task.stop_entity != other.task.first_entity:
        raise UsageError(f"parts do not fit together: {one.task} and {other.task}")
    if one.dtype != other.dtype:
        raise UsageError(f"parts have scores of dtype {one.dtype} and {other.dtype}; rank alike")
    lengths, documents, scores = _merge_best(one, other, depth, store)
    return Partial(
        Task(*one.task.rows, one.task.first_entity, other.task.stop_entity),
        one.counts + other.counts,
        one.answer_nan | other.answer_nan,
        lengths,
        documents,
        scores,
        one.nan_count + other.nan_count,
        one.dtype,
        join_paths([one.path, other.path]),
    )


def join_paths(paths: Iterable[str]) -> str:
    """Kernel paths of several machines; their results have the same bits."""
    return ", ".join(sorted({name for path in paths for name in path.split(", ")}))


def _merge_best(
    one: Partial, other: Partial, depth: int, store: Store
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Array]:
    """The best of both, in trec order: score, then document name, both descending.

    A few rows at a time: sorting takes many times the memory of what is sorted.
    """
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
        found = np.concatenate([part.documents[span] for part, span in pairs])
        value = np.concatenate([part.scores[span] for part, span in pairs])
        place = found if store.ordered else gather(store.array("position"), found)
        order = np.lexsort((-place, -value, row))
        row = row[order]
        order = order[np.arange(len(row)) - np.searchsorted(row, row) < depth]
        target = slice(at[2], at[2] + len(order))
        documents[target], scores[target] = found[order], value[order]
        at = [at[0] + sizes[0], at[1] + sizes[1], target.stop]
    return lengths, documents, scores


def finish(parts: Sequence[Partial], inputs: Inputs) -> tuple[Ranks, Run]:
    """Ranks and run, the very ones of one pass, from parts with all entities.

    Parameters
    ----------
    parts : sequence of Partial
        Of disjoint rows that are all rows together, in any order.
    inputs : Inputs

    Raises
    ------
    UsageError
        A gap, an overlap, a part of the entities only, or parts of different dtypes.
    """
    from kgtrec.ranking.ranks import assemble_ranks
    from kgtrec.trec.files.run import Run

    store = inputs.store()
    ordered = sorted(parts, key=lambda part: part.task)
    _check_rows(ordered, store)
    questions, plan = store.questions(mapped=False), store.plan()
    described = {
        "dtype": ordered[0].dtype,
        "rows": store.rows,
        "higher_is_better": inputs.higher_is_better,
        "nan": inputs.nan,
        "nan_count": sum(part.nan_count for part in ordered),
        "kernel_path": join_paths(part.path for part in ordered),
    }
    counts = np.concatenate([part.counts for part in ordered], axis=1)
    unscored = np.concatenate([part.answer_nan for part in ordered])
    ranks = assemble_ranks(questions, *plan.collect(counts, unscored), described)
    offsets, documents, scores = _by_question(ordered, plan.slot)
    run = Run(
        query_ids=questions.ids,
        offsets=offsets,
        documents=documents,
        scores=scores,
        docnos=questions.graph.entities.docnos,
        depth=inputs.run_depth,
    )
    return ranks, run


def _by_question(
    parts: Sequence[Partial], slot: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Array]:
    """Candidates kept, from the order of rows to that of questions."""
    lengths = np.concatenate([part.lengths for part in parts])
    documents = np.concatenate([part.documents for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    question = np.array(slot[slot >= 0])
    order = np.argsort(question, kind="stable")
    starts = np.cumsum(lengths) - lengths
    offsets = np.append(0, np.cumsum(lengths[order])).astype(np.int64)
    if (order[1:] > order[:-1]).all():
        return offsets, documents, scores
    at = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], lengths[order])
    return offsets, documents[at], scores[at]


def _check_rows(parts: Sequence[Partial], store: Store) -> None:
    if not parts:
        raise UsageError("there are no parts to join")
    for part in parts:
        if part.task.entities != (0, store.n_entities):
            raise UsageError(f"not all entities: {part.task}; merge() the ranges of a block first")
        if part.dtype != parts[0].dtype:
            raise UsageError(f"scores have dtype {part.dtype} and {parts[0].dtype}; rank alike")
    if parts[0].task.first_row or parts[-1].task.stop_row != store.n_rows:
        raise UsageError(f"parts of the rows are missing: {parts[0].task} to {parts[-1].task}")
    for one, other in pairwise(parts):
        if one.task.stop_row != other.task.first_row:
            raise UsageError(f"parts do not follow one another: {one.task} and {other.task}")
