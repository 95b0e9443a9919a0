"""Lists of runs from plain files, each by one call of the core, also before numpy is loaded.

Imports take a third of the time of a command that reads a hundred runs, and use one core. Another
thread reads runs meanwhile. It needs Python's lock only between two files.
"""

from __future__ import annotations

import os
import stat
from _thread import start_new_thread
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from kgtrec import _core
from kgtrec._internal.locations import is_location

UNJUDGED = 1 - 2**63
"""Relevance of a retrieved document that the qrels lack. Judgements with this number, or a lower
one, are listed with the next higher: all relevances below 0 mean the same."""

_ALL = 2**63 - 1
_MOST_BYTES = 16 << 20  # of a file: threads share the parts of a larger one


class Cut(NamedTuple):
    """Which documents of a query to list; see `kgtrec.trec.measures.judge.read_lists`."""

    depth: int | None = None
    keep_ties: bool = False
    judged_only: bool = False
    single: bool = False

    @property
    def most(self) -> int:
        """The depth, or a number that no list reaches."""
        return _ALL if self.depth is None else min(self.depth, _ALL)


class ReadAhead:
    """Reads runs on a thread of its own, inside `with`, until `stop`; and then on request.

    It raises no errors and warns of nothing. It has no lists of a file that is not plain: packed,
    large, changed meanwhile, faulty, or worth a warning. Such a file must be read again.
    """

    def __init__(self, qrels: str, runs: Sequence[str], cut: Cut) -> None:
        self._qrels, self.cut = qrels, cut
        self._states = {path: _state(path) for path in (qrels, *runs) if runs}
        self._waiting = iter(runs)
        self._lists: dict[str, _core.ListedRun | None] = {}
        self._judged: _core.TrecQrels | None = None
        self._reading = Lock()

    def __enter__(self) -> ReadAhead:
        self._reading.acquire()
        try:
            start_new_thread(self._read_all, ())
        except RuntimeError:  # no more threads
            self._reading.release()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let the thread end with the file that it reads."""
        self._waiting = iter(())
        with self._reading:
            pass

    def has_read(self, judged: _core.TrecDocuments) -> bool:
        """Whether it has read the qrels, with the bytes that these documents come from."""
        return self._judged is not None and self._judged.has(judged)

    def lists(self, run: str, cut: Cut) -> _core.ListedRun | None:
        """The lists of a run, once; None if the file is not plain."""
        state = self._states.get(run)
        if state is None or cut != self.cut:
            return None
        listed = self._lists.pop(run) if run in self._lists else self._read(run)
        return listed if _state(run) == state else None

    def _read_all(self) -> None:
        try:
            if state := self._states.get(self._qrels):
                judged = _core.TrecQrels(os.fsencode(self._qrels), state[0], UNJUDGED)
                self._judged = judged if judged else None
            while self._judged and (run := next(self._waiting, None)):
                self._lists[run] = self._read(run)
        except MemoryError:
            pass  # the main thread meets it again
        finally:
            self._reading.release()

    def _read(self, run: str) -> _core.ListedRun | None:
        state = self._states[run]
        if state is None or self._judged is None:
            return None
        return self._judged.lists(os.fsencode(run), state[0], self.cut.most, *self.cut[1:])


def _state(path: str) -> tuple[int, ...] | None:
    """A value that changes when a file is written or replaced; None if it cannot be plain."""
    if path == "-" or path.endswith((".gz", ".zst")) or is_location(path):
        return None
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(now.st_mode) or not 2 <= now.st_size <= _MOST_BYTES:
        return None
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev
