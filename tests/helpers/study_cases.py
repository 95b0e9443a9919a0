"""Small random graphs for studies, and real graphs in unusual formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import kgtrec

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
