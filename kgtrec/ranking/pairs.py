"""Counts of a relation's pairs: how many other pairs score higher, or the same, as each answer.

Two passes over blocks of heads, so that the matrix of pairs never exists. The first computes the
scores of the pairs that the graph knows, answers included. The second counts the scores of all
pairs against those of the answers. Then the known pairs are counted in the same way and subtracted.
Counts are integers, and the best pairs are totally ordered (by score, then head, then tail), so
results are equal for every size of block, number of threads and kernel path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from kgtrec import _core
from kgtrec._internal.arrays import Array, Float64, Int32, Int64
from kgtrec._internal.csr import contains
from kgtrec._internal.runtime import share_rows
from kgtrec.errors import InputError
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import reading
from kgtrec.scores.pairs import PairAxes, PairSource, checked_pairs

CELLS_KEPT = 1 << 17
"""Pairs that a call may find for the best ones. If there are more, its rows are halved."""

_ROWS_READ = 1 << 22
"""Scores that are read at a time to name a NaN."""


@dataclass(frozen=True, eq=False)
class PairQuestion:
    """The question (?, relation, ?): cells of `PairAxes`, ascending and distinct.

    - answers: Evaluated pairs.
    - known: No candidates of micro ranks; may contain answers.
    - removed: No candidates of macro ranks and of the best pairs; contains no answer.
    """

    relation: int
    answers: Int64
    known: Int64
    removed: Int64


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts of each answer, among micro and macro candidates, int64 (answers,); and the best.

    - scores, float64: Of the answers; higher is better.
    - equal, macro_equal: Without the answer itself.
    - best, best_scores: Cells of the best pairs, best first, and their scores.
    - tied: How many more pairs have the score of the last of them.
    """

    scores: Float64
    greater: Int64
    equal: Int64
    candidates: Int64
    macro_greater: Int64
    macro_equal: Int64
    macro_candidates: int
    best: Int64
    best_scores: Float64
    tied: int


@dataclass(frozen=True, eq=False)
class _VectorPart:
    """Heads as queries of a model of vectors."""

    factors: Factors
    ids: Int32 | None
    """The tails; None: every entity."""

    def __len__(self) -> int:
        return len(self.factors.queries)

    def count(self, rows: slice, *request: Any) -> tuple[int, bool]:
        return _core.count_factors(
            self.factors.queries[rows], *self.factors.table, *request, ids=self.ids
        )

    def scores_at(self, row: Int64, column: Int64) -> Float64:
        """Scores of pairs, ascending by row and column."""
        rows, number = np.unique(row, return_inverse=True)
        offsets = np.searchsorted(number.reshape(-1), np.arange(len(rows) + 1))
        tails = (column if self.ids is None else self.ids[column]).astype(np.int32)
        n, none = len(self.factors.entities), np.empty(0, np.int32)
        nothing = np.zeros(2, np.int64)
        task = _core.Task(
            _core.Lists(n, nothing, none, nothing, none, None, None, None, None),
            np.zeros(len(rows), np.int64),
            offsets,
            tails,
            None,
            np.zeros((6, len(tails)), np.int64),
            np.full(len(rows), -1),
            np.empty((0, 0), np.int32),
            np.empty((0, 0), self.factors.dtype),
            none,
            np.zeros(len(rows), np.int64),
            np.zeros(len(rows), np.int32),
        )
        out = np.empty(len(tails))
        _core.factor_target_scores(task, self.factors.queries[rows], *self.factors.table, 0, out)
        return out

    def values(self, rows: slice) -> Array:
        scores = self.factors.scores(rows.start, rows.stop)
        return scores if self.ids is None else scores[:, self.ids]


@dataclass(frozen=True, eq=False)
class _MatrixPart:
    """Heads as rows of scores."""

    block: ScoreBlock

    def __len__(self) -> int:
        return len(self.block)

    def count(self, rows: slice, *request: Any) -> tuple[int, bool]:
        block = self.block
        return _core.count_rows(block.array[rows], block.dtype, *request, negate=block.negate)

    def scores_at(self, row: Int64, column: Int64) -> Float64:
        return np.asarray(self.block.directed(row, column), np.float64)

    def values(self, rows: slice) -> Array:
        return self.block.directed(rows)


_Part = _VectorPart | _MatrixPart


@dataclass(eq=False)
class _Best:
    """The best pairs so far, of calls in the order of cells."""

    depth: int
    cells: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Float64 = field(default_factory=lambda: np.empty(0))
    tied: int = 0

    @property
    def is_full(self) -> bool:
        return 0 < self.depth == len(self.cells)

    def take(self, cells: Int64, scores: Float64, tied: int) -> None:
        """Merge later cells; `tied` of them have the last score and are not among these."""
        cells, scores = np.append(self.cells, cells), np.append(self.scores, scores)
        order = np.lexsort((cells, -scores))
        last = self.scores[-1] if self.is_full else None
        self.cells, self.scores = cells[order[: self.depth]], scores[order[: self.depth]]
        if not self.is_full:
            return
        dropped = int((scores[order[self.depth :]] == self.scores[-1]).sum())
        self.tied = dropped + (self.tied + tied if last == self.scores[-1] else 0)


class _Counting:
    """One relation: the parts of its pairs, and what is counted so far."""

    def __init__(
        self,
        source: PairSource,
        question: PairQuestion,
        axes: PairAxes,
        name: str,
        *,
        depth: int,
        keep_known: bool,
        heads_per_call: int,
        threads: int,
        higher_is_better: bool,
    ) -> None:
        self._source, self._question, self._axes, self._name = source, question, axes, name
        self._threads, self._higher = threads, higher_is_better
        self._heads_per_call = heads_per_call
        self._width = len(axes.tails)
        self._cells = np.union1d(question.answers, question.known)
        self._cells = np.union1d(self._cells, question.removed)
        self._left_out = question.removed if not keep_known else np.empty(0, np.int64)
        self.best = _Best(depth)
        self._dtype = ""
        self._last: tuple[int, _Part] | None = None

    def _part(self, start: int) -> _Part:
        """The part that begins with a row; the last one is kept for the second pass."""
        if self._last is not None and self._last[0] == start:
            return self._last[1]
        heads = self._axes.heads[start : start + self._heads_per_call]
        scores = checked_pairs(self._source, self._question.relation, heads, self._axes, self._name)
        if isinstance(scores, Factors):
            if not self._higher:
                raise InputError(
                    "Factors are always higher-is-better (metric='l2' is minus the squared "
                    "distance); leave higher_is_better as it is"
                )
            part: _Part = _VectorPart(scores, self._tail_ids())
            dtype = scores.dtype.name
        else:
            dtype = scores.dtype
            part = _MatrixPart(ScoreBlock(scores.array, dtype, not self._higher))
        if self._dtype not in ("", dtype):
            raise InputError(
                f"the scores of relation {self._name!r} have dtype {dtype}, but those of earlier "
                f"heads {self._dtype}; ties are exact only within one dtype: give all alike"
            )
        self._dtype, self._last = dtype, (start, part)
        return part

    def _tail_ids(self) -> Int32 | None:
        tails = self._axes.tails
        return None if len(tails) == self._axes.n_entities else tails.astype(np.int32)

    def _known_in(self, start: int, stop: int) -> slice:
        """The places in `_cells` of the known pairs of some rows."""
        ends = np.searchsorted(self._cells, (start * self._width, stop * self._width))
        return slice(*ends.tolist())

    def _scores_of_part(self, start: int, part: _Part) -> Float64:
        cells = self._cells[self._known_in(start, start + len(part))]
        row, column = np.divmod(cells, self._width)
        return part.scores_at(row - start, column) if len(cells) else np.empty(0)

    def scores_of_known(self) -> Float64:
        """First pass: the scores of answers, known and removed pairs, in the order of cells."""
        scores = np.empty(len(self._cells))
        for start in range(0, len(self._axes.heads), self._heads_per_call):
            at = self._known_in(start, start + self._heads_per_call)
            if at.start < at.stop:
                scores[at] = self._scores_of_part(start, self._part(start))
        return scores

    def count_all(self, levels: Float64, known: Float64, advance: Callable[[int], object]) -> Int64:
        """Second pass: how many scores are above each level, and how many at least as high."""
        self._levels, self._known = levels, known
        self.counts = np.zeros((2, len(levels)), np.int64)
        for start in range(0, len(self._axes.heads), self._heads_per_call):
            part = self._part(start)
            self._check_repeated(start, part)
            self._count(part, start, 0, len(part))
            advance(len(part))
        return self.counts

    def _check_repeated(self, start: int, part: _Part) -> None:
        """InputError if a source gives a pair another score than in the first pass."""
        at = self._known_in(start, start + len(part))
        again = self._scores_of_part(start, part)
        differs = np.flatnonzero((again != self._known[at]) & ~np.isnan(again))
        if len(differs):
            place = int(differs[0])
            shown = self._labelled(int(self._cells[at][place]))
            raise InputError(
                f"{shown} scored {self._known[at][place]!r} and then {again[place]!r}: the scores "
                "must be the same whenever they are asked; switch off dropout and sampling"
            )

    def _labelled(self, cell: int) -> str:
        head, tail = (int(ids[0]) for ids in self._axes.ids(np.array([cell])))
        return f"the pair of entities {head} and {tail} of relation {self._name!r}"

    def _count(self, part: _Part, start: int, first: int, stop: int) -> None:
        """Count rows of a part, in several calls if there are too many candidates for the best."""
        best, rows = self.best, stop - first
        if best.depth and not best.is_full and rows * self._width > CELLS_KEPT and rows > 1:
            some = first + max(1, CELLS_KEPT // self._width)
            if some < stop:
                self._count(part, start, first, some)
                self._count(part, start, some, stop)
                return
        if not self._counted(part, start, first, stop):
            middle = (first + stop) // 2
            self._count(part, start, first, middle)
            self._count(part, start, middle, stop)

    def _counted(self, part: _Part, start: int, first: int, stop: int) -> bool:
        """Count rows in one call per thread. False: nothing is counted, because they hold too
        many candidates for the best."""
        best = self.best
        bound = best.scores[-1] if best.is_full else -np.inf
        levels = np.append(self._levels, bound) if best.is_full else self._levels
        # Later pairs that tie with the last of the best come after it: only higher ones count.
        above = np.nextafter(self._typed(bound), np.inf) if best.is_full else bound
        above = np.nan if bound == np.inf else above  # nothing is higher
        capacity = max(CELLS_KEPT, self._width) if best.depth else 0
        ends = np.linspace(first, stop, min(self._threads, stop - first) + 1).astype(int).tolist()
        results: dict[int, Any] = {}

        def count(begin: int, end: int) -> None:
            counts = np.zeros((2, len(levels)), np.int64)
            cells, scores = np.empty(capacity, np.int64), np.empty(capacity)
            rows = slice(begin, end)
            used, nan = part.count(rows, levels, counts, float(above), cells, scores)
            kept = slice(0, min(used, capacity))
            cells = cells[kept] + (start + begin) * self._width
            results[begin] = used, nan, counts, cells, scores[kept].copy()

        share_rows(count, [*pairwise(ends)], self._threads)
        if any(result[1] for result in results.values()):
            self._refuse_nan(part, start, first, stop)
        if best.depth and any(result[0] > capacity for result in results.values()):
            return False
        total = sum(result[2] for result in results.values())
        self.counts += total[:, : len(self._levels)]
        if best.depth:
            cells = np.concatenate([results[begin][3] for begin in ends[:-1]])
            scores = np.concatenate([results[begin][4] for begin in ends[:-1]])
            tied = int(total[1, -1] - total[0, -1]) if best.is_full else 0
            self._take(cells, scores, tied, bound, start + first, start + stop)
        return True

    def _typed(self, bound: float) -> Any:
        """A score in the type of its comparisons."""
        return np.float64(bound) if self._dtype == "float64" else np.float32(bound)

    def _take(
        self, cells: Int64, scores: Float64, tied: int, bound: float, first: int, stop: int
    ) -> None:
        """Offer the found cells to the best, without those that are left out."""
        keep = ~contains(self._left_out, cells)
        if self.best.is_full and len(self._left_out):
            at = self._known_in(first, stop)
            out = contains(self._left_out, self._cells[at])
            tied -= int((self._known[at][out] == bound).sum())
        self.best.take(cells[keep], scores[keep], tied)

    def _refuse_nan(self, part: _Part, start: int, first: int, stop: int) -> None:
        """InputError if a NaN is a candidate's; pairs that are known may score NaN."""
        step = max(1, _ROWS_READ // self._width)
        ignored = np.setdiff1d(self._question.removed, self._question.answers)
        for begin in range(first, stop, step):
            values = part.values(slice(begin, min(begin + step, stop)))
            cells = np.flatnonzero(np.isnan(values)) + (start + begin) * self._width
            cells = cells[~contains(ignored, cells)]
            if len(cells):
                raise InputError(
                    f"NaN for {self._labelled(int(cells[0]))}; fix the model, or leave the "
                    "relation out"
                )


def count_pairs(
    source: PairSource,
    question: PairQuestion,
    axes: PairAxes,
    name: str,
    *,
    depth: int = 0,
    keep_known: bool = False,
    heads_per_call: int | None = None,
    threads: int = 1,
    higher_is_better: bool = True,
    advance: Callable[[int], object] = lambda rows: None,
) -> PairCounts:
    """Count the pairs of one relation, and find the best of them.

    Parameters
    ----------
    source : callable
        See `kgtrec.scores.pairs`.
    question : PairQuestion
    axes : PairAxes
    name : str
        The relation's, for messages.
    depth : int
        How many best pairs; 0: none.
    keep_known : bool
        Whether removed pairs may be among the best.
    heads_per_call : int, optional
        Heads of one call of the source. By default as many as the source says, or as have scores of
        about 32 MB.
    threads : int
    higher_is_better : bool
    advance : callable
        Gets the number of heads that were counted just now.

    Raises
    ------
    InputError
        Wrong shapes or dtypes, a NaN, or scores that differ from one call to the next.
    """
    with reading(f"the scores of relation {name!r}"):
        heads = axes.heads_per_call(heads_per_call or getattr(source, "heads_per_call", None))
        counting = _Counting(
            source,
            question,
            axes,
            name,
            depth=depth,
            keep_known=keep_known,
            heads_per_call=heads,
            threads=threads,
            higher_is_better=higher_is_better,
        )
        cells, known = counting._cells, counting.scores_of_known()
        of_answers = known[np.searchsorted(cells, question.answers)]
        if np.isnan(of_answers).any():
            cell = int(question.answers[np.isnan(of_answers)][0])
            raise InputError(
                f"NaN for {counting._labelled(cell)}, an answer; fix the model, or leave the "
                "relation out"
            )
        levels, place = np.unique(of_answers, return_inverse=True)
        counts = counting.count_all(levels, known, advance)
    place = place.reshape(-1)
    best = counting.best
    micro = counts - _among(levels, known[np.searchsorted(cells, question.known)])
    macro = counts - _among(levels, known[np.searchsorted(cells, question.removed)])
    is_known = contains(question.known, question.answers)
    itself = ~is_known  # an answer that is not known is still among the others
    return PairCounts(
        scores=of_answers,
        greater=micro[0][place],
        equal=(micro[1] - micro[0])[place] - itself,
        candidates=axes.n_pairs - len(question.known) + is_known.astype(np.int64),
        macro_greater=macro[0][place],
        macro_equal=(macro[1] - macro[0])[place] - 1,
        macro_candidates=axes.n_pairs - len(question.removed),
        best=best.cells,
        best_scores=best.scores,
        tied=best.tied,
    )


def _among(levels: Float64, scores: Float64) -> Int64:
    """How many scores are above each level, and how many at least as high, int64 (2, levels)."""
    ordered = np.sort(scores[~np.isnan(scores)])
    sides = (np.searchsorted(ordered, levels, side) for side in ("right", "left"))
    return np.stack([len(ordered) - below for below in sides])
