"""Find the best threshold on valid by counting the candidates at several thresholds at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec.study.sets.scored import ScoredQuestions

GRID = 64
"""Thresholds that one pass over the scores counts for every question."""


def choose_limits(scored: ScoredQuestions, group: Int64, precision: Fraction) -> Float64:
    """Find the best threshold of each group of questions; return their limits, float64 (groups,).

    With `precision` 0, the best threshold has the highest micro F1; the higher wins a tie.
    Otherwise it is the lowest that reaches this precision, or infinity if none does. The first
    pass over the scores counts candidates at `GRID` thresholds of every group. Further passes count
    only where a better threshold is possible.
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
        for row, (search, indices) in enumerate(zip(searches, chosen, strict=True)):
            grid[row, : len(indices)] = search.limits[indices]
        sums = np.zeros_like(grid)
        np.add.at(sums, group, scored.count_above(grid[group]))
        for search, indices, counts in zip(searches, chosen, sums, strict=True):
            search.named[indices] = counts[: len(indices)]


@dataclass(eq=False)
class _Search:
    """The search for the best threshold of a group; thresholds are scores of answers, descending.

    - limits, float64 (m,): The limit of each threshold.
    - hits, named, float64 (m,): Numbers of answers, and of candidates, at or above each threshold.
      `named` is -1 where nothing has been counted yet.
    - precision: The precision to reach; 0 to maximize F1.
    """

    limits: Float64
    hits: Float64
    named: Float64
    precision: Fraction

    @classmethod
    def start(cls, scored: ScoredQuestions, rows: Int64, precision: Fraction) -> _Search:
        """Start a search among the scores of the answers `rows`, with nothing counted yet."""
        values, counts = np.unique(-scored.values[rows], return_counts=True)
        hits = np.cumsum(counts).astype(np.float64)
        return cls(scored.below(-values), hits, np.full(len(values), -1.0), precision)

    def next_thresholds(self, most: int) -> Int64:
        """Return indices of thresholds to count next: at most `most` that may beat the best so far.

        A threshold names at least the candidates of the last counted threshold above it, and the
        answers between both. This bounds its worth.
        """
        known, index = self.named >= 0, np.arange(len(self.hits))
        last = np.maximum.accumulate(np.where(known, index, -1))
        above = np.where(last >= 0, self.named[last] - self.hits[last], 0)
        possible = self._worth(above + self.hits)
        highest = self._worth(self.named)[known].max(initial=0)
        rows = np.flatnonzero((possible > highest) & ~known)
        return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int))]

    def _worth(self, named: Float64) -> Float64:
        """Return the worth of each threshold if it names so many candidates, float64 (m,).

        It is F1; or, with a precision to reach, the threshold's number from 1 if it reaches the
        precision, else 0.
        """
        named = np.maximum(named, 0)
        if not self.precision:
            return 2 * self.hits / (named + self.hits[-1])
        reached = self.hits * self.precision.denominator >= named * self.precision.numerator
        return np.where(reached, np.arange(1, len(named) + 1), 0)

    def best(self) -> float:
        """Return the limit of the best threshold; infinity if none reaches the precision."""
        worth = np.where(self.named >= 0, self._worth(self.named), 0)
        return float(self.limits[worth.argmax()]) if worth.any() else np.inf
