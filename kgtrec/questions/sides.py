"""Sides: which column of a triple a question asks for, and which pair of columns it is given."""

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
    "SIDES",
    "given_keys",
    "given_pair",
    "label_counts",
    "question_keys",
]

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

NAMES = ("head", "tail", "relation")
"""What a side is called, by its code."""

SIDES = {"head": (0,), "tail": (1,), "both": (0, 1), "relation": (2,)}
"""Codes of the sides that a name covers."""

ASKED = (0, 2, 1)
"""Column of a triple that is asked, by side."""

GIVEN = ((2, 1), (0, 1), (0, 2))
"""Columns of a triple that are given, by side: an entity, then the relation or the other entity."""


def label_counts(graph: GraphData) -> tuple[int, int, int]:
    """How many labels each column of a triple chooses from."""
    return graph.n_entities, graph.n_relations, graph.n_entities


def given_keys(graph: GraphData, triples: npt.NDArray[np.integer], side: int) -> Int64:
    """One number for what each triple gives a question of a side: int64, shape (n,)."""
    first, second = GIVEN[side]
    keys: Int64 = triples[:, first].astype(np.int64)
    keys *= label_counts(graph)[second]
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
    size = label_counts(graph)[GIVEN[side][1]]
    return (keys // size).astype(np.int32), (keys % size).astype(np.int32)
