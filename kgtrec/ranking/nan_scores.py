"""NaN among the scores of a part: an error, or counted and put last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.ranking.kernel import NativeRanking

if TYPE_CHECKING:
    from kgtrec.questions.candidates import Domain

__all__ = ["by_entity", "settle_nans"]

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


def settle_nans(
    state: NativeRanking,
    questions: Any,
    offset: int,
    answers: Float64 | None,
    row_scores: Callable[[int], Array],
    refuse: Callable[[int, int, int], Exception] | None,
) -> tuple[int, npt.NDArray[np.bool_]]:
    """How many candidates are NaN, and which answers.

    Parameters
    ----------
    state : NativeRanking
        Has counted the part's rows.
    questions : object
        What `RowPlan.row_candidates` asks of questions.
    offset : int
        The entity that a row's first score is of.
    answers : float64 (targets,), or None
        Scores of the answers, where the rows do not hold them all.
    row_scores : function (row) -> scores of the row, a column per entity
    refuse : function (row, entity, how many more) -> exception, or None
        Makes the error of a row's first NaN; None: NaN is the worst score.
    """
    plan, total = state.plan, 0
    answer_nan = np.zeros(len(plan.jobs), dtype=bool) if answers is None else np.isnan(answers)
    for row in np.flatnonzero(state.nan_count).tolist():
        wrong = np.isnan(row_scores(row))
        candidates = plan.row_candidates(questions, row)
        if answers is None:
            jobs = slice(plan.job_offsets[row], plan.job_offsets[row + 1])
            answer_nan[jobs] = wrong[plan.jobs[jobs]]
        found = np.flatnonzero(wrong & candidates[offset : offset + len(wrong)])
        total += len(found)
        if len(found) and refuse is not None:
            raise refuse(row, int(found[0]), len(found) - 1)
    return total, answer_nan


def by_entity(domain: Domain | None, n_entities: int, question: int, scores: Array) -> Array:
    """A row's scores in id order, where its columns are the question's candidates."""
    if domain is None or domain.columns is None:
        return scores
    number = int(domain.of[question])
    span = slice(domain.lists.offsets[number], domain.lists.offsets[number + 1])
    spread = np.zeros(n_entities)
    spread[domain.lists.ids[span]] = scores[domain.columns[span]]
    return spread
