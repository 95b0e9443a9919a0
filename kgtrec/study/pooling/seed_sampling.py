"""Seed samples: triples of a test split whose questions are pooled and judged (Zhou et al. 3.1)."""

from __future__ import annotations

import math
import operator
import random
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.relation_distribution import kl_divergence

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

__all__ = ["SeedSample", "sample_seeds"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeedSample(ShownAsTables):
    """Triples drawn from a split.

    Attributes
    ----------
    graph : Graph
    split : str
        The split that was drawn from.
    rows : int64 array (n,)
        Rows of the split, counted from 0, ascending.
    by_relation : bool
        Whether every relation has its share.
    seed : int
        Of the random numbers.
    """

    graph: Graph
    split: str
    rows: Ints
    by_relation: bool
    seed: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def triples(self) -> NDArray[np.int32]:
        """The seed triples in the order of the split, shape (n, 3)."""
        return self.graph.split(self.split)[self.rows]

    @property
    def divergence(self) -> float:
        """KL(split || sample) of the relation distributions, in nats, with add-one smoothing."""
        drawn = np.bincount(self.triples[:, 1], minlength=self.graph.n_relations)
        return kl_divergence(self.graph.relation_counts(self.split), drawn)

    def table(self) -> Table:
        """Sizes of the split and of the sample."""
        whole, drawn = self.graph.split(self.split), self.triples
        rows: list[tuple[Cell, ...]] = [
            (name, len(triples), *_sizes(triples))
            for name, triples in ((self.split, whole), ("sample", drawn))
        ]
        heads = ("set", "triples", "relations", "entities", "questions")
        return Table(heads, heads, (0,) * len(heads), rows)

    def write(self, path: str | PathLike[str]) -> None:
        """Write lines ``head<TAB>relation<TAB>tail``, as in a split.

        Raises
        ------
        FileError
            The target cannot be written.
        """
        from kgtrec.study.pooling.triple_files import write_triples

        write_triples(path, self.graph, self.triples)


def sample_seeds(
    graph: Graph,
    share: float | None = None,
    *,
    size: int | None = None,
    seed: int = 42,
    split: str = "test",
    by_relation: bool = False,
) -> SeedSample:
    """Draw seed triples from a split, without replacement.

    With a share of 0.05, the seed 42 and FB15k-237 this is FB-Test-S, triple for triple: rows are
    drawn by Python's `random.sample`, and put into the order of the split.

    Parameters
    ----------
    graph : Graph
    share : float, optional
        Share of the split, above 0 and up to 1; the number of triples is rounded down. By default
        0.05, unless a size is given.
    size : int, optional
        In place of a share: how many triples.
    seed : int
        Of Python's random numbers.
    split : str
    by_relation : bool
        Give every relation its part of the sample: its share of the split, rounded so that the
        largest remainders round up. Without it, each triple is as likely as any other.

    Raises
    ------
    UsageError
        Both a share and a size; one out of range, or so small that nothing is drawn; a seed that
        is not a whole number; a split that the graph lacks.
    """
    triples = graph.split(split)
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise UsageError(f"seed {seed!r} is not a whole number; 42 is the published one")
    count = _size(share, size, len(triples), split)
    source = random.Random(operator.index(seed))
    if by_relation:
        relations = triples[:, 1].astype(np.int64)
        rows = _drawn_by_relation(source, relations, count)
    else:
        rows = source.sample(range(len(triples)), count)
    return SeedSample(graph, split, np.array(sorted(rows), np.int64), by_relation, int(seed))


def _size(share: float | None, size: int | None, total: int, split: str) -> int:
    if share is not None and size is not None:
        raise UsageError(f"a share ({share:g}) and a size ({size}) are given; give one of them")
    if size is not None:
        if not 1 <= size <= total:
            raise UsageError(
                f"size {size} is out of range: split {split!r} has {total:,} triples, so give "
                f"1 to {total}"
            )
        return size
    share = 0.05 if share is None else share
    if not 0 < share <= 1:
        raise UsageError(f"share {share:g} is not above 0 and up to 1; 0.05 takes 5 % of the split")
    # 0.29 * 100 is a little less than 29.
    count = math.floor(share * total + 1e-9)
    if not count:
        raise UsageError(
            f"share {share:g} of the {total:,} triples of split {split!r} is less than one triple; "
            "give a larger share, or a size"
        )
    return count


def _drawn_by_relation(source: random.Random, relations: Ints, size: int) -> list[int]:
    """Rows with the relations in proportion; relations are drawn from in the order of their ids."""
    counts = np.bincount(relations).tolist()
    total = len(relations)
    quotas = [size * count // total for count in counts]
    remainders = [size * count % total for count in counts]
    # Larger remainders first, and of equal ones the lower id.
    order = sorted(range(len(counts)), key=lambda relation: (-remainders[relation], relation))
    for relation in order[: size - sum(quotas)]:
        quotas[relation] += 1
    members = np.split(np.argsort(relations, kind="stable"), np.cumsum(counts)[:-1])
    rows: list[int] = []
    for own, quota in zip(members, quotas, strict=True):
        rows += source.sample(own.tolist(), quota)
    return rows


def _sizes(triples: NDArray[Any]) -> tuple[int, int, int]:
    """Relations, entities and questions of triples."""
    wide = triples.astype(np.int64)
    questions = sum(len(np.unique(wide[:, [1, end]], axis=0)) for end in (0, 2))
    return len(np.unique(wide[:, 1])), len(np.unique(wide[:, [0, 2]])), questions
