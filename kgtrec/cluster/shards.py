"""Parts of a ranking as the files of a job array (`kgtrec rank --shard`, `kgtrec merge`).

Each job ranks its shard into a file, and one job merges them all. No job waits for another, so
every shard fetches the scores of its rows' answers itself. Shards know their inputs by content
(`kgtrec.cluster.content_hash`); a complete shard is kept. `merge_shards` reads a folder of shards
as one ranking, or reports all faults in one sentence.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.files import atomic_write
from kgtrec._internal.locations import (
    exists,
    is_location,
    local_path,
    named_as,
    path_below,
    read_bytes,
)
from kgtrec._internal.runtime import progress_bar
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import stamps_of
from kgtrec.cluster.parts import Inputs, join_parts, merge_parts, rank_block
from kgtrec.cluster.plan import Plan, make_plan
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.score_files import Files, identify_scores
from kgtrec.errors import FileError, InputError, PathName, UsageError, choose, refuse
from kgtrec.measures import required_depth
from kgtrec.questions.api import Questions
from kgtrec.ranking.blocks import thresholds
from kgtrec.ranking.partial import PartialRanks, join_rows, read_about, read_parts, write_parts
from kgtrec.ranking.provenance import PARTS, Provenance, told_differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.ranking.rows import RowPlan
from kgtrec.ranking.settings import Settings
from kgtrec.scores.mapped_files import reading
from kgtrec.trec.files.run import Run
from kgtrec.trec.measures.agreement import COMPARED

WAYS = ("auto", "questions", "entities")
COMMAND_BYTES = 44 << 20
"""Bytes of a shard's memory for the command line, pyarrow and a small graph."""

_FEW_ROWS = 64  # queries that the native core scores in one pass over the entities
_META = "meta.json"
_DTYPES = ("float16", "bfloat16", "float32", "float64")
_NAMED = 8  # most faults listed in one message


@dataclass(frozen=True)
class ShardHeader:
    """Identity of a shard's ranking: equal for all its shards, except ``number``."""

    kgtrec: str
    questions: str
    questions_hash: str
    scores: dict[str, Any]
    rows: str
    run_depth: int
    higher_is_better: bool
    nan: str
    tolerance: list[float]
    by: str
    count: int
    number: int

    @classmethod
    def read(cls, path: PathName) -> ShardHeader:
        """The header of a file; FileError if it is incomplete or impossible."""
        about = read_about(path)
        try:
            header = cls(**{field.name: about[field.name] for field in fields(cls)})
            header._check()
        except (KeyError, TypeError, ValueError, UsageError) as error:
            raise _impossible(path, " ".join(str(error).split())) from None
        return header

    def _check(self) -> None:
        """Raise UsageError or TypeError for impossible values."""
        _ = self.settings
        if self.by not in WAYS[1:] or os.path.basename(self.questions) != self.questions:
            raise UsageError(f"by is {self.by!r}, questions are {self.questions!r}")
        if not all(type(n) is int for n in (self.number, self.count, self.run_depth)):
            raise UsageError("its number, count or run depth is not a whole number")
        if not 1 <= self.number <= self.count or self.run_depth < 1:
            raise UsageError(
                f"it is shard {self.number} of {self.count}, with run depth {self.run_depth}"
            )

    @property
    def settings(self) -> Settings:
        """The settings by which its scores were ranked."""
        atol, rtol = self.tolerance
        return Settings(
            self.run_depth, self.rows, self.higher_is_better, self.nan, atol, rtol, threads=1
        )

    def share(self, store: Store) -> tuple[tuple[int, int], tuple[int, int]]:
        """Its rows and its entities, each as the first and the one after the last."""
        whole = {"questions": store.n_rows, "entities": store.n_labels}
        total = whole[self.by]
        own = total * (self.number - 1) // self.count, total * self.number // self.count
        rows, entities = (own if self.by == way else (0, n) for way, n in whole.items())
        return rows, entities

    def differences(self, other: ShardHeader) -> str:
        """Differences between two shards, for people; "" if they belong to one ranking."""
        return told_differences(self, other, _COMMON)


_COMMON = tuple(
    field.name for field in fields(ShardHeader) if field.name not in ("questions_hash", "number")
)


# -- One shard ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """One shard, its inputs, and stamps of the score files, taken before they were hashed."""

    inputs: Inputs
    path: Path
    header: ShardHeader
    stamps: list[tuple[int, ...]]

    def plan(self, memory: str | int, calibrate: bool = True) -> Plan:
        """How it is cut into parts and, if measured (which reads scores), how long it will take."""
        rows, entities = self.header.share(self.inputs.store())
        return make_plan(
            self.inputs, memory, calibrate=calibrate, rows=rows, entities=entities,
            reserve=COMMAND_BYTES,
        )  # fmt: skip

    def state(self) -> str:
        """ "missing", "whole" or "damaged"; FileError if the file belongs to another ranking."""
        if not self.path.exists():
            return "missing"
        try:
            header = ShardHeader.read(self.path)
        except FileError:
            return "damaged"
        if other := header.differences(self.header):
            raise FileError(
                self.path,
                found=f"the shard exists and belongs to another ranking ({other})",
                hint="choose another folder, or remove the old shards",
            )
        return "whole" if header.number == self.header.number else "damaged"


def shard_inputs(store: Store, files: Files, settings: Settings) -> Inputs:
    """Inputs of shards, which keep enough candidates for the check of every merge."""
    if settings.tolerance is not None:
        thresholds(np.zeros(1), files.dtype, settings.tolerance)
    depth = max(settings.run_depth, *(required_depth(name) or 0 for name in COMPARED))
    return Inputs(str(store.folder), files, replace(settings, run_depth=depth, rows=store.rows))


def parse_shard(text: str) -> tuple[int, int]:
    """Number, from 1, and count of ``"3/16"``; UsageError if the text names no shard."""
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*", text)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        last = f"{count}/{count}" if count else "16/16"
        raise UsageError(
            f"{argument('shard', text)} is not a shard; give one from 1/{count or 16} to {last}"
        )
    return number, count


def open_shard(
    inputs: Inputs, folder: str | Path, number: int, count: int, by: str = "auto"
) -> Shard:
    """Shard ``number`` (from 1) of ``count``."""
    store, settings = inputs.store(), inputs.settings
    choose("by", by, WAYS)
    if by == "auto":
        few = store.n_rows < _FEW_ROWS * count and store.n_labels > store.n_rows
        by = "entities" if few and not store.restricted else "questions"
    if by == "entities" and store.restricted:
        raise UsageError(
            f"{argument('by', 'entities')} does not work with restricted candidates; choose "
            f"{argument('by', 'questions')}"
        )
    total = store.n_rows if by == "questions" else store.n_labels
    if count > total:
        raise UsageError(f"{count} shards are too many for {total} {by}; choose {total} or fewer")
    assert inputs.files is not None
    stamps = stamps_of(inputs.files.sources)
    header = ShardHeader(
        __version__, store.folder.name, store.body["fingerprint"], identify_scores(inputs.files),
        store.rows, settings.run_depth, settings.higher_is_better, settings.nan,
        [settings.atol, settings.rtol], by, count, number
    )  # fmt: skip
    return Shard(inputs, Path(folder) / shard_name(number, count), header, stamps)


def rank_shard(shard: Shard, plan: Plan, progress: bool | None = None) -> None:
    """Rank a shard and write it."""
    files = shard.inputs.files
    assert files is not None

    def parts() -> Iterator[PartialRanks]:
        with progress_bar(plan.n_rows, "rows", progress) as bar:
            for rows in plan.blocks:
                yield rank_block(rows, plan.ranges, shard.inputs)
                bar.update(rows[1] - rows[0])
        changed = stamps_of(files.sources) != shard.stamps
        if changed and identify_scores(files) != shard.header.scores:
            raise InputError(
                f"{files.place}: the scores changed while this shard was ranked; rank it "
                "again when nothing writes to them"
            )

    write_parts(shard.path, asdict(shard.header), parts())


# -- The folder --------------------------------------------------------------------------------


def shard_name(number: int, count: int) -> str:
    """File name of shard ``number`` (from 1) of ``count``; names sort by number."""
    return f"shard-{number:0{len(str(count))}}-of-{count}.arrow"


def shard_files(folder: str | Path) -> list[Path]:
    """The shards of a folder; FileError if there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        problem = "the folder does not exist" if not folder.exists() else "this is not a folder"
        refuse(folder, None, problem, "give the folder that `kgtrec rank --shard` wrote")
    paths = sorted(path for path in folder.glob("*.arrow") if not path.name.startswith("."))
    if not paths:
        refuse(folder, None, "no shards in this folder", "rank them with `kgtrec rank --shard`")
    return paths


def stored_depth(folder: str | Path) -> int:
    """Candidates per question in the first readable shard of a folder; 0 if there is none."""
    for path in shard_files(folder):
        try:
            return ShardHeader.read(path).run_depth
        except FileError:
            continue
    return 0


@contextmanager
def local_shards(folder: str, name: str) -> Iterator[Path]:
    """The folder itself; for a URL, a local folder with the shard of this name, if it exists."""
    local = local_path(folder) if is_location(folder) else folder
    if local is not None:
        yield Path(local)
        return
    with tempfile.TemporaryDirectory(prefix="kgtrec-") as made:
        if exists(f"{folder}/{name}"):
            (Path(made) / name).write_bytes(read_bytes(f"{folder}/{name}"))
        with named_as(folder, made):
            yield Path(made)


def send_shard(shard: Path, questions: Path, folder: str) -> None:
    """Send a shard to the folder's URL: first its questions unless they exist, last the shard."""
    place = f"{folder}/{questions.name}"
    if not exists(f"{place}/{_META}"):
        # No store is complete without this file; shards that send it together send equal bytes.
        for path in sorted(questions.iterdir(), key=lambda path: (path.name == _META, path.name)):
            _send(path, f"{place}/{path.name}")
    _send(shard, f"{folder}/{shard.name}")


def _send(path: Path, url: str) -> None:
    with open(path, "rb") as file, atomic_write(url) as out:
        shutil.copyfileobj(file, out, 1 << 22)


# -- All shards --------------------------------------------------------------------------------


def merge_shards(folder: str | Path) -> tuple[Ranks, Run, Questions]:
    """Ranks, run and questions of all shards in a folder, equal to those of one ranking."""
    folder = Path(folder)
    headers = _read_all(folder, shard_files(folder))
    paths = sorted(headers, key=lambda path: headers[path].number)
    first = headers[paths[0]]
    store = Store(path_below(folder, first.questions, paths[0]), verify=True)
    inputs = Inputs(str(store.folder))
    with reading(store.folder):
        shares = (_checked_parts(path, headers[path], store) for path in paths)
        if first.by == "questions":
            parts = [part for share in shares for part in share]
        else:
            parts = [merge_parts((join_rows(list(share)) for share in shares), inputs)]
        ranks, run = join_parts(parts, inputs)
        return ranks, run, store.questions(mapped=False)


def _checked_parts(path: PathName, header: ShardHeader, store: Store) -> Iterator[PartialRanks]:
    """The parts of a shard, in order; FileError if one is impossible in spite of its hash."""
    rows, entities = header.share(store)
    plan, at = store.plan(), rows[0]
    for part in read_parts(path):
        task = part.task
        if task.first_row != at:
            raise _impossible(path, f"a part of {task} where row {at} must follow")
        if task.entities != entities or not at < task.stop_row <= rows[1]:
            raise _impossible(path, f"a part of {task}, which belongs to another shard")
        if fault := _fault(part, plan, header):
            raise _impossible(path, f"{fault} in {task}")
        at = task.stop_row
        yield part
    if at != rows[1]:
        raise _impossible(path, f"it ends at row {at} instead of {rows[1]}")


def _fault(part: PartialRanks, plan: RowPlan, header: ShardHeader) -> str:
    """Why a part is impossible; "" if it is possible."""
    first, stop = part.task.rows
    n_answers = int(plan.target_offsets[stop] - plan.target_offsets[first])
    n_lists = int((plan.slot[first:stop] >= 0).sum())
    low, high = part.task.entities
    if len(part.answer_nan) != n_answers or len(part.lengths) != n_lists:
        counted = f"{len(part.answer_nan)} answers and {len(part.lengths)} lists"
        return f"{counted} instead of {n_answers} and {n_lists}"
    if part.dtype not in _DTYPES or part.nan_count < 0:
        return f"dtype {part.dtype!r}, nan_count {part.nan_count!r}"
    due = Provenance.of_scores(header.questions_hash, header.settings, part.dtype)
    if told := told_differences(part.provenance, due, PARTS):
        return told
    if n_lists and part.lengths.max() > header.run_depth:
        return f"lengths up to {part.lengths.max()} instead of at most {header.run_depth}"
    if len(part.documents) and not low <= part.documents.min() <= part.documents.max() < high:
        return f"entities from {part.documents.min()} to {part.documents.max()}"
    return "counts below 0" if n_answers and part.counts.min() < 0 else ""


def _impossible(path: PathName, problem: str) -> FileError:
    return FileError(
        path, found=f"damaged: its content is impossible ({problem})",
        hint="rank this shard again to replace it",
    )  # fmt: skip


def _read_all(folder: Path, paths: list[Path]) -> dict[Path, ShardHeader]:
    """The headers of all shards of a folder; one error for all their faults."""
    headers, faults = {}, []
    for path in paths:
        try:
            headers[path] = ShardHeader.read(path)
        except FileError as error:
            faults.append(f"{path.name} is {error.found}")
    if headers:
        faults += _faults(headers, {path.name for path in paths})
    if faults:
        more = f"; and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
        hint = "rank these shards again with the command and the inputs of the others"
        raise FileError(folder, found="; ".join(faults[:_NAMED]) + more, hint=hint)
    return headers


def _faults(headers: dict[Path, ShardHeader], names: set[str]) -> list[str]:
    """Shards of another ranking than most are; else doubled ones; and missing, undamaged ones."""
    kinds = {path: repr(replace(header, number=1)) for path, header in headers.items()}
    common = Counter(kinds.values()).most_common(1)[0][0]
    usual = next(path for path, kind in kinds.items() if kind == common)
    faults = [
        f"{path.name} and {usual.name} are from different rankings "
        f"({headers[path].differences(headers[usual])})"
        for path, kind in kinds.items()
        if kind != common
    ]
    if not faults:
        first: dict[int, Path] = {}
        for path, header in headers.items():
            other = first.setdefault(header.number, path)
            if other is not path:
                faults.append(f"{path.name} and {other.name} are both shard {header.number}")
    count = headers[usual].count
    there = {header.number for header in headers.values() if header.count == count}
    gone = [n for n in range(1, count + 1) if n not in there and shard_name(n, count) not in names]
    if gone:
        faults.append(f"shard{'s' * (len(gone) > 1)} {_spans(gone)} of {count} missing")
    return faults


def _spans(numbers: Sequence[int]) -> str:
    """``1, 2, 3, 7`` as ``1-3, 7``."""
    breaks = np.flatnonzero(np.diff(numbers) > 1) + 1
    groups = [group.tolist() for group in np.split(np.array(numbers), breaks)]
    return ", ".join(f"{g[0]}-{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups)
