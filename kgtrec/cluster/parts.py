"""One part of a ranking: a block of rows of scores for a range of the entities.

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

from kgtrec._internal.arrays import Array, Bools, Float64, Int32, Int64
from kgtrec._internal.csr import Csr, find_sorted, offsets_of, select_lists
from kgtrec.cluster.question_store import Store, read_rows
from kgtrec.cluster.score_files import FactorFiles, Files, ScoreFiles
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking import partial as parts_of
from kgtrec.ranking.blocks import nan_error, rank_all
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import PartialRanks, Task, assemble, extract_part
from kgtrec.ranking.ranks import RanksAndRun
from kgtrec.ranking.rows import QuestionLists, Rows, label_order
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import guarded_maps


class _PartEntities(NamedTuple):
    """The entities of a part: a range, and the answers below and above it.

    They are renumbered from 0 in ascending order.

    - first, stop: The range; `stop` is not in it.
    - below, above, int64: Answers outside the range, ascending.
    """

    first: int
    stop: int
    below: Int64
    above: Int64

    @property
    def size(self) -> int:
        """Number of entities."""
        return len(self.below) + self.stop - self.first + len(self.above)

    def renumber(self, ids: Array) -> tuple[Int32, Bools]:
        """Return the new number of each id, int32 (n,), and whether it has one, bool (n,)."""
        ids = ids.astype(np.int64)
        is_local = (ids >= self.first) & (ids < self.stop)
        new_id = ids - self.first + len(self.below)
        for others, start in ((self.below, 0), (self.above, self.size - len(self.above))):
            if len(others):
                index = find_sorted(others, ids)
                new_id, is_local = (
                    np.where(index < 0, new_id, index + start),
                    is_local | (index >= 0),
                )
        return new_id.astype(np.int32), is_local

    def reorder(self, array: Array) -> Array:
        """Return the elements of an array over all entities, in the order of the new numbers."""
        below, above = (read_rows(array, ids) for ids in (self.below, self.above))
        return np.concatenate([below, array[self.first : self.stop], above])


def open_rows(store: Store, first: int, stop: int) -> tuple[Rows, Int64]:
    """Read rows `first` to `stop`.

    Returns them with questions numbered from 0, and the questions' numbers in the store.
    """
    offsets = np.array(store.array("plan_target_offsets")[first : stop + 1])
    targets = np.array(store.array("plan_targets")[offsets[0] : offsets[-1]])
    numbers, question = np.unique(store.array("plan_question")[first:stop], return_inverse=True)
    question = question.astype(np.int64).reshape(-1)
    slot = np.where(store.array("plan_slot")[first:stop] >= 0, question, -1)
    return Rows(question, offsets - offsets[0], targets, slot), np.asarray(numbers)


def open_slice(
    store: Store, rows: tuple[int, int], entities: tuple[int, int]
) -> tuple[QuestionLists, Rows, Int64, int]:
    """Read a block of rows for a range of entities; both are (first, stop).

    Returns
    -------
    lists : QuestionLists
        Filter lists and candidates of the rows' questions, with entities renumbered from 0.
    rows : Rows
        The rows, with questions and entities renumbered from 0.
    numbers : int64 (n_questions,)
        Numbers of the questions in the store.
    offset : int
        New number of the first entity of the range.
    """
    plan, numbers = open_rows(store, *rows)
    part_entities = None
    if entities != (0, store.n_labels):
        targets = np.unique(plan.targets).astype(np.int64)
        part_entities = _PartEntities(
            *entities, targets[targets < entities[0]], targets[targets >= entities[1]]
        )
        plan = replace(plan, targets=part_entities.renumber(plan.targets)[0])
    position = None
    if not store.ordered and part_entities is None:
        position = store.array("position")
    elif not store.ordered and part_entities is not None:
        order = part_entities.reorder(store.array("position"))
        position = np.argsort(np.argsort(order)).astype(np.int32)
    candidate_lists = store.candidate_lists()
    lists = QuestionLists(
        store.n_labels if part_entities is None else part_entities.size,
        _renumber_lists(store, "known", numbers, part_entities),
        _renumber_lists(store, "removed", numbers, part_entities),
        None if candidate_lists is None else candidate_lists.select(numbers),
        label_order(position),
    )
    return lists, plan, numbers, 0 if part_entities is None else len(part_entities.below)


def _renumber_lists(
    store: Store, name: str, numbers: Int64, part_entities: _PartEntities | None
) -> Csr:
    """Return the lists `name` of some questions, with only the part's entities, renumbered."""
    lists = select_lists(Csr(store.array(f"{name}_offsets"), store.array(f"{name}_ids")), numbers)
    if part_entities is None:
        return lists
    new_ids, is_local = part_entities.renumber(lists.ids)
    return Csr(offsets_of(is_local)[lists.offsets], new_ids[is_local])


GATHERED_BYTES = 16 << 20
"""Memory for vectors of answers at a time."""


ONE_THREAD = Settings(threads=1)
"""Settings of tasks: each uses one thread, because a worker runs one task per thread."""


@dataclass(frozen=True)
class Inputs:
    """The inputs that all parts of a ranking share, by path.

    - folder: The store of the questions (`kgtrec.cluster.question_store.save_questions`).
    - files: None if every part receives its block of scores.
    - settings: Settings of the ranking, with the threads of one worker.
    """

    folder: str
    files: Files | None = None
    settings: Settings = ONE_THREAD

    def store(self) -> Store:
        """Open the store of the questions."""
        return Store(self.folder)


class NanFound(InputError):
    """NaN among scores, found on a worker that has no names.

    Arguments: the question, the entity, and the number of further NaNs.
    """

    def with_names(self, inputs: Inputs) -> InputError:
        """Return the error for users, with names; this needs all files of the questions."""
        location = inputs.files.location if inputs.files else ""
        question, entity, more = self.args
        return nan_error(inputs.store().questions(), question, entity, more, location)


# -- The answers' own scores -------------------------------------------------------------------


def answer_scores(task: Task, inputs: Inputs, block: Array | None = None) -> Float64:
    """Return the scores of the rows' answers, 0 for answers outside the task's range.

    Shape: float64 (n_targets,). Scores come from `block` (rows, entities), or from the files.
    """
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
    values[filled] = ScoreBlock.from_scores(scores, negate).values_at(slice(None))
    return values


def _multiply_answers(
    plan: Rows, numbers: Int64, task: Task, inputs: Inputs, values: Float64
) -> None:
    """Write the scores of the answers in the range into `values`, by products of vectors.

    Only a few vectors of answers are in memory at a time.
    """
    files = inputs.files
    assert isinstance(files, FactorFiles)
    queries = files.read_queries(*task.rows)
    answers, index = np.unique(plan.targets, return_inverse=True)
    if not len(answers):
        return
    plan = replace(plan, targets=index.astype(np.int32).reshape(-1))
    empty = Csr(np.zeros(len(numbers) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    lists = QuestionLists(len(answers), empty, empty)
    state = NativeRanking(lists, plan, ONE_THREAD, files.dtype)
    low, high = np.searchsorted(answers, task.entities).tolist()
    step = max(1, GATHERED_BYTES // max(1, files.entities.shape[1] * files.itemsize))
    for start in range(low, high, step):
        entities = answers[start : min(start + step, high)].astype(np.int64)
        state.first_entity = start
        state.target_scores(files.factors(queries, entities), values)


# -- Counts ------------------------------------------------------------------------------------


def rank_part(
    task: Task, inputs: Inputs, answers: Float64 | None = None, block: Array | None = None
) -> PartialRanks:
    """Rank the answers of the task's rows among its entities.

    - answers, float64 (n_targets,): Scores of the rows' answers, if entities are a range.
    - block: Scores (rows, entities); None: read them from the files.
    """
    store = inputs.store()
    has_all = task.entities == (0, store.n_labels)
    if not has_all and (store.restricted or answers is None):
        reason = "restricted candidates" if store.restricted else "unknown scores of the answers"
        raise UsageError(
            f"{task}: a range of entities does not work with {reason}; rank all entities at once"
        )
    lists, rows, numbers, offset = open_slice(store, task.rows, task.entities)

    def refuse(question: int, entity: int, more: int) -> InputError:
        problem = NanFound(int(numbers[question]), task.first_entity - offset + entity, more)
        return problem.with_names(inputs) if store.has_all_files else problem

    state = rank_all(
        lists,
        rows,
        _open_scores(task, inputs, store, block),
        inputs.settings,
        refuse,
        first_entity=offset,
        answers=None if has_all else answers,
    )
    return extract_part(state, task, store.body["fingerprint"], task.first_entity - offset)


def _open_scores(
    task: Task, inputs: Inputs, store: Store, block: Array | None
) -> ScoreBlock | Factors:
    """Return the scores of a part: the block if there is one, else from the files."""
    if block is None and isinstance(inputs.files, FactorFiles):
        return inputs.files.factors(inputs.files.read_queries(*task.rows), slice(*task.entities))
    has_all = task.entities == (0, store.n_labels)
    shape = (
        task.stop_row - task.first_row,
        store.n_columns if has_all else task.stop_entity - task.first_entity,
    )
    if block is None:
        assert isinstance(inputs.files, ScoreFiles)
        columns = slice(task.first_entity, task.first_entity + shape[1])
        block = inputs.files.block(*task.rows, columns)
    if block.shape != shape:
        raise InputError(f"scores of {task} have shape {block.shape}; expected {shape}")
    return ScoreBlock.from_scores(block, not inputs.settings.higher_is_better)


def rank_block(
    rows: tuple[int, int],
    ranges: Sequence[tuple[int, int]],
    inputs: Inputs,
    block: Array | None = None,
) -> PartialRanks:
    """Rank a block of rows with adjacent ranges of entities, and merge the parts.

    ``block`` are the scores of the rows with all columns; None: read them from the files.
    """
    everything = Task(*rows, 0, inputs.store().n_labels)

    def part(entities: tuple[int, int]) -> PartialRanks:
        columns = block
        if block is not None and entities != everything.entities:
            columns = block[:, slice(*entities)]
        return rank_part(Task(*rows, *entities), inputs, answers, columns)

    with guarded_maps(inputs.files.location if inputs.files else inputs.folder):
        is_cut = list(ranges) != [everything.entities]
        answers = answer_scores(everything, inputs, block) if is_cut else None
        return merge_parts(map(part, ranges), inputs)


def merge_parts(parts: Iterable[PartialRanks], inputs: Inputs) -> PartialRanks:
    """Merge parts of adjacent ranges of entities (`kgtrec.ranking.partial.merge_adjacent`)."""
    store = inputs.store()
    if store.ordered:
        return parts_of.merge_adjacent(parts, None)
    return parts_of.merge_adjacent(parts, lambda ids: read_rows(store.array("position"), ids))


def join_parts(
    parts: Sequence[PartialRanks], inputs: Inputs, facts: Sequence[str] = ()
) -> RanksAndRun:
    """Join parts of disjoint rows with all entities to the ranks and run of one process.

    - facts: Sentences on the formula of a model of vectors.
    """
    store = inputs.store()
    return assemble(parts, store.plan(), store.questions(mapped=False), model_facts=facts)
