"""Values over judged lists, the names of measures, and a measure as one row of the table."""

from __future__ import annotations

import time

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import examples
from question_cases import ranking_case
from trec_cases import Query, lists_of
from trec_oracle import measures as slow_measures

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.measures import Measure, keys
from kgtrec.measures.help import describe
from kgtrec.measures.metric import RankMetric
from kgtrec.measures.rank_metrics import mean_rank
from kgtrec.measures.ties import Ranked, Scaled
from kgtrec.trec.measures import pytrec_eval as bridge
from kgtrec.trec.measures import ties
from kgtrec.trec.measures import values as room
from kgtrec.trec.measures.bounds import why_unbounded
from kgtrec.trec.measures.names import (
    BadCutoff,
    Column,
    WrongFormat,
    help_text,
    resolve,
)
from kgtrec.trec.measures.relevant import Lists, View
from kgtrec.trec.measures.rows import FORMATS, QRELS_ROWS, TABLE, nickname
from kgtrec.trec.measures.trec_measure import PLACES, EvalOptions, TrecMeasure
from kgtrec.trec.measures.values import summary, values

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

CUTS = ",".join(map(str, (1, 2, 3, 5, 10, 20)))

GAINED = ("dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg", "G", "rbp")

GAINS = ("1=3,2=9,4=4.5", "0=0.25,1=0.5", "-1=1,-2=2", "1=-2,3=0")

WITH_PARAMETERS = [
    *(
        f"{f}.{CUTS}"
        for f in (
            "P",
            "recall",
            "success",
            "relative_P",
            "map_cut",
            "ndcg_cut",
            "relative_map",
            "map_hits",
            "F1",
            "recip_rank_cut",
            "judged",
            "unj",
        )
    ),
    "set_F.0.5",
    "utility.2,-1,0.5,3",
    "11pt_avg..25,.5,.75",
    "rbp.p=0.5",
    "rbp_resid.p=0.5",
    "relstring.3",
    *(f"{family}.{gains}" for family in GAINED for gains in GAINS),
]

PLAIN = [name for name in QRELS_ROWS if name != "runid"]

COLUMNS = [*resolve(WITH_PARAMETERS), *(c for c in resolve(PLAIN) if c.row.kind != "rank")]

FED = [c for c in resolve(nickname("all_trec", 9)) if bridge.can_supply(c, EvalOptions(compat=9))]


@st.composite
def queries(draw: st.DrawFn, highest: int = 5) -> Query:
    """All unjudged, none retrieved, graded and negative ones, one document, many documents."""
    grade = draw(
        st.sampled_from(
            [st.integers(-3, highest), st.integers(0, 1), st.just(1), st.integers(-2, 0)]
        )
    )
    some = draw(st.sampled_from([st.none(), grade, st.none() | grade]))
    shown = draw(st.lists(some, max_size=draw(st.sampled_from([1, 4, 40]))))
    missed = draw(st.lists(grade, max_size=8))
    judged = [r for r in shown if r is not None] + missed
    return (shown, judged) if judged else (shown, [0])


many = st.lists(queries(), min_size=1, max_size=4)
# More non-relevant documents than relevant ones before a relevant one; half an answer is recalled.
BEFORE, HALF = [([0, 0, 1], [0, 0, 1])], [([1, 1, 0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 1, 1, 1])]


@examples(1.5)
@given(
    some=many,
    level=st.integers(0, 7),
    compat=st.sampled_from([9, 10]),
    collection=st.integers(0, 99),
)
@example(some=HALF, level=1, compat=9, collection=9)
@example(some=HALF, level=1, compat=10, collection=9)
def test_own_measures_against_definitions(some, level, compat, collection) -> None:
    options = EvalOptions(level, collection, compat)
    got = values(lists_of(some), COLUMNS, options)
    for i, (shown, judged) in enumerate(some):
        due = slow_measures(shown, judged, level, compat, collection)
        assert {column.name for column in COLUMNS} <= due.keys()
        for name, column in got.items():
            if isinstance(due[name], str):
                assert column[i] == due[name]
            else:
                assert column[i] == pytest.approx(due[name], rel=1e-12, abs=1e-12, nan_ok=True), (
                    name
                )


@examples(1.5)
@given(some=many, level=st.integers(0, 7))
@example(some=BEFORE, level=1)
def test_native_takeover_has_the_bits_of_pytrec_eval(some, level) -> None:
    lists = lists_of(some)
    ours = values(lists, FED, EvalOptions(level, compat=9))
    theirs = bridge.foreign_values(lists, FED, EvalOptions(level, compat=9))
    assert {"map", "bpref", "infAP", "G", "ndcg_cut_5", "iprec_at_recall_0.30"} <= {*theirs}
    for name, column in theirs.items():
        np.testing.assert_array_equal(ours[name], column, name)


def large(n_queries: int = 40, depth: int = 300) -> Lists:
    rng = np.random.default_rng(7)
    some = []
    for _ in range(n_queries):
        row = rng.integers(-2, 4, rng.integers(0, depth))
        shown = [
            None if x else int(r) for r, x in zip(row, rng.random(len(row)) < 0.6, strict=True)
        ]
        judged = [r for r in shown if r is not None] + rng.integers(-2, 4, 30).tolist()
        some.append((shown, judged))
    return lists_of(some)


def test_long_lists_whole_and_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    lists, options = large(), EvalOptions(compat=9)
    ours, theirs = (of(lists, FED, options) for of in (values, bridge.foreign_values))
    whole = values(lists, COLUMNS) | theirs
    assert summary(ours, FED) == summary(theirs, FED)
    monkeypatch.setattr(room, "_PART_DOCUMENTS", 100)
    monkeypatch.setattr(bridge, "_PIECE_DOCUMENTS", 100)
    monkeypatch.setattr(bridge, "_PIECE_QUERIES", 3)
    parts = values(lists, COLUMNS) | bridge.foreign_values(lists, FED, options)
    for one, other in ((ours, theirs), (whole, parts)):
        assert list(one) == list(other)
        for name, column in one.items():
            np.testing.assert_array_equal(column, other[name], name)


def test_relevances_of_millions_cost_nothing() -> None:
    lists = lists_of([([5_000_000, None, 3_000_000], [5_000_000, 3_000_000, 1])])
    start = time.process_time()  # not of other processes on this machine
    got = bridge.foreign_values(lists, resolve(["all_trec"]), EvalOptions(compat=9))
    assert time.process_time() - start < 2
    due = slow_measures([50, None, 30], [50, 30, 0])
    assert got["ndcg"][0] == pytest.approx(due["ndcg"], rel=1e-6)
    assert got["map"][0] == pytest.approx((1 + 2 / 3) / 3)


def test_lists_hold_what_measures_see() -> None:
    lists = lists_of([([1] * 10, [1] * 20)], retrieved=[30])
    got = values(lists, resolve(["P_5", "P_10", "num_ret"]))
    assert got["num_ret"].tolist() == [30]
    assert values(lists, resolve(["map"]), EvalOptions(most=10))["map"].tolist() == [0.5]
    assert values(lists_of([]), COLUMNS)["map"].shape == (0,)


@pytest.mark.parametrize("name", ["level", "collection", "most", "compat"])
def test_options_are_whole_numbers_that_can_be(name: str) -> None:
    for wrong in ("2", 1.5, 2.0, (1,), 2**63, np.float64(1)):
        with pytest.raises(UsageError, match=f"{name}=.* is not a whole number within 64 bits"):
            EvalOptions(**{name: wrong})  # type: ignore[arg-type]
    wrong = 8 if name == "compat" else -1
    with pytest.raises(UsageError, match=str(wrong)):
        EvalOptions(**{name: wrong})
    assert getattr(EvalOptions(**{name: np.int64(9)}), name) == 9  # type: ignore[arg-type]


def test_measures_of_other_formats_are_refused_by_name() -> None:
    for name, row in TABLE.items():
        for form, own in FORMATS.items():
            if row.format in ("any", own):
                assert {
                    column.measure for column in resolve([name], qrels_format=form, of_answers=True)
                } == {name}
                continue
            with pytest.raises(WrongFormat, match=f"Can't calculate measure '{name}'") as caught:
                resolve([name], qrels_format=form, of_answers=True)
            assert caught.value.exit_code == 4


def test_numbers_beyond_those_of_a_float_are_no_cutoffs() -> None:
    for name in ("Rprec_mult", "P", "set_F", "kg_hits"):
        with pytest.raises(BadCutoff, match="must be"):
            resolve([f"{name}_{'9' * 400}"], of_answers=True)


def test_help_of_every_measure() -> None:
    text = help_text(resolve(TABLE, qrels_format=None, of_answers=True))
    assert [line for line in text.splitlines() if not line.startswith(" ")] == list(TABLE)
    assert max(map(len, text.splitlines())) <= 80
    assert "Default: -m utility.1,-1,0,0" in text
    assert "Printed in the summary only" in help_text([Column("gm_map")])


@pytest.mark.parametrize("sizes", [(9000, 1), (1, 9000, 1, 20000)])
def test_names_of_queries_may_differ_in_length_by_much(sizes, tmp_path) -> None:
    """Space for lines is computed before writing, from the name of each query."""
    run = {str(i) * size: {f"d{j}": -float(j) for j in range(50)} for i, size in enumerate(sizes)}
    trec.write_run(run, tmp_path / "run")
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert [(line[0], line[2]) for line in lines] == [
        (query, document) for query, documents in run.items() for document in documents
    ]


# -- The one function, and the one row ----------------------------------------------------------


def double_hits(view: View, column: Column) -> np.ndarray:
    near = view.hits.query[view.hits.rank < int(column.cutoff or 0)]
    return 2.0 * np.bincount(near, minlength=len(view.num_rel))


ROW = TrecMeasure(
    "Twice the relevant documents among the first k.",
    kind="rank",
    defaults=(3,),
    ours=True,
    function=double_hits,
    aliases=("DoubleHits",),
    at=("dh",),
    bounds=PLACES,
)

QRELS = {"q": {"a": 1, "b": 0, "c": 1}}

RUN = {"q": {"a": 2.0, "b": 2.0, "x": 1.0, "c": 0.5}}


def test_a_row_that_is_added_is_known_everywhere(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(TABLE, "double_hits", ROW)
    for name in ("double_hits_1", "double_hits.1", "DH@1", "dh@1"):
        key = name if "@" in name else "double_hits_1"
        assert trec.evaluate(QRELS, RUN, [name]) == {"q": {key: 0.0}}  # b before a
        assert Measure.parse(f"both.macro.{name}").metric == "double_hits_1"
        assert describe(name)["help"] == ROW.text
    (column,) = resolve(["DoubleHits"])
    assert resolve(["DH@3"]) == [column]  # which must not be remembered
    assert (column.name, column.sees, why_unbounded(column)) == ("double_hits_3", 3, "")
    assert not ties.has_tie_form(column, EvalOptions())
    questions, scores = ranking_case(0)
    result = kgtrec.evaluate(scores, questions, measures=["both.macro.double_hits_2"])
    alone = kgtrec.Result(result.ranks)
    precision = alone["both.macro.P_2"]
    assert result["both.macro.double_hits_2"] == alone["both.macro.double_hits_2"] == 4 * precision

    def printed(*words: str) -> Result:
        return CliRunner().invoke(cli, words)

    files = str(tmp_path / "q"), str(tmp_path / "r")
    trec.write_qrels(QRELS, files[0])
    trec.write_run(RUN, files[1])
    done = printed("eval", "-m", "double_hits.1,4", *files)
    assert done.stdout == (
        "double_hits_1         \tall\t0.0000\ndouble_hits_4         \tall\t4.0000\n"
    )
    # Its ties are found; measures without an expectation get no advice to use one.
    assert "1 of 1 queries have ties that could change these measures\n" in done.stderr
    text = printed("eval", "-h", "-m", "double_hits").stdout
    assert ROW.text in text
    assert "Default: -m double_hits.3" in text
    assert "double_hits_k" in printed("measures").stdout
    monkeypatch.undo()
    with pytest.raises(UsageError, match="DH@3"):
        resolve(["DH@3"])


def test_every_row_has_what_its_parts_name() -> None:
    for name, row in TABLE.items():
        assert row.text.endswith((".", ")")), name
        assert row.ir_measures.partition("(")[0] == "" or row.format in ("qrels", "any")
    for names in ("aliases", "at"):
        spelled = [one for row in TABLE.values() for one in getattr(row, names)]
        assert len(spelled) == len(set(spelled))


# -- The same for a metric of ranks --------------------------------------------------------------


def square(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    values = mean_rank(ties, rank_type, parameter)
    return Scaled(np.asarray(values.scaled / values.scale, np.float64) ** 2, 1)


def test_a_metric_of_ranks_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = RankMetric(
        name="msr",
        title="MSR",
        help="Mean squared rank.",
        formula="sum r^2 / n",
        higher_is_better=False,
        range="[1, inf)",
        reference="here",
        averagings=("micro", "macro"),
        value=square,
        papers=("mean_squared_rank",),
    )
    for stem in row.stems:
        monkeypatch.setitem(keys.STEMS, stem, row)
    assert keys.find_metric("mean_squared_rank") == (row, 0)
    questions, scores = ranking_case(0)
    result = kgtrec.evaluate(scores, questions)
    due = np.mean(result.ranks.rank() ** 2)
    assert result["both.realistic.micro.mean_squared_rank"] == pytest.approx(due, rel=1e-14)
    assert describe("mean_squared_rank")["help"] == "Mean squared rank."
