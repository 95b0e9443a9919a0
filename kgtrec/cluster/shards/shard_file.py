"""Shard files: what one job of an array has ranked, told apart from every other.

A shard is an ``.npz`` archive, written block by block. ``about`` says what it belongs to, the
arrays of block 7 are named ``7/counts`` and so on, and ``end`` closes it with a hash of all.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.errors import FileError
from kgtrec.ranking.partial import PartialRanks, Task

__all__ = ["check_shard", "read_about", "read_blocks", "shard_name", "write_shard"]

FORMAT = 1
_ARRAYS = ("counts", "answer_nan", "lengths", "documents", "scores")
_FACTS = ("nan_count", "dtype", "path", "depth", "nan", "questions_hash")


def shard_name(number: int, count: int) -> str:
    """File name of shard ``number`` (from 1) of ``count``; names sort by number."""
    return f"shard-{number:0{len(str(count))}}-of-{count}.npz"


def write_shard(
    path: str | os.PathLike[str], about: dict[str, Any], parts: Iterable[PartialRanks]
) -> None:
    """Write a shard beside its place, part by part, and rename it when it is complete.

    Raises
    ------
    FileError
        It cannot be written.
    """
    hasher = hashlib.blake2b(digest_size=16)
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        text = json.dumps(about | {"format": FORMAT}, sort_keys=True).encode()
        archive.writestr(zipfile.ZipInfo("about.json"), text)
        hasher.update(text)
        blocks = []
        for number, part in enumerate(parts):
            for name in _ARRAYS:
                array = np.ascontiguousarray(getattr(part, name))
                _feed(hasher, f"{number}/{name}", array)
                with archive.open(f"{number}/{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
            task = [*part.task.rows, *part.task.entities]
            blocks.append([task, *(getattr(part, name) for name in _FACTS)])
        text = json.dumps(blocks).encode()
        hasher.update(text)
        end = {"blocks": blocks, "hash": hasher.hexdigest()}
        archive.writestr(zipfile.ZipInfo("end.json"), json.dumps(end).encode())


def _feed(hasher: Any, name: str, array: npt.NDArray[Any]) -> None:
    hasher.update(f"{name} {array.dtype.str} {array.shape} ".encode())
    hasher.update(array.reshape(-1).view(np.uint8))


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a shard belongs to; FileError if it is not a whole shard of this format."""
    with _Reading(path) as archive:
        about, _ = _ends(archive, path)
    return about


def read_blocks(path: str | os.PathLike[str]) -> Iterator[PartialRanks]:
    """The parts of a shard, in order; FileError as soon as one is damaged."""
    with _Reading(path) as archive:
        _, end = _ends(archive, path)
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(archive.read("about.json"))
        for number, (task, *facts) in enumerate(end["blocks"]):
            arrays: dict[str, Any] = {}
            for name in _ARRAYS:
                with archive.open(f"{number}/{name}.npy") as member:
                    array = np.lib.format.read_array(member, allow_pickle=False)
                _feed(hasher, f"{number}/{name}", array)
                arrays[name] = array
            yield PartialRanks(Task(*task), **arrays, **dict(zip(_FACTS, facts, strict=True)))
        hasher.update(json.dumps(end["blocks"]).encode())
        if hasher.hexdigest() != end["hash"]:
            raise ValueError("its hash is another")


def check_shard(path: str | os.PathLike[str]) -> None:
    """Read a shard to its end; FileError if it is damaged."""
    for _ in read_blocks(path):
        pass


def _ends(
    archive: zipfile.ZipFile, path: str | os.PathLike[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = archive.namelist()
    if "about.json" not in names or "end.json" not in names:
        raise FileError(path, found="no shard of a ranking", mend="move it out of the folder")
    about, end = (json.loads(archive.read(name)) for name in ("about.json", "end.json"))
    if about["format"] != FORMAT:
        raise FileError(
            path,
            found=f"a shard of format {about['format']}, this version reads {FORMAT}",
            mend="merge with the version of kgtrec that ranked it",
        )
    return about, end


class _Reading:
    """An archive, open; whatever goes wrong with its bytes is one FileError."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __enter__(self) -> zipfile.ZipFile:
        try:
            self.archive = zipfile.ZipFile(self.path)
        except Exception as error:
            raise self._damaged(error) from None
        return self.archive

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.archive.close()
        # zipfile, zlib, json and numpy each have errors of their own.
        if isinstance(error, Exception) and not isinstance(error, FileError):
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> FileError:
        if isinstance(error, FileNotFoundError):
            return FileError(self.path, found="there is no such file", mend="rank the shard")
        reason = " ".join(str(error).split()) or type(error).__name__
        return FileError(
            self.path,
            found=f"damaged or not complete ({reason})",
            mend="rank this shard again, which replaces it",
        )
