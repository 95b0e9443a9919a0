"""Partial rankings: the results of some rows for some entities, and functions to join them.

`kgtrec.ranking.ranges` makes parts of the entities. Tasks and shards of `kgtrec.cluster` make parts
of rows and entities. Counts are added, the best candidates are merged (`merge_adjacent`), and parts
of all entities become `Ranks` and `Run` (`assemble`). A ranking of all rows and entities needs no
parts (`build_ranks`, `build_run`).

A file of parts is an Arrow IPC stream with a row per part, in record batches of one row. The
BLAKE2b-256 of all its bytes follows; readers compare it before they decode anything. The schema's
metadata describes the evaluation of the parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec import _core
from kgtrec._internal.arrays import Array, Bools, Int32, Int64
from kgtrec._internal.csr import offsets_of, spans
from kgtrec._internal.files import arrow_file, atomic_write
from kgtrec._internal.locations import local_copy
from kgtrec._internal.structured import parse_json
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import FileError, PathName, UsageError, refuse, system_error
from kgtrec.questions.api import Questions
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.provenance import Provenance, check_alike
from kgtrec.ranking.ranks import Ranks, RanksAndRun
from kgtrec.ranking.rows import RowPlan, Rows
from kgtrec.ranking.settings import Settings
from kgtrec.trec.files.run import Run

if TYPE_CHECKING:
    import pyarrow as pa


_SORTED_AT_ONCE = 1 << 18  # candidates that are sorted at a time


@dataclass(frozen=True, order=True)
class Task:
    """The task to rank rows for a range of entities.

    It has the rows `first_row` to ``stop_row - 1`` and the entities `first_entity` to
    ``stop_entity - 1``. With restricted candidates, the range must contain all entities.
    """

    first_row: int
    stop_row: int
    first_entity: int
    stop_entity: int

    def __str__(self) -> str:
        return (
            f"rows {self.first_row} to {self.stop_row - 1}, "
            f"entities {self.first_entity} to {self.stop_entity - 1}"
        )

    @property
    def rows(self) -> tuple[int, int]:
        """First row, and the last row plus 1."""
        return self.first_row, self.stop_row

    @property
    def entities(self) -> tuple[int, int]:
        """First entity, and the last entity plus 1."""
        return self.first_entity, self.stop_entity


@dataclass(frozen=True, eq=False)
class PartialRanks(ShownInLines):
    """The counts and best candidates of some rows, for a range of the entities.

    Attributes
    ----------
    task : Task
        The rows and entities.
    counts : ndarray of int64, shape (6, n_targets)
        Greater, equal and tied ahead, micro and macro, of the answers counted in the rows.
    answer_nan : ndarray of bool, shape (n_targets,)
        True if the score of the answer is NaN.
    lengths : ndarray of int32, shape (rows that give a question's run,)
        Number of candidates kept per row.
    documents, scores : ndarray of int32; of float32 or float64
        Ids and scores of the candidates kept, row after row, best first.
    nan_count : int
        Number of NaN candidates.
    dtype, path : str
        Dtype of the scores, and kernel path.
    settings : Settings
        Run depth, direction, treatment of NaN, tolerance of ties.
    questions_hash : str
        Hash of the questions.
    """

    task: Task
    counts: Int64
    answer_nan: Bools
    lengths: Int32
    documents: Int32
    scores: Array
    nan_count: int
    dtype: str
    path: str
    settings: Settings
    questions_hash: str

    @property
    def provenance(self) -> Provenance:
        """Facts that all parts of a ranking share."""
        return Provenance.from_settings(self.questions_hash, self.settings, self.dtype)

    def _lines(self) -> tuple[str, str]:
        return (
            f"counts of {self.counts.shape[1]:,} answers, {len(self.documents):,} candidates kept",
            f"scores {self.dtype}, path {self.path}, run depth {self.settings.run_depth:,}",
        )


def extract_part(
    state: NativeRanking,
    task: Task,
    questions_hash: str,
    shift: int = 0,
    rows: Int64 | None = None,
) -> PartialRanks:
    """Return the results of a native ranking for some rows, or for all.

    For all rows, the part shares arrays with the ranking. ``shift`` is added to the ranking's
    numbers of entities to give ids.
    """
    plan: Rows = state.plan
    counts, answer_nan, nan_count = state.counts, state.target_nan, state.nan_count
    if rows is not None:
        plan, targets = plan.select(rows)
        counts, answer_nan = counts[:, targets], answer_nan[targets]
        nan_count = nan_count[rows]
    slots = _run_slots(plan.slot)
    is_all = rows is None and len(slots) == len(state.best_length)
    in_order = is_all and bool((slots[1:] > slots[:-1]).all())
    lengths, documents, scores = state.best(slice(None) if in_order else slots)  # no copy
    return PartialRanks(
        task,
        counts,
        answer_nan,
        lengths,
        documents + np.int32(shift) if shift else documents,
        scores,
        int(nan_count.sum()),
        state.dtype,
        _core.active_path(),
        state.settings.shared(),
        questions_hash,
    )


def _run_slots(slot: Int64) -> Int64:
    """Return the slots of those rows whose best candidates become a question's run."""
    return slot[slot >= 0] if (slot < 0).any() else slot


def _check_cover(
    unit: str, parts: Iterable[tuple[int, int]], start: int = 0, end: int | None = None
) -> None:
    """Raise UsageError unless ordered parts contain each row (or entity) exactly once.

    - unit: "rows" or "entities", for messages.
    - parts: First row of each part, and its last row plus 1.
    - start, end: The same of all parts together; no check of the end if it is None.
    """
    for first, stop in parts if end is None else (*parts, (end, end)):
        if first > start:
            gone = f"{unit} {start} to {first - 1}"
            raise UsageError(f"{gone} are in no part; add a part with them")
        if first < start:
            twice = f"{unit} {first} to {min(start, stop) - 1}"
            raise UsageError(f"{twice} are in more than one part; give each to one part")
        start = stop


def merge_adjacent(
    parts: Iterable[PartialRanks], position: Callable[[Int32], Int32] | None
) -> PartialRanks:
    """Merge parts of the same rows and adjacent ranges of entities, in ascending order.

    - position: Returns the positions of entities in the byte order of their labels. None if ids are
      in that order.
    """
    return reduce(lambda left, right: _merge_two(left, right, position), parts)


def _merge_two(
    left: PartialRanks, right: PartialRanks, position: Callable[[Int32], Int32] | None
) -> PartialRanks:
    """Merge two parts; UsageError if they have other rows, or a gap or overlap between them."""
    both = f"{left.task} and {right.task}"
    if left.task.rows != right.task.rows:
        raise UsageError(f"{both} do not have the same rows; merge ranges of the same rows")
    _check_cover("entities", [left.task.entities, right.task.entities], left.task.first_entity)
    check_alike(both, left.provenance, right.provenance)
    return PartialRanks(
        Task(*left.task.rows, left.task.first_entity, right.task.stop_entity),
        left.counts + right.counts,
        left.answer_nan | right.answer_nan,
        *_merge_best(left, right, position),
        left.nan_count + right.nan_count,
        left.dtype,
        join_paths([left.path, right.path]),
        left.settings,
        left.questions_hash,
    )


def join_paths(paths: Iterable[str]) -> str:
    """Join the names of kernel paths of several machines, whose results have the same bits."""
    return ", ".join(sorted({name for path in paths for name in path.split(", ")}))


def _merge_best(
    left: PartialRanks, right: PartialRanks, position: Callable[[Int32], Int32] | None
) -> tuple[Int32, Int32, Array]:
    """Return lengths, ids and scores of the best candidates of both parts.

    They are in trec order: score, then document name, both descending. A few rows are sorted at a
    time, because sorting takes many times the memory of its input.
    """
    depth = left.settings.run_depth
    lengths = np.minimum(left.lengths.astype(np.int64) + right.lengths, depth).astype(np.int32)
    documents = np.empty(int(lengths.sum()), dtype=np.int32)
    scores = np.empty(len(documents), dtype=left.scores.dtype)
    step, target = max(1, _SORTED_AT_ONCE // max(1, 2 * depth)), offsets_of(lengths)
    both = [(part, offsets_of(part.lengths)) for part in (left, right)]
    for start in range(0, len(lengths), step):
        stop = min(start + step, len(lengths))
        some = [(part, slice(offsets[start], offsets[stop])) for part, offsets in both]
        rows = np.arange(stop - start)
        row = np.concatenate([np.repeat(rows, part.lengths[start:stop]) for part, _ in some])
        ids = np.concatenate([part.documents[span] for part, span in some])
        value = np.concatenate([part.scores[span] for part, span in some])
        positions = ids if position is None else position(ids)
        order = np.lexsort((-positions, -value, row))
        row = row[order]
        order = order[np.arange(len(row)) - np.searchsorted(row, row) < depth]
        merged = slice(target[start], target[stop])
        documents[merged], scores[merged] = ids[order], value[order]
    return lengths, documents, scores


def assemble(
    parts: Sequence[PartialRanks],
    plan: RowPlan,
    questions: Questions,
    *,
    entity_ranges: int | None = None,
    model_facts: Sequence[str] = (),
) -> RanksAndRun:
    """Assemble ranks and run from parts with all entities. They equal those of one pass."""
    ordered = sorted(parts, key=lambda part: part.task)
    more: dict[str, Any] = {} if entity_ranges is None else {"entity_ranges": entity_ranges}
    more |= describe_facts(model_facts)
    describe_scores = describe_parts(ordered, plan.n_rows, questions, **more)
    whole = join_rows(ordered)
    counted = plan.collect(whole.counts, whole.answer_nan)
    ranks = Ranks.from_counts(questions, *counted, lambda: describe_scores)
    run = _to_run(questions, whole.settings, *_sort_by_question(whole, plan.slot))
    return RanksAndRun(ranks, run)


def join_rows(parts: Sequence[PartialRanks]) -> PartialRanks:
    """Join parts of consecutive rows and the same entities into one."""
    first, last = parts[0], parts[-1]
    if first is last:
        return first
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in _ARRAYS
    }
    joined["task"] = replace(first.task, stop_row=last.task.stop_row)
    return replace(first, nan_count=sum(part.nan_count for part in parts), **joined)


def build_ranks(
    state: NativeRanking, questions: Questions, paths: Iterable[str] = (), *, copied: bool = False
) -> Ranks:
    """Return the ranks of a finished native ranking of all rows and entities.

    `paths` are the kernel paths of other processes that ranked some rows. Ranks share arrays with
    the ranking unless these are `copied`.
    """
    plan, counts, no_score = state.plan, state.counts, state.target_nan
    assert isinstance(plan, RowPlan)  # a ranking of all rows has a whole plan
    if copied:
        counts, no_score = counts.copy(), no_score.copy()
    paths = [_core.active_path(), *paths]

    def describe_scores() -> dict[str, Any]:
        facts = describe_facts(state.model_facts)
        return _describe_scores(
            state.settings, state.dtype, int(state.nan_count.sum()), paths, **facts
        )

    return Ranks.from_counts(questions, *plan.collect(counts, no_score), describe_scores)


def build_run(state: NativeRanking, questions: Questions, *, copied: bool = False) -> Run:
    """Return the run of a finished native ranking; ``copied`` as in `build_ranks`."""
    lengths, *best = state.best(slice(None), copied=copied)
    return _to_run(questions, state.settings, offsets_of(lengths), *best)


def _to_run(
    questions: Questions, settings: Settings, offsets: Int64, documents: Int32, scores: Array
) -> Run:
    """Return the best candidates of all questions as a run."""
    docnos = questions.candidate_labels.docnos
    return Run(questions.ids, offsets, documents, scores, docnos, settings.run_depth)


def describe_parts(
    ordered: Sequence[PartialRanks], n_rows: int, questions: Questions, **more: Any
) -> dict[str, Any]:
    """Check that parts, in the order of their rows, are a whole ranking; describe their scores.

    Returns the manifest's entry on scores, with `more` entries. It reads no counts. UsageError if
    the parts do not belong to this ranking, overlap, or leave rows or entities out.
    """
    expected = replace(ordered[0].provenance, questions_hash=questions.fingerprint)
    for part in ordered:
        check_alike(f"{part.task} and this ranking", part.provenance, expected)
        _check_cover("entities", [part.task.entities], 0, questions.n_labels)
    _check_cover("rows", [part.task.rows for part in ordered], 0, n_rows)
    nan_count, paths = sum(part.nan_count for part in ordered), [part.path for part in ordered]
    return _describe_scores(ordered[0].settings, ordered[0].dtype, nan_count, paths, **more)


def describe_facts(facts: Iterable[str]) -> dict[str, list[str]]:
    """Return the manifest's entry on the formula of a model; empty without facts."""
    return {"model_facts": [*facts]} if facts else {}


def _describe_scores(
    settings: Settings, dtype: str, nan_count: int, paths: Iterable[str], **more: Any
) -> dict[str, Any]:
    """Return the manifest's entry on scores."""
    entry: dict[str, Any] = {
        "dtype": dtype,
        "rows": settings.rows,
        "higher_is_better": settings.higher_is_better,
        "nan": settings.nan,
        "nan_count": nan_count,
        "kernel_path": join_paths(paths),
        **more,
    }
    if settings.tolerance is not None:
        entry["tie_tolerance"] = settings.tolerance._asdict()
    return entry


def _sort_by_question(part: PartialRanks, slot: Int64) -> tuple[Int64, Int32, Array]:
    """Return offsets, ids and scores of the kept candidates, sorted by question instead of row."""
    question, starts = _run_slots(slot), offsets_of(part.lengths)
    if (question[1:] > question[:-1]).all():
        return starts, part.documents, part.scores
    order = np.argsort(question, kind="stable")
    offsets, at = spans(starts[order], part.lengths[order])
    return offsets, part.documents[at], part.scores[at]


FORMAT = 3
_TASK = ("first_row", "stop_row", "first_entity", "stop_entity")
_FACTS = {
    **dict.fromkeys((*_TASK, "nan_count"), "int64"),
    **dict.fromkeys(("dtype", "path", "questions_hash", "settings"), "string"),
}
_ARRAYS = ("counts", "answer_nan", "lengths", "documents", "scores")
_DIGEST = 32
_ARROW_START = b"\xff\xff\xff\xff"  # the first bytes of every Arrow IPC stream


def write_parts(
    path: PathName,
    about: dict[str, Any],
    parts: Iterable[PartialRanks],
    arrays: Mapping[str, Array] | None = None,
) -> None:
    """Write parts with scores of one dtype to a file, which appears when it is complete.

    - about: The evaluation that the parts belong to, in plain JSON types.
    - arrays: Further arrays by name, shape (n,) each.
    """
    import pyarrow as pa

    with atomic_write(path) as file:
        sink, writer = _HashingFile(file), None
        for part in parts:
            batch = _to_batch(part, about, arrays or {})
            if writer is None:
                writer = pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            raise ValueError("a file of parts needs at least one")
        writer.close()
        file.write(sink.hasher.digest())


class _HashingFile:
    """A file object for pyarrow that hashes what is written to it."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.file, self.hasher = file, hashlib.blake2b(digest_size=_DIGEST)

    def write(self, data: Any) -> int:
        self.hasher.update(data)
        return int(self.file.write(data))

    def flush(self) -> None:
        self.file.flush()


def _to_batch(
    part: PartialRanks, about: dict[str, Any], arrays: Mapping[str, Array]
) -> pa.RecordBatch:
    """Return a part and further arrays as a record batch of one row."""
    import pyarrow as pa

    facts = vars(part.task) | vars(part) | {"settings": json.dumps(vars(part.settings))}
    columns = {name: pa.array([facts[name]], getattr(pa, kind)()) for name, kind in _FACTS.items()}
    all_arrays = {name: getattr(part, name) for name in _ARRAYS} | dict(arrays)
    for name, array in all_arrays.items():
        values = pa.array(np.ascontiguousarray(array).reshape(-1))
        columns[name] = pa.LargeListArray.from_arrays(pa.array([0, len(values)], "int64"), values)
    text = json.dumps(about | {"format": FORMAT}, sort_keys=True)
    schema = pa.schema(
        [(name, column.type) for name, column in columns.items()], {"kgtrec_parts": text}
    )
    return pa.record_batch(list(columns.values()), schema=schema)


def read_about(path: PathName) -> dict[str, Any]:
    """Read the description of the evaluation of a file's parts; FileError if it is incomplete."""
    with _open_parts(path) as (about, _):
        return about


def read_parts(path: PathName) -> Iterator[PartialRanks]:
    """Yield the parts of a file in order; FileError before the first if it is incomplete."""
    with _open_parts(path) as (_, reader):
        for batch in reader:
            batch.validate(full=True)
            for row in range(batch.num_rows):
                yield _read_part(batch.slice(row, 1))


def read_with_arrays(path: PathName, names: Iterable[str]) -> tuple[PartialRanks, dict[str, Array]]:
    """Read the only part of a file and its further arrays; FileError if it is incomplete."""
    with _open_parts(path) as (_, reader):
        batch = reader.read_next_batch()
        batch.validate(full=True)
        return _read_part(batch.slice(0, 1)), {name: _read_array(batch, name) for name in names}


def _read_array(row: pa.RecordBatch, name: str) -> Array:
    """Return the array in a column of a record batch of one row."""
    array: Array = row.column(name)[0].values.to_numpy(zero_copy_only=False)
    return array


def _read_part(row: pa.RecordBatch) -> PartialRanks:
    """Return the part in a row; ValueError if its arrays do not fit together."""
    facts = {name: row.column(name)[0].as_py() for name in _FACTS}
    arrays: dict[str, Any] = {name: _read_array(row, name) for name in _ARRAYS}
    task = Task(*(facts.pop(name) for name in _TASK))
    score_type = np.float64 if facts["dtype"] == "float64" else np.float32
    dtypes = (np.int64, np.bool_, np.int32, np.int32, score_type)
    if [arrays[name].dtype for name in _ARRAYS] != list(map(np.dtype, dtypes)):
        raise ValueError(f"the arrays of {task} have wrong types")
    n_targets, n_documents = len(arrays["answer_nan"]), int(arrays["lengths"].sum(dtype=np.int64))
    fitting = (
        0 <= task.first_row < task.stop_row
        and 0 <= task.first_entity < task.stop_entity
        and len(arrays["counts"]) == 6 * n_targets
        and len(arrays["lengths"]) <= task.stop_row - task.first_row
        and (arrays["lengths"] >= 0).all()
        and len(arrays["documents"]) == len(arrays["scores"]) == n_documents
    )
    if not fitting:
        raise ValueError(f"the arrays of {task} do not fit together")
    arrays["counts"] = arrays["counts"].reshape(6, n_targets)
    settings = Settings(**parse_json(facts.pop("settings")))
    return PartialRanks(task, **arrays, **facts, settings=settings)


@contextmanager
def _open_parts(path: PathName) -> Iterator[tuple[dict[str, Any], Any]]:
    """Open a file and yield its metadata and reader; any fault in its bytes is a FileError."""
    import pyarrow as pa

    try:
        with local_copy(path) as copy:
            _check_digest(copy)
            with arrow_file(copy) as file, pa.ipc.open_stream(file) as reader:
                about = parse_json(reader.schema.metadata[b"kgtrec_parts"])
                if about["format"] != FORMAT:
                    problem = f"a shard of format {about['format']}, but this version reads format"
                    hint = "merge with the version of kgtrec that ranked it"
                    refuse(path, None, f"{problem} {FORMAT}", hint)
                yield about, reader
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(path, found="the file does not exist", hint="rank the shard") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise system_error(path, error) from None
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(
            path,
            found=f"damaged or incomplete ({reason})",
            hint="rank this shard again to replace it",
        ) from None


def _check_digest(path: Path) -> None:
    """Raise ValueError if a file was changed after writing, FileError if it is another kind."""
    hasher, left = hashlib.blake2b(digest_size=_DIGEST), path.stat().st_size - _DIGEST
    with open(path, "rb") as file:
        head = file.read(len(_ARROW_START))
        if not _ARROW_START.startswith(head):
            refuse(path, None, "not a shard of a ranking", "move it out of the folder")
        file.seek(0)
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            hasher.update(piece)
            left -= len(piece)
        if file.read() != hasher.digest():
            raise ValueError("its hash is wrong")
