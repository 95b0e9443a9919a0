"""Defects of other evaluators that no comparison with an oracle would show.

They come from tools in use: each defect has changed published numbers.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kgtrec


def graph_of(n_entities: int, test, **splits) -> kgtrec.Graph:
    """A graph with one relation or more."""
    arrays = {name: np.array(triples).reshape(-1, 3) for name, triples in splits.items()}
    return kgtrec.Graph.from_arrays(test=np.array(test), n_entities=n_entities, **arrays)


# -- Number types ------------------------------------------------------------------------------


@pytest.mark.slow
def test_entity_ids_beyond_two_to_the_24():
    """Ids passed through float32 turn 16777217 into 16777216."""
    big = 2**24
    test = [(big + 1, 0, big + 3), (big - 1, 0, big + 1)]
    graph = graph_of(big + 5, test, train=[(big + 1, 0, big + 2)])
    questions = graph.questions(sides="tail")
    assert questions.entity.tolist() == [big + 1, big - 1]
    assert questions.answers[0].tolist() == [big + 3]
    assert questions.known[0].tolist() == [big + 2, big + 3]
    scores = np.zeros((1, big + 5), np.float32)
    scores[0, [big, big + 1, big + 2, big + 3]] = [1, 5, 9, 3]
    ranks, run = kgtrec.rank(iter([scores, scores]), questions, run_depth=2, threads=1)
    assert ranks.answer.tolist() == [big + 3, big + 1]
    assert ranks.greater.tolist() == [1, 1]  # of the first: big + 1, because big + 2 is known
    assert ranks.candidates.tolist() == [big + 4, big + 5]
    assert run.documents.tolist() == [big + 1, big + 3, big + 2, big + 1]


# -- Ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_answer_and_candidates_are_scored_by_the_same_arithmetic(metric):
    """An entity with the answer's embedding ties with it, at any place in the matrix.

    Scoring the answer alone (a dot product) and the candidates together (a matrix product) rounds
    differently, and ties vanish or turn into wins.
    """
    n_entities = 203
    copies = [0, 1, 15, 16, 63, 64, 100, 127, 128, 201, 202]
    test = [(number, 0, copy) for number, copy in enumerate(copies)]
    questions = graph_of(n_entities, test).questions(sides="tail")
    for dim, dtype in itertools.product((1, 7, 64, 100, 257), (np.float32, np.float64)):
        rng = np.random.default_rng(dim)
        entities = rng.normal(size=(n_entities, dim)).astype(dtype)
        entities[copies] = entities[0]
        queries = rng.normal(size=(len(copies), dim)).astype(dtype)
        ranks, _ = kgtrec.rank(kgtrec.Factors(queries, entities, metric=metric), questions)
        assert ranks.equal.tolist() == [len(copies) - 1] * len(copies)
