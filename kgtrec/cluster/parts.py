"""One part of a ranking: some rows of scores against a range of the entities.

A worker gets an `Inputs` and a `Task`, a few hundred bytes pickled, and opens what it needs by
path. The answers of a part may be outside its range, so their scores come first
(`answer_scores`): single elements of a matrix, or single dot products. Every part fetches them
itself, which costs less than waiting for the part that ranks their range. Then the parts' counts
are added and their best candidates merged (`kgtrec.ranking.partial`).

A part's entities (those of its range and the answers of its rows) are renumbered from 0 in
ascending order. That changes neither counts nor ties, and the memory of a part does not depend
on the size of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kgtrec._internal.csr import (
    Array,
    Bools,
    Csr,
    Float64,
    Int32,
    Int64,
    offsets_of,
    searched,
    take,
)
from kgtrec.cluster.question_store import Store, read_rows
from kgtrec.cluster.score_files import FactorFiles, Files, ScoreFiles
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking import partial as parts_of
from kgtrec.ranking.blocks import nan_error, rank_all
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import PartialRanks, Task, assemble, partial_of
from kgtrec.ranking.ranks import Ranks
from kgtrec.ranking.rows import QuestionLists, Rows, order_of
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import guarded_maps
from kgtrec.trec.files.run import Run


class _Met(NamedTuple):
    """Entities of a part: a range, and answers below and above it."""

    first: int
    stop: int
    below: Int64
    above: Int64

    @property
    def size(self) -> int:
        return len(self.below) + self.stop - self.first + len(self.above)

    def local(self, ids: Array) -> tuple[Int32, Bools]:
        """New numbers, and whether each id has one."""
        ids = ids.astype(np.int64)
        met = (ids >= self.first) & (ids < self.stop)
        number = ids - self.first + len(self.below)
        for others, start in ((self.below, 0), (self.above, self.size - len(self.above))):
            if len(others):
                at = searched(others, ids)
                number, met = np.where(at < 0, number, at + start), met | (at >= 0)
        return number.astype(np.int32), met

    def take(self, array: Array) -> Array:
        """Elements of an array by entity, in the order of the new numbers."""
        below, above = (read_rows(array, ids) for ids in (self.below, self.above))
        return np.concatenate([below, array[self.first : self.stop], above])


def open_rows(store: Store, first: int, stop: int) -> tuple[Rows, Int64]:
    """Some rows with questions numbered from 0, and these questions' numbers in the store."""
    offsets = np.array(store.array("plan_target_offsets")[first : stop + 1])
    targets = np.array(store.array("plan_targets")[offsets[0] : offsets[-1]])
    numbers, local = np.unique(store.array("plan_question")[first:stop], return_inverse=True)
    local = local.astype(np.int64).reshape(-1)
    slot = np.where(store.array("plan_slot")[first:stop] >= 0, local, -1)
    return Rows(local, offsets - offsets[0], targets, slot), np.asarray(numbers)


def open_slice(
    store: Store, rows: tuple[int, int], entities: tuple[int, int]
) -> tuple[QuestionLists, Rows, Int64, int]:
    """Rows and a range of entities, renumbered; numbers of questions; the range's new start."""
    plan, numbers = open_rows(store, *rows)
    met = None
    if entities != (0, store.n_labels):
        targets = np.unique(plan.targets).astype(np.int64)
        met = _Met(*entities, targets[targets < entities[0]], targets[targets >= entities[1]])
        plan = replace(plan, targets=met.local(plan.targets)[0])
    position = None
    if not store.ordered and met is None:
        position = store.array("position")
    elif not store.ordered and met is not None:
        places = met.take(store.array("position"))
        position = np.argsort(np.argsort(places)).astype(np.int32)
    candidate_lists = store.candidate_lists()
    lists = QuestionLists(
        store.n_labels if met is None else met.size,
        _lists(store, "known", numbers, met),
        _lists(store, "removed", numbers, met),
        None if candidate_lists is None else candidate_lists.selected(numbers),
        order_of(position),
    )
    return lists, plan, numbers, 0 if met is None else len(met.below)


def _lists(store: Store, name: str, numbers: Int64, met: _Met | None) -> Csr:
    """Lists of some questions, renumbered, with only the part's entities."""
    some = take(Csr(store.array(f"{name}_offsets"), store.array(f"{name}_ids")), numbers)
    if met is None:
        return some
    local, mask = met.local(some.ids)
    return Csr(offsets_of(mask)[some.offsets], local[mask])


GATHERED = 16 << 20
"""Bytes of answers' vectors in memory at a time."""


ONE_THREAD = Settings(threads=1)
"""A task uses one thread; a worker runs one task per thread."""


@dataclass(frozen=True)
class Inputs:
    """The inputs that all parts of a ranking share, by path.

    - folder: The store of the questions (`kgtrec.cluster.question_store.save_questions`).
    - files: None if every part receives its block of scores.
    - settings: With the threads of one worker.
    """

    folder: str
    files: Files | None = None
    settings: Settings = ONE_THREAD

    def store(self) -> Store:
        """The questions."""
        return Store(self.folder)


class NanFound(InputError):
    """NaN of a question (1st argument), an entity and so many more, on a worker without names."""

    def named(self, inputs: Inputs) -> InputError:
        """The error for users, with names; needs all files of the questions."""
        place = inputs.files.place if inputs.files else ""
        question, entity, more = self.args
        return nan_error(inputs.store().questions(), question, entity, more, place)


# -- The answers' own scores -------------------------------------------------------------------


def answer_scores(task: Task, inputs: Inputs, block: Array | None = None) -> Float64:
    """Scores of the rows' answers, 0 outside the task's range: float64 (n_targets,)."""
    plan, numbers = open_rows(inputs.store(), *task.rows)
    filled = (plan.targets >= task.first_entity) & (plan.targets < task.stop_entity)
    values = np.zeros(len(plan.targets))
    if block is None and isinstance(inputs.files, FactorFiles):
        _multiply_answers(plan, numbers, task, inputs, values)
        return values
    row = np.repeat(np.arange(plan.n_rows), np.diff(plan.target_offsets))[filled]
    answer = plan.targets[filled]
    if block is None:
        assert isinstance(inputs.files, ScoreFiles)
        scores = inputs.files.elements(task.first_row + row, answer)
    else:
        scores = block[row, answer - task.first_entity]
    negate = not inputs.settings.higher_is_better
    values[filled] = ScoreBlock.of(scores, negate).directed(slice(None))
    return values


def _multiply_answers(
    plan: Rows, numbers: Int64, task: Task, inputs: Inputs, values: Float64
) -> None:
    """Scores of the answers in the range, their vectors gathered a few at a time."""
    files = inputs.files
    assert isinstance(files, FactorFiles)
    queries = files.some_queries(*task.rows)
    answers, number = np.unique(plan.targets, return_inverse=True)
    if not len(answers):
        return
    plan = replace(plan, targets=number.astype(np.int32).reshape(-1))
    empty = Csr(np.zeros(len(numbers) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    lists = QuestionLists(len(answers), empty, empty)
    state = NativeRanking(lists, plan, ONE_THREAD, files.dtype)
    low, high = np.searchsorted(answers, task.entities).tolist()
    step = max(1, GATHERED // max(1, files.entities.shape[1] * files.itemsize))
    for start in range(low, high, step):
        some = answers[start : min(start + step, high)].astype(np.int64)
        state.first_entity = start
        state.target_scores(files.factors(queries, some), values)


# -- Counts ------------------------------------------------------------------------------------


def partial(
    task: Task, inputs: Inputs, answers: Float64 | None = None, block: Array | None = None
) -> PartialRanks:
    """Rank the answers of some rows among a range of the entities, whose scores may be a block."""
    store = inputs.store()
    whole = task.entities == (0, store.n_labels)
    if not whole and (store.restricted or answers is None):
        reason = "restricted candidates" if store.restricted else "unknown scores of the answers"
        raise UsageError(
            f"{task}: a range of entities does not work with {reason}; rank all entities at once"
        )
    lists, rows, numbers, offset = open_slice(store, task.rows, task.entities)

    def refuse(question: int, entity: int, more: int) -> InputError:
        problem = NanFound(int(numbers[question]), task.first_entity - offset + entity, more)
        return problem.named(inputs) if store.whole else problem

    state = rank_all(
        lists, rows, _scores(task, inputs, store, block), inputs.settings, refuse,
        first_entity=offset, answers=None if whole else answers
    )  # fmt: skip
    return partial_of(state, task, store.body["fingerprint"], task.first_entity - offset)


def _scores(task: Task, inputs: Inputs, store: Store, block: Array | None) -> ScoreBlock | Factors:
    """The scores of a part: the given block, or from the files."""
    if block is None and isinstance(inputs.files, FactorFiles):
        return inputs.files.factors(inputs.files.some_queries(*task.rows), slice(*task.entities))
    whole = task.entities == (0, store.n_labels)
    shape = (
        task.stop_row - task.first_row,
        store.n_columns if whole else task.stop_entity - task.first_entity,
    )
    if block is None:
        assert isinstance(inputs.files, ScoreFiles)
        columns = slice(task.first_entity, task.first_entity + shape[1])
        block = inputs.files.block(*task.rows, columns)
    if block.shape != shape:
        raise InputError(f"scores of {task} have shape {block.shape}; expected {shape}")
    return ScoreBlock.of(block, not inputs.settings.higher_is_better)


def rank_block(
    rows: tuple[int, int],
    ranges: Sequence[tuple[int, int]],
    inputs: Inputs,
    block: Array | None = None,
) -> PartialRanks:
    """Rank a block of rows, with all columns if given, among adjacent ranges of entities."""
    everything = Task(*rows, 0, inputs.store().n_labels)

    def part(entities: tuple[int, int]) -> PartialRanks:
        own = block
        if block is not None and entities != everything.entities:
            own = block[:, slice(*entities)]
        return partial(Task(*rows, *entities), inputs, answers, own)

    with guarded_maps(inputs.files.place if inputs.files else inputs.folder):
        is_cut = list(ranges) != [everything.entities]
        answers = answer_scores(everything, inputs, block) if is_cut else None
        return merge_parts(map(part, ranges), inputs)


def merge_parts(parts: Iterable[PartialRanks], inputs: Inputs) -> PartialRanks:
    """`kgtrec.ranking.partial.merge_adjacent`, with the store's order of names."""
    store = inputs.store()
    if store.ordered:
        return parts_of.merge_adjacent(parts, None)
    return parts_of.merge_adjacent(parts, lambda ids: read_rows(store.array("position"), ids))


def join_parts(parts: Sequence[PartialRanks], inputs: Inputs) -> tuple[Ranks, Run]:
    """Ranks and run, equal to those of one pass, from parts with all entities of disjoint rows."""
    store = inputs.store()
    return assemble(parts, store.plan(), store.questions(mapped=False))
