"""Results of models with long names on one small graph, and values of several measures."""

from __future__ import annotations

from functools import cache

import numpy as np

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.results.result import Result
from kgtrec.study.comparison.report import SystemComparison, compare
from kgtrec.study.comparison.samples import Samples

NAMES = (
    "svd",
    "random",
    "a-model-with-a-rather-long-name-v2",
    "ComplEx_N3_dim_2000_seed_17",
    "popularity",
)
MEASURES = ("micro MRR", "macro Hits@10", "map_cut_20", "ndcg_cut_20")


@cache
def graph_and_results() -> tuple[kgtrec.Graph, dict[str, Result]]:
    random = np.random.default_rng(5)
    rows = np.unique(random.integers(0, (40, 5, 40), (700, 3)), axis=0)
    rows = random.permutation(rows)
    graph = kgtrec.Graph.from_arrays(train=rows[150:], test=rows[:150], n_entities=40)
    questions = graph.questions()
    results = {}
    for number, name in enumerate(NAMES):
        scores = random.random((len(questions), 40)) * 3
        for row in range(len(questions)):
            scores[row, questions.answers[row]] += number * 0.4
        results[name] = kgtrec.evaluate(scores.round(number % 3) if number else scores, questions)
    return graph, results


def graph() -> kgtrec.Graph:
    return graph_and_results()[0]


def results() -> dict[str, Result]:
    """The first model has no ties."""
    return graph_and_results()[1]


def ranks_of_all() -> dict[str, kgtrec.Ranks]:
    return {name: result.ranks for name, result in results().items()}


def samples(name: str, seed: int, systems: tuple[str, ...] = NAMES, spread: float = 0.3) -> Samples:
    random, n = np.random.default_rng(seed), len(systems)
    values = np.linspace(0, spread, n) + random.normal(0, 0.4, (200, n))
    return Samples(name, name, systems, values, np.arange(200), "questions")


SAMPLES = [samples(name, seed) for seed, name in enumerate(MEASURES)]


@cache
def compared() -> list[SystemComparison]:
    return [compare(s, test="t", resampling=Resampling(resamples=200)) for s in SAMPLES[:3]]
