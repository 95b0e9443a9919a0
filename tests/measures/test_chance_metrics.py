"""Measures adjusted for chance, against sums over all ranks, all outcomes, and by simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import (
    ALL_KINDS,
    WEIGHTED,
    Case,
    F,
    ask,
    cases,
    columns,
    make_ranks,
    sides_of,
    weighted_mean,
    weights,
)

import kgtrec
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure, random_baseline, random_scorer
from kgtrec.measures.calculator import Calculator

# --- what chance gives ----------------------------------------------------------------------------

small = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=5)

BASES = ("mr", "mrr", "hits@2", "log_mrr", "p_mrr@0.3", "gmr")


def aggregated(base: str, ranks: tuple[int, ...], weight: list[int]) -> float:
    mean = weighted_mean([F[base](Fraction(r)) for r in ranks], [Fraction(w) for w in weight])
    return math.exp(mean) if base == "gmr" else mean


@given(small, st.sampled_from(BASES), st.booleans())
def test_chance_is_the_mean_over_all_outcomes(
    items: list[tuple[int, int]], base: str, weighted: bool
) -> None:
    """Every combination of ranks is equally likely: list them all."""
    counts = [c for c, _ in items]
    weight = [w if weighted else 1 for _, w in items]
    outcomes = [
        aggregated(base, ranks, weight) for ranks in product(*(range(1, c + 1) for c in counts))
    ]
    mean = math.fsum(outcomes) / len(outcomes)
    variance = math.fsum((value - mean) ** 2 for value in outcomes) / len(outcomes)
    chance = random_scorer(base, counts, weight if weighted else None)
    assert chance.mean == pytest.approx(mean, rel=1e-12)
    assert chance.variance == pytest.approx(variance, rel=1e-10, abs=1e-14)


def slow_chance(base: str, counts: list[int], weight: list[Fraction]) -> tuple[float, float]:
    """Item by item and rank by rank: no harmonic numbers, no grouping."""
    shares = [float(w / sum(weight)) for w in weight]
    if base == "gmr":
        means, squares = (
            [math.fsum(r ** (t * s) for r in range(1, c + 1)) / c
             for c, s in zip(counts, shares, strict=True)]
            for t in (1, 2)
        )  # fmt: skip
        mean = math.prod(means)
        return mean, math.prod(squares) - mean**2
    mean = variance = 0.0
    for c, share in zip(counts, shares, strict=True):
        values = [F[base](Fraction(r)) for r in range(1, c + 1)]
        middle = math.fsum(values) / c
        mean += share * middle
        variance += share**2 * math.fsum((v - middle) ** 2 for v in values) / c
    return mean, variance


ADJUSTED = {
    "amr": ("mr", "ratio"), "amri": ("mr", "index"), "z_mr": ("mr", "z"),
    "mrr_ratio": ("mrr", "ratio"), "adjusted_mrr": ("mrr", "index"), "z_mrr": ("mrr", "z"),
    "hits_ratio@2": ("hits@2", "ratio"), "adjusted_hits@2": ("hits@2", "index"),
    "z_hits@2": ("hits@2", "z"),
    "log_mrr_ratio": ("log_mrr", "ratio"), "adjusted_log_mrr": ("log_mrr", "index"),
    "z_log_mrr": ("log_mrr", "z"),
    "p_mrr_ratio@0.3": ("p_mrr@0.3", "ratio"), "adjusted_p_mrr@0.3": ("p_mrr@0.3", "index"),
    "z_p_mrr@0.3": ("p_mrr@0.3", "z"),
    "agmr": ("gmr", "ratio"), "agmri": ("gmr", "index"), "z_gmr": ("gmr", "z"),
}  # fmt: skip


def adjusted(how: str, base: str, value: float, mean: float, variance: float) -> float:
    if how == "ratio":
        return value / mean
    if how == "index":
        return (value - mean) / (1 - mean) if abs(1 - mean) > 1e-12 else math.nan
    sign = -1 if base in ("mr", "gmr") else 1
    return sign * (value - mean) / math.sqrt(variance) if variance > 1e-12 else math.nan


@given(
    cases(),
    st.sampled_from(ALL_KINDS),
    st.sampled_from(WEIGHTED),
    st.sampled_from(sorted(ADJUSTED)),
)
def test_adjusted_measures(case: Case, kind: str, averaging: str, metric: str) -> None:
    base, how = ADJUSTED[metric]
    for side in sides_of(case):
        rows = case.of_side(side)
        chance = slow_chance(base, [r["candidates"] for r in rows], weights(rows, averaging))
        value = ask(case, f"{side}.{kind}.{averaging}.{base}")
        due = adjusted(how, base, value, *chance)
        got = ask(case, f"{side}.{kind}.{averaging}.{metric}")
        assert got == pytest.approx(due, rel=1e-8, abs=1e-9, nan_ok=True)


@given(cases(), st.sampled_from(sorted(ADJUSTED)))
def test_macro_relation_is_the_mean_of_the_relations_adjusted_values(
    case: Case, metric: str
) -> None:
    if ADJUSTED[metric][1] == "z":
        with pytest.raises(UsageError, match="not defined for macro_relation"):
            Measure.parse(f"both.realistic.macro_relation.{metric}")
        return
    table = columns(case)
    for side in sides_of(case):
        rows = case.of_side(side)
        parts = []
        for relation in {row["relation"] for row in rows}:
            keep = table["relation"] == relation
            part = make_ranks({name: column[keep] for name, column in table.items()})
            key = Measure.parse(f"{side}.expected.micro.{metric}")
            parts.append(Calculator(part, lambda name: np.array([])).value(key))
        due = math.fsum(parts) / len(parts)
        got = ask(case, f"{side}.expected.macro_relation.{metric}")
        assert got == pytest.approx(due, rel=1e-12, nan_ok=True)


def test_many_instances_of_many_sizes() -> None:
    """Ranks as many as in FB15k-237, against tables of sums over all ranks."""
    rng = np.random.default_rng(2)
    counts = 14_541 - rng.integers(0, 200, 40_932)
    weight = 1 / rng.integers(1, 60, 40_932)
    ranks = np.arange(1, 14_542, dtype=np.longdouble)
    for weighted in (None, weight):
        share = np.full(len(counts), 1 / len(counts)) if weighted is None else weight / weight.sum()
        for base, values in (
            ("mrr", 1 / ranks), ("hits@10", 1.0 * (ranks <= 10)), ("mr", ranks),
            ("log_mrr", 1 / np.log2(ranks + 1)), ("p_mrr@0.5", ranks**-0.5),
            ("p_mrr@0.02", ranks**-0.02),
        ):  # fmt: skip
            mean = np.cumsum(values)[counts - 1] / counts
            square = np.cumsum(values**2)[counts - 1] / counts
            chance = random_scorer(base, counts, weighted)
            assert chance.mean == pytest.approx(float((share * mean).sum()), rel=1e-12)
            due = float((share**2 * (square - mean**2)).sum())
            assert chance.variance == pytest.approx(due, rel=1e-10)
    log = np.log(ranks)
    power = 1 / np.longdouble(len(counts))
    mean = np.log1p(np.cumsum(np.expm1(power * log))[counts - 1] / counts).sum()
    square = np.log1p(np.cumsum(np.expm1(2 * power * log))[counts - 1] / counts).sum()
    chance = random_scorer("gmr", counts)
    assert chance.mean == pytest.approx(float(np.exp(mean)), rel=1e-12)
    due = float(np.exp(2 * mean) * np.expm1(square - 2 * mean))
    assert chance.variance == pytest.approx(due, rel=1e-8)


def test_the_continuous_approximation_has_a_name_and_is_too_small() -> None:
    case = Case(5, [(0, 0, 1)], {(0, 1, 0): [4, 3, 2, 1, 0], (1, 0, 0): [3, 2, 4, 1, 0]})
    exact, rough = (
        ask(case, f"both.realistic.micro.{name}") for name in ("mrr_ratio", "mrr_ratio_continuous")
    )
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    assert exact == pytest.approx(2 / 3 / (harmonic / 5))
    assert rough == pytest.approx(2 / 3 / (math.log(5) / 4))
    assert rough > exact
    expected = math.log(5) / 4
    index = ask(case, "both.realistic.micro.adjusted_mrr_continuous")
    assert index == pytest.approx((2 / 3 - expected) / (1 - expected))


@pytest.mark.parametrize(("c", "mean"), [(1, 1.0), (2, math.log(2)), (3, math.log(3) / 2)])
def test_the_continuous_approximation_of_few_candidates(c: int, mean: float) -> None:
    chance = random_baseline.reciprocal_continuous(random_baseline.Tally.of([c], None), 0)
    assert chance.mean == pytest.approx(mean, rel=1e-15)


def test_nothing_to_rank_has_no_index_and_no_z() -> None:
    alone = Case(1, [(0, 0, 0)], {(0, 0, 0): [1], (1, 0, 0): [1]})
    for metric, (_, how) in ADJUSTED.items():
        value = ask(alone, f"both.realistic.micro.{metric}")
        assert value == 1 if how == "ratio" else math.isnan(value)


@pytest.mark.parametrize(
    ("metric", "candidates", "weight", "says"),
    [
        ("ndcg", [3], None, "'ndcg' has no expectation by chance"),
        ("amri", [3], None, "choose one of mr, mrr, hits@k, gmr, log_mrr, p_mrr@p"),
        ("mr", [], None, "one number per item"),
        ("mr", [[3]], None, "one number per item"),
        ("mr", [3, 0], None, "candidates contains 0"),
        ("mr", [3], [1, 2], "weight has shape (2,)"),
        ("mr", [3, 3], [1, -1], "weights must be 0 or more"),
        ("mr", [3, 3], [0, 0], "not all of them 0"),
        ("mr", [3, 3], [math.nan, 1], "weights must be 0 or more"),
    ],
)
def test_what_random_scorer_refuses(
    metric: str, candidates: list[int], weight: list[float] | None, says: str
) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        random_scorer(metric, candidates, weight)
    assert says in str(caught.value)


def test_amr_of_one_large_random_scorer() -> None:
    rng = np.random.default_rng(3)
    counts, n = rng.integers(1, 15_000, 40_000), 40_000
    table = {"greater": rng.integers(0, counts), "candidates": counts, "question": np.arange(n)}
    table |= {f"macro_{name}": table[name] for name in ("greater", "candidates")}
    ranks = make_ranks(table | {"side": np.ones(n, np.int64), "triple": np.arange(n)})
    result = kgtrec.Result(ranks)
    mean, variance = random_scorer("mr", counts)
    assert result["tail.micro.amr"] == pytest.approx(1, abs=4 * math.sqrt(variance) / mean)
    assert abs(result["tail.micro.z_mr"]) < 4
