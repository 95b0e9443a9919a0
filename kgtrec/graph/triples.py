"""Integer triples (checks, keys, duplicates, hashes), and sets of qualifiers.

A fact of an n-ary graph is a primary triple with a set of (relation, value) pairs, whose number is
the fact's fourth column, as a time would be. Questions for a qualifier's value use a table of
the same shape: (statement, relation, value, set of the other qualifiers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.csr import Array, Bools, Int32, Int64, Integers, offsets_of, owners, spans
from kgtrec.errors import InputError
from kgtrec.graph.labels import Labels

SPLITS = ("train", "valid", "test")
COLUMNS = ("head", "relation", "tail")


def names_of(columns: str) -> list[str]:
    """The names of columns in the order of their letters, as in "hrt"."""
    return [COLUMNS["hrt".index(letter)] for letter in columns]


_CHUNK = 1 << 18
"""Rows at a time: their temporary arrays stay in the cache, and small beside millions of rows."""
_PIECE_BITS = 5


def as_triples(name: str, triples: npt.ArrayLike, widths: tuple[int, ...] = (3,)) -> Array:
    """Triples as integers (n, 3), or (n, 4) with a context, not copied if they are already."""
    advice = "triples are integer ids in rows (head, relation, tail)"
    try:
        array = np.asarray(triples)
    except ValueError:
        raise InputError(f"{name} is ragged: its rows differ in length; {advice}") from None
    if array.shape in ((0,), (0, 3)):  # an empty list has neither a dtype nor a width
        return np.empty((0, widths[0]), dtype=np.int64)
    if array.dtype.kind == "f":
        raise InputError(
            f"{name} has dtype {array.dtype}: floats lose precision (float32 is not exact for ids "
            "above 16,777,216); keep ids integers from the start, for example dtype=numpy.int64"
        )
    if array.dtype.kind not in "iu":
        hint = (
            f"; give labels through {argument('entities')} and {argument('relations')}"
            if array.dtype.kind in "USO"
            else ""
        )
        raise InputError(f"{name} has dtype {array.dtype}; {advice}{hint}")
    if array.ndim != 2 or array.shape[1] not in widths:
        shapes = " or ".join(f"(n, {width})" for width in widths)
        raise InputError(f"{name} has shape {array.shape}, not {shapes}; {advice}")
    return array


def checked_ids(
    name: str,
    rows: Array,
    n_entities: int,
    n_relations: int,
    n_contexts: int = 0,
    columns: tuple[str, ...] = (*COLUMNS, "context"),
) -> Int32:
    """Copy as int32; InputError naming the first id that is negative or too large."""
    sizes = {
        "relation": (n_relations, "n_relations"),
        "context": (n_contexts, "the number of contexts"),
    }
    for number, (column, ids) in enumerate(zip(columns, rows.T, strict=False)):
        size, count = sizes.get(column, (n_entities, "n_entities"))
        if not len(ids) or (ids.min() >= 0 and ids.max() < size):
            continue
        row = int(np.flatnonzero((ids < 0) | (ids >= size))[0])
        noun = column if column in sizes else "entity"
        limit = "is negative" if ids[row] < 0 else f"is not below the {size} of this graph"
        raise InputError(
            f"{name}, row {row}, column {number} ({column}): {noun} id {ids[row]} {limit}; ids run "
            f"from 0 to {count} - 1, and columns are {', '.join(columns[: rows.shape[1]])}"
        )
    return np.array(rows, dtype=np.int32, order="C")


def pack_triples(triples: Int32, n_entities: int, n_relations: int) -> Int64:
    """One int64 key per row, equal exactly if the rows are equal."""
    pairs = triples[:, 0].astype(np.int64)
    pairs *= n_relations
    pairs += triples[:, 1]
    if n_entities * n_relations * n_entities > np.iinfo(np.int64).max:
        # Numbering the pairs that occur leaves at most 2^31 of them.
        pairs = np.unique(pairs, return_inverse=True)[1].astype(np.int64, copy=False)
    pairs *= n_entities
    pairs += triples[:, 2]
    return pairs


def drop_duplicates(triples: Int32, *, in_place: bool = False) -> Int32:
    """Distinct rows in order of first appearance; the array itself if all are distinct.

    Sorts hashes of 64 bits, for any size of the graph, then compares rows whose hash may occur
    again, some at a time. It takes 8 more bytes per row, or the distinct rows. ``in_place`` writes
    these over the rows and cuts the array, to which no view may exist.
    """
    if not (again := _again(triples)).size:
        return triples
    keep = np.ones(len(triples), dtype=bool)
    pieces = _suspects(triples, again)
    del again
    while pieces:
        keep[_later_copies(triples, np.concatenate(pieces.pop()))] = False
    if keep.all():
        return triples
    n_distinct = int(np.count_nonzero(keep))
    if not in_place:
        return _move_selected(
            triples, keep, np.empty((n_distinct, triples.shape[1]), dtype=triples.dtype)
        )
    _move_selected(triples, keep, triples)
    triples.resize((n_distinct, triples.shape[1]), refcheck=False)
    return triples


def row_hashes(triples: Int32) -> npt.NDArray[np.uint64]:
    """One number per row, equal for equal rows, and almost never for others; modulo 2^64."""
    hashes = triples[:, 0].astype(np.uint64)
    hashes <<= np.uint64(32)
    hashes |= triples[:, 2].astype(np.uint64)
    hashes *= np.uint64(0x9E3779B97F4A7C15)
    hashes ^= hashes >> np.uint64(29)
    for column in range(1, triples.shape[1], 2):  # the relation, and the context
        hashes += triples[:, column].astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9 + 2 * column)
    return hashes


def _again(triples: Int32) -> npt.NDArray[np.uint64]:
    """Hashes that occur again, ascending: one that occurs k times comes k - 1 times."""
    ordered = np.empty(len(triples), dtype=np.uint64)
    for start in range(0, len(triples), _CHUNK):
        ordered[start : start + _CHUNK] = row_hashes(triples[start : start + _CHUNK])
    ordered.sort()
    n = 0
    for start in range(1, len(ordered), _CHUNK):  # to the front, which was read already
        part = ordered[start : start + _CHUNK]
        same = part[part == ordered[start - 1 : start + len(part) - 1]]
        ordered[n : n + len(same)] = same
        n += len(same)
    return ordered[:n]


def _suspects(triples: Int32, again: npt.NDArray[np.uint64]) -> list[list[Integers]]:
    """Rows, ascending, whose hash may be in ``again``; equal rows are in the same piece."""
    rows_dtype = np.min_scalar_type(len(triples))
    # Marks of the hashes' first bits: one byte per eight rows.
    bits = np.uint64(64 - max(10, len(triples).bit_length() - 3))
    table = np.zeros(1 << (64 - int(bits)), dtype=bool)
    table[again >> bits] = True
    pieces: list[list[Integers]] = [[] for _ in range(1 << _PIECE_BITS)]
    for start in range(0, len(triples), _CHUNK):
        hashes = row_hashes(triples[start : start + _CHUNK])
        rows = np.flatnonzero(table[hashes >> bits])
        piece = (hashes[rows] >> np.uint64(64 - _PIECE_BITS)).astype(np.uint8)
        rows = (rows[np.argsort(piece, kind="stable")] + start).astype(rows_dtype)
        ends = np.cumsum(np.bincount(piece, minlength=len(pieces)))
        for held, some in zip(pieces, np.split(rows, ends[:-1]), strict=True):
            held.append(some.copy())  # a view would keep the rows of all pieces
    return pieces


def _later_copies(triples: Int32, rows: Integers) -> Integers:
    """The rows, of some ascending ones, that equal an earlier one."""
    some = triples[rows]
    hashes = row_hashes(some)
    order = np.argsort(hashes, kind="stable")
    alike = hashes[order[1:]] == hashes[order[:-1]]
    equal = _equal_neighbours(some[order])
    if (alike & ~equal).any():  # different rows with one hash: almost never
        order = np.lexsort(some.T)
        equal = _equal_neighbours(some[order])
    return rows[order[1:][equal]]


def _equal_neighbours(rows: Int32) -> Bools:
    """Whether each row but the first equals the one before it."""
    equal = rows[1:, 0] == rows[:-1, 0]
    for column in range(1, rows.shape[1]):
        equal &= rows[1:, column] == rows[:-1, column]
    return equal


def _move_selected(triples: Int32, keep: Bools, selected: Int32) -> Int32:
    """Move a mask's rows to the front of `selected`, perhaps the triples, without numpy's index."""
    n = 0
    for start in range(0, len(triples), _CHUNK):
        part = triples[start : start + _CHUNK][keep[start : start + _CHUNK]]
        selected[n : n + len(part)] = part
        n += len(part)
    return selected


def count_entities(triples: Integers, n_entities: int) -> Int64:
    """How often each entity is a head or a tail, added up: the only count of popularity."""
    heads, tails = (np.bincount(triples[:, end], minlength=n_entities) for end in (0, 2))
    return (heads + tails).astype(np.int64)


def hash_array(hasher: Any, name: str, array: Array) -> None:
    """Feed an integer array to a hash by value: as little-endian int64 for every dtype."""
    hasher.update(f"{name} {array.shape}".encode())
    for start in range(0, len(array), _CHUNK):
        hasher.update(np.ascontiguousarray(array[start : start + _CHUNK], dtype="<i8"))


NO_QUALIFIERS = "-"
"""Label of the empty set; that of any other holds a "="."""
_RESERVED = str.maketrans({"%": "%25", "=": "%3D", ",": "%2C"})
_PAIR = 8  # bytes


@dataclass(frozen=True, eq=False)
class QualifierSets:
    """Sets of qualifiers by number: ``sets[number]`` has the pairs of one.

    Numbers follow the order of the sets' pairs; the empty set, if there is one, is 0.

    - offsets, int64 (n + 1,): Set i owns ``pairs[offsets[i]:offsets[i + 1]]``.
    - pairs, int32 (offsets[-1], 2): Ids of relation and value, ascending within a set.
    - without, int32 (offsets[-1],): Number of the same set without this pair; -1 if no fact's
      qualifiers lead to it.
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
        """Number of qualifiers in each set: int64, shape (n,)."""
        return np.diff(self.offsets)


def check_qualifiers(name: str, qualifiers: Any, n_facts: int) -> tuple[Int64, Int64]:
    """Offsets and pairs of a split's qualifiers; InputError if they do not fit its facts."""
    advice = (
        "give (offsets, pairs): offsets are integers of shape (facts + 1,) that ascend from 0, and "
        "pairs are integers of shape (offsets[-1], 2): relation and value"
    )
    try:
        offsets, pairs = (np.asarray(array) for array in qualifiers)
    except (TypeError, ValueError):
        raise InputError(f"qualifiers[{name!r}] is not a pair of arrays; {advice}") from None
    if not len(pairs):
        pairs = np.empty((0, 2), np.int64)
    wrong = [array.dtype for array in (offsets, pairs) if array.dtype.kind not in "iu"]
    if wrong:
        raise InputError(f"qualifiers[{name!r}] has dtype {wrong[0]}; {advice}")
    offsets, pairs = offsets.astype(np.int64), pairs.astype(np.int64)
    if offsets.shape != (n_facts + 1,) or pairs.shape != (offsets[-1], 2):
        raise InputError(
            f"qualifiers[{name!r}] has shapes {offsets.shape} and {pairs.shape} for {n_facts} "
            f"facts; {advice}"
        )
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InputError(f"the offsets of qualifiers[{name!r}] do not ascend from 0; {advice}")
    return offsets, pairs


def number_sets(
    qualifiers: Mapping[str, tuple[Int64, Int64]],
) -> tuple[dict[str, Int32], QualifierSets]:
    """Number of each fact's set of qualifiers by split, and the sets.

    The sets are those of all facts, and these sets without each one of their pairs.
    """
    keys = {name: _set_keys(*arrays) for name, arrays in qualifiers.items()}
    of_facts = set().union(*keys.values())
    every = of_facts.union(rest for key in of_facts for rest in _rests(key))
    ordered = sorted(every)  # big-endian numbers ascend as their bytes do
    number = {key: index for index, key in enumerate(ordered)}
    splits = {
        name: np.array([number[key] for key in of_split], np.int32)
        for name, of_split in keys.items()
    }
    lengths = np.array([len(key) // _PAIR for key in ordered], np.int64)
    pairs = np.frombuffer(b"".join(ordered), ">i4").astype(np.int32).reshape(-1, 2)
    without = np.array([number.get(rest, -1) for key in ordered for rest in _rests(key)], np.int32)
    return splits, QualifierSets(offsets_of(lengths), pairs, without)


def _set_keys(offsets: Int64, pairs: Int64) -> list[bytes]:
    """The bytes of each fact's pairs, ascending and each once: equal for equal sets."""
    owner = owners(offsets)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], owner))
    owner, pairs = owner[order], pairs[order]
    first = np.ones(len(owner), bool)
    first[1:] = (owner[1:] != owner[:-1]) | (pairs[1:] != pairs[:-1]).any(axis=1)
    counts = np.bincount(owner[first], minlength=len(offsets) - 1)
    ends = (offsets_of(counts) * _PAIR).tolist()
    data = pairs[first].astype(">i4").tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def _rests(key: bytes) -> list[bytes]:
    return [key[:at] + key[at + _PAIR :] for at in range(0, len(key), _PAIR)]


def set_labels(sets: QualifierSets, entities: Labels, relations: Labels) -> list[str]:
    """A label for each set: ``P580=Q1,P582=Q2``, or ``-``; "%", "=" and "," are encoded."""
    distinct, row_of_pair = np.unique(sets.pairs, axis=0, return_inverse=True)
    texts = [
        "=".join(text.translate(_RESERVED) for text in pair)
        for pair in zip(relations[distinct[:, 0]], entities[distinct[:, 1]], strict=True)
    ]
    words = [texts[at] for at in row_of_pair.reshape(-1).tolist()]
    ends = sets.offsets.tolist()
    return [",".join(words[start:end]) or NO_QUALIFIERS for start, end in pairwise(ends)]


def n_qualifiers(label: str) -> int:
    """Number of qualifiers in the set that such a label names."""
    return label.count("=")


def value_rows(sets: QualifierSets, facts: Int32, statement: Int64) -> Int32:
    """Facts for questions about the values of some facts' qualifiers, fact by fact: (m, 4)."""
    owner, at = _pairs_of(sets, facts[:, 3])
    return _rows(statement[owner], sets.pairs[at], sets.without[at])


def given_rows(sets: QualifierSets, facts: Int32, statement: Int64) -> Int32:
    """As `value_rows`, with the fact's other values of the relation, which the question gives."""
    owner, at = _pairs_of(sets, facts[:, 3])
    set_of = owners(sets.offsets)
    keys = set_of * (1 + int(sets.pairs.max(initial=0))) + sets.pairs[:, 0]
    first, last = (np.searchsorted(keys, keys[at], side) for side in ("left", "right"))
    owner, target = np.repeat(owner, last - first), np.repeat(at, last - first)
    other = spans(first, last - first)[1]
    keep = other != target
    owner, target, other = owner[keep], target[keep], other[keep]
    return _rows(statement[owner], sets.pairs[other], sets.without[target])


def _rows(statement: Int64, pairs: Int32, others: Int32) -> Int32:
    rows = np.empty((len(pairs), 4), np.int32)
    rows[:, 0], rows[:, 1:3], rows[:, 3] = statement, pairs, others
    return rows


def _pairs_of(sets: QualifierSets, numbers: Int32) -> tuple[Int64, Int64]:
    """For each qualifier of the numbered sets: the row of its fact, and its place in the pairs."""
    counts = sets.lengths[numbers]
    owner = np.repeat(np.arange(len(numbers)), counts)
    return owner, spans(sets.offsets[numbers], counts)[1]
