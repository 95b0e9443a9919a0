"""Questions against a construction from sets and dicts, written straight from the definitions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgtrec import rank_lists
from kgtrec._internal.csr import Csr, contains
from kgtrec.errors import FilterWarning, InputError, UsageError
from kgtrec.questions.api import Graph, Questions, read_graph

Triple = tuple[int, int, int]
SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}


def asks(triple: Triple, side: int) -> tuple[tuple[int, int, int], int]:
    """Question (side, given, relation) of a triple, and the answer."""
    head, relation, tail = triple
    return ((0, tail, relation), head) if side == 0 else ((1, head, relation), tail)


def answers_to(question: tuple[int, int, int], triples: Iterable[Triple]) -> set[int]:
    side = question[0]
    pairs = (asks(triple, side) for triple in triples)
    return {answer for own, answer in pairs if own == question}


def check(questions: Questions, splits: dict, n_entities: int, extra: list[Triple]) -> None:
    """Compare every field with one computed from sets."""
    split, filters = questions.split, questions.filter_splits
    evaluated = list(dict.fromkeys(splits[split]))
    sides = SIDES[questions.sides]
    expected = list(dict.fromkeys(asks(t, side)[0] for side in sides for t in evaluated))
    columns = (questions.side, questions.entity, questions.relation)
    assert [tuple(map(int, q)) for q in zip(*columns, strict=True)] == expected
    assert len(questions) == len(expected)
    known_triples = [t for name in filters for t in splits[name]] + extra
    other_triples = [t for name in filters if name != split for t in splits[name]] + extra
    instances = []
    for number, question in enumerate(expected):
        answers = answers_to(question, evaluated)
        known = answers_to(question, known_triples)
        removed = answers_to(question, other_triples) - answers
        assert questions.answers[number].tolist() == sorted(answers)
        assert questions.known[number].tolist() == sorted(known)
        assert questions.removed[number].tolist() == sorted(removed)
        everything = set(range(n_entities))
        for answer in sorted(answers):
            micro = (everything - known) | {answer}
            instances.append((number, answer, len(micro), len(everything - removed)))
    fields = (
        questions.instance_question,
        questions.answers.ids,
        questions.candidates,
        questions.macro_candidates,
    )
    assert [tuple(map(int, row)) for row in zip(*fields, strict=True)] == instances
    assert questions.n_instances == len(instances) == len(evaluated) * len(sides)
    for i, (number, answer, _, _) in enumerate(instances):
        triple = evaluated[questions.instance_triple[i]]
        assert asks(triple, expected[number][0]) == (expected[number], answer)
    every_row = [asks(t, side) for side in sides for t in evaluated]
    for (question, answer), i in zip(every_row, questions.triple_rows, strict=True):
        assert expected[instances[i][0]] == question
        assert instances[i][1] == answer


entity = st.integers(0, 5)
triple = st.tuples(entity, st.integers(0, 2), entity)
many = st.lists(triple, min_size=1, max_size=20)
SPLITS = ["train", "valid", "test"]


@given(
    data=st.data(),
    splits=st.fixed_dictionaries({"test": many}, optional={"train": many, "valid": many}),
)
def test_against_sets(data, splits: dict) -> None:
    have = [name for name in SPLITS if name in splits]
    split = data.draw(st.sampled_from(have))
    sides = data.draw(st.sampled_from(sorted(SIDES)))
    filters = data.draw(st.none() | st.lists(st.sampled_from(have)))
    extra = data.draw(st.lists(triple, max_size=6))
    n_entities = data.draw(st.integers(6, 9))
    graph = Graph.from_arrays(**splits, n_entities=n_entities, n_relations=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FilterWarning)
        questions = graph.questions(split, sides, filters, extra or None)
    chosen = have if filters is None else [name for name in have if name in filters]
    assert questions.filter_splits == tuple(chosen)
    check(questions, splits, n_entities, extra)


def test_the_comparison_can_fail() -> None:
    splits = {"train": [(0, 0, 2)], "test": [(0, 0, 1), (2, 0, 1)]}
    questions = Graph.from_arrays(**splits).questions()
    check(questions, splits, 3, [])
    wrong = {"train": [(0, 0, 1)], "test": splits["test"]}
    with pytest.raises(AssertionError):
        check(questions, wrong, 3, [])
    questions.triple_rows[:2] = questions.triple_rows[1::-1].copy()
    with pytest.raises(AssertionError):
        check(questions, splits, 3, [])


def test_one_worked_example() -> None:
    graph = Graph.from_arrays(
        train=[(0, 0, 1), (0, 0, 2), (0, 0, 3)], test=[(0, 0, 4), (0, 0, 1)], n_entities=6
    )
    questions = graph.questions(sides="tail")
    assert questions.ids == ["tail0"]
    assert questions.answers[0].tolist() == [1, 4]
    assert questions.known[0].tolist() == [1, 2, 3, 4]
    assert questions.removed[0].tolist() == [2, 3]  # 1 is in train as well, but it is an answer
    assert questions.candidates.tolist() == [3, 3]
    assert questions.macro_candidates.tolist() == [4, 4]
    assert questions.instance_triple.tolist() == [1, 0]
    assert questions.triple_rows.tolist() == [1, 0]
    assert questions.answers.ids.dtype == np.int32
    for name in ("entity", "relation", "instance_question", "instance_triple", "triple_rows"):
        assert getattr(questions, name).dtype == np.int32
    assert (questions.side.dtype, questions.candidates.dtype) == (np.int64, np.int64)


def test_ids_whose_products_pass_31_bits() -> None:
    """Ids are int32, but keys of them are not. The same graph with small ids has equal results."""
    spread_entities, spread_relations = 19_993, 5_003
    small = np.random.default_rng(3).integers(0, (10, 4, 10), (60, 3))
    large = small * [spread_entities, spread_relations, spread_entities]
    sets = [
        Graph.from_arrays(rows[:30], None, rows[30:], n_entities, n_relations).questions(
            entities=np.arange(0, n_entities, step)[:9]
        )
        for rows, n_entities, n_relations, step in (
            (small, 10, 4, 1),
            (large, 10 * spread_entities, 4 * spread_relations, spread_entities),
        )
    ]
    few, many = sets
    assert (few.entity * spread_entities).tolist() == many.entity.tolist()
    assert (few.relation * spread_relations).tolist() == many.relation.tolist()
    assert (few.known.ids * spread_entities).tolist() == many.known.ids.tolist()
    for kind in ("questions", "instances"):
        assert [rows.tolist() for rows in few.rows_among(kind)[:1]] == [
            rows.tolist() for rows in many.rows_among(kind)[:1]
        ]
    lists = []
    for each in sets:
        columns = (each.side, each.entity, each.relation)
        records = [
            {"head" if side else "tail": str(e), "relation": str(r), "predictions": [str(e)]}
            for side, e, r in zip(*columns, strict=True)
        ]
        said = rank_lists(records, each).manifest["scores"]["predictions"]
        lists.append({key: value for key, value in said.items() if isinstance(value, int)})
    assert lists[0] == lists[1]


def test_evaluated_split_out_of_the_filter() -> None:
    graph = Graph.from_arrays(train=[(0, 0, 1)], test=[(0, 0, 1), (0, 0, 2)], n_entities=4)
    with pytest.warns(FilterWarning, match="leaves out 'test'") as caught:
        questions = graph.questions(sides="tail", filter_splits=["train"])
    assert caught[0].filename == __file__
    assert questions.known[0].tolist() == [1]
    assert questions.candidates.tolist() == [4, 3]
    assert questions.macro_candidates.tolist() == [4, 4]


def test_raw_ranking_keeps_every_candidate() -> None:
    graph = Graph.from_arrays(train=[(0, 0, 1)], test=[(0, 0, 2)])
    questions = graph.questions(filter_splits=())
    assert questions.filter_splits == ()
    assert questions.candidates.tolist() == questions.macro_candidates.tolist() == [3, 3]
    assert "raw" in repr(questions)
    with_extra = graph.questions(filter_splits=(), extra_known=[(0, 0, 1), (0, 0, 1)])
    assert with_extra.candidates.tolist() == [3, 2]
    assert with_extra.describe()["extra_known"] == 2


def test_a_split_may_be_named_alone() -> None:
    graph = Graph.from_arrays(test=[(0, 0, 1)])
    assert graph.questions(filter_splits="test").filter_splits == ("test",)


def test_one_entity() -> None:
    questions = Graph.from_arrays(test=[(0, 0, 0)]).questions()
    assert questions.n_entities == 1
    assert questions.ids == ["head0", "tail0"]
    assert questions.candidates.tolist() == questions.macro_candidates.tolist() == [1, 1]
    check(questions, {"test": [(0, 0, 0)]}, 1, [])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"split": "valid"}, UsageError, "no split 'valid'; choose one of: 'train', 'test'"),
        ({"split": "train"}, UsageError, "split 'train' has no triples"),
        ({"sides": "left"}, UsageError, "sides='left' is unknown; it must be 'head', 'tail', "),
        ({"filter_splits": ("train", "valid")}, UsageError, "no split 'valid'"),
        ({"extra_known": [(0, 0, 9)]}, InputError, r"extra_known, row 0, column 2 \(tail\)"),
        ({"extra_known": [(0.0, 0.0, 1.0)]}, InputError, "extra_known has dtype float64"),
    ],
)
def test_refusals(arguments: dict, error: type, message: str) -> None:
    graph = Graph.from_arrays(train=[], test=[(0, 0, 1)])
    with pytest.raises(error, match=message):
        graph.questions(**arguments)


def test_fingerprint_and_description() -> None:
    graph = Graph.from_arrays([(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2), (1, 0, 2)])
    base = graph.questions()
    assert graph.questions(filter_splits=["test", "train"]).fingerprint == base.fingerprint
    others = [
        graph.questions("train"),
        graph.questions(sides="head"),
        graph.questions(filter_splits=()),
        graph.questions(extra_known=[(0, 0, 0)]),
        Graph.from_arrays([(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2)], n_entities=4).questions(),
    ]
    assert len({q.fingerprint for q in [base, *others]}) == 1 + len(others)
    assert base.describe() == {
        "graph_name": None,
        "split": "test",
        "sides": "both",
        "filter_splits": ["train", "test"],
        "extra_known": 0,
        "restricted": None,
        "sampled": False,
        "outside": 0,
        "filter": "all",
        "filter_left_out": [],
        "n_questions": 3,
        "n_instances": 4,
        "n_entities": 3,
        "n_relations": 1,
        "triples": {"train": 1, "test": 2},
        "duplicates_dropped": {"train": 0, "test": 1},
        "graph_hash": graph.fingerprint,
        "questions_hash": base.fingerprint,
    }


def test_csr() -> None:
    csr = Csr(np.array([0, 2, 2, 3]), np.array([4, 5, 1], dtype=np.int32))
    assert len(csr) == 3
    assert [row.tolist() for row in csr] == [[4, 5], [], [1]]
    assert csr[-1].tolist() == [1]
    assert csr.lengths.tolist() == [2, 0, 1]
    with pytest.raises(IndexError):
        csr[3]


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)))
def test_contains(haystack: list[int], needles: list[int]) -> None:
    mask = contains(np.array(sorted(haystack), np.int64), np.array(needles, np.int64))
    assert mask.tolist() == [needle in haystack for needle in needles]


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "published"), [("fb15k-237", "FB-Test-O"), ("wn18rr", "WN18RR")]
)
def test_published_question_ids(shared_data: Path, folder: str, published: str) -> None:
    graph = read_graph(shared_data / folder)
    questions = graph.questions()
    columns = (
        questions.ids,
        graph.entities[questions.entity],
        graph.relations[questions.relation],
    )
    lines = "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))
    expected = shared_data / "kgc-sparsity" / "data" / published / "trec_queries.txt"
    assert lines.encode() == expected.read_bytes()
    assert questions.n_instances == 2 * len(graph.split("test"))
