"""Worlds in which people's labels of all questions are known, judges that err, many samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

import kgtrec
from kgtrec._internal.table import Table
from kgtrec.study.comparison.correlation import tau_b
from kgtrec.study.comparison.significance import pairs_of
from kgtrec.study.judged.draw import probabilities_of
from kgtrec.study.judged.estimate import JudgedValues, assign_folds
from kgtrec.study.judged.values import SystemMeasures, find_columns
from kgtrec.study.pooling.completion import Completion, Qrels, complete
from kgtrec.study.pooling.edited_files import Judgements, read_judgements, read_triples
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Pool, make_pool
from kgtrec.study.pooling.seeds import SeedQuestions, find_indices, questions_of, seed_questions

MEASURES = ("map_cut_20", "ndcg_cut_20", "recip_rank")
JUDGES = ("5 %", "20 %", "50 %", "favours", "all true")
"""Random errors; half of the false candidates of one system called true; everything called true."""


@dataclass(frozen=True, eq=False)
class World:
    """Systems, and people's labels of all seeds and pooled candidates.

    - favoured: True for the first 20 candidates of the system in the middle.
    """

    systems: SystemMeasures
    people: Qrels
    is_seed: np.ndarray
    favoured: np.ndarray

    def judge(self, kind: str, seed: int = 0) -> np.ndarray:
        """Labels of one of `JUDGES`."""
        rng, true = np.random.default_rng(seed), self.people.labels == 1
        random = rng.random(len(true))
        if kind == "all true":
            said = np.ones(len(true), bool)
        elif kind == "favours":
            said = true | (self.favoured & (random < 0.5))
        else:
            said = true ^ (random < int(kind.split()[0]) / 100)
        return np.where(self.is_seed, 1, said).astype(np.int64)

    def values(self, labels: np.ndarray) -> np.ndarray:
        """Numerators and denominators of all questions by these labels."""
        return self.systems.evaluate(replace(self.people, labels=labels))


def make_world(lists: list[RankedLists], done: Completion) -> World:
    people = done.qrels()
    is_seed = (np.arange(len(done)) < len(done.seeds.seeds)).astype(np.int64)
    seeds = replace(done, labels=is_seed).qrels()
    favoured = lists[len(lists) // 2]
    top = favoured.keys[favoured.positions < 20]
    systems = SystemMeasures(lists, find_columns(MEASURES), people.graph.n_entities)
    return World(systems, people, seeds.labels == 1, np.isin(people.keys, top))


# --- Samples --------------------------------------------------------------------------------------


def samples_of(
    judge: np.ndarray,
    people: np.ndarray,
    n: int,
    draws: int,
    weights: np.ndarray | None = None,
    seed: int = 0,
) -> Iterator[JudgedValues]:
    """Judged values with random samples of n questions, of equal probability or by weights."""
    rng, size = np.random.default_rng([seed, n]), len(people)
    p = np.full(size, n / size) if weights is None else probabilities_of(weights, n)
    for number in range(draws):
        if weights is None:
            drawn = np.sort(rng.choice(size, n, replace=False))
        else:
            drawn = np.flatnonzero(rng.random(size) < p)
        folds = assign_folds(size, drawn, number)
        yield JudgedValues(judge, people[drawn], drawn, p[drawn], folds)


@dataclass(frozen=True, eq=False)
class Draws:
    """Estimates from many samples, corrected and by people alone: (draws, columns), all systems.

    Columns of `gap` are the pairs of systems for the first measure.
    """

    truth: np.ndarray
    by_judge: np.ndarray
    value: np.ndarray
    reach: np.ndarray
    alone: np.ndarray
    alone_reach: np.ndarray
    gap_reach: np.ndarray
    gap_alone_reach: np.ndarray

    @property
    def bias(self) -> np.ndarray:
        """Mean error of each column, in standard errors of this mean."""
        error = self.value - self.truth
        return error.mean(axis=0) / (error.std(axis=0, ddof=1) / np.sqrt(len(error)))

    @property
    def coverage(self) -> np.ndarray:
        """Share of the intervals of each column that contain the truth."""
        return (np.abs(self.value - self.truth) <= self.reach).mean(axis=0)

    @property
    def width(self) -> np.ndarray:
        """Mean width of each column, over that of people alone."""
        return self.reach.mean(axis=0) / self.alone_reach.mean(axis=0)


def simulate(
    world: World, kind: str, n: int, draws: int, weights: np.ndarray | None = None
) -> Draws:
    """Estimate all measures of all systems from many samples of n questions."""
    people, judge = (world.values(x) for x in (world.people.labels, world.judge(kind)))
    pairs = pairs_of(len(world.systems.systems)).T
    rows = []
    for sample in samples_of(judge, people, n, draws, weights, JUDGES.index(kind)):
        found, alone = (world.systems.estimate(sample, factor) for factor in (None, 0.0))
        gaps = [each.differences(*pairs).reach() for each in (found, alone)]
        rows.append((found.value, found.reach(), alone.value, alone.reach(), *gaps))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Draws(world.systems.mean(people), world.systems.mean(judge), *columns)


def simulation_table(found: Mapping[tuple[str, int], Draws]) -> Table:
    """Return a row per judge and size, over all systems and measures."""
    rows = []
    for (kind, n), draws in found.items():
        s = draws.value.shape[1] // len(MEASURES)
        coverage = (100 * draws.coverage.reshape(-1, s).mean(axis=1)).tolist()
        taus = [
            float(np.mean(tau_b(values[..., :s], draws.truth[:s])))
            for values in (draws.by_judge, draws.alone, draws.value)
        ]
        gaps = float(draws.gap_reach.mean() / draws.gap_alone_reach.mean())
        width = float(draws.width.mean())
        rows.append((kind, str(n), np.abs(draws.bias).mean(), *coverage, width, gaps, *taus))
    heads = (
        "judge, n, bias:1, AP %:1, nDCG %:1, MRR %:1, width:2, pairs:2, tau j:2, tau p:2, tau c:2"
    )
    return Table.from_rows(heads, rows, names=2)


# --- Worlds ---------------------------------------------------------------------------------------


def synthetic_world(n_systems: int = 13, n_triples: int = 500, n_entities: int = 60) -> World:
    """A random graph, systems that see the truth through noise, and pools of depth 5."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, (n_entities, 6, n_entities), (n_triples, 3)), axis=0)
    graph = kgtrec.Graph.from_arrays(train=rows[:1], test=rows[1:], n_entities=n_entities)
    seeds = seed_questions(graph, graph.split("test"))
    latent = rng.normal(size=(6, n_entities, n_entities))
    lists = []
    sides = seeds.questions.side, seeds.questions.entity, seeds.questions.relation
    whole = np.stack(
        [latent[r, :, e] if side == 0 else latent[r, e] for side, e, r in zip(*sides, strict=True)]
    )
    seen = whole.copy()
    seen[np.repeat(np.arange(len(seeds)), seeds.questions.answers.lengths),
         seeds.questions.answers.ids] += 1.0  # fmt: skip
    for number in range(n_systems):
        scores = seen + rng.normal(scale=1.5 + 0.1 * number, size=whole.shape)
        run = kgtrec.rank(scores, seeds.questions, run_depth=30, progress=False)[1]
        lists.append(run_lists(replace(run, query_ids=seeds.ids), seeds, f"s{number}"))
    pool = make_pool(lists, seeds, 5)
    true = latent[pool.triples[:, 1], pool.triples[:, 0], pool.triples[:, 2]] > 1.3
    labels = dict(zip(map(tuple, pool.triples.tolist()), true.astype(int).tolist(), strict=True))
    return make_world(lists, complete(seeds, pool, Judgements(labels, len(labels))))


def fb_world(data: Path) -> World:
    """FB-Test-S-C with people's labels, and 13 systems from the trained models."""
    graph = kgtrec.read_graph(data / "fb15k-237", progress=False)
    folder = data / "kgc-sparsity" / "data"
    seeds = seed_questions(graph, read_triples(folder / "FB-Test-S" / "samples.txt", graph))
    judged = read_judgements(folder / "FB-Test-S-C" / "annotations.txt", graph, "N")
    lists = []
    for name, scores in _fb_scores(data / "models", seeds).items():
        run = kgtrec.rank(scores, seeds.questions, run_depth=100, progress=False)[1]
        lists.append(run_lists(replace(run, query_ids=seeds.ids), seeds, name))
    return make_world(lists, complete(seeds, _pool_of(seeds, judged), judged))


def _pool_of(seeds: SeedQuestions, judged: Judgements) -> Pool:
    """A pool of all judged triples that are not seeds and answer a seed question."""
    triples = np.array(sorted({*judged.labels} - {*map(tuple, seeds.seeds.tolist())}))
    keys = questions_of(seeds.graph, triples)[0]
    number = find_indices(seeds.keys, keys.ravel()).reshape(-1, 2)
    kept = (number >= 0).any(axis=1)
    triples, number = triples[kept], number[kept]
    ids = [*seeds.ids, ""]
    names = [(ids[head], ids[tail]) for head, tail in number.tolist()]
    ranks = np.ones((len(triples), 1), np.int64)
    return Pool(seeds.graph, ("all",), 1, triples, ranks, number >= 0, names)


def _fb_scores(folder: Path, seeds: SeedQuestions) -> Mapping[str, np.ndarray]:
    """Scores of four models, of three with half of their dimensions, and of six fusions of two."""
    graph, questions = seeds.graph, seeds.questions
    row_of, relation_of = (
        np.argsort(np.argsort([label.encode() for label in labels]))
        for labels in (graph.entities, graph.relations)
    )
    scores: dict[str, np.ndarray] = {}
    for name in ("distmult", "complex", "transe", "rotate"):
        arrays = np.load(folder / f"fb15k-237-{name}.npz")
        entity, relation = (arrays[key].astype(np.float32) for key in ("entity", "relation"))
        inverse = graph.n_relations * (questions.side == 0)
        e = entity[row_of[questions.entity]]
        w = relation[relation_of[questions.relation] + inverse]
        query = _query(name, e, w)
        for half in (False, True)[: 1 if name == "rotate" else 2]:
            part = np.arange(entity.shape[1])
            width = len(part) // 2
            if half:
                part = part[part % width < width // 2] if name == "complex" else part[:width]
            row = query[:, part] @ entity[:, part].T
            if name in ("transe", "rotate"):
                row = 2 * row - (entity[:, part] ** 2).sum(axis=1)
            scores[name + "-half" * half] = row[:, row_of]
    whole = {n: row for n, row in scores.items() if "-" not in n}
    places = {n: np.argsort(np.argsort(-row, axis=1), axis=1) for n, row in whole.items()}
    for first, second in combinations(places, 2):
        fused = 1 / (60 + places[first]) + 1 / (60 + places[second])
        scores[f"{first}+{second}"] = fused.astype(np.float32)
    return scores


def _query(name: str, e: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The vector whose product with an entity is its score, up to its length."""
    if name in ("distmult", "transe"):
        return e * w if name == "distmult" else e + w
    half = e.shape[1] // 2
    turned = e[:, :half] + 1j * e[:, half:]
    if name == "complex":
        turned = turned * (w[:, :half] + 1j * w[:, half:])
    else:
        turned = turned * np.exp(10j * w[:, :half])
    return np.concatenate([turned.real, turned.imag], axis=1).astype(np.float32)
