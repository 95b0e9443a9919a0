"""The folder of shards where it is a URL: what is of it on this machine while one is ranked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgtrec._internal.atomic_file import atomic_write
from kgtrec._internal.locations import exists, is_location, local_path, named_as, read_bytes

__all__ = ["local_shards", "send_shard"]

_META = "meta.json"


@contextmanager
def local_shards(folder: str, name: str) -> Iterator[Path]:
    """The folder itself; of a URL, one of this machine with its shard of this name, if it has it.

    Raises
    ------
    FileError
        The URL cannot be reached.
    """
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
    """Send a shard to the folder's URL: first its questions, unless they are there, last itself.

    Raises
    ------
    FileError
        Something cannot be sent.
    """
    place = f"{folder}/{questions.name}"
    if not exists(f"{place}/{_META}"):
        # Without this file no store is whole; shards that send it at once send the same bytes.
        for path in sorted(questions.iterdir(), key=lambda path: (path.name == _META, path.name)):
            _send(path, f"{place}/{path.name}")
    _send(shard, f"{folder}/{shard.name}")


def _send(path: Path, url: str) -> None:
    with open(path, "rb") as file, atomic_write(url) as out:
        while piece := file.read(1 << 22):
            out.write(piece)
