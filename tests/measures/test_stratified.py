"""Grids of stratified metrics, wide ties of triples, and random scorers of many sizes."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from rank_cases import F, make_ranks, no_trec, popularity_weights, possible_ranks, some_ranks
from slow import slow_after

import kgtrec
from kgtrec import Ranks
from kgtrec.measures import RANK_TYPES, Measure, random_scorer, stratified_grid
from kgtrec.measures.calculator import Calculator

BETAS = [-1.0, -0.35, 0.0, 0.5, 1.0]

COLUMNS = (
    "triple",
    "relation",
    "greater",
    "equal",
    "tied_ahead",
    "answer_popularity",
    "relation_popularity",
)
SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}


def random_ranks(n: int, seed: int) -> Ranks:
    """Ranks of n triples in random order, some with one side only, many tied."""
    return some_ranks(n, True, seed).subset(np.arange(2 * n - n // 10))


@pytest.mark.parametrize("rank_type", slow_after(1, RANK_TYPES))
@pytest.mark.parametrize("side", SIDES)
def test_large_strata_follow_the_formula_and_the_keys(rank_type: str, side: str) -> None:
    ranks, metrics = random_ranks(1_500, 1), ("mr", "mrr", "hits@2")
    grid = stratified_grid(ranks, BETAS, BETAS, metrics, rank_type, side)
    assert (grid.dtype, grid.shape) == (np.float64, (3, 5, 5))
    kept = ranks.subset(np.isin(ranks.side, SIDES[side]))
    columns = [getattr(kept, name).tolist() for name in COLUMNS]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    calculator = Calculator(ranks, no_trec)
    for line, metric in zip(grid, metrics, strict=True):
        values = [
            np.mean([float(F[metric](r)) for r in possible_ranks(row, rank_type)]) for row in rows
        ]
        for got, (beta_e, beta_r) in zip(line.flat, product(BETAS, BETAS), strict=True):
            due = np.average(values, weights=popularity_weights(rows, beta_e, beta_r))
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


def test_wide_ties_of_triples() -> None:
    """Many places on both sides: the rise, the level and the fall of pairs of ranks."""
    sizes = [(1, 120), (119, 120), (120, 120), (2, 2), (90, 70)]
    wide = [
        {"greater": g, "equal": size - 1, "tied_ahead": 0, "candidates": 1000}
        for g, (a, b) in enumerate(sizes)
        for size in (a, b)
    ]
    for i, row in enumerate(wide):
        row |= {"side": i % 2, "triple": i // 2, "question": i, "relation": 0}
    ranks = make_ranks({name: np.array([r[name] for r in wide]) for name in wide[0]})
    for metric in ("mrr", "log_mrr", "hits@2", "p_mrr@0.3", "gmr"):
        due = []
        for head, tail in zip(wide[::2], wide[1::2], strict=True):
            pairs = product(possible_ranks(head, "expected"), possible_ranks(tail, "expected"))
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
            ("mrr", 1 / ranks),
            ("hits@10", 1.0 * (ranks <= 10)),
            ("mr", ranks),
            ("log_mrr", 1 / np.log2(ranks + 1)),
            ("p_mrr@0.5", ranks**-0.5),
            ("p_mrr@0.02", ranks**-0.02),
        ):
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
