"""How work is cut into parts that fit the memory granted, and how long they will take."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.array_files import FactorFiles, ScoreFiles
from kgtrec.cluster.part import Inputs, answer_scores, partial
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.task_memory import (
    BASE,
    MARGIN,
    MOST_ROWS,
    RowBytes,
    besides,
    entity_bytes,
    score_bytes,
)
from kgtrec.errors import UsageError
from kgtrec.ranking.partial import Task

__all__ = ["Plan", "format_bytes", "make_plan", "memory_bytes", "throughput"]

Int64 = npt.NDArray[np.int64]

_CHUNK = 1 << 16  # rows whose needs are looked at together
_SHARES, _LEAST_SHARES = 4, 32  # a block is that part of a worker's share of what is left, of all
_HANDED_OUT = 2_000_000  # scores that a worker ranks while the scheduler hands out a task
_TILE = 64  # queries that share one pass over the entities in the native core
_CALIBRATION = 0.2  # seconds
_TRIALS = 4
_MULTIPLIED = 1 << 30  # terms of dot products that take about so long
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Plan:
    """Blocks of rows times ranges of entities.

    Attributes
    ----------
    blocks, ranges : tuple of (int, int)
        First row, and the first behind the last; entities likewise. Both adjacent and ascending.
    task_bytes : int
        Most that one worker has in memory at a time, everything included.
    memory : int
        What was granted.
    workers, threads : int
    sent : int
        Bytes of files that each host is sent.
    speed : float or None
        Scores that one worker ranks per second, as measured.
    """

    blocks: tuple[tuple[int, int], ...]
    ranges: tuple[tuple[int, int], ...]
    task_bytes: int
    memory: int
    workers: int = 1
    threads: int = 1
    sent: int = 0
    speed: float | None = None

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return self.blocks[-1][1] - self.blocks[0][0]

    @property
    def n_entities(self) -> int:
        """Entities in all."""
        return self.ranges[-1][1] - self.ranges[0][0]

    @property
    def seconds(self) -> float | None:
        """Time that all workers together will take, by the measured speed."""
        if self.speed is None:
            return None
        busy = min(self.workers, len(self.blocks) * len(self.ranges))
        return self.n_rows * self.n_entities / self.speed / busy

    def tasks(self) -> Iterator[Task]:
        """All parts, block by block."""
        for rows in self.blocks:
            for entities in self.ranges:
                yield Task(*rows, *entities)

    def __str__(self) -> str:
        rows = max(stop - start for start, stop in self.blocks)
        width = max(stop - start for start, stop in self.ranges)
        text = (
            f"{self.n_rows:,} rows x {self.n_entities:,} entities in {len(self.blocks):,} x "
            f"{len(self.ranges):,} parts of at most {rows:,} x {width:,}; at most "
            f"{format_bytes(self.task_bytes)} of {format_bytes(self.memory)} a worker"
        )
        if self.sent:
            text += f"; {format_bytes(self.sent)} are sent, once a host"
        if self.seconds is None or self.speed is None:
            return text
        workers = "1 worker" if self.workers == 1 else f"{self.workers:,} workers"
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{text}; about {_duration(self.seconds)} on {workers} of {threads} "
            f"({self.speed:.2g} scores a second each, as measured)"
        )


def memory_bytes(text: str | int) -> int:
    """Bytes of ``"2GB"``, ``"512MiB"`` or a number; UsageError if it is none."""
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]+)?)\s*([KMGT]?)(i?)B?\s*", str(text), re.I)
    if not match:
        raise UsageError(f"memory {text!r} is not a size; write for example 2GB or 512MB")
    number, unit, binary = match.groups()
    factor = _UNITS[unit.upper()]
    if binary:
        factor = 1024 ** round(math.log10(factor) / 3)
    return int(float(number) * factor)


def format_bytes(size: float) -> str:
    """A size as people write it."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit != "GB" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 0.1):.{int(seconds < 10)}f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def make_plan(
    inputs: Inputs,
    memory: str | int = "2GB",
    workers: int = 1,
    *,
    rows: tuple[int, int] | None = None,
    entities: tuple[int, int] | None = None,
    calibrate: bool = True,
    worth: int = 0,
    reserve: int = 0,
    sent: int = 0,
    jobs: int = 1,
    results: int = 0,
) -> Plan:
    """Cut a ranking into parts.

    Parameters
    ----------
    inputs : Inputs
    memory : str or int
        Most that one worker may have in memory.
    workers : int
        How many work at the same time: each gets several blocks, if there are rows enough.
    rows, entities : (int, int), optional
        First, and the first behind the last; by default all.
    calibrate : bool
        Measure the speed of the native kernel, on this machine and these scores: about 0.2 s.
    worth : int
        Scores from which on it is measured.
    reserve : int
        Bytes of a worker's memory that something else takes, such as Dask.
    sent : int
        Bytes of files that each host is sent.
    jobs : int
        Rankings that share the workers: where there are others, fewer and larger parts do.
    results : int
        Results of other parts that a worker holds until they are fetched.

    Raises
    ------
    UsageError
        The memory does not suffice for the smallest part.
    """
    store, granted = inputs.store(), memory_bytes(memory)
    rows = rows or (0, store.n_rows)
    entities = entities or (0, store.n_labels)
    whole = granted - BASE - reserve - besides(inputs, False)
    cut = entities != (0, store.n_labels) or not (
        store.restricted or _fitting(inputs, store, whole, False) >= store.n_labels
    )
    fixed = BASE + reserve + besides(inputs, cut)
    width = _width(inputs, store, entities, granted - fixed, fixed, cut)
    per_entity = math.ceil(MARGIN * entity_bytes(inputs, store, cut))
    left = granted - fixed - width * per_entity
    row_bytes = RowBytes(inputs, store, width, cut, results)
    blocks, most = _blocks(row_bytes, rows, left, workers, jobs)
    count = -(-(entities[1] - entities[0]) // width)
    bounds = np.linspace(*entities, count + 1).astype(int).tolist()
    plan = Plan(
        tuple(blocks),
        tuple(pairwise(bounds)),
        fixed + width * per_entity + most,
        granted,
        workers,
        inputs.threads,
        sent,
    )
    worth_it = calibrate and plan.n_rows * plan.n_entities >= worth
    return replace(plan, speed=throughput(plan, inputs)) if worth_it else plan


def _width_bytes(inputs: Inputs, store: Store, cut: bool) -> int:
    """Bytes of an entity, with a row."""
    bytes_each = entity_bytes(inputs, store, cut) + score_bytes(inputs)
    return max(1, math.ceil(MARGIN * bytes_each))


def _fitting(inputs: Inputs, store: Store, budget: int, cut: bool) -> int:
    """Entities that half of the memory holds with a row."""
    return budget // 2 // _width_bytes(inputs, store, cut)


def _width(
    inputs: Inputs, store: Store, entities: tuple[int, int], budget: int, fixed: int, cut: bool
) -> int:
    """Entities of a part: all, or as many as half of the memory holds with a row."""
    width = entities[1] - entities[0]
    fitting = _fitting(inputs, store, budget, cut)
    if fitting < width and (store.restricted or fitting < 1024):
        smallest = width if store.restricted else min(width, 1024)
        least = fixed + 2 * smallest * _width_bytes(inputs, store, cut)
        why = "restricted candidates are ranked with all entities at hand" * store.restricted
        raise UsageError(
            f"the memory granted is too little: {why or 'a part of 1,024 entities'} and needs "
            f"about {format_bytes(least)}; grant more (--memory {math.ceil(least / 1e6)}MB)"
        )
    return min(width, fitting)


def _blocks(
    row_bytes: RowBytes, rows: tuple[int, int], budget: int, workers: int, jobs: int
) -> tuple[list[tuple[int, int]], int]:
    """Blocks of rows that fit the memory, and what the largest needs."""
    n_rows = rows[1] - rows[0]
    least = _least_rows(n_rows, row_bytes.width, workers, jobs)
    blocks, start, used, most = [], rows[0], 0, 0
    for first in range(rows[0], rows[1], _CHUNK):
        stop = min(first + _CHUNK, rows[1])
        needs = np.append(0, np.cumsum(row_bytes.of(first, stop)))
        at = first
        while at < stop:
            limit = _most_rows(n_rows, rows[1] - start, workers, least)
            # Rows up to `end` fit: both the memory and the limit allow them.
            end = int(np.searchsorted(needs, needs[at - first] + budget - used, "right")) - 1
            end = min(first + end, start + limit, stop)
            if end == at and at == start:
                needed = int(needs[at - first + 1] - needs[at - first])
                raise _too_large(row_bytes.store, at, needed, budget)
            used += int(needs[end - first] - needs[at - first])
            most, at = max(most, used), end
            if end < stop or end == start + limit:
                blocks.append((start, end))
                start, used = end, 0
    if start < rows[1]:
        blocks.append((start, rows[1]))
    return blocks, most


def _least_rows(n_rows: int, width: int, workers: int, jobs: int) -> int:
    """Rows of a block at least: so many that the scheduler keeps up with all workers, if other jobs
    have tasks for those that this one leaves idle."""
    return max(_TILE, min(workers * _HANDED_OUT // max(1, width), n_rows * (jobs - 1) // workers))


def _most_rows(n_rows: int, left: int, workers: int, least: int = _TILE) -> int:
    """Rows of the next block: fewer towards the end, so that workers finish together."""
    if workers == 1:
        return min(MOST_ROWS, n_rows)
    share, smallest = -(-left // (_SHARES * workers)), n_rows // (_LEAST_SHARES * workers)
    return min(MOST_ROWS, max(least, share, smallest))


def _too_large(store: Store, row: int, needed: int, budget: int) -> UsageError:
    question = int(store.array("plan_question")[row])
    more = math.ceil((needed - budget) / 1e6)
    return UsageError(
        f"the memory granted is too little: question {store.questions().ids[question]} alone needs "
        f"{format_bytes(needed)}, {format_bytes(max(0, budget))} are left; grant {more} MB more"
    )


def throughput(plan: Plan, inputs: Inputs) -> float | None:
    """Scores that a worker ranks per second: parts of the first task, larger and larger."""
    if inputs.files is None:
        return None
    store, (first, stop), entities = inputs.store(), plan.blocks[0], plan.ranges[0]
    lenient = replace(inputs, nan="worst")
    rows, width = min(_TILE, stop - first), entities[1] - entities[0]
    if isinstance(inputs.files, FactorFiles) and not store.restricted:
        dim = max(1, inputs.files.entities.shape[1])
        width = min(width, max(1 << 14, _MULTIPLIED // (_TILE * dim)))
    if isinstance(inputs.files, ScoreFiles):
        rows = 1
    measured = []
    for trial in range(_TRIALS):
        task = Task(first, first + rows, entities[0], entities[0] + width)
        seconds = _time(task, lenient, store)
        measured.append((rows * width, seconds))
        factor = _CALIBRATION / 2 / max(seconds, 1e-4)
        if factor < 2 and trial:  # the first one also brings files into memory
            break
        factor = max(factor, 1)
        taller = min(int(rows * factor), stop - first)
        # The rest of the growth is in width, where there are too few rows.
        wider = min(int(width * factor * rows / taller), entities[1] - entities[0])
        wider = width if store.restricted else max(width, wider)
        if (taller, wider) == (rows, width) and trial:
            break
        rows, width = taller, wider
    # Other processes only make it slower; and what every part costs is little in a large one.
    return max(scores / seconds for scores, seconds in measured)


def _time(task: Task, inputs: Inputs, store: Store) -> float:
    start = time.perf_counter()
    everything = replace(task, first_entity=0, stop_entity=store.n_labels)
    whole = task.entities == everything.entities
    partial(task, inputs, None if whole else answer_scores(everything, inputs)[0])
    return max(time.perf_counter() - start, 1e-9)
