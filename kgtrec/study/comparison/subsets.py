"""Measures of several systems on any subset of the test triples, without ranking again.

Triples outside the subset are not asked, but are still known answers. So micro and question-level
ranks do not change. Then almost every measure is a product of two matrices: weights (subsets by
items) and values (items by systems). The value of a question on a subset depends on the order of
its answers, which differs between systems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec.errors import InputError, UsageError, must_be
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES, Weighing, instance_ties, require_side, sides_present
from kgtrec.measures.metric import OfMean, same
from kgtrec.measures.ties import Ties
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.comparison.samples import transform_of
from kgtrec.trec.eval.kg_metrics import is_worst_end, value_of_answers
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.rows import TABLE

SubsetValues = Callable[[Bools], Float64]
"""A function of subsets, bool (B, n_triples), that returns the values of a measure on them.

The values are float64 (..., B, s); NaN on a subset without items.
"""


def subset_values(aligned: Mapping[str, Ranks], measures: Sequence[Measure]) -> SubsetValues:
    """Return a function that computes measures on subsets, float64 (measures, B, s).

    A subset without items has the value NaN. If chance is the same for all systems, an adjusted
    metric is computed without the adjustment, because this does not change the order of systems.
    """
    present = sides_present(next(iter(aligned.values())))
    parts: list[tuple[list[int], SubsetValues]] = []
    together: dict[str, dict[str, dict[int, Measure]]] = {}
    for number, measure in enumerate(measures):
        measure = replace(measure, side=require_side(measure, measure.side, present))
        kind = _kind(measure)
        if kind in ("first", "place"):
            kinds = together.setdefault(measure.side, {"first": {}, "place": {}})
            kinds[kind][number] = measure
        else:
            parts.append(([number], _on_subsets(aligned, measure, kind)))
    for side, kinds in together.items():
        parts.append(([*kinds["first"], *kinds["place"]], _by_question(aligned, side, kinds)))

    def values_of(subsets: Bools) -> Float64:
        results: dict[int, Float64] = {}
        for numbers, values_on in parts:
            values = values_on(subsets).reshape(len(numbers), len(subsets), -1)
            results |= zip(numbers, values, strict=True)
        return np.array([results[number] for number in range(len(results))])

    return values_of


def _kind(measure: Measure) -> str:
    """Return which answers decide a question-level measure (see `_SEEN`); "" for other measures."""
    if measure.is_trec:
        return _SEEN[_trec_measure(measure)[0]][0]
    # Expected ranks count the tied answers of a question together, which depends on the subset.
    return "first" if measure.averaging == "macro" and measure.rank_type != "expected" else ""


def _on_subsets(aligned: Mapping[str, Ranks], measure: Measure, kind: str) -> SubsetValues:
    """Return the function that computes a measure if the order of answers does not matter."""
    if kind == "each":
        return _over_answers(aligned, measure)
    if measure.averaging == "stratified":
        return _weigh_strata(aligned, measure)
    # All systems have the same candidates, so the same chance: adjusting is one affine function
    # for all. In a mean over relations, chance differs between relations.
    if measure.row[0].is_adjusted and measure.averaging != "macro_relation":
        measure = measure.base
    try:
        transform = None if measure.averaging == "macro" else transform_of(measure)
    except UsageError:
        transform = None
    if transform is None:
        return partial(_by_result, aligned, measure)
    return _linear(aligned, measure, transform)


# -- Weights that depend on the subset only ----------------------------------------------------


def _weigh(
    values: Float64,
    triple: Int64,
    transform: OfMean = same,
    starts: Int64 | None = None,
    weight: Float64 | float = 1.0,
    divisor: OfMean = same,
) -> SubsetValues:
    """Return the function that averages items, or sums of items per owner, over each subset.

    Owners are questions or relations.

    - values, float64 (n, s): Values of the items, which are sorted by owner.
    - triple, int64 (n,): Index of the triple of each item.
    - starts: First item of each owner; None for a plain mean over items.
    - weight: Weight of each owner, float64 (owners,), or of all.
    - divisor: Function from the number of kept items of an owner to the divisor of its sum. With
      `same`, the sum becomes a mean.
    """

    def values_of(subsets: Bools) -> Float64:
        chosen = subsets[:, triple].astype(np.float64)
        if starts is None:
            total = chosen.sum(axis=1)
        else:
            counts = np.add.reduceat(chosen, starts, axis=1)
            each = np.where(counts > 0, weight, 0.0)
            total = each.sum(axis=1)
            sizes = np.diff(starts, append=len(values))
            chosen *= np.repeat(each / divisor(np.maximum(counts, 1.0)), sizes, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return transform(_product(chosen, values) / total[:, None])

    return values_of


def _linear(aligned: Mapping[str, Ranks], measure: Measure, transform: OfMean) -> SubsetValues:
    """Return the function that averages over triples, instances, questions or relations."""
    first = next(iter(aligned.values()))
    if measure.averaging == "triple":
        values = _columns(
            aligned,
            lambda ranks: measure.per_item(Weighing.from_ranks(ranks, "triple", measure.side).ties),
        )
        return _weigh(values, np.arange(len(values)), transform)
    rows, starts = _of_side(first, measure.side), None
    if measure.averaging != "micro":
        owner = first.question if measure.averaging == "question" else first.relation
        rows, starts = _sort_by_owner(rows, owner)
    values = _columns(aligned, lambda ranks: measure.per_item(instance_ties(ranks)[rows]))
    return _weigh(values, _triple_index(first)[rows], transform, starts)


def _over_answers(aligned: Mapping[str, Ranks], measure: Measure) -> SubsetValues:
    """Return the function that sums over a question's answers, and averages over questions.

    Questions without an answer in the subset do not count.
    """
    name, k = _trec_measure(measure)
    first = next(iter(aligned.values()))
    rows, starts = _sort_by_owner(_of_side(first, measure.side), first.question)
    values = _columns(aligned, lambda ranks: _answer_values(ranks, measure)[rows])
    triple = _triple_index(first)[rows]
    return _weigh(values, triple, starts=starts, divisor=_DIVISORS[name](k))


def _weigh_strata(aligned: Mapping[str, Ranks], measure: Measure) -> SubsetValues:
    """Return the function that computes a stratified average.

    The value of a triple is a weighted mean over its sides. The triples of a relation have the same
    weight, and relations are weighted.
    """
    first = next(iter(aligned.values()))
    beta_e, beta_r = measure.params
    rows = _of_side(first, measure.side)
    rows = rows[np.lexsort((first.triple[rows], first.relation[rows]))]
    if beta_e > 0 and not first.answer_popularity[rows].all():
        raise InputError(
            f"{measure}: an answer has popularity 0, so its weight is infinite; choose another "
            "measure"
        )
    starts = np.flatnonzero(np.diff(first.triple[rows], prepend=-1))
    weight = first.answer_popularity[rows].astype(np.float64) ** -beta_e
    total = np.add.reduceat(weight, starts)
    values = _columns(
        aligned,
        lambda ranks: (
            np.add.reduceat(weight * measure.per_item(instance_ties(ranks)[rows]), starts) / total
        ),
    )
    heads = rows[starts]
    owners = np.flatnonzero(np.diff(first.relation[heads], prepend=-1))
    shares = first.relation_popularity[heads[owners]].astype(np.float64) ** -beta_r
    return _weigh(values, _triple_index(first)[heads], starts=owners, weight=shares)


def _of_side(ranks: Ranks, side: str) -> Int64:
    """Return the rows of the instances of a side, or of both sides."""
    return np.flatnonzero(np.isin(ranks.side, SIDES[side]))


def _sort_by_owner(rows: Int64, owner: Int64) -> tuple[Int64, Int64]:
    """Return the rows sorted by owner, and the index of the first row of each owner."""
    rows = rows[np.argsort(owner[rows], kind="stable")]
    return rows, np.flatnonzero(np.diff(owner[rows], prepend=-1))


def _columns(aligned: Mapping[str, Ranks], values: Callable[[Ranks], Float64]) -> Float64:
    """Call `values` for each system, and stack the results as columns, float64 (n, s)."""
    return np.column_stack([values(ranks) for ranks in aligned.values()])


def _triple_index(ranks: Ranks) -> Int64:
    """Return the index of each row's triple among all triples in ascending order, int64 (n,)."""
    return np.unique(ranks.triple, return_inverse=True)[1].astype(np.int64)


def _product(left: Float64, right: Float64) -> Float64:
    """Multiply matrices in the calling thread; the threads of a BLAS would wait for each other."""
    return np.asarray(np.einsum("ij,jk->ik", left, right))


# -- The value of an answer depends on the answers before it -----------------------------------


def _ordinal(ranks: Ranks) -> Float64:
    """Return the rank of each answer in a run of unlimited depth; infinite without a score."""
    return np.where(ranks.macro_answer_nan, np.inf, ranks.macro_rank("ordinal"))


def _by_question(
    aligned: Mapping[str, Ranks], side: str, kinds: Mapping[str, Mapping[int, Measure]]
) -> SubsetValues:
    """Return the function for measures that depend on the order of a question's answers.

    Measures are sums over answers, averaged over the questions that keep an answer. The kind
    "first" depends only on the first answer of a question. The kind "place", AP@k, is the mean over
    the answers of value x number of answers up to it. The rows of a system are sorted by question,
    and then in the order of its answers.
    """
    first = next(iter(aligned.values()))
    of_side, triple = _of_side(first, side), _triple_index(first)
    question = first.question[of_side]
    sizes = np.unique(question, return_counts=True)[1]
    by_firsts, by_places = ([*kinds[kind].values()] for kind in ("first", "place"))
    systems: list[tuple[Any, ...]] = []
    for ranks in aligned.values():
        rows = of_side[np.lexsort((_ordinal(ranks)[of_side], question))]
        values = [
            np.array([_answer_values(ranks, measure)[rows] for measure in measures]).reshape(
                len(measures), len(rows)
            )
            for measures in (by_firsts, by_places)
        ]
        systems.append((triple[rows], *values, _changes_of_ties(ranks, rows, by_firsts)))

    return _weigh_in_order(systems, sizes, len(by_firsts), len(by_places))


def _weigh_in_order(
    systems: Sequence[tuple[Any, ...]], sizes: Int64, n_first: int, n_place: int
) -> SubsetValues:
    """Return the function for measures whose weights depend on the order of the answers.

    - systems: For each system, whose rows are sorted by question and then in its own order: the
      index of each row's triple, values of the `n_first` measures of the kind "first" and of the
      `n_place` of the kind "place", float64 (measures, rows), and the function for ties.
    - sizes: Number of answers of each question, int64 (questions,).
    """
    starts = np.cumsum(sizes) - sizes

    def values_of(subsets: Bools) -> Float64:
        transposed = np.ascontiguousarray(subsets.T).view(np.uint8)
        counts = np.add.reduceat(transposed[systems[0][0]], starts, dtype=np.uint32)
        share = np.repeat(1.0 / np.maximum(counts, 1), sizes, axis=0)
        sums = np.empty((n_first + n_place, len(subsets), len(systems)))
        for system, (triples, by_first, by_place, changes) in enumerate(systems):
            chosen = transposed[triples]
            # Number of chosen answers of the question, up to each answer.
            running = np.cumsum(chosen, axis=0, dtype=np.uint32)
            running -= np.repeat(running[starts] - chosen[starts], sizes, axis=0)
            if n_first:
                weight = np.where(running == 1, chosen, np.uint8(0)).astype(np.float64)
                sums[:n_first, :, system] = _product(by_first, weight)
                sums[:n_first, :, system] += changes(chosen, weight)
            if n_place:
                sums[n_first:, :, system] = _product(by_place, (chosen * running) * share)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / (counts > 0).sum(axis=0)[:, None])

    return values_of


def subset_values_of_runs(question: Int64, ranks: Float64, measures: Sequence[str]) -> SubsetValues:
    """Return a function that computes measures of runs on subsets of their answers.

    It takes subsets, bool (B, n_answers), and returns values, float64 (measures, B, s).

    Parameters
    ----------
    question : ndarray of int64, shape (n_answers,)
        Question of each answer (relevant document), ascending.
    ranks : ndarray of float64, shape (n_answers, s)
        Rank of each answer in the run of each system; infinite if the run lacks it.
    measures : sequence of str
        Measures of trec_eval that follow from the ranks of the answers.
    """
    sizes = np.unique(question, return_counts=True)[1]
    columns = [_parse_trec_measure(name) for name in measures]
    kinds = [_SEEN[name][0] for name, _ in columns]
    by_first, by_place, separate = (
        [i for i, kind in enumerate(kinds) if kind == wanted]
        for wanted in ("first", "place", "each")
    )
    systems: list[tuple[Any, ...]] = []
    for of_system in ranks.T:
        order = np.lexsort((of_system, question))
        values = [_SEEN[name][1](of_system[order], k) for name, k in columns]
        rows = [
            np.array([values[i] for i in numbers]).reshape(len(numbers), len(order))
            for numbers in (by_first, by_place)
        ]
        systems.append((order, *rows, lambda chosen, weight: 0.0))
    in_order = _weigh_in_order(systems, sizes, len(by_first), len(by_place))
    parts = [([*by_first, *by_place], in_order)] if by_first or by_place else []
    every, starts = np.arange(len(question)), np.cumsum(sizes) - sizes
    for number in separate:
        name, k = columns[number]
        seen = _SEEN[name][1](ranks, k)
        parts.append(([number], _weigh(seen, every, starts=starts, divisor=_DIVISORS[name](k))))

    def values_of(subsets: Bools) -> Float64:
        results = np.empty((len(columns), len(subsets), ranks.shape[1]))
        for numbers, values_on in parts:
            results[numbers] = values_on(subsets).reshape(len(numbers), len(subsets), -1)
        return results

    return values_of


@dataclass(frozen=True, eq=False)
class ListedAnswers:
    """Where the answers of all queries are in one run, ties not broken.

    - above, int64 (n_answers,): Documents with a higher score; -1 if the run lacks the answer.
    - tied, int64 (n_answers,): Documents with the same score, the answer included.
    - length, int64 (n_queries,): Documents of each query.
    """

    above: Int64
    tied: Int64
    length: Int64


def subset_values_of_answers(
    question: Int64, runs: Sequence[ListedAnswers], columns: Sequence[Column], entities: int | None
) -> SubsetValues:
    """Return a function that computes kg_ measures of runs on subsets of their answers.

    It takes subsets, bool (B, n_answers), and returns values, float64 (measures, B, s). An answer
    outside the subset is a document like any other, so it moves the ranks of answers behind it.

    Parameters
    ----------
    question : ndarray of int64, shape (n_answers,)
        Question of each answer (relevant document), ascending.
    runs : sequence of ListedAnswers
        One per system.
    columns : sequence of Column
        Measures of answers that are means.
    entities : int, optional
        Number of entities of the graph, which bounds the ranks of answers that a run lacks.
    """
    ordered = [_AnswersInOrder(question, run, entities) for run in runs]
    functions = [(column, value_of_answers(column, None)) for column in columns]

    def values_of(subsets: Bools) -> Float64:
        transposed = np.ascontiguousarray(subsets.T)
        results = np.empty((len(columns), len(subsets), len(runs)))
        for system, answers in enumerate(ordered):
            chosen = transposed[answers.order]
            listed, ends = answers.counts_on(chosen)
            for row, (column, value) in enumerate(functions):
                end = ends[int(is_worst_end(column))]
                each = np.where(answers.is_listed, value(*listed), 0.0)
                if end is not None:
                    each = np.where(answers.is_listed, each, value(end, np.zeros_like(end)))
                results[row, :, system] = (each * chosen).sum(axis=0)
        with np.errstate(invalid="ignore"):
            return results / subsets.sum(axis=1)[:, None]

    return values_of


class _AnswersInOrder:
    """The answers of a run by query, best first, and those that the run lacks last."""

    def __init__(self, question: Int64, run: ListedAnswers, entities: int | None) -> None:
        missing = run.above < 0
        self.order = np.lexsort((run.above, missing, question))
        self.above, self.tied = run.above[self.order, None], run.tied[self.order, None]
        self.is_listed = ~missing[self.order, None]
        self.length = run.length[question[self.order], None]
        self.entities = entities
        of_query, above = question[self.order], self.above[:, 0]
        first_of_query = np.diff(of_query, prepend=-1) != 0
        first_of_tie = first_of_query | (np.diff(above, prepend=-2) != 0)
        self.query, self.tie = _spans(first_of_query), _spans(first_of_tie)

    def counts_on(self, chosen: Bools) -> tuple[tuple[Int64, Int64], tuple[Int64, Int64 | None]]:
        """Count the non-answers before and tied with each answer, if only the `chosen` are answers.

        `chosen` and counts have shape (n_answers, B). Returns the counts of listed answers, and the
        fewest and the most non-answers before answers that the run lacks; None for no limit.
        """
        total = np.zeros((len(chosen) + 1, chosen.shape[1]), np.int64)
        np.cumsum(chosen, axis=0, out=total[1:])
        before = total[self.tie[0]] - total[self.query[0]]
        alike = total[self.tie[1]] - total[self.tie[0]]
        worst = None
        if self.entities is not None:
            worst = self.entities - (total[self.query[1]] - total[self.query[0]])
        # The last tie of a query has the answers that the run lacks, behind all listed ones.
        best = self.length - before
        # Counts of answers that the run lacks must be valid, but are not used.
        greater = np.where(self.is_listed, self.above - before, 0)
        equal = np.where(self.is_listed, self.tied - alike, 0)
        return (greater, equal), (best, worst)


def _spans(first: Bools) -> tuple[Int64, Int64]:
    """Return the first row of each row's group, and the row after its last; int64 (n,) each."""
    starts = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    return starts[group], np.append(starts[1:], len(first))[group]


def _parse_trec_measure(name: str) -> tuple[str, int]:
    """Return the measure and its cutoff (0: none); UsageError unless it follows from ranks."""
    columns = resolve([name])
    if len(columns) != 1 or columns[0].measure not in _SEEN:
        known = [f"{measure}_K" if TABLE[measure].kind == "rank" else measure for measure in _SEEN]
        known += ["kg_mrr", "kg_hits.K", "kg_mr"]
        raise UsageError(
            f"{name!r} has no value on parts of the judgements; {must_be(name, known)}"
        )
    if columns[0].judged_only or columns[0].level not in (None, 1):
        raise UsageError(
            f"{name!r}: parts are of the judgements from relevance 1, and documents without one "
            f"stay in the lists; give {columns[0].plain.name!r} without rel and judged_only"
        )
    return columns[0].measure, int(columns[0].cutoff or 0)


def _changes_of_ties(
    ranks: Ranks, rows: Int64, measures: Sequence[Measure]
) -> Callable[[NDArray[np.uint8], Float64], Float64]:
    """Return a function that corrects sums for ties of which several answers are chosen.

    It takes the chosen answers, uint8 (answers, B), and their weights, float64 (answers, B). It
    returns the changes of the sums, float64 (measures, B).
    """
    keys = np.column_stack([ranks.question[rows], ranks.macro_greater[rows]])
    _, tie, size = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    tie = tie.reshape(-1)
    shared = np.flatnonzero((size[tie] > 1) & (ranks.macro_equal[rows] > 0))
    most = int(size[tie[shared]].max(initial=1))
    # Values if 1, 2, ... answers of the tie are chosen.
    values = np.array(
        [
            [_answer_values(ranks, measure, count)[rows[shared]] for measure in measures]
            for count in range(1, most + 1)
        ]
    ).reshape(most, len(measures), len(shared))
    values = np.ascontiguousarray(values.transpose(1, 2, 0))
    ties, tie_of = np.unique(tie[shared], return_inverse=True)
    tie_of = tie_of.reshape(-1)

    def changes(chosen: NDArray[np.uint8], weight: Float64) -> Float64:
        counts = np.zeros((len(ties), chosen.shape[1]), np.int64)
        np.add.at(counts, tie_of, chosen[shared])
        each = np.maximum(counts[tie_of] - 1, 0)
        gained = values[:, np.arange(len(shared))[:, None], each] - values[:, :, :1]
        return np.asarray((gained * weight[shared]).sum(axis=1))

    return changes


def _answer_values(ranks: Ranks, measure: Measure, tied: int = 1) -> Float64:
    """Return the value of each answer for a question-level measure, float64 (n,).

    `tied` is the number of chosen answers in the answer's tie.
    """
    if measure.is_trec:
        name, k = _trec_measure(measure)
        return _SEEN[name][1](_ordinal(ranks), k)
    columns = (ranks.macro_greater, ranks.macro_equal, ranks.macro_tied_ahead)
    return measure.per_item(Ties(*columns, np.minimum(tied, ranks.macro_equal + 1)))


def _trec_measure(measure: Measure) -> tuple[str, int]:
    """Return trec_eval's measure and its cutoff; UsageError if ranks do not determine it."""
    column = resolve([measure.metric])[0]
    if column.measure not in _SEEN:
        known = must_be(column.measure, _SEEN)
        raise UsageError(f"{measure} does not follow from ranks; {known}")
    return column.measure, int(column.cutoff or 0)


def _ideal(k: int) -> OfMean:
    """Return the function from the number of answers to the ideal DCG at k."""
    gains = np.cumsum(1.0 / np.log2(np.arange(2.0, k + 2.0)))
    return lambda counts: gains[np.minimum(counts, k).astype(np.int64) - 1]


_DIVISORS: dict[str, Callable[[int], OfMean]] = {
    "ndcg_cut": _ideal,
    "recall": lambda k: same,
    "P": lambda k: lambda counts: np.full(counts.shape, float(k)),
}


def _within(rank: Float64, k: int) -> Float64:
    """Return 1 for ranks up to k, else 0."""
    return (rank <= k).astype(np.float64)


_Row = tuple[str, Callable[[Float64, int], Float64]]

_SEEN: dict[str, _Row] = {
    "map": ("place", lambda rank, k: 1.0 / rank),
    "map_cut": ("place", lambda rank, k: np.where(rank <= k, 1.0 / rank, 0.0)),
    "success": ("first", _within),
    "recip_rank": ("first", lambda rank, k: 1.0 / rank),
    "recip_rank_cut": ("first", lambda rank, k: np.where(rank <= k, 1.0 / rank, 0.0)),
    "ndcg_cut": ("each", lambda rank, k: np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)),
    "recall": ("each", _within),
    "P": ("each", _within),
}
"""Kind of each family of measures, and the value of an answer at a rank.

The kind says which answers of a question count: only the "first", "each" separately, or each by its
"place" among the answers.
"""


# -- Anything else -----------------------------------------------------------------------------


def _by_result(aligned: Mapping[str, Ranks], measure: Measure, subsets: Bools) -> Float64:
    """Compute a measure on every subset and system separately, float64 (B, s).

    It is for medians, deviations and expectations over questions.
    """
    triple = _triple_index(next(iter(aligned.values())))
    values = np.full((len(subsets), len(aligned)), np.nan)
    for row, chosen in enumerate(subsets):
        if chosen.any():
            values[row] = [
                Result(ranks.subset(chosen[triple]))[measure] for ranks in aligned.values()
            ]
    return values
