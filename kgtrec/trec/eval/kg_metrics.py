"""Micro metrics of knowledge graphs straight from a run and qrels: of answers, not of queries.

An answer is a relevant document. Its rank as listed is 1 + the non-answers above it + half of the
non-answers that tie with it. A run does not contain other splits: its ranks are filtered only if
the run was, when it was made or here by a graph (`filter_by_graph`). The candidates of an answer
are all N entities except the other answers of its query. An answer that the run lacks may have any
rank from 1 + the non-answers in the run to the number of candidates. So every metric has a low and
a high end, which are equal if the run holds every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import contains, offsets_of, owners, to_keys
from kgtrec.errors import InputError, UsageError
from kgtrec.predictions.lists import ids_of
from kgtrec.trec.files.columns import QrelsColumns, RunColumns
from kgtrec.trec.files.parse import name_buffers
from kgtrec.trec.files.text import decode_name
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import Lists, View, narrow_lists, parts
from kgtrec.trec.measures.tie_groups import tie_groups
from kgtrec.trec.measures.trec_measure import EvalOptions, is_whole

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions


@dataclass(frozen=True, eq=False)
class GraphFiltered:
    """Run that was filtered by the graph.

    - known: Documents left out, which answer their question in another split.
    - unlinkable: Documents that name no entity of the graph; they stay in the run.
    - stranger: The first of these, or "".
    """

    run: RunColumns
    known: int
    unlinkable: int
    stranger: str = ""


def filter_by_graph(run: RunColumns, questions: Questions, name: str) -> GraphFiltered:
    """Remove answers from splits other than the evaluated one from a run."""
    import pyarrow as pa

    number = {text: i for i, text in enumerate(questions.ids)}
    question = np.array([number.get(query, -1) for query in run.queries], dtype=np.int64)
    if (question < 0).any():
        strange = np.flatnonzero(question < 0)
        first = run.queries[strange[0]]
        raise InputError(
            f"{name}: {len(strange):,} of {len(question):,} queries are not questions of split "
            f"{questions.split!r} (the first is {first!r}), so their answers cannot be filtered; "
            "use the names of `kgtrec convert --write-questions`, or give another "
            f"{argument('split')}"
        )
    encoded = run.documents.dictionary_encode()
    entity = ids_of(questions.candidate_labels.docnos, encoded.dictionary)
    entity = entity[encoded.indices.to_numpy()]
    owner = owners(run.offsets)
    keys = question[owner] * questions.n_labels + np.maximum(entity, 0)
    known = contains(to_keys(questions.removed, questions.n_labels), keys) & (entity >= 0)
    rows = np.flatnonzero(~known)
    offsets = offsets_of(np.bincount(owner[rows], minlength=len(run)))
    names = name_buffers(run.documents.take(pa.array(rows)))
    left = RunColumns(run.queries, offsets, *names, run.scores[rows], run.tag)
    strangers = np.flatnonzero(entity < 0)
    first = run.documents[int(strangers[0])].as_py() if len(strangers) else b""
    return GraphFiltered(left, int(known.sum()), len(strangers), decode_name(first))


def queries_of_other_answers(qrels: QrelsColumns, questions: Questions) -> tuple[list[str], int]:
    """Return the queries whose relevant documents include no answer of the question of this name.

    Also returns the number of queries with relevant documents that are questions. Queries of
    another split, or with a question per triple, have the same names as other questions.
    """
    number = {text: i for i, text in enumerate(questions.ids)}
    question = np.array([number.get(query, -1) for query in qrels.queries], np.int64)
    owner = owners(qrels.offsets)
    encoded = qrels.documents.dictionary_encode()
    entity = ids_of(questions.candidate_labels.docnos, encoded.dictionary)
    entity = entity[encoded.indices.to_numpy()]
    relevant = (qrels.relevance > 0) & (question[owner] >= 0)
    keys = question[owner] * questions.n_labels + np.maximum(entity, 0)
    is_answer = relevant & (entity >= 0)
    is_answer &= contains(to_keys(questions.answers, questions.n_labels), keys)
    judged, fitting = np.unique(owner[relevant]), np.unique(owner[is_answer])
    return [qrels.queries[i] for i in np.setdiff1d(judged, fitting).tolist()], len(judged)


def candidates_of(questions: Questions, queries: Sequence[str]) -> Int64:
    """Count the entities that each list may hold, answers included, int64 (n_queries,).

    Queries that are not questions may hold every entity.
    """
    number = {text: i for i, text in enumerate(questions.ids)}
    sizes = np.append(questions.n_labels - questions.removed.lengths, questions.n_labels)
    return sizes[[number.get(query, -1) for query in queries]]


_PART_DOCUMENTS = 2_000_000


@dataclass(frozen=True, eq=False)
class Micro:
    """Metrics as quotients of sums over answers.

    - parts, float64 (n_queries,): Numerator and denominator of each query. The metric, of a query
      or of many, is the sum of numerators over the sum of denominators; an index is 1 minus that.
    - answers, missing, int64 (n_queries,): Answers of each query, and how many of them the run
      lacks.
    """

    parts: dict[Column, tuple[Float64, Float64]]
    answers: Int64
    missing: Int64

    def values(self) -> dict[str, Float64]:
        """Compute metrics per query; NaN for a query without answers."""
        return {column.name: ratio_of(column, *part) for column, part in self.parts.items()}

    def summary(self) -> dict[str, float]:
        """Compute metrics over all answers of all queries."""
        return {
            column.name: float(ratio_of(column, above.sum(), below.sum()))
            for column, (above, below) in self.parts.items()
        }


def ratio_of(column: Column, numerator: Float64, denominator: Float64) -> Float64:
    """Compute the metric from sums over answers; NaN if the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(denominator > 0, np.divide(numerator, denominator), np.nan)
    return 1.0 - ratio if column.row.of_answers == "index" else ratio


def micro_values(
    lists: Lists,
    columns: Sequence[Column],
    options: EvalOptions,
    *,
    entities: int | Int64 | None = None,
    ties: str | None = None,
) -> Micro:
    """Compute the sums of micro metrics for every query, after `check_micro`.

    Shapes: entities int64 (n_queries,).
    """
    lists = narrow_lists(lists, options)
    if not (lists.judged >= options.level).any():
        raise InputError(
            f"no query has a document of relevance {options.level} or more, so there is no answer "
            "to rank; give the qrels of this run, or a lower "
            f"{argument('level')}"
        )
    pieces = []
    for start, stop, part in parts(lists, _PART_DOCUMENTS):
        part_entities = entities[start:stop] if isinstance(entities, np.ndarray) else entities
        pieces.append(_Ranked(part, options, part_entities))
    sums = {}
    for column in columns:
        numerators, denominators = zip(*(piece.sums(column, ties) for piece in pieces), strict=True)
        sums[column] = np.concatenate(numerators), np.concatenate(denominators)
    answers, missing = ([getattr(p, name) for p in pieces] for name in ("answers", "missing"))
    return Micro(sums, np.concatenate(answers), np.concatenate(missing))


def check_micro(columns: Sequence[Column], options: EvalOptions, entities: int | None) -> None:
    """Raise UsageError if a metric has no value with these options or needs `entities`."""
    needing = dict.fromkeys(c.measure for c in columns if c.row.function == "mr")
    if entities is None and needing:
        raise UsageError(
            f"{', '.join(needing)} need{'s' * (len(needing) == 1)} the number of entities to rank "
            f"answers that the run does not have; give {argument('entities', option='n_entities')}"
        )
    if entities is not None and not (is_whole(entities) and entities >= 1):
        raise UsageError(f"the number of entities is {entities!r}; give a whole number from 1")
    if options.judged_only:
        raise UsageError(
            f"kg_ measures rank answers among all entities, but {argument('judged_only', True)} "
            "drops those that were not "
            "judged; leave it out, or the kg_ measures"
        )


class _Ranked:
    """Ranks of the answers that the run holds, and bounds on the ranks of the others."""

    def __init__(self, lists: Lists, options: EvalOptions, entities: int | Int64 | None) -> None:
        view = View(lists, options)
        self.answers, self.missing = view.num_rel, view.num_rel - view.num_rel_ret
        # Documents above an answer that the run lacks: at best the run's non-answers.
        self.best = view.length - view.num_rel_ret
        self.worst = None if entities is None else entities - self.answers
        if isinstance(entities, np.ndarray):
            self.best = np.minimum(self.best, entities - self.answers)
        elif self.worst is not None and (self.best > self.worst).any():
            needed = self.answers + self.best
            index = int(needed.argmax())
            raise InputError(
                f"query {lists.queries[index]!r} has {needed[index]:,} documents, "
                f"{self.answers[index]:,} of them answers, more than "
                f"{argument('entities', entities, option='n_entities')} allows; give "
                "the number of entities of the graph"
            )
        relevant = lists.relevance >= options.level
        groups = tie_groups(lists, replace(options, most=None), relevant)
        count = groups.count(relevant)
        groups, count = groups[count > 0], count[count > 0]
        greater = groups.start - groups.count_above(relevant)
        self.query = np.repeat(groups.query, count)
        above, tied = np.repeat(greater, count), np.repeat(groups.size - count, count)
        if isinstance(entities, np.ndarray) and self.worst is not None:
            # Documents that name no entity keep their places, but no rank is behind the last one.
            above = np.minimum(above, self.worst[self.query])
            tied = np.minimum(tied, self.worst[self.query] - above)
        self.ranks = above, tied

    def sums(self, column: Column, ties: str | None) -> tuple[Float64, Float64]:
        """Return numerator and denominator of every query."""
        per_answer = value_of_answers(column, ties)
        listed = np.bincount(
            self.query, weights=per_answer(*self.ranks), minlength=len(self.answers)
        )
        above = self.worst if is_worst_end(column) else self.best
        if above is None:  # without end: 1/rank and hits are 0
            value_if_missing = np.zeros(len(self.answers))
        else:
            value_if_missing = per_answer(above, np.zeros_like(above))
        total = listed + self.missing * value_if_missing
        answers = self.answers.astype(np.float64)
        if column.row.of_answers == "mean":
            return total, answers
        assert self.worst is not None
        random = answers * (self.worst + 2) / 2  # candidates = worst + 1
        first = answers if column.row.of_answers == "index" else 0.0  # ranks are from 0
        return total - first, random - first


def is_worst_end(column: Column) -> bool:
    """Return whether the metric takes the worst possible rank of answers that the run lacks."""
    return (column.end == "low") == column.row.higher_is_better


def value_of_answers(column: Column, ties: str | None) -> Callable[[Int64, Int64], Float64]:
    """Return a function from counts of documents above, and tied with, answers to the metric.

    Counts have any shape; `ties` is as in `micro_values`.
    """
    from kgtrec.measures.keys import STEMS
    from kgtrec.measures.ties import Ties

    metric, cutoff = STEMS[str(column.row.function)], float(column.cutoff or 0)
    kind = ties or "realistic"
    if ties in ("min", "max"):
        best = (ties == "max") == column.row.higher_is_better
        kind = "optimistic" if best else "pessimistic"

    def values(greater: Int64, equal: Int64) -> Float64:
        tied = Ties(greater, equal, np.zeros_like(equal), np.ones_like(equal))
        return metric.per_item(tied, kind, cutoff)

    return values
