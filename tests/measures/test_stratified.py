"""Grids of stratified metrics, wide ties of triples, and random scorers of many sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from rank_cases import Case, F, ask, columns, make_ranks, no_trec, places, some_ranks
from refusals import each_row
from slow import slow_after

import kgtrec
from kgtrec import Ranks
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import RANK_TYPES, Measure, random_scorer, stratified_grid
from kgtrec.measures.calculator import Calculator

METRICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mr": lambda rank: rank, "mrr": lambda rank: 1 / rank,
    "hits@3": lambda rank: (rank <= 3).astype(float),
}  # fmt: skip

BETAS = [-1.0, -0.35, 0.0, 0.5, 1.0]

SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}


def value_of(ranks: Ranks, metric: str, rank_type: str) -> np.ndarray:
    """The metric per instance; expected: rank by rank over the tie."""
    if rank_type != "expected":
        return METRICS[metric](ranks.rank(rank_type))
    ties = zip(ranks.greater, ranks.equal, strict=True)
    return np.array([METRICS[metric](np.arange(g + 1.0, g + e + 2)).mean() for g, e in ties])


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


def random_ranks(n: int, seed: int) -> Ranks:
    """Ranks of n triples in random order, some with one side only, many tied."""
    return some_ranks(n, True, seed).subset(np.arange(2 * n - n // 10))


@pytest.mark.parametrize("rank_type", slow_after(1, RANK_TYPES))
@pytest.mark.parametrize("side", SIDES)
def test_large_strata_follow_the_formula_and_the_keys(rank_type: str, side: str) -> None:
    ranks = random_ranks(1_500, 1)
    grid = stratified_grid(ranks, BETAS, BETAS, METRICS, rank_type, side)
    assert (grid.dtype, grid.shape) == (np.float64, (3, 5, 5))
    calculator = Calculator(ranks, no_trec)
    for line, metric in zip(grid, METRICS, strict=True):
        value = value_of(ranks, metric, rank_type)
        for got, (beta_e, beta_r) in zip(line.flat, product(BETAS, BETAS), strict=True):
            due = formula(ranks, value, side, beta_e, beta_r)
            assert got == pytest.approx(due, rel=1e-12)
            key = f"{side}.{rank_type}.stratified.{metric}({beta_e},{beta_r})"
            assert got == calculator.value(Measure.parse(key))


def test_bits_do_not_depend_on_other_metrics_or_the_order_of_rows_or_points() -> None:
    ranks = random_ranks(2_000, 3)
    metrics = [f"hits@{k}" for k in range(1, 10)]
    grid = stratified_grid(ranks, BETAS, BETAS, metrics)
    for n in range(10):
        assert np.array_equal(grid[:n], stratified_grid(ranks, BETAS, BETAS, metrics[:n]))
        assert np.array_equal(grid[n:][:1], stratified_grid(ranks, BETAS, BETAS, metrics[n:][:1]))
    shuffled = ranks.subset(np.random.default_rng(0).permutation(len(ranks)))
    assert np.array_equal(grid, stratified_grid(shuffled, BETAS, BETAS, metrics))
    part = stratified_grid(ranks, BETAS[::-2], BETAS[:2], metrics)
    assert np.array_equal(grid[:, ::-2, :2], part)
    assert stratified_grid(ranks, [], BETAS).shape == (4, 0, 5)
    assert stratified_grid(ranks, BETAS, np.array([], np.float32)).shape == (4, 5, 0)
    twice = stratified_grid(ranks, np.array([1, 0, -1]), BETAS, ["mrr", "MRR", "hits_at_3"])
    assert np.array_equal(twice[0], twice[1])


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


@each_row("arguments, hint",
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
)  # fmt: skip
def test_wrong_arguments(arguments: dict, hint: str) -> None:
    case = Case(2, [(0, 0, 1)], {(1, 0, 0): [0, 1]}, sides=(1,))
    options = {"beta_e": [0], "beta_r": [0], "side": "tail"} | arguments
    with pytest.raises(UsageError, match=hint):
        stratified_grid(make_ranks(columns(case)), **options)


# -- Triples: pairs of ranks ----------------------------------------------------------------------


def test_triples_need_both_sides() -> None:
    questions = [(0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 1, 0)]
    case = Case(3, [(0, 0, 1), (1, 0, 2)], {question: [1, 0, 2] for question in questions})
    assert ask(case, "both.realistic.triple.mr") == ask(case, "both.realistic.micro.mr")
    case.rows = case.rows[1:]
    with pytest.raises(InputError, match=r"1 triples, such as \[0\], have only one"):
        ask(case, "both.realistic.triple.mr")
    with pytest.raises(UsageError, match=r"ask for both\.…"):
        Measure.parse("head.realistic.triple.mr")


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


# -- A random scorer: against tables of sums over all ranks ----------------------------------------


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
def test_what_random_scorer_refuses(metric, candidates, weight, says) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        random_scorer(metric, candidates, weight)
    assert says in str(caught.value)
