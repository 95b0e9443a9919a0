"""Known facts with a time or qualifiers from a file, as ids of a graph."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError
from kgtrec.graph.id_files import SKIP, check_unknown
from kgtrec.graph.labels import Labels
from kgtrec.graph.qualifiers import QualifierSets, number_sets, set_labels, value_rows
from kgtrec.graph.readers.common import GraphTables
from kgtrec.graph.readers.statements import read_statement_file
from kgtrec.graph.readers.timed import read_timed_file

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData

__all__ = ["KnownFacts", "read_known_facts"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_TERMS = ("head", "relation", "tail")
_PAIR = ("qualifier relation", "qualifier value")


class KnownFacts(NamedTuple):
    """Facts that count as known.

    Attributes
    ----------
    facts : ndarray of int32, shape (n, 3) or (n, 4)
        Ids of the graph; in the fourth column -1: a time or set of qualifiers that it lacks.
    values : ndarray of int32, shape (m, 4), or None
        What they say of qualifiers' values, as `GraphData.qualifier_facts` has it; None: as follows
        from the facts.
    """

    facts: Int32
    values: Int32 | None = None


def read_known_facts(
    path: str | PathLike[str], graph: GraphData, unknown: str = "error"
) -> tuple[KnownFacts, dict[str, Any]]:
    """Known facts from a file with lines as in a split of ``timed:`` or ``statements:``.

    A time or a set of qualifiers that no fact of the graph has is no fault.

    Returns
    -------
    facts : KnownFacts
    details : dict
        ``file``; ``triples`` used; ``unknown``: lines passed over for a label that the graph lacks.

    Raises
    ------
    FileError
        Missing, malformed, or (by default) with an unknown label: the first line is named.
    """
    check_unknown(unknown)
    tables = (read_timed_file if graph.context_name == "time" else read_statement_file)(path)
    entities = _places(graph.entities, tables.entities)
    relations = _places(graph.relations, tables.relations)
    rows = tables.splits["known"]
    ids = np.column_stack([entities[rows[:, 0]], relations[rows[:, 1]], entities[rows[:, 2]]])
    bad = np.any(ids < 0, axis=1)
    counts, pairs = np.zeros(len(rows), np.int64), np.empty((0, 2), np.int64)
    if tables.qualifiers is not None:
        offsets, own = tables.qualifiers["known"]
        counts = np.diff(offsets)
        pairs = np.column_stack([relations[own[:, 0]], entities[own[:, 1]]])
    owner = np.repeat(np.arange(len(rows)), counts)
    bad[owner[(pairs < 0).any(axis=1)]] = True
    if bad.any() and unknown == "error":
        _refuse(path, int(np.flatnonzero(bad)[0]), ids, pairs, owner, tables)
    details = {"file": str(path), "triples": int((~bad).sum()), "unknown": int(bad.sum())}
    if graph.context_name == "time" or bad.all():
        times = _places(graph.contexts, tables.times)[rows[:, 3:]] if tables.times else ids[:, :1]
        facts = np.column_stack([ids, times])[~bad]
        return KnownFacts(facts.astype(np.int32)), details
    return _qualified(graph, ids[~bad], counts[~bad], pairs[~bad[owner]]), details


def _qualified(graph: GraphData, triples: Int64, counts: Int64, pairs: Int64) -> KnownFacts:
    numbers, sets = number_sets({"known": (np.append(0, np.cumsum(counts)), pairs)})
    place = _places(graph.contexts, set_labels(sets, graph.entities, graph.relations))
    # The sets that there are in the file, but what is left of one by its number in the graph.
    without = np.where(sets.without < 0, -1, place[sets.without]).astype(np.int32)
    own = QualifierSets(sets.offsets, sets.pairs, without)
    facts, in_file = (
        np.column_stack([triples, column]).astype(np.int32)
        for column in (place[numbers["known"]], numbers["known"])
    )
    return KnownFacts(facts, graph.of_qualifiers(value_rows, in_file, own))


def _places(labels: Labels | None, names: Any) -> Int64:
    """The id of each name; -1: there is none."""
    assert labels is not None  # the graph has contexts, and a reader gives all labels
    return labels.positions(Labels.from_strings(names).to_arrow())


def _refuse(
    path: str | PathLike[str], row: int, ids: Int64, pairs: Int64, owner: Int64, tables: GraphTables
) -> None:
    """FileError that names the first unknown label of a line."""
    labels: tuple[Any, Any] = (tables.entities, tables.relations)
    own = tables.splits["known"][row, :3]
    terms = [(name, labels[at == 1][own[at]], ids[row, at]) for at, name in enumerate(_TERMS)]
    if tables.qualifiers is not None:
        for at in np.flatnonzero(owner == row).tolist():
            pair = tables.qualifiers["known"][1][at]
            terms += [
                (name, labels[1 - column][pair[column]], pairs[at, column])
                for column, name in enumerate(_PAIR)
            ]
    name, label, _ = next(term for term in terms if term[2] < 0)
    raise FileError(path, row + 1, found=f"{name} {label!r} is not in the graph", hint=SKIP)
