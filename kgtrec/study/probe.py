"""Metrics weighted as in PROBE, by the popularity of answers (arXiv 2512.06296, 2606.08921).

The weight of an instance with the answer x and the relation r is (e + p(x))^-b (e' + p(x, r))^-c.
The popularity p(x) is the number of times that x occurs in train as subject or object, and p(x, r)
the number of times in triples of r. Both are shares of the train triples; e and e' are the smallest
of each above zero. With ``probe@a``, the weighted mean is PROBE's score. With b = c = 0, it is the
micro average.

The authors' published code applies b where the papers mean c. This module follows the papers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.arguments import GRAPH, RANKS, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.popularity import entity_popularity
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES, instance_ties, require_side, sides_present
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import check_graph
from kgtrec.study.stratified import is_micro_mean

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

PROBE_METRICS = ("probe@0", "probe@0.5", "probe@1", "mrr")


@dataclass(frozen=True, eq=False)
class ProbeGrid(ShownAsTables):
    """Metrics over the two exponents of PROBE's weights.

    - metrics: Names of the metrics, such as "probe@1".
    - b, c, float64 (b,) and (c,): Exponents for answers, and for answers under their relation.
    - values, float64 (metrics, b, c): Weighted means.
    - sampled: True if candidates were sampled; tables and captions say so.
    """

    metrics: tuple[str, ...]
    b: Float64
    c: Float64
    values: Float64
    side: str
    rank_type: str
    sampled: bool = False

    def caption(self) -> str:
        """Return a line on the ranks, sides and weights."""
        sampled = "sampled candidates, " if self.sampled else ""
        side = "both sides" if self.side == "both" else f"{self.side} side"
        return f"{sampled}{self.rank_type} ranks, {side} (PROBE's weights, counted on train)"

    def table(self) -> Table:
        """Return a table with a row per pair of exponents and a column per metric."""
        pairs = np.meshgrid(self.b, self.c, indexing="ij")
        cells = np.concatenate([pairs, self.values]).reshape(2 + len(self.metrics), -1)
        label = "sampled." if self.sampled else ""
        titles = [(Measure.parse(name).title, f"{label}{name}", 4) for name in self.metrics]
        return Table.from_columns([("b", "b", 2), ("c", "c", 2), *titles], *cells, names=2)


def probe_grid(
    ranks: Ranks,
    graph: Graph,
    b: ArrayLike = 0.0,
    c: ArrayLike = 0.0,
    metrics: str | Iterable[str] = PROBE_METRICS,
    *,
    rank_type: str = "realistic",
    side: str = "both",
) -> ProbeGrid:
    """Compute weighted means of metrics at every pair of exponents.

    Parameters
    ----------
    ranks : Ranks
    graph : Graph
        The graph of the ranks, with a train split.
    b, c : float or array_like of float, shapes (b,) and (c,)
        Exponents for the popularity of answers, and of answers under their relation, in [-10, 10].
        Above 0, rare answers count more.
    metrics : str or iterable of str
        Means over instances: "probe@1", "mrr", "hits@10", ...
    rank_type : {"optimistic", "realistic", "pessimistic", "expected", "ordinal"}
    side : {"head", "tail", "both"}

    Raises
    ------
    UsageError
        The graph is another one or has no train split, a metric is not a mean over instances, or an
        exponent is out of range.
    InputError
        The train split is empty.
    """
    require_type("ranks", ranks, Ranks, RANKS)
    require_type("graph", graph, GraphData, GRAPH)
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    measures = [Measure.parse(f"{side}.{rank_type}.micro.{name}") for name in names]
    for measure in measures:
        if not is_micro_mean(measure):
            raise UsageError(f"{measure} is not a mean over instances; use probe@1, mrr or hits@10")
    if ranks.kind != "entity" or ranks.given_relation is not None:
        raise UsageError("PROBE's weights need questions for heads or tails")
    require_side(f"a grid of {' and '.join(names)}", side, sides_present(ranks))
    check_graph(ranks, graph)
    exponents = _exponents("b", b), _exponents("c", c)
    rows = np.flatnonzero(np.isin(ranks.side, SIDES[side]))
    # Logarithms avoid overflow of powers of small shares; only ratios of weights matter.
    logs = [np.log(column)[rows] for column in popularity_shares(ranks, graph)]
    values = np.stack([measure.per_item(instance_ties(ranks)[rows]) for measure in measures])
    out = np.empty((len(names), len(exponents[0]), len(exponents[1])))
    for i, of_answer in enumerate(exponents[0]):
        for j, of_relation in enumerate(exponents[1]):
            power = -of_answer * logs[0] - of_relation * logs[1]
            weight = np.exp(power - power.max())
            out[:, i, j] = (values * weight).sum(axis=1) / weight.sum()
    return ProbeGrid(names, *exponents, out, side, rank_type, ranks.sampled)


def popularity_shares(ranks: Ranks, graph: Graph) -> tuple[Float64, Float64]:
    """Return e + p(x) and e' + p(x, r) of the answer x and relation r of each instance.

    They are float64 (n,) each. InputError if the train split is empty.
    """
    train = graph.split("train")
    if not len(train):
        raise InputError(
            "the train split is empty, so no popularity is known; give a graph with train triples"
        )
    n, triples = graph.n_entities, train.astype(np.int64)
    keys = np.concatenate([triples[:, 1] * n + triples[:, end] for end in (0, 2)])
    pairs, counts = np.unique(keys, return_counts=True)
    pair = ranks.relation.astype(np.int64) * n + ranks.answer
    index = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
    with_relation = np.where(pairs[index] == pair, counts[index], 0)
    alone: Int64 = entity_popularity(graph, "train")
    columns = (alone[ranks.answer], alone[alone > 0].min()), (with_relation, counts.min())
    first, second = ((column + least) / len(train) for column, least in columns)
    return first, second


def _exponents(name: str, values: ArrayLike) -> Float64:
    """Return exponents as float64 (k,); UsageError if one is out of range."""
    exponents = np.atleast_1d(np.asarray(values, np.float64))
    if exponents.ndim != 1 or not len(exponents) or not (np.abs(exponents) <= 10).all():
        raise UsageError(f"{name} is {values!r}; give numbers in [-10, 10]")
    return exponents
