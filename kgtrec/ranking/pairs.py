"""Counts of a relation's pairs: the numbers of pairs above each answer, and tied with it.

There are two passes over blocks of heads, so that the matrix of pairs never exists. The first pass
computes the scores of the pairs that the graph knows, answers included. The second pass counts the
scores of all pairs against those of the answers. Then the known pairs are counted in the same way
and subtracted. Counts are integers, and the best pairs are totally ordered (by score, then head,
then tail). So results are equal for every size of block, number of threads and kernel path.
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
from kgtrec._internal.threads import share_rows
from kgtrec.errors import InputError
from kgtrec.ranking.kernel import ignore_progress
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import reading
from kgtrec.scores.pairs import PairAxes, PairSource, score_heads

CELLS_KEPT = 1 << 17
"""Most candidates for the best pairs per call. If there are more, its rows are halved."""

_ROWS_READ = 1 << 22
"""Number of scores that are read at a time to name a NaN."""


@dataclass(frozen=True, eq=False)
class PairQuestion:
    """The question (?, relation, ?). Its pairs are cells, ascending and distinct.

    A cell is the number of a pair in `PairAxes`: by head, then by tail.

    - answers: Evaluated pairs.
    - known: Pairs that are not candidates of micro ranks; may contain answers.
    - removed: Pairs that are not candidates of macro ranks and best pairs; never answers.
    """

    relation: int
    answers: Int64
    known: Int64
    removed: Int64


@dataclass(frozen=True, eq=False)
class PairCounts:
    """The counts of each answer, among micro and macro candidates, and the best pairs.

    Counts are int64 (answers,).

    - scores, float64 (answers,): Scores of the answers; higher is better.
    - equal, macro_equal: Numbers of tied pairs, without the answer.
    - best, best_scores: Cells of the best pairs, best first, and their scores.
    - tied: Number of further pairs with the score of the last best pair.
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
    """Heads as queries of a model of vectors.

    - ids: Entities that are tails; None for all entities.
    """

    factors: Factors
    ids: Int32 | None

    def __len__(self) -> int:
        return len(self.factors.queries)

    def count(self, rows: slice, *request: Any) -> tuple[int, bool]:
        """Count the scores of rows; see `count_factors` of the core."""
        return _core.count_factors(
            self.factors.queries[rows], *self.factors.table, *request, ids=self.ids
        )

    def scores_at(self, row: Int64, column: Int64) -> Float64:
        """Return the scores of pairs, which are ascending by row and column."""
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
        """Return the scores of rows with all tails."""
        scores = self.factors.scores(rows.start, rows.stop)
        return scores if self.ids is None else scores[:, self.ids]


@dataclass(frozen=True, eq=False)
class _MatrixPart:
    """Heads as rows of scores."""

    block: ScoreBlock

    def __len__(self) -> int:
        return len(self.block)

    def count(self, rows: slice, *request: Any) -> tuple[int, bool]:
        """Count the scores of rows; see `count_rows` of the core."""
        block = self.block
        return _core.count_rows(block.array[rows], block.dtype, *request, negate=block.negate)

    def scores_at(self, row: Int64, column: Int64) -> Float64:
        """Return the scores of pairs."""
        return np.asarray(self.block.values_at(row, column), np.float64)

    def values(self, rows: slice) -> Array:
        """Return the scores of rows with all tails."""
        return self.block.values_at(rows)


_Part = _VectorPart | _MatrixPart


@dataclass(eq=False)
class _Best:
    """The best pairs of the calls so far, which are in the order of cells.

    - depth: Number of pairs to keep.
    - tied: Number of further pairs with the score of the last one.
    """

    depth: int
    cells: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Float64 = field(default_factory=lambda: np.empty(0))
    tied: int = 0

    @property
    def is_full(self) -> bool:
        """True if there are `depth` pairs."""
        return 0 < self.depth == len(self.cells)

    def add(self, cells: Int64, scores: Float64, tied: int) -> None:
        """Merge the best pairs of a later call.

        `tied` more pairs of that call have the score of the last best pair.
        """
        cells, scores = np.append(self.cells, cells), np.append(self.scores, scores)
        order = np.lexsort((cells, -scores))
        last = self.scores[-1] if self.is_full else None
        self.cells, self.scores = cells[order[: self.depth]], scores[order[: self.depth]]
        if not self.is_full:
            return
        dropped = int((scores[order[self.depth :]] == self.scores[-1]).sum())
        self.tied = dropped + (self.tied + tied if last == self.scores[-1] else 0)


class _Counting:
    """The state while the pairs of a relation are counted.

    - cells, int64 (n,): Answers, known and removed pairs; ascending.
    - best: The best pairs so far.
    - counts, int64 (2, levels): Counts so far of scores above each level, and at least as high.
    - n_pairs: Number of pairs of all heads and tails.
    """

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
        self._width, self.n_pairs = len(axes.tails), axes.n_pairs
        self.cells = np.union1d(question.answers, question.known)
        self.cells = np.union1d(self.cells, question.removed)
        self._excluded = question.removed if not keep_known else np.empty(0, np.int64)
        self.best = _Best(depth)
        self._dtype = ""
        self._cached_part: tuple[int, _Part] | None = None

    def _read_part(self, start: int) -> _Part:
        """Return the part that begins with a row; the last part is cached for the second pass."""
        if self._cached_part is not None and self._cached_part[0] == start:
            return self._cached_part[1]
        heads = self._axes.heads[start : start + self._heads_per_call]
        scores = score_heads(self._source, self._question.relation, heads, self._axes, self._name)
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
        self._dtype, self._cached_part = dtype, (start, part)
        return part

    def _tail_ids(self) -> Int32 | None:
        """Return the ids of the tails, or None for all entities."""
        tails = self._axes.tails
        return None if len(tails) == self._axes.n_entities else tails.astype(np.int32)

    def _find_cells(self, start: int, stop: int) -> slice:
        """Return the indices in `cells` of the pairs of the rows from `start` to `stop - 1`."""
        ends = np.searchsorted(self.cells, (start * self._width, stop * self._width))
        return slice(*ends.tolist())

    def _scores_of_part(self, start: int, part: _Part) -> Float64:
        """Return the scores of the `cells` of a part, in their order."""
        cells = self.cells[self._find_cells(start, start + len(part))]
        row, column = np.divmod(cells, self._width)
        return part.scores_at(row - start, column) if len(cells) else np.empty(0)

    def scores_of_known(self) -> Float64:
        """Return the scores of `cells`, float64 (n,). This is the first pass."""
        scores = np.empty(len(self.cells))
        for start in range(0, len(self._axes.heads), self._heads_per_call):
            at = self._find_cells(start, start + self._heads_per_call)
            if at.start < at.stop:
                scores[at] = self._scores_of_part(start, self._read_part(start))
        return scores

    def count_all(self, levels: Float64, known: Float64, advance: Callable[[int], object]) -> None:
        """Count the scores above each level, and those at least as high. This is the second pass.

        `known` are the scores of the first pass. The results are `counts`, int64 (2, levels), and
        `best`.
        """
        self._levels, self._known = levels, known
        self.counts = np.zeros((2, len(levels)), np.int64)
        for start in range(0, len(self._axes.heads), self._heads_per_call):
            part = self._read_part(start)
            self._check_repeated(start, part)
            self._count(part, start, 0, len(part))
            advance(len(part))

    def _check_repeated(self, start: int, part: _Part) -> None:
        """Raise InputError if a pair has another score than in the first pass."""
        at = self._find_cells(start, start + len(part))
        again = self._scores_of_part(start, part)
        differs = np.flatnonzero((again != self._known[at]) & ~np.isnan(again))
        if len(differs):
            first = int(differs[0])
            pair = self.describe_pair(int(self.cells[at][first]))
            raise InputError(
                f"{pair} scored {float(self._known[at][first])!r} and then "
                f"{float(again[first])!r}: the scores must be the same whenever they "
                "are asked; switch off dropout and sampling"
            )

    def describe_pair(self, cell: int) -> str:
        """Return the name of a pair for messages."""
        head, tail = (int(ids[0]) for ids in self._axes.ids(np.array([cell])))
        return f"the pair of entities {head} and {tail} of relation {self._name!r}"

    def _count(self, part: _Part, start: int, first: int, stop: int) -> None:
        """Count rows of a part, in several calls if there are too many candidates for the best.

        A call has at most as many rows as all calls before it. So the worst of the best pairs so
        far excludes nearly all scores of the call.
        """
        most = max(1, CELLS_KEPT // self._width, start + first)
        if self.best.depth and stop - first > most:
            self._count(part, start, first, first + most)
            self._count(part, start, first + most, stop)
            return
        if not self._try_count(part, start, first, stop):
            middle = (first + stop) // 2
            self._count(part, start, first, middle)
            self._count(part, start, middle, stop)

    def _try_count(self, part: _Part, start: int, first: int, stop: int) -> bool:
        """Count rows in a call per thread, and return True.

        If the rows have too many candidates for the best pairs, count nothing and return False.
        """
        best = self.best
        bound = best.scores[-1] if best.is_full else -np.inf
        levels = np.append(self._levels, bound) if best.is_full else self._levels
        # Later pairs that tie with the last best pair come after it, so only higher ones count.
        above = np.nextafter(self._as_compared(bound), np.inf) if best.is_full else bound
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
            self._add_to_best(cells, scores, tied, bound, start + first, start + stop)
        return True

    def _as_compared(self, bound: float) -> Any:
        """Return a score in the type in which scores are compared."""
        return np.float64(bound) if self._dtype == "float64" else np.float32(bound)

    def _add_to_best(
        self, cells: Int64, scores: Float64, tied: int, bound: float, first: int, stop: int
    ) -> None:
        """Add cells of the rows from `first` to `stop - 1` to the best, without excluded pairs.

        `tied` pairs of these rows have the score `bound` of the last best pair.
        """
        keep = ~contains(self._excluded, cells)
        if self.best.is_full and len(self._excluded):
            at = self._find_cells(first, stop)
            excluded = contains(self._excluded, self.cells[at])
            tied -= int((self._known[at][excluded] == bound).sum())
        self.best.add(cells[keep], scores[keep], tied)

    def _refuse_nan(self, part: _Part, start: int, first: int, stop: int) -> None:
        """Raise InputError if a candidate's score is NaN; removed pairs may score NaN."""
        step = max(1, _ROWS_READ // self._width)
        ignored = np.setdiff1d(self._question.removed, self._question.answers)
        for begin in range(first, stop, step):
            values = part.values(slice(begin, min(begin + step, stop)))
            cells = np.flatnonzero(np.isnan(values)) + (start + begin) * self._width
            cells = cells[~contains(ignored, cells)]
            if len(cells):
                raise InputError(
                    f"NaN for {self.describe_pair(int(cells[0]))}; fix the model, or leave the "
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
    advance: Callable[[int], object] = ignore_progress,
) -> PairCounts:
    """Count the pairs of a relation, and find the best of them.

    Parameters
    ----------
    source : callable
        See `kgtrec.scores.pairs`.
    question : PairQuestion
    axes : PairAxes
    name : str
        Name of the relation, for messages.
    depth : int
        Number of best pairs to keep; 0 for none.
    keep_known : bool
        True if removed pairs may be among the best.
    heads_per_call : int, optional
        Heads per call of the source. By default, the number that the source asks for, or as many
        heads as have scores of about 32 MB.
    threads : int
    higher_is_better : bool
    advance : callable
        Called with the number of heads that were counted since the last call.

    Raises
    ------
    InputError
        Wrong shapes or dtypes, a NaN, or scores that differ between calls.
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
        known = counting.scores_of_known()
        answers = known[np.searchsorted(counting.cells, question.answers)]
        if np.isnan(answers).any():
            cell = int(question.answers[np.isnan(answers)][0])
            raise InputError(
                f"NaN for {counting.describe_pair(cell)}, an answer; fix the model, or leave the "
                "relation out"
            )
        levels = np.unique(answers)
        counting.count_all(levels, known, advance)
    return _subtract_known(counting, question, levels, known)


def _subtract_known(
    counting: _Counting, question: PairQuestion, levels: Float64, known: Float64
) -> PairCounts:
    """Return the counts of the answers among the candidates, from the counts of all pairs.

    - levels: Distinct scores of the answers, ascending; `counting` has the counts of each.
    - known: Scores of the cells of `counting`.
    """

    def scores_of(cells: Int64) -> Float64:
        return known[np.searchsorted(counting.cells, cells)]

    micro = counting.counts - _count_from_levels(levels, scores_of(question.known))
    macro = counting.counts - _count_from_levels(levels, scores_of(question.removed))
    scores = scores_of(question.answers)
    level = np.searchsorted(levels, scores)
    is_known = contains(question.known, question.answers)
    itself = ~is_known  # an answer that is not known is still among the counted pairs
    n_pairs, best = counting.n_pairs, counting.best
    return PairCounts(
        scores=scores,
        greater=micro[0][level],
        equal=(micro[1] - micro[0])[level] - itself,
        candidates=n_pairs - len(question.known) + is_known.astype(np.int64),
        macro_greater=macro[0][level],
        macro_equal=(macro[1] - macro[0])[level] - 1,
        macro_candidates=n_pairs - len(question.removed),
        best=best.cells,
        best_scores=best.scores,
        tied=best.tied,
    )


def _count_from_levels(levels: Float64, scores: Float64) -> Int64:
    """Count the scores above each level, and those at least as high; int64 (2, levels)."""
    ordered = np.sort(scores[~np.isnan(scores)])
    sides = (np.searchsorted(ordered, levels, side) for side in ("right", "left"))
    return np.stack([len(ordered) - below for below in sides])
