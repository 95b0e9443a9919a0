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
    name_in_errors,
    path_below,
    read_bytes,
)
from kgtrec._internal.progress import progress_bar
from kgtrec._internal.text import group_equal, join_names
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import stamps_of
from kgtrec.cluster.parts import Inputs, join_parts, merge_parts, rank_block
from kgtrec.cluster.plan import Plan, make_plan
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.score_files import FactorFiles, Files, identify_scores
from kgtrec.cluster.vectors import reading_bytes
from kgtrec.errors import FileError, InputError, PathName, UsageError, choose, refuse
from kgtrec.measures import find_depth
from kgtrec.questions.api import Questions
from kgtrec.ranking.blocks import tie_thresholds
from kgtrec.ranking.partial import PartialRanks, join_rows, read_about, read_parts, write_parts
from kgtrec.ranking.provenance import PARTS, Provenance, describe_differences
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
_MOST_NAMED = 8  # most faults listed in one message


@dataclass(frozen=True)
class ShardHeader:
    """The ranking that a shard belongs to; equal for all shards of a ranking, except ``number``."""

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
        """Read the header of a shard's file; FileError if it is incomplete or impossible."""
        about = read_about(path)
        try:
            header = cls(**{field.name: about[field.name] for field in fields(cls)})
            header._check()
        except (KeyError, TypeError, ValueError, UsageError) as error:
            raise _impossible_error(path, " ".join(str(error).split())) from None
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
        """The settings with which its scores were ranked."""
        atol, rtol = self.tolerance
        return Settings(
            self.run_depth, self.rows, self.higher_is_better, self.nan, atol, rtol, threads=1
        )

    def share(self, store: Store) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the rows and the entities of the shard, each as (first, stop)."""
        return share_of(store, self.by, self.number, self.count)

    def differences(self, other: ShardHeader) -> str:
        """Return a text on the differences of two headers; "" if they belong to one ranking."""
        return describe_differences(self, other, _COMMON_FIELDS)


def share_of(
    store: Store, by: str, number: int, count: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the rows and the entities of a shard, each as (first, stop)."""
    sizes = {"questions": store.n_rows, "entities": store.n_labels}
    total = sizes[by]
    part = total * (number - 1) // count, total * number // count
    rows, entities = (part if by == kind else (0, n) for kind, n in sizes.items())
    return rows, entities


_COMMON_FIELDS = tuple(
    field.name for field in fields(ShardHeader) if field.name not in ("questions_hash", "number")
)


# -- One shard ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """A shard to rank: its inputs, its file, and stamps of the score files before their hashing."""

    inputs: Inputs
    path: Path
    header: ShardHeader
    stamps: list[tuple[int, ...]]

    def plan(self, memory: str | int, calibrate: bool = True) -> Plan:
        """Return how the shard is cut into parts; `calibrate` measures how long it will take.

        Its memory includes that of reading a model's vectors, which comes before the first part.
        """
        rows, entities = self.header.share(self.inputs.store())
        plan = make_plan(
            self.inputs,
            memory,
            calibrate=calibrate,
            rows=rows,
            entities=entities,
            reserve=COMMAND_BYTES,
        )
        files = self.inputs.files
        if not isinstance(files, FactorFiles) or not files.origin:
            return plan
        reading = COMMAND_BYTES + reading_bytes(files.origin)
        return replace(plan, task_bytes=max(plan.task_bytes, reading))

    def state(self) -> str:
        """Return "missing", "whole" or "damaged"; FileError if the file is of another ranking."""
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


def build_shard_inputs(store: Store, files: Files, settings: Settings) -> Inputs:
    """Return the inputs of shards, which keep enough candidates for the checks of `merge`."""
    if settings.tolerance is not None:
        tie_thresholds(np.zeros(1), files.dtype, settings.tolerance)
    depth = max(settings.run_depth, *(find_depth(name) or 0 for name in COMPARED))
    return Inputs(str(store.folder), files, replace(settings, run_depth=depth, rows=store.rows))


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a text such as ``"3/16"``: number (from 1) and count; UsageError for other texts."""
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*", text)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        last = f"{count}/{count}" if count else "16/16"
        raise UsageError(
            f"{argument('shard', text)} is not a shard; give one from 1/{count or 16} to {last}"
        )
    return number, count


def choose_way(store: Store, count: int, by: str = "auto") -> str:
    """Return what to divide among `count` shards, "questions" or "entities"; `by` as in `WAYS`.

    UsageError if it cannot be divided.
    """
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
    return by


def open_shard(
    inputs: Inputs, folder: str | Path, number: int, count: int, by: str = "auto"
) -> Shard:
    """Prepare shard ``number`` (from 1) of ``count``; ``by`` is one of `WAYS`."""
    store, settings = inputs.store(), inputs.settings
    by = choose_way(store, count, by)
    assert inputs.files is not None
    stamps = stamps_of(inputs.files.sources)
    header = ShardHeader(
        __version__,
        store.folder.name,
        store.body["fingerprint"],
        identify_scores(inputs.files),
        store.rows,
        settings.run_depth,
        settings.higher_is_better,
        settings.nan,
        [settings.atol, settings.rtol],
        by,
        count,
        number,
    )
    return Shard(inputs, Path(folder) / shard_name(number, count), header, stamps)


def rank_shard(shard: Shard, plan: Plan, progress: bool | None = None) -> None:
    """Rank a shard and write its file."""
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
                f"{files.location}: the scores changed while this shard was ranked; rank it "
                "again when nothing writes to them"
            )

    write_parts(shard.path, asdict(shard.header), parts())


# -- The folder --------------------------------------------------------------------------------


def shard_name(number: int, count: int) -> str:
    """Return the file name of shard ``number`` (from 1) of ``count``; names sort by number."""
    return f"shard-{number:0{len(str(count))}}-of-{count}.arrow"


def shard_files(folder: str | Path) -> list[Path]:
    """Return the files of shards in a folder; FileError if there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        problem = "the folder does not exist" if not folder.exists() else "this is not a folder"
        refuse(folder, None, problem, "give the folder that `kgtrec rank --shard` wrote")
    paths = sorted(path for path in folder.glob("*.arrow") if not path.name.startswith("."))
    if not paths:
        refuse(folder, None, "no shards in this folder", "rank them with `kgtrec rank --shard`")
    return paths


def read_depth(folder: str | Path) -> int:
    """Read the candidates per question from the first readable shard; 0 if there is none."""
    for path in shard_files(folder):
        try:
            return ShardHeader.read(path).run_depth
        except FileError:
            continue
    return 0


@contextmanager
def local_shards(folder: str, name: str) -> Iterator[Path]:
    """Yield a local folder for the shard of this name: `folder`, or for a URL a temporary one.

    A temporary folder has a copy of the shard, if the shard exists.
    """
    local = local_path(folder) if is_location(folder) else folder
    if local is not None:
        yield Path(local)
        return
    with tempfile.TemporaryDirectory(prefix="kgtrec-") as temporary:
        if exists(f"{folder}/{name}"):
            (Path(temporary) / name).write_bytes(read_bytes(f"{folder}/{name}"))
        with name_in_errors(folder, temporary):
            yield Path(temporary)


def send_shard(shard: Path, questions: Path, folder: str) -> None:
    """Send a shard to the folder's URL, after its questions unless they are there already."""
    target = f"{folder}/{questions.name}"
    if not exists(f"{target}/{_META}"):
        # No store is complete without this file; shards that send it together send equal bytes.
        for path in sorted(questions.iterdir(), key=lambda path: (path.name == _META, path.name)):
            _send_file(path, f"{target}/{path.name}")
    _send_file(shard, f"{folder}/{shard.name}")


def _send_file(path: Path, url: str) -> None:
    """Copy a file to a URL."""
    with open(path, "rb") as file, atomic_write(url) as out:
        shutil.copyfileobj(file, out, 1 << 22)


# -- All shards --------------------------------------------------------------------------------


def merge_shards(folder: str | Path) -> tuple[Ranks, Run, Questions]:
    """Merge all shards in a folder to the ranks, run and questions of one ranking.

    FileError if shards are missing, damaged, or of several rankings.
    """
    folder = Path(folder)
    headers = _read_headers(folder, shard_files(folder))
    paths = sorted(headers, key=lambda path: headers[path].number)
    first = headers[paths[0]]
    store = Store(path_below(folder, first.questions, paths[0]), verify=True)
    inputs = Inputs(str(store.folder))
    with reading(store.folder):
        shares = (_read_valid_parts(path, headers[path], store) for path in paths)
        if first.by == "questions":
            parts = [part for share in shares for part in share]
        else:
            parts = [merge_parts((join_rows(list(share)) for share in shares), inputs)]
        ranks, run = join_parts(parts, inputs, first.scores.get("facts", ()))
        return ranks, run, store.questions(mapped=False)


def _read_valid_parts(path: PathName, header: ShardHeader, store: Store) -> Iterator[PartialRanks]:
    """Yield the parts of a shard in order; FileError if one is impossible despite its hash."""
    rows, entities = header.share(store)
    plan, row = store.plan(), rows[0]
    for part in read_parts(path):
        task = part.task
        if task.first_row != row:
            raise _impossible_error(path, f"a part of {task} where row {row} must follow")
        if task.entities != entities or not row < task.stop_row <= rows[1]:
            raise _impossible_error(path, f"a part of {task}, which belongs to another shard")
        if fault := _find_fault(part, plan, header):
            raise _impossible_error(path, f"{fault} in {task}")
        row = task.stop_row
        yield part
    if row != rows[1]:
        raise _impossible_error(path, f"it ends at row {row} instead of {rows[1]}")


def _find_fault(part: PartialRanks, plan: RowPlan, header: ShardHeader) -> str:
    """Return a text on why a part is impossible; "" if it is possible."""
    first, stop = part.task.rows
    n_answers = int(plan.target_offsets[stop] - plan.target_offsets[first])
    n_lists = int((plan.slot[first:stop] >= 0).sum())
    low, high = part.task.entities
    if len(part.answer_nan) != n_answers or len(part.lengths) != n_lists:
        counted = f"{len(part.answer_nan)} answers and {len(part.lengths)} lists"
        return f"{counted} instead of {n_answers} and {n_lists}"
    if part.dtype not in _DTYPES or part.nan_count < 0:
        return f"dtype {part.dtype!r}, nan_count {part.nan_count!r}"
    expected = Provenance.from_settings(header.questions_hash, header.settings, part.dtype)
    if differences := describe_differences(part.provenance, expected, PARTS):
        return differences
    if n_lists and part.lengths.max() > header.run_depth:
        return f"lengths up to {part.lengths.max()} instead of at most {header.run_depth}"
    if len(part.documents) and not low <= part.documents.min() <= part.documents.max() < high:
        return f"entities from {part.documents.min()} to {part.documents.max()}"
    return "counts below 0" if n_answers and part.counts.min() < 0 else ""


def _impossible_error(path: PathName, problem: str) -> FileError:
    """Return the error for a shard with impossible content."""
    return FileError(
        path,
        found=f"damaged: its content is impossible ({problem})",
        hint="rank this shard again to replace it",
    )


def _read_headers(folder: Path, paths: list[Path]) -> dict[Path, ShardHeader]:
    """Read the headers of all shards of a folder; one FileError reports all their faults."""
    headers: dict[Path, ShardHeader] = {}
    unreadable: list[tuple[str, str]] = []
    for path in paths:
        try:
            headers[path] = ShardHeader.read(path)
        except FileError as error:
            unreadable.append((path.name, error.found))
    faults = [
        f"{join_names(names)} {'are' if len(names) > 1 else 'is'} {problem}"
        for problem, names in group_equal(unreadable).items()
    ]
    if headers:
        faults += _find_faults(headers, {path.name for path in paths})
    if faults:
        note_on_further = (
            f"; and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
        )
        hint = "rank these shards again with the command and the inputs of the others"
        raise FileError(folder, found="; ".join(faults[:_MOST_NAMED]) + note_on_further, hint=hint)
    return headers


def _find_faults(headers: dict[Path, ShardHeader], names: set[str]) -> list[str]:
    """Return texts on shards that belong to another ranking than most, are doubled, or are missing.

    ``names`` are the names of all files; a damaged shard is not missing.
    """
    kinds = {path: repr(replace(header, number=1)) for path, header in headers.items()}
    common = Counter(kinds.values()).most_common(1)[0][0]
    usual = next(path for path, kind in kinds.items() if kind == common)
    others = group_equal(
        (path.name, headers[path].differences(headers[usual]))
        for path, kind in kinds.items()
        if kind != common
    )
    faults = [_name_others(names, usual.name, text) for text, names in others.items()]
    if not faults:
        first: dict[int, Path] = {}
        for path, header in headers.items():
            other = first.setdefault(header.number, path)
            if other is not path:
                faults.append(f"{path.name} and {other.name} are both shard {header.number}")
    count = headers[usual].count
    present = {header.number for header in headers.values() if header.count == count}
    missing = [
        n for n in range(1, count + 1) if n not in present and shard_name(n, count) not in names
    ]
    if missing:
        faults.append(
            f"shard{'s' * (len(missing) > 1)} {_format_numbers(missing)} of {count} missing"
        )
    return faults


def _name_others(names: list[str], usual: str, difference: str) -> str:
    """Return a text on shards that belong to another ranking than the usual one."""
    if len(names) == 1:
        return f"{names[0]} and {usual} are from different rankings ({difference})"
    return f"{join_names(names)} are from another ranking than {usual} ({difference})"


def _format_numbers(numbers: Sequence[int]) -> str:
    """Return numbers as text: 1, 2, 3, 7 becomes ``1-3, 7``."""
    breaks = np.flatnonzero(np.diff(numbers) > 1) + 1
    groups = [group.tolist() for group in np.split(np.array(numbers), breaks)]
    return ", ".join(f"{g[0]}-{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups)
