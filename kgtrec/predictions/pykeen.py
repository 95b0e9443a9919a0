"""PyKEEN's prediction frames: scored triples by label, written with ``to_csv``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError
from kgtrec.graph.id_files import delimited_rows
from kgtrec.predictions.lists import ANY, PredictedLists, checked_score, ids_of
from kgtrec.questions.questions import QuestionData
from kgtrec.questions.sides import ASKED, GIVEN, SIDES

__all__ = ["lists_of_triples", "read_pykeen"]

_COLUMNS = ("head_label", "relation_label", "tail_label", "score")
_HINT = (
    "a first line names the columns head_label, relation_label, tail_label and score "
    "(predictions.process(factory=training).df.to_csv(...)); commas in .csv, tabs in .tsv"
)


def read_pykeen(path: str | PathLike[str], questions: QuestionData) -> PredictedLists:
    """Lists of scored triples: a triple stands in a list of each side that the questions ask.

    Raises
    ------
    FileError
        With the first line that is not as it should be.
    """
    rows = _rows(path)
    line, header = next(rows, (1, []))
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        ids = " (numbers are PyKEEN's own: write the labels)" if "head_id" in header else ""
        what = f"no column {', '.join(missing)} among {', '.join(header) or 'none'}{ids}"
        raise FileError(path, line, found=what, hint=_HINT)
    places = [header.index(name) for name in _COLUMNS]
    numbers: dict[str, int] = {}
    codes, scores, at = array("q"), array("d"), array("q")
    for line, fields in rows:
        if len(fields) != len(header):
            what = f"{len(fields)} fields, where the first line names {len(header)}"
            raise FileError(path, line, found=what, hint=_HINT)
        *labels, score = (fields[place] for place in places)
        if not all(labels):
            raise FileError(path, line, found="an empty label", hint=_HINT)
        codes.extend(numbers.setdefault(label, len(numbers)) for label in labels)
        scores.append(checked_score(path, line, score, repr(labels[0])))
        at.append(line)
    if not len(at):
        raise FileError(path, found="no predictions after the first line", hint=_HINT)
    return lists_of_triples(questions, path, list(numbers), codes, scores, at)


def lists_of_triples(
    questions: QuestionData, path: Any, labels: list[str], codes: Any, scores: Any, line: Any
) -> PredictedLists:
    """Lists of scored triples whose head, relation and tail are places in `labels`."""
    names = [label.encode("utf-8", "surrogateescape") for label in labels]
    entity, relation = (
        ids_of(kind, names) for kind in (questions.graph.entities, questions.graph.relations)
    )
    ids = (entity, relation, entity)
    triples = np.array(codes, dtype=np.int64).reshape(-1, 3)
    # side, the given pair, what is predicted, score, line: a row for each entry of a list
    columns: list[list[npt.NDArray[Any]]] = [[], [], [], [], [], []]
    for side in SIDES[questions.sides]:
        parts = (
            np.full(len(triples), side),
            *(ids[column][triples[:, column]] for column in (*GIVEN[side], ASKED[side])),
            np.array(scores),
            np.array(line, dtype=np.int64),
        )
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    return _cut(path, [np.concatenate(parts) for parts in columns])


def _cut(path: Any, columns: list[npt.NDArray[Any]]) -> PredictedLists:
    """Entries as lists, one for each side and given pair, best first."""
    side, entity, second, predicted, score, line = columns
    order = np.lexsort((line, -score, second, entity, side))
    side, entity, second, predicted, score, line = (column[order] for column in columns)
    new = np.ones(len(side), dtype=bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in (side, entity, second)], axis=0)
    first = np.flatnonzero(new)
    return PredictedLists(
        "pykeen",
        fspath(path),
        side[first],
        entity[first],
        second[first],
        np.full(len(first), ANY),
        line[first],
        np.append(first, len(order)).astype(np.int64),
        predicted,
        score,
    )


def _rows(path: str | PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines and their fields."""
    name = Path(path).name.removesuffix(".gz").removesuffix(".zst")
    if not name.endswith((".csv", ".tsv")):
        problem = "neither .csv nor .tsv says what separates its columns"
        raise FileError(path, found=problem, hint=_HINT)
    yield from delimited_rows(path, "\t" if name[-3:] == "tsv" else ",", _HINT)
