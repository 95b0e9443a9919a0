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
from kgtrec._internal.arrays import Array, Bools, Int32, Int64, Integers
from kgtrec._internal.csr import offsets_of, owners, spans
from kgtrec.errors import InputError
from kgtrec.graph.labels import Labels

SPLITS = ("train", "valid", "test")
COLUMNS = ("head", "relation", "tail")


def names_of(columns: str) -> list[str]:
    """Return the names of columns in the order of their letters, as in "hrt"."""
    return [COLUMNS["hrt".index(letter)] for letter in columns]


_CHUNK = 1 << 18
"""Rows per step: few enough that temporary arrays stay in the cache."""
_PIECE_BITS = 5


def as_triples(name: str, triples: npt.ArrayLike, widths: tuple[int, ...] = (3,)) -> Array:
    """Return triples as integers (n, 3), or (n, 4) with a context; copies only if needed."""
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


def check_ids(
    name: str,
    rows: Array,
    n_entities: int,
    n_relations: int,
    n_contexts: int = 0,
    columns: tuple[str, ...] = (*COLUMNS, "context"),
) -> Int32:
    """Copy rows as int32; InputError names the first id that is negative or too large."""
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
    """Return an int64 key per row, (n,); keys are equal exactly if the rows are equal."""
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
    """Return the distinct rows in order of first appearance, or the array if all are distinct.

    Sorts hashes of 64 bits, then compares rows whose hash may occur again, some at a time. This
    takes 8 more bytes per row, or the memory of the distinct rows. With ``in_place``, these
    overwrite the array, which is cut; no view of it may exist.
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
    """Hash each row to 64 bits, uint64 (n,); different rows almost never have equal hashes."""
    hashes = triples[:, 0].astype(np.uint64)
    hashes <<= np.uint64(32)
    hashes |= triples[:, 2].astype(np.uint64)
    hashes *= np.uint64(0x9E3779B97F4A7C15)
    hashes ^= hashes >> np.uint64(29)
    for column in range(1, triples.shape[1], 2):  # the relation, and the context
        hashes += triples[:, column].astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9 + 2 * column)
    return hashes


def _again(triples: Int32) -> npt.NDArray[np.uint64]:
    """Return repeated hashes, ascending; a hash that occurs k times is returned k - 1 times."""
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
    """Return the indices of rows whose hash may be in ``again``, in pieces of ascending indices.

    Equal rows are in the same piece.
    """
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
    """Return those of the ascending indices `rows` whose row equals an earlier one of them."""
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
    """Return whether each row but the first equals its predecessor: bool (n - 1,)."""
    equal = rows[1:, 0] == rows[:-1, 0]
    for column in range(1, rows.shape[1]):
        equal &= rows[1:, column] == rows[:-1, column]
    return equal


def _move_selected(triples: Int32, keep: Bools, selected: Int32) -> Int32:
    """Copy the rows that `keep` marks to the front of `selected`, in chunks.

    `selected` may be `triples` itself.
    """
    n = 0
    for start in range(0, len(triples), _CHUNK):
        part = triples[start : start + _CHUNK][keep[start : start + _CHUNK]]
        selected[n : n + len(part)] = part
        n += len(part)
    return selected


def count_entities(triples: Integers, n_entities: int) -> Int64:
    """Count how often each entity is a head or a tail: int64 (n_entities,).

    Everything that depends on popularity uses this count.
    """
    heads, tails = (np.bincount(triples[:, end], minlength=n_entities) for end in (0, 2))
    return (heads + tails).astype(np.int64)


def hash_array(hasher: Any, name: str, array: Array) -> None:
    """Add an integer array to a hash by value, as little-endian int64 for every dtype."""
    hasher.update(f"{name} {array.shape}".encode())
    for start in range(0, len(array), _CHUNK):
        hasher.update(np.ascontiguousarray(array[start : start + _CHUNK], dtype="<i8"))


NO_QUALIFIERS = "-"
"""Label of the empty set; the label of any other set contains a "="."""
_RESERVED = str.maketrans({"%": "%25", "=": "%3D", ",": "%2C"})
_PAIR = 8  # bytes


@dataclass(frozen=True, eq=False)
class QualifierSets:
    """Sets of qualifiers by number: ``sets[number]`` has the pairs of a set.

    Sets are numbered in the order of their pairs; the empty set, if present, has number 0.

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
    """Return offsets and pairs of a split's qualifiers; InputError if they do not fit its facts."""
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
    """Number the sets of qualifiers; return each fact's number by split, and the sets.

    The sets are those of all facts, and each of these without one of its pairs.
    """
    keys = {name: _set_keys(*arrays) for name, arrays in qualifiers.items()}
    of_facts = set().union(*keys.values())
    every = of_facts.union(smaller_set for key in of_facts for smaller_set in _rests(key))
    ordered = sorted(every)  # big-endian numbers ascend as their bytes do
    number = {key: index for index, key in enumerate(ordered)}
    splits = {
        name: np.array([number[key] for key in of_split], np.int32)
        for name, of_split in keys.items()
    }
    lengths = np.array([len(key) // _PAIR for key in ordered], np.int64)
    pairs = np.frombuffer(b"".join(ordered), ">i4").astype(np.int32).reshape(-1, 2)
    without = np.array(
        [number.get(smaller_set, -1) for key in ordered for smaller_set in _rests(key)], np.int32
    )
    return splits, QualifierSets(offsets_of(lengths), pairs, without)


def _set_keys(offsets: Int64, pairs: Int64) -> list[bytes]:
    """Return the bytes of each fact's distinct pairs, ascending, so that equal sets are equal."""
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
    """Return the key of a set without each of its pairs in turn."""
    return [key[:at] + key[at + _PAIR :] for at in range(0, len(key), _PAIR)]


def set_labels(sets: QualifierSets, entities: Labels, relations: Labels) -> list[str]:
    """Return a label for each set: ``P580=Q1,P582=Q2``, or ``-``; "%", "=" and "," are encoded."""
    distinct, row_of_pair = np.unique(sets.pairs, axis=0, return_inverse=True)
    texts = [
        "=".join(text.translate(_RESERVED) for text in pair)
        for pair in zip(relations[distinct[:, 0]], entities[distinct[:, 1]], strict=True)
    ]
    words = [texts[at] for at in row_of_pair.reshape(-1).tolist()]
    ends = sets.offsets.tolist()
    return [",".join(words[start:end]) or NO_QUALIFIERS for start, end in pairwise(ends)]


def n_qualifiers(label: str) -> int:
    """Count the qualifiers of a set by its label."""
    return label.count("=")


def build_value_rows(sets: QualifierSets, facts: Int32, statement: Int64) -> Int32:
    """Return facts for questions about values of qualifiers, fact by fact: int32 (m, 4).

    Columns: statement, relation, value, set of the fact's other qualifiers.
    """
    owner, at = _pairs_of(sets, facts[:, 3])
    return _rows(statement[owner], sets.pairs[at], sets.without[at])


def build_given_rows(sets: QualifierSets, facts: Int32, statement: Int64) -> Int32:
    """Return facts as `build_value_rows` does, with the relation's other qualifiers as values.

    The question gives these values, so they are not answers.
    """
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
    """Join statement, relation, value and set of the others to rows: int32 (n, 4)."""
    rows = np.empty((len(pairs), 4), np.int32)
    rows[:, 0], rows[:, 1:3], rows[:, 3] = statement, pairs, others
    return rows


def _pairs_of(sets: QualifierSets, numbers: Int32) -> tuple[Int64, Int64]:
    """Return, per qualifier of numbered sets, the index of its number and its row in `pairs`."""
    counts = sets.lengths[numbers]
    owner = np.repeat(np.arange(len(numbers)), counts)
    return owner, spans(sets.offsets[numbers], counts)[1]
