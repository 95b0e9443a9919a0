"""Every kernel path on rows of every length, against plain numpy and each other."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_paths import PATHS
from slow import slow_after

import kgtrec
from kgtrec import _core
from kgtrec._internal.csr import Csr
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.rows import QuestionLists, Rows, plan_rows
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import ScoreBlock

LENGTHS = [
    *range(1, 71),
    *(base + step for base in (127, 129, 1023, 1025, 2047, 2049, 4095, 4097) for step in (0, 1)),
    *(129 + 2, 1027, 2051, 4099),
    *(4161, 8257, 16384, 16385, 16451),  # in halves, and in several stretches
]
EDGES = {
    *(*range(1, 10), 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 70, 128, 129),
    *(1027, 2049, 4098, 8257, 16385),
}
"""The lengths that are tried by default."""
DTYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)]
WIDE = DTYPES[:2]  # computing types of factors
OFFSETS = (0, 1, 2, 3)
COUNTS = ("greater", "equal", "tied_ahead")


@pytest.fixture(params=PATHS)
def path(request) -> Iterator[str]:
    """Force one kernel path after the other."""
    _core.force_path(request.param)
    yield request.param
    _core.force_path(None)


@pytest.fixture(autouse=True)
def best_path_afterwards() -> Iterator[None]:
    yield
    _core.force_path(None)


def test_an_unknown_path_is_refused():
    with pytest.raises(ValueError, match="nonesuch"):
        _core.force_path("nonesuch")


def test_the_environment_forces_a_path(tmp_path):
    """KGTREC_ISA is read when the extension is imported."""
    code = "from kgtrec import _core; print(_core.active_path())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KGTREC_ISA": "scalar"},
        cwd=tmp_path,  # not the checkout, whose kgtrec/ may lack the extension
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "scalar"


# -- What is due -------------------------------------------------------------------------------


Expected = tuple[dict[str, np.ndarray], list[list[int]]]


@functools.lru_cache(maxsize=9)
def places_by_name(questions: kgtrec.Questions) -> np.ndarray:
    """The place of every entity's name among all."""
    return np.argsort(np.argsort(np.array(list(questions.graph.entities.docnos))))


def expected_of(
    scores: np.ndarray, questions: kgtrec.Questions, depth: int, lists: Any = None
) -> Expected:
    """Counts of every instance and the best of every question, with masks over whole rows.

    NaN are below everything, and in no list. With lists, each question has its own candidates.
    """
    n, names = scores.shape[1], places_by_name(questions)
    counts: dict[str, list[np.ndarray]] = {}
    best = []
    for question in range(len(questions)):
        answers = questions.answers[question]
        row = np.where(np.isnan(scores[question]), -np.inf, scores[question])
        for prefix, out in (("", questions.known), ("macro_", questions.removed)):
            among = np.ones(n, bool)
            if lists is not None:
                among[:] = False
                among[lists[question]] = True
            among[out[question]] = False
            tied = among & (row == row[answers][:, None])
            due = {
                "greater": (among & (row > row[answers][:, None])).sum(axis=1),
                "equal": tied.sum(axis=1) - among[answers],
                "tied_ahead": (tied & (names > names[answers][:, None])).sum(axis=1),
                "candidates": among.sum() + ~among[answers],
            }
            for name, column in due.items():
                counts.setdefault(prefix + name, []).append(column)
        left = np.flatnonzero(among & ~np.isnan(scores[question]))  # of the macro candidates
        order = np.lexsort((names[left], row[left]))
        best.append(left[order[::-1][:depth]].tolist())
    return {name: np.concatenate(columns) for name, columns in counts.items()}, best


def assert_due(got: tuple[kgtrec.Ranks, kgtrec.Run], due: Expected, *context: object) -> None:
    ranks, run = got
    for name, column in due[0].items():
        assert np.array_equal(getattr(ranks, name), column), (name, *context)
    lists = np.split(np.asarray(run.documents), run.offsets[1:-1])
    assert [part.tolist() for part in lists] == due[1], context


def check(
    questions: kgtrec.Questions, scores: Any, depth: int, lists: Any = None, **options: Any
) -> None:
    """On every path."""
    sign = 1 if options.get("higher_is_better", True) else -1
    due = expected_of(sign * scores, questions, depth, lists)
    for path in PATHS:
        _core.force_path(path)
        got = kgtrec.rank(scores, questions, depth, 1, progress=False, **options)
        assert_due(got, due, path, options)


def shifted(scores: np.ndarray, offset: int) -> np.ndarray:
    """The same scores, exactly at the end of a buffer that starts ``offset`` elements before."""
    buffer = np.full(offset + scores.size, np.nan, scores.dtype)
    view = buffer[offset:].reshape(scores.shape)
    view[...] = scores
    return view


# -- Long and short rows of a few questions ------------------------------------------------------


@functools.cache
def questions_of(n_entities: int, copies: int = 1) -> kgtrec.Questions:
    """Questions with one answer and with many, known entities at both ends of the row; copies have
    three relations each."""
    last = n_entities - 1
    middle = n_entities // 2
    many = np.unique(np.linspace(0, last, 9).astype(np.int64))
    test = [(entity, 0, 0) for entity in many] + [(middle, 1, last), (last, 2, middle)]
    train = [(0, 1, last), (last, 2, 0), (last, 2, last), (middle // 2, 0, 0), (last // 3, 1, last)]
    shifts = np.arange(copies)[:, None, None] * (0, 3, 0)
    splits = {
        name: (rows + shifts).reshape(-1, 3) for name, rows in (("train", train), ("test", test))
    }
    graph = kgtrec.Graph.from_arrays(**splits, n_entities=n_entities, n_relations=3 * copies)
    return graph.questions()


@functools.cache
def tied_case(length: int) -> tuple[np.ndarray, Expected]:
    """Scores that every type holds exactly, and the expected results with the best 7."""
    questions = questions_of(length)
    scores = np.random.default_rng(length).integers(0, 5, (len(questions), length))
    return scores, expected_of(scores, questions, depth=7)


@pytest.mark.parametrize("every_offset", slow_after(1, [False, True]))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_row_lengths_and_alignments(dtype, path, every_offset):
    for length in LENGTHS if every_offset else sorted(EDGES.intersection(LENGTHS)):
        scores, due = tied_case(length)
        for offset in OFFSETS if every_offset else (0, OFFSETS[1 + length % 3]):
            view = shifted(scores.astype(dtype), offset)
            got = kgtrec.rank(view, questions_of(length), run_depth=7, threads=1)
            assert_due(got, due, length, offset)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extreme_values_in_every_lane(dtype, path):
    """Infinities, subnormals, both zeros, all-tied rows: at each place of a vector."""
    for length in (1, 15, 17, 65, 1025):
        for scores, questions, depth, due in extreme_cases(length, dtype):
            for offset in (0, 1):
                got = kgtrec.rank(shifted(scores, offset), questions, run_depth=depth, threads=1)
                assert_due(got, due, length, offset)


@functools.cache
def extreme_cases(
    length: int, dtype: np.dtype
) -> list[tuple[np.ndarray, kgtrec.Questions, int, Expected]]:
    """Scores, questions, number of best, and the expected results: of values anywhere, and of rows
    of one value each."""
    info = np.finfo(dtype)
    values = np.array(
        [np.inf, -np.inf, 0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.max],
        dtype,
    )
    one, all_values = questions_of(length), questions_of(length, len(values))
    mixed = np.random.default_rng(length).choice(values, (len(one), length))
    # Questions come in the order of their relations, which are the values' for three each.
    rows = np.repeat(values[all_values.relation // 3][:, None], length, axis=1)
    cases = [(mixed, one, length), (rows, all_values, 3)]
    return [(*case, expected_of(*case)) for case in cases]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_is_found_in_every_lane(dtype, path):
    for length in (1, 2, 8, 17, 33, 65, 130):
        check_nan_at_every_place(length, dtype)


def check_nan_at_every_place(length: int, dtype: np.dtype) -> None:
    places = sorted({*range(0, length, 13), *range(min(length, 9)), length - 1})
    test = np.array([(0, relation, 0) for relation in range(len(places))])
    graph = kgtrec.Graph.from_arrays(test=test, n_entities=length)
    scores = np.zeros((len(places), length), dtype)
    scores[np.arange(len(places)), places] = np.nan
    one = kgtrec.Graph.from_arrays(test=test[:1], n_entities=length).questions(sides="tail")
    for row, place in zip(scores, places, strict=True):
        with pytest.raises(kgtrec.errors.InputError, match=rf"\b{place}\b"):
            kgtrec.rank(row[None], one)
    questions = graph.questions(sides="tail")
    ranks, run = kgtrec.rank(scores, questions, run_depth=length, nan="worst")
    at_answer = np.array(places) == 0
    assert np.array_equal(ranks.greater, np.where(at_answer, length - 1, 0))
    assert np.array_equal(ranks.equal, np.where(at_answer, 0, length - 2))
    assert set(ranks.candidates.tolist()) == {length}
    documents = np.asarray(run.documents).reshape(len(places), length - 1)
    for place, found in zip(places, documents, strict=True):
        assert sorted(found.tolist()) == [e for e in range(length) if e != place]


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_candidates_are_counted(dtype, rows, path):
    """NaN of known entities do not count, unless they are the row's own answers."""
    for length in (2, 17, 130, 2049, 4500):
        check_counts_of_nan(length, dtype, rows)


def check_counts_of_nan(length: int, dtype: np.dtype, rows: str) -> None:
    questions = questions_of(length)
    question = np.arange(len(questions))
    if rows == "instances":
        question = questions.instance_question[questions.triple_rows]
    first = np.isin(np.arange(len(question)), np.unique(question, return_index=True)[1])
    rng = np.random.default_rng(length)
    for share in (0.002, 0.3, 1.0):
        scores = rng.normal(size=(len(question), length)).astype(dtype)
        scores[rng.random(scores.shape) < share] = np.nan
        due = 0
        for row, scored in enumerate(scores):
            among = np.ones(length, bool)
            out = questions.removed if rows == "questions" or first[row] else questions.known
            among[out[question[row]]] = False
            if rows == "questions" or first[row]:
                among[questions.answers[question[row]]] = True
            else:
                among[questions.answers.ids[questions.triple_rows[row]]] = True
            due += int((among & np.isnan(scored)).sum())
        for block in (scores, np.asfortranarray(scores)):
            ranks, _ = kgtrec.rank(block, questions, nan="worst", rows=rows, threads=1)
            assert ranks.manifest["scores"].get("nan_count", 0) == due


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", [5, 16, 17, 70, 1025])
def test_strided_rows(length, dtype):
    questions = questions_of(length)
    rng = np.random.default_rng(length)
    wide = rng.integers(0, 4, (3 * len(questions), 2 * length + 1)).astype(dtype)
    for view in (
        np.asfortranarray(wide[::3, 1 : length + 1]),
        wide[::3, 1 : length + 1],
        wide[1::3, 1::2],
        wide[::-3, :length],
        wide[::3, length - 1 :: -1][:, :length],
    ):
        check(questions, view, 3)


# -- Many answers, columns, paths --------------------------------------------------------------


@functools.cache
def many_answers(length: int, n_answers: int, labels_in_order: bool) -> kgtrec.Questions:
    """A question with many answers, one with as many known entities, and two with one."""
    rng = np.random.default_rng(n_answers)
    answers = rng.permutation(length)[:n_answers]
    known = rng.permutation(length)[: length // 3]
    test = [(0, 0, e) for e in answers] + [(1, 0, 2), (2, 0, 1)] + [(3, 0, e) for e in answers[:40]]
    graph = kgtrec.Graph.from_arrays(
        test=test,
        train=[(0, 0, e) for e in known] + [(3, 0, e) for e in known[:9]],
        n_entities=length,
        entities=[f"{e:05d}" for e in range(length)] if labels_in_order else None,
    )
    return graph.questions(sides="tail")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("length", "n_answers"), slow_after(2, [(90, 60), (2500, 300), (700, 17), (5000, 1100)])
)
def test_many_answers_a_row(length, n_answers, dtype, path):
    """More answers than are compared one by one: with few ties, many, all tied, both zeros, mostly
    close together, extremely far apart, and subnormal. Also in columns, where long rows are ranked
    in ranges."""
    for in_order in (True, False):
        questions = many_answers(length, n_answers, in_order)
        for scores, due in scores_and_counts(length, n_answers, dtype, in_order):
            for order in "CF":
                got = kgtrec.rank(np.asarray(scores, order=order), questions, threads=1)
                assert_due(got, due, order, in_order)


@pytest.mark.parametrize("decimals", [None, 1, -2])  # apart, tied, all tied
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_is_found_beside_many_answers(dtype, decimals, path):
    questions = many_answers(2500, 300, True)
    real = np.random.default_rng(1).normal(size=(len(questions), 2500))
    scores = (real if decimals is None else real.round(decimals)).astype(dtype)
    outside = np.union1d(questions.known[0], questions.answers[0])
    for place in np.setdiff1d(np.arange(2500), outside)[[0, 700, -1]].tolist():
        spoilt = scores.copy()
        spoilt[0, place] = np.nan
        with pytest.raises(kgtrec.errors.InputError, match=rf"\b{place}\b"):
            kgtrec.rank(spoilt, questions)


@functools.cache
def scores_and_counts(length: int, n_answers: int, dtype: np.dtype, labels_in_order: bool) -> list:
    """Scores of several kinds, and for each the counts of every question's answers."""
    questions = many_answers(length, n_answers, labels_in_order)
    real = np.random.default_rng(length).normal(size=(len(questions), length))
    zeros = np.where(real > 0, 0.0, -0.0)
    infinite = np.where(real > 1, np.inf, np.where(real < -1, -np.inf, real.round(1)))
    info = np.finfo(dtype)
    far = real / np.abs(real).max() * float(info.max)
    subnormal = real * float(info.smallest_subnormal) * 200
    kinds = (real, real.round(1), real.round(0), real * 0, zeros, infinite, real**5, far, subnormal)
    typed = [scores.astype(dtype) for scores in kinds]
    return [(scores, expected_of(scores, questions, 0)) for scores in typed]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_columns_in_memory(dtype, path):
    """Column-major scores are transposed in bands, ranges of entities and both directions."""
    for length in (1, 3, 16, 17, 130, 4097, 9001):
        check_columns(length, dtype)


@functools.cache
def columns_of(length: int, dtype: np.dtype) -> tuple[kgtrec.Questions, list[np.ndarray], dict]:
    """Questions, scores in columns, and the results of scores in rows in both directions."""
    triples = np.array([(e % length, e // length, (7 * e) % length) for e in range(131)])
    graph = kgtrec.Graph.from_arrays(
        test=triples, train=triples[:40] * (1, 1, 0), n_entities=length, n_relations=131
    )
    questions = graph.questions(sides="tail")
    rng = np.random.default_rng(length)
    rows = rng.integers(0, 9, (len(questions), length)).astype(dtype)
    rows[rng.random(rows.shape) < 0.01] = np.nan
    wider = rng.permutation(np.vstack([rows, rows]))
    wider[3 : 3 + len(rows)] = rows
    due = {
        sign: kgtrec.rank(rows, questions, 9, nan="worst", higher_is_better=sign)
        for sign in (True, False)
    }
    views = [
        np.asfortranarray(rows),
        np.asfortranarray(wider)[3 : 3 + len(rows)],
        np.asfortranarray(rows[:, ::-1])[:, ::-1],
    ]
    return questions, views, due


def check_columns(length: int, dtype: np.dtype) -> None:
    questions, views, due = columns_of(length, dtype)
    for view in views if length < 4097 else views[:1]:
        for sign, (ranks, run) in due.items():
            again, run_again = kgtrec.rank(view, questions, 9, nan="worst", higher_is_better=sign)
            for name in ("greater", "equal", "tied_ahead", "macro_greater", "macro_tied_ahead"):
                assert np.array_equal(getattr(again, name), getattr(ranks, name)), name
            assert np.array_equal(run_again.documents, run.documents)
            assert np.array_equal(run_again.scores, run.scores)
            assert again.manifest["scores"]["nan_count"] == ranks.manifest["scores"]["nan_count"]


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("metric", ["dot", "l2", "l1"])
@pytest.mark.parametrize("dim", [0, 1, 17, 100])
def test_factors_on_every_path(dim, metric, dtype):
    """Real numbers: sums need one order, or paths and copies would differ."""
    rng = np.random.default_rng(dim)
    for n_entities in (1, 15, 17, 65, 500):
        questions = questions_of(n_entities)
        entities = rng.normal(size=(n_entities, dim)).astype(dtype)
        entities[n_entities // 2 :] = entities[: n_entities - n_entities // 2]  # exact copies
        queries = rng.normal(size=(len(questions), dim)).astype(dtype)
        bias = np.zeros(n_entities, dtype)
        seen = {}
        for name in PATHS:
            _core.force_path(name)
            source = kgtrec.Factors(queries, entities, bias=bias, metric=metric)
            ranks, run = kgtrec.rank(source, questions, run_depth=n_entities)
            counts = [ranks.greater.tolist(), ranks.equal.tolist(), ranks.macro_greater.tolist()]
            seen[name] = [*counts, np.asarray(run.scores).tobytes()]
            assert_scores_close(run, queries, entities, metric)
        assert all(result == seen["scalar"] for result in seen.values())


def assert_scores_close(run, queries: np.ndarray, entities: np.ndarray, metric: str) -> None:
    """The scores of a run are those of the formula in float64, up to rounding."""
    row = np.repeat(np.arange(len(queries)), np.diff(run.offsets))
    q, x = queries[row].astype(np.float64), entities[run.documents].astype(np.float64)
    due = {"dot": (q * x).sum(1), "l2": -((q - x) ** 2).sum(1), "l1": -np.abs(q - x).sum(1)}[metric]
    size = (np.abs(q) * np.abs(x)).sum(1) + (q * q).sum(1) + (x * x).sum(1)
    size = (np.abs(q) + np.abs(x)).sum(1) if metric == "l1" else size
    assert np.all(np.abs(run.scores - due) <= 8 * np.finfo(queries.dtype).eps * size)


@pytest.mark.parametrize("order", ["of names", "turned", "shuffled"])
def test_ties_in_every_order_of_names(order):
    """The best of rows that tie, rise and fall; ids are in the order of names, or not."""
    rng = np.random.default_rng(4)
    n = 3_000
    place = {"of names": np.arange(n), "turned": np.arange(n)[::-1], "shuffled": rng.permutation(n)}
    graph = kgtrec.Graph.from_arrays(
        test=[(r, 0, 1) for r in range(4)], train=[(0, 0, e) for e in range(900, 1_000)],
        n_entities=n, entities=[f"{p:04d}" for p in place[order]],
    )  # fmt: skip
    steps = np.arange(n) // 7
    scores = np.stack([np.zeros(n), steps, -steps, rng.integers(0, 3, n)])
    for depth, dtype in product((1, 20, 90, 700, n), WIDE):
        check(graph.questions(sides="tail"), scores.astype(dtype), depth)


def of_one_answer(answer: int, known: list[int], n: int) -> kgtrec.Questions:
    """One question; names are in the order of ids."""
    train, names = [(0, 0, entity) for entity in known], [f"{entity:04d}" for entity in range(n)]
    graph = kgtrec.Graph.from_arrays(train=train, test=[(0, 0, answer)], entities=names)
    return graph.questions(sides="tail")


def test_many_ties_with_the_last_of_the_best():
    """Rows in which far more candidates tie with the bound than a run keeps."""
    rng = np.random.default_rng(3)
    questions = of_one_answer(1, [*range(5_000, 5_100)], 6_000)
    for share in (0.0, 0.001, 0.01, 0.5, 1.0):
        scores = np.where(rng.random((1, 6_000)) < share, 2, rng.integers(0, 2, (1, 6_000)))
        for depth, dtype in product((1, 20, 300, 6_000), WIDE):
            check(questions, scores.astype(dtype), depth)


@pytest.mark.parametrize("removed", [[698], [*range(400, 699, 30), 698]], ids=["one", "some"])
def test_the_best_of_many_ties_are_the_last_but_the_removed(removed):
    """Names in the order of ids: only the end of a row of ties is read."""
    for answer, depth in product((5, 699), (60, 100, 289)):
        check(of_one_answer(answer, removed, 700), np.full((1, 700), 0.5, np.float32), depth)


# -- The special code for rows of few candidates -------------------------------------------------

SHORT = (1, 2, 20, 63, 64, 65, 128, 129, 255, 256, 257)
SHORT_ROWS = 12


def short_questions(
    rng: np.random.Generator, n: int, *, in_order: bool, most_answers: int
) -> kgtrec.Questions:
    """One row per question: one or several answers, none known to all of the others."""
    splits: dict[str, list[tuple[int, int, int]]] = {"test": [], "train": [(0, 0, 0)]}
    for row in range(SHORT_ROWS):
        order = rng.permutation(n)
        cut = 1 + int(rng.integers(min(most_answers, n)))
        known = int(rng.integers(n - cut + 1))
        splits["test"] += [(row % n, row // n, int(e)) for e in order[:cut]]
        splits["train"] += [(row % n, row // n, int(e)) for e in order[cut : cut + known]]
    labels = [f"e{i:04d}" if in_order else f"e{i}" for i in range(n)]
    arrays = {name: np.array(triples) for name, triples in splits.items()}
    graph = kgtrec.Graph.from_arrays(**arrays, n_entities=n, entities=labels)
    return graph.questions("test", sides="tail")


@pytest.mark.parametrize("in_order", [True, False])
def test_short_rows(in_order: bool) -> None:
    for n, case in product(SHORT, range(3)):
        rng, (most_answers, depth) = np.random.default_rng(n), ((1, 0), (1, 20), (20, n))[case]
        questions = short_questions(rng, n, in_order=in_order, most_answers=most_answers)
        scores = rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32)
        check(questions, scores, depth)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [64, 65, 100, 256])
def test_the_best_of_distinct_scores(n: int, dtype: str) -> None:
    """If no scores tie, a bound leaves about as many candidates as are listed."""
    rng = np.random.default_rng(n)
    for depth in (1, 3, 6, 20, 70, n):
        questions = short_questions(rng, n, in_order=bool(depth % 2), most_answers=2)
        scores = rng.standard_normal((SHORT_ROWS, n)).astype(dtype)
        scores[6:] = np.exp(5 * scores[6:])  # few are far above the others, with bounds between
        scores[0] = np.sort(scores[0])
        scores[1, : n // 2] = -np.inf
        check(questions, scores, depth)


@pytest.mark.parametrize("n", [40, 150])
def test_short_ranges_of_entities(path: str, n: int) -> None:
    """Short rows whose first entity is not entity 0."""
    rng = np.random.default_rng(n)
    questions = short_questions(rng, 2 * n + 9, in_order=True, most_answers=3)
    scores = rng.integers(-9, 9, (SHORT_ROWS, 2 * n + 9)).astype(np.float32)
    whole, run = kgtrec.rank(scores, questions, 20, 1, progress=False)
    state = {depth: part_of(questions, scores, n, depth) for depth in (0, 20)}

    for part in state.values():
        columns = [getattr(whole, prefix + name) for prefix in ("", "macro_") for name in COUNTS]
        assert np.array_equal(part.counts, np.stack(columns))
    for question in range(SHORT_ROWS):
        best = run.documents[run.offsets[question] : run.offsets[question + 1]]
        inside = best[(best >= 9) & (best < 9 + n)].tolist()
        length = state[20].best_length[question]
        assert state[20].best_ids[question, :length].tolist()[: len(inside)] == inside


def part_of(questions: kgtrec.Questions, scores: Any, n: int, depth: int) -> NativeRanking:
    """All entities in three ranges; the best of the second."""
    state = NativeRanking(QuestionLists.of(questions), plan_rows(questions, "questions"),
                          Settings(depth, threads=1), "float32")  # fmt: skip
    whole = ScoreBlock.of(scores)
    state.answers = state.answer_scores(whole, state.targets_of(0, len(whole)))
    for start, stop in ((9 + n, 2 * n + 9), (0, 9), (9, 9 + n)):
        state.first_entity = start
        state.rank_rows(ScoreBlock.of(scores[:, start:stop].copy()))
    return state


@pytest.mark.parametrize("n", [20, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_of_other_types_directions_and_layouts(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    questions = short_questions(rng, n, in_order=True, most_answers=2)
    scores = rng.choice(np.array([-1.5, -0.0, 0.0, 2, np.inf, -np.inf], dtype), (SHORT_ROWS, n))

    check(questions, scores, 20)
    check(questions, scores, 20, higher_is_better=False)
    check(questions, np.asfortranarray(scores), 20)
    check(questions, scores[:, ::-1], 20)
    check(questions, np.repeat(scores, 2, axis=1)[:, ::2], 20)


@pytest.mark.parametrize("n", [20, 64, 65, 200])
def test_nan_of_some_rows_is_the_worst(n: int) -> None:
    """Such rows take the slow way; their neighbours do not."""
    rng = np.random.default_rng(n)
    questions = short_questions(rng, n, in_order=True, most_answers=2)
    scores = rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32)
    plain, _ = kgtrec.rank(scores, questions, 0, 1, progress=False)
    free = questions.known[1].tolist() + questions.answers[1].tolist()
    others = [e for e in range(n) if e not in free]
    if others:
        scores[1, others[-1]] = np.nan

    check(questions, scores, 20, nan="worst")
    for path in PATHS:
        _core.force_path(path)
        ranks, _ = kgtrec.rank(scores, questions, 0, 1, nan="worst", progress=False)

        assert ranks.manifest["scores"]["nan_count"] == (1 if others else 0), path
        same = ranks.question != 1
        assert np.array_equal(ranks.greater[same], plain.greater[same]), path


@pytest.mark.parametrize("atol", [0.5, 1.0])
def test_tolerance_counts_the_answer_once(path: str, atol: float) -> None:
    """The answer's own score is above the limit of its ties, and only one filter excludes it."""
    for n in (20, 200, 300):
        rng = np.random.default_rng(n)
        questions = short_questions(rng, n, in_order=True, most_answers=1)
        scores = rng.integers(-6, 7, (SHORT_ROWS, n)).astype(np.float32) / 2

        ranks, _ = kgtrec.rank(scores, questions, 0, 1, atol=atol, progress=False)

        for i, question in enumerate(ranks.question.tolist()):
            row, answer = scores[question], int(ranks.answer[i])
            inside = np.ones(n, bool)
            inside[questions.known[question]] = inside[answer] = False
            near = np.abs(row - row[answer]) <= atol
            assert ranks.greater[i] == np.sum(inside & ~near & (row > row[answer]))
            assert ranks.equal[i] == np.sum(inside & near)


def test_candidates_of_their_own() -> None:
    """Sampled evaluation: every question's list, in rows of all entities."""
    rng = np.random.default_rng(5)
    n = 400
    questions = short_questions(rng, n, in_order=True, most_answers=2)
    lists = [
        np.union1d(answers, rng.choice(n, int(rng.integers(2, 90)), replace=False))
        for answers in (questions.answers[question] for question in range(SHORT_ROWS))
    ]
    asked = questions.restrict(candidates=[each.tolist() for each in lists])
    check(asked, rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32), 20, lists)


def csr_of(rows: list[npt.NDArray[Any]]) -> Csr:
    offsets = np.cumsum([0, *map(len, rows)])
    return Csr(offsets, np.concatenate(rows).astype(np.int32))


@pytest.mark.parametrize("n", [64, 200, 300])
def test_filters_that_are_nearly_alike(path: str, n: int) -> None:
    """If they differ in more than the one answer, each is counted separately."""
    rng = np.random.default_rng(n)
    scores = rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32)
    answers = rng.integers(n, size=SHORT_ROWS).astype(np.int32)
    filters: list[list[npt.NDArray[Any]]] = [[], []]
    for answer in answers.tolist():
        others = np.setdiff1d(np.arange(n), [answer])
        chosen = np.sort(rng.choice(others, 21, replace=False))
        removed = np.delete(chosen, rng.integers(21))
        known = np.delete(chosen, rng.integers(21))
        filters[0].append(np.union1d(known, [answer] * int(rng.integers(2))).astype(int))
        filters[1].append(removed)
    known, removed = (csr_of(rows) for rows in filters)
    every = np.arange(SHORT_ROWS)
    rows = Rows(every, np.arange(SHORT_ROWS + 1), answers, np.full(SHORT_ROWS, -1))
    state = NativeRanking(QuestionLists(n, known, removed), rows, Settings(threads=1), "float32")

    state.rank_rows(ScoreBlock.of(scores))

    for row, answer in enumerate(answers.tolist()):
        for kind, outside in enumerate(filters):
            inside = np.ones(n, bool)
            inside[outside[row]] = inside[answer] = False
            plainly = [np.sum(inside & (scores[row] > scores[row, answer]))]
            plainly += [np.sum(inside & (scores[row] == scores[row, answer]))]
            assert state.counts[3 * kind : 3 * kind + 2, row].tolist() == plainly
