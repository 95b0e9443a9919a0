"""Files of the best pairs of relations, and the agreement of two files.

A file is TSV with the header ``relation rank head tail score known``. Pairs of a relation are
consecutive, with ranks from 1. ``known`` names the splits that contain the pair, or is ``-`` for a
new pair.
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

    - relation, head, tail, int64 (n,), scores, float64 (n,): Ids and score of each pair.
    - known: Names of the splits that contain each pair, such as "train,test"; "-" for new pairs.
    - tied, int64 (relations,): Number of further pairs that tie with the last pair of a relation.
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
    def from_counts(
        cls, questions: PairQuestions, counts: Sequence[PairCounts], k: int
    ) -> BestPairs:
        """Return the best pairs, from the counts of each relation."""
        axes, graph = questions.axes, questions.graph
        ids = [axes.ids(of_relation.best) for of_relation in counts]
        known: list[str] = []
        splits = {name: rows.astype(np.int64) for name, rows in graph.splits.items()}
        for question, of_relation in zip(questions.questions, counts, strict=True):
            is_in = {}
            for name, rows in splits.items():
                triples = rows[rows[:, 1] == question.relation]
                is_in[name] = np.isin(of_relation.best, axes.cells(triples[:, 0], triples[:, 2]))
            known += [
                ",".join(name for name, mask in is_in.items() if mask[index]) or NEW
                for index in range(len(of_relation.best))
            ]
        lengths = [len(of_relation.best) for of_relation in counts]
        return cls(
            questions=questions,
            k=k,
            relation=np.repeat(questions.relations, lengths),
            head=np.concatenate([head for head, _ in ids]),
            tail=np.concatenate([tail for _, tail in ids]),
            scores=np.concatenate([of_relation.best_scores for of_relation in counts]),
            known=known,
            tied=np.array([of_relation.tied for of_relation in counts], np.int64),
        )

    def _cells(self) -> Iterator[tuple[str, int, str, str, float, str]]:
        """Yield the cells of each pair, in the order of `COLUMNS`."""
        graph = self.questions.graph
        rank = np.concatenate([np.arange(self.k)] * len(self.tied)) + 1
        labels = (
            graph.relations[self.relation],
            rank.tolist(),
            graph.entities[self.head],
            graph.entities[self.tail],
            self.scores.tolist(),
            self.known,
        )
        return zip(*labels, strict=True)

    def table(self) -> Table:
        """Return a table with a row per pair."""
        rows: list[tuple[Cell, ...]] = list(self._cells())
        return Table.from_rows("relation,rank,head,tail,score:4,known", rows, names=4)

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
    """Read the best pairs of each relation from a file.

    Raises
    ------
    FileError
        Missing, malformed or repeated lines, ranks that do not count up from 1, or scores that
        rise. All these lines are listed.
    """
    file = EditedFile(path, _HINT)
    rows = [*file.below(COLUMNS)]
    lists: dict[str, _List] = {}
    for number, cells in rows:
        best = lists.setdefault(cells["relation"], _List([], []))
        pair, score = (cells["head"], cells["tail"]), _parse_score(cells["score"])
        if cells["rank"] != str(len(best.pairs) + 1):
            file.fault(number, f"rank {cells['rank']!r} after {len(best.pairs)}")
        elif math.isnan(score):
            file.fault(number, f"score {cells['score']!r} is not a number")
        elif best.scores and score > best.scores[-1]:
            file.fault(number, f"score {cells['score']} is above {best.scores[-1]!r} before it")
        file.is_new(number, (cells["relation"], *pair), f"pair {' '.join(pair)!r}", _HINT)
        best.pairs.append(pair)
        best.scores.append(score)
    file.refuse_faults()
    if not rows:
        raise FileError(path, found="no pairs below the header", hint=_HINT)
    return lists


def _parse_score(text: str) -> float:
    """Return a text as a number; NaN if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class PairStability(ShownAsTables):
    """Agreement of two files of best pairs.

    - relations: Relations of both files.
    - cutoffs: Numbers k of best pairs that are compared.
    - common, int64 (cutoffs, relations): Number of pairs among the k best of both.
    - spearman, float64 (cutoffs, relations): Rank correlation of the shared pairs by their scores;
      NaN with fewer than two shared pairs, or if all of them tie in a file.
    """

    relations: tuple[str, ...]
    cutoffs: tuple[int, ...]
    common: Int64
    spearman: Float64

    def table(self) -> Table:
        """Return a table with a row per k, of means over relations.

        It has the shared pairs, commonality (their share), and Spearman's correlation.
        """
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
        return Table.from_rows(heads, rows)

    def by_relation(self) -> Table:
        """Return a table with a row per relation and k."""
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                k,
                int(self.common[row, column]),
                float(self.common[row, column] / k),
                float(self.spearman[row, column]),
            )
            for column, name in enumerate(self.relations)
            for row, k in enumerate(self.cutoffs)
        ]
        return Table.from_rows("relation,k,shared,commonality:4,Spearman=spearman:4", rows, names=2)


def pair_stability(
    first: PathName, second: PathName, cutoffs: Sequence[int] | None = None
) -> PairStability:
    """Compare the best pairs of two models, seeds or releases of a graph.

    Parameters
    ----------
    first, second : path
        Files of `BestPairs.write`, with the same relations.
    cutoffs : sequence of int, optional
        Numbers k of best pairs. By default 10, 100, ... up to the shortest list, and its length.

    Raises
    ------
    FileError
        As for `read_best_pairs`.
    UsageError
        The files have different relations, or a k is beyond a list.
    """
    lists = [read_best_pairs(path) for path in (first, second)]
    paths = [str(first), str(second)]
    for this, other in ((0, 1), (1, 0)):
        missing = [name for name in lists[this] if name not in lists[other]]
        if missing:
            raise UsageError(
                f"{paths[other]} lacks {len(missing):,} of the relations of {paths[this]}, such as "
                f"{missing[0]!r}; "
                "rank the same relations in both"
            )
    relations = tuple(lists[0])
    lengths = {
        (path, name): len(best.pairs)
        for path, by_relation in zip(paths, lists, strict=True)
        for name, best in by_relation.items()
    }
    shortest = min(lengths, key=lambda key: lengths[key])
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
    """Return the cutoffs, ascending; UsageError if one is beyond the shortest list.

    This is the list of `relation` in `path`, with `length` pairs.
    """
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
    """Return the number of pairs among the k best of both files, and Spearman's correlation.

    The correlation is that of the scores of these pairs.
    """
    first, second = (
        dict(zip(by_relation[name].pairs[:k], by_relation[name].scores, strict=False))
        for by_relation in lists
    )
    shared = [pair for pair in first if pair in second]
    ranks = []
    for scores in (first, second):
        values = np.array([scores[pair] for pair in shared])
        number = np.unique(values, return_inverse=True)[1].reshape(-1)
        ranks.append(average_ranks(number))
    return len(shared), pearson(*ranks)
