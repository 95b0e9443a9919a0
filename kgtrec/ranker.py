"""`Ranker`: ranks scores batch by batch, as a loop of the user's own produces them.

Rows are shared out over threads in contiguous parts. That is legal because a row's results have
places of their own; the counts are integers and the best entities are totally ordered, so the
result has the same bits for every number of threads and every size of chunk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec import _core
from kgtrec.errors import InputError, UsageError
from kgtrec.plan import RowPlan, plan_rows
from kgtrec.progress import progress_bar
from kgtrec.scores import Factors, as_array, score_dtype

if TYPE_CHECKING:
    from kgtrec.questions import Questions
    from kgtrec.ranks import Ranks
    from kgtrec.trec.run import Run

__all__ = ["Batch", "Ranker", "describe_question"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

# Scratch for the best entities of the rows in flight, and rows per call, of a factorised model.
_BEST_BYTES = 64 << 20
_FACTOR_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows to score.

    Attributes
    ----------
    start, stop : int
        The rows of the ranking that this batch covers.
    entity, relation, side : ndarray of int64, shape (stop - start,)
        The given entity, the relation, and which side is asked: 0 = head (?, r, entity),
        1 = tail (entity, r, ?).
    question : ndarray of int64
        Index of each row's question.
    """

    start: int
    stop: int
    entity: Int64
    relation: Int64
    side: Int64
    question: Int64
    owner: Ranker = field(repr=False)

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"Batch(rows {self.start} to {self.stop - 1})"


class Ranker:
    """Ranks scores as a loop produces them.

    Parameters
    ----------
    questions : Questions
        What is asked, the answers, and what is filtered.
    run_depth : int
        Best candidates to keep per question, in trec order. 0: no run.
    threads : int, optional
        Threads that rank a batch; every core by default. Results don't depend on it.
    rows : {"questions", "instances"}
        What a row of scores stands for: a question, or a (triple, side): all triples of the split
        with the head asked, then all with the tail asked (``questions.triple_rows``). With
        "instances", an instance's micro counts come from its own row; macro counts and the run
        from the question's first row.
    higher_is_better : bool
        False for distances: scores are negated before they are compared, exactly.
    nan : {"error", "worst"}
        What a NaN among the candidates is: an error, or a score below every other.

    Examples
    --------
    >>> ranker = kgtrec.Ranker(questions, run_depth=100)            # doctest: +SKIP
    >>> for batch in ranker.batches(512):                           # doctest: +SKIP
    ...     ranker.update(batch, model.score(batch.entity, batch.relation, batch.side))
    >>> ranks, run = ranker.finish()                                # doctest: +SKIP
    """

    def __init__(
        self,
        questions: Questions,
        run_depth: int = 0,
        threads: int | None = None,
        *,
        rows: str = "questions",
        higher_is_better: bool = True,
        nan: str = "error",
    ) -> None:
        if rows not in ("questions", "instances"):
            raise UsageError(f"rows={rows!r} is unknown; choose 'questions' or 'instances'")
        if nan not in ("error", "worst"):
            raise UsageError(f"nan={nan!r} is unknown; choose 'error' or 'worst'")
        self.questions = questions
        self.run_depth = _whole("run_depth", run_depth, 0)
        self.threads = _available_cores() if threads is None else _whole("threads", threads, 1)
        self.rows, self.higher_is_better, self.nan = rows, bool(higher_is_better), nan
        self._plan: RowPlan = plan_rows(questions, rows)
        self._scored = np.zeros(self._plan.n_rows, dtype=bool)
        self._state: _State | None = None
        self._finished = False

    @property
    def n_rows(self) -> int:
        """Rows of scores wanted in all."""
        return self._plan.n_rows

    def batches(self, size: int = 512) -> Iterator[Batch]:
        """All rows in batches of ``size`` (the last may be smaller)."""
        size = _whole("size", size, 1)
        for start in range(0, self.n_rows, size):
            yield self.batch(start, min(start + size, self.n_rows))

    def batch(self, start: int, stop: int) -> Batch:
        """The rows ``start`` to ``stop - 1`` as one batch."""
        questions, question = self.questions, self._plan.question[start:stop]
        return Batch(
            start,
            stop,
            entity=questions.entity[question],
            relation=questions.relation[question],
            side=questions.side[question],
            question=question,
            owner=self,
        )

    def update(self, batch: Batch, scores: Any) -> None:
        """Rank one batch.

        Parameters
        ----------
        batch : Batch
            From `batches` of this ranker.
        scores : array, shape (len(batch), n_entities)
            Rows as in the batch, columns in entity-id order; float16, bfloat16, float32 or float64,
            any strides, numpy or anything with DLPack or ``__array__``.

        Raises
        ------
        UsageError
            The batch was given before, belongs to another ranker, or the ranker is finished.
        InputError
            Wrong shape or dtype, or a NaN among the candidates. Nothing of the batch is kept then,
            and it may be given again.
        """
        if not isinstance(batch, Batch) or batch.owner is not self:
            raise UsageError("update needs a batch that came from this ranker's batches()")
        block = as_array(scores)
        expected = (len(batch), self.questions.n_entities)
        if block.shape != expected:
            raise InputError(
                f"scores have shape {block.shape} for {batch}; expected {expected}: "
                "a row per row of the batch, a column per entity"
            )
        self._claim(batch.start, batch.stop)
        dtype = score_dtype(block)
        state = self._open(dtype)
        block = _comparable(block, dtype)

        def rank_part(start: int, stop: int) -> None:
            part = block[start - batch.start : stop - batch.start]
            _core.rank_rows(state.task, part, dtype, start, negate=not self.higher_is_better)

        state.reset(batch.start, batch.stop)
        with self._pool() as pool:
            parts = _parts(batch.start, batch.stop, self.threads if pool else 1)
            _run(pool, rank_part, parts)
        self._settle_nans(
            batch.start, batch.stop, lambda row: self._directed(block[row - batch.start])
        )
        self._scored[batch.start : batch.stop] = True

    def _directed(self, row: Array) -> Array:
        with np.errstate(invalid="ignore"):  # widening a signalling NaN
            values: Array = np.asarray(row, dtype=np.float64)
        return values if self.higher_is_better else -values

    def _pool(self) -> Any:
        return ThreadPoolExecutor(self.threads) if self.threads > 1 else _NoPool()

    def _claim(self, start: int, stop: int) -> None:
        if self._finished:
            raise UsageError("this ranker is finished; make a new one")
        again = np.flatnonzero(self._scored[start:stop])
        if len(again):
            raise UsageError(
                f"rows {start} to {stop - 1} were given twice: row {start + again[0]} "
                f"({self._describe_row(start + int(again[0]))}) has its scores already; "
                "give every batch once"
            )

    def _describe_row(self, row: int) -> str:
        return describe_question(self.questions, int(self._plan.question[row]))

    def _open(self, dtype: str) -> _State:
        if self._state is None:
            self._state = _State(self.questions, self._plan, self.run_depth, dtype)
        if self._state.dtype != dtype:
            raise InputError(
                f"scores have dtype {dtype}, and earlier ones {self._state.dtype}; "
                "ties are exact only within one dtype: give all rows in the same"
            )
        return self._state

    def _settle_nans(self, start: int, stop: int, row_scores: Any) -> None:
        """NaN candidates of the rows just ranked: an error, or counted and put last."""
        state = self._state
        assert state is not None
        for row in (start + np.flatnonzero(state.nan_count[start:stop])).tolist():
            scores = row_scores(row)
            candidates = self._plan.row_candidates(self.questions, row)
            wrong = np.flatnonzero(np.isnan(scores) & candidates)
            state.nan_count[row] = len(wrong)
            if len(wrong) and self.nan == "error":
                entity = int(wrong[0])
                raise InputError(
                    f"scores: NaN for {self._describe_row(row)}, entity "
                    f"{self.questions.graph.entities[entity]!r} (id {entity})"
                    + (f" and {len(wrong) - 1} more of its candidates" if len(wrong) > 1 else "")
                    + "; mend the model, or count NaN as the worst score with nan='worst'"
                )
            jobs = slice(self._plan.job_offsets[row], self._plan.job_offsets[row + 1])
            state.job_nan[jobs] = np.isnan(scores[self._plan.jobs[jobs]])

    def rank_factors(self, factors: Factors, progress: bool | None = None) -> None:
        """Rank every row by a factorised model, without its score matrix."""
        if not self.higher_is_better:
            raise UsageError(
                "Factors score higher-is-better (metric='l2' is minus the squared distance); "
                "leave higher_is_better as it is"
            )
        expected = (self.n_rows, self.questions.n_entities)
        if (len(factors.queries), len(factors.entities)) != expected:
            raise InputError(
                f"Factors hold {len(factors.queries)} queries, {len(factors.entities)} entities; "
                f"expected {expected[0]} (one per row of rows={self.rows!r}) and {expected[1]}"
            )
        self._claim(0, self.n_rows)
        state = self._open(factors.dtype.name)
        job_scores = np.empty(len(self._plan.jobs))
        model = (factors.entities, factors.bias, factors.metric)
        bar = progress_bar(self.n_rows, "rows", progress)

        def rank_part(start: int, stop: int) -> None:
            queries = factors.queries[start:stop]
            _core.factor_job_scores(state.task, queries, *model, start, job_scores)
            _core.rank_factors(state.task, queries, *model, start, job_scores=job_scores)
            bar.update(stop - start)

        state.reset(0, self.n_rows)
        best_bytes = (2 * self.run_depth + 64) * 2 * factors.dtype.itemsize
        height = max(
            8, min(_FACTOR_ROWS, _BEST_BYTES // best_bytes, -(-self.n_rows // self.threads))
        )
        parts = [(i, min(i + height, self.n_rows)) for i in range(0, self.n_rows, height)]
        with bar, self._pool() as pool:
            _run(pool, rank_part, parts)
        self._settle_nans(0, self.n_rows, lambda row: factors.scores(row, row + 1)[0])
        self._scored[:] = True

    def finish(self) -> tuple[Ranks, Run]:
        """Ranks and run of all rows.

        Raises
        ------
        UsageError
            Some rows were never scored: the message says which.
        """
        from kgtrec.ranks import assemble_ranks

        missing = np.flatnonzero(~self._scored)
        if len(missing):
            ends = np.flatnonzero(np.diff(missing) > 1)
            last = missing[ends[0]] if len(ends) else missing[-1]
            raise UsageError(
                f"{len(missing)} of {self.n_rows} rows were never scored, the first of them "
                f"rows {missing[0]} to {last} ({self._describe_row(int(missing[0]))}); "
                "update() every batch before finish()"
            )
        state = self._state
        assert state is not None  # there is at least one question, so there was an update
        self._finished = True
        scores = {
            "dtype": state.dtype,
            "rows": self.rows,
            "higher_is_better": self.higher_is_better,
            "nan": self.nan,
            "nan_count": int(state.nan_count.sum()),
            "kernel_path": _core.active_path(),
        }
        counts, unscored = self._plan.collect(state.counts, state.job_nan)
        return assemble_ranks(self.questions, counts, unscored, scores), self._run()

    def _run(self) -> Run:
        from kgtrec.trec.run import Run

        state = self._state
        assert state is not None
        offsets = np.zeros(len(self.questions) + 1, dtype=np.int64)
        np.cumsum(state.best_length, out=offsets[1:])
        used = np.arange(state.best_ids.shape[1]) < state.best_length[:, None]
        return Run(
            query_ids=self.questions.ids,
            offsets=offsets,
            documents=state.best_ids[used],
            scores=state.best_scores[used],
            docnos=self.questions.graph.entities.docnos,
            depth=self.run_depth,
        )


class _State:
    """Arrays that the native task writes to: made at the first batch, when the dtype is known."""

    def __init__(self, questions: Questions, plan: RowPlan, depth: int, dtype: str) -> None:
        self.dtype = dtype
        depth = min(depth, questions.n_entities)
        kept = np.float64 if dtype == "float64" else np.float32
        self.counts = np.zeros((6, len(plan.jobs)), dtype=np.int64)
        self.best_ids = np.zeros((len(questions), depth), dtype=np.int32)
        self.best_scores = np.zeros((len(questions), depth), dtype=kept)
        self.best_length = np.zeros(len(questions), dtype=np.int32)
        self.nan_count = np.zeros(plan.n_rows, dtype=np.int64)
        self.nan_entity = np.zeros(plan.n_rows, dtype=np.int32)
        self.job_nan = np.zeros(len(plan.jobs), dtype=bool)
        self._job_offsets = plan.job_offsets
        position = questions.graph.entities.trec_order
        entity_at = None if position is None else np.argsort(position).astype(np.int32)
        self.task = _core.Task(
            plan.question,
            plan.job_offsets,
            plan.jobs,
            questions.known.offsets,
            questions.known.ids,
            questions.removed.offsets,
            questions.removed.ids,
            position,
            entity_at,
            questions.n_entities,
            self.counts,
            plan.slot,
            self.best_ids,
            self.best_scores,
            self.best_length,
            self.nan_count,
            self.nan_entity,
        )

    def reset(self, start: int, stop: int) -> None:
        """Forget what an update that failed has left in the rows."""
        jobs = slice(self._job_offsets[start], self._job_offsets[stop])
        self.counts[:, jobs] = 0
        self.job_nan[jobs] = False
        self.nan_count[start:stop] = 0


class _NoPool(ExitStack):
    """Stands for a pool where one thread does all the work."""

    def __bool__(self) -> bool:
        return False


def _run(pool: Any, rank_part: Any, parts: list[tuple[int, int]]) -> None:
    if not pool:
        for part in parts:
            rank_part(*part)
        return
    for future in [pool.submit(rank_part, *part) for part in parts]:
        future.result()


def _parts(start: int, stop: int, n: int) -> list[tuple[int, int]]:
    """At most n contiguous parts of the rows, as even as they come."""
    bounds = np.linspace(start, stop, n + 1).astype(int).tolist()
    return [(low, high) for low, high in pairwise(bounds) if high > low]


def _comparable(block: Array, dtype: str) -> Array:
    """The block in the machine's byte order, bfloat16 as its bits."""
    if not block.dtype.isnative:
        block = block.astype(block.dtype.newbyteorder("="))
    return block.view(np.uint16) if dtype == "bfloat16" else block


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{name}={value!r} is not a whole number from {least} on")
    return int(value)


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe_question(questions: Questions, question: int) -> str:
    """A question as people read it: ``question head12 (?, born_in, Rome)``."""
    graph = questions.graph
    entity = graph.entities[int(questions.entity[question])]
    relation = graph.relations[int(questions.relation[question])]
    asked = (
        f"(?, {relation}, {entity})"
        if questions.side[question] == 0
        else f"({entity}, {relation}, ?)"
    )
    return f"question {questions.ids[question]} {asked}"
