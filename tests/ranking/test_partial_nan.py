"""NaN in ranges of entities and in factorised models: the one rule that `Ranker` has."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import InputError, UsageError

N = 19  # entities
COLUMNS = ("greater", "equal", "tied_ahead", "candidates", "answer_nan")


def some_questions(rng: np.random.Generator) -> kgtrec.Questions:
    splits = {name: rng.integers(0, (N, 2, N), (25, 3)) for name in ("train", "test")}
    return kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=2).questions()


def in_ranges(source, questions, cuts, higher=True, depth=4):
    ranges = list(itertools.pairwise([0, *cuts, N]))
    answers = kgtrec.AnswerScores(questions, higher_is_better=higher)
    for low, high in ranges:
        answers.fill(source(low, high), low)
    parts = [
        kgtrec.rank_range(source(low, high), answers, low, depth, nan="worst")
        for low, high in ranges[::-1]
    ]
    return kgtrec.merge_ranges(parts, answers)


def assert_same(got, due) -> None:
    for prefix in ("", "macro_"):
        for name in COLUMNS:
            name = f"{prefix}{name}"
            np.testing.assert_array_equal(getattr(got[0], name), getattr(due[0], name), name)
    scores, expected = got[0].manifest["scores"], due[0].manifest["scores"]
    assert {name: scores[name] for name in expected} == expected
    for name in ("offsets", "documents", "scores"):
        np.testing.assert_array_equal(getattr(got[1], name), getattr(due[1], name))


def assert_by_definition(ranked, questions, scores, depth=4) -> None:
    """Among all candidates by sets and sorting; a NaN is below everything, and in no run."""
    ranks, run = ranked
    known, removed = questions.known, questions.removed
    for row, (number, answer) in enumerate(zip(ranks.question, ranks.answer, strict=True)):
        line = scores[number]
        for prefix, outside in (("", known), ("macro_", removed)):
            others = set(range(N)) - set(outside[int(number)].tolist()) - {answer}
            if prefix:
                others |= set(questions.answers[int(number)].tolist()) - {answer}
            assert getattr(ranks, f"{prefix}candidates")[row] == len(others) + 1
            higher = sum(line[e] > line[answer] for e in others)
            equal = sum(line[e] == line[answer] for e in others)
            if np.isnan(line[answer]):
                higher, equal = len(others), 0
            assert getattr(ranks, f"{prefix}greater")[row] == higher
            assert getattr(ranks, f"{prefix}equal")[row] == equal
    for number in range(len(questions)):
        listed = run.documents[run.offsets[number] : run.offsets[number + 1]].tolist()
        able = set(range(N)) - set(removed[number].tolist())
        able |= set(questions.answers[number].tolist())
        able = {e for e in able if not np.isnan(scores[number][e])}
        best = sorted(able, key=lambda e: (scores[number][e], str(e).encode()), reverse=True)
        assert listed == best[:depth]


def test_factors_with_nan_in_ranges_are_those_of_one_pass() -> None:
    rng = np.random.default_rng(5)
    questions = some_questions(rng)
    queries = rng.normal(size=(len(questions), 3)).astype(np.float32)
    entities = rng.normal(size=(N, 3)).astype(np.float32)
    entities[[4, 11]] = np.nan
    queries[2] = np.nan

    def source(low, high):
        return kgtrec.Factors(queries, entities[low:high])

    whole = kgtrec.rank(source(0, N), questions, 4, nan="worst")
    merged = in_ranges(source, questions, [5, 12])
    assert_same(merged, whole)
    assert_by_definition(merged, questions, source(0, N).scores())


def test_nan_is_refused_by_default_and_ranges_must_agree() -> None:
    questions = some_questions(np.random.default_rng(1))
    scores = np.ones((len(questions), N), np.float32)
    answers = kgtrec.AnswerScores(questions)
    answers.fill(scores)
    question = int(np.flatnonzero(questions.removed.lengths)[0])
    free = sorted(set(range(10, N)) - set(questions.known[question].tolist()))
    removed = int(questions.removed[question][0])
    scores[question, removed] = np.nan  # is not a candidate of any answer
    kgtrec.rank_range(scores, answers)
    scores[question, free[:2]] = np.nan
    with pytest.raises(InputError) as ranged:
        kgtrec.rank_range(scores[:, 7:], answers, 7)
    with pytest.raises(InputError) as whole:
        kgtrec.rank(scores, questions)
    assert str(ranged.value) == str(whole.value)
    assert f"(id {free[0]}) and 1 more of its candidates" in str(ranged.value)
    parts = [
        kgtrec.rank_range(scores[:, :7], answers, 0),
        kgtrec.rank_range(scores[:, 7:], answers, 7, nan="worst"),
    ]
    with pytest.raises(UsageError, match="rank all ranges alike"):
        kgtrec.merge_ranges(parts, answers)
    with pytest.raises(UsageError, match="nan='last' is unknown"):
        kgtrec.rank_range(scores, answers, nan="last")


def test_factors_go_by_entity_where_score_columns_go_by_candidate() -> None:
    """A NaN is looked for among a model's entities, not at the place of a candidate's column."""
    questions = some_questions(np.random.default_rng(2))
    rng = np.random.default_rng(3)
    lists = []
    for number in range(len(questions)):
        answers = questions.answers[number].tolist()
        others = [e for e in rng.permutation(N).tolist() if e not in answers]
        lists.append([*answers, *others][:12])
    entities = rng.normal(size=(N, 3)).astype(np.float32)
    entities[[0, 3, 14]] = np.nan
    queries = rng.normal(size=(len(questions), 3)).astype(np.float32)
    factors = kgtrec.Factors(queries, entities)
    by_column = questions.restrict(candidates=lists, columns="candidates")
    by_entity = questions.restrict(candidates=lists)
    due = kgtrec.rank(factors.scores(), by_entity, 4, nan="worst")
    assert due[0].manifest["scores"]["nan_count"] > 0
    assert_same(kgtrec.rank(factors, by_column, 4, nan="worst"), due)
    assert_same(kgtrec.rank(factors, by_entity, 4, nan="worst"), due)
