"""How many jobs of a batch are under way: as many as keep all workers busy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

__all__ = ["Load", "may_begin"]

LEAST, MOST = 2, 32
_STARTING = 2  # jobs whose tasks are not known yet
_AHEAD = 2  # tasks for each thread of the workers, of all jobs together


def may_begin(left: list[int | None], threads: int) -> bool:
    """Whether one more job is begun.

    Parameters
    ----------
    left : list of int or None
        Tasks left of each job under way; None of one that is only being read.
    threads : int
        Of all workers.
    """
    if len(left) < LEAST:
        return True
    if len(left) >= MOST or left.count(None) >= _STARTING:
        return False
    return sum(tasks or 0 for tasks in left) < _AHEAD * threads


@dataclass
class Load:
    """What the jobs under way are about: tasks that are left, and bytes of this process.

    Parameters
    ----------
    memory : int
        Bytes for all jobs under way. One is begun in any case.
    changed : callable
        Called when another job might begin.
    waiting : int
        Jobs not begun yet.
    """

    memory: int
    changed: Callable[[], None] = lambda: None
    waiting: int = 0
    _left: dict[str, int | None] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _largest: int = 0
    _threads: int = 1
    _lock: Lock = field(default_factory=Lock)

    def may_begin(self) -> bool:
        """Whether one more job is begun; it may turn out as large as the largest so far."""
        with self._lock:
            needed = sum(self._bytes.values()) + self._largest
            if self._left and (not self._largest or needed > self.memory):
                return False
            return may_begin(list(self._left.values()), self._threads)

    @property
    def jobs(self) -> int:
        """Jobs that will share the workers."""
        return min(MOST, len(self._left) + self.waiting)

    def begin(self, name: str) -> None:
        """A job is begun."""
        with self._lock:
            self._left[name] = None
            self._bytes[name] = self._largest

    def sized(self, name: str, size: int) -> None:
        """Bytes of this process that a job takes, once its questions are there."""
        with self._lock:
            self._bytes[name] = size
            self._largest = max(self._largest, size)
        self.changed()

    def watch(self, name: str, left: int, threads: int) -> None:
        """Tasks left of a job, and threads of the workers."""
        with self._lock:
            self._left[name], self._threads = left, max(1, threads)
        self.changed()

    def end(self, name: str) -> None:
        """A job is done, whatever has come of it."""
        with self._lock:
            del self._left[name], self._bytes[name]
