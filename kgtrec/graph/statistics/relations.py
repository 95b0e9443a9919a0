"""Relation categories (Bordes et al. 2013; Zhou et al. 2022, Table 3) and distributions (Eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import GRAPH, require_type
from kgtrec._internal.arrays import Float64, Int32, Int64
from kgtrec._internal.csr import distinct
from kgtrec._internal.table import Cell, ShownInLines, Table
from kgtrec.errors import InputError, UsageError, choose
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.popularity import SplitNames, resolve_splits, triples_of

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")
UNSEEN = "unseen"
"""Name for relations without a triple in the splits that decide."""

THRESHOLD = 1.5


@dataclass(frozen=True, eq=False)
class Categories(ShownInLines):
    """The category of every relation.

    - tails_per_head, heads_per_tail, float64 (n_relations,): Triples over distinct heads, and over
      distinct tails; NaN for an unseen relation.
    - code, int64 (n_relations,): Index into `CATEGORIES`; 4 for an unseen relation.
    - splits: The splits that decided.
    - threshold: From this average on, a side is "N".
    """

    tails_per_head: Float64
    heads_per_tail: Float64
    code: Int64
    splits: tuple[str, ...]
    threshold: float

    _shown = ("_sizes",)

    def _lines(self) -> tuple[str, str]:
        sizes = ", ".join(f"{name} {count:,}" for name, count in self._sizes().rows)
        return f"relations: {sizes}", f"by {', '.join(self.splits)}, N from {self.threshold:g} on"

    def _sizes(self) -> Table:
        """Return a row per category: its relations."""
        counts = np.bincount(self.code, minlength=len(CATEGORIES))
        return Table.from_columns(
            "category,relations", (*CATEGORIES, UNSEEN)[: len(counts)], counts
        )

    def __getitem__(self, relation: int) -> str:
        """Return the category of a relation id; "unseen" if it has no triple in `splits`."""
        return (*CATEGORIES, UNSEEN)[self.code[relation]]

    def members(self, category: str) -> Int64:
        """Return the ids of a category's relations, ascending."""
        choose("category", category, (*CATEGORIES, UNSEEN))
        return np.flatnonzero(self.code == (*CATEGORIES, UNSEEN).index(category))

    def table(self, graph: GraphData) -> Table:
        """Return a row per category: its relations, and its triples in every split of `graph`."""
        names = [*CATEGORIES, UNSEEN] if (self.code == len(CATEGORIES)).any() else [*CATEGORIES]
        codes = [self.code, *(self.code[rows[:, 1]] for rows in graph.splits.values())]
        columns = [np.bincount(code, minlength=len(names)) for code in codes]
        return Table.from_columns(["category", "relations", *graph.splits], names, *columns)

    def listing(self, graph: GraphData) -> Table:
        """Return a row per relation: its category and both averages."""
        heads = "relation,category,tails/head=tails_per_head:3,heads/tail=heads_per_tail:3"
        names = map(self.__getitem__, range(len(self.code)))
        averages = self.tails_per_head, self.heads_per_tail
        return Table.from_columns(heads, graph.relations, names, *averages)


def relation_categories(
    graph: GraphData, splits: SplitNames = "train", threshold: float = THRESHOLD
) -> Categories:
    """Put every relation into a category by its average numbers of tails and heads.

    A relation is "1-N" if a head has on average at least `threshold` tails, and a tail fewer than
    `threshold` heads. The averages are over the heads (tails) that the relation has.

    Parameters
    ----------
    graph : Graph
    splits : str, iterable of str or None
        The splits that decide: "train" alone gives the published lists of FB15k-237.
    threshold : float
        Above 1.

    Raises
    ------
    UsageError
        The graph lacks a split, or the threshold is not above 1.
    """
    if not threshold > 1:
        raise UsageError(f"threshold {threshold!r} is not above 1; the papers use 1.5")
    rows = triples_of(graph, splits, distinct=True)
    triples = np.bincount(rows[:, 1], minlength=graph.n_relations)
    heads, tails = (_distinct(graph, rows[:, 1], rows[:, end]) for end in (0, 2))
    with np.errstate(invalid="ignore"):
        tails_per_head, heads_per_tail = triples / heads, triples / tails
    # In the order of CATEGORIES: the tails decide the lower digit.
    code = 2 * (heads_per_tail >= threshold) + (tails_per_head >= threshold)
    code = np.where(triples > 0, code, len(CATEGORIES)).astype(np.int64)
    return Categories(
        tails_per_head, heads_per_tail, code, resolve_splits(graph, splits), float(threshold)
    )


def _distinct(graph: GraphData, relation: Int32, entity: Int32) -> Int64:
    """Count the distinct entities of each relation: int64 (n_relations,)."""
    pairs = distinct([relation.astype(np.int64) * graph.n_entities + entity])
    return np.bincount(pairs // graph.n_entities, minlength=graph.n_relations).astype(np.int64)


def relation_ratios(counts: ArrayLike) -> Float64:
    """Return the share of each relation, n_p / N (Eq. 1): float64 (n_relations,), sum 1.

    Parameters
    ----------
    counts : array_like (n_relations,)
        Triples of each relation, such as ``graph.relation_counts("test")``.

    Raises
    ------
    InputError
        Not one nonnegative number per relation, or all are 0.
    """
    numbers = check_counts("counts", counts)
    total = numbers.sum()
    if not total > 0:
        raise InputError("all counts are 0, so there are no ratios; count at least one triple")
    return np.asarray(numbers / total)


def kl_divergence(reference: ArrayLike, other: ArrayLike, smoothing: float = 1.0) -> float:
    """Compute KL(reference || other) of two relation distributions, in nats, at least 0.

    Parameters
    ----------
    reference, other : array_like (n_relations,)
        Triples of each relation. The published values use the set that samples were drawn from as
        reference: the original test set, or the whole graph.
    smoothing : float
        Added to every count of both, so that missing relations have a share, too.
        The published values add 1 over all relations of the graph.

    Returns
    -------
    float
        Infinite without smoothing if the reference has a relation that the other lacks.

    Raises
    ------
    InputError
        Counts of different lengths, negative, or all 0; a negative smoothing.
    """
    if not smoothing >= 0:
        raise InputError(f"{argument('smoothing', smoothing)} is not 0 or more; the papers use 1")
    p, q = (
        relation_ratios(check_counts(name, counts) + smoothing)
        for name, counts in (("reference", reference), ("other", other))
    )
    if len(p) != len(q):
        raise InputError(
            f"reference has counts of {len(p)} relations, other of {len(q)}; count all relations "
            "of one graph in both"
        )
    held = p > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(p[held] * np.log(p[held] / q[held])))


def split_divergences(graph: GraphData) -> Table:
    """Compute KL(row || column) for the relation distributions of the splits and the graph."""
    require_type("graph", graph, GraphData, GRAPH)
    sets = {name: graph.relation_counts(name) for name in graph.splits}
    sets["all"] = np.bincount(triples_of(graph)[:, 1], minlength=graph.n_relations)
    rows: list[tuple[Cell, ...]] = [
        (name, *(kl_divergence(counts, other) for other in sets.values()))
        for name, counts in sets.items()
    ]
    return Table.from_rows(["reference", *(f"{name}:4" for name in sets)], rows)


def check_counts(name: str, counts: ArrayLike) -> Float64:
    """Return counts as float64 (n,); InputError unless they are numbers of 0 or more."""
    try:
        numbers = np.asarray(counts, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {counts!r}; give the number of triples per relation") from None
    if numbers.ndim != 1 or not len(numbers):
        raise InputError(f"{name} has shape {numbers.shape}; give one number per relation")
    wrong = numbers[~((numbers >= 0) & np.isfinite(numbers))]
    if len(wrong):
        raise InputError(f"{name} has the value {wrong[0]:g}; numbers of triples must be 0 or more")
    return numbers
