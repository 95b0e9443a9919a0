"""The workers of a Dask cluster: one's own processes or any client, and whether they can work.

Dask is imported by the functions that use it, so that this module loads without it.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.threads import available_cores
from kgtrec._version import __version__
from kgtrec.cluster.dask.local import local_client
from kgtrec.cluster.part import NanFound
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "PATIENCE",
    "ClusterError",
    "Gone",
    "PiecesGone",
    "Refusal",
    "SchedulerLost",
    "TimedOut",
    "a_worker",
    "connected",
    "guarded",
    "in_reach",
    "look_at_workers",
    "no_workers",
    "opened_client",
    "refuse_unguarded",
    "valid_patience",
]


def refuse_unguarded() -> None:
    """A script without the usual guard would start processes that start processes."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "worker processes import the script that starts them; put its work under "
            "if __name__ == '__main__':"
        )


TimedOut = (TimeoutError, asyncio.TimeoutError)
"""What Dask raises when time is up: one and the same class from Python 3.11 on."""

PATIENCE = 60.0
"""Seconds that a cluster may be without any worker, at the start and after a loss."""

CONNECT = 10.0
"""Seconds that a scheduler is given to answer."""

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between looks at a worker that is just going
_REACH = 3.0  # seconds in which a worker is to answer
_STAY = 2.0  # seconds that a worker is kept from going, and at most from its first task


class ClusterError(KgtrecError):
    """The cluster failed, not the input: the same call may succeed later."""


class SchedulerLost(ClusterError):
    """There is no scheduler any more, or it has no workers."""


@dataclass(frozen=True)
class Refusal:
    """What is wrong with the input, as a task says it: a retry would change nothing."""

    text: str
    nan: tuple[int, int, int] | None = None

    def error(self) -> InputError:
        """The error that it stands for."""
        return InputError(self.text) if self.nan is None else NanFound(*self.nan)


@dataclass(frozen=True)
class Gone(Refusal):
    """What was sent to the workers is on none of them any more: it is to be sent anew."""


class PiecesGone(Exception):
    """Raised on a worker that looks for them; the task gives a `Gone`."""


def guarded(work: Callable[[], Any]) -> Any:
    """The value of a function on a worker, or a `Refusal`.

    A file that cannot be read is raised, and so tried again: storage may be late.
    """
    try:
        return work()
    except FileError as error:
        raise OSError(str(error)) from None  # a FileError does not survive being sent
    except KgtrecError as error:
        return Refusal(str(error), error.at if isinstance(error, NanFound) else None)
    except PiecesGone as error:
        return Gone(str(error))


def require_dask() -> None:
    """UsageError without Dask."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UsageError(
            "Dask is not installed; pip install 'kgtrec[cluster]' (kgtrec rank --shard needs none)"
        ) from None


@contextmanager
def opened_client(
    client: Client | None, folder: Path, workers: int | None = None
) -> Iterator[Client]:
    """The client given, or one of as many processes as there are cores, closed afterwards."""
    require_dask()
    from distributed import Client

    if client is not None:
        if not isinstance(client, Client) or client.asynchronous:
            raise UsageError(
                f"client is {client!r}; pass a distributed.Client that is not asynchronous, or None"
            )
        yield client
        return
    refuse_unguarded()
    with ExitStack() as stack:
        try:
            local = stack.enter_context(local_client(folder, workers or available_cores()))
        except RuntimeError as error:
            raise ClusterError(
                f"the worker processes did not start ({error}); look at what they said. A script "
                "that starts them needs its work under if __name__ == '__main__':"
            ) from None
        yield local


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address; UsageError if nobody answers there."""
    require_dask()
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT)
    except (OSError, *TimedOut, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); "
            "check the address, as `dask scheduler` prints it"
        ) from None
    with client:
        yield client


def valid_patience(seconds: float) -> float:
    """The seconds as a number; UsageError if they are none, or not above 0."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise UsageError(
            f"patience is {seconds!r}; seconds to wait for a worker, above 0 "
            "(float('inf') waits for ever)"
        )
    return float(seconds)


def look_at_workers(client: Client, paths: Sequence[str], patience: float = PATIENCE) -> bool:
    """Whether all workers see the same files; an error if they can't do our work.

    Raises
    ------
    ClusterError
        No worker within `patience` seconds, or the scheduler does not answer.
    UsageError
        Workers with another version of kgtrec, or without it.
    """
    here, answers = look(paths), _answers(client, paths, patience)
    versions = {
        said[0] if isinstance(said, tuple) else "no kgtrec": worker
        for worker, said in answers.items()
    }
    for version, worker in versions.items():
        if version != __version__:
            raise UsageError(
                f"worker {worker} has {version}, this is kgtrec {__version__}; "
                "install the same version everywhere"
            )
    return all(said == here for said in answers.values())


def _answers(client: Client, paths: Sequence[str], patience: float) -> dict[str, Any]:
    """What every worker says; one that is just going is no reason to give up."""
    error: BaseException | None = None
    for seconds in _PAUSES:
        try:
            with a_worker(client, patience):
                answers = client.run(look, list(paths), on_error="return")
        except (OSError, *TimedOut) as lost:
            raise SchedulerLost(no_workers(client, patience, type(lost).__name__)) from None
        faults = [said for said in answers.values() if isinstance(said, BaseException)]
        error = next((fault for fault in faults if not isinstance(fault, ImportError)), None)
        if error is None:
            return dict(answers)
        time.sleep(seconds)
    raise ClusterError(f"a worker does not answer ({error}); look at the logs of the cluster")


@contextmanager
def a_worker(client: Client, patience: float) -> Iterator[None]:
    """Wait for a worker, and keep it while the context lasts.

    A cluster that adapts itself to its tasks is given one, or no worker would come; and it would
    take the worker away again before that has said anything.
    """
    task = None if client.nthreads() else client.submit(time.sleep, _STAY, pure=False)
    try:
        client.wait_for_workers(1, timeout=None if math.isinf(patience) else patience)
        yield
    finally:
        if task is not None:
            task.release()


def look(paths: Sequence[str]) -> tuple[str, list[tuple[int, int] | None]]:
    """The version here, and what files look like from here: size and time, None if missing."""
    stamps: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            stat = os.stat(path)
            stamps.append((stat.st_size, stat.st_mtime_ns))
        except OSError:
            stamps.append(None)
    return __version__, stamps


def in_reach(client: Client) -> bool:
    """Whether this process can connect to the workers, one of each host."""
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


def no_workers(client: Client, patience: float, reason: str = "") -> str:
    """The sentence for a cluster that has been without workers for too long."""
    place = getattr(client.scheduler, "address", None) or "that address"
    why = f" ({reason})" if reason else ""
    return (
        f"the scheduler at {place} has had no worker for {patience:g} s{why}; start workers, or "
        "look at their logs, and run again: what was written is kept (longer waits: patience=, "
        "--patience)"
    )
