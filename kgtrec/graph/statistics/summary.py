"""A graph at a glance: sizes, popularity, categories, distributions, leaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kgtrec._internal.csr import Bools
from kgtrec._internal.table import Cell, Table, dump_json
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.leakage import find_leaks
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

    - tables: By a short key: splits, mix, entities, relations, correlations, categories,
      divergence, leaks, mirrors. The last four only if the graph has the splits for them.
    - notes: How to read each table, under the same keys.
    """

    name: str
    entities: int
    relations: int
    triples: int
    tables: dict[str, Table]
    notes: dict[str, str]

    def __str__(self) -> str:
        head = (
            f"{self.name}: {self.entities:,} entities, {self.relations:,} relations, "
            f"{self.triples:,} triples"
        )
        parts = [f"{self.notes[key]}\n{table.to_text()}" for key, table in self.tables.items()]
        return "\n\n".join([head, *parts])

    def to_dict(self) -> dict[str, Any]:
        """Sizes, and each table under its key."""
        sizes = {"entities": self.entities, "relations": self.relations, "triples": self.triples}
        tables = {key: table.to_dict() for key, table in self.tables.items()}
        return {"graph": self.name, "sizes": sizes, **tables}

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return dump_json(self.to_dict())


def overview(graph: GraphData, percentile: float = 90.0) -> Overview:
    """Everything that describes a graph before a model is evaluated on it."""
    mix = triple_mix(graph, percentile)
    tables = {
        "splits": _splits(graph),
        "mix": mix.table(),
        "entities": entity_frequencies(graph).table(),
        "relations": relation_frequencies(graph).table(),
        "correlations": popularity_correlations(graph).table(),
    }
    notes = {
        "splits": "Splits (unseen: in no train triple)",
        "mix": "Triples by the popularity of subject, relation and object (top "
        f"{100 - mix.percentile:g} %:\n"
        f"  {mix.popular_entities:,} entities with {mix.entity_threshold:,.10g} or more places, "
        f"{mix.popular_relations:,} relations with {mix.relation_threshold:,.10g} or more triples)",
        "entities": "Triples that involve one of the most frequent entities",
        "relations": "Triples of the most frequent relations",
        "correlations": "Do popular entities occur with popular relations? (over all triples)",
    }
    if "train" in graph.splits:
        tables["categories"] = relation_categories(graph).table(graph)
        notes["categories"] = "Relation categories (train, threshold 1.5) and their triples"
    if len(graph.splits) > 1:
        tables["divergence"] = split_divergences(graph)
        notes["divergence"] = (
            "Divergence of relation distributions: KL(row || column), nats, add-one"
        )
    if {"train", "test"} <= set(graph.splits):
        leaks = find_leaks(graph)
        tables["leaks"], notes["leaks"] = leaks.table(), "What train reveals of test"
        if leaks.mirrors:
            table = leaks.mirror_table(graph)
            tables["mirrors"] = replace(table, rows=table.rows[:MIRRORS])
            notes["mirrors"] = (
                f"Relations of train that mirror another one ({min(MIRRORS, len(table))} of "
                f"{len(table)}; the %: triples with a\n  partner there): they answer questions "
                "without being learnt"
            )
    return Overview(
        graph.name or "graph",
        graph.n_entities,
        graph.n_relations,
        sum(map(len, graph.splits.values())),
        tables,
        notes,
    )


def _splits(graph: GraphData) -> Table:
    seen = _present(graph, "train") if "train" in graph.splits else None
    rows: list[tuple[Cell, ...]] = []
    for name, triples in graph.splits.items():
        held = _present(graph, name)
        unseen: list[Cell] = ["-", "-"]
        if seen is not None:
            unseen = [int((own & ~known).sum()) for own, known in zip(held, seen, strict=True)]
        sizes = (len(triples), graph.duplicates[name], *(int(own.sum()) for own in held))
        rows.append((name, *sizes, *unseen))
    titles = ["split", "triples", "duplicates", "entities", "relations", "unseen e.", "unseen r."]
    keys = [*titles[:5], "unseen_entities", "unseen_relations"]
    if graph.qualifiers is not None:
        rows = [(*row, n) for row, n in zip(rows, graph.n_qualified.values(), strict=True)]
        titles, keys = [*titles, "qualified"], [*keys, "with_qualifiers"]
    return Table(titles, keys, (0,) * len(keys), rows)


def _present(graph: GraphData, split: str) -> list[Bools]:
    """Whether each entity, and each relation, occurs in a split."""
    return [count(graph, split) > 0 for count in (entity_popularity, relation_popularity)]
