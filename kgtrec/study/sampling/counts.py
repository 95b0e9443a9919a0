"""Full ranking from sampled candidates: counts by stratum, estimated ranks, and bounds.

If k of an answer's n other candidates were drawn without replacement, separately per question, the
number of drawn candidates that score above the answer is hypergeometric. Inverting its distribution
bounds the number among all n. If candidates were drawn in another way (by type, by popularity, only
hard ones), these bounds do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import QUESTIONS, RANKS, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.table import ShownInLines, Table
from kgtrec.errors import UsageError
from kgtrec.questions.api import Questions
from kgtrec.questions.selection import select_questions
from kgtrec.ranking.rank import rank
from kgtrec.ranking.ranks import Ranks
from kgtrec.scores.factors import Factors
from kgtrec.scores.sources import as_source, select_rows
from kgtrec.study.sampling.draw import CandidateDraw

CUTOFFS = (1, 3, 10)

COLUMNS = "measure, sampled:4, estimate:4, low:4, high:4"


DECREASING: dict[str, Callable[..., Float64]] = {
    "MRR": lambda rank: 1 / rank,
    **{f"Hits@{k}": lambda rank, k=k: (rank <= k).astype(np.float64) for k in CUTOFFS},
}
"""The published metrics as never-increasing functions of the rank."""


@dataclass(frozen=True, eq=False)
class RankBounds(ShownInLines):
    """Ranks among all candidates, estimated and bounded from sampled ones.

    - estimate, float64 (n_instances,): 1 + (greater + equal / 2) · n / k, unbiased for the
      realistic rank; NaN if k = 0.
    - low, high, int64 (n_instances,): Bounds of the rank, in any order of its ties.
    - level: Probability, for each instance, that its rank is between its bounds.
    """

    estimate: Float64
    low: Int64
    high: Int64
    level: float

    def _lines(self) -> tuple[str, str]:
        mean = float(np.nanmean(self.estimate)) if np.isfinite(self.estimate).any() else np.nan
        return (
            f"{len(self.low):,} instances, mean rank {mean:,.1f} among all candidates",
            f"between {self.low.mean():,.1f} and {self.high.mean():,.1f} on average, each at "
            f"{self.level:.0%}",
        )


def count_bounds(
    seen: npt.ArrayLike,
    drawn: npt.ArrayLike,
    population: npt.ArrayLike,
    miss: float,
    *,
    tied: Int64 | int = 0,
) -> tuple[Int64, Int64]:
    """Bound the number of special members of a population, from the number among those drawn.

    Returns the lower and the upper bound, of which each fails with probability `miss` at most. The
    upper bound also counts those that are `tied`.
    """
    if not 0 < miss < 1:
        raise UsageError(f"{argument('miss', miss)} is not a probability between 0 and 1")
    least = np.asarray(seen, np.int64)
    columns = (least, least + tied, np.asarray(drawn, np.int64), np.asarray(population, np.int64))
    cases = np.stack(np.broadcast_arrays(*columns))
    flat = cases.reshape(4, -1)
    wrong = (flat[0] < 0) | (flat[1] > flat[2]) | (flat[2] > flat[3])
    if wrong.any():
        values = ", ".join(map(str, flat[1:, wrong.argmax()]))
        raise UsageError(
            f"seen, drawn, population = {values}; give counts with 0 <= seen <= drawn <= population"
        )
    (least, most, k, n), where = np.unique(flat, axis=1, return_inverse=True)
    low = n - _largest_special(k - least, k, n, miss)  # from those that are not special
    ends = np.stack([low, _largest_special(most, k, n, miss)])[:, where.reshape(-1)]
    low, high = ends.reshape(2, *cases.shape[1:])
    return low, high


def _largest_special(seen: Int64, drawn: Int64, population: Int64, miss: float) -> Int64:
    """Return the largest special number for which `seen` or fewer are likelier than `miss`."""
    low, high = seen.copy(), population - drawn + seen
    while (low < high).any():
        middle = low + (high - low + 1) // 2
        likely = _tail_probability(seen, drawn, population, middle) > miss
        low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
    return low


def _tail_probability(seen: Int64, drawn: Int64, population: Int64, special: Int64) -> Float64:
    """Return P(at most `seen` of those drawn are special), from logarithms of ratios of terms."""
    from scipy.special import gammaln

    def log_choose(n: Int64, k: Int64) -> Float64:
        log_ways: Float64 = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
        return log_ways

    flip = 2 * seen > drawn  # the other tail has fewer terms
    seen = np.where(flip, drawn - seen - 1, seen)
    special = np.where(flip, population - special, special)
    others = population - special
    least = np.maximum(0, drawn - others)
    term = log_choose(special, least) + log_choose(others, drawn - least)
    term -= log_choose(population, drawn)
    n_steps = np.minimum(seen, np.minimum(special, drawn)) - least
    tail = np.where(n_steps >= 0, np.exp(term), 0.0)
    order = np.argsort(-n_steps)
    for j in range(1, int(n_steps.max(initial=0)) + 1):
        rows = order[: np.count_nonzero(n_steps >= j)]
        k = least[rows] + j
        term[rows] += np.log((special[rows] - k + 1) * (drawn[rows] - k + 1.0))
        term[rows] -= np.log(k * (others[rows] - drawn[rows] + k + 0.0))
        tail[rows] += np.exp(term[rows])
    tail = np.minimum(tail, 1.0)
    return np.where(flip, 1 - tail, tail)


def rank_bounds(ranks: Ranks, level: float = 0.95) -> RankBounds:
    """Bound each instance's rank among all candidates, from its rank among sampled candidates.

    Parameters
    ----------
    ranks : Ranks
        Ranked among candidates that were drawn evenly, without replacement.
    level : float
        Probability that an instance's rank is within its bounds, including both ends.

    Raises
    ------
    UsageError
        Ranks among all candidates, or ranks without the number of all candidates.
    """
    drawn, population = _sizes(ranks)
    check_level(level)
    low, high = count_bounds(ranks.greater, drawn, population, (1 - level) / 2, tied=ranks.equal)
    return RankBounds(_estimate_ranks(ranks), low + 1, high + 1, level)


def full_bounds(ranks: Ranks, level: float = 0.95) -> Table:
    """Estimate and bound the published metrics among all candidates, from sampled candidates.

    MR, AMR and AMRI have an unbiased estimate, with a normal interval from the sampling variance;
    instances of one question count as wholly dependent. MRR and Hits@k have no unbiased estimate
    from a sample. Their bounds hold for every size: with one-sided bounds L and U on each rank that
    fail with probability d at most, E f(L) ≥ (1 - d) f(rank) and E f(U) ≤ (1 - d) f(rank) + d, and
    Hoeffding's inequality takes means for expectations.

    Parameters
    ----------
    ranks : Ranks
        As for `rank_bounds`.
    level : float
        Probability of each single interval.

    Returns
    -------
    Table
        Columns measure, sampled (the value among sampled candidates), estimate (NaN for MRR and
        Hits@k), low, high.
    """
    from scipy.special import ndtri

    drawn, population = _sizes(ranks)
    check_level(level)
    expected = (population.mean() + 2) / 2
    mean, error = float(_estimate_ranks(ranks).mean()), _standard_error(ranks, drawn, population)
    reach = float(ndtri((1 + level) / 2)) * error
    low, high = max(1.0, mean - reach), min(float(population.mean()) + 1, mean + reach)
    sampled, chance_of_drawn = float(ranks.rank().mean()), (drawn.mean() + 2) / 2
    pairs = (sampled, chance_of_drawn), (mean, expected), (high, expected), (low, expected)
    rows: list[tuple[str | float, ...]] = [
        ("MR", sampled, mean, low, high),
        ("AMR", sampled / chance_of_drawn, mean / expected, low / expected, high / expected),
        ("AMRI", *(_amri(*pair) for pair in pairs)),
    ]
    exact = (drawn == population).all()
    miss = 0.0 if exact else (1 - level) / 10
    tail = miss or 0.5  # bounds of a fully drawn population are the count itself at every level
    least, most = count_bounds(ranks.greater, drawn, population, tail, tied=ranks.equal)
    unsure = _number_questions(ranks), drawn < population
    for name, f in DECREASING.items():
        ends = mean_bounds(f, least + 1, most + 1, *unsure, level, miss)
        rows.append((name, float(f(ranks.rank()).mean()), float("nan"), *ends))
    return Table.from_rows(COLUMNS, rows)


def _amri(mean_rank: float, chance: float) -> float:
    """Return AMRI from a mean rank and its expectation by chance; NaN if there is one candidate."""
    return 1 - (mean_rank - 1) / (chance - 1) if chance > 1 else float("nan")


def mean_bounds(
    f: Callable[..., Float64],
    low: Int64,
    high: Int64,
    question: npt.NDArray[np.integer[Any]],
    uncertain: Bools,
    level: float,
    miss: float,
) -> tuple[float, float]:
    """Bound the mean of a metric f in [0, 1], from bounds on each rank that fail with `miss`.

    Hoeffding's inequality bounds the distance of the mean from its expectation. Ranks of one
    question count as wholly dependent. Ranks that are certain do not count.
    """
    shares = np.bincount(question, uncertain) / len(question)
    slack = float(np.sqrt(np.log(2 / (1 - level)) / 2 * (shares**2).sum()))
    bottom = max(0.0, (float(f(high).mean()) - slack - miss) / (1 - miss))
    return bottom, min(1.0, (float(f(low).mean()) + slack) / (1 - miss))


def _sizes(ranks: Ranks) -> tuple[Int64, Int64]:
    """Return the numbers of other candidates of each instance: drawn, and in total."""
    require_type("ranks", ranks, Ranks, RANKS)
    if ranks.full_candidates is None:
        raise UsageError(
            "these ranks are among all candidates, so there is nothing to bound; give ranks of "
            "questions that have their own sampled candidates"
        )
    return ranks.candidates - 1, ranks.full_candidates - 1


def check_level(level: float) -> None:
    """Raise UsageError unless a level is a probability."""
    if not 1e-4 <= level < 1:
        raise UsageError(
            f"{argument('level', level)} is not a probability between 0 and 1, such as 0.95"
        )


def _estimate_ranks(ranks: Ranks) -> Float64:
    """Estimate each realistic rank among all candidates, without bias; NaN if none was drawn."""
    drawn, population = _sizes(ranks)
    above = ranks.greater + ranks.equal / 2
    scale = np.divide(population, drawn, out=np.full(len(ranks), np.nan), where=drawn > 0)
    whole = population == 0
    return 1 + np.where(whole, 0.0, above * scale)


def _standard_error(ranks: Ranks, drawn: Int64, population: Int64) -> float:
    """Compute the standard error of the mean estimate, for draws without replacement."""
    above, squares = ranks.greater + ranks.equal / 2, ranks.greater + ranks.equal / 4
    share = np.divide(above, drawn, out=np.zeros(len(ranks)), where=drawn > 0)
    spread = (squares - above * share) / np.maximum(drawn - 1, 1)
    # If none or all of a few drawn candidates are above, the true variance is larger than 0.
    careful = (above + 0.5) / (drawn + 1)
    spread = np.maximum(spread, careful * (1 - careful))
    unseen = np.where(population > 0, 1 - drawn / np.maximum(population, 1), 0.0)
    deviation = population * np.sqrt(unseen * spread / np.maximum(drawn, 1))
    per_question = np.bincount(_number_questions(ranks), deviation)
    return float(np.sqrt((per_question**2).sum()) / len(ranks))


def _number_questions(ranks: Ranks) -> Int64:
    """Return the question of each instance, numbered without gaps; int64 (n,)."""
    numbers: Int64 = np.unique(ranks.question, return_inverse=True)[1].reshape(-1)
    return numbers


def subset_of(questions: Questions, chosen: Int64) -> Questions:
    """Select questions, by ascending numbers, as a set with one row of scores per question."""
    details = {**questions.details, "part_of": questions.fingerprint}
    return select_questions(questions, chosen, details=details)


def rank_some(scores: Any, questions: Questions, chosen: Int64, **options: Any) -> Ranks:
    """Rank some questions, with scores of these or of all questions.

    Parameters
    ----------
    scores : object
        As for `kgtrec.rank`, with one row per question or per chosen question. A function is called
        only for chosen questions.
    questions : Questions
    chosen : ndarray of int64, shape (k,)
        Numbers of the questions to rank, ascending.
    **options
        Options of `kgtrec.rank`.

    Raises
    ------
    UsageError
        No question, or scores that can be read only once.
    InputError, FileError
        As for `kgtrec.rank`.
    """
    require_type("questions", questions, Questions, QUESTIONS)
    require_type("chosen", chosen, Sized, "an array of question numbers")
    if not len(chosen):
        raise UsageError("no question was chosen; choose one or more to rank among all candidates")
    part = subset_of(questions, chosen)
    if not callable(scores):
        source = as_source(scores, questions, lambda _size: iter(()))
        n_rows = len(source.queries) if isinstance(source, Factors) else source.n_rows
        if n_rows is None:
            raise UsageError(
                "scores that come in blocks can be read only once, but some questions are ranked a "
                "second time, among all entities; pass an array, a file or a function"
            )
        if n_rows == len(questions) != len(chosen):
            source = select_rows(source, chosen)
        scores = source if isinstance(source, Factors) else source.blocks()
    return rank(scores, part, **options)[0]


@dataclass(frozen=True, eq=False)
class SampledCounts(ShownInLines):
    """Counts of every answer among drawn candidates.

    - ranks: Sampled ranks, which are the ranks among the drawn lists.
    - greater, equal, int64 (strata, n): Number of drawn candidates of each stratum that score above
      an answer, and that tie with it.
    - others_greater, others_equal, int64 (n,): The same numbers of the question's other answers
      that are candidates. All of these are in every list.
    """

    draw: CandidateDraw
    ranks: Ranks
    greater: Int64
    equal: Int64
    others_greater: Int64
    others_equal: Int64

    def _lines(self) -> tuple[str, str]:
        sampled, estimated = (ranks.mean() for ranks in (self.ranks.rank(), self.estimate_ranks()))
        return (
            f"{len(self.ranks):,} answers among drawn candidates, by {self.draw.source}",
            f"sampled MR {sampled:,.1f}, estimated MR among all {estimated:,.1f}",
        )

    @property
    def question(self) -> npt.NDArray[np.integer[Any]]:
        """The question of each answer, shape (n,)."""
        return self.draw.questions.instance_question

    @cached_property
    def incomplete(self) -> Bools:
        """True for answers with candidates that were not drawn, shape (n,)."""
        missing: Bools = np.any(self.population > self.drawn, axis=0)
        return missing

    @cached_property
    def population(self) -> Int64:
        """Number of candidates of each answer's question by stratum, shape (strata, n)."""
        return self.draw.population[self.question].T

    @cached_property
    def drawn(self) -> Int64:
        """Number of these candidates that were drawn, shape (strata, n)."""
        return self.draw.drawn[self.question].T

    def estimate_ranks(self) -> Float64:
        """Estimate the realistic ranks among all candidates (Horvitz-Thompson), shape (n,).

        The estimate is 1, plus greater + equal / 2 of each stratum over its inclusion probability.
        It is unbiased for the rank, but its reciprocal and its hits are not unbiased.
        """
        factor = self.population / np.maximum(self.drawn, 1)
        above = (self.greater + self.equal / 2) * factor
        others: Float64 = self.others_greater + self.others_equal / 2
        return 1 + others + above.sum(axis=0)

    def rank_variances(self) -> Float64:
        """Estimate the variance of each question's sum of estimated ranks, without bias; (Q,).

        Answers of one question have the same drawn candidates. A candidate that outranks the better
        of two answers also outranks the worse. So the covariances follow from the counts.
        """
        draw = self.draw
        total = np.zeros(len(draw.questions))
        for number in range(len(self.greater)):
            n, k = draw.population[:, number], np.maximum(draw.drawn[:, number], 1)
            sums, squares = self._moments(number)
            spread = (squares - sums**2 / k) / np.maximum(k - 1, 1)
            total += n * (n - draw.drawn[:, number]) * np.maximum(spread, 0.0) / k
        return total

    def _moments(self, stratum: int) -> tuple[Float64, Float64]:
        """Return moments of the number of answers that a drawn candidate of a stratum outranks.

        These are the sum and the sum of squares over the candidates of each question, float64 (Q,)
        each. A tie counts half.
        """
        size, question = len(self.draw.questions), self.question
        equal = self.equal[stratum]
        above = self.greater[stratum] + equal / 2
        order = np.lexsort((above, question))
        lengths = self.draw.questions.answers.lengths
        after = np.repeat(np.cumsum(lengths), lengths) - 1 - np.arange(len(order))
        # The better of two answers has the smaller count, which is the number of candidates that
        # outrank both: the sum of squares is a sum of smaller counts over pairs of answers.
        squares = sums_of(question, above[order] * (2 * after + 1), size)
        # But a candidate tied with both counts one half times one half.
        tied = np.flatnonzero(equal)
        keys = np.stack([question[tied], 2 * above[tied], equal[tied]]).astype(np.int64)
        (owner, _, ties), answers = np.unique(keys, axis=1, return_counts=True)
        squares -= sums_of(owner, answers**2 * ties / 4, size)
        return sums_of(question, above, size), squares

    def rank_bounds(self, miss: float) -> tuple[Int64, Int64]:
        """Bound each answer's rank, in any order of its ties; int64 (n,) each.

        Each bound fails with probability `miss` at most, which is divided between the strata.
        """
        tail = miss / max(1, int((self.population > self.drawn).any(axis=1).sum()))
        low, high = count_bounds(self.greater, self.drawn, self.population, tail, tied=self.equal)
        first = self.others_greater + 1
        return first + low.sum(axis=0), first + self.others_equal + high.sum(axis=0)


def count_sampled(
    draw: CandidateDraw, scores: Any, *, columns: str = "entities", **options: Any
) -> SampledCounts:
    """Rank every answer among the drawn candidates, stratum by stratum, in one pass.

    Parameters
    ----------
    draw : CandidateDraw
    scores : object
        As for `kgtrec.rank`, with one row per question.
    columns : {"entities", "candidates"}
        Meaning of the columns of scores: every entity in id order, or `draw.candidates`.
    **options
        Options of `kgtrec.rank`: ``higher_is_better``, ``nan``, ``threads``, ``progress``.
    """
    require_type("draw", draw, CandidateDraw, "a CandidateDraw (study.draw_candidates)")
    named = rank(scores, draw.by_stratum(columns), **options)
    ranks = {name: ranks_of_list for name, (ranks_of_list, _) in named.items()}
    sampled, exact = ranks.pop("sampled"), ranks.pop("answers")
    greater = np.stack([ranks_of_list.greater - exact.greater for ranks_of_list in ranks.values()])
    equal = np.stack([ranks_of_list.equal - exact.equal for ranks_of_list in ranks.values()])
    return SampledCounts(draw, sampled, greater, equal, exact.greater, exact.equal)


def sums_of(question: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], size: int) -> Float64:
    """Sum values by the number of their question, (size,)."""
    return np.bincount(question, values, size).astype(np.float64)
