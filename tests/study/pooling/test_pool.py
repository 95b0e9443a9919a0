"""Seeds, lists and pools against plain Python, their files, and `kgtrec sample` and `pool`."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import Case, asked_by, cases, places_of, slow_lists, slow_pool, small, triple_of
from study_cases import N_ENTITIES, N_RELATIONS, graphs, listed

import kgtrec
from kgtrec._internal.named import system_names
from kgtrec.graph.statistics.relations import relation_categories
from kgtrec.study.pooling.completion import RULES, rule_table, trivial_rules
from kgtrec.study.pooling.lists import (
    doubts,
    is_scores,
    run_lists,
    score_lists,
)
from kgtrec.study.pooling.pool import make_pool, read_pool, write_pool
from kgtrec.study.pooling.seeds import questions_of, read_question_ids, sample_seeds, seed_questions


def graph_of(relations: list[int]) -> kgtrec.Graph:
    """A test split whose triples have these relations."""
    rows = [(i, relation, i + 1) for i, relation in enumerate(relations)]
    return kgtrec.Graph.from_arrays(test=np.array(rows), n_relations=max(relations) + 1)


@pytest.mark.data
def test_fb_test_s_comes_out_row_for_row(shared_data: Path) -> None:
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    folder = shared_data / "kgc-sparsity" / "data" / "FB-Test-S"

    sample = sample_seeds(graph, 0.05, seed=42)

    assert sample.rows.tolist() == [
        int(x) for x in (folder / "sample_idxs.txt").read_text().split()
    ]
    lines = [line.split("\t") for line in (folder / "samples.txt").read_text().splitlines()]
    ours = [
        [graph.entities[h], graph.relations[r], graph.entities[t]]
        for h, r, t in sample.triples.tolist()
    ]
    assert ours == lines
    assert sample.divergence == pytest.approx(0.088964, abs=5e-7)
    assert sample.table().rows == [
        ("test", 20466, 224, 10348, 22850),
        ("sample", 1023, 154, 1569, 1745),
    ]


@given(graphs(), st.integers(0, 2**40), st.data())
def test_rows_are_those_of_python(graph: kgtrec.Graph, seed: int, data: st.DataObject) -> None:
    test = listed(graph, "test")
    size = data.draw(st.integers(1, len(test)))
    random.seed(seed)
    expected = sorted(random.sample(range(len(test)), size))
    sample = sample_seeds(graph, size=size, seed=seed)
    assert sample.rows.tolist() == expected
    assert [tuple(t) for t in sample.triples.tolist()] == [test[i] for i in expected]

    counts = [Counter(r for _, r, _ in some) for some in (test, (test[i] for i in expected))]
    p, q = (
        [(own[r] + 1) / (own.total() + N_RELATIONS) for r in range(N_RELATIONS)] for own in counts
    )
    divergence = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert sample.divergence == pytest.approx(divergence, abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.data())
def test_every_relation_has_its_share(relations: list[int], data: st.DataObject) -> None:
    graph, size = graph_of(relations), data.draw(st.integers(1, len(relations)))

    sample = sample_seeds(graph, size=size, seed=3, by_relation=True)

    drawn = Counter(relations[row] for row in sample.rows.tolist())
    assert len(set(sample.rows.tolist())) == len(sample) == size
    # Largest remainders: sort all fractions, and give one more to the largest.
    exact = {r: Fraction(size * n, len(relations)) for r, n in Counter(relations).items()}
    expected = {r: math.floor(x) for r, x in exact.items()}
    left = size - sum(expected.values())
    for relation in sorted(exact, key=lambda r: (-(exact[r] % 1), r))[:left]:
        expected[relation] += 1
    assert drawn == Counter({r: n for r, n in expected.items() if n})


def test_shares_round_down_but_not_by_floating_point() -> None:
    graph = graph_of([0] * 100)
    assert len(sample_seeds(graph, 0.29)) == 29  # 0.29 * 100 is 28.999...
    assert len(sample_seeds(graph, 0.299)) == 29
    assert len(sample_seeds(graph)) == 5
    assert len(sample_seeds(graph, 1)) == 100
    drawn = {
        tuple(sample_seeds(graph_of([0] * 4), size=2, seed=seed, by_relation=True).rows)
        for seed in range(60)
    }
    assert len(drawn) == 6  # each pair of members can be drawn


KINDS = st.sampled_from(["filtered", "raw"])


@given(cases(), st.integers(1, N_ENTITIES + 1), KINDS)
def test_pool_is_that_of_plain_python(case: Case, depth: int, kind: str) -> None:
    pool = make_pool(case.lists(kind), case.questions, depth)
    expected = slow_pool(case, depth, kind)

    assert places_of(pool) == expected
    smallest = [min(expected[tuple(t)].values()) for t in pool.triples.tolist()]
    assert pool.smallest.tolist() == smallest
    sizes = [len(slow_pool(case, less, kind)) for less in range(1, depth + 1)]
    assert [row[1] for row in pool.depth_table().rows] == sizes
    names = case.graph.questions("test").ids
    number = {q: names[i] for i, q in enumerate(asked_by(listed(case.graph, "test")))}
    lists = slow_lists(case, kind)
    for triple, side, question in zip(
        pool.triples.tolist(), pool.sides, pool.questions, strict=True
    ):
        through = [
            q
            for q in asked_by(case.seeds)
            if any(
                triple_of(q, e) == tuple(triple) and p <= depth
                for by in lists.values()
                for e, p in by[q]
            )
        ]
        answered = [
            q
            for q in asked_by(case.seeds)
            if any(triple_of(q, e) == tuple(triple) for e in range(N_ENTITIES))
        ]
        named = {q[0]: number[q] for q in answered}
        assert question == (named.get("head", ""), named.get("tail", ""))
        assert side == ("both" if len(through) == 2 else through[0][0])


@given(cases())
def test_contributions_and_overlap(case: Case) -> None:
    lists = case.lists()
    pool, other = (make_pool(order, case.questions, 4) for order in (lists, lists[::-1]))
    assert (pool.triples.tolist(), pool.questions) == (other.triples.tolist(), other.questions)
    sets = {
        name: {t for t, own in slow_pool(case, 4, "filtered").items() if name in own}
        for name in pool.systems
    }
    _, own, alone, _ = zip(*pool.system_table().rows, strict=True)
    assert own == tuple(len(own) for own in sets.values())
    assert alone == tuple(
        len(own - set().union(*(o for n, o in sets.items() if n != name)))
        for name, own in sets.items()
    )
    overlap = [list(row[1:]) for row in pool.overlap_table().rows]
    assert overlap == [[len(a & b) for b in sets.values()] for a in sets.values()]
    if len(sets) > 1:
        less = Case(case.graph, case.seeds, {k: v for k, v in case.scores.items() if k != "s0"})
        assert places_of(pool.without("s0")) == slow_pool(less, 4, "filtered")


@given(case=cases())
def test_files_of_runs_and_pools_give_the_same(case, tmp_path_factory):
    place = tmp_path_factory.mktemp("pool")
    seeds, lists = case.questions, []
    for name, run in case.runs().items():
        run.write(place / f"{name}.run")
        text = (place / f"{name}.run").read_text().splitlines(keepends=True)
        (place / f"{name}.run").write_text("".join(reversed(text)))  # lines may be in any order
        lists.append(run_lists(place / f"{name}.run", seeds, name))
    pool = make_pool(case.lists(), seeds, 4)
    assert places_of(make_pool(lists, seeds, 4)) == places_of(pool)
    if not len(pool):
        return
    rules = ["type:head" if i % 2 else "" for i in range(len(pool))]
    write_pool(place / "pool.tsv", pool, rules)
    again, read = read_pool(place / "pool.tsv", case.graph)
    assert read == rules
    assert again.triples.tolist() == pool.triples.tolist()
    assert places_of(again) == places_of(pool)
    assert again.sides == pool.sides
    assert again.questions == pool.questions


def test_systems_are_named_by_their_files_and_doubted_if_they_find_little() -> None:
    assert system_names(["x/a.run", "b.run.gz", "c.txt"]) == ["a", "b", "c"]
    strong = small().lists()[0]
    weak = replace(strong, of_seeds=strong.of_seeds & False, from_scores=True)
    (sentence,) = doubts([weak], small().questions, 99)  # it is not reported as short
    assert "check the model, and the order of the rows" in sentence


def test_a_question_list_renames_the_questions(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(
        train=[(0, 0, 1)], test=[(1, 0, 2)], entities=["a b", "50 %", "c"], relations=["is in"]
    )
    kgtrec.write_questions(graph.questions(), tmp_path / "q.tsv")
    assert "50%20%25" in (tmp_path / "q.tsv").read_text()
    names = read_question_ids(tmp_path / "q.tsv", graph)
    (keys,) = questions_of(graph, np.array([[1, 0, 2]]))[0].tolist()
    assert names == dict(zip(keys, ["head0", "tail0"], strict=True))
    renamed = {key: f"{name[:4]}x{name[4:]}" for key, name in names.items()}
    assert seed_questions(graph, [(1, 0, 2)], names=renamed).ids == ["headx0", "tailx0"]


def slow_rule(
    case: Case, triple: list[int], sides: list[bool], types: dict[int, tuple[str, str]]
) -> str:
    """The first rule that fires, by the words of its definition."""
    head, relation, tail = triple
    train = [t for t in listed(case.graph, "train") if t[1] == relation]
    if train:
        per_head = len(train) / len({h for h, _, _ in train})
        per_tail = len(train) / len({t for _, _, t in train})
        one_head, one_tail = per_tail < 1.5, per_head < 1.5
        if sides[0] and one_head:
            return "1-1:head" if one_tail else "1-N:head"
        if sides[1] and one_tail:
            return "1-1:tail" if one_head else "N-1:tail"
    if relation in types:
        of: dict[int, set[str]] = {}
        for h, r, t in listed(case.graph):
            if r in types:
                of.setdefault(h, set()).add(types[r][0])
                of.setdefault(t, set()).add(types[r][1])
        if types[relation][0] not in of.get(head, set()):
            return "type:head"
        if types[relation][1] not in of.get(tail, set()):
            return "type:tail"
    return ""


@given(
    cases(),
    st.dictionaries(st.integers(0, N_RELATIONS - 1), st.tuples(*[st.sampled_from("AB")] * 2)),
)
def test_rules_fire_by_their_definitions(case: Case, types: dict[int, tuple[str, str]]) -> None:
    pool = make_pool(case.lists(), case.questions, 5)
    categories = relation_categories(case.graph) if len(case.graph.splits["train"]) else None
    if categories is None:
        return
    rules = trivial_rules(pool, categories=categories, types=types)
    expected = [
        slow_rule(case, triple, sides, types)
        for triple, sides in zip(pool.triples.tolist(), pool.pooled_for.tolist(), strict=True)
    ]
    assert rules == expected
    assert set(rules) <= {"", *RULES}
    assert [row[1] for row in rule_table(pool, rules).rows] == [
        expected.count(name) for name in RULES if name in expected
    ]
    assert trivial_rules(pool) == [""] * len(pool)


FORMS = st.sampled_from(["whole", "seeds", "instances", "parts"])


@given(case=cases(), depth=st.integers(1, 8), kind=KINDS, form=FORMS)
def test_scores_are_pooled_as_their_runs_would_be(case, depth, kind, form, tmp_path_factory):
    place, seeds, lists = tmp_path_factory.mktemp("s"), case.questions, []
    number = {name: i for i, name in enumerate(case.graph.questions("test").ids)}
    rows = np.arange(len(number))
    if form == "instances":
        asked = case.graph.questions("test")
        rows = asked.instance_question[asked.triple_rows]
    elif form == "seeds" and len(seeds) < len(number):  # otherwise they are as in the split
        rows = [number[one] for one in seeds.ids]
    for name, scores in case.scores.items():
        path = place / f"{name}.npy"
        if form == "parts":
            path = place / name
            path.mkdir()
            for part, own in enumerate(np.array_split(scores, 2)):
                np.save(path / f"{part}.npy", own)
        else:
            np.save(path, scores[rows])
        assert is_scores(path)
        per = "instances" if form == "instances" else "questions"
        lists.append(score_lists(path, seeds, name, depth, places=kind, rows=per, progress=False))
    assert places_of(make_pool(lists, seeds, depth)) == slow_pool(case, depth, kind)


def test_a_factorised_model_and_distances(tmp_path: Path) -> None:
    case = small()
    random = np.random.default_rng(3)
    questions, n = case.graph.questions(), case.graph.n_entities
    queries, entities = random.random((len(questions), 4)), random.random((n, 4))
    np.savez(tmp_path / "model.npz", queries=queries, entities=entities)
    np.save(tmp_path / "far.npy", -(queries @ entities.T))
    seeds = case.questions
    one = score_lists(tmp_path / "model.npz", seeds, "m", 5)
    other = score_lists(tmp_path / "far.npy", seeds, "m", 5, higher_is_better=False)
    assert one.entities.tolist() == other.entities.tolist()
    assert one.offsets.tolist() == other.offsets.tolist()
