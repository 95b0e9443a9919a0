"""Workers and their tasks: how inputs reach tasks, and values the caller.

If workers see the caller's files, tasks get paths. Otherwise files are sent (`ship`), and rows of
a matrix go with the tasks.

Only files that tasks read are sent, once per host. Their bytes are scattered piece by piece. The
first task on a host gathers them into a folder of its worker. The host's other workers link to it,
and all map the files into memory. As with a shared folder, no task carries them, and a worker that
comes later fetches them like any other. Links end with their workers, so no files remain.
"""

from __future__ import annotations

import fcntl
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.csr import Array
from kgtrec.cluster.dask.workers import (
    PiecesGone,
    TaskOptions,
    TimedOut,
    guarded,
    in_reach,
    look_at_workers,
)
from kgtrec.cluster.parts import Inputs, rank_block
from kgtrec.cluster.score_files import ArrayFile, ScoreFiles, local_paths, moved
from kgtrec.ranking.partial import Task

if TYPE_CHECKING:
    from distributed import Client, Future

_SLOW = 10.0  # seconds for a value to come straight from a worker


@dataclass(frozen=True, order=True)
class Work:
    """One Dask task: a block of rows against adjacent ranges of entities."""

    rows: tuple[int, int]
    ranges: tuple[tuple[int, int], ...] = field(repr=False)

    @property
    def task(self) -> Task:
        """The part that the task computes."""
        return Task(*self.rows, self.ranges[0][0], self.ranges[-1][1])

    def __str__(self) -> str:
        return str(self.task)


class Workers:
    """The workers of a client, and how their tasks reach the inputs.

    ``shared``: all of them see the files. ``direct``: this process fetches values from them without
    the scheduler. ``where``: what tasks receive.
    """

    def __init__(self, client: Client, inputs: Inputs, tasks: TaskOptions) -> None:
        self.client, self.inputs, self.tasks = client, inputs, tasks
        paths = [str(Path(inputs.folder) / "meta.json"), *local_paths(inputs.files)]
        self.shared = look_at_workers(client, paths, tasks.patience)
        self.direct = in_reach(client)
        self.threads = sum(client.nthreads().values())
        self.where: Inputs | Shipment = inputs
        self._sent: dict[Work, Future] = {}

    @property
    def sends_rows(self) -> bool:
        """Whether tasks receive the rows of a matrix; they read those of a matrix at a URL."""
        files = self.inputs.files
        return not self.shared and isinstance(files, ScoreFiles) and not files.parts[0].is_remote

    @property
    def bytes_sent(self) -> int:
        """Bytes of files sent to each host."""
        return 0 if self.shared else sum(n for _, _, n in _relocated(self._shipped)[1].values())

    @property
    def bytes_held(self) -> int:
        """Bytes that a worker holds for others to fetch."""
        n_workers, size = max(1, len(self.client.nthreads())), self.bytes_sent
        return -(-min(_COPIES, n_workers) * size // n_workers) + 2 * min(_PIECE, size)

    @property
    def _shipped(self) -> Inputs:
        return replace(self.inputs, files=None) if self.sends_rows else self.inputs

    @property
    def window(self) -> int | None:
        """Most tasks in flight: if rows are sent, one waiting task per running one."""
        return 2 * max(1, self.threads) if self.sends_rows else None

    def prepare(self) -> None:
        """Scatter the files again if workers need copies."""
        if not self.shared:
            self.close()
            self.where = ship(self.client, self._shipped)

    def close(self) -> None:
        """Remove the copies."""
        self._sent.clear()
        if isinstance(self.where, Shipment):
            with suppress(Exception):  # the scheduler may be gone, and with it all of this
                self.client.unpublish_dataset(self.where.name)

    def submit(self, work: Work) -> Future:
        """Start one task."""
        return self.client.submit(
            run_work, work, self.where, self._rows(work), pure=False, retries=self.tasks.retries,
            key=f"kgtrec-{secrets.token_hex(8)}",
        )  # fmt: skip

    def fetch(self, future: Future) -> Any:
        """The value of a finished task, straight from its worker if that is in reach."""
        if not self.direct:
            return future.result()
        started = time.monotonic()
        value = self.client.gather(future, direct=True)
        if time.monotonic() - started > _SLOW:  # a host that came later may be out of reach
            self.direct = in_reach(self.client)
        return value

    def done(self, work: Work) -> None:
        """Drop what was sent for a finished task."""
        self._sent.pop(work, None)

    def _rows(self, work: Work) -> Any:
        """All columns of a task's rows, as sent; None if the task opens files."""
        files = self.inputs.files
        if not self.sends_rows or not isinstance(files, ScoreFiles):
            return None
        block = np.array(files.block(*work.rows, slice(None)))
        self._sent[work] = self.client.scatter(block, hash=False)
        return self._sent[work]


def run_work(work: Work, where: Inputs | Shipment, block: Array | None = None) -> Any:
    """The part of one task, or an error; runs on a worker."""
    return guarded(lambda: rank_block(work.rows, work.ranges, located(where), block))


_PIECE = 32 << 20
_COPIES = 2  # per piece: a worker may be lost
_GLANCE = 3.0  # seconds to wait for a piece before asking again who has it

_lock = Lock()


@dataclass(frozen=True)
class Shipment:
    """Sent files: the name of the published pieces, and each file's number of pieces."""

    name: str
    inputs: Inputs
    files: tuple[tuple[str, int], ...]


def ship(client: Client, inputs: Inputs) -> Shipment:
    """Scatter all files of the inputs, until `Workers.close`."""
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


def _pieces(path: Path, start: int, size: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(start)
        while size > 0 and (piece := file.read(min(_PIECE, size))):
            size -= len(piece)
            yield piece


_ORDERS = ("selection.npy", "columns.npy")
"""Names of the files with the rows and the columns of scores, as tasks find them."""


def _relocated(inputs: Inputs) -> tuple[Inputs, dict[str, tuple[Path, int, int]]]:
    """The inputs with paths below a folder, and which bytes each file there holds."""
    sources = {
        f"store/{path.name}": (path, 0, path.stat().st_size) for path in inputs.store().task_files()
    }

    def beside(name: str, array: ArrayFile) -> ArrayFile:
        size = array.itemsize * math.prod(array.shape)
        sources[name] = (Path(array.path), array.offset, size)
        return replace(array, path=name, offset=0)

    files = moved(inputs.files, beside, *_ORDERS)
    if inputs.files is not None:
        orders = (inputs.files.selection, inputs.files.columns)
        for name, path in zip(_ORDERS, orders, strict=True):
            if path:
                sources[name] = (Path(path), 0, Path(path).stat().st_size)
    return replace(inputs, folder="store", files=files), sources


def located(where: Inputs | Shipment) -> Inputs:
    """The inputs with paths that a worker can open, in its own folder if files were sent."""
    if isinstance(where, Inputs):
        return where
    from distributed import get_client, get_worker

    folder = Path(get_worker().local_directory) / where.name
    if not folder.is_dir():
        with _lock, _one_of_host(folder.parent.parent):
            if not folder.is_dir():
                published = set(get_client().list_datasets())
                for other in folder.parent.glob("kgtrec-*"):
                    if other.name not in published:  # files of finished rankings
                        shutil.rmtree(other, ignore_errors=True)
                if not _linked(where, folder):
                    _fetch(where, folder)

    def below(_: str, array: ArrayFile) -> ArrayFile:
        return replace(array, path=str(folder / array.path))

    files = moved(where.inputs.files, below, *(str(folder / name) for name in _ORDERS))
    return replace(where.inputs, folder=str(folder / where.inputs.folder), files=files)


@contextmanager
def _one_of_host(place: Path) -> Iterator[None]:
    """Lock the folder that holds the folders of a host's workers."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with suppress(OSError):  # file systems without locks: each process may fetch
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _linked(shipment: Shipment, folder: Path) -> bool:
    """Link the files of another worker of the host; whether one had them."""
    for other in folder.parent.parent.glob(f"*/{shipment.name}"):
        with suppress(OSError), _appearing(folder) as beside:  # that worker may be ending
            for name, _ in shipment.files:
                os.link(other / name, beside / name)
            return True
    return False


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder that gets its name once it is filled."""
    beside = folder.with_name(f"{folder.name}-{os.getpid()}")
    (beside / "store").mkdir(parents=True)
    try:
        yield beside
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _fetch(shipment: Shipment, folder: Path) -> None:
    from distributed import get_client

    client = get_client()
    pieces = iter(client.get_dataset(shipment.name))
    with _appearing(folder) as beside:
        for name, count in shipment.files:
            with open(beside / name, "wb") as file:
                for piece in islice(pieces, count):
                    file.write(_received(client, piece))


def _received(client: Client, piece: Future) -> bytes:
    """The bytes of a piece. Waiting for a piece whose workers were all lost would never end. So
    ask first who has it: all tasks of a host wait in turn."""
    while any(client.who_has([piece]).values()):
        with suppress(*TimedOut):
            return piece.result(timeout=_GLANCE)
    raise PiecesGone("no worker has the files that were sent any more")
