"""Measures of ranks with answers beyond their lists: intervals, from the best to the worst case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.table import Interval
from kgtrec.errors import UsageError
from kgtrec.measures.calculator import Calculator
from kgtrec.measures.measure import Measure
from kgtrec.trec.measures.from_ranks import natively

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["ListedCalculator", "calculator_of"]

Floats = NDArray[np.float64]


def calculator_of(ranks: Ranks, trec: Callable[[str], Floats]) -> Calculator:
    """The calculator that the ranks need; `trec` as for `Calculator`."""
    ends = ranks.listed_ends()
    if ends is None:
        return Calculator(ranks, trec)
    return ListedCalculator(ranks, trec, [Calculator(end, natively(end)) for end in ends])


class ListedCalculator(Calculator):
    """A calculator whose values are intervals; as numbers they are those of the ranks' columns.

    There each answer beyond a list has the middle of its places, whatever other answers of the
    question have: of all together that may be worse than any case. Then it is the nearer end.

    Parameters
    ----------
    ranks, trec
        As for `Calculator`.
    ends : two calculators
        Of the ranks if answers beyond their lists come right behind these, and if they come last.
    """

    def __init__(self, ranks: Ranks, trec: Callable[[str], Floats], ends: list[Calculator]) -> None:
        super().__init__(ranks, trec)
        self._ends = ends

    def value(self, measure: Measure) -> float:
        """See `Calculator`; UsageError also for measures of spread, which no ends bound."""
        self._check_bounded(measure)
        return Interval.of(super().value(measure), *(end.value(measure) for end in self._ends))

    def per_relation(self, measure: Measure) -> Any:
        """See `Calculator`; an object array of intervals."""
        self._check_bounded(measure)
        columns = super().per_relation(measure), *(e.per_relation(measure) for e in self._ends)
        intervals = np.empty(len(columns[0]), dtype=object)
        intervals[:] = [Interval.of(*values) for values in zip(*map(np.ndarray.tolist, columns),
                                                               strict=True)]  # fmt: skip
        return intervals

    def part(self, members: NDArray[np.int64], trec: Iterable[str]) -> Calculator:
        """See `Calculator`."""
        names = list(trec)
        whole = super().part(members, names)
        ends = [end.part(members, names) for end in self._ends]
        return ListedCalculator(whole.ranks, whole.per_question, ends)

    def _check_bounded(self, measure: Measure) -> None:
        if measure.is_trec or measure.row[0].higher_is_better is not None:
            return
        if measure.row[0].name != "count":
            raise UsageError(
                f"{measure} has no interval: the ranks of {self.ranks.n_unlisted:,} answers beyond "
                "their lists are open, and a spread need not be greatest or least where they are"
            )
