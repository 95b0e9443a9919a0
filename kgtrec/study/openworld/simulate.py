"""The paper's simulation (appendix A.2), vectorised, for comparison with theory.

Missing and predicted answers are drawn at random. The answers of a question are drawn in their
random order, so one pass of running sums gives every filtered rank: earlier missing answers of the
same class rank above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kgtrec._internal.csr import Bools, Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.study.openworld.formulas import approximation, expectation
from kgtrec.study.openworld.model import (
    ENTITIES,
    check_entities,
    checked_strength,
    split_strength,
    sum_of_gains,
)

STRENGTHS = tuple(np.round(np.arange(0.30, 1.005, 0.01), 2).tolist())
BETAS = (0.2, 0.35, 0.5, 0.65)
RHOS = (-0.1, 0.0, 0.1, 0.2)
N_ANSWERS = 43
REPEATS = 500
"""The grid of Figures 1 and 2: 71 strengths, 4 sparsities, 4 correlations; 43 answers per question,
which is 14505 x 1 % x 30 %; 500 questions per point."""

BLOCK = 1 << 22
"""Cells (questions x answers) drawn at a time, so that memory stays small."""


@dataclass(frozen=True, eq=False)
class Simulation(ShownAsTables):
    """Simulated values of metrics over a grid.

    - mean, std, float64 (betas, strengths): Per metric: mean and standard deviation over the
      questions with an answer to test; NaN if the correlation is impossible.
    - tested, int64 (betas, strengths): Number of these questions.
    """

    strengths: tuple[float, ...]
    betas: tuple[float, ...]
    rho: float
    n_answers: int
    n_entities: int
    repeats: int
    mean: dict[str, Float64]
    std: dict[str, Float64]
    tested: Int64

    def table(self, metric: str | None = None) -> Table:
        """One row per sparsity and strength: simulated, exact, approximate values of a metric."""
        return simulation_table([self], next(iter(self.mean)) if metric is None else metric)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.strengths):,} strengths, {len(self.betas):,} sparsities, "
            f"{self.repeats:,} questions each of {self.n_answers:,} answers",
            f"{', '.join(self.mean)}; correlation {self.rho:g}",
        )

    def error(self, metric: str) -> Float64:
        """Standard error of the mean, shape (B, L). The paper's shaded bands are twice this."""
        return self.std[metric] / np.sqrt(self.tested)


def simulate(
    strengths: Sequence[float] = STRENGTHS,
    betas: Sequence[float] = BETAS,
    n_answers: int = N_ANSWERS,
    rho: float = 0.0,
    metrics: Sequence[str] = ("mrr",),
    repeats: int = REPEATS,
    n_entities: int = ENTITIES,
    seed: int = 0,
) -> Simulation:
    """Simulate questions for every strength and sparsity (Figures 1 and 2).

    Parameters
    ----------
    strengths : sequence of float in [0, 1], default 0.30, 0.31, ..., 1
    betas : sequence of float in [0, 1), default (0.2, 0.35, 0.5, 0.65)
        Sparsities.
    n_answers : int, default 43
        True answers of a question, missing ones included.
    rho : float, default 0
        Correlation of missing and predicted. Cells with an impossible correlation become NaN.
    metrics : sequence of str, default ("mrr",)
        ``mrr``, ``hits@10``, ``log_mrr``, ``p_mrr@0.5``, ...
    repeats : int, default 500
        Questions per cell.
    n_entities : int, default 14505
    seed : int, default 0

    Returns
    -------
    Simulation

    Raises
    ------
    UsageError
        A value out of range or an unknown metric, or a correlation that is impossible everywhere.
    """
    check_entities(n_answers, n_entities)
    if repeats < 2:
        raise UsageError(f"repeats={repeats}; give 2 or more to measure a spread")
    for beta in betas:
        checked_strength(strengths, beta)
    sums = {metric: sum_of_gains(metric, n_entities + 1) for metric in metrics}
    shape = len(betas), len(strengths)
    mean = {metric: np.full(shape, np.nan) for metric in metrics}
    std = {metric: np.full(shape, np.nan) for metric in metrics}
    tested = np.zeros(shape, np.int64)
    rng = np.random.default_rng(seed)
    last: UsageError | None = None
    for i, beta in enumerate(betas):
        for j, strength in enumerate(strengths):
            try:
                split_strength(strength, beta, rho)
            except UsageError as error:
                last = error
                continue
            draw = partial(filtered_ranks, rng, strength, beta, rho, n_answers, n_entities)
            values = _questions(draw, repeats, max(BLOCK // n_answers, 1), sums)
            tested[i, j] = len(values[0])
            for metric, value in zip(metrics, values, strict=True):
                if len(value):
                    mean[metric][i, j], std[metric][i, j] = value.mean(), value.std()
    if last is not None and not tested.any():
        raise last
    return Simulation(
        tuple(strengths), tuple(betas), rho, n_answers, n_entities, repeats, mean, std, tested
    )


def filtered_ranks(
    rng: np.random.Generator,
    strength: float,
    beta: float,
    rho: float,
    n_answers: int,
    n_entities: int,
    questions: int,
) -> tuple[Int64, Bools]:
    """Draw questions: the filtered rank of every answer, and whether it is missing.

    Shape: rank int64 (questions, n_answers).
    """
    l1, l2 = split_strength(strength, beta, rho)
    shape = questions, n_answers
    missing = rng.random(shape) < beta
    predicted = rng.random(shape) < np.where(missing, l1, l2)
    above = _before(missing & predicted)
    n_above = (missing & predicted).sum(axis=1, keepdims=True)
    gaps = rng.standard_exponential((questions, n_answers + 1))
    gaps /= gaps.sum(axis=1, keepdims=True)
    false = rng.multinomial(n_entities - n_answers, gaps)[:, :-1].cumsum(axis=1)
    below = n_above + _before(missing & ~predicted) + false
    return np.where(predicted, above, below) + 1, missing


def _before(flags: Bools) -> Int64:
    """How many flags come before each place of a row."""
    return flags.cumsum(axis=1) - flags


def _questions(
    draw: Callable[[int], tuple[Int64, Bools]], repeats: int, block: int, sums: dict[str, Float64]
) -> list[Float64]:
    """Value of each metric per question that has an answer to test; `block` are drawn at a time."""
    parts: list[list[Float64]] = []
    for start in range(0, repeats, block):
        rank, missing = draw(min(block, repeats - start))
        left = (~missing).sum(axis=1)
        some = left > 0
        parts.append(
            [
                np.where(missing, 0.0, total[rank] - total[rank - 1]).sum(axis=1)[some] / left[some]
                for total in sums.values()
            ]
        )
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def simulation_table(runs: Sequence[Simulation], metric: str = "mrr") -> Table:
    """One row per correlation, sparsity and strength: simulated, exact, approximate values."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        if metric not in run.mean:
            known = ", ".join(run.mean)
            raise UsageError(f"metric {metric!r} was not simulated; choose one of: {known}")
        for place, beta in enumerate(run.betas):
            columns = run.tested[place], *_columns(run, metric, place)
            for strength, *values in zip(
                run.strengths, *(c.tolist() for c in columns), strict=True
            ):
                rows.append((run.rho, beta, strength, *values))
    heads = ("correlation:2, sparsity:4, strength:2, questions, mean:4, std:4, error:4, exact:4, "
             "approximation:4")  # fmt: skip
    return Table.of(heads, rows, names=3)


def _columns(run: Simulation, metric: str, place: int) -> tuple[Float64, ...]:
    """Mean, standard deviation and error of each strength, its exact and its approximate value."""
    strengths, mean = np.array(run.strengths), run.mean[metric][place]
    exact, close = np.full((2, len(mean)), np.nan)
    done, beta = np.isfinite(mean), run.betas[place]
    exact[done] = expectation(
        strengths[done], beta, run.n_answers, run.n_entities, metric, run.rho, kept=True
    )
    if metric == "mrr" and beta > 0:
        positive = done & (strengths > 0)
        close[positive] = approximation(strengths[positive], beta, run.n_answers, run.rho)
    return mean, run.std[metric][place], run.error(metric)[place], exact, close
