"""Bootstrap intervals: against slow resampling, against theory, and on awkward columns."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from kgtrec._internal import bootstrap as room
from kgtrec._internal.bootstrap import Resampling, ratio_intervals, resampled_means
from kgtrec.errors import UsageError


def one(values: list[float] | np.ndarray, how: Resampling | None = None, below=None) -> list[float]:
    values = np.array(values, np.float64)
    return ratio_intervals([values], [below], how or Resampling()).tolist()[0]


def slow(values: list[float], below: list[float], percent: float, seed: int) -> list[float]:
    """The same method with other random numbers."""
    draw = random.Random(seed)
    means = []
    for _ in range(4000):
        chosen = draw.choices(range(len(values)), k=len(values))
        means.append(sum(values[i] for i in chosen) / sum(below[i] for i in chosen))
    means.sort()
    tail = (100 - percent) / 200
    return [means[int(tail * 4000)], means[int((1 - tail) * 4000) - 1]]


@pytest.mark.parametrize("percent", [50.0, 95.0, 99.0])
def test_against_slow_resampling(percent: float) -> None:
    draw = random.Random(2)
    values = [draw.random() ** 3 for _ in range(120)]
    below = [float(draw.randint(1, 5)) for _ in values]
    how = Resampling(percent, 4000)
    width = one(values, how)[1] - one(values, how)[0]
    assert one(values, how) == pytest.approx(slow(values, [1.0] * 120, percent, 3), abs=width / 8)
    ratio = one(values, how, np.array(below))
    width = ratio[1] - ratio[0]
    assert ratio == pytest.approx(slow(values, below, percent, 4), abs=width / 8)


def test_the_width_is_that_of_the_normal_law_for_many_queries() -> None:
    values = np.random.default_rng(1).random(5000)
    low, high = one(values)
    error = values.std() / math.sqrt(5000)
    assert (low, high) == pytest.approx(
        (values.mean() - 1.96 * error, values.mean() + 1.96 * error), abs=0.15 * error
    )


def test_draws_are_seeded_shared_and_independent_of_other_columns() -> None:
    values = np.random.default_rng(2).random(300)
    assert one(values) == one(values)
    assert one(values, Resampling(seed=1)) != one(values)
    assert one(values, Resampling(resamples=500)) != one(values)
    both = ratio_intervals([values * 1e6, values, 1 - values], [None] * 3, Resampling())
    assert both[1].tolist() == one(values)
    assert both[0] / 1e6 == pytest.approx(both[1], rel=1e-9)
    assert 1 - both[2][::-1] == pytest.approx(both[1], rel=1e-9)  # the same draws


def test_sums_do_not_depend_on_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole multiples: order of additions, library and number of threads do not matter."""
    values = np.random.default_rng(3).random(1000)[:, None]
    whole, scale = room._whole_multiples(values)
    assert np.abs(whole).sum() * 2 < 2**54
    assert np.array_equal(whole, np.rint(whole))
    assert np.abs(whole / scale - values).max() < 1e-12
    top, _ = room._whole_multiples(np.full((1000, 1), 1.0))
    assert top.sum() <= 2**53


def test_awkward_columns() -> None:
    assert one([0.25] * 7) == pytest.approx([0.25, 0.25], rel=1e-12)
    assert one([0.0, 0.0]) == [0.0, 0.0]
    assert one([0.7]) == pytest.approx([0.7, 0.7], rel=1e-12)
    assert all(map(math.isnan, one([1.0, math.nan])))
    assert all(map(math.isnan, one([])))
    assert ratio_intervals([], [], Resampling()).shape == (0, 2)
    assert one([-1e6, 0.0, 0.0], Resampling(99.0))[0] < -3e5
    # One query in four has answers: draws without any have no value.
    assert one([1.0, 0, 0, 0], None, np.array([2.0, 0, 0, 0])) == pytest.approx([0.5, 0.5])
    assert all(map(math.isnan, one([0.0, 0], None, np.zeros(2))))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"percent": 0.95}, "0.95"), ({"percent": 100}, "100"), ({"percent": math.nan}, "nan"),
     ({"resamples": 99}, "99"), ({"resamples": 10**7}, "10000000"), ({"seed": -1}, "-1")],
)  # fmt: skip
def test_what_is_out_of_range_is_said(wrong: dict, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        Resampling(**wrong)


def test_a_seed_gives_the_values_that_it_always_gave() -> None:
    """Values of version 0.1: published intervals can be computed again."""
    values = [np.arange(40) ** 2 / 7.0, np.arange(40) % 3 + 0.0]
    assert ratio_intervals(values, [None, values[0] + 1], Resampling(90, 500, 3)).tolist() == [
        [56.29303571428602, 90.24232142857142],
        [0.009464319525321643, 0.018307366395716954],
    ]
    cluster = np.arange(40) // 4
    sample = resampled_means(np.column_stack(values), cluster, np.asarray, Resampling(90, 200, 3))
    assert sample.draws.sum(axis=0) == pytest.approx([14290.971428571434, 195.175], rel=1e-13)
    assert sample.interval().ravel() == pytest.approx(
        [48.69730531138757, 0.85, 116.96731905757373, 1.075], rel=1e-12
    )
    wider = replace(sample, resampling=Resampling(95, 200, 3))
    gap = wider.difference_interval(np.array([[0, 1]]))
    assert gap.ravel() == pytest.approx([36.75696428571428, 112.3475], rel=1e-12)
