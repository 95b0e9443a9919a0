"""From a metric to the metric adjusted for chance, and what to beware of in each form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.metric import Moments, plain

__all__ = [
    "AVERAGED",
    "HOYT",
    "INDEPENDENT",
    "LOW_END",
    "NOTHING_TO_RANK",
    "NO_SPREAD",
    "OWN_COUNT",
    "TIES",
    "WEIGHTED",
    "index",
    "ratio",
    "z_score",
]

Floats = NDArray[np.float64]
Finish = Callable[[Moments], Floats]

WEIGHTED = ("micro", "question", "relation")
AVERAGED = (*WEIGHTED, "macro_relation")
HOYT = "Hoyt et al. 2022"

OWN_COUNT = "E uses every instance's own number of candidates, the answer included."
NOTHING_TO_RANK = "NaN where E is 1: nothing could be ranked."
LOW_END = "Its least value, -E / (1 - E) or above, depends on the numbers of candidates."
TIES = (
    "Var is that of a scorer without ties. On tied scores ask for expected ranks: realistic ones "
    "lie in the middle, where 1/r and hits are fewer than by chance."
)
INDEPENDENT = (
    "Instances count as independent; those of one question are not quite, so |z| > 2 says less "
    "than it seems."
)
NO_SPREAD = "NaN where Var is 0."


def ratio(base: Finish = plain) -> Finish:
    """M / E."""

    def finish(moments: Moments) -> Floats:
        return base(moments) / moments.chance

    return finish


def index(base: Finish = plain) -> Finish:
    """1 - (M - 1) / (E - 1), which is (M - E) / (1 - E)."""

    def finish(moments: Moments) -> Floats:
        value, expected = base(moments), moments.chance
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 1.0 - (value - 1.0) / (expected - 1.0)
        return np.where(expected != 1.0, found, np.nan)

    return finish


def z_score(sign: float, base: Finish = plain) -> Finish:
    """(M - E) / sqrt(Var), its sign changed where lower is better."""

    def finish(moments: Moments) -> Floats:
        value, deviation = base(moments), moments.chance_deviation
        with np.errstate(divide="ignore", invalid="ignore"):
            score = sign * (value - moments.chance) / deviation
        return np.where(deviation > 0, score, np.nan)

    return finish
