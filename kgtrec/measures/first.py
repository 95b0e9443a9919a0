"""Where the first of several tied answers stands, exactly.

A question's best tie holds ``size`` candidates, ``answers`` of them right, below ``greater``
candidates that are all wrong. In random order the place of the first answer inside the tie is
negative-hypergeometric: ``P(X = j) = C(size - j, answers - 1) / C(size, answers)``. With one
answer that is the uniform rank of an instance, so these functions serve micro and macro alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.harmonic import mean_reciprocal_rank

__all__ = ["expected_first_hits", "expected_first_rank", "expected_first_reciprocal"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AMPLIFICATION = 64.0
"""Largest growth of rounding errors under which the short recurrence is trusted."""
CHUNK = 1 << 16
NEGLIGIBLE = 1e-18


def expected_first_rank(greater: Ints, size: Ints, answers: Ints) -> Floats:
    """Expected rank of the first answer: ``greater + (size + 1) / (answers + 1)``."""
    return greater + (size + 1) / (answers + 1)


def expected_first_hits(greater: Ints, size: Ints, answers: Ints, k: int) -> Floats:
    """Probability that the first answer ranks within `k`; float64 (n,) in [0, 1]."""
    inside = np.clip(k - greater, 0, size)
    found = inside / size
    several = np.flatnonzero((answers > 1) & (inside > 0))
    if len(several):
        found[several] = _some_answer_inside(inside[several], size[several], answers[several])
    return found


def _some_answer_inside(inside: Ints, size: Ints, answers: Ints) -> Floats:
    """``1 - C(size - inside, answers) / C(size, answers)`` as one short product per row."""
    steps, other = np.minimum(inside, answers), np.maximum(inside, answers)
    log_missed = np.zeros(len(inside))
    active = np.arange(len(inside))
    step = 0
    with np.errstate(divide="ignore"):  # ln 0: no order can leave every answer outside
        while len(active):
            share = np.minimum(other[active] / (size[active] - step), 1.0)
            log_missed[active] += np.log1p(-share)
            step += 1
            active = active[(steps[active] > step) & np.isfinite(log_missed[active])]
    return -np.expm1(log_missed)


def expected_first_reciprocal(greater: Ints, size: Ints, answers: Ints) -> Floats:
    """Expected ``1/rank`` of the first answer; float64 (n,), relative error below 1e-12.

    Ties with a few answers follow a recurrence in the number of answers; where that would
    amplify rounding errors, the distribution is summed term by term.
    """
    value = mean_reciprocal_rank(greater, size)
    several = np.flatnonzero(answers > 1)
    if not len(several):
        return value
    part, trusted = _by_recurrence(
        greater[several], size[several], answers[several], value[several]
    )
    for row in np.flatnonzero(~trusted):
        tie = several[row]
        part[row] = _by_summation(int(greater[tie]), int(size[tie]), int(answers[tie]))
    value[several] = part
    return value


def _by_recurrence(
    greater: Ints, size: Ints, answers: Ints, single: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Walk from one answer to `answers`: E_m = m ((N - m + 2) E_(m-1) - 1) / ((m - 1)(T - m + 1)).

    N is greater + size and T the size; it follows from C(n, m) = C(n, m - 1) (n - m + 1) / m.
    The second array says where the value can be trusted.
    """
    value, growth = single.copy(), np.ones(len(single))
    active = np.arange(len(single))
    m = 2
    while len(active):
        product = (greater[active] + size[active] - m + 2) * value[active]
        rest = product - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            growth[active] = (growth[active] + 1.0) * product / rest
            value[active] = m * rest / ((m - 1.0) * (size[active] - m + 1))
        bad = ~(np.abs(growth[active]) <= AMPLIFICATION) | (rest <= 0)
        growth[active[bad]] = np.inf
        active = active[~bad & (answers[active] > m)]
        m += 1
    return value, np.isfinite(growth)


def _by_summation(greater: int, size: int, answers: int) -> float:
    """Sum ``P(X >= j)`` against the drop of ``1/(greater + j)``; every term is positive."""
    total, survival, first = 0.0, 1.0, 1
    last = size - answers + 1
    while first <= last and survival > NEGLIGIBLE:
        place = np.arange(first, min(first + CHUNK, last + 1), dtype=np.float64)
        step = 1.0 - answers / (size - place + 1.0)  # P(X > j | X >= j)
        reach = survival * np.concatenate(([1.0], np.cumprod(step)))
        hit = answers / (size - place + 1.0)  # P(X = j | X >= j)
        total += float(np.sum(reach[:-1] * hit / (greater + place)))
        survival = float(reach[-1])
        first += CHUNK
    return total
