"""A graph at a glance: sizes, popularity, categories, distributions, leaks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kgtrec._internal.arrays import Bools
from kgtrec._internal.table import Cell, Table, dump_json
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.leakage import ENOUGH, find_leaks
from kgtrec.graph.statistics.popularity import (
    entity_frequencies,
    entity_popularity,
    popularity_correlations,
    relation_frequencies,
    relation_popularity,
    triple_mix,
)
from kgtrec.graph.statistics.relations import relation_categories, split_divergences

MIRRORS = 10


@dataclass(frozen=True)
class Overview:
    """Tables about a graph.

    - sections: How to read each table, and the table, by a short key: splits, mix, entities,
      relations, correlations, categories, divergence, leaks, mirrors. The last four only if the
      graph has the splits for them.
    """

    name: str
    entities: int
    relations: int
    triples: int
    sections: dict[str, tuple[str, Table]]

    def __str__(self) -> str:
        head = (
            f"{self.name}: {self.entities:,} entities, {self.relations:,} relations, "
            f"{self.triples:,} triples"
        )
        parts = [f"{note}\n{table.to_text()}" for note, table in self.sections.values()]
        return "\n\n".join([head, *parts])

    def to_json(self) -> str:
        """Return sizes, and each table under its key, as JSON."""
        sizes = {"entities": self.entities, "relations": self.relations, "triples": self.triples}
        tables = {key: table.to_dict() for key, (_, table) in self.sections.items()}
        return dump_json({"graph": self.name, "sizes": sizes, **tables})


def overview(graph: GraphData, percentile: float = 90.0, enough: float = ENOUGH) -> Overview:
    """Describe a graph before a model is evaluated on it."""
    mix = triple_mix(graph, percentile)
    of_mix = (
        "Triples by the popularity of subject, relation and object (top "
        f"{100 - mix.percentile:g} %:\n"
        f"  {mix.popular_entities:,} entities with {math.ceil(mix.entity_threshold):,} or more "
        f"places, {mix.popular_relations:,} relations with {math.ceil(mix.relation_threshold):,} "
        "or more triples)"
    )
    sections = {
        "splits": ("Splits (unseen: in no train triple)", _splits(graph)),
        "mix": (of_mix, mix.table()),
        "entities": (
            "Triples that involve one of the most frequent entities",
            entity_frequencies(graph).table(),
        ),
        "relations": (
            "Triples of the most frequent relations",
            relation_frequencies(graph).table(),
        ),
        "correlations": (
            "Do popular entities occur with popular relations? (over all triples)",
            popularity_correlations(graph).table(),
        ),
    }
    if "train" in graph.splits:
        note = "Relation categories (train, threshold 1.5) and their triples"
        sections["categories"] = note, relation_categories(graph).table(graph)
    if len(graph.splits) > 1:
        note = "Divergence of relation distributions: KL(row || column), nats, add-one"
        sections["divergence"] = note, split_divergences(graph)
    if {"train", "test"} <= set(graph.splits):
        leaks = find_leaks(graph, enough=enough)
        sections["leaks"] = "What train reveals of test", leaks.table()
        if leaks.mirrors:
            table = leaks.mirror_table(graph)
            note = (
                f"Relations of train that mirror another one ({min(MIRRORS, len(table))} of "
                f"{len(table)}; the %: triples with a\n  partner there): they answer questions "
                "without being learnt"
            )
            sections["mirrors"] = note, replace(table, rows=table.rows[:MIRRORS])
    n_triples = sum(map(len, graph.splits.values()))
    return Overview(graph.name or "graph", graph.n_entities, graph.n_relations, n_triples, sections)


def _splits(graph: GraphData) -> Table:
    """Return a row per split: its triples, duplicates, and seen and unseen items."""
    seen = _present(graph, "train") if "train" in graph.splits else None
    rows: list[tuple[Cell, ...]] = []
    for name, triples in graph.splits.items():
        held = _present(graph, name)
        unseen: list[Cell] = ["-", "-"]
        if seen is not None:
            unseen = [
                int((occurs & ~known).sum()) for occurs, known in zip(held, seen, strict=True)
            ]
        sizes = (len(triples), graph.duplicates[name], *(int(occurs.sum()) for occurs in held))
        rows.append((name, *sizes, *unseen))
    heads = "split,triples,duplicates,entities,relations,unseen e.=unseen_entities,"
    heads += "unseen r.=unseen_relations"
    if graph.qualifiers is not None:
        rows = [(*row, n) for row, n in zip(rows, graph.n_qualified.values(), strict=True)]
        heads += ",qualified=with_qualifiers"
    return Table.from_rows(heads, rows)


def _present(graph: GraphData, split: str) -> list[Bools]:
    """Return whether each entity, and each relation, occurs in a split."""
    return [count(graph, split) > 0 for count in (entity_popularity, relation_popularity)]
