"""Sets of the candidates at or above a score, from scores that are read again for each count.

A limit is the largest number below the lowest score of a set, in the type that the core compares,
so the core counts the candidates above it. No matrix of scores is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
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
from kgtrec.trec.files.run import Run

GRID = 64
"""Thresholds that one pass over the scores counts for every question."""


class ScoredQuestions:
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
                "judge their ranks"
            )
        self.questions, self._source = questions, scores
        _check_shape(scores, questions)
        self._settings = Settings.convert(higher_is_better=higher_is_better, threads=threads)
        self._answers = AnswerScores(questions, higher_is_better=higher_is_better)
        self._answers.fill(scores)
        self._scores = self._answers.check_scores(scores, 0)[0]
        self.values = self._answers.values
        self.question = questions.instance_question.astype(np.int64)

    @cached_property
    def ranks(self) -> Ranks:
        """The ranks of the answers."""
        return self.best(0)[0]

    def best(self, depth: int) -> tuple[Ranks, Run]:
        """Return the ranks, and the best candidates of every question."""
        how = self._settings
        return rank(
            self._source,
            self.questions,
            depth,
            how.threads,
            progress=False,
            higher_is_better=how.higher_is_better,
        )

    def below(self, values: Float64) -> Float64:
        """Return the largest number below each value in the type in which scores are compared."""
        kind: Any = np.float64 if str(self._scores.dtype) == "float64" else np.float32
        with np.errstate(over="ignore"):
            low: Any = values.astype(kind)
            low = np.where(low >= values, np.nextafter(low, -np.inf, dtype=kind), low)
        return np.asarray(low, np.float64)

    def count_above(self, limits: Float64) -> Int64:
        """Return how many candidates of each question score above its limits, int64 (Q, G).

        Shapes: limits float64 (Q, G), where -infinity counts all candidates.
        """
        n, width = limits.shape
        every, targets = np.arange(n), np.tile(np.arange(width, dtype=np.int32), n)
        rows = Rows(every, np.arange(n + 1) * width, targets, np.full(n, -1))
        refuse = partial(nan_error, self.questions)
        flat = np.ascontiguousarray(limits.ravel())
        lists, scores = self._answers.lists, self._scores
        state = rank_all(lists, rows, scores, self._settings, refuse, answers=flat)
        counts = state.counts[MACRO][0].reshape(n, width)
        candidates = self.questions.n_labels - self.questions.removed.lengths
        return np.where(np.isneginf(limits), candidates[:, None], counts)

    def limits_of_best(self, most: Float64, ties: str) -> Float64:
        """Return the limit of sets of so many best candidates, with all ties at the border, or
        none."""
        candidates = self.questions.n_labels - self.questions.removed.lengths
        limits = np.full(len(most), -np.inf)
        cut = np.flatnonzero(most < candidates)
        if not len(cut):
            return limits
        sizes = most[cut].astype(np.int64)
        run = self.best(int(sizes.max()))[1]
        last = run.scores[run.offsets[cut] + sizes - 1].astype(np.float64)
        limits[cut] = self.below(last)
        if ties == "none":
            wide = self.count_above(limits[:, None])[cut, 0] > sizes
            limits[cut[wide]] = last[wide]
        return limits

    def confidence(self, kind: str) -> Float64:
        """Return the best score of each question, or its distance from the second best."""
        run = self.best(2 if kind == "gap" else 1)[1]
        starts, lengths = run.offsets[:-1], np.diff(run.offsets)
        best = run.scores[starts].astype(np.float64)
        if kind == "best":
            return best
        second = run.scores[starts + (lengths > 1)].astype(np.float64)
        return distance_to_second(best, np.where(lengths > 1, second, -np.inf))

    def gaps(self) -> tuple[Float64, Float64]:
        """Return the best score of each question, float64 (Q,), and the distance of each answer
        from it, in the type of the scores, float64 (n,)."""
        run = self.best(1)[1]
        best = run.scores[run.offsets[:-1]].astype(np.float64)
        kind = str(self._scores.dtype)
        high, low = best[self.question].astype(kind), self.values.astype(kind)
        with np.errstate(invalid="ignore", over="ignore"):  # equal infinities
            gap = np.where(high == low, 0, high - low)
        return best, gap.astype(np.float64)

    def limits_of_gaps(self, most: Float64) -> Float64:
        """Return the limit of sets of the candidates within a distance of the best score."""
        best, limits = self.gaps()[0], np.empty(len(most))
        for gap in np.unique(most):
            rows, width = most == gap, Tolerance(float(gap), 0.0)
            finite = np.isfinite(gap)
            kind = str(self._scores.dtype)
            limits[rows] = tie_thresholds(best[rows], kind, width)[1] if finite else -np.inf
        return limits

    def sets(self, sizes: Int64) -> Csr:
        """Return the best candidates of each question, so many as its set has."""
        run = self.best(int(sizes.max(initial=0)))[1]
        rows = spans(run.offsets[:-1], sizes)[1]
        return Csr(offsets_of(sizes), run.documents[rows])


def distance_to_second(best: Float64, second: Float64) -> Float64:
    """Return best - second; infinity without a second, 0 if both are the same infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(best == second, 0.0, best - second)


def _check_shape(scores: Any, questions: Questions) -> None:
    """Raise InputError unless scores have a row per question and a column per candidate."""
    shape, expected = tuple(np.shape(scores)), (len(questions), questions.n_labels)
    if isinstance(scores, Factors):
        shape = scores.shape
    if shape != expected:
        raise InputError(
            f"scores have shape {shape}; expected {expected}, one row per question of split "
            f"{questions.split!r} and one column per {questions.kind}"
        )


def choose_limits(scored: ScoredQuestions, group: Int64, precision: Fraction | None) -> Float64:
    """Return the limit of the best threshold for each group of questions, float64 (groups,).

    The best has the highest micro F1, and is the highest of several; or it is the lowest that
    reaches a precision. Infinity: none does. A pass over the scores counts at `GRID` thresholds of
    every group, and the next passes only where a better one is possible.
    """
    of_answers, most = group[scored.question], min(GRID, scored.questions.n_labels)
    searches = [
        _Search.start(scored, np.flatnonzero(of_answers == number), precision)
        for number in range(int(group.max()) + 1)
    ]
    while True:
        chosen = [search.next_thresholds(most) for search in searches]
        width = max(map(len, chosen))
        if not width:
            return np.array([search.best() for search in searches])
        grid = np.zeros((len(searches), width))
        for row, (search, at) in enumerate(zip(searches, chosen, strict=True)):
            grid[row, : len(at)] = search.limits[at]
        sums = np.zeros((len(searches), width), np.int64)
        np.add.at(sums, group, scored.count_above(grid[group]))
        for search, at, counts in zip(searches, chosen, sums, strict=True):
            search.named[at] = counts[: len(at)]


@dataclass(eq=False)
class _Search:
    """The search for the best threshold of a group; thresholds are scores of answers, descending.

    - limits, float64 (m,): The limit of each threshold.
    - hits, named, int64 (m,): Answers, and candidates at or above it; -1: not counted yet.
    """

    limits: Float64
    hits: Int64
    named: Int64
    precision: Fraction | None

    @classmethod
    def start(cls, scored: ScoredQuestions, rows: Int64, precision: Fraction | None) -> _Search:
        """Return the search of some answers, in which nothing is counted."""
        values, counts = np.unique(-scored.values[rows], return_counts=True)
        return cls(scored.below(-values), np.cumsum(counts), np.full(len(values), -1), precision)

    def next_thresholds(self, most: int) -> Int64:
        """Return where to count next: at most so many of those that may be better than the best.

        At least as many candidates are named as at the last counted threshold above, and the
        answers between both.
        """
        index = np.arange(len(self.hits))
        last = np.maximum.accumulate(np.where(self.named >= 0, index, -1))
        above = np.where(last >= 0, self.named[last] - self.hits[last], 0)
        better, known = self._is_better(self.hits, above + self.hits), self.named >= 0
        rows = np.flatnonzero(better & ~known)
        if self.precision is not None and (known & better).any():
            rows = rows[rows > np.flatnonzero(known & better)[-1]]
        return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int))]

    def _is_better(self, hits: Int64, named: Int64) -> Bools:
        """Return whether these numbers reach the precision, or a higher F1 than all counted."""
        if self.precision is not None:
            return hits * self.precision.denominator >= named * self.precision.numerator
        known = self.named >= 0
        highest = self._f1(self.hits[known], self.named[known]).max(initial=-1)
        return self._f1(hits, named) > highest

    def _f1(self, hits: Int64, named: Int64) -> Float64:
        return 2 * hits / (named + self.hits[-1])

    def best(self) -> float:
        """Return the limit of the best threshold; infinity if none reaches the precision."""
        rows = np.flatnonzero(self.named >= 0)
        hits, named = self.hits[rows], self.named[rows]
        if self.precision is None:
            return float(self.limits[rows[np.argmax(self._f1(hits, named))]])
        rows = rows[self._is_better(hits, named)]
        return float(self.limits[rows[-1]]) if len(rows) else float("inf")
