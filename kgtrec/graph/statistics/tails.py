"""The tail of a frequency distribution: a power law fitted to counts, and its tail index.

Mohamed et al. (2020, sections 3 and 4) assume that frequencies follow a power law. The number of
items with a count x >= least is fitted as proportional to x^-exponent by maximum likelihood for
whole numbers, and `least` is the count from which on the fit is closest [1]_.

References
----------
.. [1] A. Clauset, C. R. Shalizi, M. E. J. Newman. Power-law distributions in empirical data. 2009.
   Sections 3.1 (equation 3.5) and 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import InputError

FEWEST = 10
"""Items that a tail needs."""
_CANDIDATES = 60
_STEEPEST = 20.0


@dataclass(frozen=True)
class TailFit(ShownInLines):
    """A power law fitted to the items with a count of `least` or more.

    - exponent: Of the number of items with a count x, proportional to x^-exponent; above 1.
    - least: Smallest count of the tail.
    - items: Number of items in the tail.
    - distance: Largest distance between the shares of items up to x, and those of the fit
      (Kolmogorov-Smirnov), in [0, 1].
    """

    exponent: float
    least: int
    items: int
    distance: float

    def _lines(self) -> tuple[str, str]:
        return (
            f"{self.items:,} items with a count of at least {self.least:,}",
            f"exponent {self.exponent:.3f}, distance {self.distance:.3f}",
        )

    def density(self, counts: Float64) -> Float64:
        """Return the share of the tail's items per count, of the fitted law."""
        from scipy.special import zeta

        return np.asarray(counts**-self.exponent / zeta(self.exponent, self.least))


def fit_tail(counts: Int64) -> TailFit:
    """Fit a power law to the largest counts; items that never occur are ignored.

    Raises
    ------
    InputError
        Fewer than `FEWEST` items, or fewer than two different counts, so that there is no tail.
    """
    ascending = np.sort(counts[counts > 0])
    if len(ascending) < FEWEST or ascending[-FEWEST] == ascending[-1]:
        raise InputError(
            f"{len(ascending):,} items occur, with {len(np.unique(ascending)):,} different counts; "
            f"a tail needs {FEWEST} items with two or more"
        )
    starts = np.unique(ascending[: len(ascending) - FEWEST + 1])
    starts = starts[starts < ascending[-1]]
    rows = np.unique(np.linspace(0, len(starts) - 1, _CANDIDATES).round().astype(np.int64))
    fits = [_fit_from(ascending[np.searchsorted(ascending, x) :]) for x in starts[rows]]
    return min(fits, key=lambda fit: fit.distance)


def _fit_from(tail: Int64) -> TailFit:
    """Fit a power law to all of these counts, in ascending order."""
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    least, n = int(tail[0]), len(tail)
    mean_log = float(np.log(tail).mean())

    def loss(exponent: float) -> float:
        return float(np.log(zeta(exponent, least)) + exponent * mean_log)

    exponent = float(minimize_scalar(loss, bounds=(1.0001, _STEEPEST), method="bounded").x)
    distinct = np.unique(tail)
    share = np.searchsorted(tail, distinct, side="right") / n
    fitted = 1 - zeta(exponent, distinct + 1.0) / zeta(exponent, least)
    return TailFit(exponent, least, n, float(np.abs(share - fitted).max()))
