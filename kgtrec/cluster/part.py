"""One part of a ranking: some rows of scores against a range of the entities.

A worker gets an `Inputs` and a `Task`, a few hundred bytes pickled, and opens what it needs by
path. The answers of a part may lie outside its range, so their scores come first
(`answer_scores`): single elements of a matrix, or single dot products. Every part can fetch them
itself, which costs less than waiting for whoever ranks their range. Then the parts' counts add up
and their best candidates merge (`kgtrec.ranking.partial`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr
from kgtrec.cluster.array_files import FactorFiles, Files, ScoreFiles
from kgtrec.cluster.entity_slice import open_rows, open_slice
from kgtrec.cluster.question_store import Store
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.blocks import nan_error, rank_rows
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import PartialRanks, Task, take_partial
from kgtrec.ranking.row_plan import QuestionLists, Rows
from kgtrec.ranking.tolerance import Tolerance
from kgtrec.scores.arrays import comparable, directed, score_dtype
from kgtrec.scores.factors import Factors

__all__ = ["Inputs", "NanFound", "answer_scores", "naming", "partial"]

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
    tolerance : Tolerance or None
        Within which scores tie with an answer's.
    """

    folder: str
    files: Files | None = None
    run_depth: int = 0
    higher_is_better: bool = True
    nan: str = "error"
    threads: int = 1
    tolerance: Tolerance | None = None

    def store(self) -> Store:
        """The questions."""
        return Store(self.folder)


class NanFound(InputError):
    """NaN among the candidates of a question, where names are not at hand."""

    def __init__(self, question: int, entity: int, more: int) -> None:
        super().__init__(f"NaN for question {question}, entity {entity}")
        self.at = question, entity, more

    def named(self, inputs: Inputs) -> InputError:
        """The error as users read it, where all files of the questions are."""
        place = inputs.files.place if inputs.files else ""
        return nan_error(inputs.store().questions(), *self.at, place)


@contextmanager
def naming(inputs: Inputs) -> Iterator[None]:
    """Turns what was found where names are not at hand into the error that users read."""
    try:
        yield
    except NanFound as problem:
        raise problem.named(inputs) from None


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
    values : ndarray of float64, shape (n_targets,)
        Exact copies of the scores, negated if lower is better.
    filled : ndarray of bool, shape (n_targets,)
        Which of the answers are in the range; the others' values are 0.
    """
    plan, numbers = open_rows(inputs.store(), *task.rows)
    filled = (plan.targets >= task.first_entity) & (plan.targets < task.stop_entity)
    values = np.zeros(len(plan.targets))
    if block is None and isinstance(inputs.files, FactorFiles):
        _multiply_answers(plan, numbers, task, inputs, values)
        return values, filled
    row = np.repeat(np.arange(plan.n_rows), np.diff(plan.target_offsets))[filled]
    answer = plan.targets[filled]
    if block is None:
        assert isinstance(inputs.files, ScoreFiles)
        scores = inputs.files.elements(task.first_row + row, answer)
    else:
        scores = block[row, answer - task.first_entity]
    dtype = score_dtype(scores)
    values[filled] = directed(comparable(scores, dtype), dtype, inputs.higher_is_better)
    return values, filled


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
    state = NativeRanking(QuestionLists(len(answers), empty, empty), plan, 0, files.dtype, 1)
    low, high = np.searchsorted(answers, task.entities).tolist()
    step = max(1, GATHERED // max(1, files.entities.shape[1] * files.itemsize))
    for start in range(low, high, step):
        some = answers[start : min(start + step, high)].astype(np.int64)
        state.factor_target_scores(files.factors(queries, some), values, first_entity=start)


# -- Counts ------------------------------------------------------------------------------------


def partial(
    task: Task, inputs: Inputs, answers: Float64 | None = None, block: Array | None = None
) -> PartialRanks:
    """Rank the answers of some rows among a range of the entities.

    Parameters
    ----------
    task : Task
    inputs : Inputs
    answers : ndarray of float64, shape (n_targets,), optional
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
    whole = task.entities == (0, store.n_labels)
    if not whole and (store.restricted or answers is None):
        reason = "restricted candidates" if store.restricted else "unknown scores of the answers"
        raise UsageError(f"a range of entities does not go together with {reason}")
    piece = open_slice(store, task.rows, task.entities)

    def refuse(question: int, entity: int, more: int) -> InputError:
        problem = NanFound(int(piece.numbers[question]), task.first_entity + entity, more)
        return problem.named(inputs) if store.whole else problem

    state = rank_rows(
        piece.lists,
        piece.rows,
        _scores(task, inputs, store, block),
        inputs.run_depth,
        inputs.threads,
        refuse if inputs.nan == "error" else None,
        higher_is_better=inputs.higher_is_better,
        first_entity=piece.offset,
        answers=None if whole else answers,
        tolerance=inputs.tolerance,
    )
    shift = task.first_entity - piece.offset
    hash_ = store.body["fingerprints"]["questions"]
    return take_partial(
        state, task, inputs.run_depth, inputs.nan, hash_, shift, tolerance=inputs.tolerance
    )


def _scores(task: Task, inputs: Inputs, store: Store, block: Array | None) -> Array | Factors:
    """The scores of a part: those that were handed over, or in the files."""
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
        raise InputError(f"scores of {task} have shape {block.shape}; {shape} wanted")
    return block
