"""The open-world paper's model of missing facts (section 4), and exact moments of its metrics.

Rank metrics are the mean of 1/f(rank). A question has N true answers outside the training set. Each
is *missing* from the test set with probability beta, the sparsity. A model of strength l predicts
each of them (classifies it as positive) with probability l, and classifies everything else as
negative; positives come first, and inside a class the order is random, one order per question.
Missing answers that are predicted rank above test answers and count as mistakes. With correlation
rho between being missing and being predicted (Definition 4.1), a missing answer is predicted with
probability l1 and a test answer with probability l2; rho = 0 makes both l.

Everything is summed over m, the number of missing answers, and M, how many of them are predicted.
Given both, the rank of a predicted test answer is uniform on 1 .. M + 1, and that of another one is
uniform on M + 1 .. F + m + 1, with F false candidates. All answers of a question share one order
inside a class. So two answers of a class fall into the same of G gaps with probability 2/(G + 1),
and into two given different gaps with probability 1/(G (G + 1)) in each order. The paper's closed
forms follow, in its order. If its text is imprecise, the docstrings say what the code computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import MOST_SIMULATED, check_count, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import UsageError, must_be
from kgtrec.measures.keys import find_metric

GAINS = {
    "mrr": "1/r",
    "hits@K": "1 where r <= K, else 0",
    "log_mrr": "1/log2(r + 1)",
    "p_mrr@P": "r^-P, 0 < P < 1: p_mrr@0.5 is 1/sqrt(r)",
}
"""Names of the metrics that have formulas, and the gain of a rank r (section 5)."""


def gain(metric: str) -> Callable[[Any], Float64]:
    """Return the function 1/f of a metric: the gain of a rank, which is 1 at rank 1.

    It never increases. UsageError if the metric has no formula.
    """
    require_type("metric", metric, str, "the name of a metric, such as 'mrr'")
    row, parameter = find_metric(metric) or (None, 0)
    name = row and row.name
    if name == "mrr":
        return lambda rank: 1.0 / np.asarray(rank, np.float64)
    if name == "log_mrr":
        return lambda rank: 1.0 / np.log2(np.asarray(rank, np.float64) + 1.0)
    if name == "hits@k":
        return lambda rank: (np.asarray(rank) <= parameter).astype(np.float64)
    if name == "p_mrr@p":
        return lambda rank: np.asarray(rank, np.float64) ** -parameter
    raise UsageError(f"metric {metric!r} has no open-world formula; {must_be(metric, GAINS)}")


def title_of(metric: str) -> str:
    """Return the title of a metric in tables and plots: MRR, Hits@10, log-MRR, p-MRR(0.5)."""
    name, _, suffix = metric.partition("@")
    names = {"hits": "Hits", "mrr": "MRR", "log_mrr": "log-MRR", "ndcg": "nDCG", "map": "MAP"}
    if name == "p_mrr":
        return f"p-MRR({suffix})"
    cut = f"@{suffix}" if suffix else ""
    return f"{names[name]}{cut}" if name in names else metric


def sum_of_gains(metric: str, last: int) -> Float64:
    """Return the sums F(r) of the gains of ranks 1 to r, for r from 0 to `last`: (last + 1,)."""
    ranks = np.arange(1, last + 1)
    return np.concatenate([[0.0], np.cumsum(gain(metric)(ranks))])


ENTITIES = 14505
"""Entities of FB15k-237 as the paper counts them (appendix A.2)."""
ROUNDING = 1e-12


class Strengths(NamedTuple):
    """Probabilities that an answer is predicted: l1 if it is missing, l2 if it is recorded."""

    missing: Float64
    recorded: Float64


def sparsity_of_density(density: float, train_share: float) -> float:
    """Compute the sparsity beta of a test set from the density of the graph (appendix A.3).

    The share `density`, d in (0, 1], of all true facts is recorded. The share `train_share`, eta in
    [0, 1), of these is not in the test set. 1 - beta = d (1 - eta) / (1 - d eta). The test set is
    sparser than the graph, because all missing facts count as missing from the test set.
    """
    check("density", density, 0 < density <= 1, "a number above 0 and up to 1")
    check_share("train_share", train_share)
    return 1.0 - density * (1.0 - train_share) / (1.0 - density * train_share)


def correlation_range(strength: float, beta: float) -> tuple[float, float]:
    """Return the lowest and highest possible correlation, with l1 and l2 in [0, 1].

    See Definition 4.1. Both are 0 if the strength is 0 or 1, or nothing is missing.
    """
    check_strength(strength, beta)
    if strength in (0, 1) or beta == 0:
        return 0.0, 0.0
    odds, missing = strength / (1 - strength), beta / (1 - beta)
    same, other = math.sqrt(odds * missing), math.sqrt(odds / missing)
    return -min(same, 1 / same), min(other, 1 / other)


def split_strength(strength: ArrayLike, beta: float, rho: float = 0.0) -> Strengths:
    """Compute the strength on missing and on test answers (section 4.3).

    These are l1 = P(Y|X) and l2 = P(Y|not X). UsageError if this strength and sparsity cannot have
    the correlation `rho`.
    """
    whole = check_strength(strength, beta)
    if rho == 0 or beta == 0:
        return Strengths(whole, whole)
    spread = np.sqrt(whole * (1 - whole))
    missing = whole + spread * math.sqrt((1 - beta) / beta) * rho
    recorded = whole - spread * math.sqrt(beta / (1 - beta)) * rho
    both = np.stack([missing, recorded])
    # If everything or nothing is predicted, nothing correlates with it.
    wrong = ~((both >= -ROUNDING) & (both <= 1 + ROUNDING)).all(axis=0) | (spread == 0)
    if wrong.any():
        first = float(np.extract(wrong, whole)[0])
        low, high = correlation_range(first, beta)
        raise UsageError(
            f"{argument('rho', rho)} is impossible at strength {first:g} and sparsity {beta:g}; "
            "give a value "
            f"from {low:.4f} to {high:.4f}"
        )
    return Strengths(np.clip(missing, 0, 1), np.clip(recorded, 0, 1))


def binomial(counts: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Float64:
    """Return the binomial probability of each count (last axis) per chance (other axes)."""
    from scipy.special import gammaln, xlog1py, xlogy

    k, p = np.asarray(counts), np.asarray(chance, np.float64)[..., None]
    failures = np.maximum(trials - k, 0)
    ways = gammaln(np.add(trials, 1)) - gammaln(k + 1) - gammaln(failures + 1)
    return np.where(k <= trials, np.exp(ways + xlogy(k, p) + xlog1py(failures, -p)), 0.0)


def check_strength(strength: ArrayLike, beta: float) -> Float64:
    """Return the strength as float64; UsageError unless it and beta are in range."""
    values = np.asarray(strength, np.float64)
    check("strength", strength, np.all((values >= 0) & (values <= 1)), "probabilities from 0 to 1")
    check_share("sparsity beta", beta)
    return values


def check(name: str, value: object, fits: Any, valid: str) -> None:
    """Raise UsageError, which describes valid values, unless `fits` is true."""
    if not fits:
        raise UsageError(f"{argument(name, value)} is out of range; give {valid}")


def check_share(name: str, value: float) -> None:
    """Raise UsageError unless a share is in [0, 1)."""
    require_type(name, value, Real, "a number")
    check(name, value, 0 <= value < 1, "a number of at least 0 and below 1")


def check_level(name: str, value: float) -> None:
    """Raise UsageError unless a value can be an accepted probability of the wrong order."""
    check(name, value, 0 < value < 0.5, "a probability above 0 and below 0.5, such as 0.05")


def check_answers(n_answers: int) -> None:
    """Raise UsageError unless a value is a whole number of 1 or more."""
    whole = n_answers >= 1 and n_answers == int(n_answers)
    check("n_answers", n_answers, whole, "a whole number of 1 or more")


def check_entities(n_answers: int, n_entities: int) -> None:
    """Raise UsageError unless there are candidates besides the answers."""
    check_answers(n_answers)
    check_count("n_entities", n_entities, most=MOST_SIMULATED)
    valid = f"the number of all candidates, including the {n_answers} answers"
    check("n_entities", n_entities, n_entities > n_answers, valid)


NEGLIGIBLE = 1e-15
"""Sums omit numbers of missing answers that are less likely than this."""
CELLS = 1 << 21
"""Terms (strengths x missing x predicted) that are summed at a time."""


@dataclass(frozen=True, eq=False)
class Moments(ShownInLines):
    """Moments of a question's metric, given the number of its missing answers, for L strengths.

    - chance, float64 (c,): Probability of each number of missing answers that is not negligible.
    - value, square, float64 (L, c): Expectation of the metric, and of its square; NaN if no answer
      is left to test.
    """

    chance: Float64
    value: Float64
    square: Float64

    def _lines(self) -> tuple[str, str]:
        means, spreads = (
            np.array2string(values, precision=4, threshold=6)
            for values in (self.mean, np.sqrt(self.variance))
        )
        return f"mean {means}", f"standard deviation of one question {spreads}"

    @property
    def mean(self) -> Float64:
        """Expectation over the number of missing answers: float64, shape (L,)."""
        return self.value @ self.chance

    @property
    def variance(self) -> Float64:
        """V(beta, l) of Theorem 4.2: the variance of one question's metric, float64 (L,)."""
        return self.square @ self.chance - self.mean**2

    @property
    def covariance(self) -> Float64:
        """Covariance of two models on a question with the same missing answers, float64 (L, L)."""
        return (self.value * self.chance) @ self.value.T - np.outer(self.mean, self.mean)


def moments(
    strength: ArrayLike | Strengths,
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rho: float = 0.0,
    *,
    kept: bool = True,
) -> Moments:
    """Compute exact moments of a question's metric for each number of missing answers.

    With `kept`, they are conditional on a question with at least one test answer. The paper
    estimates variances by simulation.
    """
    check_entities(n_answers, n_entities)
    split = strength if isinstance(strength, Strengths) else split_strength(strength, beta, rho)
    counts = np.arange(n_answers + (not kept))
    chance = binomial(counts, n_answers, beta)
    chance /= chance.sum() if kept else 1.0
    counts, chance = counts[chance > NEGLIGIBLE], chance[chance > NEGLIGIBLE]
    ranks = np.arange(1, n_entities + 2)
    sums = sum_of_gains(metric, n_entities + 1)
    squares = np.concatenate([[0.0], np.cumsum(gain(metric)(ranks) ** 2)])
    terms = (int(counts[-1]) + 1) * np.size(split.missing)
    rows = max(CELLS // max(terms, 1), 1)  # no terms if no strength is possible
    blocks = [counts[start : start + rows] for start in range(0, len(counts), rows)]
    parts = [
        _sum_over_predicted(block, n_entities - n_answers, split, sums, squares) for block in blocks
    ]
    value, square = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    left = n_answers - counts
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing left to test: no square
        square = np.where(left > 0, (square[0] + (left - 1) * square[1]) / left, np.nan)
    return Moments(chance, value, square)


def _sum_over_predicted(
    counts: Int64, false: int, split: Strengths, sums: Float64, squares: Float64
) -> tuple[Float64, Float64]:
    """Compute the moments for each number m of missing answers, `counts` (c,).

    Returns the mean (L, c), and the two parts of the mean square (2, L, c). The first part is the
    square of a single answer, the second the product of two different answers.
    """
    l1, l2 = (np.atleast_1d(part)[:, None] for part in split)
    m, predicted = counts[:, None], np.arange(counts.max() + 1)
    weight = binomial(predicted, m, l1)
    gaps, last = predicted + 1, false + m + 1
    lower = np.maximum(last - predicted, 1)
    top, top2 = sums[gaps], squares[gaps]
    bottom, bottom2 = sums[last] - sums[predicted], squares[last] - squares[predicted]
    yes, no = top / gaps, bottom / lower
    above = weight @ np.column_stack([yes, top2 / gaps, (top**2 + top2) / (gaps * (gaps + 1))])
    below = (
        (weight * part).sum(axis=2)
        for part in (no, bottom2 / lower, (bottom**2 + bottom2) / (lower * (lower + 1)), yes * no)
    )
    no_mean, no_single, no_pair, mixed = below
    single = l2 * above[:, :, 1] + (1 - l2) * no_single
    pair = l2**2 * above[:, :, 2] + 2 * l2 * (1 - l2) * mixed + (1 - l2) ** 2 * no_pair
    return l2 * above[:, :, 0] + (1 - l2) * no_mean, np.stack([single, pair])


def expectation(
    strength: ArrayLike,
    beta: float,
    n_answers: int,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rho: float = 0.0,
    *,
    kept: bool = False,
) -> Float64:
    """Compute the exact expectation of a metric: Lemma 4.1 with delta, or Lemma A.1 if correlated.

    With `kept`, it is conditional on a question with a test answer, as in an evaluation. This
    matters if beta^N is not small.
    """
    result = moments(strength, beta, n_answers, n_entities, metric, rho, kept=kept)
    return result.mean.reshape(np.shape(strength))


def expectation_main(
    strength: ArrayLike, beta: float, n_answers: int, metric: str = "mrr", rho: float = 0.0
) -> Float64:
    r"""Compute the expectation without delta (Lemma 4.1; with correlation, Lemma A.1).

    l2 / (l1 beta (N+1)) \sum_{k=0}^{N} (1 - Phi(k)) / f(k+1), Phi the distribution function of
    Binomial(N+1, l1 beta). Computed in the equal form l2 E[F(M+1) / (M+1)], with M from Binomial(N,
    l1 beta) and F the sum of the gains, which needs no limit if strength or sparsity is 0.
    """
    check_answers(n_answers)
    missing, recorded = split_strength(strength, beta, rho)
    counts = np.arange(n_answers + 1)
    mean_gain = sum_of_gains(metric, n_answers + 1)[1:] / (counts + 1)
    return np.asarray(recorded * (binomial(counts, n_answers, missing * beta) @ mean_gain))


def slope(strength: ArrayLike, beta: float, n_answers: int, metric: str = "mrr") -> Float64:
    """Compute the derivative of `expectation_main` (rho = 0) by the strength (Corollary 4.1).

    E[g(k)] / (l beta (N+1)), with g(k) = k/f(k) and k from Binomial(N+1, l beta). Computed in the
    equal form E[1/f(j+1)], j from Binomial(N, l beta), which holds at 0 too. For MRR it is
    (1 - (1 - l beta)^(N+1)) / (l beta (N+1)) (Corollary 4.2), for Hits@K the probability that
    j <= K - 1 (Corollary 4.3).
    """
    check_answers(n_answers)
    strengths = check_strength(strength, beta)
    counts = np.arange(n_answers + 1)
    return np.asarray(binomial(counts, n_answers, strengths * beta) @ gain(metric)(counts + 1))


def slope_by_rho(
    strength: ArrayLike, beta: float, n_answers: int, metric: str = "mrr", rho: float = 0.0
) -> Float64:
    """Compute the derivative of `expectation_main` by the correlation, at fixed strength.

    With h(m) = F(m+1)/(m+1), expectation_main is l2 E[h(M)], M from Binomial(N, l1 beta). So its
    derivative is dl2/drho E[h(M)] + l2 N beta dl1/drho E[h(j+1) - h(j)], j from Binomial(N-1, l1
    beta), with dl1/drho = sqrt(l (1-l) alpha/beta) and dl2/drho = -sqrt(l (1-l) beta/alpha). The
    derivative of a distribution function in appendix A.1.2 leads to the second term.
    """
    check_answers(n_answers)
    l1, l2 = split_strength(strength, beta, rho)
    whole, alpha = np.asarray(strength, np.float64), 1.0 - beta
    counts = np.arange(n_answers + 1)
    mean_gain = sum_of_gains(metric, n_answers + 1)[1:] / (counts + 1)
    value = binomial(counts, n_answers, l1 * beta) @ mean_gain
    fall = binomial(counts[:-1], n_answers - 1, l1 * beta) @ np.diff(mean_gain)
    spread = np.sqrt(whole * (1.0 - whole))
    return np.asarray(
        spread * (l2 * n_answers * math.sqrt(alpha * beta) * fall - math.sqrt(beta / alpha) * value)
    )


def approximate_slope_by_rho(
    strength: ArrayLike, beta: float, n_answers: int, rho: float = 0.0
) -> Float64:
    """Compute the derivative of `approximation` by the correlation (proof of Corollary 4.5).

    sqrt(l (1-l) alpha/beta) / (beta (N+1) l1^2) (l2 - (ln l1 + d) l / alpha), with d = ln beta +
    ln(N+2) + gamma. UsageError if the sparsity, or the strength on missing answers, is 0.
    """
    l1, l2 = _check_positive(strength, beta, n_answers, rho)
    whole, alpha = np.asarray(strength, np.float64), 1.0 - beta
    level = _log_level(l1, beta, n_answers)
    scale = np.sqrt(whole * (1.0 - whole) * alpha / beta) / (beta * (n_answers + 1) * l1**2)
    return np.asarray(scale * (l2 - level * whole / alpha))


def must_fall_with_rho(
    strength: ArrayLike, beta: float, n_answers: int, rho: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Return whether the condition of Corollary 4.5 holds: then `approximation` falls with rho.

    l1 beta (N+2) >= exp(alpha + sqrt(alpha beta (1-l) / l) - gamma).
    """
    check_answers(n_answers)
    l1, _ = split_strength(strength, beta, rho)
    whole, alpha = np.asarray(strength, np.float64), 1.0 - beta
    with np.errstate(divide="ignore"):  # no strength, no finite limit
        limit = alpha + np.sqrt(alpha * beta * (1.0 - whole) / whole) - np.euler_gamma
        return np.asarray(np.log(l1 * beta * (n_answers + 2)) >= limit)


def delta_bound(
    strength: ArrayLike, beta: float, n_answers: int, n_entities: int = ENTITIES, rho: float = 0.0
) -> Float64:
    """Compute the bound of Lemma 4.1 (correlated: Lemma A.1) on delta for MRR, as printed.

    (1 - l2) ln(n_entities - N) / (n_entities - N). Delta is `expectation` minus `expectation_main`,
    the share of answers that are not predicted. The proof bounds 1/k by ln k - ln(k-1), which fails
    at k = 1: if few missing answers are predicted, delta can be larger.
    """
    check_entities(n_answers, n_entities)
    _, l2 = split_strength(strength, beta, rho)
    false = n_entities - n_answers
    return np.asarray((1.0 - l2) * math.log(false) / false)


def approximation(strength: ArrayLike, beta: float, n_answers: int, rho: float = 0.0) -> Float64:
    """Approximate the expected MRR by logarithms (Theorem 4.1; with correlation, Theorem 4.3).

    (l2 / l1) (ln l1 + ln beta + ln(N + 2) + gamma) / (beta (N + 1)). It is negative, and so
    useless, if l beta N is small. UsageError if the sparsity, or the strength on missing answers,
    is 0.
    """
    missing, recorded = _check_positive(strength, beta, n_answers, rho)
    level = _log_level(missing, beta, n_answers)
    return recorded / missing * level / (beta * (n_answers + 1))


def _log_level(missing: Float64, beta: float, n_answers: int) -> Float64:
    """Return ln l1 + ln beta + ln(N+2) + gamma, the numerator of the approximation."""
    return np.log(missing) + (math.log(beta) + math.log(n_answers + 2) + np.euler_gamma)


def approximation_error(
    strength: ArrayLike, beta: float, n_answers: int, rho: float = 0.0
) -> Float64:
    """Bound the distance of `approximation` from `expectation_main` (Theorems 4.1 and 4.3).

    The correlated bound is from appendix A.1.8; its first term is twice that of Theorem 4.1.
    """
    missing, recorded = _check_positive(strength, beta, n_answers, rho)
    scale = recorded / missing / (beta * (n_answers + 1))
    with np.errstate(divide="ignore"):  # a chance of 1 leaves nothing
        log_q = (n_answers + 1) * np.log1p(-missing * beta)
    odds = np.exp(log_q) / -np.expm1(log_q)  # q / (1 - q), q = (1 - l1 beta)^(N + 1)
    first = scale / (n_answers + 1) * (0.5 if rho == 0 else 1.0)
    return np.maximum(first, odds * -np.log(missing * beta) * scale)


def inconsistency(
    strength: float,
    difference: float,
    beta: float,
    n_answers: int,
    n_queries: float,
    n_entities: int = ENTITIES,
    *,
    exact: bool = False,
    same_missing: bool = False,
) -> float:
    """Compute the probability that the stronger of two models has the lower MRR (Theorem 4.2).

    Parameters
    ----------
    strength, difference : float
        l of the weaker model, and how much stronger the other is; l + difference is at most 1.
    n_queries : float
        Number of questions; the normal approximation needs more than 50.
    exact : bool, default False
        False: approximate the difference of the expectations by logarithms, as printed. True: the
        exact difference, also correct for small N or sparsity.
    same_missing : bool, default False
        True if the same answers are missing for both models. This makes their difference a little
        less variable; the theorem ignores it.
    """
    valid = f"a difference from 0 to {1 - strength:.6g}, for strengths up to 1"
    check("difference", difference, 0 <= difference <= 1 - strength, valid)
    check("n_queries", n_queries, n_queries > 0, "a number of questions above 0")
    pair = (strength, strength + difference)
    both = moments(pair, beta, n_answers, n_entities)
    spread = sum(both.variance)
    if same_missing:
        spread -= 2 * both.covariance[0, 1]
    if exact:
        gap = float(both.mean[1] - both.mean[0])
    else:
        missing, _ = _check_positive(pair, beta, n_answers, 0.0)
        gap = math.log(missing[1] / missing[0]) / (beta * (n_answers + 1))
    return normal_below(-gap * math.sqrt(n_queries / spread) if gap else 0.0)


def queries_needed(
    strength: float,
    difference: float,
    beta: float,
    n_answers: int,
    p: float = 0.05,
    n_entities: int = ENTITIES,
    variance: float | None = None,
) -> float:
    """Compute the number of questions that show the right order with probability 1 - p.

    Corollary 4.4: 2 (beta l (N+1) Psi^-1(p))^2 V / difference^2, for differences much smaller than
    the strength; infinite for no difference. The paper's example prints 2.85 for the numerator at
    beta = 0.35, l = 0.7, N = 43, p = 5 % and V = 7.4e-3. Its formula gives 4.65, and the exact
    variance, which is the default, is 6.2e-3.
    """
    from scipy.special import ndtri

    check_level("p", p)
    if not difference:
        return math.inf
    if variance is None:
        variance = float(moments(strength, beta, n_answers, n_entities).variance[0])
    scale = beta * strength * (n_answers + 1) * float(ndtri(p)) / difference
    return 2.0 * scale**2 * variance


def normal_below(z: float) -> float:
    """Return Psi(z), the probability that a standard normal value is at most z."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _check_positive(strength: ArrayLike, beta: float, n_answers: int, rho: float) -> Strengths:
    """Return the split strength; UsageError if l1 or the sparsity is 0."""
    check_answers(n_answers)
    strengths = split_strength(strength, beta, rho)
    if beta == 0 or not np.all(strengths.missing > 0):
        raise UsageError(
            f"{argument('beta', beta)}, {argument('strength', np.ravel(strength).tolist())}, "
            f"{argument('rho', rho)}; the logarithmic "
            "approximation needs a sparsity "
            "and a strength on missing answers above 0; use the exact expectation instead"
        )
    return strengths
