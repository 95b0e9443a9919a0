"""A native ranking: the arrays that the C core writes to, and the threads that share its rows.

`show_config` describes this build and the kernel path in use.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kgtrec import _core
from kgtrec._internal.arrays import Array, Float64, Int32, Int64
from kgtrec._internal.threads import available_cores, share_rows
from kgtrec._version import __version__
from kgtrec.errors import InputError
from kgtrec.ranking.rows import QuestionLists, Rows
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import find_mapped_file


def show_config() -> str:
    """Return a text for bug reports: version, kernel path in use and why, and threads.

    Examples
    --------
    >>> print(kgtrec.show_config())  # doctest: +SKIP
    kgtrec 0.1.0, Python 3.11.7, Linux x86_64
    kernel path: avx512vnni (the best of avx512vnni, avx512, avx2, scalar that this machine runs)
    last factorised model: 1.1 % of its scores computed, 1.2 % decided by 16 bits, the rest by 8
    threads: 2 (cores that this process may use)
    """

    names, path, isa = _core.available_paths(), _core.active_path(), os.environ.get("KGTREC_ISA")
    paths = ", ".join(names)
    why = f"the best of {paths} that this machine runs"
    if isa:
        why = f"KGTREC_ISA={isa}; there are {paths}"
    elif path != _core.best_path():
        why = f"forced by the program; there are {paths}"
    elif path != names[0]:
        why = (
            f"of {paths}, the first that was tested on a processor; KGTREC_ISA={names[0]} is faster"
        )
    bounds = []
    if shares := last_shares():
        computed, refined = (f"{100 * share:.2g} %" for share in shares)
        bounds.append(
            f"last factorised model: {computed} of its scores computed, "
            f"{refined} decided by 16 bits, the rest by 8"
        )
    system = f"{platform.system()} {platform.machine()}"
    return "\n".join(
        [
            f"kgtrec {__version__}, Python {platform.python_version()}, {system}",
            f"kernel path: {path} ({why})",
            *bounds,
            f"threads: {available_cores()} (cores that this process may use)",
        ]
    )


# Limits for a factorised model: scratch memory for the best entities of rows in work, rows per
# call, and memory per thread for quantised entities. If these need more memory, every call
# quantises them again.
_BEST_BYTES = 64 << 20
_FACTOR_ROWS = 4096
_CODES_BYTES = 32 << 20
# Score rows that a thread puts into id order at a time: it ranks them while they are in its cache.
_REORDERED_BYTES = 1 << 19
_MOST_THREADS = 256  # systems limit how many may start


def ignore_progress(rows: int) -> None:
    """Do nothing: the default for `advance`, which is called with the number of rows done."""


class NativeRanking:
    """State of a ranking in the native core.

    Threads share the rows in contiguous parts. This is safe because the results of each row are
    written to separate memory. Counts are integers and the best entities are totally ordered, so
    results have the same bits for every number of threads and every size of block.

    - first_entity: Id of the first entity, for a range of entities; otherwise 0.
    - answers, float64 (n_targets,) or None: Scores of all answers, for a range of entities. None if
      each row has the scores of its answers.
    - counts, int64 (6, n_targets): Greater, equal and tied ahead, among micro and then macro
      candidates.
    - nan_count, nan_entity, (n_rows,): Number of NaN candidates of each row, and the first of them.
    - written, bool (n_rows,): True for rows that were written to, in whole or in part.
    - model_facts: Facts of ranked `Factors`.
    """

    def __init__(
        self,
        lists: QuestionLists,
        plan: Rows,
        settings: Settings,
        dtype: str,
        first_entity: int = 0,
        answers: Float64 | None = None,
    ) -> None:
        self.dtype, self.plan, self.settings = dtype, plan, settings
        self.first_entity, self.answers = first_entity, answers
        self.model_facts: tuple[str, ...] = ()
        depth, self.threads = settings.run_depth, min(settings.n_threads, _MOST_THREADS)
        self.lists, self._candidate_lists = lists, lists.candidate_lists
        self._tallies: list[tuple[int, int, int, int]] = []
        self.depth = min(depth, lists.n_labels)
        width = min(depth, lists.most_candidates) if depth else 0
        n_rows, n_questions, n_targets = plan.n_rows, len(lists), len(plan.targets)
        score_type = np.float64 if dtype == "float64" else np.float32
        self.counts = np.zeros((6, n_targets), dtype=np.int64)
        self.best_ids = np.zeros((n_questions, width), dtype=np.int32)
        self.best_scores = np.zeros((n_questions, width), dtype=score_type)
        self.best_length = np.zeros(n_questions, dtype=np.int32)
        self.nan_count = np.zeros(n_rows, dtype=np.int64)
        self.nan_entity = np.zeros(n_rows, dtype=np.int32)
        self.target_nan = np.zeros(n_targets, dtype=bool)
        self.written = np.zeros(n_rows, dtype=bool)
        restricted = lists.candidate_lists
        self.task = _core.Task(
            lists.native,
            plan.question,
            plan.target_offsets,
            plan.targets,
            None if restricted is None else restricted.of[plan.question],
            self.counts,
            plan.slot,
            self.best_ids,
            self.best_scores,
            self.best_length,
            self.nan_count,
            self.nan_entity,
        )

    def check_dtype(self, dtype: str) -> None:
        """Raise InputError for scores of another dtype than those ranked before."""
        if self.dtype != dtype:
            raise InputError(
                f"scores have dtype {dtype}, but earlier ones have {self.dtype}; "
                "ties are exact only within one dtype: give all rows in the same dtype"
            )

    def reset(self, start: int, stop: int) -> None:
        """Clear rows before they are written, if a failed attempt has written to them."""
        untouched = not self.written[start:stop].any()
        self.written[start:stop] = True
        if untouched:
            return
        targets = self.targets_of(start, stop)
        self.counts[:, targets] = 0
        self.target_nan[targets] = False
        self.nan_count[start:stop] = 0

    def select(self, rows: Int64) -> tuple[NativeRanking, Int64]:
        """Return an empty ranking of some rows, numbered from 0, and the question of each row."""
        lists, plan, questions = self._select_inputs(rows)
        return NativeRanking(lists, plan, self.settings, self.dtype), questions

    def _select_inputs(self, rows: Int64) -> tuple[QuestionLists, Rows, Int64]:
        """Return the filter lists and plan of some rows, and the original question of each.

        In lists and plan, rows and questions are numbered from 0.
        """
        plan, numbers = self.plan.select(rows)[0], np.arange(len(rows))
        slots = np.where(plan.slot < 0, -1, numbers)
        renumbered = Rows(numbers, plan.target_offsets, plan.targets, slots)
        return self.lists.select(plan.question), renumbered, plan.question

    def with_thresholds(self, start: int, stop: int, limits: Float64) -> NativeRanking:
        """Return a ranking of rows that counts scores above `limits`, not the answers' scores.

        It keeps no best entities.
        """
        lists, plan, _ = self._select_inputs(np.arange(start, stop))
        plan = replace(plan, slot=np.full(plan.n_rows, -1))
        settings = replace(self.settings, run_depth=0)
        return NativeRanking(lists, plan, settings, self.dtype, self.first_entity, limits)

    def best(self, slots: slice | Int64, *, copied: bool = False) -> tuple[Int32, Int32, Array]:
        """Return lengths, ids and scores of the lists of best entities of some questions.

        Each array contains the lists one after another. Unless `copied`, they may share memory with
        the ranking.
        """
        lengths = self.best_length[slots].copy()
        ids, scores = self.best_ids[slots], self.best_scores[slots]
        if (lengths == ids.shape[1]).all():
            ids, scores = (each.flatten() if copied else each.ravel() for each in (ids, scores))
            return lengths, ids, scores
        used = np.arange(ids.shape[1]) < lengths[:, None]
        return lengths, ids[used], scores[used]

    def take_over(self, part: NativeRanking, rows: Int64) -> None:
        """Copy the results of `part`, the ranking that ``select(rows)`` returned, into this one."""
        plan, targets = self.plan.select(rows)
        self.written[rows] = True
        self.counts[:, targets] = part.counts
        self.target_nan[targets] = part.target_nan
        self.nan_count[rows] = part.nan_count
        listed = plan.slot >= 0
        slots = plan.slot[listed]
        width = part.best_ids.shape[1]
        self.best_ids[slots, :width] = part.best_ids[listed]
        self.best_scores[slots, :width] = part.best_scores[listed]
        self.best_length[slots] = part.best_length[listed]

    def rank_rows(self, block: ScoreBlock) -> None:
        """Rank a block of score rows on the host."""
        column_of, array, start = self.lists.column_of, block.array, block.start
        row_bytes = max(1, array.shape[1] * array.itemsize)
        height = len(block) if column_of is None else max(1, _REORDERED_BYTES // row_bytes)

        def rank_part(low: int, high: int) -> None:
            for first in range(low, high, height):
                rows = array[first - start : min(first + height, high) - start]
                _core.rank_rows(
                    self.task,
                    rows if column_of is None else rows.take(column_of, axis=1),
                    self.dtype,
                    first,
                    negate=block.negate,
                    first_entity=self.first_entity,
                    target_scores=self.answers,
                )

        share_rows(rank_part, _divide_evenly(start, block.stop, self.threads), self.threads)

    def target_scores(self, scores: ScoreBlock | Factors, out: Float64) -> None:
        """Write the answers' scores to ``out``, from a block of rows or a factorised model.

        With a range of entities, only the answers of the range are written.
        """
        if isinstance(scores, Factors):
            _core.factor_target_scores(
                self.task, scores.queries, *scores.table, 0, out, first_entity=self.first_entity
            )
            return
        column_of, rows = self.lists.column_of, scores.array
        if column_of is not None:
            rows = rows.take(column_of, axis=1)
        _core.target_scores(
            self.task,
            rows,
            self.dtype,
            scores.start,
            out,
            negate=scores.negate,
            first_entity=self.first_entity,
        )

    def targets_of(self, start: int, stop: int) -> slice:
        """Return the targets of the rows from `start` to `stop - 1`."""
        return slice(self.plan.target_offsets[start], self.plan.target_offsets[stop])

    def answer_scores(self, scores: ScoreBlock | Factors, targets: slice) -> Float64:
        """Return the scores of some targets: from `answers` if known, else from the rows."""
        if self.answers is not None:
            return self.answers[targets]
        out = np.empty(len(self.plan.targets))
        self.target_scores(scores, out)
        return out[targets]

    def rank_factors(
        self, factors: Factors, advance: Callable[[int], object] = ignore_progress
    ) -> None:
        """Rank all rows by a factorised model; call ``advance`` with the number of rows done."""
        answer_scores = np.empty(len(self.plan.targets)) if self.answers is None else self.answers
        parts = self._divide_rows(factors.dtype.itemsize)
        codes = self._quantise(factors, parts)

        def rank_part(start: int, stop: int) -> None:
            queries = factors.queries[start:stop]
            if self.answers is None:
                _core.factor_target_scores(self.task, queries, *factors.table, start, answer_scores)
            tally = _core.rank_factors(
                self.task,
                queries,
                *factors.table,
                start,
                first_entity=self.first_entity,
                ids=self._candidates_of_row(start),
                target_scores=answer_scores,
                codes=codes,
            )
            self._tallies.append(tally)
            advance(stop - start)

        share_rows(rank_part, parts, self.threads)
        _last_shares[:] = [self.shares]

    @property
    def shares(self) -> tuple[float, float] | None:
        """Shares of a factorised model's scores that were computed, and decided by 16 bits.

        The second level of bounds has 16 bits. The first level decided all other scores. A score
        that several answers need counts for each. None without a factorised model.
        """
        pairs, tiled, refined, close = np.sum([(0, 0, 0, 0), *self._tallies], axis=0).tolist()
        return ((tiled + close) / pairs, max(0, refined - close) / pairs) if pairs else None

    def _quantise(self, factors: Factors, parts: list[tuple[int, int]]) -> _core.Codes | None:
        """Quantise the entities for ranking by bounds, once for all parts, with all threads.

        Returns None for one part, restricted candidates, or a mapped table, which is read a block
        at a time.
        """
        one_part = len(parts) < 2
        if one_part or self._candidate_lists is not None or find_mapped_file(factors.entities):
            return None
        codes = _core.Codes(
            factors.queries,
            *factors.table,
            first_entity=self.first_entity,
            call_rows=min(stop - start for start, stop in parts),
            depth=self.best_ids.shape[1],
            most_bytes=_CODES_BYTES * self.threads,
        )
        share_rows(codes.encode, _divide_evenly(0, codes.n_parts, self.threads), self.threads)
        return codes

    def _candidates_of_row(self, row: int) -> Int32 | None:
        """Return the restricted candidates of a row, which all rows of its part share."""
        if self._candidate_lists is None:
            return None
        number = self._candidate_lists.of[self.plan.question[row]]
        return None if number < 0 else self._candidate_lists.lists[int(number)]

    def _divide_rows(self, itemsize: int) -> list[tuple[int, int]]:
        """Divide the rows into parts, one per call of the core.

        The rows of a part have the same candidate list, and are few enough for the scratch memory
        of their best entities.
        """
        n_rows = self.plan.n_rows
        best_bytes = (2 * self.best_ids.shape[1] + 64) * 2 * itemsize
        height = max(8, min(_FACTOR_ROWS, _BEST_BYTES // best_bytes, -(-n_rows // self.threads)))
        changes = [0, n_rows]
        if self._candidate_lists is not None:
            lists = self._candidate_lists.of[self.plan.question]
            changes = [0, *(np.flatnonzero(np.diff(lists)) + 1).tolist(), n_rows]
        parts = []
        for low, high in pairwise(changes):
            n = -(-(high - low) // height)  # equal per thread if there are enough
            n = n if n < self.threads else -(-n // self.threads) * self.threads
            parts += _divide_evenly(low, high, n)
        return parts


def _divide_evenly(start: int, stop: int, n: int) -> list[tuple[int, int]]:
    """Divide the rows from `start` to `stop - 1` into at most n contiguous parts of even size."""
    n = min(n, stop - start)
    bounds = [start + (stop - start) * part // n for part in range(n + 1)] if n else []
    return list(pairwise(bounds))


_last_shares: list[tuple[float, float] | None] = [None]


def last_shares() -> tuple[float, float] | None:
    """Return `NativeRanking.shares` of the last factorised model in this process."""
    return _last_shares[0]
