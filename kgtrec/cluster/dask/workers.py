"""The workers of a Dask cluster: start processes or use a client, and check that they can work.

Dask is imported by the functions that use it, so that this module loads without it.
"""

from __future__ import annotations

import asyncio
import errno
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.argument_names import argument
from kgtrec._internal.system import ENDING_SIGNALS, interrupts_held_back, reason_of
from kgtrec._internal.threads import MORE_THREADS, NO_THREAD, available_cores
from kgtrec._version import __version__
from kgtrec.cluster.plan import memory_bytes
from kgtrec.errors import FileError, KgtrecError, UsageError

if TYPE_CHECKING:
    from distributed import Client

# Dask gives up a worker that does not return within 15 s. A machine under load may need longer to
# start a process, and so lost one killed worker after another. `patience` limits the time without
# any worker.
KEEP_LOST_WORKERS = {"distributed.deploy.lost-worker-timeout": "1 day"}

# Dask samples its workers' threads 100 times per second, delays of its event loops 50 times and
# memory 10 times. That takes a sixth of a core if two workers idle, for pages that nobody opens.
LESS_MONITORING = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "2s",
}

# Seconds that workers get to end. Without a limit, Dask would wait forever for a worker that was
# lost while it started.
_CLOSE_SECONDS = 30.0


@contextmanager
def local_client(folder: Path, n_workers: int) -> Iterator[Client]:
    """Yield a client of `n_workers` new processes.

    They end with the context, and nobody else can use them.
    """
    import dask
    from distributed import Client

    from kgtrec.cluster.dask.private_cluster import private_cluster

    stack = ExitStack()
    try:
        stack.enter_context(dask.config.set(KEEP_LOST_WORKERS | LESS_MONITORING))
        with _hold_back_signals():
            cluster = private_cluster(n_workers, _utf8_name(folder))
            stack.callback(cluster.close, timeout=_CLOSE_SECONDS)
            client = stack.enter_context(Client(cluster, set_as_default=False))
        yield client
    finally:
        # Workers that end late are not an error, and must not hide another error. They end with
        # this process at the latest.
        with suppress(Exception):
            stack.close()


def _utf8_name(folder: Path) -> str | None:
    """Return a folder's path for Dask; None if it is not UTF-8, which Dask's messages must be."""
    path = str(folder.absolute())
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return path


@contextmanager
def _hold_back_signals() -> Iterator[None]:
    """Hold back signals until the context ends, so that no half-started cluster remains.

    Ctrl-C goes to all processes of a terminal. Processes started here, and the thread that may
    start more, inherit the blocked SIGINT: this process ends them. SIGTERM may also go to all
    processes. The workers that it ends do not start; then the signal is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers: dict[int, Any] = {}
    for kind in ENDING_SIGNALS:
        if callable(handler := signal.getsignal(kind)):
            handlers[kind] = handler
            signal.signal(kind, lambda number, frame: received.append(number))
    try:
        with interrupts_held_back():
            try:
                yield
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
    finally:
        for number in received:
            signal.raise_signal(number)


TimedOut = (TimeoutError, asyncio.TimeoutError)
"""Dask's errors after a timeout: one and the same class from Python 3.11 on."""

PATIENCE = 60.0
"""Seconds that a ranking waits without a worker, at the start and after a loss."""

CONNECT_SECONDS = 10.0
"""Seconds that a scheduler gets to answer a new client."""

_PAUSES_BETWEEN_CHECKS = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds, while a worker is ending
_SCHEDULER_SECONDS = 10.0  # for a scheduler to report its workers
_CONNECT_WORKER_SECONDS = 3.0  # for a worker to answer
_TASK_SECONDS = 2.0  # of a task that keeps a worker; the worker's first real task may wait for it


class ClusterError(KgtrecError):
    """The cluster failed, not the input: the same call may succeed later."""


class SchedulerLost(ClusterError):
    """The scheduler is gone, or it has no workers."""


class PiecesGone(Exception):
    """No worker has the sent files any more, so they must be sent again."""


def catch_errors(work: Callable[[], Any]) -> Any:
    """Return the value of a function; or return its error if a retry would change nothing.

    This runs on a worker. An unreadable file raises an error, so that Dask tries again: storage
    may be late.
    """
    try:
        return work()
    except FileError as error:
        raise OSError(str(error)) from None  # a FileError cannot be pickled
    except (KgtrecError, PiecesGone) as error:
        return error.with_traceback(None)


def require_dask() -> None:
    """Raise UsageError if Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UsageError(
            "Dask is not installed; run pip install 'kgtrec[cluster]', or use kgtrec rank --shard, "
            "which does not need it"
        ) from None


@contextmanager
def open_client(
    client: Client | None, folder: Path, workers: int | None = None
) -> Iterator[Client]:
    """Yield `client`; if it is None, a client of new processes, which end with the context.

    ``workers`` is the number of processes; None: one per core.
    """
    require_dask()
    from distributed import Client

    if client is not None:
        if not isinstance(client, Client) or client.asynchronous:
            raise UsageError(
                f"{argument('client', client)}; pass a distributed.Client that is not "
                "asynchronous, or None"
            )
        yield client
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "worker processes import the script that starts them, so it would run again; put its "
            "calls under if __name__ == '__main__':"
        )
    if find_spec("cryptography") is None:
        raise UsageError(
            "the package cryptography is not installed, so no keys can be made that keep other "
            "users of this machine away from the worker processes; run pip install "
            "'kgtrec[cluster]', or use the workers of your own client"
        )
    with ExitStack() as stack:
        try:
            local = stack.enter_context(local_client(folder, workers or available_cores()))
        except (RuntimeError, OSError, *TimedOut) as error:
            raise _start_error(error) from None
        yield local


_REMEDIES = {
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "allow more open files on this machine",
    errno.EAGAIN: "allow more processes (ulimit -u)",
    errno.ENOMEM: "allow more memory, or start fewer workers",
    errno.ENOSPC: "free some space on the disk of the work folder",
    errno.EDQUOT: "free some space on the disk of the work folder",
}


def _start_error(error: BaseException) -> ClusterError:
    """Return the error for worker processes that did not start, with its cause and a remedy."""
    causes: list[BaseException] = []  # Dask wraps the system's error in errors of its own
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in reversed(causes):
        if isinstance(cause, OSError) and cause.errno in _REMEDIES:
            remedy = _REMEDIES[cause.errno]
            return ClusterError(
                f"the worker processes did not start ({reason_of(cause)}); {remedy}"
            )
        if str(cause) == NO_THREAD:
            return ClusterError(f"the worker processes did not start ({cause}); {MORE_THREADS}")
    return ClusterError(
        f"the worker processes did not start ({error}); read their messages. A script that "
        "starts them must have its calls under if __name__ == '__main__':"
    )


@contextmanager
def connect_client(address: str) -> Iterator[Client]:
    """Yield a client of the scheduler at an address; UsageError if no scheduler answers there."""
    require_dask()
    from distributed import Client

    keys = ", and that Dask's configuration names the keys (kgtrec guide clusters)"
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, *TimedOut, ValueError, TypeError) as error:  # TypeError: tls:// without keys
        raise UsageError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); check the address, "
            f"as `dask scheduler` prints it{keys if address.startswith('tls:') else ''}"
        ) from None
    with client:
        yield client


@dataclass(frozen=True)
class TaskOptions:
    """Settings of tasks; `kgtrec.cluster.rank` documents each field."""

    memory: str | int = "2GB"
    retries: int = 3
    progress: bool | None = None
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        memory_bytes(self.memory)
        seconds = self.patience
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
            raise UsageError(
                f"{argument('patience', seconds)}; give the seconds to wait for a worker, above 0 "
                "(float('inf') waits forever)"
            )


def workers_share_files(client: Client, paths: Sequence[str], patience: float = PATIENCE) -> bool:
    """Return whether all workers see the same files as this process.

    UsageError if their version differs; ClusterError if they do not answer.
    """
    here, answers = inspect_files(paths), _ask_workers(client, paths, patience)
    versions = {
        said[0] if isinstance(said, tuple) else "no kgtrec": worker
        for worker, said in answers.items()
    }
    for version, worker in versions.items():
        if version != __version__:
            raise UsageError(
                f"worker {worker} has {version}, but this process has kgtrec {__version__}; "
                "install the same version everywhere"
            )
    return all(said == here for said in answers.values())


def _ask_workers(client: Client, paths: Sequence[str], patience: float) -> dict[str, Any]:
    """Return `inspect_files` of every worker, by address; try again while a worker is ending."""
    error, wait = None, Wait(client, patience)
    for seconds in _PAUSES_BETWEEN_CHECKS:
        try:
            with keep_worker(client, patience):
                answers = client.run(inspect_files, list(paths), on_error="return")
        except (OSError, *TimedOut) as lost:
            raise wait.explain_no_worker(type(lost).__name__) from None
        faults = [said for said in answers.values() if isinstance(said, BaseException)]
        error = next((fault for fault in faults if not isinstance(fault, ImportError)), None)
        if error is None:
            return dict(answers)
        time.sleep(seconds)
    raise ClusterError(f"a worker does not answer ({error}); look at the logs of the cluster")


@contextmanager
def keep_worker(client: Client, patience: float) -> Iterator[None]:
    """Wait for a worker, and keep it while the context is open.

    A cluster without a worker gets a task. Otherwise an adaptive cluster would start no worker, or
    end the worker before it answers.
    """
    task = None if client.nthreads() else client.submit(time.sleep, _TASK_SECONDS, pure=False)
    try:
        client.wait_for_workers(1, timeout=None if math.isinf(patience) else patience)
        yield
    finally:
        if task is not None:
            task.release()


def inspect_files(paths: Sequence[str]) -> tuple[str, list[tuple[int, int] | None]]:
    """Return the version of kgtrec, and the size and time of each file; None for missing files.

    This runs on a worker, and in the calling process to compare.
    """
    stamps: list[tuple[int, int] | None] = [None] * len(paths)
    for number, path in enumerate(paths):
        with suppress(OSError):
            stat = os.stat(path)
            stamps[number] = (stat.st_size, stat.st_mtime_ns)
    return __version__, stamps


def can_connect(client: Client) -> bool:
    """Return whether this process can connect to one worker of each host."""
    hosts = {address.rpartition(":")[0]: address for address in client.nthreads()}

    async def connect() -> None:
        pool = client.rpc
        comms = [
            pool.connect(address, timeout=_CONNECT_WORKER_SECONDS) for address in hosts.values()
        ]
        for address, comm in zip(hosts.values(), await asyncio.gather(*comms), strict=True):
            pool.reuse(address, comm)

    try:
        client.sync(connect)
    except (OSError, *TimedOut):
        return False
    return True


def count_cores(client: Client) -> dict[str, int]:
    """Ask the scheduler for the threads per worker; OSError or `TimedOut` if it does not answer."""
    cores: dict[str, int] = client.sync(
        client.scheduler.ncores, workers=None, callback_timeout=_SCHEDULER_SECONDS
    )
    return cores


class Wait:
    """A wait for workers: how long it takes, and the errors that may end it."""

    def __init__(self, client: Client, patience: float) -> None:
        self.client, self.patience, self.started = client, patience, time.monotonic()
        # A client without its scheduler forgets the address.
        scheduler = getattr(client, "scheduler", None)
        self._address = getattr(scheduler, "address", None) or "its address"

    @property
    def seconds(self) -> float:
        """Seconds since the wait began."""
        return time.monotonic() - self.started

    def explain_no_worker(self, why: str = "") -> SchedulerLost:
        """Return the error for a wait without a worker; ask first whether the scheduler answers."""
        with suppress(Exception):
            if self.client.status == "running":
                count_cores(self.client)
                return self.no_workers_error(why)
        return self.no_scheduler_error()

    def no_scheduler_error(self) -> SchedulerLost:
        """Return the error for a lost scheduler."""
        return SchedulerLost(
            f"the connection to the scheduler at {self._address} was lost and did not return "
            f"within {self.seconds:.0f} s; start it and its workers, and run again: finished parts "
            "are kept"
        )

    def no_workers_error(self, reason: str = "") -> SchedulerLost:
        """Return the error for a scheduler that had no workers for too long."""
        why = f" ({reason})" if reason else ""
        return SchedulerLost(
            f"the scheduler at {self._address} has had no worker for {self.patience:g} s{why}; "
            "start workers, or look at their logs, and run again: finished parts are kept ("
            f"{argument('patience')} sets how long to wait)"
        )
