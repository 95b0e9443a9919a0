"""Hashes of files' content, by which parts of a ranking and jobs of a batch know their inputs.

There is one rule. Files of up to 1 GiB together are hashed whole, and so are graphs, lists and the
factorised models of shards of any size. A larger matrix is known by its size, its time of
modification and 16 MB spread over each file: a core ranks 4 GB of a matrix per second but hashes
only 0.7. So a copy of such a matrix must keep its time (``cp -p``). An object of a store is known
by its size and the time at which the store received it, which nobody can set.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgtrec._internal.files import write_text
from kgtrec._internal.locations import exists, is_location, local_path
from kgtrec._internal.structured import parse_json
from kgtrec._internal.system import reason_of
from kgtrec._internal.unpacking import check_members
from kgtrec.errors import FileError, PathName
from kgtrec.graph.openke import is_numbered
from kgtrec.scores.mapped_files import stamp

MOST_HASHED_WHOLE = 1 << 30
"""Bytes of files that are hashed whole; of larger files, samples are hashed."""

_N_SAMPLES, _SAMPLE_BYTES = 256, 1 << 16
_LABELS = ("entity2id.txt", "relation2id.txt")


def hash_text(text: str) -> str:
    """Return the hash of a text, 32 hexadecimal digits."""
    return _hash_pieces([text.encode("utf-8", "surrogateescape")])


def hash_file(path: PathName) -> str:
    """Return the hash of a file's bytes, 32 hexadecimal digits."""
    with open(path, "rb") as file:
        return _hash_pieces(iter(lambda: file.read(1 << 20), b""))


def write_json(path: Path, content: Any) -> None:
    """Write a value of plain JSON types to a file that begins with its hash."""
    text = json.dumps(content)
    write_text(path, f"{hash_text(text)}\n{text}")


def read_json(path: Path) -> Any:
    """Read a value that `write_json` wrote; OSError or ValueError if it is missing or damaged."""
    digest, text = path.read_text("utf-8").split("\n", 1)
    if digest != hash_text(text):
        raise ValueError
    return parse_json(text)


def _hash_pieces(pieces: Iterable[bytes]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


_CHECK = "check the name and the path"


def stamps_of(paths: Iterable[PathName], hint: str = _CHECK) -> list[tuple[int, ...]]:
    """Return stamps of files, which change when files are written to; FileError if unreadable."""
    with explain_unreadable([*paths], hint) as names:
        return [stamp(name) for name in names]


@contextmanager
def explain_unreadable(names: list[PathName], hint: str) -> Iterator[list[PathName]]:
    """Yield the names of files; turn an error of the system in the context into a FileError."""
    try:
        yield names
    except OSError as error:
        problem = reason_of(error)
        raise FileError(error.filename or names[0], found=problem, hint=hint) from None


def describe_files(
    paths: Iterable[PathName], whole: bool = False, here: bool = False, hint: str = _CHECK
) -> dict[str, Any]:
    """Describe the content of files in plain JSON types; equal content has equal descriptions.

    - whole: Hash all bytes of files of any size.
    - here: No other machine compares the result, so times that only the system sets count, too.
    """
    names = [(local_path(path) or path) if is_location(path) else path for path in paths]
    with explain_unreadable(names, hint):
        stamps = [stamp(name) for name in names]
        if any(map(is_location, names)):
            named = zip(names, stamps, strict=True)
            return {"objects": [[os.path.basename(name), *stamp] for name, stamp in named]}
        if whole or sum(size for size, *_ in stamps) <= MOST_HASHED_WHOLE:
            return {
                "hash": [
                    (_hash_archive if Path(name).suffix == ".npz" else hash_file)(name)
                    for name in names
                ]
            }
        samples = [_hash_sample(name, size) for name, (size, *_) in zip(names, stamps, strict=True)]
        times = [list(stamp[1 : 3 if here else 2]) for stamp in stamps]
        return {"sampled_hash": samples, "modified": times}


def _hash_archive(path: PathName) -> str:
    """Return the hash of the members of an archive; FileError if a checksum is wrong."""
    hasher = hashlib.blake2b(digest_size=16)
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(path, archive)
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                hasher.update(f"{info.filename} {info.file_size} ".encode())
                with archive.open(info) as file:
                    while piece := file.read(1 << 20):
                        hasher.update(piece)
    except (FileError, OSError):
        raise
    except Exception as error:  # zipfile and zlib each have errors of their own
        reason = " ".join(str(error).split())
        raise FileError(
            path, found=f"not a readable .npz archive ({reason})", hint="save it with numpy.savez"
        ) from None
    return hasher.hexdigest()


def _hash_sample(path: PathName, size: int) -> str:
    """Return the hash of a file's size and of samples, including its first and last bytes."""
    last = max(0, size - _SAMPLE_BYTES)
    pieces = [str(size).encode()]
    with open(path, "rb") as file:
        for number in range(_N_SAMPLES + 1):
            file.seek(last * number // _N_SAMPLES)
            pieces.append(file.read(_SAMPLE_BYTES))
    return _hash_pieces(pieces)


def describe_file(path: PathName) -> Any:
    """Describe a file by its hash, or an object by its size and time in its store."""
    ((described,),) = describe_files([path], whole=True).values()
    return described


def label_files(
    splits: Mapping[str, Path], type_constraints: Iterable[PathName] = ()
) -> list[Path]:
    """Return OpenKE's label files beside a graph's splits and type constraints."""
    folders = [Path(path).parent for path in type_constraints]
    if splits and is_numbered(splits):
        folders.append(next(iter(splits.values())).parent)
    return [path for folder in folders for name in _LABELS if exists(path := folder / name)]
