"""Where to read a beta curve, and a simulation of why (Mohamed et al. 2020, equation 2).

A true triple of an item x, which has N(x) of them, is observed with a probability proportional to
N(x)^alpha. An average over observed triples favours popular items. With weights N^-beta of observed
counts, it is nearly unbiased at beta = alpha / (alpha + 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_count, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.measures.stratified import DEFAULT_METRICS
from kgtrec.study.stratified import Metrics, beta_curve, betas

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


EXAMPLES = (0.5, 1.0, 2.0)
"""Values of alpha that are shown if no estimate is known."""

LEAST_ALPHA = -0.5  # whose exponent is -1, the least of a curve
_FEWEST, _MOST = 20, 2000  # true triples of a simulated item
_OBSERVED = 0.9  # probability for the most popular item
_HITS = 0.2, 0.6  # hits of a simulated model: of an item with one triple, and what popularity adds


def unbiased_exponent(alpha: float) -> float:
    """Return the nearly unbiased exponent alpha / (alpha + 1); UsageError for alpha < -0.5."""
    require_type("alpha", alpha, Real, "a number")
    if not LEAST_ALPHA <= alpha < math.inf:
        raise UsageError(
            f"{argument('alpha', alpha)} has no exponent between -1 and 1; give an estimate of at "
            f"least {LEAST_ALPHA:g}"
        )
    return alpha / (alpha + 1)


def values_at_alphas(
    ranks: Ranks,
    alphas: Sequence[float] = EXAMPLES,
    vary: str = "beta_e",
    at: float = 0.0,
    metrics: Metrics = DEFAULT_METRICS,
    **options: Any,
) -> Table:
    """Return a row per alpha: its nearly unbiased exponent, and the stratified metrics there.

    Other parameters are those of `beta_curve`.
    """
    exponents = [unbiased_exponent(alpha) for alpha in alphas]
    curve = beta_curve(ranks, vary, at, metrics, points=exponents, **options)
    values = curve.values.reshape(len(curve.metrics), -1).T.tolist()
    rows: list[tuple[Cell, ...]] = [
        (f"{alpha:g}", exponent, *row)
        for alpha, exponent, row in zip(alphas, exponents, values, strict=True)
    ]
    titles = [(f"strat-{name}", name, 2 if name == "mr" else 4) for name in curve.metrics]
    return Table.from_rows(["alpha", (vary, vary, 4), *titles], rows)


def marked_curve(curve: Table, at_alphas: Table, origin: str) -> Table:
    """Merge the table of a curve with its values at nearly unbiased exponents.

    Parameters
    ----------
    curve : Table
        From `BetaGrid.table`, with one exponent that varies.
    at_alphas : Table
        From `values_at_alphas`, for the same ranks, exponent and metrics.
    origin : str
        Where the values of alpha come from: "assumed" or "estimate".

    Returns
    -------
    Table
        The columns of `curve`, with two more after ``beta_r``: ``alpha``, and ``alpha_is`` with the
        origin; both are "" for other exponents. Ascending exponents, each once.
    """
    varied = list(curve.keys).index(at_alphas.keys[1])
    fixed = curve.rows[0][1 - varied]
    rows = {float(row[varied]): (*row[:2], "", "", *row[2:]) for row in curve.rows}
    for alpha, exponent, *values in at_alphas.rows:
        pair = (exponent, fixed) if varied == 0 else (fixed, exponent)
        rows[float(exponent)] = (*pair, float(alpha), origin, *values)
    heads = [*zip(curve.titles, curve.keys, curve.digits, strict=True)]
    heads[2:2] = [("alpha", "alpha", 4), ("alpha is", "alpha_is", 0)]
    return Table.from_rows(heads, [rows[exponent] for exponent in sorted(rows)], names=2)


@dataclass(frozen=True, eq=False)
class BiasSimulation(ShownAsTables):
    """Bias of a stratified metric over exponents, in simulated graphs of known alpha.

    - bias, error, float64 (alphas, betas): Mean over the graphs of estimate minus true value, and
      the standard error of this mean.
    """

    alphas: tuple[float, ...]
    betas: Float64
    bias: Float64
    error: Float64
    graphs: int

    def _subject(self) -> str:
        return f" of {self.graphs:,} graphs per alpha"

    def table(self) -> Table:
        """Return a row per exponent, with the bias for each alpha."""
        titles = [(f"alpha = {alpha:g}", f"alpha_{alpha:g}", 4) for alpha in self.alphas]
        return Table.from_columns([("beta", "beta", 4), *titles], self.betas, *self.bias, names=1)


def simulate_bias(
    alphas: Sequence[float] = EXAMPLES,
    points: ArrayLike | None = None,
    *,
    items: int = 300,
    graphs: int = 20,
    seed: int = 0,
) -> BiasSimulation:
    """Simulate the bias of a stratified metric, as a test of equation 2 (Mohamed et al. 2020).

    An item has 20 to 2,000 true triples (log-uniform), each observed with a probability
    proportional to N^alpha. Hits of the model rise with log N. The true value is the mean over all
    true triples, and the estimate is the mean over observed ones with weights N^-beta.

    Parameters
    ----------
    alphas : sequence of float
        At least -0.5.
    points : array_like of float, shape (b,), optional
        Exponents beta. Default: 21 from -1 to 1, and the nearly unbiased ones.
    items, graphs : int
        Items of a graph, and graphs per alpha; at least 2.
    seed : int

    Raises
    ------
    UsageError
        No alpha, an alpha below -0.5, or fewer than 2 items or graphs.
    """
    check_count("items", items, 2)
    check_count("graphs", graphs, 2)
    require_type("alphas", alphas, Sized, "a list of numbers")
    if not len(alphas):
        raise UsageError("no alpha is named; give at least one, such as 1")
    exponents = [unbiased_exponent(alpha) for alpha in alphas]
    exponents_to_show = (
        np.concatenate([betas(), exponents]) if points is None else np.asarray(points, float)
    )
    axis = np.unique(exponents_to_show)
    means, errors = [], []
    for alpha in alphas:
        rng = np.random.default_rng(seed)
        drawn = np.array([_bias_of(*_draw_graph(rng, alpha, items), axis) for _ in range(graphs)])
        means.append(drawn.mean(axis=0))
        errors.append(drawn.std(axis=0, ddof=1) / math.sqrt(graphs))
    return BiasSimulation(tuple(alphas), axis, np.array(means), np.array(errors), graphs)


def _draw_graph(rng: np.random.Generator, alpha: float, items: int) -> tuple[Int64, Int64]:
    """Draw the number of true triples of each item, and of those that are observed."""
    every = np.exp(rng.uniform(math.log(_FEWEST), math.log(_MOST), items)).astype(np.int64)
    largest = every.max() if alpha >= 0 else every.min()  # has the largest probability
    return every, rng.binomial(every, _OBSERVED * (every / largest) ** alpha)


def _bias_of(every: Int64, seen: Int64, exponents: Float64) -> Float64:
    """Return estimate minus true value at each exponent."""
    hits = _HITS[0] + _HITS[1] * np.log(every) / math.log(_MOST)
    known = seen > 0
    weights = seen[known].astype(float) ** (1 - exponents[:, None])  # seen triples of N^-beta each
    estimate = weights @ hits[known] / weights.sum(axis=1)
    return np.asarray(estimate - every @ hits / every.sum())
