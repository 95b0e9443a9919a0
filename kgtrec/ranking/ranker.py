"""`Ranker`: ranks scores batch by batch, as a loop of the user's own produces them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.progress import progress_bar
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.questions import describe_question
from kgtrec.ranking.blocks import check_nan, nan_error, rank_block, rank_vectors
from kgtrec.ranking.kernel import NativeRanking, available_cores, whole_number
from kgtrec.ranking.partial import Task, assemble, take_partial
from kgtrec.ranking.row_plan import QuestionLists, plan_rows
from kgtrec.scores.arrays import as_array, score_dtype
from kgtrec.scores.factors import Factors

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["Batch", "Ranker"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


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

    Notes
    -----
    Several threads may `update` at the same time, each with batches of its own: results are those
    of one thread, in whatever order. A process may fork between calls, and parent and child go on
    apart, each with its own copy; not while another thread is in a call.

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
        _check_questions(questions)
        if rows not in ("questions", "instances"):
            raise UsageError(f"rows={rows!r} is unknown; choose 'questions' or 'instances'")
        check_nan(nan)
        if not isinstance(higher_is_better, (bool, np.bool_)):
            raise UsageError(f"higher_is_better={higher_is_better!r}; choose True or False")
        self.questions = questions
        self.run_depth = whole_number("run_depth", run_depth, 0)
        self.threads = available_cores() if threads is None else whole_number("threads", threads, 1)
        self.rows, self.higher_is_better, self.nan = rows, bool(higher_is_better), nan
        self._lists, self._plan = QuestionLists.of(questions), plan_rows(questions, rows)
        self._scored = np.zeros(self._plan.n_rows, dtype=bool)
        self._state: NativeRanking | None = None
        self._finished = False
        self._lock = Lock()  # of the state's making and of claims
        self._at_work: dict[object, tuple[int, int]] = {}  # rows that calls are ranking

    @property
    def n_rows(self) -> int:
        """Rows of scores wanted in all."""
        return self._plan.n_rows

    def batches(self, size: int = 512) -> Iterator[Batch]:
        """All rows, in their order, in batches of up to ``size``, each of one side alone.

        ``batch.side[0]`` is the side of the whole batch; the last batch of a side may be smaller.
        """
        size = whole_number("size", size, 1)
        sides = self.questions.side[self._plan.question]
        ends = np.append(np.flatnonzero(np.diff(sides)) + 1, self.n_rows).tolist()
        for first, end in zip([0, *ends], ends, strict=False):
            for start in range(first, end, size):
                yield self.batch(start, min(start + size, end))

    def batch(self, start: int, stop: int) -> Batch:
        """The rows ``start`` to ``stop - 1`` as one batch; UsageError beyond the rows there are."""
        if not 0 <= start < stop <= self.n_rows:
            raise UsageError(
                f"no batch has rows {start} to {stop - 1}: there are {self.n_rows} rows"
            )
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
            any strides, numpy or anything with DLPack or ``__array__``. They are read where they
            stand: what is written to them before the call returns may or may not be ranked.

        Raises
        ------
        UsageError
            The batch was given before or is being ranked by another thread, belongs to another
            ranker, or the ranker is finished.
        InputError
            Wrong shape or dtype, or a NaN among the candidates.

        Notes
        -----
        Whatever it raises, Ctrl-C too, its threads have stopped by then, nothing of the batch is
        kept, and it may be given again.
        """
        if not isinstance(batch, Batch) or batch.owner is not self:
            raise UsageError("update needs a batch that came from this ranker's batches()")
        block = as_array(scores)
        expected = (len(batch), self.questions.n_columns)
        if block.shape != expected:
            raise InputError(
                f"scores have shape {block.shape} for {batch}; expected {expected}: "
                "a row per row of the batch, a column per entity (or per listed candidate)"
            )
        dtype, claim = score_dtype(block), object()
        try:
            self._claim(claim, batch.start, batch.stop)
            state = self._open(dtype)
            state.reset(batch.start, batch.stop)
            rank_block(
                state, block, batch.start, self._refuse, higher_is_better=self.higher_is_better
            )
            self._scored[batch.start : batch.stop] = True
        finally:
            if claim in self._at_work:  # no call here: nothing can interrupt it
                del self._at_work[claim]

    def _claim(self, claim: object, start: int, stop: int) -> None:
        """Take rows that no other call may rank until the claim is taken out of `_at_work`."""
        with self._lock:
            self._check_free(start, stop)
            self._at_work[claim] = start, stop

    def _check_free(self, start: int, stop: int) -> None:
        if self._finished:
            raise UsageError("this ranker is finished; make a new one")
        # Those at work first: a call marks its rows as scored before it leaves them.
        for low, high in list(self._at_work.values()):
            if low < stop and start < high:
                raise UsageError(
                    f"rows {start} to {stop - 1}: another thread is ranking rows {low} to "
                    f"{high - 1} now; give every batch once"
                )
        again = np.flatnonzero(self._scored[start:stop])
        if len(again):
            raise UsageError(
                f"rows {start} to {stop - 1} were given twice: row {start + again[0]} "
                f"({self._describe_row(start + int(again[0]))}) has its scores already; "
                "give every batch once"
            )

    def _describe_row(self, row: int) -> str:
        return describe_question(self.questions, int(self._plan.question[row]))

    @property
    def _refuse(self) -> Any:
        return None if self.nan == "worst" else partial(nan_error, self.questions)

    def _open(self, dtype: str) -> NativeRanking:
        with self._lock:
            if self._state is None:
                self._state = NativeRanking(
                    self._lists, self._plan, self.run_depth, dtype, self.threads
                )
            state = self._state
        if state.dtype != dtype:
            raise InputError(
                f"scores have dtype {dtype}, and earlier ones {state.dtype}; "
                "ties are exact only within one dtype: give all rows in the same"
            )
        return state

    def rank_factors(self, factors: Factors, progress: bool | None = None) -> None:
        """Rank every row by a factorised model, without its score matrix."""
        if not self.higher_is_better:
            raise UsageError(
                "Factors score higher-is-better (metric='l2' is minus the squared distance); "
                "leave higher_is_better as it is (no --lower-is-better)"
            )
        expected = (self.n_rows, self.questions.n_entities)
        if (len(factors.queries), len(factors.entities)) != expected:
            raise InputError(
                f"Factors hold {len(factors.queries)} queries, {len(factors.entities)} entities; "
                f"expected {expected[0]} (one per row of rows={self.rows!r}) and {expected[1]}"
            )
        claim = object()
        try:
            self._claim(claim, 0, self.n_rows)
            with progress_bar(self.n_rows, "rows", progress) as bar:
                self._state = rank_vectors(
                    self._lists,
                    self._plan,
                    factors,
                    self.run_depth,
                    self.threads,
                    self._refuse,
                    advance=bar.update,
                )
            self._scored[:] = True
        finally:
            if claim in self._at_work:  # no call here: nothing can interrupt it
                del self._at_work[claim]

    def finish(self) -> tuple[Ranks, Run]:
        """Ranks and run of all rows; the same again, as objects of their own, if called again.

        Raises
        ------
        UsageError
            Some rows were never scored, or another thread is ranking some: the message says which.
        """
        with self._lock:
            self._check_complete()
            self._finished = True
        state = self._state
        assert state is not None  # there is at least one question, so there was an update
        questions, everything = self.questions, Task(0, self.n_rows, 0, self.questions.n_entities)
        part = take_partial(state, everything, self.run_depth, self.nan, questions.fingerprint)
        return assemble(
            [part],
            self._plan,
            questions,
            rows=self.rows,
            higher_is_better=self.higher_is_better,
        )

    def _check_complete(self) -> None:
        for low, high in list(self._at_work.values()):
            raise UsageError(
                f"another thread is ranking rows {low} to {high - 1} now; finish() when every "
                "update() has returned"
            )
        missing = np.flatnonzero(~self._scored)
        if len(missing):
            ends = np.flatnonzero(np.diff(missing) > 1)
            last = missing[ends[0]] if len(ends) else missing[-1]
            raise UsageError(
                f"{len(missing)} of {self.n_rows} rows were never scored, the first of them "
                f"rows {missing[0]} to {last} ({self._describe_row(int(missing[0]))}); "
                "update() every batch before finish()"
            )


def _check_questions(questions: Any) -> None:
    from kgtrec.questions.api import Questions

    if not isinstance(questions, Questions):
        raise UsageError(
            f"questions are of type {type(questions).__name__}; "
            "pass what graph.questions() returns, after the scores"
        )
