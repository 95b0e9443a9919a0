"""The workers of a Dask cluster, own processes or any client, and whether they can work.

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
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.argument_names import argument
from kgtrec._internal.runtime import available_cores
from kgtrec._version import __version__
from kgtrec.cluster.plan import memory_bytes
from kgtrec.errors import FileError, KgtrecError, UsageError

if TYPE_CHECKING:
    from distributed import Client

# Dask gives a worker up that is not back 15 s after it was lost. A machine under load may need
# longer to start a process, and so lost one killed worker after another. `patience` says how long
# there may be none.
COME_BACK = {"distributed.deploy.lost-worker-timeout": "1 day"}

# Dask samples its workers' threads 100 times per second, delays of its event loops 50 times and
# memory 10 times. That takes a sixth of a core if two workers idle, for pages that nobody opens.
UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "2s",
}

# Seconds for workers to end: if one is lost while it starts, Dask waits for that start without
# end.
_CLOSE = 30.0


@contextmanager
def local_client(folder: Path, n_workers: int) -> Iterator[Client]:
    """A client of `n_workers` new processes, which end with the context and obey nobody else."""
    import dask
    from distributed import Client

    from kgtrec.cluster.dask.private_cluster import private_cluster

    stack = ExitStack()
    try:
        stack.enter_context(dask.config.set(COME_BACK | UNWATCHED))
        with _undisturbed():
            cluster = private_cluster(n_workers, _utf8_name(folder))
            stack.callback(cluster.close, timeout=_CLOSE)
            client = stack.enter_context(Client(cluster, set_as_default=False))
        yield client
    finally:
        # Workers that end late are no error, and must not hide another error. They end with this
        # process at the latest.
        with suppress(Exception):
            stack.close()


def _utf8_name(folder: Path) -> str | None:
    """A folder's name for Dask; None, for one of Dask's own, if it is not UTF-8 as messages are."""
    path = str(folder.absolute())
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return path


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals wait, so that a half-started cluster is never left behind.

    Ctrl-C goes to all processes of a terminal. Processes started here, and the thread that may
    start more, inherit the block: this process ends them. SIGTERM may also go to all processes.
    The workers that it ends do not start; then the signal is raised.
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
    resource_tracker.ensure_running()  # if started later, it would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)  # here a waiting Ctrl-C is raised
        finally:
            for one in came:
                os.kill(os.getpid(), one)


TimedOut = (TimeoutError, asyncio.TimeoutError)
"""Dask's errors after a timeout: one and the same class from Python 3.11 on."""

PATIENCE = 60.0
"""Longest time in seconds without any worker, at the start and after a loss."""

CONNECT = 10.0
"""Seconds for a scheduler to answer."""

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between checks of a worker that is ending
_ANSWER = 10.0  # seconds for a scheduler to report its workers
_REACH = 3.0  # seconds for a worker to answer
_STAY = 2.0  # seconds of a task that keeps a worker; its first task waits at most so long


class ClusterError(KgtrecError):
    """The cluster failed, not the input: the same call may succeed later."""


class SchedulerLost(ClusterError):
    """The scheduler is gone, or it has no workers."""


class PiecesGone(Exception):
    """No worker has the sent files any more: send them again."""


def guarded(work: Callable[[], Any]) -> Any:
    """The value of a function on a worker; or its error, if a retry would change nothing.

    An unreadable file raises an error, so that Dask tries again: storage may be late.
    """
    try:
        return work()
    except FileError as error:
        raise OSError(str(error)) from None  # a FileError cannot be pickled
    except (KgtrecError, PiecesGone) as error:
        return error.with_traceback(None)


def require_dask() -> None:
    """UsageError without Dask."""
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
    """The given client, or one with a process per core, which is closed afterwards."""
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
    """Why worker processes did not start, and what the user can do about it."""
    causes: list[BaseException] = []  # Dask wraps the system's error in errors of its own
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for each in reversed(causes):
        if isinstance(each, OSError) and each.errno in _REMEDIES:
            remedy = _REMEDIES[each.errno]
            return ClusterError(f"the worker processes did not start ({each.strerror}); {remedy}")
    return ClusterError(
        f"the worker processes did not start ({error}); read their messages. A script that "
        "starts them must have its calls under if __name__ == '__main__':"
    )


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address; UsageError if nobody answers there."""
    require_dask()
    from distributed import Client

    keys = ", and that Dask's configuration names the keys (kgtrec guide clusters)"
    try:
        client = Client(address, timeout=CONNECT)
    except (OSError, *TimedOut, ValueError, TypeError) as error:  # TypeError: tls:// without keys
        raise UsageError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); check the address, "
            f"as `dask scheduler` prints it{keys if address.startswith('tls:') else ''}"
        ) from None
    with client:
        yield client


@dataclass(frozen=True)
class TaskOptions:
    """How tasks run; `kgtrec.cluster.rank` documents each field."""

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


def look_at_workers(client: Client, paths: Sequence[str], patience: float = PATIENCE) -> bool:
    """Whether all workers see the same files; an error if they can't do our work."""
    here, answers = look(paths), _answers(client, paths, patience)
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


def _answers(client: Client, paths: Sequence[str], patience: float) -> dict[str, Any]:
    """The answer of every worker; tries again if one is just ending."""
    error, wait = None, Wait(client, patience)
    for seconds in _PAUSES:
        try:
            with a_worker(client, patience):
                answers = client.run(look, list(paths), on_error="return")
        except (OSError, *TimedOut) as lost:
            raise wait.in_vain(type(lost).__name__) from None
        faults = [said for said in answers.values() if isinstance(said, BaseException)]
        error = next((fault for fault in faults if not isinstance(fault, ImportError)), None)
        if error is None:
            return dict(answers)
        time.sleep(seconds)
    raise ClusterError(f"a worker does not answer ({error}); look at the logs of the cluster")


@contextmanager
def a_worker(client: Client, patience: float) -> Iterator[None]:
    """Wait for a worker, and keep it for the context.

    An adaptive cluster gets a task. Without one it would start no worker, or end the worker
    before it answers.
    """
    task = None if client.nthreads() else client.submit(time.sleep, _STAY, pure=False)
    try:
        client.wait_for_workers(1, timeout=None if math.isinf(patience) else patience)
        yield
    finally:
        if task is not None:
            task.release()


def look(paths: Sequence[str]) -> tuple[str, list[tuple[int, int] | None]]:
    """The version here, and the size and time of files as seen here; None if missing."""
    stamps: list[tuple[int, int] | None] = [None] * len(paths)
    for number, path in enumerate(paths):
        with suppress(OSError):
            stat = os.stat(path)
            stamps[number] = (stat.st_size, stat.st_mtime_ns)
    return __version__, stamps


def in_reach(client: Client) -> bool:
    """Whether this process can connect to one worker of each host."""
    hosts = {address.rpartition(":")[0]: address for address in client.nthreads()}

    async def connect() -> None:
        pool = client.rpc
        comms = [pool.connect(address, timeout=_REACH) for address in hosts.values()]
        for address, comm in zip(hosts.values(), await asyncio.gather(*comms), strict=True):
            pool.reuse(address, comm)

    try:
        client.sync(connect)
    except (OSError, *TimedOut):
        return False
    return True


def count_cores(client: Client) -> dict[str, int]:
    """Threads per worker, from the scheduler; OSError or `TimedOut` if it does not answer."""
    cores: dict[str, int] = client.sync(
        client.scheduler.ncores, workers=None, callback_timeout=_ANSWER
    )
    return cores


class Wait:
    """A wait for workers: its duration, and the error that ends it."""

    def __init__(self, client: Client, patience: float) -> None:
        self.client, self.patience, self.started = client, patience, time.monotonic()
        # A client without its scheduler forgets the address.
        scheduler = getattr(client, "scheduler", None)
        self._place = getattr(scheduler, "address", None) or "its address"

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started

    def in_vain(self, why: str = "") -> SchedulerLost:
        """The error if no worker came; asks first whether there is a scheduler at all."""
        with suppress(Exception):
            if self.client.status == "running":
                count_cores(self.client)
                return self.no_workers(why)
        return self.no_scheduler()

    def no_scheduler(self) -> SchedulerLost:
        """The error for a lost scheduler."""
        return SchedulerLost(
            f"the connection to the scheduler at {self._place} was lost and did not return within "
            f"{self.seconds:.0f} s; start it and its workers, and run again: finished parts are "
            "kept"
        )

    def no_workers(self, reason: str = "") -> SchedulerLost:
        """The error for a scheduler that had no workers for too long."""
        why = f" ({reason})" if reason else ""
        return SchedulerLost(
            f"the scheduler at {self._place} has had no worker for {self.patience:g} s{why}; start "
            "workers, or look at their logs, and run again: finished parts are kept ("
            f"{argument('patience')} sets how long to wait)"
        )
