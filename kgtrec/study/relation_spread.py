"""How a metric differs between relations or other groups (Zhou et al. 2022, Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError

__all__ = ["Spread", "spread", "spreads"]

COUNTS = {"count", "questions", "instances", "from", "to"}
"""Columns of sliced tables that are no measures."""

STATISTICS = {
    "min": "low",
    "q1": "q1",
    "median": "median",
    "q3": "q3",
    "max": "high",
    "mean": "mean",
}
"""Names in tables, and the attributes of `Spread`."""


@dataclass(frozen=True)
class Spread:
    """How a metric differs between relations, or other groups (Zhou et al., Figure 6).

    Attributes
    ----------
    names : tuple of str
        The groups.
    values : tuple of float
        The metric of each, not NaN.
    low, q1, median, q3, high, mean : float
        Least value, quartiles (numpy's linear percentiles), largest value, and their mean.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    low: float
    q1: float
    median: float
    q3: float
    high: float
    mean: float


def spread(names: Sequence[str], values: ArrayLike) -> Spread:
    """Quartiles and mean of a metric over groups; groups where it is NaN are left out.

    Raises
    ------
    InputError
        Names and values differ in number, or no value is left.
    """
    numbers = np.asarray(values, np.float64)
    if numbers.shape != (len(names),):
        raise InputError(f"{len(names)} names for values of shape {numbers.shape}; give one each")
    held = ~np.isnan(numbers)
    if not held.any():
        raise InputError("no group has a value, so there is no distribution over groups")
    finite = numbers[held]
    low, q1, median, q3, high = np.percentile(finite, (0, 25, 50, 75, 100)).tolist()
    return Spread(
        tuple(str(name) for name, keep in zip(names, held, strict=True) if keep),
        tuple(finite.tolist()),
        low,
        q1,
        median,
        q3,
        high,
        float(finite.mean()),
    )


def spreads(table: Table) -> Table:
    """Quartiles and mean of each measure of a sliced table over its groups.

    Parameters
    ----------
    table : Table
        From `Result.slice`.

    Returns
    -------
    Table
        Rows min, q1, median, q3, max, mean, and groups (how many have a value); the measures of
        `table` as columns, without its numbers of questions and instances.

    Raises
    ------
    InputError
        No group has a value.
    """
    names = [" ".join(map(str, row[: table.names])) for row in table.rows]
    positions = [i for i, key in enumerate(table.keys) if i >= table.names and key not in COUNTS]
    columns = [spread(names, [float(row[i]) for row in table.rows]) for i in positions]
    rows: list[tuple[Cell, ...]] = [
        (name, *(getattr(one, field) for one in columns)) for name, field in STATISTICS.items()
    ]
    rows.append(("groups", *(len(one.names) for one in columns)))
    titles, keys = (
        ("over groups", *(heads[i] for i in positions)) for heads in (table.titles, table.keys)
    )
    return Table(titles, keys, (0, *(table.digits[i] for i in positions)), rows)
