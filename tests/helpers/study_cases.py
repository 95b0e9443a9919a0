"""Small random graphs for studies, slow definitions of their statistics, and real graphs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import kgtrec
from kgtrec.graph.statistics.relations import UNSEEN

Triples = list[tuple[int, int, int]]

N_ENTITIES, N_RELATIONS = 7, 4


def triples(min_size: int = 0) -> st.SearchStrategy[Triples]:
    """Distinct triples, including some with equal head and tail."""
    entity = st.integers(0, N_ENTITIES - 1)
    triple = st.tuples(entity, st.integers(0, N_RELATIONS - 1), entity)
    return st.lists(triple, min_size=min_size, max_size=25, unique=True)


@st.composite
def graphs(draw: st.DrawFn) -> kgtrec.Graph:
    """Train, valid and test; only test always has a triple."""
    parts = [draw(triples()), draw(triples()), draw(triples(min_size=1))]
    return kgtrec.Graph.from_arrays(
        *(np.array(part, np.int64).reshape(-1, 3) for part in parts),
        n_entities=N_ENTITIES,
        n_relations=N_RELATIONS,
    )


def listed(graph: kgtrec.Graph, *splits: str) -> Triples:
    """The triples of splits (none named: of all), as tuples."""
    names = splits or tuple(graph.splits)
    return [tuple(row) for name in names for row in graph.splits[name].tolist()]


def wn18(shared_data: Path) -> kgtrec.Graph:
    """WN18, whose lines are head, tail, relation under a count."""
    parts = {
        name: np.loadtxt(shared_data / "wn18" / f"{name}.txt", dtype=int, skiprows=1)[:, [0, 2, 1]]
        for name in ("train", "valid", "test")
    }
    return kgtrec.Graph.from_arrays(**parts)


def category(triples: list[tuple[int, int]], threshold: float) -> str:
    """From the (head, tail) pairs of one relation, head by head and tail by tail."""
    if not triples:
        return UNSEEN
    heads, tails = {h for h, _ in triples}, {t for _, t in triples}
    tails_each = sum(len([t for h, t in triples if h == entity]) for entity in heads) / len(heads)
    heads_each = sum(len([h for h, t in triples if t == entity]) for entity in tails) / len(tails)
    return f"{'N' if heads_each >= threshold else 1}-{'N' if tails_each >= threshold else 1}"


def percentile(counts: list[int], percent: float) -> float:
    """Linear between the two order statistics around the place."""
    ordered = sorted(counts)
    index = (len(ordered) - 1) * percent / 100
    low = math.floor(index)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (index - low)
