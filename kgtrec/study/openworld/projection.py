"""Two observed values at an assumed sparsity; and models that get stronger step by step.

`Mixture` computes expectations over questions with different numbers of answers; in the paper, all
questions have N answers. A real question shows only its n recorded answers, and N is assumed to be
n / (1 - sparsity). If that is not a whole number, the question counts in parts as the two whole
numbers beside it, so that the mean stays the same. `Outlook` contains the conclusions for two
models: strengths, full labels, probabilities, questions needed.

The factorisations train in seconds with numpy and scipy. Each takes training triples and yields
checkpoints, like a model that is trained longer; a step is the number of dimensions. They answer
tail questions: one row per (head, relation), whose candidates are the tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec.errors import UsageError
from kgtrec.scores.factors import Factors
from kgtrec.study.openworld.formulas import moments, normal_below
from kgtrec.study.openworld.model import (
    Strengths,
    binomial,
    checked_strength,
    correlation_range,
    split_strength,
    sum_of_gains,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from kgtrec.questions.api import Questions

Floats = NDArray[np.float64]

FINE = 40
"""Up to here every number of answers has its own computation. If there are more different ones, the
larger numbers are 6 % apart, and expectations between them are interpolated: they change slowly
there."""
STEP = 1.06
NODES = 17


@dataclass(frozen=True, eq=False)
class Mixture:
    """Questions with N answers each, in shares.

    - beta: Sparsity.
    - n_answers, int64 (k,): Numbers of answers, missing ones included.
    - weight, float64 (k,): Share of the questions, sums to 1.
    - n_entities: Candidates of a question, its answers included.
    """

    beta: float
    n_answers: NDArray[np.int64]
    weight: Floats
    n_entities: int

    @classmethod
    def of_seen(cls, seen: ArrayLike, beta: float, n_entities: int) -> Mixture:
        """From the number of test answers of each question, all >= 1."""
        checked_strength(0.0, beta)
        answers = np.asarray(seen, np.float64) / (1.0 - beta)
        if not len(answers) or not (answers >= 1.0).all():
            raise UsageError("every question needs 1 test answer or more")
        if answers.max() >= n_entities - 1:
            raise UsageError(
                f"at sparsity {beta:g} a question would have {answers.max():.0f} answers among "
                f"{n_entities} candidates; give a lower sparsity"
            )
        points = _points(answers)
        upper = np.clip(np.searchsorted(points, answers), 1, len(points) - 1)
        low, high = points[upper - 1], points[upper]
        share = (answers - low) / (high - low)
        weight = np.bincount(upper, share, len(points)) + np.bincount(
            upper - 1, 1.0 - share, len(points)
        )
        used = weight > 0
        return cls(beta, points[used], weight[used] / len(answers), n_entities)

    def mean(self, strength: ArrayLike | Strengths, metric: str = "mrr") -> Floats:
        """Expected metric at each strength, given that questions have a test answer: (L,)."""
        parts = [
            weight * moments(strength, self.beta, count, self.n_entities, metric).mean
            for count, weight in zip(self.n_answers.tolist(), self.weight.tolist(), strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def ceiling(self, metric: str = "mrr") -> float:
        """Expected metric of a perfect model, strength 1."""
        total = 0.0
        sums = sum_of_gains(metric, int(self.n_answers.max()) + 1)
        for count, weight in zip(self.n_answers.tolist(), self.weight.tolist(), strict=True):
            places = np.arange(count)
            chance = binomial(places, count, self.beta)
            value = chance @ (sums[places + 1] / (places + 1)) / chance.sum()
            total += weight * float(value)
        return total

    def spread(self, pair: tuple[float, float], metric: str = "mrr") -> tuple[Floats, float]:
        """Mean variance of a question for two models, (2,), and their mean covariance.

        The covariance is that of models that share the missing answers, and nothing else.
        """
        variance, covariance = np.zeros(2), 0.0
        for count, weight in zip(self.n_answers.tolist(), self.weight.tolist(), strict=True):
            both = moments(pair, self.beta, count, self.n_entities, metric)
            variance += weight * both.variance
            covariance += weight * float(both.covariance[0, 1])
        return variance, covariance

    def curve(self, metric: str = "mrr", nodes: int = NODES) -> tuple[Floats, Floats]:
        """Strengths from 0 to 1, and the expected metric at each."""
        strengths = np.linspace(0.0, 1.0, nodes)
        return strengths, self.mean(strengths, metric)


def _points(answers: Floats) -> NDArray[np.int64]:
    """Whole numbers to compute with, ascending: at least two, around every number of answers."""
    lower = np.floor(answers).astype(np.int64)
    points: NDArray[np.int64] = np.unique(np.concatenate([lower, lower + 1]))
    if len(points) <= FINE:
        return points
    coarse = list(range(1, FINE + 1))
    while coarse[-1] <= answers.max():
        coarse.append(max(coarse[-1] + 1, round(coarse[-1] * STEP)))
    return np.array(coarse, np.int64)


RIDGE = 0.1
START = 0.1  # spread of the initial random factors
OVERSAMPLING = 16
POWERS = 6


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model at one step of its training.

    - step: Rank.
    - ask, (questions, d): Query vectors of tail questions.
    - tails: float64 (entities, d)
    """

    step: int
    ask: Callable[[NDArray[np.int64], NDArray[np.int64]], Floats]
    tails: Floats

    def factors(self, questions: Questions) -> Factors:
        """A score source for tail questions."""
        columns = (questions.entity, questions.relation)
        queries = self.ask(*(column.astype(np.int64) for column in columns))
        return Factors(queries.astype(np.float32), self.tails.astype(np.float32))


@dataclass(frozen=True)
class Model:
    """A way of training with its settings; tables and legends show `label`."""

    label: str
    train: Callable[..., Iterator[Checkpoint]]
    setting: float
    steps: Sequence[int]

    def checkpoints(
        self, triples: NDArray[Any], n_entities: int, n_relations: int, seed: int
    ) -> Iterator[Checkpoint]:
        """Train, stopping at each step.

        Shapes: triples (n, 3).
        """
        slices = _slices(triples, n_entities, n_relations)
        return self.train(slices, self.setting, self.steps, np.random.default_rng(seed))


def svd(
    slices: list[csr_matrix], power: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """Truncated SVD of the (relation, head) x tail matrix; a step is the number of vectors kept.

    The scores of a question come from its own row and from the rows of its relation, weighted by
    the similarity of their heads to its head, both in terms of the singular vectors. Cells are
    damped by the counts of row and column to the given power.
    """
    from scipy.sparse import diags, vstack

    count = slices[0].shape[0]
    stacked = vstack(slices).tocsr()
    rows, columns = (
        np.maximum(np.asarray(stacked.sum(axis=axis)).ravel(), 1.0) ** -power for axis in (1, 0)
    )
    damped = (diags(rows) @ stacked @ diags(columns)).tocsr()
    most = min(max(steps), *damped.shape)
    vectors = _right_vectors(damped, most, rng)
    seen = damped @ vectors
    cores = [vectors.T @ seen[r * count : (r + 1) * count] for r in range(len(slices))]

    def asking(step: int) -> Callable[[NDArray[np.int64], NDArray[np.int64]], Floats]:
        def ask(heads: NDArray[np.int64], relations: NDArray[np.int64]) -> Floats:
            queries = seen[relations * count + heads, :step]
            for relation in np.unique(relations):
                mask = relations == relation
                queries[mask] += vectors[heads[mask], :step] @ cores[relation][:step, :step]
            return queries

        return ask

    for step in steps:
        if step <= most:
            yield Checkpoint(step, asking(step), vectors[:, :step])


def _right_vectors(matrix: csr_matrix, count: int, rng: np.random.Generator) -> Floats:
    """Leading right singular vectors, (columns, count), by subspace iteration (Halko et al. 2011).

    Lanczos iteration takes minutes here: similar families have nearly equal singular values.
    """
    width = min(count + OVERSAMPLING, *matrix.shape)
    basis = np.linalg.qr(rng.standard_normal((matrix.shape[1], width)))[0]
    gram = matrix.T @ matrix
    for _ in range(POWERS):
        basis = np.linalg.qr(gram @ basis)[0]
    _, turned = np.linalg.eigh(basis.T @ (gram @ basis))
    return np.asarray((basis @ turned[:, ::-1])[:, :count])


def rescal(
    slices: list[csr_matrix], rounds: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """RESCAL, X_r = A R_r A', by rounds of alternating least squares; a step is the rank."""
    for rank in steps:
        if rank > slices[0].shape[0]:
            return
        entity = rng.standard_normal((slices[0].shape[0], rank)) * START
        core = _cores(slices, entity)
        for _ in range(int(rounds)):
            gram = entity.T @ entity
            both = sum(r @ gram @ r.T + r.T @ gram @ r for r in core) + RIDGE * np.eye(rank)
            right = sum(
                cells @ (entity @ r.T) + cells.T @ (entity @ r)
                for cells, r in zip(slices, core, strict=True)
            )
            entity = _solve(both, np.asarray(right))
            core = _cores(slices, entity)
        yield _bilinear(rank, core, entity)


def _cores(slices: list[csr_matrix], entity: Floats) -> list[Floats]:
    """R of each relation that is nearest to X = A R A', with a ridge, by A's singular vectors."""
    left, size, right = np.linalg.svd(entity, full_matrices=False)
    weight = np.outer(size, size)
    weight = weight / (weight**2 + RIDGE)
    return [right.T @ (weight * (left.T @ (cells @ left))) @ right for cells in slices]


def _bilinear(step: int, core: list[Floats], entity: Floats) -> Checkpoint:
    def ask(heads: NDArray[np.int64], relations: NDArray[np.int64]) -> Floats:
        queries = np.empty((len(heads), entity.shape[1]))
        for relation in np.unique(relations):
            mask = relations == relation
            queries[mask] = entity[heads[mask]] @ core[relation]
        return queries

    return Checkpoint(step, ask, entity)


def cp(
    slices: list[csr_matrix], rounds: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """CP, a sum of head x relation x tail, by rounds of least squares; a step is the rank."""
    count = slices[0].shape[0]
    for rank in steps:
        head, tail = (rng.standard_normal((count, rank)) * START for _ in range(2))
        weight = rng.standard_normal((len(slices), rank)) * START
        ridge = RIDGE * np.eye(rank)
        for _ in range(int(rounds)):
            forward = [cells @ tail for cells in slices]
            total = sum(part * w for part, w in zip(forward, weight, strict=True))
            head = _solve((tail.T @ tail) * (weight.T @ weight) + ridge, np.asarray(total))
            backward = [cells.T @ head for cells in slices]
            total = sum(part * w for part, w in zip(backward, weight, strict=True))
            tail = _solve((head.T @ head) * (weight.T @ weight) + ridge, np.asarray(total))
            sums = np.array([(part * tail).sum(axis=0) for part in backward])
            weight = _solve((head.T @ head) * (tail.T @ tail) + ridge, sums)
        yield _trilinear(rank, head, weight, tail)


def _trilinear(step: int, head: Floats, weight: Floats, tail: Floats) -> Checkpoint:
    return Checkpoint(step, lambda heads, relations: head[heads] * weight[relations], tail)


def _solve(gram: Floats, right: Floats) -> Floats:
    """Rows x with x gram = right; gram is symmetric."""
    return np.asarray(np.linalg.solve(gram, right.T).T)


def _slices(triples: NDArray[Any], n_entities: int, n_relations: int) -> list[csr_matrix]:
    """Adjacency matrix of each relation, float64."""
    from scipy.sparse import csr_matrix

    shape = (n_entities, n_entities)
    slices = []
    for relation in range(n_relations):
        rows = triples[triples[:, 1] == relation]
        slices.append(csr_matrix((np.ones(len(rows)), (rows[:, 0], rows[:, 2])), shape=shape))
    return slices


RANKS = (2, 4, 8, 16, 32, 64, 128, 192)

MODELS = (
    Model("SVD, plain", svd, 0.0, RANKS),
    Model("SVD, damped 1/8", svd, 0.125, RANKS),
    Model("SVD, damped 1/4", svd, 0.25, RANKS),
    Model("RESCAL, 1 round", rescal, 1, RANKS),
    Model("RESCAL, 2 rounds", rescal, 2, RANKS),
    Model("RESCAL, 4 rounds", rescal, 4, RANKS),
    Model("CP, 1 round", cp, 1, RANKS),
    Model("CP, 2 rounds", cp, 2, RANKS),
    Model("CP, 4 rounds", cp, 4, RANKS),
)
"""The models of the study: three ways of training with three settings each, growing in rank."""


CONTROL = "hits@10"
"""The metric that checks the fitted model, which was fitted to another metric."""
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
        l of each model; NaN if no strength explains its value.
    ceiling : float
        The value of a perfect model.
    full : (float, float)
        Expected metric of each with complete labels.
    full_difference, full_error : float
        Second minus first, and its standard error.
    p_model : float
        Probability that complete labels order them the other way: Theorem 4.2, with exact
        expectations and variances of the paper's model and the same answers missing for both.
    p_paper : float
        The same as printed in Theorem 4.2: logarithmic, for independent models and equal questions.
    needed_model, needed_data : float
        Questions needed for the accepted probability, by the model and by the spread of the data.
    rho : float
        Correlation with which the model of the higher value would be no stronger than the other, if
        the other has none; NaN if no possible correlation suffices.
    curve : tuple of (tuple of float, tuple of float)
        Strengths from 0 to 1, and the expected metric of each.
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
        """False if no strength explains an observed value."""
        return not any(math.isnan(strength) for strength in self.strengths)


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of both models.

    - values: The metric of each, averaged inside a question first.
    - answers, float64 (questions,): Test answers of each question.
    - spread: Variance of the questions' differences; NaN if not known.
    - control: Observed `CONTROL` metric of each; NaN if not known.
    """

    values: tuple[float, float]
    answers: Floats
    n_entities: int
    spread: float
    control: tuple[float, float]
    metric: str


def outlook_at(seen: Seen, beta: float, level: float) -> Outlook:
    """The outlook at one sparsity; `level` is the accepted probability of the wrong order."""
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
    """Strength of each model, (2,): 0 for a value that is too low, NaN for one that is too high.

    And the slope of the metric over the strength between the two.
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
    """Where a rising function on 0 .. 1 reaches a value; the nearer end if it never does."""
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
    """Questions needed if the difference of a question has this standard deviation."""
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
    while True:  # the number of candidates limits the number of answers
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
