"""Questions that are ranked among all candidates, to correct what sampled ones say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import UsageError
from kgtrec.study.sampling.counts import sums_of

if TYPE_CHECKING:
    from kgtrec.study.sampling.counts import SampledCounts

__all__ = ["FullCheck", "capped", "draw_check", "importance"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FullCheck(ShownInLines):
    """Which questions are ranked among all candidates.

    Attributes
    ----------
    questions : ndarray of int64
        Their numbers, ascending.
    probability : ndarray of float64, shape (Q,)
        With which each question was drawn, by itself; 0 where the drawn candidates are all.
    seed : int
    """

    questions: Int64
    probability: Float64
    seed: int

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.questions):,} of {len(self.probability):,} questions, seed {self.seed}",
            f"{int((self.probability == 1).sum()):,} of them for sure",
        )


def draw_check(counts: SampledCounts, size: float, seed: int = 0) -> FullCheck:
    """Draw questions to be ranked among all candidates.

    A question's probability is proportional to the sum of 1 / sqrt(sampled rank) over its answers,
    and at most 1. A full rank is never smaller than the sampled one, so answers far down the sample
    cannot change much; and questions with many answers change more than others.

    Parameters
    ----------
    counts : SampledCounts
    size : float
        Expected number of questions; a share of them if it is below 1.
    seed : int

    Raises
    ------
    UsageError
        A size of 0 or less.
    """
    if not size > 0:
        raise UsageError(f"full={size!r}; give how many questions are ranked in full, or a share")
    weights = importance(counts)
    expected = size * len(weights) if size < 1 else float(size)
    probability = capped(weights, expected)
    uniform = np.random.default_rng([seed, 1]).random(len(weights))  # other than the draw's
    return FullCheck(np.flatnonzero(uniform < probability), probability, seed)


def importance(counts: SampledCounts) -> Float64:
    """How much a question's answers may change between the sample and all candidates, (Q,)."""
    shares = counts.incomplete / np.sqrt(counts.ranks.rank())
    return sums_of(counts.question, shares, len(counts.draw.questions))


def capped(weights: Float64, total: float) -> Float64:
    """Probabilities proportional to weights with a sum of `total`, as far as none is above 1."""
    positive = int(np.count_nonzero(weights))
    if total >= positive:
        return (weights > 0).astype(np.float64)
    ordered = np.sort(weights[weights > 0])[::-1]
    rest = np.cumsum(ordered[::-1])[::-1]  # of the weights from each on
    # The first i are drawn for sure if the factor of the rest would put the i-th at 1 or above.
    factors = (total - np.arange(len(ordered))) / rest
    certain = int(np.argmin(ordered * factors >= 1))
    return np.minimum(1.0, weights * factors[certain])
