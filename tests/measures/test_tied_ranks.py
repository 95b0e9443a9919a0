"""Medians, variances and long sums under ties, and scorers that rank types unmask."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from measure_cases import (
    ALL_KINDS,
    WEIGHTED,
    ask,
    sides_of,
    simulated,
    weights,
)
from rank_cases import Case, cases, places

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.measures import METRICS
from kgtrec.measures.dispersion import TO_DEVIATION
from kgtrec.measures.tie_expectation import sums_over

# --- order statistics and spread ------------------------------------------------------------------


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


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED))
def test_medians(case: Case, kind: str, averaging: str) -> None:
    for side in sides_of(case):
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


@given(cases())
def test_count(case: Case) -> None:
    for side in sides_of(case):
        assert ask(case, f"{side}.realistic.micro.count") == len(case.of_side(side))


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


def scorer_results(name: str) -> kgtrec.Result:
    """A constant scorer, and a sigmoid in float32 of logits that are mostly far above 17."""
    rng = np.random.default_rng(11)
    triples = np.unique(rng.integers(0, (200, 4, 200), (900, 3)), axis=0)
    graph = kgtrec.Graph.from_arrays(
        train=triples[:500], test=triples[500:], n_entities=200, n_relations=4
    )
    questions = graph.questions("test")
    shape = len(questions), 200
    logits = rng.normal(60, 20, shape).astype(np.float32)
    scores = {
        "constant": np.zeros(shape, np.float32),
        "saturated": 1 / (1 + np.exp(-logits)),
        "logits": logits,
    }[name]
    assert scores.dtype == np.float32
    return kgtrec.evaluate(scores, questions, progress=False)


def test_a_constant_scorer_is_unmasked() -> None:
    result = scorer_results("constant")
    table = result.rank_types().to_dict()
    assert table["optimistic"]["both.micro.mrr"] == 1
    assert table["optimistic"]["both.micro.amri"] == 1
    assert table["realistic"]["both.micro.amri"] == 0
    assert table["expected"]["both.micro.amri"] == 0
    assert table["pessimistic"]["both.micro.amri"] == -1
    for metric in ("adjusted_mrr", "adjusted_hits@10", "z_mrr", "z_hits@10"):
        assert result[f"both.expected.micro.{metric}"] == pytest.approx(0, abs=1e-10)
    report = result.ranks.tie_report()
    assert report["tied_share"] == 1
    assert report["max_equal"] == result.ranks.candidates.max() - 1


def test_a_saturated_sigmoid_is_unmasked() -> None:
    """Its logits are random; the sigmoid makes nearly all of them 1 to the last bit."""
    saturated, logits = scorer_results("saturated"), scorer_results("logits")
    table = saturated.rank_types(["both.micro.mrr", "both.micro.amri"]).to_dict()
    assert table["optimistic"]["both.micro.mrr"] > 0.95
    assert table["realistic"]["both.micro.mrr"] < 0.02
    assert abs(table["realistic"]["both.micro.amri"]) < 0.1
    assert table["expected"]["both.micro.mrr"] == pytest.approx(
        logits["both.realistic.micro.mrr"], abs=0.02
    )
    assert saturated.ranks.tie_report()["tied_share"] > 0.95
    assert logits.ranks.tie_report()["tied_share"] < 0.01
    assert "Ties: " in str(saturated)


def test_rank_types_of_chosen_measures() -> None:
    result = scorer_results("logits")
    table = result.rank_types(["tail.question.p_mrr@0.5", "both.stratified.mrr(0.5,0.5)"])
    assert [row[0] for row in table.rows] == list(kgtrec.measures.RANK_TYPES)
    assert table.keys[1:] == ("tail.question.p_mrr@0.5", "both.stratified.mrr(0.5,0.5)")
    row = dict(zip((r[0] for r in table.rows), table.rows, strict=True))["pessimistic"]
    assert row[1] == result["tail.pessimistic.question.p_mrr@0.5"]
    assert row[2] == result["both.pessimistic.stratified.mrr(0.5,0.5)"]
    with pytest.raises(UsageError, match="has no rank types"):
        result.rank_types(["both.macro.map"])


def test_all_rank_types_agree_without_ties() -> None:
    random = np.random.default_rng(5)
    result = kgtrec.Result(simulated(random.integers(2, 50, 80), np.arange(80), 1))
    for metric in METRICS:
        name = metric.named(3 if metric.takes_cutoff else 0.5)
        for averaging in ("micro", "question", "relation"):
            if averaging not in metric.averagings:
                continue
            values = [result[f"tail.{kind}.{averaging}.{name}"] for kind in ALL_KINDS]
            assert values == pytest.approx([values[0]] * 5, rel=1e-12)
