"""Scores in files: a ``.npy`` matrix, a folder of ``.npy`` shards, an ``.npz`` with `Factors`.

Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.locations import fetched, is_location, names_in
from kgtrec._internal.npy_files import map_array
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import Watch
from kgtrec.scores.ranged import ranged_matrix
from kgtrec.scores.sources import JoinedSource, MatrixSource, Source

__all__ = ["check_factor_names", "load_matrix", "load_scores", "one_line"]

_MAGIC = b"\x93NUMPY"
_FACTORS = ("queries", "entities", "bias", "metric")
_SAVE_AGAIN = "save the scores again with numpy.save, as an array of floats"


def load_scores(path: str | PathLike[str]) -> Source | Factors:
    """A ``.npy`` matrix, a folder of ``.npy`` shards, or an ``.npz`` with a factorised model.

    Shards are joined in the order of their names, numbers in them counted as numbers: ``2.npy``
    comes before ``10.npy``. Hidden files are passed over.

    Raises
    ------
    FileError
        The path does not exist or cannot be read, or holds something else.
    """
    if is_location(path):
        return _load_from_url(os.fspath(path))
    path = Path(path)
    try:
        os.stat(path)
        if path.is_dir():
            return _load_shards(path)
        if path.suffix == ".npz":
            return _load_factors(path)
        return _load_matrix(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def load_matrix(path: str | PathLike[str]) -> npt.NDArray[Any]:
    """The matrix of one ``.npy`` file, memory-mapped; FileError if it is something else.

    Of one at a URL a copy is mapped, which takes its place on the disk until the matrix is dropped.
    """
    with fetched(path) as copy:
        try:
            os.stat(copy)
            return _load_matrix(copy).matrix
        except OSError as error:
            raise _unreadable(copy, error) from None


def _load_from_url(url: str) -> Source | Factors:
    """As `load_scores`; rows of matrices are read when they are asked for."""
    if url.endswith(".npz"):
        with fetched(url) as copy:
            return _load_factors(copy)
    names = names_in(url)
    if names is not None:
        base = url.rstrip("/")
        return JoinedSource([ranged_matrix(f"{base}/{name}") for name in _shards(url, names)])
    if not url.endswith(".npy"):
        problem = _kind(Path(url))
        raise FileError("", found=problem, hint="save the scores as .npy").at(url)
    return ranged_matrix(url)


def _load_shards(folder: Path) -> JoinedSource:
    names = [entry.name for entry in os.scandir(folder)]
    return JoinedSource([_load_matrix(folder / name) for name in _shards(folder, names)])


def _shards(folder: str | Path, names: list[str]) -> list[str]:
    """Names of shards in their order."""
    shown = (name for name in names if not name.startswith("."))
    shards = sorted((name for name in shown if name.endswith(".npy")), key=_by_number)
    if not shards:
        problem = "no .npy shard in this folder"
        raise FileError("", found=problem, hint="name another folder").at(str(folder))
    return shards


def _by_number(name: str) -> tuple[list[str | int], str]:
    """Sort key in which numbers count as numbers; texts and numbers alternate."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if number % 2 else part for number, part in enumerate(parts)], name


def _load_matrix(path: Path) -> MatrixSource:
    """A ``.npy`` file, memory-mapped."""
    if path.suffix != ".npy":
        raise FileError(path, found=_kind(path), hint="save the scores with numpy.save as .npy")
    watch = Watch([path])
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC))
    if start and not _MAGIC.startswith(start):
        raise FileError(
            path, found=f"no .npy array: it begins with {start!r}, not {_MAGIC!r}", hint=_SAVE_AGAIN
        )
    try:
        matrix = map_array(path)
    except OSError:
        raise
    except Exception as error:  # the header is parsed as Python, which has errors of its own
        raise FileError(
            path,
            found=f"not a readable .npy array ({one_line(error)})",
            hint=f"the file may be cut short or hold Python objects: {_SAVE_AGAIN}",
        ) from None
    try:
        return MatrixSource(matrix, str(path), watch)
    except InputError as error:
        problem, hint = str(error).split("; ", 1)
        raise FileError(path, found=problem, hint=hint) from None


def _kind(path: Path) -> str:
    if path.suffix == ".parquet":
        return (
            "a Parquet file is not a score matrix (saved ranks are for Ranks.load or kgtrec report)"
        )
    name = f"named {path.suffix}" if path.suffix else "without suffix"
    return f"a file {name} is not a score matrix"


def check_factor_names(path: str | PathLike[str], names: Iterable[str]) -> None:
    """FileError if an archive lacks an array of a factorised model, or holds another one."""
    arrays = set(names)
    if not {"queries", "entities"} <= arrays:
        raise FileError(
            path,
            found=f"arrays {sorted(arrays)}, but a factorised model needs 'queries' and 'entities'",
            hint="save queries (rows, dim), entities (entities, dim) and, if any, bias; "
            "or save a score matrix as .npy",
        )
    unknown = sorted(arrays - set(_FACTORS))
    if unknown:  # a bias under another name would be lost without a word
        raise FileError(
            path,
            found=f"arrays of unknown meaning: {', '.join(map(repr, unknown))}",
            hint=f"leave them out; a factorised model has {', '.join(_FACTORS)}",
        )


def _load_factors(path: Path) -> Factors:
    watch = Watch([path])
    arrays = _read_archive(path)
    watch.check()
    check_factor_names(path, arrays)
    metric = str(arrays["metric"]) if "metric" in arrays else "dot"
    try:
        return Factors(arrays["queries"], arrays["entities"], arrays.get("bias"), metric)
    except (InputError, UsageError) as error:
        raise FileError(
            path, found=str(error), hint="correct the arrays and save them again"
        ) from None


def _read_archive(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        if error.errno is not None:
            raise _unreadable(path, error) from None
        reason = one_line(error)
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own
        reason = one_line(error)
    raise FileError(
        path, found=f"not a readable .npz archive ({reason})", hint="save it with numpy.savez"
    )


def one_line(error: BaseException) -> str:
    """What an error of a decoder says, in one line of reasonable length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else f"{text[:160]}..."


def _unreadable(path: Path, error: OSError) -> FileError:
    hint = "check the path and its permissions"
    if error.errno == errno.ENOMEM:
        hint = "hand over a folder of smaller shards, or raise the limit on memory (ulimit -v)"
    elif error.errno == errno.ENOENT:
        hint = "check the name and the working folder"
    return FileError(path, found=error.strerror or str(error), hint=hint)
