"""Entities quantised once for all calls of a ranking, or again by each: same results."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_paths import BOUNDED, BY_SCORES
from slow import slow_after

import kgtrec
from kgtrec import _core
from kgtrec.ranking import kernel
from kgtrec.ranking.kernel import last_shares

N, ROWS, DIM = 4300, 350, 40  # two or three blocks; 350 rows give seven threads enough each
COUNTS = ("greater", "equal", "tied_ahead", "macro_greater", "macro_equal", "macro_tied_ahead")
MODELS = ["float32", "float64", "float16", "bias", "no number"]
Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def best_path_afterwards() -> Iterator[None]:
    yield
    _core.force_path(None)


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
def questions() -> kgtrec.Questions:
    rng = np.random.default_rng(1)
    row = np.arange(ROWS)
    test = np.column_stack([row, np.zeros(ROWS, int), rng.integers(0, N, ROWS)])
    known = np.column_stack(
        [rng.integers(0, ROWS, 9000), np.zeros(9000, int), rng.integers(0, N, 9000)]
    )
    graph = kgtrec.Graph.from_arrays(known, None, test, n_entities=N)
    return graph.questions("test", sides="tail")


@cache
def model(name: str, metric: str) -> kgtrec.Factors:
    """Queries near their answers, so that bounds decide nearly all."""
    rng = np.random.default_rng(2)
    dtype = {"float64": np.float64, "float16": np.float16}.get(name, np.float32)
    entities = (rng.standard_normal((N, DIM)) * np.linspace(0.5, 2, N)[:, None]).astype(dtype)
    entities[1::40] = entities[::40][: len(entities[1::40])]
    answers = questions().answers.ids[questions().answers.offsets[:-1]]
    queries = entities[answers] + rng.standard_normal((ROWS, DIM)) / 4
    if name == "no number":
        entities[3000, 7] = np.nan
    bias = rng.standard_normal(N).astype(dtype) if name == "bias" else None
    return kgtrec.Factors(queries.astype(np.result_type(dtype, np.float32)), entities, bias, metric)


def ranked(path: str, factors: kgtrec.Factors, depth: int, threads: int) -> Any:
    _core.force_path(path)
    return kgtrec.rank(factors, questions(), depth, threads, nan="worst", progress=False)


@cache
def expected(name: str, metric: str, depth: int) -> Any:
    """From scores alone."""
    return ranked(BY_SCORES, model(name, metric), depth, 1)


def n_blocks(path: str, metric: str) -> int:
    """Blocks are wider if their products are compared while they are computed."""
    return 2 if path in ("avx512vnni", "scalar8") and metric != "l1" else 3


def assert_expected(results: Any, name: str, metric: str, depth: int) -> None:
    due = expected(name, metric, depth)
    for column in COUNTS:
        np.testing.assert_array_equal(getattr(results[0], column), getattr(due[0], column), column)
    for column in ("offsets", "documents", "scores"):
        np.testing.assert_array_equal(getattr(results[1], column), getattr(due[1], column), column)


@pytest.mark.parametrize("name", slow_after(1, MODELS))
@pytest.mark.parametrize(("path", "metric"), BOUNDED)
def test_shared_and_not(path, metric, name, made, monkeypatch):
    for depth in (0, 20):
        for threads in (2, 7) if depth else (7,):
            results = ranked(path, model(name, metric), depth, threads)
            assert made.pop().n_parts == n_blocks(path, metric) + (depth > 0)
            shares = last_shares()
            assert shares[0] < 0.6
            assert_expected(results, name, metric, depth)
        with monkeypatch.context() as context:
            context.setattr(kernel, "_CODES_BYTES", 1000)
            results = ranked(path, model(name, metric), depth, 7)
        assert made.pop().n_parts == 0
        assert last_shares()[0] < 0.6
        assert metric == "l1" or last_shares() == shares  # L1: each call has its own steps
        assert_expected(results, name, metric, depth)


@pytest.mark.parametrize("threads", [1, 8, 20])
@pytest.mark.parametrize(("path", "metric"), BOUNDED[:1] + BOUNDED[-1:])
def test_calls_of_few_rows(path, metric, threads, made):
    results = ranked(path, model("float32", metric), 20, threads)
    assert [codes.n_parts for codes in made] == {1: [], 8: [0], 20: [0]}[threads]
    assert_expected(results, "float32", metric, 20)


@pytest.mark.parametrize(("path", "metric"), BOUNDED[:1])
def test_mapped_tables_are_streamed(path, metric, made, tmp_path):
    table = model("float32", metric)
    np.save(tmp_path / "entities.npy", table.entities)
    mapped = np.load(tmp_path / "entities.npy", mmap_mode="r")
    results = ranked(path, kgtrec.Factors(table.queries, mapped, metric=metric), 20, 2)
    assert made == []
    assert last_shares()[0] < 0.6
    assert_expected(results, "float32", metric, 20)


@pytest.mark.parametrize(("path", "metric"), BOUNDED)
def test_codes_of_another_path_are_left_alone(path, metric, monkeypatch):
    """The path may change between calls."""
    make = _core.Codes

    def by_scalar(*args: Any, **settings: Any) -> _core.Codes:
        _core.force_path("scalar8")
        codes = make(*args, **settings)
        codes.take(0, codes.n_parts)
        _core.force_path(path)
        return codes

    monkeypatch.setattr(_core, "Codes", by_scalar)
    monkeypatch.setattr(kernel, "_even_parts", once_none(kernel._even_parts))
    assert_expected(ranked(path, model("float32", metric), 20, 2), "float32", metric, 20)


def once_none(even_parts: Any) -> Any:
    """Parts unchanged, but no codes: there are few parts."""
    return lambda start, stop, n: [] if stop < 10 else even_parts(start, stop, n)


def test_codes_of_another_model_are_refused(monkeypatch):
    factors, other = model("float32", "dot"), model("bias", "dot")
    _core.force_path(BOUNDED[0][0])
    make = _core.Codes

    def wrong(queries: Array, *table: Any, **settings: Any) -> _core.Codes:
        return make(queries, *other.table, **settings)

    monkeypatch.setattr(_core, "Codes", wrong)
    with pytest.raises(ValueError, match="codes: of another model"):
        kgtrec.rank(factors, questions(), 0, 2, progress=False)


def test_parts_that_there_are():
    _core.force_path(BOUNDED[0][0])
    factors = model("float32", "dot")
    codes = _core.Codes(
        factors.queries, *factors.table, first_entity=0, call_rows=48, depth=0, most_bytes=1 << 30
    )
    n = n_blocks(*BOUNDED[0])
    assert codes.n_parts == n
    for first, end in ((-1, 1), (2, 1), (0, n + 1)):
        with pytest.raises(ValueError, match="parts out of range"):
            codes.take(first, end)
