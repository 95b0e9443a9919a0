"""Sums under random signs, by the definition: each sum is one of its rows' signed sums."""

from __future__ import annotations

import numpy as np
import pytest

from kgtrec import _core


@pytest.mark.parametrize("n", [1, 7, 1023, 1024, 1025, 2048])
@pytest.mark.parametrize("n_columns", [1, 15, 16, 17])
def test_nothing_is_written_beyond_the_sums_that_are_asked(n: int, n_columns: int) -> None:
    values = np.random.default_rng(n).integers(-9, 9, (5, n_columns)).astype(np.float64)
    room = np.full((n + 3, n_columns), np.nan)
    _core.sign_sums(values, 3, 0, room[:n])
    assert np.isnan(room[n:]).all()
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    possible = {tuple(row) for row in (signs @ values).tolist()}
    assert {tuple(row) for row in room[:n].tolist()} <= possible
    # Any part is the same, whatever it is made with.
    first = np.empty((n, n_columns))
    for at in range(0, n, 500):
        _core.sign_sums(values, 3, at, first[at : at + 500])
    np.testing.assert_array_equal(first, room[:n])
