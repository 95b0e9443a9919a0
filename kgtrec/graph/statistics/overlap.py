"""Overlap of a split with train and with itself, which changes the meaning of its numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arrays import Bools, Int32, Int64
from kgtrec.graph.graph import GraphData
from kgtrec.graph.triples import pack_triples, row_hashes

_ROWS = 1 << 18


@dataclass(frozen=True)
class SplitOverlap:
    """Counts of a split's distinct facts; "new" means that no train triple has it.

    - facts: All; known: of them, those that train contains, at the same time if facts have one.
    - entities, relations: Those of the split; new_entities, new_relations: of them, the new ones.
    - of_new_entities, of_new_relations: Facts with at least one.
    - mirrored: Facts (h, r, t) beside which the split has (t, s, h), for any relation s.
    """

    facts: int
    known: int
    entities: int
    new_entities: int
    of_new_entities: int
    relations: int
    new_relations: int
    of_new_relations: int
    mirrored: int


def overlap_with_train(graph: GraphData, split: str) -> SplitOverlap | None:
    """Count what a split shares with train; None without a train split, and for train itself."""
    if split == "train" or "train" not in graph.splits:
        return None
    rows, train = graph.facts[split], graph.facts["train"]
    seen_entities, seen_relations = (
        np.zeros(n, bool) for n in (graph.n_entities, graph.n_relations)
    )
    for start in range(0, len(train), _ROWS):
        part = train[start : start + _ROWS]
        seen_entities[part[:, 0]] = seen_entities[part[:, 2]] = True
        seen_relations[part[:, 1]] = True
    entities, relations = np.unique(rows[:, [0, 2]]), np.unique(rows[:, 1])
    return SplitOverlap(
        facts=len(rows),
        known=int(_find_known(graph, rows, train).sum()),
        entities=len(entities),
        new_entities=int((~seen_entities[entities]).sum()),
        of_new_entities=int((~seen_entities[rows[:, [0, 2]]]).any(axis=1).sum()),
        relations=len(relations),
        new_relations=int((~seen_relations[relations]).sum()),
        of_new_relations=int((~seen_relations[rows[:, 1]]).sum()),
        mirrored=int(find_mirrored(graph, split).sum()),
    )


def find_mirrored(graph: GraphData, split: str) -> Bools:
    """Return whether each fact (h, r, t) of a split has a fact (t, s, h) there: bool (n,).

    If facts have a time, both have the same. A fact from an entity to itself is not mirrored.
    """
    rows = graph.facts[split]
    turned = rows.copy()
    turned[:, [0, 2]] = rows[:, [2, 0]]
    for some in (rows := rows.copy(), turned):
        some[:, 1] = 0
    keys, mirrored_keys = _keys(graph, rows, turned)
    return np.isin(keys, mirrored_keys) & (rows[:, 0] != rows[:, 2])


def _find_known(graph: GraphData, rows: Int32, train: Int32) -> Bools:
    """Return whether each fact is in train: bool (n,)."""
    # Marks of the hashes' first bits leave few rows of train to compare.
    bits = np.uint64(64 - max(10, len(rows).bit_length() + 4))
    marks = np.zeros(1 << (64 - int(bits)), bool)
    marks[row_hashes(rows) >> bits] = True
    parts = [train[:0]]
    for start in range(0, len(train), _ROWS):
        part = train[start : start + _ROWS]
        parts.append(part[marks[row_hashes(part) >> bits]])
    keys, train_keys = _keys(graph, rows, np.concatenate(parts))
    return np.isin(keys, train_keys)


def _keys(graph: GraphData, rows: Int32, others: Int32) -> tuple[Int64, Int64]:
    """Return a number per fact of two arrays, equal for equal facts."""
    every, n = np.concatenate([rows, others]), len(rows)
    keys = pack_triples(every[:, :3], graph.n_entities, graph.n_relations)
    for column in every.T[3:]:
        keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
        keys = keys * (1 + int(column.max(initial=0))) + column
    return keys[:n], keys[n:]
