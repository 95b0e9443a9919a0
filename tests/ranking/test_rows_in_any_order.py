"""Rows in any order, in any number of rankers that merge: the ranks of one pass."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from brute_force import assert_counts, expected_counts
from hypothesis import given
from hypothesis import strategies as st
from question_cases import N, R, random_questions, run_lists, some_scores

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError

COLUMNS = [name for name in kgtrec.Ranks.__annotations__ if "popularity" not in name]


def assert_same(got, expected) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(got[0], name), getattr(expected[0], name), name)
    assert run_lists(got[1]) == run_lists(expected[1])
    np.testing.assert_array_equal(got[1].scores, expected[1].scores)
    ours, theirs = (dict(each[0].manifest["scores"]) for each in (got, expected))
    assert ours == theirs


def lists_of_questions(rng, questions) -> list[list[int]]:
    return [
        sorted({*questions.answers[q].tolist(), *rng.integers(0, N, 9).tolist()})
        for q in range(len(questions))
    ]


def varied(rng, kind: str) -> kgtrec.Questions:
    questions = random_questions(rng)
    if kind == "entities":
        return questions.restrict(entities=np.flatnonzero(rng.random(N) < 0.6), outside="worst")
    if kind == "relations":
        tails = {r: np.flatnonzero(rng.random(N) < 0.6) for r in range(R - 1)}
        return questions.restrict(tails=tails, outside="worst")
    if kind == "candidates":
        return questions.restrict(candidates=lists_of_questions(rng, questions))
    return questions


@given(
    seed=st.integers(0, 10**6),
    rows=st.sampled_from(["questions", "instances"]),
    kind=st.sampled_from(["all", "entities", "relations", "candidates"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    n_rankers=st.integers(1, 4),
    nan=st.booleans(),
)
def test_shuffled_rows_of_several_rankers_are_the_whole(
    seed, rows, kind, dtype, n_rankers, nan
) -> None:
    """As a distributed sampler shares rows out: shuffled, and padded with repeats."""
    rng = np.random.default_rng(seed)
    questions = varied(rng, kind)
    options = {"rows": rows, "nan": "worst" if nan else "error", "higher_is_better": seed % 2 == 0}
    whole = kgtrec.Ranker(questions, 5, **options)
    scores = some_scores(rng, (whole.n_rows, N)).astype(dtype)
    if nan:
        scores[rng.random(scores.shape) < 0.1] = np.nan
    whole.update(np.arange(whole.n_rows), scores)
    if kind == "all" and not nan and rows == "questions":
        own = scores if options["higher_is_better"] else -scores
        assert_counts(whole.finish()[0], expected_counts(questions, own))
    order = rng.permutation(whole.n_rows)
    padded = np.append(order, order[: -len(order) % n_rankers])
    rankers = []
    for part in range(n_rankers):
        ranker = kgtrec.Ranker(questions, 5, duplicates="ignore", **options)
        mine = padded[part::n_rankers]
        for start in range(0, len(mine), 7):
            ranker.update(mine[start : start + 7], scores[mine[start : start + 7]])
        rankers.append(ranker)
    for other in rankers[1:]:
        rankers[0].merge(other.partial())
    assert_same(rankers[0].finish(), whole.finish())
    assert_same(kgtrec.rank(scores, questions, 5, **options), whole.finish())


@pytest.fixture
def case():
    rng = np.random.default_rng(5)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    return questions, scores, kgtrec.rank(scores, questions, 5)


def test_batches_and_ids_mix(case) -> None:
    questions, scores, due = case
    ranker = kgtrec.Ranker(questions, 5)
    ranker.update(ranker.batch(0, 4), scores[:4])
    rest = np.arange(4, len(questions))[::-1]
    ranker.update(rest.tolist(), scores[rest])
    assert_same(ranker.finish(), due)


def test_a_row_twice_is_an_error_or_is_not_read(case) -> None:
    questions, scores, due = case
    ranker = kgtrec.Ranker(questions, 5)
    ranker.update([3, 1], scores[[3, 1]])
    for again in ([1], [0, 3], [2, 1, 0]):
        with pytest.raises(UsageError, match=r"given twice: row \d \(question .*has its scores al"):
            ranker.update(again, scores[again])
    with pytest.raises(UsageError, match=r"row 6 \(question .* stands twice in one batch"):
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


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([0, 99], "rows hold 99, which is not the id of a row: there are"),
        ([-1, 0], "rows hold -1"),
        ([0.0, 1.0], "rows have shape \\(2,\\) and dtype float64"),
        ([[0, 1]], "rows have shape \\(1, 2\\)"),
        ([], "rows have shape \\(0,\\)"),
        ([0], "scores have shape \\(2, 23\\) for 1 rows; expected \\(1, 23\\)"),
    ],
)
def test_what_are_no_rows(case, rows, said) -> None:
    questions, scores, _ = case
    with pytest.raises(InputError, match=said):
        kgtrec.Ranker(questions).update(rows, scores[:2])


def test_a_nan_is_named_by_its_own_question(case) -> None:
    questions, scores, due = case
    spoilt = scores.copy()
    answer = int(questions.answers[4][0])
    spoilt[4, answer] = np.nan
    ranker = kgtrec.Ranker(questions, 5)
    with pytest.raises(InputError, match=f"NaN for question {questions.ids[4]} .*id {answer}"):
        ranker.update([7, 4, 2], spoilt[[7, 4, 2]])
    ranker.update([7, 4, 2], scores[[7, 4, 2]])  # nothing was kept
    rest = np.setdiff1d(np.arange(len(questions)), [7, 4, 2])
    ranker.update(rest, scores[rest])
    assert_same(ranker.finish(), due)


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("sides", ["both", "head", "tail"])
def test_rows_of_triples(rows: str, sides: str) -> None:
    rng = np.random.default_rng(8)
    triples = {s: rng.integers(0, (N, R, N), (40, 3)) for s in ("train", "test")}
    questions = kgtrec.Graph.from_arrays(**triples, n_entities=N, n_relations=R).questions(
        sides=sides, entities=range(N - 3)
    )
    names = {"both": ("head", "tail")}.get(sides, (sides,))
    tables = {side: some_scores(rng, (N, R, N)) for side in names}  # by given, relation
    ranker = kgtrec.Ranker(questions, 5, rows=rows, duplicates="ignore")
    for side in names:
        shuffled = rng.permutation(questions.triples)
        for start in range(0, len(shuffled), 6):
            some = shuffled[start : start + 6]
            given_column = 2 if side == "head" else 0
            scores = tables[side][some[:, given_column], some[:, 1]]
            ranker.update(ranker.rows_of(some, side), scores)
    own = np.stack([
        tables["head" if side == 0 else "tail"][entity, relation]
        for side, entity, relation in zip(
            questions.side, questions.entity, questions.relation, strict=True
        )
    ])  # fmt: skip
    expected, got = kgtrec.rank(own, questions, 5), ranker.finish()
    for name in ("greater", "equal", "tied_ahead", "macro_greater", "candidates"):
        np.testing.assert_array_equal(getattr(got[0], name), getattr(expected[0], name), name)
    assert run_lists(got[1]) == run_lists(expected[1])
    other = "tail" if sides == "head" else "head"
    if sides != "both":
        with pytest.raises(UsageError, match="is not asked"):
            ranker.rows_of(questions.triples, other)
    foreign = questions.triples[:2].copy()
    foreign[1] = (N - 1, 0, N - 1)  # left out by the restriction
    with pytest.raises(InputError, match=r"triple 1, \(22, 0, 22\), is not one of the"):
        ranker.rows_of(foreign, names[0])
    with pytest.raises(InputError, match="triples"):
        ranker.rows_of([[0, 1]], names[0])


# -- Saved, sent, merged -----------------------------------------------------------------------


def halves(case, **options):
    questions, scores, _ = case
    first, second = (kgtrec.Ranker(questions, 5, **options) for _ in range(2))
    first.update(np.arange(0, len(questions), 2), scores[::2])
    second.update(np.arange(1, len(questions), 2)[::-1], scores[1::2][::-1])
    return first, second


def test_saved_rows_merge(case, tmp_path: Path) -> None:
    first, second = halves(case)
    first.save(tmp_path / "0.rows")
    second.save(tmp_path / "1.rows")
    whole = kgtrec.Ranker(case[0], 5)
    for path in (tmp_path / "1.rows", str(tmp_path / "0.rows")):
        whole.merge(path)
    assert_same(whole.finish(), case[2])
    first.merge(second)
    assert_same(first.finish(), case[2])


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
    with pytest.raises(UsageError, match="finished"):
        tolerant.merge(other)


def test_what_is_not_alike_is_refused(case, tmp_path: Path) -> None:
    questions, scores, _ = case
    first, _ = halves(case)
    some = [0, 2]
    for options, said in (
        ({"higher_is_better": False}, "higher_is_better=False, this ranker has True"),
        ({"run_depth": 4}, "run_depth=4, this ranker has 5"),
        ({"nan": "worst"}, "nan='worst'"),
        ({"rows": "instances"}, "rows='instances'"),
    ):
        other = kgtrec.Ranker(questions, **({"run_depth": 5} | options))
        other.update(some, scores[some])
        with pytest.raises(UsageError, match=said):
            first.merge(other)
    other = kgtrec.Ranker(random_questions(np.random.default_rng(6)), 5)
    other.update(some, scores[some])
    with pytest.raises(UsageError, match="other questions"):
        first.merge(other)
    wide = kgtrec.Ranker(questions, 5)
    wide.update(some, scores[some].astype(np.float64))
    with pytest.raises(InputError, match="dtype float64"):
        first.merge(wide)
    with pytest.raises(UsageError, match="no row has its scores yet"):
        kgtrec.Ranker(questions).partial()
    with pytest.raises(UsageError, match="merge takes a Ranker"):
        first.merge(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="were never scored"):
        first.finish()
    with pytest.raises(UsageError, match="duplicates='keep' is unknown"):
        kgtrec.Ranker(questions, duplicates="keep")


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
    with pytest.raises(FileError, match="no such file"):
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
        with pytest.raises(UsageError, match="do not fit the ranking"):
            first.merge(odd)
    first.merge(second)
    assert_same(first.finish(), case[2])


@pytest.mark.parametrize("restricted", [True, False])
def test_a_run_as_deep_as_there_are_candidates(case, restricted: bool) -> None:
    """Fewer places are made for it than `run_depth` says; what needs more is refused."""
    questions, scores, _ = case
    lists = [list(range(N))] * len(questions)
    if restricted:
        lists = lists_of_questions(np.random.default_rng(7), questions)
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
    with pytest.raises(UsageError, match="do not fit the ranking"):
        rankers[0].merge(odd)

    rankers[0].merge(rankers[1])

    ranks, run = rankers[0].finish()
    assert run.depth == 3 * N
    assert np.diff(run.offsets).tolist() == sizes
    assert_same((ranks, run), kgtrec.rank(scores, questions, 3 * N))


@pytest.mark.parametrize("filtered", [True, False])
def test_nothing_that_a_ranker_gives_is_its_own(filtered: bool) -> None:
    rng = np.random.default_rng(6)
    questions = random_questions(rng) if filtered else kgtrec.Graph.from_arrays(
        np.zeros((1, 3), int), np.zeros((0, 3), int), [[0, 0, 1], [1, 0, 2]], n_entities=4
    ).questions(filter="raw")  # fmt: skip
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
    questions, scores, due = case
    ranker = kgtrec.Ranker(questions, 5)
    ranker.update(range(len(questions) - 1, 3, -1), scores[:3:-1])
    for wrong in (range(2, 2), range(-1, 1), range(len(questions), len(questions) + 1)):
        with pytest.raises(InputError, match="rows h"):
            ranker.update(wrong, scores[: len(wrong)])
    ranker.update(range(4), scores[:4])
    assert_same(ranker.finish(), due)
