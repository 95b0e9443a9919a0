"""The columns of `Ranks`: their types and sources.

Counts come from a ranking. All other columns, the manifest and the labels come from a source. This
is either the questions (`QuestionSource`, which computes them when they are first read) or stored
values (`StoredSource`).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arrays import Array, Bools, Int64
from kgtrec._version import __version__
from kgtrec.errors import InputError
from kgtrec.questions.api import Questions
from kgtrec.questions.terms import NAMES, TERM

T = TypeVar("T")


class ColumnType(NamedTuple):
    """The type of a column; `is_optional` is True if ranks may lack it."""

    dtype: type
    is_optional: bool = False


COLUMN_TYPES = {
    "triple": ColumnType(np.int64),
    "question": ColumnType(np.int64),
    "side": ColumnType(np.int64),
    "relation": ColumnType(np.int64),
    "given": ColumnType(np.int64),
    "answer": ColumnType(np.int64),
    "greater": ColumnType(np.int64),
    "equal": ColumnType(np.int64),
    "tied_ahead": ColumnType(np.int64),
    "candidates": ColumnType(np.int64),
    "macro_greater": ColumnType(np.int64),
    "macro_equal": ColumnType(np.int64),
    "macro_tied_ahead": ColumnType(np.int64),
    "macro_candidates": ColumnType(np.int64),
    "answer_popularity": ColumnType(np.int64),
    "relation_popularity": ColumnType(np.int64),
    "answer_nan": ColumnType(bool),
    "macro_answer_nan": ColumnType(bool),
    "given_relation": ColumnType(np.int64, is_optional=True),
    "given_tail": ColumnType(np.int64, is_optional=True),
    "context": ColumnType(np.int64, is_optional=True),
    "full_candidates": ColumnType(np.int64, is_optional=True),
    "grade": ColumnType(np.int64, is_optional=True),
    "unlisted": ColumnType(bool, is_optional=True),
    "macro_unlisted": ColumnType(bool, is_optional=True),
}
"""Every column of `Ranks` by name, in the order of files. Terms add columns of int64."""
REQUIRED = [name for name, column in COLUMN_TYPES.items() if not column.is_optional]
OPTIONAL = [name for name, column in COLUMN_TYPES.items() if column.is_optional]
ONLY_OF_GRAPHS = {"side": NAMES.index("all"), "relation": 0, "given": -1, "relation_popularity": 0}
"""Columns that only graph questions have, and the constant that fills them elsewhere."""
COUNTS = ("greater", "equal", "tied_ahead")
GREATER, EQUAL, TIED_AHEAD = range(3)
"""Rows of counts, in the order of `COUNTS`."""
MICRO, MACRO = slice(0, 3), slice(3, 6)
"""The halves of an array of counts, int64 (6, n): `COUNTS` among micro, then macro candidates."""
COUNTED = (*COUNTS, *(f"macro_{name}" for name in COUNTS), "answer_nan", "macro_answer_nan")


def convert_columns(columns: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """Return the columns of `Ranks` in their order and types; optional ones if present.

    Raises InputError for a value that a cast would change, such as a rank of 2.5.
    """
    dtypes: dict[str, type] = {name: column.dtype for name, column in COLUMN_TYPES.items()}
    dtypes |= {name: np.int64 for name in columns if name.startswith(TERM)}
    return {
        name: _convert_column(name, columns[name], dtype)
        for name, dtype in dtypes.items()
        if columns.get(name) is not None
    }


def _convert_column(name: str, values: npt.ArrayLike, dtype: type) -> Array:
    """Return values in the type of a column; InputError if they are not whole numbers."""
    array = np.asarray(values)
    is_whole = array.dtype.kind in "iub" or (
        array.dtype.kind == "f" and bool((np.isfinite(array) & (array == np.trunc(array))).all())
    )
    if not is_whole:
        raise InputError(
            f"column {name!r} of ranks has dtype {array.dtype} and values that are not whole "
            "numbers; give counts and ids as int64"
        )
    return np.ascontiguousarray(array, dtype)


_CACHES: WeakKeyDictionary[Questions, dict[str, Any]] = WeakKeyDictionary()


def cache_of(questions: Questions) -> dict[str, Any]:
    """Return the cache of values that depend on these questions alone.

    All rankings of the same questions share it.
    """
    return _CACHES.setdefault(questions, {})


def get_or_make(cache: dict[str, Any], name: str, make: Callable[[], T]) -> T:
    """Return ``cache[name]``; call `make` the first time."""
    if name not in cache:
        cache[name] = make()
    value: T = cache[name]
    return value


def build_count_columns(
    questions: Questions, counts: Int64, unscored: Iterable[Bools]
) -> dict[str, Array]:
    """Return the counts of all instances as columns of `Ranks`.

    - counts, int64 (6, n_instances): Counts of the kernel.
    - unscored, bool (n_instances,) each: True for answers without a score, among micro and among
      macro candidates.
    """
    columns: dict[str, Any] = dict(zip(COUNTED, (*counts, *unscored), strict=True))
    columns["candidates"] = questions.candidates
    columns["macro_candidates"] = questions.macro_candidates
    for prefix in ("", "macro_"):
        flags = columns[f"{prefix}answer_nan"]
        if np.count_nonzero(flags):  # an answer without a score ranks below every other candidate
            worst = columns[f"{prefix}candidates"] - 1
            columns[f"{prefix}greater"] = np.where(flags, worst, columns[f"{prefix}greater"])
    return columns


def build_instance_columns(
    questions: Questions, popularity: tuple[Int64, Int64 | None]
) -> dict[str, Array]:
    """Return the columns of `Ranks` that are not counted.

    - popularity: The result of ``origin.popularity``: int64 per candidate and per relation.
      The latter is None if the questions come from no graph.
    """
    question = questions.instance_question.astype(np.int64)  # take() needs this type
    answer = questions.answers.ids.astype(np.int64)
    of_candidates, of_relations = popularity
    columns: dict[str, Any] = {
        "triple": questions.instance_triple,
        "question": question,
        "answer": answer,
        "answer_popularity": of_candidates.take(answer),
    }
    if of_relations is not None:
        columns |= {"side": questions.side.astype(np.int8).take(question), "relation": answer}
    for name, (values, of_questions) in questions.columns.items():
        columns[name] = values.take(question) if of_questions else values
    if of_relations is not None:
        columns["relation_popularity"] = of_relations.take(columns["relation"])
    if questions.grades is not None:
        columns["grade"] = questions.grades
    if questions.full_candidates is not None:
        columns["full_candidates"] = questions.full_candidates
    return columns


def build_manifest(questions: Questions, scores: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of ranks; ``scores`` describes the scores."""
    facts, entries = questions.manifest()
    return {
        "questions": questions.describe() | facts,
        "scores": scores,
        "versions": {
            "kgtrec": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        **entries,
    }


@dataclass
class StoredSource:
    """The stored columns, manifest and labels of `Ranks`, without counts."""

    columns: Mapping[str, Array]
    manifest: dict[str, Any]
    relation_labels: Sequence[str] | None = None
    entity_labels: Sequence[str] | None = None
    cache: dict[str, Any] = field(default_factory=dict)


class QuestionSource:
    """The columns, manifest and labels of `Ranks` of questions, computed when first read.

    - describe_scores: Returns the description of the scores for the manifest.
    """

    def __init__(self, questions: Questions, describe_scores: Callable[[], dict[str, Any]]) -> None:
        self._questions, self._describe_scores = questions, describe_scores
        self.cache = cache_of(questions)

    @cached_property
    def columns(self) -> Mapping[str, Array]:
        """All columns but the counts, in their types."""
        questions = self._questions
        return convert_columns(
            build_instance_columns(questions, questions.origin.popularity(questions))
        )

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the ranks; see `Ranks.manifest`."""
        return build_manifest(self._questions, self._describe_scores())

    @property
    def relation_labels(self) -> Sequence[str] | None:
        """Label of every relation id."""
        return self._questions.origin.labels[0]

    @property
    def entity_labels(self) -> Sequence[str] | None:
        """Label of every entity id."""
        return self._questions.origin.labels[1]


RanksSource = StoredSource | QuestionSource
