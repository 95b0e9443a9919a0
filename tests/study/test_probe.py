"""PROBE's weighted means against the papers' formula, instance by instance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_cases import graphs, listed

import kgtrec
from kgtrec import Result
from kgtrec.study.probe import probe_grid
from kgtrec.study.stratified import recount_popularity

exponents = st.sampled_from([-1.0, 0.0, 0.5, 2.0, 10.0])


def evaluated(graph: kgtrec.Graph) -> Result:
    questions = graph.questions("test")
    scores = np.random.default_rng(2).integers(0, 4, (len(questions), graph.n_entities))
    return kgtrec.evaluate(scores.astype(np.float32), questions, progress=False)


def occurrences(triples: list[tuple[int, int, int]], entity: int) -> int:
    return sum((entity == h) + (entity == t) for h, _, t in triples)


@given(graphs(), exponents, exponents, st.sampled_from(["head", "tail", "both"]))
def test_means_are_those_of_the_formula(graph: kgtrec.Graph, b: float, c: float, side: str) -> None:
    train = listed(graph, "train")
    if not train:
        return
    ranks = evaluated(graph).ranks
    every = {x for h, _, t in train for x in (h, t)}
    under = {(r, x): [q for q in train if q[1] == r] for h, r, t in train for x in (h, t)}
    least = min(occurrences(train, x) for x in every) / len(train)
    least_under = min(occurrences(own, x) for (_, x), own in under.items()) / len(train)
    total, weights = 0.0, 0.0
    for i in range(len(ranks)):
        if side != "both" and ranks.side[i] != ["head", "tail"].index(side):
            continue
        x, r = int(ranks.answer[i]), int(ranks.relation[i])
        share = occurrences(train, x) / len(train)
        share_under = occurrences([q for q in train if q[1] == r], x) / len(train)
        weight = (least + share) ** -b * (least_under + share_under) ** -c
        n, rank = int(ranks.candidates[i]), float(ranks.rank()[i])
        score = 1.0 if n == 1 else (1 / rank - 1 / n) / (1 - 1 / n)
        total, weights = total + weight * score, weights + weight
    grid = probe_grid(ranks, graph, [0, b], [c, 0], ["mrr", "probe@1"], side=side)
    assert grid.values[1, 1, 0] == pytest.approx(total / weights, rel=1e-9)
    assert grid.values[0, 0, 1] == pytest.approx(Result(ranks)[f"{side}.micro.mrr"], rel=1e-12)


def test_counts_of_train_only() -> None:
    """The popularity that stratified metrics use has no part in it."""
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1], [0, 1, 2]], test=[[0, 0, 2], [1, 0, 0]])
    ranks = evaluated(graph).ranks
    one, other = (
        probe_grid(own, graph, 1, 1).values
        for own in (ranks, recount_popularity(ranks, graph, "test"))
    )
    assert np.array_equal(one, other)
    assert probe_grid(ranks, graph, 1, 1).table().names == 2
