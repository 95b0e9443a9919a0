"""Relation distributions of several sets of triples (Zhou et al. 2022, section 3.1, Figure 2).

Classes are the most frequent relations of the reference set; all rarer relations are one class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arguments import GRAPH, check_count, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.relations import kl_divergence
from kgtrec.study.stratified import read_relation_counts

CLASSES = 50
"""Classes of relations in the paper's figure."""


@dataclass(frozen=True, eq=False)
class RelationDistributions(ShownAsTables):
    """Relation distributions of sets of triples; the first set is the reference.

    - names: Names of the sets.
    - classes: Labels of the classes, most frequent first; the last may be all rarer relations.
    - counts, int64 (sets, classes): Triples of each set per class.
    - divergence, float64 (sets,): KL(reference || set) over all relations, in nats, add-one.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...]
    counts: Int64
    divergence: Float64

    @property
    def shares(self) -> Float64:
        """Share of each set's triples per class, float64 (sets, classes)."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    def table(self) -> Table:
        """Return a row per class: the share of each set's triples, in percent."""
        rows: list[tuple[Cell, ...]] = [
            (label, *row)
            for label, row in zip(self.classes, (100 * self.shares.T).tolist(), strict=True)
        ]
        return Table.from_rows(["relation", *((f"{name} %", name, 2) for name in self.names)], rows)

    def divergences(self) -> Table:
        """Return a row per set: its triples, and its divergence from the reference."""
        divergence = f"KL({self.names[0]} || set)", "divergence", 4
        rows: list[tuple[Cell, ...]] = [
            (name, int(n), kl)
            for name, n, kl in zip(
                self.names, self.counts.sum(axis=1), self.divergence.tolist(), strict=True
            )
        ]
        return Table.from_rows(["set", "triples", divergence], rows)


def relation_distributions(
    graph: GraphData,
    files: Mapping[str, PathName],
    split: str = "test",
    classes: int = CLASSES,
) -> RelationDistributions:
    """Compare the relation distributions of files of triples with that of a split.

    Parameters
    ----------
    graph : Graph
    files : mapping of str to path
        Triples (TSV, with the columns of a split) by the name of the set, such as a sample and
        its completed labels. A triple counts once.
    split : str
        The reference.
    classes : int
        Number of classes of relations. The last has all relations that are rarer in the reference.

    Raises
    ------
    FileError
        A file is missing or malformed, or has a relation that the graph lacks.
    """
    require_type("graph", graph, GraphData, GRAPH)
    require_type("files", files, Mapping, "a mapping of names to paths")
    check_count("classes", classes, 2)
    if split in files:
        raise UsageError(f"a file is named {split!r}, like the split; give it another name")
    counts = [graph.relation_counts(split)]
    if not counts[0].sum():
        raise InputError(f"split {split!r} has no triple, so it has no relation distribution")
    counts += [_counts_of_file(path, graph) for path in files.values()]
    every = np.array(counts, np.int64)
    order = np.argsort(-every[0], kind="stable")
    named = order if graph.n_relations <= classes else order[: classes - 1]
    merged, labels = every[:, named], [*graph.relations[named]]
    if len(named) < graph.n_relations:
        rest = np.delete(every, named, axis=1)
        merged = np.concatenate([merged, rest.sum(axis=1, keepdims=True)], axis=1)
        labels.append(f"{rest.shape[1]:,} rarer relations")
    divergence = np.array([kl_divergence(every[0], row) for row in every])
    return RelationDistributions((split, *files), tuple(labels), merged, divergence)


def _counts_of_file(path: PathName, graph: GraphData) -> Int64:
    """Return the triples of a file per relation of the graph, int64 (n_relations,)."""
    counts = read_relation_counts(path, graph.column_order)
    ids = dict(zip(graph.relations, range(graph.n_relations), strict=True))
    values = np.zeros(graph.n_relations, np.int64)
    for label, count in counts.items():
        if label not in ids:
            hint = "give triples with the labels of the graph, byte for byte"
            raise FileError(path, found=f"relation {label!r}, which the graph lacks", hint=hint)
        values[ids[label]] = count
    return values
