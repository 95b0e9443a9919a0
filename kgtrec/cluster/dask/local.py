"""Worker processes of this machine, which start and end in order whatever signals come."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["COME_BACK", "local_client"]

# Dask ends a worker for good that is not back 15 s after it was lost, and a machine under load may
# need longer to start a process: killed workers were gone one by one. How long there may be none is
# for `patience` to say.
COME_BACK = {"distributed.deploy.lost-worker-timeout": "1 day"}

# Dask looks a hundred times a second at what its workers' threads do, and fifty times at how late
# its event loops are, which takes a tenth of each core and is shown on pages that nobody opens.
_UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
}

# Seconds that workers are given to end: when one is lost while it starts, Dask waits for that start
# without end.
_CLOSE = 30.0


@contextmanager
def local_client(folder: Path, n_workers: int) -> Iterator[Client]:
    """A client of as many new processes, which end with the context.

    Parameters
    ----------
    folder : Path
        Where workers keep what they spill.
    n_workers : int
        Processes, of one thread each.

    Raises
    ------
    RuntimeError
        They did not start.
    """
    import dask
    from distributed import Client, LocalCluster

    stack = ExitStack()
    try:
        stack.enter_context(dask.config.set(COME_BACK | _UNWATCHED))
        with _undisturbed():
            # No limit: memory-mapped pages count as a worker's memory, but are given back at need.
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                memory_limit=None,
                dashboard_address="127.0.0.1:0",
                local_directory=_utf8_name(folder),
                silence_logs=logging.CRITICAL,
            )
            stack.callback(cluster.close, timeout=_CLOSE)
            client = stack.enter_context(Client(cluster, set_as_default=False))
        yield client
    finally:
        # Workers that end late are no fault of what was done, nor what is to be told of a failure;
        # they end with this process at the latest.
        with suppress(Exception):
            stack.close()


def _utf8_name(folder: Path) -> str | None:
    """A folder as Dask's messages, which are UTF-8, can name it; None, for one of Dask's own, if
    they cannot."""
    path = str(folder.absolute())
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return path


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals wait, so that a half-started cluster is never left behind.

    Ctrl-C goes to all processes of a terminal. Those started here, and the thread that may start
    more, inherit that it is blocked: it is this process that takes them down.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, Any] = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(handler := signal.getsignal(number)):
            handlers[number] = handler
            signal.signal(number, lambda number, frame: came.append(number))
    resource_tracker.ensure_running()  # which would let SIGINT through again, if it started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # here a Ctrl-C that waited is raised
    for one in came:
        os.kill(os.getpid(), one)
