"""Counts of all targets as files, filled in any order and read a block of instances at a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.question_store import Store, gather
from kgtrec.ranking.partial import PartialRanks

__all__ = ["CountFiles"]

Int64 = npt.NDArray[np.int64]

_COLUMNS = 6


class CountFiles:
    """Counts and missing scores of the targets of a store's rows.

    Parameters
    ----------
    folder : Path
        There; its files are of nobody else.
    store : Store
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self._store, self._n = store, store.n_targets
        self._counts, self._nan = folder / "counts", folder / "nan"
        for path, size in ((self._counts, 8 * _COLUMNS), (self._nan, 1)):
            with open(path, "wb") as file:
                file.truncate(max(1, self._n * size))

    def add(self, part: PartialRanks) -> None:
        """Write what a part with all entities has counted."""
        first = int(self._store.array("plan_target_offsets")[part.task.first_row])
        with open(self._counts, "r+b", buffering=0) as file:
            for number, column in enumerate(part.counts):
                _write_at(file, 8 * (number * self._n + first), column)
        with open(self._nan, "r+b", buffering=0) as file:
            _write_at(file, first, part.answer_nan)

    def read(self, start: int, stop: int) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """Counts (6, n), and whether the answer has no score (2, n), of a range of instances."""
        counts = np.empty((_COLUMNS, stop - start), np.int64)
        unscored = np.empty((2, stop - start), bool)
        for number, name in enumerate(("micro", "macro")):
            target = np.array(self._store.array(f"plan_{name}")[start:stop])
            missing = target < 0
            at = np.where(missing, 0, target)
            for row in range(3 * number, 3 * number + 3):
                counts[row] = self._some(self._counts, np.int64, row * self._n, at)
            unscored[number] = self._some(self._nan, np.bool_, 0, at)
            counts[3 * number : 3 * number + 3, missing] = 0
            unscored[number, missing] = True
        return counts, unscored

    def _some(self, path: Path, dtype: type, first: int, at: Int64) -> npt.NDArray[Any]:
        """Values at some targets, of a column that begins at value ``first``."""
        if not self._n:
            return np.zeros(len(at), dtype)
        size = np.dtype(dtype).itemsize
        if len(at) and (np.diff(at) == 1).all():
            where = size * (first + int(at[0]))
            return np.fromfile(path, dtype, count=len(at), offset=where)
        return gather(np.memmap(path, dtype, "r", offset=size * first, shape=(self._n,)), at)


def _write_at(file: Any, place: int, values: npt.NDArray[Any]) -> None:
    data = np.ascontiguousarray(values).data.cast("B")
    while len(data):
        written = os.pwrite(file.fileno(), data, place)
        data, place = data[written:], place + written
