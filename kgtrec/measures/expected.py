"""Expectations under ties: the mean of a metric over every rank that a tie allows.

A tie holds ``size`` candidates below ``greater`` others; ``answers`` of them are right (always 1
for an instance, and 1 or more for a question, whose rank is that of its first answer). All orders
of the tie are equally likely. The sums are native, see ``csrc/expected.c``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core

__all__ = ["expected_hits", "expected_log_rank", "expected_rank", "expected_reciprocal"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def expected_rank(greater: Ints, size: Ints, answers: Ints) -> Floats:
    """Expected rank of the first answer: ``greater + (size + 1) / (answers + 1)``."""
    return greater + (size + 1) / (answers + 1)


def expected_reciprocal(greater: Ints, size: Ints, answers: Ints) -> Floats:
    """Expected ``1/rank`` of the first answer.

    Parameters
    ----------
    greater : int64 array (n,)
        Candidates strictly above the tie, 0 or more.
    size : int64 array (n,)
        Candidates in the tie, the answers included, 1 or more.
    answers : int64 array (n,)
        Right ones among them, 1 .. size.

    Returns
    -------
    float64 array (n,), in (0, 1]. Relative error below 1e-13 for one answer, 1e-12 for several.
    """
    out = np.empty(len(greater))
    _core.expected_reciprocal(greater, size, answers, out)
    return out


def expected_hits(greater: Ints, size: Ints, answers: Ints, k: int) -> Floats:
    """Probability that the first answer ranks within `k`; arguments as above.

    Returns
    -------
    float64 array (n,), in [0, 1], relative error below 1e-13.
    """
    out = np.empty(len(greater))
    _core.expected_hits(greater, size, answers, k, out)
    return out


def expected_log_rank(greater: Ints, size: Ints) -> Floats:
    """Expected ``ln rank`` of the one answer of a tie; arguments as above.

    Returns
    -------
    float64 array (n,), 0 or more, relative error below 1e-13.
    """
    out = np.log(greater + 1.0)  # the bits that every other rank type has where nothing is tied
    tied = np.flatnonzero(size > 1)
    means = np.empty(len(tied))
    _core.expected_log(greater[tied], size[tied], means)
    out[tied] = means
    return out
