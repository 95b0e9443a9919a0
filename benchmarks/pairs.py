"""P8: pair ranking of one relation among all pairs of entities, against the product of all pairs.

The reference multiplies the same blocks of queries with all entities and drops the scores. It is
the least that any program must do that computes every score.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
from data import Floats, fb15k_237
from rows import Row, Settings, at_most, require
from timing import Contestant, compete

from kgtrec import study

BLOCK = 256  # heads per product: their scores stay in the caches


def _product(queries: Floats, entities: Floats, _: None) -> None:
    """Compute the scores of all pairs of these queries, a block of queries at a time."""
    block = np.empty((BLOCK, len(entities)), np.float32)
    for start in range(0, len(queries), BLOCK):
        part = queries[start : start + BLOCK]
        np.dot(part, entities.T, out=block[: len(part)])


def _check(
    ranks: study.PairRanks, queries: Floats, entities: Floats, known: npt.NDArray[np.int32]
) -> None:
    """Compare the counts of ten test pairs with counts over the matrix of all pairs.

    Known pairs, (n, 2) heads and tails, do not compete. The product here rounds differently, so a
    count must lie between those of pairs that score clearly more and of pairs that score about as
    much.
    """
    some = np.linspace(0, len(ranks) - 1, 10).astype(int)
    values = ranks.scores[some]
    slack = 1e-5 * np.maximum(1.0, np.abs(values))
    clearly, about = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
    for start in range(0, len(queries), BLOCK):
        scores = queries[start : start + BLOCK] @ entities.T
        here = known[(known[:, 0] >= start) & (known[:, 0] < start + BLOCK)]
        scores[here[:, 0] - start, here[:, 1]] = -np.inf
        clearly += [int((scores > value).sum()) for value in values + slack]
        about += [int((scores > value).sum()) for value in values - slack]
    greater = ranks.counts.greater[some]
    require(((clearly <= greater) & (greater <= about)).all(), "counts are those of all pairs")
    require((about - clearly).max() < 1e-4 * len(entities) ** 2, "the check is sharp")


def _p8(settings: Settings) -> list[Row]:
    benchmark = fb15k_237()
    graph, entities = benchmark.graph, np.ascontiguousarray(benchmark.entity, np.float32)
    relation = int(np.argmax(graph.relation_counts("test")))
    vectors = study.PairVectors(
        graph, "distmult", entity=entities, relation=benchmark.relation, inverse="offset"
    )
    queries = np.ascontiguousarray(entities * benchmark.relation[relation], np.float32)
    rank = partial(
        study.rank_pairs, vectors, graph, relations=[relation], threads=1, progress=False
    )
    contestants = {
        "product": Contestant(partial(_product, queries, entities)),
        "counts": Contestant(lambda _: rank()),
        "best": Contestant(lambda _: rank(k=100)),
    }
    ranks = rank(k=100)
    splits = np.concatenate(list(graph.splits.values()))
    known = np.unique(splits[splits[:, 1] == relation][:, [0, 2]], axis=0)
    _check(ranks, queries, entities, known)
    timings = compete(contestants, rounds=1 if settings.quick else 5)
    what = f"{len(entities) ** 2:,} pairs of a relation, DistMult, {benchmark.name}"
    recall = next(row for row in ranks.table().rows if "recall_1000" in str(row))
    return [
        at_most(
            "P8",
            f"{what}: {text}",
            f"{timings.seconds(name):.2f} s",
            f"product {timings.seconds('product'):.2f} s",
            timings.ratio(name, "product"),
            bar,
            recall=[str(cell) for cell in recall],
            **timings.detail(name, "product"),
        )
        for name, text, bar in (
            ("counts", "ranks, AP, recall@n", 1.2),
            ("best", "the same with the 100 best", 1.2),
        )
    ]


BARS = {"P8": _p8}
