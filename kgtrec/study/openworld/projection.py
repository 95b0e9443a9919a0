"""What two observed values mean at one sparsity: strengths, full labels, probabilities, needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.study.openworld.formulas import normal_below
from kgtrec.study.openworld.mixture import Mixture
from kgtrec.study.openworld.model import Strengths, correlation_range, split_strength

__all__ = ["CONTROL", "Outlook", "Seen", "highest_sparsity", "outlook_at", "wrong_order"]

Floats = NDArray[np.float64]

CONTROL = "hits@10"
"""What the fitted model is checked on: it was fitted to another metric."""
STEPS = 50  # halvings of an interval
NEWTON = 2  # steps from a close guess
ROUNDING = 1e-9


@dataclass(frozen=True)
class Outlook:
    """What two observed values mean at one sparsity. Pairs are in the order of the models.

    Attributes
    ----------
    sparsity : float
        Share of the full test answers taken to be missing.
    answers : float
        Mean number of true answers of a question, missing ones included.
    strengths : (float, float)
        l of each model; NaN where no strength explains its value.
    ceiling : float
        What a perfect model would score.
    full : (float, float)
        Expected metric of each with complete labels.
    full_difference, full_error : float
        Second minus first, and its standard error.
    p_model : float
        Probability that complete labels order them the other way: Theorem 4.2, with exact
        expectations and variances of the paper's model and the same answers missing for both.
    p_paper : float
        The same as Theorem 4.2 prints it: logarithmic, models independent, all questions alike.
    needed_model, needed_data : float
        Questions needed for the probability asked for, by the model and by the data's spread.
    rho : float
        Correlation that would let the model of the higher value be no stronger than the other, if
        the other has none; NaN where no possible correlation does.
    curve : tuple of (tuple of float, tuple of float)
        Strengths from 0 to 1, and the metric that each is expected to score.
    control : tuple of (float, float)
        Per model: Hits@10 as the fitted model expects it, and as observed (NaN if not known).
    """

    sparsity: float
    answers: float
    strengths: tuple[float, float]
    ceiling: float
    full: tuple[float, float]
    full_difference: float
    full_error: float
    p_model: float
    p_paper: float
    needed_model: float
    needed_data: float
    rho: float
    curve: tuple[tuple[float, ...], tuple[float, ...]]
    control: tuple[tuple[float, float], tuple[float, float]]

    @property
    def fits(self) -> bool:
        """False where no strength explains an observed value."""
        return not any(math.isnan(strength) for strength in self.strengths)


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of both models.

    Attributes
    ----------
    values : (float, float)
        The metric of each, averaged inside a question first.
    answers : ndarray of float64, shape (questions,)
        Test answers of each question.
    n_entities : int
    spread : float
        Variance of the questions' differences; NaN if not known.
    control : (float, float)
        Observed `CONTROL` metric of each; NaN if not known.
    metric : str
    """

    values: tuple[float, float]
    answers: Floats
    n_entities: int
    spread: float
    control: tuple[float, float]
    metric: str


def outlook_at(seen: Seen, beta: float, level: float) -> Outlook:
    """The outlook at one sparsity; `level` is the probability of the wrong order put up with."""
    questions = Mixture.of_seen(seen.answers, beta, seen.n_entities)
    complete = Mixture(0.0, questions.n_answers, questions.weight, seen.n_entities)
    nodes, curve = questions.curve(seen.metric)
    strengths, rise = _strengths(seen, questions, nodes, curve)
    pair = (float(strengths[0]), float(strengths[1]))
    usable = (float(np.nan_to_num(pair[0], nan=1.0)), float(np.nan_to_num(pair[1], nan=1.0)))
    variance, covariance = questions.spread(usable, seen.metric)
    gap, count = seen.values[1] - seen.values[0], len(seen.answers)
    modelled = math.sqrt(max(float(variance.sum()) - 2 * covariance, 0.0))
    full = complete.mean(usable, seen.metric)
    spread = modelled if math.isnan(seen.spread) else math.sqrt(seen.spread)
    expected = questions.mean(usable, CONTROL)
    answers = float(seen.answers.mean()) / (1.0 - beta)
    return Outlook(
        sparsity=beta,
        answers=answers,
        strengths=pair,
        ceiling=float(curve[-1]),
        full=(float(full[0]), float(full[1])),
        full_difference=float(full[1] - full[0]),
        full_error=spread / math.sqrt(count) / rise,
        p_model=wrong_order(gap, modelled / math.sqrt(count)),
        p_paper=_printed(pair, beta, answers, count, float(variance.sum())),
        needed_model=_needed(gap, modelled, level),
        needed_data=_needed(gap, math.sqrt(seen.spread), level),
        rho=_explaining_rho(questions, seen, pair),
        curve=(tuple(nodes.tolist()), tuple(curve.tolist())),
        control=(
            (float(expected[0]), seen.control[0]),
            (float(expected[1]), seen.control[1]),
        ),
    )


def _strengths(
    seen: Seen, questions: Mixture, nodes: Floats, curve: Floats
) -> tuple[Floats, float]:
    """Strength of each model, (2,): 0 for a value that is too low, NaN for one too high.

    With them how much the metric rises with the strength between the two.
    """
    from scipy.interpolate import PchipInterpolator

    values, ceiling = np.array(seen.values), float(curve[-1])
    smooth = PchipInterpolator(nodes, curve)
    rising = smooth.derivative()
    strength = np.array([_where(smooth, min(value, ceiling)) for value in seen.values])
    for _ in range(NEWTON):  # from the interpolated to the exact expectation
        strength = strength + (values - questions.mean(strength, seen.metric)) / rising(strength)
        strength = np.clip(strength, 0.0, 1.0)
    strength = np.where(values > ceiling * (1 + ROUNDING), np.nan, strength)
    return strength, float(rising(np.mean(np.nan_to_num(strength, nan=1.0))))


def _where(smooth: Callable[[float], Any], value: float) -> float:
    """Where a rising function on 0 .. 1 takes a value; the nearer end where it does not."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if float(smooth(middle)) < value else (low, middle)
    return (low + high) / 2


def wrong_order(gap: float, error: float) -> float:
    """Probability that a difference has the other sign; a half for none."""
    if math.isnan(error) or gap == 0 or error == 0:
        return math.nan if math.isnan(error) else (0.5 if gap == 0 else 0.0)
    return normal_below(-abs(gap) / error)


def _printed(
    pair: tuple[float, float], beta: float, answers: float, count: int, variances: float
) -> float:
    """Theorem 4.2 as printed, all questions with the mean number of answers."""
    low, high = min(pair), max(pair)
    if not (beta > 0 and low > 0 and variances > 0) or math.isnan(pair[0] + pair[1]):
        return math.nan
    gap = math.log(high / low) / (beta * (answers + 1))
    return normal_below(-gap * math.sqrt(count / variances))


def _needed(gap: float, spread: float, level: float) -> float:
    """Questions needed where a question's difference has this standard deviation."""
    from scipy.special import ndtri

    if gap == 0:
        return math.inf
    return (float(ndtri(level)) * spread / gap) ** 2


def _explaining_rho(questions: Mixture, seen: Seen, pair: tuple[float, float]) -> float:
    """Correlation with which the weaker model's strength would give the higher value."""
    weaker = 0 if seen.values[0] <= seen.values[1] else 1
    strength, value = pair[weaker], seen.values[1 - weaker]
    if math.isnan(strength) or not 0 < strength < 1 or questions.beta == 0:
        return math.nan
    rhos = np.linspace(correlation_range(strength, questions.beta)[0], 0.0, 17)
    parts = [split_strength(strength, questions.beta, float(rho)) for rho in rhos]
    both = Strengths(np.array([p.missing for p in parts]), np.array([p.recorded for p in parts]))
    curve = questions.mean(both, seen.metric)
    enough = np.flatnonzero(curve >= value)
    if not len(enough):
        return math.nan
    nearest = int(enough[-1])
    if nearest == len(rhos) - 1:
        return 0.0
    return float(np.interp(value, curve[[nearest + 1, nearest]], rhos[[nearest + 1, nearest]]))


def highest_sparsity(seen: Seen) -> float:
    """Sparsity above which a perfect model would score less than the higher value."""
    value, low, high = max(seen.values), 0.0, 1.0 - 1e-6
    while True:  # the candidates bound the answers that there can be
        most = float(seen.answers.max()) / (1.0 - high)
        if most < seen.n_entities - 1:
            break
        high = 1.0 - float(seen.answers.max()) / (seen.n_entities - 2)
    if Mixture.of_seen(seen.answers, high, seen.n_entities).ceiling(seen.metric) >= value:
        return high
    for _ in range(12):
        middle = (low + high) / 2
        reached = Mixture.of_seen(seen.answers, middle, seen.n_entities).ceiling(seen.metric)
        low, high = (middle, high) if reached >= value else (low, middle)
    return low
