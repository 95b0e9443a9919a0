"""Sums of a metric over cells (relation x side), from which every average follows.

One pass over the items of a metric gives a small table of sums. Micro values, the mean over
relations, and the values of every slice by side or relation are read from that table, so asking
for one more of them costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, UsageError
from kgtrec.measures.tied_ranks import Ties

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = [
    "SIDES",
    "Cells",
    "instance_ties",
    "question_rows",
    "question_ties",
    "require_side",
    "sides_present",
]

Ints = NDArray[np.int64]

SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}
"""Codes of the sides that a side name covers."""


def sides_present(ranks: Ranks) -> tuple[str, ...]:
    """Side names that the ranks can answer for.

    Raises
    ------
    InputError
        There is no row.
    """
    if not len(ranks.side):
        raise InputError("there are no ranks to average: not one instance was evaluated")
    present = {code for code in SIDES["both"] if (ranks.side == code).any()}
    return tuple(name for name, codes in SIDES.items() if present.issuperset(codes))


def require_side(asked: object, side: str, present: tuple[str, ...]) -> None:
    """UsageError if what is asked is about a side that the ranks do not hold."""
    if side not in present:
        raise UsageError(
            f"{asked} needs the {side} side, but these ranks hold "
            f"{' and '.join(present)} only; ask for {present[-1]}.…"
        )


class Cells:
    """Items sorted into cells of equal (relation, side).

    Parameters
    ----------
    relation, side : int64 array (n,)
        Relation id and side code (0 head, 1 tail) of every item.

    Attributes
    ----------
    relation, side, count : int64 array (cells,)
        What each cell stands for, in ascending (relation, side), and how many items it has.
    """

    def __init__(self, relation: Ints, side: Ints) -> None:
        code = 2 * np.asarray(relation, np.int64) + side
        self._order = np.argsort(code, kind="stable")
        cell, self._starts, self.count = np.unique(
            code[self._order], return_index=True, return_counts=True
        )
        self.relation, self.side = cell // 2, cell % 2

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of `values` (n,) per cell; int64 sums are exact, float64 sums pairwise."""
        return np.add.reduceat(values[self._order], self._starts)

    def rows(self, group: NDArray[np.intp]) -> NDArray[np.intp]:
        """The items of a group of cells, in the order of the cells."""
        ends = self._starts + self.count
        parts = [self._order[self._starts[cell] : ends[cell]] for cell in group.tolist()]
        return np.concatenate(parts) if parts else self._order[:0]

    def of_side(self, side: str) -> list[NDArray[np.intp]]:
        """One group: all cells of the side."""
        return [np.flatnonzero(np.isin(self.side, SIDES[side]))]

    def by_relation(self, side: str) -> list[NDArray[np.intp]]:
        """One group per relation that has cells of the side, relations ascending."""
        cells = self.of_side(side)[0]
        breaks = np.flatnonzero(np.diff(self.relation[cells])) + 1
        return [group for group in np.split(cells, breaks) if len(group)]


def instance_ties(ranks: Ranks) -> Ties:
    """Ties of the instances among their micro candidates."""
    return Ties(ranks.greater, ranks.equal, ranks.tied_ahead, np.ones_like(ranks.greater))


def question_rows(ranks: Ranks) -> tuple[Ints, Ints]:
    """Row of each question's best answer (lowest ordinal macro rank), and the question per row.

    Returns
    -------
    rows : int64 array (questions,)
        In ascending question number.
    index : int64 array (n,)
        Position in `rows` of the question that each row of `ranks` belongs to.
    """
    order = np.lexsort((ranks.macro_tied_ahead, ranks.macro_greater, ranks.question))
    question = ranks.question[order]
    starts = np.flatnonzero(np.diff(question, prepend=question[0] - 1))
    index = np.empty(len(order), np.int64)
    index[order] = np.cumsum(np.diff(question, prepend=question[0]) != 0)
    return order[starts], index


def question_ties(ranks: Ranks, rows: Ints, index: Ints) -> Ties:
    """Ties of the questions' best answers among the macro candidates.

    Answers with as many candidates above them as the best one share its tie. Answers without a
    score (NaN counted worst) do not tie with one another: `equal` bounds their number.
    """
    greater, equal = ranks.macro_greater[rows], ranks.macro_equal[rows]
    level = ranks.macro_greater == greater[index]
    answers = np.bincount(index[level], minlength=len(rows)).astype(np.int64)
    return Ties(greater, equal, ranks.macro_tied_ahead[rows], np.minimum(answers, equal + 1))
