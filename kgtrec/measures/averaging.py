"""Items and weights of each averaging.

============== ===============================================================================
micro          instances, weight 1
macro          questions, by their first answer among question-level candidates
question       instances, weight 1 / (instances of the question)
group          as question, within each group of questions with the same value of a term
relation       instances, weight 1 / (instances of the relation on the asked side)
triple         triples, by the mean of the head's and the tail's rank
============== ===============================================================================

``macro_relation`` averages micro values, and ``stratified`` is native. Both, and ``group``,
average over groups of cells with the same relation or value of the term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arrays import Array, Bools, Float64, Indices, Int64
from kgtrec._internal.csr import order_by, position_type
from kgtrec.errors import InputError, UsageError
from kgtrec.measures.random_baseline import Chance, ChanceOf, Tally
from kgtrec.measures.ties import PairedTies, Ranked, Scaled, Ties
from kgtrec.questions.terms import NAMES, SIDES

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


_ITEMS = 1 << 18
"""Items processed together: never all in memory, unless one relation has most of them."""


def sides_present(ranks: Ranks) -> tuple[str, ...]:
    """Return the names of the sides that the ranks cover; InputError if there are no ranks."""
    if not len(ranks):
        raise InputError("there are no ranks to average; evaluate at least one instance")

    def present() -> tuple[str, ...]:
        codes = {code for code in range(len(NAMES)) if (ranks.side == code).any()}
        return tuple(name for name, members in SIDES.items() if codes.issuperset(members))

    sides: tuple[str, ...] = ranks.compute_once("sides", present)
    return sides


def require_side(request: object, side: str, present: tuple[str, ...]) -> str:
    """Return the side by its name in the ranks: "both" of a graph is "all" of other questions.

    UsageError if the request is about a side that the ranks do not hold.
    """
    if side == "both" and present == ("all",):
        return "all"
    if side == "all" and "both" in present:
        return "both"
    if side not in present:
        meant = ""
        if side == "relation":  # it is also the name of an averaging
            meant = (
                "; for the average in which relations count equally, write the side too: "
                f"{present[-1]}.relation.METRIC"
            )
        raise UsageError(
            f"{request} needs the {side} side, but these ranks have only "
            f"{' and '.join(present)}; ask for {present[-1]}.…{meant}"
        )
    return side


def require_graph(request: object, ranks: Ranks) -> None:
    """Raise UsageError if the request needs triples but the ranks' questions have no graph."""
    if not ranks.of_graph:
        known = ", ".join(ranks.provenance.terms) or "none"
        raise UsageError(
            f"{request} needs relations or triples, but these questions are not of a graph; "
            f"group.METRIC(TERM) averages over the values of a term ({known})"
        )


class Cells:
    """Items sorted into cells of equal (relation, side).

    - relation, side, int64 (n,): Relation id and side code (0 head, 1 tail, 2 relation) of every
      item.
    - relation, side, count, int64 (cells,): Relation, side and number of items of each cell, in
      ascending (relation, side).
    """

    def __init__(self, relation: Int64, side: Int64) -> None:
        most = len(NAMES) * (int(relation.max(initial=0)) + 1)
        code = relation.astype(position_type(most))
        code *= len(NAMES)
        code += side.astype(code.dtype)
        order = order_by(code)
        code = code[order]
        self._order = order.astype(position_type(len(order)), copy=False)
        first = np.ones(len(code), bool)
        np.not_equal(code[1:], code[:-1], out=first[1:])
        self._starts = np.flatnonzero(first)
        self.count = np.diff(self._starts, append=len(code))
        self.relation, self.side = np.divmod(code[self._starts].astype(np.int64), len(NAMES))
        self._groups: dict[tuple[str, bool], Groups] = {}

    @classmethod
    def from_ranks(cls, ranks: Ranks) -> Cells:
        """Sort all instances into cells; computed once per ranks."""
        cells: Cells = ranks.compute_once("cells", lambda: cls(ranks.relation, ranks.side))
        return cells

    def pieces(self, size: int) -> Iterator[slice]:
        """Yield slices of adjacent cells with at most `size` items, or of one larger cell."""
        ends, first = self._starts + self.count, 0
        while first < len(ends):
            last = int(np.searchsorted(ends, self._starts[first] + size, side="right"))
            yield slice(first, first := max(first + 1, last))

    def rows_of(self, piece: slice) -> Indices:
        """Return the items of adjacent cells, cell by cell, as indices."""
        last = piece.stop - 1
        rows = self._order[self._starts[piece.start] : self._starts[last] + self.count[last]]
        return rows.astype(np.intp)  # once, not for every column that they index

    def sums(self, piece: slice, values: Array) -> Array:
        """Sum the values of `rows_of` per cell; int64 sums are exact, float64 sums pairwise."""
        return np.add.reduceat(values, self._starts[piece] - self._starts[piece.start])

    def all_sums(self, values: Array) -> Array:
        """Sum the values of all items, in the items' order, per cell."""
        return np.add.reduceat(values[self._order], self._starts)

    def rows(self, group: Indices) -> Indices:
        """Return the items of a group of cells, as indices in the order of the cells."""
        ends = self._starts + self.count
        parts = [self._order[self._starts[cell] : ends[cell]] for cell in group.tolist()]
        return np.concatenate(parts) if parts else self._order[:0]

    def of_side(self, side: str) -> list[Indices]:
        """Return one group with all cells of the side."""
        if (side, False) not in self._groups:
            self._groups[side, False] = [np.flatnonzero(np.isin(self.side, SIDES[side]))]
        return self._groups[side, False]

    def by_relation(self, side: str) -> list[Indices]:
        """Return one group per relation that has cells of the side, relations ascending."""
        if (side, True) not in self._groups:
            cells = self.of_side(side)[0]
            breaks = [0, *(np.flatnonzero(np.diff(self.relation[cells])) + 1).tolist(), len(cells)]
            groups = [cells[start:stop] for start, stop in pairwise(breaks)]
            self._groups[side, True] = [group for group in groups if len(group)]
        return self._groups[side, True]


def instance_ties(ranks: Ranks) -> Ties:
    """Return the ties of the instances among their micro candidates."""
    # The ones take no memory.
    ones = ranks.compute_once("ones", lambda: np.broadcast_to(np.int64(1), len(ranks)))
    counts = ranks.greater, ranks.equal, ranks.tied_ahead, ones
    return Ties(*counts, ranks.candidates, ranks.unlisted)


def question_rows(ranks: Ranks) -> tuple[Int64, Int64]:
    """Find the best answer of each question: that with the lowest ordinal macro rank.

    Processes some questions at a time. Returns the answers' rows and, per question, the number of
    answers with as many candidates above them; both int64 (questions,), by question number.
    """
    question, n = ranks.question, len(ranks.question)
    order = None if (question[1:] >= question[:-1]).all() else order_by(question)
    rows, level, start = [], [], 0
    while start < n:
        last = min(start + _ITEMS, n) - 1
        last = last if order is None else order[last]
        stop = int(np.searchsorted(question, question[last], side="right", sorter=order))
        at = slice(start, stop) if order is None else order[start:stop]
        first, counts = _first_answers(
            question[at], ranks.macro_greater[at], ranks.macro_tied_ahead[at]
        )
        rows.append(start + first if order is None else order[start:stop][first])
        level.append(counts)
        start = stop
    return np.concatenate(rows), np.concatenate(level)


def _first_answers(question: Int64, greater: Int64, ahead: Int64) -> tuple[Int64, Int64]:
    """Do the work of `question_rows` for rows that are sorted by question."""
    begins = np.ones(len(question), bool)
    np.not_equal(question[1:], question[:-1], out=begins[1:])
    starts, index = np.flatnonzero(begins), np.cumsum(begins) - 1
    among = greater == np.minimum.reduceat(greater, starts)[index]
    ahead = np.where(among, ahead, np.iinfo(np.int64).max)
    best = np.flatnonzero(ahead == np.minimum.reduceat(ahead, starts)[index])
    first = best[np.flatnonzero(np.diff(index[best], prepend=-1))]
    return first, np.add.reduceat(among.astype(np.int64), starts)


def question_ties(ranks: Ranks, rows: Int64, level: Int64) -> Ties:
    """Return the ties of the questions' best answers among the macro candidates.

    `rows` and `level` are those of `question_rows`.

    Answers with as many candidates above them as the best one share its tie. Answers without a
    score (NaN counted worst) do not tie with each other: `equal` bounds their number.
    """
    equal = ranks.macro_equal[rows]
    answers = np.minimum(level, equal + 1)
    counts = ranks.macro_greater[rows], equal, ranks.macro_tied_ahead[rows], answers
    return Ties(*counts, ranks.macro_candidates[rows])


Groups = list[Indices]
ValuesOf = Callable[[Ranked, Any], Scaled]


class Weighing:
    """Items with their ties, weights and numbers of candidates, and cached sums.

    - cells, Cells: The items' cells, which form groups (see `Cells.of_side`).
    - ties: Ranked
    - candidates, (n,): For a triple the mean of its two numbers.
    - weight, float64 (n,) or None: If None, every item weighs 1, and sums of integers are exact.
    """

    def __init__(
        self,
        cells: Cells,
        ties: Ranked,
        candidates: Int64 | Float64,
        weight: Float64 | None = None,
    ) -> None:
        self.cells, self.ties = cells, ties
        self.candidates, self.weight = candidates, weight
        self._sums: dict[object, Scaled] = {}
        self._tallies: dict[bytes, Tally] = {}
        self._chances: dict[object, Chance] = {}

    @classmethod
    def from_ranks(
        cls, ranks: Ranks, averaging: str, side: str, group: Int64 | None = None
    ) -> Weighing:
        """Prepare the items of an averaging. ``group`` holds ids that replace relations."""
        if averaging == "macro":
            rows, level = question_rows(ranks)
            cells = Cells((ranks.relation if group is None else group)[rows], ranks.side[rows])
            return cls(cells, question_ties(ranks, rows, level), ranks.macro_candidates[rows])
        if averaging == "triple":
            return cls._from_triples(ranks)
        cells = Cells.from_ranks(ranks) if group is None else Cells(group, ranks.side)
        weight = None
        if averaging == "question":
            owner = ranks.question if group is None else _pair_numbers(ranks.question, group)
            weight = _one_over_size(owner, np.ones(len(ranks), bool))
        elif averaging == "relation":
            weight = _one_over_size(ranks.relation, np.isin(ranks.side, SIDES[side]))
        return cls(cells, instance_ties(ranks), ranks.candidates, weight)

    @classmethod
    def _from_triples(cls, ranks: Ranks) -> Weighing:
        """Pair the head and tail instances of the same triples."""
        order = np.lexsort((ranks.side, ranks.triple))
        head, tail = (order[ranks.side[order] == code] for code in SIDES["both"])
        if not np.array_equal(ranks.triple[head], ranks.triple[tail]):
            alone = np.setxor1d(ranks.triple[head], ranks.triple[tail])
            raise InputError(
                f"triple averages need both sides of every triple, and {len(alone):,} triples, "
                f"such as {alone[:1].tolist()}, have only one; evaluate both sides, or use micro"
            )
        ties = instance_ties(ranks)
        candidates = (ranks.candidates[head] + ranks.candidates[tail]) / 2
        cells = Cells(ranks.relation[head], ranks.side[head])  # its side is in "both", as asked
        return cls(cells, PairedTies(ties[head], ties[tail]), candidates)

    def mean(
        self, key: object, values: ValuesOf, groups: Groups, *, at_once: bool = False
    ) -> Float64:
        """Average the values per group of cells; sums per cell are cached under `key`."""
        totals, scale = self.sums(key, values, groups, at_once=at_once)
        return np.asarray(totals / (self.total(groups) * scale), np.float64)

    def sums(
        self, key: object, values: ValuesOf, groups: Groups, *, at_once: bool = False
    ) -> Scaled:
        """Sum the weighted values per group of cells, cached as in `mean`.

        ``values`` computes the values of some items from their ties and rows; with ``at_once`` of
        all items, if the scale depends on all of them.
        """
        if key not in self._sums and (at_once or len(self.ties) <= _ITEMS):
            scaled, scale = values(self.ties, slice(None))
            sums = self.cells.all_sums(self._apply_weights(scaled, slice(None)))
            self._sums[key] = Scaled(sums, scale)
        elif key not in self._sums:
            parts, scale = [], 1
            for piece in self.cells.pieces(_ITEMS):
                rows = self.cells.rows_of(piece)
                scaled, scale = values(self.ties[rows], rows)
                parts.append(self.cells.sums(piece, self._apply_weights(scaled, rows)))
            self._sums[key] = Scaled(np.concatenate(parts), scale)
        per_cell, scale = self._sums[key]
        return Scaled(_per_group(per_cell, groups), scale)

    def _apply_weights(self, values: Array, rows: Any) -> Array:
        """Multiply the values of some items by their weights."""
        return values if self.weight is None else values * self.weight[rows]

    def total(self, groups: Groups) -> Int64 | Float64:
        """Sum the weights per group; without weights, count the items."""
        if self.weight is None:
            return _per_group(self.cells.count, groups)
        return self.sums("weight", lambda ties, _: Scaled(np.ones(len(ties)), 1), groups).scaled

    def items(self, group: Indices) -> tuple[Ranked, Float64 | None]:
        """Return the ties and the weights of a group's items."""
        rows = self.cells.rows(group)
        return self.ties[rows], None if self.weight is None else self.weight[rows]

    def chance(self, compute: ChanceOf, parameter: float, group: Indices) -> Chance:
        """Compute the chance level of a group; cached, because several metrics share it."""
        key = group.tobytes()
        if key not in self._tallies:
            rows = self.cells.rows(group)
            weight = None if self.weight is None else self.weight[rows]
            self._tallies[key] = Tally.from_items(self.candidates[rows], weight)
        chance_key = compute, parameter, key
        if chance_key not in self._chances:
            self._chances[chance_key] = compute(self._tallies[key], parameter)
        return self._chances[chance_key]


def _per_group(per_cell: Array, groups: Groups) -> Array:
    """Add the cells of each group.

    A single group is summed pairwise. Relations are summed in order, as they have a cell per side.
    """
    if len(groups) == 1:
        return np.add.reduce(per_cell[groups[0]], keepdims=True)
    if not groups:
        return per_cell[:0]
    starts = np.cumsum([0, *map(len, groups[:-1])])
    return np.add.reduceat(per_cell[np.concatenate(groups)], starts)


def _pair_numbers(first: Int64, second: Int64) -> Int64:
    """Return one number per pair, equal only for equal pairs, int64 (n,)."""
    low = int(second.min(initial=0))
    return first * (int(second.max(initial=0)) - low + 1) + (second - low)


def _one_over_size(owner: Int64, counted: Bools) -> Float64:
    """Return 1 / (number of counted rows with the same owner); 0 for other rows, float64 (n,)."""
    _, index = np.unique(owner, return_inverse=True)
    size = np.bincount(index[counted], minlength=int(index.max()) + 1)
    return np.where(counted, 1.0 / np.maximum(size[index], 1), 0.0)
