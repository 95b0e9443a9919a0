"""What a path to scores holds, and scores in memory as files: see `kgtrec.cluster.array_files`."""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from kgtrec._internal.atomic_file import atomic_write
from kgtrec._internal.locations import RangedFile, is_folder, is_location, local_path
from kgtrec._internal.npy_files import PARSING, map_array, write_array
from kgtrec.cluster.array_files import ArrayFile, FactorFiles, Files, ScoreFiles
from kgtrec.cluster.question_store import hash_text
from kgtrec.errors import FileError, InputError, UsageError, url_text
from kgtrec.scores.arrays import score_dtype
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import check_factor_names, load_scores, one_line
from kgtrec.scores.ranged import BY_COLUMN, SAVE_ROWS
from kgtrec.scores.sources import JoinedSource, MatrixSource

__all__ = ["ArrayFile", "FactorFiles", "Files", "ScoreFiles", "describe_scores", "save_scores"]

Array = npt.NDArray[Any]

_PIECE = 8 << 20  # bytes of an archive that are read at a time: of one at a URL, in a request


def describe_scores(path: str | os.PathLike[str], work: str | os.PathLike[str]) -> Files:
    """What a path to scores holds, nothing of it in memory.

    Parameters
    ----------
    path : path
        A ``.npy`` matrix, a folder of them, or an ``.npz`` with a factorised model.
    work : path
        Folder in which the arrays of a compressed ``.npz`` are unpacked.

    Raises
    ------
    FileError
        As `kgtrec.scores.files.load_scores`.
    """
    if is_location(path):
        path = local_path(path) or url_text(os.fspath(path))
    if Path(path).suffix == ".npz" and not is_folder(path):
        return _factor_files(path, Path(work))
    source = load_scores(path)
    assert isinstance(source, (MatrixSource, JoinedSource))
    parts = source.parts if isinstance(source, JoinedSource) else [source]
    first = parts[0].matrix
    for part in parts:
        score_dtype(part.matrix, part.place)
        if (part.matrix.shape[1], part.matrix.dtype) != (first.shape[1], first.dtype):
            raise FileError(
                part.place,
                found=f"{part.matrix.shape[1]} columns of {part.matrix.dtype}, and "
                f"{first.shape[1]} of {first.dtype} before",
                hint="write all shards alike",
            )
    files = tuple(_mapped(part.matrix, part.place) for part in parts)
    return ScoreFiles(files, place=str(path))


def _mapped(matrix: Any, place: str) -> ArrayFile:
    if is_location(place):
        return ArrayFile(place, matrix.offset, matrix.shape, matrix.dtype.str)
    fortran = matrix.flags.f_contiguous and not matrix.flags.c_contiguous
    return ArrayFile(
        os.path.realpath(place), matrix.offset, matrix.shape, matrix.dtype.str, fortran
    )


def save_scores(source: Any, folder: str | os.PathLike[str]) -> Files:
    """A matrix or `Factors` in memory, as files that every worker can open."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Factors):
        arrays = {"queries": source.queries, "entities": source.entities, "bias": source.bias}
        files: dict[str, Any] = {
            name: _save(array, folder / f"{name}.npy")
            for name, array in arrays.items()
            if array is not None
        }
        return FactorFiles(**files, metric=source.metric)
    if not isinstance(source, np.ndarray) or source.ndim != 2:
        raise UsageError(
            f"scores of type {type(source).__name__} have no file that workers could open; "
            "hand over a path, a two-dimensional array or Factors"
        )
    score_dtype(source)
    return ScoreFiles((_save(source, folder / "scores.npy"),))


def _save(array: Array, path: Path) -> ArrayFile:
    if isinstance(array, np.memmap) and array.flags.c_contiguous and array.filename is not None:
        base = array.base
        # The file of a copy-on-write map ("c") does not hold what was written to the array.
        if type(base).__name__ == "mmap" and array.mode != "c":
            return _mapped(array, str(array.filename))
    with atomic_write(path) as file:
        write_array(file, np.ascontiguousarray(array))
    return _mapped(map_array(path), str(path))


# -- Archives ----------------------------------------------------------------------------------


def _factor_files(path: str | os.PathLike[str], work: Path) -> FactorFiles:
    """The arrays of an archive, opened where they stand in it uncompressed, else unpacked."""
    try:
        with _stream(path) as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            check_factor_names(path, members)
            packed = any(info.compress_type != zipfile.ZIP_STORED for info in members.values())
            metric = _metric(archive) if "metric" in members else "dot"
            unpacked = work / f"factors-{_archive_hash(archive)}" if packed else None
            arrays: dict[str, Any] = {
                name: _member(archive, info, path, unpacked)
                for name, info in members.items()
                if name != "metric"
            }
        files = FactorFiles(**arrays, metric=metric, place=str(path))
        _check_factors(files, path)
    except (FileError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own
        if isinstance(error, OSError) and error.errno is not None:
            load_scores(path)  # names the reason
        raise FileError(
            path, found=f"not a readable .npz archive ({one_line(error)})",
            hint="save it with numpy.savez",
        ) from None  # fmt: skip
    return files


def _stream(path: str | os.PathLike[str]) -> BinaryIO:
    return RangedFile(path).stream() if is_location(path) else open(path, "rb")


def _check_factors(files: FactorFiles, path: str | os.PathLike[str]) -> None:
    """What `Factors` demands, of the shapes alone."""
    try:
        one = {
            name: np.zeros(
                [min(n, 1) for n in array.shape[:1]] + list(array.shape[1:]), array.dtype
            )
            for name in ("queries", "entities", "bias")
            if (array := getattr(files, name)) is not None
        }
        Factors(one["queries"], one["entities"], one.get("bias"), files.metric)
        if files.bias is not None and files.bias.shape[0] != files.n_columns:
            raise InputError(
                f"bias has {files.bias.shape[0]} values for {files.n_columns} entities; "
                "give one each"
            )
    except (InputError, UsageError) as error:
        raise FileError(
            path, found=str(error), hint="correct the arrays and save them again"
        ) from None


def _archive_hash(archive: zipfile.ZipFile) -> str:
    return hash_text(
        str([(info.filename, info.CRC, info.file_size) for info in archive.infolist()])
    )


def _metric(archive: zipfile.ZipFile) -> str:
    with archive.open("metric.npy") as file, PARSING:
        return str(np.lib.format.read_array(file, allow_pickle=False))


def _member(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    path: str | os.PathLike[str],
    unpacked: Path | None,
) -> ArrayFile:
    if unpacked is not None:
        unpacked.mkdir(parents=True, exist_ok=True)
        target = unpacked / Path(info.filename).name
        if not _holds(target, info):
            with archive.open(info) as source, atomic_write(target) as out:
                while piece := source.read(_PIECE):
                    out.write(piece)
        return _npy_at(target, 0, target.stat().st_size)
    with _stream(path) as file:
        file.seek(info.header_offset + 26)  # the lengths of name and extra field, which follow
        name, extra = struct.unpack("<HH", file.read(4))
    return _npy_at(path, info.header_offset + 30 + name + extra, info.file_size)


def _holds(target: Path, info: zipfile.ZipInfo) -> bool:
    """Whether a file has been unpacked from a member of an archive, and is still as it was."""
    try:
        if os.stat(target).st_size != info.file_size:
            return False
        checksum = 0
        with open(target, "rb") as file:
            while piece := file.read(1 << 20):
                checksum = zlib.crc32(piece, checksum)
    except OSError:
        return False
    return checksum == info.CRC


def _npy_at(path: str | os.PathLike[str], start: int, size: int) -> ArrayFile:
    """The array whose ``.npy`` header begins at a byte of a file, and that has so many bytes."""
    with _stream(path) as file:
        file.seek(start)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        with PARSING:
            shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise ValueError("Python objects")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError(f"an array of shape {shape}")
        needed, there = math.prod(shape) * dtype.itemsize, start + size - file.tell()
        if needed > there:
            raise ValueError(f"an array of {needed:,} bytes, of which {there:,} are there")
        if is_location(path):
            if fortran and len(shape) > 1:
                raise FileError(path, found=BY_COLUMN, hint=SAVE_ROWS)
            return ArrayFile(os.fspath(path), file.tell(), shape, dtype.str)
        return ArrayFile(os.path.realpath(path), file.tell(), shape, dtype.str, fortran)
