"""kgtrec.trec for Python users: every form of run and qrels, in and out, and other libraries."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from ir_measures import RBP, RR, Judged, nDCG
from profiles import examples
from question_cases import ranking_case

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.trec import ir_measures_provider
from kgtrec.trec.eval.measure_rows import MeasureRow
from kgtrec.trec.eval.score import NothingShared

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

QRELS = {"q10": {"a": 1, "b": 0, "c": 2}, "q9": {"d": 1}, "alone": {"a": 1}}

RUN = {"q9": {"a": 1.0, "d": 0.1}, "q10": {"a": 1.0, "b": 3e300, "c": 1.0}, "other": {"a": 1.0}}

NAMES = [
    "a",
    "ab",
    "B",
    "10",
    "9",
    "é",
    "\U0001f600",
    "\udcff",
    "x\x00y",
    "#",
    "p%20q",
    "\u2028",
    "\x85",
]

ids = st.sampled_from(NAMES)

numbers = st.floats(allow_nan=False) | st.sampled_from(
    [0.0, -0.0, 1.0, 1.00000001, math.inf, -math.inf, 5e-324, 0.1 + 0.2, 1e22]
)


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    queries = ids.filter(lambda name: not name.startswith("#"))
    return st.dictionaries(queries, st.dictionaries(ids, values, min_size=1), min_size=1)


runs = some(numbers)

qrels = some(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 3))


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def frame_of(data: dict[str, dict[str, Any]], *columns: str) -> pd.DataFrame:
    """Rows of all queries alternating, so that no query is contiguous."""
    rows = [
        (place, query, doc, value)
        for query, docs in data.items()
        for place, (doc, value) in enumerate(docs.items())
    ]
    rows.sort(key=lambda row: row[0])
    values_of = zip(*(row[1:] for row in rows), strict=True)
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=None if name == columns[2] else object)
            for name, values in zip(columns, values_of, strict=True)
        }
    )


@examples(0.5)
@given(run=runs)
@example(run=RUN)
def test_runs_come_back_from_files_in_every_form(tmp_path_factory, run) -> None:
    path = tmp_path_factory.getbasetemp() / "api.run"
    trec.write_run(run, path, tag="mine")
    assert trec.read_run(path) == run
    assert list(trec.read_run(path)) == list(run)
    columns, frame = trec.read_run(path, as_="columns"), trec.read_run(path, as_="frame")
    assert columns.tag == "mine"
    assert list(frame.columns) == ["query_id", "doc_id", "score"]
    back: dict[str, dict[str, float]] = {}
    for query, document, score in frame.itertuples(index=False):
        back.setdefault(query, {})[document] = score
    assert back == run
    written = path.read_bytes()
    for line, (query, document) in zip(written.split(b"\n"), in_order(run), strict=False):
        assert line.split()[:3] == [as_bytes(query), b"Q0", as_bytes(document)]
    for form in (columns, frame, frame_of(run, "qid", "docno", "score")):
        trec.write_run(form, path, tag="mine")
        assert sorted(path.read_bytes().split(b"\n")) == sorted(written.split(b"\n"))
    trec.write_run(columns, path, tag="mine")
    assert path.read_bytes() == written


def in_order(run: dict[str, dict[str, float]]) -> list[tuple[str, str]]:
    """Query and document of every line, as trec_eval orders them."""
    return [
        (query, document)
        for query, scores in run.items()
        for document in sorted(scores, key=lambda d: (scores[d], as_bytes(d)), reverse=True)
    ]


@examples(0.5)
@given(judged=qrels)
def test_qrels_come_back_from_files_in_every_form(tmp_path_factory, judged) -> None:
    path = tmp_path_factory.getbasetemp() / "api.qrels"
    trec.write_qrels(judged, path)
    written = path.read_bytes()
    assert trec.read_qrels(path) == judged
    assert [list(docs) for docs in trec.read_qrels(path).values()] == [*map(list, judged.values())]
    columns, frame = trec.read_qrels(path, as_="columns"), trec.read_qrels(path, as_="frame")
    assert list(frame.columns) == ["query_id", "doc_id", "relevance"]
    for form in (columns, frame):
        trec.write_qrels(form, path)
        assert path.read_bytes() == written
    trec.write_qrels(frame_of(judged, "qid", "docno", "label"), path)
    assert trec.read_qrels(path) == judged


def test_questions_and_their_runs_are_qrels_and_runs(tmp_path: Path) -> None:
    assert trec.write_qrels is kgtrec.write_qrels
    questions, scores = ranking_case(1)
    run = kgtrec.rank(scores, questions, run_depth=9)[1]
    files = tmp_path / "q", tmp_path / "r"
    trec.write_qrels(questions, files[0])
    trec.write_run(run, files[1], tag="t")
    names = ["map", "P_2", "num_rel"]
    assert trec.evaluate(questions, run, names) == trec.evaluate(*files, names)


@pytest.mark.parametrize("kind", ["object", "category", "string"])
def test_frames_of_every_kind_of_text(kind: str) -> None:
    run = frame_of(RUN, "qid", "docno", "score").astype({"qid": kind, "docno": kind})
    judged = frame_of(QRELS, "query_id", "doc_id", "relevance").astype({"doc_id": kind})
    judged = judged.assign(iteration="0").sample(frac=1, random_state=1)
    due = trec.evaluate(QRELS, RUN, ["official"])
    assert trec.evaluate(judged, run, ["official"]) == due
    assert trec.evaluate(judged, run.iloc[::-1], ["official"]) == due
    pieces = pd.concat([run.iloc[:2], run.iloc[2:]])
    assert trec.evaluate(judged, pieces, ["official"]) == due


def test_the_frame_that_comes_back() -> None:
    names = ["AP@20", "relstring", "num_ret"]
    frame = trec.evaluate(QRELS, RUN, names, as_="frame")
    assert frame.index.tolist() == ["q10", "q9"]
    assert frame.index.name == "query_id"
    rows = trec.evaluate(QRELS, RUN, names)
    assert {query: dict(row) for query, row in rows.items()} == frame.to_dict("index")
    total = trec.evaluate(QRELS, RUN, names, summary=True, as_="frame")
    assert total.to_dict("index") == {"all": dict(trec.evaluate(QRELS, RUN, names, summary=True))}
    named = trec.evaluate({"\udcff": {"a": 1}}, {"\udcff": {"a": 1.0}}, ["map"], as_="frame")
    assert named.index.tolist() == ["\udcff"]


@examples(0.5)
@given(judged=some(st.integers(-2, 3)), run=runs)
def test_all_forms_have_the_same_values(tmp_path_factory, judged, run) -> None:
    folder = tmp_path_factory.getbasetemp()
    trec.write_run(run, folder / "forms.run")
    trec.write_qrels(judged, folder / "forms.qrels")
    names = ["official", "relstring", "rbp", "AP@2", "RR@2"]
    if not run.keys() & judged.keys():
        with pytest.raises(NothingShared, match="share no query"):
            trec.evaluate(judged, run, names)
        return
    due = trec.evaluate(judged, run, names)
    assert list(due) == sorted(run.keys() & judged.keys(), key=as_bytes)
    forms = [
        (trec.read_qrels(folder / "forms.qrels", form), trec.read_run(folder / "forms.run", form))
        for form in ("frame", "columns")
    ]
    forms += [(folder / "forms.qrels", str(folder / "forms.run")), (judged, forms[1][1])]
    total = trec.evaluate(judged, run, ["gm_map", "num_ret", "P"], summary=True)
    for one, other in forms:
        assert trec.evaluate(one, other, names) == due
        assert trec.evaluate(one, other, ["gm_map", "num_ret", "P"], summary=True) == total


def test_summary_row() -> None:
    total = trec.evaluate(QRELS, RUN, ["official"], summary=True)
    assert isinstance(total, MeasureRow)
    assert (total["runid"], total["num_q"], total["num_ret"], total["num_rel"]) == ("", 2, 5, 3)
    rows = trec.evaluate(QRELS, RUN, ["official"])
    assert trec.summarise(rows, ["official"]) == {k: v for k, v in total.items() if k != "runid"}


def test_rows_get_and_contain_every_spelling_that_they_look_up() -> None:
    row = trec.evaluate(QRELS, RUN, ["nDCG@10", "map"], summary=True)
    for name in ("nDCG@10", "ndcg_cut_10", "ndcg_cut.10", "AP", "map"):
        assert name in row
        assert row.get(name) == row[name]
    for name in ("nDCG@5", "P", "nonsense", "", 7):
        assert name not in row
        assert row.get(name) is None
        assert row.get(name, -1.0) == -1.0
        with pytest.raises(KeyError):
            row[name]  # type: ignore[index]
    assert sorted(row) == ["map", "nDCG@10"]  # iteration has the spelling that was asked


def test_a_tag_stays_with_columns_and_files(tmp_path: Path) -> None:
    trec.write_run(RUN, tmp_path / "a", tag="mine")
    trec.write_run(tmp_path / "a", tmp_path / "b.gz")
    columns = trec.read_run(tmp_path / "b.gz", "columns")
    assert columns.tag == "mine"
    for run in (tmp_path / "b.gz", columns):
        assert trec.evaluate(QRELS, run, ["runid"], summary=True) == {"runid": "mine"}
    trec.write_run(columns, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a").read_bytes()
    trec.write_run(columns.to_dict(), tmp_path / "c")
    assert trec.read_run(tmp_path / "c", "columns").tag == "kgtrec"
    trec.write_qrels(QRELS, tmp_path / "q")
    trec.write_qrels(tmp_path / "q", str(tmp_path / "q2"))
    assert (tmp_path / "q2").read_bytes() == (tmp_path / "q").read_bytes()


def test_names_are_loaded_on_first_use(tmp_path: Path) -> None:
    code = (
        "import sys, kgtrec.trec, kgtrec.trec.measures.names; assert 'numpy' not in sys.modules;"
        "assert set(kgtrec.trec.__all__) <= set(dir(kgtrec.trec));"
        "kgtrec.trec.evaluate; assert 'numpy' in sys.modules and 'pandas' not in sys.modules;"
        "kgtrec.trec.ir_measures_provider.register()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    for name in trec.__all__:
        assert getattr(trec, name) is not None
    assert {name for name in dir(kgtrec) if name[0] == "_"} == {"__version__"}
    for module in (kgtrec, trec, kgtrec.study, kgtrec.plots):
        assert not {"annotations", "lazy_exports", "os"} & {*dir(module)}
    with pytest.raises(AttributeError, match=r"kgtrec\.trec.*'nothing'"):
        trec.nothing  # noqa: B018


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
def test_the_command_line_and_python_ask_for_the_same(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 2\nq2 0 d 1\nq3 0 a 2\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 1 x\nq1 Q0 b 2 1 x\nq2 Q0 d 1 3 x\nq2 Q0 c 2 2 x\n")
    files = str(tmp_path / "qrels"), str(tmp_path / "run")
    measures = ["map", "kg_mrr", "utility.0,0,1,1", "num_ret", "num_rel"]
    flags = ["-l2", "-c", "-M1", "-N7", "--compat", "9", *(f"-m{name}" for name in measures)]
    printed = CliRunner().invoke(cli, ["eval", *flags, *files]).stdout.splitlines()
    how = {"level": 2, "complete": True, "most": 1, "collection": 7, "compat": 9}
    row = trec.evaluate(*files, measures, summary=True, **how)
    values = {name.strip(): float(value) for name, _, value in (one.split("\t") for one in printed)}
    assert values == pytest.approx(row, abs=6e-5)


THEIR_QRELS = {"7": {"d1": 1, "12": 0, "é": 2}, "q2": {"d1": 1}}

THEIR_RUN = {"7": {"12": 3.0, "é": 2.5, "d1": 2.5, "x": 0.125}, "q2": {"d9": 1.0, "d1": -1.0}}

FEW = ["map", "ndcg_cut.2", "recip_rank", "num_ret"]

ROWS = [(query, doc, score) for query, docs in THEIR_RUN.items() for doc, score in docs.items()]

JUDGED_ROWS = [
    (query, doc, level) for query, docs in THEIR_QRELS.items() for doc, level in docs.items()
]


@pytest.fixture(scope="module")
def expected() -> Any:
    return trec.evaluate(THEIR_QRELS, THEIR_RUN, FEW)


def test_polars_frames(expected: Any) -> None:
    pl = pytest.importorskip("polars")
    run = pl.DataFrame(ROWS, schema=["query_id", "doc_id", "score"], orient="row")
    qrels = pl.DataFrame(JUDGED_ROWS, schema=["qid", "docno", "label"], orient="row")
    assert trec.evaluate(qrels, run, FEW) == expected
    mixed = run.sample(fraction=1, shuffle=True, seed=1).with_columns(
        pl.col("query_id").cast(pl.Categorical)
    )
    assert trec.evaluate(qrels, mixed, FEW) == expected
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
        (run.with_columns(doc_id=pl.lit(None, pl.String)), "'doc_id' lacks an id in row 0"),
        (run.with_columns(doc_id=pl.lit(0.5)), r"0.5, which is not a text; .*frame\.cast"),
        (pl.concat([run, run]), "again in row"),
        (run.with_columns(score=pl.lit(float("nan"))), "NaN"),
    ):
        with pytest.raises((InputError, UsageError), match=message):
            trec.evaluate(THEIR_QRELS, wrong, FEW)
    judged = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [0.5]})
    with pytest.raises(InputError, match=r"whole number; number the levels: qrels\.with_columns"):
        trec.evaluate(judged, run, FEW)


def test_tuples_of_ir_measures(expected: Any) -> None:
    run = [ir_measures.ScoredDoc(*row) for row in ROWS]
    qrels = [ir_measures.Qrel(*row) for row in JUDGED_ROWS]
    assert trec.evaluate(qrels, run, FEW) == expected
    assert trec.evaluate(iter(qrels), (row for row in run), FEW) == expected
    numbers = [ir_measures.ScoredDoc(7, 12, 1)]
    assert trec.evaluate([ir_measures.Qrel(7, 12, 1)], numbers, ["P.1"]) == {"7": {"P_1": 1.0}}


def test_ranx_objects(expected: Any) -> None:
    ranx = pytest.importorskip("ranx")
    run, qrels = ranx.Run(THEIR_RUN), ranx.Qrels(THEIR_QRELS)
    assert trec.evaluate(qrels, run, FEW) == expected
    assert trec.evaluate(THEIR_QRELS, run, FEW) == expected


# -- kgtrec as a provider of ir_measures, against ir_measures' own providers and by hand ---------

PROVIDER = ir_measures_provider.register()

NAMES_OF_BOTH = (
    "AP AP@2 AP(rel=2)@3 AP(judged_only=True)@2 nDCG nDCG@3 nDCG(judged_only=True)@2 P@3 P(rel=2)@3"
    " P(judged_only=True)@2 RR RR(rel=2) RR(judged_only=True) Rprec Rprec(rel=2) R@2 R(rel=2)@2"
    " Bpref Bpref(rel=2) NumRet NumRet(rel=2) NumRelRet NumQ NumRel SetAP SetF SetF(beta=2.0) SetP"
    " SetP(relative=True) SetR SetR(rel=2) Success@2 IPrec@0.1 IPrec@0.6 infAP infAP(rel=2)"
)

# Names are expressions of Python; parse_measure fails on Python 3.14.
BOTH_HAVE = [eval(name, vars(ir_measures)) for name in NAMES_OF_BOTH.split()]
BOTH_HAVE += [nDCG(gains={1: 3, 2: 7}) @ 3, nDCG(gains={0: 1, 1: 0})]

DOCUMENTS = [f"d{i}" for i in range(12)]


def few_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    documents = st.dictionaries(st.sampled_from(DOCUMENTS), values, min_size=1)
    return st.dictionaries(st.sampled_from(["q1", "q10", "q2", "q3"]), documents, min_size=1)


their_qrels = few_of(st.integers(0, 3))

their_runs = few_of(st.integers(0, 6).map(float))  # ties, but none of float32 alone


def values_of(provider: Any, measures: Any, *data: Any) -> dict[tuple[str, str], float]:
    metrics = list(provider.iter_calc(measures, *data))
    values = {(metric.query_id, str(metric.measure)): metric.value for metric in metrics}
    assert len(values) == len(metrics)
    return values


@examples(0.5)
@given(judged=their_qrels, run=their_runs)
def test_the_values_of_its_own_provider(judged, run) -> None:
    due = values_of(ir_measures.pytrec_eval, BOTH_HAVE, judged, run)
    assert values_of(PROVIDER, BOTH_HAVE, judged, run) == pytest.approx(due, abs=1e-12)
    total = ir_measures.pytrec_eval.calc_aggregate(BOTH_HAVE, judged, run)
    totals = PROVIDER.calc_aggregate(BOTH_HAVE, judged, run)
    assert {str(m): v for m, v in totals.items()} == pytest.approx(
        {str(m): v for m, v in total.items()}, abs=1e-12
    )


@given(judged=their_qrels, run=their_runs)
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
