"""How often tests find what is not there, and corrections with them: families with known truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from kgtrec.study.comparison.samples import Samples
from kgtrec.study.comparison.significance import PairTests, corrected, pairs_of, pairwise

pytestmark = pytest.mark.slow

FAMILIES, ITEMS, SYSTEMS = 2_000, 90, 4
TESTS = ("randomisation", "t", "wilcoxon")


def reciprocal_ranks(rng: np.random.Generator, shift: np.ndarray) -> np.ndarray:
    """Hard and easy items, alike for all systems; skewed, in [0, 1]; a shift makes one better."""
    ease = rng.normal(-0.5, 1.2, (ITEMS, 1)) + shift
    rank = np.ceil(np.exp(np.maximum(0, -ease + rng.normal(0, 1.0, (ITEMS, len(shift))))))
    return 1 / rank


def pairs_by(test: str, values: np.ndarray) -> PairTests:
    names = tuple(f"s{k}" for k in range(values.shape[1]))
    one = Samples("m", "M", names, values, np.arange(len(values)), "questions")
    return pairwise(one, test, "none", permutations=199, threads=1)


@cache
def p_values(test: str, apart: bool) -> np.ndarray:
    """p of all pairs of every family, (FAMILIES, pairs): no system better, or the first."""
    rng = np.random.default_rng(21)
    shift = np.array([0.6 * apart, 0, 0, 0])
    return np.array([pairs_by(test, reciprocal_ranks(rng, shift)).p for _ in range(FAMILIES)])


def bound(level: float) -> float:
    """By chance exceeded once in a thousand seeds."""
    return level + 3.1 * np.sqrt(level * (1 - level) / FAMILIES)


@pytest.mark.parametrize("test", TESTS)
def test_each_pair_is_found_at_the_level(test: str) -> None:
    p = p_values(test, False)
    for level in (0.01, 0.05, 0.2):
        for pair in p.T:
            share = np.mean(pair <= level)
            assert share <= bound(level)
            assert share >= level - 4 * np.sqrt(level * (1 - level) / FAMILIES)  # nor too careful


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("method", ["holm", "bonferroni", "bh"])
def test_any_false_finding_is_rare_where_all_are_alike(test: str, method: str) -> None:
    p = p_values(test, False)
    plain = np.mean((p <= 0.05).any(axis=1))
    rate = np.mean([(corrected(row, method) <= 0.05).any() for row in p])
    assert plain > bound(0.05)  # without a correction, they are not rare
    # Where no difference is real, the false discovery rate is the chance of any finding.
    assert 0.005 < rate <= bound(0.05)


@pytest.mark.parametrize("test", TESTS)
def test_false_findings_beside_true_ones(test: str) -> None:
    p = p_values(test, True)
    real = (pairs_of(SYSTEMS) == 0).any(axis=1)
    assert real.sum() == SYSTEMS - 1
    holm, bh = (np.array([corrected(row, how) <= 0.05 for row in p]) for how in ("holm", "bh"))
    assert np.mean(holm[:, ~real].any(axis=1)) <= bound(0.05)
    share = bh[:, ~real].sum(axis=1) / np.maximum(bh.sum(axis=1), 1)
    assert share.mean() <= bound(0.05)
    # The price is power, and Benjamini and Hochberg's is the smaller one.
    assert 0.3 < holm[:, real].mean() < bh[:, real].mean()
