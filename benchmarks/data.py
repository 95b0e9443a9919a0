"""Inputs of the benchmarks, by seed, in the sizes that the bars name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import kgtrec

__all__ = [
    "N_ENTITIES",
    "Benchmark",
    "Block",
    "cache_bytes",
    "fb15k_237",
    "graph_at_hand",
    "make_block",
]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FOLDER = SHARED_DATA / "fb15k-237"
MODEL = SHARED_DATA / "models" / "fb15k-237-distmult.npz"
REAL = "FB15k-237, trained DistMult"
STAND_IN = f"seeded stand-in of FB15k-237's sizes, random weights (nothing at {FOLDER})"
SEED = 20_260
N_ENTITIES = 14_541
N_RELATIONS = 237
SIZES = {"train": 272_115, "valid": 17_535, "test": 20_466}
DIMENSIONS = 100


def cache_bytes() -> int:
    """Size of the largest cache of a core; 32 MB if the system does not tell."""
    units = {"K": 1 << 10, "M": 1 << 20}
    sizes = [32 << 20]
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = entry.read_text().strip()
        sizes.append(int(text.rstrip("KM")) * units.get(text[-1], 1))
    return max(sizes)


# ---- a block of score rows ----


@dataclass(frozen=True)
class Block:
    """Score rows and the questions that they answer, one row each.

    Attributes
    ----------
    questions : Questions
        Every row has the same numbers of answers and of other known entities.
    scores : float32 (rows, entities)
    """

    questions: kgtrec.Questions
    scores: Floats


def make_block(
    n_rows: int,
    kind: str = "good",
    n_answers: int = 1,
    n_known: int = 30,
    *,
    labels_in_order: bool = True,
    n_entities: int = N_ENTITIES,
) -> Block:
    """Questions with answers, and scores of one kind.

    Parameters
    ----------
    kind : str
        ``good``: normal scores, with answers in the top 5 %. ``random``: answers score like others.
        ``tied``: all scores are equal. ``saturated``: half of them, with the answers, have the top
        value. ``rising``: ascending over the entities, the worst case of a selection by threshold.
    labels_in_order : bool
        Whether entity ids ascend in byte order of their labels, as in every graph read from files.
        Ids that are their own decimal labels do not.
    """
    rng = np.random.default_rng(SEED)
    chosen = _distinct_entities(rng, n_rows, n_answers + n_known, n_entities)
    labels = [f"e{i:07d}" for i in range(n_entities)] if labels_in_order else None
    questions = _questions(chosen[:, :n_answers], chosen[:, n_answers:], n_entities, labels)
    scores = _scores(rng, (n_rows, n_entities), kind)
    answers = questions.answers.ids.reshape(n_rows, n_answers).astype(np.int64)
    if kind in ("good", "saturated"):
        sample = np.sort(rng.standard_normal(200_000, dtype=np.float32))
        top = sample[int(0.95 * len(sample)) :]
        high = np.float32(1) if kind == "saturated" else rng.choice(top, answers.shape)
        np.put_along_axis(scores, answers, high, axis=1)
    return Block(questions, scores)


def _distinct_entities(rng: np.random.Generator, n_rows: int, n: int, n_entities: int) -> Array:
    """n different entities per row: one of each of n equal strata, in random order."""
    edges = np.linspace(0, n_entities, n + 1).astype(np.int64)
    chosen = rng.integers(edges[:-1], edges[1:], size=(n_rows, n))
    return rng.permuted(chosen, axis=1)


def _questions(
    answers: Array, known: Array, n_entities: int, labels: list[str] | None
) -> kgtrec.Questions:
    splits = {}
    for name, entities in (("test", answers), ("train", known)):
        row = np.repeat(np.arange(len(entities)), entities.shape[1])
        splits[name] = np.column_stack([row % n_entities, row // n_entities, entities.ravel()])
    graph = kgtrec.Graph.from_arrays(**splits, n_entities=n_entities, entities=labels)
    return graph.questions("test", sides="tail")


def _scores(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> Floats:
    if kind == "tied":
        return np.full(shape, 0.5, dtype=np.float32)
    if kind == "rising":
        return np.tile(np.arange(shape[1], dtype=np.float32), (shape[0], 1))
    scores = rng.standard_normal(shape, dtype=np.float32)
    if kind == "saturated":  # from about 17 on, a sigmoid in float32 is exactly 1.0
        np.maximum(scores, -16, out=scores)
        scores[scores > 0] = 1.0
    return scores


# ---- a whole benchmark ----


@dataclass(frozen=True)
class Benchmark:
    """A graph and a trained DistMult model of it (or stand-ins of the same sizes).

    Attributes
    ----------
    name : str
        Name for the table.
    graph : Graph
    entity : float32 (entities, d)
    relation : float32 (2 * relations, d)
        The second half asks for heads.
    """

    name: str
    graph: kgtrec.Graph
    entity: Floats
    relation: Floats

    def astype(self, dtype: str) -> Benchmark:
        """The same weights in another precision."""
        return replace(self, entity=self.entity.astype(dtype), relation=self.relation.astype(dtype))

    def queries(self, questions: kgtrec.Questions) -> Floats:
        """Query vectors of the questions: the given entity's row times the relation's."""
        inverse = questions.relation + self.graph.n_relations
        relation = np.where(questions.side == 0, inverse, questions.relation)
        return np.ascontiguousarray(self.entity[questions.entity] * self.relation[relation])

    def cut(self, n_triples: int) -> kgtrec.Graph:
        """The graph with a shorter test split; the other test triples move to `train`."""
        test = self.graph.splits["test"]
        return kgtrec.Graph.from_arrays(
            np.concatenate([self.graph.splits["train"], test[n_triples:]]),
            self.graph.splits["valid"],
            test[:n_triples],
            entities=self.graph.entities,
            relations=self.graph.relations,
        )


def graph_at_hand() -> str:
    """Name of the graph that `fb15k_237` will return."""
    return REAL if FOLDER.is_dir() and MODEL.is_file() else STAND_IN


@cache
def fb15k_237() -> Benchmark:
    """FB15k-237 with trained weights if they are beside the checkout; otherwise a stand-in."""
    if graph_at_hand() == STAND_IN:
        return _stand_in()
    graph = kgtrec.read_graph(FOLDER, progress=False)
    with np.load(MODEL, allow_pickle=False) as weights:
        entity, relation = weights["entity"], weights["relation"]
    return Benchmark(REAL, graph, entity, relation)


def _stand_in() -> Benchmark:
    """Random triples with popular and rare entities, and random weights."""
    rng = np.random.default_rng(SEED)
    total = sum(SIZES.values())
    columns = []
    for size in (N_ENTITIES, N_RELATIONS, N_ENTITIES):
        popularity = np.arange(1, size + 1) ** -0.8
        columns.append(rng.choice(size, 2 * total, p=popularity / popularity.sum()))
    keys = (columns[0] * N_RELATIONS + columns[1]) * N_ENTITIES + columns[2]
    rows = np.sort(np.unique(keys, return_index=True)[1])[:total]
    triples = np.column_stack(columns)[rows]
    ends = np.cumsum(list(SIZES.values()))[:-1]
    splits = dict(zip(SIZES, np.split(triples, ends), strict=True))
    graph = kgtrec.Graph.from_arrays(
        **splits,
        entities=[f"e{i:05d}" for i in range(N_ENTITIES)],
        relations=[f"r{i:03d}" for i in range(N_RELATIONS)],
    )
    entity = rng.standard_normal((N_ENTITIES, DIMENSIONS), dtype=np.float32)
    relation = rng.standard_normal((2 * N_RELATIONS, DIMENSIONS), dtype=np.float32)
    return Benchmark(STAND_IN, graph, entity, relation)
