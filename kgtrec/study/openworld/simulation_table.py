"""Simulated metrics beside what theory says of them: the numbers of the paper's Figures 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.study.openworld.formulas import approximation
from kgtrec.study.openworld.moments import expectation
from kgtrec.study.openworld.simulate import Simulation

__all__ = ["simulation_table"]


def simulation_table(runs: Sequence[Simulation], metric: str = "mrr") -> Table:
    """A row per correlation, sparsity and strength: simulated, exact and approximate values.

    Parameters
    ----------
    runs : sequence of Simulation
    metric : str, default "mrr"

    Returns
    -------
    Table
        Means of questions with their standard deviation and the standard error of the mean; the
        exact expectation; and, of MRR, its logarithmic approximation. NaN where a correlation is
        impossible.

    Raises
    ------
    UsageError
        The metric was not simulated.
    """
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        if metric not in run.mean:
            raise UsageError(f"metric {metric!r} was not simulated, but {', '.join(run.mean)}")
        for place, beta in enumerate(run.betas):
            rows += _rows(run, metric, place, beta)
    heads = ("correlation", "sparsity", "strength", "questions", "mean", "std", "error", "exact",
             "approximation")  # fmt: skip
    return Table(heads, heads, (2, 4, 2, 0, 4, 4, 4, 4, 4), rows, 3)


def _rows(run: Simulation, metric: str, place: int, beta: float) -> list[tuple[Cell, ...]]:
    strengths, mean = np.array(run.strengths), run.mean[metric][place]
    done = np.isfinite(mean)
    exact, close = np.full((2, len(mean)), np.nan)
    exact[done] = expectation(
        strengths[done], beta, run.n_answers, run.n_entities, metric, run.rho, kept=True
    )
    if metric == "mrr" and beta > 0:
        positive = done & (strengths > 0)
        close[positive] = approximation(strengths[positive], beta, run.n_answers, run.rho)
    columns = mean, run.std[metric][place], run.error(metric)[place], exact, close
    counts = run.tested[place].tolist()
    return [
        (run.rho, beta, strength, counts[i], *(float(column[i]) for column in columns))
        for i, strength in enumerate(run.strengths)
    ]
