"""Integer triples: checks of what users hand in, keys, duplicates, hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError

__all__ = [
    "COLUMNS", "as_triples", "checked_ids", "count_entities", "drop_duplicates", "hash_array",
    "pack_triples",
]  # fmt: skip

COLUMNS = ("head", "relation", "tail")
_HASH_ROWS = 1 << 20


def as_triples(name: str, triples: npt.ArrayLike) -> npt.NDArray[Any]:
    """Triples as an integer array of shape (n, 3), not copied where it is one already."""
    advice = "triples are integer ids in rows (head, relation, tail)"
    try:
        array = np.asarray(triples)
    except ValueError:
        raise InputError(f"{name} is ragged: its rows differ in length; {advice}") from None
    if array.shape in ((0,), (0, 3)):  # an empty list has neither a dtype nor a width
        return np.empty((0, 3), dtype=np.int64)
    if array.dtype.kind == "f":
        raise InputError(
            f"{name} has dtype {array.dtype}: floats lose precision (float32 cannot tell ids above "
            "16,777,216 apart); keep ids integers from the start, for example dtype=numpy.int64"
        )
    if array.dtype.kind not in "iu":
        hint = "; give labels through entities= and relations=" if array.dtype.kind in "USO" else ""
        raise InputError(f"{name} has dtype {array.dtype}; {advice}{hint}")
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"{name} has shape {array.shape}, not (n, 3); {advice}")
    return array


def checked_ids(
    name: str, triples: npt.NDArray[Any], n_entities: int, n_relations: int
) -> npt.NDArray[np.int32]:
    """Copy as int32; InputError naming the first id that is negative or too large."""
    for column, size in enumerate((n_entities, n_relations, n_entities)):
        ids = triples[:, column]
        if not len(ids) or (ids.min() >= 0 and ids.max() < size):
            continue
        row = int(np.flatnonzero((ids < 0) | (ids >= size))[0])
        noun = "relation" if column == 1 else "entity"
        limit = "is negative" if ids[row] < 0 else f"is not below the {size} of this graph"
        count = "n_relations" if column == 1 else "n_entities"
        raise InputError(
            f"{name}, row {row}, column {column} ({COLUMNS[column]}): "
            f"{noun} id {ids[row]} {limit}; ids run from 0 to {count} - 1, "
            "and columns are head, relation, tail"
        )
    return np.array(triples, dtype=np.int32, order="C")


def pack_triples(
    triples: npt.NDArray[np.int32], n_entities: int, n_relations: int
) -> npt.NDArray[np.int64]:
    """One int64 key per row, equal exactly where the rows are equal."""
    pairs = triples[:, 0].astype(np.int64)
    pairs *= n_relations
    pairs += triples[:, 1]
    if n_entities * n_relations * n_entities > np.iinfo(np.int64).max:
        # Numbering the pairs that occur leaves at most 2^31 of them.
        pairs = np.unique(pairs, return_inverse=True)[1].astype(np.int64, copy=False)
    pairs *= n_entities
    pairs += triples[:, 2]
    return pairs


def drop_duplicates(
    triples: npt.NDArray[np.int32], n_entities: int, n_relations: int
) -> npt.NDArray[np.int32]:
    """Distinct rows in order of first appearance; the array itself if all are distinct."""
    keys = pack_triples(triples, n_entities, n_relations)
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    del ordered
    if not repeated.size:
        return triples
    # A stable sort of everything costs several times this much, so only the rows whose key
    # occurs again are sorted, unless they are many.
    if repeated.size * 16 < len(keys):
        at = np.searchsorted(repeated, keys)
        at[at == repeated.size] = 0
        rows = np.flatnonzero(repeated[at] == keys)
    else:
        rows = np.arange(len(keys))
    order = rows[np.argsort(keys[rows], kind="stable")]
    again = order[1:][keys[order[1:]] == keys[order[:-1]]]
    keep = np.ones(len(keys), dtype=bool)
    keep[again] = False
    return triples[keep]


def count_entities(triples: npt.NDArray[np.integer], n_entities: int) -> npt.NDArray[np.int64]:
    """Times each entity is a head, plus times it is a tail: the one count of popularity."""
    heads, tails = (np.bincount(triples[:, end], minlength=n_entities) for end in (0, 2))
    return (heads + tails).astype(np.int64)


def hash_array(hasher: Any, name: str, array: npt.NDArray[Any]) -> None:
    """Feed an integer array to a hash, by value: as little-endian int64 whatever its dtype."""
    hasher.update(f"{name} {array.shape}".encode())
    for start in range(0, len(array), _HASH_ROWS):
        hasher.update(np.ascontiguousarray(array[start : start + _HASH_ROWS], dtype="<i8"))
