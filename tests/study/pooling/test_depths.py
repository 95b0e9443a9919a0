"""Labels of every depth of a pool against new rankings and pools; simulated judgements of all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st
from pool_cases import N_ENTITIES, Case, cases
from profiles import examples

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli import cli
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.study.comparison.stability import depth_curves
from kgtrec.study.openworld.family_tree import family_tree, random_removal
from kgtrec.study.pooling.completion import Completion, complete
from kgtrec.study.pooling.depths import (
    contributors_of,
    curves_of_ranks,
    curves_of_runs,
    depths_of,
    instance_depths,
    leave_one_out,
    ranks_at_depth,
)
from kgtrec.study.pooling.edited_files import Judgements, lines_of_triples
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Draw, Pool, make_pool, read_pool, write_pool
from kgtrec.study.pooling.seeds import SeedQuestions, replaced_split, seed_questions
from kgtrec.study.pooling.unjudged import intervals, judged_values, mean_columns, open_candidates

# -- Ranks at every depth --------------------------------------------------------------------------


N, R, DEEPEST = 7, 2, 3


METRICS = ("mrr", "hits@2", "mr", "expected.mrr", "macro.mrr", "macro.hits@1", "map", "ordinal.mrr",
           "amri", "stratified.mrr(0.5,0.5)")  # fmt: skip


COLUMNS = ("greater", "equal", "tied_ahead", "candidates", "macro_greater", "macro_equal",
           "macro_tied_ahead", "macro_candidates", "answer_popularity",
           "relation_popularity")  # fmt: skip


def evaluated(graph: kgtrec.Graph, scores: np.ndarray) -> kgtrec.Result:
    """Scores (side, given, relation, entities) of the graph's questions."""
    questions = graph.questions("test")
    rows = scores[questions.side, questions.entity, questions.relation]
    return kgtrec.evaluate(rows, questions, progress=False)


@st.composite
def deep_cases(draw: st.DrawFn) -> tuple[kgtrec.Graph, np.ndarray, np.ndarray]:
    """A graph with a complete test split, the depth of each triple, and scores with ties."""
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.unique(rng.integers(0, (N, R, N), (draw(st.integers(4, 60)), 3)),
                                     axis=0))  # fmt: skip
    n = max(2, len(rows) // 2)
    graph = kgtrec.Graph.from_arrays(
        train=rows[n:], test=rows[:n], entities=[f"e{i}" for i in range(N)],
        relations=[f"r{i}" for i in range(R)],
    )  # fmt: skip
    depths = rng.integers(0, DEEPEST + 1, n)
    depths[0] = 0
    scores = rng.integers(0, draw(st.sampled_from([2, 4, 99])), (2, N, R, N)).astype(np.float32)
    return graph, depths, scores


def pool_of_depths(graph: kgtrec.Graph, depths: np.ndarray) -> Pool:
    deep = np.flatnonzero(depths)
    triples = graph.split("test")[deep].astype(np.int64)
    asked = np.tile([True, False], (len(deep), 1))
    return Pool(graph, ("one",), DEEPEST, triples, depths[deep][:, None], asked, ["q"] * len(deep))


@examples(0.5)
@given(deep_cases())
def test_ranks_are_those_of_ranking_anew(case: tuple[kgtrec.Graph, np.ndarray, np.ndarray]) -> None:
    graph, depths, scores = case
    ranks = evaluated(graph, scores).ranks
    if not depths.any():
        return
    own = instance_depths(ranks, pool_of_depths(graph, depths))
    assert own.tolist() == depths[ranks.triple].tolist()
    whole = graph.split("test")
    for depth in range(DEEPEST + 1):
        held = whole[depths <= depth]
        due = evaluated(replaced_split(graph, held, "test"), scores)
        ours = ranks_at_depth(ranks, own, depth)
        rows = {tuple(row): i for i, row in enumerate(held.tolist())}
        key = [(rows[tuple(whole[t].tolist())], s) for t, s in
               zip(ours.triple.tolist(), ours.side.tolist(), strict=True)]  # fmt: skip
        theirs = list(zip(due.ranks.triple.tolist(), due.ranks.side.tolist(), strict=True))
        order = [key.index(one) for one in theirs]
        for name in COLUMNS:
            assert getattr(ours, name)[order].tolist() == getattr(due.ranks, name).tolist(), name
        values = kgtrec.Result(ours)
        for metric in METRICS:
            assert values[metric] == pytest.approx(due[metric], abs=1e-12), metric


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    """Three systems, one graph, depths of its test triples."""
    rng = np.random.default_rng(4)
    rows = rng.permutation(np.unique(rng.integers(0, (N, R, N), (60, 3)), axis=0))
    names = {"entities": [f"e{i}" for i in range(N)], "relations": [f"r{i}" for i in range(R)]}
    graph = kgtrec.Graph.from_arrays(train=rows[30:], test=rows[:30], **names)
    depths = rng.integers(0, DEEPEST + 1, 30)
    depths[:2] = 0, DEEPEST
    scores = {name: rng.random((2, N, R, N)).astype(np.float32) for name in "abc"}
    ranks = {name: evaluated(graph, one).ranks for name, one in scores.items()}
    return {"graph": graph, "depths": depths, "scores": scores, "ranks": ranks}


def test_curves_have_the_values_of_every_depth(world: dict[str, Any], tmp_path: Path) -> None:
    graph, depths = world["graph"], world["depths"]
    pool = pool_of_depths(graph, depths)
    curves = curves_of_ranks(
        world["ranks"], pool, ["mrr", "macro.mrr"], resampling=Resampling(resamples=100)
    )
    assert (curves.depths, curves.reference) == ((0, 1, 2, 3), 0)
    for depth in curves.depths:
        held = replaced_split(graph, graph.split("test")[depths <= depth], "test")
        for place, name in enumerate(curves.systems):
            due = evaluated(held, world["scores"][name])
            values = [line[depth][place] for line in curves.values]
            assert values == pytest.approx([due["mrr"], due["macro.mrr"]])
    # The command says the same.
    (tmp_path / "graph").mkdir()
    for split, rows in graph.splits.items():
        lines = "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in rows.tolist())
        (tmp_path / "graph" / f"{split}.txt").write_text(lines)
    read = kgtrec.read_graph(tmp_path / "graph", progress=False)
    assert [read.entities[i] for i in range(N)] == [f"e{i}" for i in range(N)]
    write_pool(tmp_path / "pool.tsv", replace(pool, graph=read, questions=["head0"] * len(pool)))
    files = []
    for name, ranks in world["ranks"].items():
        files.append(str(tmp_path / f"{name}.parquet"))
        ranks.save(files[-1])
    words = ["depths", *files, "--pool", tmp_path / "pool.tsv", "--graph", tmp_path / "graph",
             "-m", "mrr", "-m", "macro.mrr", "--resamples", "100", "--format", "json"]  # fmt: skip
    done = CliRunner().invoke(cli, ["compare", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["values"]["both.realistic.micro.mrr"]
    own = list(curves.values[0][2])
    assert list(said["2"].values()) == pytest.approx(own)


def test_what_cannot_be_had(world: dict[str, Any]) -> None:
    graph, ranks = world["graph"], world["ranks"]
    pool = pool_of_depths(graph, world["depths"])
    with pytest.raises(UsageError, match="3 or more"):
        curves_of_ranks({"a": ranks["a"]}, pool, ["mrr"])
    elsewhere = replace(pool, triples=np.zeros_like(pool.triples) + graph.split("train")[0])
    with pytest.raises(InputError, match="none of the evaluated triples is in the pool"):
        instance_depths(ranks["a"], elsewhere)
    depths = instance_depths(ranks["a"], pool)
    for questions, rows in (
        (graph.questions("test", filter="raw"), "whose filter lacks"),
        (graph.questions("test", entities=range(N - 1)), "of a part of the triples"),
    ):
        scores = world["scores"]["a"][questions.side, questions.entity, questions.relation]
        other = kgtrec.evaluate(scores, questions, progress=False).ranks
        with pytest.raises(KgtrecError, match=rows):
            ranks_at_depth(other, depths[: len(other)], 1)


# -- New pools and qrels ---------------------------------------------------------------------------


Qrels = dict[str, dict[str, int]]


Lists = Mapping[str, list[str]]


def qrels_of(seeds: SeedQuestions, pool: Pool, judged: Judgements) -> Qrels:
    """What `complete` writes, by question and label."""
    qrels = complete(seeds, pool, judged).qrels()
    names = qrels.graph.entities[qrels.entities]
    rows: Qrels = {name: {} for name in qrels.ids}
    for i, name in enumerate(qrels.ids):
        for at in range(qrels.offsets[i], qrels.offsets[i + 1]):
            rows[name][names[at]] = int(qrels.labels[at])
    return rows


def mean_ap(qrels: Qrels, lists: Lists) -> float:
    """Mean of average precision over all questions of the qrels."""
    total = 0.0
    for question, labels in qrels.items():
        ranked, hits, own = lists.get(question, []), 0, 0.0
        for place, entity in enumerate(ranked, start=1):
            if labels.get(entity, 0) > 0:
                hits += 1
                own += hits / place
        answers = sum(label > 0 for label in labels.values())
        total += own / answers if answers else 0.0
    return total / len(qrels)


def ranked_of(one: RankedLists, seeds: SeedQuestions) -> dict[str, list[str]]:
    labels = seeds.graph.entities[one.entities]
    return {name: labels[one.offsets[i] : one.offsets[i + 1]] for i, name in enumerate(seeds.ids)}


def check_against_new_pools(
    lists: list[RankedLists], seeds: SeedQuestions, judged: Judgements, depth: int, folder: Path
) -> None:
    """`compare depths` and `reuse` give from one pool's file the values of new pools."""
    pool = make_pool(lists, seeds, depth)
    write_pool(folder / "pool.tsv", pool)
    pool, _ = read_pool(folder / "pool.tsv", seeds.graph)
    ranked = {one.name: ranked_of(one, seeds) for one in lists}
    paths = {}
    for one in lists:
        paths[one.name] = folder / f"{one.name}.run"
        one.to_run(seeds).write(paths[one.name])
    qrels = qrels_of(seeds, pool, judged)

    alone = {name: dict.fromkeys(answers, 1) for name, answers in seeds_of(seeds).items()}
    due = [[mean_ap(alone, ranked[name]) for name in ranked]]
    deepest = int(pool.smallest.max())
    for k in range(1, deepest + 1):
        own = qrels_of(seeds, make_pool(lists, seeds, k), judged)
        due.append([mean_ap(own, ranked[name]) for name in ranked])
    curves = curves_of_runs(
        qrels, paths, depths_of(pool), ["map"], resampling=Resampling(resamples=100)
    )
    assert curves.depths == tuple(range(deepest + 1))
    assert np.array(curves.values)[0] == pytest.approx(np.array(due))

    runs = {name: kgtrec.trec.read_run(path) for name, path in paths.items()}
    reuse = leave_one_out(qrels, runs, contributors_of(pool), "map")
    for k, name in enumerate(reuse.systems):
        if name not in reuse.contributors:
            continue
        others = make_pool([one for one in lists if one.name != name], seeds, depth)
        without = qrels_of(seeds, others, judged)
        assert reuse.full[k] == pytest.approx(mean_ap(qrels, ranked[name]))
        assert reuse.left_out[k] == pytest.approx(mean_ap(without, ranked[name]))


def seeds_of(seeds: SeedQuestions) -> dict[str, list[str]]:
    """The seeds that answer each seed question, from the triples."""
    labels = seeds.graph.entities
    by_name: dict[str, list[str]] = {name: [] for name in seeds.ids}
    for name, (side, known, relation) in zip(seeds.ids, seeds.keys, strict=True):
        for h, r, t in seeds.seeds.tolist():
            if r == relation and known == (h if side else t):
                by_name[name].append(labels[t if side else h])
    return by_name


@examples(0.5)
@given(case=cases(3), depth=st.integers(1, N_ENTITIES), share=st.sampled_from([0.3, 0.6, 1.0]),
       seed=st.integers(0, 999))  # fmt: skip
def test_depths_and_reuse_are_those_of_new_pools(
    case: Case, depth: int, share: float, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lists, seeds = case.lists(), case.questions
    random = np.random.default_rng(seed)
    pooled = make_pool(lists, seeds, depth).triples.tolist()
    labels = {(h, r, t): int(random.random() < share) for h, r, t in pooled}
    assume(pooled)
    folder = tmp_path_factory.mktemp("mirror")
    check_against_new_pools(lists, seeds, Judgements(labels, len(labels)), depth, folder)


# --- the example ----------------------------------------------------------------------------------

QUESTIONS = ("?rB", "?rD", "Ar?", "Cr?")


def example(orders: Mapping[str, tuple[str, str, str, str]], folder: Path) -> tuple:
    """Seeds, and lists of systems as entities per question, best first."""
    (folder / "graph").mkdir()
    (folder / "graph" / "train.txt").write_text("E\tr\tF\n")
    (folder / "graph" / "valid.txt").write_text("E\tr\tG\n")
    (folder / "graph" / "test.txt").write_text("A\tr\tB\nC\tr\tD\n")
    graph = kgtrec.read_graph(folder / "graph")
    seeds = seed_questions(graph, graph.split("test"))
    lists = []
    for name, rows in orders.items():
        text = "".join(
            f"{question} Q0 {entity} 1 {9 - place} x\n"
            for question, row in zip(seeds.ids, rows, strict=True)
            for place, entity in enumerate(row)
        )
        (folder / f"raw-{name}").write_text(text)
        lists.append(run_lists(folder / f"raw-{name}", seeds, name))
    head, tail = graph.entities.index("A"), graph.entities.index("D")
    return seeds, lists, Judgements({(head, 0, tail): 1}, 1)


def test_depth_0_is_the_seeds_alone(tmp_path: Path) -> None:
    orders = {
        "one": ("AEFG", "CAEF", "BEFGD", "EDFG"),
        "two": ("AEFG", "CEFG", "EBFGD", "EDFG"),
        "three": ("EAFG", "ECFG", "BEFGD", "EDFG"),
    }
    seeds, lists, judged = example(orders, tmp_path)
    pool = make_pool(lists, seeds, 2)
    row = [seeds.graph.entities[t[0]] + seeds.graph.entities[t[2]] for t in pool.triples].index(
        "AD"
    )
    assert (pool.sides[row], pool.questions[row]) == ("head", f"{seeds.ids[1]},{seeds.ids[2]}")
    assert depths_of(pool)[seeds.ids[1]]["A"] == depths_of(pool)[seeds.ids[2]]["D"] == 2

    qrels = qrels_of(seeds, pool, judged)
    paths = {one.name: tmp_path / one.name for one in lists}
    for one in lists:
        one.to_run(seeds).write(paths[one.name])
    curves = curves_of_runs(
        qrels, paths, depths_of(pool), ["map"], resampling=Resampling(resamples=100)
    )
    assert curves.values[0][0] == pytest.approx([0.875, 0.75, 0.625])
    check_against_new_pools(lists, seeds, judged, 2, tmp_path)


def test_a_system_is_credited_in_both_questions(tmp_path: Path) -> None:
    orders = {
        "one": ("AEFG", "ACEF", "BEFG", "DEFG"),
        "two": ("AEFG", "CEFG", "EBFG", "EDFG"),
        "three": ("EAFG", "ECFG", "BEFG", "EDFG"),
    }
    seeds, lists, judged = example(orders, tmp_path)
    pool = make_pool(lists, seeds, 2)
    result = leave_one_out(
        qrels_of(seeds, pool, judged),
        {one.name: as_run(ranked_of(one, seeds)) for one in lists},
        contributors_of(pool),
        "map",
    )
    assert (result.full[0], result.left_out[0]) == (0.875, 0.875)
    assert result.judged.tolist() == result.relevant.tolist() == [2, 0, 0]
    check_against_new_pools(lists, seeds, judged, 2, tmp_path)


def as_run(lists: Lists) -> dict[str, dict[str, float]]:
    return {
        name: {entity: -float(i) for i, entity in enumerate(row)} for name, row in lists.items()
    }


# --- files ----------------------------------------------------------------------------------------


def test_sides_must_fit_the_names_of_questions(tmp_path: Path) -> None:
    seeds, _, _ = example({"one": ("AEFG", "CAEF", "BEFG", "EDFG")}, tmp_path)
    path = tmp_path / "pool.tsv"
    first = "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"
    for side, names in (("both", seeds.ids[1]), ("head", "a,b,c")):
        path.write_text(first + f"A\tr\tD\t{side}\t{names}\t2\tone:2\t\n")
        with pytest.raises(FileError, match=f"questions '{names}' beside side '{side}'"):
            read_pool(path, seeds.graph)


def test_a_comma_in_the_name_of_a_question_is_refused(tmp_path: Path) -> None:
    seeds, lists, _ = example({"one": ("AEFG", "CAEF", "BEFG", "EDFG")}, tmp_path)
    names = {key: f"{name},x" for key, name in seeds.names.items()}
    renamed = seed_questions(seeds.graph, seeds.seeds, names=names)
    with pytest.raises(UsageError, match="comma in its name"):
        make_pool(lists, renamed, 2)


def test_questions_without_an_answer_at_a_depth_count_there(tmp_path: Path) -> None:
    qrels = {"q": {"a": 1}, "late": {"b": 1}}  # "late" has no judgement before depth 2
    paths = {}
    for number, name in enumerate("xyz"):
        paths[name] = tmp_path / name
        documents = ["a", "b", "c"][number:] + ["a", "b", "c"][:number]
        rows = [f"{query} Q0 {d} 1 {9 - i} x\n" for query in qrels for i, d in enumerate(documents)]
        paths[name].write_text("".join(rows))
    depths = {"q": {"c": 1}, "late": {"b": 2}}
    with pytest.raises(InputError, match="qrels judge no pooled document"):
        curves_of_runs(qrels, paths, {"q": {"c": 1}}, ["map"])
    curves = curves_of_runs(qrels, paths, depths, ["map"], resampling=Resampling(resamples=100))
    assert curves.depths == (0, 1, 2)
    ranks = {"a": (1, 3, 2), "b": (2, 1, 3)}  # places of both documents in the three runs
    alone = [0.5 / rank for rank in ranks["a"]]  # the other question has AP 0, and counts
    assert curves.values[0][0] == pytest.approx(alone)
    both = [own + 0.5 / rank for own, rank in zip(alone, ranks["b"], strict=True)]
    assert curves.values[0][2] == pytest.approx(both)


def test_judged_negatives_are_contributions_too() -> None:
    qrels = {"q": {"a": 1, "b": 0, "c": 0, "d": -1}}
    contributors = {"q": {name: frozenset([by]) for name, by in zip("abcd", "xxyx", strict=True)}}
    runs = {name: {"q": dict(zip("bacd", (4, 3, 2, 1), strict=True))} for name in "xy"}
    reuse = leave_one_out(qrels, runs, contributors, "bpref")
    assert (reuse.judged.tolist(), reuse.relevant.tolist()) == ([2, 1], [1, 0])


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
def family() -> World:
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
def test_values_approach_those_of_all_labels(family: World) -> None:
    judged, truth = family.judged(), family.truth()
    by_depth = np.array([family.values(depth, judged) for depth in (*DEPTHS, family.pool.depth)])
    error = np.abs(by_depth - truth).mean(axis=2)  # (depths, measures)

    assert (error[1:4] < 0.5 * error[:3]).all()  # depths 0, 1, 2, 5
    assert (np.diff(error, axis=0) < 1e-4).all()  # small rests may overshoot
    assert (error[0] > 0.04).all()  # the error of sparse labels
    assert (error[DEPTHS.index(5)] < 0.05 * error[0]).all()


@pytest.mark.slow
def test_the_ranking_of_systems_becomes_that_of_all_labels(family: World) -> None:
    judged, depths = family.judged(), (*DEPTHS, family.pool.depth)
    by_depth = np.array([family.values(depth, judged) for depth in depths])
    values = {name: by_depth[:, i] for i, name in enumerate(MEASURES)}
    curves = depth_curves(values, depths, reference=family.pool.depth)
    tau = dict(zip(depths, curves.tau.T, strict=True))

    assert (tau[0] < 0.3).all()
    assert tau[0].mean() < tau[1].mean() < tau[2].mean()
    assert all((tau[depth] > 0.9).all() for depth in depths[3:])
    assert tau[family.pool.depth].tolist() == [1.0] * len(MEASURES)


def test_judges_who_err_lead_elsewhere(small: World) -> None:
    flips = np.random.default_rng(0).random(len(small.pool)) < 0.05
    wrong = dict(zip(map(tuple, small.pool.triples.tolist()), flips.tolist(), strict=True))
    error = np.abs(small.values(small.pool.depth, small.judged(wrong.__getitem__)) - small.truth())
    assert (error.mean(axis=1) > 0.01).all()


@pytest.mark.slow
def test_a_system_that_was_not_pooled_is_undervalued(family: World) -> None:
    columns, full = mean_columns(["P_10"]), family.truth()[2]
    losses = []
    for system, lists in enumerate(family.lists):
        others = make_pool([one for one in family.lists if one is not lists], family.questions, 10)
        completion = complete(family.questions, others, family.judged())
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


def estimates(family: World, share: float, draws: int, keep_seeds: bool = False) -> np.ndarray:
    """infAP of every system in every draw, shape (draws, systems)."""
    whole, columns = family.at(family.pool.depth), mean_columns(["infAP"])
    labels = list(lines_of_triples(family.graph, whole.triples))
    values = []
    for seed in range(draws):
        drawn = Draw(share, seed).takes(labels)
        drawn[: len(family.seeds)] |= keep_seeds
        sampled = replace(whole, drawn=drawn)
        values.append([judged_values(one, sampled, columns)["infAP"] for one in family.lists])
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
def test_seeds_that_are_judged_in_any_case_bias_it(family: World) -> None:
    """Why seeds are sampled like all others: as known true triples, they would count too much."""
    truth = family.truth()[0]
    fair, unfair = (estimates(family, 0.3, 8, keep).mean(axis=0) - truth for keep in (False, True))
    assert unfair[0] > 0.1  # the system that knows the seeds best
    assert unfair[-1] < -0.08  # and the one that knows missing facts best
    assert np.abs(fair).max() < 0.6 * np.abs(unfair).max()
