"""Estimates of alpha: how much more often popular items are observed, and so where beta is right.

Mohamed et al. (2020, equation 2) assume that a true triple of an item x, which has N(x) of them, is
observed with a probability p(x) proportional to N(x)^alpha. A stratified metric is then nearly
unbiased at the exponent beta = alpha / (alpha + 1). Completed labels show both counts: the seeds
are observed, and the seeds with the pooled true triples are all. alpha is the slope of log p on
log N by least squares, over the items with both counts above zero. Items without an observed triple
are excluded, which makes rare ones look better observed: their number is part of the result. An
interval has the standard deviation over draws of questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import Resampling, on_draws
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError
from kgtrec.study.pooling.completion import TRUE, Completion
from kgtrec.study.pooling.seeds import find_indices, questions_of

FEWEST = 10
"""Items that an estimate needs."""


@dataclass(frozen=True, eq=False)
class AlphaEstimate(ShownAsTables):
    """alpha of relations or of answers, with an interval over questions.

    - noun: "relations" or "answers".
    - alpha, low, high: The slope, and the ends of its interval; NaN if most draws have no slope.
    - items: Number of items with both counts above zero.
    - excluded: Number of items with true triples of which none is observed.
    """

    noun: str
    alpha: float
    low: float
    high: float
    items: int
    excluded: int
    resampling: Resampling

    @property
    def beta(self) -> tuple[float, float, float]:
        """The nearly unbiased exponent, and the ends of its interval; NaN for alpha <= -1."""
        return _beta_of(self.alpha), _beta_of(self.low), _beta_of(self.high)

    def table(self) -> Table:
        """Return one row; see `alpha_table`."""
        return alpha_table([self])


def alpha_table(estimates: Sequence[AlphaEstimate]) -> Table:
    """Return a row per estimate: alpha and beta with intervals, and the numbers of items."""
    how = estimates[0].resampling
    ends = how.columns(3, "alpha_"), how.columns(3, "beta_")
    columns = ["of", "alpha:3", *ends[0], "beta:3", *ends[1], "items", "excluded"]
    rows: list[tuple[Cell, ...]] = [
        (each.noun, each.alpha, each.low, each.high, *each.beta, each.items, each.excluded)
        for each in estimates
    ]
    return Table.from_rows(columns, rows)


def _beta_of(alpha: float) -> float:
    """Return alpha / (alpha + 1); NaN for alpha <= -1."""
    return alpha / (alpha + 1) if alpha > -1 else float("nan")


def estimate_alphas(
    completion: Completion, resampling: Resampling | None = None
) -> list[AlphaEstimate]:
    """Estimate alpha of relations and of answers, from the questions of the seeds.

    Raises
    ------
    InputError
        Fewer than ten relations and fewer than ten answers have both counts above zero, or all
        have the same number of true triples.
    """
    graph = completion.seeds.graph
    true = completion.labels == TRUE
    keys, answers = (column.ravel() for column in questions_of(graph, completion.triples[true]))
    question = find_indices(completion.seeds.keys, keys)
    in_seeds = question >= 0
    is_seed = np.arange(len(completion)) < len(completion.seeds.seeds)
    observed = np.repeat(is_seed[true], 2)
    relation = np.repeat(completion.triples[true, 1], 2)
    estimates, problems = [], []
    for noun, item in (("relations", relation), ("answers", answers)):
        try:
            estimates.append(
                estimate_alpha(
                    question[in_seeds], item[in_seeds], observed[in_seeds], noun, resampling
                )
            )
        except InputError as problem:
            problems.append(str(problem))
    if not estimates:
        raise InputError("; ".join(problems))
    return estimates


def estimate_alpha(
    question: Int64,
    item: Int64,
    observed: Bools,
    noun: str = "items",
    resampling: Resampling | None = None,
) -> AlphaEstimate:
    """Estimate alpha from true answers, each of a question and with an item.

    Parameters
    ----------
    question, item : ndarray of int64, shape (n,)
        Question of each true answer, and its item: its relation, or itself.
    observed : ndarray of bool, shape (n,)
        Whether the answer was known before the labels were completed.
    noun : str
        What the items are.
    resampling : Resampling, optional
        How to draw questions for the interval; by default 2,000 times.

    Raises
    ------
    InputError
        Fewer than ten items have both counts above zero, or all have the same number of answers.
    """
    from scipy.sparse import csr_array
    from scipy.special import ndtri

    how = resampling or Resampling()
    _, question = np.unique(question, return_inverse=True)
    _, item = np.unique(item, return_inverse=True)
    shape = int(question.max(initial=-1)) + 1, int(item.max(initial=-1)) + 1
    every, seen = np.bincount(item), np.bincount(item, observed)
    known = seen > 0
    if known.sum() < FEWEST or len(np.unique(every[known])) < 2:
        raise InputError(
            f"alpha of {noun} cannot be estimated: {int(known.sum()):,} of them have an observed "
            f"answer, with {len(np.unique(every[known])):,} different numbers of true ones; it "
            f"needs {FEWEST} with two or more"
        )
    cells = (question, item)
    counts = [csr_array((w.astype(float), cells), shape) for w in (np.ones(len(item)), observed)]
    drawn = on_draws(
        lambda times: _slopes(*(times @ each for each in counts))[:, None], shape[0], how, shape[1]
    )
    alpha = float(_slopes(*np.array([[every], [seen]], np.float64))[0])
    # Draws lose items, so their percentiles are biased, and need not contain alpha.
    half = -float(ndtri(how.tails[0])) * _deviation(drawn)
    items = int(known.sum()), int((~known).sum())
    return AlphaEstimate(noun, alpha, alpha - half, alpha + half, *items, how)


def _deviation(draws: Float64) -> float:
    """Return the standard deviation of draws (B, 1); NaN if fewer than half have a value."""
    values = draws[np.isfinite(draws)]
    return float(values.std(ddof=1)) if 2 * len(values) >= len(draws) else float("nan")


def _slopes(every: Float64, seen: Float64) -> Float64:
    """Return the slope of log(seen / every) on log(every) of each row; NaN without a slope."""
    known = seen > 0
    n = known.sum(axis=1)
    x = np.log(np.where(known, every, 1.0))
    y = np.log(np.where(known, seen, 1.0)) - x
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.where(known, x - (x.sum(axis=1) / n)[:, None], 0.0)
        spread = (gap**2).sum(axis=1)
        return np.where(spread > 1e-12, (gap * y).sum(axis=1) / spread, np.nan)
