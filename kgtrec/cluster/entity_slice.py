"""Rows and a range of entities as a ranking of their own, no larger than they are.

The entities that a part meets, those of its range and the answers of its rows, are renumbered
from 0 in ascending order. That changes neither counts nor ties, and frees a part's memory from
the size of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr
from kgtrec.cluster.question_store import Store, gather
from kgtrec.questions.candidates import CandidateLists
from kgtrec.ranking.row_plan import QuestionLists, Rows

__all__ = ["Slice", "open_rows", "open_slice"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slice:
    """Some rows and entities as a ranking of their own.

    Attributes
    ----------
    lists : QuestionLists
        Of the rows' questions and the entities met, both numbered from 0.
    rows : Rows
    numbers : ndarray of int64
        The questions, in the store.
    offset : int
        New number of the range's first entity.
    """

    lists: QuestionLists
    rows: Rows
    numbers: Int64
    offset: int


class _Met(NamedTuple):
    """Entities that a part meets: a range, and answers below and above it."""

    first: int
    stop: int
    below: Int64
    above: Int64

    @property
    def size(self) -> int:
        return len(self.below) + self.stop - self.first + len(self.above)

    def local(self, ids: Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """New numbers, and which of the ids have one."""
        ids = ids.astype(np.int64)
        met = (ids >= self.first) & (ids < self.stop)
        number = ids - self.first + len(self.below)
        for others, start in ((self.below, 0), (self.above, self.size - len(self.above))):
            if len(others):
                at = np.minimum(np.searchsorted(others, ids), len(others) - 1)
                hit = others[at] == ids
                number, met = np.where(hit, at + start, number), met | hit
        return number.astype(np.int32), met

    def take(self, array: Array) -> Array:
        """Elements of an array by entity, in the order of the new numbers."""
        below, above = (gather(array, ids) for ids in (self.below, self.above))
        return np.concatenate([below, array[self.first : self.stop], above])


def open_rows(store: Store, first: int, stop: int) -> tuple[Rows, Int64]:
    """Some rows, their questions numbered from 0, and which questions these are."""
    offsets = np.array(store.array("plan_target_offsets")[first : stop + 1])
    targets = np.array(store.array("plan_targets")[offsets[0] : offsets[-1]])
    numbers, local = np.unique(store.array("plan_question")[first:stop], return_inverse=True)
    local = local.astype(np.int64).reshape(-1)
    slot = np.where(store.array("plan_slot")[first:stop] >= 0, local, -1)
    return Rows(local, offsets - offsets[0], targets, slot), np.asarray(numbers)


def open_slice(store: Store, rows: tuple[int, int], entities: tuple[int, int]) -> Slice:
    """Some rows against a range of entities; both as (first, stop)."""
    plan, numbers = open_rows(store, *rows)
    met = None
    if entities != (0, store.n_labels):
        targets = np.unique(plan.targets).astype(np.int64)
        met = _Met(*entities, targets[targets < entities[0]], targets[targets >= entities[1]])
        plan = replace(plan, targets=met.local(plan.targets)[0])
    order = None
    if not store.ordered and met is None:
        order = store.array("position")
    elif not store.ordered and met is not None:
        places = met.take(store.array("position"))
        order = np.argsort(np.argsort(places)).astype(np.int32)
    lists = QuestionLists(
        store.n_labels if met is None else met.size,
        _lists(store, "known", numbers, met),
        _lists(store, "removed", numbers, met),
        _candidate_lists(store, numbers) if store.restricted else None,
        order,
    )
    return Slice(lists, plan, numbers, 0 if met is None else len(met.below))


def _cut(store: Store, name: str, numbers: Int64) -> tuple[Int64, Int64]:
    """Offsets of some lists one after another, and where their elements stand in the store."""
    bounds = store.array(f"{name}_offsets")
    starts, stops = np.array(bounds[numbers]), np.array(bounds[numbers + 1])
    offsets = np.append(0, np.cumsum(stops - starts)).astype(np.int64)
    return offsets, np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], stops - starts)


def _lists(store: Store, name: str, numbers: Int64, met: _Met | None) -> Csr:
    """Lists of some questions, renumbered, without what the part does not meet."""
    offsets, at = _cut(store, name, numbers)
    ids = np.array(store.array(f"{name}_ids")[at])
    if met is None:
        return Csr(offsets, ids)
    local, mask = met.local(ids)
    return Csr(np.append(0, np.cumsum(mask))[offsets].astype(np.int64), local[mask])


def _candidate_lists(store: Store, numbers: Int64) -> CandidateLists:
    """Candidate lists of some questions, each once."""
    of = np.array(store.array("lists_of")[numbers])
    used = np.unique(of[of >= 0])
    offsets, at = _cut(store, "lists", used)
    columns = np.array(store.array("lists_columns")[at]) if store.has("lists_columns") else None
    lists = Csr(offsets, np.array(store.array("lists_ids")[at]))
    local = np.where(of >= 0, np.searchsorted(used, of), -1).astype(np.int64)
    return CandidateLists(
        store.body["candidate_lists"]["kind"], lists, local, columns, store.n_columns
    )
