"""Runs and qrels in other libraries' forms give the numbers of their files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import (
    AP,
    ERR,
    RBP,
    RR,
    Bpref,
    IPrec,
    Judged,
    NumQ,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    Rprec,
    SetAP,
    SetF,
    SetP,
    SetR,
    Success,
    infAP,
    nDCG,
)

from kgtrec import trec
from kgtrec.errors import InputError, UsageError
from kgtrec.trec import ir_measures_provider

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

QRELS = {"7": {"d1": 1, "12": 0, "é": 2}, "q2": {"d1": 1}}
RUN = {"7": {"12": 3.0, "é": 2.5, "d1": 2.5, "x": 0.125}, "q2": {"d9": 1.0, "d1": -1.0}}
NAMES = ["map", "ndcg_cut.2", "recip_rank", "num_ret"]
ROWS = [(query, doc, score) for query, docs in RUN.items() for doc, score in docs.items()]
JUDGED = [(query, doc, level) for query, docs in QRELS.items() for doc, level in docs.items()]


@pytest.fixture(scope="module")
def expected() -> Any:
    return trec.evaluate(QRELS, RUN, NAMES)


def test_polars_frames(expected: Any) -> None:
    pl = pytest.importorskip("polars")
    run = pl.DataFrame(ROWS, schema=["query_id", "doc_id", "score"], orient="row")
    qrels = pl.DataFrame(JUDGED, schema=["qid", "docno", "label"], orient="row")
    assert trec.evaluate(qrels, run, NAMES) == expected
    mixed = run.sample(fraction=1, shuffle=True, seed=1).with_columns(
        pl.col("query_id").cast(pl.Categorical)
    )
    assert trec.evaluate(qrels, mixed, NAMES) == expected
    numbers = pl.DataFrame({"query_id": [7, 7], "doc_id": [12, 5], "score": [2, 1]})
    judged = pl.DataFrame({"query_id": [7], "doc_id": [5], "relevance": [1]})
    assert trec.evaluate(judged, numbers, ["recip_rank"]) == {"7": {"recip_rank": 0.5}}


def test_polars_frames_that_are_wrong() -> None:
    pl = pytest.importorskip("polars")
    run = pl.DataFrame(ROWS, schema=["query_id", "doc_id", "score"], orient="row")
    for wrong, message in (
        (run.lazy(), "frame.collect"),
        (run.drop("score"), "no column 'score'"),
        (run.with_columns(score=pl.lit("x")), "scores are of type"),
        (run.with_columns(doc_id=pl.lit(None, pl.String)), "'doc_id' is null in row 0"),
        (run.with_columns(doc_id=pl.lit(0.5)), "ids must be texts"),
        (pl.concat([run, run]), "again in row"),
        (run.with_columns(score=pl.lit(float("nan"))), "NaN"),
    ):
        with pytest.raises((InputError, UsageError), match=message):
            trec.evaluate(QRELS, wrong, NAMES)
    judged = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [0.5]})
    with pytest.raises(InputError, match="whole numbers"):
        trec.evaluate(judged, run, NAMES)


def test_tuples_of_ir_measures(expected: Any) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    run = [ir_measures.ScoredDoc(*row) for row in ROWS]
    qrels = [ir_measures.Qrel(*row) for row in JUDGED]
    assert trec.evaluate(qrels, run, NAMES) == expected
    assert trec.evaluate(iter(qrels), (row for row in run), NAMES) == expected
    numbers = [ir_measures.ScoredDoc(7, 12, 1)]
    assert trec.evaluate([ir_measures.Qrel(7, 12, 1)], numbers, ["P.1"]) == {"7": {"P_1": 1.0}}
    for wrong, message in (
        ([*run, ("q", "d", 1.0)], r"row 6 is \('q', 'd', 1.0\)"),
        ([ir_measures.ScoredDoc("q", None, 1.0)], "document None is not a text"),
        ([ir_measures.ScoredDoc("q", "d", "x")], "a score is 'x'"),
        ([ir_measures.ScoredDoc("q", "d", None)], "a score is None"),
        ([*run, run[0]], "again in row"),
    ):
        with pytest.raises(InputError, match=message):
            trec.evaluate(QRELS, wrong, NAMES)


def test_ranx_objects(expected: Any) -> None:
    ranx = pytest.importorskip("ranx")
    run, qrels = ranx.Run(RUN), ranx.Qrels(QRELS)
    assert trec.evaluate(qrels, run, NAMES) == expected
    assert trec.evaluate(QRELS, run, NAMES) == expected


def test_ids_that_are_numbers_stand_for_their_decimal_form() -> None:
    run, qrels = {7: {12: 2.0, 5: 1.0}}, {7: {5: 1}}
    text = trec.evaluate({"7": {"5": 1}}, {"7": {"12": 2.0, "5": 1.0}}, NAMES)
    assert trec.evaluate(qrels, run, NAMES) == text
    assert trec.evaluate({np.int64(7): {np.int32(5): 1}}, run, NAMES) == text
    assert trec.evaluate(qrels, {7: {"12": 2.0, 5: 1.0}}, NAMES) == text  # both in one
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": [7, 7], "docno": [12, 5], "score": [2.0, 1.0]})
    assert trec.evaluate(qrels, frame, NAMES) == text
    with pytest.raises(InputError, match="queries 7 and '7' have the same name"):
        trec.evaluate(qrels, {7: {5: 1.0}, "7": {6: 1.0}}, NAMES)
    with pytest.raises(InputError, match=r"has document .5. twice"):
        trec.evaluate(qrels, {7: {5: 1.0, "5": 2.0}}, NAMES)
    for bad in (True, 0.5, None, b"q"):
        with pytest.raises(InputError, match="is not a text"):
            trec.evaluate({bad: {"d": 1}}, run, NAMES)
        with pytest.raises(InputError, match="is not a text"):
            trec.evaluate(qrels, {7: {bad: 1.0}}, NAMES)


def test_what_is_none_of_these_is_described() -> None:
    with pytest.raises(UsageError, match="a pandas or polars frame, tuples of ir_measures"):
        trec.evaluate(QRELS, 5, NAMES)
    with pytest.raises(UsageError, match="a pandas or polars frame, tuples of ir_measures"):
        trec.evaluate(5, RUN, NAMES)


TYPED = """
from typing import assert_type
import kgtrec.trec as trec
from kgtrec.trec.eval.evaluate import MeasureRow

assert_type(trec.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, ["map"]), dict[str, MeasureRow])
assert_type(trec.evaluate("a", "b", ["map"], summary=True), MeasureRow)
assert_type(trec.evaluate({1: {2: 1}}, {1: {2: 0.5}}, ["map"], level=2), dict[str, MeasureRow])
trec.evaluate("a", "b", ["map"], as_="frame").describe()
trec.evaluate("a", 5, ["map"])  # E: run
trec.evaluate("a", "b", ["map"], summary="yes")  # E: summary
trec.evaluate("a", "b", ["map"], levels=2)  # E: name
"""


@pytest.mark.slow
def test_evaluate_is_typed(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    (tmp_path / "typed.py").write_text(TYPED)
    text, _, _ = api.run([str(tmp_path / "typed.py"), "--python-version", "3.11",
                          "--ignore-missing-imports", "--follow-imports", "silent",
                          "--cache-dir", str(tmp_path / "cache")])  # fmt: skip
    lines = {int(line.split(":")[1]) for line in text.splitlines() if ": error:" in line}
    expected = {i for i, line in enumerate(TYPED.splitlines(), start=1) if "# E:" in line}
    assert lines == expected, text


# -- kgtrec as a provider of ir_measures, against ir_measures' own providers and by hand ---------


ir_measures = pytest.importorskip("ir_measures")


PROVIDER = ir_measures_provider.register()
BOTH_HAVE = [
    AP, AP @ 2, AP(rel=2) @ 3, AP(judged_only=True) @ 2, nDCG, nDCG @ 3, nDCG(judged_only=True) @ 2,
    nDCG(gains={1: 3, 2: 7}) @ 3, nDCG(gains={0: 1, 1: 0}), P @ 3, P(rel=2) @ 3,
    P(judged_only=True) @ 2, RR, RR(rel=2), RR(judged_only=True), Rprec, Rprec(rel=2), R @ 2,
    R(rel=2) @ 2, Bpref, Bpref(rel=2), NumRet, NumRet(rel=2), NumRelRet, NumQ, NumRel, SetAP,
    SetF, SetF(beta=2.0), SetP, SetP(relative=True), SetR, SetR(rel=2), Success @ 2, IPrec @ 0.1,
    IPrec @ 0.6, infAP, infAP(rel=2),
]  # fmt: skip


def test_the_provider_needs_no_import_of_its_own() -> None:
    code = "import kgtrec.trec; kgtrec.trec.ir_measures_provider.register()"
    subprocess.run([sys.executable, "-c", code], check=True)


DOCUMENTS = [f"d{i}" for i in range(12)]


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    documents = st.dictionaries(st.sampled_from(DOCUMENTS), values, min_size=1)
    return st.dictionaries(st.sampled_from(["q1", "q10", "q2", "q3"]), documents, min_size=1)


qrels = some(st.integers(0, 3))
runs = some(st.integers(0, 6).map(float))  # ties, but none of float32 alone


def values_of(provider: Any, measures: Any, *data: Any) -> dict[tuple[str, str], float]:
    metrics = list(provider.iter_calc(measures, *data))
    values = {(metric.query_id, str(metric.measure)): metric.value for metric in metrics}
    assert len(values) == len(metrics)
    return values


@given(judged=qrels, run=runs)
def test_the_values_of_its_own_provider(judged, run) -> None:
    due = values_of(ir_measures.pytrec_eval, BOTH_HAVE, judged, run)
    assert values_of(PROVIDER, BOTH_HAVE, judged, run) == pytest.approx(due, abs=1e-12)
    total = ir_measures.pytrec_eval.calc_aggregate(BOTH_HAVE, judged, run)
    totals = PROVIDER.calc_aggregate(BOTH_HAVE, judged, run)
    assert {str(m): v for m, v in totals.items()} == pytest.approx(
        {str(m): v for m, v in total.items()}, abs=1e-12
    )


@given(judged=qrels, run=runs)
def test_measures_that_pytrec_eval_lacks(judged, run) -> None:
    rows = values_of(PROVIDER, [RR @ 2, RR(rel=2) @ 3, Judged @ 3, RBP(rel=2, p=0.5)], judged, run)
    for query in judged:
        scores = run.get(query, {})
        order = sorted(scores, key=lambda d: (scores[d], d), reverse=True)
        shown = [judged[query].get(document) for document in order]
        good = [i for i, grade in enumerate(shown, 1) if grade]
        better = [i for i, grade in enumerate(shown, 1) if grade and grade >= 2]
        due = {
            "RR@2": 1 / good[0] if good and good[0] <= 2 else 0,
            "RR(rel=2)@3": 1 / better[0] if better and better[0] <= 3 else 0,
            "Judged@3": sum(g is not None for g in shown[:3]) / max(1, min(3, len(shown))),
            "RBP(rel=2,p=0.5)": sum(0.5**i for i in better),
        }
        assert {name: rows[query, name] for name in due} == pytest.approx(due)


def test_one_order_for_all_measures_in_float64() -> None:
    run = {"q": {"a": 1.000000001, "b": 1.0, "c": 0.5, "d": 0.5}}
    assert PROVIDER.calc_aggregate([RR, RR @ 10], {"q": {"a": 1}}, run) == {RR: 1.0, RR @ 10: 1.0}
    totals = PROVIDER.calc_aggregate([RR, RR @ 10, AP @ 5], {"q": {"c": 1}}, run)
    assert totals == dict.fromkeys([RR, RR @ 10, AP @ 5], 0.25)


def test_all_forms_of_ir_measures() -> None:
    judged, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 2.0}}
    tuples = [ir_measures.Qrel("q", "a", 1), ir_measures.Qrel("q", "b", 0)]
    scored = [ir_measures.ScoredDoc("q", "a", 1.0), ir_measures.ScoredDoc("q", "b", 2.0)]
    for one in (judged, pd.DataFrame(tuples), iter(tuples)):
        assert PROVIDER.calc_aggregate([RR], one, run) == {RR: 0.5}
    evaluator = PROVIDER.evaluator([RR, NumQ], judged)
    for other in (run, pd.DataFrame(scored), iter(scored), run):
        assert evaluator.calc_aggregate(other) == {RR: 0.5, NumQ: 1}
    assert evaluator.calc_aggregate({"other": {"a": 1.0}}) == {RR: 0, NumQ: 0}
    with pytest.raises(InputError, match=r"has document .* again"):
        PROVIDER.calc_aggregate([RR], judged, pd.DataFrame([*scored, *scored]))


def test_evaluate_takes_its_measure_objects() -> None:
    row = trec.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, [AP @ 20, nDCG @ 20, RR, P @ 5])["q"]
    assert [row[m] for m in (AP @ 20, nDCG @ 20, RR, P @ 5)] == [1, 1, 1, 0.2]


def test_what_it_does_not_have_is_named_at_once() -> None:
    with pytest.raises(UsageError, match=r"does not have ERR@20, RBP, nDCG\(dcg='exp-log2'\)@5"):
        PROVIDER.evaluator([AP, ERR @ 20, RBP, nDCG(dcg="exp-log2") @ 5], {"q": {"a": 1}})


def test_registered_once_and_first_only_if_told() -> None:
    pipeline = ir_measures.DefaultPipeline.providers
    before = list(pipeline)
    assert ir_measures_provider.register() is PROVIDER
    assert ir_measures.providers.registry["kgtrec"] is PROVIDER
    assert pipeline == before
    try:
        run = {"q": {"a": 1.000000001, "b": 1.0}}
        assert ir_measures.calc_aggregate([RR], {"q": {"a": 1}}, run) == {RR: 0.5}
        for _ in range(2):
            ir_measures_provider.register(first=True)
            assert pipeline == [PROVIDER, *before]
        assert ir_measures.calc_aggregate([RR], {"q": {"a": 1}}, run) == {RR: 1.0}
    finally:
        pipeline[:] = before
