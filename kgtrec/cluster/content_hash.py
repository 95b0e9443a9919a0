"""What files hold, as hashes: by which parts of a ranking know that they belong together.

Clocks are not relied on, but those of object stores: an object is known by its size and the time at
which the store took it, which nobody can set. Graphs, lists and factorised models are hashed whole,
and so are matrices of up to 1 GiB. Larger ones no job could read for that alone, nor hash what it
reads anyway: a core ranks 4 GB of a matrix a second and hashes 0.7. Of these the size, 16 MB spread
over the file and the time of modification must agree, so that a copy has to keep its time (``cp
-p``), and bytes that change between the samples under a time set back are not seen.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgtrec._internal.locations import exists, fetched, is_location
from kgtrec._version import __version__
from kgtrec.cluster.array_files import FactorFiles, Files
from kgtrec.cluster.question_store import hash_file
from kgtrec.errors import FileError
from kgtrec.graph.formats import graph_files
from kgtrec.graph.openke import is_numbered
from kgtrec.scores.mapped_files import stamp

__all__ = ["WHOLE", "describe_request", "identify_scores", "label_files", "signature"]

WHOLE = 1 << 30
"""Bytes of matrices that are hashed whole."""

_SAMPLES, _SAMPLE = 256, 1 << 16
_BESIDE = ("entity2id.txt", "relation2id.txt")


def describe_request(
    graph: str | os.PathLike[str],
    options: Mapping[str, Any],
    files: Mapping[str, Iterable[str | os.PathLike[str]]],
) -> dict[str, Any]:
    """What questions are made from, in plain JSON types: equal for equal content.

    Parameters
    ----------
    graph : path
        Folder of the graph.
    options : mapping
        How they are asked.
    files : mapping of str to paths
        Further files that are read, by option.
    """
    named = {option: [str(path) for path in paths] for option, paths in files.items()}
    splits = graph_files(graph)
    beside = label_files(splits, named.get("type_constraints", ()))
    return {
        "kgtrec": __version__,
        "graph": Path(graph).resolve().name,
        "splits": {name: _hash(path) for name, path in splits.items()},
        "options": dict(options),
        "files": {option: [[path, _hash(path)] for path in paths]
                  for option, paths in named.items()},
        "labels": [[path.name, _hash(path)] for path in beside],
    }  # fmt: skip


def label_files(
    splits: Mapping[str, Path], type_constraints: Iterable[str | os.PathLike[str]] = ()
) -> list[Path]:
    """OpenKE's label files, which nobody names: beside a graph's splits and type constraints.

    They say which entity a number is.
    """
    folders = [Path(path).parent for path in type_constraints]
    if splits and is_numbered(splits):
        folders.append(next(iter(splits.values())).parent)
    return [path for folder in folders for name in _BESIDE if exists(path := folder / name)]


def identify_scores(files: Files) -> dict[str, Any]:
    """Content of score files, in plain JSON types.

    Raises
    ------
    FileError
        A file cannot be read, or an archive is damaged.
    """
    content: dict[str, Any] = {
        "rows": files.n_rows,
        "columns": files.n_columns,
        "dtype": files.dtype,
    }
    paths = _paths(files)
    if any(map(is_location, paths)):
        return content | {
            "metric": getattr(files, "metric", ""),
            "objects": [[os.path.basename(path), *stamp(path)] for path in paths],
        }
    if isinstance(files, FactorFiles):
        return content | {"metric": files.metric, "hash": [_hash(path) for path in paths]}
    total = sum(_stat(path).st_size for path in paths)
    if total <= WHOLE:
        return content | {"hash": [_hash(path) for path in paths]}
    return content | {
        "sampled_hash": [_hash_sample(path) for path in paths],
        "modified": [_stat(path).st_mtime_ns for path in paths],
    }


def signature(files: Files) -> list[tuple[int, ...]]:
    """What changes when a file is written to, even if its time is set back afterwards."""
    try:
        return [stamp(path) for path in _paths(files)]
    except OSError as error:
        raise _unreadable(error.filename, error) from None


def _paths(files: Files) -> list[str]:
    if isinstance(files, FactorFiles):
        # What was unpacked for workers has the user's archive as its source.
        return [files.place] if files.place else [array.path for array in files.arrays]
    return [part.path for part in files.parts]


def _hash(path: str | os.PathLike[str]) -> str:
    try:
        with fetched(path) as copy:
            return _hash_archive(copy) if copy.suffix == ".npz" else hash_file(copy)
    except OSError as error:
        raise _unreadable(path, error) from None


def _hash_archive(path: str | os.PathLike[str]) -> str:
    """The members' bytes: their checksums are verified, which mapping them would not."""
    hasher = hashlib.blake2b(digest_size=16)
    try:
        with zipfile.ZipFile(path) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                hasher.update(f"{info.filename} {info.file_size} ".encode())
                with archive.open(info) as file:
                    while piece := file.read(1 << 20):
                        hasher.update(piece)
    except OSError:
        raise
    except Exception as error:  # zipfile and zlib each have errors of their own
        reason = " ".join(str(error).split())
        raise FileError(
            path, found=f"not a readable .npz archive ({reason})", hint="save it with numpy.savez"
        ) from None
    return hasher.hexdigest()


def _hash_sample(path: str) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    size = _stat(path).st_size
    last = max(0, size - _SAMPLE)
    try:
        with open(path, "rb") as file:
            for number in range(_SAMPLES + 1):
                file.seek(last * number // _SAMPLES)
                hasher.update(file.read(_SAMPLE))
    except OSError as error:
        raise _unreadable(path, error) from None
    hasher.update(str(size).encode())
    return hasher.hexdigest()


def _stat(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str | os.PathLike[str], error: OSError) -> FileError:
    return FileError(path, found=error.strerror or str(error), hint="check the name and the path")
