"""Which rows of scores are ranked for which answers: the layouts of a score matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["RowPlan", "plan_rows"]

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowPlan:
    """Rows of scores and the answers (jobs) counted in each.

    Attributes
    ----------
    question : ndarray of int64, shape (n_rows,)
        The question of a row.
    job_offsets, jobs : ndarray of int64 (n_rows + 1,), int32 (n_jobs,)
        Answers counted in a row, ascending.
    micro : ndarray of int64, shape (n_instances,)
        The job that gives an instance its micro counts; -1: its answer is no candidate.
    macro : ndarray of int64, shape (n_instances,)
        The job that gives it its macro counts; -1 likewise.
    slot : ndarray of int64, shape (n_rows,)
        The question whose run a row gives; -1: none.
    """

    question: Int64
    job_offsets: Int64
    jobs: npt.NDArray[np.int32]
    micro: Int64
    macro: Int64
    slot: Int64

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.question)

    def collect(
        self, counts: Int64, job_nan: npt.NDArray[np.bool_]
    ) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """Counts per instance, (6, n_instances), and whether its answer has no score, (2, ...).

        Micro values come from an instance's own row, macro values from its question's first.
        """
        # One more job, for instances that have none.
        counts = np.concatenate([counts, np.zeros((6, 1), dtype=np.int64)], axis=1)
        job_nan = np.append(job_nan, True)
        per_instance = np.concatenate([counts[:3, self.micro], counts[3:, self.macro]])
        return per_instance, np.stack([job_nan[self.micro], job_nan[self.macro]])

    def reordered(self, order: Int64) -> RowPlan:
        """The plan for rows that come in another order."""
        lengths = np.diff(self.job_offsets)[order]
        offsets = np.zeros_like(self.job_offsets)
        np.cumsum(lengths, out=offsets[1:])
        old = np.arange(offsets[-1]) + np.repeat(self.job_offsets[order] - offsets[:-1], lengths)
        new = np.full(len(old) + 1, -1, dtype=np.int64)  # the last stands for "no job"
        new[old] = np.arange(len(old))
        return RowPlan(
            self.question[order],
            offsets,
            self.jobs[old],
            new[self.micro],
            new[self.macro],
            self.slot[order],
        )

    def row_candidates(self, questions: Questions, row: int) -> npt.NDArray[np.bool_]:
        """Which entities are candidates in a row, of any of its answers: bool (n_entities,)."""
        question = self.question[row]
        outside = questions.removed if self.slot[row] >= 0 else questions.known
        mask = np.ones(questions.n_entities, dtype=bool)
        domain = questions.domain
        if domain is not None and domain.of[question] >= 0:
            mask[:] = False
            mask[domain.lists[int(domain.of[question])]] = True
        mask[outside[question]] = False
        mask[self.jobs[self.job_offsets[row] : self.job_offsets[row + 1]]] = True
        return mask


def plan_rows(questions: Questions, rows: str) -> RowPlan:
    """Plan for one row per question, or one per (triple, side)."""
    plan = _plan_questions(questions) if rows == "questions" else _plan_instances(questions)
    return plan if questions.outside is None else _without_outside(plan, questions)


def _plan_questions(questions: Questions) -> RowPlan:
    every, instance = np.arange(len(questions)), np.arange(questions.n_instances)
    answers = questions.answers
    return RowPlan(every, answers.offsets, answers.ids, instance, instance, every)


def _without_outside(plan: RowPlan, questions: Questions) -> RowPlan:
    """Answers that are no candidates are not counted: their rank is the worst by definition."""
    outside = np.zeros(len(plan.jobs), dtype=bool)
    outside[plan.micro[questions.outside]] = True
    outside[plan.macro[questions.outside]] = True
    kept = ~outside
    new = np.where(kept, np.cumsum(kept) - 1, -1)
    offsets = np.append(0, np.cumsum(kept))[plan.job_offsets]
    return RowPlan(
        plan.question, offsets, plan.jobs[kept], new[plan.micro], new[plan.macro], plan.slot
    )


def _plan_instances(questions: Questions) -> RowPlan:
    """The first row of a question counts all its answers (for macro); later rows only their own."""
    instance = questions.triple_rows
    question = questions.instance_question[instance]
    n_rows, lengths = len(instance), questions.answers.lengths
    first = np.zeros(n_rows, dtype=bool)
    first[np.unique(question, return_index=True)[1]] = True
    offsets = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.where(first, lengths[question], 1), out=offsets[1:])
    row = np.repeat(np.arange(n_rows), np.diff(offsets))
    within = np.arange(offsets[-1]) - offsets[row]
    starts = np.where(first, questions.answers.offsets[question], instance)
    counted = starts[row] + within  # the instance that a job counts
    macro = np.empty(n_rows, dtype=np.int64)
    whole = np.flatnonzero(first[row])
    macro[counted[whole]] = whole
    micro = np.empty(n_rows, dtype=np.int64)
    own = np.flatnonzero(counted == instance[row])
    micro[counted[own]] = own
    slot = np.where(first, question, -1)
    return RowPlan(question, offsets, questions.answers.ids[counted], micro, macro, slot)
