"""Cut work into parts that fit the granted memory, and forecast their time.

`Needs` gives the memory of a part: fixed, per entity, and per row. `make_plan` cuts rows and
entities accordingly. `PartFiles` keeps finished parts on disk, so that a killed ranking can resume;
damaged parts are ranked again.
"""

from __future__ import annotations

import math
import re
import time
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import offsets_of
from kgtrec.cluster.parts import GATHERED_BYTES, Inputs, rank_block
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.score_files import FactorFiles, ScoreFiles
from kgtrec.errors import FileError, UsageError
from kgtrec.ranking.partial import PartialRanks, Task, read_parts, write_parts
from kgtrec.scores.mapped_files import reading


class PartFiles:
    """The finished parts of one ranking, as files in a folder.

    - folder, Path: Its name depends on everything that the parts depend on, except rows and
      entities.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, task: Task) -> Path:
        """Return the path of the file of a task's part."""
        return self.folder / ("-".join(map(str, astuple(task))) + ".part")

    def save(self, part: PartialRanks) -> None:
        """Write a part to a file, which appears when it is complete."""
        write_parts(self._path(part.task), {}, [part])

    def load(self, task: Task) -> PartialRanks | None:
        """Read the part of a task; None if it is missing or damaged."""
        with suppress(FileError):
            (part,) = read_parts(self._path(task))
            return part if part.task == task else None
        return None

    def count(self) -> int:
        """Return the number of files of parts, including damaged ones."""
        return sum(1 for _ in self.folder.glob("*.part"))


# Bytes, as measured: `tests/cluster/test_plan.py` compares peaks of tasks with their plans.
# BASE: interpreter, numpy, this package, and memory that allocators keep.
BASE = 52 << 20
MARGIN = 1.1  # for everything that depends on rows and entities
_ROW = 128
_TARGET = 200
_KNOWN, _RENUMBERED = 10, 72  # per id of a filter list; if ranges of entities are renumbered
_TOLERANCE_FACTOR = 2  # rows are ranked again with other thresholds
_POSITION, _ORDERED = 8, 40  # per entity for the order of names, if ids have another order
_CANDIDATE = 32 << 10  # per kept candidate, while rows are ranked
_MERGED = 64 << 18  # for the candidates of two ranges, which are sorted together
_ANSWER = 49  # per answer in a result
MOST_ROWS = 1 << 14
"""Largest number of rows of a block, so that progress is visible and a retry is cheap."""


@dataclass(frozen=True)
class Needs:
    """Memory of parts, in bytes.

    - cut: True for parts with ranges of entities, False for parts with all entities.
    - results: Number of results that the process holds in addition, 0 or 1.
    """

    inputs: Inputs
    store: Store
    cut: bool
    results: int

    @property
    def fixed(self) -> int:
        """Bytes that do not depend on the number of rows: kept candidates, vectors of answers."""
        files, depth = self.inputs.files, self.inputs.settings.run_depth
        if not self.cut:
            return _CANDIDATE * depth
        merging = _MERGED if depth else 0
        if not isinstance(files, FactorFiles):
            return merging
        return merging + min(GATHERED_BYTES, MOST_ROWS * files.queries.shape[1] * files.itemsize)

    @property
    def entity_bytes(self) -> int:
        """Bytes per entity that do not depend on the number of rows."""
        order = 0 if self.store.ordered else _ORDERED if self.cut else _POSITION
        files = self.inputs.files
        if not isinstance(files, FactorFiles):
            return order
        stored = 0
        for array in (files.entities, files.bias):
            if array is not None:
                dtype, size = np.dtype(array.dtype), math.prod(array.shape[1:])
                half = array is files.entities and dtype == np.float16 and files.itemsize == 4
                plain = dtype.isnative and not array.fortran and dtype.itemsize == files.itemsize
                is_mapped = (plain or half) and not files.columns
                stored += size * (dtype.itemsize + (0 if is_mapped else files.itemsize))
        return order + stored

    @property
    def score_bytes(self) -> int:
        """Bytes per entity and row."""
        files = self.inputs.files
        if isinstance(files, FactorFiles):
            return 0
        if files is None:
            return 8
        copied = (
            bool(files.selection or files.columns)
            or len(files.parts) > 1
            or files.parts[0].is_remote
        )
        return files.itemsize * (2 if copied else 1)

    @property
    def per_entity(self) -> int:
        """Bytes per entity in a part of one row."""
        return max(1, math.ceil(MARGIN * (self.entity_bytes + self.score_bytes)))

    def count_fitting(self, budget: int) -> int:
        """Return the number of entities that fit into half of a budget in a part of one row."""
        return budget // 2 // self.per_entity

    def row_bytes(self, first: int, stop: int, width: int) -> Int64:
        """Return the bytes of rows `first` to `stop` in parts of `width` entities, int64 (n,)."""
        store, files = self.store, self.inputs.files
        depth = min(self.inputs.settings.run_depth, store.n_labels)
        question = store.array("plan_question")[first:stop]
        targets = np.diff(store.array("plan_target_offsets")[first : stop + 1])
        again = 1 if self.inputs.settings.tolerance is None else _TOLERANCE_FACTOR
        needs = again * _TARGET * targets + self.results * _ANSWER * targets
        for name in ("known", "removed"):
            offsets = store.array(f"{name}_offsets")
            bytes_per_answer = again * (_RENUMBERED if self.cut else _KNOWN)
            needs += bytes_per_answer * (offsets[question + 1] - offsets[question])
        if store.restricted:
            of = np.array(store.array("candidate_lists_of")[question])
            offsets = store.array("candidate_lists_lists_offsets")
            needs += again * _RENUMBERED * np.where(of >= 0, offsets[of + 1] - offsets[of], 0)
        item = 4 if files is None else max(4, files.itemsize)
        needs += _ROW + depth * self.results * (4 + item)
        if isinstance(files, FactorFiles):
            scores = 2 * files.queries.shape[1] * files.itemsize  # of the query
        else:
            scores = (store.n_columns if store.restricted else width) * self.score_bytes
        if self.cut:
            best = 4 * depth * (4 + item)  # merged, of one more range, and unfinished
            return np.ceil(MARGIN * (needs + scores + best)).astype(np.int64)
        # Candidates beside the scores, or twice, with a mask, once the scores are dropped.
        best = max(scores + depth * (4 + item), depth * (2 * (4 + item) + 1))
        return np.ceil(MARGIN * (needs + best)).astype(np.int64)


_CHUNK = 1 << 16  # rows whose memory is computed together
# A block is at most a quarter of a worker's share of the remaining rows, but at least 1/32 of its
# share of all rows.
_SHARES_OF_REST, _SHARES_OF_ALL = 4, 32
_SCORES_PER_ASSIGNMENT = 2_000_000  # scores that a worker ranks while the scheduler assigns a task
_TILE = 64  # queries that share one pass over the entities in the native core
_CALIBRATION = 0.2  # seconds
_TRIALS = 4
_CALIBRATION_TERMS = 1 << 30  # terms of dot products, which take about as long
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Plan:
    """A ranking cut into parts: each block of rows with each range of entities.

    - blocks, ranges: First row and the row after the last; the same for entities. Both are
      adjacent and ascending.
    - task_bytes: Most that one worker holds in memory at a time, everything included.
    - memory: Memory that one worker may use.
    - sent: Bytes of files sent to each host.
    - speed: Scores that one worker ranks per second, as measured.
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
        """Number of rows."""
        return self.blocks[-1][1] - self.blocks[0][0]

    @property
    def n_entities(self) -> int:
        """Number of entities."""
        return self.ranges[-1][1] - self.ranges[0][0]

    @property
    def seconds(self) -> float | None:
        """Forecast of the time, from the measured speed; None if it was not measured."""
        if self.speed is None:
            return None
        busy = min(self.workers, len(self.blocks) * len(self.ranges))
        return self.n_rows * self.n_entities / self.speed / busy

    def __str__(self) -> str:
        rows = max(stop - start for start, stop in self.blocks)
        width = max(stop - start for start, stop in self.ranges)
        text = (
            f"{self.n_rows:,} rows x {self.n_entities:,} entities in {len(self.blocks):,} x "
            f"{len(self.ranges):,} parts of at most {rows:,} x {width:,}; at most "
            f"{format_bytes(self.task_bytes)} of {format_bytes(self.memory)} per worker"
        )
        if self.sent:
            text += f"; {format_bytes(self.sent)} are sent, once per host"
        if self.seconds is None or self.speed is None:
            return text
        workers = "1 worker" if self.workers == 1 else f"{self.workers:,} workers"
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{text}; about {_format_duration(self.seconds)} on {workers} of {threads} "
            f"({self.speed:.2g} scores per second each, as measured)"
        )


def memory_bytes(text: str | int) -> int:
    """Convert a size such as ``"2GB"``, ``"512MiB"`` or a number to bytes; UsageError otherwise."""
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]+)?)\s*([KMGT]?)(i?)B?\s*", str(text), re.I)
    if not match:
        raise UsageError(f"memory {text!r} is not a size; give one such as 2GB or 512MB")
    number, unit, binary = match.groups()
    factor = _UNITS[unit.upper()]
    if binary:
        factor = 1024 ** round(math.log10(factor) / 3)
    return int(float(number) * factor)


def format_bytes(size: float) -> str:
    """Return a size as text, such as "2.0 GB"."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit != "GB" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _format_duration(seconds: float) -> str:
    """Return a duration as text, such as "3 min"."""
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
    """Cut a ranking into parts; UsageError if the memory is too low.

    - memory: Memory that one worker may use.
    - rows, entities: The range to rank, (first, stop); None: all.
    - calibrate, worth: Measure the speed if there are at least `worth` scores.
    - reserve: Bytes that a worker needs for other purposes.
    - sent: Bytes of files sent to each host.
    - jobs: Number of rankings that share the workers.
    - results: Number of results that a worker holds besides the part that it ranks.
    """
    store, granted = inputs.store(), memory_bytes(memory)
    rows = rows or (0, store.n_rows)
    entities = entities or (0, store.n_labels)
    needs = Needs(inputs, store, False, results)
    if entities != (0, store.n_labels) or not (
        store.restricted
        or needs.count_fitting(granted - BASE - reserve - needs.fixed) >= store.n_labels
    ):
        needs = replace(needs, cut=True)
    fixed_bytes = BASE + reserve + needs.fixed
    width = _choose_width(needs, entities[1] - entities[0], granted - fixed_bytes, fixed_bytes)
    entity_bytes = math.ceil(MARGIN * needs.entity_bytes)
    left = granted - fixed_bytes - width * entity_bytes
    blocks, most = _cut_blocks(needs, width, rows, left, workers, jobs)
    count = -(-(entities[1] - entities[0]) // width)
    bounds = np.linspace(*entities, count + 1).astype(int).tolist()
    plan = Plan(
        tuple(blocks),
        tuple(pairwise(bounds)),
        fixed_bytes + width * entity_bytes + most,
        granted,
        workers,
        inputs.settings.n_threads,
        sent,
    )
    worth_it = calibrate and plan.n_rows * plan.n_entities >= worth
    if not worth_it:
        return plan
    with reading(inputs.files.location if inputs.files else inputs.folder):
        return replace(plan, speed=measure_speed(plan, inputs))


def _choose_width(needs: Needs, width: int, budget: int, fixed: int) -> int:
    """Return the number of entities per part: all, or as many as fit into half of the memory."""
    fitting, restricted = needs.count_fitting(budget), needs.store.restricted
    if fitting < width and (restricted or fitting < 1024):
        smallest = width if restricted else min(width, 1024)
        least = fixed + 2 * smallest * needs.per_entity
        part = "1,024 entities"
        if restricted:
            part = "all entities, which restricted candidates require,"
        raise UsageError(
            f"the memory limit is too low: a part of {part} needs about {format_bytes(least)}; "
            f"allow more, as in {argument('memory', f'{math.ceil(least / 1e6)}MB')}"
        )
    return min(width, fitting)


def _cut_blocks(
    needs: Needs, width: int, rows: tuple[int, int], budget: int, workers: int, jobs: int
) -> tuple[list[tuple[int, int]], int]:
    """Return blocks of rows that fit into the memory, and the bytes of the largest block."""
    n_rows = rows[1] - rows[0]
    # The scheduler must keep up with all workers, if other jobs have tasks for the idle ones.
    least = max(
        _TILE,
        min(workers * _SCORES_PER_ASSIGNMENT // max(1, width), n_rows * (jobs - 1) // workers),
    )
    blocks, start, used, largest = [], rows[0], 0, 0
    for first in range(rows[0], rows[1], _CHUNK):
        stop = min(first + _CHUNK, rows[1])
        offsets = offsets_of(needs.row_bytes(first, stop, width))
        row = first
        while row < stop:
            limit = _most_rows(n_rows, rows[1] - start, workers, least)
            # Rows up to `end` fit: both the memory and the limit allow them.
            end = int(np.searchsorted(offsets, offsets[row - first] + budget - used, "right")) - 1
            end = min(first + end, start + limit, stop)
            if end == row and row == start:
                needed = int(offsets[row - first + 1] - offsets[row - first])
                question = int(needs.store.array("plan_question")[row])
                name = needs.store.questions().ids[question]
                raise UsageError(
                    f"the memory limit is too low: question {name} alone needs "
                    f"{format_bytes(needed)}, but {format_bytes(max(0, budget))} are left; allow "
                    f"{math.ceil((needed - budget) / 1e6)} MB more"
                )
            used += int(offsets[end - first] - offsets[row - first])
            largest, row = max(largest, used), end
            if end < stop or end == start + limit:
                blocks.append((start, end))
                start, used = end, 0
    if start < rows[1]:
        blocks.append((start, rows[1]))
    return blocks, largest


def _most_rows(n_rows: int, left: int, workers: int, least: int = _TILE) -> int:
    """Return the rows of the next block: fewer towards the end, so that workers end together."""
    if workers == 1:
        return min(MOST_ROWS, n_rows)
    share, smallest = -(-left // (_SHARES_OF_REST * workers)), n_rows // (_SHARES_OF_ALL * workers)
    return min(MOST_ROWS, max(least, share, smallest))


def measure_speed(plan: Plan, inputs: Inputs) -> float | None:
    """Measure how many scores a worker ranks per second, on growing parts of the first task.

    None if there are no files of scores.
    """
    if inputs.files is None:
        return None
    store, (first, stop), entities = inputs.store(), plan.blocks[0], plan.ranges[0]
    lenient = replace(inputs, settings=replace(inputs.settings, nan="worst"))
    rows, width = min(_TILE, stop - first), entities[1] - entities[0]
    if isinstance(inputs.files, FactorFiles) and not store.restricted:
        dim = max(1, inputs.files.entities.shape[1])
        width = min(width, max(1 << 14, _CALIBRATION_TERMS // (_TILE * dim)))
    if isinstance(inputs.files, ScoreFiles):
        rows = 1
    measured = []
    for trial in range(_TRIALS):
        task = Task(first, first + rows, entities[0], entities[0] + width)
        begun = time.perf_counter()
        rank_block(task.rows, [task.entities], lenient)
        seconds = max(time.perf_counter() - begun, 1e-9)
        measured.append((rows * width, seconds))
        factor = _CALIBRATION / 2 / max(seconds, 1e-4)
        if factor < 2 and trial:  # the first trial also reads files into memory
            break
        factor = max(factor, 1)
        taller = min(int(rows * factor), stop - first)
        # The width takes the rest of the growth if there are too few rows.
        wider = min(int(width * factor * rows / taller), entities[1] - entities[0])
        wider = width if store.restricted else max(width, wider)
        if (taller, wider) == (rows, width) and trial:
            break
        rows, width = taller, wider
    # Other processes only slow it down, and fixed costs matter little in a large part.
    return max(scores / seconds for scores, seconds in measured)
