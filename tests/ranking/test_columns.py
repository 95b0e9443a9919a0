"""Entity order: scores in a model's own numbering, declared once, give the ranks of id order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_cases import N, R, assert_same, some_scores

import kgtrec
from kgtrec.errors import InputError, UsageError

SEED = st.integers(0, 10**6)


def a_graph(rng) -> kgtrec.Graph:
    """Labels neither in id order nor plain numbers."""
    triples = {s: rng.integers(0, (N, R, N), (30, 3)) for s in ("train", "valid", "test")}
    labels = [f"e{number}" for number in rng.permutation(N)]
    return kgtrec.Graph.from_arrays(**triples, entities=labels, n_relations=R)


def forms(order: np.ndarray, graph: kgtrec.Graph) -> dict[str, object]:
    labels = [graph.entities[int(entity)] for entity in order]
    return {
        "ids": order.tolist(),
        "array": order.astype(np.int32),
        "labels": labels,
        "strings": np.array(labels),
        "mapping": dict(sorted((label, at) for at, label in enumerate(labels))),
    }


@given(seed=SEED, form=st.sampled_from(["ids", "array", "labels", "strings", "mapping"]),
       where=st.sampled_from(["questions", "ranker", "rank"]),
       restricted=st.booleans(), shuffled=st.booleans(),
       dtype=st.sampled_from([np.float16, np.float32, np.float64]))  # fmt: skip
def test_any_form_anywhere(seed, form, where, restricted, shuffled, dtype) -> None:
    rng = np.random.default_rng(seed)
    graph = a_graph(rng)
    order = rng.permutation(N)
    declared = forms(order, graph)[form]
    plain = graph.questions()
    questions = graph.questions(columns=declared) if where == "questions" else plain
    if restricted:
        some = np.flatnonzero(rng.random(N) < 0.7)
        plain, questions = (q.restrict(entities=some, outside="worst") for q in (plain, questions))
    scores = some_scores(rng, (len(plain), N)).astype(dtype)
    theirs = np.empty_like(scores)
    for column, entity in enumerate(order.tolist()):
        theirs[:, column] = scores[:, entity]
    due = kgtrec.rank(scores, plain, 5)
    more = {} if where == "questions" else {"columns": declared}
    if where == "rank":
        assert_same(kgtrec.rank(theirs, questions, 5, **more), due)
        return
    ranker = kgtrec.Ranker(questions, 5, **more)
    if shuffled:
        rows = rng.permutation(ranker.n_rows)
        ranker.update(rows, theirs[rows])
    else:
        for batch in ranker.batches(5):
            places = [order.tolist().index(entity) for entity in batch.entity.tolist()]
            assert batch.column.tolist() == places
            ranker.update(batch, theirs[batch.start : batch.stop])
    assert_same(ranker.finish(), due)
    if where == "questions":
        assert order[questions.column].tolist() == questions.entity.tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_factors_in_a_models_order(dtype) -> None:
    rng = np.random.default_rng(2)
    graph = a_graph(rng)
    order, plain = rng.permutation(N), graph.questions()
    wide = np.float64 if dtype == np.float64 else np.float32
    queries = rng.normal(size=(len(plain), 5)).astype(wide)
    table, bias = rng.normal(size=(N, 5)).astype(dtype), rng.normal(size=N).astype(wide)
    theirs = table[order], bias[order]  # row j belongs to entity order[j]
    for metric in ("dot", "l2", "l1"):
        due = kgtrec.rank(kgtrec.Factors(queries, table, bias, metric), plain, 5)
        model = kgtrec.Factors(queries, *theirs, metric)
        assert_same(kgtrec.rank(model, plain, 5, columns=forms(order, graph)["labels"]), due)
        assert_same(kgtrec.rank(model, graph.questions(columns=order), 5), due)
        own = kgtrec.Factors(queries, *theirs, metric, columns=order)
        assert own.entities.dtype == dtype
        assert_same(kgtrec.rank(own, plain, 5), due)


def test_evaluate_takes_columns() -> None:
    rng = np.random.default_rng(3)
    graph, order = a_graph(rng), rng.permutation(N)
    scores = some_scores(rng, (len(graph.questions()), N))
    one = kgtrec.evaluate(scores, graph.questions())
    other = kgtrec.evaluate(scores[:, order], graph.questions(), columns=order)
    assert one.to_dict() == other.to_dict()


def test_a_nan_is_named_by_its_entity() -> None:
    rng = np.random.default_rng(4)
    graph, order = a_graph(rng), rng.permutation(N)
    questions = graph.questions(columns=order)
    scores = some_scores(rng, (len(questions), N))
    answer = int(questions.answers[2][0])
    scores[2, order.tolist().index(answer)] = np.nan
    with pytest.raises(InputError, match=f"entity '{graph.entities[answer]}'"):
        kgtrec.rank(scores, questions)
    ranks, _ = kgtrec.rank(scores, questions, nan="worst")
    assert ranks.answer_nan.sum() == 1


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["b", "a"], "1 of 3 entities have no column: 'c'"),
        ([0, 1], "1 of 3 entities have no column: 'c'"),
        (["a", "b", "c", "a"], "columns 0 and 3 are both declared as 'a' \\(id 0\\)"),
        (["a", "b", "x"], "columns: 1 of 3 labels are unknown: 'x'"),
        ([0, 1, 3], "column 2 is declared as entity 3, which is not an id below 3"),
        ([0, -1, 2], "column 1 is declared as entity -1"),
        ([0.0, 1.0, 2.0], "dtype float64"),
        ("abc", "columns='abc' is not an order of entities"),
        (7, "columns=7 is not an order of entities"),
        ({"a": 0, "b": 1, "c": 1}, "but not to the columns 0 to 2"),
        ({"a": 0, "b": 1, "c": "2"}, "but not to the columns 0 to 2"),
        ({"a": 0, "b": 1, "x": 2}, "labels are unknown: 'x'"),
        ([], "columns has shape"),
    ],
)
def test_what_is_no_order(columns, said) -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [2, 0, 0]], entities=["a", "b", "c"])
    for call in (
        lambda: graph.questions(columns=columns),
        lambda: kgtrec.Ranker(graph.questions(), columns=columns),
        lambda: kgtrec.rank(np.zeros((4, 3)), graph.questions(), columns=columns),
    ):
        with pytest.raises(InputError, match=said):
            call()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([0, 1], "columns has shape \\(2,\\)"),
        ([0, 1, 1], "contains 1 twice but not 2"),
        ([0, 1, 3], "columns contains 3, which is not an id below 3"),
        (["a", "b", "c"], r"graph.entities.ids\(labels\)"),
        (np.array(["a", "b", "c"], dtype=object), r"graph.entities.ids\(labels\)"),
        ([0.0, 1.0, 2.0], "dtype float64"),
    ],
)
def test_what_is_no_order_of_factors(columns, said) -> None:
    with pytest.raises(InputError, match=said):
        kgtrec.Factors(np.zeros((4, 2)), np.zeros((3, 2)), columns=columns)


def test_declared_once_and_only_where_it_has_a_meaning(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    graph, order = a_graph(rng), rng.permutation(N)
    questions = graph.questions(columns=order)
    with pytest.raises(UsageError, match="already declare columns="):
        kgtrec.Ranker(questions, columns=order)
    with pytest.raises(UsageError, match="a range of entities needs columns in id order"):
        kgtrec.AnswerScores(questions)
    from kgtrec.cluster.question_store import save_questions

    with pytest.raises(UsageError, match="a ranking in parts needs columns in id order"):
        save_questions(questions, "questions", tmp_path)
    lists = [sorted({*questions.answers[q].tolist(), *range(9)}) for q in range(len(questions))]
    lists = [ids + [e for e in range(N) if e not in ids][: 15 - len(ids)] for ids in lists]
    with pytest.raises(UsageError, match="leave one of them out"):
        questions.restrict(candidates=lists, columns="candidates")
    narrow = graph.questions().restrict(candidates=lists, columns="candidates")
    with pytest.raises(UsageError, match="have only their candidates"):
        kgtrec.Ranker(narrow, columns=order)
