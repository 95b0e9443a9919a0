"""Measures against definitions computed candidate by candidate, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import KINDS, Case, cases, columns, make_ranks, places, questions

from kgtrec.errors import InputError, UsageError
from kgtrec.measures import METRICS, RANK_TYPES, Measure, parse_all, required_depth
from kgtrec.measures.calculator import Calculator
from kgtrec.measures.rank_metrics import hits, mean_rank, reciprocal_rank
from kgtrec.measures.ties import Ties
from kgtrec.trec.measures.names import TABLE

ALL_KINDS = (*KINDS, "expected")
F = {
    "mr": lambda r: r,
    "mrr": lambda r: 1 / r,
    "hits@1": lambda r: Fraction(r <= 1),
    "hits@3": lambda r: Fraction(r <= 3),
}


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def no_trec(name: str) -> np.ndarray:
    raise AssertionError(f"{name} was asked for")


def calculator(case: Case, shuffle: int | None = None) -> Calculator:
    return Calculator(make_ranks(columns(case, shuffle)), no_trec)


def ask(case: Case, key: str, shuffle: int | None = None) -> float:
    return calculator(case, shuffle).value(Measure.parse(key))


def sides_of(case: Case) -> tuple[str, ...]:
    return ("head", "tail", "both") if len(case.sides) == 2 else (("head", "tail")[case.sides[0]],)


# --- values ---------------------------------------------------------------------------------------


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(F)), st.integers(0, 9))
def test_micro_is_the_mean_over_instances(case: Case, kind: str, metric: str, seed: int) -> None:
    for side in sides_of(case):
        due = mean([mean([F[metric](r) for r in places(row, kind)]) for row in case.of_side(side)])
        got = ask(case, f"{side}.{kind}.micro.{metric}", seed)
        assert got == pytest.approx(float(due), rel=1e-14)
        if metric != "mrr" and kind != "expected":
            assert got == float(due)  # integer sums: the nearest double, not a neighbour


@given(cases(), st.sampled_from(ALL_KINDS))
def test_geometric_mean_rank(case: Case, kind: str) -> None:
    for side in sides_of(case):
        logs = [
            math.fsum(math.log(r) for r in places(row, kind)) / len(places(row, kind))
            for row in case.of_side(side)
        ]
        due = math.exp(math.fsum(logs) / len(logs))
        assert ask(case, f"{side}.{kind}.micro.gmr") == pytest.approx(due, rel=1e-13)
        assert ask(case, f"{side}.{kind}.micro.igmr") == pytest.approx(1 / due, rel=1e-13)


@given(cases(), st.sampled_from(ALL_KINDS))
def test_adjusted_ranks_use_each_instances_candidates(case: Case, kind: str) -> None:
    for side in sides_of(case):
        rows = case.of_side(side)
        ranks = [mean(places(row, kind)) for row in rows]
        chance = mean([Fraction(row["candidates"] + 1, 2) for row in rows])
        amr = ask(case, f"{side}.{kind}.micro.amr")
        amri = ask(case, f"{side}.{kind}.micro.amri")
        assert amr == pytest.approx(float(mean(ranks) / chance), rel=1e-14)
        if chance == 1:
            assert amr == 1
            assert math.isnan(amri)
        else:
            due = float(1 - (mean(ranks) - 1) / (chance - 1))
            assert amri == pytest.approx(due, rel=1e-12, abs=1e-14)


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(F)), st.integers(0, 9))
def test_macro_is_the_mean_over_questions(case: Case, kind: str, metric: str, seed: int) -> None:
    for side in sides_of(case):
        values = []
        for rows in questions(case, side):
            row = rows[0]
            ranks = case.first_places((row["side"], row["given"], row["relation"]))
            best, worst = Fraction(min(ranks)), Fraction(max(ranks))
            first = {
                "expected": ranks,
                "optimistic": [best],
                "realistic": [(best + worst) / 2],
                "pessimistic": [worst],
                "ordinal": [min(places(row, kind, "macro_")[0] for row in rows)],
            }[kind]
            values.append(mean([F[metric](Fraction(r)) for r in first]))
        got = ask(case, f"{side}.{kind}.macro.{metric}", seed)
        assert got == pytest.approx(float(mean(values)), rel=1e-13)


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from([*F, "amr", "gmr"]))
def test_macro_relation_is_the_mean_of_the_relations_micro_values(
    case: Case, kind: str, metric: str
) -> None:
    for side in sides_of(case):
        rows = case.of_side(side)
        parts = []
        for relation in {row["relation"] for row in rows}:
            table = columns(case)
            keep = table["relation"] == relation
            part = make_ranks({name: column[keep] for name, column in table.items()})
            key = Measure.parse(f"{side}.{kind}.micro.{metric}")
            parts.append(Calculator(part, no_trec).value(key))
        due = math.fsum(parts) / len(parts)
        assert ask(case, f"{side}.{kind}.macro_relation.{metric}") == pytest.approx(due, rel=1e-13)


def stratified(
    case: Case, side: str, kind: str, metric: str, beta_e: float, beta_r: float
) -> float:
    by_relation: dict[int, list[float]] = {}
    for number, (_, relation, _) in enumerate(case.triples):
        rows = [row for row in case.of_side(side) if row["triple"] == number]
        weights = [row["answer_popularity"] ** -beta_e for row in rows]
        values = [float(mean([F[metric](r) for r in places(row, kind)])) for row in rows]
        total = math.fsum(w * v for w, v in zip(weights, values, strict=True))
        by_relation.setdefault(relation, []).append(total / math.fsum(weights))
    weight = {r: sum(r == p for _, p, _ in case.triples) ** -beta_r for r in by_relation}
    parts = [weight[r] * math.fsum(v) / len(v) for r, v in by_relation.items()]
    return math.fsum(parts) / math.fsum(weight.values())


betas = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(F)), betas, betas)
def test_stratified(case: Case, kind: str, metric: str, beta_e: float, beta_r: float) -> None:
    for side in sides_of(case):
        due = stratified(case, side, kind, metric, beta_e, beta_r)
        got = ask(case, f"{side}.{kind}.stratified.{metric}({beta_e},{beta_r})", 3)
        assert got == pytest.approx(due, rel=1e-12)


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(F)))
def test_the_two_lemmas(case: Case, kind: str, metric: str) -> None:
    for side in sides_of(case):
        tail = f"{kind}.stratified.{metric}"
        micro = ask(case, f"{side}.{kind}.micro.{metric}")
        assert ask(case, f"{side}.{tail}(0,-1)") == pytest.approx(micro, rel=1e-12)
        relations = ask(case, f"{side}.{kind}.macro_relation.{metric}")
        assert ask(case, f"{side}.{tail}(0,0)") == pytest.approx(relations, rel=1e-12)


@given(cases(sides=(1,)), betas)
def test_entity_weights_cancel_on_one_side(case: Case, beta_e: float) -> None:
    plain = ask(case, "tail.stratified.mrr(0,0.5)")
    assert ask(case, f"tail.stratified.mrr({beta_e},0.5)") == pytest.approx(plain, rel=1e-12)


@given(cases(sides=(0, 1)), betas, betas)
def test_a_triple_with_one_side_left_counts_by_that_side(
    case: Case, beta_e: float, beta_r: float
) -> None:
    case.rows = [row for row in case.rows if (row["triple"], row["side"]) != (0, 0)]
    if len({row["side"] for row in case.rows}) == 2:
        due = stratified(case, "both", "realistic", "mrr", beta_e, beta_r)
        got = ask(case, f"both.stratified.mrr({beta_e},{beta_r})")
        assert got == pytest.approx(due, rel=1e-12)


def test_popularity_zero_has_no_weight() -> None:
    table = columns(Case(2, [(0, 0, 1)], {(0, 1, 0): [1, 0], (1, 0, 0): [0, 1]}))
    table["answer_popularity"] = np.array([0, 3])
    ranks = make_ranks(table)
    with pytest.raises(InputError, match=r"1 answer entities have popularity 0.*all splits"):
        Calculator(ranks, no_trec).value(Measure.parse("both.stratified.mrr(0.5,0)"))
    assert Calculator(ranks, no_trec).value(Measure.parse("both.stratified.mrr(0,0.5)")) == 1
    table["relation_popularity"] = np.array([0, 0])
    ranks = make_ranks(table)
    for beta in (0.5, -0.5):  # no weight, or no weight at all
        with pytest.raises(InputError, match=r"1 relations have popularity 0.*evaluated split"):
            Calculator(ranks, no_trec).value(Measure.parse(f"both.stratified.mrr(0,{beta})"))


def test_popularity_zero_under_a_negative_beta_is_weight_zero() -> None:
    case = Case(2, [(0, 0, 1)], {(0, 1, 0): [0, 1], (1, 0, 0): [0, 1]})
    ranks = make_ranks(columns(case) | {"answer_popularity": np.array([0, 3])})
    assert Calculator(ranks, no_trec).value(Measure.parse("both.stratified.mrr(-1,0)")) == 1
    nothing = make_ranks(columns(case) | {"answer_popularity": np.array([0, 0])})
    with pytest.raises(InputError, match=r"2 answer entities have popularity 0"):
        Calculator(nothing, no_trec).value(Measure.parse("both.stratified.mrr(-1,0)"))


def test_ranks_beyond_float32_stay_exact() -> None:
    deep = 2**24
    greater = np.array([deep, deep + 1, 2**40], np.int64)
    equal = np.array([1, 0, 2**33 + 1], np.int64)
    ties = Ties(greater, equal, equal, np.ones_like(equal))
    scaled, scale = mean_rank(ties, "realistic", 0)
    assert scaled.dtype == np.int64
    assert [Fraction(int(v), scale) for v in scaled] == [
        deep + Fraction(3, 2),
        deep + 2,
        2**40 + 1 + Fraction(2**33 + 1, 2),
    ]
    assert hits(ties, "optimistic", deep + 1).scaled.tolist() == [1, 0, 0]
    assert reciprocal_rank(ties, "pessimistic", 0).scaled[1] == 1 / (deep + 2)


def test_two_answers_tied_alone_at_the_top_have_the_first_place() -> None:
    """No order of the two puts both behind the first place."""
    both = {"greater": 0, "equal": 0, "tied_ahead": 0, "candidates": 2, "macro_greater": 0}
    both |= {"macro_equal": 1, "macro_candidates": 3, "side": 1, "question": 0, "relation": 0}
    rows = [both | {"macro_tied_ahead": i, "triple": i} for i in range(2)]
    ranks = make_ranks({name: np.array([r[name] for r in rows]) for name in rows[0]})
    for kind in ALL_KINDS:
        value = Calculator(ranks, no_trec).value(Measure.parse(f"tail.{kind}.macro.mr"))
        assert value == 1, kind


def test_unscored_answers_do_not_tie_with_each_other() -> None:
    """Under nan="worst", every answer of a question may have the very last rank."""
    same = {"greater": 2, "equal": 0, "tied_ahead": 0, "candidates": 3}
    row = same | {f"macro_{k}": v for k, v in same.items()} | {"question": 0, "relation": 0}
    rows = [row | {"side": 1, "triple": i} for i in range(2)]
    ranks = make_ranks({name: np.array([r[name] for r in rows]) for name in rows[0]})
    for kind in ALL_KINDS:
        value = Calculator(ranks, no_trec).value(Measure.parse(f"tail.{kind}.macro.mr"))
        assert value == 3


# --- keys -----------------------------------------------------------------------------------------

sides = st.sampled_from(["head", "tail", "both"])
kinds = st.sampled_from(sorted(RANK_TYPES))
exponents = st.floats(0, 1, exclude_min=True, exclude_max=True)
TREC_KEYS = [
    name for name, row in TABLE.items() if row.format in ("any", "qrels") and row.output != "string"
]
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
    parameter = draw(st.integers(1, 10**9) if row.takes_cutoff else exponents)
    side = "both" if averaging == "triple" else side
    return Measure(side, draw(kinds), averaging, row.named(parameter), params)


@given(measures())
def test_keys_read_back(measure: Measure) -> None:
    assert Measure.parse(str(measure)) == measure
    if measure.metric != "rbp":  # ir_measures uses the name RBP for another measure
        assert Measure.parse(str(measure).upper()) == measure
    assert eval(repr(measure)) == measure
    assert hash(eval(repr(measure))) == hash(measure)
    assert measure.title


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("both.realistic.micro.mrr", "both.realistic.micro.mrr"),
        ("both.micro.mrr", "both.realistic.micro.mrr"),
        ("Tail.Optimistic.Micro.Hits_At_10", "tail.optimistic.micro.hits@10"),
        ("tail.micro.hits.10", "tail.realistic.micro.hits@10"),
        ("both.micro.adjusted_mean_rank_index", "both.realistic.micro.amri"),
        ("both.macro.mrr", "both.realistic.macro.mrr"),
        ("both.stratified.mrr(0.5, 0.5)", "both.stratified.mrr(0.5,0.5)"),
        ("both.realistic.stratified.mrr(.5,0.50)", "both.stratified.mrr(0.5,0.5)"),
        ("both.expected.stratified.hits.10(-1,-0.0)", "both.expected.stratified.hits@10(-1,0)"),
        ("both.macro.MAP@20", "both.macro.map_cut_20"),
        ("both.macro.p_5", "both.macro.P_5"),
        ("head.macro.iprec_at_recall_0.1", "head.macro.iprec_at_recall_0.10"),
        ("mrr", "both.realistic.micro.mrr"),
        ("both.mrr", "both.realistic.micro.mrr"),
        ("tail.hits@10", "tail.realistic.micro.hits@10"),
        ("hits_at_10", "both.realistic.micro.hits@10"),
        ("hits.10", "both.realistic.micro.hits@10"),
        ("head.hits.10", "head.realistic.micro.hits@10"),
        ("expected.mrr", "both.expected.micro.mrr"),
        ("worst.hits_at_3", "both.pessimistic.micro.hits@3"),
        ("macro.mrr", "both.realistic.macro.mrr"),
        ("tail.macro.mrr", "tail.realistic.macro.mrr"),
        ("stratified.mrr(0.5,0.5)", "both.stratified.mrr(0.5,0.5)"),
        ("p_mrr(0.5)", "both.realistic.micro.p_mrr@0.5"),
        ("map", "both.macro.map"),
        ("head.MAP@20", "head.macro.map_cut_20"),
        ("map_cut.20", "both.macro.map_cut_20"),
        ("set_F.0.5", "both.macro.set_F_0.5"),
        ("RBP", "both.macro.rbp_p=0.8"),
        ("ndcg.1=3,2=9", "both.macro.ndcg_1=3,2=9"),
    ],
)
def test_spellings(written: str, key: str) -> None:
    assert str(Measure.parse(written)) == key


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("mmr", "'mmr' is not a metric; did you mean 'mr' or 'mrr'"),
        ("tail.mmr", "did you mean 'mr' or 'mrr'"),
        ("tail.micro.map", "over questions: tail.macro.map"),
        ("tail.realistic.map", "no rank type: tail.macro.map"),
        ("both", "'both' is not a metric; a key is side.rank_type.averaging.metric"),
        ("tail.macro", "'macro' is not a metric"),
        ("bth.mrr", "'bth' is none of head, tail, both"),
        ("bth.mrr", "did you mean 'both'?"),
        ("mrr.both", "'mrr' is none of"),
        ("micro.both.mrr", "no measure"),
        ("both.micro.realistic.mrr", "no measure"),
        ("mrr(0.5,0.5)", "take no parameters"),
        ("both..mrr", "'' is none of"),
        ("bth.micro.mrr", "'bth' is not a side; did you mean 'both'"),
        ("both.realistc.micro.mrr", "did you mean 'realistic'"),
        ("both.realistic.mico.mrr", "none of micro, macro"),
        ("both.micro.mmr", "did you mean 'mr' or 'mrr'"),
        ("both.micro.hits@0", "did you mean 'hits@10'"),
        ("both.micro.hits", "needs a cutoff above 0, as in hits@10"),
        ("both.macro.P", "needs a cutoff above 0, as in P_20"),
        ("both.macro.map_cut_0", "did you mean 'map_cut_20'"),
        ("both.macro.iprec_at_recall_0.333", "is not a metric"),
        ("both.macro.P.5,10", "is not a metric"),
        ("both.macro.official", "is not a metric"),
        ("both.macro.prefs_simp", "is not a metric"),
        ("both.micro.map_cut_20", "both.macro.map_cut_20"),
        ("both.expected.macro.map_cut_20", "have no rank type"),
        ("both.macro.amr", "not defined for macro"),
        ("both.micro.mrr(1,1)", "take no parameters"),
        ("both.stratified.mrr", "as in mrr(0.5,0.5)"),
        ("both.stratified.mrr(2,0)", "must be in [-1, 1]"),
        ("both.stratified.mrr(nan,0)", "must be in [-1, 1]"),
        ("both.stratified.mrr(a,b)", "not a list of numbers"),
        ("both.stratified.mrr(0.5", "unbalanced parentheses"),
        ("both.macro.runid", "'runid' is not a metric"),
        ("", "a key is side.rank_type.averaging.metric"),
        (f"both.micro.hits@{'9' * 5000}", "is not a metric"),
    ],
)
def test_bad_keys_say_what_and_how(key: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Measure.parse(key)
    assert hint in str(caught.value)
    assert repr(key) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_bad_keys_are_reported_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_all(["both.micro.mrr", "both.micro.mmr", "nonsense"])
    assert "mmr" in str(caught.value)
    assert "nonsense" in str(caught.value)
    both = parse_all(["both.micro.mrr", "both.realistic.micro.mrr"])
    assert both == [Measure("both", "realistic", "micro", "mrr")]
    with pytest.raises(UsageError, match="not int"):
        parse_all([3])  # type: ignore[list-item]


def test_parts_that_do_not_fit_make_no_measure() -> None:
    for parts in [
        ("left", "realistic", "micro", "mrr"),
        ("both", None, "micro", "mrr"),
        ("both", "realistic", "micro", "hits_at_10"),
        ("both", "realistic", "macro", "map_cut_20"),
        ("both", "realistic", "stratified", "mrr"),
    ]:
        with pytest.raises(UsageError):
            Measure(*parts)


def test_depth_that_a_measure_sees() -> None:
    assert required_depth("map_cut_20") == 20
    assert required_depth("P_7") == 7
    assert required_depth("map") is None
    assert required_depth("Rprec_mult_0.20") is None


def test_every_row_of_the_table_explains_itself() -> None:
    names = [name for row in METRICS for name in (row.name, *row.aliases)]
    assert len(set(names)) == len(names)
    for row in METRICS:
        assert row.help
        assert row.reference
        assert row.averagings
        assert row.title


# --- the sides that there are ---------------------------------------------------------------------


def test_a_side_that_was_not_asked_is_an_error() -> None:
    case = Case(2, [(0, 0, 1)], {(1, 0, 0): [0, 1]}, sides=(1,))
    assert calculator(case).sides == ("tail",)
    with pytest.raises(UsageError, match="have only tail"):
        ask(case, "both.micro.mrr")


def test_no_ranks_have_no_average() -> None:
    table = {name: column[:0] for name, column in columns(_one()).items()}
    with pytest.raises(InputError, match="at least one instance"):
        Calculator(make_ranks(table), no_trec)


def test_trec_values_are_averaged_as_trec_eval_does() -> None:
    case = _one()
    values = {"P_5": [0.2, 0.4], "num_ret": [3.0, 4.0], "gm_map": [math.log(0.25), 0.0]}
    engine = Calculator(make_ranks(columns(case)), lambda name: np.array(values[name]))
    assert engine.value(Measure.parse("both.macro.P_5")) == pytest.approx(0.3)
    assert engine.value(Measure.parse("tail.macro.P_5")) == 0.4
    assert engine.value(Measure.parse("both.macro.num_ret")) == 7
    assert engine.value(Measure.parse("both.macro.gm_map")) == pytest.approx(0.5)


def _one() -> Case:
    return Case(2, [(0, 0, 1)], {(0, 1, 0): [1, 0], (1, 0, 0): [0, 1]})
