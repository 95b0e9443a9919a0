"""The table for users: keys, names, the list and the explanations; sums in pieces."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from question_cases import ranking_case
from rank_cases import make_ranks, no_trec, some_ranks
from slow import slow_after

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.measures import AVERAGINGS, METRICS, RANK_TYPES, Measure, averaging, headings, parse_all
from kgtrec.measures.calculator import Calculator
from kgtrec.measures.help import describe, explain_name
from kgtrec.measures.keys import fill_parameter, is_key
from kgtrec.measures.metric import RankMetric
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.trec.measures.names import TABLE, resolve

sides = st.sampled_from(["head", "tail", "both"])

kinds = st.sampled_from(sorted(RANK_TYPES))

exponents = st.floats(0, 1, exclude_min=True, exclude_max=True)

TREC_KEYS = [name for name, row in TABLE.items() if is_key(row)]

beta = st.floats(-1, 1).map(lambda x: x + 0.0)


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    side = draw(sides)
    if draw(st.booleans()):
        family = draw(st.sampled_from(TREC_KEYS))
        cut = {"rank": f"_{draw(st.integers(1, 10**6))}", "point": "_0.30"}
        return Measure(side, None, "macro", family + cut.get(TABLE[family].kind, ""))
    row = draw(st.sampled_from(METRICS))
    averaging = draw(st.sampled_from(row.averagings))
    params = (draw(beta), draw(beta)) if averaging == "stratified" else ()
    cut = st.integers(1, 10**8)
    parameter = draw({"k": cut, "k_n": st.tuples(cut, cut)}.get(row.parameter, exponents))
    side = "both" if averaging == "triple" else side
    return Measure(side, draw(kinds), averaging, row.name_with(parameter), params)


@given(measures())
def test_keys_read_back(measure: Measure) -> None:
    assert Measure.parse(str(measure)) == measure
    if measure.metric != "rbp":  # ir_measures uses the name RBP for another measure
        assert Measure.parse(str(measure).upper()) == measure
    assert eval(repr(measure)) == measure
    assert hash(eval(repr(measure))) == hash(measure)
    assert measure.title


SPELLINGS = {
    "both.realistic.micro.mrr": "both.realistic.micro.mrr",
    "both.micro.mrr": "both.realistic.micro.mrr",
    "Tail.Optimistic.Micro.Hits_At_10": "tail.optimistic.micro.hits@10",
    "tail.micro.hits.10": "tail.realistic.micro.hits@10",
    "both.micro.adjusted_mean_rank_index": "both.realistic.micro.amri",
    "both.macro.mrr": "both.realistic.macro.mrr",
    "both.stratified.mrr(0.5, 0.5)": "both.stratified.mrr(0.5,0.5)",
    "both.realistic.stratified.mrr(.5,0.50)": "both.stratified.mrr(0.5,0.5)",
    "both.expected.stratified.hits.10(-1,-0.0)": "both.expected.stratified.hits@10(-1,0)",
    "both.macro.MAP@20": "both.macro.map_cut_20",
    "both.macro.p_5": "both.macro.P_5",
    "head.macro.iprec_at_recall_0.1": "head.macro.iprec_at_recall_0.10",
    "mrr": "both.realistic.micro.mrr",
    "both.mrr": "both.realistic.micro.mrr",
    "tail.hits@10": "tail.realistic.micro.hits@10",
    "hits_at_10": "both.realistic.micro.hits@10",
    "hits.10": "both.realistic.micro.hits@10",
    "hits@10_50": "both.realistic.micro.hits@10_50",
    "Tail.Worst.Hits@10_50": "tail.pessimistic.micro.hits@10_50",
    "head.hits.10": "head.realistic.micro.hits@10",
    "expected.mrr": "both.expected.micro.mrr",
    "worst.hits_at_3": "both.pessimistic.micro.hits@3",
    "macro.mrr": "both.realistic.macro.mrr",
    "tail.macro.mrr": "tail.realistic.macro.mrr",
    "stratified.mrr(0.5,0.5)": "both.stratified.mrr(0.5,0.5)",
    "p_mrr(0.5)": "both.realistic.micro.p_mrr@0.5",
    "both.realistic.p_mrr(.50)": "both.realistic.micro.p_mrr@0.5",
    "both.question.p-MRR@0.25": "both.realistic.question.p_mrr@0.25",
    "both.stratified.pmrr@0.5(1,0)": "both.stratified.p_mrr@0.5(1,0)",
    "tail.expected.question.log-mrr": "tail.expected.question.log_mrr",
    "both.micro.adjusted_gmr": "both.realistic.micro.agmr",
    "both.triple.median": "both.realistic.triple.median_rank",
    "map": "both.macro.map",
    "head.MAP@20": "head.macro.map_cut_20",
    "map_cut.20": "both.macro.map_cut_20",
    "set_F.0.5": "both.macro.set_F_0.5",
    "RBP": "both.macro.rbp_p=0.8",
    "ndcg.1=3,2=9": "both.macro.ndcg_1=3,2=9",
}


def test_spellings() -> None:
    for written, key in SPELLINGS.items():
        assert str(Measure.parse(written)) == key, written


def test_what_no_command_line_gives() -> None:
    both = parse_all(["both.micro.mrr", "both.realistic.micro.mrr"])
    assert both == [Measure("both", "realistic", "micro", "mrr")]
    with pytest.raises(UsageError, match="needs a cutoff, 1 or more"):
        Measure.parse(f"both.micro.hits@{'9' * 5000}")


# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

# PyKEEN 1.11's keys for each side and rank type, without the cutoffs.
PYKEEN = {
    "adjusted_arithmetic_mean_rank": "amr",
    "adjusted_arithmetic_mean_rank_index": "amri",
    "adjusted_geometric_mean_rank_index": "agmri",
    "adjusted_inverse_harmonic_mean_rank": "adjusted_mrr",
    "arithmetic_mean_rank": "mr",
    "count": "count",
    "geometric_mean_rank": "gmr",
    "harmonic_mean_rank": "hmr",
    "inverse_arithmetic_mean_rank": "imr",
    "inverse_geometric_mean_rank": "igmr",
    "inverse_harmonic_mean_rank": "mrr",
    "inverse_median_rank": "inverse_median_rank",
    "median_absolute_deviation": "mad",
    "median_rank": "median_rank",
    "standard_deviation": "std",
    "variance": "var",
    "z_arithmetic_mean_rank": "z_mr",
    "z_geometric_mean_rank": "z_gmr",
    "z_inverse_harmonic_mean_rank": "z_mrr",
    "hits_at_1": "hits@1",
    "hits_at_10": "hits@10",
    "hits.5": "hits@5",
    "adjusted_hits_at_5": "adjusted_hits@5",
    "z_hits_at_3": "z_hits@3",
    "mean_reciprocal_rank": "mrr",
    "mean_rank": "mr",
    "adjusted_mean_rank_index": "amri",
    "amrr": "adjusted_mrr",
    "gmri": "agmri",
}


def test_pykeen_keys_are_micro() -> None:
    for (name, due), side, kind in product(PYKEEN.items(), ("head", "tail", "both"), RANK_TYPES):
        assert Measure.parse(f"{side}.{kind}.{name}").key == f"{side}.{kind}.micro.{due}"
    types = (("best", "optimistic"), ("avg", "realistic"), ("worst", "pessimistic"))
    for kind, ours in types:
        assert Measure.parse(f"both.{kind}.mean_rank").rank_type == ours


def test_names_are_nobodys_twice() -> None:
    names = [name for row in METRICS for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    families = {family.lower() for family in TABLE}
    assert not families & set(names)


def test_a_key_is_what_other_calls_accept() -> None:
    """One name, one column: in keys, in `trec.evaluate` and in `kgtrec eval -m`."""
    for name in (
        "AP@20",
        "map_cut.20",
        "RR@10",
        "judged@10",
        "rbp",
        "dcg",
        "unj_5",
        "RBP(p=0.8)",
        "RBP",
        "rbp.p=0.5",
        "nDCG@20",
        "Success@5",
        "utility.2,-1,0,0",
        "set_F.0.5",
        "ndcg.1=3,2=9",
        "num_q",
        "iprec_at_recall.0.1",
        "MAP",
        "11pt_avg",
        "R@5",
        "Judged@3",
    ):
        (column,) = resolve([name])
        assert Measure.parse(f"both.macro.{name}") == Measure.parse(f"both.macro.{column.name}")
        assert Measure.parse(f"both.macro.{name}").metric == column.name
        assert Measure("both", None, "macro", column.name).key == f"both.macro.{column.name}"


def test_every_key_has_a_value_as_trec_evaluate_gives_it() -> None:
    questions, scores = ranking_case(5)
    names = [
        name + {"rank": "_3", "point": "_0.40"}.get(TABLE[name].kind, "")
        for name in TREC_KEYS
        if name not in ("bpref", "gm_bpref", "infAP")  # ranks have no other judged documents
    ]
    keys = [f"both.macro.{name}" for name in names]
    result = kgtrec.evaluate(scores, questions, measures=keys, run_depth=30)
    due = kgtrec.trec.evaluate(questions, result.run, names, summary=True, compat=9)
    for name, key in zip(names, keys, strict=True):
        assert result[key] == pytest.approx(due[name], abs=1e-12), name


def test_every_name_is_explained() -> None:
    for row in METRICS:
        assert all(text.endswith(".") for text in (row.help, *row.caveats)), row.name
        assert all(name == name.lower() for name in row.aliases), row.name
        for name in (row.name, *row.aliases):
            assert describe(name)["name"] == row.name
            assert describe(fill_parameter(name).upper())["name"] == row.name
        text = explain_name(row.name)
        assert max(map(len, text.splitlines())) <= 80, row.name
        assert row.reference in text, row.name
        for key in describe(row.name)["keys"]:
            assert Measure.parse(key).row[0] == row, key
    for name in (*TREC_KEYS, "MAP@20", "p_5", "ndcg_cut"):
        facts = describe(name)
        assert facts["kind"] == "trec_eval measure", name
        assert all(Measure.parse(key).is_trec for key in facts["keys"]), name
    for name in (*AVERAGINGS, *RANK_TYPES, "head", "tail", "both"):
        assert describe(name)["name"] == name
        for key in describe(name)["keys"]:
            assert name in Measure.parse(key).key or name == "realistic", name


def test_the_list_has_everything() -> None:
    """tests/golden/cli/keys.txt has what the command explains, and what it refuses."""
    text, json_text = (
        CliRunner().invoke(cli, ["measures", *words], catch_exceptions=False).output
        for words in ([], ["--format", "json"])
    )
    assert max(map(len, text.splitlines())) <= 80
    words = text.split()
    for name in (*(row.name for row in METRICS), *AVERAGINGS, *RANK_TYPES, "bpref", "map_cut_k"):
        assert name in words
    assert "relstring," in words
    rows = json.loads(json_text)
    assert [row["name"] for row in rows["metrics"]] == [row.name for row in METRICS]
    assert rows["of_run_files_only"][:3] == ["runid", "relstring", "prefs_num_prefs_poss"]
    assert {"P_k", "map", "bpref"} <= {row["name"] for row in rows["trec_eval"]}


# -- Sums of some items at a time have the bits of those of all at once --------------------------

KEYS = (
    "mr",
    "mrr",
    "hits@10",
    "amri",
    "gmr",
    "head.mrr",
    "macro.mr",
    "macro.mrr",
    "macro.hits@3",
    "expected.macro.mr",
    "expected.macro.mrr",
    "expected.mrr",
    "macro_relation.mrr",
    "question.mrr",
    "both.realistic.relation.mrr",
    "triple.mrr",
    "median_rank",
    "std",
    "stratified.mrr(0.5,0.5)",
    "macro.map_cut_20",
    "macro.num_rel",
)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("size", "triples"), slow_after(2, [(7, 150), (100, 1_000), (1, 150), (1_500, 1_000)])
)
def test_pieces_have_the_bits_of_the_whole(size, triples, shuffled, monkeypatch) -> None:
    ranks = some_ranks(triples, shuffled)
    whole = [Result(ranks)[key] for key in KEYS]
    tables = Result(ranks).slice("relation").to_csv()
    monkeypatch.setattr(averaging, "_ITEMS", size)
    assert [Result(ranks)[key] for key in KEYS] == whole
    assert Result(ranks).slice("relation").to_csv() == tables


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_mean_is_that_of_every_cell_in_the_order_of_its_rows(shuffled: bool) -> None:
    """numpy's sum of the cells, by relation and side, one after the other."""
    ranks = some_ranks(1_000, shuffled)
    values = 1 / ranks.rank("realistic")
    order = np.lexsort((ranks.side, ranks.relation))
    cells, starts = np.unique(
        np.stack([ranks.relation, ranks.side])[:, order], axis=1, return_index=True
    )
    sums = np.add.reduceat(values[order], starts)
    assert Result(ranks)["mrr"] == sums.sum() / len(ranks)
    assert Result(ranks)["tail.mrr"] == sums[cells[1] == 1].sum() / (ranks.side == 1).sum()


# -- Columns of the table: directions, bases, headings ---------------------------------------------


def table_ranks(ranks: list[int]) -> Ranks:
    """Ranks without ties among ten candidates, tail side, one relation."""
    n = len(ranks)
    greater = np.array(ranks) - 1
    counts = {"greater": greater, "candidates": np.full(n, 10), "question": np.arange(n)}
    return make_ranks(counts | {"side": np.ones(n, np.int64), "triple": np.arange(n)})


def of_tails(metric: RankMetric, ranks: list[int]) -> float:
    parameter = {"k": 5, "k_n": (2, 5)}.get(metric.parameter, 0.5)
    key = f"tail.realistic.micro.{metric.name_with(parameter)}"
    return float(Calculator(table_ranks(ranks), no_trec).value(Measure.parse(key)))


def test_directions_follow_better_ranks() -> None:
    for metric in METRICS:
        gain = of_tails(metric, [4, 5, 10]) - of_tails(metric, [4, 6, 10])
        better = metric.higher_is_better
        assert gain > 0 if better else better is None or gain < 0, metric.name


def test_bases_order_systems_as_their_measures_do() -> None:
    systems = [[int(r) for r in row] for row in np.random.default_rng(1).integers(1, 11, (12, 3))]
    for metric in METRICS:
        if metric.base and (metric.of_mean is not None or metric.is_adjusted):
            name = metric.base_name_with(5 if metric.takes_cutoff else 0.5)
            base, _ = Measure.parse(f"micro.{name}").row
            values, bases = (np.array([of_tails(m, s) for s in systems]) for m in (metric, base))
            gains = np.sign(np.subtract.outer(values, values).round(12))
            opposite = metric.higher_is_better != base.higher_is_better
            due = np.sign(np.subtract.outer(bases, bases).round(12))
            assert np.array_equal(gains, -due if opposite else due), metric.name


def test_headings_of_columns_side_by_side() -> None:
    def titles(*keys: str, **options: bool) -> list[str]:
        return headings([Measure.parse(key) for key in keys], **options)

    assert titles("mrr", "hits@10", "stratified.mrr(0.5,0.5)") == [
        "MRR",
        "Hits@10",
        "strat-MRR(0.5,0.5)",
    ]
    assert titles("mrr", "macro.mrr", "MAP@20") == ["micro MRR", "macro MRR", "macro MAP@20"]
    both = ["both.realistic.micro.mrr", "tail.realistic.micro.mrr"]
    assert titles(*both) == both
    assert titles("expected.mrr", "mrr", sides=False) == [
        "expected.micro.mrr",
        "realistic.micro.mrr",
    ]
