"""Restricted candidates: entity lists, lists per relation, lists per question, against sets."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import assert_counts, expected_best, expected_counts
from hypothesis import given
from hypothesis import strategies as st
from question_cases import DEPTH, N, R, random_questions, run_lists, some_scores

import kgtrec
from kgtrec.errors import InputError, UsageError


def check(
    restricted: kgtrec.Questions, scores: np.ndarray, lists: list[set[int]], source: object = None
) -> None:
    ranks, run = kgtrec.rank(scores if source is None else source, restricted, run_depth=DEPTH)
    assert_counts(ranks, expected_counts(restricted, scores, lists))
    assert run_lists(run) == expected_best(restricted, scores, DEPTH, lists)


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.2, 0.5, 0.9, 1.0]))
def test_one_list_for_all_questions(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    candidates = set(np.flatnonzero(rng.random(N) < share).tolist())
    restricted = questions.restrict(entities=list(candidates), outside="worst")
    check(restricted, some_scores(rng, (len(questions), N)), [candidates] * len(questions))


@given(seed=st.integers(0, 10**6))
def test_lists_by_relation_and_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    lists = [
        {r: np.flatnonzero(rng.random(N) < 0.6) for r in range(R) if rng.random() < 0.7}
        for _ in range(2)
    ]
    restricted = questions.restrict(heads=lists[0], tails=lists[1], outside="worst")
    every = np.arange(N)
    expected = [
        set(lists[side].get(relation, every).tolist())
        for side, relation in zip(questions.side, questions.relation, strict=True)
    ]
    check(restricted, some_scores(rng, (len(questions), N)), expected)


@given(seed=st.integers(0, 10**6), size=st.integers(1, N))
def test_lists_by_question_and_their_columns(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    lists = np.stack([rng.permutation(N)[:size] for _ in range(len(questions))])
    scores = some_scores(rng, (len(questions), N))
    expected = [set(ids.tolist()) for ids in lists]
    check(questions.restrict(candidates=lists, outside="worst"), scores, expected)
    narrow = questions.restrict(candidates=lists, columns="candidates", outside="worst")
    check(narrow, scores, expected, np.take_along_axis(scores, lists, axis=1))
    ranks, _ = kgtrec.rank(scores, questions.restrict(candidates=lists, outside="worst"))
    assert ranks.manifest["questions"]["sampled"] is True


@given(seed=st.integers(0, 10**6), metric=st.sampled_from(["dot", "l2", "l1"]))
def test_factors_rank_among_the_same_lists(seed: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    factors = kgtrec.Factors(
        rng.integers(-2, 3, (len(questions), 4)).astype(np.float32),
        rng.integers(-2, 3, (N, 4)).astype(np.float32),
        rng.integers(0, 2, N).astype(np.float32),
        metric,
    )
    lists = {r: np.flatnonzero(rng.random(N) < 0.6) for r in range(R)}
    restricted = questions.restrict(heads=lists, tails=lists, outside="worst")
    expected = [set(lists[int(r)].tolist()) for r in questions.relation]
    check(restricted, factors.scores(), expected, factors)


def test_full_lists_change_nothing_but_are_labelled() -> None:
    rng = np.random.default_rng(5)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    full, _ = kgtrec.rank(scores, questions)
    same, _ = kgtrec.rank(scores, questions.restrict(entities=range(N)))
    assert_counts(same, {name: getattr(full, name) for name in ("greater", "equal", "candidates")})
    assert same.manifest["questions"]["restricted"] == "entities"
    assert (
        same.manifest["questions"]["questions_hash"] != full.manifest["questions"]["questions_hash"]
    )


def test_sampled_results_say_so() -> None:
    rng = np.random.default_rng(5)
    questions = random_questions(rng)
    sampled = questions.restrict(candidates=[np.arange(N)] * len(questions))
    result = kgtrec.evaluate(some_scores(rng, (len(questions), N)), sampled)
    assert "sampled" in str(result)


def test_rows_per_triple_with_candidates() -> None:
    rng = np.random.default_rng(9)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    lists = {r: np.flatnonzero(rng.random(N) < 0.6) for r in range(R)}
    restricted = questions.restrict(heads=lists, tails=lists, outside="worst")
    by_question, run = kgtrec.rank(scores, restricted, run_depth=DEPTH)
    rows = scores[questions.instance_question[questions.triple_rows]]
    by_triple, again = kgtrec.rank(rows, restricted, run_depth=DEPTH, rows="instances")
    assert_counts(by_triple, expected_counts(restricted, scores, [
        set(lists[int(r)].tolist()) for r in questions.relation
    ]))  # fmt: skip
    assert run_lists(run) == run_lists(again)
    np.testing.assert_array_equal(by_question.greater, by_triple.greater)


def test_nan_among_listed_candidates_only() -> None:
    graph = kgtrec.Graph.from_arrays(test=[(0, 0, 1)], n_entities=4)
    questions = graph.questions(sides="tail")
    scores = np.array([[0, 1, 2, np.nan]], np.float32)
    kgtrec.rank(scores, questions.restrict(entities=[0, 1, 2]))
    narrow = questions.restrict(candidates=[[2, 1, 3]], columns="candidates")
    with pytest.raises(InputError, match=r"NaN .* entity '3'"):
        kgtrec.rank(scores[:, [2, 1, 3]], narrow)
    kgtrec.rank(np.array([[0, 1, 0]], np.float32), narrow)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, UsageError, "exactly one of"),
        ({"entities": [0], "candidates": [[0]]}, UsageError, "exactly one of"),
        ({"entities": [0, 9]}, InputError, "contains 9"),
        ({"entities": [0.5]}, InputError, "float64"),
        ({"entities": [0, 2]}, InputError, "outside='worst'"),
        ({"candidates": [[0], [1]]}, InputError, "2 lists for 1 questions"),
        ({"heads": {7: [0]}}, InputError, "relation 7"),
        ({"candidates": [[0, 0]], "columns": "candidates"}, InputError, "distinct"),
        ({"entities": [0], "columns": "candidates"}, UsageError, "needs candidates"),
        ({"entities": [0], "outside": "drop"}, UsageError, "'drop'"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict, error: type, message: str) -> None:
    questions = kgtrec.Graph.from_arrays(test=[(0, 0, 1)], n_entities=4).questions(sides="tail")
    with pytest.raises(error, match=message):
        questions.restrict(**options)


@given(seed=st.integers(0, 10**6))
def test_separate_questions_keep_which_answers_are_outside(seed: int) -> None:
    """One question per triple: answers outside their candidates stay outside, one by one."""
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    candidates = set(np.flatnonzero(rng.random(N) < 0.5).tolist())
    restricted = questions.restrict(entities=list(candidates), outside="worst")
    separate = restricted.separate()
    answers = separate.answers.ids.tolist()
    outside = np.zeros(len(answers), bool) if separate.outside is None else separate.outside
    assert outside.tolist() == [answer not in candidates for answer in answers]
    assert separate.side.dtype == np.int64
