"""A measure is one row: what is added to the table from outside, every part of kgtrec knows."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.measures import Measure, registry
from kgtrec.measures.help import describe
from kgtrec.measures.metric import Metric
from kgtrec.measures.tied_ranks import Ranked, Values
from kgtrec.trec.measures import ties
from kgtrec.trec.measures.binary import own_values
from kgtrec.trec.measures.bounds import why_unbounded
from kgtrec.trec.measures.definitions import TABLE
from kgtrec.trec.measures.family import PLACES, Family
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.qrels_rows import QRELS_ROWS
from kgtrec.trec.measures.relevant import View

# -- The one function, and the one row ----------------------------------------------------------


def double_hits(view: View, column: Column) -> np.ndarray:
    return 2.0 * view.hits.within(int(column.cutoff or 0))


ROW = Family(
    "Twice the relevant documents among the first k.",
    kind="rank", defaults=(3,), ours=True, function=double_hits, aliases=("DoubleHits",),
    at=("dh",), bounds=PLACES, in_pytrec_eval=False, from_ranks=True,
)  # fmt: skip

QRELS = {"q": {"a": 1, "b": 0, "c": 1}}
RUN = {"q": {"a": 2.0, "b": 2.0, "x": 1.0, "c": 0.5}}


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "double_hits", ROW)


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("name", ["double_hits_1", "double_hits.1", "DH@1", "dh@1"])
def test_every_spelling_is_known_everywhere(name: str) -> None:
    assert trec.evaluate(QRELS, RUN, [name]) == {"q": {"double_hits_1": 0.0}}  # b before a
    assert Measure.parse(f"both.macro.{name}").metric == "double_hits_1"
    assert describe(name)["help"] == ROW.text
    assert "double_hits_k" in CliRunner().invoke(cli, ["measures"]).stdout


@pytest.mark.usefixtures("added")
def test_the_command_line_knows_it(tmp_path) -> None:
    qrels, run = tmp_path / "q", tmp_path / "r"
    qrels.write_text("".join(f"q 0 {d} {r}\n" for d, r in QRELS["q"].items()))
    run.write_text("".join(f"q Q0 {d} 0 {s} t\n" for d, s in RUN["q"].items()))
    done = CliRunner().invoke(cli, ["eval", "-m", "double_hits.1,4", str(qrels), str(run)])
    assert done.stdout == (
        "double_hits_1         \tall\t0.0000\ndouble_hits_4         \tall\t4.0000\n"
    )
    # Its ties are found, and what has no expectation is not recommended one.
    assert "1 of 1 queries have ties that could change the asked measures\n" in done.stderr
    text = CliRunner().invoke(cli, ["eval", "-h", "-m", "double_hits"]).stdout
    assert ROW.text in text
    assert "Default: -m double_hits.3" in text


@pytest.mark.usefixtures("added")
def test_ties_bounds_and_ranks_follow_from_the_row() -> None:
    (column,) = resolve(["DoubleHits"])
    assert column.name == "double_hits_3"
    assert column.sees == 3
    assert why_unbounded(column) == ""
    assert not ties.has_tie_form(column, EvalOptions())
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 2], [0, 0, 3], [3, 0, 4]])
    questions = graph.questions()
    scores = np.random.default_rng(0).random((len(questions), graph.n_entities))
    result = kgtrec.evaluate(scores, questions, measures=["both.macro.double_hits_2"])
    alone = kgtrec.Result(result.ranks)
    precision = alone["both.macro.P_2"]
    assert result["both.macro.double_hits_2"] == alone["both.macro.double_hits_2"] == 4 * precision


def test_every_row_has_what_its_parts_name() -> None:
    view = View(*_lists())
    for column in resolve(QRELS_ROWS):
        if column.family != "runid":
            assert len(own_values(view, column)) == 1, column.name
    for name, row in TABLE.items():
        assert row.text.endswith((".", ")")), name
        assert row.ir_measures.partition("(")[0] == "" or row.format in ("qrels", "any")
    spelled = [alias for row in TABLE.values() for alias in row.aliases]
    before_at = [stem for row in TABLE.values() for stem in row.at]
    assert len(spelled) == len(set(spelled))
    assert len(before_at) == len(set(before_at))


def _lists():
    from kgtrec.trec.measures.judge import read_lists

    return read_lists(QRELS, RUN), EvalOptions()


# -- The same for a metric of ranks --------------------------------------------------------------


def square(ties: Ranked, rank_type: str, parameter: float) -> Values:
    from kgtrec.measures.item_values import mean_rank

    values = mean_rank(ties, rank_type, parameter)
    return Values(np.asarray(values.scaled / values.scale, np.float64) ** 2, 1)


def test_a_metric_of_ranks_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Metric(
        name="msr", title="MSR", help="Mean squared rank.", formula="sum r^2 / n",
        higher_is_better=False, range="[1, inf)", reference="here", averagings=("micro", "macro"),
        value=square, papers=("mean_squared_rank",),
    )  # fmt: skip
    for name in (row.name, *row.aliases):
        monkeypatch.setitem(registry._BY_NAME, name, row)
    assert registry.find_metric("mean_squared_rank") == (row, 0)
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 2], [0, 0, 3], [3, 0, 4]])
    questions = graph.questions()
    scores = np.random.default_rng(0).random((len(questions), graph.n_entities))
    result = kgtrec.evaluate(scores, questions)
    due = np.mean((result.ranks.greater + 1.0) ** 2)
    assert result["both.realistic.micro.mean_squared_rank"] == pytest.approx(due, rel=1e-14)
    assert describe("mean_squared_rank")["help"] == "Mean squared rank."
