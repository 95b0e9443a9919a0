"""Triples from tab-separated files, natively: labels are numbered while their lines are read.

The fast way looks for nothing but tabs and line ends. At a line that is not as it must be it stops,
and `tsv_errors.scan` walks the file line by line, and says which line is wrong and a hint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._core import LABEL_PAD, LabelTable, TripleLines, renumber_triples
from kgtrec._internal.threads import available_cores
from kgtrec.errors import FileError
from kgtrec.graph.tsv_errors import BOM, WANTED, damaged, open_packed, scan

__all__ = ["load_facts", "load_triples", "renumber_column"]

Triples = npt.NDArray[np.int32]
Advance = Callable[[int], None]
Explain = Callable[[Path], object]

_BLOCK = 1 << 20
"""Bytes that are read at a time: they and their labels stay in the cache."""
_LARGEST_BLOCK = 1 << 31
_ALONE = 64 << 20  # files below this size are not worth a second thread


class _Faulty(Exception):
    """A line is not as it must be."""


class _Stopped(Exception):
    """The user has interrupted the reading."""


def load_triples(files: dict[str, Path], progress: bool) -> tuple[dict[str, Triples], Any, Any]:
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

    Raises
    ------
    FileError
        A file that cannot be read, or its first bad line.
    """
    entities, relations = LabelTable(), LabelTable()
    tables, n_tabs = (entities, relations, entities), dict.fromkeys(files, 2)
    triples = _load(files, tables, n_tabs, scan, progress)
    return triples, *_renumber(triples, entities, relations)


def load_facts(
    files: dict[str, Path], n_tabs: Mapping[str, int], explain: Explain
) -> tuple[dict[str, Triples], Any, Any, Any]:
    """The same of lines with a time, or the ends of an interval.

    Parameters
    ----------
    files : dict
        Split name to path.
    n_tabs : mapping
        Split name to tabs of a line, 3 or 4.
    explain : callable
        Raises FileError of the first bad line of a file, of which it gets the path.

    Returns
    -------
    facts : dict of ndarray of int32, shape (n, 4)
    entities, relations, times : pyarrow.LargeBinaryArray
        Labels in id order, which is that of bytes; the ends of an interval have a tab in between.
    """
    entities, relations, times = LabelTable(), LabelTable(), LabelTable()
    facts = _load(files, (entities, relations, entities, times), n_tabs, explain, False)
    labels = _renumber(facts, entities, relations)
    time_labels, places = _in_order(times)
    for rows in facts.values():
        renumber_column(rows[:, 3], places)
    return facts, *labels, time_labels


def renumber_column(column: npt.NDArray[np.int32], places: npt.NDArray[np.int32]) -> None:
    """Put places for numbers, some at a time."""
    for start in range(0, len(column), _BLOCK):
        column[start : start + _BLOCK] = places[column[start : start + _BLOCK]]


def _load(
    files: dict[str, Path],
    tables: Sequence[LabelTable],
    n_tabs: Mapping[str, int],
    explain: Explain,
    progress: bool,
) -> dict[str, Triples]:
    """Rows of all files by the numbers of the tables, one for each column."""
    sizes = {split: path.stat().st_size for split, path in files.items()}
    with _drawn(sum(sizes.values()), progress) as advance:
        return {
            split: _read(path, sizes[split], tables, n_tabs[split], explain, advance)
            for split, path in files.items()
        }


def _renumber(
    rows: Mapping[str, Triples], entities: LabelTable, relations: LabelTable
) -> tuple[Any, Any]:
    """The labels in order, and their places in the rows."""
    entity_labels, entity_places = _in_order(entities)
    relation_labels, relation_places = _in_order(relations)
    for some in rows.values():
        renumber_triples(some, entity_places, relation_places)
    return entity_labels, relation_labels


@contextlib.contextmanager
def _drawn(size: int, progress: bool) -> Iterator[Advance]:
    """What is told of bytes read: a bar, if one is to be drawn."""
    if not progress:
        yield lambda _: None
        return
    from tqdm import tqdm

    with tqdm(total=size, unit="B", unit_scale=True, desc="reading", delay=1) as bar:
        yield bar.update


def _read(
    path: Path,
    size: int,
    tables: Sequence[LabelTable],
    n_tabs: int,
    explain: Explain,
    advance: Advance,
) -> Triples:
    """Rows of a file by the numbers of the tables, which labels join as they appear."""
    raw, stream = open_packed(path)
    blocks = _Blocks(path, stream, n_tabs)
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
            raise damaged(path, error) from None
    if not n:
        explain(path)  # raises, and says what is wrong
        raise FileError(path, found="the file cannot be parsed", hint="check its lines")
    rows.resize((n, len(tables)), refcheck=False)
    return rows


def _with_space(rows: Triples, n: int, more: int, share: float) -> Triples:
    """Rows with space behind the first n: for as many as a share of the file lets expect."""
    if n + more <= len(rows):
        return rows
    length = max(n + more + n // 8, int(1.01 * (n + more) / share) if 0 < share < 1 else 0)
    if not n:
        return np.empty((length, rows.shape[1]), dtype=np.int32)
    rows.resize((length, rows.shape[1]), refcheck=False)  # in place, as far as the system can
    return rows


def _some_ahead(blocks: _Blocks, size: int) -> Generator[TripleLines]:
    """Lines, of which a large file's are made on another thread while those before are used."""
    made = iter(blocks)
    if size < _ALONE or available_cores() < 2:
        yield from made
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        try:
            coming = pool.submit(next, made, None)
            while (lines := coming.result()) is not None:
                coming = pool.submit(next, made, None)
                yield lines
        finally:
            blocks.stopped = True


class _Blocks:
    """The lines of a file, some at a time; each is overwritten by the next but one."""

    def __init__(self, path: Path, stream: Any, n_tabs: int) -> None:
        self.stopped = False
        self._path, self._stream, self._n_tabs = path, stream, n_tabs
        self._block = _BLOCK

    def __iter__(self) -> Iterator[TripleLines]:
        made = cycle([TripleLines(max(_BLOCK // 16, 1), self._n_tabs) for _ in range(2)])
        blank = False
        for number, (text, stop) in enumerate(self._texts()):
            at = len(BOM) if number == 0 and text.startswith(BOM) else 0
            while at < stop:
                lines = next(made)
                at, blank, faulty = lines.read(text, stop, at, blank)
                if faulty:
                    raise _Faulty
                yield lines  # blank ones too: who uses those before is one step behind, not two

    def _texts(self) -> Iterator[tuple[bytearray, int]]:
        """Whole lines, and how many bytes they are; each text is there until the next but one."""
        texts = [bytearray(), bytearray()]
        rest, is_end = b"", False
        while not is_end:
            texts.reverse()
            length = self._block + LABEL_PAD + 1
            if len(texts[0]) < length:
                texts[0] = bytearray(length)
            text = texts[0]
            text[: len(rest)] = rest
            size, is_end = self._fill(text, len(rest))
            stop = text.rfind(b"\n", 0, size) + 1
            if is_end and stop < size:
                text[size] = ord("\n")
                stop = size = size + 1
            rest = bytes(memoryview(text)[stop:size])
            if stop:
                yield text, stop
            elif not is_end:
                self._enlarge()

    def _fill(self, text: bytearray, size: int) -> tuple[int, bool]:
        """Read on behind `size` bytes until the block is full; its size, and whether it is all."""
        with memoryview(text) as view:
            while size < self._block:
                if self.stopped:
                    raise _Stopped
                if not (n := self._stream.readinto(view[size : self._block])):
                    return size, True
                size += n
        return size, False

    def _enlarge(self) -> None:
        self._block *= 2
        if self._block > _LARGEST_BLOCK:
            raise FileError(self._path, found="a line of more than 2 GB", hint=WANTED)


def _in_order(table: LabelTable) -> tuple[Any, npt.NDArray[np.int32]]:
    """The labels of a table in byte order, and the place of each of its numbers."""
    import pyarrow as pa

    offsets = np.empty(table.n + 1, dtype=np.int64)
    text = np.empty(table.n_bytes, dtype=np.uint8)
    places = np.empty(table.n, dtype=np.int32)
    table.close(offsets, text, places)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_binary(), len(places), buffers), places
