"""Expectations under ties against exact fractions, or long decimals where ties are huge."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgtrec import _core
from kgtrec.measures.tie_expectation import (
    expected_hits,
    expected_log_rank,
    expected_rank,
    expected_reciprocal,
)

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


@settings(max_examples=50)
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


@settings(max_examples=200)
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
    unit = 1 << 200  # P(X >= j) in integers, as no double could hold it
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
