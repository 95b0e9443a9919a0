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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError
from kgtrec.measures.random_baseline import Chance, ChanceOf, Tally
from kgtrec.measures.sample import (
    SIDES,
    Cells,
    instance_ties,
    question_rows,
    question_ties,
)
from kgtrec.measures.tied_ranks import PairedTies, Ranked, Values

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["Groups", "Weighing"]

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
            found = values()
            weighed = found.scaled if self.weight is None else found.scaled * self.weight
            self._sums[key] = Values(self.cells.sums(weighed), found.scale)
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
        asked = of, parameter, key
        if asked not in self._chances:
            self._chances[asked] = of(self._tallies[key], parameter)
        return self._chances[asked]


def _one_over_size(owner: NDArray[np.int64], counted: NDArray[np.bool_]) -> Floats:
    """1 over how many counted rows have the same owner; 0 for those that do not count."""
    _, index = np.unique(owner, return_inverse=True)
    size = np.bincount(index[counted], minlength=int(index.max()) + 1)
    return np.where(counted, 1.0 / np.maximum(size[index], 1), 0.0)
