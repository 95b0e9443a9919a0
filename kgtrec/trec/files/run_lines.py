"""Lines of run files: formatted on all threads, written in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.threads import available_cores, share_rows
from kgtrec.trec.files import lines

__all__ = ["write_run_lines"]

SHARES = 4
"""Of the lines at a time, for each thread: what one finishes sooner, another may take over."""

Ints = NDArray[np.int64]
LineColumns = Callable[[slice], tuple[Ints, NDArray[Any]]]


def write_run_lines(
    out: BinaryIO,
    queries: Sequence[bytes],
    offsets: Ints,
    documents: Any,
    columns: LineColumns,
    tag: bytes,
) -> None:
    """Write lines ``query Q0 document rank score tag``.

    Scores have the fewest digits that give the same number back. While lines are formatted, those
    before them are written, so that a disk and the cores work at once.

    Parameters
    ----------
    out : file object
        Open for writing bytes.
    queries : sequence of bytes, length n_queries
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query i has the lines ``offsets[i]`` to ``offsets[i + 1] - 1``; the first is line 0.
    documents : pyarrow.LargeBinaryArray
        Names of documents.
    columns : callable
        Of a slice of lines: the places of their names in `documents`, and their scores in float32
        or float64. It is called on several threads.
    tag : bytes
    """
    spans = np.ascontiguousarray(offsets, np.int64)
    run_lines = _core.RunLines(_names(lines.texts(list(queries))), _names(documents), spans, tag)

    def formatted(start: int, stop: int) -> memoryview:
        return run_lines.text(start, *columns(slice(start, stop)))

    threads, n = available_cores(), int(offsets[-1])
    step = max(1, lines.LINES_AT_A_TIME // (SHARES * threads))
    parts = [(start, min(start + step, n)) for start in range(0, n, step)]
    ready: list[memoryview] = []
    for first in range(0, len(parts), SHARES * threads):
        at_once = parts[first : first + SHARES * threads]
        ready = _write_and_format(out, ready, formatted, at_once, threads)
    out.writelines(ready)


def _write_and_format(
    out: BinaryIO,
    ready: list[memoryview],
    formatted: Callable[[int, int], memoryview],
    parts: list[tuple[int, int]],
    threads: int,
) -> list[memoryview]:
    """Write what is ready while the parts are formatted; these, in their order."""
    texts_by_start: dict[int, memoryview] = {}
    writing = (-1, -1)

    def do(start: int, stop: int) -> None:
        if (start, stop) == writing:
            out.writelines(ready)
        else:
            texts_by_start[start] = formatted(start, stop)

    share_rows(do, [writing, *parts], threads)
    return [texts_by_start[start] for start, _ in parts]


def _names(array: Any) -> tuple[NDArray[np.uint8], Ints]:
    """Bytes and offsets of an array of large_binary without nulls."""
    _, offsets, text = array.buffers()
    spans = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(text or b"", np.uint8), spans
