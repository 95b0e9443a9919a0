"""Orders, numbers and look-ups of integers, against numpy's sorts and plain dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

from kgtrec._internal.csr import contains, finder, numbered, order_by

RANGES = {"small": (0, 5), "digits": (-70_000, 70_000), "wide": (-(2**40), 2**40)}


@pytest.mark.parametrize("low_high", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("n", [0, 1, 2, 1_000, 70_000])
def test_order_is_that_of_a_stable_sort(low_high: tuple[int, int], n: int) -> None:
    rng = np.random.default_rng(n)
    major, minor = rng.integers(0, 3, n), rng.integers(*low_high, n)
    assert np.array_equal(order_by(major, minor), np.lexsort((minor, major)))
    assert np.array_equal(order_by(minor), np.argsort(minor, kind="stable"))


@pytest.mark.parametrize("n", [0, 1, 2, 1_000])
@pytest.mark.parametrize("low_high", RANGES.values(), ids=RANGES)
def test_numbers_are_those_of_unique(low_high: tuple[int, int], n: int) -> None:
    values = np.random.default_rng(n).integers(*low_high, n)
    distinct, place = numbered(values)
    expected = np.unique(values, return_inverse=True)
    assert np.array_equal(distinct, expected[0])
    assert np.array_equal(place, expected[1].reshape(-1))


@pytest.mark.parametrize("n_keys", [0, 3, 900, 40_000], ids="{} keys".format)
@pytest.mark.parametrize("most", [40, 15_000, 1 << 16, 1 << 40], ids="up to {}".format)
@pytest.mark.parametrize("n_ordered", [0, 1, 30, 900], ids="among {}".format)
def test_keys_are_found_where_they_stand(n_ordered: int, most: int, n_keys: int) -> None:
    rng = np.random.default_rng(n_ordered)
    ordered = np.unique(rng.integers(0, most, n_ordered))
    # Keys of the array, others with the same last bits, and any keys.
    keys = np.concatenate([ordered, ordered + (1 << 16), rng.integers(0, 2 * most, n_keys)])
    keys = rng.permutation(np.append(keys, most))
    place = {key: number for number, key in enumerate(ordered.tolist())}
    expected = [place.get(key, -1) for key in keys.tolist()]
    assert contains(ordered, keys).tolist() == [at >= 0 for at in expected]
    for n_expected in (0, len(keys)):  # by search, and by a table if keys are dense
        assert finder(ordered, n_expected)(keys).tolist() == expected
