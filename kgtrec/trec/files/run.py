"""Runs as the ranker makes them, and their TREC files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.atomic_file import atomic_write
from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import UsageError
from kgtrec.trec.files.lines import identifiers
from kgtrec.trec.files.run_lines import write_run_lines

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels

__all__ = ["Run", "check_tag"]


@dataclass(frozen=True, eq=False, repr=False)
class Run(ShownInLines):
    """The best candidates of every question, in trec_eval's order.

    Attributes
    ----------
    query_ids : sequence of str, length n_questions
        Names of the questions, such as "head0".
    offsets : ndarray of int64, shape (n_questions + 1,)
        Candidates of question i stand at ``offsets[i]`` to ``offsets[i + 1] - 1``.
    documents : ndarray of int32, shape (n,)
        Entity ids, best first: score descending, then docno descending in byte order.
        Candidates with a NaN score are never here.
    scores : ndarray of float32 or float64, shape (n,)
        Scores in the dtype in which they were given; negated where low scores are good, because
        a TREC run is read with the highest score first.
    docnos : Labels
        Name of every entity as it stands in files: percent-encoded, free of white space.
    depth : int
        At most so many candidates of a question were kept; 0 if none were asked for.
    """

    query_ids: Sequence[str]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    scores: NDArray[Any]
    docnos: Labels
    depth: int

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.query_ids) + 1:
            raise UsageError(
                f"offsets has {len(self.offsets)} entries for {len(self.query_ids)} questions; "
                "it must have one more than there are questions"
            )
        if not len(self.documents) == len(self.scores) == self.offsets[-1]:
            raise UsageError(
                f"documents has {len(self.documents)} entries, scores {len(self.scores)}, and "
                f"offsets ends at {self.offsets[-1]}; the three must be equal"
            )
        if self.scores.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise UsageError(
                f"scores of a run are {self.scores.dtype}; they must be float32 or float64"
            )

    def __len__(self) -> int:
        return len(self.query_ids)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} questions, {len(self.documents):,} candidates, depth {self.depth}",
            f"scores {self.scores.dtype}",
        )

    def write(self, path: str | os.PathLike[str], tag: str = "kgtrec") -> None:
        """Write a TREC run file: lines ``query Q0 document rank score tag``.

        Scores have the fewest digits that give the same number back, so that reading the file
        and sorting it as trec_eval does restores the order, ties included.

        Parameters
        ----------
        path : str or path-like
            Target, which appears only when it is complete; ``.gz`` and ``.zst`` compress.
        tag : str
            Name of the run, without white space.

        Raises
        ------
        UsageError
            If the run was made with depth 0, the scores of a question rise, or an id or the tag
            has white space or is empty.
        FileError
            If the target cannot be written.
        """
        with atomic_write(path) as out:
            self.write_to(out, tag)

    def write_to(self, out: BinaryIO, tag: str = "kgtrec", names: Any = None) -> None:
        """Append the lines to an open file; ``names`` are those of ``docnos.to_arrow()``, where
        many runs are written that share them. UsageError as `write`."""
        if self.depth <= 0:
            raise UsageError("the run holds no candidates; rank with run_depth=1000, say")
        self._check_order()
        (name,) = identifiers([tag])
        queries = identifiers(self.query_ids, first=True)
        names = self.docnos.to_arrow() if names is None else names
        write_run_lines(out, queries, self.offsets, names, self._columns, name)

    def cut(self, depth: int) -> Run:
        """The run with at most ``depth`` candidates per question."""
        if depth >= self.depth:
            return self
        lengths = np.minimum(np.diff(self.offsets), depth)
        offsets = np.zeros_like(self.offsets)
        np.cumsum(lengths, out=offsets[1:])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1] - offsets[:-1], lengths)
        return replace(
            self,
            offsets=offsets,
            documents=self.documents[rows],
            scores=self.scores[rows],
            depth=depth,
        )

    def _columns(self, rows: slice) -> tuple[NDArray[np.int64], NDArray[Any]]:
        return self.documents[rows].astype(np.int64), np.ascontiguousarray(self.scores[rows])

    def _check_order(self) -> None:
        """A reader sorts by score: a file in another order would silently be another run."""
        rises = self.scores[1:] > self.scores[:-1]
        starts = self.offsets[1:-1]
        rises[starts[(starts > 0) & (starts < len(self.scores))] - 1] = False
        if rises.any():
            query = int(np.searchsorted(self.offsets, int(np.argmax(rises)), side="right")) - 1
            raise UsageError(
                f"the scores of question {self.query_ids[query]!r} rise, but a run is read "
                "with the highest first; negate scores of which low ones are good"
            )


def check_tag(tag: str) -> None:
    """UsageError if a run file cannot hold this name of the run."""
    identifiers([tag])
