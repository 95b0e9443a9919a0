"""Ranker: rows in any order, batches, rankers that merge, and refused input."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from question_cases import N, R, assert_same, random_questions, some_scores

import kgtrec
from kgtrec import _core
from kgtrec._internal.table import Interval
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.ranking.rows import RowClaims
from kgtrec.scores.mapped_files import Watch
from kgtrec.scores.matrices import Matrix
from kgtrec.scores.sources import MatrixSource


@pytest.fixture
def questions() -> kgtrec.Questions:
    return random_questions(np.random.default_rng(5))


@pytest.fixture
def scores(questions: kgtrec.Questions) -> np.ndarray:
    return some_scores(np.random.default_rng(12), (len(questions), N))


@pytest.fixture
def case(questions, scores):
    return questions, scores, kgtrec.rank(scores, questions, 5)


def test_a_row_twice_is_an_error_or_is_not_read(case) -> None:
    questions, scores, due = case
    ranker = kgtrec.Ranker(questions, 5)
    ranker.update([3, 1], scores[[3, 1]])
    for again in ([1], [0, 3], [2, 1, 0]):
        with pytest.raises(UsageError, match=r"given twice: row \d \(question .*already has"):
            ranker.update(again, scores[again])
    with pytest.raises(UsageError, match=r"row 6 \(question .* is twice in one batch"):
        ranker.update([6, 5, 6], scores[[6, 5, 6]])
    tolerant = kgtrec.Ranker(questions, 5, duplicates="ignore")
    tolerant.update([3, 1], scores[[3, 1]])
    poison = np.full_like(scores, np.nan)  # an error if it were read
    poison[5] = scores[5]
    tolerant.update([1, 5, 3], poison[[1, 5, 3]])
    tolerant.update([1, 5, 3], poison[[1, 0, 3]])
    every = np.arange(len(questions))
    taken = np.isin(every, [1, 3, 5])
    tolerant.update(every, np.where(taken[:, None], np.nan, scores))
    assert_same(tolerant.finish(), due)


# -- Saved, sent, merged -----------------------------------------------------------------------


def halves(case, **options):
    questions, scores, _ = case
    first, second = (kgtrec.Ranker(questions, 5, **options) for _ in range(2))
    first.update(np.arange(0, len(questions), 2), scores[::2])
    second.update(np.arange(1, len(questions), 2)[::-1], scores[1::2][::-1])
    return first, second


def test_merged_twice_is_an_error_or_ignored(case) -> None:
    first, second = halves(case)
    first.merge(second)
    with pytest.raises(UsageError, match="were given twice"):
        first.merge(second.partial())
    assert_same(first.finish(), case[2])
    tolerant, other = halves(case, duplicates="ignore")
    for part in (other, other, tolerant):
        tolerant.merge(part)
    assert_same(tolerant.finish(), case[2])
    for call in (lambda: tolerant.merge(other), lambda: tolerant.update([0], case[1][:1])):
        with pytest.raises(UsageError, match="finished; make a new one"):
            call()


def test_damaged_files_are_named(case, tmp_path: Path) -> None:
    first, second = halves(case)
    path = tmp_path / "rows"
    first.save(path)
    sound = path.read_bytes()
    for at in range(0, len(sound), 97):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :])
        with pytest.raises(FileError, match=str(path)):
            second.merge(path)
    for cut in (0, 9, len(sound) // 2, len(sound) - 1):
        path.write_bytes(sound[:cut])
        with pytest.raises(FileError, match=str(path)):
            second.merge(path)
    with pytest.raises(FileError, match="the file does not exist"):
        second.merge(tmp_path / "absent")
    path.write_bytes(sound)
    second.merge(path)
    assert_same(second.finish(), case[2])


def test_parts_that_cannot_be_are_refused(case) -> None:
    first, second = halves(case)
    for change in (
        {"row_ids": second.partial().row_ids[::-1]},
        {"row_ids": second.partial().row_ids + len(case[0])},
        {"row_ids": second.partial().row_ids[1:]},
        {"nan_counts": np.zeros(1, np.int64)},
    ):
        odd = copy.copy(second.partial())
        for name, value in change.items():
            object.__setattr__(odd, name, value)
        with pytest.raises(UsageError, match="contradict the ranking"):
            first.merge(odd)
    first.merge(second)
    assert_same(first.finish(), case[2])


@pytest.mark.parametrize("restricted", [True, False])
def test_a_run_as_deep_as_there_are_candidates(case, restricted: bool) -> None:
    """It gets fewer places than `run_depth`; parts that need more are refused."""
    questions, scores, _ = case
    lists = [list(range(N))] * len(questions)
    if restricted:
        rng = np.random.default_rng(7)
        lists = [sorted({*own.tolist(), *rng.integers(0, N, 9)}) for own in questions.answers]
        questions = questions.restrict(candidates=lists)
    sizes = [len(set(each) - set(questions.removed[q])) for q, each in enumerate(lists)]
    every = np.arange(len(questions))
    rankers = [kgtrec.Ranker(questions, 3 * N) for _ in range(2)]
    for ranker, rows in zip(rankers, (every[::2], every[1::2]), strict=True):
        ranker.update(rows[::-1], scores[rows[::-1]])
    odd = copy.copy(rankers[1].partial())
    lengths = odd.part.lengths.copy()
    lengths[0] = max(map(len, lists)) + 1
    filled = np.zeros(lengths.sum(), np.int32)
    part = replace(odd.part, lengths=lengths, documents=filled, scores=filled.astype(np.float32))
    object.__setattr__(odd, "part", part)
    with pytest.raises(UsageError, match="contradict the ranking"):
        rankers[0].merge(odd)

    rankers[0].merge(rankers[1])

    ranks, run = rankers[0].finish()
    assert run.depth == 3 * N
    assert np.diff(run.offsets).tolist() == sizes
    assert_same((ranks, run), kgtrec.rank(scores, questions, 3 * N))


@pytest.mark.parametrize("filtered", [True, False])
def test_nothing_that_a_ranker_gives_is_its_own(filtered: bool) -> None:
    rng = np.random.default_rng(6)
    questions = (
        random_questions(rng)
        if filtered
        else kgtrec.Graph.from_arrays(
            np.zeros((1, 3), int), np.zeros((0, 3), int), [[0, 0, 1], [1, 0, 2]], n_entities=4
        ).questions(filter="raw")
    )
    scores = rng.random((len(questions), questions.n_labels), dtype=np.float32)
    due = kgtrec.rank(scores, questions, 2)
    ranker = kgtrec.Ranker(questions, 2)
    ranker.update(range(len(questions)), scores)
    for ranks, run in (ranker.finish(), ranker.finish()):
        assert_same((ranks, run), due)
        for array in (ranks.greater, ranks.answer_nan, run.documents, run.scores, run.offsets):
            array[:] = 1
    part = ranker.partial().part
    for array in (part.counts, part.answer_nan, part.lengths, part.documents, part.scores):
        array[:] = 1
    assert_same(ranker.finish(), due)
    assert_same(kgtrec.rank(scores, questions, 2), due)


def test_ranges_of_rows(case) -> None:
    questions, scores, _ = case
    scores = np.where(np.random.default_rng(1).random(scores.shape) < 0.1, np.nan, scores)
    due = kgtrec.rank(scores, questions, 5, nan="worst")
    ranker = kgtrec.Ranker(questions, 5, nan="worst")
    ranker.update(range(len(questions) - 1, 3, -1), scores[:3:-1])
    ranker.update(range(4), scores[:4])
    assert_same(ranker.finish(), due)


# -- State after refused batches, other threads, merges and lists --------------------------------


def test_only_rows_that_were_kept_fix_the_dtype(questions, scores) -> None:
    wide, n = scores.astype(np.float64), len(scores)
    spoilt = wide.copy()
    spoilt[0] = np.nan
    ranker, other = kgtrec.Ranker(questions, 5), kgtrec.Ranker(questions, 5, nan="worst")
    with pytest.raises(InputError, match="NaN for question"):
        ranker.update(range(n), spoilt)
    other.update([0], wide[:1])
    with pytest.raises(UsageError, match="together \\(nan 'worst' and 'error'"):
        ranker.merge(other)
    ranker.update([0], scores[:1])
    for row in (1, 2):
        with pytest.raises(InputError, match=r"dtype float64, but earlier ones have float32"):
            ranker.update([row], wide[row : row + 1])
    ranker.update(range(1, n), scores[1:])
    assert_same(ranker.finish(), kgtrec.rank(scores, questions, 5))


def test_duplicates_that_another_thread_is_ranking_are_ignored() -> None:
    claims = RowClaims(8, "ignore", str)
    assert claims.claim_rows("one", np.arange(0, 4)).all()
    assert claims.claim_rows("two", np.arange(2, 6)).tolist() == [False, False, True, True]
    assert claims.at_work["two"].tolist() == [4, 5]  # the other call's rows are not ours
    assert claims.claim_rows("three", np.array([5, 7, 3])).tolist() == [False, True, False]


@pytest.mark.parametrize("wide", ["queries", "entities", "bias", "relation"])
def test_factors_are_computed_in_the_widest_dtype(questions, wide: str) -> None:
    rng, n = np.random.default_rng(1), len(questions)
    shapes = {"queries": (n, 4), "entities": (N, 4), "bias": (N,), "relation": (R, 4)}
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    arrays = {name: a if name == wide else a.astype("f4") for name, a in arrays.items()}
    exact = {name: a.astype(float) for name, a in arrays.items()}
    relation, exact_relation = arrays.pop("relation"), exact.pop("relation")
    if wide != "relation":
        factors = kgtrec.Factors(**arrays)
        due = exact["queries"] @ exact["entities"].T + exact["bias"]
        np.testing.assert_allclose(factors.scores(), due, rtol=1e-13, atol=1e-13)
        assert factors.dtype == np.float64
    if wide in ("entities", "relation"):  # so are those of an embedding model
        tables = {"entity": arrays["entities"], "relation": relation}
        factors = kgtrec.Factors.from_embeddings(questions, "distmult", **tables)
        due = exact["entities"][questions.entity] * exact_relation[questions.relation]
        np.testing.assert_array_equal(factors.queries, due)
        assert factors.dtype == factors.queries.dtype == np.float64


def test_a_file_that_changes_behind_the_last_selected_block(tmp_path: Path) -> None:
    path = tmp_path / "s.npy"
    np.save(path, np.arange(40, dtype=np.float32).reshape(8, 5))
    watch = Watch([path])
    matrix = Matrix.from_values(np.load(path, mmap_mode="r"), str(path), watch)
    source = MatrixSource([matrix], np.array([6, 1]))
    blocks = source.blocks()
    assert next(blocks).tolist() == [list(range(30, 35)), list(range(5, 10))]
    os.utime(path, ns=(1, 1))
    with pytest.raises(FileError, match="was written to while it was read"):
        next(blocks)


def path_of(ranks: kgtrec.Ranks) -> str:
    return ranks.manifest["scores"]["kernel_path"]


@pytest.mark.parametrize("saved", [False, True])
def test_a_merged_manifest_names_every_kernel_path(questions, scores, saved, tmp_path) -> None:
    other, ranker = kgtrec.Ranker(questions), kgtrec.Ranker(questions)
    answers, part = kgtrec.AnswerScores(questions), tmp_path / "part"
    answers.fill(scores)
    _core.force_path("scalar")
    try:
        other.update([0], scores[:1])
        other.save(part)
        if not saved:
            part = other.partial()
        low = kgtrec.rank_range(scores[:, :9], answers)
    finally:
        _core.force_path(None)
    ranker.update(range(1, len(scores)), scores[1:])
    ranker.merge(part)
    due = ", ".join(sorted({_core.active_path(), "scalar"}))
    high = kgtrec.rank_range(scores[:, 9:], answers, 9)
    assert path_of(ranker.finish()[0]) == due
    assert path_of(kgtrec.merge_ranges([low, high], answers)[0]) == due


def test_where_both_ends_of_a_list_agree_a_value_is_a_number() -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1]], n_entities=9, n_relations=1)
    questions = graph.questions(sides="tail")
    records = [{"head": "0", "relation": "0", "predictions": ["4", "5"]}]
    result = kgtrec.Result(kgtrec.rank_lists(records, questions))
    assert result.ranks.n_unlisted == 1
    first, reciprocal = (result[f"tail.realistic.micro.{name}"] for name in ("hits@1", "mrr"))
    assert isinstance(reciprocal, Interval)
    assert (reciprocal.low, reciprocal.high) == (1 / 9, 1 / 3)
    assert type(first) is float  # at any place but the first
    assert first == 0.0
    best, worst = result.ranks.best_and_worst()
    assert (best.rank().tolist(), worst.rank().tolist()) == ([3.0], [9.0])
