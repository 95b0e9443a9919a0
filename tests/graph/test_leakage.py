"""What train gives away of test, against sets; and what is known of the benchmark graphs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_cases import N_RELATIONS, Triples, graphs, listed, wn18

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.leakage import find_leaks


def mirrors_of(known: Triples, enough: float, fewest: int) -> dict[tuple[int, int, bool], float]:
    """(relation, other, turned) -> share, without triples from an entity to itself."""
    pairs = {r: {(h, t) for h, q, t in known if q == r and h != t} for r in range(N_RELATIONS)}
    shares = {}
    for relation, own in pairs.items():
        for other, theirs in pairs.items():
            for turned in (False, True):
                if len(own) < fewest or (relation == other and not turned):
                    continue
                expected = {(t, h) for h, t in own} if turned else own
                share = len(expected & theirs) / len(own)
                if share >= enough:
                    shares[relation, other, turned] = share
    return shares


@given(graphs(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 4))
def test_by_sets(graph: kgtrec.Graph, enough: float, fewest: int) -> None:
    known, evaluated = listed(graph, "train", "valid"), listed(graph, "test")
    leaks = find_leaks(graph, "test", "train,valid", enough, fewest)
    # A triple may stand in both known splits: it is one fact.
    facts = set(known)
    linked = {(h, t): {r for a, r, b in facts if (a, b) == (h, t)} for h, _, t in facts}
    assert leaks.triples == len(evaluated)
    assert leaks.repeated == sum(triple in facts for triple in evaluated)
    assert leaks.same_pair == sum(bool(linked.get((h, t), set()) - {r}) for h, r, t in evaluated)
    assert leaks.turned_pair == sum((t, h) in linked for h, _, t in evaluated)
    due = mirrors_of(list(facts), enough, fewest)
    assert {(m.relation, m.other, m.turned): m.share for m in leaks.mirrors} == pytest.approx(due)
    rules = set(due) | {(other, relation, turned) for relation, other, turned in due}
    follows = [
        any((r, q, False) in rules for q in linked.get((h, t), ()))
        or any((r, q, True) in rules for q in linked.get((t, h), ()))
        for h, r, t in evaluated
    ]
    assert leaks.mirrored == sum(follows)


def test_kinds_and_tables() -> None:
    pairs = [(i, i + 10) for i in range(10)]
    train = [(h, 0, t) for h, t in pairs] + [(t, 1, h) for h, t in pairs]
    train += [(h, 2, t) for h, t in pairs[:5]] + [(t, 2, h) for h, t in pairs[:5]]
    graph = kgtrec.Graph.from_arrays(
        train=train, test=[[0, 3, 1]], relations=["parent", "child", "near", "none"]
    )
    leaks = find_leaks(graph, fewest=10)
    kinds = {(m.relation, m.other): m.kind for m in leaks.mirrors}
    assert kinds == {(0, 1): "inverse", (1, 0): "inverse", (2, 2): "symmetric"}
    table = leaks.mirror_table(graph).to_dict()
    assert table["parent"]["child"]["inverse"] == {"triples": 10, "percent": 100.0}
    assert find_leaks(graph, fewest=11).mirrors == ()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"split": "valid"}, "no split 'valid'"),
        ({"known": "all"}, "'test' is among the known"),
        ({"enough": 0}, "is not a share"),
        ({"enough": math.nan}, "is not a share"),
    ],
)
def test_wrong_arguments(arguments: dict, hint: str) -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[1, 0, 0]])
    with pytest.raises(UsageError, match=hint):
        find_leaks(graph, **arguments)


@pytest.mark.data
def test_the_benchmarks(shared_data: Path) -> None:
    """WN18 can be answered by turning triples around (Dettmers et al. 2018: 94 %); FB15k-237 was
    cleaned of all pairs that train links."""
    leaky = find_leaks(wn18(shared_data))
    assert round(leaky.turned_pair / leaky.triples, 2) == 0.94
    assert leaky.mirrored / leaky.triples > 0.93
    clean = find_leaks(kgtrec.read_graph(shared_data / "fb15k-237"))
    assert (clean.repeated, clean.same_pair, clean.turned_pair, clean.mirrored) == (0, 0, 0, 0)
    # What is left in WN18RR are its symmetric relations.
    half = find_leaks(kgtrec.read_graph(shared_data / "wn18rr"))
    assert {m.kind for m in half.mirrors} == {"symmetric"}
    assert half.mirrored / half.triples == pytest.approx(0.336, abs=0.001)
