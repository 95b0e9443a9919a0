"""One-to-one assignment in entity alignment: each entity has one counterpart at most.

The similarity of a pair is the same from both sides, so peeling off pairs that are each other's
best, round by round, gives the stable assignment of Gale and Shapley (1962); equal similarities
go to the first row. Its first round is the mutual best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Float64, Int64
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, UsageError, must_be
from kgtrec.ranking.rank import rank
from kgtrec.scores.mapped_files import reading
from kgtrec.study.alignment import Similarities, alignment_questions, penalize_hubs, similarities
from kgtrec.study.sets.ranked import any_and_all
from kgtrec.study.sets.sets import AnswerSets, Unanswerable

METHODS = ("mutual", "stable", "optimal")


def assign(
    pairs: npt.ArrayLike,
    left: Any = None,
    right: Any = None,
    *,
    method: str = "stable",
    dangling: Sequence[int] = (),
    similarity: Any = "cosine",
    csls: int = 0,
    left_labels: Sequence[str] | None = None,
    right_labels: Sequence[str] | None = None,
    resampling: Resampling | None = None,
) -> AnswerSets:
    """Assign right entities to left ones, one to one, and judge the assignment as answer sets.

    Parameters
    ----------
    pairs, left, right, similarity, csls, left_labels, right_labels
        As for `kgtrec.align`.
    method : {"mutual", "stable", "optimal"}
        Pairs that are each other's best; no two entities that prefer each other; or the largest sum
        of similarities. 10,500 entities of either side take half a minute, and 900 MB.
    dangling : sequence of int
        Left entities without a counterpart. They compete with the others, and should have none.
    resampling : Resampling, optional
        Settings of the intervals.

    Raises
    ------
    UsageError
        Sides of different size without dangling entities.
    InputError
        As for `kgtrec.align`; a dangling entity that has a counterpart.
    """
    if method not in METHODS:
        unknown = argument("method", method, option="assign")
        raise UsageError(f"{unknown} is unknown; {must_be(method, METHODS)}")
    with reading("embeddings", left, right, similarity):
        model = similarities(left, right, similarity, csls)
        questions = alignment_questions(
            pairs,
            model.n_left,
            model.n_right,
            left_labels=left_labels,
            right_labels=right_labels,
            sides="tail",
        )
        dangling_ids = _check_dangling(dangling, questions.triples[:, 0], model.n_left)
        lefts, rights, penalties = penalize_hubs(model, questions, dangling_ids.tolist())
        if not len(dangling_ids):
            _check_sizes(lefts, rights)
        scores = _subtract_penalties(model, lefts, rights, penalties)
        ranks = rank(model.scores(questions), questions, progress=False)[0]
    chosen = _ASSIGN[method](scores)
    partner = np.full(model.n_left, -1)
    partner[lefts[chosen >= 0]] = rights[chosen[chosen >= 0]] + model.n_left
    question = questions.instance_question.astype(np.int64)
    inside = partner[questions.entity[question]] == questions.answers.ids
    return AnswerSets(
        method,
        ranks,
        inside.astype(np.float64),
        (partner[questions.entity] >= 0).astype(np.float64),
        any_and_all(inside, question, len(questions)),
        resampling or Resampling(),
        unanswerable=Unanswerable((partner[dangling_ids] >= 0).astype(np.float64), None)
        if len(dangling_ids)
        else None,
    )


def _check_sizes(lefts: Int64, rights: Int64) -> None:
    """Raise UsageError unless there are as many left as right entities."""
    if len(lefts) != len(rights):
        raise UsageError(
            f"{len(lefts):,} left and {len(rights):,} right entities cannot be assigned one to "
            "one; leave out pairs that share an entity, or name left entities without a "
            f"counterpart: {argument('dangling')}"
        )


def _subtract_penalties(
    model: Similarities, lefts: Int64, rights: Int64, penalties: Float64
) -> Float64:
    """Subtract the penalties of both entities from the similarities, float64 (left, right)."""
    scores = np.concatenate([*model.blocks(lefts, rights, 1)]).astype(np.float64)
    scores -= penalties[lefts, None] + penalties[None, model.n_left + rights]
    if not np.isfinite(scores).all():
        raise InputError("similarities are infinite, so none is the largest; fix the model")
    return scores


def _check_dangling(dangling: Sequence[int], lefts: Array, n_left: int) -> Int64:
    """Return `dangling` as ascending ids; InputError if one is out of range or is in a pair."""
    ids = np.unique(np.asarray(dangling, np.int64))
    wrong = ids[(ids < 0) | (ids >= n_left) | np.isin(ids, lefts)]
    if len(wrong):
        raise InputError(
            f"dangling entity {wrong[0]} is not an id below {n_left}, or a pair has it; give left "
            "entities without a counterpart"
        )
    return ids


def assign_mutual(scores: Float64, rounds: int = 1) -> Int64:
    """Pair rows and columns that are each other's best, in rounds; return each row's column or -1.

    Each round pairs among the rows and columns that are still without a partner.
    """
    scores, chosen = scores.copy(), np.full(len(scores), -1)
    rows, columns = (np.arange(n) for n in scores.shape)
    while rounds and len(rows) and len(columns):
        best = scores.argmax(axis=1)
        mutual = scores.argmax(axis=0)[best] == np.arange(len(rows))
        chosen[rows[mutual]] = columns[best[mutual]]
        unmatched = np.setdiff1d(np.arange(len(columns)), best[mutual])
        scores = scores[np.ix_(~mutual, unmatched)]
        rows, columns, rounds = rows[~mutual], columns[unmatched], rounds - 1
    return chosen


def assign_stable(scores: Float64) -> Int64:
    """Compute the stable assignment; return each row's column, or -1."""
    return assign_mutual(scores, min(scores.shape))


def assign_optimal(scores: Float64) -> Int64:
    """Compute the assignment with the largest sum of scores; return each row's column, or -1."""
    from scipy.optimize import linear_sum_assignment

    chosen = np.full(len(scores), -1)
    rows, columns = linear_sum_assignment(scores, maximize=True)
    chosen[rows] = columns
    return chosen


_ASSIGN = {"mutual": assign_mutual, "stable": assign_stable, "optimal": assign_optimal}
