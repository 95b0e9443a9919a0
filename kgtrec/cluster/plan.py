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
from kgtrec._internal.csr import Int64, offsets_of
from kgtrec.cluster.parts import GATHERED, Inputs, rank_block
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.score_files import FactorFiles, ScoreFiles
from kgtrec.errors import FileError, UsageError
from kgtrec.ranking.partial import PartialRanks, Task, read_parts, write_parts
from kgtrec.scores.mapped_files import reading


class PartFiles:
    """Parts of one ranking as files in a folder of their own.

    - folder, Path: Named after everything that the parts depend on, except rows and entities.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, task: Task) -> Path:
        return self.folder / ("-".join(map(str, astuple(task))) + ".part")

    def save(self, part: PartialRanks) -> None:
        """Write a part to a temporary file and rename it."""
        write_parts(self._path(part.task), {}, [part])

    def load(self, task: Task) -> PartialRanks | None:
        """A completely saved part, else None."""
        with suppress(FileError):
            (part,) = read_parts(self._path(task))
            return part if part.task == task else None
        return None

    def count(self) -> int:
        """Number of files of parts, damaged ones included."""
        return sum(1 for _ in self.folder.glob("*.part"))


# Bytes, as measured: `tests/cluster/test_plan.py` compares peaks of tasks with their plans.
# BASE: interpreter, numpy, this package, and what allocators keep.
BASE = 52 << 20
MARGIN = 1.1  # for everything that depends on rows and entities
_ROW = 128
_TARGET = 200
_KNOWN, _RENUMBERED = 10, 72  # per id of a filter list; and while ranges of entities are renumbered
_TOLERANT = 2  # factor while rows are ranked again by other thresholds
_PLACE, _ORDERED = 8, 40  # an entity's place in the order of names, if ids have another order
_POOL = 32 << 10  # per kept candidate, while rows are ranked
_SORTED = 64 << 18  # candidates of two ranges that are sorted at a time
_ANSWER = 49  # per answer in a result
MOST_ROWS = 1 << 14
"""Most rows of a block, so that progress is visible and a retry is cheap."""


@dataclass(frozen=True)
class Needs:
    """Bytes of memory for parts with all entities, or with ranges of them (`cut`)."""

    inputs: Inputs
    store: Store
    cut: bool
    results: int

    @property
    def besides(self) -> int:
        """Bytes for kept candidates of any number of rows, and with ranges the answers' vectors."""
        files, depth = self.inputs.files, self.inputs.settings.run_depth
        if not self.cut:
            return _POOL * depth
        merging = _SORTED if depth else 0
        if not isinstance(files, FactorFiles):
            return merging
        return merging + min(GATHERED, MOST_ROWS * files.queries.shape[1] * files.itemsize)

    @property
    def entity(self) -> int:
        """Bytes per entity, for any number of rows."""
        order = 0 if self.store.ordered else _ORDERED if self.cut else _PLACE
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
    def score(self) -> int:
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
    def column(self) -> int:
        """Bytes of an entity, with one row."""
        return max(1, math.ceil(MARGIN * (self.entity + self.score)))

    def fitting(self, budget: int) -> int:
        """Number of entities for which half of the memory suffices, with one row."""
        return budget // 2 // self.column

    def rows(self, first: int, stop: int, width: int) -> Int64:
        """Bytes of each of some rows, in parts with `width` entities."""
        store, files = self.store, self.inputs.files
        depth = min(self.inputs.settings.run_depth, store.n_labels)
        question = store.array("plan_question")[first:stop]
        targets = np.diff(store.array("plan_target_offsets")[first : stop + 1])
        again = 1 if self.inputs.settings.tolerance is None else _TOLERANT
        needs = again * _TARGET * targets + self.results * _ANSWER * targets
        for name in ("known", "removed"):
            offsets = store.array(f"{name}_offsets")
            each = again * (_RENUMBERED if self.cut else _KNOWN)
            needs += each * (offsets[question + 1] - offsets[question])
        if store.restricted:
            of = np.array(store.array("candidate_lists_of")[question])
            offsets = store.array("candidate_lists_lists_offsets")
            needs += again * _RENUMBERED * np.where(of >= 0, offsets[of + 1] - offsets[of], 0)
        item = 4 if files is None else max(4, files.itemsize)
        needs += _ROW + depth * self.results * (4 + item)
        if isinstance(files, FactorFiles):
            scores = 2 * files.queries.shape[1] * files.itemsize  # of the query
        else:
            scores = (store.n_columns if store.restricted else width) * self.score
        if self.cut:
            best = 4 * depth * (4 + item)  # merged, of one more range, and unfinished
            return np.ceil(MARGIN * (needs + scores + best)).astype(np.int64)
        # Candidates beside the scores, or twice, with a mask, once the scores are dropped.
        best = max(scores + depth * (4 + item), depth * (2 * (4 + item) + 1))
        return np.ceil(MARGIN * (needs + best)).astype(np.int64)


_CHUNK = 1 << 16  # rows whose needs are computed together
_SHARES, _LEAST_SHARES = 4, 32  # a block is this part of a worker's share: of the rest, of all
_HANDED_OUT = 2_000_000  # scores that a worker ranks while the scheduler assigns a task
_TILE = 64  # queries that share one pass over the entities in the native core
_CALIBRATION = 0.2  # seconds
_TRIALS = 4
_MULTIPLIED = 1 << 30  # terms of dot products that take about this time
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Plan:
    """Blocks of rows times ranges of entities.

    - blocks, ranges: First row, and the row after the last; the same for entities. Both adjacent
      and ascending.
    - task_bytes: Most that one worker holds in memory at a time, everything included.
    - memory: Granted memory.
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
        """Forecast time of all workers together, from the measured speed."""
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
            f"{text}; about {_duration(self.seconds)} on {workers} of {threads} "
            f"({self.speed:.2g} scores per second each, as measured)"
        )


def memory_bytes(text: str | int) -> int:
    """Bytes of ``"2GB"``, ``"512MiB"`` or a number; UsageError for other text."""
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]+)?)\s*([KMGT]?)(i?)B?\s*", str(text), re.I)
    if not match:
        raise UsageError(f"memory {text!r} is not a size; give one such as 2GB or 512MB")
    number, unit, binary = match.groups()
    factor = _UNITS[unit.upper()]
    if binary:
        factor = 1024 ** round(math.log10(factor) / 3)
    return int(float(number) * factor)


def format_bytes(size: float) -> str:
    """A size for people, such as "2.0 GB"."""
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
    """Cut a ranking into parts."""
    store, granted = inputs.store(), memory_bytes(memory)
    rows = rows or (0, store.n_rows)
    entities = entities or (0, store.n_labels)
    needs = Needs(inputs, store, False, results)
    if entities != (0, store.n_labels) or not (
        store.restricted
        or needs.fitting(granted - BASE - reserve - needs.besides) >= store.n_labels
    ):
        needs = replace(needs, cut=True)
    fixed = BASE + reserve + needs.besides
    width = _width(needs, entities[1] - entities[0], granted - fixed, fixed)
    per_entity = math.ceil(MARGIN * needs.entity)
    left = granted - fixed - width * per_entity
    blocks, most = _blocks(needs, width, rows, left, workers, jobs)
    count = -(-(entities[1] - entities[0]) // width)
    bounds = np.linspace(*entities, count + 1).astype(int).tolist()
    plan = Plan(
        tuple(blocks), tuple(pairwise(bounds)), fixed + width * per_entity + most, granted, workers,
        inputs.settings.n_threads, sent
    )  # fmt: skip
    worth_it = calibrate and plan.n_rows * plan.n_entities >= worth
    if not worth_it:
        return plan
    with reading(inputs.files.place if inputs.files else inputs.folder):
        return replace(plan, speed=throughput(plan, inputs))


def _width(needs: Needs, width: int, budget: int, fixed: int) -> int:
    """Entities per part: all, or as many as fit half of the memory with one row."""
    fitting, restricted = needs.fitting(budget), needs.store.restricted
    if fitting < width and (restricted or fitting < 1024):
        smallest = width if restricted else min(width, 1024)
        least = fixed + 2 * smallest * needs.column
        part = "1,024 entities"
        if restricted:
            part = "all entities, which restricted candidates require,"
        raise UsageError(
            f"the memory limit is too low: a part of {part} needs about {format_bytes(least)}; "
            f"allow more, as in {argument('memory', f'{math.ceil(least / 1e6)}MB')}"
        )
    return min(width, fitting)


def _blocks(
    needs: Needs, width: int, rows: tuple[int, int], budget: int, workers: int, jobs: int
) -> tuple[list[tuple[int, int]], int]:
    """Blocks of rows that fit the memory, and the bytes of the largest."""
    n_rows = rows[1] - rows[0]
    # The scheduler must keep up with all workers, if other jobs have tasks for the idle ones.
    least = max(_TILE, min(workers * _HANDED_OUT // max(1, width), n_rows * (jobs - 1) // workers))
    blocks, start, used, most = [], rows[0], 0, 0
    for first in range(rows[0], rows[1], _CHUNK):
        stop = min(first + _CHUNK, rows[1])
        taken = offsets_of(needs.rows(first, stop, width))
        at = first
        while at < stop:
            limit = _most_rows(n_rows, rows[1] - start, workers, least)
            # Rows up to `end` fit: both the memory and the limit allow them.
            end = int(np.searchsorted(taken, taken[at - first] + budget - used, "right")) - 1
            end = min(first + end, start + limit, stop)
            if end == at and at == start:
                needed = int(taken[at - first + 1] - taken[at - first])
                question = int(needs.store.array("plan_question")[at])
                name = needs.store.questions().ids[question]
                raise UsageError(
                    f"the memory limit is too low: question {name} alone needs "
                    f"{format_bytes(needed)}, but {format_bytes(max(0, budget))} are left; allow "
                    f"{math.ceil((needed - budget) / 1e6)} MB more"
                )
            used += int(taken[end - first] - taken[at - first])
            most, at = max(most, used), end
            if end < stop or end == start + limit:
                blocks.append((start, end))
                start, used = end, 0
    if start < rows[1]:
        blocks.append((start, rows[1]))
    return blocks, most


def _most_rows(n_rows: int, left: int, workers: int, least: int = _TILE) -> int:
    """Rows of the next block: fewer towards the end, so that workers finish together."""
    if workers == 1:
        return min(MOST_ROWS, n_rows)
    share, smallest = -(-left // (_SHARES * workers)), n_rows // (_LEAST_SHARES * workers)
    return min(MOST_ROWS, max(least, share, smallest))


def throughput(plan: Plan, inputs: Inputs) -> float | None:
    """Scores that a worker ranks per second, measured on growing parts of the first task."""
    if inputs.files is None:
        return None
    store, (first, stop), entities = inputs.store(), plan.blocks[0], plan.ranges[0]
    lenient = replace(inputs, settings=replace(inputs.settings, nan="worst"))
    rows, width = min(_TILE, stop - first), entities[1] - entities[0]
    if isinstance(inputs.files, FactorFiles) and not store.restricted:
        dim = max(1, inputs.files.entities.shape[1])
        width = min(width, max(1 << 14, _MULTIPLIED // (_TILE * dim)))
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
