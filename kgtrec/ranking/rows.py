"""Rows of scores: the answers that each row counts, and claims so that no row is ranked twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from kgtrec._core import Lists, Order
from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Int32, Int64
from kgtrec._internal.csr import Csr, offsets_of, select_lists, spans
from kgtrec._internal.locks import hold_lock
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.questions.candidate_lists import CandidateLists
from kgtrec.ranking.columns import MACRO, MICRO, cache_of, get_or_make
from kgtrec.scores.arrays import as_array, to_host


@dataclass(frozen=True, eq=False)
class QuestionLists:
    """The filters, candidates and column order of questions that the kernel reads.

    - n_labels: Columns of a full row of scores: entities, or relations.
    - known, removed: Ids that are not micro candidates, and not macro candidates, per question.
    - candidate_lists: Restricted candidates.
    - order, Order or None: Byte order of the labels; None if ids are in that order.
    - column_of, int64 (n_labels,) or None: Score column of each id; None if columns are in the
      order of ids.
    """

    n_labels: int
    known: Csr
    removed: Csr
    candidate_lists: CandidateLists | None = None
    order: Order | None = None
    column_of: Int64 | None = None

    def __len__(self) -> int:
        return len(self.known)

    @classmethod
    def from_questions(cls, questions: Questions) -> QuestionLists:
        """Return the lists of all questions. They are cached with the questions."""

        def make() -> QuestionLists:
            labels, order = questions.n_labels, label_order(questions.candidate_labels.trec_order)
            restricted, columns = questions.candidate_lists, questions.column_of
            return cls(labels, questions.known, questions.removed, restricted, order, columns)

        lists: QuestionLists = get_or_make(cache_of(questions), "lists", make)
        return lists

    def select(self, questions: Int64) -> QuestionLists:
        """Return the lists of some questions, in any order; repeats are allowed."""
        known, removed = select_lists(self.known, questions), select_lists(self.removed, questions)
        lists = self.candidate_lists and self.candidate_lists.select(questions)
        return replace(self, known=known, removed=removed, candidate_lists=lists)

    @cached_property
    def native(self) -> Lists:
        """The same lists as an object of the C core."""
        restricted = self.candidate_lists
        return Lists(
            self.n_labels,
            self.known.offsets,
            self.known.ids,
            self.removed.offsets,
            self.removed.ids,
            self.order,
            None if restricted is None else restricted.lists.offsets,
            None if restricted is None else restricted.lists.ids,
            None if restricted is None else restricted.columns,
        )

    @cached_property
    def most_candidates(self) -> int:
        """An upper bound of the macro candidates of any question."""
        most = self.n_labels - int(self.removed.lengths.min(initial=self.n_labels))
        restricted = self.candidate_lists
        if restricted is None or (restricted.of < 0).any():
            return most
        return min(most, int(restricted.lists.lengths.max(initial=0)))


def label_order(position: Int32 | None) -> Order | None:
    """Return the byte order of labels, from the position of each label in it.

    None, as argument and as result, stands for ids in that order.
    """
    if position is None:
        return None
    entity_at = np.empty_like(position)
    entity_at[position] = np.arange(len(position), dtype=np.int32)
    return Order(position, entity_at)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of scores and the answers (targets) counted in each.

    - question, int64 (n_rows,): Question of each row.
    - target_offsets, targets: Answers counted in each row, ascending.
    - slot, int64 (n_rows,): Question whose best entities come from the row; -1 for none.
    """

    question: Int64
    target_offsets: Int64
    targets: Int32
    slot: Int64

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.question)

    def select(self, rows: Int64) -> tuple[Rows, Int64]:
        """Select rows, in the given order. Return them, and the indices of their targets here."""
        starts = self.target_offsets[rows]
        offsets, targets = spans(starts, self.target_offsets[rows + 1] - starts)
        return Rows(self.question[rows], offsets, self.targets[targets], self.slot[rows]), targets


@dataclass(frozen=True, eq=False)
class RowPlan(Rows):
    """All rows of a ranking, and the targets whose counts each instance gets.

    - micro, int64 (n_instances,): Target with the micro counts of each instance; -1 if its answer
      is not a candidate.
    - macro, int64 (n_instances,): Target with the macro counts of each instance; -1 as above.
    """

    micro: Int64
    macro: Int64

    def collect(self, counts: Int64, target_nan: Bools) -> tuple[Int64, tuple[Bools, Bools]]:
        """Return the counts per instance, and masks of answers without a score.

        Counts are int64 (6, n_instances), masks bool (n_instances,) for micro and for macro
        candidates. Micro values come from the instance's row, macro values from the first row of
        its question. If target i belongs to instance i for all i, the result is `counts` itself.
        """
        if self._in_instance_order:
            return counts, (target_nan, target_nan)
        # An extra target serves instances that have none.
        counts = np.concatenate([counts, np.zeros((6, 1), dtype=np.int64)], axis=1)
        target_nan = np.append(target_nan, True)
        micro, macro = (
            counts[MICRO].take(self.micro, axis=1),
            counts[MACRO].take(self.macro, axis=1),
        )
        per_instance = np.concatenate([micro, macro])
        return per_instance, (target_nan[self.micro], target_nan[self.macro])

    @cached_property
    def _in_instance_order(self) -> bool:
        """True if there is one target per instance, in the order of instances."""
        same = self.macro is self.micro or np.array_equal(self.macro, self.micro)
        return same and np.array_equal(self.micro, np.arange(len(self.targets)))


def plan_rows(questions: Questions, rows: str) -> RowPlan:
    """Return the rows of a ranking and their answers. The plan is cached with the questions.

    - rows: "questions" for a row per question, "instances" for a row per (triple, side).
    """

    def make() -> RowPlan:
        if rows == "instances":
            plan = _plan_instances(questions)
        else:
            answers = questions.answers
            every, instance = np.arange(len(questions)), np.arange(questions.n_instances)
            plan = RowPlan(every, answers.offsets, answers.ids, every, instance, instance)
        return plan if questions.outside is None else _without_outside(plan, questions)

    plan: RowPlan = get_or_make(cache_of(questions), rows, make)
    return plan


def _without_outside(plan: RowPlan, questions: Questions) -> RowPlan:
    """Return the plan without answers outside the candidates: by definition, they rank last."""
    outside = np.zeros(len(plan.targets), dtype=bool)
    outside[plan.micro[questions.outside]] = True
    outside[plan.macro[questions.outside]] = True
    inside = ~outside
    new = np.where(inside, np.cumsum(inside) - 1, -1)
    offsets = offsets_of(inside)[plan.target_offsets]
    return RowPlan(
        plan.question, offsets, plan.targets[inside], plan.slot, new[plan.micro], new[plan.macro]
    )


def _plan_instances(questions: Questions) -> RowPlan:
    """Plan a row per (triple, side).

    The first row of a question counts all its answers, for macro counts. Each later row counts only
    the answer of its triple.
    """
    instance = questions.triple_rows.astype(np.int64)
    question = questions.instance_question[instance].astype(np.int64)
    n_rows, lengths = len(instance), questions.answers.lengths
    first = np.zeros(n_rows, dtype=bool)
    first[np.unique(question, return_index=True)[1]] = True
    starts = np.where(first, questions.answers.offsets[question], instance)
    counts = np.where(first, lengths[question], 1)
    offsets, instance_of_target = spans(starts, counts)
    row = np.repeat(np.arange(n_rows), counts)
    macro = np.empty(n_rows, dtype=np.int64)
    of_macro = np.flatnonzero(first[row])
    macro[instance_of_target[of_macro]] = of_macro
    micro = np.empty(n_rows, dtype=np.int64)
    of_micro = np.flatnonzero(instance_of_target == instance[row])
    micro[instance_of_target[of_micro]] = of_micro
    slot = np.where(first, question, -1)
    return RowPlan(question, offsets, questions.answers.ids[instance_of_target], slot, micro, macro)


class RowClaims:
    """Claims of rows, so that each row is ranked only once, even by several threads.

    A claim is an object that a call makes for itself. The call removes it when it ends.

    - scored, bool (n_rows,): True for rows that are ranked.
    - at_work: Rows that calls are ranking now, by claim.
    """

    def __init__(self, n_rows: int, duplicates: str, describe: Callable[[int], str]) -> None:
        self.scored = np.zeros(n_rows, dtype=bool)
        self.at_work: dict[object, Int64] = {}
        self._ignore, self._describe = duplicates == "ignore", describe
        self._finished, self._lock = False, RLock()

    @hold_lock
    def claim_rows(self, claim: object, rows: Int64) -> Bools:
        """Claim rows, and return a mask of those to rank: bool, shape (len(rows),).

        No other call may rank them until the claim leaves `at_work`.
        """
        if self._finished:
            raise UsageError("this ranker is finished; make a new one")
        new = np.ones(len(rows), dtype=bool) if is_consecutive(rows) else self._mark_first(rows)
        # Check rows at work first: a call marks its rows as scored before it releases them.
        for other in list(self.at_work.values()):
            claimed = np.isin(rows, other)
            if claimed.any() and not self._ignore:
                raise UsageError(
                    f"{name_rows(rows)}: another thread is ranking {name_rows(other)} now; "
                    "give every batch once"
                )
            new &= ~claimed
        again = self.scored[as_index(rows)]
        if again.any() and not self._ignore:
            row = int(rows[again][0])
            raise UsageError(
                f"{name_rows(rows)} were given twice: row {row} ({self._describe(row)}) "
                "already has scores; give every batch once, or ignore repeated rows of "
                f"samplers: {argument('duplicates', 'ignore')}"
            )
        new &= ~again
        self.at_work[claim] = rows if new.all() else rows[new]
        return new

    def _mark_first(self, rows: Int64) -> Bools:
        """Mark the first occurrence of each row; UsageError for a repeated row, unless ignored."""
        first = np.zeros(len(rows), dtype=bool)
        first[np.unique(rows, return_index=True)[1]] = True
        if not self._ignore and not first.all():
            row = int(rows[~first][0])
            raise UsageError(
                f"row {row} ({self._describe(row)}) is twice in one batch; give every row once, "
                f"or ignore repeated rows of samplers: {argument('duplicates', 'ignore')}"
            )
        return first

    @hold_lock
    def close(self) -> None:
        """Accept no more rows; UsageError if some have no scores, or are being ranked now."""
        for rows in list(self.at_work.values()):
            raise UsageError(
                f"another thread is ranking {name_rows(rows)} now; call finish() after "
                "every update() has returned"
            )
        missing = np.flatnonzero(~self.scored)
        if len(missing):
            ends = np.flatnonzero(np.diff(missing) > 1)
            last = missing[ends[0]] if len(ends) else missing[-1]
            raise UsageError(
                f"{len(missing)} of {len(self.scored)} rows were never scored, first "
                f"rows {missing[0]} to {last} ({self._describe(int(missing[0]))}); "
                "update() every batch before finish()"
            )
        self._finished = True


def parse_rows(rows: Any, n_rows: int) -> Int64:
    """Return ids of rows as int64, shape (n,); InputError if they are something else."""
    if isinstance(rows, range) and rows.step > 0 and 0 <= rows.start < rows.stop <= n_rows:
        return np.arange(rows.start, rows.stop, rows.step)  # asarray() converts number by number
    rows = to_host(rows)
    ids = as_array(rows, "rows") if hasattr(rows, "__dlpack__") else np.asarray(rows)
    if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
        raise InputError(
            f"rows has shape {ids.shape} and dtype {ids.dtype}; give a Batch of this ranker, or "
            "a list of row ids, one per row of scores (ranker.rows_of() finds the rows of triples)"
        )
    wrong = ids[(ids < 0) | (ids >= n_rows)]
    if len(wrong):
        raise InputError(f"rows contains {wrong[0]}, which is not a row id below {n_rows}")
    return ids.astype(np.int64)


def is_consecutive(rows: Int64) -> bool:
    """Return True if rows are consecutive and ascending."""
    if len(rows) < 2:
        return True
    return bool(rows[-1] - rows[0] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())


def as_index(rows: Int64) -> slice | Int64:
    """Return rows as an index: a slice, which numpy reads faster, if they are consecutive."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if is_consecutive(rows) else rows


def name_rows(rows: Int64) -> str:
    """Name rows in a message: "rows 3 to 9"."""
    if is_consecutive(rows):
        return f"rows {rows[0]} to {rows[-1]}"
    return f"{len(rows)} rows between {rows.min()} and {rows.max()}"
