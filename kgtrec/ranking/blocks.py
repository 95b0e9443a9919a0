"""Blocks of scores and factorised models ranked by one rule for NaN: an error, or counted and last.

The native core says which rows hold a NaN. These are looked at again here: was it a candidate's,
and was it an answer's?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.questions.questions import QuestionData, describe_question
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.row_plan import QuestionLists, Rows
from kgtrec.ranking.tolerance import Tolerance, widen_ties
from kgtrec.scores.arrays import comparable, directed, score_dtype
from kgtrec.scores.factors import Factors

__all__ = ["Refuse", "check_nan", "nan_error", "rank_block", "rank_rows", "rank_vectors"]

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Refuse = Callable[[int, int, int], Exception]
"""Makes an error: of a question, where in the range its first NaN is, and how many more."""


def check_nan(nan: Any) -> None:
    """UsageError if it is not a rule for NaN."""
    if nan not in ("error", "worst"):
        raise UsageError(f"nan={nan!r} is unknown; choose 'error' or 'worst'")


def nan_error(
    questions: QuestionData, question: int, entity: int, more: int, place: str = ""
) -> InputError:
    """The error of a NaN in scores of ``place``."""
    return InputError(
        f"{place and place + ': '}scores: NaN for {describe_question(questions, question)}, entity "
        f"{questions.candidate_labels[entity]!r} (id {entity})"
        + (f" and {more} more of its candidates" if more else "")
        + "; fix the model, or count NaN as the worst score: nan='worst' (--nan worst)"
    )


def rank_block(
    state: NativeRanking,
    block: Array,
    start: int,
    refuse: Refuse | None,
    *,
    higher_is_better: bool,
    first_entity: int = 0,
    answers: Float64 | None = None,
    tolerance: Tolerance | None = None,
) -> None:
    """Rank a block of score rows, of all entities or of a range of them.

    Parameters
    ----------
    state : NativeRanking
    block : ndarray, shape (rows, columns)
    start : int
        The block's first row.
    refuse : function or None
        What is raised of NaN candidates; None: NaN is the worst score.
    higher_is_better : bool
    first_entity : int
        The range's first entity, as `state` numbers them.
    answers : float64 (n_targets,), optional
        Scores of the answers of all rows of `state`, where the rows do not hold them all.
    tolerance : Tolerance, optional
        Within which scores tie with an answer's.
    """
    block, negate = comparable(block, state.dtype), not higher_is_better
    state.rank_rows(block, start, negate=negate, first_entity=first_entity, target_scores=answers)

    def row_scores(row: int) -> Array:
        scores = directed(block[row - start], state.dtype, higher_is_better)
        return state.lists.by_entity(int(state.plan.question[row]), scores)

    def read_answers(out: Float64) -> None:
        state.target_scores(block, start, out, negate=False, first_entity=first_entity)

    rows = slice(start, start + len(block))
    _settle(state, rows, row_scores, read_answers, refuse, first_entity, answers)
    if tolerance is None:
        return

    def rank(part: NativeRanking, limits: Float64) -> None:
        part.rank_rows(block, 0, negate=negate, first_entity=first_entity, target_scores=limits)

    entities = None
    if answers is None:
        own = state.own_scores(block, start, negate=negate)
    else:
        offsets = state.plan.target_offsets
        own = answers[offsets[start] : offsets[start + len(block)]]
        entities = first_entity, first_entity + block.shape[1]
    widen_ties(state, start, start + len(block), own, tolerance, rank, entities)


def rank_rows(
    lists: QuestionLists,
    rows: Rows,
    scores: Array | Factors,
    depth: int,
    threads: int,
    refuse: Refuse | None,
    *,
    higher_is_better: bool,
    first_entity: int = 0,
    answers: Float64 | None = None,
    tolerance: Tolerance | None = None,
) -> NativeRanking:
    """Rank all rows, by their scores or a factorised model; parameters as for `rank_block`."""
    if isinstance(scores, Factors):
        return rank_vectors(
            lists, rows, scores, depth, threads, refuse, first_entity=first_entity,
            answers=answers, tolerance=tolerance,
        )  # fmt: skip
    state = NativeRanking(lists, rows, depth, score_dtype(scores), threads)
    rank_block(
        state,
        scores,
        0,
        refuse,
        higher_is_better=higher_is_better,
        first_entity=first_entity,
        answers=answers,
        tolerance=tolerance,
    )
    return state


def rank_vectors(
    lists: QuestionLists,
    rows: Rows,
    factors: Factors,
    depth: int,
    threads: int,
    refuse: Refuse | None,
    *,
    first_entity: int = 0,
    answers: Float64 | None = None,
    tolerance: Tolerance | None = None,
    advance: Callable[[int], Any] = int,
) -> NativeRanking:
    """Rank all rows by a factorised model of all entities or of a range of them.

    Parameters are those of `rank_block`; ``advance`` is told how many rows are done. What is
    returned is in the order of ``rows``.
    """
    ordered, own = rows, None
    if lists.candidate_lists is not None:
        # Rows with the same candidates follow one another, so that these are packed once.
        order = np.argsort(lists.candidate_lists.of[rows.question], kind="stable")
        ordered, own = rows.selected(order)
        factors = Factors(factors.queries[order], *factors.table)
    state = NativeRanking(lists, ordered, depth, factors.dtype.name, threads)
    state.rank_factors(factors, first_entity=first_entity, target_scores=answers, advance=advance)
    _settle(
        state,
        slice(0, rows.n_rows),
        lambda row: factors.scores(row, row + 1)[0],
        lambda out: state.factor_target_scores(factors, out, first_entity=first_entity),
        refuse,
        first_entity,
        answers,
    )
    if tolerance is not None:

        def rank(part: NativeRanking, limits: Float64) -> None:
            part.rank_factors(factors, first_entity=first_entity, target_scores=limits)

        scores = answers
        if scores is None:
            scores = np.empty(len(ordered.targets))
            state.factor_target_scores(factors, scores, first_entity=0)
        entities = first_entity, first_entity + len(factors.entities)
        widen_ties(state, 0, rows.n_rows, scores, tolerance, rank, entities)
    if own is not None:
        state.plan, counts, target_nan = rows, state.counts, state.target_nan
        state.counts, state.target_nan = np.empty_like(counts), np.empty_like(target_nan)
        state.counts[:, own], state.target_nan[own] = counts, target_nan
    return state


def _settle(
    state: NativeRanking,
    rows: slice,
    row_scores: Callable[[int], Array],
    read_answers: Callable[[Float64], None],
    refuse: Refuse | None,
    first_entity: int,
    answers: Float64 | None,
) -> None:
    """Refuse the NaN candidates of rows just ranked, or mark the answers among them."""
    plan = state.plan
    if answers is not None:
        state.target_nan[:] = np.isnan(answers)
    with_nan = np.flatnonzero(state.nan_count[rows])
    if not len(with_nan):
        return
    if refuse is not None:
        row = rows.start + int(with_nan[0])
        wrong = np.isnan(row_scores(row))
        candidates = plan.row_candidates(state.lists, row)
        entities = np.flatnonzero(wrong & candidates[first_entity : first_entity + len(wrong)])
        raise refuse(int(plan.question[row]), int(entities[0]), len(entities) - 1)
    if answers is None:
        own = np.zeros(len(plan.targets))
        read_answers(own)
        targets = slice(plan.target_offsets[rows.start], plan.target_offsets[rows.stop])
        state.target_nan[targets] = np.isnan(own[targets])
