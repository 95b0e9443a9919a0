"""Threads that share rows of work out among them."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, Thread

__all__ = ["available_cores", "share_rows"]


def share_rows(
    do_part: Callable[[int, int], None], parts: list[tuple[int, int]], threads: int
) -> None:
    """Run the parts on threads, this one among them.

    The first error is raised when the parts at work have ended; so is a Ctrl-C, which does not wait
    for all of them.
    """
    waiting, lock = iter(parts), Lock()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not errors:
                with lock:
                    part = next(waiting, None)
                if part is None:
                    return
                do_part(*part)
        except BaseException as error:
            errors.append(error)

    others = [Thread(target=work) for _ in range(min(threads, len(parts)) - 1)]
    for other in others:
        other.start()
    work()
    for other in others:
        try:
            other.join()
        except KeyboardInterrupt as error:
            errors.append(error)
            other.join()
    if errors:
        raise errors[0]


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
