"""Which rows of scores are ranked for which answers: the layouts of a score matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr, take

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.questions.candidates import CandidateLists

__all__ = ["QuestionLists", "RowPlan", "Rows", "plan_rows"]

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class QuestionLists:
    """What ranking needs of questions, be they all of a graph or those of a part's rows.

    Attributes
    ----------
    n_labels : int
        Columns of a full row of scores: entities, or relations.
    known, removed : Csr
        Ids that are no micro, and no macro candidates of each question.
    candidate_lists : CandidateLists or None
        Restricted candidates.
    trec_order : ndarray of int32, shape (n_labels,), or None
        Place of a label in byte order; None: ids are in that order.
    by_name : ndarray of int32, shape (n_labels,), or None
        The ids in that order; made from `trec_order` if it is not at hand.
    column_of : ndarray of int64, shape (n_labels,), or None
        The score column of each id; None: columns go by id.
    """

    n_labels: int
    known: Csr
    removed: Csr
    candidate_lists: CandidateLists | None = None
    trec_order: npt.NDArray[np.int32] | None = None
    by_name: npt.NDArray[np.int32] | None = None
    column_of: Int64 | None = None

    def __post_init__(self) -> None:
        if self.trec_order is not None and self.by_name is None:
            by_name = np.empty_like(self.trec_order)
            by_name[self.trec_order] = np.arange(len(by_name), dtype=np.int32)
            object.__setattr__(self, "by_name", by_name)

    def __len__(self) -> int:
        return len(self.known)

    @classmethod
    def of(cls, questions: Questions, column_of: Int64 | None = None) -> QuestionLists:
        """Those of all questions."""
        order = questions.candidate_labels.trec_order
        return cls(
            questions.n_labels,
            questions.known,
            questions.removed,
            questions.candidate_lists,
            order,
            column_of=column_of,
        )

    def selected(self, questions: Int64) -> QuestionLists:
        """Those of some questions, in an order of their own, repeats allowed."""
        candidate_lists = self.candidate_lists
        return replace(
            self,
            known=take(self.known, questions),
            removed=take(self.removed, questions),
            candidate_lists=None
            if candidate_lists is None
            else candidate_lists.selected(questions),
        )

    @property
    def most_candidates(self) -> int:
        """As many macro candidates as any question has, or more."""
        most = self.n_labels - int(self.removed.lengths.min(initial=self.n_labels))
        restricted = self.candidate_lists
        if restricted is None or (restricted.of < 0).any():
            return most
        return min(most, int(restricted.lists.lengths.max(initial=0)))

    def by_entity(self, question: int, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A row's scores in id order, whatever its columns stand for."""
        if self.column_of is not None:
            return scores[self.column_of]
        candidate_lists = self.candidate_lists
        if candidate_lists is None or candidate_lists.columns is None:
            return scores
        number = int(candidate_lists.of[question])
        span = slice(
            candidate_lists.lists.offsets[number], candidate_lists.lists.offsets[number + 1]
        )
        spread = np.zeros(self.n_labels)
        spread[candidate_lists.lists.ids[span]] = scores[candidate_lists.columns[span]]
        return spread


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of scores and the answers (targets) counted in each.

    Attributes
    ----------
    question : ndarray of int64, shape (n_rows,)
        The question of a row.
    target_offsets, targets : ndarray of int64 (n_rows + 1,), int32 (n_targets,)
        Answers counted in a row, ascending.
    slot : ndarray of int64, shape (n_rows,)
        The question whose run a row gives; -1: none.
    """

    question: Int64
    target_offsets: Int64
    targets: npt.NDArray[np.int32]
    slot: Int64

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.question)

    def selected(self, rows: Int64) -> tuple[Rows, Int64]:
        """Some rows in an order of their own, and which targets of all rows are theirs."""
        starts = self.target_offsets[rows]
        lengths = self.target_offsets[rows + 1] - starts
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        own = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Rows(self.question[rows], offsets, self.targets[own], self.slot[rows]), own

    def row_candidates(self, lists: QuestionLists, row: int) -> npt.NDArray[np.bool_]:
        """Which ids are candidates in a row, of any of its answers: bool (n_labels,)."""
        question = self.question[row]
        outside = lists.removed if self.slot[row] >= 0 else lists.known
        mask = np.ones(lists.n_labels, dtype=bool)
        candidate_lists = lists.candidate_lists
        if candidate_lists is not None and candidate_lists.of[question] >= 0:
            mask[:] = False
            mask[candidate_lists.lists[int(candidate_lists.of[question])]] = True
        mask[outside[question]] = False
        mask[self.targets[self.target_offsets[row] : self.target_offsets[row + 1]]] = True
        return mask


@dataclass(frozen=True, eq=False)
class RowPlan(Rows):
    """All rows of a ranking, and which target counts what for which instance.

    Attributes
    ----------
    micro : ndarray of int64, shape (n_instances,)
        The target that gives an instance its micro counts; -1: its answer is not a candidate.
    macro : ndarray of int64, shape (n_instances,)
        The target that gives it its macro counts; -1 likewise.
    """

    micro: Int64
    macro: Int64

    def collect(
        self, counts: Int64, target_nan: npt.NDArray[np.bool_]
    ) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """Counts per instance, (6, n_instances), and whether its answer has no score, (2, ...).

        Micro values come from an instance's own row, macro values from its question's first. Where
        each target is one instance's, in their order, the counts are `counts` itself.
        """
        same = self.macro is self.micro or np.array_equal(self.macro, self.micro)
        if same and np.array_equal(self.micro, np.arange(len(self.targets))):
            return counts, np.stack([target_nan, target_nan])
        # One more target, for instances that have none.
        counts = np.concatenate([counts, np.zeros((6, 1), dtype=np.int64)], axis=1)
        target_nan = np.append(target_nan, True)
        per_instance = np.concatenate([counts[:3, self.micro], counts[3:, self.macro]])
        return per_instance, np.stack([target_nan[self.micro], target_nan[self.macro]])


def plan_rows(questions: Questions, rows: str) -> RowPlan:
    """Plan for one row per question, or one per (triple, side)."""
    plan = _plan_questions(questions) if rows == "questions" else _plan_instances(questions)
    return plan if questions.outside is None else _without_outside(plan, questions)


def _plan_questions(questions: Questions) -> RowPlan:
    every, instance = np.arange(len(questions)), np.arange(questions.n_instances)
    answers = questions.answers
    return RowPlan(every, answers.offsets, answers.ids, every, instance, instance)


def _without_outside(plan: RowPlan, questions: Questions) -> RowPlan:
    """Answers that are no candidates are not counted: their rank is the worst by definition."""
    outside = np.zeros(len(plan.targets), dtype=bool)
    outside[plan.micro[questions.outside]] = True
    outside[plan.macro[questions.outside]] = True
    inside = ~outside
    new = np.where(inside, np.cumsum(inside) - 1, -1)
    offsets = np.append(0, np.cumsum(inside))[plan.target_offsets]
    return RowPlan(
        plan.question, offsets, plan.targets[inside], plan.slot, new[plan.micro], new[plan.macro]
    )


def _plan_instances(questions: Questions) -> RowPlan:
    """The first row of a question counts all its answers (for macro); later rows only their own."""
    instance = questions.triple_rows.astype(np.int64)
    question = questions.instance_question[instance].astype(np.int64)
    n_rows, lengths = len(instance), questions.answers.lengths
    first = np.zeros(n_rows, dtype=bool)
    first[np.unique(question, return_index=True)[1]] = True
    offsets = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.where(first, lengths[question], 1), out=offsets[1:])
    row = np.repeat(np.arange(n_rows), np.diff(offsets))
    within = np.arange(offsets[-1]) - offsets[row]
    starts = np.where(first, questions.answers.offsets[question], instance)
    counted = starts[row] + within  # the instance that a target counts
    macro = np.empty(n_rows, dtype=np.int64)
    whole = np.flatnonzero(first[row])
    macro[counted[whole]] = whole
    micro = np.empty(n_rows, dtype=np.int64)
    own = np.flatnonzero(counted == instance[row])
    micro[counted[own]] = own
    slot = np.where(first, question, -1)
    return RowPlan(question, offsets, questions.answers.ids[counted], slot, micro, macro)
