"""Metrics of ranks against definitions in fractions, medians, spread, and sums over long ties."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from profiles import examples
from rank_cases import (
    ALL_KINDS,
    WEIGHTED,
    Case,
    ask,
    cases,
    columns,
    make_ranks,
    no_trec,
    places,
    questions,
    sides_of,
    weights,
)

import kgtrec
from kgtrec import _core
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import METRICS, Measure
from kgtrec.measures.calculator import Calculator
from kgtrec.measures.rank_metrics import TO_DEVIATION, hits, mean_rank, reciprocal_rank
from kgtrec.measures.ties import (
    Ties,
    expected_hits,
    expected_log_rank,
    expected_rank,
    expected_reciprocal,
    sums_over,
)

EXACT = {
    "mr": lambda r: r,
    "mrr": lambda r: 1 / r,
    "hits@1": lambda r: Fraction(r <= 1),
    "hits@3": lambda r: Fraction(r <= 3),
}
ONE = Case(2, [(0, 0, 1)], {(0, 1, 0): [1, 0], (1, 0, 0): [0, 1]})


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


# --- values ---------------------------------------------------------------------------------------


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(EXACT)))
def test_micro_is_the_mean_over_instances(case: Case, kind: str, metric: str) -> None:
    for side in sides_of(case):
        due = mean(
            [mean([EXACT[metric](r) for r in places(row, kind)]) for row in case.of_side(side)]
        )
        got = ask(case, f"{side}.{kind}.micro.{metric}")
        assert got == pytest.approx(float(due), rel=1e-14)
        if metric != "mrr" and kind != "expected":
            assert got == float(due)  # integer sums: the nearest double, not a neighbour


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(EXACT)))
def test_macro_is_the_mean_over_questions(case: Case, kind: str, metric: str) -> None:
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
            values.append(mean([EXACT[metric](Fraction(r)) for r in first]))
        got = ask(case, f"{side}.{kind}.macro.{metric}")
        assert got == pytest.approx(float(mean(values)), rel=1e-13)


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from([*EXACT, "amr", "gmr"]))
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
        values = [float(mean([EXACT[metric](r) for r in places(row, kind)])) for row in rows]
        total = math.fsum(w * v for w, v in zip(weights, values, strict=True))
        by_relation.setdefault(relation, []).append(total / math.fsum(weights))
    weight = {r: sum(r == p for _, p, _ in case.triples) ** -beta_r for r in by_relation}
    parts = [weight[r] * math.fsum(v) / len(v) for r, v in by_relation.items()]
    return math.fsum(parts) / math.fsum(weight.values())


betas = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(EXACT)), betas, betas)
def test_stratified(case: Case, kind: str, metric: str, beta_e: float, beta_r: float) -> None:
    for side in sides_of(case):
        due = stratified(case, side, kind, metric, beta_e, beta_r)
        got = ask(case, f"{side}.{kind}.stratified.{metric}({beta_e},{beta_r})")
        assert got == pytest.approx(due, rel=1e-12)


def test_popularity_zero_has_no_weight() -> None:
    def stratified_mrr(entities: list[int], relations: list[int], betas: str) -> float:
        table = columns(ONE) | {"answer_popularity": np.array(entities)}
        ranks = make_ranks(table | {"relation_popularity": np.array(relations)})
        return Calculator(ranks, no_trec).value(Measure.parse(f"both.stratified.mrr({betas})"))

    assert stratified_mrr([0, 3], [1, 1], "0,0.5") == 1
    assert stratified_mrr([0, 3], [1, 1], "-1,0") == 1  # weight zero
    for entities, relations, betas, said in (
        ([0, 3], [1, 1], "0.5,0", r"1 answer entities have popularity 0.*all splits"),
        ([0, 0], [1, 1], "-1,0", r"2 answer entities have popularity 0"),
        ([0, 3], [0, 0], "0,0.5", r"1 relations have popularity 0.*evaluated split"),
        ([0, 3], [0, 0], "0,-0.5", r"1 relations have popularity 0.*evaluated split"),
    ):
        with pytest.raises(InputError, match=said):
            stratified_mrr(entities, relations, betas)


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


# --- the sides that there are ---------------------------------------------------------------------


def test_a_side_that_was_not_asked_is_an_error() -> None:
    case = Case(2, [(0, 0, 1)], {(1, 0, 0): [0, 1]}, sides=(1,))
    assert Calculator(make_ranks(columns(case)), no_trec).sides == ("tail",)
    with pytest.raises(UsageError, match="have only tail"):
        ask(case, "both.micro.mrr")


def test_no_ranks_have_no_average() -> None:
    table = {name: column[:0] for name, column in columns(ONE).items()}
    with pytest.raises(InputError, match="at least one instance"):
        Calculator(make_ranks(table), no_trec)


def test_trec_values_are_averaged_as_trec_eval_does() -> None:
    case = ONE
    values = {"P_5": [0.2, 0.4], "num_ret": [3.0, 4.0], "gm_map": [math.log(0.25), 0.0]}
    engine = Calculator(make_ranks(columns(case)), lambda name: np.array(values[name]))
    assert engine.value(Measure.parse("both.macro.P_5")) == pytest.approx(0.3)
    assert engine.value(Measure.parse("tail.macro.P_5")) == 0.4
    assert engine.value(Measure.parse("both.macro.num_ret")) == 7
    assert engine.value(Measure.parse("both.macro.gm_map")) == pytest.approx(0.5)


def slow_median(pairs: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Least value with half of the weight up to it; the midpoint with the next at exactly half."""
    half = sum(weight for _, weight in pairs) / Fraction(2)
    values = sorted({value for value, _ in pairs})
    up_to = [sum(w for other, w in pairs if other <= value) for value in values]
    first = next(i for i, share in enumerate(up_to) if share >= half)
    return (values[first] + values[first + 1]) / 2 if up_to[first] == half else values[first]


def pooled(rows: list[dict[str, int]], kind: str, averaging: str) -> list:
    """(rank, weight) pairs, each row's weight spread over the places of its tie."""
    pairs = []
    for row, weight in zip(rows, weights(rows, averaging), strict=True):
        ranks = places(row, kind)
        pairs += [(rank, weight / len(ranks)) for rank in ranks]
    return pairs


@examples(2)
@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED))
def test_medians(case: Case, kind: str, averaging: str) -> None:
    for side in sides_of(case):
        assert ask(case, f"{side}.{kind}.micro.count") == len(case.of_side(side))
        pairs = pooled(case.of_side(side), kind, averaging)
        median = slow_median(pairs)
        assert ask(case, f"{side}.{kind}.{averaging}.median_rank") == float(median)
        distance = slow_median([(abs(rank - median), weight) for rank, weight in pairs])
        got = ask(case, f"{side}.{kind}.{averaging}.mad")
        assert got == pytest.approx(TO_DEVIATION * float(distance))


@given(cases(sides=(0, 1)), st.sampled_from(ALL_KINDS))
def test_medians_of_triples(case: Case, kind: str) -> None:
    pairs = []
    for number in range(len(case.triples)):
        head, tail = (places(row, kind) for row in case.rows if row["triple"] == number)
        share = Fraction(1, len(head) * len(tail))
        pairs += [((a + b) / 2, share) for a, b in product(head, tail)]
    median = slow_median(pairs)
    assert ask(case, f"both.{kind}.triple.median_rank") == float(median)
    distance = slow_median([(abs(rank - median), weight) for rank, weight in pairs])
    got = ask(case, f"both.{kind}.triple.mad")
    assert got == pytest.approx(TO_DEVIATION * float(distance))


def test_the_factor_of_the_mad_is_that_of_a_normal_distribution() -> None:
    from statistics import NormalDist

    assert NormalDist().inv_cdf(0.75) * TO_DEVIATION == pytest.approx(1, rel=1e-14)


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED))
def test_variance_is_the_mean_over_all_ways_to_break_the_ties(
    case: Case, kind: str, averaging: str
) -> None:
    side = sides_of(case)[-1]
    rows = case.of_side(side)
    ways = [places(row, kind) for row in rows]
    assume(math.prod(map(len, ways)) <= 3000)
    weight = weights(rows, averaging)
    squares = []
    for ranks in product(*ways):
        mean = sum(w * r for w, r in zip(weight, ranks, strict=True)) / sum(weight)
        square = sum(w * (r - mean) ** 2 for w, r in zip(weight, ranks, strict=True)) / sum(weight)
        squares.append(square)
    due = float(sum(squares) / len(squares))
    got = ask(case, f"{side}.{kind}.{averaging}.var")
    assert got == pytest.approx(due, rel=1e-12, abs=1e-13)
    assert ask(case, f"{side}.{kind}.{averaging}.std") == pytest.approx(math.sqrt(got))


@given(cases(sides=(0, 1)))
def test_variance_of_triples_is_the_mean_over_all_ways_to_break_the_ties(case: Case) -> None:
    ways = []
    for number in range(len(case.triples)):
        head, tail = (row for row in case.rows if row["triple"] == number)
        pairs = product(places(head, "expected"), places(tail, "expected"))
        ways.append([(a + b) / 2 for a, b in pairs])
    assume(math.prod(map(len, ways)) <= 3000)
    squares = []
    for ranks in product(*ways):
        mean = sum(ranks) / len(ranks)
        squares.append(sum((r - mean) ** 2 for r in ranks) / len(ranks))
    due = float(sum(squares) / len(squares))
    got = ask(case, "both.expected.triple.var")
    assert got == pytest.approx(due, rel=1e-12, abs=1e-13)


# --- sums over long ties --------------------------------------------------------------------------


@given(
    st.sampled_from([1, 2, 63, 1_000, 10**9]),
    st.sampled_from([0, 1, 2, 5, 17, 64, 65, 66, 90, 1_000, 100_000]),
    st.sampled_from([-0.999, -0.5, -0.01, 0.5, 1.0]),
)
def test_long_sums_are_those_of_their_terms(first: int, count: int, power: float) -> None:
    ranks = np.arange(first, first + count, dtype=np.float64)
    row = np.array([first]), np.array([count])
    got = sums_over(lambda x, rows: x**power, *row)
    assert got[0] == pytest.approx(math.fsum(ranks**power), rel=1e-13)
    got = sums_over(lambda x, rows: 1 / np.log2(x + 1), *row)
    assert got[0] == pytest.approx(math.fsum(1 / np.log2(ranks + 1)), rel=1e-13)


def test_long_sums_keep_their_rows_apart() -> None:
    rng = np.random.default_rng(0)
    first, count = rng.integers(1, 900, 500), rng.integers(0, 400, 500)
    power = rng.uniform(-1, 1, 500)
    got = sums_over(lambda x, rows: x ** power[rows], first, count)
    for row in range(500):
        terms = np.arange(first[row], first[row] + count[row], dtype=np.float64) ** power[row]
        assert got[row] == pytest.approx(math.fsum(terms), rel=1e-13)


# --- the rank types, and scorers that they unmask -------------------------------------------------


def test_a_constant_scorer_is_unmasked() -> None:
    triples = np.unique(np.random.default_rng(11).integers(0, (50, 4, 50), (300, 3)), axis=0)
    graph = kgtrec.Graph.from_arrays(train=triples[:200], test=triples[200:], n_entities=50)
    questions = graph.questions("test")
    result = kgtrec.evaluate(np.zeros((len(questions), 50), np.float32), questions, progress=False)
    keys = ["both.micro.mrr", "both.micro.amri", "tail.question.p_mrr@0.5",
            "both.stratified.mrr(0.5,0.5)"]  # fmt: skip
    types = result.rank_types(keys)
    assert types.keys[1:] == tuple(keys)
    assert [row[0] for row in types.rows] == list(kgtrec.measures.RANK_TYPES)
    table = types.to_dict()
    assert table["optimistic"]["both.micro.mrr"] == 1
    amri = {kind: row["both.micro.amri"] for kind, row in table.items() if kind != "ordinal"}
    assert amri == {"optimistic": 1, "realistic": 0, "expected": 0, "pessimistic": -1}
    worst = table["pessimistic"]
    assert worst[keys[2]] == result["tail.pessimistic.question.p_mrr@0.5"]
    assert worst[keys[3]] == result["both.pessimistic.stratified.mrr(0.5,0.5)"]
    for metric in ("adjusted_mrr", "adjusted_hits@10", "z_mrr", "z_hits@10"):
        assert result[f"both.expected.micro.{metric}"] == pytest.approx(0, abs=1e-10)
    report = result.ranks.tie_report()
    assert report["tied_share"] == 1
    assert report["max_equal"] == result.ranks.candidates.max() - 1
    assert "Ties: " in str(result)
    with pytest.raises(UsageError, match="has no rank types"):
        result.rank_types(["both.macro.map"])


def test_all_rank_types_agree_without_ties() -> None:
    rng = np.random.default_rng(5)
    counts, n = rng.integers(2, 50, 80), 80
    table = {"greater": rng.integers(0, counts), "candidates": counts, "question": np.arange(n)}
    table |= {f"macro_{name}": table[name] for name in ("greater", "candidates")}
    ranks = make_ranks(table | {"side": np.ones(n, np.int64), "triple": np.arange(n)})
    result = kgtrec.Result(ranks)
    for metric in METRICS:
        name = metric.named(3 if metric.takes_cutoff else 0.5)
        for averaging in {"micro", "question", "relation"} & {*metric.averagings}:
            values = [result[f"tail.{kind}.{averaging}.{name}"] for kind in ALL_KINDS]
            assert values == pytest.approx([values[0]] * 5, rel=1e-12)


# -- Expectations under ties against exact fractions, or long decimals where ties are huge -------

BOUND = Fraction(1, 10**13)  # relative error that the docstrings promise

DIRECT = 300  # terms that the references sum one by one


def off(got: np.ndarray, due: Fraction | Decimal) -> Fraction:
    """Relative error of the one number in `got`."""
    assert got.shape == (1,)
    return abs(Fraction(float(got[0])) / Fraction(due) - 1)


def row(*numbers: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array([number]) for number in numbers)


# --- one answer: an instance ----------------------------------------------------------------------

deep_ranks = st.one_of(st.integers(0, 100), st.integers(0, 2**40), st.sampled_from([2**24, 10**9]))

long_ties = st.one_of(st.integers(1, 2 * DIRECT), st.integers(1, 2**40))


def decimal_mean(
    greater: int,
    size: int,
    term: Callable[[Decimal], Decimal],
    series: Callable[[Decimal], Decimal],
) -> Decimal:
    """Mean of `term` over the ranks of a tie; `series`: its indefinite sum, good from DIRECT on."""
    with localcontext() as context:
        context.prec = 60
        peeled = size if size <= DIRECT else min(size, max(0, DIRECT - greater))
        total = sum((term(Decimal(greater + i)) for i in range(1, peeled + 1)), Decimal(0))
        if peeled < size:
            total += series(Decimal(greater + size)) - series(Decimal(greater + peeled))
        return total / size


def harmonic_series(n: Decimal) -> Decimal:
    """Harmonic number less Euler's constant."""
    return n.ln() + 1 / (2 * n) - 1 / (12 * n**2) + 1 / (120 * n**4) - 1 / (252 * n**6)


def stirling_series(n: Decimal) -> Decimal:
    """ln n! less ln(2 pi) / 2."""
    correction = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
    return n * n.ln() - n + n.ln() / 2 + correction


def test_the_references_agree_with_plain_sums() -> None:
    size = 2_000
    due = sum(Fraction(1, r) for r in range(8, 8 + size)) / size
    got = decimal_mean(7, size, lambda r: 1 / r, harmonic_series)
    assert abs(Fraction(got) / due - 1) < Fraction(1, 10**19)
    plain = math.fsum(math.log(r) for r in range(8, 8 + size)) / size
    assert float(decimal_mean(7, size, Decimal.ln, stirling_series)) == pytest.approx(plain, 1e-15)


@given(deep_ranks, st.integers(1, DIRECT))
def test_reciprocal_rank_is_exact(greater: int, size: int) -> None:
    due = sum(Fraction(1, r) for r in range(greater + 1, greater + size + 1)) / size
    assert off(expected_reciprocal(*row(greater, size, 1)), due) < BOUND


@given(deep_ranks, long_ties)
def test_reciprocal_rank_of_huge_ties(greater: int, size: int) -> None:
    due = decimal_mean(greater, size, lambda r: 1 / r, harmonic_series)
    assert off(expected_reciprocal(*row(greater, size, 1)), due) < BOUND


@given(deep_ranks, long_ties)
def test_log_rank_of_huge_ties(greater: int, size: int) -> None:
    due = decimal_mean(greater, size, Decimal.ln, stirling_series)
    got = expected_log_rank(*row(greater, size))
    assert got[0] == 0 if due == 0 else off(got, due) < BOUND


def test_untied_ranks_have_the_bits_of_other_rank_types() -> None:
    greater = np.arange(5_000) * 97
    one = np.ones_like(greater)
    assert np.array_equal(expected_log_rank(greater, one), np.log(2 * (greater + 1) / 2.0))
    assert np.array_equal(expected_reciprocal(greater, one, one), 1 / (greater + 1))
    assert np.array_equal(expected_hits(greater, one, one, 970), greater < 970)


@given(st.integers(0, 2**40), st.integers(1, 2**40), st.integers(1, 2**61))
def test_hits_are_a_share_of_the_tie(greater: int, size: int, k: int) -> None:
    inside = min(max(k - greater, 0), size)
    assert expected_hits(*row(greater, size, 1), k)[0] == inside / size


# --- several answers: a question ------------------------------------------------------------------


def first_place(size: int, answers: int) -> list[Fraction]:
    """P(first answer at place j), j = 1 .. size - answers + 1."""
    total = math.comb(size, answers)
    last = size - answers + 1
    return [Fraction(math.comb(size - j, answers - 1), total) for j in range(1, last + 1)]


@examples(2)
@given(deep_ranks, st.integers(1, 60), st.data())
def test_first_answer_of_a_tie(greater: int, size: int, data: st.DataObject) -> None:
    answers = data.draw(st.integers(1, size))
    k = data.draw(st.one_of(st.integers(1, greater + size + 2), st.just(greater + size // 2 + 1)))
    chance = first_place(size, answers)
    tie = row(greater, size, answers)
    due = sum((p / (greater + j) for j, p in enumerate(chance, 1)), Fraction(0))
    assert off(expected_reciprocal(*tie), due) < BOUND
    due = sum((p * (greater + j) for j, p in enumerate(chance, 1)), Fraction(0))
    assert off(expected_rank(*tie), due) < BOUND
    hits = sum((p for j, p in enumerate(chance, 1) if greater + j <= k), Fraction(0))
    got = expected_hits(*tie, k)
    assert got[0] == 0 if hits == 0 else off(got, hits) < BOUND
    assert got[0] <= 1


@pytest.mark.parametrize(
    ("greater", "size", "answers"),
    [
        (0, 20_000, 2),
        (0, 20_000, 40),
        (5, 3_000, 2_990),
        (10**6, 5_000, 3),
        (300, 9_000, 700),
        (300, 90_000, 65),
        (10**9, 100_000, 2),
    ],
)
def test_first_answer_of_a_long_tie(greater: int, size: int, answers: int) -> None:
    unit = 1 << 200  # P(X >= j) in integers, because no double could hold it
    total, hits, survival = 0, 0, unit
    for j in range(1, size - answers + 2):
        left = size - j + 1
        total += survival * answers // (left * (greater + j))
        survival = survival * (left - answers) // left
        hits = unit - survival if j <= 50 else hits
    tie = row(greater, size, answers)
    assert off(expected_reciprocal(*tie), Fraction(total, unit)) < 10 * BOUND
    assert off(expected_hits(*tie, greater + 50), Fraction(hits, unit)) < BOUND


# --- many at once ---------------------------------------------------------------------------------


def test_every_row_is_its_own() -> None:
    rng = np.random.default_rng(5)
    size = rng.integers(1, 400, 300)
    ties = rng.integers(0, 10**6, 300), size, rng.integers(1, size + 1)
    for function in (
        expected_rank,
        expected_reciprocal,
        lambda *tie: expected_hits(*tie, 1000),
        lambda greater, size, answers: expected_log_rank(greater, size),
    ):
        alone = [function(*row(*tie))[0] for tie in zip(*ties, strict=True)]
        assert np.array_equal(function(*ties), alone)
        assert function(*(column[:0] for column in ties)).shape == (0,)


def test_lengths_are_checked() -> None:
    two, three = np.ones(2, np.int64), np.ones(3, np.int64)
    with pytest.raises(ValueError, match="lengths differ"):
        _core.expected_reciprocal(two, two, two, np.empty(3))
    with pytest.raises(ValueError, match="lengths differ"):
        _core.expected_hits(two, three, two, 10, np.empty(2))
    with pytest.raises(ValueError, match="lengths differ"):
        _core.expected_log(two, three, np.empty(2))
