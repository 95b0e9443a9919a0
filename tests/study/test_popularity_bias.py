"""Where to read a beta curve: the simulation of equation 2, and values at its exponents."""

from __future__ import annotations

import math
from statistics import mean, stdev

import numpy as np
import pytest

import kgtrec
from kgtrec import study
from kgtrec.errors import UsageError


def plain_bias(alpha: float, beta: float, items: int, graphs: int, seed: int) -> list[float]:
    """The biases of the graphs, a loop over items; only the random draws are shared."""
    rng = np.random.default_rng(seed)
    biases = []
    for _ in range(graphs):
        every = [int(math.exp(x)) for x in rng.uniform(math.log(20), math.log(2000), items)]
        most = max(every) if alpha >= 0 else min(every)
        seen = rng.binomial(every, [0.9 * (n / most) ** alpha for n in every]).tolist()
        hits = [0.2 + 0.6 * math.log(n) / math.log(2000) for n in every]
        true = sum(n * hit for n, hit in zip(every, hits, strict=True)) / sum(every)
        triples = [(n**-beta, hit) for n, hit in zip(seen, hits, strict=True) for _ in range(n)]
        biases.append(sum(w * hit for w, hit in triples) / sum(w for w, _ in triples) - true)
    return biases


@pytest.mark.parametrize("alpha", [-0.3, 0.5, 2.0])
def test_bias_is_that_of_plain_python(alpha: float) -> None:
    points = [-1.0, 0.25, alpha / (alpha + 1)]
    simulation = study.simulate_bias([alpha], points, items=12, graphs=3, seed=4)
    for column, beta in enumerate(simulation.betas):
        due = plain_bias(alpha, float(beta), 12, 3, 4)
        assert simulation.bias[0, column] == pytest.approx(mean(due), abs=1e-12)
        assert simulation.error[0, column] == pytest.approx(stdev(due) / math.sqrt(3), abs=1e-12)


def test_the_bias_is_least_near_the_exponent_of_equation_2() -> None:
    """Nearly 0 there, and much larger for plain means (beta = 0) and at 1."""
    simulation = study.simulate_bias()
    for alpha, bias in zip(simulation.alphas, simulation.bias, strict=True):
        at = {float(beta): abs(value) for beta, value in zip(simulation.betas, bias, strict=True)}
        read = at[alpha / (alpha + 1)]
        assert read < 0.01
        assert min(at[0.0], at[1.0]) > 3 * read


def test_values_at_alphas_are_those_of_the_curve() -> None:
    rng = np.random.default_rng(2)
    triples = rng.integers(0, 9, (60, 3))
    triples[:, 1] %= 3
    graph = kgtrec.Graph.from_arrays(train=triples[:40], test=triples[40:])
    questions = graph.questions()
    ranks, _ = kgtrec.rank(rng.random((len(questions), graph.n_entities)), questions)
    for vary in ("beta_e", "beta_r"):
        rows = study.values_at_alphas(ranks, [0.25, 1], vary, 0.5, ["mrr", "mr"]).rows
        curve = study.beta_curve(ranks, vary, 0.5, ["mrr", "mr"], points=[0.2, 0.5])
        assert [row[:2] for row in rows] == [("0.25", 0.2), ("1", 0.5)]
        due = curve.values.reshape(2, 2).T
        assert [list(row[2:]) for row in rows] == due.tolist()


@pytest.mark.parametrize("alpha", [-0.51, -2.0, math.inf, math.nan])
def test_an_alpha_without_an_exponent_is_refused(alpha: float) -> None:
    with pytest.raises(UsageError, match="has no exponent between -1 and 1"):
        study.simulate_bias([alpha])
