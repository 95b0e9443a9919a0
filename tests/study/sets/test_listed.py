"""Sets of lists, abstention and risk against sets and loops."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets_oracle import Oracle, Question, judged, world

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import FileError
from kgtrec.study import answer_sets
from kgtrec.study.sets.abstention import risk_curve

FEW = Resampling(resamples=100)


def record(question: Question, predictions: list[Any]) -> dict[str, Any]:
    side, relation, entity = question
    known = {("tail", "head")[side]: str(entity)}
    return known | {"relation": str(relation), "predictions": predictions}


def drawn(test: Oracle, seed: int, scored: bool) -> tuple[list[dict[str, Any]], dict[Any, Any]]:
    """Lists of some questions, which also name known facts, names of nobody, and some twice."""
    random = np.random.default_rng(seed)
    records, named = [], {}
    for question in test.questions:
        names = random.choice(14, random.integers(0, 6)).tolist()
        scores = random.integers(0, 5, len(names)).tolist()
        named[question] = (names, scores)
        if names or random.random() < 0.5:
            labels = [str(name) if name < 12 else f"nobody {name}" for name in names]
            pairs = [[label, score] for label, score in zip(labels, scores, strict=True)]
            records.append(record(question, pairs if scored else labels))
    return records, named


@given(st.integers(0, 10_000), st.sampled_from(["place", "drop"]), st.booleans())
def test_lists_name_what_they_hold(seed: int, unlinkable: str, scored: bool) -> None:
    test, _ = world(seed, levels=3)
    records, named = drawn(test, seed, scored)
    if not records:
        return
    sets = answer_sets(records, "lists", test.asked, unlinkable=unlinkable, resampling=FEW)
    chosen = {}
    for question, (names, _) in named.items():
        entities = {name for name in names if name in test.scores[question]}
        # Each name that is no entity has a place of its own.
        strange = {-1 - at for at, name in enumerate(names) if name >= 12}
        chosen[question] = entities | (strange if unlinkable == "place" else set())
    for key, value in judged(test, chosen).items():
        assert sets[key] == pytest.approx(value, rel=1e-12, nan_ok=True), key
    listed = {json.dumps({**each, "predictions": 0}) for each in records}
    assert bool(sets.notes) == (len(listed) < len(test.questions))
    if scored and any(each["predictions"] for each in records):
        best = [max(scores, default=-np.inf) for _, scores in named.values()]
        assert sets.confidence is not None
        assert sets.confidence.tolist() == best


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 2)), min_size=1, max_size=6)
)
def test_risk_is_the_mean_over_all_orders_of_equal_confidence(
    items: list[tuple[int, bool, int]],
) -> None:
    confidence, wrong, sizes = (np.array(column, float) for column in zip(*items, strict=True))
    curve = risk_curve(confidence, wrong, sizes)
    named = [(c, w) for c, w, size in items if size]
    risks = []
    for order in permutations(named):
        ordered = sorted(order, key=lambda item: -item[0])
        risks.append([mean(w for _, w in ordered[:k]) for k in range(1, len(named) + 1)])
    due = [mean(map(float, column)) for column in zip(*risks, strict=True)]
    assert curve.risk.tolist() == pytest.approx(due, rel=1e-12)
    assert curve.coverage.tolist() == [k / len(items) for k in range(1, len(named) + 1)]
    assert curve.aurc == pytest.approx(mean(due) if due else np.nan, nan_ok=True)
    assert len(curve.table()) == min(10, len(named))


def test_unanswerable_questions_count_for_abstention_and_risk_only() -> None:
    test, _ = world(3, levels=3)
    records, named = drawn(test, 3, scored=True)
    nil = [
        record((1, 0, 98), []),
        record((1, 2, 99), [["3", 9.0]]),
        record((0, 1, 97), []),
    ]
    how: dict[str, Any] = {"unlinkable": "place", "resampling": FEW}
    sets = answer_sets(records, "lists", test.asked, unanswerable=nil, **how)
    plain = answer_sets(records, "lists", test.asked, **how)
    assert sets.values == plain.values
    empty = int((sets.sizes == 0).sum())
    ((count, n_empty, precision, recall, f1),) = sets.abstention().rows
    assert (count, n_empty) == (3, empty + 2)
    assert precision == 2 / (empty + 2)
    assert recall == 2 / 3
    assert f1 == pytest.approx(2 / (1 / precision + 1 / recall))
    curve = sets.risk_curve()
    assert curve.risk[0] == 1.0  # the surest set is that of an unanswerable question
    assert curve.coverage[-1] == (len(named) - empty + 1) / (len(named) + 3)
    with pytest.raises(kgtrec.UsageError, match="abstention needs"):
        plain.abstention()


def test_risk_falls_with_the_best_score(tmp_path: Path) -> None:
    test, _ = world(8, levels=0)
    sets = answer_sets(test.matrix, "top:2", test.asked, keep=True, resampling=FEW)
    best = [max(scores.values()) for scores in test.scores.values()]
    assert sets.confidence is not None
    assert sets.confidence.tolist() == best
    named = test.best(dict.fromkeys(test.questions, 2), "all")
    wrong = [float(not test.answers[q] & named[q]) for q in test.questions]
    assert sets.risk_curve().risk[-1] == pytest.approx(mean(wrong))
    sets.write(tmp_path / "sets.jsonl")
    again = answer_sets(tmp_path / "sets.jsonl", "lists", test.asked, format="jsonl")
    assert again.values == sets.values
    assert again.sets is not None
    assert [{*again.sets[q].tolist()} for q in range(len(named))] == [*named.values()]


def test_candidates_that_a_question_does_not_have_are_refused() -> None:
    test, _ = world(2, levels=0)
    few = test.asked.restrict(candidates=[sorted(a) for a in test.answers.values()])
    other = next(e for e in test.scores[test.questions[0]] if e not in few.answers[0])
    lists = [record(test.questions[0], [str(other)])]
    with pytest.raises(FileError, match=rf":1: '{other}' is not a candidate of its que"):
        answer_sets(lists, "lists", few)
    with pytest.raises(kgtrec.UsageError, match="sets of scores need all candidates"):
        answer_sets(test.matrix, "top:2", few)
