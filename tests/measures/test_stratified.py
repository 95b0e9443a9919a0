"""Grids of stratified metrics against the formula in numpy, point by point, and against keys."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import (
    ALL_KINDS,
    CLOSE,
    WEIGHTED,
    Case,
    F,
    ask,
    cases,
    columns,
    make_ranks,
    over_ties,
    places,
    sides_of,
    weighted_mean,
    weights,
)
from slow import slow_after

import kgtrec
from kgtrec import Ranks, _core
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import RANK_TYPES, Measure, stratified_grid
from kgtrec.measures.calculator import Calculator

METRICS = ("mr", "mrr", "hits@1", "hits@3", "hits@10")

BETAS = [-1.0, -0.35, 0.0, 0.5, 1.0]

SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}


def value_of(ranks: Ranks, metric: str, rank_type: str) -> np.ndarray:
    """The metric per instance; expected: rank by rank over the tie."""

    def f(rank: np.ndarray) -> np.ndarray:
        if metric == "mr":
            return rank
        return 1 / rank if metric == "mrr" else (rank <= int(metric[5:])).astype(float)

    if rank_type != "expected":
        return f(ranks.rank(rank_type))
    ties = zip(ranks.greater, ranks.equal, strict=True)
    return np.array([f(np.arange(g + 1.0, g + e + 2)).mean() for g, e in ties])


def formula(ranks: Ranks, value: np.ndarray, side: str, beta_e: float, beta_r: float) -> float:
    """The definition at one point, relation by relation."""
    keep = np.isin(ranks.side, SIDES[side])
    triple, relation = ranks.triple[keep], ranks.relation[keep]
    weight = ranks.answer_popularity[keep].astype(float) ** -beta_e
    within, share = [], []
    for r in np.unique(relation):
        of_r = relation == r
        _, number = np.unique(triple[of_r], return_inverse=True)
        top = np.bincount(number, weight[of_r] * value[keep][of_r])
        within.append(np.mean(top / np.bincount(number, weight[of_r])))
        share.append(float(ranks.relation_popularity[keep][of_r][0]) ** -beta_r)
    return float(np.dot(share, within) / np.sum(share))


def random_ranks(n: int, n_relations: int, seed: int) -> Ranks:
    """Ranks of n triples in random order, some with one side only, many tied."""
    rng = np.random.default_rng(seed)
    relation = rng.choice(
        n_relations, n, p=np.arange(1, n_relations + 1) / n_relations * 2 / (n_relations + 1)
    )
    side, triple = np.divmod(rng.permutation(2 * n)[: 2 * n - n // 10], n)
    size = len(triple)
    greater = rng.geometric(0.02, size) - 1
    equal = rng.choice([0, 0, 0, 1, 5, 60], size)
    table = {
        "triple": triple,
        "side": side,
        "relation": relation[triple],
        "question": np.arange(size),
        "greater": greater,
        "equal": equal,
        "tied_ahead": rng.integers(0, equal + 1),
        "candidates": greater + equal + 1,
        "answer_popularity": rng.zipf(1.5, size) % 10_000 + 1,
        "relation_popularity": np.bincount(relation)[relation[triple]],
    }
    return make_ranks(table)


# --- values ---------------------------------------------------------------------------------------


@given(cases(), st.sampled_from(sorted(RANK_TYPES)), st.sampled_from(METRICS))
def test_small_cases_follow_the_formula(case: Case, rank_type: str, metric: str) -> None:
    ranks = make_ranks(columns(case))
    for side in ("head", "tail", "both"):
        if not np.isin(SIDES[side], case.sides).all():
            continue
        grid = stratified_grid(ranks, BETAS, BETAS[::2], [metric], rank_type, side)
        value = value_of(ranks, metric, rank_type)
        due = [[formula(ranks, value, side, e, r) for r in BETAS[::2]] for e in BETAS]
        assert grid.shape == (1, 5, 3)
        np.testing.assert_allclose(grid[0], due, rtol=1e-12)


@pytest.mark.parametrize("rank_type", slow_after(1, RANK_TYPES))
@pytest.mark.parametrize("side", SIDES)
def test_large_strata_follow_the_formula_and_the_keys(rank_type: str, side: str) -> None:
    ranks = random_ranks(1_500, 7, seed=1)
    grid = stratified_grid(ranks, BETAS, BETAS, METRICS, rank_type, side)
    assert grid.dtype == np.float64
    assert grid.shape == (5, 5, 5)
    calculator = Calculator(ranks, lambda name: pytest.fail(name))
    for i, metric in enumerate(METRICS):
        value = value_of(ranks, metric, rank_type)
        for j, beta_e in enumerate(BETAS):
            for k, beta_r in enumerate(BETAS):
                due = formula(ranks, value, side, beta_e, beta_r)
                assert grid[i, j, k] == pytest.approx(due, rel=1e-12)
                key = f"{side}.{rank_type}.stratified.{metric}({beta_e},{beta_r})"
                assert grid[i, j, k] == calculator.value(Measure.parse(key))


def test_metrics_do_not_touch_each_other() -> None:
    ranks = random_ranks(200, 3, seed=2)
    for n_metrics in range(10):
        metrics = [f"hits@{k}" for k in range(1, n_metrics + 1)]
        grid = stratified_grid(ranks, BETAS, [0.5], metrics)
        assert grid.shape == (n_metrics, 5, 1)
        for line, metric in zip(grid, metrics, strict=True):
            assert np.array_equal(line, stratified_grid(ranks, BETAS, [0.5], metric)[0])


def test_bits_do_not_depend_on_the_order_of_rows_or_points() -> None:
    ranks = random_ranks(2_000, 5, seed=3)
    grid = stratified_grid(ranks, BETAS, BETAS)
    shuffled = ranks.subset(np.random.default_rng(0).permutation(len(ranks)))
    assert np.array_equal(grid, stratified_grid(shuffled, BETAS, BETAS))
    part = stratified_grid(ranks, BETAS[::-2], BETAS[:2])
    assert np.array_equal(grid[:, ::-2, :2], part)


def test_a_perfect_model_scores_exactly_one() -> None:
    ranks = random_ranks(500, 4, seed=4)
    ranks.greater[:] = ranks.equal[:] = ranks.tied_ahead[:] = 0
    for rank_type in RANK_TYPES:
        grid = stratified_grid(ranks, BETAS, [0.0], rank_type=rank_type)
        np.testing.assert_allclose(grid, 1, rtol=1e-15)


def test_corners() -> None:
    ranks = random_ranks(50, 3, seed=5)
    assert stratified_grid(ranks, [], BETAS).shape == (4, 0, 5)
    assert stratified_grid(ranks, BETAS, np.array([], np.float32)).shape == (4, 5, 0)
    assert stratified_grid(ranks, BETAS, BETAS, []).shape == (0, 5, 5)
    twice = stratified_grid(ranks, np.array([1, 0, -1]), BETAS, ["mrr", "MRR", "hits_at_3"])
    assert twice.shape == (3, 3, 5)
    assert np.array_equal(twice[0], twice[1])


# --- what is refused ------------------------------------------------------------------------------


def one_triple(entities: list[int], relation: int = 1) -> Ranks:
    case = Case(2, [(0, 0, 1)], {(0, 1, 0): [1, 0], (1, 0, 0): [0, 1]})
    popularity = {"relation_popularity": np.array([relation, relation])}
    return make_ranks(columns(case) | popularity | {"answer_popularity": np.array(entities)})


def test_popularity_zero() -> None:
    ranks = one_triple([0, 3])
    with pytest.raises(InputError, match=r"1 answer entities.*N\^-0\.5.*all splits"):
        stratified_grid(ranks, [-1, 0.5, 1], [0])
    assert stratified_grid(ranks, [-1, 0], [0], "mrr").tolist() == [[[1], [1]]]
    with pytest.raises(InputError, match=r"2 answer entities.*N\^1"):
        stratified_grid(one_triple([0, 0]), [0, -1], [0])
    assert stratified_grid(one_triple([0, 0]), [0], [0], "mrr") == 1
    with pytest.raises(InputError, match="at least one instance"):
        stratified_grid(one_triple([1, 1]).subset(np.array([], np.int64)), [0], [0])
    for beta_r in (-0.5, 0.5):
        with pytest.raises(InputError, match=r"1 relations.*evaluated split"):
            stratified_grid(one_triple([1, 3], relation=0), [0], [0, beta_r])


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"beta_e": [0, 1.5]}, r"beta_e contains 1\.5; exponents must be in \[-1, 1\]"),
        ({"beta_r": [np.nan]}, "beta_r contains nan"),
        ({"beta_r": 0.5}, r"beta_r has shape \(\); give a list"),
        ({"beta_e": [[0.5]]}, r"beta_e has shape \(1, 1\); give a list"),
        ({"beta_e": "half"}, "beta_e is 'half'; give a list"),
        ({"metrics": ["mrr", "mmr"]}, "did you mean 'mr' or 'mrr'"),
        ({"metrics": ["mrr", "gmr"]}, "gmr is not defined for stratified"),
        ({"metrics": ["map_cut_20"]}, "tail.macro.map_cut_20"),
        ({"rank_type": "best"}, "'best' is"),
        ({"side": "left"}, "'left' is not a side"),
        ({"side": "head"}, "needs the head side, but these ranks have only tail"),
    ],
)
def test_wrong_arguments(arguments: dict, hint: str) -> None:
    case = Case(2, [(0, 0, 1)], {(1, 0, 0): [0, 1]}, sides=(1,))
    options = {"beta_e": [0], "beta_r": [0], "side": "tail"} | arguments
    with pytest.raises(UsageError, match=hint):
        stratified_grid(make_ranks(columns(case)), **options)


def native(**changed: np.ndarray) -> np.ndarray:
    """One relation with two triples, of two instances and one."""
    arrays = {
        "relations": np.array([0, 2]),
        "triples": np.array([0, 2, 3]),
        "row": np.array([2, 0, 1]),
        "popularity_of": np.array([0, 1, 0], np.int32),
        "popularity": np.array([1.0, 3.0]),
        "relation_popularity": np.array([2.0]),
        "values": np.array([[0.5, 0.25, 1.0]]),
        "beta_e": np.array([1.0]),
        "beta_r": np.array([0.0]),
        "out": np.empty((1, 1, 1)),
    }
    _core.stratify(*(arrays | changed).values())
    return (arrays | changed)["out"]


def test_the_native_call_refuses_what_it_could_not_survive() -> None:
    assert native() == pytest.approx(((1.0 + 0.5 / 3) / (1 + 1 / 3) + 0.25) / 2, rel=1e-15)
    for wrong, message in [
        ({"triples": np.array([0, 2, 4])}, "triples: not ascending"),
        ({"triples": np.array([0, 3, 3])}, "triples: not ascending"),
        ({"relations": np.array([0, 3])}, "relations: not ascending"),
        ({"relations": np.array([], np.int64)}, "relations: not ascending"),
        ({"relation_popularity": np.array([])}, "relation_popularity: wrong length"),
        ({"row": np.array([2, 0, 3])}, "out of range"),
        ({"row": np.array([2, 0, -1])}, "out of range"),
        ({"popularity_of": np.array([0, 2, 0], np.int32)}, "out of range"),
        ({"popularity_of": np.array([0], np.int32)}, "out of range"),
        ({"out": np.empty((1, 1, 2))}, "out: wrong shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            native(**wrong)


# -- Averagings against slow definitions: weights of questions and relations, triples ------------


# --- means, with weights --------------------------------------------------------------------------


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED), st.sampled_from(sorted(F)))
def test_weighted_means(case: Case, kind: str, averaging: str, metric: str) -> None:
    for side in sides_of(case):
        rows = case.of_side(side)
        due = weighted_mean([over_ties(r, kind, F[metric]) for r in rows], weights(rows, averaging))
        due = math.exp(due) if metric == "gmr" else due
        assert ask(case, f"{side}.{kind}.{averaging}.{metric}") == pytest.approx(due, **CLOSE)


@given(cases(sides=(0, 1)), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(F)))
def test_triple_averaging_joins_head_and_tail(case: Case, kind: str, metric: str) -> None:
    values = []
    for number in range(len(case.triples)):
        head, tail = (row for row in case.rows if row["triple"] == number)
        pairs = product(places(head, kind), places(tail, kind))
        joined = [F[metric]((a + b) / 2) for a, b in pairs]
        values.append(math.fsum(joined) / len(joined))
    due = math.fsum(values) / len(values)
    due = math.exp(due) if metric == "gmr" else due
    assert ask(case, f"both.{kind}.triple.{metric}") == pytest.approx(due, **CLOSE)


@given(cases(sides=(0, 1)), st.sampled_from(ALL_KINDS), st.sampled_from(["mr", "amr", "amri"]))
def test_where_the_mean_rank_decides_triples_are_micro(case: Case, kind: str, metric: str) -> None:
    """Linear in the rank, and every triple has one instance on each side."""
    micro, triple = (ask(case, f"both.{kind}.{a}.{metric}") for a in ("micro", "triple"))
    assert triple == pytest.approx(micro, nan_ok=True, rel=1e-12)


def test_triples_need_both_sides() -> None:
    questions = [(0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 1, 0)]
    case = Case(3, [(0, 0, 1), (1, 0, 2)], {question: [1, 0, 2] for question in questions})
    assert ask(case, "both.realistic.triple.mr") == ask(case, "both.realistic.micro.mr")
    case.rows = case.rows[1:]
    with pytest.raises(InputError, match=r"1 triples, such as \[0\], have only one"):
        ask(case, "both.realistic.triple.mr")
    with pytest.raises(UsageError, match=r"ask for both\.…"):
        Measure.parse("head.realistic.triple.mr")


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED))
def test_inverses(case: Case, kind: str, averaging: str) -> None:
    head = f"{sides_of(case)[-1]}.{kind}.{averaging}"
    assert ask(case, f"{head}.hmr") * ask(case, f"{head}.mrr") == pytest.approx(1)
    assert ask(case, f"{head}.imr") * ask(case, f"{head}.mr") == pytest.approx(1)
    assert ask(case, f"{head}.igmr") * ask(case, f"{head}.gmr") == pytest.approx(1)
    median = ask(case, f"{head}.median_rank")
    assert ask(case, f"{head}.inverse_median_rank") * median == pytest.approx(1)


@given(cases(sides=(0, 1)), st.sampled_from(["question.mrr", "triple.log_mrr", "question.amri"]))
def test_one_relation_has_the_value_of_its_instances(case: Case, tail: str) -> None:
    table = columns(case)
    measure = Measure.parse(f"both.expected.{tail}")
    whole = Calculator(make_ranks(table), lambda name: np.array([]))
    relations, _ = whole.relations("both")
    for relation, value in zip(relations, whole.per_relation(measure), strict=True):
        keep = table["relation"] == relation
        part = make_ranks({name: column[keep] for name, column in table.items()})
        due = Calculator(part, lambda name: np.array([])).value(measure)
        assert value == pytest.approx(due, rel=1e-12, nan_ok=True)
    with pytest.raises(UsageError, match="weighs relations against each other"):
        whole.per_relation(Measure.parse("both.expected.relation.mrr"))


def test_relation_weights_count_the_asked_side_alone() -> None:
    """Relation 0 has two heads and one tail, relation 1 one head and two tails."""
    rows = [
        {"side": side, "triple": triple, "relation": relation, "question": number,
         "greater": number, "equal": 0, "tied_ahead": 0, "candidates": 10}
        for number, (side, triple, relation) in enumerate(
            [(0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 2, 1), (1, 2, 1), (1, 3, 1)]
        )
    ]  # fmt: skip
    result = kgtrec.Result(
        make_ranks({name: np.array([r[name] for r in rows]) for name in rows[0]})
    )
    assert result["head.realistic.relation.mr"] == pytest.approx((1.5 + 4) / 2)
    assert result["tail.realistic.relation.mr"] == pytest.approx((3 + 5.5) / 2)


def test_wide_ties_of_triples() -> None:
    """Many places on both sides: the rise, the level and the fall of pairs of ranks."""
    sizes = [(1, 120), (119, 120), (120, 120), (2, 2), (90, 70)]
    wide = [{"greater": g, "equal": size - 1, "tied_ahead": 0, "candidates": 1000}
            for g, (a, b) in enumerate(sizes) for size in (a, b)]  # fmt: skip
    for i, row in enumerate(wide):
        row |= {"side": i % 2, "triple": i // 2, "question": i, "relation": 0}
    ranks = make_ranks({name: np.array([r[name] for r in wide]) for name in wide[0]})
    for metric in ("mrr", "log_mrr", "hits@2", "p_mrr@0.3", "gmr"):
        due = []
        for head, tail in zip(wide[::2], wide[1::2], strict=True):
            pairs = product(places(head, "expected"), places(tail, "expected"))
            sums = Counter(a + b for a, b in pairs)
            top = math.fsum(n * F[metric](s / 2) for s, n in sums.items())
            due.append(top / sum(sums.values()))
        mean = math.fsum(due) / len(due)
        mean = math.exp(mean) if metric == "gmr" else mean
        assert kgtrec.Result(ranks)[f"both.expected.triple.{metric}"] == pytest.approx(mean, 1e-12)
