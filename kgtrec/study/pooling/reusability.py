"""Is a pool fair to a new system that did not contribute to it? Leave one system out to test this.

Remove the judgements that only one system brought into the pool, as if it had come later, and
evaluate all systems again. If the left-out system falls, the pool punishes newcomers (Zobel 1998;
Buckley et al. 2007).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.correlation import tau_b

if TYPE_CHECKING:
    from kgtrec.study.pooling.pool import Pool
    from kgtrec.trec.measures.names import Column


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]
Contributors = Mapping[str, Mapping[str, frozenset[str]]]


@dataclass(frozen=True, eq=False)
class Reuse(ShownAsTables):
    """What each system loses without judgements of its own contributions to the pool.

    - contributors: The systems that contributed to the pool; the others lose nothing.
    - full, left_out, float64 (s,): Value with all judgements, and without those that only this
      system brought.
    - place, place_left_out, int64 (s,): Place among all systems (1: the best) with all judgements,
      and without those.
    - judged, relevant, int64 (s,): Judgements that only this system brought, and how many of them
      are relevant.
    - tau, float64 (s,): tau-b of the rankings of all systems with and without these judgements.
    """

    measure: str
    systems: tuple[str, ...]
    contributors: tuple[str, ...]
    full: Floats
    left_out: Floats
    place: Ints
    place_left_out: Ints
    judged: Ints
    relevant: Ints
    tau: Floats

    def table(self) -> Table:
        """One row per system, the best first."""
        rows: list[tuple[Cell, ...]] = []
        for i in np.argsort(-self.full, kind="stable").tolist():
            change = float(self.left_out[i] - self.full[i])
            rows.append(
                (self.systems[i], float(self.full[i]), float(self.left_out[i]), change,
                 int(self.place[i]), int(self.place_left_out[i]), int(self.judged[i]),
                 int(self.relevant[i]), float(self.tau[i]))
            )  # fmt: skip
        titles = ("system", "all judged", "left out", "change", "place", "then", "own", "relevant",
                  "tau-b")  # fmt: skip
        keys = ("system", "full", "left_out", "change", "place", "place_left_out", "judged",
                "relevant", "tau_b")  # fmt: skip
        return Table(titles, keys, (0, 4, 4, 4, 0, 0, 0, 0, 4), rows)

    def sentence(self) -> str:
        """The result in a sentence."""
        took_part = [i for i, name in enumerate(self.systems) if name in self.contributors]
        fallen = [i for i in took_part if self.place_left_out[i] > self.place[i]]
        change = np.abs((self.left_out - self.full)[took_part])
        largest = took_part[int(change.argmax())]
        head = (
            f"{self.measure}: left out of the pool, {len(fallen)} of {len(took_part)} systems "
            "would rank lower"
        )
        if fallen:
            moved = max(int(self.place_left_out[i] - self.place[i]) for i in fallen)
            head += f" (by up to {moved} place{'s' * (moved > 1)})"
        return (
            f"{head}; the largest change is {self.left_out[largest] - self.full[largest]:+.4f} "
            f"({self.systems[largest]})."
        )


def contributors_of(pool: Pool) -> dict[str, dict[str, frozenset[str]]]:
    """Question, then candidate, to the systems that brought it into the pool, by names."""
    places = (pool.places > 0).tolist()
    return pool.by_candidate([frozenset(compress(pool.systems, row)) for row in places])


def leave_one_out(
    qrels: Qrels, runs: Mapping[str, Run], contributors: Contributors, measure: str
) -> Reuse:
    """Evaluate every system with and without the judgements that only it brought into the pool.

    Parameters
    ----------
    qrels : mapping of query to mapping of document to relevance
        All judgements. Those of documents that no system brought (the test set's own answers)
        always stay.
    runs : mapping of system to its run, query to document to score
    contributors : mapping of query to mapping of document to systems
        Systems of the pooled documents; see `contributors_of`.
    measure : str
        One of trec_eval's of which more is better.

    Returns
    -------
    Reuse

    Raises
    ------
    UsageError
        Fewer than two runs, not one measure, or one of which more is not better.
    InputError
        No contributor has a run.
    """
    if len(runs) < 2:
        raise UsageError(f"{len(runs)} run; leaving one out needs two or more")
    column = _column_of(measure)
    alone = _brought_alone(qrels, contributors)
    took_part = _took_part(runs, contributors)
    queries = sorted(qrels)
    full = {system: _valued(qrels, run, queries, column) for system, run in runs.items()}
    rows = []
    for number, system in enumerate(runs):
        dropped = alone.get(system, {})
        without = {other: dict(values) for other, values in full.items()}
        reduced = {
            query: {d: r for d, r in qrels[query].items() if d not in documents}
            for query, documents in dropped.items()
        }
        for other, run in runs.items():
            without[other].update(_valued(reduced, run, list(reduced), column))
        before, after = ([_mean(v, column) for v in each.values()] for each in (full, without))
        brought = [qrels[query][d] for query, documents in dropped.items() for d in documents]
        rows.append(
            (before[number], after[number], _place(before, number), _place(after, number),
             len(brought), sum(r > 0 for r in brought), float(tau_b(before, after)))
        )  # fmt: skip
    whole, left, place, then, judged, relevant, tau = map(np.array, zip(*rows, strict=True))
    return Reuse(
        column.name, tuple(runs), took_part, whole, left, place, then, judged, relevant, tau
    )


def _took_part(runs: Mapping[str, Run], contributors: Contributors) -> tuple[str, ...]:
    """The runs that are systems of the pool, one at least."""
    pooled_by = {one for row in contributors.values() for some in row.values() for one in some}
    took_part = tuple(system for system in runs if system in pooled_by)
    if not took_part:
        raise InputError(
            f"none of the runs {', '.join(runs)} is in the pool, whose systems are "
            f"{', '.join(sorted(pooled_by))}; name the runs as the pool does"
        )
    return took_part


def _place(values: list[float], number: int) -> int:
    return 1 + sum(value > values[number] for value in values)


def _brought_alone(qrels: Qrels, contributors: Contributors) -> dict[str, dict[str, set[str]]]:
    """System, then query, to the judged documents that no other system brought."""
    documents_of: dict[str, dict[str, set[str]]] = {}
    for query, documents in contributors.items():
        judged = qrels.get(query, {})
        for document, systems in documents.items():
            if len(systems) == 1 and judged.get(document, -1) >= 0:
                (system,) = systems
                documents_of.setdefault(system, {}).setdefault(query, set()).add(document)
    return documents_of


def _column_of(measure: str) -> Column:
    """The measure of that name; higher must be better."""
    from kgtrec.trec.measures.names import resolve

    columns = resolve([measure])
    if len(columns) != 1 or columns[0].is_count or columns[0].is_text:
        raise UsageError(f"{measure!r} must be one measure with a mean, such as map_cut_20")
    if not columns[0].row.higher_is_better:
        raise UsageError(f"more of {measure!r} is not better; choose another, such as map_cut_20")
    return columns[0]


def _valued(qrels: Qrels, run: Run, queries: list[str], column: Column) -> dict[str, float]:
    """Value of each query, for gm_* its logarithm; the minimum without a judgement or a run."""
    from kgtrec.trec import evaluate
    from kgtrec.trec.measures.own import FLOOR

    absent = math.log(FLOOR) if column.is_geometric else 0.0
    values_of = dict.fromkeys(queries, absent)
    judged = {query: qrels[query] for query in queries if qrels[query] and query in run}
    if judged:
        listed = {query: run[query] for query in judged}
        values = evaluate(judged, listed, [column.name], ties="name")
        values_of.update({query: row[column.name] for query, row in values.items()})
    return values_of


def _mean(values: Mapping[str, float], column: Column) -> float:
    mean = float(np.mean(list(values.values())))
    return math.exp(mean) if column.is_geometric else mean
