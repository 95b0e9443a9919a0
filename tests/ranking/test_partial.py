"""Ranges of entities, several filters in one pass, and tolerant ties: ranks by definition."""

from __future__ import annotations

import functools
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from question_cases import (
    FACTOR_METRICS,
    N,
    R,
    assert_due,
    assert_same,
    expected_of,
    factor_dims,
    random_questions,
    some_scores,
)
from refusals import assert_refused

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError

ATOL, RTOL = 1e-5, 1e-4  # LibKGE's defaults


def in_ranges(source, questions, cuts, n=N, nan="error", **options):
    """Rank range by range, the ranges in reverse, and merge."""
    ranges = list(pairwise([0, *cuts, n]))[::-1]
    answers = kgtrec.AnswerScores(questions, **options)
    for low, high in ranges:
        part = kgtrec.AnswerScores(questions, **options)
        part.fill(source(low, high), low)
        answers.merge(part)
    parts = [kgtrec.rank_range(source(low, high), answers, low, 5, nan=nan) for low, high in ranges]
    return kgtrec.merge_ranges(parts, answers)


def at_odd_byte(array):
    view = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


@given(
    seed=st.integers(0, 10**6),
    cuts=st.sets(st.integers(1, N - 1)).map(sorted),
    metric=st.sampled_from(FACTOR_METRICS),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    nan=st.booleans(),
)
def test_factors_have_the_same_bits_in_every_range(seed, cuts, metric, dtype, nan) -> None:
    """And at any byte, as in an .npz that is mapped, and in a model's own order."""
    rng = np.random.default_rng(seed)
    questions, order = random_questions(rng), rng.permutation(N)
    wide = np.float64 if dtype == np.float64 else np.float32
    of_query, of_entity = factor_dims(metric, 4)
    queries = rng.normal(size=(len(questions), of_query)).astype(wide)
    entities = rng.normal(size=(N, of_entity)).astype(dtype)
    entities[rng.integers(0, N, 6)] = entities[3]  # equal vectors tie exactly
    bias = rng.integers(0, 2, N).astype(wide)
    if nan:
        entities[[4, 11]] = queries[2] = np.nan

    def source(low, high):
        return kgtrec.Factors(queries, entities[low:high], bias[low:high], metric)

    def rank(scores, **options):
        return kgtrec.rank(scores, questions, 5, nan="worst", **options)

    if nan:
        assert_refused(kgtrec.rank, InputError, ("NaN for question",), source(0, N), questions)
    whole, dense = rank(source(0, N)), source(0, N).scores()
    assert_same(in_ranges(source, questions, cuts, nan="worst"), whole)
    assert_same(rank(dense), whole)
    twins = (entities[:, 0] == entities[3, 0]) & (bias == bias[3])
    np.testing.assert_array_equal(dense[:, twins], np.tile(dense[:, [3]], twins.sum()))
    widened = kgtrec.Factors(queries, entities.astype(wide), bias, metric)
    assert widened.scores().tobytes() == dense.tobytes()
    shifted = kgtrec.Factors(*map(at_odd_byte, (queries, entities, bias)), metric)
    assert not shifted.entities.flags.aligned  # mapped, not copied
    assert_same(rank(shifted), whole)
    theirs = entities[order], bias[order], metric  # row j belongs to entity order[j]
    own = kgtrec.Factors(queries, *theirs, columns=order)
    assert own.entities.dtype == dtype
    assert_same(rank(own), whole)
    assert_same(rank(kgtrec.Factors(queries, *theirs), columns=order), whole)


def test_a_range_fills_the_answers_that_it_holds() -> None:
    rng = np.random.default_rng(1)
    questions = random_questions(rng)
    for low, high in combinations(range(0, N, 4), 2):
        answers = kgtrec.AnswerScores(questions)
        answers.fill(np.ones((len(questions), high - low)), low)
        held = [low <= answer < high for answer in questions.answers.ids.tolist()]
        assert answers.filled.tolist() == held
        assert answers.values.tolist() == held


def test_factors_go_by_entity_where_score_columns_go_by_candidate() -> None:
    """NaN are searched among a model's entities, not at the place of a candidate's column."""
    rng = np.random.default_rng(3)
    questions = random_questions(rng)
    lists = [
        list(dict.fromkeys([*answers.tolist(), *rng.permutation(N).tolist()]))[:12]
        for answers in questions.answers
    ]
    entities = rng.normal(size=(N, 3)).astype(np.float32)
    entities[[0, 3, 14]] = np.nan
    factors = kgtrec.Factors(rng.normal(size=(len(questions), 3)).astype(np.float32), entities)
    by_entity = questions.restrict(candidates=lists)
    due = kgtrec.rank(factors.scores(), by_entity, 4, nan="worst")
    assert due[0].manifest["scores"]["nan_count"] > 0
    for asked in (questions.restrict(candidates=lists, columns="candidates"), by_entity):
        assert_same(kgtrec.rank(factors, asked, 4, nan="worst"), due)


# -- Several filters in one pass -------------------------------------------------------------------

SPLITS = {
    "raw": (),
    "valid": ("train", "valid"),
    "test": ("train", "valid", "test"),
    "train+test": ("train", "test"),
}


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("options", [{}, {"sides": "tail"}, {"entities": range(N - 4)}])
@pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")
def test_each_filter_is_as_in_a_pass_of_its_own(rows: str, options: dict[str, Any]) -> None:
    rng, read = np.random.default_rng(3), []
    splits = {s: rng.integers(0, (N, R, N), (70, 3)) for s in ("train", "valid", "test")}
    graph = kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=R)
    filters = ["raw", "valid", "test", ("train", "test")]
    several = graph.questions_by_filter(filters, **options)
    n_rows = kgtrec.Ranker(several["raw"], rows=rows).n_rows
    scores = some_scores(rng, (n_rows, N))
    chunks = (read.append(start) or scores[start : start + 9] for start in range(0, n_rows, 9))
    results = kgtrec.evaluate(chunks, several, run_depth=5, rows=rows)
    assert len(read) == -(-n_rows // 9)
    assert list(results) == list(several) == list(SPLITS)
    for (name, result), filter_ in zip(results.items(), filters, strict=True):
        own = graph.questions(filter=filter_, **options)
        due = kgtrec.evaluate(scores, own, run_depth=5, rows=rows)
        assert_same((result.ranks, result.run), (due.ranks, due.run))
        assert result.to_dict() == due.to_dict()
        assert result.ranks.manifest == due.ranks.manifest
        assert result.ranks.manifest["questions"]["filter_splits"] == list(SPLITS[name])
    hashes = [result.ranks.manifest["questions"]["questions_hash"] for result in results.values()]
    assert len({*hashes}) == 4


# -- Tolerant ties ---------------------------------------------------------------------------------

TOLERANCES = [(ATOL, RTOL), (0.5, 0.0), (0.0, 3.0)]


def ties(
    scores: np.ndarray, own: np.ndarray, *, atol: float = 0.0, rtol: float = 0.0
) -> np.ndarray:
    """Which scores tie, in their dtype: as isclose, where infinities are close to themselves."""
    kind = scores.dtype.type
    with np.errstate(all="ignore"):
        apart = np.abs(scores - own)
        allowed = kind(atol) + np.abs(kind(rtol) * own)
    return (scores == own) | (np.isfinite(apart) & (apart <= allowed))


def graph_of(n: int, seed: int) -> kgtrec.Graph:
    triples = np.random.default_rng(seed).integers(0, (n, 3, n), (6 * n, 3))
    return kgtrec.Graph.from_arrays(
        triples[: 3 * n], triples[3 * n : 4 * n], triples[4 * n :], n, 3
    )


def crowded(
    rng: np.random.Generator, shape: tuple[int, int], dtype: str, atol: float, rtol: float
) -> np.ndarray:
    """Scores a few units in the last place around the ends of each other's ties; some infinite."""
    largest = float(np.finfo(dtype).max)
    base = rng.choice([0.0, -0.0, 1, -1, 1e-5, 0.25, 3, -7.5, largest, -largest, 1e-45], shape)
    with np.errstate(over="ignore", under="ignore"):
        near = base * (1 + rng.integers(-3, 4, shape) * rtol / 2)
        scores = (near + rng.integers(-2, 3, shape) * atol).astype(dtype)
        if dtype != "float16":
            scores = np.nextafter(scores, rng.choice([-9, 9, 0], shape).astype(dtype), dtype=dtype)
    scores[rng.random(shape) < 0.05] = np.inf
    scores[rng.random(shape) < 0.05] = -np.inf
    return scores


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "how", ["all", "raw", "lower", "columns", "entities", "any order", "instances", "ranges", "nan"]
)
def test_counts_are_those_of_the_definition(how: str, dtype: str, tolerance: Any) -> None:
    rng = np.random.default_rng(7)
    options: dict[str, Any] = {"filter": "raw"} if how == "raw" else {}
    options |= {"entities": range(5, 30)} if how == "entities" else {}
    questions = graph_of(31, 7).questions(**options)
    scores = crowded(rng, (len(questions), 31), dtype, *tolerance)
    close, nan = dict(zip(("atol", "rtol"), tolerance, strict=True)), "error"
    if how == "nan":
        scores[:, 4], nan = np.nan, "worst"
    lists = [range(5, 30)] * len(questions) if how == "entities" else None
    turned, more = scores, {"nan": nan}
    if how == "lower":
        turned, more = -scores, {"higher_is_better": False}
    if how == "columns":
        order = rng.permutation(31)
        turned, more = scores[:, order], {"columns": order.tolist()}
    if how == "instances":
        rows = questions.instance_question[questions.triple_rows]
        turned, more = scores[rows], {"rows": "instances"}
    if how == "ranges":
        cuts = [0, 1, 11, 12, 30, 31]
        ranks, run = in_ranges(lambda a, b: scores[:, a:b], questions, cuts[1:-1], 31, **close)
    else:
        ranker = kgtrec.Ranker(questions, 5, **close, **more)
        order = rng.permutation(len(turned)) if how == "any order" else np.arange(len(turned))
        for part in np.array_split(order, 3):
            ranker.update(part, turned[part])
        ranks, run = ranker.finish()
    due = expected_of(scores, questions, 5, lists, functools.partial(ties, **close))
    assert_due((ranks, run), due)


@pytest.mark.parametrize("n", [40, 3000])  # tiles of scores; bounds from 8-bit products
def test_counts_of_a_factorised_model(n: int) -> None:
    rng = np.random.default_rng(n)
    graph = kgtrec.Graph.from_arrays(
        rng.integers(0, (n, 3, n), (400, 3)), None, rng.integers(0, (n, 3, n), (150, 3)), n, 3
    )
    questions = graph.questions()
    entities = rng.standard_normal((n, 32)).astype(np.float32)
    entities[n // 2 :] = entities[: n - n // 2] * np.float32(1 + RTOL / 2)
    queries = rng.standard_normal((len(questions), 32)).astype(np.float32)
    factors, close = kgtrec.Factors(queries, entities), {"atol": ATOL, "rtol": RTOL}
    scores = np.concatenate([factors.scores(i, i + 1) for i in range(len(questions))])
    exact = kgtrec.rank(factors, questions)[0]
    whole = kgtrec.rank(factors, questions, 5, **close)
    assert (whole[0].equal > exact.equal).mean() > 0.5
    assert_due(whole, expected_of(scores, questions, 5, None, functools.partial(ties, **close)))
    parts = in_ranges(
        lambda a, b: kgtrec.Factors(queries, entities[a:b]), questions, [9, 30], n, **close
    )
    assert_same(parts, whole)


@pytest.mark.parametrize("tolerance", [{"atol": 0.5}, {"rtol": 0.25}])
def test_either_part_alone_is_a_tolerance(tolerance: dict[str, float]) -> None:
    graph = kgtrec.Graph.from_arrays(test=[(0, 0, 1)], n_entities=4, n_relations=1)
    scores = np.array([[3.0, 2.0, 2.5, 0.0]])
    (ranks, _) = kgtrec.rank(scores, graph.questions(sides="tail"), **tolerance)
    assert (ranks.greater.tolist(), ranks.equal.tolist()) == ([1], [1])


def test_a_tolerance_is_named_and_not_comparable(tmp_path: Path) -> None:
    questions = graph_of(31, 1).questions()
    scores = np.random.default_rng(1).integers(0, 9, (len(questions), 31)) / np.float32(1e5)
    tolerant = kgtrec.evaluate(scores, questions, atol=ATOL, rtol=RTOL)
    exact = kgtrec.evaluate(scores, questions)
    text = " ".join(str(tolerant).split())
    assert "within 1e-05 + 0.0001 |score| of the answer's as ties" in text
    assert "tolerant side" in text
    assert "tolerant" not in str(exact)
    (reason,) = kgtrec.comparable(tolerant, exact).reasons
    assert reason == "ties: within 1e-05 + 0.0001 |score| against equal scores"
    tolerant.ranks.save(tmp_path / "t.parquet")
    assert kgtrec.comparable(kgtrec.Ranks.load(tmp_path / "t.parquet"), tolerant)
    half = np.arange(len(exact.ranks)) < 5
    parts = exact.ranks.subset(half), tolerant.ranks.subset(~half)
    with pytest.raises(UsageError, match="tie tolerance"):
        kgtrec.Ranks.concat(parts)


def test_shards_of_another_tolerance_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("a\tr\tb\nb\tr\ta\n")
    np.save(tmp_path / "scores.npy", np.eye(4, 2, dtype=np.float32))
    source = ["rank", "--graph", str(tmp_path), "--scores", str(tmp_path / "scores.npy"), "-q"]

    def run(*words: str) -> Any:
        folder = ["-o", str(tmp_path / "shards"), "--shard", "2/3"]
        return CliRunner().invoke(cli, [*source, *folder, *words]).exception

    assert run("--atol", "1e-5") is None
    assert "another ranking (tie tolerance [1e-05, 0.0] and [0.0, 0.0]" in str(run())
    assert "--atol inf" in str(run("--atol", "inf"))
