"""What a part of a ranking takes of memory: fixed, for each entity, and for each row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.array_files import FactorFiles
from kgtrec.cluster.part import GATHERED, Inputs
from kgtrec.cluster.question_store import Store

__all__ = [
    "BASE",
    "MARGIN",
    "MOST_ROWS",
    "RowBytes",
    "entity_bytes",
    "score_bytes",
]  # fmt: skip

Int64 = npt.NDArray[np.int64]

# Bytes, as measured: `tests/cluster/test_plan.py` holds peaks of tasks against their plans.
# BASE: interpreter, numpy, this package, and what allocators keep.
BASE = 52 << 20
MARGIN = 1.1  # of all that follows from rows and entities
_ROW = 128
_TARGET = 200
_KNOWN, _RENUMBERED = 10, 72  # an id of a filter list; while ranges of entities are renumbered
_TOLERANT = 2  # so many times as much, while rows are ranked anew by other thresholds
_PLACE, _ORDERED = 8, 40  # an entity's place in the order of names, where ids are not in that order
_POOL = 32 << 10  # a candidate kept, while rows are ranked
_SORTED = 64 << 18  # candidates of two ranges, as many as are sorted at a time
_ANSWER = 49  # an answer in a result
MOST_ROWS = 1 << 14
"""Of a block, so that progress is seen and a retry is cheap."""


def besides(inputs: Inputs, cut: bool) -> int:
    """What candidates kept take, however many rows there are; and, of ranges of entities (`cut`),
    the answers' vectors, which come first."""
    if not cut:
        return _POOL * inputs.run_depth
    merging = _SORTED if inputs.run_depth else 0
    if not isinstance(inputs.files, FactorFiles):
        return merging
    files = inputs.files
    return merging + min(GATHERED, MOST_ROWS * files.queries.shape[1] * files.itemsize)


def entity_bytes(inputs: Inputs, store: Store, cut: bool) -> int:
    """What an entity costs once, however many rows there are."""
    order = 0 if store.ordered else _ORDERED if cut else _PLACE
    files = inputs.files
    if not isinstance(files, FactorFiles):
        return order
    stored = 0
    for array in (files.entities, files.bias):
        if array is not None:
            dtype, size = np.dtype(array.dtype), math.prod(array.shape[1:])
            half = array is files.entities and dtype == np.float16 and files.itemsize == 4
            plain = dtype.isnative and not array.fortran and dtype.itemsize == files.itemsize
            stored += size * (dtype.itemsize + (0 if plain or half else files.itemsize))
    return order + stored


def score_bytes(inputs: Inputs) -> int:
    """What an entity costs in every row."""
    files = inputs.files
    if isinstance(files, FactorFiles):
        return 0
    if files is None:
        return 8
    copied = bool(files.selection) or len(files.parts) > 1 or files.parts[0].is_remote
    return files.itemsize * (2 if copied else 1)


@dataclass(frozen=True)
class RowBytes:
    """What rows need in memory, of all entities or of a range (`cut`)."""

    inputs: Inputs
    store: Store
    width: int
    cut: bool
    results: int

    def of(self, first: int, stop: int) -> Int64:
        """Bytes of each of some rows."""
        store, depth = self.store, min(self.inputs.run_depth, self.store.n_labels)
        question = store.array("plan_question")[first:stop]
        targets = np.diff(store.array("plan_target_offsets")[first : stop + 1])
        again = 1 if self.inputs.tolerance is None else _TOLERANT
        needs = again * _TARGET * targets + self.results * _ANSWER * targets
        needs += again * self._filter_bytes(question)
        item = 4 if self.inputs.files is None else max(4, self.inputs.files.itemsize)
        needs += _ROW + depth * self.results * (4 + item)
        scores = self._scores()
        if self.cut:
            best = 4 * depth * (4 + item)  # merged, of one more range, and in the making
            return np.ceil(MARGIN * (needs + scores + best)).astype(np.int64)
        # Candidates beside the scores, or twice, with a mask, when these are of no more use.
        best = max(scores + depth * (4 + item), depth * (2 * (4 + item) + 1))
        return np.ceil(MARGIN * (needs + best)).astype(np.int64)

    def _filter_bytes(self, question: Int64) -> Int64:
        store, each = self.store, _RENUMBERED if self.cut else _KNOWN
        needs = np.zeros(len(question), np.int64)
        for name in ("known", "removed"):
            offsets = store.array(f"{name}_offsets")
            needs += each * (offsets[question + 1] - offsets[question])
        if store.restricted:
            of = np.array(store.array("lists_of")[question])
            offsets = store.array("lists_offsets")
            needs += _RENUMBERED * np.where(of >= 0, offsets[of + 1] - offsets[of], 0)
        return needs

    def _scores(self) -> int:
        """A row's query, or its scores."""
        files = self.inputs.files
        if isinstance(files, FactorFiles):
            return 2 * files.queries.shape[1] * files.itemsize
        columns = self.store.n_columns if self.store.restricted else self.width
        return columns * score_bytes(self.inputs)
