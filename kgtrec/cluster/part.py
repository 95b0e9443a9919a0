"""One part of a ranking: some rows of scores against a range of the entities.

A worker gets an `Inputs` and a `Task`, a few hundred bytes pickled, and opens what it needs by
path. The answers of a part may lie outside its range, so their scores come first
(`answer_scores`): single elements of a matrix, or single dot products. Every part can fetch them
itself, which costs less than waiting for whoever ranks their range. Then the parts' counts add up
and their best candidates merge (`kgtrec.cluster.merge_parts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr
from kgtrec.cluster.array_files import FactorFiles, Files, ScoreFiles
from kgtrec.cluster.entity_slice import Slice, open_rows, open_slice
from kgtrec.cluster.question_store import Store
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.questions import describe_question
from kgtrec.ranking.kernel import NativeRanking, active_path
from kgtrec.ranking.nan_scores import by_entity, settle_nans
from kgtrec.ranking.row_plan import RowPlan
from kgtrec.scores.arrays import comparable, directed, score_dtype

__all__ = ["Inputs", "Partial", "Task", "answer_scores", "partial"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

GATHERED = 16 << 20
"""Bytes of answers' vectors that are in memory at a time."""


@dataclass(frozen=True)
class Inputs:
    """What all parts of a ranking share, by path.

    Attributes
    ----------
    folder : str
        The store of the questions (`kgtrec.cluster.question_store.save_questions`).
    files : ScoreFiles or FactorFiles or None
        None: every part is handed its block of scores.
    run_depth : int
        Best candidates to keep per question.
    higher_is_better : bool
    nan : {"error", "worst"}
    threads : int
        Threads of one worker.
    """

    folder: str
    files: Files | None = None
    run_depth: int = 0
    higher_is_better: bool = True
    nan: str = "error"
    threads: int = 1

    def store(self) -> Store:
        """The questions."""
        return Store(self.folder)


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
class Partial:
    """What one part contributes.

    Attributes
    ----------
    task : Task
    counts : ndarray of int64, shape (6, n_jobs)
        Greater, equal and tied ahead, micro and macro, of the answers counted in the rows.
    answer_nan : ndarray of bool, shape (n_jobs,)
        The answer's own score is NaN.
    lengths : ndarray of int32, shape (rows that give a question's run,)
        Candidates kept.
    documents, scores : ndarray of int32; of float32 or float64
        The candidates kept, row after row, best first.
    nan_count : int
        NaN candidates met.
    dtype, path : str
        Of the scores; of the kernel.
    """

    task: Task
    counts: Int64
    answer_nan: npt.NDArray[np.bool_]
    lengths: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    scores: Array
    nan_count: int
    dtype: str
    path: str


# -- The answers' own scores -------------------------------------------------------------------


def answer_scores(
    task: Task, inputs: Inputs, block: Array | None = None
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Scores of the answers of the rows that lie in the task's range.

    Parameters
    ----------
    task : Task
        A range of all entities gives every answer's score.
    inputs : Inputs
    block : ndarray, shape (rows, entities of the range), optional
        The scores; by default they are read from the files.

    Returns
    -------
    values : ndarray of float64, shape (n_jobs,)
        Exact copies of the scores, negated if lower is better.
    filled : ndarray of bool, shape (n_jobs,)
        Which of the answers are in the range; the others' values are 0.
    """
    plan, numbers = open_rows(inputs.store(), *task.rows)
    filled = (plan.jobs >= task.first_entity) & (plan.jobs < task.stop_entity)
    values = np.zeros(len(plan.jobs))
    if block is None and isinstance(inputs.files, FactorFiles):
        _multiply_answers(plan, numbers, task, inputs, values)
        return values, filled
    row = np.repeat(np.arange(plan.n_rows), np.diff(plan.job_offsets))[filled]
    answer = plan.jobs[filled]
    if block is None:
        assert isinstance(inputs.files, ScoreFiles)
        found = inputs.files.elements(task.first_row + row, answer)
    else:
        found = block[row, answer - task.first_entity]
    dtype = score_dtype(found)
    values[filled] = directed(comparable(found, dtype), dtype, inputs.higher_is_better)
    return values, filled


def _multiply_answers(
    plan: RowPlan, numbers: Int64, task: Task, inputs: Inputs, values: Float64
) -> None:
    """Scores of the answers in the range, their vectors gathered a few at a time."""
    files = inputs.files
    assert isinstance(files, FactorFiles)
    queries = files.some_queries(*task.rows)
    answers, number = np.unique(plan.jobs, return_inverse=True)
    if not len(answers):
        return
    plan = replace(plan, jobs=number.astype(np.int32).reshape(-1))
    empty = Csr(np.zeros(len(numbers) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    piece = Slice(numbers, 0, len(answers), empty, empty, None, _UNORDERED)
    state = NativeRanking(cast(Any, piece), plan, 0, files.dtype, 1)
    low, high = np.searchsorted(answers, task.entities).tolist()
    step = max(1, GATHERED // max(1, files.entities.shape[1] * files.itemsize))
    for start in range(low, high, step):
        some = answers[start : min(start + step, high)].astype(np.int64)
        state.factor_job_scores(files.factors(queries, some), values, first_entity=start)


# Stands for a graph where only scores are wanted, and no order of names.
_UNORDERED = SimpleNamespace(entities=SimpleNamespace(trec_order=None))


# -- Counts ------------------------------------------------------------------------------------


def partial(
    task: Task, inputs: Inputs, answers: Float64 | None = None, block: Array | None = None
) -> Partial:
    """Rank the answers of some rows among a range of the entities.

    Parameters
    ----------
    task : Task
    inputs : Inputs
    answers : ndarray of float64, shape (n_jobs,), optional
        The score of every answer of the rows, as `answer_scores` gives them; not needed where the
        range is that of all entities.
    block : ndarray, shape (rows, entities of the range), optional
        The scores; by default they are read from the files.

    Raises
    ------
    InputError
        NaN among the candidates (with ``nan="error"``), or a wrong shape.
    UsageError
        A range of some entities without `answers`, or with restricted candidates.
    """
    store = inputs.store()
    whole = task.entities == (0, store.n_entities)
    if not whole and (store.restricted or answers is None):
        reason = "restricted candidates" if store.restricted else "unknown scores of the answers"
        raise UsageError(f"a range of entities does not go together with {reason}")
    piece, plan = open_slice(store, task.rows, task.entities)
    given = None if whole else answers
    if block is None and isinstance(inputs.files, FactorFiles):
        return _rank_factors(task, inputs, piece, plan, given)
    width = store.n_columns if whole else task.stop_entity - task.first_entity
    if block is None:
        assert isinstance(inputs.files, ScoreFiles)
        block = inputs.files.block(*task.rows, slice(task.first_entity, task.first_entity + width))
    if block.shape != (plan.n_rows, width):
        raise InputError(f"scores of {task} have shape {block.shape}; {plan.n_rows, width} wanted")
    return _rank_matrix(task, inputs, piece, plan, given, block)


def _rank_matrix(
    task: Task,
    inputs: Inputs,
    piece: Slice,
    plan: RowPlan,
    answers: Float64 | None,
    block: Array,
) -> Partial:
    dtype = score_dtype(block)
    state = NativeRanking(cast(Any, piece), plan, inputs.run_depth, dtype, inputs.threads)
    block = comparable(block, dtype)
    state.rank_rows(
        block,
        0,
        negate=not inputs.higher_is_better,
        first_entity=piece.offset,
        job_scores=answers,
    )

    def row_scores(row: int) -> Array:
        scores = directed(block[row], dtype, inputs.higher_is_better)
        return by_entity(piece.domain, piece.n_entities, int(plan.question[row]), scores)

    refuse = _refusal(task, inputs, piece, plan)
    nans = settle_nans(state, piece, piece.offset, answers, row_scores, refuse)
    return _collect(task, piece, plan, state, *nans)


def _rank_factors(
    task: Task, inputs: Inputs, piece: Slice, plan: RowPlan, answers: Float64 | None
) -> Partial:
    files = inputs.files
    assert isinstance(files, FactorFiles)
    queries, ordered = files.some_queries(*task.rows), plan
    if piece.domain is not None:
        # Rows with the same candidates follow one another, so that these are packed once.
        order = np.argsort(piece.domain.of[plan.question], kind="stable")
        ordered, queries = plan.reordered(order), queries[order]
    factors = files.factors(queries, slice(*task.entities))
    dtype, depth = factors.dtype.name, inputs.run_depth
    state = NativeRanking(cast(Any, piece), ordered, depth, dtype, inputs.threads)
    state.rank_factors(factors, first_entity=piece.offset, job_scores=answers)
    refuse = _refusal(task, inputs, piece, ordered)
    nans = settle_nans(
        state, piece, piece.offset, answers, lambda row: factors.scores(row, row + 1)[0], refuse
    )
    place = ordered.micro  # of each answer of the rows as they were
    state.counts = state.counts[:, place]
    return _collect(task, piece, plan, state, nans[0], nans[1][place])


def _refusal(
    task: Task, inputs: Inputs, piece: Slice, plan: RowPlan
) -> Callable[[int, int, int], InputError] | None:
    """Makes the error of a NaN; None where NaN is the worst score."""
    if inputs.nan == "worst":
        return None

    def refuse(row: int, entity: int, more: int) -> InputError:
        questions = inputs.store().questions()
        question, entity = int(piece.numbers[plan.question[row]]), task.first_entity + entity
        place = f"{inputs.files.place}: " if inputs.files and inputs.files.place else ""
        return InputError(
            f"{place}scores: NaN for {describe_question(questions, question)}, entity "
            f"{questions.graph.entities[entity]!r} (id {entity})"
            + (f" and {more} more of its candidates" if more else "")
            + "; mend the model, or count NaN as the worst score: nan='worst' (--nan worst)"
        )

    return refuse


def _collect(
    task: Task,
    piece: Slice,
    plan: RowPlan,
    state: NativeRanking,
    nan_count: int,
    answer_nan: npt.NDArray[np.bool_],
) -> Partial:
    slots = plan.slot[plan.slot >= 0]
    lengths = state.best_length[slots]
    used = np.arange(state.best_ids.shape[1]) < lengths[:, None]
    documents = state.best_ids[slots][used] + np.int32(task.first_entity - piece.offset)
    return Partial(
        task,
        state.counts,
        answer_nan,
        lengths,
        documents.astype(np.int32, copy=False),
        state.best_scores[slots][used],
        nan_count,
        state.dtype,
        active_path(),
    )
