"""Factorised models ranked by bounds from 8-bit codes: always the bits of tiles of scores."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_paths import BOUNDED, BY_SCORES
from slow import slow_after, slow_but

import kgtrec
from kgtrec import _core
from kgtrec.ranking import kernel
from kgtrec.ranking.kernel import last_shares

N, ROWS, DIM = 1300, 150, 101
COUNTS = [
    f"{prefix}{name}" for prefix in ("", "macro_") for name in ("greater", "equal", "tied_ahead")
]
# Products cost much more than scores, so bounds pay only if vectors separate answers.
DEAR = [("avx512vnni", "dot"), ("avx2madd", "dot"), ("avx2madd", "l2")]
# One of the metrics whose sums are products.
SUMS = [(path, metric) for path, metric in BOUNDED if metric != "l2"]
METRICS = ("dot", "l2", "l1")
DTYPES = [np.float32, np.float64]
Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def best_path_afterwards():
    yield
    _core.force_path(None)


@pytest.fixture(scope="module")
def questions() -> kgtrec.Questions:
    """Questions with one to many answers, and known entities in every block."""
    rng = np.random.default_rng(5)
    heads = np.repeat(np.arange(ROWS), rng.choice([1, 1, 2, 9], ROWS))
    test = np.column_stack([heads, np.zeros_like(heads), rng.integers(0, N, len(heads))])
    known = np.column_stack(
        [rng.integers(0, ROWS, 4000), np.zeros(4000, int), rng.integers(0, N, 4000)]
    )
    graph = kgtrec.Graph.from_arrays(known, None, np.unique(test, axis=0), n_entities=N)
    return graph.questions("test", sides="tail")


def questions_with(answers: Array) -> kgtrec.Questions:
    """One question per answer; five of the triples are known."""
    test = np.column_stack([np.arange(ROWS), np.zeros(ROWS, int), answers])
    return kgtrec.Graph.from_arrays(test[:5], None, test, n_entities=N).questions(sides="tail")


def tables(kind: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Queries and entities."""
    queries, entities = rng.standard_normal((ROWS, DIM)), rng.standard_normal((N, DIM))
    if kind == "near answers":
        queries = entities[rng.integers(0, N, ROWS)] + 0.3 * queries
    elif kind == "heavy tails":
        queries, entities = rng.standard_cauchy((ROWS, DIM)), rng.standard_cauchy((N, DIM))
    elif kind == "groups":
        entities = entities[rng.integers(0, 25, N)]
    elif kind == "all equal":
        entities[:] = entities[0]
    elif kind == "integers":
        queries, entities = rng.integers(-2, 3, (ROWS, DIM)), rng.integers(-2, 3, (N, DIM))
    elif kind == "one block equal":
        entities[600:1100] = entities[600]
    elif kind == "tiny and huge":
        queries[::3] *= 1e-30
        queries[1::7] *= 1e9
        entities[700:710] *= 1e30
        entities[3] = queries[4] = 0
    elif kind == "infinite":
        entities[1200, 0] = np.inf
        queries[7] = 3e38
    elif kind == "outliers":
        entities[:, 0] *= 100
        entities[::50] *= 1000
    elif kind == "beyond float32":  # equal, zero or infinite after rounding to it, and half numbers
        entities[:400] = entities[0] * (1 + 1e-12 * rng.integers(0, 9, (400, 1)))
        queries[::9] = entities[0]
        entities[500:510] *= 1e-60
        entities[1280:] *= 1e-42
        queries[5] *= 1e-200
        queries[6, :-1] *= 1e-41
    elif kind == "errors that add up":
        # Codes round all values of a vector to one side, for entities and every other query: errors
        # are as large as they can be. Those of random vectors are far below their bounds.
        entities = rng.integers(10, 50, (N, DIM)) + rng.choice([-0.4, 0.4], (N, 1))
        queries = np.ones((ROWS, DIM))
        queries[::2] += 2.4
        queries[::2, 0] = entities[:, 0] = 127
    elif kind == "nothing but bias":
        queries[:] = entities[:] = 0
    return queries, entities


WIDE = (
    "near answers",
    "integers",
    "tiny and huge",
    "infinite",
    "beyond float32",
    "nothing but bias",
)
KINDS = (
    *WIDE,
    "normal",
    "heavy tails",
    "groups",
    "all equal",
    "one block equal",
    "outliers",
    "errors that add up",
)
CASES = [*((kind, np.float32) for kind in KINDS), *((kind, np.float64) for kind in WIDE)]
# Nearly all decided by bounds; ties; bounds that decide nothing; bounds that are reached; numbers
# that float32 cannot hold.
QUICK = [
    *((kind, np.float32) for kind in ("near answers", "one block equal", "tiny and huge")),
    ("infinite", np.float32),
    ("errors that add up", np.float32),
    ("beyond float32", np.float64),
]


def paths_of(metric: str) -> list[str]:
    """Kernel paths that rank models of a metric by bounds."""
    return [path for path, own in BOUNDED if own == metric]


def ranked(path: str, factors, questions, depth: int, threads: int = 1, nan: str = "worst"):
    _core.force_path(path)
    return kgtrec.rank(factors, questions, depth, threads, nan=nan, progress=False)


def assert_same(got, expected) -> None:
    path = _core.active_path()
    for name in COUNTS:
        due = getattr(expected[0], name)
        np.testing.assert_array_equal(getattr(got[0], name), due, f"{name}, {path}")
    for name in ("offsets", "documents", "scores"):
        due = getattr(expected[1], name)
        np.testing.assert_array_equal(getattr(got[1], name), due, f"{name}, {path}")


@pytest.fixture(scope="module")
def by_scores(questions):
    """(kind, metric, dtype) -> factors, number of best, and the results from scores alone."""

    @cache
    def cases(kind, metric: str, dtype: type):
        rng = np.random.default_rng(11)
        with np.errstate(over="ignore", under="ignore"):
            queries, entities = (np.asarray(table, dtype) for table in tables(kind, rng))
            halves = entities.astype(np.float16)
        bias = rng.standard_normal(N).astype(dtype)
        if kind == "nothing but bias":
            bias *= dtype(1e-43)  # less than float32 can distinguish
        kept = ((0, None, entities), (20, bias, entities), (150, None, halves))
        models = [(depth, kgtrec.Factors(queries, table, b, metric)) for depth, b, table in kept]
        return [(depth, one, ranked(BY_SCORES, one, questions, depth)) for depth, one in models]

    return cases


@pytest.mark.parametrize(("kind", "dtype"), slow_but(QUICK, CASES))
@pytest.mark.parametrize(("path", "metric"), BOUNDED)
def test_counts_and_best_are_those_of_scores(questions, by_scores, path, kind, metric, dtype):
    for depth, factors, expected in by_scores(kind, metric, dtype):
        assert_same(ranked(path, factors, questions, depth), expected)
        if depth == 20 and kind == "near answers":
            assert_same(ranked(path, factors, questions, depth, threads=2), expected)


@pytest.mark.parametrize("n_candidates", slow_after(1, [700, 1250]))  # in one block, in two
@pytest.mark.parametrize("depth", [0, 20])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", ["dot", "l1"])
def test_restricted_candidates(metric, depth, n_candidates, dtype):
    """One list for all, because rows with separate lists are too few for bounds."""
    rng = np.random.default_rng(12)
    candidates = np.sort(rng.choice(N, n_candidates, replace=False))
    rows = np.arange(ROWS)
    test = np.column_stack([rows, np.zeros(ROWS, int), rng.choice(candidates, ROWS)])
    known = np.column_stack(
        [np.repeat(rows, 40), np.zeros(40 * ROWS, int), rng.integers(0, N, 40 * ROWS)]
    )
    graph = kgtrec.Graph.from_arrays(known, None, test, n_entities=N)
    questions = graph.questions("test", sides="tail").restrict(entities=candidates)
    queries, entities = (np.asarray(table, dtype) for table in tables("normal", rng))
    factors = kgtrec.Factors(queries, entities, metric=metric)
    expected = ranked(BY_SCORES, factors, questions, depth)
    for path in paths_of(metric):
        assert_same(ranked(path, factors, questions, depth), expected)
        assert last_shares()[0] < 1 or (path, metric) in DEAR, path
    queries[:] = entities[test[:, 2]]  # bounds decide nearly all
    factors = kgtrec.Factors(queries, entities, metric=metric)
    expected = ranked(BY_SCORES, factors, questions, depth)
    for path in paths_of(metric):
        assert_same(ranked(path, factors, questions, depth), expected)
        # Bounds decide less if the best of so few are kept.
        assert last_shares()[0] < (1 if depth > 0 and (path, metric) in DEAR else 0.9), path


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("path", "metric"), SUMS)
def test_ranges_of_entities(questions, path, metric, dtype):
    rng = np.random.default_rng(13)
    queries, entities = (np.asarray(table, dtype) for table in tables("near answers", rng))
    expected = ranked(BY_SCORES, kgtrec.Factors(queries, entities, metric=metric), questions, 20)
    _core.force_path(path)
    spans = [(0, 530), (530, 600), (600, N)]
    answers = kgtrec.AnswerScores(questions)
    for low, high in spans:
        answers.fill(kgtrec.Factors(queries, entities[low:high], metric=metric), low)
    parts = [
        kgtrec.rank_range(
            kgtrec.Factors(queries, entities[low:high], metric=metric), answers, low, 20
        )
        for low, high in spans
    ]
    assert_same(kgtrec.merge_ranges(parts, answers), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("path", "metric"), SUMS)
def test_few_scores_are_computed_near_answers(path, metric, dtype):
    rng = np.random.default_rng(17)
    queries, entities = (np.asarray(table, dtype) for table in tables("normal", rng))
    answers = rng.integers(0, N, ROWS)
    questions = questions_with(answers)
    factors = kgtrec.Factors(entities[answers] + 3 * queries, entities, metric=metric)
    ranks, _ = ranked(path, factors, questions, 0)
    computed, refined = last_shares()
    assert computed < 0.01
    assert 0 < refined < 0.1
    assert ranks.manifest["scores"]["kernel_path"] == path
    assert "% decided by 16 bits" in kgtrec.show_config()
    ranked(BY_SCORES, factors, questions, 0)
    assert last_shares() == (1, 0)


@pytest.mark.parametrize("metric", METRICS)
def test_wrong_guesses_are_made_good(metric):
    """The first bound of the best is a guess, which is wrong for one row in a few hundred."""
    rng, n_rows, n, dim = np.random.default_rng(16), 1500, 640, 32
    row = np.arange(n_rows)
    test = np.column_stack([row % n, row // n, rng.integers(0, n, n_rows)])
    graph = kgtrec.Graph.from_arrays(test[:5], None, test, n_entities=n)
    questions = graph.questions("test", sides="tail")
    queries = rng.standard_normal((len(questions), dim), dtype=np.float32)
    entities = rng.standard_normal((n, dim), dtype=np.float32)
    for dtype in DTYPES:
        factors = kgtrec.Factors(queries.astype(dtype), entities.astype(dtype), metric=metric)
        expected = ranked(BY_SCORES, factors, questions, 20)
        for path in paths_of(metric):
            assert_same(ranked(path, factors, questions, 20), expected)


@pytest.mark.parametrize("metric", METRICS)
def test_float64_against_integers(metric):
    """Scores are exact in float64, but in float32 not even the vectors are."""
    rng = np.random.default_rng(18)
    large = rng.integers(-(1 << 25), 1 << 25, (N + ROWS, 3))
    table = np.column_stack([large, rng.integers(-(1 << 10), 1 << 10, (N + ROWS, DIM - 3))])
    queries, entities = table[:ROWS], table[ROWS:]
    entities[:500] = entities[0]
    entities[:500, 0] += rng.integers(0, 5, 500)
    answers = rng.integers(0, 1000, ROWS)
    queries[::2] = entities[answers[::2]]
    bias = rng.integers(-9, 9, N)
    questions = questions_with(answers)
    factors = kgtrec.Factors(
        queries.astype(float), entities.astype(float), bias.astype(float), metric
    )
    score = {
        "dot": lambda query: entities @ query,
        "l2": lambda query: -((entities - query) ** 2).sum(axis=1),
        "l1": lambda query: -np.abs(entities - query).sum(axis=1),
    }[metric]
    scores = np.stack([score(query) for query in queries]) + bias
    due = scores[np.arange(ROWS), answers][:, None]
    best = np.sort(scores, axis=1)[:, :-21:-1]
    for path in ("scalar", *sorted({path for path, _ in BOUNDED})):
        ranks, run = ranked(path, factors, questions, 20)
        np.testing.assert_array_equal(ranks.greater, (scores > due).sum(axis=1), path)
        np.testing.assert_array_equal(ranks.equal, (scores == due).sum(axis=1) - 1, path)
        np.testing.assert_array_equal(run.scores.reshape(ROWS, 20), best, path)


# Two or three blocks; 350 rows give seven threads enough each.
MANY, MANY_ROWS, FEW_DIM = 4300, 350, 40
MODELS = ["float32", "float64", "float16", "bias", "no number"]


@pytest.fixture
def made(monkeypatch) -> list[_core.Codes]:
    """Collects all codes made from now on."""
    codes, make = [], _core.Codes

    def noted(*args: Any, **settings: Any) -> _core.Codes:
        codes.append(make(*args, **settings))
        return codes[-1]

    monkeypatch.setattr(_core, "Codes", noted)
    return codes


@cache
def many_questions() -> kgtrec.Questions:
    rng = np.random.default_rng(1)
    row = np.arange(MANY_ROWS)
    test = np.column_stack([row, np.zeros(MANY_ROWS, int), rng.integers(0, MANY, MANY_ROWS)])
    known = np.column_stack(
        [rng.integers(0, MANY_ROWS, 9000), np.zeros(9000, int), rng.integers(0, MANY, 9000)]
    )
    labels = [f"{entity:04}" for entity in range(MANY)]  # in the order of ids
    graph = kgtrec.Graph.from_arrays(known, None, test, entities=labels)
    return graph.questions("test", sides="tail")


@cache
def model(name: str, metric: str) -> kgtrec.Factors:
    """Queries near their answers, so that bounds decide nearly all."""
    rng = np.random.default_rng(2)
    dtype = {"float64": np.float64, "float16": np.float16}.get(name, np.float32)
    entities = (rng.standard_normal((MANY, FEW_DIM)) * np.linspace(0.5, 2, MANY)[:, None]).astype(
        dtype
    )
    entities[1::40] = entities[::40][: len(entities[1::40])]
    answers = many_questions().answers.ids[many_questions().answers.offsets[:-1]]
    queries = entities[answers] + rng.standard_normal((MANY_ROWS, FEW_DIM)) / 4
    if name == "no number":
        entities[3000, 7] = np.nan
    bias = rng.standard_normal(MANY).astype(dtype) if name == "bias" else None
    return kgtrec.Factors(queries.astype(np.result_type(dtype, np.float32)), entities, bias, metric)


@cache
def by_scores_alone(name: str, metric: str, depth: int) -> Any:
    """From scores alone."""
    return ranked(BY_SCORES, model(name, metric), many_questions(), depth, 1)


def n_blocks(path: str, metric: str) -> int:
    """Blocks are wider if their products are compared while they are computed."""
    return 2 if path in ("avx512vnni", "scalar8") and metric != "l1" else 3


@pytest.mark.parametrize("name", slow_after(1, MODELS))
@pytest.mark.parametrize(("path", "metric"), BOUNDED)
def test_shared_and_not(path, metric, name, made, monkeypatch):
    for depth in (0, 20):
        for threads in (2, 7) if depth else (7,):
            results = ranked(path, model(name, metric), many_questions(), depth, threads)
            assert made.pop().n_parts == n_blocks(path, metric) + (depth > 0)
            shares = last_shares()
            assert shares[0] < 0.6
            assert_same(results, by_scores_alone(name, metric, depth))
        with monkeypatch.context() as context:
            context.setattr(kernel, "_CODES_BYTES", 1000)
            results = ranked(path, model(name, metric), many_questions(), depth, 7)
        assert made.pop().n_parts == 0
        assert last_shares()[0] < 0.6
        assert metric == "l1" or last_shares() == shares  # L1: each call has its own steps
        assert_same(results, by_scores_alone(name, metric, depth))


@pytest.mark.parametrize("threads", [1, 8, 20])
@pytest.mark.parametrize(("path", "metric"), BOUNDED[:1] + BOUNDED[-1:])
def test_calls_of_few_rows(path, metric, threads, made):
    results = ranked(path, model("float32", metric), many_questions(), 20, threads)
    assert [codes.n_parts for codes in made] == {1: [], 8: [0], 20: [0]}[threads]
    assert_same(results, by_scores_alone("float32", metric, 20))


@pytest.mark.parametrize(("path", "metric"), BOUNDED[:1])
def test_mapped_tables_are_streamed(path, metric, made, tmp_path):
    table = model("float32", metric)
    np.save(tmp_path / "entities.npy", table.entities)
    mapped = np.load(tmp_path / "entities.npy", mmap_mode="r")
    results = ranked(
        path, kgtrec.Factors(table.queries, mapped, metric=metric), many_questions(), 20, 2
    )
    assert made == []
    assert last_shares()[0] < 0.6
    assert_same(results, by_scores_alone("float32", metric, 20))
