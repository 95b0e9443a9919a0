"""Slices: every row has the values of its instances alone, and senseless slices are refused."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_cases import N_ENTITIES, N_RELATIONS, category, graphs, listed, percentile

import kgtrec
from kgtrec import Result, UsageError

SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}
METRICS = {"mr": lambda r: r, "mrr": lambda r: 1 / r, "hits@3": lambda r: float(r <= 3)}
LABELS = ("plain", "odd one", "rare")


def evaluated(graph: kgtrec.Graph, sides: str = "both") -> Result:
    questions = graph.questions("test", sides)
    scores = np.random.default_rng(1).integers(0, 5, (len(questions), graph.n_entities))
    return kgtrec.evaluate(scores.astype(np.float32), questions, progress=False)


def groups_of(graph: kgtrec.Graph, result: Result, labels: list[str]) -> dict[str, list[str]]:
    """Dimension -> the group of each instance, computed one by one."""
    ranks, train = result.ranks, listed(graph, "train")
    popularity = [sum((e == h) + (e == t) for h, _, t in listed(graph)) for e in range(N_ENTITIES)]
    cuts = [percentile(popularity, percent) for percent in (25, 50, 75)]
    often = [sum(q == r for _, q, _ in listed(graph)) for r in range(N_RELATIONS)]
    rare = [percentile(often, percent) for percent in (25, 50, 75)]
    heads, tails = {(h, r) for h, r, _ in train}, {(t, r) for _, r, t in train}
    links = {
        (True, True): "both",
        (True, False): "given only",
        (False, True): "asked only",
        (False, False): "neither",
    }
    half = []
    for side, *ends, r in zip(ranks.side, ranks.given, ranks.answer, ranks.relation, strict=True):
        given, asked = ((tails, heads), (heads, tails))[side]
        half.append(links[(ends[0], r) in given, (ends[1], r) in asked])
    kinds = [
        category(sorted({(h, t) for h, q, t in train if q == r}), 1.5) for r in range(N_RELATIONS)
    ]
    return {
        "relation": [str(r) for r in ranks.relation.tolist()],
        "category": [kinds[r] for r in ranks.relation.tolist()],
        "quartile": [
            f"Q{1 + sum(popularity[e] > cut for cut in cuts)}" for e in ranks.answer.tolist()
        ],
        "given-quartile": [
            f"Q{1 + sum(popularity[e] > cut for cut in cuts)}" for e in ranks.given.tolist()
        ],
        "relation-quartile": [
            f"Q{1 + sum(often[r] > cut for cut in rare)}" for r in ranks.relation.tolist()
        ],
        "mix": mix_of(graph, ranks),
        "frequency": frequency_of(train, ranks.answer.tolist()),
        "answers": answers_of(graph, ranks),
        "half-links": half,
        "label": [labels[row] for row in ranks.triple.tolist()],
    }


def mix_of(graph: kgtrec.Graph, ranks: kgtrec.Ranks) -> list[str]:
    """Whether all, none or some of each triple's parts reach the 90th percentile of counts."""
    every, test = listed(graph), listed(graph, "test")
    entity = [sum((e == h) + (e == t) for h, _, t in every) for e in range(N_ENTITIES)]
    relation = [sum(q == r for _, q, _ in every) for r in range(N_RELATIONS)]
    least = percentile(entity, 90), percentile(relation, 90)
    names = {0: "all unpopular", 1: "mixed", 2: "mixed", 3: "all popular"}
    return [
        names[(entity[h] >= least[0]) + (relation[r] >= least[1]) + (entity[t] >= least[0])]
        for h, r, t in (test[row] for row in ranks.triple.tolist())
    ]


def frequency_of(train: list[tuple[int, int, int]], answers: list[int]) -> list[str]:
    counts = [sum((a == h) + (a == t) for h, _, t in train) for a in answers]
    return [
        "0" if n == 0 else "1" if n == 1 else "2-4" if n < 5 else "5-9" if n < 10 else "10-19"
        for n in counts
    ]


def answers_of(graph: kgtrec.Graph, ranks: kgtrec.Ranks) -> list[str]:
    """How many distinct test triples have the given entity and relation of each instance."""
    test = listed(graph, "test")
    names = {1: "1", 2: "2-4", 3: "2-4", 4: "2-4"}
    counts = [
        len({(h, r, t) for h, r, t in test if (h, r, t)[2 - 2 * side] == given and r == relation})
        for side, given, relation in zip(ranks.side, ranks.given, ranks.relation, strict=True)
    ]
    return [names.get(n, "5-9") for n in counts]


@given(graphs(), st.data())
def test_rows_are_what_their_instances_give(graph: kgtrec.Graph, data: st.DataObject) -> None:
    sides = data.draw(st.sampled_from(["both", "both", "head"]))
    names = data.draw(
        st.lists(
            st.sampled_from(
                [
                    "relation",
                    "category",
                    "quartile",
                    "given-quartile",
                    "relation-quartile",
                    "mix",
                    "frequency",
                    "answers",
                    "half-links",
                    "label",
                ]
            ),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    result = evaluated(graph, sides)
    ranks = result.ranks
    size = len(graph.splits["test"])
    labels = data.draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))
    own = groups_of(graph, result, labels)
    by_side = names == ["relation"] or data.draw(st.booleans())
    by = names + ["side"] * by_side
    keys = [f"{result.sides[-1]}.realistic.micro.{name}" for name in METRICS]
    table = result.slice(",".join(by), keys, graph=graph, labels=labels)
    rank = dict(enumerate(ranks.rank().tolist()))
    seen = set()
    for row in table.rows:
        named = dict(zip(by, row, strict=False))
        codes = SIDES[named["side"]] if by_side else SIDES["both"]
        members = [
            i
            for i in rank
            if ranks.side[i] in codes and all(own[name][i] == named[name] for name in names)
        ]
        assert members
        assert row[-4] == len(members)
        assert row[-5] == len({ranks.question[i] for i in members})
        for value, f in zip(row[-3:], METRICS.values(), strict=True):
            assert value == pytest.approx(math.fsum(f(rank[i]) for i in members) / len(members))
        seen.add(tuple(row[: len(by)]))
    assert len(seen) == len(table.rows)  # no group twice
    groups = set(zip(*(own[name] for name in names), strict=True))
    assert {row[: len(names)] for row in seen} == groups  # none is missing


def small(**labelled: list[str]) -> kgtrec.Graph:
    """Relation 0 is 1-N and relation 1 is 1-1; entity 0 is the most popular."""
    return kgtrec.Graph.from_arrays(
        train=[[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 1, 5]],
        test=[[0, 0, 4], [0, 0, 5], [1, 1, 2], [2, 1, 3]],
        **labelled,
    )


def test_classes_and_thresholds_can_be_chosen() -> None:
    graph = small()
    result = evaluated(graph)

    def groups(by: str, **options: object) -> list[tuple[str, int]]:
        return [
            (str(row[0]), row[2]) for row in result.slice(by, ["mrr"], graph=graph, **options).rows
        ]

    # Train counts of the entities are 3, 1, 1, 1, 1, 1; answers are 0 and 4, 0 and 5, 1 and 2, ...
    assert groups("frequency", edges=[0, 2, 3]) == [("0-1", 6), ("3+", 2)]
    assert groups("frequency", edges=[0]) == [("0+", 8)]
    # (0, 0, ?) has two answers, the other six questions one each.
    assert groups("answers", edges=[1, 2]) == [("1", 6), ("2+", 2)]
    assert groups("answers", edges=[0, 3]) == [("1-2", 8)]
    assert groups("mix", percentile=0) == [("all popular", 8)]
    # Relation 0 links its one subject to all its objects, but that is one row of a product.
    assert groups("redundancy") == [("none", 8)]


def test_redundant_relations_of_known_triples() -> None:
    """Five by four pairs; the same turned around; a copy with one pair more; one of all pairs."""
    pairs = [(i, 10 + i) for i in range(12)]
    train = [(h, 0, t) for h, t in pairs] + [(t, 1, h) for h, t in pairs]
    train += [(h, 2, t + 20) for h, t in pairs] + [(h, 3, t + 20) for h, t in [*pairs, (0, 11)]]
    train += [(a, 4, 50 + b) for a in range(4) for b in range(3)]
    train += [(h, 5, t + 60) for h, t in pairs]
    test = [(0, r, 1) for r in range(6)]
    graph = kgtrec.Graph.from_arrays(train=train, test=test)
    result = evaluated(graph)
    due = {"near-reverse": {0, 1}, "near-duplicate": {2, 3}, "Cartesian product": {4}, "none": {5}}
    for enough, names in ((0.8, due), (1.0, {"near-reverse": {0, 1}, "none": {2, 3, 4, 5}})):
        rows = result.slice("redundancy", ["mrr"], graph=graph, enough=enough).rows
        assert {row[0]: row[2] for row in rows} == {name: 2 * len(r) for name, r in names.items()}
        assert [row[0] for row in rows] == list(names)


def test_measures_of_whole_questions() -> None:
    graph = small()
    result = evaluated(graph)
    ranks = result.ranks
    keys = ["both.macro.mrr", "both.macro.map_cut_20", "both.stratified.mrr(0,0.5)"]
    table = result.slice("category", keys, graph=graph).to_dict()
    values = result.per_question("map_cut_20")
    for name, relation in (("1-N", 0), ("1-1", 1)):
        part = ranks.subset(ranks.relation == relation)
        alone = Result(part)
        questions = np.unique(part.question)
        assert table[name]["both.realistic.macro.mrr"] == alone["both.macro.mrr"]
        assert table[name]["both.macro.map_cut_20"] == pytest.approx(values[questions].mean())
        assert table[name]["both.stratified.mrr(0,0.5)"] == alone[keys[2]]


def test_a_group_without_a_side() -> None:
    graph = kgtrec.Graph.from_arrays(
        train=[[0, 0, 2], [0, 0, 3], [0, 0, 4], [0, 0, 5]], test=[[0, 0, 6]]
    )
    result = evaluated(graph)  # the head is the most popular entity, the tail is not
    keys = ["both.micro.mrr", "head.micro.mrr", "tail.micro.mrr"]
    table = result.slice("quartile", keys, graph=graph).to_dict()
    top = table.pop("Q4")
    (low,) = table.values()
    assert top["both.realistic.micro.mrr"] == result["head.micro.mrr"]
    assert math.isnan(top["tail.realistic.micro.mrr"])
    assert low["both.realistic.micro.mrr"] == result["tail.micro.mrr"]
    assert math.isnan(low["head.realistic.micro.mrr"])
    by_side = result.slice("quartile,side", graph=graph).to_dict()
    assert set(by_side["Q4"]) == {"head", "both"}


ENTITIES = ["zero", "one", "two", "caf\udce9", "fo ur", "five"]


def test_questions_for_the_relation_are_parted_by_it() -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [0, 1, 1], [0, 2, 1], [2, 1, 3]])
    questions = graph.questions(sides="relation", filter="raw")
    result = kgtrec.evaluate(np.array([[3, 2, 1], [1, 3, 2]], np.float32), questions)
    keys = ["relation.question.mrr", "relation.micro.mrr"]
    # The first question has an answer in every slice, and counts fully in each.
    for by in ("relation", "relation,side"):
        values = {row[0]: row[-2:] for row in result.slice(by, keys).rows}
        assert values == {"0": (1, 1), "1": (0.75, 0.75), "2": (1 / 3, 1 / 3)}
    for key in ("relation.macro.mrr", "relation.macro.map_cut_20"):
        for by in ("relation", "relation,side"):
            with pytest.raises(UsageError, match="1 questions"):
                result.slice(by, [key])
    single = result.ranks.subset(result.ranks.question == 1)
    assert kgtrec.Result(single).slice("relation", ["relation.macro.mrr"]).rows == [("1", 1, 1.0)]


@pytest.fixture
def named() -> Result:
    return evaluated(small(entities=ENTITIES, relations=["has", "is"]))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def test_a_file_of_labels(named: Result, tmp_path: Path) -> None:
    lines = [
        "two\tis\tcaf\udce9\tb ",
        "zero\thas\tfo ur\ta",
        "zero\thas\tfo ur\ta",
        "zero\thas\tnever heard of\tx",
    ]
    due = [("a", 2), ("b", 2), ("(no label)", 4)]
    path, packed = tmp_path / "labels.tsv", tmp_path / "labels.tsv.gz"
    for text in ("\n".join(lines), "\ufeff" + "\r\n".join(lines) + "\r\n\r\n"):
        write(path, text)
        packed.write_bytes(gzip.compress(path.read_bytes()))
        for name in (path, str(path), packed):
            table = named.slice("label", labels=name)
            assert [(row[0], row[2]) for row in table.rows] == due
    # Saved ranks have the labels of the entities in use.
    named.ranks.save(tmp_path / "r.parquet")
    again = Result(kgtrec.Ranks.load(tmp_path / "r.parquet")).slice("label", labels=path)
    assert again.rows == table.rows
