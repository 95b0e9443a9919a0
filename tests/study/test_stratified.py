"""Beta curves and grids, of functions of the rank, and counted anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import Case, cases, columns, make_ranks
from study_cases import graphs, listed

import kgtrec
from kgtrec import InputError, Ranks, Result, UsageError
from kgtrec.measures import RANK_TYPES
from kgtrec.study.stratified import beta_curve, beta_grid, betas, recounted


def evaluated(graph: kgtrec.Graph, seed: int = 0, levels: int = 4) -> Result:
    """The test split ranked by random scores with many ties."""
    questions = graph.questions("test")
    scores = np.random.default_rng(seed).integers(0, levels, (len(questions), graph.n_entities))
    return kgtrec.evaluate(scores.astype(np.float32), questions, progress=False)


# --- values ---------------------------------------------------------------------------------------


def test_a_curve_is_a_line_of_the_grid() -> None:
    ranks = evaluated(kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 0, 2], [1, 1, 0]])).ranks
    grid = beta_grid(ranks)
    assert grid.values.shape == (4, 21, 21)
    assert grid.beta_e.tolist() == betas().tolist()
    assert np.array_equal(beta_curve(ranks).values[:, :, 0], grid.values[:, :, 10])
    curve = beta_curve(ranks, "beta_r", at=-1)
    assert np.array_equal(curve.values[:, 0], grid.values[:, 0])
    assert curve.table().to_dict()["-1.0"]["0.3"]["mrr"] == grid["mrr"][0, 13]
    one = beta_curve(ranks, metrics="hits@1", points=[0.25])
    assert one.table().keys == ["beta_e", "beta_r", "hits@1"]


def test_exponents_read_well() -> None:
    assert betas(5).tolist() == [-1, -0.5, 0, 0.5, 1]
    assert [repr(b) for b in betas().tolist()][6:11] == ["-0.4", "-0.3", "-0.2", "-0.1", "0.0"]
    with pytest.raises(UsageError, match="1 points are too few for a curve"):
        betas(1)


@given(cases(), st.sampled_from(sorted(RANK_TYPES)))
def test_any_function_of_the_rank(case: Case, rank_type: str) -> None:
    ranks = make_ranks(columns(case))
    functions = {"mr": lambda r: r, "mrr": lambda r: 1 / r, "hits@3": lambda r: r <= 3}
    how = {"rank_type": rank_type, "side": Result(ranks).sides[-1]}
    values = beta_grid(ranks, [-1, 0.5], [0, 1], functions, **how)
    due = beta_grid(ranks, [-1, 0.5], [0, 1], list(functions), **how)
    np.testing.assert_allclose(values.values, due.values, rtol=1e-12)
    assert values.metrics == due.metrics


def test_a_function_that_no_metric_has() -> None:
    case = Case(3, [(0, 0, 1)], {(0, 1, 0): [1, 1, 1], (1, 0, 0): [2, 0, 1]})
    ranks = make_ranks(columns(case))  # ranks 1-3 for the head, 3 for the tail
    grid = beta_grid(ranks, [0], [0], {"square": lambda r: r**2}, rank_type="expected")
    assert grid["square"] == ((1 + 4 + 9) / 3 + 9) / 2


def test_sampled_candidates_are_said_to_be() -> None:
    ranks = evaluated(kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 0, 2]])).ranks
    assert "sampled" not in beta_curve(ranks).caption()
    ranks.manifest["questions"]["sampled"] = True
    curve = beta_curve(ranks, metrics="mrr")
    assert curve.caption().startswith("sampled candidates, realistic ranks")
    assert curve.table().titles[0] == "sampled beta_e"
    assert curve.table().keys == ["beta_e", "beta_r", "sampled.mrr"]


# --- counted anew ---------------------------------------------------------------------------------


@given(graphs(), st.sampled_from(["train", "test", "train,test", "all"]))
def test_recounted(graph: kgtrec.Graph, splits: str) -> None:
    ranks = evaluated(graph).ranks
    result = recounted(ranks, graph, splits, splits)
    triples = listed(graph, *(() if splits == "all" else splits.split(",")))
    for row in range(len(ranks)):
        answer, relation = int(ranks.answer[row]), int(ranks.relation[row])
        due = sum((answer == h) + (answer == t) for h, _, t in triples)
        assert result.answer_popularity[row] == due
        assert result.relation_popularity[row] == sum(relation == r for _, r, _ in triples)
    assert np.array_equal(result.greater, ranks.greater)


def test_recounted_leaves_what_is_not_asked_for(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1], [1, 0, 2]], test=[[1, 0, 2], [1, 1, 1]])
    ranks = evaluated(graph).ranks
    before = ranks.answer_popularity.copy()
    same = recounted(ranks, graph, "all", "test")
    for name in ("answer_popularity", "relation_popularity"):
        assert np.array_equal(getattr(same, name), getattr(ranks, name))
    other = recounted(ranks, graph, relations="train")
    assert np.array_equal(other.answer_popularity, before)
    assert other.manifest["popularity"] == {"relations": ["train"]}
    assert np.array_equal(ranks.answer_popularity, before)
    assert "popularity" not in ranks.manifest
    # The names survive the file, and come back in messages and captions.
    other.save(tmp_path / "r.parquet")
    back = Ranks.load(tmp_path / "r.parquet")
    with pytest.raises(
        InputError, match=r"1 relations.*popularity 0 in train.*the evaluated split"
    ):
        beta_grid(back, [0], [0, 0.5])
    grid = beta_grid(recounted(back, graph, "train,test", "test"), [0], [0])
    assert grid.counted_on == ("train and test", "test")
    assert "entities counted on train and test, relations on test" in grid.caption()


@pytest.mark.parametrize("sides", ["relation", "qualifier", "both"])
def test_recounted_on_the_default_splits_is_the_default(sides: str) -> None:
    """Relations that are asked for are no entities, and qualifiers hold entities and relations."""
    more: dict = {}
    if sides != "relation":
        offsets, pairs = [0, 1, 2, 4], [[4, 0], [4, 1], [4, 1], [3, 0]]
        more["qualifiers"] = {"train": (offsets, pairs), "test": ([0, 0, 1, 3], pairs[:3])}
    graph = kgtrec.Graph.from_arrays(
        train=[[0, 3, 1], [1, 4, 0], [0, 0, 0]], test=[[0, 0, 1], [0, 1, 1], [1, 4, 1]],
        n_relations=5, **more,
    )  # fmt: skip
    questions = graph.questions(sides=sides, context="qualifiers" if more else None)
    scores = np.zeros((len(questions), questions.n_labels), np.float32)
    ranks = kgtrec.rank(scores, questions)[0]
    same = recounted(ranks, graph, "all", "test")
    assert same.answer_popularity.tolist() == ranks.answer_popularity.tolist()
    assert same.relation_popularity.tolist() == ranks.relation_popularity.tolist()
    assert recounted(ranks, graph, "test").answer_popularity.sum() < same.answer_popularity.sum()


def test_popularity_zero_names_the_split() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 2]])
    ranks = recounted(evaluated(graph).ranks, graph, entities="train")
    with pytest.raises(InputError, match=r"1 answer entities.*popularity 0 in train.*all splits"):
        beta_curve(ranks)
    assert beta_curve(ranks, points=[-1, 0]).values.shape == (4, 2, 1)
    # The keys of a result follow the counts, too.
    with pytest.raises(InputError, match="have popularity 0 in train"):
        Result(ranks)["both.stratified.mrr(0.5,0)"]
