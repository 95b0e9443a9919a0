"""Predicted lists in one form for all file formats, and a builder for their readers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import offsets_of
from kgtrec.errors import refuse
from kgtrec.graph.labels import Labels
from kgtrec.questions.api import Questions
from kgtrec.questions.terms import NAMES

ANY = -1
"""Value of `PredictedLists.answer` for a list that serves every answer of its question."""


@dataclass(frozen=True, eq=False)
class PredictedLists:
    """The predicted lists of a file.

    - format, path: Name of the format, and path of the file ("predictions" if there is none).
    - question, int64 (n_lists,): The question that each list answers; -1: it is not asked.
    - answer, int64 (n_lists,): The answer that the list is for; `ANY`: every answer.
    - line, int64 (n_lists,): Line of the list in its file, from 1.
    - offsets, int64 (n_lists + 1,): List i owns ``entities[offsets[i]:offsets[i + 1]]``.
    - entities, int64 (n,): Best first; relations if these are predicted. Below -1: a label that
      names none, with one number per such label.
    - scores, float64 (n,) or None: Higher is better, equal ones tie. None: the order decides.
    - names: Labels in bytes; the i-th is that of entity -2 - i. None if they are unknown.
    """

    format: str
    path: str
    question: Int64
    answer: Int64
    line: Int64
    offsets: Int64
    entities: Int64
    scores: Float64 | None
    names: Any = None

    def __len__(self) -> int:
        return len(self.question)


class ListsBuilder:
    """Collects lists of labels, and converts all to ids at the end.

    - questions, Questions: Whose graph has the labels.
    - name, str: Name of the format.
    - path, path-like: File to name in messages.
    """

    def __init__(
        self, questions: Questions, name: str, path: str | PathLike[str] = "predictions"
    ) -> None:
        self._questions, self._graph = questions, questions.graph
        self._name, self._path = name, fspath(path)
        self._labels: dict[bytes, int] = {}
        # side, entity, relation or tail, answer (ANY or a code), line, context (a code, or -1)
        self._heads = tuple(array("q") for _ in range(6))
        self._codes, self._scores, self._lengths = array("q"), array("d"), array("q")
        self._scored: bool | None = None

    def add(
        self,
        line: int,
        side: int,
        entity: bytes,
        second: bytes,
        labels: Sequence[bytes],
        scores: Sequence[float] | None = None,
        answer: bytes | None = None,
        context: bytes | None = None,
    ) -> None:
        """Add a list, best first; FileError if some lists have scores and others have none.

        Either all lists have the label of their question's context, or none.
        """
        if labels:
            if self._scored is None:
                self._scored = scores is not None
            if self._scored != (scores is not None):
                refuse(
                    self._path,
                    line,
                    f"a list with{'' if self._scored is False else 'out'} scores after "
                    f"lists with{'out' if self._scored is False else ''} them",
                    "give scores to all lists or to none",
                )
            self._codes.extend(map(self._code, labels))
            self._scores.extend(scores or ())
        values = (
            side,
            self._code(entity),
            self._code(second),
            self._code(answer),
            line,
            self._code(context),
        )
        for column, value in zip(self._heads, values, strict=True):
            column.append(value)
        self._lengths.append(len(labels))

    def _code(self, label: bytes | None) -> int:
        """Return the number of a label, in order of first appearance; `ANY` for None."""
        return ANY if label is None else self._labels.setdefault(label, len(self._labels))

    def build(self) -> PredictedLists:
        """Return all lists; FileError if there are none."""
        if not len(self._lengths):
            refuse(self._path, None, "no lists: the file is empty", "give another file")
        names = list(self._labels)
        entity, relation = (
            ids_of(labels, names) for labels in (self._graph.entities, self._graph.relations)
        )
        predicted = relation if self._questions.kind == "relation" else entity
        side, first, second, answer, line, context = (
            np.array(c, dtype=np.int64) for c in self._heads
        )
        contexts = self._graph.contexts
        question = self._questions.of_graph().numbers(
            f"{self._path}: lists in format {self._name!r}",
            side,
            entity[first],
            np.where(side == NAMES.index("relation"), entity[second], relation[second]),
            ids_of(contexts, names)[context] if contexts and (context >= 0).all() else None,
        )
        return PredictedLists(
            self._name,
            self._path,
            question,
            np.where(answer == ANY, ANY, predicted[answer]),
            line,
            offsets_of(self._lengths),
            predicted[np.array(self._codes, dtype=np.int64)],
            np.array(self._scores, dtype=np.float64) if self._scored else None,
            names,
        )


def ids_of(labels: Labels, names: Iterable[bytes] | Any) -> Int64:
    """Return the ids of names, int64 (n,); unknown names get -2 - i, with i their index.

    ``names`` are bytes, or an Arrow array of them.
    """
    import pyarrow as pa

    ids = labels.positions(
        pa.array(names, type=pa.large_binary()) if isinstance(names, list) else names
    )
    return np.where(ids < 0, -2 - np.arange(len(ids)), ids)


def parse_score(path: str | PathLike[str], line: int, text: Any, whose: str) -> float:
    """Convert the text of a score to a number; FileError if it is none, or NaN.

    ``whose`` names the candidate in the message.
    """
    try:
        score = float(text)
    except (TypeError, ValueError):
        score = float("nan")
    if score != score or isinstance(text, bool):
        shown = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        refuse(path, line, f"score {shown!r} of {whose}", "write a number that is not NaN")
    return score
