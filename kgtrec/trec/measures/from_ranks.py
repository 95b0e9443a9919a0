"""Question-level measures straight from the answers' ordinal ranks, without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.trec.measures.names import resolve

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["NATIVE", "native_values"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Answers:
    """Answers grouped by question and, inside one, by rank.

    Attributes
    ----------
    rank : ndarray of float64, shape (n_instances,)
        Ordinal rank among the question-level candidates; inf for an answer that had no score.
    place : ndarray of int64, shape (n_instances,)
        1 for the best answer of its question, 2 for the next, ...
    starts, count : ndarray of int64, shape (n_questions,)
        First answer and number of answers of each question.
    """

    rank: Floats
    place: Ints
    starts: Ints
    count: Ints

    def total(self, terms: Floats) -> Floats:
        """Sum of a term per answer over each question."""
        return np.add.reduceat(terms, self.starts)

    def within(self, k: int) -> Floats:
        """Number of answers among the first k candidates of each question."""
        return self.total((self.rank <= k).astype(np.float64))


def _map_cut(answers: _Answers, k: int) -> Floats:
    terms = np.where(answers.rank <= k, answers.place / answers.rank, 0.0)
    return answers.total(terms) / answers.count


def _ndcg_cut(answers: _Answers, k: int) -> Floats:
    gain = np.where(answers.rank <= k, 1.0 / np.log2(answers.rank + 1.0), 0.0)
    most = np.minimum(answers.count, k)
    ideal = np.cumsum(1.0 / np.log2(np.arange(2.0, most.max() + 2.0)))
    return answers.total(gain) / ideal[most - 1]


def _success(answers: _Answers, k: int) -> Floats:
    return (answers.rank[answers.starts] <= k).astype(np.float64)


def _recip_rank(answers: _Answers, k: int) -> Floats:
    return 1.0 / answers.rank[answers.starts]


def _recall(answers: _Answers, k: int) -> Floats:
    return answers.within(k) / answers.count


def _precision(answers: _Answers, k: int) -> Floats:
    return answers.within(k) / k


NATIVE: dict[str, Callable[[_Answers, int], Floats]] = {
    "map_cut": _map_cut,
    "ndcg_cut": _ndcg_cut,
    "success": _success,
    "recip_rank": _recip_rank,
    "recall": _recall,
    "P": _precision,
}


def native_values(ranks: Ranks, measures: Sequence[str]) -> dict[str, Floats]:
    """Measures of every question from the ordinal ranks of its answers.

    The rank of an answer is ``macro_greater + 1 + macro_tied_ahead``: its place in a run of
    unlimited depth. AP@k is the sum of i / rank over the i-th best answers that rank within k,
    divided by the number of answers.

    Parameters
    ----------
    ranks : Ranks
        All answers of every question that it holds; rows may come in any order.
    measures : sequence of str
        Families of `NATIVE`, as in `kgtrec.trec.measures.names.resolve`.

    Returns
    -------
    dict of str to ndarray of float64, shape (n_questions,)
        By trec_eval's name, questions ascending: ``numpy.unique(ranks.question)``.
        Answers without a score (``ranks.macro_answer_nan``) count as not retrieved.

    Raises
    ------
    UsageError
        If a measure is unknown or does not follow from the ranks.
    """
    columns = resolve(measures)
    foreign = [column.name for column in columns if column.family not in NATIVE]
    if foreign:
        raise UsageError(
            f"{', '.join(foreign)} cannot be computed from ranks; possible are {', '.join(NATIVE)}"
        )
    if not len(ranks.question):
        return {column.name: np.zeros(0) for column in columns}
    answers = _group(ranks)
    return {c.name: NATIVE[c.family](answers, int(c.cutoff or 0)) for c in columns}


def _group(ranks: Ranks) -> _Answers:
    rank = (ranks.macro_greater + 1 + ranks.macro_tied_ahead).astype(np.float64)
    rank[ranks.macro_answer_nan] = np.inf
    order = np.lexsort((rank, ranks.question))
    question = ranks.question[order]
    starts = np.flatnonzero(np.r_[True, question[1:] != question[:-1]])
    count = np.diff(np.r_[starts, len(question)])
    place = np.arange(len(question)) - np.repeat(starts, count) + 1
    return _Answers(rank[order], place, starts, count)
