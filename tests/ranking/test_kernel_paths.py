"""Every kernel path on rows of every length, against plain numpy and each other."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_paths import PATHS
from question_cases import FACTOR_METRICS, assert_due, expected_of, factor_dims
from slow import slow_after
from strategies import LAYOUTS, laid_out

import kgtrec
from kgtrec import _core

LENGTHS = [
    *range(1, 71),
    *(base + step for base in (127, 129, 1023, 1025, 2047, 2049, 4095, 4097) for step in (0, 1)),
    *(129 + 2, 1027, 2051, 4099),
    *(4161, 8257, 16384, 16385, 16451),  # in halves, and in several stretches
]
EDGES = [
    *(*range(1, 10), 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 70, 128, 129),
    *(1027, 2049, 4098, 8257, 16385),
]
"""The lengths that are tried by default."""
DTYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)]
WIDE = DTYPES[:2]  # computing types of factors


@pytest.fixture(autouse=True)
def best_path_afterwards() -> Iterator[None]:
    yield
    _core.force_path(None)


def forced() -> Iterator[str]:
    """Force one kernel path after the other."""
    for path in PATHS:
        _core.force_path(path)
        yield path


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


def check(
    questions: kgtrec.Questions,
    scores: np.ndarray,
    depth: int,
    views: Sequence[np.ndarray] = (),
    lists: Any = None,
    **options: Any,
) -> None:
    """Each view of the scores, on every path."""
    sign = 1 if options.get("higher_is_better", True) else -1
    atol = options.get("atol")
    tied = atol and (lambda row, own: np.abs(row - own) <= atol)
    due = expected_of(sign * scores, questions, depth, lists, tied)
    for path in forced():
        for number, view in enumerate(views or [scores]):
            got = kgtrec.rank(view, questions, depth, 1, progress=False, **options)
            assert_due(got, due, path, number, options)


def of_all_types(scores: np.ndarray) -> list[np.ndarray]:
    return [scores.astype(dtype) for dtype in DTYPES]


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


@pytest.mark.parametrize("every_offset", slow_after(1, [False, True]))
def test_row_lengths_and_alignments(every_offset):
    for length in LENGTHS if every_offset else EDGES:
        questions = questions_of(length)
        scores = np.random.default_rng(length).integers(0, 5, (len(questions), length))
        offsets = range(4) if every_offset else (0, 1 + length % 3)
        typed = product(of_all_types(scores), offsets)
        check(questions, scores, 7, [shifted(values, offset) for values, offset in typed])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extreme_values_in_every_lane(dtype):
    """Infinities, subnormals, both zeros: at each place of a vector, and as rows of one value."""
    info = np.finfo(dtype)
    values = np.array(
        [np.inf, -np.inf, 0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.max],
        dtype,
    )
    for length in (1, 15, 17, 65, 1025):
        one, all_values = questions_of(length), questions_of(length, len(values))
        mixed = np.random.default_rng(length).choice(values, (len(one), length))
        check(one, mixed, length, [mixed, shifted(mixed, 1)])
        # Questions come in the order of their relations, which are the values' for three each.
        rows = np.repeat(values[all_values.relation // 3][:, None], length, axis=1)
        check(all_values, rows, 3, [rows, shifted(rows, 1)])


def test_nan_is_found_in_every_lane():
    for length in (1, 2, 8, 17, 33, 65, 130):
        places = sorted({*range(0, length, 13), *range(min(length, 9)), length - 1})
        test = [(0, relation, 0) for relation in range(len(places))]
        questions, one = (
            kgtrec.Graph.from_arrays(test=rows, n_entities=length).questions(sides="tail")
            for rows in (test, test[:1])
        )
        scores = np.zeros((len(places), length))
        scores[np.arange(len(places)), places] = np.nan
        typed = of_all_types(scores)
        check(questions, scores, length, typed, nan="worst")
        for _, values in product(forced(), typed):
            for row, place in zip(values, places, strict=True):
                with pytest.raises(kgtrec.errors.InputError, match=rf"\b{place}\b"):
                    kgtrec.rank(row[None], one)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_candidates_are_counted(dtype):
    """NaN of known entities do not count, unless they are the row's own answers."""
    for length, share in product((2, 17, 130, 2049, 4500), (0.002, 0.3, 1.0)):
        questions, rng = questions_of(length), np.random.default_rng(length)
        scores = rng.normal(size=(len(questions), length)).astype(dtype)
        scores[rng.random(scores.shape) < share] = np.nan
        check(questions, scores, 0, [scores, np.asfortranarray(scores)], nan="worst")


@pytest.mark.parametrize("length", [5, 16, 17, 70, 1025])
def test_every_memory_layout(length):
    questions = questions_of(length)
    scores = np.random.default_rng(length).integers(0, 4, (len(questions), length))
    typed = product(of_all_types(scores), LAYOUTS)
    check(questions, scores, 3, [laid_out(values, layout) for values, layout in typed])


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
def test_many_answers_a_row(length, n_answers, dtype):
    """More answers than are compared one by one: with few ties, many, all tied, both zeros, mostly
    close together, extremely far apart, and subnormal. Also in columns, where long rows are ranked
    in ranges."""
    real = np.random.default_rng(length).normal(size=(4, length))
    zeros = np.where(real > 0, 0.0, -0.0)
    infinite = np.where(real > 1, np.inf, np.where(real < -1, -np.inf, real.round(1)))
    info = np.finfo(dtype)
    far = real / np.abs(real).max() * float(info.max)
    subnormal = real * float(info.smallest_subnormal) * 200
    kinds = (real, real.round(1), real.round(0), real * 0, zeros, infinite, real**5, far, subnormal)
    for kind, in_order in product(kinds, (True, False)):
        scores = kind.astype(dtype)
        questions = many_answers(length, n_answers, in_order)
        check(questions, scores, 0, [scores, np.asfortranarray(scores)])


@pytest.mark.parametrize("decimals", [None, 1, -2])  # apart, tied, all tied
def test_nan_is_found_beside_many_answers(decimals):
    questions = many_answers(2500, 300, True)
    real = np.random.default_rng(1).normal(size=(len(questions), 2500))
    scores = real if decimals is None else real.round(decimals)
    outside = np.union1d(questions.known[0], questions.answers[0])
    places = np.setdiff1d(np.arange(2500), outside)[[0, 700, -1]].tolist()
    for _, spoilt, place in product(forced(), of_all_types(scores), places):
        before, spoilt[0, place] = spoilt[0, place], np.nan
        with pytest.raises(kgtrec.errors.InputError, match=rf"\b{place}\b"):
            kgtrec.rank(spoilt, questions)
        spoilt[0, place] = before


@pytest.mark.parametrize("length", [1, 3, 16, 17, 130, 4097, 9001])
def test_columns_in_memory(length):
    """Column-major scores are transposed in bands, ranges of entities and both directions."""
    triples = np.array([(e % length, e // length, (7 * e) % length) for e in range(131)])
    graph = kgtrec.Graph.from_arrays(
        test=triples, train=triples[:40] * (1, 1, 0), n_entities=length, n_relations=131
    )
    questions, rng = graph.questions(sides="tail"), np.random.default_rng(length)
    scores = rng.integers(0, 9, (len(questions), length)).astype(np.float64)
    scores[rng.random(scores.shape) < 0.01] = np.nan
    views = []
    for rows in of_all_types(scores):
        views.append(np.asfortranarray(rows))
        if length < 4097:
            wider = np.asfortranarray(np.vstack([rows[:3] + 1, rows, rows + 1]))
            views += [wider[3 : 3 + len(rows)], np.asfortranarray(rows[:, ::-1])[:, ::-1]]
    for sign in (True, False):
        check(questions, scores, 9, views, nan="worst", higher_is_better=sign)


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("metric", FACTOR_METRICS)
@pytest.mark.parametrize("dim", [0, 1, 17, 100])
def test_factors_on_every_path(dim, metric, dtype):
    """Real numbers: sums need one order, or paths and copies would differ."""
    of_query, of_entity = factor_dims(metric, dim)
    rng = np.random.default_rng(dim)
    for n_entities in (1, 15, 17, 65, 500):
        questions = questions_of(n_entities)
        entities = rng.normal(size=(n_entities, of_entity)).astype(dtype)
        entities[n_entities // 2 :] = entities[: n_entities - n_entities // 2]  # exact copies
        queries = rng.normal(size=(len(questions), of_query)).astype(dtype)
        source = kgtrec.Factors(queries, entities, np.zeros(n_entities, dtype), metric)
        seen = []
        for _ in forced():
            ranks, run = kgtrec.rank(source, questions, run_depth=n_entities)
            counts = [ranks.greater.tolist(), ranks.equal.tolist(), ranks.macro_greater.tolist()]
            seen.append([*counts, np.asarray(run.scores).tobytes()])
            assert_scores_close(run, queries, entities, metric)
        assert all(result == seen[0] for result in seen)


@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 8, 47, 49, 97]),
    dim=st.integers(0, 40),
    dtype=st.sampled_from(WIDE),
    threads=st.integers(1, 3),
)
def test_sums_of_moduli_have_exact_ranks(seed, n, dim, dtype, threads):
    """Differences are multiples of 3 + 4i, whose moduli are whole numbers; many sums are equal."""
    rng = np.random.default_rng(seed)
    questions = questions_of(n)
    steps = rng.integers(-2, 3, (len(questions), dim)), rng.integers(-2, 3, (n, dim))
    queries, entities = (np.hstack([3 * part, 4 * part]).astype(dtype) for part in steps)
    source = kgtrec.Factors(queries, entities, metric="moduli")
    due = [
        [-sum(5 * abs(a - b) for a, b in zip(q, x, strict=True)) for x in steps[1].tolist()]
        for q in steps[0].tolist()
    ]
    expected = expected_of(np.array(due, dtype), questions, 5)
    for _ in forced():
        assert source.scores().tolist() == due
        assert_due(kgtrec.rank(source, questions, 5, threads), expected)


@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 8, 47, 49, 97]),
    dim=st.integers(0, 40),
    metric=st.sampled_from(["mode", "hake"]),
    dtype=st.sampled_from(WIDE),
    threads=st.integers(1, 3),
)
def test_scaled_distances_have_exact_ranks(seed, n, dim, metric, dtype, threads):
    """Of whole numbers, with one dimension of moduli for HAKE, whose norm is then whole, too."""
    rng = np.random.default_rng(seed)
    questions = questions_of(n)
    of_query, of_entity = factor_dims(metric, dim)
    queries = rng.integers(-2, 3, (len(questions), of_query))
    entities = rng.integers(-2, 3, (n, of_entity))
    if metric == "hake":
        entities[:, 2 * dim + 1 :] = queries[:, 2 * dim + 1 : 3 * dim] = 0
    source = kgtrec.Factors(queries.astype(dtype), entities.astype(dtype), metric=metric)
    score = {"mode": mode_score, "hake": hake_score}[metric]
    due = [[score(q, x) for x in entities.tolist()] for q in queries.tolist()]
    expected = expected_of(np.array(due, dtype).reshape(len(questions), n), questions, 5)
    for _ in forced():
        assert source.scores().tolist() == due
        assert_due(kgtrec.rank(source, questions, 5, threads), expected)


def mode_score(q: list[float], x: list[float]) -> float:
    n = len(x)
    return -sum(abs(q[k] - q[n + k] * x[k]) for k in range(n))


def hake_score(q: list[float], x: list[float]) -> float:
    n = len(x) // 3
    phases = sum(abs(q[n + k] * x[k] - q[k] * x[n + k]) for k in range(n))
    moduli = math.hypot(*(q[2 * n + k] - q[3 * n + k] * x[2 * n + k] for k in range(n)))
    return -(q[4 * n] * phases + q[4 * n + 1] * moduli)


def assert_scores_close(run, queries: np.ndarray, entities: np.ndarray, metric: str) -> None:
    """The scores of a run are those of the formula in float64, up to rounding."""
    row = np.repeat(np.arange(len(queries)), np.diff(run.offsets))
    q, x = queries[row].astype(np.float64), entities[run.documents].astype(np.float64)
    if metric in ("mode", "hake"):
        score = {"mode": mode_score, "hake": hake_score}[metric]
        due = [score(*pair) for pair in zip(q.tolist(), x.tolist(), strict=True)]
        size = (np.abs(q).sum(1) + 1) * (np.abs(x).sum(1) + 1)
        assert np.all(np.abs(run.scores - due) <= 8 * np.finfo(queries.dtype).eps * size)
        return
    away, half = q - x, q.shape[1] // 2
    due = {"dot": (q * x).sum(1), "l2": -(away**2).sum(1), "l1": -np.abs(away).sum(1)}
    if metric == "moduli":
        due[metric] = -np.hypot(away[:, :half], away[:, half:]).sum(1)
    size = (np.abs(q) * np.abs(x)).sum(1) + (q * q).sum(1) + (x * x).sum(1)
    size = (np.abs(q) + np.abs(x)).sum(1) if metric in ("l1", "moduli") else size
    assert np.all(np.abs(run.scores - due[metric]) <= 8 * np.finfo(queries.dtype).eps * size)


@pytest.mark.parametrize("order", ["of names", "turned", "shuffled"])
def test_ties_in_every_order_of_names(order):
    """The best of rows that tie, rise and fall; ids are in the order of names, or not."""
    rng = np.random.default_rng(4)
    n = 3_000
    place = {"of names": np.arange(n), "turned": np.arange(n)[::-1], "shuffled": rng.permutation(n)}
    graph = kgtrec.Graph.from_arrays(
        test=[(r, 0, 1) for r in range(4)],
        train=[(0, 0, e) for e in range(900, 1_000)],
        n_entities=n,
        entities=[f"{p:04d}" for p in place[order]],
    )
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

SHORT_ROWS = 12


def short_questions(
    rng: np.random.Generator, n: int, most_answers: int = 2, in_order: bool = True
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
    for n in (1, 2, 20, 63, 64, 65, 128, 129, 255, 256, 257):
        for most_answers, depth in ((1, 0), (1, 20), (20, n)):
            rng = np.random.default_rng(n)
            questions = short_questions(rng, n, most_answers, in_order)
            check(questions, rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32), depth)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [64, 65, 100, 256])
def test_the_best_of_distinct_scores(n: int, dtype: str) -> None:
    """If no scores tie, a bound leaves about as many candidates as are listed."""
    rng = np.random.default_rng(n)
    for depth in (1, 3, 6, 20, 70, n):
        questions = short_questions(rng, n, in_order=bool(depth % 2))
        scores = rng.standard_normal((SHORT_ROWS, n)).astype(dtype)
        scores[6:] = np.exp(5 * scores[6:])  # few are far above the others, with bounds between
        scores[0] = np.sort(scores[0])
        scores[1, : n // 2] = -np.inf
        check(questions, scores, depth)


@pytest.mark.parametrize("n", [40, 150])
def test_short_ranges_of_entities(n: int) -> None:
    """Short rows whose first entity is not entity 0."""
    rng = np.random.default_rng(n)
    questions = short_questions(rng, 2 * n + 9, most_answers=3)
    scores = rng.integers(-9, 9, (SHORT_ROWS, 2 * n + 9)).astype(np.float32)
    spans = list(pairwise((0, 9, 9 + n, 2 * n + 9)))
    for depth in (0, 20):
        due = expected_of(scores, questions, depth)
        for path in forced():
            answers = kgtrec.AnswerScores(questions)
            answers.fill(scores)
            parts = [
                kgtrec.rank_range(scores[:, low:high].copy(), answers, low, depth)
                for low, high in spans[::-1]
            ]
            assert_due(kgtrec.merge_ranges(parts, answers), due, path, depth)


@pytest.mark.parametrize("n", [20, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_of_other_types_directions_and_layouts(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    questions = short_questions(rng, n)
    scores = rng.choice(np.array([-1.5, -0.0, 0.0, 2, np.inf, -np.inf], dtype), (SHORT_ROWS, n))
    layouts = ("contiguous", "fortran", "columns_reversed", "column_strided")
    check(questions, scores, 20, [laid_out(scores, layout) for layout in layouts])
    check(questions, scores, 20, higher_is_better=False)


@pytest.mark.parametrize("n", [20, 64, 65, 200])
def test_nan_of_some_rows_is_the_worst(n: int) -> None:
    """Such rows take the slow way; their neighbours do not."""
    rng = np.random.default_rng(n)
    questions = short_questions(rng, n)
    scores = rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32)
    free = questions.known[1].tolist() + questions.answers[1].tolist()
    scores[1, [e for e in range(n) if e not in free][-1:]] = np.nan
    for depth in (0, 20):
        check(questions, scores, depth, nan="worst")


@pytest.mark.parametrize("atol", [0.5, 1.0])
def test_tolerance_counts_the_answer_once(atol: float) -> None:
    """The answer's own score is above the limit of its ties, and only one filter excludes it."""
    for n in (20, 200, 300):
        rng = np.random.default_rng(n)
        questions = short_questions(rng, n, most_answers=1)
        scores = rng.integers(-6, 7, (SHORT_ROWS, n)).astype(np.float32) / 2
        check(questions, scores, 0, atol=atol)


def test_candidates_of_their_own() -> None:
    """Sampled evaluation: every question's list, in rows of all entities."""
    rng = np.random.default_rng(5)
    n = 400
    questions = short_questions(rng, n)
    lists = [
        np.union1d(questions.answers[question], rng.choice(n, rng.integers(2, 90), replace=False))
        for question in range(SHORT_ROWS)
    ]
    asked = questions.restrict(candidates=[each.tolist() for each in lists])
    check(asked, rng.integers(-3, 4, (SHORT_ROWS, n)).astype(np.float32), 20, lists=lists)


# -- Scores of many rows together ------------------------------------------------------------------


@pytest.mark.parametrize("n_thresholds", [0, 1, 2, 3, 9, 16, 17, 40, 300, 2500])
def test_pair_counts(n_thresholds):
    """Of given rows and of vectors, for few and many thresholds, sparse and dense rows."""
    rng = np.random.default_rng(n_thresholds)
    for width, height in ((1, 9), (47, 3), (130, 70), (4100, 2)):
        queries = rng.standard_normal((height, 5)).astype(np.float32)
        entities = rng.integers(-2, 3, (width, 5)).astype(np.float32)
        for dtype, low in product(DTYPES, (-100, 30)):
            exact = (queries.round() @ entities.T).astype(dtype)
            factors = [
                array.astype(np.result_type(dtype, np.float32))
                for array in (queries.round(), entities)
            ]
            pool = np.unique(np.append(exact, exact.max() + rng.random(n_thresholds) * low))
            thresholds = rng.choice(pool, n_thresholds).astype(dtype).astype(np.float64)
            due = [
                [int((exact > t).sum()) for t in thresholds],
                [int((exact >= t).sum()) for t in thresholds],
            ]
            bound = float(np.sort(exact, axis=None)[-min(7, exact.size)])
            reach = {cell: float(exact.flat[cell]) for cell in np.flatnonzero(exact >= bound)}
            for path in forced():
                for of_vectors in (False, True):
                    counts = np.zeros((2, n_thresholds), np.int64)
                    cells, scores = np.empty(exact.size, np.int64), np.empty(exact.size)
                    request = (thresholds, counts, bound, cells, scores)
                    if of_vectors:
                        used, nan = _core.count_factors(*factors, None, "dot", *request)
                    else:
                        used, nan = _core.count_rows(exact, dtype.name, *request)
                    where = (path, dtype, width, of_vectors)
                    assert (counts.tolist(), nan) == (due, False), where
                    found = dict(zip(cells[:used].tolist(), scores[:used].tolist(), strict=True))
                    assert found == reach, where


def test_pair_counts_see_nan_and_report_what_found_no_space():
    scores = np.full((40, 130), 2.0, np.float32)
    scores[33, 121] = np.nan
    for _ in forced():
        for n in (0, 2, 20):
            counts = np.zeros((2, n), np.int64)
            cells, found = np.empty(5, np.int64), np.empty(5)
            used, nan = _core.count_rows(
                scores, "float32", np.arange(n) / 10, counts, 2.0, cells, found
            )
            assert (used, nan) == (40 * 130 - 1, True)
            assert found.tolist() == [2.0] * 5
            assert counts[0].tolist() == [used] * n
