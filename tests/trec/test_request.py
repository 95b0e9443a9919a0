"""The request behind `kgtrec eval` and `trec.evaluate`: what it asks for, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgtrec import trec
from kgtrec.cli import main
from kgtrec.errors import UsageError
from kgtrec.trec.eval import score as scoring
from kgtrec.trec.eval.request import Request, UnknownFormat
from kgtrec.trec.measures.definitions import FORMATS, OFFICIAL, TABLE
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.options import EvalOptions

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2, "d": 1}}
RUN = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"d": 3.0, "c": 2.0, "x": 1.0}}


@pytest.mark.parametrize("form", FORMATS)
def test_without_names_the_measures_are_those_of_the_format(form: str) -> None:
    columns = Request("qrels", ["run"], qrels_format=form).columns
    assert columns == resolve([OFFICIAL[form]], qrels_format=form)
    assert {TABLE[column.family].format for column in columns} <= {"any", FORMATS[form]}


def test_under_ties_the_default_is_what_has_a_form_there() -> None:
    every = Request("qrels", ["run"]).columns
    tied = Request("qrels", ["run"], ties="min").columns
    assert {c.name for c in every} - {c.name for c in tied} >= {"bpref", "gm_map"}
    assert {"map", "P_10"} <= {c.name for c in tied}
    with pytest.raises(UsageError, match="no form of bpref"):
        Request("qrels", ["run"], ["map", "bpref"], ties="min").check()


def test_micro_metrics_alone_leave_no_columns() -> None:
    request = Request("qrels", ["run"], ["kg_mrr"])
    assert request.columns == []
    assert [column.name for column in request.of_all] == ["kg_mrr_low", "kg_mrr_high"]
    request.check()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"entities": 5}, "--entities"),
        ({"measures": ["kg_mr"]}, "number of entities"),
        ({"measures": ["kg_mrr"], "zscores": "z"}, "no z-scores"),
        ({"measures": ["kg_mrr"], "qrels_format": "prefs"}, "judgements in groups"),
        ({"ties": "max", "qrels_format": "qrels_jg"}, "judgements in groups"),
        ({"qrels": "-", "runs": ["a", "-"]}, "only once"),
        ({"runs": ["-", Path("-")]}, "only once"),
        ({"measures": ["nothing"]}, "nothing"),
    ],
)
def test_what_cannot_be_done_is_said_before_reading(options: dict[str, Any], word: str) -> None:
    request = Request(**{"qrels": "none", "runs": ["none"], **options})
    with pytest.raises(UsageError, match=word):
        scoring.score(request)


def test_an_unknown_format_ends_with_trec_evals_code() -> None:
    with pytest.raises(UnknownFormat) as caught:
        Request("qrels", ["run"], qrels_format="pairs").check()
    assert caught.value.exit_code == 2


def test_several_runs_of_any_kind_are_scored_in_their_order() -> None:
    other = {"q1": {"b": 2.0, "a": 1.0}}
    both = scoring.score(Request(QRELS, [RUN, other], ["map"]))
    alone = [scoring.score(Request(QRELS, [run], ["map"]))[0] for run in (RUN, other)]
    assert [list(one.queries) for one in both] == [["q1", "q2"], ["q1"]]
    for one, two in zip(both, alone, strict=True):
        assert np.array_equal(one.values["map"], two.values["map"])


def test_the_command_line_and_python_ask_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 2\nq2 0 d 1\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 1 x\nq1 Q0 b 2 1 x\nq2 Q0 d 1 3 x\nq2 Q0 c 2 2 x\n")
    files = str(tmp_path / "qrels"), str(tmp_path / "run")
    requests: list[Request] = []
    real = scoring.score

    def noted(request: Request) -> list[scoring.Scored]:
        requests.append(request)
        return real(request)

    monkeypatch.setattr("kgtrec.trec.eval.score.score", noted)
    monkeypatch.setattr("kgtrec.trec.eval.evaluate.score", noted)
    flags = ["-l2", "-c", "-M", "3", "-N", "7", "--compat", "9", "-m", "map", "-m", "kg_mrr"]
    monkeypatch.setattr("sys.argv", ["kgtrec", "eval", *flags, *files])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    row = trec.evaluate(
        *files, ["map", "kg_mrr"], summary=True, level=2, complete=True, most=3, collection=7,
        compat=9,
    )  # fmt: skip
    one, two = requests
    assert one.options == two.options == EvalOptions(2, 7, 9, True, 3)
    assert (one.columns, one.micro) == (two.columns, two.micro)
    assert (one.per_query, one.summary) == (two.per_query, two.summary) == (False, True)
    printed = dict(line.split("\tall\t") for line in capsys.readouterr().out.splitlines())
    for name, text in printed.items():
        assert math.isclose(float(text), row[name.strip()], abs_tol=6e-5)
