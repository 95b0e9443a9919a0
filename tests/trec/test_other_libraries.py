"""Runs and qrels as other libraries hold them give the numbers of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgtrec import trec
from kgtrec.errors import InputError, UsageError

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
        (run.with_columns(doc_id=pl.lit(0.5)), "ids are texts"),
        (pl.concat([run, run]), "a second time"),
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
        ([*run, run[0]], "a second time"),
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
    with pytest.raises(InputError, match="queries 7 and '7' have one name"):
        trec.evaluate(qrels, {7: {5: 1.0}, "7": {6: 1.0}}, NAMES)
    with pytest.raises(InputError, match="document '5' comes a second time"):
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
from kgtrec.trec.eval.evaluate import Row

assert_type(trec.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, ["map"]), dict[str, Row])
assert_type(trec.evaluate("a", "b", ["map"], summary=True), Row)
assert_type(trec.evaluate({1: {2: 1}}, {1: {2: 0.5}}, ["map"], level=2), dict[str, Row])
trec.evaluate("a", "b", ["map"], as_="frame").describe()
trec.evaluate("a", 5, ["map"])  # E: run
trec.evaluate("a", "b", ["map"], summary="yes")  # E: summary
trec.evaluate("a", "b", ["map"], levels=2)  # E: name
"""


def test_evaluate_is_typed(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    (tmp_path / "typed.py").write_text(TYPED)
    text, _, _ = api.run([str(tmp_path / "typed.py"), "--python-version", "3.11",
                          "--ignore-missing-imports", "--follow-imports", "silent",
                          "--cache-dir", str(tmp_path / "cache")])  # fmt: skip
    lines = {int(line.split(":")[1]) for line in text.splitlines() if ": error:" in line}
    expected = {i for i, line in enumerate(TYPED.splitlines(), start=1) if "# E:" in line}
    assert lines == expected, text
