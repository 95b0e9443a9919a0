"""Lists of entity ids per question in CSR form, and the sorted keys that they are cut from.

A sorted, duplicate-free int64 array of keys ``question * n_entities + entity`` is a set of
(question, entity) pairs, and cuts into CSR form at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Csr",
    "contains",
    "distinct",
    "inverse",
    "position_type",
    "stack",
    "take",
    "to_csr",
    "to_keys",
]

Int64 = npt.NDArray[np.int64]

_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Csr:
    """Entity ids per question, ascending and without repeats.

    Attributes
    ----------
    offsets : ndarray of int64, shape (m + 1,)
        Question i owns ``ids[offsets[i]:offsets[i + 1]]``.
    ids : ndarray of int32, shape (offsets[-1],)
    """

    offsets: Int64
    ids: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> npt.NDArray[np.int32]:
        row = range(len(self))[index]  # IndexError and negative indices as everywhere
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Int64:
        """Number of ids of each question, shape (m,)."""
        return np.diff(self.offsets)


def distinct(parts: list[Int64]) -> Int64:
    """Sorted union of key arrays."""
    keys = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    keys.sort()
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def contains(ordered: Int64, keys: Int64) -> npt.NDArray[np.bool_]:
    """Whether each key is in a sorted array."""
    if not len(ordered):
        return np.zeros(len(keys), dtype=bool)
    at = np.searchsorted(ordered, keys)
    at[at == len(ordered)] = 0
    mask: npt.NDArray[np.bool_] = ordered[at] == keys
    return mask


def position_type(length: int) -> type[np.signedinteger[Any]]:
    """The type of positions in arrays of a length: int32 where they fit."""
    return np.int32 if length < 1 << 31 else np.int64


def inverse(permutation: Int64) -> Int64:
    """Position of each number in a permutation."""
    position = np.empty(len(permutation), dtype=np.int64)
    position[permutation] = np.arange(len(permutation))
    return position


def to_csr(keys: Int64, n_questions: int, n_entities: int) -> Csr:
    """Sorted, duplicate-free keys as lists of entities."""
    offsets, ids = np.empty(n_questions + 1, np.int64), np.empty(len(keys), np.int32)
    for start in range(0, n_questions + 1, _CHUNK):  # a few at a time, in little memory
        stop = min(start + _CHUNK, n_questions + 1)
        bounds = np.arange(start, stop, dtype=np.int64) * n_entities
        offsets[start:stop] = np.searchsorted(keys, bounds)
    for start in range(0, len(keys), _CHUNK):
        ids[start : start + _CHUNK] = keys[start : start + _CHUNK] % n_entities
    return Csr(offsets, ids)


def to_keys(csr: Csr, n_entities: int) -> Int64:
    """Sorted keys of all lists."""
    return np.repeat(np.arange(len(csr)), csr.lengths) * n_entities + csr.ids


def stack(parts: list[Csr]) -> Csr:
    """The lists of several, one after another."""
    offsets = np.zeros(1 + sum(map(len, parts)), dtype=np.int64)
    first = start = 0
    for part in parts:
        stop = first + len(part)
        np.add(part.offsets[1:], start, out=offsets[first + 1 : stop + 1])
        first, start = stop, start + len(part.ids)
    return Csr(offsets, np.concatenate([part.ids for part in parts]))


def take(csr: Csr, rows: Int64) -> Csr:
    """The lists of some questions, in the order asked for, repeats allowed."""
    lengths = csr.lengths[rows]
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    at = np.arange(offsets[-1]) + np.repeat(csr.offsets[rows] - offsets[:-1], lengths)
    return Csr(offsets, csr.ids[at])
