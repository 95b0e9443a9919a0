"""Question-level measures on parts of the evaluated triples; see `subsets` beside this.

What a question counts depends on the order of its answers, and that on the system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES
from kgtrec.measures.tied_ranks import Ties

if TYPE_CHECKING:
    from kgtrec.measures.tied_ranks import Ranked
    from kgtrec.ranking.ranks import Ranks

__all__ = ["SEEN", "ByQuestion", "by_question", "item_values", "over_answers", "product",
           "trec_family", "triple_index"]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def item_values(measure: Measure, ties: Ranked) -> Floats:
    """The metric of a measure for each item, float64 (n,)."""
    metric, parameter = measure.row
    assert measure.rank_type is not None
    values = metric.value(ties, measure.rank_type, parameter)
    return np.asarray(values.scaled / values.scale, np.float64)


def triple_index(ranks: Ranks) -> Ints:
    """Place of each row's triple among all of them, ascending, int64 (n,)."""
    return np.unique(ranks.triple, return_inverse=True)[1].astype(np.int64)


def product(left: Floats, right: Floats) -> Floats:
    """Matrix product in the thread that asks: a BLAS's own threads wait for each other here."""
    return np.asarray(np.einsum("ij,jk->ik", left, right))


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers of one side: first those that are alone in their question, then the others by place.

    The others stand in levels: the best answers of all their questions, then the second ones, and
    so on, each system's own. Questions with more answers come first in every level, so that a level
    is a part of the one before, and running numbers of answers are sums of whole blocks.

    Attributes
    ----------
    rows : list of ndarray of int64, one a system
        Rows of the aligned ranks.
    triple : list of ndarray of int64, one a system
        Place of the triple of each of these rows.
    alone : int
        How many rows come first whose question has one answer.
    levels : ndarray of int64
        First row of each level, counted from `alone`, and the end of the last one.
    question, last : ndarray of int64
        Place inside its level of each row that is not alone; last row of each such question.
    """

    rows: list[Ints]
    triple: list[Ints]
    alone: int
    levels: Ints
    question: Ints
    last: Ints

    @classmethod
    def of(cls, aligned: Mapping[str, Ranks], side: str) -> _Answers:
        first = next(iter(aligned.values()))
        of_side = np.flatnonzero(np.isin(first.side, SIDES[side]))
        question = np.unique(first.question[of_side], return_inverse=True)[1]
        sizes = np.bincount(question)
        larger = np.empty(len(sizes), np.int64)
        larger[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        owner = np.repeat(np.arange(len(sizes)), sizes)
        level = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        by_level = np.lexsort((larger[owner], level, sizes[owner] > 1))
        triple, rows = triple_index(first), []
        for ranks in aligned.values():
            in_order = np.lexsort((_ordinal(ranks)[of_side], question))
            rows.append(of_side[in_order[by_level]])
        alone = int((sizes == 1).sum())
        inside = larger[owner[by_level]][alone:]
        counts = np.bincount(level[by_level][alone:])
        levels = np.concatenate([[0], np.cumsum(counts)])
        shared = np.sort(sizes[sizes > 1])[::-1]
        last = levels[shared - 1] + np.arange(len(shared))
        return cls(rows, [triple[each] for each in rows], alone, levels, inside, last)

    def running(self, chosen: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Of those that are not alone: answers chosen of its question up to each, same shape."""
        running = chosen.astype(np.uint32)
        for before, start, stop in zip(self.levels, self.levels[1:], self.levels[2:], strict=False):
            running[start:stop] += running[before : before + stop - start]
        return running


@dataclass(frozen=True, eq=False)
class ByQuestion:
    """Several measures: means over questions that keep an answer of sums over their answers.

    Attributes
    ----------
    firsts, places : list of ndarray of float64, shape (measures, answers), one a system
        Values in the order of the system's rows: of measures that only see the first answer, and
        of AP@k, which is the sum of place x value over the answers, divided by their number.
    """

    answers: _Answers
    firsts: list[Floats]
    places: list[Floats]

    def of(self, subsets: Bools) -> Floats:
        """Values, float64 (measures, B, s): of `firsts`, then of `places`."""
        answers, turned = self.answers, np.ascontiguousarray(subsets.T).view(np.uint8)
        single = turned[answers.triple[0][: answers.alone]].astype(np.float64)
        counts = answers.running(turned[answers.triple[0][answers.alone :]])[answers.last]
        total = single.sum(axis=0) + (counts > 0).sum(axis=0)
        share = 1.0 / np.maximum(counts, 1)
        n_first, alone = len(self.firsts[0]), answers.alone
        n_measures = n_first + len(self.places[0])
        sums = np.empty((n_measures, len(subsets), len(answers.rows)))
        for system, (first, place) in enumerate(zip(self.firsts, self.places, strict=True)):
            chosen = turned[answers.triple[system][alone:]]
            running = answers.running(chosen)
            sums[:, :, system] = product(np.concatenate([first, place])[:, :alone], single)
            if n_first:
                weight = (chosen * (running == 1)).astype(np.float64)
                sums[:n_first, :, system] += product(first[:, alone:], weight)
            if n_first < n_measures:
                weight = (chosen * running) * share[answers.question]
                sums[n_first:, :, system] += product(place[:, alone:], weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / total[:, None])


def _ordinal(ranks: Ranks) -> Floats:
    """Place of each answer in a run of unlimited depth; unscored ones stand in none."""
    return np.where(ranks.macro_answer_nan, np.inf, ranks.macro_rank("ordinal"))


def by_question(
    aligned: Mapping[str, Ranks], side: str, first: Sequence[Measure], place: Sequence[Measure]
) -> ByQuestion:
    answers = _Answers.of(aligned, side)
    columns = [
        tuple(
            np.array([_answer_values(ranks, measure)[rows] for measure in measures])
            .reshape(len(measures), len(rows))
            for measures in (first, place)
        )
        for ranks, rows in zip(aligned.values(), answers.rows, strict=True)
    ]  # fmt: skip
    return ByQuestion(answers, [each[0] for each in columns], [each[1] for each in columns])


def _answer_values(ranks: Ranks, measure: Measure) -> Floats:
    """What each answer is worth to a question-level measure."""
    if measure.is_trec:
        family, k = trec_family(measure)
        return SEEN[family][1](_ordinal(ranks), k)
    columns = (ranks.macro_greater, ranks.macro_equal, ranks.macro_tied_ahead)
    return item_values(measure, Ties(*columns, np.ones(len(ranks), np.int64)))


def trec_family(measure: Measure) -> tuple[str, int]:
    from kgtrec.trec.measures.names import resolve

    column = resolve([measure.metric])[0]
    if column.family not in SEEN:
        raise UsageError(f"{measure} does not follow from ranks; possible are {', '.join(SEEN)}")
    return column.family, int(column.cutoff or 0)


@dataclass(frozen=True, eq=False)
class _OverAnswers:
    """Mean over questions that keep an answer of a plain sum over their answers.

    Weights depend on the subset only: on how many answers of its question it keeps.

    Attributes
    ----------
    values : ndarray of float64, shape (n, s)
        Sorted by question.
    triple, starts : ndarray of int64
    divisor : function (number of kept answers, from 1 on) -> float64 array
    """

    values: Floats
    triple: Ints
    starts: Ints
    divisor: Callable[[Ints], Floats]

    def of(self, subsets: Bools) -> Floats:
        chosen = subsets[:, self.triple].astype(np.float64)
        counts = np.add.reduceat(chosen, self.starts, axis=1).astype(np.int64)
        share = 1.0 / self.divisor(np.maximum(counts, 1))
        chosen *= np.repeat(share, np.diff(self.starts, append=len(self.triple)), axis=1)
        total = (counts > 0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(product(chosen, self.values) / total[:, None])


def over_answers(aligned: Mapping[str, Ranks], measure: Measure) -> _OverAnswers:
    family, k = trec_family(measure)
    first = next(iter(aligned.values()))
    rows = np.flatnonzero(np.isin(first.side, SIDES[measure.side]))
    rows = rows[np.argsort(first.question[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(first.question[rows], prepend=-1))
    values = np.column_stack([_answer_values(ranks, measure)[rows] for ranks in aligned.values()])
    return _OverAnswers(
        np.ascontiguousarray(values), triple_index(first)[rows], starts, _DIVISORS[family](k)
    )


def _ideal(k: int) -> Callable[[Ints], Floats]:
    gains = np.cumsum(1.0 / np.log2(np.arange(2.0, k + 2.0)))
    return lambda counts: gains[np.minimum(counts, k) - 1]


_DIVISORS: dict[str, Callable[[int], Callable[[Ints], Floats]]] = {
    "ndcg_cut": _ideal,
    "recall": lambda k: lambda counts: counts.astype(np.float64),
    "P": lambda k: lambda counts: np.full(counts.shape, float(k)),
}


def _within(rank: Floats, k: int) -> Floats:
    return (rank <= k).astype(np.float64)


_Row = tuple[str, Callable[[Floats, int], Floats]]

SEEN: dict[str, _Row] = {
    "map_cut": ("place", lambda rank, k: np.where(rank <= k, 1.0 / rank, 0.0)),
    "success": ("first", _within),
    "recip_rank": ("first", lambda rank, k: 1.0 / rank),
    "ndcg_cut": ("each", lambda rank, k: np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)),
    "recall": ("each", _within),
    "P": ("each", _within),
}
"""What is seen of a question's answers, and what an answer at a rank is worth."""
