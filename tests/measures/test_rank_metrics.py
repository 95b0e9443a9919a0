"""Every metric in every averaging against one slow definition, and sums over long ties."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import reciprocal_within
from oracle import sampled_hits as slow_sampled_hits
from profiles import examples
from rank_cases import (
    ALL_KINDS,
    Case,
    F,
    cases,
    columns,
    example_parameter,
    make_ranks,
    no_trec,
    popularity_weights,
    possible_ranks,
    questions,
    sides_of,
    some_ranks,
    weights,
)

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.measures import AVERAGINGS, METRICS, RANK_TYPES, Measure, random_scorer
from kgtrec.measures.calculator import PER_RELATION, Calculator
from kgtrec.measures.random_baseline import Tally
from kgtrec.measures.random_median import median
from kgtrec.measures.rank_metrics import TO_DEVIATION, hits, mean_rank, reciprocal_rank
from kgtrec.measures.sampled_hits import sampled_hits
from kgtrec.measures.ties import (
    Ties,
    expected_hits,
    expected_log_rank,
    expected_rank,
    expected_reciprocal,
    sums_over,
)

# -- The definition: ranks that are equally likely, weights by counting ---------------------------


class Item(NamedTuple):
    """An instance, question or triple: its possible ranks, and those of a random scorer."""

    relation: int
    ranks: list[Fraction]
    chance: list[Fraction]
    weight: float | Fraction = Fraction(1)


def items_of(case: Case, side: str, averaging: str, kind: str, betas: tuple[float, float]) -> list:
    rows = case.of_side(side)
    if averaging == "macro":
        return [first_answer(case, same, kind) for same in questions(case, side)]
    alone = [
        Item(row["relation"], possible_ranks(row, kind), upto(row["candidates"])) for row in rows
    ]
    if averaging == "triple":
        head, tail = ([alone[i] for i, row in enumerate(rows) if row["side"] == s] for s in (0, 1))
        return [
            Item(a.relation, means(a.ranks, b.ranks), means(a.chance, b.chance))
            for a, b in zip(head, tail, strict=True)
        ]
    if averaging == "stratified":
        weight = popularity_weights(rows, *betas)
    else:
        weight = weights(rows, "micro" if averaging == "macro_relation" else averaging)
    return [item._replace(weight=w) for item, w in zip(alone, weight, strict=True)]


def upto(candidates: int) -> list[Fraction]:
    return [Fraction(r) for r in range(1, candidates + 1)]


def means(some: list[Fraction], others: list[Fraction]) -> list[Fraction]:
    return [(a + b) / 2 for a, b in product(some, others)]


def first_answer(case: Case, rows: list[dict[str, int]], kind: str) -> Item:
    row = rows[0]
    ranks = [Fraction(r) for r in case.first_places((row["side"], row["given"], row["relation"]))]
    best, worst = min(ranks), max(ranks)
    if kind != "expected":
        ordinal = min(possible_ranks(row, "ordinal", "macro_")[0] for row in rows)
        ranks = [
            {
                "optimistic": best,
                "realistic": (best + worst) / 2,
                "pessimistic": worst,
                "ordinal": ordinal,
            }[kind]
        ]
    return Item(row["relation"], ranks, [])


MEANS: dict[str, tuple[str, Callable[[float], float]]] = {
    **{name: (name, lambda mean: mean) for name in F},
    "gmr": ("gmr", math.exp),
    "igmr": ("gmr", lambda mean: math.exp(-mean)),
    "hmr": ("mrr", lambda mean: 1 / mean),
    "imr": ("mr", lambda mean: 1 / mean),
}
ADJUSTED = {
    "amr": ("mr", "ratio"),
    "amri": ("mr", "index"),
    "z_mr": ("mr", "z"),
    "mrr_ratio": ("mrr", "ratio"),
    "adjusted_mrr": ("mrr", "index"),
    "z_mrr": ("mrr", "z"),
    "mrr_ratio_continuous": ("mrr", "ratio"),
    "adjusted_mrr_continuous": ("mrr", "index"),
    "hits_ratio@2": ("hits@2", "ratio"),
    "adjusted_hits@2": ("hits@2", "index"),
    "z_hits@2": ("hits@2", "z"),
    "log_mrr_ratio": ("log_mrr", "ratio"),
    "adjusted_log_mrr": ("log_mrr", "index"),
    "z_log_mrr": ("log_mrr", "z"),
    "p_mrr_ratio@0.3": ("p_mrr@0.3", "ratio"),
    "adjusted_p_mrr@0.3": ("p_mrr@0.3", "index"),
    "z_p_mrr@0.3": ("p_mrr@0.3", "z"),
    "agmr": ("gmr", "ratio"),
    "agmri": ("gmr", "index"),
    "z_gmr": ("gmr", "z"),
    "adjusted_median_rank": ("median_rank", "ratio"),
    "adjusted_median_rank_index": ("median_rank", "index"),
}
SPREAD = {"median_rank", "inverse_median_rank", "mad", "var", "std", "count"}
BY_CANDIDATES = {"probe@0.3", "wgmr", "hits@2_4"}
LISTED: dict[str, Callable[[Fraction], Fraction]] = {
    "listed_mrr": reciprocal_within,
    "mrr_within@2": lambda rank: reciprocal_within(rank, 2),
}
WAYS = 3000


def average(values: list) -> float | Fraction:
    return sum(values) / len(values)


def weighted(items: list[Item], values: list) -> float | Fraction:
    pairs = zip(items, values, strict=True)
    return sum(item.weight * value for item, value in pairs) / sum(item.weight for item in items)


def slow_chance(name: str, base: str, items: list[Item]) -> tuple[float, float]:
    """Mean and variance item by item and rank by rank: no harmonic numbers, no grouping."""
    if name.endswith("continuous"):
        sizes = [len(item.chance) for item in items]
        return weighted(items, [math.log(c) / (c - 1) if c > 1 else 1 for c in sizes]), math.nan
    if base == "median_rank":
        return slow_median_by_chance([len(item.chance) for item in items]), math.nan
    total = sum(item.weight for item in items)
    shares = [float(item.weight / total) for item in items]
    if base == "gmr":
        mean, square = (
            math.prod(
                average([float(r) ** (t * share) for r in item.chance])
                for item, share in zip(items, shares, strict=True)
            )
            for t in (1, 2)
        )
        return mean, square - mean**2
    values = [[F[base](r) for r in item.chance] for item in items]
    middles = [average(each) for each in values]
    spreads = [
        average([(v - m) ** 2 for v in each]) for each, m in zip(values, middles, strict=True)
    ]
    variance = sum(s**2 * float(v) for s, v in zip(shares, spreads, strict=True))
    return float(weighted(items, middles)), variance


def adjusted(how: str, base: str, value: float, mean: float, variance: float) -> float:
    if how == "ratio":
        return value / mean
    if how == "index":
        return (value - mean) / (1 - mean) if abs(1 - mean) > 1e-12 else math.nan
    sign = -1 if base in ("mr", "gmr") else 1
    return sign * (value - mean) / math.sqrt(variance) if variance > 1e-12 else math.nan


def slow_median(pairs: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Least value with half of the weight up to it; the midpoint with the next at exactly half."""
    half = sum(weight for _, weight in pairs) / Fraction(2)
    values = sorted({value for value, _ in pairs})
    up_to = [sum(w for other, w in pairs if other <= value) for value in values]
    first = next(i for i, share in enumerate(up_to) if share >= half)
    return (values[first] + values[first + 1]) / 2 if up_to[first] == half else values[first]


def slow_spread(name: str, items: list[Item]) -> float | None:
    """None if there are too many ways to break the ties."""
    if name == "count":
        return len(items)
    if name in ("var", "std"):
        if math.prod(len(item.ranks) for item in items) > WAYS:
            return None
        squares = []
        for ranks in product(*(item.ranks for item in items)):
            mean = weighted(items, list(ranks))
            squares.append(weighted(items, [(r - mean) ** 2 for r in ranks]))
        return float(average(squares)) ** (1 if name == "var" else 0.5)
    pooled = [(rank, item.weight / len(item.ranks)) for item in items for rank in item.ranks]
    median = slow_median(pooled)
    if name == "mad":
        return TO_DEVIATION * float(slow_median([(abs(r - median), w) for r, w in pooled]))
    return float(median if name == "median_rank" else 1 / median)


def slow_median_by_chance(sizes: list[int]) -> float:
    """Mean median of ranks 1 .. c: sum over x of P(fewer than k ranks up to x), rank by rank."""
    n = len(sizes)
    orders = [(n + 1) // 2] if n % 2 else [n // 2, n // 2 + 1]
    total = Fraction(0)
    for x in range(max(sizes)):
        up_to = [Fraction(1)]
        for c in sizes:
            p = min(Fraction(x, c), Fraction(1))
            stays, grows = [v * (1 - p) for v in up_to], [v * p for v in up_to]
            up_to = [a + b for a, b in zip([*stays, 0], [0, *grows], strict=True)]
        total += sum(sum(up_to[:k]) for k in orders) / len(orders)
    return float(total)


def probe(rank: Fraction, candidates: int, a: float) -> float:
    """The paper's score of a rank, as printed."""
    if candidates == 1:
        return 1.0
    if a == 0:
        return 1 - math.log(rank) / math.log(candidates)
    lowest = candidates**-a
    return (float(rank) ** -a - lowest) / (1 - lowest)


def slow_by_candidates(name: str, items: list[Item]) -> float:
    if name == "wgmr":
        weight = [item.weight * (len(item.chance) - 1) for item in items]
        logs = [average([math.log(r) for r in item.ranks]) for item in items]
        total = sum(weight)
        pairs = zip(weight, logs, strict=True)
        return math.exp(sum(w * log for w, log in pairs) / total) if total else math.nan
    if name.startswith("hits@"):
        k, n = map(int, name.partition("@")[2].split("_"))
        chances = [[slow_sampled_hits(r, len(i.chance), k, n) for r in i.ranks] for i in items]
        return float(weighted(items, [average(each) for each in chances]))
    a = float(name.partition("@")[2])
    scores = [[probe(r, len(item.chance), a) for r in item.ranks] for item in items]
    return float(weighted(items, [average(each) for each in scores]))


def slow_value(name: str, items: list[Item]) -> float | Fraction | None:
    if name in BY_CANDIDATES or name.startswith("probe@"):
        return slow_by_candidates(name, items)
    if name in LISTED:
        return weighted(items, [average([*map(LISTED[name], i.ranks)]) for i in items])
    if name in MEANS:
        base, of_mean = MEANS[name]
        return of_mean(weighted(items, [average([*map(F[base], i.ranks)]) for i in items]))
    if name in SPREAD:
        return slow_spread(name, items)
    base, how = ADJUSTED[name]
    value = float(slow_value(base, items))
    return adjusted(how, base, value, *slow_chance(name, base, items))


def check(name: str, got: float, due: float | Fraction | None, exact: bool) -> None:
    if exact:  # integer sums: the nearest double, not a neighbour
        assert got == float(due), name
    elif due is not None:
        close = {"rel": 1e-8, "abs": 1e-9} if name in ADJUSTED else {"rel": 1e-11, "abs": 1e-12}
        assert got == pytest.approx(float(due), **close, nan_ok=True), name


betas = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])


@pytest.mark.parametrize("averaging", sorted({*AVERAGINGS} - {"group"}))
@examples(0.8)
@given(cases(), st.sampled_from(ALL_KINDS), betas, betas, st.data())
def test_every_metric_is_as_defined(
    averaging: str, case: Case, kind: str, beta_e: float, beta_r: float, data: st.DataObject
) -> None:
    sides = sides_of(case)
    side = "both" if averaging == "triple" else data.draw(st.sampled_from(sides))
    if side not in sides:
        return
    items = items_of(case, side, averaging, kind, (beta_e, beta_r))
    relations = sorted({item.relation for item in items})
    by_relation = [[item for item in items if item.relation == r] for r in relations]
    calculator = Calculator(make_ranks(columns(case, 5)), no_trec)
    for metric in METRICS:
        if averaging not in metric.averagings:
            continue
        name = metric.name_with(example_parameter(metric))
        params = f"({beta_e},{beta_r})" if averaging == "stratified" else ""
        measure = Measure.parse(f"{side}.{kind}.{averaging}.{name}{params}")
        parts = [slow_value(name, part) for part in by_relation]
        exact = kind != "expected" and averaging == "micro" and name in ("mr", "hits@2")
        if averaging != "macro_relation":
            check(name, calculator.value(measure), slow_value(name, items), exact)
        elif None not in parts:
            check(name, calculator.value(measure), average([*map(float, parts)]), False)
        if averaging in PER_RELATION:
            assert calculator.relations(side)[0].tolist() == relations
            for got, due in zip(calculator.per_relation(measure), parts, strict=True):
                check(name, got, due, exact)
        else:
            with pytest.raises(UsageError, match="weighs relations against each other"):
                calculator.per_relation(measure)


def test_relations_of_one_side_weigh_the_same_whatever_the_other_side_has() -> None:
    rows = {
        "side": [1, 1, 0, 1, 0, 0],
        "relation": [0, 0, 0, 1, 1, 1],
        "triple": range(6),
        "greater": [0, 1, 5, 3, 7, 8],
        "candidates": [20] * 6,
    }
    ranks = make_ranks({name: np.array(row, np.int64) for name, row in rows.items()})
    got = Calculator(ranks, no_trec).value(Measure.parse("tail.realistic.relation.mrr"))
    assert got == ((1 + 1 / 2) / 2 + 1 / 4) / 2


def test_the_definition_has_every_metric() -> None:
    names = {metric.name_with(example_parameter(metric)) for metric in METRICS}
    assert names == {*MEANS, *ADJUSTED, *SPREAD, *BY_CANDIDATES, *LISTED}
    assert NormalDist().inv_cdf(0.75) * TO_DEVIATION == pytest.approx(1, rel=1e-14)


@examples(0.5)
@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from([-10, -1, -1e-9, 0, 1e-9, 1, 4, 10]))
def test_probe_at_every_sharpness(case: Case, kind: str, a: float) -> None:
    side = sides_of(case)[-1]
    items = items_of(case, side, "micro", kind, (0, 0))
    got = Calculator(make_ranks(columns(case, 5)), no_trec).value(
        Measure.parse(f"{side}.{kind}.micro.probe@{a}")
    )
    near = 0 if abs(a) == 1e-9 else a  # the printed formula loses all digits there
    due = slow_value(f"probe@{near}", items)
    assert got == pytest.approx(due, abs=1e-7 if near != a else 1e-12)


# -- Hits@k among negatives drawn at random -------------------------------------------------------


def ties_of(rows: list[tuple[int, int, int]]) -> Ties:
    """Ties of instances with these counts: greater, equal, candidates."""
    greater, equal, candidates = np.array(rows, np.int64).T
    return Ties(greater, equal, equal, np.ones_like(equal), candidates)


@pytest.mark.parametrize(("k", "n"), [(1, 2), (1, 4), (2, 4), (3, 4), (4, 4), (5, 4), (1, 1)])
def test_hits_among_negatives_are_the_share_of_all_draws(k: int, n: int) -> None:
    """Every draw of n - 1 of the other candidates is tried; the first `above` beat the answer."""
    for candidates in (2, 3, 5):
        for above in range(candidates):
            draws = product(range(candidates - 1), repeat=n - 1)
            shares = [sum(drawn < above for drawn in draw) < k for draw in draws]
            (got,) = sampled_hits(ties_of([(above, 0, candidates)]), "realistic", (k, n)).scaled
            assert got == pytest.approx(sum(shares) / len(shares), rel=1e-13)


def test_hits_among_negatives_of_long_ties_and_many_candidates() -> None:
    """As a polynomial of the rank, and rank by rank; both against exact fractions."""
    rows = [(0, 699, 700), (10, 600, 700), (5, 3, 9), (100, 3000, 5000), (2000, 900, 5000)]
    rows += [(0, 4999, 5000), (4399, 600, 5000), (0, 0, 1), (3200, 512, 5000), (0, 9, 10)]
    for k, n in ((10, 50), (1, 50), (2, 5), (9, 3), (3, 400)):
        if n == 400:  # more draws than a polynomial between whole ranks allows
            rows = [(0, 599, 600)]
        got = sampled_hits(ties_of(rows), "expected", (k, n)).scaled
        for value, (greater, equal, candidates) in zip(got, rows, strict=True):
            ranks = range(greater + 1, greater + equal + 2)
            due = average([slow_sampled_hits(r, candidates, k, n) for r in ranks])
            assert value == pytest.approx(float(due), rel=1e-12)
    deep = 10**7
    rows = [(rank - 1, 0, deep) for rank in (1, 2, 10**6, 5 * 10**6, deep - 1, deep)]
    got = sampled_hits(ties_of(rows), "pessimistic", (10, 50)).scaled
    for value, (above, _, _) in zip(got, rows, strict=True):
        assert value == pytest.approx(float(slow_sampled_hits(above + 1, deep, 10, 50)), rel=1e-12)
    # All tied: X is uniform on 0 .. 49 if ranks are continuous.
    (share,) = sampled_hits(ties_of([(0, deep - 1, deep)]), "expected", (10, 50)).scaled
    assert share == pytest.approx(10 / 50, rel=1e-6)


def test_hits_among_negatives_in_parts_have_the_bits_of_the_whole(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    rows = [(int(g), int(e), 5000) for g, e in rng.integers(0, 2500, (40, 2))]
    whole = sampled_hits(ties_of(rows), "expected", (10, 50)).scaled
    monkeypatch.setattr("kgtrec.measures.sampled_hits._CELLS", 70)
    parts = sampled_hits(ties_of(rows), "expected", (10, 50)).scaled
    assert parts == pytest.approx(whole, rel=1e-13)


def test_the_median_by_chance_of_many_ranks() -> None:
    """Windows, pieces, both forms of the characteristic function; also very unequal candidates."""
    rng = np.random.default_rng(7)
    for sizes in (
        rng.integers(150, 300, 81),
        rng.choice([1, 40, 300], 30),
        np.repeat([1, 2, 300], [20, 3, 22]),
        np.full(60, 400),
    ):
        got = median(Tally.from_items(sizes), 0).mean
        assert got == pytest.approx(slow_median_by_chance(sizes.tolist()), rel=1e-13)
    # The median of an odd number of equal uniforms is symmetric, whatever their number.
    assert median(Tally.from_items(np.full(40_001, 14_541)), 0).mean == pytest.approx(
        7271, rel=1e-13
    )


small = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=5)


@pytest.mark.parametrize("base", sorted(F))
@examples(0.5)
@given(small, st.booleans())
def test_chance_is_the_mean_over_all_outcomes(
    base: str, sizes: list[tuple[int, int]], is_weighted: bool
) -> None:
    """Every combination of ranks is equally likely: list them all."""
    counts, weight = zip(*sizes, strict=True)
    weight = weight if is_weighted else (1,) * len(counts)
    outcomes = [
        float(slow_value(base, [Item(0, [r], [], w) for r, w in zip(ranks, weight, strict=True)]))
        for ranks in product(*map(upto, counts))
    ]
    mean = average(outcomes)
    chance = random_scorer(base, counts, weight if is_weighted else None)
    assert chance.mean == pytest.approx(mean, rel=1e-12)
    variance = average([(value - mean) ** 2 for value in outcomes])
    assert chance.variance == pytest.approx(variance, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(
    ("answer", "rank"),
    [
        # Two tied alone at the top: no order of the two puts both behind the first place.
        ({"candidates": 2, "macro_equal": 1, "macro_candidates": 3}, 1),
        # Without scores (nan="worst") they do not tie: every answer may have the very last rank.
        ({"greater": 2, "candidates": 3, "macro_greater": 2, "macro_candidates": 3}, 3),
    ],
)
def test_two_answers_of_a_question(answer: dict[str, int], rank: int) -> None:
    names = ("greater", "equal", "tied_ahead", "macro_greater", "macro_equal")
    row = dict.fromkeys(names, 0) | {"side": 1, "question": 0, "relation": 0} | answer
    rows = [row | {"macro_tied_ahead": i * row["macro_equal"], "triple": i} for i in range(2)]
    ranks = make_ranks({name: np.array([r[name] for r in rows]) for name in rows[0]})
    for kind in ALL_KINDS:
        assert Calculator(ranks, no_trec).value(Measure.parse(f"tail.{kind}.macro.mr")) == rank


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


def test_trec_values_are_averaged_as_trec_eval_does() -> None:
    case = Case(2, [(0, 0, 1)], {(0, 1, 0): [1, 0], (1, 0, 0): [0, 1]})
    values = {"P_5": [0.2, 0.4], "num_ret": [3.0, 4.0], "gm_map": [math.log(0.25), 0.0]}
    engine = Calculator(make_ranks(columns(case)), lambda name: np.array(values[name]))
    assert engine.value(Measure.parse("both.macro.P_5")) == pytest.approx(0.3)
    assert engine.value(Measure.parse("tail.macro.P_5")) == 0.4
    assert engine.value(Measure.parse("both.macro.num_ret")) == 7
    assert engine.value(Measure.parse("both.macro.gm_map")) == pytest.approx(0.5)


def test_rank_types_side_by_side() -> None:
    result = kgtrec.Result(some_ranks(50, True))
    keys = ["both.micro.mrr", "tail.stratified.mrr(0.5,0.5)"]
    due = [
        {
            "both.micro.mrr": result[f"both.{kind}.micro.mrr"],
            keys[1]: result[f"tail.{kind}.stratified.mrr(0.5,0.5)"],
        }
        for kind in RANK_TYPES
    ]
    assert result.rank_types(keys).to_dict() == dict(zip(RANK_TYPES, due, strict=True))


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


# -- Expectations under ties against exact fractions, or long decimals where ties are huge -------

BOUND = Fraction(1, 10**13)  # relative error that the docstrings promise

DIRECT = 300  # terms that the references sum one by one


def off(got: np.ndarray, due: Fraction | Decimal) -> Fraction:
    """Relative error of the one number in `got`."""
    assert got.shape == (1,)
    return abs(Fraction(float(got[0])) / Fraction(due) - 1)


def row(*numbers: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array([number]) for number in numbers)


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
