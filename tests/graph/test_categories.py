"""Relation categories: by hand, and the published lists of FB15k-237."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statistics_oracle import category
from study_cases import N_RELATIONS, graphs, listed

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.relations import CATEGORIES, UNSEEN, relation_categories

PUBLISHED = {
    "one_to_one": "1-1",
    "one_to_many": "1-N",
    "many_to_one": "N-1",
    "many_to_many": "N-N",
}


@given(graphs(), st.sampled_from(["train", "all", "train,valid"]), st.sampled_from([1.5, 1.2, 3]))
def test_by_hand(graph: kgtrec.Graph, splits: str, threshold: float) -> None:
    categories = relation_categories(graph, splits, threshold)
    # A triple of several splits is one fact.
    triples = set(listed(graph, *(() if splits == "all" else splits.split(","))))
    due = [
        category([(h, t) for h, q, t in triples if q == r], threshold) for r in range(N_RELATIONS)
    ]
    assert [categories[r] for r in range(N_RELATIONS)] == due
    for name in (*CATEGORIES, UNSEEN):
        assert categories.members(name).tolist() == [r for r, own in enumerate(due) if own == name]
    table = categories.table(graph).to_dict()
    for name, row in table.items():
        assert row["relations"] == due.count(name)
        for split in graph.splits:
            assert row[split] == sum(due[r] == name for _, r, _ in listed(graph, split))


def test_exactly_one_and_a_half_is_many() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 2], [0, 0, 3], [1, 0, 4]])
    categories = relation_categories(graph)
    assert (categories.tails_per_head[0], categories.heads_per_tail[0]) == (1.5, 1.0)
    assert categories[0] == "1-N"
    assert categories.listing(graph).rows == [("0", "1-N", 1.5, 1.0)]


def test_unseen_relations() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 1, 1]])
    categories = relation_categories(graph)
    assert categories[1] == UNSEEN
    assert math.isnan(categories.tails_per_head[1])
    assert UNSEEN in categories.table(graph).to_dict()
    assert UNSEEN not in relation_categories(graph, "all").table(graph).to_dict()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"splits": "valid"}, "no split 'valid'"),
        ({"threshold": 1}, "not above 1"),
        ({"threshold": math.nan}, "not above 1"),
    ],
)
def test_wrong_arguments(arguments: dict, hint: str) -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]])
    with pytest.raises(UsageError, match=hint):
        relation_categories(graph, **arguments)
    with pytest.raises(UsageError, match="did you mean '1-N'"):
        relation_categories(graph).members("1-n")


@pytest.mark.data
def test_the_published_lists(shared_data: Path) -> None:
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    categories = relation_categories(graph)
    lists = shared_data / "kgc-sparsity" / "data" / "FB-Test-O" / "type_information"
    seen = 0
    for name, kind in PUBLISHED.items():
        labels = {line.strip() for line in (lists / f"{name}.txt").read_text().splitlines()}
        assert {graph.relations[r] for r in categories.members(kind).tolist()} == labels
        seen += len(labels)
    assert seen == 237


@pytest.mark.data
def test_openke_agrees_but_for_five_relations(shared_data: Path) -> None:
    """OpenKE calls five N-1 relations n-n."""
    folder = shared_data / "openke-fb15k237"
    categories = relation_categories(kgtrec.read_graph(shared_data / "fb15k-237"))
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    labels = dict(
        line.split("\t")[::-1]
        for line in (folder / "relation2id.txt").read_text().split("\n")[1:-1]
    )
    differing = []
    for name in ("1-1", "1-n", "n-1", "n-n"):
        rows = np.loadtxt(folder / f"{name}.txt", dtype=int, skiprows=1)
        for relation in np.unique(rows[:, 2]).tolist():
            own = categories[graph.relations.index(labels[str(relation)])]
            if own != name.upper():
                differing.append((own, name))
    assert differing == [("N-1", "n-n")] * 5
