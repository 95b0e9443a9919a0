"""Values of pair ranking: micro metrics of ranks, and macro measures with a relation as the query.

Ties are not broken. A value is the expectation over all orders of the tied pairs. For metrics of
ranks, it is the value of the rank type. Least and greatest are the values in the worst and the best
order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import number_values
from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.measures.averaging import Cells, Weighing
from kgtrec.measures.metric import GroupMoments
from kgtrec.measures.ties import Ties
from kgtrec.trec.measures.formulas import core_columns, core_values, has_core_ties
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import UNJUDGED, View, lists_of_judged
from kgtrec.trec.measures.trec_measure import EvalOptions

DEFAULTS = (
    "mr",
    "mrr",
    "hits@10",
    "hits@100",
    "amri",
    "map",
    "ndcg_cut_100",
    "P_100",
    "recall_100",
    "recall_1000",
    "recall_10000",
    "auroc",
)
"""Keys of the usual table."""

AUROC = "auroc"
RANK_TYPES = ("optimistic", "realistic", "pessimistic", "expected")
"""Rank types of pairs. There is no ordinal type, because pairs have no names to order."""


class Bounds(NamedTuple):
    """Values of each group or relation, and the least and greatest over all orders of ties."""

    value: Float64
    least: Float64
    greatest: Float64


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of the evaluated pairs, int64 (answers,); see `kgtrec.ranking.pairs.PairCounts`."""

    relation: Int64
    greater: Int64
    equal: Int64
    candidates: Int64
    macro_greater: Int64
    macro_equal: Int64
    macro_candidates: Int64


def parse_measures(keys: object, rank_type: str = "realistic") -> list[Measure | str]:
    """Parse keys of measures: metrics of ranks, trec_eval's measures, or "auroc".

    Raises
    ------
    UsageError
        A key is not a measure, or a measure is not defined for pairs; all of them are named.
    """
    names = DEFAULTS if keys is None else [keys] if isinstance(keys, str) else list(keys)  # type: ignore[call-overload]
    if not names:
        raise UsageError("no measure is named; name one, such as map, or leave them out")
    measures: list[Measure | str] = []
    problems = []
    for name in names:
        if isinstance(name, str) and name.lower().removeprefix("macro.") == AUROC:
            measures.append(AUROC)
            continue
        try:
            measure = Measure.parse(name)
        except UsageError as error:
            problems.append(str(error))
            continue
        if problem := _problem_of(measure):
            problems.append(f"{name}: {problem}")
        elif not measure.is_trec and not {*str(name).lower().split(".")} & {*RANK_TYPES}:
            measure = replace(measure, rank_type=rank_type)
        measures.append(measure)
    if problems:
        raise UsageError("\n".join(problems))
    return list(dict.fromkeys(measures))


def _problem_of(measure: Measure) -> str:
    """Return the reason why a measure is not defined for pairs; "" if it is."""
    if measure.side != "both":
        return "a pair has no asked side; leave the side out"
    if not measure.is_trec:
        if measure.rank_type not in RANK_TYPES:
            return f"pairs have the rank types {', '.join(RANK_TYPES)}"
        return "" if measure.averaging == "micro" else "ranks of pairs have micro averages only"
    column = measure.column
    if not has_core_ties(column):
        return "it has no expectation under ties; use map, ndcg_cut_100, P_100, recall_100"
    return ""


def title_of(measure: Measure | str) -> str:
    """Return the heading of a measure."""
    if isinstance(measure, str):
        return "AUROC"
    return measure.title


def key_of(measure: Measure | str) -> str:
    """Return the key of a measure, without a side."""
    if isinstance(measure, str):
        return f"macro.{measure}"
    return measure.key.split(".", 1)[1]


def relation_values(counts: Counts, measures: list[Measure | str]) -> list[Bounds]:
    """Return the values of each measure per relation, relations ascending."""
    columns = [
        measure.column for measure in measures if isinstance(measure, Measure) and measure.is_trec
    ]
    trec = dict(zip(columns, _trec_values(counts, columns), strict=True)) if columns else {}
    values = []
    for measure in measures:
        if isinstance(measure, str):
            values.append(_auroc(counts))
        elif measure.is_trec:
            values.append(trec[measure.column])
        else:
            values.append(_rank_metric(counts, measure, by_relation=True))
    return values


def overall_values(
    counts: Counts, measures: list[Measure | str], per_relation: list[Bounds]
) -> list[Bounds]:
    """Return the value of each measure over all relations, in arrays of length 1.

    Metrics of ranks are means over all pairs. Other measures are weighted means over relations, by
    their evaluated pairs.
    """
    pairs = np.bincount(number_values(counts.relation)[1])
    values = []
    for measure, bounds in zip(measures, per_relation, strict=True):
        if isinstance(measure, Measure) and not measure.is_trec:
            values.append(_rank_metric(counts, measure, by_relation=False))
        else:
            weighted = (np.array([pairs @ row / pairs.sum()]) for row in bounds)
            values.append(Bounds(*weighted))
    return values


def _rank_metric(counts: Counts, measure: Measure, *, by_relation: bool) -> Bounds:
    """Return the values of a metric of ranks, per relation or over all pairs."""
    n = len(counts.greater)
    ties = Ties(counts.greater, counts.equal, np.zeros(n, np.int64), np.ones(n, np.int64))
    cells = Cells(counts.relation, np.ones(n, np.int64))
    weighing = Weighing(cells, ties, counts.candidates)
    groups = cells.by_relation("tail") if by_relation else cells.of_side("tail")
    metric, parameter = measure.row
    value, best, worst = (
        metric.of_groups(GroupMoments(metric, str(kind), parameter, weighing, groups))
        for kind in (measure.rank_type, "optimistic", "pessimistic")
    )
    return Bounds(value, np.minimum(best, worst), np.maximum(best, worst))


def _auroc(counts: Counts) -> Bounds:
    """Return the AUROC of each relation; ties count half.

    It is the probability that an answer scores higher than a pair that is not an answer.
    """
    query = number_values(counts.relation)[1]
    answers = np.bincount(query)
    order = np.lexsort((counts.macro_greater, query))
    first, size = _find_ties(query[order], counts.macro_greater[order])
    starts = np.cumsum(answers) - answers
    answers_above = np.empty(len(query), np.int64)
    answers_equal = np.empty(len(query), np.int64)
    answers_above[order] = first - starts[query[order]]
    answers_equal[order] = size - 1
    above = counts.macro_greater - answers_above
    level = counts.macro_equal - answers_equal
    others = np.bincount(query, counts.macro_candidates) / answers - answers

    def share(wrong: Int64 | Float64) -> Float64:
        with np.errstate(invalid="ignore"):  # 0 / 0: every candidate is an answer
            return np.asarray(1 - np.bincount(query, wrong) / answers / others)

    return Bounds(share(above + level / 2), share(above + level), share(above))


def _find_ties(query: Int64, greater: Int64) -> tuple[Int64, Int64]:
    """Find the answers that tie with each answer: the first row and the size of the tie.

    Rows are sorted by query and count of greater pairs. Returns int64 (answers,) each.
    """
    is_first = np.ones(len(query), bool)
    is_first[1:] = (query[1:] != query[:-1]) | (greater[1:] != greater[:-1])
    starts = np.flatnonzero(is_first)
    group = np.cumsum(is_first) - 1
    return starts[group], np.diff(starts, append=len(query))[group]


def _trec_values(counts: Counts, columns: list[Column]) -> list[Bounds]:
    """Return trec_eval's measures per relation, as expectations over the orders of ties."""
    query = number_values(counts.relation)[1]
    order = np.lexsort((counts.macro_greater, query))
    query, above = query[order], counts.macro_greater[order]
    first, _ = _find_ties(query, above)
    rank = above + np.arange(len(query)) - first  # from 0, in the best order of each tie
    answers = np.bincount(query)
    retrieved = np.zeros(len(answers), np.int64)
    retrieved[query] = counts.macro_candidates[order]
    lists = lists_of_judged(query, rank, answers, retrieved)
    view = View(lists, EvalOptions(), UNJUDGED + 1)
    values = core_values(view, columns)
    core = core_columns(columns, EvalOptions().compat)
    differs, _, forms = core.placed_ties(view.documents, above, counts.macro_equal[order] + 1)
    changed = np.frombuffer(differs, bool)
    bounds = []
    for form in forms:
        of_ties = np.frombuffer(form).reshape(values.shape)
        bounds.append(np.where(changed, of_ties, values))
    return [Bounds(*rows) for rows in zip(*bounds, strict=True)]
