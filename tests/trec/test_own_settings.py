"""Measures with their own level or judged-only lists, and the names and order of values."""

from __future__ import annotations

import json

import ir_measures
import numpy as np
import pytest
from click.testing import CliRunner
from question_cases import ranking_case

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.study import samples_of_ranks, samples_of_runs
from kgtrec.trec.measures.judge import read_lists
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.ties import values_over_ties
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import values

THEIRS = (
    *("AP", "AP(rel=2)", "AP(rel=3)", "AP(rel=2)@5", "AP(judged_only=True)"),
    *("P(rel=2)@5", "P@5", "P(rel=3,judged_only=True)@3", "RR(rel=2)", "RR(rel=2)@3"),
    *("Rprec(rel=2)", "Bpref(rel=2)", "Bpref(rel=3)", "infAP(rel=2)", "Success(rel=3)@5"),
    *("SetP(rel=2)", "SetP(rel=2,relative=True)", "SetR(rel=2)", "SetF(rel=2,beta=0.5)"),
    *("SetAP(rel=3)", "NumRet(rel=2)", "NumRet", "R(judged_only=True)@5"),
    *("nDCG(judged_only=True)@5", "nDCG@10", "IPrec(judged_only=True)@0.5"),
)
"""Names that ir_measures' own providers compute by pytrec_eval (RR with a cutoff: msmarco)."""


def graded_case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Qrels of levels 0 to 3 and a run without ties, also of documents that nobody judged."""
    rng = np.random.default_rng(seed)
    names = [f"d{i:02}" for i in range(30)]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in ("q1", "q2", "q3", "q4"):
        judged = rng.choice(30, 14, replace=False)
        qrels[query] = {names[i]: int(rng.integers(0, 4)) for i in judged}
        listed = rng.permutation(30)[:22]
        run[query] = {names[i]: float(22 - rank) for rank, i in enumerate(listed)}
    return qrels, run


@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_ir_measures(seed: int) -> None:
    qrels, run = graded_case(seed)
    # The names are expressions of Python. ir_measures 0.4.3 cannot parse parameters on Python 3.14.
    measures = [eval(name, {**vars(ir_measures)}) for name in THEIRS]
    # recall points as in pytrec_eval
    rows = trec.evaluate(qrels, run, THEIRS, compat=9)
    objects = trec.evaluate(qrels, run, measures, compat=9)
    due: dict[str, dict[str, float]] = {query: {} for query in qrels}
    for measure in measures:
        name = "msmarco" if measure.NAME == "RR" and "cutoff" in measure.params else "pytrec_eval"
        for metric in ir_measures.providers.registry[name].iter_calc([measure], qrels, run):
            due[metric.query_id][str(measure)] = metric.value
    for query, row in rows.items():
        assert list(row) == list(THEIRS)
        for name, measure in zip(THEIRS, measures, strict=True):
            assert row[name] == due[query][str(measure)], name
            assert row[measure] == row[str(measure)] == row[name]
            assert objects[query][str(measure)] == row[name]
            assert measure in row
            assert row.get(measure) == row[name]


def test_a_level_is_that_of_the_whole_evaluation() -> None:
    """Also of values over ties, with -M and -J, and of measures that ir_measures lacks."""
    qrels, run = graded_case(7)
    run = {query: {d: float(int(s) // 3) for d, s in row.items()} for query, row in run.items()}
    lists = read_lists(qrels, run)
    for most in (None, 8):
        for judged_only in (False, True):
            options = EvalOptions(most=most)
            at_2 = EvalOptions(level=2, most=most, judged_only=judged_only)
            setting = "(rel=2,judged_only=True)" if judged_only else "(rel=2)"
            plain = resolve(["map", "bpref", "P_5", "Rprec_mult_0.60", "set_F_0.5", "infAP"])
            own = resolve([f"{column.name}{setting}" for column in plain])
            assert [column.name for column in own] == [f"{c.name}{setting}" for c in plain]
            pairs = [(values(lists, plain, at_2), values(lists, own, options))]
            pairs += [
                tuple(
                    values_over_ties(lists, columns, how, ties=ties)
                    for columns, how in ((plain, at_2), (own, options))
                )
                for ties in ("expected", "min", "max")
            ]
            for due, got in pairs:
                assert [row.tolist() for row in got.values()] == [
                    row.tolist() for row in due.values()
                ]


def test_rbp_with_a_level_counts_relevant_documents_as_1() -> None:
    qrels, run = {"q": {"a": 3, "b": 1, "c": 2}}, {"q": {"a": 4.0, "b": 3.0, "x": 2.0, "c": 1.0}}
    row = trec.evaluate(qrels, run, ["RBP(rel=2)", "RBP(rel=1,p=0.5)"])["q"]
    assert row["RBP(rel=2)"] == pytest.approx(0.2 * (1 + 0.8**3), rel=1e-14)
    assert row["RBP(rel=1,p=0.5)"] == pytest.approx(0.5 * (1 + 0.5 + 0.5**3), rel=1e-14)


def test_every_path_of_an_evaluator_knows_levels() -> None:
    qrels, run = graded_case(3)
    names = ["P(rel=2)@5", "AP(rel=3)", "AP"]
    evaluator = trec.Evaluator(qrels, names, documents=[f"d{i:02}" for i in range(30)])
    rows = evaluator.evaluate(run)
    assert rows == trec.evaluate(qrels, run, names)
    scores = np.array([[run[q].get(f"d{i:02}", np.nan) for i in range(30)] for q in qrels])
    assert evaluator.evaluate_scores(scores) == rows
    assert evaluator.evaluate_ties(run).expected == rows
    summary = evaluator.evaluate(run, summary=True)
    assert summary == trec.summarise(rows, names)
    assert list(summary) == names
    (first, second) = samples_of_runs(qrels, {"a": run, "b": run}, names[:2])
    assert (first.name, second.name) == tuple(names[:2])
    assert first.values[:, 0].tolist() == [row["P(rel=2)@5"] for row in rows.values()]


QRELS = {"q": {"a": 2, "b": 1}}
RUN = {"q": {"b": 2.0, "a": 1.0}}


def test_values_are_named_and_ordered_as_asked() -> None:
    asked = ["nDCG@10", "AP", "P_10", "Rprec_mult.0.2", "P@1,2", "AP(rel=2)@5", "MRR"]
    keys = ["nDCG@10", "AP", "P_10", "Rprec_mult_0.20", "P@1", "P@2", "AP(rel=2)@5", "MRR"]
    assert list(trec.evaluate(QRELS, RUN, asked)["q"]) == keys
    assert list(trec.evaluate(QRELS, RUN, asked, summary=True)) == keys
    assert list(trec.evaluate(QRELS, RUN, asked, as_="frame").columns) == keys
    row = trec.evaluate(QRELS, RUN, asked)["q"]
    for spellings in (("nDCG@10", "ndcg_cut_10", "ndcg_cut.10"), ("AP", "map", "MAP"), ("P@1",)):
        assert len({row[name] for name in spellings}) == 1
        assert all(name in row for name in spellings)
        assert {row.get(name) for name in spellings} == {row[spellings[0]]}
    assert "AP(rel=2)" not in row
    assert row.get("AP(rel=2)", "none") == "none"
    # What is asked twice has its first name; the default cutoffs do not add to given ones.
    assert list(trec.evaluate(QRELS, RUN, ["map", "P", "AP", "P.5"])["q"]) == ["AP", "P_5"]


@pytest.fixture
def files(tmp_path) -> tuple[str, str]:
    names = str(tmp_path / "q"), str(tmp_path / "r")
    trec.write_qrels(QRELS, names[0])
    trec.write_run(RUN, names[1])
    return names


def printed(*words: str) -> str:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_lines_are_as_asked_unless_all_names_are_those_of_trec_eval(files) -> None:
    def names(*words: str) -> list[str]:
        return [line.split()[0] for line in printed("eval", *words, *files).splitlines()]

    assert names("-m", "ndcg_cut.10", "-m", "map") == ["map", "ndcg_cut_10"]
    assert names("-m", "nDCG@10,AP") == ["nDCG@10", "AP"]
    assert names("-m", "ndcg_cut.10,AP(rel=2),map") == ["ndcg_cut_10", "AP(rel=2)", "map"]
    assert names("-m", "AP,nDCG(dcg='exp-log2',judged_only=True)@5,P(rel=2)@1") == [
        *("AP", "nDCG(dcg='exp-log2',judged_only=True)@5", "P(rel=2)@1"),
    ]
    data = json.loads(printed("eval", "--format", "json", "-m", "nDCG@10,map,AP(rel=2)", *files))
    assert data[files[1]]["summary"].keys() == {"nDCG@10", "map", "AP(rel=2)"}
    assert list(data[files[1]]["summary"]) == ["nDCG@10", "map", "AP(rel=2)"]
    table = printed("eval", "--format", "csv", "-m", "ndcg_cut.10,map", *files).splitlines()
    assert [line.split(",")[0] for line in table] == ["measure", "ndcg_cut_10", "map"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nDCG(rel=2)@5", "ndcg_cut takes no rel, because it uses gains, not a level"),
        ("Judged(rel=2)@5", "judged takes no rel, because no level changes it"),
        ("num_q(rel=2)", "num_q takes neither rel nor judged_only"),
        ("kg_mrr(rel=2)", "kg_mrr takes neither rel nor judged_only"),
        ("AP(rel=x)", "rel must be a whole number from 0, as in AP(rel=2)"),
        ("AP(rel=-1)", "rel must be a whole number from 0, as in AP(rel=2)"),
        ("AP(judged_only=yes)", "judged_only must be True or False"),
        ("AP(foo=3)", "kgtrec does not compute AP with these parameters; it knows rel"),
        ("SetF(relative=True)", "SetF(relative=True)"),
        ("P(rel=2)@0", "cutoffs must be whole numbers from 1"),
        ("nope(rel=2)@5", "unknown measure 'nope(rel=2)@5'"),
    ],
)
def test_what_a_measure_cannot_have_is_refused(name: str, problem: str, files) -> None:
    with pytest.raises(UsageError) as caught:
        trec.Evaluator(QRELS, [name])
    assert problem in str(caught.value)
    done = CliRunner().invoke(cli, ["eval", "-m", name, *files])
    assert isinstance(done.exception, UsageError)
    assert problem in str(done.exception)
    assert done.stdout == ""


def test_queries_without_a_document_of_an_own_level_are_told(files) -> None:
    with pytest.warns(UserWarning, match="no document of relevance 3 or more") as told:
        trec.evaluate(QRELS, RUN, ["AP", "AP(rel=3)"])
    (warning,) = told
    assert str(warning.message) == (
        "1 of 1 queries has no document of relevance 3 or more (q); its AP(rel=3) is 0 whatever "
        "the run does"
    )


# -- Measures that ranks cannot give ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["bpref", "infAP", "gm_bpref"])
def test_ranks_give_no_measure_of_judged_documents_that_are_not_relevant(name: str) -> None:
    """It would be 1, or the like, whatever the scores are: also with a run, and to compare by."""
    questions, scores = ranking_case(0)
    result = kgtrec.evaluate(scores, questions)
    problem = "needs judged documents that are not relevant, but ranks have only answers"
    with pytest.raises(UsageError, match=problem) as caught:
        result[name]
    assert f"kgtrec eval QRELS RUN -m {name}" in str(caught.value)
    with pytest.raises(UsageError, match=problem):
        kgtrec.evaluate(scores, questions, measures=[name])
    if name != "gm_bpref":  # no mean over questions
        with pytest.raises(UsageError, match=problem):
            samples_of_ranks({"a": result.ranks, "b": result.ranks}, [name])


def test_ranks_have_one_level_for_all_measures() -> None:
    questions, scores = ranking_case(0)
    result = kgtrec.evaluate(scores, questions)
    for name in ("AP(rel=2)", "both.macro.P(rel=2)@5", "P(judged_only=True)@5"):
        with pytest.raises(UsageError, match=r"for rel= or judged_only=, evaluate a run"):
            result[name]
    assert result["RBP(p=0.5)"] == result["rbp_p=0.5"]


def test_all_is_both_of_a_graph() -> None:
    questions, scores = ranking_case(0)
    result = kgtrec.evaluate(scores, questions)
    assert result["all.mrr"] == result["both.mrr"]
    assert result["all.AP"] == result["both.macro.map"]
    asked = kgtrec.evaluate(scores, questions, measures=["all.mrr", "both.mrr", "head.mr"])
    assert list(asked) == ["both.realistic.micro.mrr", "head.realistic.micro.mr"]
