"""Threads that share rows of work, and how many threads there may be."""

from __future__ import annotations

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from threading import Lock, RLock
from time import monotonic, sleep
from typing import Any

from kgtrec._internal.system import available_cores as available_cores
from kgtrec._internal.system import running_threads


def share_rows(
    do_part: Callable[[int, int], None], parts: list[tuple[int, int]], threads: int
) -> None:
    """Run the parts on threads, including this one.

    It returns or raises only after all running parts have ended, because the caller owns the
    memory that they write to. Then it raises the first error, or KeyboardInterrupt. After Ctrl-C,
    however often it is pressed, running parts end and no others begin.
    """
    if min(threads, len(parts)) < 2:
        for part in parts:
            do_part(*part)
        return
    crew = _Crew(do_part, parts)
    with crew, crew, crew, crew:  # an interrupt may come just before a wait begins
        try:
            for _ in range(min(threads, len(parts)) - 1):
                try:
                    start_new_thread(crew.help, ())
                except RuntimeError:  # a limit of the system, such as `ulimit -u`: go on with fewer
                    break
            crew.work()
        except BaseException as error:
            crew.errors.append(error)
    if crew.errors:
        raise crew.errors[0]


class _Crew:
    """The parts, and the threads that do them.

    Interrupts reach only the main thread, between any two of its calls. `threading.Thread` does
    not support that: an interrupted `join` treats a running thread as ended (Python 3.10 to 3.12),
    and `start` may raise another error. So every helper holds a lock while it works. It is an
    RLock, because a wait that was interrupted with the lock held starts again.

    The main thread uses no other lock: since Python 3.14, an interrupt between the first call of
    `with lock` and its block leaves the lock locked. `__exit__` closes the crew before it lists the
    helpers, and a helper lists itself before it asks whether the crew is closed. So it waits
    for every helper that does a part.

    Only an interrupt at the first step of `__exit__`, or while it handles another, ends it early.
    The `with` statement therefore waits several times. Twice is too few: the main thread may lose
    the GIL, or its core, between two waits, and the next interrupt then comes before the second.
    """

    def __init__(self, do_part: Callable[[int, int], None], parts: list[tuple[int, int]]) -> None:
        self.errors: list[BaseException] = []
        self._do_part, self._waiting = do_part, deque(parts)
        self._closed = False
        self._helpers: list[Any] = []

    def work(self) -> None:
        """Do parts until there are no more, or one has failed."""
        try:
            while self._waiting and not self._closed and not self.errors:
                try:
                    part = self._waiting.popleft()
                except IndexError:  # another thread has taken the last
                    return
                self._do_part(*part)
        except BaseException as error:
            self.errors.append(error)

    def help(self) -> None:
        """Run `work` on the current helper thread, after telling `__exit__` about it."""
        with (working := RLock()):
            self._helpers.append(working)
            self.work()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        """Stop giving out parts, and wait for all helpers."""
        while True:
            try:
                self._closed = True
                for working in self._helpers:
                    working.acquire()
                return
            except BaseException as error:
                self.errors.append(error)


NO_THREAD = "can't start new thread"
"""The text of Python's RuntimeError where a limit of the system stops a new thread."""

MORE_THREADS = "allow more processes and threads (ulimit -u)"
"""The remedy."""

_ENDED = 0.2  # seconds that ended threads get to leave the list of the system


def can_start_threads(number: int) -> bool:
    """Return whether the system lets this process start so many more threads.

    They are started and ended again: limits are those of a user, a container or a service, and no
    call tells how much of them is left.
    """
    before = running_threads()
    barrier = Lock()
    try:
        with barrier:
            for _ in range(number):
                start_new_thread(_pass, (barrier,))
    except RuntimeError:
        return False
    finally:
        until = monotonic() + _ENDED
        while running_threads() > before and monotonic() < until:
            sleep(0.0001)  # a thread counts until the system has removed it
    return True


def _pass(barrier: Lock) -> None:
    """Wait at a barrier, and let the next one pass."""
    with barrier:
        pass
