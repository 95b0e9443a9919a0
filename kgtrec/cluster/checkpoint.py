"""Finished parts on disk, so that a ranking that was killed goes on where it was.

A file of one part holds its own checksum; what is damaged counts as not there and is ranked again.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.ranking.partial import PartialRanks, Task

__all__ = ["PartFiles"]

_ARRAYS = ("counts", "answer_nan", "lengths", "documents", "scores")
_FACTS = ("nan_count", "dtype", "path", "depth", "nan", "questions_hash")


class PartFiles:
    """Parts of one ranking as files of a folder, which nothing else may use.

    Parameters
    ----------
    folder : Path
        Named after everything that the parts depend on but their rows and entities.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, task: Task) -> Path:
        return self.folder / ("-".join(map(str, astuple(task))) + ".part")

    def save(self, part: PartialRanks) -> None:
        """Write a part beside its place and rename it."""
        arrays = {name: getattr(part, name) for name in _ARRAYS}
        told = json.dumps([getattr(part, name) for name in _FACTS])
        buffer = io.BytesIO()
        np.savez(buffer, told=np.frombuffer(told.encode(), dtype=np.uint8), **arrays)
        with atomic_write(self._path(part.task)) as file:
            file.write(_digest(buffer.getbuffer()))
            file.write(buffer.getbuffer())

    def load(self, task: Task) -> PartialRanks | None:
        """A part that was saved whole, else None."""
        with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):
            data = self._path(task).read_bytes()
            if data[:_SIZE] == _digest(memoryview(data)[_SIZE:]):
                with np.load(io.BytesIO(data[_SIZE:]), allow_pickle=False) as found:
                    told = json.loads(found["told"].tobytes())
                    return PartialRanks(task, *(found[name] for name in _ARRAYS), *told)
        return None

    def count(self) -> int:
        """Files of parts, sound or not."""
        return sum(1 for _ in self.folder.glob("*.part"))

    def save_note(self, name: str, content: Any) -> None:
        """Keep something of plain JSON types beside the parts."""
        text = json.dumps(content).encode()
        with atomic_write(self.folder / f"{name}.json") as file:
            file.write(_digest(memoryview(text)) + text)

    def load_note(self, name: str) -> Any:
        """What was kept; None if it is not there or damaged."""
        with suppress(OSError, ValueError):
            data = (self.folder / f"{name}.json").read_bytes()
            if data[:_SIZE] == _digest(memoryview(data)[_SIZE:]):
                return json.loads(data[_SIZE:])
        return None


_SIZE = 32


def _digest(data: memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_SIZE).digest()
