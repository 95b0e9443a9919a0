"""Questions without an answer, from their scores, and the two kinds of confidence, in loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets_oracle import world

from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, UsageError
from kgtrec.study import answer_sets

FEW = Resampling(resamples=100)


def size_of(row: list[float], policy: str, limit: float, ties: str) -> int:
    """How many candidates of a row are in its set; `limit` as `AnswerSets.limits` has it."""
    name = policy.partition(":")[0]
    if name in ("top", "conformal"):
        if ties == "expected":
            return min(int(limit), len(row))
        places = [
            (1 + sum(other > score for other in row), sum(other >= score for other in row))
            for score in row
        ]
        return sum(place[ties == "none"] <= limit for place in places)
    if name == "conformal-gap":
        return sum(max(row) - score <= limit for score in row)
    if policy in ("threshold:best-f1", "threshold:precision=1/2"):
        return sum(score > limit for score in row)  # the largest number below the threshold
    return sum(score >= float(policy.partition(":")[2]) for score in row)


def confidence_of(row: list[float], kind: str) -> float:
    ordered = sorted(row, reverse=True)
    return ordered[0] if kind == "best" else ordered[0] - ordered[1]


POLICIES = (
    *("top:1", "top:3", "top:40", "threshold:0.25", "threshold:best-f1"),
    *("threshold:precision=1/2", "conformal:0.2", "conformal-gap:0.2"),
)


@given(
    st.integers(0, 10_000),
    st.sampled_from(POLICIES),
    st.sampled_from(["all", "none", "expected"]),
    st.sampled_from(["best", "gap"]),
    st.sampled_from(["float16", "float32", "float64"]),
    st.booleans(),
)
def test_sets_without_an_answer_are_counted_from_their_scores(
    seed: int, policy: str, ties: str, kind: str, dtype: str, higher: bool
) -> None:
    test, valid = world(seed, levels=5)
    ties = ties if policy.startswith("top") else "all"
    sign = 1 if higher else -1
    nil = np.random.default_rng(seed).integers(0, 5, (7, 12)).astype(dtype) / 8
    fitted: dict[str, Any] = {}
    if policy.startswith("conformal") or policy.partition(":")[2][0] in "bp":
        fitted = {"valid": sign * valid.matrix, "valid_questions": valid.asked}
    if policy == "threshold:0.25" and not higher:
        return  # the threshold is one of distances: tested with the scores themselves
    sets = answer_sets(
        sign * test.matrix,
        policy,
        test.asked,
        ties=ties,
        unanswerable=sign * nil,
        confidence=kind,
        keep=ties != "expected",
        higher_is_better=higher,
        resampling=FEW,
        **fitted,
    )
    assert sets.unanswerable is not None
    rows = [[float(score) for score in row] for row in nil]
    limit = sets.limits[None]
    due = [size_of(row, policy, limit, ties) for row in rows]
    assert sets.unanswerable.sizes.tolist() == due
    assert sets.unanswerable.confidence is not None
    assert sets.unanswerable.confidence.tolist() == [confidence_of(row, kind) for row in rows]
    if sets.confidence is not None:
        known = [confidence_of([*test.scores[q].values()], kind) for q in test.questions]
        assert sets.confidence.tolist() == known
        risk = sets.risk_curve()
        answered = sum(size > 0 for size in [*sets.sizes.tolist(), *due])
        assert len(risk.coverage) == answered
        assert risk.coverage.tolist() == pytest.approx(
            [(i + 1) / (len(known) + len(rows)) for i in range(answered)]
        )
    table = sets.abstention()
    assert table.rows[0][0] == len(rows)


@pytest.mark.parametrize(
    ("kind", "due"), [("best", [3.0, 1.0, -math.inf]), ("gap", [1.0, math.inf, -math.inf])]
)
def test_confidence_of_lists(kind: str, due: list[float]) -> None:
    test, _ = world(3, levels=3)
    first = test.questions[:3]
    lists: list[list[list[Any]]] = [[["1", 2.0], ["2", 3.0]], [["4", 1.0]], []]
    records = [
        {("tail", "head")[q[0]]: str(q[2]), "relation": str(q[1]), "predictions": listed}
        for q, listed in zip(first, lists, strict=True)
    ]
    sets = answer_sets(records, "lists", test.asked, confidence=kind, resampling=FEW)
    assert sets.confidence is not None
    assert sets.confidence[:3].tolist() == due


def test_what_cannot_be_judged_without_an_answer() -> None:
    test, valid = world(1, levels=3)
    nil = np.zeros((2, 12))
    with pytest.raises(InputError, match=r"shape \(2, 11\); give a row per question .* 12 columns"):
        answer_sets(test.matrix, "top:1", test.asked, unanswerable=nil[:, :11])
    nil[1, 4] = np.nan
    with pytest.raises(InputError, match="NaN for question 1, entity '4'"):
        answer_sets(test.matrix, "top:1", test.asked, unanswerable=nil)
    with pytest.raises(UsageError, match="rows without a relation, so per='relation' has no limit"):
        answer_sets(
            test.matrix,
            "conformal:0.2",
            test.asked,
            valid=valid.matrix,
            valid_questions=valid.asked,
            per="relation",
            unanswerable=np.zeros((2, 12)),
        )
    with pytest.raises(UsageError, match="unanswerable= needs scores or lists"):
        answer_sets(test.ranks, "top:1", unanswerable=nil)
