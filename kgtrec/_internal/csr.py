"""Lists of entity ids per question in CSR form, and the sorted keys that they are made from.

A sorted int64 array of distinct keys ``question * n_entities + entity`` is a set of (question,
entity) pairs, and converts directly to CSR form.

A radix sort or a table of all values orders and numbers integers without comparisons, because ids
and counts have small ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arrays import Bools, Int32, Int64, Integers, Positions

K = TypeVar("K")
V = TypeVar("V")

_CHUNK = 1 << 18
_LEAST_BITS = 16  # fewer save nothing
_LARGEST_TABLE = 1 << 23  # keys, 32 MB


@dataclass(frozen=True, eq=False)
class Csr:
    """Entity ids per question, ascending and without repeats.

    - offsets, int64 (m + 1,): Question i owns ``ids[offsets[i]:offsets[i + 1]]``.
    - ids: int32 (offsets[-1],)
    """

    offsets: Int64
    ids: Int32

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Int32:
        row = range(len(self))[index]  # IndexError and negative indices as everywhere
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Int64:
        """Number of ids of each question, shape (m,)."""
        return np.diff(self.offsets)


def group_pairs(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Group pairs of key and value: return the values by key, both in order of appearance."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def owners(offsets: Int64) -> Int64:
    """Return the index of the list of each item, for lists one after another; int64 (n_items,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def distinct(parts: list[Int64]) -> Int64:
    """Return the sorted union of arrays of keys."""
    keys = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    keys.sort()
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def contains(ordered: Int64, keys: Int64) -> Bools:
    """Return whether each key is in a sorted array."""
    if len(keys) < 4 * len(ordered):
        return find_sorted(ordered, keys) >= 0
    # Usually few are: a small table of the last bits excludes most others before the search.
    last_bits = (1 << max(_LEAST_BITS, (8 * len(ordered)).bit_length())) - 1
    may_occur = np.zeros(last_bits + 1, dtype=bool)
    may_occur[ordered & last_bits] = True
    mask: Bools = may_occur[keys & last_bits]
    likely = np.flatnonzero(mask)
    mask[likely] = find_sorted(ordered, keys[likely]) >= 0
    return mask


def finder(ordered: Int64, n_keys: int) -> Callable[[Int64], Int64]:
    """Return a function from keys to their positions in a sorted array; -1 for other keys.

    Keys are 0 or more. The function uses a table of all keys if their range is small enough for
    `n_keys` look-ups.
    """
    beyond = int(ordered[-1]) + 1 if len(ordered) else 0
    if beyond > min(_LARGEST_TABLE, 16 * n_keys):
        return lambda keys: find_sorted(ordered, keys)
    positions = np.full(beyond + 1, -1, np.int32)
    positions[ordered] = np.arange(len(ordered))
    return lambda keys: positions[np.minimum(keys, beyond)].astype(np.int64)


def find_sorted(ordered: Int64, keys: Int64) -> Int64:
    """Return the position of each key in a sorted array; -1 for other keys."""
    if not len(ordered):
        return np.full(len(keys), -1)
    position = np.searchsorted(ordered, keys)
    position[position == len(ordered)] = 0
    position[ordered[position] != keys] = -1
    return position


def position_type(length: int) -> type[np.signedinteger[Any]]:
    """Return the dtype for positions in an array of this length: int32 if they fit."""
    return np.int32 if length < 1 << 31 else np.int64


def inverse(permutation: Int64) -> Int64:
    """Return the position of each number in a permutation."""
    position = np.empty(len(permutation), dtype=np.int64)
    position[permutation] = np.arange(len(permutation))
    return position


def to_csr(keys: Int64, n_questions: int, n_entities: int) -> Csr:
    """Convert sorted, distinct keys to lists of entities."""
    offsets, ids = np.empty(n_questions + 1, np.int64), np.empty(len(keys), np.int32)
    for start in range(0, n_questions + 1, _CHUNK):  # some at a time, to save memory
        stop = min(start + _CHUNK, n_questions + 1)
        bounds = np.arange(start, stop, dtype=np.int64) * n_entities
        offsets[start:stop] = np.searchsorted(keys, bounds)
    for start in range(0, len(keys), _CHUNK):
        ids[start : start + _CHUNK] = keys[start : start + _CHUNK] % n_entities
    return Csr(offsets, ids)


def to_keys(csr: Csr, n_entities: int) -> Int64:
    """Convert lists of entities to sorted keys."""
    return np.repeat(np.arange(len(csr)), csr.lengths) * n_entities + csr.ids


def stack(parts: list[Csr]) -> Csr:
    """Return the lists of several `Csr`, one after another."""
    offsets = np.zeros(1 + sum(map(len, parts)), dtype=np.int64)
    first = start = 0
    for part in parts:
        stop = first + len(part)
        np.add(part.offsets[1:], start, out=offsets[first + 1 : stop + 1])
        first, start = stop, start + len(part.ids)
    return Csr(offsets, np.concatenate([part.ids for part in parts]))


def offsets_of(lengths: npt.ArrayLike) -> Int64:
    """Return the starts of consecutive lists of these lengths, and the end of the last one."""
    offsets = np.zeros(np.size(lengths) + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    return offsets


def spans(starts: Int64 | int, lengths: Integers) -> tuple[Int64, Int64]:
    """Return offsets of consecutive lists, and positions of their items from each start."""
    offsets = offsets_of(lengths)
    return offsets, np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def select_lists(csr: Csr, rows: Int64) -> Csr:
    """Return the lists of some questions, in this order; repeats are allowed."""
    starts = csr.offsets[rows]
    offsets, items = spans(starts, csr.offsets[rows + 1] - starts)
    return Csr(offsets, csr.ids[items])


_ROWS = 1 << 18
_DIGIT = 16  # bits of the integers that numpy's stable sort orders by radix


def order_by(*columns: Integers) -> Positions:
    """Return the stable ascending order of rows by integer columns, the first most significant."""
    order: Positions | None = None
    for column in reversed(columns):
        for digit in _digits(column):
            order = _order_of(digit) if order is None else order[_order_of(digit[order])]
    return np.arange(len(columns[0])) if order is None else order


def _order_of(digit: npt.NDArray[np.uint16]) -> Positions:
    """Return the stable order of one digit, in blocks: numpy would need 16 more bytes per row."""
    if len(digit) <= _ROWS:
        return np.argsort(digit, kind="stable")
    counts = np.bincount(digit)
    next_position = np.cumsum(counts) - counts
    order = np.empty(len(digit), position_type(len(digit)))
    for start in range(0, len(digit), _ROWS):
        block_order = np.argsort(digit[start : start + _ROWS], kind="stable")
        ordered = digit[start + block_order]
        counts = np.bincount(ordered, minlength=len(next_position))
        first = np.cumsum(counts) - counts
        order[np.arange(len(block_order)) + (next_position - first)[ordered]] = start + block_order
        next_position += counts
    return order


def _digits(column: Integers) -> Iterator[npt.NDArray[np.uint16]]:
    """Yield the digits of a column, the last one first; no digit if all values are equal."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    for shift in range(0, (high - low).bit_length(), _DIGIT):
        digit = column - low
        digit >>= shift
        yield digit.astype(np.uint16)


def number_values(values: Integers) -> tuple[Integers, Positions]:
    """Return the distinct values, ascending, and the index of each value among them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low > 8 * len(values):
        distinct, position = np.unique(values, return_inverse=True)
        return distinct, position.reshape(-1)
    present = np.zeros(high - low + 1, bool)
    present[values - low] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[values - low]
