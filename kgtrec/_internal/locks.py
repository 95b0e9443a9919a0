"""Locks that no interrupt leaves locked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def call_locked(lock: Any, call: Callable[[], Result]) -> Result:
    """Return what a function returns, called while this thread holds an RLock.

    It is for locks that the main thread uses more than once. Interrupts reach only that thread;
    since Python 3.14, an interrupt may come after `with lock` has locked and before its block
    begins, and the lock then stays locked. Here, the lock is taken within the `try`.
    """
    try:
        lock.acquire()
        return call()
    finally:
        try:  # noqa: SIM105 (an interrupt may come while `suppress` is made)
            lock.release()
        except RuntimeError:  # an interrupt came while this thread waited for the lock
            pass


def hold_lock(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Let a method hold the RLock `_lock` of its object while it runs (see `call_locked`)."""

    @wraps(method)
    def run(self: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return call_locked(self._lock, lambda: method(self, *args, **kwargs))

    return run
