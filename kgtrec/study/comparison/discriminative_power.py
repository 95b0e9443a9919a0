"""Which measure tells systems apart? Sorted p-values of all pairs, and the area under them.

Sakai's (2006) discriminative power as Zhou et al. (2022, section 5.1, Figure 8) use it: a measure
that gives many pairs of systems small p-values on the same questions is the more sensitive one.
That it finds differences does not make them the right ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError
from kgtrec.study.comparison.samples import Samples, distinct_titles
from kgtrec.study.comparison.significance import PERMUTATIONS, corrected, pairwise

__all__ = ["Discrimination", "discriminate", "discrimination_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Discrimination(ShownAsTables):
    """p-values of all pairs of systems, a curve for each measure.

    Attributes
    ----------
    measures, titles : tuple of str, length m
    p : ndarray of float64, shape (m, pairs)
        Uncorrected, sorted descending.
    test, correction : str
        The correction is for counting significant pairs, not for the curves.
    """

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    p: Floats
    test: str
    correction: str = "holm"

    @property
    def area(self) -> Floats:
        """Area under each curve over the share of pairs: the mean p-value, in (0, 1], float64 (m,).

        The smaller, the more discriminative; 0.5 is what systems that are all alike give.
        """
        return self.p.mean(axis=1)

    def table(self, level: float = 0.05) -> Table:
        """A row per measure, the most discriminative first: area and significant pairs."""
        pairs, rows = self.p.shape[1], []
        for name, title, p, area in zip(
            self.measures, self.titles, self.p, self.area.tolist(), strict=True
        ):
            significant = int((corrected(p, self.correction) < level).sum())
            rows.append((title, name, area, int((p < level).sum()), significant, pairs))
        rows.sort(key=lambda row: (row[2], row[1]))
        named: list[tuple[Cell, ...]] = [(row[0], *row[2:]) for row in rows]
        titles = ("measure", "area", f"p < {level:g}", f"{self.correction} < {level:g}", "pairs")
        keys = ("measure", "area", "significant", "significant.corrected", "pairs")
        return Table(titles, keys, (0, 4, 0, 0, 0), named)

    def curves(self) -> Table:
        """A row per place, the largest p-value first, and a column per measure."""
        rows: list[tuple[Cell, ...]] = [
            (str(place), *column) for place, column in enumerate(self.p.T.tolist(), start=1)
        ]
        digits = (0, *(4,) * len(self.measures))
        return Table(("pair", *self.titles), ("pair", *self.measures), digits, rows)


def discriminate(
    samples: Sequence[Samples],
    test: str = "t",
    *,
    correction: str = "holm",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Discrimination:
    """Discriminative power of measures.

    Parameters
    ----------
    samples : sequence of Samples
        Measures of the same systems.
    test, correction, permutations, seed
        As for `kgtrec.study.comparison.significance.pairwise`; the paper takes the t-test.

    Raises
    ------
    InputError
        Nothing given, or other systems in one of them.
    """
    if not samples:
        raise InputError("no measure to compare; give the samples of one at least")
    for one in samples:
        if one.systems != samples[0].systems:
            raise InputError(f"{one.name} and {samples[0].name} are of different systems")
    p_values = {
        one.name: pairwise(one, test, "none", permutations=permutations, seed=seed).p
        for one in samples
    }
    titles = [one.title if one.unit == "queries" else f"{one.title} ({one.unit})"
              for one in samples]  # fmt: skip
    titles = list(distinct_titles(titles, [one.name for one in samples]))
    return discrimination_of(p_values, test, correction=correction, titles=titles)


def discrimination_of(
    p: Mapping[str, ArrayLike],
    test: str = "t",
    *,
    correction: str = "holm",
    titles: Sequence[str] | None = None,
) -> Discrimination:
    """The same from p-values at hand, such as published ones: one row of all pairs a measure.

    Raises
    ------
    InputError
        p-values outside [0, 1], or not equally many for all.
    """
    rows = [np.asarray(values, np.float64) for values in p.values()]
    if not rows or len({row.shape for row in rows}) > 1 or rows[0].ndim != 1 or not len(rows[0]):
        raise InputError("give every measure one p-value for each of the same pairs of systems")
    whole = np.array(rows)
    if not ((whole >= 0) & (whole <= 1)).all():
        raise InputError("a p-value does not lie between 0 and 1")
    curves = -np.sort(-whole, axis=1)
    return Discrimination(tuple(p), tuple(titles or p), curves, test, correction)
