"""Several filters in one pass: each the ranks of a pass of its own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from brute_force import assert_counts, expected_counts
from question_cases import N, R, run_lists, some_scores

import kgtrec
from kgtrec.errors import FilterWarning, UsageError

FILTERS = ["raw", "valid", "test", ("train", "test")]
NAMES = ["raw", "valid", "test", "train+test"]
SPLITS = {"raw": (), "valid": ("train", "valid"), "test": ("train", "valid", "test"),
          "train+test": ("train", "test")}  # fmt: skip


@pytest.fixture
def graph() -> kgtrec.Graph:
    rng = np.random.default_rng(3)
    splits = {s: rng.integers(0, (N, R, N), (70, 3)) for s in ("train", "valid", "test")}
    return kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=R)


class Once:
    """Chunks of scores, with a count of those that were read."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores, self.read = scores, 0

    def __iter__(self):
        for start in range(0, len(self.scores), 9):
            self.read += 1
            yield self.scores[start : start + 9]


def known_by_hand(graph: kgtrec.Graph, side: int, entity: int, relation: int, splits) -> set[int]:
    rows = [row for split in splits for row in graph.splits[split].tolist()]
    if side == 0:
        return {h for h, r, t in rows if (r, t) == (relation, entity)}
    return {t for h, r, t in rows if (h, r) == (entity, relation)}


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("options", [{}, {"sides": "tail"}, {"entities": range(N - 4)}])
def test_each_is_that_of_a_pass_of_its_own(graph, rows: str, options: dict[str, Any]) -> None:
    several = graph.questions_by_filter(FILTERS, **options)
    assert list(several) == NAMES
    n_rows = kgtrec.Ranker(several["raw"], rows=rows).n_rows
    scores = Once(some_scores(np.random.default_rng(4), (n_rows, N)))
    ranked = kgtrec.rank(scores, several, 5, rows=rows)
    assert scores.read == -(-n_rows // 9)
    assert list(ranked) == NAMES
    for name, (ranks, run) in ranked.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FilterWarning)
            own = graph.questions(filter=FILTERS[NAMES.index(name)], **options)
        due, due_run = kgtrec.rank(scores.scores, own, 5, rows=rows)
        for column in kgtrec.Ranks.__annotations__:
            np.testing.assert_array_equal(getattr(ranks, column), getattr(due, column), column)
        assert run_lists(run) == run_lists(due_run)
        assert ranks.manifest == due.manifest
        assert ranks.manifest["questions"]["filter_splits"] == list(SPLITS[name])
    assert len({ranks.manifest["questions"]["questions_hash"] for ranks, _ in ranked.values()}) == 4


def test_what_is_known_by_hand(graph) -> None:
    several = graph.questions_by_filter(FILTERS)
    scores = some_scores(np.random.default_rng(5), (len(several["raw"]), N))
    for name, (ranks, _) in kgtrec.rank(scores, several).items():
        questions = several[name]
        known = [
            known_by_hand(graph, *question, SPLITS[name])
            for question in zip(
                questions.side.tolist(),
                questions.entity.tolist(),
                questions.relation.tolist(),
                strict=True,
            )
        ]
        assert [set(ids.tolist()) for ids in questions.known] == known
        assert_counts(ranks, expected_counts(questions, scores))


def test_factors_and_results(graph) -> None:
    several = graph.questions_by_filter(("raw", "test"))
    rng = np.random.default_rng(6)
    queries, table = rng.normal(size=(len(several["raw"]), 4)), rng.normal(size=(N, 4))
    factors = kgtrec.Factors(queries, table)
    results = kgtrec.evaluate(factors, several)
    for name, result in results.items():
        assert result.to_dict() == kgtrec.evaluate(factors, several[name]).to_dict()
    key = "both.realistic.micro.mrr"
    assert results["raw"][key] < results["test"][key]


def test_restricted_and_renumbered(graph) -> None:
    order = np.random.default_rng(7).permutation(N)
    some = np.flatnonzero(order < 17)
    several = {
        name: each.restrict(entities=some, outside="worst")
        for name, each in graph.questions_by_filter(columns=order).items()
    }
    scores = some_scores(np.random.default_rng(8), (len(several["raw"]), N))
    for name, (ranks, _) in kgtrec.rank(scores[:, order], several).items():
        lists = [set(some.tolist())] * len(scores)
        assert_counts(ranks, expected_counts(several[name], scores, lists))


def test_what_cannot_be_ranked_together(graph) -> None:
    test, scores = graph.questions(), np.zeros((1, N))
    other = kgtrec.Graph.from_arrays(test=graph.splits["test"][::-1], n_entities=N, n_relations=R)
    for odd in (
        graph.questions("valid", filter="test"),
        graph.questions(sides="tail"),
        graph.questions(columns=np.arange(N)[::-1]),
        other.questions(),
        test.separate(),
    ):
        with pytest.raises(UsageError, match="'one' and 'two' do not ask the same"):
            kgtrec.rank(scores, {"one": test, "two": odd})
    with pytest.raises(UsageError, match="holds no questions"):
        kgtrec.rank(scores, {})
    with pytest.raises(UsageError, match="'raw' stands twice"):
        graph.questions_by_filter(["raw", "test", "raw"])
    with pytest.raises(UsageError, match="names no filter"):
        graph.questions_by_filter([])
    with pytest.raises(UsageError, match="filter='rew' is unknown"):
        graph.questions_by_filter("rew")
    ranks, _ = kgtrec.rank(np.zeros((len(test), N)), test)
    with pytest.raises(UsageError, match="Ranks have one filter"):
        kgtrec.evaluate(ranks, {"test": test})
