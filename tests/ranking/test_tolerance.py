"""Tolerant ties, compared with the definition pair by pair, and with LibKGE's results."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from question_cases import assert_same

import kgtrec
from kgtrec.cli import cli
from kgtrec.ranking.blocks import thresholds
from kgtrec.ranking.settings import Tolerance

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


def test_libkge_numbers_come_out_with_its_defaults() -> None:
    """LibKGE's ranks: greater and not close ones, plus half of the close ones, rounded down."""
    questions = graph_of(31, 3).questions()
    scores = crowded(np.random.default_rng(3), (len(questions), 31), "float32")
    ranks = kgtrec.rank(scores, questions, atol=1e-5, rtol=1e-4)[0]
    theirs = []
    for row in range(len(ranks)):
        question, answer = int(ranks.question[row]), int(ranks.answer[row])
        line, own = scores[question].copy(), scores[question, answer]
        others = [e for e in questions.known[question].tolist() if e != answer]
        line[others] = -np.inf  # LibKGE's filter
        close = np.isclose(line, own, rtol=1e-4, atol=1e-5) & ties(line, own, 1e-5, 1e-4)
        theirs.append(((line > own) & ~close).sum() + close.sum() // 2 + 1)
    ours = ranks.greater + (ranks.equal + 1) // 2 + 1
    np.testing.assert_array_equal(ours, theirs)
    assert np.mean(1 / np.array(theirs)) != pytest.approx(
        kgtrec.Result(kgtrec.rank(scores, questions)[0])["both.realistic.micro.mrr"]
    )


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


def test_the_command_takes_it(tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "test.txt").write_text("a\tr\tb\nb\tr\tc\n")
    np.save(tmp_path / "s.npy", np.array([[0, 0, 1e-6]] * 4, np.float32))
    words = ["rank", "--graph", str(tmp_path / "g"), "--scores", str(tmp_path / "s.npy")]
    done = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "r"), "--atol", "1e-5"])
    assert done.exit_code == 0, done.exception
    assert "tolerant side" in done.output


def awkward(dtype: str, seed: int) -> tuple[Any, np.ndarray]:
    """Questions, and scores: many are close, some infinite."""
    questions = graph_of(31, seed).questions()
    rng = np.random.default_rng(seed)
    scores = crowded(rng, (len(questions), 31), dtype)
    scores[rng.random(scores.shape) < 0.05] = np.inf
    scores[rng.random(scores.shape) < 0.05] = -np.inf
    return questions, scores


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("bounds", [(0, 31), (0, 11, 12, 31), (0, 1, 30, 31)])
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


@pytest.mark.parametrize("by", ["questions", "entities"])
def test_shards_are_those_of_one_process(tmp_path: Path, by: str) -> None:
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

    assert run("rank", *source, *close, "-o", str(tmp_path / "one.parquet")) is None
    for shard in ("1/3", "2/3", "3/3"):
        assert (
            run("rank", *source, *close, "-o", folder, "--shard-by", by, "--shard", shard) is None
        )
    assert run("merge", folder, "-o", str(tmp_path / "merged.parquet"), "--quiet") is None
    merged = (tmp_path / "merged.parquet").read_bytes()
    assert merged == (tmp_path / "one.parquet").read_bytes()
    other = run("rank", *source, "-o", folder, "--shard-by", by, "--shard", "2/3")
    assert "another ranking (other --atol or --rtol" in str(other)
    endless = run("rank", *source, "-o", folder, "--atol", "inf", "--shard", "2/3")
    assert "atol=inf" in str(endless)
