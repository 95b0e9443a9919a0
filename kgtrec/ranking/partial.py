"""Ranking over ranges of entities: the base for scores that no single machine holds.

First the answers' own scores are gathered from whoever holds them (`AnswerScores`); then each range
is ranked by itself (`rank_range`); the counts add up and the best candidates merge (`merge_ranges`)
to the very Ranks and Run of one pass over all entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.questions.questions import describe_question
from kgtrec.ranking.kernel import NativeRanking, available_cores
from kgtrec.ranking.row_plan import plan_rows
from kgtrec.scores.arrays import as_array, comparable, score_dtype
from kgtrec.scores.factors import Factors

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["AnswerScores", "PartialRanks", "merge_ranges", "rank_range"]

Array = npt.NDArray[Any]


class AnswerScores:
    """Scores of the answers, filled range by range.

    Parameters
    ----------
    questions : Questions
        Not restricted to candidate lists.
    higher_is_better : bool
        False for distances.

    Attributes
    ----------
    values : ndarray of float64, shape (n_instances,)
        Exact copies of the scores, negated if lower is better.
    filled : ndarray of bool, shape (n_instances,)
        Which of them are known.
    """

    def __init__(self, questions: Questions, *, higher_is_better: bool = True) -> None:
        if questions.domain is not None:
            raise UsageError("entity ranges do not go together with restricted candidates")
        self.questions, self.higher_is_better = questions, higher_is_better
        self.plan = plan_rows(questions, "questions")
        self.values = np.zeros(questions.n_instances)
        self.filled = np.zeros(questions.n_instances, dtype=bool)

    def fill(self, scores: Any, first_entity: int = 0) -> None:
        """Read the answers that a range of entities holds.

        Parameters
        ----------
        scores : array, shape (Q, entities of the range), or Factors
            Scores of all questions; of `Factors`, its entities are those of the range.
        first_entity : int
            Id of the range's first entity.
        """
        width = _width(scores, self.questions, first_entity)
        state, block = _open(self, scores, 0, 1)
        if isinstance(scores, Factors):
            state.factor_job_scores(scores, self.values, first_entity=first_entity)
        else:
            negate = not self.higher_is_better
            state.job_scores(block, 0, self.values, negate=negate, first_entity=first_entity)
        ids = self.questions.answers.ids
        self.filled |= (ids >= first_entity) & (ids < first_entity + width)

    def merge(self, other: AnswerScores) -> None:
        """Take over what another one has filled."""
        self.values[other.filled] = other.values[other.filled]
        self.filled |= other.filled


@dataclass(frozen=True, eq=False)
class PartialRanks:
    """What one range of entities contributes.

    Attributes
    ----------
    first_entity, stop_entity : int
        The range.
    counts : ndarray of int64, shape (6, n_instances)
        Greater, equal and tied ahead, micro and macro, among the range's entities.
    lengths : ndarray of int32, shape (Q,)
        Candidates kept per question.
    documents, scores : ndarray
        The candidates kept, question after question, best first.
    depth : int
        Asked run depth.
    nan_count : ndarray of int64, shape (Q,)
        NaN candidates met per question.
    questions_hash, dtype : str
        What the scores answer, and their dtype.
    """

    first_entity: int
    stop_entity: int
    counts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    scores: Array
    depth: int
    nan_count: npt.NDArray[np.int64]
    questions_hash: str
    dtype: str


def rank_range(
    scores: Any,
    answers: AnswerScores,
    first_entity: int = 0,
    run_depth: int = 0,
    threads: int | None = None,
) -> PartialRanks:
    """Rank the answers among a range of the entities.

    Parameters
    ----------
    scores : array, shape (Q, entities of the range), or Factors
        As for `AnswerScores.fill`.
    answers : AnswerScores
        Every answer's score.
    first_entity : int
        Id of the range's first entity.
    run_depth : int
        Best candidates to keep per question.
    threads : int, optional
        Every core by default.

    Raises
    ------
    UsageError
        Some answer's score is not known yet (the message names one).
    InputError
        Wrong shape or dtype, or a NaN among the candidates.
    """
    questions = answers.questions
    missing = np.flatnonzero(~answers.filled)
    if len(missing):
        question = describe_question(questions, int(questions.instance_question[missing[0]]))
        raise UsageError(
            f"{len(missing)} answers have no score yet, the first of {question}; "
            "fill() AnswerScores from every range first"
        )
    width = _width(scores, questions, first_entity)
    state, block = _open(answers, scores, run_depth, threads or available_cores())
    given = answers.values
    if isinstance(scores, Factors):
        state.rank_factors(scores, first_entity=first_entity, job_scores=given)
    else:
        state.rank_rows(
            block,
            0,
            negate=not answers.higher_is_better,
            first_entity=first_entity,
            job_scores=given,
        )
    _refuse_nan(questions, state)
    used = np.arange(state.best_ids.shape[1]) < state.best_length[:, None]
    return PartialRanks(
        first_entity,
        first_entity + width,
        state.counts,
        state.best_length,
        state.best_ids[used],
        state.best_scores[used],
        run_depth,
        state.nan_count,
        questions.fingerprint,
        state.dtype,
    )


def merge_ranges(parts: Sequence[PartialRanks], answers: AnswerScores) -> tuple[Ranks, Run]:
    """Ranks and run of all entities from those of disjoint ranges, in any order.

    Raises
    ------
    UsageError
        Ranges that overlap, leave entities out, or belong to other questions, dtypes or depths.
    """
    from kgtrec.ranking.ranks import assemble_ranks

    questions, ordered = answers.questions, sorted(parts, key=lambda part: part.first_entity)
    _check_parts(ordered, questions)
    plan = answers.plan
    counts = np.sum([part.counts for part in ordered], axis=0)
    unscored = np.zeros(len(plan.jobs), dtype=bool)  # a NaN answer is an error here
    per_instance, flags = plan.collect(counts, unscored)
    described = {
        "dtype": ordered[0].dtype,
        "rows": "questions",
        "higher_is_better": answers.higher_is_better,
        "nan": "error",
        "nan_count": 0,
        "entity_ranges": len(ordered),
    }
    ranks = assemble_ranks(questions, per_instance, flags, described)
    return ranks, _merged_run(ordered, questions)


def _merged_run(parts: Sequence[PartialRanks], questions: Questions) -> Run:
    from kgtrec.trec.files.run import Run

    depth = parts[0].depth
    number = np.arange(len(questions))
    question = np.concatenate([np.repeat(number, part.lengths) for part in parts])
    documents = np.concatenate([part.documents for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    position = questions.graph.entities.trec_order
    place = documents if position is None else position[documents]
    order = np.lexsort((-place, -scores, question))
    question = question[order]
    starts = np.searchsorted(question, number)
    kept = np.arange(len(order)) - starts[question] < depth
    offsets = np.append(0, np.cumsum(np.bincount(question[kept], minlength=len(number))))
    return Run(
        query_ids=questions.ids,
        offsets=offsets.astype(np.int64),
        documents=documents[order][kept],
        scores=scores[order][kept],
        docnos=questions.graph.entities.docnos,
        depth=depth,
    )


def _open(
    answers: AnswerScores, scores: Any, depth: int, threads: int
) -> tuple[NativeRanking, Array]:
    block = np.empty((0, 0)) if isinstance(scores, Factors) else as_array(scores)
    dtype = scores.dtype.name if isinstance(scores, Factors) else score_dtype(block)
    state = NativeRanking(answers.questions, answers.plan, depth, dtype, threads)
    return state, comparable(block, dtype)


def _width(scores: Any, questions: Questions, first_entity: int) -> int:
    """Entities of the range; the shape is checked."""
    if isinstance(scores, Factors):
        shape: tuple[int, ...] = (len(scores.queries), len(scores.entities))
    else:
        shape = as_array(scores).shape
    if len(shape) != 2 or shape[0] != len(questions):
        raise InputError(
            f"scores of a range have shape {shape}; expected ({len(questions)}, entities in it)"
        )
    if first_entity < 0 or first_entity + shape[1] > questions.n_entities:
        raise InputError(
            f"the range {first_entity} to {first_entity + shape[1] - 1} goes beyond the "
            f"{questions.n_entities} entities; mend first_entity or the number of columns"
        )
    return shape[1]


def _refuse_nan(questions: Questions, state: NativeRanking) -> None:
    rows = np.flatnonzero(state.nan_count)
    if not len(rows):
        return
    row = int(rows[0])
    entity = int(state.nan_entity[row])
    raise InputError(
        f"scores: NaN for {describe_question(questions, row)}, entity "
        f"{questions.graph.entities[entity]!r} (id {entity}); mend the model"
    )


def _check_parts(parts: Sequence[PartialRanks], questions: Questions) -> None:
    reached = 0
    for part in parts:
        span = f"{part.first_entity} to {part.stop_entity - 1}"
        if part.first_entity > reached:
            raise UsageError(f"entities {reached} to {part.first_entity - 1} are in no range")
        if part.first_entity < reached:
            raise UsageError(f"the range {span} overlaps another, which ends at {reached - 1}")
        if part.questions_hash != questions.fingerprint:
            raise UsageError(f"the range {span} was ranked for other questions")
        if (part.dtype, part.depth) != (parts[0].dtype, parts[0].depth):
            raise UsageError(
                f"the range {span} has dtype {part.dtype} and run depth {part.depth}, others "
                f"{parts[0].dtype} and {parts[0].depth}; rank all ranges alike"
            )
        reached = part.stop_entity
    if reached < questions.n_entities:
        raise UsageError(f"entities {reached} to {questions.n_entities - 1} are in no range")
