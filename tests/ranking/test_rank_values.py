"""Ranks by each convention, counted out by hand and by sorting."""

from __future__ import annotations

import numpy as np
import pytest

import kgtrec

# Scores of entities 0 to 7 for the one question; the answer is entity 3, unfiltered:
# two score higher (0, 1), three tie with it (2, 5, 6), two are below (4, 7).
SCORES = [9, 8, 5, 5, 1, 5, 5, 0]
DUE = {"optimistic": 3.0, "realistic": 4.5, "pessimistic": 6.0}


@pytest.fixture(scope="module")
def ranks() -> kgtrec.Ranks:
    graph = kgtrec.Graph.from_arrays(
        train=[[0, 0, 1]], test=[[0, 0, 3]], n_entities=8, n_relations=1
    )
    questions = graph.questions(sides="tail", filter="raw")
    return kgtrec.rank(np.array([SCORES], dtype=np.float32), questions)[0]


def test_ranks_by_hand(ranks: kgtrec.Ranks) -> None:
    for kind, due in DUE.items():
        assert ranks.rank(kind).tolist() == [due]
        assert ranks.macro_rank(kind).tolist() == [due]
    # trec_eval takes equal scores in descending order of names: 6 and 5 stand before 3.
    assert ranks.rank("ordinal").tolist() == [5.0]
    assert ranks.macro_rank("ordinal").tolist() == [5.0]


def test_a_first_place_is_rank_one() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 2]])
    scores = np.array([[0, 1, 2]], dtype=np.float32)
    ranks, _ = kgtrec.rank(scores, graph.questions(sides="tail"))
    for kind in ("optimistic", "realistic", "pessimistic", "ordinal"):
        assert ranks.rank(kind).tolist() == [1.0]
        assert ranks.macro_rank(kind).tolist() == [1.0]


def test_every_rank_is_a_place_in_some_sorted_list() -> None:
    """The answer sorted before, after, and among those that score the same."""
    rng = np.random.default_rng(0)
    triples = rng.integers(0, (12, 2, 12), (40, 3))
    questions = kgtrec.Graph.from_arrays(train=triples, test=triples[:25]).questions(filter="raw")
    scores = rng.integers(0, 4, (len(questions), 12)).astype(np.float64)
    ranks, _ = kgtrec.rank(scores, questions)
    for row, (question, answer) in enumerate(zip(ranks.question, ranks.answer, strict=True)):
        line = scores[question].tolist()
        others = [score for entity, score in enumerate(line) if entity != answer]
        first = 1 + sorted([*others, line[answer]], reverse=True).index(line[answer])
        last = 12 - sorted([*others, line[answer]]).index(line[answer])
        assert ranks.rank("optimistic")[row] == first
        assert ranks.rank("pessimistic")[row] == last
        assert ranks.rank("realistic")[row] == (first + last) / 2
        names = sorted(range(12), key=lambda e: (line[e], f"{e}".encode()), reverse=True)
        assert ranks.rank("ordinal")[row] == 1 + names.index(answer)
