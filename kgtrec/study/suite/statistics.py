"""Ranks of models within graphs, what follows over graphs, and tests (Demsar 2006)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ranks_within(values: Floats, sign: float) -> Floats:
    """Rank of every model among those with a value, 1 the best, ties at their mean.

    Shapes: values float64 (models, graphs) -> float64 (models, graphs); NaN stays NaN.
    """
    ranks = np.full(values.shape, np.nan)
    for graph, column in enumerate((-sign * values).T):
        known = np.flatnonzero(~np.isnan(column))
        ordered = np.sort(column[known])
        below = np.searchsorted(ordered, column[known], "left")
        up_to = np.searchsorted(ordered, column[known], "right")
        ranks[known, graph] = (below + 1 + up_to) / 2
    return ranks


class Standing(NamedTuple):
    """What the ranks within graphs say of every model; float64 (models,) or (B, models) each.

    - mean_rank: Mean rank over graphs, stretched to all models where some are missing.
    - borda: Opponents beaten, over graphs; a tie is half.
    - win_rate: The same as a share of the graphs x opponents that there are.
    """

    mean_rank: Floats
    borda: Floats
    win_rate: Floats


def standing(ranks: Floats, weights: Floats) -> Standing:
    """Standings by ranks (models, graphs) where graphs count `weights` (..., graphs) times."""
    n_models = len(ranks)
    known = ~np.isnan(ranks)
    among = known.sum(axis=0)
    opponents = np.where(known & (among > 1), among - 1, 0)
    beaten = np.where(opponents > 0, among - np.nan_to_num(ranks), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        stretched = np.where(opponents > 0, 1 + (ranks - 1) * (n_models - 1) / opponents, 0.0)
        return Standing(
            weights @ stretched.T / (weights @ (opponents > 0).T),
            weights @ beaten.T,
            weights @ beaten.T / (weights @ opponents.T),
        )


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Means over graphs of values (models, graphs), leaving out NaN; float64 (..., models)."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(weights @ np.where(known, values, 0.0).T / (weights @ known.T))


def places(mean_ranks: Floats) -> Floats:
    """Place of every model by mean rank (..., models), ties at their mean."""
    flat = mean_ranks.reshape(-1, mean_ranks.shape[-1])
    return ranks_within(flat.T, -1.0).T.reshape(mean_ranks.shape)


# -- Missing cells -------------------------------------------------------------------------------


def bounds_of_ranks(values: Floats, sign: float) -> tuple[Floats, Floats]:
    """Least and largest rank of every model on every graph over all that missing cells could be."""
    n_models = len(values)
    ranks = ranks_within(values, sign)
    missing = np.isnan(values).sum(axis=0)
    low = np.where(np.isnan(ranks), 1.0, ranks)
    high = np.where(np.isnan(ranks), float(n_models), ranks + missing)
    return low, high


# -- Tests over graphs ---------------------------------------------------------------------------


class Friedman(NamedTuple):
    """Friedman's test, with the correction for ties.

    - critical_difference: By which mean ranks differ significantly (Nemenyi).
    - mean_ranks, float64 (models,): Over the graphs of the test, those that all models have.
    """

    statistic: float
    p: float
    models: int
    graphs: int
    critical_difference: float
    mean_ranks: Floats


def friedman(ranks: Floats, level: float = 0.05) -> Friedman | None:
    """The test over complete ranks (models, graphs); None for fewer than three models or graphs."""
    from scipy.special import chdtrc

    n_models, n_graphs = ranks.shape
    if n_models < 3 or n_graphs < 2:
        return None
    ties = 0.0
    for column in ranks.T:
        counts = np.unique(column, return_counts=True)[1].astype(np.float64)
        ties += float((counts**3 - counts).sum())
    sums = ranks.sum(axis=1)
    scale = 1 - ties / (n_graphs * (n_models**3 - n_models))
    spread = 12 / (n_graphs * n_models * (n_models + 1)) * float((sums**2).sum())
    statistic = (spread - 3 * n_graphs * (n_models + 1)) / scale if scale > 0 else 0.0
    gap = studentized_range(1 - level, n_models) / np.sqrt(2)
    return Friedman(
        statistic, float(chdtrc(n_models - 1, statistic)), n_models, n_graphs,
        float(gap * np.sqrt(n_models * (n_models + 1) / (6 * n_graphs))),
        sums / n_graphs,
    )  # fmt: skip


def studentized_range(share: float, n_groups: int) -> float:
    """Quantile of the range of so many standard normal variables."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    z = np.linspace(-8, 8, 4_001)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])

    def above(gap: float) -> float:
        within = n_groups * float((density * (ndtr(z) - ndtr(z - gap)) ** (n_groups - 1)).sum())
        return within - share

    return float(brentq(above, 1e-6, 20.0))
