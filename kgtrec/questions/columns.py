"""Column order: which column of a model's scores is whose, declared once by its labels or ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import inverse
from kgtrec.errors import InputError, UsageError

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.questions import QuestionData

__all__ = ["column_of_label", "require_columns_by_id"]

Int64 = npt.NDArray[np.int64]

_PLURAL = {"entity": "entities", "relation": "relations"}


def column_of_label(columns: Any, labels: Labels, kind: str = "entity") -> Int64:
    """The column of each entity (or relation): int64, shape (len(labels),).

    Parameters
    ----------
    columns : sequence of str or of int, or mapping of str to int
        Whose each column is, by label or id; or the column of each label.
    labels : Labels
        Of the graph.
    kind : {"entity", "relation"}
        What they are labels of.

    Raises
    ------
    InputError
        A label or id that the graph lacks, that stands twice, or one without a column.
    """
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise InputError(
            f"columns={columns!r} is not an order of {_PLURAL[kind]}; give their labels or ids in "
            "the order of the columns, or a mapping of label to column"
        )
    if isinstance(columns, Mapping):
        places, names = np.asarray(list(columns.values())), list(columns)
        if places.dtype.kind not in "iu" or sorted(places.tolist()) != list(range(len(places))):
            raise InputError(
                f"columns maps {len(names)} labels to columns that are not 0 to "
                f"{len(names) - 1}, each once; give every label a column of its own"
            )
        columns = [names[at] for at in np.argsort(places).tolist()]
    return inverse(_each_once(_as_ids(columns, labels, kind), labels, kind))


def _as_ids(columns: Any, labels: Labels, kind: str) -> Int64:
    values = columns if isinstance(columns, np.ndarray) else list(columns)
    if len(values) and isinstance(values[0], str):
        try:
            return labels.ids(values if isinstance(values, list) else values.tolist())
        except InputError as error:
            raise InputError(f"columns: {error}") from None
    ids = np.asarray(values)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(
            f"columns have shape {ids.shape} and dtype {ids.dtype}; give the label or the id of "
            f"the {kind} of each column"
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= len(labels)))
    if len(wrong):
        raise InputError(
            f"column {wrong[0]} is declared as {kind} {ids[wrong[0]]}, which is not an id below "
            f"{len(labels)}"
        )
    return ids.astype(np.int64)


def _each_once(ids: Int64, labels: Labels, kind: str) -> Int64:
    counts = np.bincount(ids, minlength=len(labels))
    if (counts > 1).any():
        twice = int(np.flatnonzero(counts > 1)[0])
        first, second = np.flatnonzero(ids == twice)[:2].tolist()
        raise InputError(
            f"columns {first} and {second} are both declared as {labels[twice]!r} (id "
            f"{twice}); every {kind} has one column"
        )
    if not counts.all():
        missing = np.flatnonzero(counts == 0)
        named = ", ".join(repr(label) for label in labels[missing[:5]])
        raise InputError(
            f"{len(missing)} of {len(labels)} {_PLURAL[kind]} have no column: {named}"
            f"{', ...' if len(missing) > 5 else ''}; a model that numbers only what it was trained "
            "on needs a column for them too (a constant, such as -inf), or a graph without them"
        )
    return ids


def require_columns_by_id(questions: QuestionData, what: str) -> None:
    """UsageError if the columns of these questions are declared in another order than by id."""
    if questions.column_of is not None:
        raise UsageError(
            f"{what} takes columns in id order, and these questions declare another (columns=); "
            "leave it out, and hand over columns by id"
        )
