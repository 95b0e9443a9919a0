"""Labels as users hand them in with arrays: in id order, as a mapping to ids, or not at all."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.graph.labels import Labels

__all__ = ["resolve_labels"]

_MAX_ID = (1 << 31) - 1  # ids are int32 wherever there is one per triple or candidate


def _in_id_order(name: str, labels: Sequence[str] | Mapping[str, int]) -> Sequence[str]:
    """Labels as a sequence, whose places are their ids."""
    hint = "give labels in id order, or a mapping of each label to its id"
    if isinstance(labels, Set):  # keys of a mapping, too: their order need not be that of ids
        raise UsageError(f"{name}= is a {type(labels).__name__}, which has no order; {hint}")
    if not isinstance(labels, Mapping):
        return labels
    if any(isinstance(i, (bool, np.bool_)) for i in labels.values()):
        raise UsageError(f"{name}= maps labels to True or False, which are no ids; {hint}")
    ordered: list[str | None] = [None] * len(labels)
    for label, number in labels.items():
        try:
            place = operator.index(number)
        except TypeError:
            raise UsageError(
                f"{name}= maps {label!r} to {number!r}, which is not an id; {hint}"
            ) from None
        if not 0 <= place < len(ordered):
            raise UsageError(
                f"{name}= maps {label!r} to {place}, but {len(ordered)} labels have the ids 0 to "
                f"{len(ordered) - 1}; {hint}"
            )
        if ordered[place] is not None:
            raise UsageError(
                f"{name}= maps both {ordered[place]!r} and {label!r} to {place}; {hint}"
            )
        ordered[place] = label
    return ordered  # type: ignore[return-value]  # every place is taken, as each is taken once


def resolve_labels(
    name: str,
    size: int | None,
    labels: Sequence[str] | Mapping[str, int] | None,
    columns: Iterable[npt.NDArray[Any]],
) -> Labels:
    """Labels of all ids: those given, or decimal ones up to the given or the largest id."""
    if size is not None:
        try:
            size = operator.index(size)
        except TypeError:
            raise UsageError(
                f"n_{name}={size!r} is not an integer; give the number of {name}"
            ) from None
    if labels is not None:
        named = Labels.from_strings(_in_id_order(name, labels))
        if size is not None and size != len(named):
            raise UsageError(
                f"n_{name}={size}, but {name}= holds {len(named)} labels; leave n_{name} out"
            )
        size = len(named)
    if size is None:
        size = 1 + max((int(ids.max()) for ids in columns if len(ids)), default=-1)
        if size > _MAX_ID:
            raise InputError(f"the largest id of {name} is {size - 1}; ids must be below {_MAX_ID}")
        size = max(size, 1)
    if not 1 <= size <= _MAX_ID:
        raise UsageError(f"n_{name}={size}; it must be between 1 and {_MAX_ID}")
    return named if labels is not None else Labels.decimal(size)
