"""Entity ranges: partial counts and runs merge to those of one pass."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from brute_force import assert_counts
from hypothesis import given
from hypothesis import strategies as st
from question_cases import N, random_questions, run_lists, some_scores

import kgtrec
from kgtrec.errors import InputError, UsageError

COUNTS = [
    f"{prefix}{name}"
    for prefix in ("", "macro_")
    for name in ("greater", "equal", "tied_ahead", "candidates")
]


def in_ranges(source, questions, cuts, depth=5, higher_is_better=True):
    """Rank range by range, the ranges in reverse, and merge."""
    bounds = [0, *cuts, questions.n_entities]
    ranges = list(itertools.pairwise(bounds))[::-1]
    answers = kgtrec.AnswerScores(questions, higher_is_better=higher_is_better)
    for low, high in ranges:
        part = kgtrec.AnswerScores(questions, higher_is_better=higher_is_better)
        part.fill(source(low, high), low)
        answers.merge(part)
    parts = [kgtrec.rank_range(source(low, high), answers, low, depth) for low, high in ranges]
    return kgtrec.merge_ranges(parts, answers)


def assert_same(got, expected) -> None:
    assert_counts(got[0], {name: getattr(expected[0], name) for name in COUNTS})
    assert run_lists(got[1]) == run_lists(expected[1])
    np.testing.assert_array_equal(got[1].scores, expected[1].scores)


@given(
    seed=st.integers(0, 10**6),
    cuts=st.sets(st.integers(1, N - 1)).map(sorted),
    metric=st.sampled_from(["dot", "l2", "l1"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_factors_have_the_same_bits_in_every_range(seed, cuts, metric, dtype) -> None:
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    queries = rng.normal(size=(len(questions), 7)).astype(dtype)
    entities = rng.normal(size=(N, 7)).astype(dtype)
    entities[rng.integers(0, N, 6)] = entities[3]  # equal vectors tie exactly
    bias = rng.integers(0, 2, N).astype(dtype)

    def source(low, high):
        return kgtrec.Factors(queries, entities[low:high], bias[low:high], metric)

    whole = kgtrec.rank(source(0, N), questions, run_depth=5)
    assert_same(in_ranges(source, questions, cuts), whole)
    dense = source(0, N).scores()
    assert_same(kgtrec.rank(dense, questions, run_depth=5), whole)
    twins = (entities[:, 0] == entities[3, 0]) & (bias == bias[3])
    assert (dense[:, twins] == dense[:, [3]]).all()


def at_odd_byte(array):
    view = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


@pytest.mark.parametrize("metric", ["dot", "l2", "l1"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_factors_may_begin_at_any_byte(metric: str, dtype: type) -> None:
    # Arrays in an .npz are mapped where they stand, which is anywhere; the sanitizers look on.
    rng = np.random.default_rng(11)
    questions = random_questions(rng)
    wide = np.float64 if dtype == np.float64 else np.float32
    arrays = (
        rng.normal(size=(len(questions), 19)).astype(wide),
        rng.normal(size=(N, 19)).astype(dtype),
        rng.normal(size=N).astype(wide),
    )
    source = kgtrec.Factors(*arrays, metric=metric)
    shifted = kgtrec.Factors(*map(at_odd_byte, arrays), metric=metric)
    assert not shifted.entities.flags.aligned  # mapped, not copied
    assert shifted.scores().tobytes() == source.scores().tobytes()
    assert_same(
        kgtrec.rank(shifted, questions, run_depth=5), kgtrec.rank(source, questions, run_depth=5)
    )


@pytest.mark.parametrize("dim", [0, 1, 5, 100, 257])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_l1_is_minus_the_distance(dim: int, dtype: type) -> None:
    rng = np.random.default_rng(dim)
    queries = rng.normal(size=(11, dim)).astype(dtype)
    entities = rng.normal(size=(101, dim)).astype(dtype)
    got = kgtrec.Factors(queries, entities, metric="l1").scores()
    expected = -np.abs(queries[:, None].astype(np.float64) - entities[None]).sum(axis=2)
    np.testing.assert_allclose(
        got, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-30
    )


def test_every_path_gives_the_same_bits_of_factors() -> None:
    from kgtrec import _core

    rng = np.random.default_rng(0)
    for metric in ("dot", "l2", "l1"):
        for dtype in (np.float32, np.float64):
            factors = kgtrec.Factors(
                rng.normal(size=(13, 37)).astype(dtype),
                rng.normal(size=(149, 37)).astype(dtype),
                rng.normal(size=149).astype(dtype),
                metric,
            )
            scores = []
            for path in _core.available_paths():
                _core.force_path(path)
                scores.append(factors.scores().tobytes())
            _core.force_path(None)
            assert len(set(scores)) == 1, (metric, dtype)


def partials(questions, scores):
    answers = kgtrec.AnswerScores(questions)
    answers.fill(scores)
    return answers, [
        kgtrec.rank_range(scores[:, :9], answers, 0, 3),
        kgtrec.rank_range(scores[:, 9:], answers, 9, 3),
    ]


def test_a_range_fills_the_answers_that_it_holds() -> None:
    rng = np.random.default_rng(1)
    questions = random_questions(rng)
    for low, high in itertools.combinations(range(0, N, 4), 2):
        answers = kgtrec.AnswerScores(questions)
        answers.fill(np.ones((len(questions), high - low)), low)
        held = [low <= answer < high for answer in questions.answers.ids.tolist()]
        assert answers.filled.tolist() == held
        assert answers.values.tolist() == held


def test_what_does_not_fit_is_refused() -> None:
    rng = np.random.default_rng(1)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    answers, (first, second) = partials(questions, scores)
    with pytest.raises(UsageError, match="9 to 22 are in no range"):
        kgtrec.merge_ranges([first], answers)
    with pytest.raises(UsageError, match="0 to 8 are in no range"):
        kgtrec.merge_ranges([second], answers)
    with pytest.raises(UsageError, match="overlaps"):
        kgtrec.merge_ranges([first, first, second], answers)
    deeper = kgtrec.rank_range(scores[:, 9:], answers, 9, 4)
    with pytest.raises(UsageError, match="rank all ranges alike"):
        kgtrec.merge_ranges([first, deeper], answers)
    other = random_questions(np.random.default_rng(2))
    foreign = kgtrec.AnswerScores(other)
    with pytest.raises(UsageError, match="other questions"):
        kgtrec.merge_ranges([first, second], foreign)
    with pytest.raises(InputError, match="goes beyond"):
        answers.fill(scores, 1)
    with pytest.raises(InputError, match="have shape"):
        answers.fill(scores[1:])
    with pytest.raises(UsageError, match="no score yet"):
        kgtrec.rank_range(scores, kgtrec.AnswerScores(questions))
    with pytest.raises(InputError, match="NaN"):
        kgtrec.rank_range(np.where(scores == 5, np.nan, scores), answers)
    with pytest.raises(UsageError, match="restricted"):
        kgtrec.AnswerScores(questions.restrict(entities=range(N)))


@pytest.mark.parametrize("metric", ["dot", "l2", "l1"])
def test_half_precision_entities_score_as_their_widened_copies(metric: str) -> None:
    rng = np.random.default_rng(4)
    questions = random_questions(rng)
    queries = rng.normal(size=(len(questions), 19)).astype(np.float32)
    half = rng.normal(size=(N, 19)).astype(np.float16)
    narrow, wide = (kgtrec.Factors(queries, e, metric=metric) for e in (half, half.astype("f4")))
    assert narrow.entities.dtype == np.float16
    assert narrow.scores().tobytes() == wide.scores().tobytes()
    assert_same(
        kgtrec.rank(narrow, questions, run_depth=5), kgtrec.rank(wide, questions, run_depth=5)
    )

    def source(low, high):
        return kgtrec.Factors(queries, half[low:high], metric=metric)

    assert_same(in_ranges(source, questions, [8]), kgtrec.rank(wide, questions, run_depth=5))
