"""Popularity of entities and relations: Mohamed et al. 2020, section 3 (Table 1, Figure 1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arguments import GRAPH, require_type
from kgtrec._internal.arrays import Array, Bools, Float64, Int32, Int64
from kgtrec._internal.csr import inverse
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import UsageError, must_be
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.tails import TailFit, fit_tail
from kgtrec.graph.triples import count_entities, drop_duplicates

SplitNames = str | Iterable[str] | None
"""Names of splits: one, several ("train,valid" or a list), or None for all."""


def resolve_splits(graph: GraphData, splits: SplitNames = None) -> tuple[str, ...]:
    """Return the named splits, each once, in the graph's order; UsageError for unknown names."""
    require_type("graph", graph, GraphData, GRAPH)
    if splits is None or splits == "all":
        return tuple(graph.splits)
    names = splits.split(",") if isinstance(splits, str) else list(splits)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    for name in names:
        graph.split(name)
    if not names:
        raise UsageError(f"no split is given; {must_be('', graph.splits)}")
    return tuple(name for name in graph.splits if name in names)


def triples_of(graph: GraphData, splits: SplitNames = None, distinct: bool = False) -> Int32:
    """Join the triples of the named splits in order: int32 (n, 3).

    A triple in several splits is repeated, unless `distinct`.
    """
    rows = np.concatenate([graph.splits[name] for name in resolve_splits(graph, splits)])
    return drop_duplicates(rows) if distinct else rows


def share_table(title: str, key: str, counts: Mapping[str, int], triples: int) -> Table:
    """Return a row per kind of triple: its name, number, and share of all triples."""
    rows = [(name, count, 100 * count / max(triples, 1)) for name, count in counts.items()]
    return Table.from_rows([(title, key, 0), "triples", "%:1"], rows)


TOP = (1, 2, 5, 10, 20, 50, 100)


def entity_popularity(graph: GraphData, splits: SplitNames = None) -> Int64:
    """Count how often each entity occurs in triples, as subject or as object.

    A triple from an entity to itself counts twice.

    Parameters
    ----------
    graph : Graph
    splits : str, iterable of str or None
        Splits to count on; None: all.

    Returns
    -------
    int64 array (n_entities,)
    """
    return count_entities(triples_of(graph, splits), graph.n_entities)


def relation_popularity(graph: GraphData, splits: SplitNames = None) -> Int64:
    """Count the triples of each relation in some splits (None: all): int64 (n_relations,)."""
    relations = triples_of(graph, splits)[:, 1]
    return np.bincount(relations, minlength=graph.n_relations).astype(np.int64)


# --- Table 1 --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TripleMix(ShownAsTables):
    """Triples by how many of their subject, relation and object are popular.

    - percentile: An item is popular if its count is at least this percentile of all counts.
    - entity_threshold, relation_threshold: Those percentiles.
    - all_popular, all_unpopular, mixed: Triples: all three popular, none, and the rest.
    """

    percentile: float
    entity_threshold: float
    relation_threshold: float
    popular_entities: int
    popular_relations: int
    all_popular: int
    all_unpopular: int
    mixed: int

    @property
    def triples(self) -> int:
        """All triples."""
        return self.all_popular + self.all_unpopular + self.mixed

    def table(self) -> Table:
        """Return the paper's Table 1 for this graph: a row per kind of triple."""
        counts = {
            "all popular": self.all_popular,
            "all unpopular": self.all_unpopular,
            "mixed": self.mixed,
        }
        return share_table("triple", "triple", counts, self.triples)


def triple_mix(graph: GraphData, percentile: float = 90.0, splits: SplitNames = None) -> TripleMix:
    """Split the triples by the popularity of subject, relation and object (Table 1).

    An item is popular if its count of triples is at least the percentile (numpy's linear one) of
    the counts of all items of its kind. Entities count as subject plus object.

    Parameters
    ----------
    graph : Graph
    percentile : float
        Default 90: the most popular 10 %. The paper also tries 80 and 75.
    splits : str, iterable of str or None
        Splits to count, and whose triples to split; None: all, as in the paper.

    Raises
    ------
    UsageError
        The percentile is not in [0, 100], or the graph lacks a split.
    """
    rows = triples_of(graph, splits)
    limits, entity, relation = popular_items(graph, percentile, splits)
    kinds = np.bincount(popular_parts(rows, entity, relation), minlength=4)
    return TripleMix(
        float(percentile),
        *limits,
        int(entity.sum()),
        int(relation.sum()),
        all_popular=int(kinds[3]),
        all_unpopular=int(kinds[0]),
        mixed=int(kinds[1] + kinds[2]),
    )


def popular_items(
    graph: GraphData, percentile: float = 90.0, splits: SplitNames = None
) -> tuple[tuple[float, float], Bools, Bools]:
    """Find the popular entities and relations; see `triple_mix`.

    Returns the least counts of popular ones, and masks: bool (n_entities,) and (n_relations,).
    """
    if not 0 <= percentile <= 100:
        raise UsageError(f"percentile {percentile!r} is not between 0 and 100; the paper uses 90")
    entities = entity_popularity(graph, splits)
    relations = relation_popularity(graph, splits)
    limits = float(np.percentile(entities, percentile)), float(np.percentile(relations, percentile))
    return limits, entities >= limits[0], relations >= limits[1]


def popular_parts(triples: Array, entity: Bools, relation: Bools) -> Int64:
    """Count how many of subject, relation and object are popular: int64 (n,), 0 to 3."""
    parts = entity[triples[:, 0]], relation[triples[:, 1]], entity[triples[:, 2]]
    return np.sum(parts, axis=0, dtype=np.int64) if len(triples) else np.empty(0, np.int64)


# --- Figure 1 -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Frequencies(ShownAsTables):
    """Frequency distribution of entities or relations over triples (Figure 1).

    - noun: What the items are: "entities" or "relations".
    - ids, int64 (n,): Every item, most frequent first; equally frequent ones in id order.
    - counts, int64 (n,): Popularity of each of `ids`, descending: how often it occurs in triples.
    - reached, int64 (n,): Triples that involve at least one of the first i + 1 items.
    - triples: All triples.
    """

    noun: str
    ids: Int64
    counts: Int64
    reached: Int64
    triples: int

    def top(self, percent: float) -> tuple[int, float]:
        """Return the number of items in the most frequent `percent` % (rounded up), and a share.

        The share is that of the triples, in [0, 1], that involve one of these items.
        """
        if not 0 < percent <= 100:
            raise UsageError(
                f"the top {percent!r} % of {self.noun} is not a share; give a number in (0, 100]"
            )
        items = math.ceil(round(len(self.ids) * percent / 100, 9))
        return items, float(self.reached[items - 1] / max(self.triples, 1))

    def tail(self) -> TailFit:
        """Fit a power law to the most frequent items; see `fit_tail`."""
        return fit_tail(self.counts)

    def histogram(self) -> tuple[Float64, Float64]:
        """Return ends of bins 1, 2, 4, 8, ..., and the share of the items per count in each.

        Items that never occur are left out. Shapes: float64 (bins + 1,) and (bins,).
        """
        occurring = self.counts[self.counts > 0]
        n_bins = int(self.counts.max(initial=1)).bit_length()
        ends: Float64 = np.exp2(np.arange(n_bins + 1))
        numbers = np.histogram(occurring, ends)[0]
        return ends, np.asarray(numbers / (max(len(occurring), 1) * np.diff(ends)))

    def table(self, percents: Sequence[float] = TOP) -> Table:
        """Return a row per top x %: items, count of the least frequent, share of triples."""
        items, shares = zip(*map(self.top, percents), strict=True)
        heads = f"top {self.noun}=top,{self.noun}=items,times each ≥=least,% of triples=percent:1"
        return Table.from_columns(
            heads,
            [f"{percent:g} %" for percent in percents],
            items,
            [int(self.counts[number - 1]) for number in items],
            [100 * share for share in shares],
        )


def entity_frequencies(graph: GraphData, splits: SplitNames = None) -> Frequencies:
    """Return the frequencies of the entities in the triples of some splits (None: all)."""
    ends = triples_of(graph, splits)[:, ::2]
    return _frequencies("entities", entity_popularity(graph, splits), ends)


def relation_frequencies(graph: GraphData, splits: SplitNames = None) -> Frequencies:
    """Return the frequencies of the relations in the triples of some splits (None: all)."""
    relations = triples_of(graph, splits)[:, 1:2]
    return _frequencies("relations", relation_popularity(graph, splits), relations)


def _frequencies(noun: str, counts: Int64, items: Int32) -> Frequencies:
    """Compute frequencies from `items` (triples, m), the items that each triple involves."""
    order = np.argsort(-counts, kind="stable")
    first = inverse(order)[items].min(axis=1)
    reached = np.cumsum(np.bincount(first, minlength=len(order)))
    return Frequencies(noun, order, counts[order], reached, len(items))


# --- correlations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Correlations(ShownAsTables):
    """Correlation, over triples, of the popularity of entity and relation (section 3.2).

    - subject_relation, object_relation: Pearson's r between the counts of a triple's subject
      (object) and of its relation, in [-1, 1]; NaN if one of them never varies.
    - subject_relation_rank, object_relation_rank: The same on ranks (Spearman), which a power law
      does not distort as it does Pearson's r.
    """

    subject_relation: float
    object_relation: float
    subject_relation_rank: float
    object_relation_rank: float

    def table(self) -> Table:
        """Return a row per role of the entity."""
        rows = [
            ("subject, relation", self.subject_relation, self.subject_relation_rank),
            ("object, relation", self.object_relation, self.object_relation_rank),
        ]
        return Table.from_rows("popularity of=pair,Pearson=pearson:3,Spearman=spearman:3", rows)


def popularity_correlations(graph: GraphData, splits: SplitNames = None) -> Correlations:
    """Correlate the popularity of entities and relations (section 3.2: all are near 0).

    One observation per triple: the popularity of its relation, and that of its subject (or object),
    counted as subject and as object; on `splits` (None: all).
    """
    rows = triples_of(graph, splits)
    entity = entity_popularity(graph, splits)
    relation = relation_popularity(graph, splits)[rows[:, 1]]
    ends = entity[rows[:, 0]], entity[rows[:, 2]]
    ranked = average_ranks(relation)
    return Correlations(
        *(pearson(end.astype(np.float64), relation.astype(np.float64)) for end in ends),
        *(pearson(average_ranks(end), ranked) for end in ends),
    )


def average_ranks(values: Int64) -> Float64:
    """Return the ranks, from 1, of small whole numbers; equal numbers get their mean rank."""
    counts = np.bincount(values)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[values])


def pearson(a: Float64, b: Float64) -> float:
    """Compute Pearson's correlation; NaN if one side does not vary."""
    if len(a) < 2:
        return math.nan
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else math.nan
