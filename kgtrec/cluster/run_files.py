"""Best candidates of all questions as files, filled in any order and read a range at a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.question_store import Store, gather
from kgtrec.ranking.partial import PartialRanks

__all__ = ["RunFiles"]

Int64 = npt.NDArray[np.int64]

_PIECES = 64  # adjacent stretches of a file that are read one by one


class RunFiles:
    """Candidates kept for the questions of a store, in the order in which parts came.

    Parameters
    ----------
    folder : Path
        There; its files are of nobody else.
    store : Store
    depth : int
        At most so many candidates of a question are kept.

    Attributes
    ----------
    depth : int
    n : int
        Questions.
    """

    def __init__(self, folder: Path, store: Store, depth: int) -> None:
        self.depth, self.n = depth, len(store.array("side"))
        self._store = store
        self._documents, self._scores = folder / "documents", folder / "scores"
        self._starts, self._lengths = folder / "starts", folder / "lengths"
        self._dtype = np.dtype(np.float32)
        self._size = 0
        for path, size in ((self._starts, 8), (self._lengths, 4)):
            # Allocated, as they are written through maps: a full disk is an error here, and no
            # signal there.
            with open(path, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(1, self.n) * size)
        for path in (self._documents, self._scores):
            path.touch()

    def add(self, part: PartialRanks) -> None:
        """Append the candidates of a part with all entities."""
        slots = np.array(self._store.array("plan_slot")[slice(*part.task.rows)])
        questions = slots[slots >= 0]
        starts = self._size + np.cumsum(part.lengths, dtype=np.int64) - part.lengths
        for path, dtype, values in (
            (self._starts, np.int64, starts),
            (self._lengths, np.int32, part.lengths),
        ):
            self._map(path, dtype, "r+")[questions] = values
        for path, column in ((self._documents, part.documents), (self._scores, part.scores)):
            with open(path, "ab") as file:
                file.write(np.ascontiguousarray(column).data)
        self._dtype = part.scores.dtype
        self._size += len(part.documents)

    def _map(self, path: Path, dtype: Any, mode: Any = "r") -> npt.NDArray[Any]:
        return np.memmap(path, dtype, mode, shape=(max(1, self.n),))

    def read(self, first: int, stop: int) -> tuple[Int64, npt.NDArray[np.int32], npt.NDArray[Any]]:
        """Offsets (n + 1,) from 0, documents and scores of a range of questions."""
        starts = np.array(self._map(self._starts, np.int64)[first:stop])
        lengths = np.array(self._map(self._lengths, np.int32)[first:stop]).astype(np.int64)
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
        documents = self._some(self._documents, np.dtype(np.int32), starts, lengths)
        return offsets, documents, self._some(self._scores, self._dtype, starts, lengths)

    def _some(
        self, path: Path, dtype: np.dtype[Any], starts: Int64, lengths: Int64
    ) -> npt.NDArray[Any]:
        """Candidates of some questions, one question after another."""
        if not lengths.sum():
            return np.zeros(0, dtype)
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        ends = starts + lengths
        breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
        if len(breaks) < _PIECES:
            first, last = np.append(0, breaks), np.append(breaks - 1, len(starts) - 1)
            spans = zip(starts[first].tolist(), ends[last].tolist(), strict=True)
            pieces = [
                np.fromfile(path, dtype, count=stop - start, offset=dtype.itemsize * start)
                for start, stop in spans
            ]
            return np.concatenate(pieces)
        before = np.cumsum(lengths) - lengths
        at = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        return gather(np.memmap(path, dtype, "r", shape=(self._size,)), at)
