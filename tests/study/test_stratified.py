"""Beta curves and grids, of functions of the rank, and counted anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import Case, cases, columns, make_ranks
from study_cases import graphs, listed

import kgtrec
from kgtrec import Result
from kgtrec.measures import RANK_TYPES
from kgtrec.study.stratified import beta_curve, beta_grid, betas, coverage_note, recount_popularity


def evaluated(graph: kgtrec.Graph, seed: int = 0, levels: int = 4) -> Result:
    """The test split ranked by random scores with many ties."""
    questions = graph.questions("test")
    scores = np.random.default_rng(seed).integers(0, levels, (len(questions), graph.n_entities))
    return kgtrec.evaluate(scores.astype(np.float32), questions, progress=False)


def test_a_curve_is_a_line_of_the_grid() -> None:
    ranks = evaluated(kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 0, 2], [1, 1, 0]])).ranks
    grid = beta_grid(ranks)
    assert grid.values.shape == (4, 21, 21)
    assert grid.beta_e.tolist() == betas().tolist()
    assert np.array_equal(beta_curve(ranks).values[:, :, 0], grid.values[:, :, 10])
    curve = beta_curve(ranks, "beta_r", at=-1)
    assert np.array_equal(curve.values[:, 0], grid.values[:, 0])
    assert curve.table().to_dict()["-1.0"]["0.3"]["mrr"] == grid["mrr"][0, 13]


@given(cases(), st.sampled_from(sorted(RANK_TYPES)))
def test_any_function_of_the_rank(case: Case, rank_type: str) -> None:
    ranks = make_ranks(columns(case))
    functions = {"mr": lambda r: r, "mrr": lambda r: 1 / r, "hits@3": lambda r: r <= 3}
    how = {"rank_type": rank_type, "side": Result(ranks).sides[-1]}
    values = beta_grid(ranks, [-1, 0.5], [0, 1], functions, **how)
    due = beta_grid(ranks, [-1, 0.5], [0, 1], list(functions), **how)
    np.testing.assert_allclose(values.values, due.values, rtol=1e-12)
    assert values.metrics == due.metrics


@given(graphs(), st.sampled_from(["train", "test", "train,test", "all"]))
def test_recounted(graph: kgtrec.Graph, splits: str) -> None:
    ranks = evaluated(graph).ranks
    result = recount_popularity(ranks, graph, splits, splits)
    triples = listed(graph, *(() if splits == "all" else splits.split(",")))
    for row in range(len(ranks)):
        answer, relation = int(ranks.answer[row]), int(ranks.relation[row])
        due = sum((answer == h) + (answer == t) for h, _, t in triples)
        assert result.answer_popularity[row] == due
        assert result.relation_popularity[row] == sum(relation == r for _, r, _ in triples)
    assert np.array_equal(result.greater, ranks.greater)


def test_recounted_leaves_what_is_not_asked_for() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1], [1, 0, 2]], test=[[1, 0, 2], [1, 1, 1]])
    ranks = evaluated(graph).ranks
    before = ranks.answer_popularity.copy()
    other = recount_popularity(ranks, graph, relations="train")
    assert other.manifest["popularity"] == {"relations": ["train"]}
    assert "popularity" not in ranks.manifest
    for one in (ranks, other):
        assert np.array_equal(one.answer_popularity, before)


@pytest.mark.parametrize("sides", ["relation", "qualifier", "both"])
def test_recounted_on_the_default_splits_is_the_default(sides: str) -> None:
    """Relations that are asked for are no entities, and qualifiers hold entities and relations."""
    more: dict = {}
    if sides != "relation":
        offsets, pairs = [0, 1, 2, 4], [[4, 0], [4, 1], [4, 1], [3, 0]]
        more["qualifiers"] = {"train": (offsets, pairs), "test": ([0, 0, 1, 3], pairs[:3])}
    graph = kgtrec.Graph.from_arrays(
        train=[[0, 3, 1], [1, 4, 0], [0, 0, 0]],
        test=[[0, 0, 1], [0, 1, 1], [1, 4, 1]],
        n_relations=5,
        **more,
    )
    questions = graph.questions(sides=sides, context="qualifiers" if more else None)
    scores = np.zeros((len(questions), questions.n_labels), np.float32)
    ranks = kgtrec.rank(scores, questions)[0]
    same = recount_popularity(ranks, graph, "all", "test")
    assert same.answer_popularity.tolist() == ranks.answer_popularity.tolist()
    assert same.relation_popularity.tolist() == ranks.relation_popularity.tolist()
    assert (
        recount_popularity(ranks, graph, "test").answer_popularity.sum()
        < same.answer_popularity.sum()
    )


def test_notes_count_instances_of_relations_without_labels() -> None:
    result = evaluated(kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 0, 2], [1, 1, 0]]))
    result.ranks.relation_labels = None
    note = "1 evaluated relations (2 of 6 instances) have no given triple and are ignored"
    assert coverage_note(result, {"0": 3}) == note
