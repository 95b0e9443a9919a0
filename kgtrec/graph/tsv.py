"""Triples from tab-separated files, through pyarrow.

The fast way never looks at single lines. When it stumbles, or finds something that may have been
misread (a lone carriage return, a NUL, an empty label), `tsv_lines.scan` walks the file line by
line, and says which line is wrong and a hint.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError, FilterWarning
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv_errors import CODECS, WANTED, damaged, open_packed, scan

__all__ = ["NUMBERED", "SPLITS", "find_split_files", "has_splits", "load_triples"]

SPLITS = ("train", "valid", "test")
NUMBERED = "2id.txt"  # how the names of OpenKE's files end

_STEMS = {"train": "train", "valid": "valid", "dev": "valid", "test": "test"}
_NAMES = {
    stem + suffix + packed: split
    for stem, split in _STEMS.items()
    for suffix in (".txt", ".tsv", "")
    for packed in ("", *CODECS)
}
_WORDS = {
    "train": "train", "training": "train",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_HOLDS_TRIPLES = re.compile(
    r"[^.]+(\.(txt|tsv|csv|tab|del|dat|nt|triples))?(\.(gz|zst|bz2|xz|zip))?", re.IGNORECASE
)
_INDUCTIVE = re.compile(
    r"((inference|inductive|msg)(_[a-z]+)?|inf_(valid|test)|(train|valid|test)_ind|"
    r"transductive_[a-z]+)\.(txt|tsv)(\.(gz|zst))?",
    re.IGNORECASE,
)
_NOT_SPLITS = ("test2id_all.txt",)  # OpenKE's test triples once more, by the kind of their relation
_NAMING = (
    "name the files train, valid (or dev), test, ending in .txt, .tsv or nothing, "
    "optionally packed as .gz or .zst"
)
_BLOCK = 16 << 20
_LARGEST_BLOCK = (1 << 31) - 1


class _Suspect(Exception):
    """The fast way met bytes that it might misread."""


class _Stopped(Exception):
    """The user has interrupted the reading."""


def has_splits(names: Iterable[str]) -> bool:
    """Whether files of these names are splits, tab-separated or in OpenKE's format."""
    return any(name in _NAMES or name.removesuffix(NUMBERED) in SPLITS for name in names)


def find_split_files(folder: str | PathLike[str]) -> dict[str, Path]:
    """Files of the splits in a folder, in the order train, valid, test.

    Those of OpenKE's format, ``train2id.txt`` and so on, where there are no others.

    Raises
    ------
    FileError
        If the folder is missing or a file, if it holds no split, or two files for one split.
    """
    folder = Path(folder)
    advice = "give the folder that holds train.txt, valid.txt and test.txt"
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        names = [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        raise FileError(folder, found="this folder does not exist", hint=advice) from None
    except NotADirectoryError:
        raise FileError(folder, found="this is a file, not a folder", hint=advice) from None
    except OSError as error:
        raise FileError(folder, found=f"cannot be listed ({error.strerror})", hint=advice) from None
    _refuse_inductive(folder, names)
    files: dict[str, Path] = {}
    for name in names:
        split = _NAMES.get(name)
        if split is None:
            continue
        if split in files:
            both = f"{files[split].name!r} and {name!r}"
            raise FileError(
                folder, found=f"two files for split {split!r}: {both}", hint="keep one of them"
            )
        files[split] = folder / name
    named = files or {s: folder / (s + NUMBERED) for s in SPLITS if s + NUMBERED in names}
    if not named:
        raise _no_split(folder)
    _check_overlooked(folder, entries, named)
    files = named
    return {split: files[split] for split in SPLITS if split in files}


def _check_overlooked(
    folder: Path, entries: list[os.DirEntry[str]], files: dict[str, Path]
) -> None:
    """A split that is missed without a word would go missing from the filter, too."""
    for entry in entries:
        name = entry.name
        if _NAMES.get(name) not in (None, *files):
            raise FileError(
                folder / name,
                found="no regular file (a folder, or a link to nothing?)",
                hint=f"put the triples of split {_NAMES[name]!r} there, or take it away",
            )
    names = [entry.name for entry in entries if entry.is_file()]
    unread = [name for name in names if folder / name not in files.values()]
    for name, split in ((name, _split_like(name)) for name in unread):
        if split is None:
            continue
        if split in files and name == split + NUMBERED:  # the same in OpenKE's format, as may be
            continue
        triples = _HOLDS_TRIPLES.fullmatch(name)
        missed = f"split {split!r} is not read: {name!r} is not a name for it"
        if split not in files and triples:
            hint = f"{_NAMING}; or move it away, if its triples are not to be filtered"
            raise FileError(folder, found=missed, hint=hint)
        message = f"{missed}; {_NAMING}"
        if split in files:
            message = f"{name!r} is not read: split {split!r} is {files[split].name!r}"
        if split not in files or triples:
            warnings.warn(
                f"{folder}: {message}", FilterWarning, stacklevel=4
            )  # read_graph's caller


def _refuse_inductive(folder: Path, names: list[str]) -> None:
    """Folders with a graph for inference beside that of training are not to be half-read."""
    inductive = [name for name in names if _INDUCTIVE.match(name)]
    if inductive:
        raise FileError(
            folder,
            found=f"{', '.join(map(repr, inductive))} beside the splits: a folder of an inductive "
            "benchmark, of which only a part would be read",
            hint="say what it is: ilpc:DIR, grail:DIR or ultra:DIR ask its inference graph; or put "
            "the graph that is asked into a folder of its own, as train, valid and test",
        )


def _split_like(name: str) -> str | None:
    """The split that a file's name speaks of, if it begins or ends with the word for one."""
    if name in _NOT_SPLITS:
        return None
    stem = name.lower().partition(".")[0]
    if stem in _WORDS:
        return _WORDS[stem]
    words = [word for word in re.split("[^a-z]+", stem) if word]
    if not words or not _HOLDS_TRIPLES.fullmatch(name):
        return None
    return _WORDS.get(words[0]) or _WORDS.get(words[-1])


def _no_split(folder: Path) -> FileError:
    present = sorted(entry.name + "/" * entry.is_dir() for entry in os.scandir(folder))
    listing = ", ".join(map(repr, present[:10])) + (", ..." if len(present) > 10 else "")
    hint = _NAMING
    if any(name.endswith(NUMBERED) for name in present):
        hint = (
            "of OpenKE's format, at least one of train2id.txt, valid2id.txt, test2id.txt is needed"
        )
    return FileError(folder, found=f"no split here, only: {listing or 'nothing'}", hint=hint)


class _Guard(io.RawIOBase):
    """File object for pyarrow: drops blank lines at the end, stops at bytes it may misread.

    pyarrow takes a lone carriage return for a line end, which would tear a label in two.
    """

    def __init__(self, stream: Any, advance: Callable[[], None]) -> None:
        self.stopped = False
        self._stream = stream
        self._advance = advance
        self._held = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while True:
            if self.stopped:
                raise _Stopped
            chunk: bytes = self._stream.read(max(size - len(self._held), 1))
            if not chunk:
                break
            self._advance()
            data = self._held + chunk
            body = data.rstrip(b"\r\n")
            # Line ends wait for what follows them: at the end of the file nothing does.
            self._held = data[len(body) :]
            if len(self._held) > 1024:  # blank lines without end; two tell the same story
                _check_returns(self._held[:-1])
                self._held = b"\n\n" + self._held[-1:]
            if body:
                _check_returns(body)
                if b"\0" in body:
                    raise _Suspect("NUL")
                return body
        _check_returns(self._held[:-1] if self._held.endswith(b"\r") else self._held)
        self._held = b""
        return b""


def _check_returns(data: bytes) -> None:
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        raise _Suspect("lone carriage return")


def load_triples(
    files: dict[str, Path], progress: bool
) -> tuple[dict[str, npt.NDArray[np.int32]], Any, Any]:
    """Read the files of all splits; ids are positions in the byte order of the labels.

    Parameters
    ----------
    files : dict
        Split name to path.
    progress : bool
        Whether to draw a bar on stderr (after one second).

    Returns
    -------
    triples : dict of ndarray of int32, shape (n, 3)
        Split name to rows head, relation, tail, in file order.
    entities, relations : pyarrow.LargeBinaryArray
        Labels in id order.
    """
    from tqdm import tqdm

    size = sum(path.stat().st_size for path in files.values())
    bar = tqdm(total=size, unit="B", unit_scale=True, desc="reading", delay=1, disable=not progress)
    with bar:
        tables = {split: _read_table(path, bar) for split, path in files.items()}
        bar.set_description("sorting labels")
        triples = {
            split: np.empty((table.num_rows, 3), dtype=np.int32) for split, table in tables.items()
        }
        # Columns are taken out of the tables, so that the labels of 20 million triples are
        # freed before their ids are laid out.
        ends = [c for table in tables.values() for i in (0, 2) for c in table.column(i).chunks]
        kinds = [c for table in tables.values() for c in table.column(1).chunks]
        tables.clear()
        entities, codes = _number(_encode(ends))
        _fill(triples, (0, 2), codes)
        relations, codes = _number([(chunk.dictionary, [chunk.indices]) for chunk in kinds])
        _fill(triples, (1,), codes)
    if entities[0].as_py() == b"" or relations[0].as_py() == b"":
        for path in files.values():
            scan(path)  # raises at the line with the empty label
    return triples, entities, relations


def _read_table(path: Path, bar: Any) -> Any:
    import pyarrow as pa

    try:
        return _parse(path, _BLOCK, bar)
    except (_Suspect, pa.ArrowInvalid):
        longest = scan(path)
    # No line is wrong, so one was longer than a block.
    try:
        return _parse(path, min(2 * longest + _BLOCK, _LARGEST_BLOCK), bar)
    except (_Suspect, pa.ArrowInvalid) as error:
        raise FileError(path, found=f"the file cannot be parsed ({error})", hint=WANTED) from error


def _parse(path: Path, block: int, bar: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    raw, stream = open_packed(path)
    done = 0

    def advance() -> None:
        nonlocal done
        position = raw.tell()
        bar.update(position - done)
        done = position

    label = pa.large_binary()
    types = {"head": label, "relation": pa.dictionary(pa.int32(), label), "tail": label}
    guard = _Guard(stream, advance)

    def read() -> Any:
        return csv.read_csv(
            guard,
            csv.ReadOptions(column_names=list(COLUMNS), block_size=block),
            csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types),
        )

    # In the main thread pyarrow takes Ctrl-C for itself, and loses it: this thread stays free.
    with raw, ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(read).result()
        except OSError as error:
            raise damaged(path, error) from None
        except KeyboardInterrupt:
            guard.stopped = True
            raise


_Parts = list[tuple[Any, list[Any]]]


def _encode(chunks: list[Any]) -> _Parts:
    """Dictionary-encode label chunks; empties the list. One part per thread, in order.

    Threads take contiguous runs of chunks and share nothing; `_number` joins the dictionaries.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    workers = min(pa.cpu_count(), 8, len(chunks))
    bounds = [len(chunks) * i // workers for i in range(workers + 1)]
    runs = [pa.chunked_array(chunks[a:b]) for a, b in pairwise(bounds)]
    chunks.clear()
    with ThreadPoolExecutor(workers) as pool:
        encoded = [column.chunks for column in pool.map(pc.dictionary_encode, runs)]
    return [(part[0].dictionary, [chunk.indices for chunk in part]) for part in encoded]


def _number(parts: _Parts) -> tuple[Any, Iterator[npt.NDArray[np.int32]]]:
    """Join the dictionaries of all parts: labels in byte order, and ids chunk by chunk."""
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = pc.dictionary_encode(pa.concat_arrays([dictionary for dictionary, _ in parts]))
    order = pc.sort_indices(joined.dictionary)
    labels = joined.dictionary.take(order)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    codes = joined.indices.to_numpy()

    def ids() -> Iterator[npt.NDArray[np.int32]]:
        start = 0
        for dictionary, chunks in parts:
            renumber = rank[codes[start : start + len(dictionary)]]
            start += len(dictionary)
            for chunk in chunks:
                yield renumber[chunk.to_numpy()]

    return labels, ids()


def _fill(
    triples: dict[str, npt.NDArray[np.int32]],
    columns: tuple[int, ...],
    chunks: Iterator[npt.NDArray[np.int32]],
) -> None:
    """Lay chunks of ids out, column after column of split after split."""
    for rows in triples.values():
        for column in columns:
            start = 0
            while start < len(rows):
                chunk = next(chunks)
                rows[start : start + len(chunk), column] = chunk
                start += len(chunk)
