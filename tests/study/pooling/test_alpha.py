"""Where to read a beta curve: alpha against plain Python, and a simulation of equation 2."""

from __future__ import annotations

import math
from statistics import NormalDist, linear_regression, mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError
from kgtrec.study.pooling.alpha import estimate_alpha

FEW = Resampling(resamples=100)
ANSWER = st.tuples(st.integers(0, 5), st.integers(0, 13), st.booleans())


@given(st.lists(ANSWER, min_size=30, max_size=90))
def test_alpha_is_the_slope_of_plain_python(answers: list[tuple[int, int, bool]]) -> None:
    question, item, observed = (np.array(column) for column in zip(*answers, strict=True))
    every = {x: sum(i == x for _, i, _ in answers) for _, x, _ in answers}
    seen = {x: sum(i == x and known for _, i, known in answers) for x in every}
    items = [x for x in every if seen[x]]
    if len(items) < 10 or len({every[x] for x in items}) < 2:
        with pytest.raises(InputError, match="cannot be estimated"):
            estimate_alpha(question, item, observed, resampling=FEW)
        return
    found = estimate_alpha(question, item, observed, resampling=FEW)
    x = [math.log(every[i]) for i in items]
    y = [math.log(seen[i] / every[i]) for i in items]
    assert found.alpha == pytest.approx(linear_regression(x, y).slope, abs=1e-9)
    assert (found.items, found.excluded) == (len(items), len(every) - len(items))


def draw_world(alpha: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of true triples of many items, and of those observed with p(x) ~ N(x)^alpha."""
    rng = np.random.default_rng(seed)
    every = np.exp(rng.uniform(math.log(20), math.log(2000), 300)).astype(np.int64)
    return every, rng.binomial(every, 0.9 * (every / every.max()) ** alpha)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_the_estimate_at_the_right_beta_is_nearly_unbiased(alpha: float) -> None:
    """A model that is better on popular items; the target is its mean over all true triples."""
    bias = {beta: [] for beta in (0.0, alpha / (alpha + 1), 1.0)}
    alphas = []
    for seed in range(10):
        every, seen = draw_world(alpha, seed)
        hits = 0.2 + 0.6 * np.log(every) / math.log(2000)
        true = float((every * hits).sum() / every.sum())
        kept = seen > 0
        for beta, errors in bias.items():
            weight = seen[kept] * seen[kept] ** -beta
            errors.append(float((weight * hits[kept]).sum() / weight.sum()) - true)
        item = np.repeat(np.arange(len(every)), every)
        first = np.concatenate([np.arange(n) for n in every])
        known = first < np.repeat(seen, every)
        questions = np.arange(len(item)) % 200
        alphas.append(estimate_alpha(questions, item, known, resampling=FEW).alpha)
    errors = [abs(mean(values)) for values in bias.values()]
    assert errors[1] < 0.005
    assert min(errors[0], errors[2]) > 4 * errors[1]
    assert mean(alphas) == pytest.approx(alpha, abs=0.1)


def test_intervals_draw_questions() -> None:
    every, seen = draw_world(0.5, 1)
    item = np.repeat(np.arange(len(every)), every)
    first = np.concatenate([np.arange(n) for n in every])
    known = first < np.repeat(seen, every)
    rng = np.random.default_rng(2)
    question = rng.integers(0, 150, len(item))
    found = estimate_alpha(question, item, known, resampling=Resampling(80, 400))
    slopes = []
    for _ in range(300):
        times = np.bincount(rng.integers(0, 150, 150), minlength=150)[question]
        n = np.bincount(item, times)
        k = np.bincount(item, times * known)
        use = k > 0
        slopes.append(linear_regression(np.log(n[use]), np.log(k[use] / n[use])).slope)
    half = NormalDist().inv_cdf(0.9) * stdev(slopes)
    ends = [found.alpha - half, found.alpha + half]
    assert [found.low, found.high] == pytest.approx(ends, abs=0.25 * half)
    assert found.beta[0] == pytest.approx(found.alpha / (found.alpha + 1))
