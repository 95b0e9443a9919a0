"""Systems on a small random graph, for comparisons."""

from __future__ import annotations

import numpy as np

import kgtrec
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.samples import Samples

N_ENTITIES, N_RELATIONS, N_TRIPLES = 40, 4, 60


def graph(seed: int = 0) -> kgtrec.Graph:
    """Few heads and many tails, so that questions have several answers."""
    rng = np.random.default_rng(seed)
    size = 4 * N_TRIPLES
    rows = np.column_stack(
        [
            rng.integers(0, 8, size),
            rng.integers(0, N_RELATIONS, size),
            rng.integers(0, N_ENTITIES, size),
        ]
    )
    rows = rng.permutation(np.unique(rows, axis=0))
    return kgtrec.Graph.from_arrays(
        train=rows[N_TRIPLES:],
        test=rows[:N_TRIPLES],
        n_entities=N_ENTITIES,
        n_relations=N_RELATIONS,
    )


def systems(n: int = 4, seed: int = 0, levels: int = 12) -> dict[str, Ranks]:
    """Scores with few different values, so that some tie; later systems find fewer answers."""
    questions = graph(seed).questions("test")
    ranks = {}
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        scores = rng.integers(0, levels, (len(questions), N_ENTITIES)).astype(np.float32)
        for row, answers in enumerate(
            np.split(questions.answers.ids, questions.answers.offsets[1:-1])
        ):
            scores[row, answers] += rng.integers(
                0, max(2, levels // (1 + 2 * number)), len(answers)
            )
        ranks[f"s{number}"] = kgtrec.evaluate(scores, questions, progress=False).ranks
    return ranks


def samples(values: object, cluster: object = None, name: str = "m", **more: bool) -> Samples:
    """One row of values per instance, one column per system."""
    rows = np.asarray(values, np.float64)
    systems = tuple(f"s{k}" for k in range(rows.shape[1]))
    owner = np.arange(len(rows)) if cluster is None else np.asarray(cluster, np.int64)
    return Samples(name, "M", systems, rows, owner, "instances", **more)
