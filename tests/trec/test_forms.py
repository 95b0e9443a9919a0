"""Forms of run and qrels files besides TREC's: BEIR's, MS MARCO's, scores, JSON; and fractions."""

from __future__ import annotations

import gzip
import json
import math
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Qrel
from profiles import examples
from transcripts import run_command

from kgtrec import trec
from kgtrec.errors import FileError, FormatNote, InputError, QrelsWarning, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

ids = st.text("abc109é-", min_size=1, max_size=4)
FEW = ["map", "ndcg", "ndcg_cut.2", "recip_rank", "bpref", "num_ret", "infAP"]


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    return st.dictionaries(ids, st.dictionaries(ids, values, min_size=1), min_size=1, max_size=4)


runs, judgements = some(st.floats(-9, 9)), some(st.integers(-1, 3))


def lines_of(data: dict[str, dict[str, Any]], form: Callable[[str, str, Any], str]) -> str:
    return "".join(f"{form(q, d, v)}\n" for q, of in data.items() for d, v in of.items())


def records(data: dict[str, dict[str, Any]], *names: str, **how: Any) -> str:
    """A list of records with these names of query, document and value, and another field."""
    rows = [(q, d, v) for q, of in data.items() for d, v in of.items()]
    some = [dict(zip(names, row, strict=True)) | {"note": i} for i, row in enumerate(rows)]
    return json.dumps(some, **how)


QRELS_FORMS: dict[str, Callable[[dict[str, dict[str, Any]]], str]] = {
    "qrels": lambda data: lines_of(data, "{} 0 {} {}".format),
    "whole": lambda data: lines_of(data, "{} 0 {} {}.0".format),
    "beir": lambda data: "query-id\tcorpus-id\tscore\n" + lines_of(data, "{}\t{}\t{}".format),
    "pyterrier": lambda data: "# a comment\nqid docno label\n" + lines_of(data, "{} {} {}".format),
    "headed": lambda data: "query_id iteration doc_id rel\n" + lines_of(data, "{} 0 {} {}".format),
    "json": json.dumps,
    "indented": lambda data: json.dumps(data, indent=1, ensure_ascii=False),
    "floats": lambda data: json.dumps(
        {q: {d: float(v) for d, v in of.items()} for q, of in data.items()}
    ),
    "texts": lambda data: json.dumps(
        {q: {d: str(v) for d, v in of.items()} for q, of in data.items()}
    ),
    "records": lambda data: records(data, "query", "doc", "label"),
    "BEIR's records": lambda data: records(data, "query-id", "corpus-id", "score", indent=1),
}

RUN_FORMS: dict[str, Callable[[dict[str, dict[str, Any]]], str]] = {
    "trec_results": lambda data: lines_of(data, "{} Q0 {} 0 {!r} tag".format),
    "scores": lambda data: "qid docno score\n" + lines_of(data, "{} {} {!r}".format),
    "headed": lambda data: (
        "qid Q0 docno rank score tag\n" + lines_of(data, "{} Q0 {} 1 {!r} tag".format)
    ),
    "json": json.dumps,
    "texts": lambda data: json.dumps(
        {q: {d: repr(v) for d, v in of.items()} for q, of in data.items()}
    ),
    "records": lambda data: records(data, "qid", "docno", "score"),
    "records of texts": lambda data: records(
        {q: {d: repr(v) for d, v in of.items()} for q, of in data.items()}, "Query", "Doc", "Score"
    ),
}


@contextmanager
def noted(quiet: bool) -> Iterator[None]:
    """Expect a note on the form that was read, or none."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        yield
    notes = [one for one in shown if issubclass(one.category, FormatNote)]
    assert len(notes) == (not quiet), [str(one.message) for one in shown]


@pytest.mark.parametrize("form", QRELS_FORMS)
@examples(0.5)
@given(data=st.data())
def test_all_forms_of_qrels_mean_the_same(tmp_path_factory, form: str, data: Any) -> None:
    qrels, run = data.draw(judgements), data.draw(runs)
    run |= {query: dict.fromkeys(documents, 1.0) for query, documents in [*qrels.items()][:1]}
    path = tmp_path_factory.mktemp("forms") / "file"
    path.write_text(QRELS_FORMS[form](qrels), "utf-8")
    with noted(quiet=form in ("qrels", "whole")):
        assert trec.evaluate(path, run, FEW) == trec.evaluate(qrels, run, FEW)
    with noted(quiet=form in ("qrels", "whole")):
        assert trec.read_qrels(path) == qrels
    with noted(quiet=form in ("qrels", "whole")):
        assert trec.read_qrels(path, as_="columns").to_dict() == qrels


@pytest.mark.parametrize("form", RUN_FORMS)
@examples(0.5)
@given(data=st.data())
def test_all_forms_of_runs_mean_the_same(tmp_path_factory, form: str, data: Any) -> None:
    qrels, run = data.draw(judgements), data.draw(runs)
    qrels |= {query: dict.fromkeys(documents, 1) for query, documents in [*run.items()][:1]}
    path = tmp_path_factory.mktemp("forms") / "file"
    path.write_text(RUN_FORMS[form](run), "utf-8")
    with noted(quiet=form == "trec_results"):
        assert trec.evaluate(qrels, path, FEW) == trec.evaluate(qrels, run, FEW)
    with noted(quiet=form == "trec_results"):
        assert trec.read_run(path) == run


@given(runs)
def test_ranks_of_short_lines(tmp_path_factory, run: dict[str, dict[str, float]]) -> None:
    path = tmp_path_factory.mktemp("forms") / "file"
    ranked = {q: {d: -i for i, d in enumerate(of, 1)} for q, of in run.items()}
    ranks = {q: {d: -i for d, i in of.items()} for q, of in ranked.items()}
    path.write_text(lines_of(ranks, "{}\t{}\t{}".format), "utf-8")
    with noted(quiet=False):
        assert trec.read_run(path) == ranked
    with noted(quiet=True):
        assert trec.read_run(path, run_format="msmarco") == ranked
        assert trec.read_run(path, run_format="scores") == ranks
        assert trec.evaluate(ranks, path, FEW, run_format="msmarco") == trec.evaluate(
            ranks, ranked, FEW
        )


@given(runs)
def test_short_lines_are_ranks_or_refused(tmp_path_factory, run: dict[str, Any]) -> None:
    """Without a heading, the third column has a meaning only if it counts 1, 2, 3, ..."""
    path = tmp_path_factory.mktemp("forms") / "file"
    path.write_text(lines_of(run, "{} {} {!r}".format), "utf-8")
    if all([*of.values()] == [*range(1, len(of) + 1)] for of in run.values()):
        return
    with pytest.raises(
        FileError, match=r"3 columns .* without a heading; .* 'query document rank'"
    ):
        trec.read_run(path)
    with pytest.raises(FileError, match=r"3 columns .* without a heading; .*qrels_format='beir'"):
        trec.read_qrels(path)
    assert trec.read_run(path, run_format="scores") == run
    path.write_text("query document score\n" + path.read_text("utf-8"), "utf-8")
    with pytest.warns(FormatNote):
        assert trec.read_run(path) == run


def packed(content: bytes, ending: str) -> bytes:
    if ending == ".gz":
        return gzip.compress(content)
    codec = {".zst": "zstd", ".lz4": "lz4"}[ending]
    return pa.Codec(codec).compress(content, asbytes=True)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".lz4"])
def test_packed_files(tmp_path: Path, ending: str) -> None:
    qrels, run = {"q": {"a": 1, "b c": 0}}, {"q": {"a": 0.5, "b c": 2.0}}
    for name, data in (("qrels", qrels), ("run", run)):
        (tmp_path / f"{name}.json{ending}").write_bytes(packed(json.dumps(data).encode(), ending))
    files = tmp_path / f"qrels.json{ending}", tmp_path / f"run.json{ending}"
    how = {"qrels_format": "json", "run_format": "json"}
    assert trec.evaluate(*files, ["map"], **how) == {"q": {"map": 0.5}}
    (tmp_path / f"t{ending}").write_bytes(packed(b"q Q0 a 1 2.5 t\n", ending))
    assert trec.read_run(tmp_path / f"t{ending}") == {"q": {"a": 2.5}}
    (tmp_path / "hidden").write_bytes(packed(b"q Q0 a 1 2.5 t\n" * 9, ending))
    with pytest.raises(FileError, match=f"give it a name that ends in {ending}"):
        trec.evaluate(qrels, tmp_path / "hidden", ["map"])


def test_plain_lines_under_the_name_of_a_packed_file(tmp_path: Path) -> None:
    (tmp_path / "r.lz4").write_text("q Q0 a 1 2.5 t\n")
    assert trec.read_run(tmp_path / "r.lz4") == {"q": {"a": 2.5}}


# -- Fractions -----------------------------------------------------------------------------------


def run_advice(error: InputError, folder: Path, **names: Any) -> tuple[Any, str]:
    """Follow the advice for fractions: the converted qrels, and the measure with their gains."""
    hint = re.search(r"number the levels: (.*); then give .*? gains: (ndcg\.\S*), or", str(error))
    assert hint, error
    if not hint[1].startswith(("awk", "zcat")):
        return eval(hint[1], names), hint[2]
    subprocess.run(["sh", "-c", hint[1]], cwd=folder, check=True)
    return folder / "levels.txt", hint[2]


def ndcg(qrels: dict[str, dict[str, float]], run: dict[str, dict[str, float]]) -> dict[str, float]:
    values = {}
    for query in qrels.keys() & run.keys():
        gains = {d: max(r, 0.0) for d, r in qrels[query].items()}
        order = sorted(run[query], key=lambda d: (run[query][d], d.encode()), reverse=True)
        at = [gains.get(document, 0.0) for document in order]
        best = sorted(gains.values(), reverse=True)
        dcg, ideal = (sum(g / math.log2(i + 2) for i, g in enumerate(one)) for one in (at, best))
        values[query] = dcg / ideal if ideal else 0.0
    return values


fractions = some(st.sampled_from([0.5, 0.25, 1.0, 0.9, 2.0, 0.0, -1.0, 0.1]))


@examples(0.5)
@given(qrels=fractions, run=runs, form=st.sampled_from(["qrels", "beir", "gz"]))
def test_advice_for_fractions_in_files(tmp_path_factory, qrels, run, form: str) -> None:
    folder, asked = tmp_path_factory.mktemp("forms"), {}
    run |= {query: dict.fromkeys(documents, 1.0) for query, documents in [*qrels.items()][:1]}
    path = folder / ("qrels.txt" + ".gz" * (form == "gz"))
    text = QRELS_FORMS["beir" if form == "beir" else "qrels"](qrels)
    path.write_bytes(gzip.compress(text.encode()) if form == "gz" else text.encode())
    if form == "beir":
        asked = {"qrels_format": "beir"}
    try:
        values = trec.evaluate(path, run, ["ndcg"], **asked)
    except FileError as error:
        converted, measure = run_advice(error, folder)
        values = trec.evaluate(converted, run, [measure], **asked)
    assert {q: next(iter(row.values())) for q, row in values.items()} == pytest.approx(
        ndcg(qrels, run), abs=1e-12
    )


@examples(0.5)
@given(qrels=fractions, run=runs, form=st.sampled_from(["dict", "pandas", "polars", "tuples"]))
def test_advice_for_fractions_in_memory(qrels, run, form: str) -> None:
    run |= {query: dict.fromkeys(documents, 1.0) for query, documents in [*qrels.items()][:1]}
    rows = [(q, d, float(r)) for q, of in qrels.items() for d, r in of.items()]
    given_: Any = qrels
    if form == "pandas":
        given_ = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    elif form == "polars":
        given_ = polars.DataFrame(rows, schema=["qid", "docno", "label"], orient="row")
    elif form == "tuples":
        given_ = [Qrel(*row) for row in rows]
    try:
        values = trec.evaluate(given_, run, ["ndcg"])
    except InputError as error:
        converted, measure = run_advice(error, Path(), qrels=given_, polars=polars)
        values = trec.evaluate(converted, run, [measure])
    assert {q: next(iter(row.values())) for q, row in values.items()} == pytest.approx(
        ndcg(qrels, run), abs=1e-12
    )


def test_many_levels_are_multiplied(tmp_path: Path) -> None:
    qrels = {"q": {f"d{i}": i / 64 for i in range(1, 90)}}
    run = {"q": {f"d{i}": float(i * 37 % 89) for i in range(1, 90)}}
    (tmp_path / "qrels.txt").write_text(QRELS_FORMS["qrels"](qrels))
    with pytest.raises(FileError) as error:
        trec.read_qrels(tmp_path / "qrels.txt")
    command = re.search(r"number the levels: (.*); then compute nDCG", str(error.value))[1]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    values = trec.evaluate(tmp_path / "levels.txt", run, ["ndcg"])
    assert values["q"]["ndcg"] == pytest.approx(ndcg(qrels, run)["q"], abs=1e-12)


# -- Cases from the wild -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_beir_qrels(folder: Path) -> None:
    """Case beir-qrels."""
    (folder / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td2\t2\n"
    )
    (folder / "trec.run").write_text(
        "q1 Q0 d1 1 3.0 s\nq1 Q0 d2 2 2.0 s\nq2 Q0 d1 1 2.0 s\nq2 Q0 d2 2 1.0 s\n"
    )
    done = run_command("eval", "-m", "map", "test.tsv", "trec.run")
    assert (done.code, done.out) == (0, "map                   \tall\t0.7500\n")
    assert done.err == (
        "kgtrec: test.tsv: read as BEIR's qrels, lines of query, document, relevance (heading "
        "'query-id corpus-id score')\n"
    )
    assert run_command("eval", "-m", "map", "-R", "beir", "test.tsv", "trec.run") == (
        0,
        done.out,
        "",
    )


def test_msmarco_run(folder: Path) -> None:
    """Case msmarco-run."""
    (folder / "run.tsv").write_text("q1\td1\t1\nq1\td2\t2\nq2\td3\t1\nq2\td2\t2\n")
    (folder / "qrels.dev.tsv").write_text("q1\t0\td1\t1\nq2\t0\td2\t1\n")
    done = run_command("eval", "-m", "recip_rank", "qrels.dev.tsv", "run.tsv")
    assert (done.code, done.out) == (0, "recip_rank            \tall\t0.7500\n")
    assert "run.tsv: read as MS MARCO's run, lines of query, document, rank" in done.err
    quiet = run_command("eval", "-m", "recip_rank", "-T", "msmarco", "qrels.dev.tsv", "run.tsv")
    assert quiet == (0, done.out, "")


FRACTIONS = {"q1": {"a": 0.5, "b": 0.9, "c": 2}}
SYSTEM = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}


def test_fractional_relevance(folder: Path) -> None:
    """Cases bug-fractional-relevance and bug-advice-fractional-gains."""
    right = (0.5 + 0.9 / math.log2(3) + 2 / 2) / (2 + 0.9 / math.log2(3) + 0.5 / 2)
    (folder / "qrels.txt").write_text(QRELS_FORMS["qrels"](FRACTIONS))
    for qrels in (
        folder / "qrels.txt",
        FRACTIONS,
        pd.DataFrame({"qid": ["q1"] * 3, "docno": [*"abc"], "label": [0.5, 0.9, 2.0]}),
    ):
        with pytest.raises(InputError, match=r"ndcg\.1=0\.5,2=0\.9,3=2, or") as error:
            trec.evaluate(qrels, SYSTEM, ["ndcg"])
        converted, measure = run_advice(error.value, folder, qrels=qrels)
        row = trec.evaluate(converted, SYSTEM, [measure])["q1"]
        assert row[measure] == pytest.approx(right, abs=1e-15)
    assert trec.evaluate({"q1": {"a": 1.0}}, {"q1": {"a": 1.0}}, ["map"]) == {"q1": {"map": 1.0}}


def test_float_ids() -> None:
    """Case bug-advice-float-ids."""
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["10", "11"], "label": [1, 1]})
    for qid in (["1", "1", "2"], [1.0, 1.0, 2.0]):
        run = pd.DataFrame({"qid": qid, "docno": [10.0, 11.0, 11.0], "score": [0.9, 0.1, 0.8]})
        assert trec.evaluate(qrels, run, ["map"], summary=True) == {"map": 1.0}
        assert trec.evaluate(qrels, polars.from_pandas(run), ["map"], summary=True) == {"map": 1.0}
    assert trec.evaluate({1.0: {10.0: 1}}, {"1": {"10": 1.0}}, ["map"]) == {"1": {"map": 1.0}}


def test_subtopics(folder: Path) -> None:
    """Case subtopic-qrels: the advice gives the highest relevance per document."""
    lines = "1 1 d1 1\n1 2 d1 2\n1 2 d3 1\n2 1 d2 1\n"
    (folder / "qrels.txt").write_text(lines)
    with pytest.raises(FileError, match="look like subtopics") as error:
        trec.read_qrels("qrels.txt")
    assert error.value.exit_code == 4
    command = re.search(r"highest relevance of each document: (.*)\. If they", str(error.value))[1]
    subprocess.run(["sh", "-c", command], check=True)
    assert trec.read_qrels("adhoc.txt") == {"1": {"d1": 2, "d3": 1}, "2": {"d2": 1}}
    (folder / "once.txt").write_text("1 1 d1 1\n1 2 d3 1\n2 1 d2 1\n")
    with pytest.warns(QrelsWarning, match="second column looks like subtopics"):
        assert trec.read_qrels("once.txt") == {"1": {"d1": 1, "d3": 1}, "2": {"d2": 1}}


@pytest.mark.parametrize(
    "second",
    [
        ["0"] * 4,
        ["Q0"] * 4,
        ["1", "2", "1", "2"],
        ["1"] * 4,
        ["0", "1", "2", "0"],
        ["4.5", "1", "2", "3"],
        ["x", "y", "x", "x"],
        ["2", "3", "1", "2"],
    ],
)
def test_ordinary_second_columns(folder: Path, second: list[str]) -> None:
    rows = zip(["1", "1", "2", "2"], second, "abcd", strict=True)
    (folder / "qrels.txt").write_text("".join(f"{q} {s} {d} 1\n" for q, s, d in rows))
    assert trec.read_qrels("qrels.txt") == {"1": {"a": 1, "b": 1}, "2": {"c": 1, "d": 1}}


# -- Faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_run", "content", "message"),
    [
        (
            True,
            "qid docno rank score\nq d 1 2.5\n",
            r"file:1: the heading .* awk '\{print \$1, \$2, \$4\}' file > run.txt",
        ),
        (True, "qid,docno,score\nq,d,2.5\n", r"awk -F, '\{print \$1, \$2, \$3\}' file > run.txt"),
        (False, "qid,docno,label\nq,d,1\n", r"awk -F, '\{print \$1, \$2, \$3\}' file > qrels.txt"),
        (True, "qid docno label\nq d 1\n", "the heading .* is one of qrels, not of a run; give"),
        (False, "qid docno rank\nq d 1\n", "the heading .* is one of a run, not of qrels; give"),
        (True, "query-id corpus-id score\nq d x\n", "file:2: score 'x'; the third column must be"),
        (False, "\nqid docno label\nq d 1\nq d 2\n", "file:4: query 'q' has document 'd' twice"),
        (False, "qid docno label\nq d x\n", "file:2: relevance 'x'; the third column must"),
        (False, "qid docno label\nq d\n", "file:2: 2 columns in 'q d'; a line must have 3: "),
        (False, "qid docno label\n", "file: this qrels file contains no lines"),
        (True, '{"q": {"d": 1, "d": 2}}', "an object has the name 'd' twice; keep one"),
        (True, '{"q": {"d": 1},\n"r": }', "file:2: this is not JSON .*; give {query: {docum"),
        (True, '{"q": {"d": "x"}}', "file: the score of document 'd' under query 'q' is 'x'; it"),
        (True, '{"q": 5}', "file: query 'q' has 5; give it a dict"),
        (True, "{}", "file: the JSON has no documents; give {query: {document: score}}"),
        (True, '[["q", "d", 1]]', r"record 1 of the JSON is .*; give {query: .*, or records with"),
        (True, '[{"qid": 1, "doc": 2, "rank": 1}]', "record 1 of the JSON is .*; give {query:"),
        (True, '[{"q": 1}, {"doc": "d", "score": 1}]', "record 1 of the JSON is .*; give {query:"),
        (True, '[{"qid": 1, "topic": 1, "doc": 2, "score": 1}]', "record 1 of the JSON is"),
        (True, '[{"qid": [1], "doc": 2, "score": 1}]', "record 1 of the JSON is"),
        (True, "[]", "file: the JSON has no documents"),
        (
            False,
            '[{"qid": 1, "doc": 2, "rel": 1}, {"qid": "1", "doc": "2", "rel": 0}]',
            "file: document '2' twice under query '1'; keep one of them",
        ),
        (False, '{"q": {"d": "0.5"}}', "file: the relevance of document 'd' .* is '0.5'; it must"),
        (True, "qid,docno,score\nq,d,1\n", "file:1: the heading 'qid,docno,score' is one of CSV"),
        (False, '{"q": {"d": 0.5}}', r"file: the relevance .* ndcg\.1=0\.5"),
    ],
)
@pytest.mark.filterwarnings("ignore::kgtrec.errors.FormatNote")
def test_faults_of_forms(folder: Path, is_run: bool, content: str, message: str) -> None:
    (folder / "file").write_text(content)
    with pytest.raises(InputError, match=message):
        (trec.read_run if is_run else trec.read_qrels)("file")


def test_named_forms_that_do_not_fit(folder: Path) -> None:
    (folder / "run").write_text("q d 1.5\n")
    with pytest.raises(FileError, match=r"run: rank 1\.5 under query 'q'; ranks are whole"):
        trec.read_run("run", run_format="msmarco")
    with pytest.raises(FileError, match="run:1: this is not JSON"):
        trec.read_run("run", run_format="json")
    with pytest.raises(UsageError, match="run_format='beir' is unknown"):
        trec.read_run("run", run_format="beir")
    with pytest.raises(UsageError, match="qrels_format='scores' is unknown"):
        trec.read_qrels("run", qrels_format="scores")
    (folder / "trec").write_text("q Q0 d 1 1.5 t\n")
    with pytest.raises(
        FileError, match=r"trec:1: 6 columns in .*; a line must have 3: query docum"
    ):
        trec.read_run("trec", run_format="scores")


def test_converting_lines_of_headings(folder: Path) -> None:
    (folder / "run").write_text("qid docid docno rank score query\n1 0 a 1 2.5 x\n1 1 b 2 0.5 x\n")
    with pytest.raises(FileError, match="awk") as error:
        trec.read_run("run")
    command = re.search("as in: (.*)", str(error.value))[1]
    subprocess.run(["sh", "-c", command], check=True)
    with pytest.warns(FormatNote):
        assert trec.read_run("run.txt") == {"1": {"0": 2.5, "1": 0.5}}


def test_other_commands_read_these_forms(folder: Path) -> None:
    """BEIR's qrels and JSON have the output of TREC's lines in `compare` and `rank --qrels`."""
    qrels = {f"q{i}": {f"d{i}": 2, f"d{i + 1}": 1, "d0": 0} for i in range(1, 9)}
    runs = [{q: {f"d{i}": float(i * k % 7) for i in range(10)} for q in qrels} for k in (2, 3)]
    for name in ("qrels", "beir", "json"):
        (folder / f"{name}.qrels").write_text(QRELS_FORMS[name](qrels))
    for name in ("trec_results", "scores", "json"):
        (folder / name).mkdir()
        for letter, run in zip("ab", runs, strict=True):
            (folder / name / letter).write_text(RUN_FORMS[name](run))
    (folder / "queries.txt").write_text("".join(f"{q}\n" for q in qrels))
    (folder / "documents.txt").write_text("".join(f"d{i}\n" for i in range(10)))
    how = "compare", "--format", "json", "--qrels"
    outputs = {
        run_command(*how, f"{q}.qrels", f"{r}/a", f"{r}/b").out.replace(f"{r}/", "")
        for q in ("qrels", "beir", "json")
        for r in ("trec_results", "scores", "json")
    }
    assert len(outputs) == 1
    assert outputs != {""}
    np.save("scores.npy", np.array([[of[f"d{i}"] for i in range(10)] for of in runs[0].values()]))
    names = ["--queries", "queries.txt", "--documents", "documents.txt", "--scores", "scores.npy"]
    ranked = [
        run_command("rank", "--qrels", f"{q}.qrels", *names, "-o", f"{q}.parquet", "-q")
        for q in ("qrels", "beir", "json")
    ]
    assert {(done.code, done.out) for done in ranked} == {(0, ranked[0].out)}, ranked
