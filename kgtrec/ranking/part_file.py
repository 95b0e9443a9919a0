"""Files of partial rankings: shards, a `Ranker`'s state, the parts of a ranking that may be killed.

A file is an Arrow IPC stream with a row per part, in record batches of one row, followed by the
BLAKE2b-256 of all its bytes. `pyarrow.ipc.open_stream` reads it. What a shard belongs to stands in
the schema's metadata. The digest is compared before anything is decoded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arrow_file import arrow_file
from kgtrec._internal.atomic_file import atomic_write
from kgtrec._internal.locations import fetched
from kgtrec.errors import FileError
from kgtrec.ranking.partial import PartialRanks, Task
from kgtrec.ranking.tolerance import Tolerance, checked_tolerance

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_about", "read_parts", "read_with_arrays", "write_parts"]

FORMAT = 2
_TASK = ("first_row", "stop_row", "first_entity", "stop_entity")
_FACTS = {
    **dict.fromkeys((*_TASK, "nan_count", "depth"), "int64"),
    **dict.fromkeys(("dtype", "path", "nan", "questions_hash"), "string"),
    **dict.fromkeys(("atol", "rtol"), "float64"),
}
_ARRAYS = ("counts", "answer_nan", "lengths", "documents", "scores")
_DIGEST = 32
_START = b"\xff\xff\xff\xff"  # of every Arrow IPC stream


def write_parts(
    path: str | os.PathLike[str],
    about: dict[str, Any],
    parts: Iterable[PartialRanks],
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
) -> None:
    """Write parts with scores of one dtype, beside the file's place, and rename it when complete.

    Parameters
    ----------
    path : path
    about : dict
        What they belong to; plain JSON types.
    parts : iterable of PartialRanks
        Each is written as it comes.
    arrays : mapping of str to ndarray (n,), optional
        More that stands beside every part.

    Raises
    ------
    FileError
        It cannot be written.
    """
    import pyarrow as pa

    with atomic_write(path) as file:
        sink, writer = _Hashing(file), None
        for part in parts:
            batch = _batch(part, about, arrays or {})
            if writer is None:
                writer = pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            raise ValueError("a file of parts needs at least one")
        writer.close()
        file.write(sink.hasher.digest())


class _Hashing:
    """A file that hashes what is written to it, as pyarrow wants one."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.file, self.hasher = file, hashlib.blake2b(digest_size=_DIGEST)

    def write(self, data: Any) -> int:
        self.hasher.update(data)
        return int(self.file.write(data))

    def flush(self) -> None:
        self.file.flush()


def _batch(
    part: PartialRanks, about: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> pa.RecordBatch:
    """A part, and what stands beside it, as one row."""
    import pyarrow as pa

    tolerance = part.tolerance or Tolerance(0.0, 0.0)
    facts = dict(zip(_TASK, astuple(part.task), strict=True)) | vars(part) | tolerance._asdict()
    columns = {name: pa.array([facts[name]], getattr(pa, kind)()) for name, kind in _FACTS.items()}
    beside = {name: getattr(part, name) for name in _ARRAYS} | dict(arrays)
    for name, array in beside.items():
        values = pa.array(np.ascontiguousarray(array).reshape(-1))
        columns[name] = pa.LargeListArray.from_arrays(pa.array([0, len(values)], "int64"), values)
    text = json.dumps(about | {"format": FORMAT}, sort_keys=True)
    schema = pa.schema(
        [(name, column.type) for name, column in columns.items()], {"kgtrec_parts": text}
    )
    return pa.record_batch(list(columns.values()), schema=schema)


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the parts of a file belong to; FileError if it is not whole."""
    with _opened(path) as (about, _):
        return about


def read_parts(path: str | os.PathLike[str]) -> Iterator[PartialRanks]:
    """The parts of a file, in order; FileError before the first if it is not whole."""
    with _opened(path) as (_, reader):
        for batch in reader:
            batch.validate(full=True)
            for row in range(batch.num_rows):
                yield _part(batch.slice(row, 1))


def read_with_arrays(
    path: str | os.PathLike[str], names: Iterable[str]
) -> tuple[PartialRanks, dict[str, npt.NDArray[Any]]]:
    """The only part of a file, and arrays that stand beside it; FileError if it is not whole."""
    with _opened(path) as (_, reader):
        batch = reader.read_next_batch()
        batch.validate(full=True)
        return _part(batch.slice(0, 1)), {name: _array(batch, name) for name in names}


def _array(row: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = row.column(name)[0].values.to_numpy(zero_copy_only=False)
    return array


def _part(row: pa.RecordBatch) -> PartialRanks:
    """A part of one row; ValueError if its arrays do not fit together."""
    facts = {name: row.column(name)[0].as_py() for name in _FACTS}
    arrays: dict[str, Any] = {name: _array(row, name) for name in _ARRAYS}
    task = Task(*(facts.pop(name) for name in _TASK))
    score_type = np.float64 if facts["dtype"] == "float64" else np.float32
    dtypes = (np.int64, np.bool_, np.int32, np.int32, score_type)
    if [arrays[name].dtype for name in _ARRAYS] != list(map(np.dtype, dtypes)):
        raise ValueError(f"the arrays of {task} are of the wrong types")
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
    tolerance = checked_tolerance(facts.pop("atol"), facts.pop("rtol"))
    return PartialRanks(task, **arrays, **facts, tolerance=tolerance)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], Any]]:
    """A file's metadata and its reader; whatever is wrong with its bytes is one FileError."""
    import pyarrow as pa

    try:
        with fetched(path) as copy, _stream(copy) as reader:
            about = json.loads(reader.schema.metadata[b"kgtrec_parts"])
            if about["format"] != FORMAT:
                raise FileError(
                    path,
                    found=f"a shard of format {about['format']}, this version reads {FORMAT}",
                    hint="merge with the version of kgtrec that ranked it",
                )
            yield about, reader
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(path, found="there is no such file", hint="rank the shard") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(
            path,
            found=f"damaged or not complete ({reason})",
            hint="rank this shard again, which replaces it",
        ) from None


@contextmanager
def _stream(path: Path) -> Iterator[Any]:
    import pyarrow as pa

    _check_digest(path)
    with arrow_file(path) as file, pa.ipc.open_stream(file) as reader:
        yield reader


def _check_digest(path: Path) -> None:
    """ValueError if a file is not as it was written; FileError if it never was one of ours."""
    hasher, left = hashlib.blake2b(digest_size=_DIGEST), path.stat().st_size - _DIGEST
    with open(path, "rb") as file:
        head = file.read(len(_START))
        if not _START.startswith(head):
            raise FileError(
                path, found="not a shard of a ranking", hint="move it out of the folder"
            )
        file.seek(0)
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            hasher.update(piece)
            left -= len(piece)
        if file.read() != hasher.digest():
            raise ValueError("its hash is another")
