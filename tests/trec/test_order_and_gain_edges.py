"""Edges of what runs are ordered by and of gains, where other tests' numbers let errors pass."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from trec_oracle import measures as slow_measures

from kgtrec import trec


@pytest.mark.parametrize("names", list(itertools.permutations(["a", "ab", "b"])))
@pytest.mark.parametrize("scores", [(1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 2, 3)])
def test_a_run_is_written_by_score_then_by_name_descending(
    names: tuple[str, ...], scores: tuple[int, ...], tmp_path: Path
) -> None:
    """With ties and without, in two queries, whatever the order in which they are given."""
    documents = {name: float(score) for name, score in zip(names, scores, strict=True)}
    trec.write_run({"q1": documents, "q2": dict(reversed(documents.items()))}, tmp_path / "run")
    ordered = sorted(documents, key=lambda name: (documents[name], name.encode()), reverse=True)
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert [(line[0], line[2], line[3]) for line in lines] == [
        (query, name, str(rank + 1)) for query in ("q1", "q2") for rank, name in enumerate(ordered)
    ]


@pytest.mark.parametrize("compat", [9, 10])
@pytest.mark.parametrize(
    ("shown", "missed"),
    [
        ([1], []),  # ideal gain and its total are 1
        ([None, 1], []),
        ([None, None, 2, 1], []),
        ([1, None, 3], [2, 2]),
        ([0, 1], [1]),
    ],
)
def test_gains_of_small_lists(shown: list[int | None], missed: list[int], compat: int) -> None:
    run = {"q": {f"d{i}": float(-i) for i in range(len(shown))}}
    qrels = {"q": {f"d{i}": r for i, r in enumerate(shown) if r is not None}}
    qrels["q"] |= {f"m{i}": r for i, r in enumerate(missed)}
    names = ["G", "ndcg", "ndcg_rel", "Rndcg", "ndcg_cut.1,2,3"]
    due = slow_measures(shown, [*qrels["q"].values()], 1, compat)
    got = trec.evaluate(qrels, run, names, compat=compat)["q"]
    for name in ("G", "ndcg", "ndcg_rel", "Rndcg", "ndcg_cut_1", "ndcg_cut_2", "ndcg_cut_3"):
        assert math.isclose(got[name], due[name], rel_tol=1e-12, abs_tol=1e-12), name
