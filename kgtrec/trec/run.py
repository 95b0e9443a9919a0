"""Runs, qrels and question lists as TREC files, written whole columns at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.atomic import atomic_write
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.labels import Labels
    from kgtrec.questions import Questions

__all__ = ["Run", "check_tag", "write_qrels", "write_questions"]

_LINES_AT_A_TIME = 250_000


@dataclass(frozen=True, eq=False, repr=False)
class Run:
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

    def __repr__(self) -> str:
        return f"Run({len(self)} questions, {len(self.documents)} candidates, depth {self.depth})"

    def write(self, path: str | os.PathLike[str], tag: str = "kgtrec") -> None:
        """Write a TREC run file: lines ``query Q0 document rank score tag``.

        Scores have the fewest digits that give the same number back, so that reading the file
        and sorting it as trec_eval does restores the order, ties included.

        Parameters
        ----------
        path : str or path-like
            Target, which appears only when it is complete; ``.gz`` compresses.
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
        import pyarrow as pa

        if self.depth <= 0:
            raise UsageError("the run holds no candidates; rank with run_depth=1000, say")
        self._check_order()
        ids = _identifiers([*self.query_ids, tag])
        queries = _texts([query + b" Q0" for query in ids[:-1]])
        ending = pa.scalar(ids[-1] + b"\n", pa.large_binary())
        ranks = _numbers(np.arange(1, np.diff(self.offsets).max(initial=0) + 1))
        names = self.docnos.to_arrow()
        with atomic_write(path) as out:
            for rows, owner, place in _pieces(self.offsets):
                documents = names.take(pa.array(self.documents[rows]))
                digits = _numbers(self.scores[rows])
                columns = [queries.take(owner), documents, ranks.take(place), digits, ending]
                out.write(_lines(columns, b" "))

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


def write_qrels(questions: Questions, path: str | os.PathLike[str]) -> None:
    """Write the answers of all questions as TREC qrels: lines ``query 0 document 1``.

    Parameters
    ----------
    questions : Questions
        Questions in the order in which they are written, answers in that of their ids.
    path : str or path-like
        Target, which appears only when it is complete; ``.gz`` compresses.

    Raises
    ------
    FileError
        If the target cannot be written.
    """
    import pyarrow as pa

    queries = _texts([query + b" 0" for query in _identifiers(questions.ids)])
    ending = pa.scalar(b"1\n", pa.large_binary())
    names = questions.graph.entities.docnos.to_arrow()
    with atomic_write(path) as out:
        for rows, owner, _ in _pieces(questions.answers.offsets):
            documents = names.take(pa.array(questions.answers.ids[rows]))
            out.write(_lines([queries.take(owner), documents, ending], b" "))


def write_questions(questions: Questions, path: str | os.PathLike[str]) -> None:
    """Write what each question asks: lines ``query<TAB>given entity<TAB>relation``.

    Labels are percent-encoded where they hold white space, as in run and qrels.

    Parameters
    ----------
    questions : Questions
        Questions in the order in which they are written.
    path : str or path-like
        Target, which appears only when it is complete; ``.gz`` compresses.

    Raises
    ------
    FileError
        If the target cannot be written.
    """
    import pyarrow as pa

    graph = questions.graph
    queries = _texts(_identifiers(questions.ids))
    ending = pa.scalar(b"\n", pa.large_binary())
    entities = graph.entities.docnos.to_arrow().take(pa.array(questions.entity))
    relations = graph.relations.docnos.to_arrow().take(pa.array(questions.relation))
    last = _join([relations, ending], b"")
    with atomic_write(path) as out:
        for start in range(0, len(queries), _LINES_AT_A_TIME):
            rows = slice(start, start + _LINES_AT_A_TIME)
            piece = [queries[rows], entities[rows], last[rows]]
            out.write(_lines(piece, b"\t"))


def check_tag(tag: str) -> None:
    """UsageError if a run file cannot hold this name of the run."""
    _identifiers([tag])


def _identifiers(ids: Sequence[str]) -> list[bytes]:
    """Ids as bytes, refused where a reader would split them."""
    for text in ids:
        if not isinstance(text, str):
            raise UsageError(f"{text!r} cannot stand in a TREC file; ids and tags are texts")
    raw = [text.encode("utf-8", "surrogateescape") for text in ids]
    for text, each in zip(ids, raw, strict=True):
        if each.split() != [each]:
            mend = "use a name without white space"
            raise UsageError(f"{text!r} cannot stand in a TREC file; {mend}")
    return raw


def _pieces(offsets: NDArray[np.int64]) -> Iterator[tuple[slice, Any, Any]]:
    """Rows of a CSR in bounded pieces, with owner and place (from 0) of each as Arrow arrays."""
    import pyarrow as pa

    for start in range(int(offsets[0]), int(offsets[-1]), _LINES_AT_A_TIME):
        stop = min(start + _LINES_AT_A_TIME, int(offsets[-1]))
        rows = np.arange(start, stop)
        owner = np.searchsorted(offsets, rows, side="right") - 1
        yield slice(start, stop), pa.array(owner), pa.array(rows - offsets[owner])


def _texts(raw: list[bytes]) -> Any:
    import pyarrow as pa

    return pa.array(raw, pa.large_binary())


def _numbers(values: NDArray[Any]) -> Any:
    """Decimal texts; Arrow's cast gives the shortest one that reads back as the same number."""
    import pyarrow as pa

    return pa.array(values).cast(pa.large_string()).cast(pa.large_binary())


def _join(columns: Sequence[Any], separator: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*columns, pa.scalar(separator, pa.large_binary()))


def _lines(columns: Sequence[Any], separator: bytes) -> memoryview:
    """Bytes of the lines that the columns make, the last column ending each line."""
    joined = _join(columns, separator)
    ends = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset :]
    return memoryview(joined.buffers()[2])[ends[0] : ends[len(joined)]]
