"""Locks that interrupts reach, and whether a lock is free."""

from __future__ import annotations

import threading
from typing import Any


class InterruptedLock:
    """An RLock whose first `acquire` is interrupted, before or after it locks."""

    def __init__(self, moment: str) -> None:
        self.lock, self.moment = threading.RLock(), moment

    def acquire(self) -> bool:
        moment, self.moment = self.moment, ""
        if moment == "before":
            raise KeyboardInterrupt
        locked = self.lock.acquire(timeout=30)
        if moment == "after":
            raise KeyboardInterrupt
        return locked

    def release(self) -> None:
        self.lock.release()


def is_free(lock: Any) -> bool:
    """Return whether another thread can take an RLock."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()

    other = threading.Thread(target=take)
    other.start()
    other.join()
    return taken[0]
