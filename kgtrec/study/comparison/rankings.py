"""The same systems in several orders: by several sets of labels, or by several measures.

Puts `kgtrec.study.comparison.rank_correlation` into tables; `kgtrec.plots.rankings.bump_chart`
draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.bootstrap import DRAWS, Resampled
from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.rank_correlation import Agreement, over_questions, over_systems
from kgtrec.study.comparison.samples import Samples, resample
from kgtrec.study.comparison.significance import pairs_of

__all__ = ["Rankings", "full_agreement", "rankings_of_samples", "rankings_of_values"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rankings(ShownAsTables):
    """Values of the same systems, from which each ranking follows, and how alike these are.

    Attributes
    ----------
    title : str
        What all rankings have in common: the measure, or nothing.
    names : tuple of str, length k
        Of the rankings.
    systems : tuple of str, length s
    values : ndarray of float64, shape (k, s)
    higher : tuple of bool, length k
        Whether higher is better.
    over_systems : tuple of Agreement
        Of the pairs i < j of rankings, in the order of
        `kgtrec.study.comparison.significance.pairs_of`; systems drawn anew.
    over_questions : tuple of Agreement
        The same, questions drawn anew; empty where values alone are known.
    """

    _shown = ("value_table",)

    title: str
    names: tuple[str, ...]
    systems: tuple[str, ...]
    values: Floats
    higher: tuple[bool, ...]
    over_systems: tuple[Agreement, ...]
    over_questions: tuple[Agreement, ...] = ()

    def agreement(self, first: int, second: int) -> Agreement:
        """Of two of the rankings: over questions if these were drawn, else over systems."""
        pair = [min(first, second), max(first, second)]
        place = pairs_of(len(self.names)).tolist().index(pair)
        return (self.over_questions or self.over_systems)[place]

    def places(self) -> NDArray[np.int64]:
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
        titles = [cell for name in self.names for cell in (name, "place")]
        keys = [cell for name in self.names for cell in (name, f"{name}.place")]
        digits = (0, *(4, 0) * len(self.names))
        return Table(("system", *titles), ("system", *keys), digits, rows)


def full_agreement(rankings: Sequence[Rankings]) -> str:
    """A sentence on what tau = 1 is worth; nothing if no rankings agree in full.

    Drawing systems anew never breaks full agreement, so that its interval is a point, however few
    the systems are. What chance can do is the better guide.
    """
    full = [one for each in rankings for one in each.over_systems if abs(one.tau) == 1]
    if not full:
        return ""
    n = full[0].n_systems
    return (
        f" Where rankings agree in full, drawing systems shows no spread; two random rankings of "
        f"{n} systems agree so with a chance of 1 in {factorial(n):,}."
    )


def rankings_of_samples(
    samples: Mapping[str, Samples],
    title: str = "",
    *,
    resampled: Sequence[Resampled] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> Rankings:
    """Rankings with intervals over questions and over systems.

    Parameters
    ----------
    samples : mapping of str to Samples
        By the names of the rankings: one measure with several sets of labels, or several measures.
    title : str
    resampled : sequence of Resampled, optional
        Draws that are at hand, one a ranking.
    draws, seed, confidence
        Of the intervals. The same questions are drawn for all rankings that are of as many.

    Raises
    ------
    UsageError
        Fewer than three systems or two rankings.
    InputError
        Not the same systems.
    """
    columns = list(samples.values())
    if len({one.systems for one in columns}) > 1:
        raise InputError("these rankings are of different systems; give them all the same ones")
    _check(len(columns), len(columns[0].systems) if columns else 0)
    drawn = resampled or [resample(one, draws, seed) for one in columns]
    higher = [one.higher_is_better for one in columns]
    return _rankings(
        title, list(samples), columns[0].systems, [one.estimate for one in drawn], higher,
        drawn, draws=draws, seed=seed, confidence=confidence,
    )  # fmt: skip


def rankings_of_values(
    values: Mapping[str, ArrayLike],
    systems: Sequence[str],
    title: str = "",
    *,
    lower_is_better: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> Rankings:
    """Rankings by values at hand, such as published ones; intervals over systems alone.

    Parameters
    ----------
    values : mapping of str to array-like of float, shape (s,)
        By the names of the rankings.
    systems : sequence of str, length s
    lower_is_better : sequence of str
        Rankings such as those by MR.

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
        raise InputError(f"values of shapes {shapes} for {len(systems)} systems; give one each")
    higher = [name not in lower_is_better for name in values]
    return _rankings(title, list(values), tuple(systems), rows, higher, None,
                     draws=draws, seed=seed, confidence=confidence)  # fmt: skip


def _check(n_rankings: int, n_systems: int) -> None:
    if n_rankings < 2:
        raise UsageError(f"{n_rankings} ranking has nothing to be held against; give two or more")
    if n_systems < 3:
        raise UsageError(f"{n_systems} systems are too few to rank; give three or more")


def _rankings(
    title: str, names: list[str], systems: tuple[str, ...], values: Sequence[Floats],
    higher: list[bool], drawn: Sequence[Resampled] | None, *, draws: int, seed: int,
    confidence: float,
) -> Rankings:  # fmt: skip
    pairs = pairs_of(len(names)).tolist()
    over = tuple(
        over_systems(
            values[i], values[j], x_higher=higher[i], y_higher=higher[j],
            draws=draws, seed=seed, confidence=confidence,
        )
        for i, j in pairs
    )  # fmt: skip
    by_questions = tuple(
        over_questions(
            drawn[i], drawn[j], x_higher=higher[i], y_higher=higher[j], confidence=confidence
        )
        for i, j in pairs
    ) if drawn else ()  # fmt: skip
    return Rankings(
        title, tuple(names), systems, np.array(values), tuple(higher), over, by_questions
    )
