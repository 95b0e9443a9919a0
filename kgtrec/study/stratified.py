"""Metrics at other weights: of popular entities and relations, and of another set's relations.

Beta curves and grids of stratified metrics are those of Mohamed et al. (2020, section 5, Figures
2-4). A micro metric is a mean over relations, weighted by their triples. The weights of another
test set give the metric that the model would have had with its relations (Zhou et al. 2022, Eq. 1,
Table 4); `spreads` describes how it differs between relations (their Figure 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.arguments import GRAPH, MOST_POINTS, RANKS, check_count, require_type
from kgtrec._internal.arrays import Array, Float64, Int64
from kgtrec._internal.locations import local_copy
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import FileError, InputError, PathName, UsageError, choose
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.popularity import (
    SplitNames,
    entity_popularity,
    relation_popularity,
    resolve_splits,
)
from kgtrec.graph.statistics.relations import check_counts
from kgtrec.graph.triples import drop_duplicates
from kgtrec.measures import RANK_TYPES, Measure, parse_all, stratified_grid
from kgtrec.measures.averaging import SIDES, require_graph, require_side, sides_present
from kgtrec.measures.metric import same
from kgtrec.measures.stratified import DEFAULT_METRICS, Strata, average_strata
from kgtrec.questions.terms import Term
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import check_graph
from kgtrec.results.result import Result

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph


RankFunction = Callable[[Float64], Any]
Metrics = str | Iterable[str] | Mapping[str, RankFunction]

POINTS = 21


def betas(points: int = POINTS) -> Float64:
    """Return equally spaced exponents from -1 to 1; float64 array (points,).

    UsageError if there are fewer than 2.
    """
    check_count("points", points, 0, MOST_POINTS)
    if points < 2:
        raise UsageError(
            f"{points} points are too few for a curve; give at least 2 (papers use 21)"
        )
    return np.round(np.linspace(-1, 1, points), 12) + 0.0


@dataclass(frozen=True, eq=False)
class BetaGrid(ShownAsTables):
    """Stratified metrics over exponents of entity and relation popularity.

    - beta_e, beta_r: Exponents, float64 (e,) and (r,). In a curve, one of them has length 1.
    - values: Values of the metrics, float64 (metrics, e, r).
    - counted_on: Splits on which the popularity of entities, and of relations, was counted.
    - sampled: True if candidates were sampled; tables and captions say so.
    """

    metrics: tuple[str, ...]
    beta_e: Float64
    beta_r: Float64
    values: Float64
    side: str
    rank_type: str
    counted_on: tuple[str, str]
    sampled: bool = False

    def __getitem__(self, metric: str) -> Float64:
        """Return the values of a metric, float64 (e, r)."""
        choose("metric", metric, self.metrics, "is not in this grid")
        return self.values[self.metrics.index(metric)]

    def caption(self) -> str:
        """Return two lines for a figure: ranks and sides, and the splits counted on."""
        entities, relations = self.counted_on
        side = "both sides" if self.side == "both" else f"{self.side} side"
        sampled = "sampled candidates, " if self.sampled else ""
        return (
            f"{sampled}{self.rank_type} ranks, {side}\n"
            f"(entities counted on {entities}, relations on {relations})"
        )

    def table(self) -> Table:
        """Return a table with one row per pair of exponents and one column per metric."""
        points = 100 * np.concatenate([self.beta_e, self.beta_r])
        digits = 2 if np.allclose(points, np.round(points), atol=1e-9) else 4
        pairs = np.meshgrid(self.beta_e, self.beta_r, indexing="ij")
        cells = np.concatenate([pairs, self.values]).reshape(2 + len(self.metrics), -1)
        label = "sampled" if self.sampled else ""
        metrics = [
            (f"strat-{name}", f"{label}.{name}".lstrip("."), 2 if name == "mr" else 4)
            for name in self.metrics
        ]
        first = f"{label} beta_e".lstrip()
        columns = [(first, "beta_e", digits), ("beta_r", "beta_r", digits), *metrics]
        return Table.from_columns(columns, *cells, names=2)


def beta_grid(
    ranks: Ranks,
    beta_e: ArrayLike | None = None,
    beta_r: ArrayLike | None = None,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    rank_type: str = "realistic",
    side: str = "both",
) -> BetaGrid:
    """Compute stratified metrics at every pair of exponents.

    A positive exponent favours rare entities or relations. (beta_e, beta_r) = (0, -1) is the micro
    average (Lemma 1) and (0, 0) the mean over relations (Lemma 2).

    Parameters
    ----------
    ranks : Ranks
        Ranks with popularities as weights: `recount_popularity` replaces the default ones.
    beta_e, beta_r : array_like of float, shapes (e,) and (r,), optional
        Exponents for entities and for relations, in [-1, 1]. Default: 21 from -1 to 1.
    metrics : str, iterable of str, or mapping of name to function
        Metrics with a stratified average ("mr", "mrr", "hits@k", ...), or any functions f of
        the rank. A function gets a float64 array of ranks and returns as many numbers.
    rank_type : {"optimistic", "realistic", "pessimistic", "expected", "ordinal"}
    side : {"head", "tail", "both"}
    """
    require_type("ranks", ranks, Ranks, RANKS)
    e, r = (betas() if beta is None else np.atleast_1d(beta) for beta in (beta_e, beta_r))
    if isinstance(metrics, Mapping):
        names = tuple(metrics)
        values = _of_functions(ranks, e, r, metrics, rank_type, side)
    else:
        names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        values = stratified_grid(ranks, e, r, names, rank_type, side)
    e, r = (np.asarray(beta, np.float64) for beta in (e, r))
    counted_on = Strata.from_ranks(ranks, side).counted_on
    return BetaGrid(names, e, r, values, side, rank_type, counted_on, ranks.sampled)


def beta_curve(
    ranks: Ranks,
    vary: str = "beta_e",
    at: float = 0.0,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    points: ArrayLike | None = None,
    rank_type: str = "realistic",
    side: str = "both",
) -> BetaGrid:
    """Compute stratified metrics for many values of one exponent (Figures 2-4).

    Parameters
    ----------
    ranks : Ranks
    vary : {"beta_e", "beta_r"}
        Exponent on the horizontal axis.
    at : float
        Fixed value of the other exponent, in [-1, 1]; it is 0 in the figures.
    metrics, rank_type, side
        As in `beta_grid`.
    points : array_like of float, shape (b,), optional
        Values of the varied exponent, in [-1, 1]. Default: 21 from -1 to 1.

    Raises
    ------
    UsageError
        As for `beta_grid`, or another `vary`.
    """
    require_type("ranks", ranks, Ranks, RANKS)
    choose("vary", vary, ("beta_e", "beta_r"))
    axis = betas() if points is None else points
    e, r = (axis, [at]) if vary == "beta_e" else ([at], axis)
    return beta_grid(ranks, e, r, metrics, rank_type=rank_type, side=side)


def _of_functions(
    ranks: Ranks,
    beta_e: Array,
    beta_r: Array,
    functions: Mapping[str, RankFunction],
    rank_type: str,
    side: str,
) -> Float64:
    """Average functions of the rank over strata, as `stratified_grid` does for metrics.

    Returns float64 (functions, e, r).
    """
    choose("side", side, SIDES)
    choose("rank_type", rank_type, RANK_TYPES)
    require_graph(f"a grid of {' and '.join(functions)}", ranks)
    require_side(f"a grid of {' and '.join(functions)}", side, sides_present(ranks))
    stratified_grid(
        ranks, beta_e, beta_r, [], "realistic", side
    )  # refuses exponents, with the reason
    values = np.empty((len(functions), len(ranks)))
    for line, (name, function) in zip(values, functions.items(), strict=True):
        line[:] = _apply_to_ranks(ranks, name, function, rank_type)
    e, r = (np.ascontiguousarray(beta, np.float64) for beta in (beta_e, beta_r))
    return average_strata(values, Strata.from_ranks(ranks, side), e, r)


def _apply_to_ranks(ranks: Ranks, name: str, function: RankFunction, rank_type: str) -> Float64:
    """Return the function's value for the rank of each instance, float64 (n,).

    For "expected", it is the mean value over the ranks that the tie allows. InputError if the
    function does not return one finite number per rank.
    """
    expected = rank_type == "expected"
    last = int((ranks.greater + ranks.equal).max()) + 1
    at = np.arange(1.0, last + 1) if expected else ranks.rank(rank_type)
    values = np.asarray(function(at))
    if values.shape != at.shape or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InputError(
            f"{name} of {len(at)} ranks gives {values.dtype} of shape {values.shape}, or numbers "
            "that are not finite; it must give one finite number per rank, like lambda r: 1 / r"
        )
    if not expected:
        return values.astype(np.float64)
    # There are few different ties, so each is summed once and in full precision.
    ties, tie_of_rank = np.unique([ranks.greater, ranks.equal], axis=1, return_inverse=True)
    bounds = np.stack([ties[0], ties.sum(axis=0) + 1], axis=1).ravel()
    sums = np.add.reduceat(np.append(values.astype(np.float64), 0.0), bounds)[::2]
    return np.asarray((sums / (ties[1] + 1))[tie_of_rank.ravel()])


# --- popularity -----------------------------------------------------------------------------------


def recount_popularity(
    ranks: Ranks, graph: Graph, entities: SplitNames = None, relations: SplitNames = None
) -> Ranks:
    """Return the same ranks with popularities counted on chosen splits.

    All stratified values use them: `beta_grid`, and the keys of a `Result` of these ranks.

    Parameters
    ----------
    ranks : Ranks
    graph : Graph
        The graph of these ranks.
    entities, relations : str or iterable of str, optional
        Splits ("train", "train,valid", "all") in which to count the triples of each. None keeps
        the counts of the ranks: by default entities over all splits, and relations over the
        evaluated split.

    Returns
    -------
    Ranks
        A copy; its manifest names the splits under "popularity".

    Raises
    ------
    UsageError
        Another graph, or a split that it lacks.
    """
    require_type("ranks", ranks, Ranks, RANKS)
    require_type("graph", graph, GraphData, GRAPH)
    check_graph(ranks, graph)
    copy = ranks.subset(np.arange(len(ranks)))
    counted: dict[str, Sequence[str]] = {**ranks.provenance.popularity}
    if entities is not None:
        copy.answer_popularity = _answer_counts(ranks, graph, entities)[ranks.answer]
        counted["entities"] = list(resolve_splits(graph, entities))
    if relations is not None:
        copy.relation_popularity = _relation_counts(ranks, graph, relations)[ranks.relation]
        counted["relations"] = list(resolve_splits(graph, relations))
    copy.manifest = ranks.manifest | {"popularity": counted}
    return copy


def _answer_counts(ranks: Ranks, graph: Graph, splits: SplitNames) -> Int64:
    """Count how often each possible answer occurs in the splits, in the way that `Ranks` counts.

    Returns int64 (n_entities,), or (n_relations,) if relations are asked.
    """
    if ranks.kind == "relation":
        return relation_popularity(graph, splits)
    counts = entity_popularity(graph, splits)
    if graph.qualifiers is not None:
        counts = counts + _count_in_qualifiers(graph, splits, 2, graph.n_entities)
    return counts


def _relation_counts(ranks: Ranks, graph: Graph, splits: SplitNames) -> Int64:
    """Count the facts per relation in the splits, int64 (n_relations,).

    If the questions ask for values of qualifiers, count the qualifiers per relation.
    """
    if ranks.given_relation is None:
        return relation_popularity(graph, splits)
    return _count_in_qualifiers(graph, splits, 1, graph.n_relations)


def _count_in_qualifiers(graph: Graph, splits: SplitNames, column: int, size: int) -> Int64:
    """Count the ids below `size` in a column of the qualifiers of the splits, int64 (size,)."""
    rows = [graph.qualifier_facts(name)[:, column] for name in resolve_splits(graph, splits)]
    return np.bincount(np.concatenate(rows), minlength=size).astype(np.int64)


USUAL = ("mr", "mrr", "hits@1", "hits@3", "hits@10")


def read_relation_counts(path: PathName, columns: str = "hrt") -> dict[str, int]:
    """Count the distinct triples per relation label in a file (TSV).

    Its columns are named in the first line, or in the order ``columns``, such as "htr": that which
    the graph declares (``Ranks.provenance.column_order``).

    Raises
    ------
    FileError
        The file is missing or empty, or a line is malformed; the first such line is named.
    """
    from kgtrec.graph.readers.fields import read_label_triples

    with local_copy(path) as copy:
        if not copy.is_file():
            hint = "give a file of triples, such as test.txt"
            raise FileError(path, found="the file does not exist", hint=hint)
        tables = read_label_triples({"given": copy}, None if columns == "hrt" else columns)
    distinct, labels = drop_duplicates(tables.splits["given"]), tables.labels[1]
    counts = np.bincount(distinct[:, 1], minlength=len(labels)).tolist()
    return dict(zip(labels, counts, strict=True))


# --- other ratios ---------------------------------------------------------------------------------


def reweight_mean(values: ArrayLike, counts: ArrayLike) -> float:
    """Return the sum of ratio(p) * value(p) over the relations p that have a value.

    InputError if the lengths differ, or no relation has both a value and a count.
    """
    numbers, weights = np.asarray(values, np.float64), check_counts("counts", counts)
    if numbers.shape != weights.shape:
        raise InputError(
            f"values have shape {numbers.shape}, but counts {weights.shape}; give one of each per "
            "relation"
        )
    has_value = ~np.isnan(numbers)
    total = float(weights[has_value].sum())
    if not total > 0:
        raise InputError(
            "no relation has both a value and a count; give sets that share relations, with the "
            "same labels"
        )
    return float(np.sum(weights[has_value] * numbers[has_value]) / total)


def is_micro_mean(measure: Measure) -> bool:
    """Return True if a measure is a mean over instances, so that relations can be weighted."""
    return measure.averaging == "micro" and not measure.is_trec and measure.row[0].of_mean is same


def reweight(
    result: Result, measure: str | Measure, counts: ArrayLike | Mapping[str, float]
) -> float:
    """Compute a micro metric with the relation ratios of another set of triples.

    See Zhou et al. (2022, Table 4).

    Parameters
    ----------
    result : Result
    measure : key or Measure
        A micro average of a metric that is a mean over instances: MR, MRR, Hits@k, ...
    counts : array_like (n_relations,), or mapping of relation label to number
        Triples of each relation in the other set: ``graph.relation_counts("valid")``, or
        `read_relation_counts` of a file. Relations that either set lacks are ignored, and the
        ratios of the others are normalised again. The counts of `result` give its own metric.

    Raises
    ------
    UsageError
        The measure is not a mean over instances.
    InputError
        The sets share no relation.
    """
    spec = Measure.parse(measure)
    if not is_micro_mean(spec):
        raise UsageError(
            f"{spec} is not a mean over instances, so it has no relation ratios; use a micro "
            "average of MR, MRR or Hits@k, as in both.realistic.micro.mrr"
        )
    by_label = _by_label(result, counts)
    rows = result.slice("relation", [spec]).rows
    weights = [by_label.get(str(row[0]), 0.0) for row in rows]
    return reweight_mean([float(row[-1]) for row in rows], weights)


def reweight_table(
    result: Result,
    counts: ArrayLike | Mapping[str, float],
    measures: Sequence[str | Measure] | None = None,
) -> Table:
    """Return a table with the value of each measure: its own, and with the ratios of `counts`.

    Parameters
    ----------
    result, counts
        As in `reweight`.
    measures : sequence of keys or Measure, optional
        Micro averages; by default MR, MRR and Hits@1, 3, 10.
    """
    require_type("result", result, Result, "a Result (kgtrec.evaluate)")
    side = result.sides[-1]
    specs = parse_all(measures or [f"{side}.realistic.micro.{name}" for name in USUAL])
    return Table.from_columns(
        "measure, own ratios=own:4, given ratios=given:4",
        [result.label + measure.key for measure in specs],
        [result[measure] for measure in specs],
        [reweight(result, measure, counts) for measure in specs],
    )


def coverage_note(result: Result, counts: Mapping[str, float]) -> str | None:
    """Return a sentence on relations that only one of the two sets has, or None if none is."""
    ranks = result.ranks
    numbers, sizes = np.unique(ranks.relation, return_counts=True)
    names = Term(ranks.relation, ranks.relation_labels).texts(numbers)
    evaluated = dict(zip(names, sizes.tolist(), strict=True))
    weighted = {name for name, count in counts.items() if count > 0}
    parts = []
    if foreign := weighted - evaluated.keys():
        triples = sum(counts[name] for name in foreign)
        parts.append(
            f"{len(foreign):,} given relations ({triples:,.10g} of {sum(counts.values()):,.10g} "
            "triples) were not evaluated and are ignored"
        )
    if unweighted := evaluated.keys() - weighted:
        instances = sum(evaluated[name] for name in unweighted)
        parts.append(
            f"{len(unweighted):,} evaluated relations ({instances:,} of {len(ranks):,} instances) "
            "have no given triple and are ignored"
        )
    return "; ".join(parts) or None


def _by_label(result: Result, counts: ArrayLike | Mapping[str, float]) -> Mapping[str, float]:
    """Return the counts by relation label; InputError unless there is one per relation."""
    if isinstance(counts, Mapping):
        return counts
    numbers = check_counts("counts", counts)
    labels = result.ranks.relation_labels or [str(i) for i in range(len(numbers))]
    if len(labels) != len(numbers):
        raise InputError(
            f"counts have {len(numbers)} numbers for {len(labels)} relations; give one for each "
            "relation of the graph, or a mapping of labels to numbers"
        )
    return dict(zip(labels, numbers.tolist(), strict=True))


COUNTS = {"count", "questions", "instances", "from", "to"}
"""Columns of sliced tables that are not measures."""

STATISTICS = ("min", "q1", "median", "q3", "max", "mean", "groups")


def spreads(table: Table) -> Table:
    """Compute quartiles and mean of each measure of a sliced table, over its groups.

    Parameters
    ----------
    table : Table
        From `Result.slice`.

    Returns
    -------
    Table
        Rows min, q1, median, q3, max, mean, and groups (how many have a value). The columns are
        the measures of `table`, without its numbers of questions and instances. Quartiles are
        numpy's linear percentiles.

    Raises
    ------
    InputError
        No group has a value.
    """
    require_type("table", table, Table, "a Table")
    heads: list[tuple[str, str, int]] = []
    columns = []
    for i, head in enumerate(zip(table.titles, table.keys, table.digits, strict=True)):
        if i < table.names or head[1] in COUNTS:
            continue
        values = np.array([float(row[i]) for row in table.rows])
        known = values[~np.isnan(values)]
        if not len(known):
            raise InputError("no group has a value; give values that are not nan")
        quartiles = np.percentile(known, (0, 25, 50, 75, 100)).tolist()
        heads.append(head)
        columns.append((*quartiles, float(known.mean()), len(known)))
    return Table.from_columns([("over groups", "over groups", 0), *heads], STATISTICS, *columns)
