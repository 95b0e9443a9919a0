"""Bounds on full ranking from sampled candidates: exact tails, and simulated coverage."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import assert_refused, refusals

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.study.sampling.bounds import count_bounds, full_bounds, rank_bounds


def tail(seen: int, drawn: int, population: int, special: int) -> Fraction:
    """P(at most `seen` special candidates are drawn), by counting."""
    ways = sum(
        math.comb(special, j) * math.comb(population - special, drawn - j)
        for j in range(min(seen, special, drawn) + 1)
        if drawn - j <= population - special
    )
    return Fraction(ways, math.comb(population, drawn))


def slow_bounds(seen: int, drawn: int, population: int, miss: float) -> tuple[int, int]:
    possible = range(seen, population - drawn + seen + 1)
    high = [m for m in possible if tail(seen, drawn, population, m) > miss]
    low = [m for m in possible if 1 - tail(seen - 1, drawn, population, m) > miss]
    return min(low), max(high)


@st.composite
def draws(draw: st.DrawFn) -> tuple[int, int, int]:
    population = draw(st.integers(0, 60))
    drawn = draw(st.integers(0, population))
    return draw(st.integers(0, drawn)), drawn, population


@given(
    st.lists(draws(), min_size=1, max_size=6), st.sampled_from([0.00503, 0.02497, 0.1003, 0.3997])
)
def test_bounds_invert_the_exact_tails(cases: list[tuple[int, int, int]], miss: float) -> None:
    low, high = count_bounds(*np.array(cases).T, miss)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [
        slow_bounds(*case, miss) for case in cases
    ]


def test_bounds_of_large_populations_agree_with_scipy() -> None:
    from scipy.stats import hypergeom

    rng = np.random.default_rng(3)
    population = rng.integers(10_000, 3_000_000, 60)
    drawn = rng.integers(100, 1000, 60)
    seen = rng.integers(0, drawn + 1)
    low, high = count_bounds(seen, drawn, population, 0.025)
    np.testing.assert_array_less(0.025, hypergeom.cdf(seen, population, high, drawn))
    next_one = np.minimum(high + 1, population)
    beyond = hypergeom.cdf(seen, population, next_one, drawn)
    assert (beyond[high < population - drawn + seen] <= 0.025 + 1e-9).all()
    before = hypergeom.sf(seen - 1, population, np.maximum(low - 1, 0), drawn)
    assert (before[low > seen] <= 0.025 + 1e-9).all()
    np.testing.assert_array_less(0.025, hypergeom.sf(seen - 1, population, low, drawn))


def world(n: int, n_triples: int, rng: np.random.Generator) -> tuple[kgtrec.Questions, np.ndarray]:
    heads, tails = rng.integers(0, n, (2, n_triples))
    test = np.stack([heads, rng.integers(0, 3, n_triples), tails], 1)
    questions = kgtrec.Graph.from_arrays(test=test, n_entities=n).questions()
    scores = np.round(rng.normal(size=(len(questions), n)), 1).astype(np.float32)
    question, answers = questions.instance_question, questions.answers.ids
    scores[question, answers] += np.float32(2)
    return questions, scores


def drawn(questions: kgtrec.Questions, k: int, rng: np.random.Generator) -> kgtrec.Questions:
    lists = []
    for question in range(len(questions)):
        known = questions.known[question]
        others = np.setdiff1d(np.arange(questions.n_entities), known)
        chosen = rng.choice(others, min(k, len(others)), replace=False)
        lists.append(np.concatenate([questions.answers[question], chosen]))
    return questions.restrict(candidates=lists)


@pytest.mark.slow
def test_bounds_cover_at_their_level() -> None:
    """Over many samples of one ranking, per rank and per metric."""
    rng = np.random.default_rng(11)
    questions, scores = world(120, 60, rng)
    full = kgtrec.evaluate(scores, questions)
    ranks = full.ranks
    truth = {
        "MR": "mr", "AMR": "amr", "AMRI": "amri", "MRR": "mrr",
        "Hits@1": "hits@1", "Hits@3": "hits@3", "Hits@10": "hits@10",
    }  # fmt: skip
    repeats, level = 120, 0.9
    inside = np.zeros(len(ranks))
    held = dict.fromkeys(truth, 0)
    estimates = []
    for _ in range(repeats):
        sampled = kgtrec.rank(scores, drawn(questions, 25, rng))[0]
        bounds = rank_bounds(sampled, level)
        inside += (bounds.low <= ranks.rank("optimistic")) & (
            ranks.rank("pessimistic") <= bounds.high
        )
        estimates.append(bounds.estimate)
        for row in full_bounds(sampled, level).rows:
            name, low, high = str(row[0]), float(row[3]), float(row[4])
            held[name] += low <= full[f"both.realistic.micro.{truth[name]}"] <= high
    # The least likely to be covered: 120 repeats at 90 % leave 5 standard errors = 0.137 of room.
    assert (inside / repeats).min() >= level - 5 * math.sqrt(level * (1 - level) / repeats)
    assert (inside / repeats).mean() >= level
    room = 3 * math.sqrt(level * (1 - level) / repeats)
    assert {name: count / repeats >= level - room for name, count in held.items()} == dict.fromkeys(
        truth, True
    )
    # Unbiased: the mean estimate of every instance is within noise of its rank.
    estimates = np.array(estimates)
    noise = estimates.std(axis=0, ddof=1) / math.sqrt(repeats)
    z = (estimates.mean(axis=0) - ranks.rank()) / np.maximum(noise, 1e-12)
    assert np.abs(z[noise > 0]).max() < 5
    assert abs(np.mean(z[noise > 0])) < 5 / math.sqrt(len(z))


def test_a_whole_population_leaves_no_doubt() -> None:
    rng = np.random.default_rng(2)
    questions, scores = world(30, 20, rng)
    full = kgtrec.evaluate(scores, questions)
    every = [np.arange(30)] * len(questions)
    sampled = kgtrec.rank(scores, questions.restrict(candidates=every))[0]
    bounds = rank_bounds(sampled)
    np.testing.assert_array_equal(bounds.estimate, full.ranks.rank())
    np.testing.assert_array_equal(bounds.low, full.ranks.rank("optimistic"))
    np.testing.assert_array_equal(bounds.high, full.ranks.rank("pessimistic"))
    table = {row[0]: row[1:] for row in full_bounds(sampled).rows}
    mr, mrr = full["both.realistic.micro.mr"], full["both.realistic.micro.mrr"]
    assert table["MR"] == pytest.approx((mr, mr, mr, mr), rel=1e-12)
    assert table["MRR"][2] <= mrr <= table["MRR"][3]
    assert table["MRR"][2] == pytest.approx(full["both.pessimistic.micro.mrr"], rel=1e-12)
    assert table["MRR"][3] == pytest.approx(full["both.optimistic.micro.mrr"], rel=1e-12)


def test_bounds_outlive_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    questions, scores = world(40, 20, rng)
    sampled = kgtrec.rank(scores, drawn(questions, 10, rng))[0]
    sampled.save(tmp_path / "s.parquet")
    again = kgtrec.Ranks.load(tmp_path / "s.parquet")
    assert again.sampled
    np.testing.assert_array_equal(again.full_candidates, questions.candidates)
    assert full_bounds(again).rows[0] == full_bounds(sampled).rows[0]
    half = again.subset(np.arange(10))
    assert len(half.full_candidates) == 10
    joined = kgtrec.Ranks.concat([half, again.subset(np.arange(10, len(again)))])
    np.testing.assert_array_equal(joined.full_candidates, again.full_candidates)


def some_ranks(sampled: bool) -> kgtrec.Ranks:
    rng = np.random.default_rng(0)
    questions, scores = world(12, 5, rng)
    return kgtrec.rank(scores, drawn(questions, 3, rng) if sampled else questions)[0]


@refusals(
    ("full", lambda: rank_bounds(some_ranks(False)), UsageError,
     ("these ranks are among all candidates",)),
    ("level", lambda: full_bounds(some_ranks(True), 95), UsageError, ("level=95",)),
    ("order", lambda: count_bounds([3], [2], [5], 0.1), UsageError, ("3, 2, 5; give",)),
    ("miss", lambda: count_bounds([1], [2], [5], 0.0), UsageError, ("is not a probability",)),
)  # fmt: skip
def test_what_has_no_bounds(
    call: Callable[[], object], error: type[Exception], words: tuple[str, ...]
) -> None:
    assert_refused(call, error, words)
