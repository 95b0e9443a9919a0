"""The best pairs of relations as files, and how far two files agree.

A file is TSV with the header ``relation rank head tail score known``. Pairs of a relation are
consecutive, ranks from 1. ``known`` names the splits that have the pair, or is ``-`` for a new one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import FileError, PathName, UsageError
from kgtrec.graph.statistics.popularity import average_ranks, pearson
from kgtrec.study.pooling.edited_files import EditedFile, write_lines

if TYPE_CHECKING:
    from kgtrec.ranking.pairs import PairCounts
    from kgtrec.study.pairs.questions import PairQuestions

COLUMNS = ("relation", "rank", "head", "tail", "score", "known")
NEW = "-"
_CUTOFFS = (10, 100, 1000, 10_000, 100_000)
_HINT = "write both files with `kgtrec pairs -k K --write-pairs FILE`"


@dataclass(frozen=True, eq=False)
class BestPairs(ShownAsTables):
    """The k best pairs of each relation, best first; ties by head and then tail, as ids.

    - relation, head, tail, int64 (n,); scores, float64 (n,)
    - known: Names of the splits that have each pair, such as "train,test"; "-" for new pairs.
    - tied, int64 (relations,): How many more pairs tie with the last one.
    """

    questions: PairQuestions
    k: int
    relation: Int64
    head: Int64
    tail: Int64
    scores: Float64
    known: list[str]
    tied: Int64

    @classmethod
    def of(cls, asked: PairQuestions, counted: Sequence[PairCounts], k: int) -> BestPairs:
        """The best pairs that were found with the counts."""
        axes, graph = asked.axes, asked.graph
        ids = [axes.ids(one.best) for one in counted]
        marks: list[str] = []
        splits = {name: rows.astype(np.int64) for name, rows in graph.splits.items()}
        for question, one in zip(asked.questions, counted, strict=True):
            has = {}
            for name, rows in splits.items():
                own = rows[rows[:, 1] == question.relation]
                has[name] = np.isin(one.best, axes.cells(own[:, 0], own[:, 2]))
            marks += [
                ",".join(name for name, held in has.items() if held[place]) or NEW
                for place in range(len(one.best))
            ]
        return cls(
            questions=asked,
            k=k,
            relation=np.repeat(asked.relations, [len(one.best) for one in counted]),
            head=np.concatenate([head for head, _ in ids]),
            tail=np.concatenate([tail for _, tail in ids]),
            scores=np.concatenate([one.best_scores for one in counted]),
            known=marks,
            tied=np.array([one.tied for one in counted], np.int64),
        )

    def _cells(self) -> Iterator[tuple[str, int, str, str, float, str]]:
        graph = self.questions.graph
        place = np.concatenate([np.arange(self.k)] * len(self.tied)) + 1
        labels = (
            graph.relations[self.relation],
            place.tolist(),
            graph.entities[self.head],
            graph.entities[self.tail],
            self.scores.tolist(),
            self.known,
        )
        return zip(*labels, strict=True)

    def table(self) -> Table:
        """One row per pair."""
        rows: list[tuple[Cell, ...]] = list(self._cells())
        return Table.of("relation,rank,head,tail,score:4,known", rows, names=4)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the pairs as TSV; see the top of this module."""
        lines = (
            (relation, str(rank), head, tail, repr(score), known)
            for relation, rank, head, tail, score, known in self._cells()
        )
        write_lines(path, [COLUMNS, *lines])


@dataclass(frozen=True)
class _List:
    """The best pairs of a relation in a file, best first."""

    pairs: list[tuple[str, str]]
    scores: list[float]


def read_best_pairs(path: PathName) -> dict[str, _List]:
    """The best pairs per relation from a file.

    Raises
    ------
    FileError
        Missing, malformed or repeated lines, ranks that do not count up from 1, or scores that
        rise: all these lines are listed.
    """
    file = EditedFile(path, _HINT)
    rows = [*file.below(COLUMNS)]
    lists: dict[str, _List] = {}
    for number, cells in rows:
        own = lists.setdefault(cells["relation"], _List([], []))
        pair, score = (cells["head"], cells["tail"]), _score_of(cells["score"])
        if cells["rank"] != str(len(own.pairs) + 1):
            file.fault(number, f"rank {cells['rank']!r} after {len(own.pairs)}")
        elif math.isnan(score):
            file.fault(number, f"score {cells['score']!r} is not a number")
        elif own.scores and score > own.scores[-1]:
            file.fault(number, f"score {cells['score']} is above {own.scores[-1]!r} before it")
        file.is_new(number, (cells["relation"], *pair), f"pair {' '.join(pair)!r}", _HINT)
        own.pairs.append(pair)
        own.scores.append(score)
    file.refuse_faults()
    if not rows:
        raise FileError(path, found="no pairs below the header", hint=_HINT)
    return lists


def _score_of(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class PairStability(ShownAsTables):
    """How far two lists of best pairs agree.

    - relations: Of both files.
    - cutoffs: The k.
    - common, int64 (cutoffs, relations): Pairs among the k best of both.
    - spearman, float64 (cutoffs, relations): Rank correlation of the shared pairs by their scores;
      NaN with fewer than two shared pairs, or if all of them tie in a file.
    """

    relations: tuple[str, ...]
    cutoffs: tuple[int, ...]
    common: Int64
    spearman: Float64

    def table(self) -> Table:
        """A row per k: shared pairs, commonality (their share), Spearman, means over relations."""
        rows: list[tuple[Cell, ...]] = []
        for k, common, spearman in zip(self.cutoffs, self.common, self.spearman, strict=True):
            share, known = common / k, ~np.isnan(spearman)
            mean = float(spearman[known].mean()) if known.any() else math.nan
            ends = float(share.mean()), float(share.min()), float(share.max())
            rows.append((k, len(common), int(common.sum()), *ends, mean, int(known.sum())))
        heads = (
            "k,relations,shared,commonality:4,least:4,greatest:4,Spearman=spearman:4,"
            "of relations=spearman_relations"
        )
        return Table.of(heads, rows)

    def by_relation(self) -> Table:
        """A row per relation and k."""
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                k,
                int(self.common[at, column]),
                float(self.common[at, column] / k),
                float(self.spearman[at, column]),
            )
            for column, name in enumerate(self.relations)
            for at, k in enumerate(self.cutoffs)
        ]
        return Table.of("relation,k,shared,commonality:4,Spearman=spearman:4", rows, names=2)


def pair_stability(
    first: PathName, second: PathName, cutoffs: Sequence[int] | None = None
) -> PairStability:
    """Compare the best pairs of two models, seeds or releases of a graph.

    Parameters
    ----------
    first, second : path
        Files of `BestPairs.write`, with the same relations.
    cutoffs : sequence of int, optional
        By default 10, 100, ... up to the shortest list, and its length.

    Raises
    ------
    FileError
        As for `read_best_pairs`.
    UsageError
        Files with different relations, or a k beyond a list.
    """
    lists = [read_best_pairs(path) for path in (first, second)]
    paths = [str(first), str(second)]
    for own, other, path, of in ((0, 1, paths[1], paths[0]), (1, 0, paths[0], paths[1])):
        missing = [name for name in lists[own] if name not in lists[other]]
        if missing:
            raise UsageError(
                f"{path} lacks {len(missing):,} of the relations of {of}, such as {missing[0]!r}; "
                "rank the same relations in both"
            )
    relations = tuple(lists[0])
    lengths = {
        (path, name): len(own[name].pairs)
        for path, own in zip(paths, lists, strict=True)
        for name in own
    }
    shortest = min(lengths, key=lambda one: lengths[one])
    chosen = _cutoffs(cutoffs, lengths[shortest], *shortest)
    common = np.empty((len(chosen), len(relations)), np.int64)
    spearman = np.empty((len(chosen), len(relations)))
    for column, name in enumerate(relations):
        for row, k in enumerate(chosen):
            common[row, column], spearman[row, column] = _agreement(lists, name, k)
    return PairStability(relations, chosen, common, spearman)


def _cutoffs(
    cutoffs: Sequence[int] | None, length: int, path: str, relation: str
) -> tuple[int, ...]:
    if cutoffs is None:
        return (*(k for k in _CUTOFFS if k < length), length)
    chosen = sorted({check_count("k", k) for k in cutoffs})
    if not chosen:
        raise UsageError("no k is named; name one, such as 100, or leave them out")
    if chosen[-1] > length:
        raise UsageError(
            f"the cutoff {chosen[-1]:,} is beyond the {length:,} pairs of relation {relation!r} in "
            f"{path}; choose at most {length:,}, or write longer lists"
        )
    return tuple(chosen)


def _agreement(lists: Sequence[dict[str, _List]], name: str, k: int) -> tuple[int, float]:
    """Pairs among the k best of both files, and Spearman's correlation of their scores."""
    first, second = (
        dict(zip(own[name].pairs[:k], own[name].scores, strict=False)) for own in lists
    )
    shared = [pair for pair in first if pair in second]
    ranks = []
    for scores in (first, second):
        values = np.array([scores[pair] for pair in shared])
        number = np.unique(values, return_inverse=True)[1].reshape(-1)
        ranks.append(average_ranks(number))
    return len(shared), pearson(*ranks)
