"""Sets of questions without any answer, from their scores: the right set is the empty one."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.blocks import tie_thresholds
from kgtrec.ranking.settings import Tolerance
from kgtrec.scores.files import load_matrix
from kgtrec.study.sets.policies import Policy
from kgtrec.study.sets.scored import distance_to_second
from kgtrec.study.sets.sets import Unanswerable

ROWS = 256
"""Rows that are read and sorted at a time."""


def judge_unanswerable(
    scores: Any,
    width: int,
    policy: Policy,
    limit: float,
    *,
    ties: str,
    confidence: str,
    higher_is_better: bool,
) -> Unanswerable:
    """Return the sizes of sets, and how sure they are.

    - scores: Array or path, (m, width): all candidates of questions that have no answer.
    - limit: The K of best candidates, the distance, or the largest number below the threshold.
    - ties, confidence, higher_is_better: As for `answer_sets`.

    Raises InputError for another shape, or for a score that is NaN.
    """
    matrix = load_matrix(scores) if isinstance(scores, (str, PathLike)) else np.asarray(scores)
    name = argument("unanswerable")
    if matrix.ndim != 2 or matrix.shape[1] != width or not len(matrix):
        raise InputError(
            f"{name} has scores of shape {matrix.shape}; give a row per question without an "
            f"answer and {width} columns, one per candidate"
        )
    sizes, sure = np.empty(len(matrix)), np.empty(len(matrix))
    for start in range(0, len(matrix), ROWS):
        rows = _comparable(matrix[start : start + ROWS], higher_is_better)
        if np.isnan(rows).any():
            row, column = np.argwhere(np.isnan(rows))[0].tolist()
            raise InputError(f"{name}: the score in row {start + row}, column {column}, is NaN")
        part = slice(start, start + len(rows))
        sizes[part] = _sizes(rows, policy, limit, ties)
        sure[part] = _confidence(rows, confidence)
    return Unanswerable(sizes, sure)


def check_group(per: str) -> None:
    """Raise UsageError for limits per relation: rows of scores say no relation."""
    if per:
        raise UsageError(
            f"{argument('unanswerable')} has rows without a relation, so {argument('per', per)} "
            "has no limit for them; leave one of both out"
        )


def _comparable(rows: Any, higher_is_better: bool) -> Any:
    """Return scores in the type in which the core compares them; negated if lower is better."""
    kind: Any = np.float64 if rows.dtype == np.float64 else np.float32
    values: Any = np.asarray(rows, kind)
    return values if higher_is_better else -values


def _sizes(rows: Any, policy: Policy, limit: float, ties: str) -> Float64:
    """Return how many candidates of each row are in its set."""
    width = rows.shape[1]
    if policy.name in ("top", "conformal"):
        if limit >= width:
            return np.full(len(rows), float(width))
        most = int(limit)
        if ties == "expected" or not most:
            return np.full(len(rows), float(most))
        last = np.partition(rows, width - most, axis=1)[:, width - most, None]
        counts = (rows >= last).sum(axis=1)
        if ties == "none":
            counts = np.where(counts > most, (rows > last).sum(axis=1), counts)
        return counts.astype(np.float64)
    if policy.name == "conformal-gap":
        if not np.isfinite(limit):
            return np.full(len(rows), float(width))
        best = rows.max(axis=1).astype(np.float64)
        limits = tie_thresholds(best, str(rows.dtype), Tolerance(limit, 0.0))[1][:, None]
        return (rows > limits).sum(axis=1).astype(np.float64)
    return (rows > limit).sum(axis=1).astype(np.float64)


def _confidence(rows: Any, kind: str) -> Float64:
    """Return the best score of each row, or its distance from the second best."""
    best = rows.max(axis=1).astype(np.float64)
    if kind == "best":
        return best
    if rows.shape[1] < 2:
        return np.full(len(rows), np.inf)
    second = np.partition(rows, -2, axis=1)[:, -2].astype(np.float64)
    return distance_to_second(best, second)
