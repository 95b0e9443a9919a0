"""The estimator: all samples of small cases in exact arithmetic, and what must always hold."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import mean, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgtrec.errors import UsageError
from kgtrec.study.judged.estimate import (
    JudgedValues,
    assign_folds,
    estimate_means,
    match_people,
)

Numbers = list[Fraction]
CLOSE = 1e-12


def slow_factor(y: Numbers, c: Numbers, p: Numbers) -> Fraction:
    """Cov(y, c) / Var(c) with weights 1 / p, from 0 to 1."""
    total = sum(1 / q for q in p)
    centre_y, centre_c = (sum(v / q for v, q in zip(x, p, strict=True)) / total for x in (y, c))
    pairs = [(v - centre_y, w - centre_c, 1 / q) for v, w, q in zip(y, c, p, strict=True)]
    below = sum(w * w * weight for _, w, weight in pairs)
    return (
        min(max(sum(v * w * weight for v, w, weight in pairs) / below, Fraction(0)), Fraction(1))
        if below
        else Fraction(0)
    )


def slow_estimate(
    y: Numbers, j: Numbers, p: Numbers, fold: list[int], drawn: list[int]
) -> Fraction:
    """The corrected mean with cross-fitted factors, as the definition says it, fold by fold."""
    size = len(y)
    c = [value - sum(j) / size for value in j]
    of_fold = [[q for q in drawn if fold[q] == f] for f in (0, 1)]
    even = len({p[q] for q in drawn}) == 1
    crossed = min(map(len, of_fold)) >= 2
    factor = [Fraction(0)] * 2
    if crossed:
        for f in (0, 1):
            other = of_fold[1 - f]
            factor[f] = slow_factor(*([column[q] for q in other] for column in (y, c, p)))
    total = sum(factor[fold[q]] * c[q] for q in range(size)) / size
    rest = {q: y[q] - factor[fold[q]] * c[q] for q in drawn}
    if even and crossed:
        sizes = [fold.count(f) for f in (0, 1)]
        parts = [sum(rest[q] for q in of_fold[f]) / len(of_fold[f]) for f in (0, 1)]
        return total + sum(n * part for n, part in zip(sizes, parts, strict=True)) / size
    weight = sum(1 / p[q] for q in drawn)
    return total + sum(rest[q] / p[q] for q in drawn) / weight


def values_of(
    y: Numbers, j: Numbers, p: Numbers, fold: list[int], drawn: list[int]
) -> JudgedValues:
    columns = [np.array([float(v) for v in column]) for column in (y, j, p)]
    rows = np.array(drawn, np.int64)
    return JudgedValues(
        columns[1][:, None], columns[0][rows][:, None], rows, columns[2][rows], np.array(fold)
    )


def fractions(draw: st.DrawFn, size: int) -> Numbers:
    return [Fraction(draw(st.integers(0, 6)), 6) for _ in range(size)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Numbers, Numbers, list[int]]:
    """Values of 5 to 7 questions by people and by a judge, and two folds."""
    size = draw(st.integers(5, 7))
    fold = [0, 0, 1, 1, *(draw(st.integers(0, 1)) for _ in range(size - 4))]
    return fractions(draw, size), fractions(draw, size), fold


@given(worlds(), st.integers(1, 6), st.sampled_from([None, 0.0, 0.375, 1.0]))
def test_the_mean_over_all_samples_of_a_size_is_the_mean_of_people(world, size, factor) -> None:
    """Exactly, with cross-fitted and with fixed factors, however wrong the judge is."""
    y, j, fold = world
    size = min(size, len(y) - 1)
    p = [Fraction(size, len(y))] * len(y)
    found = [
        float(estimate_means(values_of(y, j, p, fold, [*drawn]), factor).value[0])
        for drawn in combinations(range(len(y)), size)
    ]
    people = pytest.approx(float(sum(y) / len(y)), abs=CLOSE)
    if factor is not None or 2 * sum(fold) == len(fold):
        assert mean(found) == people
    # Given the numbers drawn from both folds, each fold is a simple random sample.
    numbers = [sum(fold[q] for q in drawn) for drawn in combinations(range(len(y)), size)]
    for number in {n for n in numbers if min(n, size - n) >= 2 and factor is None}:
        assert mean(v for v, n in zip(found, numbers, strict=True) if n == number) == people


@given(worlds(), st.data())
def test_estimates_are_those_of_plain_python(world, data) -> None:
    y, j, fold = world
    even = data.draw(st.booleans())
    levels = [Fraction(1, 2)] if even else [Fraction(1, 5), Fraction(1, 2), Fraction(1)]
    p = [data.draw(st.sampled_from(levels)) for _ in y]
    drawn = data.draw(st.sets(st.integers(0, len(y) - 1), min_size=1, max_size=len(y) - 1))
    drawn = sorted(drawn)
    found = estimate_means(values_of(y, j, p, fold, drawn)).value[0]
    assert found == pytest.approx(float(slow_estimate(y, j, p, fold, drawn)), abs=CLOSE)


@given(worlds(), st.sampled_from([0.0, 0.375, 1.0]))
def test_the_mean_estimated_variance_is_the_variance_of_all_samples(world, factor) -> None:
    y, j, fold = world
    size = len(y) // 2 + 1
    p = [Fraction(size, len(y))] * len(y)
    found = [
        estimate_means(values_of(y, j, p, fold, [*drawn]), factor)
        for drawn in combinations(range(len(y)), size)
    ]
    true = np.var([each.value[0] for each in found])
    assert mean(float((each.deviations**2).sum()) for each in found) == pytest.approx(
        true, abs=CLOSE
    )


def world_of(
    size: int = 200, n: int = 60, seed: int = 0, even: bool = True
) -> tuple[JudgedValues, np.ndarray]:
    """Three columns of a judge that is nearly right, constant, and always wrong; and all labels."""
    rng = np.random.default_rng(seed)
    people = rng.random((size, 3))
    judge = np.stack([people[:, 0] + 0.1 * rng.random(size), np.ones(size), -people[:, 2]], axis=1)
    p = np.full(size, n / size) if even else rng.uniform(0.1, 1, size)
    drawn = np.sort(rng.choice(size, n, replace=False)) if even else rng.random(size) < p
    drawn = drawn if even else np.flatnonzero(drawn)
    return JudgedValues(judge, people[drawn], drawn, p[drawn], assign_folds(size, drawn)), people


def test_a_good_judge_helps_and_others_are_ignored() -> None:
    values, _ = world_of()
    alone, corrected = estimate_means(values, 0.0), estimate_means(values)
    np.testing.assert_allclose(alone.value, values.people.mean(axis=0), rtol=1e-14)
    expected = [(1 - 60 / 200) * variance(column) / 60 for column in values.people.T.tolist()]
    np.testing.assert_allclose(alone.error**2, expected, rtol=1e-12)
    assert corrected.error[0] < 0.2 * alone.error[0]
    assert corrected.factor[0] > 0.9
    np.testing.assert_array_equal(corrected.factor[1:], 0)
    np.testing.assert_allclose(corrected.error[1:], alone.error[1:], rtol=0.02)
    assert (corrected.reach() > 1.96 * corrected.error).all()
    needed = match_people(alone.error, corrected.error, 60, 200)
    share = (1 / needed - 1 / 200) / (1 / 60 - 1 / 200)
    np.testing.assert_allclose(share, (corrected.error / alone.error) ** 2, rtol=1e-12)


@pytest.mark.parametrize("even", [True, False])
def test_adding_a_number_to_all_labels_of_the_judge_changes_nothing(even: bool) -> None:
    values, _ = world_of(even=even)
    other = JudgedValues(
        values.judge + 7, values.people, values.drawn, values.probability, values.fold
    )
    for a, b in zip(
        estimate_means(values).deviations, estimate_means(other).deviations, strict=True
    ):
        np.testing.assert_allclose(a, b, atol=CLOSE)
    np.testing.assert_allclose(
        estimate_means(values).value, estimate_means(other).value, atol=CLOSE
    )


@pytest.mark.parametrize("even", [True, False])
def test_differences_and_quotients_are_over_the_same_questions(even: bool) -> None:
    values, _ = world_of(even=even)
    found = estimate_means(values, 0.5)
    gap = found.differences(np.array([0]), np.array([1]))
    assert gap.value[0] == found.value[0] - found.value[1]
    cov = found.deviations.T @ found.deviations
    alone = estimate_means(values, 0.0)
    np.testing.assert_array_equal(alone.alone, alone.deviations)
    np.testing.assert_array_equal(alone.deviations, found.alone)
    of_gap = alone.differences(np.array([0]), np.array([1])).error[0] ** 2
    variance_of_gap = cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
    variance_of_gap += max(of_gap - variance_of_gap, 0) / len(values.drawn)
    assert gap.error[0] ** 2 == pytest.approx(variance_of_gap, rel=1e-12)
    ratio = found.quotients(np.array([0, 1]), np.array([0, 2]))
    assert (ratio.value[0], ratio.error[0]) == (1.0, 0.0)
    value, step = found.value, 1e-6  # the derivative of the quotient, by differences
    moved = (value[1] + step) / value[2], value[1] / (value[2] + step)
    slope = (np.array(moved) - ratio.value[1]) / step
    spread = (ratio.deviations[:, 1] ** 2).sum()
    assert spread == pytest.approx(slope @ cov[1:, 1:] @ slope, rel=1e-4)


def test_there_is_no_interval_from_few_questions_and_no_error_if_all_are_judged() -> None:
    values, people = world_of(n=9)
    assert np.isnan(estimate_means(values).reach()).all()
    assert np.isnan(estimate_means(values).p_values()).all()
    assert np.isfinite(estimate_means(world_of(n=10)[0]).reach()).all()
    values, people = world_of(n=200)
    np.testing.assert_allclose(estimate_means(values).value, people.mean(axis=0), rtol=1e-14)
    assert np.isnan(estimate_means(values).reach()).all()
    np.testing.assert_array_equal(estimate_means(values).error, 0)


def test_an_error_that_no_drawn_question_shows_is_expected() -> None:
    """With a perfect judge, the error is that of one useless question among n."""
    values, people = world_of(n=50)
    right = JudgedValues(people, values.people, values.drawn, values.probability, values.fold)
    alone, found = estimate_means(right, 0.0), estimate_means(right)
    np.testing.assert_allclose(found.value, people.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.error, alone.error / np.sqrt(50), rtol=1e-12)
    t = found.reach(0.9) / found.error
    inside = t / np.sqrt(2 + t**2)  # of Student's distribution with two degrees of freedom
    np.testing.assert_allclose(inside, 0.9, atol=0.003)


def test_p_values_are_those_of_intervals() -> None:
    """p is below 1 - level exactly if the interval excludes 0."""
    values, _ = world_of(n=40)
    found = estimate_means(values).differences(np.array([0, 0, 1]), np.array([1, 2, 2]))
    for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        excluded = np.abs(found.value) > found.reach(level)
        np.testing.assert_array_equal(found.p_values() < 1 - level, excluded)


def test_wrong_probabilities_are_refused() -> None:
    values, _ = world_of()
    for p in (0.0, 1.5, np.nan):
        wrong = JudgedValues(values.judge, values.people, values.drawn, np.full(60, p), values.fold)
        with pytest.raises(UsageError, match="not above 0 and up to 1"):
            estimate_means(wrong)


def test_folds_are_halves_of_all_and_of_the_drawn_questions() -> None:
    drawn = np.array([1, 2, 3, 10, 11, 12, 13, 20])
    folds = assign_folds(31, drawn, 5)
    assert sorted(np.bincount(folds).tolist()) == [15, 16]
    assert np.bincount(folds[drawn]).tolist() == [4, 4]
    np.testing.assert_array_equal(folds, assign_folds(31, drawn, 5))
    times = np.zeros(31)
    for seed in range(400):
        times += assign_folds(31, drawn, seed)
    np.testing.assert_allclose(times / 400, 0.5, atol=0.1)
    other = assign_folds(31, drawn + 1, 5)
    assert (other[drawn + 1] != folds[drawn]).any()
