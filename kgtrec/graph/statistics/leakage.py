"""Leaks from train to a test split: pairs that train links, and relations that mirror others.

WN18 and FB15k are full of inverse relations: a rule that turns a triple around answers most of
their test questions (Toutanova and Chen 2015; Dettmers et al. 2018), so a metric on them says
little about a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int32, Int64
from kgtrec._internal.csr import spans
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.overlap import find_mirrored
from kgtrec.graph.statistics.popularity import SplitNames, resolve_splits, share_table, triples_of

ENOUGH = 0.8
FEWEST = 10


@dataclass(frozen=True)
class Mirror:
    """A relation whose pairs mostly occur in another one too, reversed or not.

    - relation, other: Relation ids; equal ones make a symmetric relation.
    - turned: True: (h, t) of `relation` is (t, h) of `other`. False: both have the same pairs.
    - share: Share of the triples of `relation`, in [0, 1], that have such a partner.
    - triples: Triples of `relation`.
    """

    relation: int
    other: int
    turned: bool
    share: float
    triples: int

    @property
    def kind(self) -> str:
        """ "symmetric", "inverse" or "duplicate"."""
        if not self.turned:
            return "duplicate"
        return "symmetric" if self.relation == self.other else "inverse"


@dataclass(frozen=True)
class Leaks(ShownAsTables):
    """Numbers of a split's triples that known triples reveal.

    - known: The splits that are known.
    - triples: Triples of `split`.
    - repeated: Triples that a known split contains.
    - same_pair: (h, r, t) for which another relation links h to t in a known split.
    - turned_pair: (h, r, t) for which some relation, r or another, links t to h.
    - mirrored: Triples that follow from a known one by a rule of `mirrors`.
    - mirrors: Most triples first.
    - mirrored_within: Triples (h, r, t) beside which the split itself has (t, s, h), for some s.
    - of_products: Triples of the relations in `products`.
    - products: Ids of relations that link almost every subject to every object.
    - of_reverses, of_duplicates: Triples of relations that `relation_redundancy` calls so.
    """

    split: str
    known: tuple[str, ...]
    triples: int
    repeated: int
    same_pair: int
    turned_pair: int
    mirrored: int
    mirrors: tuple[Mirror, ...]
    mirrored_within: int
    of_products: int
    products: tuple[int, ...]
    of_reverses: int
    of_duplicates: int

    def table(self) -> Table:
        """Return a row per kind of leak."""
        counts = {
            "also a known triple": self.repeated,
            "pair linked by another relation": self.same_pair,
            "pair linked the other way round": self.turned_pair,
            "follows from a mirror relation": self.mirrored,
            f"mirrored within {self.split}": self.mirrored_within,
            "of a near-reverse relation": self.of_reverses,
            "of a near-duplicate relation": self.of_duplicates,
            "of a Cartesian-product relation": self.of_products,
        }
        return share_table(f"{self.split} triples", "leak", counts, self.triples)

    def mirror_table(self, graph: GraphData) -> Table:
        """Return a row per mirror relation."""
        names = graph.relations
        rows = [
            (
                names[mirror.relation],
                names[mirror.other],
                mirror.kind,
                mirror.triples,
                100 * mirror.share,
            )
            for mirror in self.mirrors
        ]
        return Table.from_rows("relation,mirrors=other,kind,triples,%:1", rows, names=3)


def find_leaks(
    graph: GraphData,
    split: str = "test",
    known: SplitNames = "train",
    enough: float = ENOUGH,
    fewest: int = FEWEST,
) -> Leaks:
    """Look for triples of a split that known ones reveal.

    Parameters
    ----------
    graph : Graph
    split : str
        The split whose triples are checked.
    known : str, iterable of str or None
        The splits that a model learns from.
    enough : float
        A relation mirrors another if at least this share of its triples has a partner there, and
        is a Cartesian product if it has more than this share of the pairs.
    fewest : int
        Relations with fewer triples never mirror another, and are not Cartesian products: they can
        match by chance.

    Raises
    ------
    UsageError
        The graph lacks a split, `split` is among the known ones, or `enough` is not in (0, 1].
    """
    _check_share(enough)
    if split in resolve_splits(graph, known):
        raise UsageError(
            f"split {split!r} is also in known, so all of its triples would leak; leave it out of "
            "known"
        )
    rows, base = graph.split(split), triples_of(graph, known, distinct=True)
    same, turned = _partners(graph, rows, base, False), _partners(graph, rows, base, True)
    mirrors = [m for way in (False, True) for m in _mirrors(graph, base, way, enough, fewest)]
    mirrors.sort(key=lambda m: (-m.triples, m.relation, m.other, m.turned))
    other = same[rows[same[:, 0], 1] != same[:, 1]]
    again = same[rows[same[:, 0], 1] == same[:, 1]]
    hits = [
        _follows(graph, rows, partners, mirrors, way)
        for way, partners in ((False, same), (True, turned))
    ]
    products = product_relations(base, graph.n_relations, enough, fewest)
    redundancy = relation_redundancy(graph, known, enough, fewest)[rows[:, 1]]
    return Leaks(
        split,
        resolve_splits(graph, known),
        len(rows),
        repeated=len(np.unique(again[:, 0])),
        same_pair=len(np.unique(other[:, 0])),
        turned_pair=len(np.unique(turned[:, 0])),
        mirrored=len(np.unique(np.concatenate(hits))),
        mirrors=tuple(mirrors),
        mirrored_within=int(find_mirrored(graph, split).sum()),
        of_products=int(np.isin(rows[:, 1], products).sum()),
        products=tuple(products.tolist()),
        of_reverses=int((redundancy == 0).sum()),
        of_duplicates=int((redundancy == 1).sum()),
    )


REDUNDANCIES = ("near-reverse", "near-duplicate", "Cartesian product", "none")
"""Kinds of redundant relations, in the order in which a relation is assigned to one."""


def relation_redundancy(
    graph: GraphData, known: SplitNames = "train", enough: float = ENOUGH, fewest: int = FEWEST
) -> Int64:
    """Classify the relations of known triples by redundancy (Akrami et al. 2020).

    Returns an index into `REDUNDANCIES` per relation, int64 (n_relations,).

    Two relations are near-duplicates if at least `enough` of the pairs of each are pairs of the
    other, and near-reverses if that holds for the pairs turned around; a symmetric relation is its
    own near-reverse. Other relations are Cartesian products as `product_relations` says.
    """
    _check_share(enough)
    base = triples_of(graph, known, distinct=True)
    kind = np.full(graph.n_relations, len(REDUNDANCIES) - 1, np.int64)
    kind[product_relations(base, graph.n_relations, enough, fewest)] = 2
    for code, turned in ((1, False), (0, True)):
        rules = {(m.relation, m.other) for m in _mirrors(graph, base, turned, enough, fewest)}
        kind[[relation for relation, other in rules if (other, relation) in rules]] = code
    return kind


def _check_share(enough: float) -> None:
    if not 0 < enough <= 1:
        raise UsageError(
            f"{argument('enough', enough)} is not a share; give a number in (0, 1], such as 0.8"
        )


def product_relations(
    triples: Int32, n_relations: int, enough: float = ENOUGH, fewest: int = FEWEST
) -> Int64:
    """Find the Cartesian-product relations (Akrami et al. 2020) of distinct triples; ids ascend.

    Such a relation has at least two subjects and two objects, and more than `enough` of their
    pairs. Its subjects and objects answer its questions without a model.
    """
    relations = triples[:, 1].astype(np.int64)
    pairs = np.bincount(relations, minlength=n_relations)
    size = 1 + int(triples[:, [0, 2]].max(initial=0))
    subjects, objects = (
        np.bincount(np.unique(relations * size + triples[:, end]) // size, minlength=n_relations)
        for end in (0, 2)
    )
    many = (pairs >= fewest) & (subjects > 1) & (objects > 1)
    return np.flatnonzero(many & (pairs > enough * subjects * objects))


def _partners(graph: GraphData, rows: Int32, base: Int32, turned: bool) -> Int64:
    """Pair each row with the relations of triples in `base` on its two entities.

    Returns (row, relation), int64 (matches, 2). `turned` exchanges head and tail of the row.
    """
    head, tail = (2, 0) if turned else (0, 2)
    n = graph.n_entities
    pairs = rows[:, head].astype(np.int64) * n + rows[:, tail]
    keys = base[:, 0].astype(np.int64) * n + base[:, 2]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    # Ascending pairs keep the binary searches in the cache.
    by_key = np.argsort(pairs)
    pairs = pairs[by_key]
    start, stop = np.searchsorted(keys, pairs, "left"), np.searchsorted(keys, pairs, "right")
    counts = stop - start
    row = np.repeat(by_key, counts)
    relation = base[order[spans(start, counts)[1]], 1]
    return np.stack([row, relation.astype(np.int64)], axis=1)


def _mirrors(
    graph: GraphData, base: Int32, turned: bool, enough: float, fewest: int
) -> Iterator[Mirror]:
    n = graph.n_relations
    # A triple from an entity to itself is its own mirror, which says nothing.
    base = base[base[:, 0] != base[:, 2]]
    triples = np.bincount(base[:, 1], minlength=n)
    partners = _partners(graph, base, base, turned)
    owner = base[partners[:, 0], 1].astype(np.int64)
    pairs, counts = np.unique(owner * n + partners[:, 1], return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        relation, other = divmod(pair, n)
        size = int(triples[relation])
        if size < fewest or count < enough * size or (relation == other and not turned):
            continue
        yield Mirror(relation, other, turned, count / size, size)


def _follows(
    graph: GraphData, rows: Int32, partners: Int64, mirrors: list[Mirror], turned: bool
) -> Int64:
    """Return rows with a partner (see `_partners`) in a relation of the same mirror."""
    n = graph.n_relations
    pairs = [(m.relation, m.other) for m in mirrors if m.turned == turned]
    rules = [a * n + b for pair in pairs for a, b in (pair, pair[::-1])]
    relation_pairs = rows[partners[:, 0], 1].astype(np.int64) * n + partners[:, 1]
    return partners[np.isin(relation_pairs, np.array(rules, np.int64)), 0]
