"""Warnings about queries and documents of a run, in commands and Python alike."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import InputError, QueryWarning, RunWarning

NO_RELEVANT = "1 of 2 queries has no relevant document (q2); its value is 0 whatever the run does"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def command(*arguments: str) -> tuple[str, list[str]]:
    """Standard output, then warnings and lines on standard error without the program's name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = CliRunner().invoke(cli, ["eval", *arguments], catch_exceptions=False)
    lines = [line.removeprefix("kgtrec: ") for line in result.stderr.splitlines()]
    return result.stdout, [*(str(warning.message) for warning in caught), *lines]


def python(*arguments, **options):
    """The value of map over all queries, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row = trec.evaluate(*arguments, ["map"], summary=True, ties="name", **options)
    return row["map"], [str(warning.message) for warning in caught]


def files(qrels: str | bytes, run: str | bytes) -> tuple[str, str]:
    for name, text in (("qrels", qrels), ("run", run)):
        Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return "qrels", "run"


def value_of(out: str) -> float:
    return float(out.split()[-1])


DISTANCES = "".join(f"{q} Q0 d{i} {i} 0.{i} t\n" for q in ("q1", "q2") for i in (1, 2, 3))


def test_ranks_against_scores():
    paths = files("q1 0 d1 1\nq2 0 d1 1\n", DISTANCES)
    due = (
        "the rank column disagrees with the scores in 2 of 2 queries (q1: rank 1 has the lowest "
        "score); only scores count. Are they distances? Negate them"
    )
    assert command("-m", "recip_rank", *paths) == ("recip_rank            \tall\t0.3333\n", [due])
    assert python(*paths) == (pytest.approx(1 / 3), [due])
    names = ["qid", "iter", "docno", "rank", "score", "tag"]
    frame = pd.read_csv("run", sep=" ", names=names)
    assert python({"q1": {"d1": 1}, "q2": {"d1": 1}}, frame) == (pytest.approx(1 / 3), [due])
    frame["score"] = -frame["score"]  # the remedy
    assert python({"q1": {"d1": 1}, "q2": {"d1": 1}}, frame) == (1, [])
    one = "q1 0 a 1 9 t\nq1 0 c 3 7 t\nq1 0 b 2 5 t\n"
    assert command("-m", "map", *files("q1 0 a 1\n", one))[1] == [
        "the rank column disagrees with the scores in 1 of 1 queries (q1: rank 3 scores more than "
        "rank 2); only scores count. If the ranks are right, write scores that fall from rank to "
        "rank"
    ]


@pytest.mark.parametrize("ranks", ["0 0 0", "1 1 1", "0 1 2", "1 2 2", "1 x 3", "9 8 7", "3 1 2"])
def test_ranks_that_say_nothing(ranks):
    """Constant ranks, ranks from 0, equal ranks, texts; and other orders of the lines."""
    scores = {"9 8 7": "1 2 3", "3 1 2": "1 3 2"}.get(ranks, "3 2.0000001 2.0000002")
    rows = enumerate(zip(ranks.split(), scores.split(), strict=True))
    run = "".join(f"q1 Q0 d{i} {rank} {score} t\n" for i, (rank, score) in rows)
    assert command("-m", "map", *files("q1 0 d0 1\n", run))[1] == []


def test_lists_that_rise():
    due = (
        "the scores of all lists of the run rise from its first document to its last, but the "
        "highest score counts as best. Are they distances? Negate them"
    )
    run = {q: {"a": 0.1, "b": 0.2, "c": 0.3} for q in ("q1", "q2")}
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    assert python(qrels, run) == (pytest.approx(1 / 3), [due])
    text = "".join(f"{q} Q0 {d} 0 {s} t\n" for q, row in run.items() for d, s in row.items())
    assert command("-m", "map", *files("q1 0 a 1\nq2 0 a 1\n", text))[1] == [due]
    assert python(qrels, {**run, "q2": {"a": 2, "b": 1}})[1] == []
    assert python(qrels, {"q1": {"a": 1, "b": 2}, "q2": {"a": 1, "b": 2}})[1] == []  # may be chance


def test_no_document_is_judged():
    due = (
        "none of the 3 documents of the run is judged; the first are '1' in the run and 'doc-1' in "
        "the qrels; give documents the same names in both"
    )
    paths = files("q1 0 doc-1 1\nq2 0 x 1\n", "q1 0 1 1 3 s\nq1 0 2 2 2 s\nq2 0 3 1 3 s\n")
    assert command("-m", "map", *paths) == ("map                   \tall\t0.0000\n", [due])
    assert command("-J", "-m", "map", *paths)[1] == [due]
    data = {"q1": {"doc-1": 1}, "q2": {"x": 1}}, {"q1": {"1": 3.0, "2": 2.0}, "q2": {"3": 3.0}}
    assert python(*data) == (0, [due])
    assert python(*data, judged_only=True)[1] == [due]
    _, (text,) = command(
        "-m", "map", *files("q1 0 Café 1\n", "q1 0 Caf\xe9 1 3 s\n".encode("latin-1"))
    )
    assert text == (
        "the only document of the run is not judged; names are 'Caf\\xe9' in the run and 'Café' in "
        "the qrels; 'Caf\\xe9' is not UTF-8; save both as UTF-8"
    )


@pytest.mark.parametrize(("ours", "theirs"), [("007", "7"), ("10.1", "10"), ("é", "e")])
def test_no_shared_query(ours, theirs):
    paths = files(f"{ours} 0 d1 1\n", f"{theirs} Q0 d1 1 1.0 s\n")
    due = f"qrels and run share no query; the first are '{ours}' and '{theirs}'; give qrels of the "
    with pytest.raises(InputError) as refusal:
        command(*paths)
    assert refusal.value.exit_code == 7
    assert due in str(refusal.value)
    with pytest.raises(InputError, match=f"first are '{ours}' and '{theirs}'"):
        python({ours: {"d": 1}}, {theirs: {"d": 1.0}})


def test_queries_without_relevant_documents():
    run = "q1 Q0 d1 1 1.0 s\nq2 Q0 d1 1 1.0 s\n"
    assert command("-m", "map", *files("q1 0 d1 1\nq2 0 d1 0\n", run)) == (
        "map                   \tall\t0.5000\n",
        [NO_RELEVANT],
    )
    paths = files("q1 0 d1 2\nq2 0 d1 1\n", run)
    assert command("-l", "2", "-m", "map", *paths)[1] == [NO_RELEVANT]
    assert command("-l", "2", "-m", "ndcg", *paths)[1] == []  # gains ignore the level
    assert command("-l", "2", "-m", "ndcg", "-m", "map", *paths)[1] == [
        NO_RELEVANT.replace("value", "map")
    ]
    assert command("-l", "2", "-m", "num_ret", "-m", "utility", *paths)[1] == []
    data = {"q1": {"d1": 2}, "q2": {"d1": 1}}, {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}
    assert python(*data, level=2) == (0.5, [NO_RELEVANT])
    assert python(*data) == (1, [])


def test_missing_queries():
    due = (
        "1 of 2 queries of the qrels are not in the run; they are left out; pass {} to count them "
        "as 0 (the first is 'q2')"
    )
    paths = files("q1 0 d1 1\nq2 0 d1 1\n", "q1 Q0 d1 1 3.0 s\n")
    assert command("-m", "map", *paths)[1] == [due.format("--complete")]
    assert value_of(command("--complete", "-m", "map", *paths)[0]) == 0.5
    qrels, run = {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 3.0}}
    frame = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [3.0]})
    for form in (run, frame, "run"):
        assert python(qrels, form) == (1, [due.format("complete=True")])
        assert python(qrels, form, complete=True) == (0.5, [])
        with pytest.warns(QueryWarning, match="1 of 2 queries of the qrels"):
            trec.Evaluator(qrels, ["map"], ties="name").evaluate(form)
        with pytest.warns(QueryWarning, match="1 of 2 queries of the qrels"):
            trec.Evaluator(qrels, ["map"], ties="name").evaluate_ties(form)
    for options, value in (({}, 1), ({"complete": True}, 0.5)):
        evaluator = trec.Evaluator(
            {"q1": {"0": 1}, "q2": {"0": 1}}, ["map"], ties="name", **options
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row = evaluator.evaluate_scores(np.array([[2.0, 1.0]]), queries=["q1"], summary=True)
        assert row["map"] == value
        assert [str(w.message) for w in caught] == [due.format("complete=True")] * (not options)
    assert python(qrels, {}, complete=True) == (0, [])
    assert python({"q1": {"d1": 1}}, run | {"q0": {"d": 1.0}})[1] == [
        "1 of 2 queries of the run are not in the qrels; they are left out (the first is 'q0')"
    ]


def test_negative_judgements_under_judged_only():
    paths = files("q1 0 a 1\nq1 0 b -1\nq1 0 c -2\n", "q1 Q0 b 1 3 s\nq1 Q0 a 2 2 s\n")
    due = (
        "2 judgements are below 0 (the first is document 'b' of query 'q1'); {} drops such "
        "documents like those without a judgement"
    )
    assert command("-m", "map", *paths)[1] == []
    assert command("-J", "-m", "map", *paths)[1] == [due.format("--judged-only")]
    qrels, run = {"q1": {"a": 1, "b": -1, "c": -2}}, {"q1": {"b": 3.0, "a": 2.0}}
    assert python(qrels, run, judged_only=True) == (1, [due.format("judged_only=True")])


def test_lines_that_start_with_a_hash():
    paths = files(
        "# a comment of any words\nq1 0 d1 1\n#q2 0 d1 1\n",
        "#\nq1 Q0 d1 1 2 s\n#q2 Q0 d9 1 2 s\n#q2 Q0 d1 2 1 s\n",
    )
    out, (first, second) = command("-q", "-m", "map", *paths)
    assert value_of(out) == 1
    assert first.startswith(
        "1 line of qrels begins with # and was skipped; the first is '#q2 0 d1 1'"
    )
    assert second.startswith(
        "2 lines of run begin with # and were skipped; the first is '#q2 Q0 d9"
    )
    with pytest.warns(RunWarning, match="2 lines of run begin with #"):
        trec.read_run("run")
    files("q1 0 d1 1\n#q2 0 d1 1\n", "q1 Q0 d1 1 2 s\n#q2 Q0 d9 1 2 s\n#q2 Q0 d1 2 1 s\n")
    out, notes = command("--compat", "9", "-q", "-m", "map", *paths)  # the remedy
    assert (value_of(out), notes) == (0.75, [])
    assert python(*paths, compat=9) == (0.75, [])


# -- One thing is wrong, or nothing ---------------------------------------------------------------

FAULTS = ("ranks", "distances", "documents", "queries", "missing", "irrelevant", "hash")


@st.composite
def worlds(draw):
    """Qrels, lines of a run by descending score, and a fault or ""."""
    n_queries, n = draw(st.integers(2, 4)), draw(st.integers(3, 8))
    queries = [f"q{i}" for i in range(n_queries)]
    documents = [f"d{i}" for i in range(n)]
    first_rank = draw(st.sampled_from([0, 1]))
    ranked = draw(st.booleans())
    qrels = {q: {d: draw(st.integers(0, 2)) for d in documents} for q in queries}
    run = {}
    for query in queries:
        qrels[query][draw(st.sampled_from(documents))] = 1
        scores = draw(st.lists(st.integers(-50, 50), min_size=n, max_size=n, unique=True))
        order = sorted(zip(scores, documents, strict=True), reverse=True)
        run[query] = [[d, first_rank + i if ranked else 0, s] for i, (s, d) in enumerate(order)]
    return qrels, run, draw(st.sampled_from(("", *FAULTS))), draw(st.booleans())


def spoil(qrels, run, fault):
    """Change one thing; return whether values of the changed files differ from those meant."""
    rows = run["q0"]
    if fault == "ranks":
        for i, row in enumerate(rows):
            row[1] = [2, 1, 3, 4, 5, 6, 7, 8][i]
    if fault == "distances":
        for row in (row for rows in run.values() for row in rows):
            row[2] = -row[2]
    if fault == "documents":
        run.update({q: [["x" + d, r, s] for d, r, s in rows] for q, rows in run.items()})
    if fault == "queries":
        run["0" + "q1"] = run.pop("q1")
    if fault == "missing":
        del run["q1"]
    if fault == "irrelevant":
        qrels["q1"] = dict.fromkeys(qrels["q1"], 0)


@given(worlds())
def test_no_fault_is_silent_and_no_clean_file_is_not(world):
    qrels, run, fault, shuffled = world
    spoil(qrels, run, fault)
    if fault == "hash":
        qrels, run = ({q.replace("q1", "#q1"): v for q, v in d.items()} for d in (qrels, run))
    lines = [f"{q} Q0 {d} {r} {s} t\n" for q, rows in run.items() for d, r, s in rows]
    if shuffled and fault != "distances":  # without ranks, only the order shows distances
        lines = [line for i in (0, 1) for line in lines[i::2]]
    paths = files(
        "".join(f"{q} 0 {d} {v}\n" for q, row in qrels.items() for d, v in row.items()),
        "".join(lines),
    )
    value, found = python(*paths)
    assert bool(found) == bool(fault), (fault, found)
    assert command("-m", "map", *paths)[1] == [
        text.replace("complete=True", "--complete") for text in found
    ]
    frame = trec.read_run("run", as_="columns") if fault == "hash" else None
    if frame is None:
        data = {q: {d: float(s) for d, _, s in rows} for q, rows in run.items()}
        again, texts = python(qrels, data)
        assert again == value
        if fault not in ("ranks", "distances"):  # dicts have no ranks, and an order of their own
            assert texts == found


# -- Measures of answers, and runs that a graph filters --------------------------------------------


def said(qrels, run, measures, **options) -> list[tuple[str, str]]:
    """Category and text of each warning, which point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trec.evaluate(qrels, run, measures, **options)
    assert {warning.filename for warning in caught} <= {__file__}
    return [(warning.category.__name__, str(warning.message)) for warning in caught]


AS_LISTED = (
    "kg_ measures use ranks as listed: other answers in the qrels do not count, but answers known "
    "from other splits do, unless the run is filtered; {} filters it"
)
UNBOUNDED = "1 of 2 answers are not in the run; without {} their ranks are unbounded: low counts"


def test_measures_of_answers_say_in_python_what_the_command_says():
    paths = files("q 0 a 1\nq 0 b 1\n", "q Q0 x 1 2 t\nq Q0 a 2 1 t\n")
    _, lines = command("-m", "kg_mrr", *paths)
    due = [AS_LISTED.format("--graph"), UNBOUNDED.format("--n-entities") + " them as 0"]
    assert lines == due
    inputs = [
        paths,
        ({"q": {"a": 1, "b": 1}}, {"q": {"x": 2.0, "a": 1.0}}),
        (
            pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "label": [1, 1]}),
            pd.DataFrame({"qid": ["q", "q"], "docno": ["x", "a"], "score": [2.0, 1.0]}),
        ),
    ]
    due = [AS_LISTED.format("questions="), UNBOUNDED.format("entities=")]
    for qrels, run in inputs:
        found = said(qrels, run, ["kg_mrr"])
        assert [category for category, _ in found] == ["AnswerNote", "AnswerNote"]
        assert [text for _, text in found] == [due[0], due[1] + " them as 0"]
    bounded = said(*inputs[1], ["kg_mrr"], entities=9)
    assert bounded[1][1].endswith("low and high bound the metrics for every rank they may have")
    assert said(*inputs[1], ["map"]) == []


def test_a_graph_that_filters_says_what_it_removed():
    folder = Path("g")
    folder.mkdir()
    for split, text in (("train", "a\tr\tb\n"), ("valid", "b\tr\tc\n"), ("test", "a\tr\tc\n")):
        (folder / f"{split}.txt").write_text(text)
    paths = files("tail0 0 c 1\n", "tail0 Q0 b 1 3 t\ntail0 Q0 B 2 2 t\ntail0 Q0 c 3 1 t\n")
    out, lines = command("-m", "recip_rank", "--graph", "g", *paths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        questions = kgtrec.read_graph("g").questions()
    due = (
        "filtered by g: 1 documents that train, valid, test know left the run; 1 is not in the "
        "graph and keeps its place ('B')"
    )
    assert due in lines
    assert value_of(out) == 0.5
    assert said(*paths, ["recip_rank"], questions=questions) == [("AnswerNote", due)]


def test_a_graph_that_filters_doubts_queries_of_other_questions():
    """A query per triple has the name of another question, as has one of another split."""
    write = {"train": "a r b,b r c,c r d,d r a", "valid": "b r d", "test": "a r c,a r d,c r a"}
    Path("g").mkdir()
    for split, lines in write.items():
        text = lines.replace(" ", "\t").replace(",", "\n") + "\n"
        (Path("g") / f"{split}.txt").write_text(text)
    run = "tail0 Q0 b 1 3 t\ntail0 Q0 c 2 2 t\ntail1 Q0 d 1 2 t\ntail1 Q0 a 2 1 t\n"
    per_triple = files("tail0 0 c 1\ntail1 0 d 1\n", run)  # tail1 of the graph is (c, r, ?)
    _, lines = command("-m", "recip_rank", "--graph", "g", *per_triple)
    due = (
        "1 of 2 queries have relevant documents, but no answer of the question of that name in "
        "split 'test' (the first is 'tail1')"
    )
    assert any(due in line and "leave out --graph" in line for line in lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = kgtrec.read_graph("g")
    remarks = said(*per_triple, ["recip_rank"], questions=graph.questions())
    assert [category for category, _ in remarks] == ["AnswerNote", "QueryWarning"]
    as_dict = {"tail0": {"c": 1, "d": 1}, "tail1": {"a": 1, "b": 1}}  # judged beyond the split
    fitting = [*files("tail0 0 c 1\ntail1 0 a 1\n", run)]
    for qrels in (fitting[0], as_dict):
        assert len(said(qrels, fitting[1], ["recip_rank"], questions=graph.questions())) == 1
    of_valid = files("tail0 0 d 1\n", "tail0 Q0 d 1 3 t\n")
    assert len(said(*of_valid, ["recip_rank"], questions=graph.questions("valid"))) == 1
    per_split = files("tail0 0 a 1\n", "tail0 Q0 a 1 3 t\n")
    assert len(said(*per_split, ["recip_rank"], questions=graph.questions())) == 2


def test_names_of_columns_that_nobody_judged():
    with pytest.warns(RunWarning, match=r"none of documents= is judged; .*'x' there and '5' in"):
        row = trec.Evaluator({"q": {"5": 1}}, ["map"], documents=["x", "y"]).evaluate_scores(
            np.array([[1.0, 2.0]])
        )
    assert row == {"q": {"map": 0.0}}
    named = trec.Evaluator({"q": {"y": 1, "5": 1}}, ["map"], documents=["x", "y"])
    assert named.evaluate_scores(np.array([[1.0, 2.0]])) == {"q": {"map": 0.5}}


@pytest.mark.parametrize("measure", ["map", "infAP"])  # in the native core, and through lists
@pytest.mark.parametrize("documents", [None, ["0", "1", "10", "11", "12"]])
def test_numbers_of_documents_of_which_none_is_judged(measure, documents) -> None:
    qrels = {"q": {"0": 1, "1": 0}, "r": {"0": 1}}
    evaluator = trec.Evaluator(qrels, [measure], documents=documents)
    scores = np.arange(6.0).reshape(2, 3)
    numbers = np.array([[10, 11, 12], [12, 11, 10]] if documents is None else [[2, 3, 4]] * 2)
    with pytest.warns(RunWarning, match="none of documents= is judged; the first are '10' there"):
        evaluator.evaluate_scores(scores, numbers)
    numbers[1, 0] = 0  # one judged document anywhere is enough
    with warnings.catch_warnings():
        warnings.simplefilter("error", RunWarning)
        evaluator.evaluate_scores(scores, numbers)
