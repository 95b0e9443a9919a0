"""kgtrec as a provider of ir_measures, against ir_measures' own providers and by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgtrec import trec
from kgtrec.errors import InputError, UsageError

ir_measures = pytest.importorskip("ir_measures")

from ir_measures import (  # noqa: E402
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

from kgtrec.trec import ir_measures_provider  # noqa: E402

PROVIDER = ir_measures_provider.register()
BOTH_HAVE = [
    AP, AP @ 2, AP(rel=2) @ 3, AP(judged_only=True) @ 2, nDCG, nDCG @ 3, nDCG(judged_only=True) @ 2,
    nDCG(gains={1: 3, 2: 7}) @ 3, nDCG(gains={0: 1, 1: 0}), P @ 3, P(rel=2) @ 3,
    P(judged_only=True) @ 2, RR, RR(rel=2), RR(judged_only=True), Rprec, Rprec(rel=2), R @ 2,
    R(rel=2) @ 2, Bpref, Bpref(rel=2), NumRet, NumRet(rel=2), NumRelRet, NumQ, NumRel, SetAP,
    SetF, SetF(beta=2.0), SetP, SetP(relative=True), SetR, SetR(rel=2), Success @ 2, IPrec @ 0.1,
    IPrec @ 0.6, infAP, infAP(rel=2),
]  # fmt: skip

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


@settings(deadline=None)
@given(judged=qrels, run=runs)
def test_the_values_of_its_own_provider(judged, run) -> None:
    due = values_of(ir_measures.pytrec_eval, BOTH_HAVE, judged, run)
    assert values_of(PROVIDER, BOTH_HAVE, judged, run) == pytest.approx(due, abs=1e-12)
    total = ir_measures.pytrec_eval.calc_aggregate(BOTH_HAVE, judged, run)
    totals = PROVIDER.calc_aggregate(BOTH_HAVE, judged, run)
    assert {str(m): v for m, v in totals.items()} == pytest.approx(
        {str(m): v for m, v in total.items()}, abs=1e-12
    )


@settings(deadline=None)
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
    with pytest.raises(InputError, match="comes a second time"):
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
