"""Questions by their scores: sets of the candidates above a limit, which one pass counts.

A limit is the largest number below the lowest score of a set, in the type that the core compares,
so the core counts the candidates above it. No matrix of scores is kept.
"""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import Csr, offsets_of, spans
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.ranking.blocks import nan_error, rank_all, tie_thresholds
from kgtrec.ranking.columns import MACRO
from kgtrec.ranking.ranges import AnswerScores
from kgtrec.ranking.rank import rank
from kgtrec.ranking.ranks import Ranks
from kgtrec.ranking.rows import Rows
from kgtrec.ranking.settings import Settings, Tolerance
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import load_matrix
from kgtrec.scores.sources import load_scores
from kgtrec.study.sets.policies import Policy
from kgtrec.study.sets.ranked import RankedQuestions, any_and_all
from kgtrec.trec.files.run import Run


class ScoredQuestions(RankedQuestions):
    """Questions and the scores of their candidates.

    - values, float64 (n,): The score of each answer; negated if lower is better.
    """

    def __init__(
        self, scores: Any, questions: Questions, higher_is_better: bool, threads: int | None
    ) -> None:
        if isinstance(scores, (str, PathLike)):
            loaded = load_scores(scores)
            scores = loaded if isinstance(loaded, Factors) else load_matrix(scores)
        if questions.candidate_lists is not None or questions.column_of is not None:
            raise UsageError(
                "sets of scores need all candidates in the order of ids; rank these questions, and "
                "judge their ranks, whose places are among their candidates"
            )
        shape, expected = tuple(np.shape(scores)), (len(questions), questions.n_labels)
        if isinstance(scores, Factors):
            shape = scores.shape
        if shape != expected:
            raise InputError(
                f"scores have shape {shape}; expected {expected}, one row per question of split "
                f"{questions.split!r} and one column per {questions.kind}"
            )
        self.questions, self._source = questions, scores
        self._settings = Settings.convert(higher_is_better=higher_is_better, threads=threads)
        self._answers = AnswerScores(questions, higher_is_better=higher_is_better)
        self._answers.fill(scores)
        self._scores = self._answers.check_scores(scores, 0)[0]
        self.values = self._answers.values
        super().__init__(self._best(0)[0])

    def _best(self, depth: int) -> tuple[Ranks, Run]:
        """Rank the answers; return the ranks, and the `depth` best candidates per question."""
        return rank(
            self._source,
            self.questions,
            depth,
            self._settings.threads,
            progress=False,
            higher_is_better=self._settings.higher_is_better,
        )

    def check_policy(self, policy: Policy) -> None:
        """Accept every policy."""

    def distances(self, policy: Policy) -> Float64:
        """Return the worst rank of each answer; for ``conformal-gap`` its distance from the best.

        This is the distance between scores, computed in their type.
        """
        if policy.name != "conformal-gap":
            return super().distances(policy)
        kind = str(self._scores.dtype)
        high, low = self._best_scores()[self.question].astype(kind), self.values.astype(kind)
        with np.errstate(invalid="ignore", over="ignore"):  # equal infinities
            return np.where(high == low, 0, high - low).astype(np.float64)

    def judge(self, policy: Policy, limits: Float64, ties: str) -> tuple[Float64, Float64, Float64]:
        """Decide which answers are in their sets, as `RankedQuestions.judge`, for all policies."""
        if ties == "expected":
            return super().judge(policy, limits, ties)
        if policy.name == "conformal-gap":
            limits = self._limits_of_gaps(limits)
        elif policy.name != "threshold":
            limits = self._limits_of_best(limits, ties)
        elif not policy.aim:
            limits = self.below(limits)
        of_answers = limits[self.question]
        inside = (self.values > of_answers) | np.isneginf(of_answers)
        sizes = self.count_above(limits[:, None])[:, 0].astype(np.float64)
        return inside.astype(np.float64), sizes, any_and_all(inside, self.question, len(sizes))

    def below(self, values: Float64) -> Float64:
        """Return the largest number below each value in the type in which scores are compared."""
        kind: Any = np.float64 if str(self._scores.dtype) == "float64" else np.float32
        with np.errstate(over="ignore"):
            low: Any = values.astype(kind)
            low = np.where(low >= values, np.nextafter(low, -np.inf, dtype=kind), low)
        return np.asarray(low, np.float64)

    def count_above(self, limits: Float64) -> Float64:
        """Count the candidates of each question above each of its limits, float64 (Q, G).

        - limits, float64 (Q, G): Limits of each question; -infinity counts all candidates.
        """
        n, width = limits.shape
        every, targets = np.arange(n), np.tile(np.arange(width, dtype=np.int32), n)
        rows = Rows(every, np.arange(n + 1) * width, targets, np.full(n, -1))
        refuse = partial(nan_error, self.questions)
        flat = np.ascontiguousarray(limits.ravel())
        lists, scores = self._answers.lists, self._scores
        state = rank_all(lists, rows, scores, self._settings, refuse, answers=flat)
        counts = state.counts[MACRO][0].reshape(n, width)
        return np.where(np.isneginf(limits), self.candidates[:, None], counts)

    def _limits_of_best(self, most: Float64, ties: str) -> Float64:
        """Return the score above which each set has its `most` best candidates, float64 (Q,).

        Sets include all candidates that tie at the border; none of these if `ties` is "none".
        """
        limits = np.full(len(most), -np.inf)
        cut = np.flatnonzero(most < self.candidates)
        if not len(cut):
            return limits
        sizes = most[cut].astype(np.int64)
        run = self._best(int(sizes.max()))[1]
        last = run.scores[run.offsets[cut] + sizes - 1].astype(np.float64)
        limits[cut] = self.below(last)
        if ties == "none":
            wide = self.count_above(limits[:, None])[cut, 0] > sizes
            limits[cut[wide]] = last[wide]
        return limits

    def _limits_of_gaps(self, most: Float64) -> Float64:
        """Return the score above which candidates are within `most` of the best, float64 (Q,)."""
        best, limits, kind = self._best_scores(), np.full(len(most), -np.inf), self._scores.dtype
        for gap in np.unique(most[np.isfinite(most)]):
            rows, width = most == gap, Tolerance(float(gap), 0.0)
            limits[rows] = tie_thresholds(best[rows], str(kind), width)[1]
        return limits

    def _best_scores(self) -> Float64:
        """Return the best score of each question, float64 (Q,)."""
        run = self._best(1)[1]
        return np.asarray(run.scores[run.offsets[:-1]], np.float64)

    def confidence(self, kind: str) -> Float64:
        """Return the best score of each question, or its distance from the second best."""
        if kind == "best":
            return self._best_scores()
        run = self._best(2)[1]
        return first_of_lists(run.offsets, run.scores, kind)

    def keep(self, sizes: Float64, ties: str, confidence: str) -> tuple[Csr, Float64]:
        """Return the candidates of sets of these sizes, best first, and each set's confidence."""
        if ties == "expected":
            return super().keep(sizes, ties, confidence)
        lengths = sizes.astype(np.int64)
        run = self._best(int(lengths.max(initial=0)))[1]
        rows = spans(run.offsets[:-1], lengths)[1]
        return Csr(offsets_of(lengths), run.documents[rows]), self.confidence(confidence)

    def notes(self, ties: str) -> list[str]:
        """Return no notes: scores show all ties."""
        return []


def first_of_lists(offsets: Int64, scores: Float64, kind: str) -> Float64:
    """Return the confidence of each list: its first score, or ("gap") its distance to the second.

    Lists have their best score first. Empty lists have -infinity. The distance is infinite in
    a list of one, and 0 if both scores are the same infinity.
    """
    padded, lengths = np.append(scores.astype(np.float64), [0, 0]), np.diff(offsets)
    best, second = padded[offsets[:-1]], padded[offsets[:-1] + 1]
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.where(best == second, 0.0, best - second)
    sure = best if kind == "best" else np.where(lengths > 1, gap, np.inf)
    return np.where(lengths > 0, sure, -np.inf)
