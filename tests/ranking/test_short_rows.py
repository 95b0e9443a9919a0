"""The special code for rows of few candidates: counts and best lists against plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_paths import PATHS

import kgtrec
from kgtrec import _core
from kgtrec._internal.csr import Csr
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.rows import QuestionLists, Rows, plan_rows
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import ScoreBlock

COUNTS = ("greater", "equal", "tied_ahead")
LENGTHS = (1, 2, 20, 63, 64, 65, 128, 129, 255, 256, 257)
ROWS = 12


@pytest.fixture(params=PATHS)
def path(request) -> Iterator[str]:
    """Force one kernel path after the other."""
    _core.force_path(request.param)
    yield request.param
    _core.force_path(None)


def questions_of(
    rng: np.random.Generator, n: int, *, in_order: bool, most_answers: int
) -> kgtrec.Questions:
    """One row per question: one or several answers, none known to all of the others."""
    splits: dict[str, list[tuple[int, int, int]]] = {"test": [], "train": [(0, 0, 0)]}
    for row in range(ROWS):
        order = rng.permutation(n)
        cut = 1 + int(rng.integers(min(most_answers, n)))
        known = int(rng.integers(n - cut + 1))
        splits["test"] += [(row % n, row // n, int(e)) for e in order[:cut]]
        splits["train"] += [(row % n, row // n, int(e)) for e in order[cut : cut + known]]
    labels = [f"e{i:04d}" if in_order else f"e{i}" for i in range(n)]
    arrays = {name: np.array(triples) for name, triples in splits.items()}
    graph = kgtrec.Graph.from_arrays(**arrays, n_entities=n, entities=labels)
    return graph.questions("test", sides="tail")


def due(questions: kgtrec.Questions, scores: Any, depth: int) -> tuple[list[Any], list[Any]]:
    """Counts of every answer, micro and macro, and the best of every row; one by one."""
    labels = [label.encode() for label in questions.graph.entities]
    counts, lists = [], []
    for question in range(len(questions)):
        row = scores[question].astype(float).tolist()
        row = [-np.inf if value != value else value for value in row]
        answers = questions.answers[question].tolist()
        known, removed = (set(csr[question].tolist()) for csr in (questions.known,
                                                                 questions.removed))  # fmt: skip
        for answer in answers:
            both = []
            for outside in (known, removed):
                others = [e for e in range(len(row)) if e not in outside and e != answer]
                tied = [e for e in others if row[e] == row[answer]]
                ahead = sum(labels[e] > labels[answer] for e in tied)
                both += [sum(row[e] > row[answer] for e in others), len(tied), ahead]
            counts.append(both)
        left = [
            e for e in range(len(row)) if e not in removed and not np.isnan(scores[question, e])
        ]
        lists.append(sorted(left, key=lambda e: (row[e], labels[e]), reverse=True)[:depth])
    return counts, lists


@pytest.fixture
def best_path_afterwards() -> Iterator[None]:
    yield
    _core.force_path(None)


def check(questions: kgtrec.Questions, scores: Any, depth: int, **options: Any) -> None:
    """On every path."""
    sign = 1 if options.get("higher_is_better", True) else -1
    counts, lists = due(questions, sign * scores, depth)
    for path in PATHS:
        _core.force_path(path)
        ranks, run = kgtrec.rank(scores, questions, depth, 1, progress=False, **options)
        columns = [getattr(ranks, prefix + name) for prefix in ("", "macro_") for name in COUNTS]
        assert np.stack(columns, axis=1).tolist() == counts, path
        got = np.split(np.asarray(run.documents), run.offsets[1:-1])
        assert [each.tolist() for each in got] == lists, path


@pytest.mark.usefixtures("best_path_afterwards")
@pytest.mark.parametrize("in_order", [True, False])
def test_short_rows(in_order: bool) -> None:
    for n, case in product(LENGTHS, range(3)):
        rng, (most_answers, depth) = np.random.default_rng(n), ((1, 0), (1, 20), (20, n))[case]
        questions = questions_of(rng, n, in_order=in_order, most_answers=most_answers)
        scores = rng.integers(-3, 4, (ROWS, n)).astype(np.float32)
        check(questions, scores, depth)


@pytest.mark.usefixtures("best_path_afterwards")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [64, 65, 100, 256])
def test_the_best_of_distinct_scores(n: int, dtype: str) -> None:
    """If no scores tie, a bound leaves about as many candidates as are listed."""
    rng = np.random.default_rng(n)
    for depth in (1, 3, 6, 20, 70, n):
        questions = questions_of(rng, n, in_order=bool(depth % 2), most_answers=2)
        scores = rng.standard_normal((ROWS, n)).astype(dtype)
        scores[6:] = np.exp(5 * scores[6:])  # few are far above the others, with bounds between
        scores[0] = np.sort(scores[0])
        scores[1, : n // 2] = -np.inf
        check(questions, scores, depth)


@pytest.mark.parametrize("n", [40, 150])
def test_ranges_of_entities(path: str, n: int) -> None:
    """Short rows whose first entity is not entity 0."""
    rng = np.random.default_rng(n)
    questions = questions_of(rng, 2 * n + 9, in_order=True, most_answers=3)
    scores = rng.integers(-9, 9, (ROWS, 2 * n + 9)).astype(np.float32)
    whole, run = kgtrec.rank(scores, questions, 20, 1, progress=False)
    state = {depth: part_of(questions, scores, n, depth) for depth in (0, 20)}

    for part in state.values():
        columns = [getattr(whole, prefix + name) for prefix in ("", "macro_") for name in COUNTS]
        assert np.array_equal(part.counts, np.stack(columns))
    for question in range(ROWS):
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


@pytest.mark.usefixtures("best_path_afterwards")
@pytest.mark.parametrize("n", [20, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_of_other_types_directions_and_layouts(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    questions = questions_of(rng, n, in_order=True, most_answers=2)
    scores = rng.choice(np.array([-1.5, -0.0, 0.0, 2, np.inf, -np.inf], dtype), (ROWS, n))

    check(questions, scores, 20)
    check(questions, scores, 20, higher_is_better=False)
    check(questions, np.asfortranarray(scores), 20)
    check(questions, scores[:, ::-1], 20)
    check(questions, np.repeat(scores, 2, axis=1)[:, ::2], 20)


@pytest.mark.usefixtures("best_path_afterwards")
@pytest.mark.parametrize("n", [20, 64, 65, 200])
def test_nan_of_some_rows_is_the_worst(n: int) -> None:
    """Such rows take the slow way; their neighbours do not."""
    rng = np.random.default_rng(n)
    questions = questions_of(rng, n, in_order=True, most_answers=2)
    scores = rng.integers(-3, 4, (ROWS, n)).astype(np.float32)
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
        questions = questions_of(rng, n, in_order=True, most_answers=1)
        scores = rng.integers(-6, 7, (ROWS, n)).astype(np.float32) / 2

        ranks, _ = kgtrec.rank(scores, questions, 0, 1, atol=atol, progress=False)

        for i, question in enumerate(ranks.question.tolist()):
            row, answer = scores[question], int(ranks.answer[i])
            inside = np.ones(n, bool)
            inside[questions.known[question]] = inside[answer] = False
            near = np.abs(row - row[answer]) <= atol
            assert ranks.greater[i] == np.sum(inside & ~near & (row > row[answer]))
            assert ranks.equal[i] == np.sum(inside & near)


def test_candidates_of_their_own(path: str) -> None:
    """Sampled evaluation: every question's list, in rows of all entities."""
    rng = np.random.default_rng(5)
    n = 400
    questions = questions_of(rng, n, in_order=True, most_answers=2)
    lists = [
        np.union1d(answers, rng.choice(n, int(rng.integers(2, 90)), replace=False))
        for answers in (questions.answers[question] for question in range(ROWS))
    ]
    asked = questions.restrict(candidates=[each.tolist() for each in lists])
    scores = rng.integers(-3, 4, (ROWS, n)).astype(np.float32)

    ranks, run = kgtrec.rank(scores, asked, 20, 1, progress=False)

    for i, question in enumerate(ranks.question.tolist()):
        row, answer = scores[question], int(ranks.answer[i])
        inside = np.zeros(n, bool)
        inside[lists[question]] = True
        inside[questions.known[question]] = inside[answer] = False
        assert ranks.greater[i] == np.sum(inside & (row > row[answer]))
        assert ranks.equal[i] == np.sum(inside & (row == row[answer]))
    for question in range(ROWS):
        row, removed = scores[question], set(questions.removed[question].tolist())
        left = [e for e in lists[question].tolist() if e not in removed]
        best = sorted(left, key=lambda e: (row[e], e), reverse=True)[:20]
        assert run.documents[run.offsets[question] : run.offsets[question + 1]].tolist() == best


def csr_of(rows: list[npt.NDArray[Any]]) -> Csr:
    offsets = np.cumsum([0, *map(len, rows)])
    return Csr(offsets, np.concatenate(rows).astype(np.int32))


@pytest.mark.parametrize("n", [64, 200, 300])
def test_filters_that_are_nearly_alike(path: str, n: int) -> None:
    """If they differ in more than the one answer, each is counted separately."""
    rng = np.random.default_rng(n)
    scores = rng.integers(-3, 4, (ROWS, n)).astype(np.float32)
    answers = rng.integers(n, size=ROWS).astype(np.int32)
    filters: list[list[npt.NDArray[Any]]] = [[], []]
    for answer in answers.tolist():
        others = np.setdiff1d(np.arange(n), [answer])
        chosen = np.sort(rng.choice(others, 21, replace=False))
        removed = np.delete(chosen, rng.integers(21))
        known = np.delete(chosen, rng.integers(21))
        filters[0].append(np.union1d(known, [answer] * int(rng.integers(2))).astype(int))
        filters[1].append(removed)
    known, removed = (csr_of(rows) for rows in filters)
    every = np.arange(ROWS)
    rows = Rows(every, np.arange(ROWS + 1), answers, np.full(ROWS, -1))
    state = NativeRanking(QuestionLists(n, known, removed), rows, Settings(threads=1), "float32")

    state.rank_rows(ScoreBlock.of(scores))

    for row, answer in enumerate(answers.tolist()):
        for kind, outside in enumerate(filters):
            inside = np.ones(n, bool)
            inside[outside[row]] = inside[answer] = False
            due = [np.sum(inside & (scores[row] > scores[row, answer]))]
            due += [np.sum(inside & (scores[row] == scores[row, answer]))]
            assert state.counts[3 * kind : 3 * kind + 2, row].tolist() == due
