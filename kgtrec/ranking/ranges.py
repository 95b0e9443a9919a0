"""Ranking over ranges of entities, for scores that do not fit on a single machine.

First, `AnswerScores` gathers the scores of the answers from the machines that hold them. Then
`rank_range` ranks each range separately. `merge_ranges` adds the counts and merges the best
candidates. Its Ranks and Run equal those of one pass over all entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arguments import QUESTIONS, require_items, require_type
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.questions.questions import describe_question, require_columns_by_id
from kgtrec.ranking.blocks import nan_error, rank_all
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import PartialRanks, Task, assemble, extract_part, merge_adjacent
from kgtrec.ranking.rows import QuestionLists, plan_rows
from kgtrec.ranking.settings import Settings, TieOptions
from kgtrec.scores.arrays import ScoreBlock, as_array
from kgtrec.scores.factors import Factors

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kgtrec.ranking.ranks import RanksAndRun


class AnswerScores:
    """Scores of the answers, read from one range of entities after another.

    Parameters
    ----------
    questions : Questions
        Not restricted to candidate lists.
    higher_is_better, atol, rtol
        As for `kgtrec.Ranker`; the same for all ranges.

    Attributes
    ----------
    values : ndarray of float64, shape (n_instances,)
        Exact copies of the scores, negated if lower is better.
    filled : ndarray of bool, shape (n_instances,)
        True for the scores that are known.
    """

    def __init__(self, questions: Questions, **options: Unpack[TieOptions]) -> None:
        require_type("questions", questions, Questions, QUESTIONS)
        if questions.candidate_lists is not None:
            raise UsageError(
                "entity ranges do not work with restricted candidates; leave the restriction out, "
                "or rank all entities at once"
            )
        require_columns_by_id(questions, "a range of entities")
        self.questions = questions
        self.settings = Settings.from_options("AnswerScores", TieOptions, options, threads=1)
        self.lists = QuestionLists.from_questions(questions)
        self.plan = plan_rows(questions, "questions")
        self.values = np.zeros(questions.n_instances)
        self.filled = np.zeros(questions.n_instances, dtype=bool)

    def fill(self, scores: Any, first_entity: int = 0) -> None:
        """Read the scores of the answers that are in a range of entities.

        Parameters
        ----------
        scores : array, shape (Q, entities of the range), or Factors
            Scores of all questions. The entities of `Factors` are those of the range.
        first_entity : int
            Id of the range's first entity.
        """
        scores, width = self.check_scores(scores, first_entity)
        dtype = str(scores.dtype)
        state = NativeRanking(self.lists, self.plan, self.settings, dtype, first_entity)
        state.target_scores(scores, self.values)
        ids = self.questions.answers.ids
        self.filled |= (ids >= first_entity) & (ids < first_entity + width)

    def check_scores(self, scores: Any, first_entity: int) -> tuple[ScoreBlock | Factors, int]:
        """Return the scores of a range in the form for ranking, and its number of entities.

        InputError if the shape is wrong.
        """
        if not isinstance(scores, Factors):
            scores = ScoreBlock.from_scores(as_array(scores), not self.settings.higher_is_better)
        shape, questions = scores.shape, self.questions
        if len(shape) != 2 or shape[0] != len(questions):
            raise InputError(
                f"scores of a range have shape {shape}; expected ({len(questions)}, entities of "
                "the range)"
            )
        if first_entity < 0 or first_entity + shape[1] > questions.n_labels:
            raise InputError(
                f"the range {first_entity} to {first_entity + shape[1] - 1} goes beyond the "
                f"{questions.n_labels} entities; correct first_entity or the number of columns"
            )
        return scores, shape[1]

    def merge(self, other: AnswerScores) -> None:
        """Copy the known scores of `other`."""
        self.values[other.filled] = other.values[other.filled]
        self.filled |= other.filled


def rank_range(
    scores: Any,
    answers: AnswerScores,
    first_entity: int = 0,
    run_depth: int = 0,
    threads: int | None = None,
    nan: str = "error",
) -> PartialRanks:
    """Rank the answers among a range of the entities.

    Parameters
    ----------
    scores : array, shape (Q, entities of the range), or Factors
        As for `AnswerScores.fill`.
    answers : AnswerScores
        The scores of all answers.
    first_entity : int
        Id of the range's first entity.
    run_depth, threads, nan
        As for `kgtrec.Ranker`. Use the same run depth and treatment of NaN for all ranges.

    Raises
    ------
    UsageError
        The score of an answer is not known yet; the message names one.
    InputError
        The scores have a wrong shape or dtype, or a candidate's score is NaN.
    """
    require_type("answers", answers, AnswerScores, "a filled AnswerScores")
    questions = answers.questions
    missing = np.flatnonzero(~answers.filled)
    if len(missing):
        question = describe_question(questions, int(questions.instance_question[missing[0]]))
        raise UsageError(
            f"{len(missing)} answers have no score yet, first in {question}; "
            "fill() AnswerScores from every range first"
        )
    settings = replace(answers.settings, run_depth=run_depth, threads=threads, nan=nan)
    scores, width = answers.check_scores(scores, first_entity)
    state = rank_all(
        answers.lists,
        answers.plan,
        scores,
        settings,
        partial(nan_error, questions),
        first_entity=first_entity,
        answers=answers.values,
    )
    task = Task(0, answers.plan.n_rows, first_entity, first_entity + width)
    return extract_part(state, task, questions.fingerprint)


def merge_ranges(parts: Sequence[PartialRanks], answers: AnswerScores) -> RanksAndRun:
    """Merge the parts of disjoint ranges, in any order; return ranks and run of all entities.

    Raises
    ------
    UsageError
        Ranges that overlap, leave entities out, or belong to other questions, dtypes or depths.
    """
    require_items("parts", parts, PartialRanks, "PartialRanks (kgtrec.rank_range)")
    if not parts:
        raise UsageError("there are no parts to merge; rank every range with rank_range")
    ordered, order = sorted(parts, key=lambda part: part.task), answers.lists.order
    whole = merge_adjacent(ordered, None if order is None else order.position.__getitem__)
    return assemble([whole], answers.plan, answers.questions, entity_ranges=len(ordered))
