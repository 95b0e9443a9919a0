"""Mark cases of a test as slow, so that only the others run by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_after(quick: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for ``parametrize``, all but the first ``quick`` slow."""
    return [case if number < quick else _slow(case) for number, case in enumerate(cases)]


def slow_but(quick: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Cases for ``parametrize``, all slow but those named."""
    quick = list(quick)
    return [case if case in quick else _slow(case) for case in cases]


def _slow(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
