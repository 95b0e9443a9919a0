"""Small graphs with seeds and runs of several systems, and their pools in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from hypothesis import strategies as st
from study_cases import N_ENTITIES, graphs, listed

import kgtrec
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Pool
from kgtrec.study.pooling.seeds import SeedQuestions, seed_questions

Triple = tuple[int, int, int]
Question = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Case:
    """A graph, seeds of its test split, and scores with many ties of systems for all questions."""

    graph: kgtrec.Graph
    seeds: list[Triple]
    scores: dict[str, np.ndarray]
    lists_of: dict[tuple[str, int], list[RankedLists]] = field(default_factory=dict)  # once each

    def runs(self, kind: str = "filtered", depth: int = N_ENTITIES) -> dict[str, kgtrec.Run]:
        """Runs over the whole split, filtered as `kgtrec rank` does or not at all."""
        questions = self.graph.questions("test", filter="raw" if kind == "raw" else "all")
        return {
            name: kgtrec.rank(scores, questions, run_depth=depth, progress=False)[1]
            for name, scores in self.scores.items()
        }

    @cached_property
    def questions(self) -> SeedQuestions:
        """The seeds' questions."""
        return seed_questions(self.graph, self.seeds)

    def lists(self, kind: str = "filtered", depth: int = N_ENTITIES) -> list[RankedLists]:
        """Lists of all systems."""
        if (kind, depth) not in self.lists_of:
            self.lists_of[kind, depth] = [
                run_lists(run, self.questions, name, places=kind)
                for name, run in self.runs(kind, depth).items()
            ]
        return self.lists_of[kind, depth]


@st.composite
def cases(draw: st.DrawFn, least_systems: int = 1) -> Case:
    graph = draw(graphs())
    tests = listed(graph, "test")
    seeds = draw(st.lists(st.sampled_from(tests), min_size=1, max_size=6, unique=True))
    n_systems = draw(st.integers(least_systems, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**20)))
    shape = (len(graph.questions("test")), N_ENTITIES)
    scores = {f"s{i}": random.integers(0, 5, shape).astype(np.float32) for i in range(n_systems)}
    return Case(graph, seeds, scores)


def small() -> Case:
    """Three test triples, one of them a seed, and random scores of two systems."""
    rows = np.array([[0, 0, 3], [1, 0, 2], [2, 0, 3], [3, 0, 0]])
    graph = kgtrec.Graph.from_arrays(train=rows[:1], test=rows[1:], n_entities=N_ENTITIES)
    random = np.random.default_rng(1)
    scores = {name: random.random((len(graph.questions()), N_ENTITIES)) for name in "ab"}
    return Case(graph, [(2, 0, 3)], scores)


def places_of(pool: Pool) -> dict[tuple[int, ...], dict[str, int]]:
    """Triple to the places of the systems that have it."""
    rows = zip(pool.triples.tolist(), pool.best_ranks.tolist(), strict=True)
    return {
        tuple(triple): {n: p for n, p in zip(pool.systems, ranks, strict=True) if p}
        for triple, ranks in rows
    }


def asked_by(triples: list[Triple]) -> list[Question]:
    """Questions of triples: heads first, each in order of first appearance."""
    heads = [("head", tail, relation) for _, relation, tail in triples]
    tails = [("tail", head, relation) for head, relation, _ in triples]
    return list(dict.fromkeys(heads)) + list(dict.fromkeys(tails))


def triple_of(question: Question, entity: int) -> Triple:
    """The triple of a question and an entity."""
    side, given, relation = question
    return (entity, relation, given) if side == "head" else (given, relation, entity)


def slow_lists(case: Case, kind: str) -> dict[str, dict[Question, list[tuple[int, int]]]]:
    """System, then seed question, to (entity, place), without known entities and with seeds."""
    known = set(listed(case.graph))
    rows = {question: i for i, question in enumerate(asked_by(listed(case.graph, "test")))}
    lists: dict[str, dict[Question, list[tuple[int, int]]]] = {}
    for name, scores in case.scores.items():
        lists[name] = {}
        for question in asked_by(case.seeds):
            row = scores[rows[question]]
            # Labels are the ids in decimal, of one digit. Ties are ordered by label, descending.
            order = sorted(range(N_ENTITIES), key=lambda e: (-row[e], -e))
            rank, entries = 0, []
            for entity in order:
                triple = triple_of(question, entity)
                is_out = triple in known and triple not in case.seeds
                rank += kind == "raw" or not is_out
                if not is_out:
                    entries.append((entity, rank))
            lists[name][question] = entries
    return lists


def slow_pool(case: Case, depth: int, kind: str) -> dict[Triple, dict[str, int]]:
    """Pooled triple to its best place in each system."""
    pool: dict[Triple, dict[str, int]] = {}
    for name, by_question in slow_lists(case, kind).items():
        for question, entries in by_question.items():
            for entity, rank in entries:
                triple = triple_of(question, entity)
                if rank <= depth and triple not in case.seeds:
                    ranks = pool.setdefault(triple, {})
                    ranks[name] = min(rank, ranks.get(name, rank))
    return pool
