"""The questions (?, relation, ?): pairs of a relation that are evaluated, and known pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgtrec._internal.arguments import GRAPH, require_type
from kgtrec._internal.arrays import Int32, Int64
from kgtrec.errors import UsageError, about, refuse
from kgtrec.graph.graph import GraphData
from kgtrec.graph.id_files import read_column_order, read_labels
from kgtrec.questions.candidates import label_ids
from kgtrec.questions.filters import Filter, filter_splits
from kgtrec.questions.questions import column_of_label
from kgtrec.ranking.pairs import PairQuestion
from kgtrec.scores.pairs import PairAxes


@dataclass(frozen=True, eq=False)
class PairQuestions:
    """Questions about relations, ascending by relation.

    - filters: Splits whose pairs are known.
    - outside: Number of evaluated triples of these relations whose head or tail is not a candidate.
    """

    graph: GraphData
    split: str
    filters: tuple[str, ...]
    axes: PairAxes
    questions: Sequence[PairQuestion]
    outside: int

    @property
    def relations(self) -> Int64:
        """Ids of the relations."""
        return np.array([question.relation for question in self.questions], np.int64)

    def name(self, relation: int) -> str:
        """Return the label of a relation."""
        return self.graph.relations[int(relation)]


def pair_questions(
    graph: GraphData,
    split: str = "test",
    filter: Any = "all",
    relations: Any = None,
    heads: Any = None,
    tails: Any = None,
) -> PairQuestions:
    """Return the questions (?, relation, ?) of a split; parameters as for `rank_pairs`."""
    require_type("graph", graph, GraphData, GRAPH)
    if graph.contexts is not None:
        raise UsageError(
            "the facts of this graph have a time or qualifiers, which pairs do not have; leave "
            "that column out of the files"
        )
    filters, _ = filter_splits(graph, Filter(filter), split)
    rows = graph.split(split)
    axes = PairAxes.from_ids(
        _parse_entities("heads", heads, graph.n_entities),
        _parse_entities("tails", tails, graph.n_entities),
        graph.n_entities,
    )
    inside = np.isin(rows[:, 0], axes.heads) & np.isin(rows[:, 2], axes.tails)
    chosen = _choose_relations(graph, split, rows, inside, relations)
    if heads is not None:
        _require_use(graph, chosen, axes.heads, "head")
    if tails is not None:
        _require_use(graph, chosen, axes.tails, "tail")
    none = np.empty((0, 3), np.int32)
    known = np.concatenate([none, *(graph.splits[name] for name in filters)])
    others = [graph.splits[name] for name in filters if name != split]
    removed = np.concatenate([none, *others])
    cells = [_by_relation(axes, triples, chosen) for triples in (rows, known, removed)]
    questions = [
        PairQuestion(int(relation), answers, of_known, np.setdiff1d(of_removed, answers))
        for relation, answers, of_known, of_removed in zip(chosen.tolist(), *cells, strict=True)
    ]
    outside = int((~inside & np.isin(rows[:, 1], chosen)).sum())
    empty = [question.relation for question in questions if not len(question.answers)]
    if empty:
        raise UsageError(
            f"split {split!r} has no pair of relation {graph.relations[empty[0]]!r} among these "
            "heads and tails, so there is nothing to rank; leave the relation out"
        )
    return PairQuestions(graph, split, filters, axes, questions, outside)


def read_pair_labels(
    graph: GraphData, paths: Mapping[str, str | None], unknown: str = "error"
) -> tuple[dict[str, Any], list[str]]:
    """Read the files of labels: heads, tails, relations. Return their ids by option, and notes.

    The ids are in the order of the file, which is that of the rows or columns of a matrix.
    """
    ids: dict[str, Any] = {}
    notes = []
    for name, path in paths.items():
        if path is None:
            continue
        labels = graph.relations if name == "relations" else graph.entities
        ids[name], n_unknown = read_labels(path, labels, unknown)
        repeated = np.flatnonzero(np.bincount(ids[name], minlength=1) > 1).tolist()
        if repeated and name != "relations":
            label = labels[repeated[0]]
            refuse(path, None, f"{label!r} is there more than once", "write each entity once")
        if n_unknown:
            notes.append(f"{path}: ignored {n_unknown:,} labels that the graph lacks")
    return ids, notes


def read_vector_order(graph: GraphData, path: str | None) -> Int64 | None:
    """Read the label of each row of a model's vectors; None without a path.

    Returns their ids, int64 (entities,). FileError for an unknown label, InputError unless every
    entity has one row.
    """
    if path is None:
        return None
    ids = read_column_order(path, graph.entities)
    with about(path):
        column_of_label(ids, graph.entities)
    return ids


def _parse_entities(name: str, values: Any, size: int) -> Int64 | None:
    """Return ids in the caller's order; UsageError if there are none, or one is repeated."""
    if values is None:
        return None
    distinct = label_ids(name, values, size)
    ids = np.asarray(values).astype(np.int64)
    if not len(ids):
        raise UsageError(f"{name} is empty; name at least one entity, or leave {name} out")
    if len(distinct) != len(ids):
        counts = np.bincount(ids, minlength=1)
        raise UsageError(
            f"{name} contains id {int(np.argmax(counts > 1))} twice; name each entity once, "
            "because rows and columns of scores follow the list"
        )
    return ids


def _choose_relations(
    graph: GraphData, split: str, rows: Int32, inside: Any, relations: Any
) -> Int64:
    """Return the ids of the relations to rank, ascending; UsageError if there are none."""
    if relations is not None:
        chosen = label_ids("relations", relations, graph.n_relations).astype(np.int64)
        if not len(chosen):
            raise UsageError(
                "relations is empty; name at least one relation, or leave relations out"
            )
        return chosen
    chosen = np.unique(rows[inside, 1]).astype(np.int64)
    if not len(chosen):
        raise UsageError(
            f"split {split!r} has no triple whose head is among the heads and whose tail is among "
            "the tails, so no relation can be ranked; swap heads and tails, or name more of them"
        )
    return chosen


def _require_use(graph: GraphData, relations: Int64, ids: Int64, side: str) -> None:
    """Raise UsageError if no chosen relation has one of the listed entities on this side."""
    column = 0 if side == "head" else 2
    for rows in graph.splits.values():
        of_relations = np.isin(rows[:, 1], relations)
        if np.isin(rows[of_relations, column], ids).any():
            return
    raise UsageError(
        f"none of the {len(ids):,} {side}s is the {side} of a triple of the relations to rank, in "
        f"any split; swap heads and tails, or choose other relations"
    )


def _by_relation(axes: PairAxes, triples: Int32, relations: Int64) -> list[Int64]:
    """Return the cells of the triples of each relation."""
    # To sort all triples would take a sixth of the time in which one relation is counted.
    chosen = triples[np.isin(triples[:, 1], relations)]
    rows = chosen[np.argsort(chosen[:, 1], kind="stable")].astype(np.int64)
    starts, ends = (np.searchsorted(rows[:, 1], relations, side) for side in ("left", "right"))
    return [
        axes.cells(rows[start:end, 0], rows[start:end, 2])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
