"""Ranks at every depth of a pool from one ranking, against rankings of every depth's split."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli import cli
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.study.pooling.depths import curves_of_ranks, instance_depths, ranks_at_depth
from kgtrec.study.pooling.pool import Pool, write_pool
from kgtrec.study.pooling.seeds import replaced_split

N, R, DEEPEST = 7, 2, 3
METRICS = ("mrr", "hits@2", "mr", "expected.mrr", "macro.mrr", "macro.hits@1", "map", "ordinal.mrr",
           "amri", "stratified.mrr(0.5,0.5)")  # fmt: skip
COLUMNS = ("greater", "equal", "tied_ahead", "candidates", "macro_greater", "macro_equal",
           "macro_tied_ahead", "macro_candidates", "answer_popularity",
           "relation_popularity")  # fmt: skip


def evaluated(graph: kgtrec.Graph, scores: np.ndarray) -> kgtrec.Result:
    """Scores (side, given, relation, entities) of the graph's questions."""
    questions = graph.questions("test")
    rows = scores[questions.side, questions.entity, questions.relation]
    return kgtrec.evaluate(rows, questions, progress=False)


@st.composite
def cases(draw: st.DrawFn) -> tuple[kgtrec.Graph, np.ndarray, np.ndarray]:
    """A graph with a complete test split, the depth of each triple, and scores with ties."""
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.unique(rng.integers(0, (N, R, N), (draw(st.integers(4, 60)), 3)),
                                     axis=0))  # fmt: skip
    n = max(2, len(rows) // 2)
    graph = kgtrec.Graph.from_arrays(
        train=rows[n:], test=rows[:n], entities=[f"e{i}" for i in range(N)],
        relations=[f"r{i}" for i in range(R)],
    )  # fmt: skip
    depths = rng.integers(0, DEEPEST + 1, n)
    depths[0] = 0
    scores = rng.integers(0, draw(st.sampled_from([2, 4, 99])), (2, N, R, N)).astype(np.float32)
    return graph, depths, scores


def pooled(graph: kgtrec.Graph, depths: np.ndarray) -> Pool:
    deep = np.flatnonzero(depths)
    triples = graph.split("test")[deep].astype(np.int64)
    asked = np.tile([True, False], (len(deep), 1))
    return Pool(graph, ("one",), DEEPEST, triples, depths[deep][:, None], asked, ["q"] * len(deep))


@given(cases())
def test_ranks_are_those_of_ranking_anew(case: tuple[kgtrec.Graph, np.ndarray, np.ndarray]) -> None:
    graph, depths, scores = case
    ranks = evaluated(graph, scores).ranks
    if not depths.any():
        return
    own = instance_depths(ranks, pooled(graph, depths))
    assert own.tolist() == depths[ranks.triple].tolist()
    whole = graph.split("test")
    for depth in range(DEEPEST + 1):
        held = whole[depths <= depth]
        due = evaluated(replaced_split(graph, held, "test"), scores)
        ours = ranks_at_depth(ranks, own, depth)
        rows = {tuple(row): i for i, row in enumerate(held.tolist())}
        key = [(rows[tuple(whole[t].tolist())], s) for t, s in
               zip(ours.triple.tolist(), ours.side.tolist(), strict=True)]  # fmt: skip
        theirs = list(zip(due.ranks.triple.tolist(), due.ranks.side.tolist(), strict=True))
        order = [key.index(one) for one in theirs]
        for name in COLUMNS:
            assert getattr(ours, name)[order].tolist() == getattr(due.ranks, name).tolist(), name
        values = kgtrec.Result(ours)
        for metric in METRICS:
            assert values[metric] == pytest.approx(due[metric], abs=1e-12), metric


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    """Three systems, one graph, depths of its test triples."""
    rng = np.random.default_rng(4)
    rows = rng.permutation(np.unique(rng.integers(0, (N, R, N), (60, 3)), axis=0))
    names = {"entities": [f"e{i}" for i in range(N)], "relations": [f"r{i}" for i in range(R)]}
    graph = kgtrec.Graph.from_arrays(train=rows[30:], test=rows[:30], **names)
    depths = rng.integers(0, DEEPEST + 1, 30)
    depths[:2] = 0, DEEPEST
    scores = {name: rng.random((2, N, R, N)).astype(np.float32) for name in "abc"}
    ranks = {name: evaluated(graph, one).ranks for name, one in scores.items()}
    return {"graph": graph, "depths": depths, "scores": scores, "ranks": ranks}


def test_curves_have_the_values_of_every_depth(world: dict[str, Any], tmp_path: Path) -> None:
    graph, depths = world["graph"], world["depths"]
    pool = pooled(graph, depths)
    curves = curves_of_ranks(
        world["ranks"], pool, ["mrr", "macro.mrr"], resampling=Resampling(resamples=100)
    )
    assert (curves.depths, curves.reference) == ((0, 1, 2, 3), 0)
    for depth in curves.depths:
        held = replaced_split(graph, graph.split("test")[depths <= depth], "test")
        for place, name in enumerate(curves.systems):
            due = evaluated(held, world["scores"][name])
            values = [line[depth][place] for line in curves.values]
            assert values == pytest.approx([due["mrr"], due["macro.mrr"]])
    # The command says the same.
    (tmp_path / "graph").mkdir()
    for split, rows in graph.splits.items():
        lines = "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in rows.tolist())
        (tmp_path / "graph" / f"{split}.txt").write_text(lines)
    read = kgtrec.read_graph(tmp_path / "graph", progress=False)
    assert [read.entities[i] for i in range(N)] == [f"e{i}" for i in range(N)]
    write_pool(tmp_path / "pool.tsv", replace(pool, graph=read, questions=["head0"] * len(pool)))
    files = []
    for name, ranks in world["ranks"].items():
        files.append(str(tmp_path / f"{name}.parquet"))
        ranks.save(files[-1])
    words = ["depths", *files, "--pool", tmp_path / "pool.tsv", "--graph", tmp_path / "graph",
             "-m", "mrr", "-m", "macro.mrr", "--resamples", "100", "--format", "json"]  # fmt: skip
    done = CliRunner().invoke(cli, ["compare", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["values"]["both.realistic.micro.mrr"]
    own = list(curves.values[0][2])
    assert list(said["2"].values()) == pytest.approx(own)


def test_what_cannot_be_had(world: dict[str, Any]) -> None:
    graph, ranks = world["graph"], world["ranks"]
    pool = pooled(graph, world["depths"])
    with pytest.raises(UsageError, match="3 or more"):
        curves_of_ranks({"a": ranks["a"]}, pool, ["mrr"])
    elsewhere = replace(pool, triples=np.zeros_like(pool.triples) + graph.split("train")[0])
    with pytest.raises(InputError, match="none of the evaluated triples is in the pool"):
        instance_depths(ranks["a"], elsewhere)
    depths = instance_depths(ranks["a"], pool)
    for questions, rows in (
        (graph.questions("test", filter="raw"), "does not filter"),
        (graph.questions("test", entities=range(N - 1)), "of a part of the triples"),
    ):
        scores = world["scores"]["a"][questions.side, questions.entity, questions.relation]
        other = kgtrec.evaluate(scores, questions, progress=False).ranks
        with pytest.raises(KgtrecError, match=rows):
            ranks_at_depth(other, depths[: len(other)], 1)
