"""Ranges of entities, several filters in one pass, and tolerant ties: ranks by definition."""

from __future__ import annotations

import itertools
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from question_cases import (
    N,
    R,
    assert_same,
    random_questions,
    some_scores,
)
from refusals import assert_refused

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import FilterWarning, InputError, UsageError
from kgtrec.ranking.blocks import thresholds
from kgtrec.ranking.settings import Tolerance


def in_ranges(source, questions, cuts, depth=5, **options):
    """Rank range by range, the ranges in reverse, and merge."""
    ranges = list(itertools.pairwise([0, *cuts, N]))[::-1]
    answers = kgtrec.AnswerScores(questions)
    for low, high in ranges:
        part = kgtrec.AnswerScores(questions)
        part.fill(source(low, high), low)
        answers.merge(part)
    parts = [
        kgtrec.rank_range(source(low, high), answers, low, depth, **options) for low, high in ranges
    ]
    return kgtrec.merge_ranges(parts, answers)


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
    # Arrays in an .npz are mapped at any offset; sanitizers check the accesses.
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
    deeper = kgtrec.rank_range(scores[:, 9:], answers, 9, 4)
    lenient = kgtrec.rank_range(scores[:, 9:], answers, 9, 3, nan="worst")
    foreign = kgtrec.AnswerScores(random_questions(np.random.default_rng(2)))
    unknown, spoilt = kgtrec.AnswerScores(questions), np.where(scores == 5, np.nan, scores)
    narrow = questions.restrict(entities=range(N))
    merge, rank = kgtrec.merge_ranges, kgtrec.rank_range
    for call, error, words, *arguments in (
        (merge, UsageError, "contains the entities 9 to 22", [first], answers),
        (merge, UsageError, "contains the entities 0 to 8", [second], answers),
        (merge, UsageError, "overlaps", [first, first, second], answers),
        (merge, UsageError, "rank all ranges alike", [first, deeper], answers),
        (merge, UsageError, "rank all ranges alike", [first, lenient], answers),
        (merge, UsageError, "other questions", [first, second], foreign),
        (answers.fill, InputError, "goes beyond", scores, 1),
        (answers.fill, InputError, "have shape", scores[1:]),
        (rank, UsageError, "no score yet", scores, unknown),
        (rank, InputError, "NaN", spoilt, answers),
        (rank, UsageError, "nan='last' is unknown", scores, answers, 0, 0, None, "last"),
        (kgtrec.AnswerScores, UsageError, "restricted", narrow),
    ):
        assert_refused(call, error, (words,), *arguments)


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


# -- NaN -------------------------------------------------------------------------------------------


def dense_questions(seed: int) -> kgtrec.Questions:
    """Questions with known entities besides most answers."""
    rng = np.random.default_rng(seed)
    splits = {name: rng.integers(0, (N, 2, N), (25, 3)) for name in ("train", "test")}
    return kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=2).questions()


def test_factors_with_nan_in_ranges_are_those_of_one_pass() -> None:
    rng = np.random.default_rng(5)
    questions = random_questions(rng)
    queries = rng.normal(size=(len(questions), 3)).astype(np.float32)
    entities = rng.normal(size=(N, 3)).astype(np.float32)
    entities[[4, 11]] = np.nan
    queries[2] = np.nan

    def source(low, high):
        return kgtrec.Factors(queries, entities[low:high])

    whole = kgtrec.rank(source(0, N), questions, 4, nan="worst")
    merged = in_ranges(source, questions, [5, 12], 4, nan="worst")
    assert_same(merged, whole)
    assert_same(kgtrec.rank(source(0, N).scores(), questions, 4, nan="worst"), whole)


def test_nan_in_a_range_is_refused_as_in_one_pass() -> None:
    questions = dense_questions(1)
    scores = np.ones((len(questions), N), np.float32)
    answers = kgtrec.AnswerScores(questions)
    answers.fill(scores)
    question = int(np.flatnonzero(questions.removed.lengths)[0])
    free = sorted(set(range(10, N)) - set(questions.known[question].tolist()))
    removed = int(questions.removed[question][0])
    scores[question, removed] = np.nan  # they are candidates of no answer
    kgtrec.rank_range(scores, answers)
    scores[question, free[:2]] = np.nan
    with pytest.raises(InputError) as ranged:
        kgtrec.rank_range(scores[:, 7:], answers, 7)
    with pytest.raises(InputError) as whole:
        kgtrec.rank(scores, questions)
    assert str(ranged.value) == str(whole.value)
    assert f"(id {free[0]}) and 1 more of its candidates" in str(ranged.value)


def test_factors_go_by_entity_where_score_columns_go_by_candidate() -> None:
    """NaN are searched among a model's entities, not at the place of a candidate's column."""
    questions = dense_questions(2)
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


# -- Several filters in one pass -------------------------------------------------------------------

FILTERS = ["raw", "valid", "test", ("train", "test")]
NAMES = ["raw", "valid", "test", "train+test"]
SPLITS = {"raw": (), "valid": ("train", "valid"), "test": ("train", "valid", "test"),
          "train+test": ("train", "test")}  # fmt: skip


@pytest.fixture
def graph() -> kgtrec.Graph:
    rng = np.random.default_rng(3)
    splits = {s: rng.integers(0, (N, R, N), (70, 3)) for s in ("train", "valid", "test")}
    return kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=R)


class Once:
    """Chunks of scores, with the number of chunks read."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores, self.read = scores, 0

    def __iter__(self):
        for start in range(0, len(self.scores), 9):
            self.read += 1
            yield self.scores[start : start + 9]


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("options", [{}, {"sides": "tail"}, {"entities": range(N - 4)}])
def test_each_is_that_of_a_pass_of_its_own(graph, rows: str, options: dict[str, Any]) -> None:
    several = graph.questions_by_filter(FILTERS, **options)
    assert list(several) == NAMES
    n_rows = kgtrec.Ranker(several["raw"], rows=rows).n_rows
    scores = Once(some_scores(np.random.default_rng(4), (n_rows, N)))
    ranked = kgtrec.rank(scores, several, 5, rows=rows)
    assert scores.read == -(-n_rows // 9)
    assert list(ranked) == NAMES
    for name, (ranks, run) in ranked.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FilterWarning)
            own = graph.questions(filter=FILTERS[NAMES.index(name)], **options)
        due = kgtrec.rank(scores.scores, own, 5, rows=rows)
        assert_same((ranks, run), due)
        assert ranks.manifest == due[0].manifest
        assert ranks.manifest["questions"]["filter_splits"] == list(SPLITS[name])
    assert len({ranks.manifest["questions"]["questions_hash"] for ranks, _ in ranked.values()}) == 4


def test_factors_and_results(graph) -> None:
    several = graph.questions_by_filter(("raw", "test"))
    rng = np.random.default_rng(6)
    queries, table = rng.normal(size=(len(several["raw"]), 4)), rng.normal(size=(N, 4))
    factors = kgtrec.Factors(queries, table)
    results = kgtrec.evaluate(factors, several)
    for name, result in results.items():
        assert result.to_dict() == kgtrec.evaluate(factors, several[name]).to_dict()
    key = "both.realistic.micro.mrr"
    assert results["raw"][key] < results["test"][key]


def test_what_cannot_be_ranked_together(graph) -> None:
    test, scores = graph.questions(), np.zeros((1, N))
    other = kgtrec.Graph.from_arrays(test=graph.splits["test"][::-1], n_entities=N, n_relations=R)
    for odd in (
        graph.questions("valid", filter="test"),
        graph.questions(sides="tail"),
        graph.questions(columns=np.arange(N)[::-1]),
        other.questions(),
        test.separate(),
    ):
        words = ("'one' and 'two' differ in more than their filter",)
        assert_refused(kgtrec.rank, UsageError, words, scores, {"one": test, "two": odd})
    ranks, _ = kgtrec.rank(np.zeros((len(test), N)), test)
    for call, words, *arguments in (
        (kgtrec.rank, "mapping of questions is empty", scores, {}),
        (graph.questions_by_filter, "'raw' is given twice", ["raw", "test", "raw"]),
        (graph.questions_by_filter, "no filter is given", []),
        (graph.questions_by_filter, "filter='rew' is unknown", "rew"),
        (kgtrec.evaluate, "ranks have one filter", ranks, {"test": test}),
    ):
        assert_refused(call, UsageError, (words,), *arguments)


ATOL, RTOL = 1e-5, 1e-4  # LibKGE's defaults
COLUMNS = ("greater", "equal", "tied_ahead", "macro_greater", "macro_equal", "macro_tied_ahead")


def ties(scores: np.ndarray, own: Any, atol: float, rtol: float) -> np.ndarray:
    """Which scores tie, in their dtype: as isclose, where infinities are close to themselves."""
    kind = scores.dtype.type
    with np.errstate(all="ignore"):
        apart = np.abs(scores - kind(own))
        allowed = kind(atol) + np.abs(kind(rtol) * kind(own))
    return (scores == own) | (np.isfinite(apart) & (apart <= allowed))


def graph_of(n: int, seed: int) -> kgtrec.Graph:
    triples = np.random.default_rng(seed).integers(0, (n, 3, n), (6 * n, 3))
    return kgtrec.Graph.from_arrays(
        triples[: 3 * n], triples[3 * n : 4 * n], triples[4 * n :], n, 3
    )


def crowded(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Scores a few units in the last place around the ends of each other's ties."""
    base = rng.choice([0.0, 1.0, -1.0, 1e-5, 0.25, 3.0, -7.5], shape)
    near = base * (1 + rng.integers(-3, 4, shape) * RTOL / 2) + rng.integers(-2, 3, shape) * ATOL
    scores = near.astype(dtype)
    if dtype != "float16":
        scores = np.nextafter(scores, rng.choice([-9, 9, 0], shape).astype(dtype), dtype=dtype)
    return scores


def check(ranks: kgtrec.Ranks, exact: kgtrec.Ranks, questions: Any, scores: np.ndarray) -> None:
    """Every instance by the definition; all but micro ties as without a tolerance."""
    for row in range(len(ranks)):
        question, answer = int(ranks.question[row]), int(ranks.answer[row])
        keep = np.ones(questions.n_entities, bool)
        keep[questions.known[question]] = False
        if questions.candidate_lists is not None:
            allowed = np.zeros(questions.n_entities, bool)
            allowed[questions.candidate_lists.lists[0]] = True
            keep &= allowed
        keep[answer] = False
        line, own = scores[question], scores[question, answer]
        tied = ties(line, own, ATOL, RTOL)
        assert ranks.equal[row] == (tied & keep).sum(), (row, own)
        assert ranks.greater[row] == ((line > own) & ~tied & keep).sum(), (row, own)
    np.testing.assert_array_equal(ranks.rank("ordinal"), exact.rank("ordinal"))
    for name in COLUMNS[3:]:
        np.testing.assert_array_equal(getattr(ranks, name), getattr(exact, name), name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("protocol", ["all", "raw"])
def test_counts_are_those_of_the_definition(dtype: str, protocol: str) -> None:
    for seed in range(4):
        questions = graph_of(31, seed).questions(filter=protocol)
        rng = np.random.default_rng(seed)
        scores = crowded(rng, (len(questions), 31), dtype)
        scores[rng.random(scores.shape) < 0.05] = np.inf
        scores[rng.random(scores.shape) < 0.05] = -np.inf
        exact, run = kgtrec.rank(scores, questions, run_depth=5)
        ranks, same = kgtrec.rank(scores, questions, run_depth=5, atol=ATOL, rtol=RTOL)
        check(ranks, exact, questions, scores)
        np.testing.assert_array_equal(run.documents, same.documents)


@pytest.mark.parametrize("how", ["lower", "columns", "entities", "rows in any order", "instances"])
def test_counts_in_other_layouts(how: str) -> None:
    graph, rng = graph_of(31, 7), np.random.default_rng(7)
    questions = graph.questions(entities=range(5, 30)) if how == "entities" else graph.questions()
    scores = crowded(rng, (len(questions), 31), "float32")
    exact = kgtrec.rank(scores, questions)[0]
    turned, more = scores, {}
    if how == "lower":
        turned, more = -scores, {"higher_is_better": False}
    if how == "columns":
        order = rng.permutation(31)
        turned, more = scores[:, order], {"columns": order.tolist()}
    if how == "instances":
        rows = questions.instance_question[questions.triple_rows]
        turned, more = scores[rows], {"rows": "instances"}
    ranker = kgtrec.Ranker(questions, atol=ATOL, rtol=RTOL, **more)
    order = rng.permutation(len(turned)) if how == "rows in any order" else np.arange(len(turned))
    for part in np.array_split(order, 3):
        ranker.update(part, turned[part])
    check(ranker.finish()[0], exact, questions, scores)


@pytest.mark.parametrize("n", [40, 3000])  # tiles of scores; bounds from 8-bit products
def test_counts_of_a_factorised_model(n: int) -> None:
    rng = np.random.default_rng(n)
    graph = kgtrec.Graph.from_arrays(rng.integers(0, (n, 3, n), (400, 3)), None,
                                     rng.integers(0, (n, 3, n), (150, 3)), n, 3)  # fmt: skip
    questions = graph.questions()
    entities = rng.standard_normal((n, 32)).astype(np.float32)
    entities[n // 2 :] = entities[: n - n // 2] * np.float32(1 + RTOL / 2)
    queries = rng.standard_normal((len(questions), 32)).astype(np.float32)
    factors = kgtrec.Factors(queries, entities)
    scores = np.concatenate([factors.scores(i, i + 1) for i in range(len(questions))])
    exact = kgtrec.rank(factors, questions)[0]
    ranks = kgtrec.rank(factors, questions, atol=ATOL, rtol=RTOL)[0]
    assert (ranks.equal > exact.equal).mean() > 0.5
    check(ranks, exact, questions, scores)


@pytest.mark.parametrize("tolerance", [{"atol": 0.5}, {"rtol": 0.25}])
def test_either_part_alone_is_a_tolerance(tolerance: dict[str, float]) -> None:
    graph = kgtrec.Graph.from_arrays(test=[(0, 0, 1)], n_entities=4, n_relations=1)
    scores = np.array([[3.0, 2.0, 2.5, 0.0]])
    (ranks, _) = kgtrec.rank(scores, graph.questions(sides="tail"), **tolerance)
    assert (ranks.greater.tolist(), ranks.equal.tolist()) == ([1], [1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@np.errstate(over="ignore")
def test_thresholds_are_the_ends_of_the_tie(dtype: str) -> None:
    rng = np.random.default_rng(5)
    extremes = [0.0, -0.0, 1e-45, np.finfo(dtype).max, -np.finfo(dtype).max]
    own = np.concatenate([rng.standard_normal(300), 10 ** rng.uniform(-30, 30, 300), extremes])
    with np.errstate(over="ignore", under="ignore"):
        own = own.astype(dtype)
    own = own[np.isfinite(own)]
    for tolerance in (Tolerance(ATOL, RTOL), Tolerance(0.5, 0.0), Tolerance(0.0, 3.0)):
        high, below = thresholds(own.astype(np.float64), dtype, tolerance)
        for center, top, under in zip(own, high.astype(dtype), below, strict=True):
            bottom = np.nextafter(under.astype(dtype), np.inf, dtype=dtype)
            if dtype == "float16":
                bottom = np.float16(np.nextafter(np.float32(under), np.float32(np.inf)))
            assert ties(np.array([top, bottom]), center, *tolerance).all(), (center, tolerance)
            with np.errstate(over="ignore"):
                outside = [np.nextafter(top, np.inf, dtype=dtype),
                           np.nextafter(bottom, -np.inf, dtype=dtype)]  # fmt: skip
            assert not ties(np.array(outside), center, *tolerance).any(), (center, tolerance)


def test_a_tolerance_is_named_and_not_comparable(tmp_path: Path) -> None:
    graph = graph_of(31, 1)
    questions = graph.questions()
    scores = crowded(np.random.default_rng(1), (len(questions), 31), "float32")
    tolerant = kgtrec.evaluate(scores, questions, atol=ATOL, rtol=RTOL)
    exact = kgtrec.evaluate(scores, questions)
    assert "within 1e-05 + 0.0001 |score| of the answer's as ties" in " ".join(
        str(tolerant).split()
    )
    assert "tolerant side" in str(tolerant)
    assert "tolerant" not in str(exact)
    (reason,) = kgtrec.comparable(tolerant, exact).reasons
    assert reason == "ties: within 1e-05 + 0.0001 |score| against equal scores"
    tolerant.ranks.save(tmp_path / "t.parquet")
    assert kgtrec.comparable(kgtrec.Ranks.load(tmp_path / "t.parquet"), tolerant)
    half = np.arange(len(exact.ranks)) < 5
    with pytest.raises(kgtrec.UsageError, match="tie_tolerance"):
        kgtrec.Ranks.concat([exact.ranks.subset(half), tolerant.ranks.subset(~half)])
    one, other = kgtrec.Ranker(questions, atol=ATOL), kgtrec.Ranker(questions)
    one.update(np.arange(3), scores[:3])
    one.save(tmp_path / "rows")
    with pytest.raises(kgtrec.UsageError, match="tie tolerance"):
        other.merge(tmp_path / "rows")


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "1e-5", True, None])
def test_what_is_no_tolerance(value: Any) -> None:
    with pytest.raises(kgtrec.UsageError, match="atol="):
        kgtrec.Ranker(graph_of(9, 0).questions(), atol=value)


def test_nan_answers_stay_worst() -> None:
    questions = graph_of(31, 2).questions()
    scores = crowded(np.random.default_rng(2), (len(questions), 31), "float32")
    scores[:, 4] = np.nan
    exact = kgtrec.rank(scores, questions, nan="worst")[0]
    ranks = kgtrec.rank(scores, questions, nan="worst", atol=ATOL)[0]
    assert (ranks.rank()[ranks.answer == 4] == ranks.candidates[ranks.answer == 4]).all()
    np.testing.assert_array_equal(ranks.answer_nan, exact.answer_nan)


def awkward(dtype: str, seed: int) -> tuple[Any, np.ndarray]:
    """Questions, and scores: many are close, some infinite."""
    questions = graph_of(31, seed).questions()
    rng = np.random.default_rng(seed)
    scores = crowded(rng, (len(questions), 31), dtype)
    scores[rng.random(scores.shape) < 0.05] = np.inf
    scores[rng.random(scores.shape) < 0.05] = -np.inf
    return questions, scores


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("bounds", [(0, 11, 12, 31), (0, 1, 30, 31)])
@pytest.mark.parametrize("lower", [False, True])
def test_ranges_of_entities_add_up(dtype: str, bounds: tuple[int, ...], lower: bool) -> None:
    questions, scores = awkward(dtype, 11)
    options = {"atol": ATOL, "rtol": RTOL, "higher_is_better": not lower}
    answers = kgtrec.AnswerScores(questions, **options)
    spans = list(pairwise(bounds))
    for first, stop in spans:
        answers.fill(scores[:, first:stop], first)
    parts = [kgtrec.rank_range(scores[:, a:b], answers, a, run_depth=4) for a, b in spans[::-1]]
    exact = kgtrec.rank(scores, questions, 4, higher_is_better=not lower)
    whole = kgtrec.rank(scores, questions, 4, **options)
    assert (whole[0].equal > exact[0].equal).any()
    assert_same(kgtrec.merge_ranges(parts, answers), whole)


def test_ranges_of_a_factorised_model_add_up() -> None:
    rng, n = np.random.default_rng(12), 300
    questions = graph_of(n, 12).questions()
    entities = rng.standard_normal((n, 8)).astype(np.float32)
    entities[n // 2 :] = entities[: n // 2] * np.float32(1 + RTOL / 2)
    queries = rng.standard_normal((len(questions), 8)).astype(np.float32)
    answers = kgtrec.AnswerScores(questions, atol=ATOL, rtol=RTOL)
    spans = [(0, 100), (100, 120), (120, n)]
    models = [kgtrec.Factors(queries, entities[a:b]) for a, b in spans]
    for (first, _), model in zip(spans, models, strict=True):
        answers.fill(model, first)
    parts = [
        kgtrec.rank_range(model, answers, first, 4)
        for (first, _), model in zip(spans, models, strict=True)
    ]
    whole = kgtrec.rank(kgtrec.Factors(queries, entities), questions, 4, atol=ATOL, rtol=RTOL)
    assert_same(kgtrec.merge_ranges(parts, answers), whole)


def test_ranges_of_other_tolerances_do_not_merge() -> None:
    questions, scores = awkward("float32", 13)
    parts = []
    for first, stop, atol in ((0, 9, 0.0), (9, 31, ATOL)):
        answers = kgtrec.AnswerScores(questions, atol=atol)
        answers.fill(scores)
        parts.append(kgtrec.rank_range(scores[:, first:stop], answers, first))
    with pytest.raises(kgtrec.UsageError, match="tie tolerance"):
        kgtrec.merge_ranges(parts, answers)


def test_shards_are_those_of_one_process(tmp_path: Path) -> None:
    questions, scores = awkward("float32", 14)
    for split, triples in questions.graph.splits.items():
        rows = "".join(f"e{h:02d}\tr{r}\te{t:02d}\n" for h, r, t in triples.tolist())
        (tmp_path / f"{split}.txt").write_text(rows)
    np.save(tmp_path / "scores.npy", scores)
    source = ["--graph", str(tmp_path), "--scores", str(tmp_path / "scores.npy"), "--quiet"]
    close = ["--atol", "1e-5", "--rtol", "1e-4"]
    folder = str(tmp_path / "shards")

    def run(*words: str) -> Any:
        return CliRunner().invoke(cli, [*words]).exception

    by = ["-o", folder, "--shard-by", "entities", "--shard"]
    assert run("rank", *source, *close, "-o", str(tmp_path / "one.parquet")) is None
    for shard in ("1/3", "2/3", "3/3"):
        assert run("rank", *source, *close, *by, shard) is None
    assert run("merge", folder, "-o", str(tmp_path / "merged.parquet"), "--quiet") is None
    merged = (tmp_path / "merged.parquet").read_bytes()
    assert merged == (tmp_path / "one.parquet").read_bytes()
    other = run("rank", *source, *by, "2/3")
    assert "another ranking (other --atol or --rtol" in str(other)
    endless = run("rank", *source, "-o", folder, "--atol", "inf", "--shard", "2/3")
    assert "atol=inf" in str(endless)
