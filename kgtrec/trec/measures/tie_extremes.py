"""Values under ties that the order of relevance does not give: of cut sets, and ends of infAP.

The least and greatest value of most measures are those of the orders with the relevant documents of
each tie group last and first. Not so for infAP with documents that were pooled but not judged: they
raise its estimate for relevant documents behind them if most judged ones before these are relevant.
And utility may reward what is not relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec.trec.measures.expectations import EPSILON
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import UNJUDGED, Lists, View, ratio
from kgtrec.trec.measures.tie_groups import TieGroups, hypergeometric, tie_groups
from kgtrec.trec.measures.trec_measure import EvalOptions, function_of

PICKS: dict[str, Callable[[Float64, Float64], float]] = {
    "expected": lambda values, chances: float((values * chances).sum()),
    "min": lambda values, _: float(values.min()),
    "max": lambda values, _: float(values.max()),
}
"""How to combine the values of all outcomes, and their probabilities, for each kind of value."""


class SetCounts(NamedTuple):
    """Counts that measures of sets use, per outcome of one query; named as in `View`."""

    num_rel_ret: Int64
    num_ret: Int64
    num_rel: Int64
    options: EvalOptions


def set_values(
    lists: Lists, column: Column, options: EvalOptions, plain: Float64, *, ties: str
) -> Float64:
    """Compute a measure of sets if -M may cut a tie group; `plain` has its values by name.

    Of a group with n documents, n_relevant of them relevant, the d that -M keeps hold a
    hypergeometric number of relevant ones. Under -J, so do the other judged ones of the rest.

    Shapes: plain, and the result, float64 (n_queries,).
    """
    result = plain.copy()
    num_rel = View(lists, options).num_rel
    for query, counts, chances in _outcomes(lists, options):
        n = len(chances)
        outcome = SetCounts(*counts, np.full(n, num_rel[query]), options)
        result[query] = PICKS[ties](_set_value(outcome, column), chances)
    return result


def _outcomes(
    lists: Lists, options: EvalOptions
) -> Iterator[tuple[int, tuple[Int64, Int64], Float64]]:
    """Yield each query with a cut group, and the possible numbers of relevant and of all retrieved
    documents, with their probabilities."""
    every = tie_groups(lists, _without_j(options))
    cut = every[(every.drawn > 0) & (every.drawn < every.size)]
    relevant, judged = lists.relevance >= options.level, lists.relevance >= 0
    numbers = zip(
        cut.query.tolist(),
        cut.size.tolist(),
        cut.drawn.tolist(),
        cut.start.tolist(),
        cut.count(relevant).tolist(),
        cut.count(judged).tolist(),
        cut.count_above(relevant).tolist(),
        cut.count_above(judged).tolist(),
        strict=True,
    )
    for query, size, drawn, start, n_rel, n_judged, rel_above, judged_above in numbers:
        low, chances = hypergeometric(size, n_rel, drawn)
        hits = low + np.arange(len(chances))
        if not options.judged_only:
            yield query, (rel_above + hits, np.full(len(hits), start + drawn)), chances
            continue
        parts = []
        for hit, chance in zip(hits.tolist(), chances.tolist(), strict=True):
            least, given = hypergeometric(size - n_rel, n_judged - n_rel, drawn - hit)
            non_relevant = least + np.arange(len(given))
            parts.append((np.full(len(given), hit), non_relevant, chance * given))
        hits, non_relevant, chances = (np.concatenate(each) for each in zip(*parts, strict=True))
        yield query, (rel_above + hits, judged_above + hits + non_relevant), chances


def _without_j(options: EvalOptions) -> EvalOptions:
    return EvalOptions(
        level=options.level, compat=options.compat, most=options.most, judged_only=False
    )


def _set_value(counts: SetCounts, column: Column) -> Float64:
    """Compute a measure of sets from counts."""
    hits, retrieved, relevant = (count.astype(np.float64) for count in counts[:3])
    if column.measure == "utility":
        return np.asarray(function_of(column.row.function)(counts, column), np.float64)
    if column.measure == "set_relative_P":
        return ratio(hits, np.minimum(retrieved, relevant))
    if column.measure == "set_map":
        return ratio(hits * hits, retrieved * relevant)
    precision, recall = ratio(hits, retrieved), ratio(hits, relevant)
    if column.measure == "set_F":
        weight = column.cutoff or 0.0
        return ratio((weight + 1.0) * precision * recall, weight * precision + recall)
    return {"set_P": precision, "set_recall": recall}[column.measure]


# -- infAP -----------------------------------------------------------------------------------------


class _TieGroup(NamedTuple):
    """A tie group: its documents by kind, the kept ones, and those above it by kind."""

    relevant: int
    worse: int
    pooled: int
    size: int
    drawn: int
    relevant_above: int
    worse_above: int
    pooled_above: int
    start: int


def inferred_ap_ends(
    lists: Lists, options: EvalOptions, sorted_values: Float64, *, ties: str
) -> Float64:
    """Compute the least or greatest infAP; `sorted_values` are those of the order of relevance.

    Exact for the first 99,999 documents of a query, and within 1e-10 behind them, where the
    constants that infAP adds to its counts decide.

    Shapes: sorted_values, and the result, float64 (n_queries,).
    """
    result = sorted_values.copy()
    if options.judged_only:  # no document is pooled and not judged
        return result
    relevant = lists.relevance >= options.level
    pooled = (lists.relevance < 0) & (lists.relevance != UNJUDGED)
    groups = tie_groups(lists, options)
    groups = groups[(groups.count(relevant) > 0) & (groups.count(pooled) > 0) & (groups.drawn > 0)]
    num_rel = View(lists, options).num_rel.tolist()
    worse = (lists.relevance >= 0) & ~relevant
    for query, group in zip(
        groups.query.tolist(), _describe(groups, (relevant, worse, pooled)), strict=True
    ):
        best, in_order = _end_of_group(group, ties == "max")
        result[query] += (best - in_order) / num_rel[query]
    return result


def _describe(groups: TieGroups, kinds: tuple[Bools, Bools, Bools]) -> Iterator[_TieGroup]:
    inside = [groups.count(mask) for mask in kinds]
    above = [groups.count_above(mask) for mask in kinds]
    columns = (*inside, groups.size, groups.drawn, *above, groups.start)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield _TieGroup(*row)


def _end_of_group(group: _TieGroup, greatest: bool) -> tuple[float, float]:
    """Return the group's best (or worst) part of infAP times R, and that of the order of relevance.

    Documents without a judgement, and judged non-relevant ones, never raise the estimate for those
    behind them: they come last for the greatest value and first for the least. It remains to
    interleave relevant and pooled documents. Dynamic programming tries, for each relevant document
    from the last on, every number of pooled documents before it.
    """
    pooled = np.arange(group.pooled + 1)
    worse, shift = group.worse_above, 0
    if not greatest:
        worse += group.worse
        shift = group.size - group.relevant - group.pooled
    best = np.zeros(len(pooled))
    in_order = 0.0
    for hit in range(group.relevant - 1, -1, -1):
        position = shift + hit + pooled
        hits = group.relevant_above + hit
        before = hits + worse
        unsure = group.pooled_above + pooled
        terms = 1.0 + (before + unsure) * (hits + EPSILON) / (before + 2 * EPSILON)
        terms = np.where(position < group.drawn, terms / (group.start + position + 1), 0.0)
        in_order += float(terms[0 if greatest else -1])
        choose = np.maximum if greatest else np.minimum
        best = choose.accumulate((terms + best)[::-1])[::-1]
    return float(best[0]), in_order
