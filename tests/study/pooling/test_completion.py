"""Judgements, samples, splits, qrels and intervals against plain Python; `kgtrec complete`."""

from __future__ import annotations

import hashlib
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import Case, Triple, asked_by, cases, slow_lists, slow_pool, small, triple_of
from profiles import examples
from study_cases import N_ENTITIES, listed
from trec_oracle import measures

from kgtrec.study.judging.sheets import read_pooled
from kgtrec.study.pooling.completion import Completion, complete
from kgtrec.study.pooling.edited_files import Judgements, read_judgements
from kgtrec.study.pooling.pool import Draw, make_pool, read_draw, read_pool, write_pool
from kgtrec.study.pooling.seeds import question_keys
from kgtrec.study.pooling.unjudged import (
    MEASURES,
    intervals,
    open_candidates,
    share_table,
    shares,
)
from kgtrec.trec.files.run import read_qrels

DEPTH = 4
JudgedCase = tuple[Case, dict[Triple, int]]


@st.composite
def judged_cases(draw: st.DrawFn) -> JudgedCase:
    """A case, and labels of some pooled triples, some seeds and some others."""
    case = draw(cases())
    pooled = sorted(slow_pool(case, DEPTH, "filtered"))
    entity = st.integers(0, N_ENTITIES - 1)
    triple = st.sampled_from([*pooled, *case.seeds]) | st.tuples(entity, st.just(0), entity)
    labels = draw(st.dictionaries(triple, st.sampled_from([1, 1, 0, 0, -1]), max_size=30))
    return case, labels


def done(case: Case, labels: dict[Triple, int], depth: int = DEPTH, **more: object) -> Completion:
    seeds = case.questions
    pool = make_pool(case.lists(), seeds, DEPTH)
    return complete(seeds, pool, Judgements(labels, len(labels)), depth=depth, **more)  # type: ignore[arg-type]


def labelled(completion: Completion) -> dict[Triple, int]:
    triples = map(tuple, completion.triples.tolist())
    return dict(zip(triples, completion.labels.tolist(), strict=True))  # type: ignore[arg-type]


def slow_labels(case: Case, labels: dict[Triple, int], depth: int) -> dict[Triple, int]:
    """Label of every seed and pooled triple: 1, 0, or -1 if undecided."""
    pool = {
        t for t, own in slow_pool(case, DEPTH, "filtered").items() if min(own.values()) <= depth
    }
    by_triple = {t: labels.get(t, -1) for t in pool}
    return by_triple | dict.fromkeys(case.seeds, 1)


@given(
    judged_case=judged_cases(),
    depth=st.integers(0, DEPTH),
    cutoff=st.integers(1, 6),
    data=st.data(),
)
def test_labels_complete_split_qrels_and_shares(judged_case, depth, cutoff, data, tmp_path_factory):
    case, labels = judged_case
    pool = make_pool(case.lists(), case.questions, DEPTH)
    rule = st.sampled_from(["", "1-1:head"])
    rules = data.draw(st.lists(rule, min_size=len(pool), max_size=len(pool)))
    completion, expected = done(case, labels, depth, rules=rules), slow_labels(case, labels, depth)
    pooled = [tuple(t) for t in pool.triples.tolist()]
    fired = {t for t, rule in zip(pooled, rules, strict=True) if rule and t in expected}
    by_rule = {t for t in fired if t not in labels or labels[t] == -1}
    expected |= dict.fromkeys(by_rule, 0)

    assert labelled(completion) == expected
    true = {t for t, label in expected.items() if label == 1}
    assert {tuple(t) for t in completion.split.tolist()} == true
    assert [tuple(t) for t in completion.split.tolist()][: len(case.seeds)] == case.seeds
    reverse = set(asked_by(sorted(true))) - set(asked_by(case.seeds))
    sides, entities, relations = zip(*reverse, strict=True) if reverse else ((), (), ())
    ends = [int(side == "tail") for side in sides]
    keys = question_keys(case.graph, ends, np.array(entities, int), np.array(relations, int))
    assert sorted(completion.reverse.tolist()) == sorted(keys.tolist())
    assert completion.unused == len(set(labels) - set(expected))
    assert completion.doubted == sum(labels.get(t) == 0 for t in case.seeds)
    assert completion.overruled == sum(labels.get(t) == 1 for t in fired)
    assert completion.counts() == {
        "triples": len(expected),
        "true": len(true),
        "seeds": len(case.seeds),
        "added": len(true) - len(case.seeds),
        "false": sum(label == 0 for label in expected.values()),
        "false by rule": len(by_rule),
        "undecided": sum(label == -1 for label in expected.values()),
        "questions": len(set(asked_by(sorted(true)))),
        "never pooled": len(reverse),
    }

    number = dict(
        zip(asked_by(listed(case.graph, "test")), case.graph.questions("test").ids, strict=True)
    )
    path = tmp_path_factory.mktemp("q") / "qrels.txt"
    for with_reverse in (False, True):
        questions = {*asked_by(case.seeds)} | (reverse if with_reverse else set())
        by_question: dict[str, dict[str, int]] = {}
        for q, e in itertools.product(questions & {*number}, range(N_ENTITIES)):
            if triple_of(q, e) in expected:
                by_question.setdefault(number[q], {})[str(e)] = expected[triple_of(q, e)]
        qrels = completion.qrels(with_reverse)
        qrels.write(path)
        assert read_qrels(path) == by_question
        assert qrels.nameless == sum(q not in number for q in questions)

    slow, kinds = slow_lists(case, "filtered"), {1: "added", 0: "false", -1: "unjudged"}
    for lists in case.lists():
        due = dict.fromkeys(("seed", "added", "false", "unjudged"), 0)
        for question, ranked in slow[lists.name].items():
            for triple in (triple_of(question, entity) for entity, _ in ranked[:cutoff]):
                kind = kinds[expected.get(triple, -1)]
                due["seed" if triple in case.seeds else kind] += 1
        assert shares(lists, completion, cutoff) == due
        row = next(r for r in share_table([lists], completion, [cutoff]).rows)
        assert math.isclose(row[-1] + row[-2], 100)


def values_of(world: dict[Triple, int], here: list[Triple]) -> dict[str, Any]:
    """Measures of a list of triples, by their definitions."""
    own = [world.get(triple) for triple in here]
    return measures(own, [*world.values()], cuts=(10, 20), points=(), multiples=(), typed=())


@pytest.mark.parametrize(("within", "depth"), [(0, 2), (1, 3), (2, 1), (3, 4), (4, 4)])
@examples(0.2)
@given(judged_cases())
def test_intervals_are_the_extremes_of_all_labellings(within, depth, judged_case):
    case, labels = judged_case
    # Some lists end above the pool's depth, others continue below it.
    completion, label_of = done(case, labels, 2), slow_labels(case, labels, 2)
    runs = case.lists(depth=depth)
    candidates = open_candidates(runs, completion, within)
    entities = {
        one.name: np.split(one.entities, one.offsets[1:-1]) for one in runs
    }  # test_pool.py checks the contents of lists
    for lists in runs:
        ends: dict[str, list[tuple[float, ...]]] = {}
        for number, question in enumerate(asked_by(case.seeds)):
            here = [triple_of(question, e) for e in entities[lists.name][number].tolist()]
            triples = [triple_of(question, e) for e in range(N_ENTITIES)]
            high = {
                triple_of(question, e)
                for own in entities.values()
                for e in own[number][:within].tolist()
            }
            opened = [
                t for t in triples if label_of.get(t) == -1 or (t in high and t not in label_of)
            ]
            judged = {t: label_of[t] for t in triples if label_of.get(t, -1) >= 0}
            labellings = itertools.product((0, 1), repeat=len(opened))
            worlds = [judged | dict(zip(opened, filled, strict=True)) for filled in labellings]
            now = values_of(judged, here)
            condensed = values_of(judged, [t for t in here if t in judged])
            possible = [values_of(world, here) for world in worlds]
            for name in MEASURES[:-1]:
                low, top = (end(one[name] for one in possible) for end in (min, max))
                if name == "rbp":  # it leaves all unjudged ones open
                    low, top = now[name], now[name] + now["rbp_resid"]
                ends.setdefault(name, []).append((now[name], condensed[name], low, top))
        results = intervals(lists, completion, candidates=candidates)
        for name, rows in ends.items():
            one = results[name]
            ours = one.value, one.condensed, one.low, one.high
            assert ours == pytest.approx(np.mean(rows, axis=0), abs=1e-12), name
        assert math.isnan(results["infAP"].high)
        assert "it estimates" in results["infAP"].reason


def test_judgement_files(tmp_path: Path) -> None:
    path = tmp_path / "judged.tsv"
    path.write_text("0\t0\t1\tY\n1\t0\t2\t N\r\n2\t0\t3\t?")
    read = read_judgements(path, small().graph)
    assert read.labels == {(0, 0, 1): 1, (1, 0, 2): 0, (2, 0, 3): -1}
    assert read.counts() == {"Y": 1, "N": 1, "?": 1}
    assert read.labels_of([[1, 0, 2], [5, 0, 5]]).tolist() == [0, -2]


LABEL = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1)
TRIPLES = st.lists(st.tuples(LABEL, LABEL, LABEL), max_size=30)


def slow_draw(share: float, seed: int, triple: tuple[str, str, str]) -> bool:
    digest = hashlib.blake2b("\t".join([str(seed), *triple]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share


@given(TRIPLES, st.floats(0.001, 1), st.integers(0, 9), st.floats(0.001, 1))
def test_what_is_drawn_depends_on_the_triple_alone(triples, share, seed, other):
    drawn = Draw(share, seed).draws(triples)
    assert drawn.tolist() == [slow_draw(share, seed, triple) for triple in triples]
    more = Draw(max(share, other), seed).draws(triples)
    assert (more >= drawn).all()  # a larger share keeps earlier draws


@given(cases(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(0, 3))
def test_labels_of_the_sample_alone(case: Case, share: float, seed: int) -> None:
    pool = make_pool(case.lists(), case.questions, 4).with_sample(share, seed)
    labels = {(h, r, t): (h + t) % 2 for h, r, t in pool.triples.tolist()}
    completion = complete(case.questions, pool, Judgements(labels, len(labels)))
    whole = labelled(completion)
    assert whole == labels | dict.fromkeys(case.seeds, 1)
    drawn = {
        t: slow_draw(share, seed, own)
        for t, own in zip(whole, shown_triples(case, completion.triples), strict=True)
    }
    assert labelled(completion.sample) == {t: x if drawn[t] else -1 for t, x in whole.items()}
    qrels = completion.sample.qrels()
    answered = qrels.keep_answered()
    assert set(answered.ids) == {qrels.ids[q] for q in qrels.owner[qrels.labels == 1]}
    rows = [
        [(one.ids[q], e, x) for q, e, x in zip(one.owner, one.entities, one.labels, strict=True)]
        for one in (qrels, answered)
    ]
    assert rows[1] == [row for row in rows[0] if row[0] in answered.ids]
    drawn_rows = [int(slow_draw(share, seed, t)) for t in shown_triples(case, pool.triples)]
    assert pool.depth_table().rows[-1][3:] == (sum(drawn_rows), sum(drawn_rows))


def shown_triples(case: Case, triples: np.ndarray) -> list[tuple[str, str, str]]:
    e, r = case.graph.entities, case.graph.relations
    return [(e[h], r[p], e[t]) for h, p, t in triples.tolist()]


def test_pool_files_with_a_sample(tmp_path: Path) -> None:
    case, path = small(), tmp_path / "pool.tsv"
    pool = make_pool(case.lists(), case.questions, 4).with_sample(0.5, 3)
    write_pool(path, pool)
    again, _ = read_pool(path, case.graph)
    assert again.draw == Draw(0.5, 3)
    for text in ("rule", "sample=2,seed=1", "sample=0.3,seed=-1", "sample=e,seed=1"):
        assert read_draw(text) is None
    assert again.drawn.tolist() == pool.drawn.tolist()
    assert 0 < pool.drawn.sum() < len(pool)
    assert [one.drawn for one in read_pooled(path)] == pool.drawn.tolist()


@examples(0.5)
@given(judged_cases(), st.integers(1, 4))
def test_examples_are_those_of_plain_loops(judged: JudgedCase, most: int) -> None:
    case, labels = judged
    completion = done(case, labels)
    graph = completion.seeds.graph
    names = {graph.entities[1]: "Entity One"}
    seeds = [tuple(triple) for triple in completion.seeds.seeds.tolist()]
    every = list(labelled(completion).items())
    found = []
    for side, end in [(0, 2), (1, 0)]:  # the questions for heads, then those for tails
        for known in dict.fromkeys((triple[1], triple[end]) for triple in seeds):
            of = [
                (triple, label)
                for triple, label in every
                if (triple[1], triple[end]) == known and label == 1
            ]
            original = [t[2 - end] for t, _ in of if t in seeds]
            added = [t[2 - end] for t, _ in of if t not in seeds]
            found.append((side, *known, original, added))
    found = sorted((f for f in found if f[4]), key=lambda f: -len(f[4]))[:most]
    due = []
    for side, relation, known, *lists in found:
        label = names.get(graph.entities[known], graph.entities[known])
        ends = (label, "?") if side else ("?", label)
        text = f"({ends[0]}, {graph.relations[relation]}, {ends[1]})"
        for kind, entities in zip(("original", "added"), lists, strict=True):
            shown = [graph.entities[entity] for entity in entities[:5]]
            due += [(text, kind, names.get(one, one), len(entities)) for one in shown]
    assert completion.example_table(most, names).rows == due
