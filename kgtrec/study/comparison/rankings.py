"""The same systems ranked by several sets of labels, or by several measures, whole or by parts.

`correlation` compares two rankings; this module has the tables of many. Zhou et al. (2022) compare
sparse with complete labels: by relation category and side (Table 3), at the relation ratios of the
sparse labels (Table 4), and at every depth of their pool (Figures 4 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.bootstrap import COMPARING, Resampled, Resampling
from kgtrec._internal.csr import Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.correlation import (
    RankingAgreement,
    agreement_table,
    over_questions,
    over_systems,
)
from kgtrec.study.comparison.parts import WHOLE, SystemValues
from kgtrec.study.comparison.samples import Samples, resample, short_name, table_by_measure
from kgtrec.study.comparison.significance import pairs_of


@dataclass(frozen=True, eq=False)
class Rankings(ShownAsTables):
    """Values of the same systems, which give the rankings, and how well the rankings agree.

    - title: The measure that all rankings share, or nothing.
    - names: Names of the rankings.
    - values: float64 (k, s)
    - higher: Whether higher is better.
    - over_systems: Agreement of the pairs i < j of rankings, in the order of
      `kgtrec.study.comparison.significance.pairs_of`; systems resampled.
    - over_questions: The same, questions resampled; empty if only values are known.
    """

    _shown = ("value_table",)

    title: str
    names: tuple[str, ...]
    systems: tuple[str, ...]
    values: Float64
    higher: tuple[bool, ...]
    over_systems: tuple[RankingAgreement, ...]
    over_questions: tuple[RankingAgreement, ...] = ()

    def agreement(self, first: int, second: int) -> RankingAgreement:
        """For two of the rankings: over questions if these were drawn, else over systems."""
        pair = [min(first, second), max(first, second)]
        place = pairs_of(len(self.names)).tolist().index(pair)
        return (self.over_questions or self.over_systems)[place]

    def places(self) -> Int64:
        """1 and the number of better systems, int64 (k, s); systems that tie share a place."""
        sign = np.where(self.higher, 1.0, -1.0)[:, None]
        signed = sign * self.values
        return 1 + (signed[:, None, :] > signed[:, :, None]).sum(axis=2)

    def value_table(self) -> Table:
        """A row per system, best by the first ranking first: value and place in each ranking."""
        places = self.places()
        order = np.argsort(places[0], kind="stable").tolist()
        rows: list[tuple[Cell, ...]] = [
            (self.systems[i], *(cell for k in range(len(self.names))
                                for cell in (float(self.values[k, i]), int(places[k, i]))))
            for i in order
        ]  # fmt: skip
        columns = [cell for name in self.names
                   for cell in ((name, name, 4), ("place", f"{name}.place", 0))]  # fmt: skip
        return Table.of(["system", *columns], rows)


def full_agreement(rankings: Sequence[Rankings]) -> str:
    """A sentence on what tau = 1 is worth; nothing if no rankings agree in full.

    Resampling systems never breaks full agreement, so its interval is a point, however few the
    systems. The probability of full agreement by chance is the better guide.
    """
    full = [one for each in rankings for one in each.over_systems if abs(one.tau) == 1]
    if not full:
        return ""
    n = full[0].n_systems
    return (
        f" If rankings agree fully, drawing systems shows no spread. Two random rankings of {n} "
        f"systems agree fully with a chance of 1 in {factorial(n):,}."
    )


def rankings_of_samples(
    samples: Mapping[str, Samples],
    title: str = "",
    *,
    resampled: Sequence[Resampled] | None = None,
    resampling: Resampling = COMPARING,
) -> Rankings:
    """Rankings with intervals over questions and over systems.

    Parameters
    ----------
    samples : mapping of str to Samples
        By the names of the rankings: one measure with several sets of labels, or several measures.
    title : str
    resampled : sequence of Resampled, optional
        Existing draws, one per ranking.
    resampling : Resampling
        How to make the intervals. Rankings over equally many questions draw the same ones.

    Raises
    ------
    UsageError
        Fewer than three systems or two rankings.
    InputError
        Not the same systems.
    """
    columns = list(samples.values())
    if len({one.systems for one in columns}) > 1:
        raise InputError("these rankings have different systems; give rankings of the same systems")
    _check(len(columns), len(columns[0].systems) if columns else 0)
    drawn = resampled or [resample(one, resampling) for one in columns]
    higher = [one.higher_is_better for one in columns]
    return _rankings(
        title, list(samples), columns[0].systems, [one.estimate for one in drawn], higher,
        drawn, resampling,
    )  # fmt: skip


def rankings_of_values(
    values: Mapping[str, ArrayLike],
    systems: Sequence[str],
    title: str = "",
    *,
    lower_is_better: Sequence[str] = (),
    resampling: Resampling = COMPARING,
) -> Rankings:
    """Rankings by given values, such as published ones; intervals only over systems.

    Parameters
    ----------
    values : mapping of str to array-like of float, shape (s,)
        By the names of the rankings.
    systems : sequence of str, length s
    lower_is_better : sequence of str
        Rankings such as those by MR.
    resampling : Resampling
        How to make the intervals.

    Raises
    ------
    UsageError
        Fewer than three systems or two rankings.
    InputError
        Values that are not finite, or not one for each system.
    """
    _check(len(values), len(systems))
    rows = [np.asarray(row, np.float64) for row in values.values()]
    if any(row.shape != (len(systems),) for row in rows):
        shapes = ", ".join(str(row.shape) for row in rows)
        raise InputError(
            f"values have shapes {shapes} for {len(systems)} systems; give one value per system"
        )
    higher = [name not in lower_is_better for name in values]
    return _rankings(title, list(values), tuple(systems), rows, higher, None, resampling)


def _check(n_rankings: int, n_systems: int) -> None:
    if n_rankings < 2:
        raise UsageError(f"{n_rankings} ranking cannot be compared; give two or more")
    if n_systems < 3:
        raise UsageError(f"{n_systems} systems are too few to rank; give three or more")


def _rankings(
    title: str, names: list[str], systems: tuple[str, ...], values: Sequence[Float64],
    higher: list[bool], drawn: Sequence[Resampled] | None, resampling: Resampling,
) -> Rankings:  # fmt: skip
    pairs = pairs_of(len(names)).tolist()
    over = tuple(
        over_systems(
            values[i], values[j], x_higher=higher[i], y_higher=higher[j], resampling=resampling
        )
        for i, j in pairs
    )  # fmt: skip
    by_questions = tuple(
        over_questions(drawn[i], drawn[j], x_higher=higher[i], y_higher=higher[j])
        for i, j in pairs
    ) if drawn else ()  # fmt: skip
    return Rankings(
        title, tuple(names), systems, np.array(values), tuple(higher), over, by_questions
    )


@dataclass(frozen=True, eq=False)
class PartRankings(ShownAsTables):
    """How well the rankings of systems by two sets of labels agree, by measure and part.

    - dimensions: What the names of a part mean.
    - parts: The parts that both sets of labels have.
    - systems: The systems that both have.
    - agreements: Intervals over systems; all NaN if a system has no value on the part.
    - left_out: Parts that only one of them has.
    """

    _shown = ("table", "interval_table")

    measures: tuple[str, ...]
    dimensions: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    systems: tuple[str, ...]
    agreements: Mapping[tuple[str, tuple[str, ...]], RankingAgreement]
    left_out: tuple[tuple[str, ...], ...] = ()

    def tau(self, measure: str, part: tuple[str, ...] = WHOLE) -> float:
        """Kendall's tau-b of the two rankings; NaN if a ranking is unknown."""
        return self.agreements[measure, part].tau

    def table(self) -> Table:
        """A row per part: tau-b by every measure, as in Zhou et al., Table 3."""
        taus = [[self.tau(measure, part) for part in self.parts] for measure in self.measures]
        titles = {measure: short_name(measure) for measure in self.measures}
        return table_by_measure(self.dimensions, self.parts, titles, taus, len(self.dimensions))

    def interval_table(self) -> Table:
        """A row per measure and part: tau-b and tau-AP with intervals over systems."""
        names = [(measure, *part) for measure, part in self.agreements]
        return agreement_table(("measure", *self.dimensions), names, self.agreements.values())


def rankings_by_part(
    ours: Sequence[SystemValues],
    theirs: Sequence[SystemValues],
    *,
    resampling: Resampling = COMPARING,
) -> PartRankings:
    """Correlate the rankings of systems by two sets of labels, part by part.

    Parameters
    ----------
    ours, theirs : sequence of SystemValues
        The same measures. Systems and parts that only one of them has are left out. If one has only
        values over all questions, each part of the other is compared with these.
    resampling : Resampling
        How to make the intervals; systems are resampled.

    Raises
    ------
    UsageError
        Other measures or other parts, or fewer than three systems in common.
    """
    measures = [one.measure for one in ours]
    if measures != [one.measure for one in theirs] or not measures:
        raise UsageError(
            "both sets of labels need values of the same measures; give at least one measure"
        )
    systems = shared_systems(ours[0], theirs[0])
    parts, left_out = _shared_parts(ours[0], theirs[0])
    agreements = {}
    for pair in zip(ours, theirs, strict=True):
        one, other = (values.on(systems) for values in pair)
        for part in parts:
            values = [each.parts[part if each.dimensions else WHOLE] for each in (one, other)]
            agreements[one.measure, part] = _agreement(
                values, one.higher_is_better is not False, resampling
            )
    dimensions = ours[0].dimensions or theirs[0].dimensions or ("questions",)
    return PartRankings(
        tuple(measures), dimensions, tuple(parts), systems, agreements, tuple(left_out)
    )


def shared_systems(one: SystemValues, other: SystemValues) -> tuple[str, ...]:
    """Systems of both, in the order of the first."""
    shared = tuple(name for name in one.systems if name in other.systems)
    if len(shared) < 3:
        raise UsageError(
            f"{len(shared)} systems are in both (of {len(one.systems)} and {len(other.systems)}), "
            "too few to rank; give 3 or more that have the same names in both"
        )
    return shared


def _shared_parts(
    one: SystemValues, other: SystemValues
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Parts that both have, and parts that only one has."""
    if not (one.dimensions and other.dimensions):
        return list((one if one.dimensions else other).parts), []
    if len(one.dimensions) != len(other.dimensions):
        raise UsageError(
            f"parts by {one.dimensions} and by {other.dimensions} are different; use the same "
            "columns for both"
        )
    shared = [part for part in one.parts if part in other.parts]
    if not shared:
        raise InputError(
            f"the sets share no part: {', '.join(next(iter(one.parts)))} is in one, "
            f"{', '.join(next(iter(other.parts)))} in the other; give the parts the same names"
        )
    every = dict.fromkeys((*one.parts, *other.parts))
    return shared, [part for part in every if part not in shared]


def _agreement(values: Sequence[Float64], higher: bool, resampling: Resampling) -> RankingAgreement:
    """Agreement with intervals over systems; all NaN if a system has no value."""
    if not all(np.isfinite(row).all() for row in values):
        none = (math.nan, math.nan)
        return RankingAgreement(*none, none, none, resampling, "systems", len(values[0]))
    return over_systems(*values, x_higher=higher, y_higher=higher, resampling=resampling)
