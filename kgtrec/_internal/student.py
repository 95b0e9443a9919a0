"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math

import numpy as np

from kgtrec._internal.arrays import Float64


def student_quantile(freedom: float | Float64, probability: float) -> Float64:
    """Return the quantile of Student's t for each number of degrees of freedom.

    One step of Newton's method follows scipy's quantile, which has eleven correct digits in scipy
    1.15 and all in 1.17: results do not depend on the version.

    Parameters
    ----------
    freedom : float or float64 array
        Degrees of freedom, above 0.
    probability : float in (0, 1)

    Returns
    -------
    float64 array of the shape of `freedom`
    """
    from scipy.special import gammaln, stdtr, stdtrit

    n = np.asarray(freedom, np.float64)
    tail = min(probability, 1 - probability)
    if tail == 0.5:
        return np.zeros(n.shape)
    t = stdtrit(n, tail)
    density = np.exp(
        gammaln((n + 1) / 2)
        - gammaln(n / 2)
        - np.log(n * math.pi) / 2
        - (n + 1) / 2 * np.log1p(t**2 / n)
    )
    t -= (stdtr(n, t) - tail) / density
    return np.asarray(t if probability < 0.5 else -t)
