"""Scores in files, as descriptions of a few hundred bytes from which workers open them.

`describe_scores` describes the scores at a path or URL, and `save_scores` writes scores in memory.
A worker opens an `ArrayFile` by its path and reads the rows and columns that its part needs.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.files import PARSING, atomic_write, map_array, write_array
from kgtrec._internal.locations import RangedFile, is_folder, is_location, local_path, path_below
from kgtrec._internal.locks import call_locked
from kgtrec._internal.urls import url_text
from kgtrec.cluster.content_hash import MOST_HASHED_WHOLE, describe_files, hash_text
from kgtrec.cluster.question_store import read_rows
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.ranking.rows import is_consecutive
from kgtrec.scores.archives import FORMULA, check_factor_names, one_line, read_formula
from kgtrec.scores.arrays import score_dtype
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import (
    BY_COLUMN,
    SAVE_ROWS,
    RangedArray,
    ScoreShard,
    npy_header,
    read_scores,
)
from kgtrec.scores.matrices import alike
from kgtrec.scores.sources import by_part

_FACTORS = ("queries", "entities", "bias")
_PIECE_BYTES = 8 << 20  # bytes of an archive that are read at a time; at a URL, per request


@dataclass(frozen=True)
class ArrayFile:
    """An array of at most two dimensions, in a file with the layout of memory.

    ``path`` is the path of a file, or the URL of an object.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    fortran: bool = False

    @property
    def is_remote(self) -> bool:
        """True if it is in an object store, from which every worker reads the ranges it needs."""
        return is_location(self.path)

    def open(self) -> Any:
        """Open the array: a new memory map, or for a URL an array that reads only requested parts.

        Pages of the map leave this process's memory when the map is dropped.
        """
        if 0 in self.shape:
            return np.empty(self.shape, dtype=self.dtype)
        if self.is_remote:
            return RangedArray(RangedFile(self.path), self.offset, self.shape, self.dtype)
        order: Any = "F" if self.fortran else "C"
        try:
            return np.memmap(
                self.path, self.dtype, "r", offset=self.offset, shape=self.shape, order=order
            )
        except (OSError, ValueError) as error:
            raise FileError(
                self.path,
                found=f"the file can no longer be mapped ({error})",
                hint="do not move or change it until everything is ranked",
            ) from None

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Files:
    """Scores as arrays in files.

    - selection: A ``.npy`` with the file row of each row of the ranking; "" if they are equal.
    - location: The path or URL that the user gave.
    - columns: A ``.npy`` with the file column of each entity; "" if they are equal.
    - facts: Sentences on the formula of a model, which results print.
    """

    parts: tuple[ArrayFile, ...]
    selection: str = ""
    location: str = ""
    columns: str = ""
    facts: tuple[str, ...] = ()

    @property
    def arrays(self) -> dict[str, ArrayFile]:
        """All arrays, by name."""
        return {f"scores{number}": part for number, part in enumerate(self.parts)}

    @property
    def sources(self) -> list[str]:
        """Paths of the user's files."""
        return [part.path for part in self.parts]

    @property
    def n_rows(self) -> int:
        """Number of rows in the files."""
        return sum(part.shape[0] for part in self.parts)

    @property
    def n_columns(self) -> int:
        """Number of columns of a row."""
        return self.parts[0].shape[1]

    @property
    def dtype(self) -> str:
        """Name of the dtype in which scores are compared."""
        return np.dtype(self.parts[0].dtype).name

    @property
    def itemsize(self) -> int:
        """Bytes per score."""
        return np.dtype(self.dtype).itemsize


class ScoreFiles(Files):
    """Matrices of consecutive rows."""

    def block(self, first: int, stop: int, columns: slice) -> Array:
        """Return the scores (rows, columns) of rows of the ranking.

        They are mapped if one file has them in this order, else copied.
        """
        rows = _read_selection(self.selection, first, stop)
        if self.columns:
            order = np.array(map_array(self.columns)[columns])
            low, high = (int(order.min()), int(order.max()) + 1) if len(order) else (0, 0)
            in_file = replace(self, columns="").block(first, stop, slice(low, high))
            ordered: Array = in_file.take(order - low, axis=1)
            return ordered
        parts = [
            (self.parts[number], targets, part_rows)
            for number, targets, part_rows in self._by_part(rows)
        ]
        if len(parts) == 1 and is_consecutive(rows):
            part, _, part_rows = parts[0]
            whole: Array = part.open()[
                int(part_rows[0]) : int(part_rows[0]) + len(part_rows), columns
            ]
            return whole
        width = len(range(*columns.indices(self.n_columns)))
        block = np.empty((len(rows), width), dtype=self.parts[0].dtype)
        for part, targets, part_rows in parts:
            matrix = part.open()
            if isinstance(matrix, RangedArray):
                block[targets] = matrix[part_rows, columns]
                continue
            for target, row in zip(targets.tolist(), part_rows.tolist(), strict=True):
                block[target] = matrix[row, columns]
        return block

    def elements(self, rows: Int64, columns: Array) -> Array:
        """Return single scores (n,), one per row of the ranking and its column; both (n,)."""
        values = np.empty(len(rows), dtype=self.parts[0].dtype)
        if not len(rows):
            return values
        if self.columns:
            columns = read_rows(map_array(self.columns), columns)
        first = int(rows.min())
        rows = _read_selection(self.selection, first, int(rows.max()) + 1)[rows - first]
        for number, targets, part_rows in self._by_part(rows):
            part = self.parts[number]
            if part.fortran or 0 in part.shape:
                values[targets] = part.open()[part_rows, columns[targets]]
                continue
            flat = replace(part, shape=(part.shape[0] * part.shape[1],))
            values[targets] = read_rows(flat.open(), part_rows * part.shape[1] + columns[targets])
        return values

    def _by_part(self, rows: Int64) -> Iterator[tuple[int, Int64, Int64]]:
        """Yield per file: its number, the indices of its rows in `rows`, and the rows in it."""
        return by_part([part.shape[0] for part in self.parts], rows)


@dataclass(frozen=True)
class FactorFiles(Files):
    """A factorised model as arrays of queries, entities and, if it has any, biases (`Factors`).

    - origin: The user's files from which the arrays were computed; () if the arrays are in them.
    - formula: How the arrays were computed, as JSON.
    - span: First row that has a query, and number of rows; None if all rows have one.
    """

    metric: str = "dot"
    origin: tuple[str, ...] = ()
    formula: str = ""
    span: tuple[int, int] | None = None

    @property
    def queries(self) -> ArrayFile:
        """Vectors of the rows."""
        return self.parts[0]

    @property
    def entities(self) -> ArrayFile:
        """Vectors of the columns."""
        return self.parts[1]

    @property
    def bias(self) -> ArrayFile | None:
        """Biases of the columns."""
        return self.arrays.get("bias")

    @property
    def arrays(self) -> dict[str, ArrayFile]:
        return dict(zip(_FACTORS, self.parts, strict=False))

    @property
    def sources(self) -> list[str]:
        if self.origin:
            return [*self.origin]
        # The archive, if it was unpacked for workers.
        return [self.location] if self.location else super().sources

    @property
    def n_rows(self) -> int:
        return self.queries.shape[0] if self.span is None else self.span[1]

    @property
    def n_columns(self) -> int:
        return self.entities.shape[0]

    @property
    def dtype(self) -> str:
        double = any(np.dtype(part.dtype).itemsize == 8 for part in self.parts)
        return "float64" if double else "float32"

    def read_queries(self, first: int, stop: int) -> Array:
        """Return a copy of the query vectors of rows of the ranking."""
        if self.span is not None:
            start = self.span[0]
            assert start <= first <= stop <= start + self.queries.shape[0]
            first, stop = first - start, stop - start
        if not self.selection:
            return np.array(self.queries.open()[first:stop])
        return read_rows(self.queries.open(), _read_selection(self.selection, first, stop))

    def factors(self, queries: Array, entities: slice | Array) -> Factors:
        """Return the model of some queries and entities.

        A slice of entities is mapped if file columns are entity ids, else copied.
        """
        if self.columns:
            entities = np.array(map_array(self.columns)[entities])
        bias = None if self.bias is None else _read_rows(self.bias, entities)
        table = _read_rows(self.entities, entities)
        # The computing type must not depend on the part of the model.
        if self.dtype == "float64":
            queries = queries.astype(np.float64, copy=False)
        return Factors(queries, table, bias, self.metric)


def _read_rows(array: ArrayFile, rows: slice | Array) -> Array:
    """Return rows of an array: a slice of them mapped, single ones read."""
    values: Array = array.open()[rows] if isinstance(rows, slice) else read_rows(array.open(), rows)
    return values


def identify_scores(files: Files) -> dict[str, Any]:
    """Describe the content of score files in plain JSON types."""
    factors = isinstance(files, FactorFiles)
    shape = {"rows": files.n_rows, "columns": files.n_columns, "dtype": files.dtype}
    more: dict[str, Any] = {}
    if isinstance(files, FactorFiles):
        more["metric"] = files.metric
        more |= {"facts": [*files.facts]} if files.facts else {}
        more |= {"formula": files.formula} if files.formula else {}
    return shape | more | describe_files(files.sources, whole=factors)


def local_paths(files: Files | None) -> list[str]:
    """Return the paths of files of this machine that workers open: arrays, rows and columns."""
    if files is None:
        return []
    paths = [array.path for array in files.parts if not array.is_remote]
    return paths + [path for path in (files.selection, files.columns) if path]


def move_files(
    files: Files | None,
    array_at: Callable[[str, ArrayFile], ArrayFile],
    selection: str,
    columns: str,
) -> Files | None:
    """Return the same scores at other paths.

    - array_at: Returns the new file of an array of this machine, from its name and file.
    - selection, columns: New paths of the files of rows and of columns.
    """
    if files is None:
        return None
    parts = tuple(
        part if part.is_remote else array_at(name, part) for name, part in files.arrays.items()
    )
    return replace(
        files,
        parts=parts,
        selection=selection if files.selection else "",
        columns=columns if files.columns else "",
    )


def _read_selection(selection: str, first: int, stop: int) -> Int64:
    """Return the file rows of rows of the ranking; "" selects equal rows."""
    return np.array(map_array(selection)[first:stop]) if selection else np.arange(first, stop)


def describe_scores(path: PathName, work: PathName) -> Files:
    """Describe the scores at a path, without reading them into memory."""
    if is_location(path):
        path = local_path(path) or url_text(os.fspath(path))
    if Path(path).suffix == ".npz" and not is_folder(path):
        return _describe_archive(path, Path(work))
    parts = read_scores(path)
    assert not isinstance(parts, Factors)  # an archive, which is described above
    first = parts[0].values
    for matrix, name, _ in parts:
        score_dtype(matrix, name)
        if not alike(matrix, first):
            raise FileError(
                name,
                found=f"{matrix.shape[1]} columns of {matrix.dtype}, but {first.shape[1]} of "
                f"{first.dtype} in the first shard",
                hint="save all shards with the same columns and dtype",
            )
    files = tuple(_describe_matrix(part.values, part.file) for part in parts)
    return ScoreFiles(files, location=str(path))


def _describe_matrix(matrix: Any, path: str) -> ArrayFile:
    """Return the file of a mapped matrix, or of one at a URL."""
    if isinstance(matrix, np.ndarray):
        matrix = ScoreShard(Path(path), matrix)
    fortran = isinstance(matrix, ScoreShard) and matrix.by_column
    return ArrayFile(_real_name(path), matrix.offset, matrix.shape, matrix.dtype.str, fortran)


def _real_name(path: PathName) -> str:
    """Return a URL unchanged, and a path without links."""
    return os.fspath(path) if is_location(path) else os.path.realpath(path)


def save_scores(source: Array | Factors, folder: Path) -> Files:
    """Write scores in memory to files that workers can open, named after their content."""
    if isinstance(source, Factors):
        members = {name: getattr(source, name) for name in _FACTORS}
        arrays = {name: array for name, array in members.items() if array is not None}
    else:
        arrays = {"scores": source}
        if source.ndim != 2:
            raise UsageError(
                f"scores of type {type(source).__name__} have no file that workers can open; "
                "pass a path, a two-dimensional array or Factors"
            )
        score_dtype(source)
    hasher = hashlib.blake2b(digest_size=16)
    if sum(array.nbytes for array in arrays.values()) > MOST_HASHED_WHOLE:
        hasher.update(secrets.token_bytes(16))
    else:
        for array in arrays.values():
            hasher.update(f"{array.shape} {array.dtype}".encode())
            hasher.update(np.ascontiguousarray(array).data)
    subfolder = folder / hasher.hexdigest()
    subfolder.mkdir(parents=True, exist_ok=True)
    parts = tuple(_save_array(array, subfolder / f"{name}.npy") for name, array in arrays.items())
    if isinstance(source, Factors):
        return FactorFiles(parts, metric=source.metric, facts=source.facts)
    return ScoreFiles(parts)


def _save_array(array: Array, path: Path) -> ArrayFile:
    """Write an array to a file, unless it is mapped from one; return the file."""
    if isinstance(array, np.memmap) and array.flags.c_contiguous and array.filename is not None:
        base = array.base
        # The file of a copy-on-write map ("c") lacks what was written to the array.
        if type(base).__name__ == "mmap" and array.mode != "c":
            return _describe_matrix(array, str(array.filename))
    with atomic_write(path) as file:
        write_array(file, np.ascontiguousarray(array))
    return _describe_matrix(map_array(path), str(path))


# -- Archives ----------------------------------------------------------------------------------


def _read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """Read a small array of an archive."""
    with archive.open(name) as member:
        return call_locked(PARSING, lambda: np.lib.format.read_array(member, allow_pickle=False))


def _describe_archive(path: PathName, work: Path) -> FactorFiles:
    """Return the arrays of an archive: in place if they are uncompressed, else unpacked."""
    try:
        with (
            RangedFile(path).stream() if is_location(path) else open(path, "rb") as file,
            zipfile.ZipFile(file) as archive,
        ):
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            check_factor_names(path, members)
            packed = any(info.compress_type != zipfile.ZIP_STORED for info in members.values())
            metric = "dot"
            if "metric" in members:
                metric = str(_read_member(archive, "metric.npy"))
            facts: tuple[str, ...] = ()
            if FORMULA in members:
                facts = read_formula(path, _read_member(archive, f"{FORMULA}.npy")).facts
            content = [(info.filename, info.CRC, info.file_size) for info in archive.infolist()]
            unpacked = work / f"factors-{hash_text(str(content))}" if packed else None
            infos = [members[name] for name in _FACTORS if name in members]
            parts = tuple(_open_member(file, archive, info, path, unpacked) for info in infos)
        return _check_factors(FactorFiles(parts, location=str(path), metric=metric, facts=facts))
    except (FileError, MemoryError):
        raise
    except (InputError, UsageError) as error:
        hint = "correct the arrays and save them again"
        raise FileError(path, found=str(error), hint=hint) from None
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own
        if isinstance(error, OSError) and error.errno is not None:
            read_scores(path)  # raises an error with the reason
        problem = f"not a readable .npz archive ({one_line(error)})"
        raise FileError(path, found=problem, hint="save it with numpy.savez") from None


def _check_factors(files: FactorFiles) -> FactorFiles:
    """Return the files; raise the error of `Factors` if their shapes do not fit."""
    small: dict[str, Any] = {
        name: np.zeros((*(min(n, 1) for n in part.shape[:1]), *part.shape[1:]), part.dtype)
        for name, part in files.arrays.items()
    }
    Factors(**small, metric=files.metric)
    if files.bias is not None and files.bias.shape[0] != files.n_columns:
        raise InputError(
            f"bias has {files.bias.shape[0]} values for {files.n_columns} entities; give one per "
            "entity"
        )
    return files


def _open_member(
    file: BinaryIO,
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    path: PathName,
    unpacked: Path | None,
) -> ArrayFile:
    """Return a member of an archive, in place, or unpacked into the folder `unpacked`."""
    if unpacked is None:
        file.seek(info.header_offset + 26)  # lengths of the name and the extra field, which follow
        name, extra = struct.unpack("<HH", file.read(4))
        return _describe_npy(file, path, info.header_offset + 30 + name + extra, info.file_size)
    unpacked.mkdir(parents=True, exist_ok=True)
    target = path_below(unpacked, info.filename, path)
    if not _is_unpacked(target, info):
        with archive.open(info) as source, atomic_write(target) as out:
            shutil.copyfileobj(source, out, _PIECE_BYTES)
    with open(target, "rb") as copy:
        return _describe_npy(copy, target, 0, info.file_size)


def _is_unpacked(target: Path, info: zipfile.ZipInfo) -> bool:
    """Return whether a file has the content of a member of an archive."""
    checksum = size = 0
    with suppress(OSError), open(target, "rb") as file:
        while piece := file.read(1 << 20):
            checksum, size = zlib.crc32(piece, checksum), size + len(piece)
    return (checksum, size) == (info.CRC, info.file_size)


def _describe_npy(file: BinaryIO, path: PathName, start: int, size: int) -> ArrayFile:
    """Describe the array of `size` bytes whose ``.npy`` header begins at byte `start` of a file."""
    file.seek(start)
    begin, shape, by_column, dtype = npy_header(file)
    if dtype.hasobject:
        raise ValueError("it contains Python objects")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"it has the shape {shape}")
    needed, available = math.prod(shape) * dtype.itemsize, start + size - begin
    if needed > available:
        raise ValueError(
            f"the array has {needed:,} bytes, but the file has only {available:,} of them"
        )
    if by_column and is_location(path):
        raise FileError(path, found=BY_COLUMN, hint=SAVE_ROWS)
    return ArrayFile(_real_name(path), begin, shape, dtype.str, by_column)
