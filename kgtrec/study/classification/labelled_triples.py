"""Triples with labels (true or false) and a model's scores, from arrays or from files.

A file has lines ``head<TAB>relation<TAB>tail``, then a label (1 for true; 0 or -1 for false), as
WN11 and FB13 have them, then a score. Without labels all its triples are true, and the false ones
are in another file, as in CoDEx. False triples are never made up here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.locations import local_copy
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import FileError, InputError, PathName, UsageError, refuse_if
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.triples import as_triples
from kgtrec.scores.archives import read_arrays

Cells = tuple[str, str, str]

LABELS = {"1": True, "0": False, "-1": False}
"""The labels of files, and their meaning."""

_COLUMNS = (
    "head<TAB>relation<TAB>tail, then optionally a label (1 for true; 0 or -1 for false), then "
    "optionally a score"
)


@dataclass(frozen=True, eq=False)
class LabelledTriples(ShownInLines):
    """Triples with labels (true or false) and a model's scores.

    Attributes
    ----------
    triples : ndarray of int64, shape (n, 3)
        Ids of head, relation, tail. They are only compared for equality.
    labels : ndarray of bool, shape (n,)
        True for a true triple. 0, 1 and -1 are accepted, too.
    scores : ndarray of float64, shape (n,)
        Higher for more plausible; finite.
    origins : sequence of str, length n or 0
        Origin of each triple, for messages.

    Raises
    ------
    InputError
        Shapes that do not fit, other labels, a score that is not finite, or no triple at all.
    """

    triples: Int64
    labels: Bools
    scores: Float64
    origins: Sequence[str] = ()

    def __post_init__(self) -> None:
        triples = as_triples("triples", self.triples).astype(np.int64)
        if not len(triples):
            raise InputError("there are no labelled triples; give at least one")
        object.__setattr__(self, "triples", triples)
        object.__setattr__(self, "labels", _check_labels(self.labels, len(triples)))
        object.__setattr__(self, "scores", _check_scores(self.scores, len(triples)))
        if self.origins and len(self.origins) != len(triples):
            raise InputError(
                f"there are {len(self.origins):,} origins for {len(triples):,} triples; give one "
                "per triple, or none"
            )

    def __len__(self) -> int:
        return len(self.triples)

    def _lines(self) -> tuple[str, str]:
        relations, true = len(np.unique(self.triples[:, 1])), int(self.labels.sum())
        return (
            f"{true:,} true and {len(self) - true:,} false triples of {relations:,} relations",
            f"scores {self.scores.min():.4g} to {self.scores.max():.4g}",
        )

    def negate(self) -> LabelledTriples:
        """Return the same triples with negated scores, for distances."""
        return LabelledTriples(self.triples, self.labels, -self.scores, self.origins)

    def contradictions(self, name: str) -> str:
        """Return a sentence that counts the triples with both labels, or "" if there are none.

        `name` says which triples these are, such as "test".
        """
        _, first, group = np.unique(self.triples, axis=0, return_index=True, return_inverse=True)
        earlier = first[group.reshape(-1)]
        differs = np.flatnonzero(self.labels != self.labels[earlier])
        if not len(differs):
            return ""
        row = int(differs[0])
        other = int(earlier[row])
        true, false = (row, other) if self.labels[row] else (other, row)
        n = len(np.unique(earlier[differs]))
        return (
            f"{name}: {n:,} triple{'s are' if n > 1 else ' is'} both true and false; the first is "
            f"true {self._describe_row(true)} and false {self._describe_row(false)}. All rows count"
        )

    def _describe_row(self, row: int) -> str:
        return f"at {self.origins[row]}" if self.origins else f"in row {row}"


def _check_labels(labels: Any, size: int) -> Bools:
    """Return labels as bool (size,); InputError if their shape or a value is wrong."""
    values = np.asarray(labels)
    if values.shape != (size,):
        raise InputError(
            f"labels have shape {values.shape} for {size:,} triples; give one per triple"
        )
    wrong = np.flatnonzero(~np.isin(values, (-1, 0, 1)))
    if values.dtype.kind not in "biu" or len(wrong):
        problem = f"have dtype {values.dtype}"
        if len(wrong):
            problem = f"contain {values.tolist()[wrong[0]]!r} in row {wrong[0]}"
        raise InputError(f"labels {problem}; give 1 or True for true, and 0, -1 or False for false")
    return values == 1


def _check_scores(scores: Any, size: int) -> Float64:
    """Return scores as float64 (size,); InputError if their shape is wrong or one is not finite."""
    values = np.asarray(scores)
    if values.shape != (size,) or values.dtype.kind not in "fiu":
        raise InputError(
            f"scores have shape {values.shape} and dtype {values.dtype} for {size:,} triples; "
            "give one number per triple"
        )
    values = values.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise InputError(
            f"scores contain {values[wrong[0]]} in row {wrong[0]} ({len(wrong):,} are not finite); "
            "give finite numbers"
        )
    return values


# --- files ----------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """A line of a file."""

    path: PathName
    line: int
    cells: Cells
    label: bool | None
    score: float | None


def read_labelled(
    path: PathName,
    ids: dict[str, int],
    *,
    negatives: PathName | None = None,
    scores: PathName | None = None,
) -> LabelledTriples:
    """Read labelled triples from one file, or from a file of true and a file of false triples.

    Parameters
    ----------
    path : path
        Lines ``head<TAB>relation<TAB>tail``, then a label (1; 0 or -1), then a score; plain,
        ``.gz`` or ``.zst``. Without labels, all are true.
    ids : dict of str to int
        Ids of the names so far; new names are added. Files read with the same dictionary have the
        same ids.
    negatives : path, optional
        False triples; only with a file without labels.
    scores : path, optional
        One score per triple, those of `path` first, then those of `negatives`: a ``.npy`` array of
        one dimension, or a text file with one number per line. Needed unless the lines have scores.

    Raises
    ------
    FileError
        A missing or malformed file, or an invalid label or score.
    UsageError
        No labels and no false triples, or both; no scores, or both.
    """
    true, false = _read_rows(path), [] if negatives is None else _read_rows(negatives)
    rows, labels = [*true, *false], _collect_labels(true, false)
    locations = [f"{row.path}:{row.line}" for row in rows]
    return LabelledTriples(
        _number_names(rows, ids), np.array(labels), _collect_scores(rows, scores), locations
    )


def _read_rows(path: PathName) -> list[_Row]:
    """Read the lines of a file; FileError at the first malformed line."""
    rows: list[_Row] = []
    width = 0
    for line, raw in lines_of(path):
        columns = text_of(raw).split("\t")
        width = width or len(columns)
        if len(columns) != width or not 3 <= width <= 5 or "" in columns[:3]:
            shown = text_of(raw)[:120]
            problem = f"{len(columns)} columns: {shown!r}"
            raise FileError(path, line, found=problem, hint=f"every line must be {_COLUMNS}")
        label = _parse_label(path, line, columns[3]) if width > 3 else None
        score = _parse_score(path, line, columns[4]) if width > 4 else None
        rows.append(_Row(path, line, (columns[0], columns[1], columns[2]), label, score))
    if not rows:
        raise FileError(path, found="the file is empty", hint=f"write {_COLUMNS}")
    return rows


def _parse_label(path: PathName, line: int, text: str) -> bool:
    """Return a label as bool; FileError for any other text."""
    label = LABELS.get(text.strip())
    if label is None:
        hint = "write 1 for true, and 0 or -1 for false; a score comes after the label"
        raise FileError(path, line, found=f"label {text!r}", hint=hint)
    return label


def _parse_score(path: PathName, line: int, text: str) -> float:
    """Return a score as float; FileError if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise FileError(path, line, found=f"score {text!r}", hint="write a finite number")
    return value


def _collect_labels(true: list[_Row], false: list[_Row]) -> list[bool]:
    """Return the labels of all rows; UsageError if there are none, or labels and a second file."""
    labelled = next((row.path for row in (*true[:1], *false[:1]) if row.label is not None), None)
    refuse_if(
        (
            not false and labelled is None,
            f"{true[0].path} has no labels; add a fourth column (1 for true; 0 or -1 for false), "
            "or give a file of false triples",
        ),
        (
            false and labelled is not None,
            f"{labelled} has labels, but a file of false triples was given, too; leave out one of "
            "the two",
        ),
    )
    return [row.label is not False for row in true] + [False] * len(false)


def _number_names(rows: list[_Row], ids: dict[str, int]) -> Int64:
    """Return the ids of all triples, int64 (n, 3); add new names to `ids`."""
    numbers = [ids.setdefault(name, len(ids)) for row in rows for name in row.cells]
    return np.array(numbers, np.int64).reshape(-1, 3)


def _collect_scores(rows: list[_Row], path: PathName | None) -> Float64:
    """Return the scores of all rows from their lines, or from the file `path`; not from both."""
    if path is None:
        missing = [row.path for row in rows if row.score is None]
        if missing:
            raise UsageError(
                f"{missing[0]} has no scores; add a fifth column, or give a scores file"
            )
        return np.array([row.score for row in rows])
    scored = [row.path for row in rows if row.score is not None]
    if scored:
        raise UsageError(
            f"{scored[0]} has scores, but a scores file was given, too; leave out one of the two"
        )
    if str(path).endswith(".npy"):
        with local_copy(path) as copy:
            (values,) = read_arrays(copy).values()
    else:
        values = np.array([_parse_score(path, line, text_of(raw)) for line, raw in lines_of(path)])
    if values.shape != (len(rows),):
        names = " and ".join(dict.fromkeys(str(row.path) for row in rows))
        hint = f"give one score per triple of {names}, in the same order"
        raise FileError(
            path, found=f"scores of shape {values.shape} for {len(rows):,} triples", hint=hint
        )
    try:
        return _check_scores(values, len(rows))
    except InputError as error:
        problem, _, hint = str(error).partition("; ")
        raise FileError(path, found=problem, hint=hint) from None
