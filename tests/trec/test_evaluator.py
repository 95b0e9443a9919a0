"""`kgtrec.trec.Evaluator`: many runs by the same qrels, from dicts and from arrays."""

from __future__ import annotations

import math
import warnings
from threading import Event
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import trm
from hypothesis import given
from hypothesis import strategies as st
from kernel_paths import PATHS

from kgtrec import _core, trec
from kgtrec.errors import InputError, TieWarning
from kgtrec.trec.eval.score import on_threads

MEASURES = [
    "map",
    "map_cut.2,20",
    "ndcg",
    "ndcg_cut.3",
    "P.1,5",
    "recall.5",
    "recip_rank",
    "Rprec",
    "bpref",
    "success.1",
    "set_F",
    "iprec_at_recall.0.5",
    "num_rel_ret",
]

FORMS = ["map", "P.2", "recip_rank", "ndcg", "ndcg_cut.3", "success.1", "recall.2", "Rprec"]

QRELS = {"q2": {"a": 1, "b": 0, "c": 2}, "q10": {"x": 1}}

documents = st.sampled_from([str(i) for i in range(14)])

rankings = st.dictionaries(documents, st.integers(-3, 3).map(float), min_size=1)

judgements = st.dictionaries(documents, st.integers(-1, 3), min_size=1).filter(
    lambda judged: max(judged.values()) >= 0
)

queries = st.sampled_from(["q", "r", "s10", "s9"])


def close(ours: Any, theirs: Any) -> bool:
    return ours.keys() == theirs.keys() and all(
        math.isclose(ours[q][m], theirs[q][m], rel_tol=1e-12, abs_tol=1e-12)
        for q in ours
        for m in ours[q]
    )


def as_frame(run: dict[str, dict[str, float]]) -> pd.DataFrame:
    rows = [(query, d, score) for query, own in run.items() for d, score in own.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])


@given(
    qrels=st.dictionaries(queries, judgements, min_size=1),
    runs=st.lists(st.dictionaries(queries, rankings, min_size=1), min_size=1, max_size=3),
)
def test_every_run_has_the_values_of_pytrec_eval(qrels, runs) -> None:
    evaluator = trec.Evaluator(qrels, MEASURES, compat=9, ties="name")
    for run in runs:
        due = pytrec_eval.RelevanceEvaluator(qrels, {*MEASURES}).evaluate(run)
        if not due:
            with pytest.raises(InputError, match="share no query"):
                evaluator.evaluate(run)
            continue
        assert evaluator.evaluate(run) == due
        assert trec.evaluate(qrels, run, MEASURES, compat=9, ties="name") == due


@pytest.mark.filterwarnings("ignore:none of documents= is judged")
@given(qrels=st.dictionaries(queries, judgements, min_size=1), data=st.data())
def test_arrays_have_the_values_of_dicts(qrels, data) -> None:
    ties = data.draw(st.sampled_from(["name", "expected", "min", "max"]))
    evaluator = trec.Evaluator(qrels, FORMS, ties=ties)
    shape = (len(qrels), 14)
    scores = np.array(
        data.draw(
            st.lists(
                st.lists(
                    st.sampled_from([math.nan, -1.0, 0.0, 0.5, 7.0]), min_size=14, max_size=14
                ),
                min_size=shape[0],
                max_size=shape[0],
            )
        )
    )
    scores[:, 3] = 0.25  # no row is empty
    run = {
        query: {str(i): float(s) for i, s in enumerate(row) if s == s}
        for query, row in zip(qrels, scores, strict=True)
    }
    due = evaluator.evaluate(run)
    assert close(evaluator.evaluate_scores(scores), due)
    assert close(evaluator.evaluate_scores(scores.astype(np.float16)), due)
    order = np.array(data.draw(st.permutations(range(14))))
    assert close(evaluator.evaluate_scores(scores[:, order], order), due)
    each = np.array([np.random.default_rng(i).permutation(14) for i in range(shape[0])])
    assert close(evaluator.evaluate_scores(np.take_along_axis(scores, each, 1), each), due)
    hidden, filled = np.isnan(scores), np.nan_to_num(scores, nan=9.0)
    assert close(evaluator.evaluate_scores(filled, mask=hidden), due)
    assert close(evaluator.evaluate_scores(np.ma.array(filled, mask=hidden)), due)
    absent = np.where(hidden, -1, np.arange(14))
    assert close(evaluator.evaluate_scores(filled, absent), due)


@pytest.fixture
def by_every_path():
    yield map(_core.force_path, PATHS)
    _core.force_path(None)


def test_long_rows_have_the_values_of_dicts(by_every_path) -> None:
    draw = np.random.default_rng(5)
    scores = np.where(draw.random((2, 5_001)) < 0.1, np.nan, draw.integers(0, 900, (2, 5_001)))
    run = {q: {str(i): s for i, s in enumerate(scores[r]) if s == s} for r, q in enumerate("ab")}
    qrels = {q: {str(d): int(d) % 3 for d in draw.integers(0, 5_001, 30)} for q in run}
    evaluator = trec.Evaluator(qrels, MEASURES, ties="name")
    due = evaluator.evaluate(run)
    for _ in by_every_path:
        assert evaluator.evaluate_scores(scores) == due
        assert evaluator.evaluate_scores(scores.astype(np.float32)) == due


@given(qrels=st.dictionaries(queries, judgements, min_size=1), seed=st.integers(0, 99))
def test_names_of_a_vocabulary_decide_ties(qrels, seed) -> None:
    draw = np.random.default_rng(seed)
    names = [f"n{i:x}" for i in draw.permutation(14)]
    named = {q: {f"n{int(d):x}": r for d, r in judged.items()} for q, judged in qrels.items()}
    scores = draw.integers(0, 3, (len(qrels), 14))
    run = {
        q: dict(zip(names, map(float, row), strict=True))
        for q, row in zip(named, scores, strict=True)
    }
    evaluator = trec.Evaluator(named, MEASURES, documents=names, ties="name")
    assert evaluator.evaluate_scores(scores) == evaluator.evaluate(run)
    numbers = draw.permutation(14)
    assert evaluator.evaluate_scores(scores[:, numbers], numbers) == evaluator.evaluate(run)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
@pytest.mark.parametrize("options", [{}, {"judged_only": True}, {"most": 3}, {"level": 2}])
def test_what_the_core_lacks_has_the_same_values(options) -> None:
    measures = ["G", "rbp", "judged.2", "infAP"]
    if "judged_only" not in options:
        measures += ["kg_mrr", "map"]
    qrels = {"b": {"0": 1, "3": 2, "9": 0, "12": -1}, "a": {"1": 2, "2": 1}}
    scores = np.random.default_rng(1).normal(size=(2, 13))
    run = {
        q: {str(i): s for i, s in enumerate(row)}
        for q, row in zip(qrels, scores.tolist(), strict=True)
    }
    evaluator = trec.Evaluator(qrels, measures, **options)
    assert close(evaluator.evaluate_scores(scores), evaluator.evaluate(run))
    row = evaluator.evaluate_scores(scores, summary=True)
    assert row == pytest.approx(evaluator.evaluate(run, summary=True))


CONSTANT = {"q2": {"a": 1.0, "b": 1.0, "c": 1.0}, "q10": {"x": 1.0, "y": 0.5}}


def test_one_warning_per_call_says_how_many_and_by_how_much() -> None:
    with pytest.warns(TieWarning, match=r"1 of 2 queries .* recip_rank by up to 0\.5;") as seen:
        trec.evaluate(QRELS, CONSTANT, ["recip_rank"])
    assert len(seen) == 1
    assert seen[0].filename == __file__
    evaluator = trec.Evaluator({"q2": {"0": 1}}, ["recip_rank"])
    with pytest.warns(TieWarning, match=r"1 of 1 queries .* recip_rank by up to 0\.75;") as seen:
        evaluator.evaluate_scores(np.zeros((1, 4)))
    assert (len(seen), seen[0].filename) == (1, __file__)
    with pytest.warns(TieWarning, match="1 of 2"):
        trec.evaluate(QRELS, CONSTANT, ["rbp"], summary=True)


@pytest.mark.parametrize("ties", ["name", "expected", "min", "max"])
def test_no_warning_where_ties_are_chosen_or_change_nothing(ties: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trec.evaluate(QRELS, CONSTANT, ["recip_rank"], ties=ties)
        trec.evaluate(QRELS, CONSTANT, ["num_rel_ret", "set_P", "P.3"])
        trec.Evaluator({"q": {"0": 1}}, ["RR"]).evaluate_scores(np.array([[2.0, 1.0, 1.0]]))


def test_scores_of_16_bits_tie_where_those_of_32_do_not() -> None:
    scores = np.array([[0.1, 0.100001]], np.float32)
    evaluator = trec.Evaluator({"q": {"0": 1}}, ["recip_rank"])
    assert evaluator.evaluate_scores(scores)["q"]["recip_rank"] == 0.5
    with pytest.warns(TieWarning):
        evaluator.evaluate_scores(scores.astype(np.float16))


TRM = {
    "ndcg": "ndcg_cut",
    "mrr": "recip_rank_cut",
    "map": "map_cut",
    "recall": "recall",
    "precision": "P",
}


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=12), min_size=1, max_size=4),
    st.integers(0, 99),
)
def test_ties_are_those_of_tie_aware_retrieval_metrics(scores, seed) -> None:
    """It divides precision by the length of shorter lists: there are none."""
    draw = np.random.default_rng(seed)
    relevant = [(draw.random(len(row)) < 0.4).tolist() for row in scores]
    for row in relevant:
        row[seed % len(row)] = True
    due = trm.evaluate(scores, relevant, [*TRM], [1, 3, 5])
    named = [{str(i): value for i, value in enumerate(row)} for row in scores]
    judged = [{str(i): int(value) for i, value in enumerate(row)} for row in relevant]
    evaluator = trec.Evaluator(
        {f"q{i}": row for i, row in enumerate(judged)}, [f"{name}.1,3,5" for name in TRM.values()]
    )
    got = evaluator.evaluate_ties({f"q{i}": row for i, row in enumerate(named)})
    for theirs, ours in TRM.items():
        for depth in (1, 3, 5):
            for i, one in enumerate(due.per_query[theirs][depth]):
                values = [form[f"q{i}"][f"{ours}_{depth}"] for form in got[1:4]]
                ends = [one.expected, one.minimum, one.maximum]
                assert values == pytest.approx(ends, rel=0, abs=1e-12)


EVERY_FORM = [
    *FORMS,
    "map_cut.1,4",
    "recip_rank_cut.3",
    "relative_P.3",
    "dcg",
    "ideal_dcg",
    "P.4",
    "set_F",
    "num_rel",
    "num_ret",
    "num_nonrel_judged_ret",
]


@given(
    qrels=st.dictionaries(queries, judgements, min_size=1),
    runs=st.dictionaries(queries, rankings, min_size=1),
    level=st.integers(0, 3),
    compat=st.sampled_from([9, 10]),
)
def test_ties_in_the_core_are_those_that_numpy_finds(qrels, runs, level, compat) -> None:
    run = {query: runs.get(query, {"0": 1.0, "12": 1.0 + 1e-9}) for query in qrels}
    evaluator = trec.Evaluator(qrels, EVERY_FORM, level=level, compat=compat, ties="name")
    got = evaluator.evaluate_ties(run)
    mean, least, most = (
        trec.Evaluator(qrels, EVERY_FORM, level=level, compat=compat, ties=ties).evaluate(run)
        for ties in ("expected", "min", "max")
    )
    assert got.value == evaluator.evaluate(run)
    assert (got.minimum, got.maximum) == (least, most)
    assert close(got.expected, mean)
    changed = [q for q in run if any(most[q][m] - least[q][m] > 1e-11 for m in least[q])]
    assert got.queries == len(changed)
    assert evaluator.evaluate_ties(as_frame(run)) == got
    gains = trec.Evaluator(qrels, [*EVERY_FORM, "utility"], level=level, compat=compat, ties="name")
    slow = gains.evaluate_ties(run)
    assert slow.queries == got.queries
    assert all(row[m] == slow.maximum[q][m] for q, row in most.items() for m in row)


def test_many_ties_have_the_largest_effect_that_the_extremes_have() -> None:
    scores = np.random.default_rng(5).integers(0, 6, (40, 90)).astype(float)
    graded = np.random.default_rng(6).integers(-1, 4, (40, 90)).tolist()
    queries = [f"q{i:02}" for i in range(40)]
    qrels = {
        q: {str(d): row[d] for d in range(0, 90, 3)} for q, row in zip(queries, graded, strict=True)
    }
    run = {
        q: {str(d): score for d, score in enumerate(row)}
        for q, row in zip(queries, scores.tolist(), strict=True)
    }
    evaluator = trec.Evaluator(qrels, ["ndcg_cut.10", "map", "P.5"])
    most = evaluator.evaluate_ties(run)
    gap, name = max(
        (most.maximum[q][m] - most.minimum[q][m], m) for q in run for m in most.value[q]
    )
    said = f"{most.queries} of 40 queries .* {name} by up to {gap:.4g};"
    for evaluate, scored in (
        (evaluator.evaluate, run),
        (evaluator.evaluate_scores, scores),
        (evaluator.evaluate, as_frame(run)),
    ):
        with pytest.warns(TieWarning, match=said):
            evaluate(scored)


def test_the_largest_effect_is_named() -> None:
    qrels = {"p": {"a": 1}, "q": {"a": 1}}
    run = {"p": {"a": 1.0, "b": 1.0}, "q": dict.fromkeys("abcd", 1.0)}
    with pytest.warns(TieWarning, match=r"2 of 2 queries .* recip_rank by up to 0\.75;"):
        trec.evaluate(qrels, run, ["recip_rank", "rbp"])
    with pytest.warns(TieWarning, match=r"2 of 2 queries .* rbp by up to 0\.0271;"):
        trec.evaluate(qrels, run, ["rbp"])


@pytest.mark.parametrize("fails", [False, True])
def test_what_comes_of_many_runs_is_in_their_order(fails: bool) -> None:
    late, most, at_work = Event(), [0], [0]

    def task(place: int) -> Any:
        def run(warn: Any) -> Any:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
            if place == 0:
                late.wait(240)
            warn(TieWarning(f"run {place}"))
            if place == 1:
                late.set()
            at_work[0] -= 1
            if fails and place < 2:
                raise InputError(f"run {place} is wrong")
            return place

        return run

    def outcome() -> Any:
        try:
            return on_threads(2, [task(place) for place in range(9)])
        except InputError as error:
            return str(error)

    with pytest.warns(TieWarning) as seen:
        got = outcome()
    assert got == ("run 0 is wrong" if fails else [*range(9)])
    said = [str(one.message) for one in seen]
    assert said == [f"run {place}" for place in range(1 if fails else 9)]
    assert most == [2]
