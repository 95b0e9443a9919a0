"""Finished parts on disk, so that a ranking that was killed goes on where it was.

What is damaged counts as not there and is ranked again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.cluster.question_store import hash_text
from kgtrec.errors import FileError
from kgtrec.ranking.part_file import read_parts, write_parts
from kgtrec.ranking.partial import PartialRanks, Task

__all__ = ["PartFiles"]


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
        write_parts(self._path(part.task), {}, [part])

    def load(self, task: Task) -> PartialRanks | None:
        """A part that was saved whole, else None."""
        with suppress(FileError):
            (part,) = read_parts(self._path(task))
            return part if part.task == task else None
        return None

    def count(self) -> int:
        """Files of parts, sound or not."""
        return sum(1 for _ in self.folder.glob("*.part"))

    def save_note(self, name: str, content: Any) -> None:
        """Keep something of plain JSON types beside the parts."""
        text = json.dumps(content)
        with atomic_write(self.folder / f"{name}.json") as file:
            file.write(f"{hash_text(text)}\n{text}".encode())

    def load_note(self, name: str) -> Any:
        """What was kept; None if it is not there or damaged."""
        with suppress(OSError, ValueError):
            digest, text = (self.folder / f"{name}.json").read_text("utf-8").split("\n", 1)
            return json.loads(text) if digest == hash_text(text) else None
        return None
