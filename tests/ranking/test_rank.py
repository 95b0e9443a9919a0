"""kgtrec.rank against the definitions: every column, every run, on random graphs and scores."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import examples
from strategies import GraphCase, RankCase, laid_out, rank_cases

import kgtrec
from kgtrec.errors import InputError


def graph_case(**changes) -> GraphCase:
    """Three entities, one test triple and its duplicate."""
    plain = GraphCase(
        n_entities=3,
        n_relations=1,
        splits={"test": [(0, 0, 1), (0, 0, 1)]},
        labels=None,
        evaluated="test",
        sides="both",
        filter_splits=None,
        extra_known=(),
    )
    return replace(plain, **changes)


def rank_case(graph: GraphCase, scores, **changes) -> RankCase:
    """Rank with default settings, unless stated otherwise."""
    plain = RankCase(graph, False, np.array(scores, np.float32), "contiguous", True, "error", 5)
    return replace(plain, **changes)


# -- Every way to rank one case ------------------------------------------------------------------


def in_one_pass(case: RankCase, questions: kgtrec.Questions, _: Any) -> Any:
    return kgtrec.rank(case.source(), questions, **case.options())


def in_chunks(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """Two filters in one pass over chunks, with any number of threads."""
    chunks = [case.source()[low:high] for low, high in spans(data, len(case.scores))]
    options = case.options() | {"threads": data.draw(st.integers(1, 4))}
    raw = case.graph.questions(filter_splits=()) if case.nan == "worst" else questions
    several = data.draw(st.permutations([("own", questions), ("raw", raw)]))
    return kgtrec.rank(iter(chunks), dict(several), **options)["own"]


def in_batches(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    ranker, scores = kgtrec.Ranker(questions, **case.options()), case.source()
    size, sides = data.draw(st.integers(1, 9)), ranker.batch(0, ranker.n_rows).side
    batches = list(ranker.batches(size))
    alone = [sides[sides == code].tolist() for code in (0, 1)]
    due = [own[start : start + size] for own in alone for start in range(0, len(own), size)]
    assert [batch.side.tolist() for batch in batches] == due
    for batch in batches:
        ranker.update(batch, scores[batch.start : batch.stop])
    return ranker.finish()


def in_columns_of_its_own(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """The order of columns in every form, declared in every place."""
    order = np.array(data.draw(st.permutations(range(case.graph.n_entities))))
    theirs = laid_out(np.asarray(case.scores)[:, order], case.layout)
    labels = [case.graph.entity_labels()[entity] for entity in order]
    mapping = dict(sorted(zip(labels, range(len(order)), strict=True)))
    forms = order.tolist(), order.astype(np.int32), labels, np.array(labels), mapping
    declared = data.draw(st.sampled_from(forms))
    where = data.draw(st.sampled_from(["rank", "questions", "ranker"]))
    if where == "rank":
        return kgtrec.rank(theirs, questions, columns=declared, **case.options())
    if where == "questions":
        questions = case.graph.questions(columns=declared)
        assert order[questions.column].tolist() == questions.entity.tolist()
        return kgtrec.rank(theirs, questions, **case.options())
    ranker = kgtrec.Ranker(questions, columns=declared, **case.options())
    for batch in ranker.batches(5):
        assert order[batch.column].tolist() == batch.entity.tolist()
        ranker.update(batch, theirs[batch.start : batch.stop])
    return ranker.finish()


def in_a_dictionary_of_sides(case: RankCase, questions: kgtrec.Questions, _: Any) -> Any:
    names = {"both": ["head", "tail"]}.get(case.graph.sides, [case.graph.sides])
    scores: Any = case.source()
    if case.per_instance:
        parts = zip(names, np.split(scores, len(names)), strict=True)
        scores = dict(sorted(parts, reverse=True))
    return kgtrec.rank(scores, questions, **case.options())


def in_any_order(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """Rows as a distributed sampler gives them: shuffled, padded with repeats, sent or saved."""
    scores, n_rankers = case.source(), data.draw(st.integers(1, 3))
    order = np.array(data.draw(st.permutations(range(len(scores)))))
    padded, size = np.append(order, order[: -len(order) % n_rankers]), data.draw(st.integers(1, 9))
    rankers = []
    for number in range(n_rankers):
        rankers.append(kgtrec.Ranker(questions, duplicates="ignore", **case.options()))
        mine = padded[number::n_rankers]
        for start in range(0, len(mine), size):
            some = mine[start : start + size]
            rankers[-1].update(some, scores[some])
    for other in rankers[1:]:
        if not other.n_scored:
            continue
        how = data.draw(st.sampled_from(["ranker", "sent", "saved"]))
        if how == "saved":
            with tempfile.TemporaryDirectory() as folder:
                other.save(f"{folder}/rows")
                rankers[0].merge(f"{folder}/rows")
        else:
            rankers[0].merge(other if how == "ranker" else other.partial())
    return rankers[0].finish()


def in_ranges(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """Range by range of the entities, in any order; one row per question."""
    if case.per_instance:
        return in_one_pass(case, questions, data)
    options, scores = case.options(), case.source()
    ranges = data.draw(st.permutations(spans(data, case.graph.n_entities)))
    answers = kgtrec.AnswerScores(questions, higher_is_better=case.higher_is_better)
    for low, high in ranges:
        one = kgtrec.AnswerScores(questions, higher_is_better=case.higher_is_better)
        one.fill(scores[:, low:high], low)
        answers.merge(one)
    own = {"run_depth": case.depth, "nan": options["nan"]}
    parts = [kgtrec.rank_range(scores[:, low:high], answers, low, **own) for low, high in ranges]
    return kgtrec.merge_ranges(parts, answers)


def spans(data: Any, n: int) -> list[tuple[int, int]]:
    """Consecutive ranges of n things."""
    cuts = data.draw(st.sets(st.integers(1, n - 1), max_size=5)) if n > 1 else set()
    return list(pairwise([0, *sorted(cuts), n]))


WAYS: dict[str, Callable[..., Any]] = {
    "chunks": in_chunks,
    "batches": in_batches,
    "columns": in_columns_of_its_own,
    "sides": in_a_dictionary_of_sides,
    "any order": in_any_order,
    "ranges": in_ranges,
}


def check(case: RankCase, rank: Callable[..., Any] = in_one_pass, data: Any = None) -> None:
    """The ranking agrees with the oracle on a case, errors included."""
    questions = case.graph.questions()
    try:
        due = case.outcome()
    except oracle.NanScore:
        with pytest.raises(InputError, match=r"(?i)nan") as caught:
            rank(case, questions, data)
        said = str(caught.value)
        assert any(
            f"question {name} (" in said and f"entity {label!r}" in said
            for name, label in nan_places(case)
        )
        return
    before = case.scores.tobytes()
    ranks, run = rank(case, questions, data)
    assert case.scores.tobytes() == before
    assert oracle.rank_differences(ranks, due) == []
    assert oracle.run_differences(run, due) == []
    counts = [prefix + name for prefix in ("", "macro_") for name in oracle.COUNT_COLUMNS]
    for name in ("triple", "question", "side", "relation", "given", "answer", *counts):
        assert getattr(ranks, name).dtype == np.int64, name
    assert (ranks.rank().dtype, ranks.answer_nan.dtype) == (np.float64, bool)
    popularity = oracle.entity_popularity(case.graph.splits)
    assert ranks.answer_popularity.tolist() == [popularity[answer] for answer in ranks.answer]
    asked = [r for _, r, _ in oracle.distinct(case.graph.splits[case.graph.evaluated])]
    assert ranks.relation_popularity.tolist() == [asked.count(r) for r in ranks.relation]


def nan_places(case: RankCase) -> set[tuple[str, str]]:
    """Names of questions, and labels of their candidates whose score is NaN."""
    places = set()
    questions, instances = case.graph.oracle_questions()
    labels = case.graph.entity_labels()
    for instance in instances:
        question = questions[instance.question]
        row = case.scores[instance.row if case.per_instance else instance.question]
        for entity in oracle.macro_candidates(question, case.graph.n_entities):
            if np.isnan(row[entity]):
                places.add((question.name, labels[entity]))
    return places


@pytest.mark.parametrize("way", WAYS)
@given(case=rank_cases(), data=st.data())
def test_every_way_to_rank_gives_what_the_oracle_gives(way: str, case: RankCase, data: Any) -> None:
    check(case, WAYS[way], data)


@given(rank_cases())
@examples(2)
@example(rank_case(graph_case(n_entities=2), [[0, 0], [0, 0]]))
@example(rank_case(graph_case(splits={"test": [(0, 0, 0)]}, n_entities=1), [[7], [7]]))
@example(rank_case(graph_case(), [[0, 1, np.nan], [0, 1, 2]]))
@example(rank_case(graph_case(), [[0, 1, np.nan], [0, np.nan, 2]], nan="worst"))
def test_ranks_and_runs_are_those_of_the_oracle(case):
    check(case)


def test_counts_worked_by_hand():
    """The oracle may err as kgtrec does, but not on this."""
    graph = graph_case(
        n_entities=5,
        splits={
            "train": [(0, 0, 1)],
            "valid": [(0, 0, 2)],
            "test": [(0, 0, 3), (0, 0, 4), (0, 0, 3), (2, 0, 3)],
        },
        extra_known=((2, 0, 1), (2, 0, 3)),
    )
    scores = [
        [1, 2, 1, 1, 0.5],  # (?, 0, 3)
        [0, 0, 0, 0, -0.0],  # (?, 0, 4)
        [5, 9, 9, 5, 7],  # (0, 0, ?)
        [np.inf, 3, -np.inf, -np.inf, 0],  # (2, 0, ?)
    ]
    case = rank_case(graph, scores, depth=2)
    check(case)
    ranks, run = in_one_pass(case, graph.questions(), None)
    names = [prefix + name for prefix in ("", "macro_") for name in oracle.COUNT_COLUMNS]
    assert np.stack([ranks.answer, *(getattr(ranks, name) for name in names)], 1).tolist() == [
        [0, 1, 1, 1, 4, 1, 2, 2, 5],
        [2, 1, 1, 1, 4, 1, 2, 1, 5],
        [0, 0, 4, 4, 5, 0, 4, 4, 5],
        [3, 0, 1, 0, 2, 1, 1, 0, 3],
        [4, 0, 0, 0, 2, 0, 0, 0, 3],
        [3, 2, 1, 0, 4, 2, 1, 0, 4],
    ]
    assert run.documents.tolist() == [1, 3, 4, 3, 4, 3, 0, 4]


@pytest.mark.parametrize("first", [[np.nan, 0], [0, np.nan], [np.nan, np.nan], [0, 1]], ids=str)
@pytest.mark.parametrize("own", [[np.nan, 0], [0, np.nan], [np.nan, np.nan], [0, 1]], ids=str)
@pytest.mark.parametrize("nan", ["error", "worst"])
def test_nan_in_the_first_or_in_the_own_row(nan, own, first):
    """Micro counts use only their own row, macro counts and the run only the first row."""
    graph = graph_case(n_entities=2, splits={"test": [(0, 0, 0), (1, 0, 0)]}, sides="head")
    case = rank_case(graph, [first, own], per_instance=True, nan=nan)
    check(case)
    if nan == "worst":  # the run and the ranks agree on answers without a score
        kgtrec.evaluate(case.source(), graph.questions(), rows="instances", nan="worst")


def test_nan_payload_and_sign_do_not_matter():
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], np.uint32)
    for value in bits.view(np.float32):
        scores = np.array([[0, 1, 2], [0, 1, 2]], np.float32)
        scores[1, 1] = value
        check(rank_case(graph_case(), scores, nan="worst"))
        check(rank_case(graph_case(), scores))
