"""Labels of every depth of a pool against new rankings and pools; pools without a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pool_cases import N_ENTITIES, cases
from profiles import examples
from scipy import stats
from trec_oracle import measures

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, KgtrecError, UsageError
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
from kgtrec.study.pooling.lists import RankedLists
from kgtrec.study.pooling.pool import Pool, make_pool, read_pool, write_pool
from kgtrec.study.pooling.seeds import SeedQuestions, keys_of, question_keys, replace_split

N, R, DEEPEST = 7, 2, 3
METRICS = (
    "mrr",
    "hits@2",
    "mr",
    "expected.mrr",
    "macro.mrr",
    "macro.hits@1",
    "map",
    "ordinal.mrr",
    "amri",
    "stratified.mrr(0.5,0.5)",
)


COLUMNS = (
    "greater",
    "equal",
    "tied_ahead",
    "candidates",
    "macro_greater",
    "macro_equal",
    "macro_tied_ahead",
    "macro_candidates",
    "answer_popularity",
    "relation_popularity",
)


def evaluated(graph: kgtrec.Graph, scores: np.ndarray, **options: Any) -> kgtrec.Result:
    """Scores (side, given, relation, entities) of the graph's questions."""
    questions = graph.questions("test", **options)
    rows = scores[questions.side, questions.entity, questions.relation]
    return kgtrec.evaluate(rows, questions, progress=False)


@st.composite
def deep_cases(draw: st.DrawFn) -> tuple[kgtrec.Graph, np.ndarray, np.ndarray]:
    """A graph with a complete test split, the depth of each triple, and scores with ties."""
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(
        np.unique(rng.integers(0, (N, R, N), (draw(st.integers(4, 60)), 3)), axis=0)
    )
    n = max(2, len(rows) // 2)
    graph = kgtrec.Graph.from_arrays(
        train=rows[n:],
        test=rows[:n],
        entities=[f"e{i}" for i in range(N)],
        relations=[f"r{i}" for i in range(R)],
    )
    depths = rng.integers(0, DEEPEST + 1, n)
    depths[0] = 0
    scores = rng.integers(0, draw(st.sampled_from([2, 4, 99])), (2, N, R, N)).astype(np.float32)
    return graph, depths, scores


def pool_of_depths(graph: kgtrec.Graph, depths: np.ndarray) -> Pool:
    deep = np.flatnonzero(depths)
    triples = graph.split("test")[deep].astype(np.int64)
    asked = np.tile([True, False], (len(deep), 1))
    return Pool(
        graph, ("one",), DEEPEST, triples, depths[deep][:, None], asked, [("", "q")] * len(deep)
    )


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
        due = evaluated(replace_split(graph, held, "test"), scores)
        ours = ranks_at_depth(ranks, own, depth)
        rows = {tuple(row): i for i, row in enumerate(held.tolist())}
        key = [
            (rows[tuple(whole[t].tolist())], s)
            for t, s in zip(ours.triple.tolist(), ours.side.tolist(), strict=True)
        ]
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
        held = replace_split(graph, graph.split("test")[depths <= depth], "test")
        for place, name in enumerate(curves.systems):
            due = evaluated(held, world["scores"][name])
            values = [line.parts[str(depth),][place] for line in curves.values]
            assert values == pytest.approx([due["mrr"], due["macro.mrr"]])


def test_what_cannot_be_had(world: dict[str, Any]) -> None:
    graph, ranks = world["graph"], world["ranks"]["a"]
    pool = pool_of_depths(graph, world["depths"])
    elsewhere = replace(pool, triples=np.zeros_like(pool.triples) + graph.split("train")[0])
    with pytest.raises(InputError, match="none of the evaluated triples is in the pool"):
        instance_depths(ranks, elsewhere)
    depths = instance_depths(ranks, pool)
    for options, said in (
        ({"filter": "raw"}, "whose filter lacks"),
        ({"entities": range(N - 1)}, "of a part of the triples"),
    ):
        other = evaluated(graph, world["scores"]["a"], **options).ranks
        with pytest.raises(KgtrecError, match=said):
            ranks_at_depth(other, depths[: len(other)], 1)


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
    return np.mean(
        [
            measures([labels.get(one) for one in lists.get(question, ())], [*labels.values()])[
                "map"
            ]
            for question, labels in qrels.items()
        ]
    )


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
    return {
        name: dict(zip(labels[row], scores[row], strict=True))
        for name, row in zip(seeds.ids, rows, strict=True)
    }


@examples(0.5)
@given(
    case=cases(3),
    depth=st.integers(1, N_ENTITIES),
    share=st.sampled_from([0.3, 0.6, 1.0]),
    seed=st.integers(0, 999),
)
def test_depths_and_reuse_are_those_of_new_pools(case, depth, share, seed, tmp_path_factory):
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
    due = [
        [
            [mean(qrels_of(seeds, pool, judged, k), ranked[name]) for name in ranked]
            for k in range(deepest + 1)
        ]
        for mean in (mean_ap, mean_rr, mean_rr)
    ]
    curves = curves_of_runs(
        qrels,
        paths,
        depths_of(pool),
        ["map", "kg_mrr"],
        resampling=Resampling(resamples=100),
        ties="name",
    )
    assert (curves.depths, curves.reference) == (tuple(range(deepest + 1)), 0)
    assert curves.measures[1:] == ("kg_mrr_low", "kg_mrr_high")  # runs hold every answer
    values = [[*one.parts.values()] for one in curves.values]
    assert np.array(values) == pytest.approx(np.array(due))

    runs = {name: kgtrec.trec.read_run(path) for name, path in paths.items()}
    reuse = leave_one_out(qrels, runs, contributors_of(pool), "map", ties="name")
    for k, name in enumerate(reuse.systems):
        if name not in reuse.contributors:
            continue
        others = make_pool([one for one in lists if one.name != name], seeds, depth)
        without = qrels_of(seeds, others, judged, depth)
        assert reuse.full[k] == pytest.approx(mean_ap(qrels, ranked[name]))
        assert reuse.left_out[k] == pytest.approx(mean_ap(without, ranked[name]))


def toy_pool() -> tuple[dict, dict, dict]:
    """Each of two newcomers finds an answer that nobody else has."""
    documents = {"a": ["x", "y", "z"], "b": ["y", "z", "x", "u"], "c": ["w", "y", "x", "v"]}
    runs = {
        name: {f"q{i}": {d: 9.0 - k for k, d in enumerate(order)} for i in range(4)}
        for name, order in documents.items()
    }
    qrels = {f"q{i}": {"u": -1, "v": 0, "w": 1, "x": 1, "y": 0, "z": 1} for i in range(4)}
    brought = {"u": "b", "v": "c", "w": "c", "x": "ab", "y": "abc", "z": "b"}
    return qrels, runs, {f"q{i}": {d: frozenset(by) for d, by in brought.items()} for i in range(4)}


def test_questions_without_a_judgement_yet_are_unanswered(tmp_path: Path) -> None:
    """Three questions have only an answer that is judged later: AP 0, and gm_map's floor."""
    paths = {name: tmp_path / name for name in "abc"}
    for name, lists in toy_pool()[1].items():
        lines = [f"{q} Q0 {d} 1 {score} {name}\n" for q in lists for d, score in lists[q].items()]
        paths[name].write_text("".join(lines))
    qrels = {f"q{i}": {"x": 1} for i in range(4)}
    depths = {f"q{i}": {"x": 1} for i in range(1, 4)}  # q0 is as for a seed
    measures, how = ["map", "gm_map", "rbp_resid"], Resampling(resamples=100)
    curves = curves_of_runs(qrels, paths, depths, measures, resampling=how, ties="name")
    own = {one.measure: one.parts["0",] for one in curves.values}
    ap = np.array([1, 1 / 3, 1 / 3])
    assert own["map"] == pytest.approx(ap / 4)
    assert own["gm_map"] == pytest.approx(ap ** (1 / 4) * 1e-5 ** (3 / 4))
    assert (own["rbp_resid"] > 3 / 4).all()  # nothing is judged


def test_depth_intervals_draw_the_same_questions_at_every_depth() -> None:
    values = np.random.default_rng(1).random((40, 4))
    one = Samples("m", "m", tuple("abcd"), values, np.arange(40), "questions")
    curves = with_intervals([[one], [one]], (0, 1), resampling=Resampling(resamples=150))
    # By the same labels, each draw agrees with itself.
    assert curves.interval[:, 0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_reverse_questions_are_asked_from_their_triples_depth_on(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(
        test=np.array([[0, 0, 1], [3, 0, 2]]),
        n_entities=4,
        entities=["A", "B", "C", "D"],
        relations=["r"],
    )
    names = dict(
        zip(keys_of(graph.questions("test")).tolist(), graph.questions("test").ids, strict=True)
    )
    asked, reverse = (  # a seed asks (?, r, B), none asks (D, r, ?)
        names[int(question_keys(graph, side, np.array(entity), np.array(0)))]
        for side, entity in ((0, 1), (1, 3))
    )
    pool = Pool(
        graph,
        ("one",),
        5,
        np.array([[3, 0, 1]]),
        np.array([[4]]),
        np.array([[True, False]]),
        [(asked, "")],
    )
    assert names_of_pool(pool) == names
    assert depths_of(pool, names) == {asked: {"D": 4}, reverse: {"B": 4}}
    path = tmp_path / "names.tsv"
    path.write_text("head9\tB\tr\ntail9\tD\tr\n")
    assert names_of_pool(replace(pool, questions=[("elsewhere", "")])) == {}
    with pytest.raises(UsageError, match="other question names than the pool"):
        names_of_pool(pool, path)
    own = replace(pool, questions=[("head9", "")])
    assert depths_of(own, names_of_pool(own, path)) == {"head9": {"D": 4}, "tail9": {"B": 4}}


def test_leaving_one_out() -> None:
    qrels, runs, brought = toy_pool()
    result = leave_one_out(qrels, runs, brought, "recip_rank", ties="name")
    assert result.full.tolist() == [1.0, 0.5, 1.0]
    # Without w, c finds its first answer at the third place; without z, b loses as much.
    assert result.left_out.tolist() == pytest.approx([1.0, 1 / 3, 1 / 3])
    # The labels that only b and only c brought: c's v is false, and nobody has decided b's u.
    assert (result.judged.tolist(), result.relevant.tolist()) == ([0, 4, 8], [0, 4, 4])
    assert result.rank.tolist() == [1, 3, 1]
    assert result.rank_left_out.tolist() == [1, 3, 3]
    due = stats.kendalltau([1.0, 0.5, 1 / 3], result.full).statistic  # without w
    assert result.tau == pytest.approx([1.0, 1.0, due])
    assert "they were left out of the pool (by up to 2 places)" in result.sentence()
    assert [row[0] for row in result.table().rows] == ["a", "c", "b"]
