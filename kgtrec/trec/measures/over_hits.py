"""Average precision over the hits among the first k, and with ties at their last rank.

Over the hits, the order with the relevant documents first need not be the best: a relevant document
at the end of the first k may lower the mean of the precisions. So the values over all orders of a
tie that the cutoff divides come from the number t of its relevant documents above the cutoff. Given
t, these are best at the first places and worst at the last ones. In a random order t is
hypergeometric, every set of t places is equally likely, and the precisions add up as in
`kgtrec.trec.measures.ties`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import Lists, View, ratio
from kgtrec.trec.measures.tie_groups import TieGroups, chance_of_more, tie_groups
from kgtrec.trec.measures.trec_measure import EvalOptions


def precision_over_hits(view: View, column: Column) -> Float64:
    """Average the precision at the relevant documents among the first k of every query."""
    hits, depth = view.hits, int(column.cutoff or 0)
    near = hits.rank < depth
    total = hits.total(np.where(near, hits.ordinal / (hits.rank + 1.0), 0.0))
    return ratio(total, hits.total(near.astype(np.float64)))


def label_ranking_precision(view: View, column: Column) -> Float64:
    """Average the precision at the last rank of each relevant document's tie."""
    hits = view.hits
    last = view.tie_ends[hits.position]
    precision = hits.before(hits.query, last) / last
    return ratio(hits.total(precision), view.num_rel)


def expected_over_hits(tied: Any, column: Column) -> Float64:
    """Compute the expectation of `precision_over_hits` over all orders of ties."""
    slots, count, above = tied.hits
    depth = int(column.cutoff or 0)
    groups: TieGroups = slots.groups
    divided = _find_divided(groups, depth)
    whole = (~divided)[slots.group] & (slots.rank <= depth) & (slots.seen > 0)
    total = tied.total(slots.query, np.where(whole, tied.precision / slots.rank, 0.0))
    inside = ~divided & (groups.start < depth) & (groups.drawn > 0)
    hits = tied.total(groups.query[inside], count[inside].astype(np.float64))
    values = ratio(total, hits)
    for index in np.flatnonzero(divided).tolist():
        query, size = int(groups.query[index]), int(groups.size[index])
        seen = slots.seen[slots.group == index]
        most = min(depth - int(groups.start[index]), size)
        chance = np.append(seen[:most] - np.append(seen[1:most], 0.0), 0.0)
        value = ratio(total[query : query + 1], hits[query : query + 1])[0] * (1.0 - seen[0])
        for n_listed in (np.flatnonzero(chance[:most] > 0) + 1).tolist():
            mean = _mean_of_places(
                n_listed,
                size,
                int(count[index]),
                int(groups.start[index]),
                int(above[index]),
                float(total[query]),
            )
            value += chance[n_listed - 1] * mean
        values[query] = value
    return values


def _find_divided(groups: TieGroups, depth: int) -> Any:
    """Mark the groups of which some places may be beyond the cutoff or the limit of -M, bool."""
    inside = (groups.start < depth) & (groups.drawn > 0)
    return inside & ((groups.start + groups.size > depth) | (groups.drawn < groups.whole))


def _mean_of_places(
    n_listed: int, size: int, count: int, start: int, above: int, total: float
) -> float:
    """Compute the mean value if a list ends after some places of a tie, over all orders of it.

    - size, count: Number of documents in the tie, and of relevant ones.
    - start, above: Number of documents above it, and of relevant ones.
    - total: Expected sum of precisions above it.
    """
    chance_of_hits = np.concatenate(([1.0], chance_of_more(size, count, n_listed), [0.0]))
    t = np.arange(count + 1)
    turn = np.arange(n_listed)
    per_rank = 1.0 / (start + turn + 1.0)
    first, second = per_rank.sum(), (turn * per_rank).sum()
    pairs = second * (t - 1) / max(n_listed - 1, 1)
    sums = total + t / n_listed * ((above + 1) * first + pairs)
    return float(((chance_of_hits[:-1] - chance_of_hits[1:]) * ratio(sums, above + t)).sum())


def ends_over_hits(lists: Lists, column: Column, options: EvalOptions) -> tuple[Float64, Float64]:
    """Compute the least and the greatest `precision_over_hits` over all orders of ties.

    Two arrays, float64 (n_queries,).
    """
    depth = int(column.cutoff or 0)
    groups = tie_groups(lists, options, lists.relevance >= options.level)
    count = groups.count(groups.lists.relevance >= options.level)
    groups, count = _seen_groups(groups, count, depth)
    divided = _find_divided(groups, depth)
    least, greatest = np.zeros(len(lists)), np.zeros(len(lists))
    sums, hits, query = [0.0, 0.0], 0, -1
    for row in range(len(groups)):
        if groups.query[row] != query:
            sums, hits, query = [0.0, 0.0], 0, int(groups.query[row])
        size, start, relevant = int(groups.size[row]), int(groups.start[row]), int(count[row])
        n_listed, t = size, np.array([relevant])
        others = size - relevant
        if divided[row]:
            drawn, unjudged = int(groups.drawn[row]), int(groups.whole[row]) - size
            n_listed = min(depth - start, drawn)
            kept = max(0, drawn - others - unjudged)
            t = np.arange(min(kept, max(0, n_listed - others)), min(relevant, n_listed) + 1)
        before = np.minimum(others, n_listed - t)
        ends = [
            sums[0] + _sum_of_block(start + before, hits, t),
            sums[1] + _sum_of_block(np.full(len(t), start), hits, t),
        ]
        least[query] = ratio(ends[0], hits + t).min()
        greatest[query] = ratio(ends[1], hits + t).max()
        sums, hits = [float(end[-1]) for end in ends], hits + relevant
    return least, greatest


def _seen_groups(groups: TieGroups, count: Int64, depth: int) -> tuple[TieGroups, Int64]:
    """Select the groups that have relevant documents and begin before the cutoff."""
    rows = np.flatnonzero((count > 0) & (groups.start < depth) & (groups.drawn > 0))
    return groups[rows], count[rows]


def _sum_of_block(start: Int64, hits: int, t: Int64) -> Float64:
    """Sum the precisions at t successive relevant documents behind `start` documents.

    `hits` of these are relevant. Shapes: start (n,), t (n,).
    """
    step = np.arange(1, int(t.max(initial=0)) + 1)
    terms = (hits + step) / (start[:, None] + step)
    return np.asarray(np.where(step <= t[:, None], terms, 0.0).sum(axis=1))
