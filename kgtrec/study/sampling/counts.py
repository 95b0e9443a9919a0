"""What drawn candidates say of each answer: counts by stratum, and the estimated rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Bools, Float64, Int64, spans, take
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import UsageError
from kgtrec.ranking.rank import rank
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import as_source
from kgtrec.scores.sources import selected
from kgtrec.study.sampling.bounds import count_bounds

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.sampling.draw import CandidateDraw


def instances_of(questions: Questions, chosen: Int64) -> Int64:
    """The instances of some questions, question after question."""
    answers = questions.answers
    return spans(answers.offsets[chosen], answers.lengths[chosen])[1]


def subset_of(questions: Questions, chosen: Int64) -> Questions:
    """Some questions (ascending numbers) as a separate set, with one row of scores each."""
    instances = instances_of(questions, chosen)
    place = np.full(questions.n_instances, -1, np.int64)
    place[instances] = np.arange(len(instances))
    rows = place[questions.triple_rows]
    lists = questions.candidate_lists
    part: Questions = questions.taken(
        chosen,
        instances,
        answers=take(questions.answers, chosen),
        known=take(questions.known, chosen),
        removed=take(questions.removed, chosen),
        instance_question=np.repeat(np.arange(len(chosen)), questions.answers.lengths[chosen]),
        triple_rows=rows[rows >= 0],
        candidate_lists=None if lists is None else lists.selected(chosen),
        details={**questions.details, "part_of": questions.fingerprint},
    )
    return part


def rank_some(scores: Any, questions: Questions, chosen: Int64, **options: Any) -> Ranks:
    """Ranks of some questions, from scores of these or of all questions.

    Parameters
    ----------
    scores : object
        As for `kgtrec.rank`, with one row per question or per chosen question. A function is called
        for the chosen ones only.
    questions : Questions
    chosen : ndarray of int64
        Their numbers, ascending.
    **options
        Options of `kgtrec.rank`.

    Raises
    ------
    UsageError
        No question, or scores that can be read only once.
    InputError, FileError
        As for `kgtrec.rank`.
    """
    if not len(chosen):
        raise UsageError("no question was chosen; choose one or more to rank among all candidates")
    part = subset_of(questions, chosen)
    if not callable(scores):
        source = as_source(scores, questions, _no_batches, len(questions))
        n_rows = len(source.queries) if isinstance(source, Factors) else source.n_rows
        if n_rows is None:
            raise UsageError(
                "scores that come in blocks can be read only once, but some questions are ranked a "
                "second time, among all entities; pass an array, a file or a function"
            )
        if n_rows == len(questions) != len(chosen):
            source = selected(source, chosen)
        scores = source if isinstance(source, Factors) else source.blocks()
    return rank(scores, part, **options)[0]


def _no_batches(size: int) -> Any:
    raise AssertionError("a function is not opened here")


@dataclass(frozen=True, eq=False)
class SampledCounts(ShownInLines):
    """Counts of every answer among drawn candidates.

    - ranks: Ranks among the drawn lists: the sampled ranks.
    - greater, equal, int64 (strata, n): Drawn candidates of each stratum that score above an
      answer, and that tie with it.
    - others_greater, others_equal, int64 (n,): The same counts of the question's other answers that
      are candidates: all of them are in every list.
    """

    draw: CandidateDraw
    ranks: Ranks
    greater: Int64
    equal: Int64
    others_greater: Int64
    others_equal: Int64

    def _lines(self) -> tuple[str, str]:
        sampled, estimated = (ranks.mean() for ranks in (self.ranks.rank(), self.estimated_ranks()))
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
        """Whether some candidates of each answer were not drawn, shape (n,)."""
        missing: Bools = np.any(self.population > self.drawn, axis=0)
        return missing

    @cached_property
    def population(self) -> Int64:
        """Candidates of each answer's question by stratum, shape (strata, n)."""
        return self.draw.population[self.question].T

    @cached_property
    def drawn(self) -> Int64:
        """How many of these candidates were drawn, shape (strata, n)."""
        return self.draw.drawn[self.question].T

    def estimated_ranks(self) -> Float64:
        """Horvitz-Thompson estimates of the realistic ranks among all candidates, shape (n,).

        1, plus greater + equal / 2 of each stratum over its inclusion probability. Unbiased for
        the rank; 1 over it is not unbiased for the reciprocal rank, nor are hits.
        """
        factor = self.population / np.maximum(self.drawn, 1)
        above = (self.greater + self.equal / 2) * factor
        own: Float64 = self.others_greater + self.others_equal / 2
        return 1 + own + above.sum(axis=0)

    def rank_variances(self) -> Float64:
        """Unbiased estimates of the variance of each question's sum of estimated ranks, (Q,).

        Answers of one question meet the same drawn candidates, and any that outranks the better
        answer outranks the worse one too. So their covariances follow from the counts.
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
        """Of how many of its question's answers a drawn candidate outranks: sum and sum of squares.

        A tie counts half. Float64 (Q,) each.
        """
        size, question = len(self.draw.questions), self.question
        equal = self.equal[stratum]
        above = self.greater[stratum] + equal / 2
        order = np.lexsort((above, question))
        lengths = self.draw.questions.answers.lengths
        after = np.repeat(np.cumsum(lengths), lengths) - 1 - np.arange(len(order))
        # What outranks two answers outranks the better: a sum over pairs of the smaller count.
        squares = sums_of(question, above[order] * (2 * after + 1), size)
        # But a candidate tied with both counts one half times one half.
        tied = np.flatnonzero(equal)
        keys = np.stack([question[tied], 2 * above[tied], equal[tied]]).astype(np.int64)
        (owner, _, ties), answers = np.unique(keys, axis=1, return_counts=True)
        squares -= sums_of(owner, answers**2 * ties / 4, size)
        return sums_of(question, above, size), squares

    def rank_bounds(self, miss: float) -> tuple[Int64, Int64]:
        """Bounds on each answer's rank, at any place in its ties; int64 (n,) each.

        Each bound fails with probability `miss` at most; the exact tails of all strata share
        `miss`.
        """
        tail = miss / max(1, int((self.population > self.drawn).any(axis=1).sum()))
        low = count_bounds(self.greater, self.drawn, self.population, tail)[0]
        high = count_bounds(self.greater + self.equal, self.drawn, self.population, tail)[1]
        own = self.others_greater + 1
        return own + low.sum(axis=0), own + self.others_equal + high.sum(axis=0)


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

    Raises
    ------
    InputError, FileError
        As for `kgtrec.rank`.
    """
    named = rank(scores, draw.by_stratum(columns), **options)
    ranks = {name: one for name, (one, _) in named.items()}
    sampled, others = ranks.pop("sampled"), ranks.pop("answers")
    greater = np.stack([one.greater - others.greater for one in ranks.values()])
    equal = np.stack([one.equal - others.equal for one in ranks.values()])
    return SampledCounts(draw, sampled, greater, equal, others.greater, others.equal)


def sums_of(question: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], size: int) -> Float64:
    """Sums of values by the number of their question, (size,)."""
    return np.bincount(question, values, size).astype(np.float64)
