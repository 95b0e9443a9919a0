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
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from kgtrec.cluster.part import Inputs
from kgtrec.cluster.score_files import ArrayFile, FactorFiles, ScoreFiles

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Shipment", "recall", "ship", "unpacked"]

_PIECE = 32 << 20
_COPIES = 2  # of each piece: a worker may be lost

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
        if array is None:
            return None
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

    pieces = iter(get_client().get_dataset(shipment.name))
    beside = folder.with_name(f"{folder.name}-{os.getpid()}")
    (beside / "store").mkdir(parents=True)
    try:
        for name, count in shipment.files:
            with open(beside / name, "wb") as file:
                for piece in islice(pieces, count):
                    file.write(piece.result())
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _placed(inputs: Inputs, folder: Path) -> Inputs:
    def at(array: ArrayFile | None) -> Any:
        return None if array is None else replace(array, path=str(folder / array.path))

    files: Any = inputs.files
    if files is not None and files.selection:
        files = replace(files, selection=str(folder / files.selection))
    if isinstance(files, ScoreFiles):
        files = replace(files, parts=tuple(at(part) for part in files.parts))
    elif isinstance(files, FactorFiles):
        arrays = {name: at(getattr(files, name)) for name in ("queries", "entities", "bias")}
        files = replace(files, **arrays)
    return replace(inputs, folder=str(folder / inputs.folder), files=files)
