"""Sides: which column of a fact a question asks for, and which pair of columns it is given.

For a qualifier's value, the facts are those of `GraphData.qualifier_facts`: a statement stands
where others have their head, the qualifier relation and value where they have relation and tail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData

__all__ = [
    "ASKED",
    "GIVEN",
    "NAMES",
    "QUALIFIER",
    "SIDES",
    "facts_of",
    "given_keys",
    "given_pair",
    "label_counts",
    "question_keys",
]

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

NAMES = ("head", "tail", "relation", "qualifier")
"""What a side is called, by its code."""

QUALIFIER = NAMES.index("qualifier")

SIDES = {
    "head": (0,), "tail": (1,), "both": (0, 1), "relation": (2,), "qualifier": (QUALIFIER,),
}  # fmt: skip
"""Codes of the sides that a name covers."""

ASKED = (0, 2, 1, 2)
"""Column of a fact that is asked, by side."""

GIVEN = ((2, 1), (0, 1), (0, 2), (0, 1))
"""Columns of a fact that are given, by side: an entity (or statement), then the relation or the
other entity."""


def facts_of(graph: GraphData, split: str, side: int) -> Int32:
    """The facts of a split that a side asks: int32, shape (n, 3), or (n, 4) with their context."""
    return graph.qualifier_facts(split) if side == QUALIFIER else graph.facts[split]


def label_counts(graph: GraphData, side: int) -> tuple[int, int, int]:
    """How many labels each column of a side's facts chooses from."""
    first = len(graph.statements) if side == QUALIFIER else graph.n_entities
    return first, graph.n_relations, graph.n_entities


def given_keys(graph: GraphData, triples: npt.NDArray[np.integer], side: int) -> Int64:
    """One number for what each triple gives a question of a side: int64, shape (n,)."""
    first, second = GIVEN[side]
    keys: Int64 = triples[:, first].astype(np.int64)
    keys *= label_counts(graph, side)[second]
    keys += triples[:, second]
    return keys


def question_keys(
    graph: GraphData, facts: npt.NDArray[np.integer], side: int, n_contexts: int = 1
) -> Int64:
    """One number for the question of a side that each fact answers; `n_contexts` above 1: at the
    context in its fourth column."""
    keys = given_keys(graph, facts, side)
    if n_contexts > 1:
        keys *= n_contexts
        keys += facts[:, 3]
    return keys


def given_pair(graph: GraphData, keys: Int64, side: int) -> tuple[Int32, Int32]:
    """The ids of the two columns of `GIVEN` that such numbers stand for: int32, shape (n,) each."""
    size = label_counts(graph, side)[GIVEN[side][1]]
    return (keys // size).astype(np.int32), (keys % size).astype(np.int32)
