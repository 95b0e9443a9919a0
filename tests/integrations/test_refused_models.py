"""Models that kgtrec refuses by name: its advice, followed, gives the ranks of the model's formula.

Each formula is written out here triple by triple, from the program's source code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import write
from question_cases import random_questions

import kgtrec
from kgtrec import guides
from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.scores.formulas import REFUSED, check_model

QUESTIONS = random_questions(np.random.default_rng(11))
Score = Callable[[int, int, int], float]


def advice(model: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_model(model)
    return str(caught.value)


def run_guide(name: str, words: str) -> dict[str, Any]:
    """Run the block of a guide that contains the words; returns all names afterwards."""
    text = guides.path(name).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    (block,) = (block for block in blocks if words in block)
    rng, graph = np.random.default_rng(3), QUESTIONS.graph
    names: dict[str, Any] = {
        "np": np,
        "kgtrec": kgtrec,
        "graph": graph,
        "questions": QUESTIONS,
        "rng": rng,
        "dim": 8,
        "entity": rng.normal(size=(graph.n_entities, 8)),
        "relation": rng.normal(size=(graph.n_relations, 8)),
    }
    exec(block, names)
    return names


def assert_ranks(ranks: kgtrec.Ranks, score: Score) -> None:
    """The ranks are those of a score of head, relation and tail; random scores do not tie."""
    rows = []
    for side, e, r in zip(QUESTIONS.side, QUESTIONS.entity, QUESTIONS.relation, strict=True):
        pairs = [(e, x) if side else (x, e) for x in range(QUESTIONS.n_entities)]
        rows.append([score(h, r, t) for h, t in pairs])
    due = kgtrec.rank(np.array(rows), QUESTIONS)[0]
    np.testing.assert_array_equal(ranks.greater, due.greater)
    np.testing.assert_array_equal(ranks.equal, due.equal)


def test_transh_is_scored_by_the_lines_of_the_guide() -> None:
    assert "as `kgtrec guide training-loop` does with TransH" in advice("TransR")
    names = run_guide("training-loop", "normal[r]")
    entity, relation, normal = names["entity"], names["relation"], names["normal"]

    def score(h: int, r: int, t: int) -> float:
        h_plane, t_plane = (entity[e] - normal[r] @ entity[e] * normal[r] for e in (h, t))
        return -math.dist(h_plane + relation[r], t_plane)

    assert_ranks(names["ranks"], score)


def test_vectors_of_a_network_are_scored_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = advice("conve")
    assert "Factors(queries, entities, bias), or an .npz with these three arrays" in said
    facts = {"train": "a\tr\tb\nb\tr\tc\n", "valid": "a\tr\tc\n", "test": "c\tr\ta\n"}
    for split, text in facts.items():
        write(tmp_path / f"g/{split}.txt", text)
    entities, bias = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([0.5, 2.0, 0.0])
    queries = np.array([[0.0, 1.0], [1.0, 0.2]])  # of (?, r, a) and of (c, r, ?)
    scores = queries @ entities.T + bias
    np.savez("v.npz", queries=queries, entities=entities, bias=bias)
    words = ["rank", "--graph", "g", "--scores", "v.npz", "-o", "r.parquet"]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None, done.exception
    questions = kgtrec.read_graph("g").questions()
    np.testing.assert_array_equal(
        kgtrec.Ranks.load("r.parquet").greater, kgtrec.rank(scores, questions)[0].greater
    )


@pytest.mark.parametrize("model", REFUSED)
def test_every_refusal_says_what_to_do(model: str) -> None:
    said = advice(model)
    assert REFUSED[model].remedy in said
    for guide in re.findall(r"`kgtrec guide ([\w-]+)`", said):
        assert guide in guides.ORDER
