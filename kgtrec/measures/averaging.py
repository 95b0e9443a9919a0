"""What an averaging counts, and how much each item weighs in it.

============== ===============================================================================
micro          instances, weight 1
macro          questions, by their first answer among question-level candidates
question       instances, weight 1 / (instances of the question)
relation       instances, weight 1 / (instances of the relation on the asked side)
triple         triples, by the mean of the head's and the tail's rank
============== ===============================================================================

``macro_relation`` is made of micro values, and ``stratified`` is native.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.ordering import numbered, order_by
from kgtrec.errors import InputError, UsageError
from kgtrec.measures.random_baseline import Chance, ChanceOf, Tally
from kgtrec.measures.tied_ranks import PairedTies, Ranked, Ties, Values
from kgtrec.questions.sides import NAMES, SIDES

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = [
    "SIDES",
    "Cells",
    "Groups",
    "Weighing",
    "instance_ties",
    "question_rows",
    "question_ties",
    "require_side",
    "sides_present",
]

Ints = NDArray[np.int64]


def sides_present(ranks: Ranks) -> tuple[str, ...]:
    """Side names that the ranks can answer for.

    Raises
    ------
    InputError
        There is no row.
    """
    if not len(ranks.side):
        raise InputError("there are no ranks to average: not one instance was evaluated")
    present = {code for code in range(len(NAMES)) if (ranks.side == code).any()}
    return tuple(name for name, codes in SIDES.items() if present.issuperset(codes))


def require_side(request: object, side: str, present: tuple[str, ...]) -> None:
    """UsageError if what is asked is about a side that the ranks do not hold."""
    if side not in present:
        raise UsageError(
            f"{request} needs the {side} side, but these ranks hold "
            f"{' and '.join(present)} only; ask for {present[-1]}.…"
        )


class Cells:
    """Items sorted into cells of equal (relation, side).

    Parameters
    ----------
    relation, side : int64 array (n,)
        Relation id and side code (0 head, 1 tail, 2 relation) of every item.

    Attributes
    ----------
    relation, side, count : int64 array (cells,)
        What each cell stands for, in ascending (relation, side), and how many items it has.
    """

    def __init__(self, relation: Ints, side: Ints) -> None:
        code = len(NAMES) * np.asarray(relation, np.int64) + side
        self._order = order_by(code)
        code = code[self._order]
        first = np.ones(len(code), bool)
        np.not_equal(code[1:], code[:-1], out=first[1:])
        self._starts = np.flatnonzero(first)
        self.count = np.diff(self._starts, append=len(code))
        self.relation, self.side = np.divmod(code[self._starts], len(NAMES))
        self._groups: dict[tuple[str, bool], Groups] = {}

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
        if (side, False) not in self._groups:
            self._groups[side, False] = [np.flatnonzero(np.isin(self.side, SIDES[side]))]
        return self._groups[side, False]

    def by_relation(self, side: str) -> list[NDArray[np.intp]]:
        """One group per relation that has cells of the side, relations ascending."""
        if (side, True) not in self._groups:
            cells = self.of_side(side)[0]
            breaks = [0, *(np.flatnonzero(np.diff(self.relation[cells])) + 1).tolist(), len(cells)]
            groups = [cells[start:stop] for start, stop in pairwise(breaks)]
            self._groups[side, True] = [group for group in groups if len(group)]
        return self._groups[side, True]


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
    index = numbered(ranks.question)[1]
    order = order_by(index)
    owner = index[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    greater, ahead = ranks.macro_greater[order], ranks.macro_tied_ahead[order]
    fewest = np.minimum.reduceat(greater, starts)[owner]
    ahead = np.where(greater == fewest, ahead, np.iinfo(np.int64).max)
    best = np.flatnonzero(ahead == np.minimum.reduceat(ahead, starts)[owner])
    first = best[np.flatnonzero(np.diff(owner[best], prepend=-1))]
    return order[first], index


def question_ties(ranks: Ranks, rows: Ints, index: Ints) -> Ties:
    """Ties of the questions' best answers among the macro candidates.

    Answers with as many candidates above them as the best one share its tie. Answers without a
    score (NaN counted worst) do not tie with one another: `equal` bounds their number.
    """
    greater, equal = ranks.macro_greater[rows], ranks.macro_equal[rows]
    level = ranks.macro_greater == greater[index]
    answers = np.bincount(index[level], minlength=len(rows)).astype(np.int64)
    return Ties(greater, equal, ranks.macro_tied_ahead[rows], np.minimum(answers, equal + 1))


Floats = NDArray[np.float64]
Groups = list[NDArray[np.intp]]


class Weighing:
    """Items with their ties, weights and numbers of candidates, and sums that are kept.

    Attributes
    ----------
    cells : Cells
        Where the items stand; groups (see `Cells.of_side`) are made of these.
    ties : Ranked
    candidates : array (n,)
        A triple has the mean of its two numbers.
    weight : float64 array (n,) or None
        None: every item weighs 1, and sums of integers are exact.
    """

    def __init__(
        self,
        cells: Cells,
        ties: Ranked,
        candidates: NDArray[np.int64] | Floats,
        weight: Floats | None = None,
    ) -> None:
        self.cells, self.ties = cells, ties
        self.candidates, self.weight = candidates, weight
        self._sums: dict[object, Values] = {}
        self._tallies: dict[bytes, Tally] = {}
        self._chances: dict[object, Chance] = {}

    @classmethod
    def of(cls, ranks: Ranks, averaging: str, side: str) -> Weighing:
        """The items of an averaging; see the module for the names."""
        if averaging == "macro":
            rows, index = question_rows(ranks)
            cells = Cells(ranks.relation[rows], ranks.side[rows])
            return cls(cells, question_ties(ranks, rows, index), ranks.macro_candidates[rows])
        if averaging == "triple":
            return cls._of_triples(ranks)
        cells = Cells(ranks.relation, ranks.side)
        weight = None
        if averaging == "question":
            weight = _one_over_size(ranks.question, np.ones(len(ranks), bool))
        elif averaging == "relation":
            weight = _one_over_size(ranks.relation, np.isin(ranks.side, SIDES[side]))
        return cls(cells, instance_ties(ranks), ranks.candidates, weight)

    @classmethod
    def _of_triples(cls, ranks: Ranks) -> Weighing:
        """Head and tail instances of the same triples, side by side."""
        order = np.lexsort((ranks.side, ranks.triple))
        head, tail = (order[ranks.side[order] == code] for code in SIDES["both"])
        if not np.array_equal(ranks.triple[head], ranks.triple[tail]):
            alone = np.setxor1d(ranks.triple[head], ranks.triple[tail])
            raise InputError(
                f"triple averages need both sides of every triple, and {len(alone):,} triples, "
                f"such as {alone[:1].tolist()}, have one only; evaluate both sides, or take micro"
            )
        ties = instance_ties(ranks)
        candidates = (ranks.candidates[head] + ranks.candidates[tail]) / 2
        cells = Cells(ranks.relation[head], ranks.side[head])
        return cls(cells, PairedTies(ties[head], ties[tail]), candidates)

    def groups(self, side: str) -> Groups:
        """One group: everything on the side."""
        return self.cells.of_side("head" if isinstance(self.ties, PairedTies) else side)

    def by_relation(self, side: str) -> Groups:
        """One group a relation, relations ascending."""
        return self.cells.by_relation("head" if isinstance(self.ties, PairedTies) else side)

    def mean(self, key: object, values: Callable[[], Values], groups: Groups) -> Floats:
        """Weighted mean per group; sums per cell are kept under `key`."""
        totals, scale = self.sums(key, values, groups)
        return np.asarray(totals / (self.total(groups) * scale), np.float64)

    def sums(self, key: object, values: Callable[[], Values], groups: Groups) -> Values:
        """Weighted sum per group, kept as `mean` keeps them."""
        if key not in self._sums:
            per_item = values()
            weighed = per_item.scaled if self.weight is None else per_item.scaled * self.weight
            self._sums[key] = Values(self.cells.sums(weighed), per_item.scale)
        sums = self._sums[key]
        return Values(np.array([sums.scaled[cells].sum() for cells in groups]), sums.scale)

    def total(self, groups: Groups) -> NDArray[np.int64] | Floats:
        """Sum of the weights per group; the number of items where each weighs 1."""
        if self.weight is None:
            per_cell: NDArray[np.int64] | Floats = self.cells.count
        else:
            if "weight" not in self._sums:
                self._sums["weight"] = Values(self.cells.sums(self.weight), 1)
            per_cell = self._sums["weight"].scaled
        return np.array([per_cell[cells].sum() for cells in groups])

    def items(self, group: NDArray[np.intp]) -> tuple[Ranked, Floats | None]:
        """Ties and weights of a group's items."""
        rows = self.cells.rows(group)
        return self.ties[rows], None if self.weight is None else self.weight[rows]

    def chance(self, of: ChanceOf, parameter: float, group: NDArray[np.intp]) -> Chance:
        """What a random scorer gets on a group; kept, as several metrics share it."""
        key = group.tobytes()
        if key not in self._tallies:
            rows = self.cells.rows(group)
            weight = None if self.weight is None else self.weight[rows]
            self._tallies[key] = Tally.of(self.candidates[rows], weight)
        chance_key = of, parameter, key
        if chance_key not in self._chances:
            self._chances[chance_key] = of(self._tallies[key], parameter)
        return self._chances[chance_key]


def _one_over_size(owner: NDArray[np.int64], counted: NDArray[np.bool_]) -> Floats:
    """1 over how many counted rows have the same owner; 0 for those that do not count."""
    _, index = np.unique(owner, return_inverse=True)
    size = np.bincount(index[counted], minlength=int(index.max()) + 1)
    return np.where(counted, 1.0 / np.maximum(size[index], 1), 0.0)
