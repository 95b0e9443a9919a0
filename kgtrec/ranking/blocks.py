"""Ranking of blocks of scores and factorised models: NaN, and ties with a tolerance.

The native core counts the candidates of a row whose score is NaN, and names the first. This module
refuses such a row, or looks for NaN among the scores of its answers.

A candidate c ties with the answer a if ``s(c) == s(a)``, or if ``|s(c) - s(a)|`` is finite and at
most ``atol + rtol |s(a)|``. As in LibKGE, this is computed in the dtype of the scores. The rounded
difference rises with s(c), so the tied scores are an interval around s(a). The kernel uses both
ends of the interval as thresholds instead of s(a). Its counts above each end give both counts
exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Float64, Int64
from kgtrec._internal.csr import contains, to_keys
from kgtrec.errors import InputError
from kgtrec.questions.api import Questions
from kgtrec.questions.questions import describe_question
from kgtrec.ranking.columns import EQUAL, GREATER, MICRO, TIED_AHEAD
from kgtrec.ranking.kernel import NativeRanking, ignore_progress
from kgtrec.ranking.rows import QuestionLists, Rows
from kgtrec.ranking.settings import Settings, Tolerance
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors


def tie_thresholds(
    answer_scores: Float64, dtype: str, tolerance: Tolerance
) -> tuple[Float64, Float64]:
    """Return both ends of the tied scores around each answer's score.

    They are the largest score that ties, and the largest score below all that tie: float64, shape
    (n,) each, for answer_scores (n,).
    """
    if dtype not in _BITS:
        raise InputError(
            f"scores have dtype {dtype}, but ties with a tolerance need one of "
            f"{', '.join(_BITS)}; cast the scores, or leave atol and rtol out"
        )
    center = answer_scores.astype(dtype)
    center = np.where(np.isfinite(center), center, np.zeros_like(center))  # others are set below
    kind = center.dtype.type
    with np.errstate(over="ignore"):
        allowed = kind(tolerance.atol) + np.abs(kind(tolerance.rtol) * center)
    high, low = (_farthest(center, allowed, sign).astype(np.float64) for sign in (1, -1))
    with np.errstate(over="ignore"):  # below the least number of the dtype
        below = np.nextafter(
            low.astype(_comparison_type(dtype)), -np.inf, dtype=_comparison_type(dtype)
        )
    infinite = ~np.isfinite(answer_scores)
    high = np.where(infinite, answer_scores, high)
    return high, np.where(infinite, answer_scores, below.astype(np.float64))


_BITS: dict[str, Any] = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


def _comparison_type(dtype: str) -> Any:
    """Return the type in which the kernel compares scores of this type."""
    return np.float64 if dtype == "float64" else np.float32


def _farthest(center: Array, allowed: Array, sign: int) -> Array:
    """Return the finite score farthest from the center, upward or downward, that ties with it.

    The search halves the ascending sequence of all floats: no score beyond the result ties.
    """
    name = center.dtype.name
    near = _ordinal(sign * center, name)
    far = np.full_like(near, _ordinal(np.array([np.finfo(center.dtype).max]), name)[0])
    while (far > near).any():
        # Between both, but never `near`. Halves are added, because the sum could overflow.
        middle = (far >> 1) + (near >> 1) + (((far & 1) + (near & 1) + 1) >> 1)
        with np.errstate(over="ignore"):
            apart = np.abs(sign * _float(middle, name) - center)
        tied = np.isfinite(apart) & (apart <= allowed)
        near, far = np.where(tied, middle, near), np.where(tied, far, middle - 1)
    return sign * _float(near, name)


def _ordinal(values: Array, dtype: str) -> Int64:
    """Return the index of each float in ascending order; 0.0 and -0.0 share one."""
    bits = np.ascontiguousarray(values, dtype=dtype).view(_BITS[dtype])
    sign = np.iinfo(_BITS[dtype]).min
    wide = bits.astype(np.int64)
    return np.where(wide < 0, sign - wide, wide)


def _float(indices: Array, dtype: str) -> Array:
    """Return the floats at these indices; the inverse of `_ordinal`."""
    sign = np.iinfo(_BITS[dtype]).min
    bits = np.where(indices < 0, sign - indices, indices)
    return bits.astype(_BITS[dtype]).view(dtype)


def _widen_ties(
    state: NativeRanking,
    start: int,
    scores: ScoreBlock | Factors,
    rank: Callable[[NativeRanking], None],
) -> None:
    """Replace the micro counts of rows just ranked by counts with the tolerance of ties.

    Ordinal ranks stay: a candidate that was greater and is tied now still counts as ahead. The
    interval depends on the answer's score alone, so counts of ranges of entities add up.
    """
    n_rows, width = scores.shape
    targets, tolerance = state.targets_of(start, start + n_rows), state.settings.tolerance
    assert tolerance is not None  # callers ask
    answers, counts_above = state.answer_scores(scores, targets), []
    for limits in tie_thresholds(answers, state.dtype, tolerance):
        part = state.with_thresholds(start, start + n_rows, limits)
        rank(part)
        counts_above.append(part.counts[GREATER])
    # The answer is above the lower end too, unless the filter or the range excludes it.
    n_labels, ids = part.lists.n_labels, part.plan.targets
    row = np.repeat(np.arange(n_rows), np.diff(part.plan.target_offsets))
    itself = ~contains(to_keys(part.lists.known, n_labels), row * n_labels + ids)
    if state.answers is not None:
        itself &= (ids >= state.first_entity) & (ids < state.first_entity + width)
    exact, finite = state.counts[MICRO, targets], np.isfinite(answers)
    greater = np.where(finite, counts_above[0], exact[GREATER])
    equal = np.where(finite, counts_above[1] - itself - greater, exact[EQUAL])
    tied_ahead = exact[GREATER] + exact[TIED_AHEAD] - greater
    state.counts[MICRO, targets] = np.stack([greater, equal, tied_ahead])


MakeNanError = Callable[[int, int, int], Exception]
"""A function that returns an error for a question, its first NaN entity, and how many follow."""


def nan_error(
    questions: Questions, question: int, entity: int, more: int, source: str = ""
) -> InputError:
    """Return the error for a NaN in scores; ``source`` names their file or array."""
    start = f"{source}: " if source else ""
    return InputError(
        f"{start}scores: NaN for {describe_question(questions, question)}, entity "
        f"{questions.candidate_labels[entity]!r} (id {entity})"
        + (f" and {more} more of its candidates" if more else "")
        + f"; fix the model, or rank NaN worst with {argument('nan', 'worst')}"
    )


def rank_block(state: NativeRanking, block: ScoreBlock, make_error: MakeNanError) -> None:
    """Rank a block of score rows into `state`, for all entities or for its range of them."""
    state.rank_rows(block)
    _check_nan(state, (block.start, block.stop), block, make_error)
    if state.settings.tolerance is not None:
        _widen_ties(state, block.start, block, lambda part: part.rank_rows(block.at(0)))


def rank_all(
    lists: QuestionLists,
    rows: Rows,
    scores: ScoreBlock | Factors,
    settings: Settings,
    make_error: MakeNanError,
    *,
    first_entity: int = 0,
    answers: Float64 | None = None,
    advance: Callable[[int], object] = ignore_progress,
) -> NativeRanking:
    """Rank all rows by scores or by a factorised model, for all entities or for a range.

    `first_entity` and `answers` are those of `NativeRanking`. For a factorised model, `advance` is
    called with the number of rows done.
    """
    if isinstance(scores, ScoreBlock):
        state = NativeRanking(lists, rows, settings, scores.dtype, first_entity, answers)
        rank_block(state, scores, make_error)
        return state
    factors, ordered, targets = scores, rows, None
    if lists.candidate_lists is not None:
        # Put rows with the same candidates next to each other: these are packed once.
        order = np.argsort(lists.candidate_lists.of[rows.question], kind="stable")
        ordered, targets = rows.select(order)
        factors = Factors(factors.queries[order], *factors.table)
    state = NativeRanking(lists, ordered, settings, factors.dtype.name, first_entity, answers)
    state.rank_factors(factors, advance)
    _check_nan(state, (0, rows.n_rows), factors, make_error)
    if settings.tolerance is not None:
        _widen_ties(state, 0, factors, lambda part: part.rank_factors(factors))
    if targets is not None:  # restore the order of the rows
        state.plan, counts, target_nan = rows, state.counts, state.target_nan
        state.counts, state.target_nan = np.empty_like(counts), np.empty_like(target_nan)
        state.counts[:, targets], state.target_nan[targets] = counts, target_nan
    return state


def _check_nan(
    state: NativeRanking,
    rows: tuple[int, int],
    scores: ScoreBlock | Factors,
    make_error: MakeNanError,
) -> None:
    """Raise the error for NaN candidates of rows just ranked. If NaN is worst, mark NaN answers."""
    if state.answers is not None:
        state.target_nan[:] = np.isnan(state.answers)
    if not state.task.any_nan:
        return
    with_nan = np.flatnonzero(state.nan_count[slice(*rows)])
    if not len(with_nan):
        return
    if state.settings.nan == "error":
        row = rows[0] + int(with_nan[0])
        entity, more = int(state.nan_entity[row]), int(state.nan_count[row]) - 1
        raise make_error(int(state.plan.question[row]), entity, more)
    if state.answers is None:
        targets = state.targets_of(*rows)
        state.target_nan[targets] = np.isnan(state.answer_scores(scores, targets))
