"""Workers and their tasks: how inputs reach tasks, and values the caller.

If workers see the caller's files, tasks get paths. Otherwise files are sent (`ship`), and rows of
a matrix go with the tasks.

Only files that tasks read are sent, once per host. Their bytes are scattered piece by piece. The
first task on a host gathers them into a folder of its worker. The host's other workers link to it,
and all map the files into memory. As with a shared folder, no task carries them, and a worker that
comes later fetches them like any other. Links end with their workers, so no files remain.
"""

from __future__ import annotations

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

from kgtrec._internal.arrays import Array
from kgtrec._internal.system import locked_folder
from kgtrec.cluster.dask.workers import (
    PiecesGone,
    TaskOptions,
    TimedOut,
    can_connect,
    catch_errors,
    workers_share_files,
)
from kgtrec.cluster.parts import Inputs, rank_block
from kgtrec.cluster.score_files import ArrayFile, ScoreFiles, local_paths, move_files
from kgtrec.ranking.partial import Task

if TYPE_CHECKING:
    from distributed import Client, Future

_SLOW_SECONDS = 10.0  # that a value may take straight from a worker


@dataclass(frozen=True, order=True)
class Work:
    """One Dask task: a block of rows with adjacent ranges of entities."""

    rows: tuple[int, int]
    ranges: tuple[tuple[int, int], ...] = field(repr=False)

    @property
    def task(self) -> Task:
        """The part that the task computes."""
        return Task(*self.rows, self.ranges[0][0], self.ranges[-1][1])

    def __str__(self) -> str:
        return str(self.task)


class Workers:
    """The workers of a client, and how their tasks get the inputs.

    - shared: True if all workers see the files of this process.
    - direct: True if this process fetches values from the workers without the scheduler.
    - threads: Number of threads of all workers.
    - where: What tasks receive: paths, or the name of a shipment.
    """

    def __init__(self, client: Client, inputs: Inputs, tasks: TaskOptions) -> None:
        self.client, self.inputs, self.tasks = client, inputs, tasks
        paths = [str(Path(inputs.folder) / "meta.json"), *local_paths(inputs.files)]
        self.shared = workers_share_files(client, paths, tasks.patience)
        self.direct = can_connect(client)
        self.threads = sum(client.nthreads().values())
        self.where: Inputs | Shipment = inputs
        self._scattered: dict[Work, Future] = {}

    @property
    def sends_rows(self) -> bool:
        """True if tasks receive rows of a matrix. Tasks read a matrix at a URL themselves."""
        files = self.inputs.files
        return not self.shared and isinstance(files, ScoreFiles) and not files.parts[0].is_remote

    @property
    def bytes_sent(self) -> int:
        """Bytes of files that are sent to each host."""
        return 0 if self.shared else sum(n for _, _, n in _relocate(self._shipped)[1].values())

    @property
    def bytes_held(self) -> int:
        """Bytes of sent files that a worker holds, so that others can fetch them."""
        n_workers, size = max(1, len(self.client.nthreads())), self.bytes_sent
        return -(-min(_COPIES, n_workers) * size // n_workers) + 2 * min(_PIECE, size)

    @property
    def _shipped(self) -> Inputs:
        return replace(self.inputs, files=None) if self.sends_rows else self.inputs

    @property
    def window(self) -> int | None:
        """Largest number of submitted tasks if rows are sent: two per thread; else None."""
        return 2 * max(1, self.threads) if self.sends_rows else None

    def prepare(self) -> None:
        """Scatter the files again if workers need copies."""
        if not self.shared:
            self.close()
            self.where = ship_files(self.client, self._shipped)

    def close(self) -> None:
        """Remove the copies of files and rows."""
        self._scattered.clear()
        if isinstance(self.where, Shipment):
            with suppress(Exception):  # the scheduler may be gone, and with it all of this
                self.client.unpublish_dataset(self.where.name)

    def submit(self, work: Work) -> Future:
        """Start one task."""
        return self.client.submit(
            run_work,
            work,
            self.where,
            self._rows(work),
            pure=False,
            retries=self.tasks.retries,
            key=f"kgtrec-{secrets.token_hex(8)}",
        )

    def fetch(self, future: Future) -> Any:
        """Return the value of a finished task, straight from its worker if it can be reached."""
        if not self.direct:
            return future.result()
        started = time.monotonic()
        value = self.client.gather(future, direct=True)
        if time.monotonic() - started > _SLOW_SECONDS:  # a host that came later may be out of reach
            self.direct = can_connect(self.client)
        return value

    def forget(self, work: Work) -> None:
        """Drop the rows that were sent for a finished task."""
        self._scattered.pop(work, None)

    def _rows(self, work: Work) -> Any:
        """Send the rows of a task, all columns; None if the task opens files."""
        files = self.inputs.files
        if not self.sends_rows or not isinstance(files, ScoreFiles):
            return None
        block = np.array(files.block(*work.rows, slice(None)))
        self._scattered[work] = self.client.scatter(block, hash=False)
        return self._scattered[work]


def run_work(work: Work, where: Inputs | Shipment, block: Array | None = None) -> Any:
    """Return the part of a task, or an error (`catch_errors`). This runs on a worker."""
    return catch_errors(lambda: rank_block(work.rows, work.ranges, locate_inputs(where), block))


_PIECE = 32 << 20  # bytes
_COPIES = 2  # of each piece, because a worker may be lost
_PIECE_SECONDS = 3.0  # to wait for a piece before asking again which workers have it

_lock = Lock()


@dataclass(frozen=True)
class Shipment:
    """Sent files.

    - name: Name of the dataset of pieces that Dask publishes.
    - inputs: The inputs, with paths relative to a folder of a worker.
    - files: Name of each file, and its number of pieces.
    """

    name: str
    inputs: Inputs
    files: tuple[tuple[str, int], ...]


def ship_files(client: Client, inputs: Inputs) -> Shipment:
    """Scatter all files of the inputs. They stay on the workers until `Workers.close`."""
    futures: list[Future] = []
    files = []
    relocated, sources = _relocate(inputs)
    for name, (path, start, size) in sources.items():
        before = len(futures)
        futures += [client.scatter(piece, hash=False) for piece in _read_pieces(path, start, size)]
        files.append((name, len(futures) - before))
    if len(client.nthreads()) > 1:
        client.replicate(futures, n=_COPIES)
    shipment = Shipment(f"kgtrec-{secrets.token_hex(8)}", relocated, tuple(files))
    client.publish_dataset(futures, name=shipment.name)
    return shipment


def _read_pieces(path: Path, start: int, size: int) -> Iterator[bytes]:
    """Yield `size` bytes of a file from byte `start`, in pieces."""
    with open(path, "rb") as file:
        file.seek(start)
        while size > 0 and (piece := file.read(min(_PIECE, size))):
            size -= len(piece)
            yield piece


_ORDER_NAMES = ("selection.npy", "columns.npy")
"""Names of the files with the order of rows and of columns of scores, in a worker's folder."""


def _relocate(inputs: Inputs) -> tuple[Inputs, dict[str, tuple[Path, int, int]]]:
    """Return the inputs with paths relative to a worker's folder, and the sources of its files.

    A source is a path, its first byte and its number of bytes, by name of the file.
    """
    sources = {
        f"store/{path.name}": (path, 0, path.stat().st_size) for path in inputs.store().task_files()
    }

    def add_file(name: str, array: ArrayFile) -> ArrayFile:
        size = array.itemsize * math.prod(array.shape)
        sources[name] = (Path(array.path), array.offset, size)
        return replace(array, path=name, offset=0)

    files = move_files(inputs.files, add_file, *_ORDER_NAMES)
    if inputs.files is not None:
        orders = (inputs.files.selection, inputs.files.columns)
        for name, path in zip(_ORDER_NAMES, orders, strict=True):
            if path:
                sources[name] = (Path(path), 0, Path(path).stat().st_size)
    return replace(inputs, folder="store", files=files), sources


def locate_inputs(where: Inputs | Shipment) -> Inputs:
    """Return the inputs with paths that a worker can open; fetch the files if they were sent."""
    if isinstance(where, Inputs):
        return where
    from distributed import get_client, get_worker

    folder = Path(get_worker().local_directory) / where.name
    if not folder.is_dir():
        # One worker per host fetches the files; without locks, each does.
        with _lock, locked_folder(folder.parent.parent):
            if not folder.is_dir():
                published = set(get_client().list_datasets())
                for other in folder.parent.glob("kgtrec-*"):
                    if other.name not in published:  # files of finished rankings
                        shutil.rmtree(other, ignore_errors=True)
                if not _link_files(where, folder):
                    _fetch(where, folder)

    def find_file(_: str, array: ArrayFile) -> ArrayFile:
        return replace(array, path=str(folder / array.path))

    files = move_files(
        where.inputs.files, find_file, *(str(folder / name) for name in _ORDER_NAMES)
    )
    return replace(where.inputs, folder=str(folder / where.inputs.folder), files=files)


def _link_files(shipment: Shipment, folder: Path) -> bool:
    """Link the files of another worker of the host; return whether there is one with files."""
    for other in folder.parent.parent.glob(f"*/{shipment.name}"):
        with (
            suppress(OSError),
            _rename_when_filled(folder) as temporary,
        ):  # that worker may be ending
            for name, _ in shipment.files:
                os.link(other / name, temporary / name)
            return True
    return False


@contextmanager
def _rename_when_filled(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which gets its name when the context ends without error."""
    temporary = folder.with_name(f"{folder.name}-{os.getpid()}")
    (temporary / "store").mkdir(parents=True)
    try:
        yield temporary
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _fetch(shipment: Shipment, folder: Path) -> None:
    """Gather the pieces of all files into a folder."""
    from distributed import get_client

    client = get_client()
    pieces = iter(client.get_dataset(shipment.name))
    with _rename_when_filled(folder) as temporary:
        for name, count in shipment.files:
            with open(temporary / name, "wb") as file:
                for piece in islice(pieces, count):
                    file.write(_wait_for_piece(client, piece))


def _wait_for_piece(client: Client, piece: Future) -> bytes:
    """Return the bytes of a piece; PiecesGone if no worker has it any more.

    Dask would wait forever for a piece whose workers were all lost. So ask first which workers
    have it, and ask again from time to time, because all tasks of a host wait in turn.
    """
    while any(client.who_has([piece]).values()):
        with suppress(*TimedOut):
            return piece.result(timeout=_PIECE_SECONDS)
    raise PiecesGone("no worker has the files that were sent any more")
