"""Tab-separated files: finds the splits of a folder, and reads their triples natively.

The fast reader looks only for tabs and line ends. At a malformed line it stops; then
`kgtrec.graph.readers.faults` reads the file line by line, and reports the first bad line.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._core import LABEL_PAD, LabelTable, TripleLines, renumber_triples
from kgtrec._internal.arrays import Int32
from kgtrec._internal.encodings import explain_encoding, wide_encoding
from kgtrec._internal.system import reason_of
from kgtrec._internal.threads import available_cores, can_start_threads
from kgtrec._internal.unpacking import UnpackedStream
from kgtrec.errors import FileError, FilterWarning, PathName, refuse
from kgtrec.graph.labels import Labels, order_labels
from kgtrec.graph.triples import SPLITS

CODECS = {".gz": "gzip", ".zst": "zstd"}
BOM = b"\xef\xbb\xbf"


def open_packed(path: Path) -> tuple[Any, Any]:
    """Open a file; return it as stored, and the stream of its unpacked bytes."""
    try:
        raw = open(path, "rb")  # noqa: SIM115 (closed by the callers, with the stream over it)
    except OSError as error:
        reason = reason_of(error)
        raise FileError(
            path, found=f"cannot be read ({reason})", hint="check the file and its permissions"
        ) from None
    codec = CODECS.get(path.suffix)
    if codec is None:
        return raw, raw
    import pyarrow as pa

    unpacked = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec)
    return raw, UnpackedStream(path, raw, unpacked)


def damage_error(path: Path, error: OSError) -> FileError:
    """Make the error for a file whose bytes cannot be read or unpacked."""
    return FileError(
        path,
        found=f"reading failed ({error})",
        hint="the file is damaged: download or compress it again",
    )


def quote_line(line: bytes, limit: int = 60) -> str:
    """Quote the start of a line for messages."""
    text = line[: limit * 4].decode("utf-8", "backslashreplace")
    return repr(text) if len(text) <= limit else repr(text[:limit]) + "..."


def iterate_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and text of every line of a plain or packed file."""
    raw, stream = open_packed(path)
    with raw:
        try:
            reader = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
            for number, line in enumerate(reader, start=1):
                if number == 1 and (encoding := wide_encoding(line)):
                    refuse(path, None, *explain_encoding(encoding))
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                yield number, text.removeprefix(BOM) if number == 1 else text
        except OSError as error:
            raise damage_error(path, error) from None


Triples = Int32
Advance = Callable[[int], None]
Explain = Callable[[Path], object]

_BLOCK = 1 << 20
"""Bytes per read, few enough that they and their labels stay in the cache."""
_LARGEST_BLOCK = 1 << 31
_ALONE = 64 << 20  # files below this size are not worth a second thread


class _Faulty(Exception):
    """A line is malformed."""


def load_facts(
    files: Mapping[str, Path],
    n_tabs: Mapping[str, int],
    explain: Explain,
    progress: bool = False,
    columns: str = "hrt",
    with_heading: Container[str] = (),
) -> tuple[dict[str, Triples], Labels, Labels, Any]:
    """Read the facts of all splits: int32 (n, 3), or (n, 4) with a time if there are more tabs.

    Ids are positions in the byte order of the labels, or in numeric order if all are whole numbers.
    ``explain`` raises the fault of a file. The first line of a split ``with_heading`` is skipped.
    Also returns labels of entities, labels of relations, and an Arrow array of the times in byte
    order. A time may be an interval.
    """
    entities, relations, times = (LabelTable() for _ in range(3))
    tables = [relations if c == "r" else entities for c in columns]
    tables += [times] * (max(n_tabs.values()) > 2)
    sizes = {split: path.stat().st_size for split, path in files.items()}
    with _draw_progress(sum(sizes.values()), progress) as advance:
        facts = {
            split: _read(
                _Blocks(path, n_tabs[split], split in with_heading),
                sizes[split],
                tables,
                explain,
                advance,
            )
            for split, path in files.items()
        }
    for rows in facts.values() if columns != "hrt" else ():
        rows[:, :3] = rows[:, [columns.index(c) for c in "hrt"]]
    labels, new_numbers = zip(*map(_in_id_order, (entities, relations)), strict=True)
    time_labels, new_times = _in_byte_order(times)
    for rows in facts.values():
        renumber_triples(rows, *new_numbers)
        for column in rows.T[3:]:
            renumber_column(column, new_times)
    return facts, *labels, time_labels


def renumber_column(column: Int32, new_numbers: Int32) -> None:
    """Replace each number of a column by its new number, in steps."""
    for start in range(0, len(column), _BLOCK):
        column[start : start + _BLOCK] = new_numbers[column[start : start + _BLOCK]]


@contextlib.contextmanager
def _draw_progress(size: int, progress: bool) -> Iterator[Advance]:
    """Provide a function that takes the number of bytes read, and draws progress if wanted."""
    if not progress:
        yield lambda _: None
        return
    from tqdm import tqdm

    with tqdm(total=size, unit="B", unit_scale=True, desc="reading", delay=1) as bar:
        yield bar.update


def _read(
    blocks: _Blocks,
    size: int,
    tables: Sequence[LabelTable],
    explain: Explain,
    advance: Advance,
) -> Triples:
    """Read the rows of a file by the numbers of the tables, which grow by new labels."""
    path, raw = blocks.path, blocks.raw
    rows: Triples = np.empty((0, len(tables)), dtype=np.int32)
    n = position = 0
    with raw, contextlib.closing(_some_ahead(blocks, size)) as some:
        try:
            for lines in some:
                advance(raw.tell() - position)
                position = raw.tell()
                rows = _with_space(rows, n, lines.n, position / max(size, 1))
                n += lines.n
                for column, table in enumerate(tables):
                    table.number(lines, column, rows[n - lines.n : n])
        except _Faulty:
            n = 0
        except OSError as error:
            raise damage_error(path, error) from None
    if not n:
        explain(path)  # raises, unless every line is correct but there is no fact
        hint = "add triples, or remove the file"
        refuse(path, None, "no triples below the line of names", hint)
    rows.resize((n, len(tables)), refcheck=False)
    return rows


def _with_space(rows: Triples, n: int, more: int, share: float) -> Triples:
    """Return `rows`, enlarged if `more` rows do not fit behind the first n.

    The new size is estimated from the share of the file that was read.
    """
    if n + more <= len(rows):
        return rows
    length = max(n + more + n // 8, int(1.01 * (n + more) / share) if 0 < share < 1 else 0)
    if not n:
        return np.empty((length, rows.shape[1]), dtype=np.int32)
    rows.resize((length, rows.shape[1]), refcheck=False)  # in place if the system can
    return rows


def _some_ahead(blocks: _Blocks, size: int) -> Generator[TripleLines]:
    """Yield blocks of lines; for a large file, another thread reads the next block meanwhile."""
    blocks_of_lines = iter(blocks)
    if size < _ALONE or available_cores() < 2 or not can_start_threads(1):
        yield from blocks_of_lines
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        try:
            coming = pool.submit(next, blocks_of_lines, None)
            while (lines := coming.result()) is not None:
                coming = pool.submit(next, blocks_of_lines, None)
                yield lines
        finally:
            blocks.stopped = True


class _Blocks:
    """The lines of a file in blocks; each block is overwritten by the next but one."""

    def __init__(self, path: Path, n_tabs: int, has_heading: bool = False) -> None:
        self.stopped = False
        self.path = path
        self.raw, self._stream = open_packed(path)
        self._n_tabs, self._has_heading = n_tabs, has_heading
        self._block = _BLOCK

    def __iter__(self) -> Iterator[TripleLines]:
        reused = cycle([TripleLines(max(_BLOCK // 16, 1), self._n_tabs) for _ in range(2)])
        blank = False
        for number, (text, stop) in enumerate(self._texts()):
            at = self._start(text) if number == 0 else 0
            while at < stop:
                lines = next(reused)
                at, blank, faulty = lines.read(text, stop, at, blank)
                if faulty:
                    raise _Faulty
                yield lines  # blank ones too: the user of earlier lines is one step behind, not two

    def _start(self, text: bytearray) -> int:
        """Return the offset in the first text at which the facts begin."""
        if self._has_heading:
            return text.index(b"\n") + 1
        return len(BOM) if text.startswith(BOM) else 0

    def _texts(self) -> Iterator[tuple[bytearray, int]]:
        """Yield buffers of whole lines and their size; each is valid until the next but one."""
        texts = [bytearray(), bytearray()]
        unfinished_line, is_end = b"", False
        while not is_end:
            texts.reverse()
            length = self._block + LABEL_PAD + 1
            if len(texts[0]) < length:
                texts[0] = bytearray(length)
            text = texts[0]
            text[: len(unfinished_line)] = unfinished_line
            size, is_end = self._fill(text, len(unfinished_line))
            stop = text.rfind(b"\n", 0, size) + 1
            if is_end and stop < size:
                text[size] = ord("\n")
                stop = size = size + 1
            unfinished_line = bytes(memoryview(text)[stop:size])
            if stop:
                yield text, stop
            elif not is_end:
                self._block *= 2
                if self._block > _LARGEST_BLOCK:
                    problem = "a line of more than 2 GB"
                    refuse(self.path, None, problem, "each line must be one triple")

    def _fill(self, text: bytearray, size: int) -> tuple[int, bool]:
        """Fill a block behind its first `size` bytes; return its size and if it is the last."""
        with memoryview(text) as view:
            while size < self._block:
                if self.stopped or not (n := self._stream.readinto(view[size : self._block])):
                    return size, True
                size += n
        return size, False


def _in_id_order(table: LabelTable) -> tuple[Labels, Int32]:
    """Return a table's labels in the order of ids, and the id of each number: int32 (n,)."""
    array, ranks = _in_byte_order(table)
    labels, ids = order_labels(array)
    return labels, ranks if ids is None else ids[ranks]


def _in_byte_order(table: LabelTable) -> tuple[Any, Int32]:
    """Return a table's labels in byte order, and the rank of each number: int32 (n,)."""
    import pyarrow as pa

    offsets = np.empty(table.n + 1, dtype=np.int64)
    text = np.empty(table.n_bytes, dtype=np.uint8)
    ranks = np.empty(table.n, dtype=np.int32)
    table.close(offsets, text, ranks)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_binary(), len(ranks), buffers), ranks


NUMBERED = "2id.txt"  # ending of the names of OpenKE's files

_STEMS = {"train": "train", "valid": "valid", "dev": "valid", "test": "test"}


def split_names(endings: Sequence[str], prefix: str = "") -> dict[str, str]:
    """Return names of split files with these endings, plain or packed, and their splits."""
    return {
        prefix + stem + ending + packed: split
        for stem, split in _STEMS.items()
        for ending in endings
        for packed in ("", *CODECS)
    }


_NAMES = split_names((".txt", ".tsv", ""))
_NUMBERED = {split + NUMBERED: split for split in SPLITS}
_WORDS = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
    "testing": "test",
}
_HOLDS_TRIPLES = re.compile(
    r"[^.]+(\.(txt|tsv|csv|tab|del|dat|nt|triples))?(\.(gz|zst|bz2|xz|zip))?", re.IGNORECASE
)
_INDUCTIVE = re.compile(
    r"((inference|inductive|msg)(_[a-z]+)?|inf_(valid|test)|(train|valid|test)_ind|"
    r"transductive_[a-z]+)\.(txt|tsv)(\.(gz|zst))?",
    re.IGNORECASE,
)
NEGATIVES = re.compile(r"(^|.*[^a-z])neg(ative)?s?([^a-z].*|$)", re.IGNORECASE)
"""Names of files with false triples."""
_NOT_SPLITS = ("test2id_all.txt",)  # OpenKE's test triples again, by kind of relation
_NAMING = (
    "name the files train, valid (or dev), test, ending in .txt, .tsv or nothing, "
    "optionally compressed as .gz or .zst"
)


def has_splits(names: Iterable[str]) -> bool:
    """Return whether a name is that of a split, tab-separated or in OpenKE's format."""
    return any(name in _NAMES or name.removesuffix(NUMBERED) in SPLITS for name in names)


def entries_of(folder: Path, advice: str) -> list[os.DirEntry[str]]:
    """List a folder, sorted by name; FileError with the advice if that fails."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        problem = "this folder does not exist"
    except NotADirectoryError:
        problem = "this is a file, not a folder"
    except OSError as error:
        problem = f"cannot be listed ({reason_of(error)})"
    raise FileError(folder, found=problem, hint=advice)


def pick_splits(folder: Path, names: Iterable[str], split_of: Mapping[str, str]) -> dict[str, Path]:
    """Return the file of each split, in the order of splits; FileError if a split has two."""
    files: dict[str, Path] = {}
    for name in names:
        split = split_of.get(name, "")
        if split in files:
            both = f"{files[split].name!r} and {name!r}"
            refuse(folder, None, f"two files for split {split!r}: {both}", "keep one of them")
        if split:
            files[split] = folder / name
    return {split: files[split] for split in SPLITS if split in files}


def find_split_files(folder: PathName, check: bool = True) -> dict[str, Path]:
    """Find the files of a folder's splits: ``train.txt`` and so on, or else ``train2id.txt``.

    With `check`, refuses or reports further files that look like splits, as `check_folder` does.
    """
    folder = Path(folder)
    entries = entries_of(folder, "give the folder that contains train.txt, valid.txt and test.txt")
    names = [entry.name for entry in entries if entry.is_file()]
    _refuse_inductive(folder, names)
    named = pick_splits(folder, names, _NAMES) or pick_splits(folder, names, _NUMBERED)
    if not named:
        raise _no_split(folder)
    if check:
        _check_overlooked(folder, entries, named)
    return named


def check_folder(folder: Path, files: dict[str, Path]) -> None:
    """Refuse or report files of a folder that look like further splits or an inference graph."""
    entries = entries_of(folder, "give the folder with the splits")
    _refuse_inductive(folder, [entry.name for entry in entries if entry.is_file()])
    _check_overlooked(folder, entries, files)


def _refuse_inductive(folder: Path, names: Iterable[str]) -> None:
    """Raise FileError if there is an inference graph beside the splits: it would be missed."""
    if inductive := [name for name in names if _INDUCTIVE.match(name)]:
        problem = (
            f"{', '.join(map(repr, inductive))} beside the splits: this is an inductive "
            "benchmark, and kgtrec would read only a part of it"
        )
        is_ingram = any(name.lower().startswith("msg.") for name in inductive)
        hint = (
            f"declare its format ({'ingram:DIR, ' * is_ingram}ilpc:DIR, grail:DIR or ultra:DIR), "
            "or put the inference graph into a separate folder, as train, valid and test"
        )
        refuse(folder, None, problem, hint)


def _check_overlooked(
    folder: Path, entries: list[os.DirEntry[str]], files: dict[str, Path]
) -> None:
    """Report files that look like unread splits, which the filter would lack, too."""
    for entry in entries:
        name = entry.name
        if _NAMES.get(name) not in (None, *files):
            refuse(
                folder / name,
                None,
                "not a regular file (a folder, or a broken link?)",
                f"replace it with a file of split {_NAMES[name]!r}, or remove it",
            )
    names = [entry.name for entry in entries if entry.is_file()]
    unread = [name for name in names if folder / name not in files.values()]
    for name, split in ((name, _split_like(name)) for name in unread):
        if split is None:
            continue
        if split in files and name == split + NUMBERED:  # allowed: the same in OpenKE's format
            continue
        if NEGATIVES.match(name):  # `unread_files` reports it
            continue
        triples = _HOLDS_TRIPLES.fullmatch(name)
        missed = f"split {split!r} is not read: {name!r} is not a name of a split"
        if split not in files and triples:
            hint = f"{_NAMING}; or move the file away if its triples should not be filtered"
            refuse(folder, None, missed, hint)
        message = f"{missed}; {_NAMING}"
        if split in files:
            message = f"{name!r} is not read: split {split!r} is read from {files[split].name!r}"
        if split not in files or triples:
            warnings.warn(  # of read_graph's caller
                f"{folder}: {message}", FilterWarning, stacklevel=5
            )


def is_split_like(name: str) -> bool:
    """Return whether a file's name begins or ends with the name of a split."""
    return _split_like(name) is not None


def _split_like(name: str) -> str | None:
    """Return the split that a file's name begins or ends with, or None."""
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
    """Make the error for a folder without splits, which lists its files."""
    present = sorted(entry.name + "/" * entry.is_dir() for entry in os.scandir(folder))
    listing = ", ".join(map(repr, present[:10])) + (", ..." if len(present) > 10 else "")
    hint = _NAMING
    if any(name.endswith(NUMBERED) for name in present):
        hint = "OpenKE's format needs at least one of train2id.txt, valid2id.txt, test2id.txt"
    return FileError(
        folder,
        found=f"no split here, only {listing}" if listing else "the folder is empty",
        hint=hint,
    )
