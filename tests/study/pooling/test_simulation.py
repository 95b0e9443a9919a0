"""Pools with a known truth: judgements converge to it, and samples estimate it.

A family tree is a closed world: judges who know it label every pooled triple correctly. The first
simulated systems know best what the test split records, the last ones what it lacks. So sparse
labels rank them in reverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

import kgtrec
from kgtrec.study.comparison.stability import depth_curves
from kgtrec.study.openworld.family_tree import family_tree, random_removal
from kgtrec.study.pooling.completion import Completion, complete
from kgtrec.study.pooling.edited_files import Judgements, lines_of_triples
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Draw, Pool, make_pool
from kgtrec.study.pooling.seeds import SeedQuestions, seed_questions
from kgtrec.study.pooling.unjudged import intervals, judged_values, mean_columns, open_candidates

Triple = tuple[int, int, int]
MEASURES = ("map", "ndcg_cut_20", "P_10")
DEPTHS = (0, 1, 2, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class World:
    """A graph with all true facts known, seeds, and scores of systems for its questions.

    Attributes
    ----------
    graph : Graph
    facts : set of triples
    seeds : list of triples
    strengths : list of (float, float)
        For every system: how far it raises recorded answers, and unrecorded ones.
    noise : int
        Seed of the noise in the scores.
    """

    graph: kgtrec.Graph
    facts: set[Triple]
    seeds: list[Triple]
    strengths: list[tuple[float, float]]
    noise: int = 0

    @cached_property
    def questions(self) -> SeedQuestions:
        return seed_questions(self.graph, self.seeds)

    @cached_property
    def scores(self) -> list[np.ndarray]:
        questions, n = self.graph.questions(), self.graph.n_entities
        columns = questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist()
        row = {key: i for i, key in enumerate(zip(*columns, strict=True))}
        recorded = {tuple(t) for split in self.graph.splits.values() for t in split.tolist()}
        is_true = np.zeros((2, len(row), n))
        for triple in self.facts:
            h, r, t = triple
            for key, entity in (((0, t, r), h), ((1, h, r), t)):
                if key in row:
                    is_true[int(triple not in recorded), row[key], entity] = 1
        random = np.random.default_rng(self.noise)
        return [
            random.standard_normal((len(row), n)) + a * is_true[0] + b * is_true[1]
            for a, b in self.strengths
        ]

    @cached_property
    def lists(self) -> list[RankedLists]:
        questions = self.graph.questions()
        runs = [
            kgtrec.rank(scores, questions, run_depth=self.graph.n_entities, progress=False)[1]
            for scores in self.scores
        ]
        return [run_lists(run, self.questions, f"s{i}") for i, run in enumerate(runs)]

    @cached_property
    def pool(self) -> Pool:
        """A pool as deep as the number of entities: it contains everything."""
        return make_pool(self.lists, self.questions, self.graph.n_entities)

    def judged(self, wrong: Callable[[Triple], bool] = lambda _: False) -> Judgements:
        labels = {}
        for row in self.pool.triples.tolist():
            triple = (row[0], row[1], row[2])
            labels[triple] = int((triple in self.facts) != wrong(triple))
        return Judgements(labels, len(labels))

    def at(self, depth: int, judged: Judgements | None = None) -> Completion:
        return complete(self.questions, self.pool, judged or self.judged(), depth=depth)

    def values(self, depth: int, judged: Judgements | None = None) -> np.ndarray:
        """Values of `MEASURES`, shape (measures, systems)."""
        completion, columns = self.at(depth, judged), mean_columns(MEASURES)
        by_system = [judged_values(one, completion, columns) for one in self.lists]
        return np.array([[own[name] for own in by_system] for name in MEASURES])

    def truth(self) -> np.ndarray:
        """The same values from facts and definitions alone, without pool, qrels or kgtrec."""
        questions = self.graph.questions()
        columns = questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist()
        row = {key: i for i, key in enumerate(zip(*columns, strict=True))}
        recorded = {tuple(t) for split in self.graph.splits.values() for t in split.tolist()}
        heads = dict.fromkeys((0, t, r) for _, r, t in self.seeds)
        tails = dict.fromkeys((1, h, r) for h, r, _ in self.seeds)
        sums = np.zeros((len(MEASURES), len(self.scores)))
        for system, scores in enumerate(self.scores):
            for side, known, r in (*heads, *tails):
                ranked = []
                for entity in np.argsort(-scores[row[side, known, r]]).tolist():
                    triple = (known, r, entity) if side else (entity, r, known)
                    if triple in self.seeds or triple not in recorded:
                        ranked.append(triple in self.facts)
                sums[:, system] += by_definition(ranked)
        return sums / (len(heads) + len(tails))


def by_definition(ranked: list[bool]) -> list[float]:
    """AP, nDCG@20 and P@10 of a list with every relevant document."""
    places = [place for place, true in enumerate(ranked, start=1) if true]
    ap = sum((i + 1) / place for i, place in enumerate(places)) / len(places)
    gain = sum(1 / math.log2(place + 1) for place in places if place <= 20)
    ideal = sum(1 / math.log2(i + 2) for i in range(min(20, len(places))))
    return [ap, gain / ideal, sum(place <= 10 for place in places) / 10]


def world_of(families: int, people: int, n_seeds: int, n_systems: int) -> World:
    tree = family_tree(families=families, people=people, seed=3)
    parts = random_removal(tree.facts, 0.7, 0.5, seed=3)
    random = np.random.default_rng(1)
    rows = np.sort(random.choice(len(parts.test), n_seeds, replace=False))
    facts = {(h, r, t) for h, r, t in tree.facts.tolist()}
    seeds = [(h, r, t) for h, r, t in parts.test[rows].tolist()]
    step = 7 / (n_systems - 1)
    strengths = [(2.4 - 0.2 * step * i, 0.4 + 0.35 * step * i) for i in range(n_systems)]
    return World(tree.graph(parts.train, parts.test), facts, seeds, strengths)


@pytest.fixture(scope="module")
def world() -> World:
    return world_of(4, 60, 60, 8)


@pytest.fixture(scope="module")
def small() -> World:
    return world_of(2, 30, 10, 2)


def test_values_of_all_labels_are_reached(small: World) -> None:
    judged, truth = small.judged(), small.truth()
    assert small.values(small.pool.depth, judged) == pytest.approx(truth, abs=1e-12)
    # P@10 uses ten places, which a pool of depth 10 has judged for every system in it.
    at_10 = small.values(10, judged)
    assert at_10[2] == pytest.approx(truth[2], abs=1e-12)
    assert (at_10[0] != truth[0]).any()  # AP sees all
    assert np.abs(small.values(0, judged) - truth).mean() > 0.04  # the error of sparse labels


@pytest.mark.slow
def test_values_approach_those_of_all_labels(world: World) -> None:
    judged, truth = world.judged(), world.truth()
    by_depth = np.array([world.values(depth, judged) for depth in (*DEPTHS, world.pool.depth)])
    error = np.abs(by_depth - truth).mean(axis=2)  # (depths, measures)

    assert (error[1:4] < 0.5 * error[:3]).all()  # depths 0, 1, 2, 5
    assert (np.diff(error, axis=0) < 1e-4).all()  # small rests may overshoot
    assert (error[0] > 0.04).all()  # the error of sparse labels
    assert (error[DEPTHS.index(5)] < 0.05 * error[0]).all()


@pytest.mark.slow
def test_the_ranking_of_systems_becomes_that_of_all_labels(world: World) -> None:
    judged, depths = world.judged(), (*DEPTHS, world.pool.depth)
    by_depth = np.array([world.values(depth, judged) for depth in depths])
    values = {name: by_depth[:, i] for i, name in enumerate(MEASURES)}
    curves = depth_curves(values, depths, reference=world.pool.depth)
    tau = dict(zip(depths, curves.tau.T, strict=True))

    assert (tau[0] < 0.3).all()
    assert tau[0].mean() < tau[1].mean() < tau[2].mean()
    assert all((tau[depth] > 0.9).all() for depth in depths[3:])
    assert tau[world.pool.depth].tolist() == [1.0] * len(MEASURES)


def test_judges_who_err_lead_elsewhere(small: World) -> None:
    flips = np.random.default_rng(0).random(len(small.pool)) < 0.05
    wrong = dict(zip(map(tuple, small.pool.triples.tolist()), flips.tolist(), strict=True))
    error = np.abs(small.values(small.pool.depth, small.judged(wrong.__getitem__)) - small.truth())
    assert (error.mean(axis=1) > 0.01).all()


@pytest.mark.slow
def test_a_system_that_was_not_pooled_is_undervalued(world: World) -> None:
    columns, full = mean_columns(["P_10"]), world.truth()[2]
    losses = []
    for system, lists in enumerate(world.lists):
        others = make_pool([one for one in world.lists if one is not lists], world.questions, 10)
        completion = complete(world.questions, others, world.judged())
        losses.append(full[system] - judged_values(lists, completion, columns)["P_10"])
    assert min(losses) >= -1e-12
    assert max(losses) > 0.001


def test_intervals_hold_the_truth_at_every_depth(small: World) -> None:
    judged, truth = small.judged(), small.truth()
    widths = []
    for depth in (1, 5, small.pool.depth):
        completion = small.at(depth, judged)
        candidates = open_candidates(small.lists, completion, None)
        for system, lists in enumerate(small.lists):
            by_name = intervals(lists, completion, ["ndcg_cut_20", "P_10"], candidates=candidates)
            for number, name in ((1, "ndcg_cut_20"), (2, "P_10")):
                one = by_name[name]
                assert one.low - 1e-12 <= truth[number, system] <= one.high + 1e-12
                widths.append(one.high - one.low)
    by_depth = np.array(widths).reshape(3, -1)
    assert (np.diff(by_depth, axis=0) < 0).all()
    assert by_depth[-1] == pytest.approx(0, abs=1e-12)


# -- Samples of judgements -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dense() -> World:
    """Questions with about 80 answers each, for which inferred AP was designed."""
    random = np.random.default_rng(4)
    pairs = np.argwhere(random.random((200, 200)) < 0.4)
    facts = {(h, 0, t) for h, t in pairs.tolist()}
    rows = np.array(sorted(facts))[random.permutation(len(facts))]
    graph = kgtrec.Graph.from_arrays(train=rows[:500], test=rows[500:510], n_entities=200)
    seeds = [(h, r, t) for h, r, t in rows[500:510].tolist()]
    return World(graph, facts, seeds, [(0.3 * i, 0.3 * i) for i in range(6)], noise=1)


def estimates(world: World, share: float, draws: int, keep_seeds: bool = False) -> np.ndarray:
    """infAP of every system in every draw, shape (draws, systems)."""
    whole, columns = world.at(world.pool.depth), mean_columns(["infAP"])
    labels = list(lines_of_triples(world.graph, whole.triples))
    values = []
    for seed in range(draws):
        drawn = Draw(share, seed).takes(labels)
        drawn[: len(world.seeds)] |= keep_seeds
        sampled = replace(whole, drawn=drawn)
        values.append([judged_values(one, sampled, columns)["infAP"] for one in world.lists])
    return np.array(values)


@pytest.mark.slow
def test_inferred_ap_from_samples_is_nearly_unbiased(dense: World) -> None:
    truth = dense.truth()[0]
    for share, margin in ((0.3, 0.01), (0.6, 0.005)):
        values = estimates(dense, share, 40)
        error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
        assert error.max() < 0.004  # the standard error of the mean over draws
        assert (np.abs(values.mean(axis=0) - truth) < margin + 3 * error).all()
        assert values.std(axis=0).min() > 0.003  # the samples do differ
    assert np.abs(estimates(dense, 1.0, 1)[0] - truth).max() < 1e-4  # but trec_eval's epsilon
    assert np.ptp(truth) > 0.3  # systems that differ


@pytest.mark.slow
def test_seeds_that_are_judged_in_any_case_bias_it(world: World) -> None:
    """Why seeds are sampled like all others: as known true triples, they would count too much."""
    truth = world.truth()[0]
    fair, unfair = (estimates(world, 0.3, 8, keep).mean(axis=0) - truth for keep in (False, True))
    assert unfair[0] > 0.1  # the system that knows the seeds best
    assert unfair[-1] < -0.08  # and the one that knows missing facts best
    assert np.abs(fair).max() < 0.6 * np.abs(unfair).max()
