"""kgtrec.rank against the definitions: every column, every run, on random graphs and scores."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import examples
from question_cases import N, R, assert_same, some_scores
from strategies import (
    DTYPES,
    LAYOUTS,
    GraphCase,
    RankCase,
    graph_cases,
    laid_out,
    rank_cases,
)

import kgtrec
from kgtrec.errors import InputError, UsageError


def graph_case(**changes) -> GraphCase:
    """Three entities, one test triple and its duplicate."""
    plain = GraphCase(
        n_entities=3,
        n_relations=1,
        splits={"test": [(0, 0, 1), (0, 0, 1)]},
        labels=None,
        evaluated="test",
        sides="both",
        filter_splits=None,
        extra_known=(),
    )
    return replace(plain, **changes)


def rank_case(graph: GraphCase, scores, **changes) -> RankCase:
    """Rank with default settings, unless stated otherwise."""
    plain = RankCase(graph, False, np.array(scores, np.float32), "contiguous", True, "error", 5)
    return replace(plain, **changes)


# -- Every way to rank one case ------------------------------------------------------------------


def in_one_pass(case: RankCase, questions: kgtrec.Questions, _: Any) -> Any:
    return kgtrec.rank(case.source(), questions, **case.options())


def in_chunks(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """Two rankings in one pass over chunks, with any number of threads."""
    chunks = [case.source()[low:high] for low, high in spans(data, len(case.scores))]
    options = case.options() | {"threads": data.draw(st.integers(1, 4))}
    several = kgtrec.rank(iter(chunks), {"one": questions, "other": questions}, **options)
    return several[data.draw(st.sampled_from(list(several)))]


def in_batches(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    ranker, scores = kgtrec.Ranker(questions, **case.options()), case.source()
    for batch in ranker.batches(data.draw(st.integers(1, 9))):
        ranker.update(batch, scores[batch.start : batch.stop])
    return ranker.finish()


def in_columns_of_its_own(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    order = data.draw(st.permutations(range(case.graph.n_entities)))
    theirs = laid_out(np.asarray(case.scores)[:, order], case.layout)
    return kgtrec.rank(theirs, questions, columns=order, **case.options())


def in_any_order(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """Rows as a distributed sampler gives them: shuffled, padded with repeats, sent or saved."""
    scores, n_rankers = case.source(), data.draw(st.integers(1, 3))
    order = np.array(data.draw(st.permutations(range(len(scores)))))
    padded, size = np.append(order, order[: -len(order) % n_rankers]), data.draw(st.integers(1, 9))
    rankers = []
    for number in range(n_rankers):
        rankers.append(kgtrec.Ranker(questions, duplicates="ignore", **case.options()))
        mine = padded[number::n_rankers]
        for start in range(0, len(mine), size):
            some = mine[start : start + size]
            rankers[-1].update(some, scores[some])
    for other in rankers[1:]:
        if not other.n_scored:
            continue
        how = data.draw(st.sampled_from(["ranker", "sent", "saved"]))
        if how == "saved":
            with tempfile.TemporaryDirectory() as folder:
                other.save(f"{folder}/rows")
                rankers[0].merge(f"{folder}/rows")
        else:
            rankers[0].merge(other if how == "ranker" else other.partial())
    return rankers[0].finish()


def in_ranges(case: RankCase, questions: kgtrec.Questions, data: Any) -> Any:
    """Range by range of the entities, in any order; one row per question."""
    if case.per_instance:
        return in_one_pass(case, questions, data)
    options, scores = case.options(), case.source()
    ranges = data.draw(st.permutations(spans(data, case.graph.n_entities)))
    answers = kgtrec.AnswerScores(questions, higher_is_better=case.higher_is_better)
    for low, high in ranges:
        one = kgtrec.AnswerScores(questions, higher_is_better=case.higher_is_better)
        one.fill(scores[:, low:high], low)
        answers.merge(one)
    own = {"run_depth": case.depth, "nan": options["nan"]}
    parts = [kgtrec.rank_range(scores[:, low:high], answers, low, **own) for low, high in ranges]
    return kgtrec.merge_ranges(parts, answers)


def spans(data: Any, n: int) -> list[tuple[int, int]]:
    """Consecutive ranges of n things."""
    cuts = data.draw(st.sets(st.integers(1, n - 1), max_size=5)) if n > 1 else set()
    return list(pairwise([0, *sorted(cuts), n]))


WAYS: dict[str, Callable[..., Any]] = {
    "chunks": in_chunks,
    "batches": in_batches,
    "columns": in_columns_of_its_own,
    "any order": in_any_order,
    "ranges": in_ranges,
}


def check(case: RankCase, rank: Callable[..., Any] = in_one_pass, data: Any = None) -> None:
    """The ranking agrees with the oracle on a case, errors included."""
    questions = case.graph.questions()
    try:
        due = case.outcome()
    except oracle.NanScore:
        with pytest.raises(InputError, match=r"(?i)nan") as caught:
            rank(case, questions, data)
        assert any(name in str(caught.value) for name in nan_questions(case))
        return
    ranks, run = rank(case, questions, data)
    assert oracle.rank_differences(ranks, due) == []
    assert oracle.run_differences(run, due) == []


def nan_questions(case: RankCase) -> set[str]:
    """Names of the questions that have a NaN among their candidates."""
    names = set()
    questions, instances = case.graph.oracle_questions()
    for instance in instances:
        question = questions[instance.question]
        row = case.scores[instance.row if case.per_instance else instance.question]
        among = oracle.macro_candidates(question, case.graph.n_entities)
        if np.isnan(row[sorted(among)]).any():
            names.add(question.name)
    return names


@pytest.mark.parametrize("way", WAYS)
@given(case=rank_cases(), data=st.data())
def test_every_way_to_rank_gives_what_the_oracle_gives(way: str, case: RankCase, data: Any) -> None:
    check(case, WAYS[way], data)


@given(rank_cases())
@examples(2)
@example(rank_case(graph_case(n_entities=2), [[0, 0], [0, 0]]))
@example(rank_case(graph_case(splits={"test": [(0, 0, 0)]}, n_entities=1), [[7], [7]]))
@example(rank_case(graph_case(), [[0, 1, np.nan], [0, 1, 2]]))
@example(rank_case(graph_case(), [[0, 1, np.nan], [0, np.nan, 2]], nan="worst"))
def test_ranks_and_runs_are_those_of_the_oracle(case):
    check(case)


@given(graph_cases())
@examples(2)
def test_questions_are_those_of_the_oracle(case):
    due, instances = case.oracle_questions()
    questions = case.questions()
    assert list(questions.ids) == [q.name for q in due]
    assert questions.side.tolist() == [q.side for q in due]
    assert questions.entity.tolist() == [q.entity for q in due]
    assert questions.relation.tolist() == [q.relation for q in due]
    for number, question in enumerate(due):
        assert questions.answers[number].tolist() == list(question.answers)
        assert questions.known[number].tolist() == sorted(question.known)
        assert questions.removed[number].tolist() == sorted(question.removed)
    assert questions.instance_question.tolist() == [i.question for i in instances]
    assert questions.instance_triple.tolist() == [i.triple for i in instances]
    rows = sorted(range(len(instances)), key=lambda number: instances[number].row)
    assert questions.triple_rows.tolist() == rows


@given(graph_cases())
def test_docnos_are_those_of_the_oracle(case):
    labels = case.questions().graph.entities
    assert list(labels) == list(case.entity_labels())
    due = case.docnos()
    written = [docno.encode("utf-8", "surrogateescape") for docno in labels.docnos]
    assert written == due
    places = {docno: place for place, docno in enumerate(sorted(due))}
    order = labels.trec_order
    positions = list(range(len(due))) if order is None else order.tolist()
    assert positions == [places[docno] for docno in due]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("per_instance", [False, True], ids=["questions", "instances"])
def test_every_memory_layout(layout, dtype, per_instance):
    graph = graph_case(
        n_entities=37,
        splits={"train": [(0, 0, 5), (3, 0, 1)], "test": [(0, 0, 1), (0, 0, 2), (9, 0, 1)]},
    )
    n_rows = len(graph.oracle_questions()[1 if per_instance else 0])
    scores = np.random.default_rng(1).integers(0, 4, (n_rows, 37)).astype(dtype)
    check(rank_case(graph, scores, layout=layout, per_instance=per_instance, depth=9))


@pytest.mark.parametrize("first", [[np.nan, 0], [0, np.nan], [np.nan, np.nan], [0, 1]], ids=str)
@pytest.mark.parametrize("own", [[np.nan, 0], [0, np.nan], [np.nan, np.nan], [0, 1]], ids=str)
@pytest.mark.parametrize("nan", ["error", "worst"])
def test_nan_in_the_first_or_in_the_own_row(nan, own, first):
    """Micro counts use only their own row, macro counts and the run only the first row."""
    graph = graph_case(n_entities=2, splits={"test": [(0, 0, 0), (1, 0, 0)]}, sides="head")
    case = rank_case(graph, [first, own], per_instance=True, nan=nan)
    check(case)
    if nan == "worst":  # the run and the ranks agree on answers without a score
        kgtrec.evaluate(case.source(), graph.questions(), rows="instances", nan="worst")


def test_a_nan_error_names_question_and_entity():
    graph = graph_case(labels=("Oslo", "Rome", "Kyiv"))
    scores = np.array([[0, 1, 2], [0, 1, np.nan]], np.float32)
    with pytest.raises(InputError, match="tail0") as caught:
        kgtrec.rank(scores, graph.questions())
    assert "Kyiv" in str(caught.value)


def test_nan_payload_and_sign_do_not_matter():
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], np.uint32)
    for value in bits.view(np.float32):
        scores = np.array([[0, 1, 2], [0, 1, 2]], np.float32)
        scores[1, 1] = value
        check(rank_case(graph_case(), scores, nan="worst"))
        check(rank_case(graph_case(), scores))


@pytest.mark.parametrize("sides", ["head", "tail", "both"])
def test_a_dictionary_of_sides_is_one_array(sides):
    graph = graph_case(splits={"test": [(0, 0, 1), (0, 0, 2), (2, 0, 1)]}, sides=sides)
    names = ["head", "tail"] if sides == "both" else [sides]
    scores = np.random.default_rng(3).random((3 * len(names), 3))
    case = rank_case(graph, scores, per_instance=True)
    parts = dict(zip(names, np.split(case.scores, len(names)), strict=True))
    ranks, run = kgtrec.rank(dict(sorted(parts.items())[::-1]), graph.questions(), **case.options())
    assert oracle.rank_differences(ranks, case.outcome()) == []
    assert oracle.run_differences(run, case.outcome()) == []


@pytest.mark.parametrize(
    ("rows", "sides"),
    [((2, 4), "both"), ((4, 2), "both"), ((6, 0), "both"), ((0, 6), "both"), ((0, 3), "head")],
    ids=str,
)
def test_a_dictionary_with_the_rows_of_another_side(rows, sides):
    """The total of six rows is right, but rows of one side would count for the other."""
    triples = [(0, 0, 1), (0, 0, 2), (2, 0, 1)]
    questions = graph_case(splits={"test": triples}, sides=sides).questions()
    parts = {side: np.zeros((n, 3)) for side, n in zip(("head", "tail"), rows, strict=True)}
    with pytest.raises(InputError, match=r"head|tail"):
        kgtrec.rank(parts, questions, rows="instances")


def test_a_split_without_triples_asks_nothing():
    empty = np.zeros((0, 3), np.int64)
    graph = kgtrec.Graph.from_arrays(train=np.array([(0, 0, 1)]), test=empty)
    with pytest.raises(kgtrec.errors.UsageError, match="test"):
        graph.questions()


def test_integer_columns_are_int64():
    ranks, _ = kgtrec.rank(np.zeros((2, 3), np.float32), graph_case().questions())
    for name in ("triple", "question", "side", "relation", "given", "answer"):
        assert getattr(ranks, name).dtype == np.int64, name
    for name in oracle.COUNT_COLUMNS:
        assert getattr(ranks, name).dtype == np.int64, name
        assert getattr(ranks, "macro_" + name).dtype == np.int64, name
    assert ranks.rank("realistic").dtype == np.float64
    assert ranks.answer_nan.dtype == bool


def test_scores_handed_over_are_left_alone():
    graph = graph_case(splits={"train": [(0, 0, 2)], "test": [(0, 0, 1)]})
    scores = np.array([[0, 1, 2], [0, 1, np.nan]], np.float32)
    before = scores.tobytes()
    kgtrec.rank(scores, graph.questions(), run_depth=2, higher_is_better=False)
    assert scores.tobytes() == before


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        *(((2, n), "f4", "3") for n in (2, 4)),
        *(((n, 3), "f4", "2") for n in (0, 1, 3)),
        *((shape, "f4", "two-dim") for shape in ((6,), (2, 3, 1), ())),
        *(((2, 3), dtype, "dtype") for dtype in ("U1", object, complex, bool)),
    ],
    ids=str,
)
def test_wrong_arrays_are_refused(shape, dtype, expected):
    with pytest.raises(InputError, match=expected):
        kgtrec.rank(np.zeros(shape, dtype), graph_case().questions())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("depth", [0, 5])
def test_columns_of_packed_records(dtype: type, depth: int):
    """An entity's scores are adjacent; the next entity's start where no score can be aligned."""
    rng = np.random.default_rng(3)
    splits = {name: rng.integers(0, (50, 2, 50), (20, 3)) for name in ("train", "test")}
    questions = kgtrec.Graph.from_arrays(**splits, n_entities=50).questions()
    scores = rng.integers(0, 9, (len(questions), 50)).astype(dtype)
    records = np.zeros(50, [("scores", dtype, len(questions)), ("flag", np.uint8)])
    records["scores"] = scores.T
    due = kgtrec.rank(scores, questions, depth)
    assert_same(kgtrec.rank(records["scores"].T, questions, depth), due)


# -- Metrics -----------------------------------------------------------------------------------

CUTOFFS = (1, 3, 10)


def metrics_of(ranks: list[Fraction], candidates: list[int] | None) -> dict[str, float]:
    """Metrics of exact ranks; those adjusted for chance need candidates."""
    values = {f"hits@{k}": float(oracle.hits(ranks, k)) for k in CUTOFFS}
    values |= {"mr": float(oracle.mean_rank(ranks)), "mrr": float(oracle.mrr(ranks))}
    if candidates is not None:
        values |= {"gmr": oracle.gmr(ranks), "igmr": 1 / oracle.gmr(ranks)}
        values["amr"] = float(oracle.amr(ranks, candidates))
        if any(c > 1 for c in candidates):
            values["amri"] = float(oracle.amri(ranks, candidates))
    return values


def due_metrics(case: RankCase, due: oracle.Outcome, side: str) -> dict[str, float]:
    """Every key that the oracle can answer for on a side."""
    rows = oracle.of_side(due, side)
    questions = oracle.per_question(rows)
    candidates = [micro.candidates for _, micro, _ in rows]
    keys = {}
    for kind in oracle.RANK_KINDS:
        ranks = [oracle.rank_of(kind, micro) for _, micro, _ in rows]
        first = [oracle.first_rank(kind, answers) for answers in questions]
        for name, value in metrics_of(ranks, candidates).items():
            keys[f"{side}.{kind}.micro.{name}"] = value
        for name, value in metrics_of(first, None).items():
            keys[f"{side}.{kind}.macro.{name}"] = value
    functions = {"mr": lambda rank: rank, "mrr": oracle.reciprocal}
    functions |= {f"hits@{k}": oracle.hit(k) for k in CUTOFFS}
    for name, f in functions.items():
        value = oracle.mean(oracle.expected(f, micro) for _, micro, _ in rows)
        keys[f"{side}.expected.micro.{name}"] = float(value)
        value = oracle.mean(oracle.expected_first(f, answers) for answers in questions)
        keys[f"{side}.expected.macro.{name}"] = float(value)
    numbers = sorted({instance.question for instance, _, _ in rows})
    runs = [(due.run[q], due.questions[q].answers) for q in numbers]
    for k in (5, 20):
        value = oracle.mean(oracle.average_precision(*run, k) for run in runs)
        keys[f"{side}.macro.map_cut_{k}"] = float(value)
        value = math.fsum(oracle.ndcg(*run, k) for run in runs) / len(runs)
        keys[f"{side}.macro.ndcg_cut_{k}"] = value
    if side == "both":
        for betas in ((0, 0), (0.5, 0.5), (-1, 1), (0, -1)):
            values = [1 / oracle.rank_of("realistic", c) for c in due.micro]
            value = oracle.stratified(case.graph.splits, due, values, *betas, case.graph.evaluated)
            keys[f"both.stratified.mrr({betas[0]},{betas[1]})"] = value
    return keys


@given(rank_cases())
@examples(0.5)
def test_metrics_are_those_of_the_oracle(case):
    case = replace(case, depth=20, nan="error", per_instance=False)
    n_questions = len(case.graph.oracle_questions()[0])
    case = replace(case, scores=np.nan_to_num(case.scores[:n_questions], nan=0.5))
    due = case.outcome()
    result = kgtrec.evaluate(
        case.source(), case.graph.questions(), higher_is_better=case.higher_is_better
    )
    sides = ("head", "tail", "both") if case.graph.sides == "both" else (case.graph.sides,)
    for side in sides:
        for key, value in due_metrics(case, due, side).items():
            assert result[key] == pytest.approx(value, rel=1e-12, abs=1e-12), key


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
