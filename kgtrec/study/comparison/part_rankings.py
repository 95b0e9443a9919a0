"""Do two sets of labels rank systems alike on every part of the questions?

Zhou et al. (2022) ask it of sparse and of complete labels: by relation category and side (Table 3),
at the relation ratios of the sparse ones (Table 4), and at every depth of their pool (Figures 4 and
5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import DRAWS
from kgtrec._internal.notebook import ShownAsTables, ShownInLines
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.parts import PartValues
from kgtrec.study.comparison.rank_correlation import Agreement, over_systems
from kgtrec.study.comparison.samples import short_name

__all__ = ["WHOLE", "PartRankings", "SystemValues", "rankings_by_part", "shared_systems",
           "values_of_parts"]  # fmt: skip

Floats = NDArray[np.float64]

WHOLE = ("all",)
"""The part that is all questions."""


@dataclass(frozen=True, eq=False)
class SystemValues(ShownInLines):
    """Systems by one measure, on each part of the questions.

    Attributes
    ----------
    measure : str
        Its key, or the heading under which it was published.
    systems : tuple of str
    parts : mapping of tuple of str to float64 array (n_systems,)
        By the names of the part; NaN where a system has no value.
    dimensions : tuple of str
        What the names of a part are; empty where the only part is all questions.
    higher_is_better : bool
    """

    measure: str
    systems: tuple[str, ...]
    parts: Mapping[tuple[str, ...], Floats]
    dimensions: tuple[str, ...] = ()
    higher_is_better: bool = True

    def _lines(self) -> tuple[str, str]:
        by = f" by {', '.join(self.dimensions)}" if self.dimensions else ""
        return (
            f"{self.measure}: {len(self.systems):,} systems on {len(self.parts):,} parts{by}",
            ", ".join(self.systems),
        )

    @classmethod
    def of(
        cls,
        measure: str,
        parts: Mapping[tuple[str, ...], Mapping[str, float]],
        dimensions: tuple[str, ...],
        higher_is_better: bool,
    ) -> SystemValues:
        """From values by part and system; a system that a part lacks has no value there."""
        systems = tuple(dict.fromkeys(name for values in parts.values() for name in values))
        rows = {
            part: np.array([values.get(name, math.nan) for name in systems])
            for part, values in parts.items()
        }
        return cls(measure, systems, rows, dimensions, higher_is_better)

    def on(self, systems: Sequence[str]) -> SystemValues:
        """The same of some of the systems, in this order."""
        places = [self.systems.index(name) for name in systems]
        rows = {part: values[places] for part, values in self.parts.items()}
        return SystemValues(
            self.measure, tuple(systems), rows, self.dimensions, self.higher_is_better
        )


def values_of_parts(one: PartValues) -> SystemValues:
    """What `values_by_part` and `values_by_ratios` give, by part."""
    table, first = one.table, list(one.table.keys).index(one.systems[0])
    rows = {
        tuple(map(str, row[: table.names])): np.array(row[first : first + len(one.systems)], float)
        for row in table.rows
    }
    dimensions = tuple(table.keys[: table.names])
    higher = one.measure.is_trec or bool(one.measure.row[0].higher_is_better)
    return SystemValues(one.measure.key, one.systems, rows, dimensions, higher)


@dataclass(frozen=True, eq=False)
class PartRankings(ShownAsTables):
    """How alike two sets of labels rank systems, by measure and part.

    Attributes
    ----------
    measures : tuple of str
    dimensions : tuple of str
        What the names of a part are.
    parts : tuple of tuple of str
        Those that both sets of labels have.
    systems : tuple of str
        Those that both have.
    agreements : mapping of (measure, part) to Agreement or None
        Intervals over systems; None where a system has no value on the part.
    left_out : tuple of tuple of str
        Parts that one of both lacks.
    """

    _shown = ("table", "interval_table")

    measures: tuple[str, ...]
    dimensions: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    systems: tuple[str, ...]
    agreements: Mapping[tuple[str, tuple[str, ...]], Agreement | None]
    left_out: tuple[tuple[str, ...], ...] = ()

    def tau(self, measure: str, part: tuple[str, ...] = WHOLE) -> float:
        """Kendall's tau-b of the two rankings; NaN where they cannot be told."""
        one = self.agreements[measure, part]
        return math.nan if one is None else one.tau

    def table(self) -> Table:
        """A row a part: tau-b by every measure, as in Zhou et al., Table 3."""
        rows: list[tuple[Cell, ...]] = [
            (*part, *(self.tau(measure, part) for measure in self.measures)) for part in self.parts
        ]
        titles = (*self.dimensions, *map(short_name, self.measures))
        digits = (*(0,) * len(self.dimensions), *(4,) * len(self.measures))
        keys = (*self.dimensions, *self.measures)
        return Table(titles, keys, digits, rows, len(self.dimensions))

    def interval_table(self) -> Table:
        """A row a measure and part: tau-b and tau-AP with intervals over systems."""
        rows: list[tuple[Cell, ...]] = []
        for (measure, part), one in self.agreements.items():
            blank = (math.nan,) * 6
            ends = one and (one.tau, *one.tau_interval, one.tau_ap, *one.tau_ap_interval)
            rows.append((measure, *part, len(self.systems), *(ends or blank)))
        heads = ("measure", *self.dimensions, "systems")
        taus = ("tau-b", "low", "high", "tau-AP", "low", "high")
        keys = ("tau_b", "tau_b.low", "tau_b.high", "tau_ap", "tau_ap.low", "tau_ap.high")
        digits = (*(0,) * len(heads), *(4,) * len(taus))
        names = 1 + len(self.dimensions)
        return Table((*heads, *taus), (*heads, *keys), digits, rows, names)


def rankings_by_part(
    ours: Sequence[SystemValues],
    theirs: Sequence[SystemValues],
    *,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> PartRankings:
    """Correlate the rankings of systems by two sets of labels, part by part.

    Parameters
    ----------
    ours, theirs : sequence of SystemValues
        The same measures. Systems and parts that one of both lacks are left out. Where one of both
        has values of all questions only, each part of the other is held against these.
    draws, seed, confidence
        Of the intervals, from drawing the systems anew.

    Raises
    ------
    UsageError
        Other measures or other parts, or fewer than three systems in common.
    """
    measures = [one.measure for one in ours]
    if measures != [one.measure for one in theirs] or not measures:
        raise UsageError("both sets of labels need values by the same measures, one at least")
    systems = shared_systems(ours[0], theirs[0])
    parts, left_out = _shared_parts(ours[0], theirs[0])
    agreements = {}
    for mine, its in zip(ours, theirs, strict=True):
        one, other = mine.on(systems), its.on(systems)
        for part in parts:
            values = [each.parts[part if each.dimensions else WHOLE] for each in (one, other)]
            agreements[one.measure, part] = _agreement(
                values, one.higher_is_better, draws, seed, confidence
            )
    dimensions = ours[0].dimensions or theirs[0].dimensions or ("questions",)
    return PartRankings(
        tuple(measures), dimensions, tuple(parts), systems, agreements, tuple(left_out)
    )


def shared_systems(one: SystemValues, other: SystemValues) -> tuple[str, ...]:
    """Systems of both, in the order of the first.

    Raises
    ------
    UsageError
        Fewer than three.
    """
    shared = tuple(name for name in one.systems if name in other.systems)
    if len(shared) < 3:
        raise UsageError(
            f"{len(shared)} systems are in both (of {len(one.systems)} and {len(other.systems)}), "
            "too few to rank; give 3 or more, of the same names"
        )
    return shared


def _shared_parts(
    one: SystemValues, other: SystemValues
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Parts of both, and those of one alone."""
    if not (one.dimensions and other.dimensions):
        return list((one if one.dimensions else other).parts), []
    if len(one.dimensions) != len(other.dimensions):
        raise UsageError(f"parts by {one.dimensions} and by {other.dimensions} are not the same")
    shared = [part for part in one.parts if part in other.parts]
    if not shared:
        raise InputError(
            f"no part is in both: {', '.join(next(iter(one.parts)))} is in one, "
            f"{', '.join(next(iter(other.parts)))} in the other; are they named alike?"
        )
    every = dict.fromkeys((*one.parts, *other.parts))
    return shared, [part for part in every if part not in shared]


def _agreement(
    values: Sequence[Floats], higher: bool, draws: int, seed: int, confidence: float
) -> Agreement | None:
    if not all(np.isfinite(row).all() for row in values):
        return None
    return over_systems(
        *values, x_higher=higher, y_higher=higher, draws=draws, seed=seed, confidence=confidence
    )
