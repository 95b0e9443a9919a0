"""Quantiles of Student's t against closed forms, with every version of scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kgtrec._internal.student import student_quantile


def closed_form(freedom: int, p: float) -> float:
    """The quantile for 1, 2 or 4 degrees of freedom."""
    if freedom == 1:
        return math.copysign(1 / math.tan(math.pi * min(p, 1 - p)), p - 0.5)
    share = 4 * p * (1 - p)
    if freedom == 2:
        return (2 * p - 1) * math.sqrt(2 / share)
    q = math.cos(math.acos(math.sqrt(share)) / 3) / math.sqrt(share)
    return math.copysign(2 * math.sqrt(q - 1), p - 0.5)


@pytest.mark.parametrize("p", [0.001, 0.05, 0.3, 0.6, 0.8, 0.95, 0.975, 0.9995])
def test_closed_forms(p: float) -> None:
    freedom = np.array([1.0, 2.0, 4.0])
    due = [closed_form(int(n), p) for n in freedom]
    assert student_quantile(freedom, p) == pytest.approx(due, rel=2e-14)
    assert float(student_quantile(4, p)) == pytest.approx(due[2], rel=2e-14)


def test_ends() -> None:
    """Symmetric, zero in the middle, and normal for many degrees of freedom."""
    freedom = np.array([0.5, 3.7, 57.2, 1e9])
    assert (student_quantile(freedom, 0.25) == -student_quantile(freedom, 0.75)).all()
    assert (student_quantile(freedom, 0.5) == 0).all()
    assert student_quantile(freedom, 0.975)[-1] == pytest.approx(1.959963984540054, rel=1e-8)
