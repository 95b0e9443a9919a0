"""Worlds in which people's labels of all questions are known, judges that err, many samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kgtrec.study.judged.estimate import JudgedValues, assign_folds
from kgtrec.study.judged.values import SystemMeasures, find_columns
from kgtrec.study.pooling.completion import Completion, Qrels
from kgtrec.study.pooling.lists import RankedLists

MEASURES = ("map_cut_20", "ndcg_cut_20", "recip_rank")


@dataclass(frozen=True, eq=False)
class World:
    """Systems, all pooled candidates with people's labels, and which of them judges mislabel."""

    evaluation: SystemMeasures
    people: Qrels
    is_seed: np.ndarray
    favoured: np.ndarray  # candidates high in the lists of one system

    def judge(self, kind: str, seed: int = 0) -> np.ndarray:
        """Labels of a judge: errors of 5, 20 or 50 %, those that favour a system, or all true."""
        rng, true = np.random.default_rng(seed), self.people.labels == 1
        if kind == "yes":
            return np.ones(len(true), np.int64)
        if kind == "favours":
            said = true | (self.favoured & (rng.random(len(true)) < 0.5))
        else:
            said = true ^ (rng.random(len(true)) < int(kind) / 100)
        return np.where(self.is_seed, 1, said).astype(np.int64)

    def values(self, labels: np.ndarray) -> np.ndarray:
        """Numerators and denominators of all questions by these labels."""
        other = Qrels(self.people.graph, self.people.ids, self.people.keys, labels)
        return self.evaluation.evaluate(other)


def make_world(
    systems: list[RankedLists], done: Completion, measures: tuple[str, ...] = MEASURES
) -> World:
    people, graph = done.qrels(), done.seeds.graph
    seeds = Completion(
        done.seeds, 0, done.triples, (np.arange(len(done)) < len(done.seeds.seeds)).astype(int),
        done.by_rule, 0, 0, 0,
    ).qrels()  # fmt: skip
    best = systems[0]
    top = best.keys[best.positions < 20]
    evaluation = SystemMeasures(systems, find_columns(measures), graph.n_entities)
    return World(evaluation, people, seeds.labels == 1, np.isin(people.keys, top))


JUDGES = ("5", "20", "50", "favours", "yes")


@dataclass(frozen=True, eq=False)
class Draws:
    """What many samples gave, arrays (draws, columns)."""

    truth: np.ndarray
    value: np.ndarray
    reach: np.ndarray
    alone: np.ndarray
    alone_reach: np.ndarray


def samples_of(
    judge: np.ndarray, people: np.ndarray, n: int, draws: int, seed: int = 0
) -> Iterator[JudgedValues]:
    """Judged values with random samples of n questions."""
    rng, size = np.random.default_rng(seed), len(people)
    for number in range(draws):
        drawn = np.sort(rng.choice(size, n, replace=False))
        folds = assign_folds(size, drawn, number)
        yield JudgedValues(judge, people[drawn], drawn, np.full(n, n / size), folds)


def simulate(world: World, kind: str, n: int, draws: int = 1000, seed: int = 0) -> Draws:
    """Estimate all measures of all systems from many samples of n questions."""
    people, judge = (world.values(x) for x in (world.people.labels, world.judge(kind, seed)))
    rows = []
    for sample in samples_of(judge, people, n, draws, seed):
        both = [world.evaluation.estimate(sample, factor) for factor in (None, 0.0)]
        rows.append([part for each in both for part in (each.value, each.reach())])
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Draws(world.evaluation.mean(people), *columns)
