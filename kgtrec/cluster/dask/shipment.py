"""Inputs for workers that share no folder with the client: their bytes travel once per host.

Only what tasks read is sent. The bytes are scattered piece by piece. The first task on a host
gathers them into a folder of its worker's own, to which the other workers of the host link, and all
map them into memory: as with a shared folder, no task carries them, and a worker that comes later
fetches them like any other. A link lasts as long as its worker, so nothing is left behind.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from kgtrec.cluster.array_files import ArrayFile, FactorFiles, ScoreFiles
from kgtrec.cluster.dask.workers import PiecesGone, TimedOut
from kgtrec.cluster.part import Inputs

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Shipment", "bytes_held", "bytes_sent", "located", "recall", "ship"]

_PIECE = 32 << 20
_COPIES = 2  # of each piece: a worker may be lost
_GLANCE = 3.0  # seconds to wait for a piece, after which it is asked again who has it

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


def bytes_sent(inputs: Inputs) -> int:
    """What each host is sent."""
    return sum(size for _, _, size in _relocated(inputs)[1].values())


def bytes_held(client: Client, inputs: Inputs) -> int:
    """What of it is in a worker's memory, from which others fetch it."""
    n_workers, size = max(1, len(client.nthreads())), bytes_sent(inputs)
    return -(-min(_COPIES, n_workers) * size // n_workers) + 2 * min(_PIECE, size)


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
    sources = {
        f"store/{path.name}": (path, 0, path.stat().st_size) for path in inputs.store().task_files()
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
    """On a worker: the inputs in its own folder, fetched if they are not on its host yet."""
    from distributed import get_worker

    folder = Path(get_worker().local_directory) / shipment.name
    if not folder.is_dir():
        with _lock, _one_of_host(folder.parent.parent):
            if not folder.is_dir():
                _forget_others(folder)
                if not _linked(shipment, folder):
                    _fetch(shipment, folder)
    return _placed(shipment.inputs, folder)


def _forget_others(folder: Path) -> None:
    """Remove from a worker's folder what was sent for rankings that are over."""
    from distributed import get_client

    published = set(get_client().list_datasets())
    for other in folder.parent.glob("kgtrec-*"):
        if other.name not in published:
            shutil.rmtree(other, ignore_errors=True)


@contextmanager
def _one_of_host(place: Path) -> Iterator[None]:
    """One process at a time, of those whose workers' folders are in this one."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with suppress(OSError):  # file systems without locks: each process may fetch
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _linked(shipment: Shipment, folder: Path) -> bool:
    """Whether another worker of the host had the files, which are now this one's as well."""
    for other in folder.parent.parent.glob(f"*/{shipment.name}"):
        with suppress(OSError), _appearing(folder) as beside:  # that worker may be going
            for name, _ in shipment.files:
                os.link(other / name, beside / name)
            return True
    return False


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder that takes its name when it is filled."""
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
    """The bytes of a piece. Nobody tells of a piece whose workers were all lost, and its result
    would be waited for without end; it is asked first, as all tasks of a host wait in turn."""
    while any(client.who_has([piece]).values()):
        with suppress(*TimedOut):
            return piece.result(timeout=_GLANCE)
    raise PiecesGone("files that were sent are on no worker any more")


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


def located(where: Inputs | Shipment) -> Inputs:
    """The inputs as a worker opens them."""
    return unpacked(where) if isinstance(where, Shipment) else where
