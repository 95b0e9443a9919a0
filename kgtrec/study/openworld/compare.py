"""The comparison of two models if a share of the true answers is missing.

The user assumes a sparsity, and the observed metrics are converted to strengths of the paper's
model. The strengths determine the difference that complete labels would show, the probability that
they would show the other order (Theorem 4.2), the number of questions needed (Corollary 4.4), and
the correlation that would explain the whole difference (Theorem 4.3).

`Mixture` computes expectations over questions with different numbers of answers; in the paper, all
questions have N answers. A real question shows only its n recorded answers, and N is assumed to be
n / (1 - sparsity). If that is not a whole number, the question is divided between the two nearest
whole numbers, so that the mean stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64, Int64
from kgtrec.errors import InputError, UsageError, refuse_if
from kgtrec.measures import Measure
from kgtrec.measures.averaging import instance_ties
from kgtrec.ranking.provenance import differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.openworld.formulas import (
    ENTITIES,
    Strengths,
    binomial,
    check,
    check_level,
    check_strength,
    correlation_range,
    gain,
    moments,
    normal_below,
    split_strength,
    sum_of_gains,
)
from kgtrec.study.openworld.results import Comparison, Outlook

FINE = 40
"""Largest number of answers for which expectations are always computed exactly. If there are more
different numbers, expectations are computed at numbers that are 6 % apart and interpolated between
them. They change slowly there."""
STEP = 1.06
NODES = 17


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of questions with different numbers of answers.

    - beta: Sparsity.
    - n_answers, int64 (k,): Numbers of answers, missing ones included.
    - weight, float64 (k,): Share of the questions with each number of answers; sums to 1.
    - n_entities: Candidates of a question, its answers included.
    """

    beta: float
    n_answers: Int64
    weight: Float64
    n_entities: int

    @classmethod
    def from_answers(cls, seen: ArrayLike, beta: float, n_entities: int) -> Mixture:
        """Build the mixture from the number of test answers of each question, 1 or more."""
        check_strength(0.0, beta)
        answers = np.asarray(seen, np.float64) / (1.0 - beta)
        if not len(answers):
            raise UsageError("there are no questions; give the answers of one or more")
        least, most = float(answers.min()), float(answers.max())
        refuse_if(
            (
                not least >= 1.0,
                f"a question has {least * (1.0 - beta):g} test answers; give 1 or more for each",
            ),
            (
                most >= n_entities - 1,
                f"at sparsity {beta:g} a question would have {most:.0f} answers among "
                f"{n_entities} candidates; give a lower sparsity",
            ),
        )
        points = _choose_points(answers)
        upper = np.clip(np.searchsorted(points, answers), 1, len(points) - 1)
        low, high = points[upper - 1], points[upper]
        share = (answers - low) / (high - low)
        weight = np.bincount(upper, share, len(points)) + np.bincount(
            upper - 1, 1.0 - share, len(points)
        )
        used = weight > 0
        return cls(beta, points[used], weight[used] / len(answers), n_entities)

    def mean(self, strength: ArrayLike | Strengths, metric: str = "mrr") -> Float64:
        """Return the expected metric of questions with a test answer at each strength, (L,)."""
        parts = [
            weight * moments(strength, self.beta, count, self.n_entities, metric).mean
            for count, weight in self.shares()
        ]
        return np.asarray(np.sum(parts, axis=0))

    def shares(self) -> list[tuple[int, float]]:
        """Return each number of answers, and the share of the questions that have it."""
        return list(zip(self.n_answers.tolist(), self.weight.tolist(), strict=True))

    def ceiling(self, metric: str = "mrr") -> float:
        """Return the expected metric of a perfect model, whose strength is 1."""
        total = 0.0
        sums = sum_of_gains(metric, int(self.n_answers.max()) + 1)
        for count, weight in self.shares():
            missing = np.arange(count)
            chance = binomial(missing, count, self.beta)
            value = chance @ (sums[missing + 1] / (missing + 1)) / chance.sum()
            total += weight * float(value)
        return total

    def spread(self, pair: tuple[float, float], metric: str = "mrr") -> tuple[Float64, float]:
        """Return the mean variance of a question for two models, (2,), and their mean covariance.

        The covariance is that of models that have only the missing answers in common.
        """
        variance, covariance = np.zeros(2), 0.0
        for count, weight in self.shares():
            both = moments(pair, self.beta, count, self.n_entities, metric)
            variance += weight * both.variance
            covariance += weight * float(both.covariance[0, 1])
        return variance, covariance

    def curve(self, metric: str = "mrr") -> tuple[Float64, Float64]:
        """Return strengths from 0 to 1, and the expected metric at each."""
        strengths = np.linspace(0.0, 1.0, NODES)
        return strengths, self.mean(strengths, metric)


def _choose_points(answers: Float64) -> Int64:
    """Return the whole numbers of answers at which to compute expectations, ascending.

    There are at least two, and every number of answers is between two of them.
    """
    lower = np.floor(answers).astype(np.int64)
    points: Int64 = np.unique(np.concatenate([lower, lower + 1]))
    if len(points) <= FINE:
        return points
    coarse = list(range(1, FINE + 1))
    while coarse[-1] <= answers.max():
        coarse.append(max(coarse[-1] + 1, round(coarse[-1] * STEP)))
    return np.array(coarse, np.int64)


CONTROL = "hits@10"
"""The metric that checks how well the model, fitted to another metric, describes the data."""
STEPS = 50  # halvings of an interval
NEWTON = 2  # steps from a close guess
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Seen:
    """The observed values of two models.

    - values: Metric of each model, averaged over the answers of each question first.
    - answers, float64 (questions,): Test answers of each question.
    - spread: Variance over questions of the difference of both models; NaN if not known.
    - control: Observed `CONTROL` metric of each model; NaN if not known.
    """

    values: tuple[float, float]
    answers: Float64
    n_entities: int
    spread: float
    control: tuple[float, float]
    metric: str


def outlook_at(seen: Seen, beta: float, level: float) -> Outlook:
    """Compute the outlook at one sparsity.

    `level` is the accepted probability of the wrong order.
    """
    questions = Mixture.from_answers(seen.answers, beta, seen.n_entities)
    complete = Mixture(0.0, questions.n_answers, questions.weight, seen.n_entities)
    nodes, curve = questions.curve(seen.metric)
    strengths, rise = fit_strengths(seen.values, questions, nodes, curve, seen.metric)
    pair, usable = _pair(strengths), _pair(np.nan_to_num(strengths, nan=1.0))
    variance, covariance = questions.spread(usable, seen.metric)
    gap, count = seen.values[1] - seen.values[0], len(seen.answers)
    modelled = math.sqrt(max(float(variance.sum()) - 2 * covariance, 0.0))
    full = complete.mean(usable, seen.metric)
    spread = modelled if math.isnan(seen.spread) else math.sqrt(seen.spread)
    expected = _pair(questions.mean(usable, CONTROL))
    answers = float(seen.answers.mean()) / (1.0 - beta)
    return Outlook(
        sparsity=beta,
        answers=answers,
        strengths=pair,
        ceiling=float(curve[-1]),
        full=_pair(full),
        full_difference=float(full[1] - full[0]),
        full_error=spread / math.sqrt(count) / rise,
        p_model=wrong_order(gap, modelled / math.sqrt(count)),
        p_paper=_theorem_probability(pair, beta, answers, count, float(variance.sum())),
        needed_model=_count_questions_needed(gap, modelled, level),
        needed_data=_count_questions_needed(gap, math.sqrt(seen.spread), level),
        rho=_find_explaining_rho(questions, seen, pair),
        curve=(tuple(nodes.tolist()), tuple(curve.tolist())),
        control=((expected[0], seen.control[0]), (expected[1], seen.control[1])),
    )


def _pair(values: Float64) -> tuple[float, float]:
    """Return the values of both models as floats."""
    return float(values[0]), float(values[1])


def fit_strengths(
    observed: Sequence[float], questions: Mixture, nodes: Float64, curve: Float64, metric: str
) -> tuple[Float64, float]:
    """Return the strength for each observed value, (L,), and the slope of the metric between them.

    The strength is 0 if the observed value is too low, and NaN if it is too high.
    """
    from scipy.interpolate import PchipInterpolator

    values, ceiling = np.array(observed), float(curve[-1])
    smooth = PchipInterpolator(nodes, curve)
    rising = smooth.derivative()
    strength = np.array([_solve_increasing(smooth, min(value, ceiling)) for value in observed])
    for _ in range(NEWTON):  # from the interpolated to the exact expectation
        strength = strength + (values - questions.mean(strength, metric)) / rising(strength)
        strength = np.clip(strength, 0.0, 1.0)
    strength = np.where(values > ceiling * (1 + ROUNDING), np.nan, strength)
    return strength, float(rising(np.mean(np.nan_to_num(strength, nan=1.0))))


def _solve_increasing(smooth: Callable[[float], Any], value: float) -> float:
    """Solve ``smooth(x) = value`` for an increasing function on [0, 1] by bisection.

    Returns the nearer end if no point solves it.
    """
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if float(smooth(middle)) < value else (low, middle)
    return (low + high) / 2


def wrong_order(gap: float, error: float) -> float:
    """Return the probability that a difference has the other sign; 0.5 if it is 0."""
    if math.isnan(error) or gap == 0 or error == 0:
        return math.nan if math.isnan(error) else (0.5 if gap == 0 else 0.0)
    return normal_below(-abs(gap) / error)


def _theorem_probability(
    pair: tuple[float, float], beta: float, answers: float, count: int, variances: float
) -> float:
    """Return the probability of Theorem 4.2 as printed, with the mean number of answers."""
    low, high = min(pair), max(pair)
    if not (beta > 0 and low > 0 and variances > 0) or math.isnan(pair[0] + pair[1]):
        return math.nan
    gap = math.log(high / low) / (beta * (answers + 1))
    return normal_below(-gap * math.sqrt(count / variances))


def _count_questions_needed(gap: float, spread: float, level: float) -> float:
    """Return the number of questions needed to accept the order of two models.

    `spread` is the standard deviation of the difference of one question.
    """
    from scipy.special import ndtri

    if gap == 0:
        return math.inf
    return (float(ndtri(level)) * spread / gap) ** 2


def _find_explaining_rho(questions: Mixture, seen: Seen, pair: tuple[float, float]) -> float:
    """Find the correlation with which the weaker model's strength gives the higher value.

    Returns NaN if there is none.
    """
    weaker = 0 if seen.values[0] <= seen.values[1] else 1
    strength, value = pair[weaker], seen.values[1 - weaker]
    if math.isnan(strength) or not 0 < strength < 1 or questions.beta == 0:
        return math.nan
    rhos = np.linspace(correlation_range(strength, questions.beta)[0], 0.0, 17)
    parts = [split_strength(strength, questions.beta, float(rho)) for rho in rhos]
    missing, recorded = np.array([p.missing for p in parts]), np.array([p.recorded for p in parts])
    curve = questions.mean(Strengths(missing, recorded), seen.metric)
    enough = np.flatnonzero(curve >= value)
    if not len(enough):
        return math.nan
    nearest = int(enough[-1])
    if nearest == len(rhos) - 1:
        return 0.0
    return float(np.interp(value, curve[[nearest + 1, nearest]], rhos[[nearest + 1, nearest]]))


def highest_sparsity(seen: Seen) -> float:
    """Find the sparsity above which a perfect model scores less than the higher value."""
    value, low, high = max(seen.values), 0.0, 1.0 - 1e-6
    while True:  # the number of candidates limits the number of answers
        most = float(seen.answers.max()) / (1.0 - high)
        if most < seen.n_entities - 1:
            break
        high = 1.0 - float(seen.answers.max()) / (seen.n_entities - 2)
    if Mixture.from_answers(seen.answers, high, seen.n_entities).ceiling(seen.metric) >= value:
        return high
    for _ in range(12):
        middle = (low + high) / 2
        reached = Mixture.from_answers(seen.answers, middle, seen.n_entities).ceiling(seen.metric)
        low, high = (middle, high) if reached >= value else (low, middle)
    return low


def question_values(ranks: Ranks, metric: str = "mrr") -> tuple[Float64, Float64]:
    """Return the metric and the number of answers of each question, float64 (questions,) each.

    Questions are in ascending order. The metric is the expected value if ties are broken at random.
    """
    gain(metric)  # refuses metrics without a formula
    gains = Measure.parse(f"both.expected.micro.{metric}").per_item(instance_ties(ranks))
    _, index = np.unique(ranks.question, return_inverse=True)
    answers = np.bincount(index).astype(np.float64)
    return np.bincount(index, gains) / answers, answers


def compare_ranks(
    first: Ranks,
    second: Ranks,
    sparsity: float | Sequence[float],
    metric: str = "mrr",
    level: float = 0.05,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two models by their ranks on the same questions, at one or several sparsities.

    `sparsity_of_density` computes a sparsity from the share of all true facts that the graph
    contains. InputError: ranks of different questions, or of no questions.
    """
    _check_alike(first, second, names)
    both = first, second
    values, answers = np.array([question_values(ranks, metric) for ranks in both]).swapaxes(0, 1)
    control = np.array([question_values(ranks, CONTROL)[0].mean() for ranks in both])
    answers, gaps = answers[0], values[1] - values[0]
    n_entities = count_candidates(first, answers)
    seen = Seen(
        _pair(values.mean(axis=1)),
        answers,
        n_entities,
        float(gaps.var(ddof=1)) if len(gaps) > 1 else math.nan,
        _pair(control),
        metric,
    )
    return _compare(seen, sparsity, level, names, first.sampled)


def count_candidates(ranks: Ranks, answers: Float64) -> int:
    """Return the mean number of candidates of a question with the most answers.

    The candidates of an instance are the false and missing ones, and its answer. Those of a
    question also contain its other answers.
    """
    return round(float(ranks.candidates.mean()) - 1 + float(answers.max()))


def compare_values(
    values: tuple[float, float],
    n_questions: int,
    answers: float,
    sparsity: float | Sequence[float],
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    level: float = 0.05,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two published values, as if all questions had the same number of answers.

    `answers` is the mean number of test answers of a question: test triples over questions, for
    each side. Otherwise as `compare_ranks`.
    """
    check("n_questions", n_questions, n_questions >= 2, "2 or more")
    check("answers", answers, answers >= 1, "1 or more, because every question has a test answer")
    for value in values:
        check(f"value of {metric}", value, 0 < value <= 1, "a number above 0 and up to 1")
    unknown = (math.nan, math.nan)
    n_answers = np.full(int(n_questions), float(answers))
    seen = Seen(values, n_answers, n_entities, math.nan, unknown, metric)
    return _compare(seen, sparsity, level, names)


def train_share_of(ranks: Ranks) -> float:
    """Return the share of the graph's facts that are not in the evaluated split.

    The sizes of the splits are in the provenance of the ranks; InputError if they are not.
    """
    sizes, split = ranks.provenance.triples, ranks.provenance.split
    if split is None or split not in sizes:
        raise InputError(
            "these ranks do not record the sizes of the graph's splits; give "
            f"{argument('train_share')}"
        )
    total = sum(sizes.values())
    return float((total - sizes[split]) / total)


def _compare(
    seen: Seen,
    sparsity: float | Sequence[float],
    level: float,
    names: tuple[str, str],
    sampled: bool = False,
) -> Comparison:
    """Compare two models at each sparsity."""
    gain(seen.metric)  # an unknown name is refused before the work begins
    check_level("level", level)
    most = float(seen.answers.max())
    if most >= seen.n_entities - 1:
        raise UsageError(
            f"{seen.n_entities} candidates are too few for a question of {most:.3g} answers; the "
            "paper's model needs at least two false candidates per question"
        )
    betas = sorted(set(np.atleast_1d(np.asarray(sparsity, np.float64)).tolist()))
    count, gap = len(seen.answers), seen.values[1] - seen.values[0]
    error = math.sqrt(seen.spread / count)
    return Comparison(
        names=names,
        metric=seen.metric,
        values=seen.values,
        difference=gap,
        n_questions=count,
        answers_seen=float(seen.answers.mean()),
        paired_error=error,
        p_data=wrong_order(gap, error),
        level=level,
        highest_sparsity=highest_sparsity(seen),
        outlooks=tuple(outlook_at(seen, beta, level) for beta in betas),
        sampled=sampled,
    )


def _check_alike(first: Ranks, second: Ranks, names: tuple[str, str]) -> None:
    """Raise InputError if two models did not rank the same questions."""
    if not len(first) or not len(second):
        raise InputError("there are no ranks to compare; rank a split that has triples")
    alike = len(first) == len(second) and all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("question", "side", "relation", "given", "answer", "candidates")
    )
    if not alike or differences(first.provenance, second.provenance, ["questions_hash"]):
        raise InputError(
            f"{names[0]} and {names[1]} rank different questions ({len(first)} and {len(second)} "
            "instances); rank both models with the same graph, split, sides and filter"
        )
