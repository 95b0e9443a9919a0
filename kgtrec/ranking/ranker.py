"""`Ranker`: ranks scores batch by batch, as a loop of the user's own produces them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.progress import progress_bar
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.questions import describe_question
from kgtrec.ranking.kernel import NativeRanking, active_path, available_cores, whole_number
from kgtrec.ranking.row_plan import RowPlan, plan_rows
from kgtrec.scores.arrays import as_array, comparable, directed, score_dtype
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
        if nan not in ("error", "worst"):
            raise UsageError(f"nan={nan!r} is unknown; choose 'error' or 'worst'")
        if not isinstance(higher_is_better, (bool, np.bool_)):
            raise UsageError(f"higher_is_better={higher_is_better!r}; choose True or False")
        self.questions = questions
        self.run_depth = whole_number("run_depth", run_depth, 0)
        self.threads = available_cores() if threads is None else whole_number("threads", threads, 1)
        self.rows, self.higher_is_better, self.nan = rows, bool(higher_is_better), nan
        self._plan: RowPlan = plan_rows(questions, rows)
        self._scored = np.zeros(self._plan.n_rows, dtype=bool)
        self._state: NativeRanking | None = None
        self._finished = False

    @property
    def n_rows(self) -> int:
        """Rows of scores wanted in all."""
        return self._plan.n_rows

    def batches(self, size: int = 512) -> Iterator[Batch]:
        """All rows in batches of ``size`` (the last may be smaller)."""
        size = whole_number("size", size, 1)
        for start in range(0, self.n_rows, size):
            yield self.batch(start, min(start + size, self.n_rows))

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
        expected = (len(batch), self.questions.n_columns)
        if block.shape != expected:
            raise InputError(
                f"scores have shape {block.shape} for {batch}; expected {expected}: "
                "a row per row of the batch, a column per entity (or per listed candidate)"
            )
        self._claim(batch.start, batch.stop)
        dtype = score_dtype(block)
        state = self._open(dtype)
        block = comparable(block, dtype)
        state.reset(batch.start, batch.stop)
        state.rank_rows(block, batch.start, negate=not self.higher_is_better)
        self._settle_nans(
            batch.start,
            batch.stop,
            lambda row: directed(block[row - batch.start], dtype, self.higher_is_better),
        )
        self._scored[batch.start : batch.stop] = True

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

    def _open(self, dtype: str) -> NativeRanking:
        if self._state is None:
            self._state = NativeRanking(
                self.questions, self._plan, self.run_depth, dtype, self.threads
            )
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
            scores = self._by_entity(row, row_scores(row))
            candidates = self._plan.row_candidates(self.questions, row)
            wrong = np.flatnonzero(np.isnan(scores) & candidates)
            state.nan_count[row] = len(wrong)
            if len(wrong) and self.nan == "error":
                entity = int(wrong[0])
                raise InputError(
                    f"scores: NaN for {self._describe_row(row)}, entity "
                    f"{self.questions.graph.entities[entity]!r} (id {entity})"
                    + (f" and {len(wrong) - 1} more of its candidates" if len(wrong) > 1 else "")
                    + "; mend the model, or count NaN as the worst score: nan='worst' (--nan worst)"
                )
            jobs = slice(self._plan.job_offsets[row], self._plan.job_offsets[row + 1])
            state.job_nan[jobs] = np.isnan(scores[self._plan.jobs[jobs]])

    def _by_entity(self, row: int, scores: Array) -> Array:
        """A row's scores in id order, where its columns are the question's candidates."""
        domain = self.questions.domain
        if domain is None or domain.columns is None:
            return scores
        number = int(domain.of[self._plan.question[row]])
        span = slice(domain.lists.offsets[number], domain.lists.offsets[number + 1])
        spread = np.zeros(self.questions.n_entities)
        spread[domain.lists.ids[span]] = scores[domain.columns[span]]
        return spread

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
        self._claim(0, self.n_rows)
        if self.questions.domain is not None:
            # Rows with the same candidates follow one another, so that these are packed once.
            order = np.argsort(self.questions.domain.of[self._plan.question], kind="stable")
            self._plan = self._plan.reordered(order)
            factors = Factors(factors.queries[order], *factors.table)
        state = self._open(factors.dtype.name)
        state.reset(0, self.n_rows)
        with progress_bar(self.n_rows, "rows", progress) as bar:
            state.rank_factors(factors, advance=bar.update)
        self._settle_nans(0, self.n_rows, lambda row: factors.scores(row, row + 1)[0])
        self._scored[:] = True

    def finish(self) -> tuple[Ranks, Run]:
        """Ranks and run of all rows.

        Raises
        ------
        UsageError
            Some rows were never scored: the message says which.
        """
        from kgtrec.ranking.ranks import assemble_ranks

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
            "kernel_path": active_path(),
        }
        if state.computed is not None:
            scores["scores_computed"] = state.computed
        counts, unscored = self._plan.collect(state.counts, state.job_nan)
        return assemble_ranks(self.questions, counts, unscored, scores), self._run()

    def _run(self) -> Run:
        from kgtrec.trec.files.run import Run

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


def _check_questions(questions: Any) -> None:
    from kgtrec.questions.api import Questions

    if not isinstance(questions, Questions):
        raise UsageError(
            f"questions are of type {type(questions).__name__}; "
            "pass what graph.questions() returns, after the scores"
        )
