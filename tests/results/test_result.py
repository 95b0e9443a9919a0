"""Result: keys, forms of output, slices, and the text that people read."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from rank_cases import Case, cases, columns, make_ranks

from kgtrec._internal.table import Table, stacked
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.results.result import Result

LABELS = ["/film/film/release_date_s./film/film_regional_release_date/film_release_region", "b|&_"]
FACTS = {
    "split": "test",
    "filter_splits": ["train", "valid", "test"],
    "n_entities": 30,
    "triples": {"train": 50, "valid": 5, "test": 40},
}


def random_case(sides: tuple[int, ...] = (0, 1)) -> Case:
    random = np.random.default_rng(5)
    drawn = zip(*(random.integers(0, n, 40).tolist() for n in (30, 2, 30)), strict=True)
    triples = sorted(set(drawn))
    questions = sorted({Case.ask(side, t)[0] for side in sides for t in triples})
    return Case(30, triples, {q: random.integers(0, 20, 30).tolist() for q in questions}, sides)


@pytest.fixture(scope="module")
def result() -> Result:
    return make_result()


def make_result(sides: tuple[int, ...] = (0, 1), **more: object) -> Result:
    ranks = make_ranks(
        columns(random_case(sides)), manifest={"questions": FACTS}, relation_labels=LABELS
    )
    return Result(ranks, **more)  # type: ignore[arg-type]


def average_precision(case: Case, question: tuple[int, int, int]) -> float:
    answers, hits, total = case.answers(question), 0, 0.0
    for place, entity in enumerate(case.order(question)[:20], 1):
        if entity in answers:
            hits += 1
            total += hits / place
    return total / len(answers)


@given(cases())
def test_map_and_ndcg_follow_from_ranks_alone(case: Case) -> None:
    result = Result(make_ranks(columns(case, 4)))
    for side in result.sides:
        questions = {(r["side"], r["given"], r["relation"]) for r in case.of_side(side)}
        due = math.fsum(average_precision(case, q) for q in questions) / len(questions)
        assert result[f"{side}.macro.map_cut_20"] == pytest.approx(due, rel=1e-12)
        assert 0 <= result[f"{side}.macro.ndcg_cut_20"] <= 1 + 1e-12


# --- mapping --------------------------------------------------------------------------------------


def test_it_is_a_mapping_of_canonical_keys(result: Result) -> None:
    assert len(result) == len(list(result)) == len(set(result)) == len(result.keys())
    assert all(str(Measure.parse(key)) == key for key in result)
    assert dict(result.items()) == result.to_dict()
    for key in [
        "both.realistic.micro.mrr",
        "tail.optimistic.micro.hits@10",
        "both.expected.micro.mrr",
        "both.macro.map_cut_20",
        "both.stratified.mrr(0.5,0.5)",
    ]:
        assert key in list(result)
    assert isinstance(result["both.realistic.micro.mrr"], float)


def test_any_key_is_computed_on_demand(result: Result) -> None:
    assert "both.micro.hits_at_7" in result
    assert "both.micro.hits_at_7" not in list(result)
    assert result["both.micro.hits_at_7"] == result["both.realistic.micro.hits@7"]
    assert result[Measure.parse("both.micro.mrr")] == result["both.micro.mrr"]
    assert "nonsense" not in result
    assert 3 not in result
    with pytest.raises(UsageError, match="did you mean"):
        result["both.micro.mmr"]


def test_values_of_both_sides_lie_between(result: Result) -> None:
    head, tail, both = (result[f"{side}.micro.mr"] for side in ("head", "tail", "both"))
    assert min(head, tail) <= both <= max(head, tail)
    order = [result[f"both.{kind}.micro.mrr"] for kind in ("pessimistic", "expected", "optimistic")]
    assert order == sorted(order)


def test_one_side_only() -> None:
    result = make_result(sides=(1,))
    assert result.sides == ("tail",)
    assert all(key.startswith("tail.") for key in result)
    assert "both.micro.mrr" not in result
    assert "tail side" in str(result)
    assert len(result.slice("side")) == 1
    assert len(result.slice("relation")) == 2


def test_asked_measures_are_listed_alone() -> None:
    result = make_result(measures=["both.micro.mrr", "tail.macro.MAP@20"])
    assert list(result) == ["both.realistic.micro.mrr", "tail.macro.map_cut_20"]
    assert "tail.macro.map_cut_20" in str(result)
    assert "AMRI" not in str(result)
    assert make_result(measures=["both.macro.bpref"]).to_dict() == {"both.macro.bpref": 1.0}
    with pytest.raises(UsageError, match="have only tail"):
        make_result(sides=(1,), measures=["both.micro.mrr"])


def test_given_trec_values_are_used() -> None:
    n = len(np.unique(make_result().ranks.question))
    result = make_result(trec_values={"map": np.linspace(0, 1, n)})
    assert result["both.macro.map"] == pytest.approx(0.5)
    with pytest.raises(InputError, match=f"map has 3 values, but the ranks have {n} questions"):
        make_result(trec_values={"map": np.zeros(3)})["both.macro.map"]


# --- forms ----------------------------------------------------------------------------------------


def undefined() -> Result:
    """One entity: nothing to rank, so AMRI is undefined."""
    return Result(make_ranks(columns(Case(1, [(0, 0, 0)], {(0, 0, 0): [1], (1, 0, 0): [1]}))))


def test_a_result_is_the_same_in_another_process() -> None:
    result = make_result()
    keys = ["both.expected.micro.agmri", "both.stratified.mrr(0.5,0.5)", "both.macro.ndcg_cut_20"]
    before = [result[key] for key in keys]
    again = pickle.loads(pickle.dumps(result))
    assert dict(again) == dict(result)
    assert [again[key] for key in [*keys, "both.P_5"]] == [*before, result["both.P_5"]]


def test_json_is_strict() -> None:
    values = json.loads(make_result().to_json())
    assert values == make_result().to_dict()
    nothing = json.loads(undefined().to_json())
    assert nothing["both.realistic.micro.amri"] is None
    assert nothing["both.realistic.micro.amr"] == 1
    assert "AMRI is undefined" in str(undefined())


def test_csv_and_frame_keep_every_digit(result: Result) -> None:
    lines = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert {line["key"]: float(line["value"]) for line in lines} == result.to_dict()
    line = next(line for line in lines if line["key"] == "both.stratified.mrr(0.5,0.5)")
    assert (line["averaging"], line["metric"]) == ("stratified", "mrr(0.5,0.5)")
    frame = result.to_frame()
    assert dict(zip(frame["key"], frame["value"], strict=True)) == result.to_dict()


def test_a_frame_without_pandas_says_what_to_do(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        result.to_frame()


def test_markdown_and_latex(result: Result) -> None:
    lines = result.to_markdown().splitlines()
    assert len(lines) == 5
    assert len({line.count("|") for line in lines}) == 1
    latex = result.to_latex()
    assert latex.startswith("\\begin{tabular}{lrrr")
    assert f"{result['both.micro.mrr']:.4f}" in latex
    assert r"b\textbar{}\&\_" in result.slice("relation").to_latex()
    assert r"b\|&_" in result.slice("relation").to_markdown()


def test_the_text_fits_and_tells(result: Result) -> None:
    text = str(result)
    assert max(map(len, text.splitlines())) <= 80
    parts = "split test;both sides;filter train, valid, test;30 entities;AMRI;pessimistic;expected"
    parts += ";MAP@20;nDCG@20;Stratified (both, beta_e 0.5, beta_r 0.5): MRR ;Ties: ;native"
    assert [part for part in parts.split(";") if part not in text] == []
    assert "WARNING" not in text
    assert f"{result['tail.realistic.micro.amri']:.4f}" in text
    assert f"{len(result.ranks.greater)} instances" in text
    assert repr(result).startswith("Result")


def test_the_text_warns() -> None:
    ranks = make_ranks(columns(random_case()), manifest=FACTS | {"filter_splits": []})
    assert "WARNING: unfiltered" in str(Result(ranks))
    ranks.manifest = FACTS | {"filter_splits": ["train", "test"]}
    assert "WARNING: the filter leaves out valid" in str(Result(ranks))
    ranks.answer_nan[0] = True
    assert "1 answers had no score" in str(Result(ranks)).replace("\n  ", " ")


def test_agreement_is_reported_also_from_a_manifest() -> None:
    agreement = {"map_cut_20": 1e-16, "ndcg_cut_20": 2.5e-16}
    ranks = make_ranks(columns(random_case()), manifest={"trec_agreement": agreement})
    for result in (make_result(agreement=agreement), Result(ranks)):
        text = str(result).replace("\n  ", " ")
        assert "pytrec_eval and native values agree to 1e-12 (largest difference 2.5e-16)" in text
        assert "without a run" not in text


def test_no_ties_are_said_to_be_none() -> None:
    case = Case(3, [(0, 0, 1)], {(0, 1, 0): [2, 1, 0], (1, 0, 0): [2, 1, 0]})
    text = str(Result(make_ranks(columns(case))))
    assert "Ties: none" in text
    assert "What ties can do" not in text


# --- slices ---------------------------------------------------------------------------------------


def test_slices_by_relation_are_what_those_instances_alone_give(result: Result) -> None:
    measures = ["tail.expected.micro.mrr", "tail.micro.amri", "tail.macro.map_cut_20"]
    table = result.slice("relation", measures).to_dict()
    assert set(table) == set(LABELS)
    counts = [row["count"] for row in table.values()]
    assert counts == sorted(counts, reverse=True)
    for number, label in enumerate(LABELS):
        part = {k: v[result.ranks.relation == number] for k, v in columns(random_case()).items()}
        alone = Result(make_ranks(part))
        assert table[label]["count"] == alone.count("tail")[1]
        for key in measures:
            key = str(Measure.parse(key))
            assert table[label][key] == pytest.approx(alone[key], rel=1e-13)


def test_slices_by_side(result: Result) -> None:
    table = result.slice("side").to_dict()
    assert list(table) == ["head", "tail", "both"]
    assert table["head"]["realistic.micro.mrr"] == result["head.micro.mrr"]
    assert table["both"]["instances"] == len(result.ranks.greater)
    values = result.slice("side", ["both.micro.mrr", "both.stratified.mrr(0,1)"]).to_dict()
    assert values["tail"]["stratified.mrr(0,1)"] == result["tail.stratified.mrr(0,1)"]


def test_slices_that_make_no_sense(result: Result) -> None:
    with pytest.raises(UsageError, match="slice by 'relation', 'side'"):
        result.slice("entity")
    with pytest.raises(UsageError, match="of one side"):
        result.slice("relation", ["head.micro.mrr", "tail.micro.mrr"])
    with pytest.raises(UsageError, match="no value for one relation"):
        result.slice("relation", ["both.stratified.mrr(0,0)"])


def test_long_labels_are_cut_in_the_middle(result: Result) -> None:
    text = result.slice("relation").to_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" in text


def test_stacked_tables_name_their_files() -> None:
    one = Table(("a", "b"), ("a", "b"), (0, 1), [("x", 1.25)])
    assert stacked({"f": one}) is one
    assert stacked({"f": one, "g": one}).to_csv() == "file,a,b\nf,x,1.25\ng,x,1.25\n"


def test_short_keys_are_both_sides_realistic_and_micro(result: Result) -> None:
    for short, key in [
        ("mrr", "both.realistic.micro.mrr"),
        ("both.mrr", "both.realistic.micro.mrr"),
        ("tail.hits@10", "tail.realistic.micro.hits@10"),
        ("hits_at_10", "both.realistic.micro.hits@10"),
        ("map", "both.macro.map"),
        ("tail.macro.mrr", "tail.realistic.macro.mrr"),
    ]:
        assert result[short] == result[key]
    one = Result(result.ranks, measures=["mrr", "tail.hits_at_10"])
    assert list(one) == ["both.realistic.micro.mrr", "tail.realistic.micro.hits@10"]
    with pytest.raises(UsageError, match=r"ask for tail\."):
        make_result(sides=(1,))["mrr"]
