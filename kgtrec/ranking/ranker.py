"""`Ranker`: ranks scores in batches, as a loop of the user produces them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Int64
from kgtrec._internal.locks import hold_lock
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.questions.graph_terms import fact_rows
from kgtrec.questions.questions import column_of_label, describe_question
from kgtrec.questions.selection import pair_rows
from kgtrec.questions.terms import NAMES, PLURAL, SIDES
from kgtrec.ranking.blocks import nan_error, rank_block
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import build_ranks, build_run
from kgtrec.ranking.ranked_rows import RankedRows
from kgtrec.ranking.ranks import RanksAndRun
from kgtrec.ranking.rows import (
    QuestionLists,
    RowClaims,
    RowPlan,
    as_index,
    is_consecutive,
    parse_rows,
    plan_rows,
)
from kgtrec.ranking.settings import RankOptions, Settings, whole_number
from kgtrec.scores.arrays import ScoreBlock, as_array, as_block, to_host
from kgtrec.scores.mapped_files import reading

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows to score.

    Attributes
    ----------
    start, stop : int
        The rows of the ranking that this batch covers.
    entity, relation, side : ndarray of int64, shape (stop - start,)
        The given entity, the relation, and the side that is asked: 0 = head (?, r, entity),
        1 = tail (entity, r, ?), 2 = relation (entity, ?, tail), where `relation` is -1,
        3 = value of a qualifier (`statement`, its relation r, ?), with `entity` -1,
        4 = questions without a graph, with both -1.
    tail : ndarray of int64, or None
        The given tail, if the relation is asked.
    statement : ndarray of int64, shape (stop - start, 3), or None
        Head, relation and tail of the statement, if a qualifier's value is asked.
    context : ndarray of int64, or None
        Index of the question's time in ``graph.contexts``, or of its set of (other) qualifiers in
        ``graph.qualifiers``.
    question : ndarray of int64
        Index of each row's question.
    column : ndarray of int64
        Score column of the given entity in the model (``entity`` unless `columns` declare another
        order).
    """

    start: int
    stop: int
    entity: Int64
    relation: Int64
    side: Int64
    question: Int64
    column: Int64
    owner: Ranker = field(repr=False)
    tail: Int64 | None = None
    statement: Int64 | None = None
    context: Int64 | None = None

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"Batch(rows {self.start} to {self.stop - 1})"


class Ranker:
    """Ranks scores in batches, as a loop produces them.

    Parameters
    ----------
    questions : Questions
        The questions, their answers and their filters.
    run_depth : int
        Number of best candidates to keep per question, in trec order. 0: no run.
    threads : int, optional
        Threads that rank a batch; every core by default. Results do not depend on it.
    rows : {"questions", "instances"}
        Meaning of a row of scores: a question, or a (triple, side). Instances are all triples of
        the split with the head asked, then all with the tail asked (``questions.triple_rows``).
        Then the micro counts of an instance come from its row. Macro counts and the run come from
        the question's first row.
    higher_is_better : bool
        False for distances: scores are negated before they are compared, exactly.
    nan : {"error", "worst"}
        Treat a NaN among the candidates as an error, or as a score below every other.
    duplicates : {"error", "ignore"}
        Treat a repeated row as an error, or ignore it unread: distributed samplers repeat rows to
        fill their last batches.
    columns : sequence of str or of int, or mapping of str to int, optional
        Order of the model's columns, as for `Graph.questions`, if the questions do not declare it.
    atol, rtol : float, default 0
        A candidate within ``atol + rtol |answer's score|`` of the answer's score ties with it in
        its micro rank, as in LibKGE (whose defaults are 1e-5 and 1e-4). This is computed in the
        dtype of the scores. Ordinal ranks, macro ranks and the run use exact ties.

    Notes
    -----
    Several threads may call `update` at the same time, each with different batches. Results equal
    those of a single thread, in any order. A process may fork between calls, but not while another
    thread is in a call. Parent and child then continue separately, each with a copy.

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
        duplicates: str = "error",
        **options: Unpack[RankOptions],
    ) -> None:
        settings = Settings.from_options(
            "Ranker",
            RankOptions,
            options,
            run_depth=run_depth,
            threads=threads,
            duplicates=duplicates,
        )
        self.questions, self.settings = questions, settings
        self._lists, self._plan = prepare_rows(questions, settings)
        question_of_row = self._plan.question
        self._claims = RowClaims(
            len(question_of_row),
            settings.duplicates,
            lambda row: describe_question(questions, int(question_of_row[row])),
        )
        self._state: NativeRanking | None = None
        self._paths: set[str] = set()  # kernel paths of merged rows
        self._users: set[object] = set()  # claims of calls that write to `_state`
        self._lock = RLock()  # held while `_state` is made

    @property
    def n_rows(self) -> int:
        """Number of rows of scores in total."""
        return self._plan.n_rows

    @property
    def n_scored(self) -> int:
        """Number of rows that have scores so far."""
        return int(self._claims.scored.sum())

    def batches(self, size: int = 512) -> Iterator[Batch]:
        """Yield all rows, in order, in batches of up to `size`; each batch has a single side.

        ``batch.side[0]`` is the side of the whole batch. The last batch of a side may be smaller.
        """
        size = whole_number("size", size, 1)
        sides = self.questions.side[self._plan.question]
        ends = np.append(np.flatnonzero(np.diff(sides)) + 1, self.n_rows).tolist()
        for first, end in zip([0, *ends], ends, strict=False):
            for start in range(first, end, size):
                yield self.batch(start, min(start + size, end))

    def batch(self, start: int, stop: int) -> Batch:
        """Return the rows `start` to `stop - 1` as a batch; UsageError beyond the last row."""
        if not 0 <= start < stop <= self.n_rows:
            raise UsageError(
                f"rows {start} to {stop - 1} are not a batch; give 0 <= start < stop <= "
                f"{self.n_rows}"
            )
        question = self._plan.question[start:stop]
        terms = self.questions.origin.batch_terms(question)
        column = entity = terms["entity"]
        column_of = self._lists.column_of
        if column_of is not None and "tail" not in terms and (entity >= 0).all():
            column = column_of[entity]
        return Batch(start, stop, question=question, column=column, owner=self, **terms)

    def rows_of(self, triples: npt.ArrayLike, side: str) -> Int64:
        """Return the ids of the rows that ask a side of some triples, for `update`.

        Parameters
        ----------
        triples : array-like of int, shape (n, 3)
            Head, relation, tail of evaluated triples, in any order. If questions have a context, it
            is the fourth column: shape (n, 4).
        side : {"head", "tail", "relation"}
            The side that is asked.

        Returns
        -------
        ndarray of int64, shape (n,)
            With ``rows="questions"``, triples with the same question have the same row.

        Raises
        ------
        InputError
            A triple is not evaluated; the message names it.
        UsageError
            A side that these questions do not ask.
        """
        codes = [NAMES[code] for code in SIDES[self.questions.sides]]
        if side not in codes:
            raise UsageError(
                f"{argument('side', side)} is not asked; these questions ask "
                f"{self.questions.sides!r}"
            )
        origin = self.questions.of_graph("triples")
        row = fact_rows(origin, as_array(to_host(triples), "triples"))
        row = pair_rows(origin, row + codes.index(side) * len(origin.triples))
        if self.settings.rows == "instances":
            return row.astype(np.int64)
        question = self.questions.instance_question[self.questions.triple_rows[row]]
        return question.astype(np.int64)

    def update(self, rows: Batch | npt.ArrayLike, scores: Any) -> None:
        """Rank a batch.

        Parameters
        ----------
        rows : Batch, or array-like of int, shape (n,)
            From `batches` of this ranker; or the ids of any rows, in any order (`rows_of`).
        scores : array, shape (len(rows), n_entities)
            Rows as in `rows`, columns in entity-id order (in relation-id order, if the relation is
            asked). The dtype is float16, bfloat16, float32, float64 or an integer, which is
            compared as float64, with any strides. numpy or anything with DLPack or ``__array__``
            is accepted. A torch tensor on a device is copied in pieces, each while the previous
            piece is ranked. Other arrays are read in place: values written before the call returns
            may or may not be ranked.

        Raises
        ------
        UsageError
            A row was given before (unless duplicates are ignored) or is being ranked by another
            thread, the batch belongs to another ranker, or the ranker is finished.
        InputError
            Wrong shape or dtype, ids that are not rows, a NaN among the candidates, or an integer
            that float64 rounds.
        FileError
            The file that the scores map was written to or cut short meanwhile.

        Notes
        -----
        After any exception, Ctrl-C included, the threads have stopped and no result of the batch is
        kept. You may pass the batch again.
        """
        ids = self._row_ids(rows)
        with reading("scores"):  # which may map a file
            block = self._build_block(rows, ids, as_block(scores))
        self.rank_checked(ids, block)

    def _build_block(self, rows: Any, ids: Int64, scores: Any) -> ScoreBlock:
        """Return the scores of rows as a block; InputError if their shape or dtype is wrong."""
        expected = (len(ids), self.questions.n_columns)
        if tuple(scores.shape) != expected:
            named = rows if isinstance(rows, Batch) else f"{len(ids)} rows"
            raise InputError(
                f"scores have shape {tuple(scores.shape)} for {named}; expected {expected}: "
                f"one row per row of the batch, one column per {self.questions.kind} (or per "
                "listed candidate)"
            )
        return ScoreBlock.from_scores(scores, not self.settings.higher_is_better)

    def rank_checked(self, ids: Int64, block: ScoreBlock) -> None:
        """Rank rows without checks of ids (int64, shape (n,)) and scores; see `update`."""

        def rank_new(claim: object, new: Bools) -> None:
            # Within `rank_new`, so that rows of a file that is cut short do not count as scored.
            with reading("scores", block.array):
                if new.all():
                    self._rank(ids, block, self._state_for(block.dtype, claim))
                elif new.any():
                    some = block.select(np.flatnonzero(new))
                    self._rank(ids[new], some, self._state_for(block.dtype, claim))

        self._work_on_claimed(ids, rank_new)

    def _work_on_claimed(self, ids: Int64, work: Callable[[object, Bools], None]) -> None:
        """Claim rows, so that no other call ranks them, and call `work` with the new ones.

        `work` gets the claim, and a mask of the rows without scores, bool (len(ids),). These count
        as scored afterwards.
        """
        claim = object()
        try:
            new = self._claims.claim_rows(claim, ids)
            work(claim, new)
            self._claims.scored[as_index(ids) if new.all() else ids[new]] = True
        finally:
            if claim in self._claims.at_work:  # calls no function, so that Ctrl-C cannot interrupt
                del self._claims.at_work[claim]

    def _row_ids(self, rows: Any) -> Int64:
        """Return the ids of the rows of a batch, or of row ids; errors as for `update`."""
        if not isinstance(rows, Batch):
            return parse_rows(rows, self.n_rows)
        if rows.owner is not self:
            raise UsageError("update needs a batch that came from this ranker's batches()")
        return np.arange(rows.start, rows.stop)

    def _rank(self, ids: Int64, block: ScoreBlock, state: NativeRanking) -> None:
        """Rank claimed rows: in place, or separately if they are out of order."""
        make_error = partial(nan_error, self.questions)
        if is_consecutive(ids):
            first = int(ids[0])
            state.reset(first, first + len(ids))
            for piece in block.at(first).pieces():
                rank_block(state, piece, make_error)
            return
        part, questions = state.select(ids)
        for piece in block.at(0).pieces():
            rank_block(part, piece, lambda row, *nan: make_error(int(questions[row]), *nan))
        state.take_over(part, ids)

    @hold_lock
    def _state_for(self, dtype: str, claim: object) -> NativeRanking:
        """Return the native ranking that a claim writes to; the first rows decide its dtype."""
        at_work = self._claims.at_work
        self._users = {user for user in self._users if user in at_work}
        state = self._state
        # A call that ended has marked its rows: if no row is marked, nothing was kept.
        other = state is not None and state.dtype != dtype
        if state is None or (other and not self._users and not self._claims.scored.any()):
            state = self._state = NativeRanking(self._lists, self._plan, self.settings, dtype)
        self._users.add(claim)
        state.check_dtype(dtype)
        return state

    def partial(self) -> RankedRows:
        """Return the rows that have scores so far, for another process to merge.

        Raises
        ------
        UsageError
            No row has its scores yet.
        """
        rows, state = np.flatnonzero(self._claims.scored), self._state
        if state is None or not len(rows):
            raise UsageError("no row has scores yet; call update() first")
        return RankedRows.from_ranking(state, rows, self.questions)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rows that have scores so far to a file, for `merge`.

        Raises
        ------
        UsageError
            No row has its scores yet.
        FileError
            It cannot be written.
        """
        self.partial().save(path)

    def merge(self, other: Ranker | RankedRows | str | PathLike[str]) -> None:
        """Take over the rows that another ranker of the same questions has ranked.

        In a distributed evaluation, every process ranks its rows. Then a process merges the rows
        that the others sent (`partial`) or saved (`save`), and finishes with the same results as a
        single process.

        Parameters
        ----------
        other : Ranker, RankedRows, or the path of a file from `save`

        Raises
        ------
        UsageError
            A row is ranked already (unless duplicates are ignored), or the other ranker has other
            questions, run depth, layout of rows, score direction or rule for NaN.
        InputError
            Scores of another dtype.
        FileError
            A file is missing or damaged, or is another kind of file.
        """
        ranked = other.partial() if isinstance(other, Ranker) else other
        if isinstance(ranked, (str, PathLike)):
            ranked = RankedRows.load(ranked)
        if not isinstance(ranked, RankedRows):
            raise UsageError(
                f"merge takes a Ranker, the result of partial(), or a path; got {type(other)}"
            )
        ranked.check(self.questions, self.settings, self._plan, self._lists)
        if self._state is not None and self._claims.scored.any():
            self._state.check_dtype(ranked.part.dtype)

        def write_new(claim: object, new: Bools) -> None:
            ranked.write_to(self._state_for(ranked.part.dtype, claim), new)
            self._paths.update(ranked.part.path.split(", "))

        self._work_on_claimed(ranked.row_ids, write_new)

    def finish(self) -> RanksAndRun:
        """Return ranks and run of all rows; another call returns equal, separate objects.

        Raises
        ------
        UsageError
            Some rows were never scored, or another thread is ranking them: the message names them.
        """
        self._claims.close()
        assert self._state is not None  # there is at least one question, so there was an update
        ranks = build_ranks(self._state, self.questions, self._paths, copied=True)
        return RanksAndRun(ranks, build_run(self._state, self.questions, copied=True))


def check_factors(
    questions: Questions, n_rows: int, shape: tuple[int, ...], settings: Settings
) -> None:
    """Raise UsageError or InputError unless a factorised model of this shape can be ranked."""
    if not settings.higher_is_better:
        raise UsageError(
            "Factors are always higher-is-better (metric='l2' is minus the squared distance); "
            f"leave out {argument('higher_is_better', False, option='lower_is_better')}"
        )
    if shape != (n_rows, questions.n_labels):
        by_entity = questions.split is not None and questions.kind == "entity"
        hint = questions.graph.hint_of_width(shape[1]) if by_entity else ""
        raise InputError(
            f"Factors have {shape[0]} queries, {shape[1]} candidates; expected {n_rows} "
            f"(one per row of rows={settings.rows!r}) and {questions.n_labels}"
            + f"; {hint}"
            * bool(hint)
        )


def prepare_rows(questions: Questions, settings: Settings) -> tuple[QuestionLists, RowPlan]:
    """Return the lists and rows of a ranking; UsageError or InputError if it is impossible."""
    if not isinstance(questions, Questions):
        raise UsageError(
            f"questions have type {type(questions).__name__}; "
            "pass what graph.questions() returns, after the scores"
        )
    lists, plan = QuestionLists.from_questions(questions), plan_rows(questions, settings.rows)
    if settings.columns is None:
        return lists, plan
    return replace(lists, column_of=column_order(questions, settings.columns)), plan


def column_order(questions: Questions, columns: Any) -> Int64:
    """Return the score column of each id, int64 (n_labels,).

    UsageError or InputError if `columns` cannot be the order of columns.
    """
    if questions.column_of is not None:
        raise UsageError("the questions already declare columns=; leave columns= out here")
    if questions.n_columns != questions.n_labels or (
        questions.candidate_lists is not None and questions.candidate_lists.columns is not None
    ):
        raise UsageError(
            "rows of these questions have only their candidates (columns='candidates'), but "
            f"columns= orders the columns of all {PLURAL[questions.kind]}; leave columns= out"
        )
    return column_of_label(columns, questions.candidate_labels, questions.kind)
