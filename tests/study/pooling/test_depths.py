"""Labels of every depth of a pool against new rankings and pools; pools without a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pool_cases import N_ENTITIES, Case, cases
from profiles import examples
from refusals import assert_refused, refusals
from scipy import stats
from trec_oracle import measures

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.pooling.completion import complete
from kgtrec.study.pooling.depths import (
    contributors_of,
    curves_of_ranks,
    curves_of_runs,
    depths_of,
    instance_depths,
    leave_one_out,
    names_of_pool,
    ranks_at_depth,
    with_intervals,
)
from kgtrec.study.pooling.edited_files import Judgements
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Pool, make_pool, read_pool, write_pool
from kgtrec.study.pooling.seeds import SeedQuestions, replaced_split, seed_questions

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


Lists = Mapping[str, dict[str, float]]


def qrels_of(seeds: SeedQuestions, pool: Pool, judged: Judgements, depth: int) -> Qrels:
    """What `complete` writes, by question and label."""
    qrels = complete(seeds, pool, judged, depth=depth).qrels()
    rows: Qrels = {name: {} for name in qrels.ids}
    names = qrels.graph.entities[qrels.entities]
    for row, name, label in zip(qrels.owner.tolist(), names, qrels.labels.tolist(), strict=True):
        rows[qrels.ids[row]][name] = label
    return rows


def mean_ap(qrels: Qrels, lists: Lists) -> float:
    """Mean of average precision over all questions of the qrels."""
    return np.mean([
        measures([labels.get(one) for one in lists.get(question, ())], [*labels.values()])["map"]
        for question, labels in qrels.items()
    ])  # fmt: skip


def mean_rr(qrels: Qrels, lists: Lists) -> float:
    """Mean of reciprocal realistic ranks over all answers, each ranked without the others."""
    gains = []
    for question, labels in qrels.items():
        answers = [entity for entity, label in labels.items() if label == 1]
        others = [score for entity, score in lists[question].items() if entity not in answers]
        for own in (lists[question][answer] for answer in answers):
            gains.append(1 / (1 + sum(x > own for x in others) + others.count(own) / 2))
    return np.mean(gains)


def ranked_of(one: RankedLists, seeds: SeedQuestions) -> Lists:
    labels, scores = seeds.graph.entities[one.entities], one.scores.tolist()
    rows = (slice(*ends) for ends in pairwise(one.offsets.tolist()))
    return {name: dict(zip(labels[row], scores[row], strict=True))
            for name, row in zip(seeds.ids, rows, strict=True)}  # fmt: skip


@examples(0.5)
@given(case=cases(3), depth=st.integers(1, N_ENTITIES), share=st.sampled_from([0.3, 0.6, 1.0]),
       seed=st.integers(0, 999))  # fmt: skip
def test_depths_and_reuse_are_those_of_new_pools(
    case: Case, depth: int, share: float, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lists, seeds = case.lists(), case.questions
    random = np.random.default_rng(seed)
    pool = make_pool(lists, seeds, depth)
    labels = {(h, r, t): int(random.random() < share) for h, r, t in pool.triples.tolist()}
    assume(labels)
    judged, folder = Judgements(labels, len(labels)), tmp_path_factory.mktemp("mirror")
    write_pool(folder / "pool.tsv", pool)
    pool, _ = read_pool(folder / "pool.tsv", seeds.graph)
    ranked = {one.name: ranked_of(one, seeds) for one in lists}
    paths = {}
    for one in lists:
        paths[one.name] = folder / f"{one.name}.run"
        one.to_run(seeds).write(paths[one.name])
    deepest = int(pool.smallest.max())
    qrels = qrels_of(seeds, pool, judged, pool.depth)
    due = [[[mean(qrels_of(seeds, pool, judged, k), ranked[name]) for name in ranked]
            for k in range(deepest + 1)] for mean in (mean_ap, mean_rr, mean_rr)]  # fmt: skip
    curves = curves_of_runs(
        qrels, paths, depths_of(pool), ["map", "kg_mrr"], resampling=Resampling(resamples=100)
    )
    assert (curves.depths, curves.reference) == (tuple(range(deepest + 1)), 0)
    assert curves.measures[1:] == ("kg_mrr_low", "kg_mrr_high")  # runs hold every answer
    assert np.array(curves.values) == pytest.approx(np.array(due))

    runs = {name: kgtrec.trec.read_run(path) for name, path in paths.items()}
    reuse = leave_one_out(qrels, runs, contributors_of(pool), "map")
    for k, name in enumerate(reuse.systems):
        if name not in reuse.contributors:
            continue
        others = make_pool([one for one in lists if one.name != name], seeds, depth)
        without = qrels_of(seeds, others, judged, depth)
        assert reuse.full[k] == pytest.approx(mean_ap(qrels, ranked[name]))
        assert reuse.left_out[k] == pytest.approx(mean_ap(without, ranked[name]))


# --- the example ----------------------------------------------------------------------------------


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

    qrels = qrels_of(seeds, pool, judged, 2)
    paths = {one.name: tmp_path / one.name for one in lists}
    for one in lists:
        one.to_run(seeds).write(paths[one.name])
    curves = curves_of_runs(
        qrels, paths, depths_of(pool), ["map"], resampling=Resampling(resamples=100)
    )
    assert curves.values[0][0] == pytest.approx([0.875, 0.75, 0.625])


# -- Depths of a pool --------------------------------------------------------------------------

QUERIES = [f"tail{q}" for q in range(30)]


@pytest.fixture
def pooled(tmp_path: Path) -> tuple[dict, dict, dict]:
    """Qrels, run files and depths: three systems that put other documents first."""
    rng = np.random.default_rng(8)
    runs, qrels, depth_of = {}, {}, {}
    lists = {name: {} for name in "abc"}
    for query in QUERIES:
        qrels[query] = {"seed": 1}
        depth_of[query] = {}
        for name in "abc":
            ranked = rng.permutation([*(f"d{k}" for k in range(8)), "seed"]).tolist()
            lists[name][query] = ranked
            for place, document in enumerate(ranked[:4], start=1):
                if document != "seed":
                    known = depth_of[query].get(document, 9)
                    depth_of[query][document] = min(known, place)
                    qrels[query][document] = int(rng.random() < 0.4)
    for name, ranked_lists in lists.items():
        runs[name] = tmp_path / name
        runs[name].write_text("".join(
            f"{query} Q0 {d} 1 {20 - k} {name}\n"
            for query, ranked in ranked_lists.items() for k, d in enumerate(ranked)
        ))  # fmt: skip
    return qrels, runs, depth_of


def test_questions_without_a_judgement_yet_are_unanswered(pooled: tuple[dict, dict, dict]) -> None:
    """Most questions have only documents judged later: AP 0, and gm_map's floor."""
    _, runs, depth_of = pooled
    qrels = {query: {max(row, key=row.get): 1} for query, row in depth_of.items()}
    depth_of[QUERIES[0]] = {}  # as for a seed: judged at every depth
    measures = ["map", "gm_map", "rbp_resid"]
    curves = curves_of_runs(qrels, runs, depth_of, measures, resampling=Resampling(resamples=100))
    own = dict(zip(curves.measures, curves.values, strict=True))
    first = qrels[QUERIES[0]]
    for k, name in enumerate("abc"):
        ap = kgtrec.trec.evaluate({QUERIES[0]: first}, runs[name], ["map"])[QUERIES[0]]["map"]
        assert own["map"][0, k] == pytest.approx(ap / 30)
        assert own["gm_map"][0, k] == pytest.approx(ap ** (1 / 30) * 1e-5 ** (29 / 30))
    assert (own["rbp_resid"][0] > 29 / 30).all()  # nothing is judged


def test_depth_intervals_draw_the_same_questions_at_every_depth() -> None:
    values = np.random.default_rng(1).random((40, 4))
    one = Samples("m", "m", tuple("abcd"), values, np.arange(40), "questions")
    curves = with_intervals([[one], [one]], (0, 1), resampling=Resampling(resamples=150))
    # By the same labels, each draw agrees with itself.
    assert curves.interval[:, 0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_reverse_questions_are_asked_from_their_triples_depth_on(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(
        test=np.array([[0, 0, 1], [3, 0, 2]]), n_entities=4, entities=["A", "B", "C", "D"],
        relations=["r"],
    )  # fmt: skip
    names = dict(zip(zip(*(getattr(graph.questions("test"), column).tolist()
                           for column in ("side", "entity", "relation")), strict=True),
                     graph.questions("test").ids, strict=True))  # fmt: skip
    asked, reverse = names[0, 1, 0], names[1, 3, 0]  # a seed asks (?, r, B), none asks (D, r, ?)
    pool = Pool(graph, ("one",), 5, np.array([[3, 0, 1]]), np.array([[4]]),
                np.array([[True, False]]), [asked])  # fmt: skip
    assert names_of_pool(pool) == names
    assert depths_of(pool, names) == {asked: {"D": 4}, reverse: {"B": 4}}
    path = tmp_path / "names.tsv"
    path.write_text("head9\tB\tr\ntail9\tD\tr\n")
    assert names_of_pool(replace(pool, questions=["elsewhere"])) == {}
    with pytest.raises(UsageError, match="other question names than the pool"):
        names_of_pool(pool, path)
    own = replace(pool, questions=["head9"])
    assert depths_of(own, names_of_pool(own, path)) == {"head9": {"D": 4}, "tail9": {"B": 4}}


def test_depths_that_are_refused(pooled: tuple[dict, dict, dict]) -> None:
    qrels, runs, depth_of = pooled
    for held, depths, options, error, said in (
        (runs, {"tail0": {"other": 1}}, {}, InputError, "qrels judge no pooled document"),
        (dict(list(runs.items())[:2]), depth_of, {}, UsageError, "3 or more"),
        (runs, depth_of, {"reference": 7, "resampling": Resampling(resamples=100)}, UsageError,
         "is not a depth"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            curves_of_runs(qrels, held, depths, ["map"], **options)


# -- A pool without one of its systems -----------------------------------------------------------


def toy_pool() -> tuple[dict, dict, dict]:
    """Each of two newcomers finds an answer that nobody else has."""
    documents = {"a": ["x", "y", "z"], "b": ["y", "z", "x"], "c": ["w", "y", "x"]}
    runs = {
        name: {f"q{i}": {d: 9.0 - k for k, d in enumerate(order)} for i in range(4)}
        for name, order in documents.items()
    }
    qrels = {f"q{i}": {"w": 1, "x": 1, "y": 0, "z": 1} for i in range(4)}
    brought = {
        f"q{i}": {"w": frozenset("c"), "x": frozenset("ab"), "y": frozenset("abc"),
                  "z": frozenset("b")}
        for i in range(4)
    }  # fmt: skip
    return qrels, runs, brought


def test_leaving_one_out() -> None:
    qrels, runs, brought = toy_pool()
    result = leave_one_out(qrels, runs, brought, "recip_rank")
    assert result.full.tolist() == [1.0, 0.5, 1.0]
    # Without w, c finds its first answer at the third place; without z, b loses as much.
    assert result.left_out.tolist() == pytest.approx([1.0, 1 / 3, 1 / 3])
    assert result.judged.tolist() == result.relevant.tolist() == [0, 4, 4]
    assert result.place.tolist() == [1, 3, 1]
    assert result.place_left_out.tolist() == [1, 3, 3]
    due = stats.kendalltau([1.0, 0.5, 1 / 3], result.full).statistic  # without w
    assert result.tau == pytest.approx([1.0, 1.0, due])
    assert "they were left out of the pool (by up to 2 places)" in result.sentence()
    assert [row[0] for row in result.table().rows] == ["a", "c", "b"]


@refusals(
    *((measure, lambda qrels, runs, brought, measure=measure: leave_one_out(
        qrels, runs, brought, measure), UsageError, (words,))
      for measure, words in (("unj_10", "are not better"), ("judged_10", "are not better"),
                             ("rbp_resid", "are not better"), ("num_ret", "has no mean"))),
    ("strangers", lambda qrels, runs, brought: leave_one_out(
        qrels, {"p": runs["a"], "q": runs["b"]}, brought, "map"), InputError,
     ("none of the runs p, q is in the pool",)),
)  # fmt: skip
def test_measures_and_runs_that_cannot_be_left_out(
    call: Callable[..., object], error: type[Exception], words: tuple[str, ...]
) -> None:
    assert_refused(call, error, words, *toy_pool())


# --- files ----------------------------------------------------------------------------------------


def test_names_of_questions_that_do_not_fit(tmp_path: Path) -> None:
    seeds, lists, _ = example({"one": ("AEFG", "CAEF", "BEFG", "EDFG")}, tmp_path)
    path = tmp_path / "pool.tsv"
    first = "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"
    for side, names in (("both", seeds.ids[1]), ("head", "a,b,c")):
        path.write_text(first + f"A\tr\tD\t{side}\t{names}\t2\tone:2\t\n")
        with pytest.raises(FileError, match=f"questions '{names}' beside side '{side}'"):
            read_pool(path, seeds.graph)
    names = {key: f"{name},x" for key, name in seeds.names.items()}
    renamed = seed_questions(seeds.graph, seeds.seeds, names=names)
    with pytest.raises(UsageError, match="comma in its name"):
        make_pool(lists, renamed, 2)


def test_judged_negatives_are_contributions_too() -> None:
    qrels = {"q": {"a": 1, "b": 0, "c": 0, "d": -1}}
    contributors = {"q": {name: frozenset([by]) for name, by in zip("abcd", "xxyx", strict=True)}}
    runs = {name: {"q": dict(zip("bacd", (4, 3, 2, 1), strict=True))} for name in "xy"}
    reuse = leave_one_out(qrels, runs, contributors, "bpref")
    assert (reuse.judged.tolist(), reuse.relevant.tolist()) == ([2, 1], [1, 0])
