"""NaN among the scores of a part: an error, or counted and put last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.entity_slice import Slice
from kgtrec.errors import InputError
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.ranker import describe_question
from kgtrec.ranking.row_plan import RowPlan

if TYPE_CHECKING:
    from kgtrec.cluster.part import Inputs, Task

__all__ = ["by_entity", "settle_nans"]

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


def settle_nans(
    task: Task,
    inputs: Inputs,
    piece: Slice,
    state: NativeRanking,
    answers: Float64 | None,
    row_scores: Callable[[int], Array],
) -> tuple[int, npt.NDArray[np.bool_]]:
    """How many candidates are NaN, and which answers; an error if NaN is one."""
    plan, total = state.plan, 0
    answer_nan = np.zeros(len(plan.jobs), dtype=bool) if answers is None else np.isnan(answers)
    for row in np.flatnonzero(state.nan_count).tolist():
        scores = row_scores(row)
        candidates = plan.row_candidates(cast(Any, piece), row)
        wrong = np.isnan(scores)
        if answers is None:
            jobs = slice(plan.job_offsets[row], plan.job_offsets[row + 1])
            answer_nan[jobs] = wrong[plan.jobs[jobs]]
        found = np.flatnonzero(wrong & candidates[piece.offset : piece.offset + len(wrong)])
        total += len(found)
        if len(found) and inputs.nan == "error":
            question = int(piece.numbers[plan.question[row]])
            raise _nan_error(inputs, question, task.first_entity + int(found[0]), len(found) - 1)
    return total, answer_nan


def _nan_error(inputs: Inputs, question: int, entity: int, more: int) -> InputError:
    questions = inputs.store().questions()
    place = f"{inputs.files.place}: " if inputs.files and inputs.files.place else ""
    return InputError(
        f"{place}scores: NaN for {describe_question(questions, question)}, entity "
        f"{questions.graph.entities[entity]!r} (id {entity})"
        + (f" and {more} more of its candidates" if more else "")
        + "; mend the model, or count NaN as the worst score: nan='worst' (--nan worst)"
    )


def by_entity(piece: Slice, plan: RowPlan, row: int, scores: Array) -> Array:
    """A row's scores in id order, where its columns are the question's candidates."""
    domain = piece.domain
    if domain is None or domain.columns is None:
        return scores
    number = int(domain.of[plan.question[row]])
    span = slice(domain.lists.offsets[number], domain.lists.offsets[number + 1])
    spread = np.zeros(piece.n_entities)
    spread[domain.lists.ids[span]] = scores[domain.columns[span]]
    return spread
