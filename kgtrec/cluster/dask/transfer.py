"""Inputs for workers that share no folder with the client: their bytes travel once per worker.

The bytes are scattered piece by piece. The first task on a worker gathers them into a folder of the
worker's own, from which all its tasks map them into memory: as with a shared folder, no task
carries them, and a worker that comes later fetches them like any other.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.array_files import ArrayFile, FactorFiles, HeldScores, ScoreFiles
from kgtrec.cluster.dask.workers import PATIENCE, PiecesGone, TimedOut, guarded, look_at_workers
from kgtrec.cluster.merge_parts import perform
from kgtrec.cluster.part import Inputs
from kgtrec.ranking.partial import Task

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Shipment", "Work", "Workers", "located", "recall", "ship", "unpacked"]


@dataclass(frozen=True, order=True)
class Work:
    """One Dask task: a block of rows against adjacent ranges of entities."""

    rows: tuple[int, int]
    ranges: tuple[tuple[int, int], ...] = field(repr=False)

    @property
    def task(self) -> Task:
        """The part that comes of it."""
        return Task(*self.rows, self.ranges[0][0], self.ranges[-1][1])

    def __str__(self) -> str:
        return str(self.task)


class Workers:
    """The workers of a client, and how their tasks reach the inputs.

    Parameters
    ----------
    client : distributed.Client
    inputs : Inputs
    retries : int
    patience : float
        Seconds to wait for a worker.

    Attributes
    ----------
    shared : bool
        All of them see the files.
    threads : int
        Of all workers.
    where : Inputs or Shipment
        What tasks are given.
    """

    def __init__(
        self, client: Client, inputs: Inputs, retries: int, patience: float = PATIENCE
    ) -> None:
        self.client, self.inputs, self.retries = client, inputs, retries
        paths = [str(Path(inputs.folder) / "meta.json"), *paths_of(inputs)]
        self.shared = look_at_workers(client, paths, patience)
        self.threads = sum(client.nthreads().values())
        self.where: Inputs | Shipment = inputs
        self._sent: dict[Work, Future] = {}

    @property
    def sends_rows(self) -> bool:
        """Whether tasks are sent the rows of a matrix; of one at a URL they read them."""
        files = self.inputs.files
        return not self.shared and isinstance(files, ScoreFiles) and not files.parts[0].is_remote

    @property
    def window(self) -> int | None:
        """Tasks under way at most: one that waits for each that works, if their rows are sent."""
        return 2 * max(1, self.threads) if self.sends_rows else None

    def prepare(self) -> None:
        """Scatter the files anew, where workers need copies."""
        if not self.shared:
            self.close()
            inputs = replace(self.inputs, files=None) if self.sends_rows else self.inputs
            self.where = ship(self.client, inputs)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the copies back."""
        self._sent.clear()
        if isinstance(self.where, Shipment):
            recall(self.client, self.where)

    def submit(self, work: Work) -> Future:
        """Start one task."""
        return self.client.submit(
            perform_work, work, self.where, self._rows(work), pure=False, retries=self.retries,
            key=f"kgtrec-{secrets.token_hex(8)}",
        )  # fmt: skip

    def done(self, work: Work) -> None:
        """What was sent for a task is of no more use."""
        self._sent.pop(work, None)

    def _rows(self, work: Work) -> Any:
        """All columns of a task's rows, on their way; None where it opens files."""
        files = self.inputs.files
        if not self.sends_rows or not isinstance(files, ScoreFiles):
            return None
        block = np.array(files.block(*work.rows, slice(None)))
        self._sent[work] = self.client.scatter(block, hash=False)
        return self._sent[work]


def paths_of(inputs: Inputs) -> list[str]:
    """Files of this machine that the inputs name, besides the store of the questions."""
    files: Any = inputs.files
    if files is None:
        return []
    arrays = files.arrays if hasattr(files, "arrays") else files.parts
    paths = [array.path for array in arrays if not array.is_remote]
    return paths + ([files.selection] if files.selection else [])


def perform_work(
    work: Work, where: Inputs | Shipment, block: npt.NDArray[Any] | None = None
) -> Any:
    """The part of one task, or a `Refusal`; runs on a worker."""

    def part() -> Any:
        inputs = located(where)
        if block is not None:
            like = ArrayFile("", 0, block.shape, block.dtype.str)
            inputs = replace(inputs, files=HeldScores((like,), first=work.rows[0], held=block))
        return perform(work.rows, work.ranges, inputs)

    return guarded(part)


def located(where: Inputs | Shipment) -> Inputs:
    """The inputs as a worker opens them."""
    return unpacked(where) if isinstance(where, Shipment) else where


_PIECE = 32 << 20
_COPIES = 2  # of each piece: a worker may be lost
_GLANCE = 3.0  # seconds without a piece, after which it is asked who has it

_lock = Lock()


@dataclass(frozen=True)
class Shipment:
    """Files on their way: the name of the published pieces, and each file's number of them."""

    name: str
    inputs: Inputs
    files: tuple[tuple[str, int], ...]


def ship(client: Client, inputs: Inputs) -> Shipment:
    """Scatter all files of the inputs, until `recall`."""
    futures: list[Future] = []
    files = []
    moved, sources = _relocated(inputs)
    for name, (path, start, size) in sources.items():
        before = len(futures)
        futures += [client.scatter(piece, hash=False) for piece in _pieces(path, start, size)]
        files.append((name, len(futures) - before))
    if len(client.nthreads()) > 1:
        client.replicate(futures, n=_COPIES)
    shipment = Shipment(f"kgtrec-{secrets.token_hex(8)}", moved, tuple(files))
    client.publish_dataset(futures, name=shipment.name)
    return shipment


def recall(client: Client, shipment: Shipment) -> None:
    """Let the cluster forget what was scattered."""
    with suppress(Exception):  # the scheduler may be gone, and with it all of this
        client.unpublish_dataset(shipment.name)


def _pieces(path: Path, start: int, size: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(start)
        while size > 0 and (piece := file.read(min(_PIECE, size))):
            size -= len(piece)
            yield piece


def _relocated(inputs: Inputs) -> tuple[Inputs, dict[str, tuple[Path, int, int]]]:
    """The inputs as they will stand below a folder, and which bytes each file there holds."""
    store = Path(inputs.folder)
    sources = {
        f"store/{path.name}": (path, 0, path.stat().st_size) for path in sorted(store.iterdir())
    }

    def moved(array: ArrayFile | None, name: str) -> Any:
        if array is None or array.is_remote:
            return array
        size = array.itemsize
        for length in array.shape:
            size *= length
        sources[name] = (Path(array.path), array.offset, size)
        return replace(array, path=name, offset=0)

    files: Any = inputs.files
    if files is not None and files.selection:
        path = Path(files.selection)
        sources["selection.npy"] = (path, 0, path.stat().st_size)
        files = replace(files, selection="selection.npy")
    if isinstance(files, ScoreFiles):
        parts = tuple(moved(part, f"scores{n}") for n, part in enumerate(files.parts))
        files = replace(files, parts=parts)
    elif isinstance(files, FactorFiles):
        named = {
            name: moved(getattr(files, name), name) for name in ("queries", "entities", "bias")
        }
        files = replace(files, **named)
    return replace(inputs, folder="store", files=files), sources


def unpacked(shipment: Shipment) -> Inputs:
    """On a worker: the inputs in its own folder, fetched if they are not there yet."""
    from distributed import get_worker

    folder = Path(get_worker().local_directory) / shipment.name
    with _lock:
        if not folder.is_dir():
            _fetch(shipment, folder)
    return _placed(shipment.inputs, folder)


def _fetch(shipment: Shipment, folder: Path) -> None:
    from distributed import get_client

    client = get_client()
    pieces = iter(client.get_dataset(shipment.name))
    beside = folder.with_name(f"{folder.name}-{os.getpid()}")
    (beside / "store").mkdir(parents=True)
    try:
        for name, count in shipment.files:
            with open(beside / name, "wb") as file:
                for piece in islice(pieces, count):
                    file.write(_received(client, piece))
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _received(client: Client, piece: Future) -> bytes:
    """The bytes of a piece. Nobody tells of a piece whose workers were all lost before this one
    asked for it, and its result would be waited for without end."""
    while True:
        try:
            return piece.result(timeout=_GLANCE)
        except TimedOut:
            if not any(client.who_has([piece]).values()):
                raise PiecesGone("files that were sent are on no worker any more") from None


def _placed(inputs: Inputs, folder: Path) -> Inputs:
    def at(array: ArrayFile | None) -> Any:
        if array is None or array.is_remote:
            return array
        return replace(array, path=str(folder / array.path))

    files: Any = inputs.files
    if files is not None and files.selection:
        files = replace(files, selection=str(folder / files.selection))
    if isinstance(files, ScoreFiles):
        files = replace(files, parts=tuple(at(part) for part in files.parts))
    elif isinstance(files, FactorFiles):
        arrays = {name: at(getattr(files, name)) for name in ("queries", "entities", "bias")}
        files = replace(files, **arrays)
    return replace(inputs, folder=str(folder / inputs.folder), files=files)
