"""Qualifiers of facts: the sets of (relation, value) pairs that there are, and what asks a value.

A fact of an n-ary graph is a primary triple with a set of qualifiers. The sets are numbered, and a
fact's number stands in its fourth column, as a time does. A qualifier's value is asked of a table
of the same shape: (statement, relation, value, set of the other qualifiers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels

__all__ = [
    "NO_QUALIFIERS",
    "QualifierSets",
    "checked_qualifiers",
    "given_rows",
    "n_qualifiers",
    "number_sets",
    "set_labels",
    "value_rows",
]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

NO_QUALIFIERS = "-"
"""Label of the empty set; that of any other holds a "="."""
_RESERVED = str.maketrans({"%": "%25", "=": "%3D", ",": "%2C"})
_PAIR = 8  # bytes


@dataclass(frozen=True, eq=False)
class QualifierSets:
    """Sets of qualifiers by number: ``sets[number]`` has the pairs of one.

    Numbers are in the order of the sets' pairs; the empty set, if there is one, is 0.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Set i owns ``pairs[offsets[i]:offsets[i + 1]]``.
    pairs : ndarray of int32, shape (offsets[-1], 2)
        Ids of relation and value, ascending within a set.
    without : ndarray of int32, shape (offsets[-1],)
        Number of the same set without this pair; -1 if no fact's qualifiers leave it.
    """

    offsets: Int64
    pairs: Int32
    without: Int32

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> Int32:
        row = range(len(self))[number]
        return self.pairs[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Int64:
        """How many qualifiers each set has: int64, shape (n,)."""
        return np.diff(self.offsets)


def checked_qualifiers(name: str, qualifiers: Any, n_facts: int) -> tuple[Int64, Int64]:
    """Offsets and pairs of a split's qualifiers; InputError if they are not those of its facts."""
    advice = (
        "qualifiers of a split are (offsets, pairs): integers of shape (facts + 1,) that ascend "
        "from 0, and of shape (offsets[-1], 2), relation and value"
    )
    try:
        offsets, pairs = (np.asarray(array) for array in qualifiers)
    except (TypeError, ValueError):
        raise InputError(f"qualifiers[{name!r}] is no pair of arrays; {advice}") from None
    if not len(pairs):
        pairs = np.empty((0, 2), np.int64)
    wrong = [array.dtype for array in (offsets, pairs) if array.dtype.kind not in "iu"]
    if wrong:
        raise InputError(f"qualifiers[{name!r}] has dtype {wrong[0]}; {advice}")
    offsets, pairs = offsets.astype(np.int64), pairs.astype(np.int64)
    if offsets.shape != (n_facts + 1,) or pairs.shape != (offsets[-1], 2):
        raise InputError(
            f"qualifiers[{name!r}] have shapes {offsets.shape} and {pairs.shape}, of {n_facts} "
            f"facts; {advice}"
        )
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InputError(f"the offsets of qualifiers[{name!r}] do not ascend from 0; {advice}")
    return offsets, pairs


def number_sets(
    qualifiers: Mapping[str, tuple[Int64, Int64]],
) -> tuple[dict[str, Int32], QualifierSets]:
    """Number of each fact's set of qualifiers by split, and the sets.

    Each set of a fact is there, and what is left of it without one of its pairs.
    """
    keys = {name: _set_keys(*arrays) for name, arrays in qualifiers.items()}
    of_facts = set().union(*keys.values())
    every = of_facts.union(rest for key in of_facts for rest in _rests(key))
    ordered = sorted(every)  # big-endian numbers ascend as their bytes do
    number = {key: place for place, key in enumerate(ordered)}
    splits = {
        name: np.array([number[key] for key in of_split], np.int32)
        for name, of_split in keys.items()
    }
    lengths = np.array([len(key) // _PAIR for key in ordered], np.int64)
    pairs = np.frombuffer(b"".join(ordered), ">i4").astype(np.int32).reshape(-1, 2)
    without = np.array([number.get(rest, -1) for key in ordered for rest in _rests(key)], np.int32)
    return splits, QualifierSets(np.append(0, np.cumsum(lengths)), pairs, without)


def _set_keys(offsets: Int64, pairs: Int64) -> list[bytes]:
    """The bytes of each fact's pairs, ascending and each once: equal for equal sets."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((pairs[:, 1], pairs[:, 0], owner))
    owner, pairs = owner[order], pairs[order]
    first = np.ones(len(owner), bool)
    first[1:] = (owner[1:] != owner[:-1]) | (pairs[1:] != pairs[:-1]).any(axis=1)
    counts = np.bincount(owner[first], minlength=len(offsets) - 1)
    ends = (np.append(0, np.cumsum(counts)) * _PAIR).tolist()
    data = pairs[first].astype(">i4").tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def _rests(key: bytes) -> list[bytes]:
    return [key[:at] + key[at + _PAIR :] for at in range(0, len(key), _PAIR)]


def set_labels(sets: QualifierSets, entities: Labels, relations: Labels) -> list[str]:
    """A label for each set: ``P580=Q1,P582=Q2``, or ``-``; "%", "=" and "," are encoded."""
    distinct, place = np.unique(sets.pairs, axis=0, return_inverse=True)
    texts = [
        "=".join(text.translate(_RESERVED) for text in pair)
        for pair in zip(relations[distinct[:, 0]], entities[distinct[:, 1]], strict=True)
    ]
    words = [texts[at] for at in place.reshape(-1).tolist()]
    ends = sets.offsets.tolist()
    return [",".join(words[start:end]) or NO_QUALIFIERS for start, end in pairwise(ends)]


def n_qualifiers(label: str) -> int:
    """How many qualifiers the set has that such a label names."""
    return label.count("=")


def value_rows(sets: QualifierSets, facts: Int32, statement: Int64) -> Int32:
    """What asks the values of some facts' qualifiers, fact by fact.

    Parameters
    ----------
    sets : QualifierSets
    facts : ndarray of int32, shape (n, 4)
    statement : ndarray of int64, shape (n,)
        Number of the primary triple of each.

    Returns
    -------
    ndarray of int32, shape (m, 4)
        Statement, qualifier relation, value, set of the other qualifiers.
    """
    owner, at = _pairs_of(sets, facts[:, 3])
    return _rows(statement[owner], sets.pairs[at], sets.without[at])


def given_rows(sets: QualifierSets, facts: Int32, statement: Int64) -> Int32:
    """As `value_rows`, with the other values that the fact has for the same qualifier relation in
    place of the one that is asked: the question gives them, so they are known."""
    owner, at = _pairs_of(sets, facts[:, 3])
    set_of = np.repeat(np.arange(len(sets)), sets.lengths)
    relation = sets.pairs[:, 0]
    starts = np.ones(len(relation), bool)
    starts[1:] = (set_of[1:] != set_of[:-1]) | (relation[1:] != relation[:-1])
    first = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    lengths = np.diff(np.append(first, len(relation)))
    times = lengths[run[at]]
    owner, target = np.repeat(owner, times), np.repeat(at, times)
    other = np.repeat(first[run[at]], times) + _within(times)
    keep = other != target
    owner, target, other = owner[keep], target[keep], other[keep]
    return _rows(statement[owner], sets.pairs[other], sets.without[target])


def _rows(statement: Int64, pairs: Int32, others: Int32) -> Int32:
    rows = np.empty((len(pairs), 4), np.int32)
    rows[:, 0], rows[:, 1:3], rows[:, 3] = statement, pairs, others
    return rows


def _pairs_of(sets: QualifierSets, numbers: Int32) -> tuple[Int64, Int64]:
    """Row of each qualifier's fact among the numbers of their sets, and place of the qualifier."""
    counts = sets.lengths[numbers]
    owner = np.repeat(np.arange(len(numbers)), counts)
    return owner, np.repeat(sets.offsets[numbers], counts) + _within(counts)


def _within(counts: Int64) -> Int64:
    """0 to count - 1 for each count, one after another."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
