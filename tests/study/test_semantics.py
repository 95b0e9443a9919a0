"""Sem@k against sets and loops."""

from __future__ import annotations

from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_cases import listed

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.study import fitting_observed, semantic_shares

N = 12


def world(seed: int) -> tuple[kgtrec.Graph, np.ndarray, kgtrec.Run]:
    """A small graph, scores of its questions without ties, and their run."""
    random = np.random.default_rng(seed)
    rows = random.permutation(np.unique(random.integers(0, (N, 3, N), (60, 3)), axis=0))
    splits = {"train": rows[:25], "valid": rows[25:35], "test": rows[35:]}
    graph = kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=3)
    questions = graph.questions()
    scores = np.tile(np.arange(N, dtype=np.float32), (len(questions), 1))
    scores = random.permuted(scores, axis=1)
    return graph, scores, kgtrec.rank(scores, questions, run_depth=N, progress=False)[1]


@given(st.integers(0, 10_000), st.sampled_from(["train", "valid", "train,valid"]))
def test_shares_are_those_of_sets_and_loops(seed: int, names: str) -> None:
    graph, scores, run = world(seed)
    questions, cutoffs = graph.questions(), (1, 3, 20)
    result = semantic_shares({"a": run}, questions, fitting_observed(graph, names), cutoffs=cutoffs)
    assert result.source == f"observed in {names}"
    seen = {(side, t[1], t[2 * side]) for t in listed(graph, *names.split(",")) for side in (0, 1)}
    for question, row in enumerate(scores):
        kind = int(questions.side[question]), int(questions.relation[question])
        candidates = {*range(N)} - {*questions.removed[question].tolist()}
        best = sorted(candidates, key=lambda e, row=row: -row[e])
        due = [mean((*kind, e) in seen for e in best[:k]) for k in (*cutoffs, N)]
        if not any(one[:2] == kind for one in seen):
            due = [np.nan] * 4
        np.testing.assert_array_equal(result.values[0, :, question], due[:3])
        assert result.chance[question] == pytest.approx(due[3], rel=1e-15, nan_ok=True)


@given(st.integers(0, 10_000))
def test_means_over_triples_count_a_question_once_per_answer(seed: int) -> None:
    graph, _, run = world(seed)
    questions = graph.questions()
    result = semantic_shares({"a": run}, questions, cutoffs=(1, 3), resampling=Resampling(95, 100))
    triples = np.repeat(np.arange(len(questions)), questions.answers.lengths)
    asked = [("head", "tail")[number] for number in result.side.tolist()]
    for name, side, measure, over, n, value, low, high, chance in result.table().rows:
        own = [
            q
            for q in (triples if over == "triples" else range(len(questions)))
            if side in ("both", asked[q]) and not np.isnan(result.chance[q])
        ]
        assert (name, n) == ("a", len(own))
        shares = result.values[0, result.cutoffs.index(int(measure[4:]))]
        assert value == pytest.approx(shares[own].mean() if own else np.nan, nan_ok=True)
        assert chance == pytest.approx(result.chance[own].mean() if own else np.nan, nan_ok=True)
        assert not own or low - 1e-12 <= value <= high + 1e-12
