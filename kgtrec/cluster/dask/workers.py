"""Work on the workers of a Dask cluster: one's own processes or any client, losses and all.

Dask is imported by the functions that use it, so that this module loads without it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kgtrec._internal.threads import available_cores
from kgtrec._version import __version__
from kgtrec.cluster.dask.local import local_client
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = [
    "ClusterError",
    "Refusal",
    "SchedulerLost",
    "connected",
    "do_all",
    "guarded",
    "look_at_workers",
    "opened_client",
    "refuse_unguarded",
]


def refuse_unguarded() -> None:
    """A script without the usual guard would start processes that start processes."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "worker processes import the script that starts them; put its work under "
            "if __name__ == '__main__':"
        )


Work = TypeVar("Work")

WAIT = 60.0
"""Seconds that a cluster is given to have a worker, at the start and after a loss."""

CONNECT = 10.0
"""Seconds that a scheduler is given to answer."""

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds after each loss, until it is given up
_IN_FLIGHT = 32  # tasks at least; enough that a cluster which adapts itself sees that it is short


class ClusterError(KgtrecError):
    """The cluster failed, not the input: the same call may succeed later."""


class SchedulerLost(ClusterError):
    """There is no scheduler any more, or it has no workers."""


@dataclass(frozen=True)
class Refusal:
    """What is wrong with the input, as a task says it: a retry would not mend it."""

    text: str


def guarded(work: Callable[[], Any]) -> Any:
    """The value of a function on a worker, or a `Refusal`.

    A file that cannot be read is raised, and so tried again: storage may be late.
    """
    try:
        return work()
    except FileError as error:
        raise OSError(str(error)) from None  # a FileError does not survive being sent
    except KgtrecError as error:
        return Refusal(str(error))


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
            found = stack.enter_context(local_client(folder, workers or available_cores()))
        except RuntimeError as error:
            raise ClusterError(
                f"the worker processes did not start ({error}); look at what they said. A script "
                "that starts them needs its work under if __name__ == '__main__':"
            ) from None
        yield found


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address; UsageError if nobody answers there."""
    require_dask()
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); "
            "check the address, as `dask scheduler` prints it"
        ) from None
    with client:
        yield client


def look_at_workers(client: Client, paths: Sequence[str]) -> bool:
    """Whether all workers see the same files; an error if they can't do our work.

    Raises
    ------
    ClusterError
        No worker within a minute, or the scheduler does not answer.
    UsageError
        Workers with another version of kgtrec, or without it.
    """
    here, found = look(paths), _answers(client, paths)
    versions = {
        said[0] if isinstance(said, tuple) else "no kgtrec": worker
        for worker, said in found.items()
    }
    for version, worker in versions.items():
        if version != __version__:
            raise UsageError(
                f"worker {worker} has {version}, this is kgtrec {__version__}; "
                "install the same version everywhere"
            )
    return all(said == here for said in found.values())


def _answers(client: Client, paths: Sequence[str]) -> dict[str, Any]:
    """What every worker says; one that is just going is no reason to give up."""
    error: BaseException | None = None
    for seconds in _PAUSES:
        try:
            _wait_for_a_worker(client)
            found = client.run(look, list(paths), on_error="return")
        except (TimeoutError, OSError) as lost:
            raise SchedulerLost(_no_workers(client, lost)) from None
        faults = [said for said in found.values() if isinstance(said, BaseException)]
        error = next((fault for fault in faults if not isinstance(fault, ImportError)), None)
        if error is None:
            return dict(found)
        time.sleep(seconds)
    raise ClusterError(f"a worker does not answer ({error}); look at the logs of the cluster")


def _wait_for_a_worker(client: Client) -> None:
    """Wait; a cluster that adapts itself to its tasks is given one, or no worker would come."""
    asked = None if client.nthreads() else client.submit(int, pure=False)
    try:
        client.wait_for_workers(1, timeout=WAIT)
    finally:
        if asked is not None:
            asked.release()


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


def _no_workers(client: Client, error: BaseException) -> str:
    place = getattr(client.scheduler, "address", None) or "that address"
    return (
        f"no worker has come to the scheduler at {place} within {WAIT:.0f} s "
        f"({type(error).__name__}); start workers, or look at their logs"
    )


def do_all(
    client: Client,
    works: Iterable[Work],
    submit: Callable[[Work], Future],
    prepare: Callable[[], None] = lambda: None,
    window: int | None = None,
) -> Iterator[tuple[Work, Any]]:
    """Values of all works as they are finished, whatever is lost on the way.

    Parameters
    ----------
    client : distributed.Client
    works : iterable
        Hashable descriptions of what is to be done.
    submit : callable
        Starts one of them.
    prepare : callable, optional
        Called before the first and after each loss of the scheduler or of scattered data.
    window : int, optional
        Tasks that are under way at a time.

    Raises
    ------
    InputError
        A task refused its input.
    ClusterError
        A task failed or killed its workers again and again, or the scheduler is gone.
    """
    left = dict.fromkeys(works)
    for seconds in _PAUSES:
        if not left:
            return
        try:
            _prepared(prepare)
            for work, value in _one_round(client, list(left), submit, window):
                del left[work]
                yield work, value
        except _Lost:
            time.sleep(seconds)  # the scheduler may not know yet who is gone
            _wait_for_scheduler(client)
    if left:
        raise SchedulerLost(
            f"the scheduler or the data on the workers was lost {len(_PAUSES)} times, {len(left)} "
            "tasks are left; look at the logs of the cluster"
        )


def _prepared(prepare: Callable[[], None]) -> None:
    try:
        prepare()
    except KgtrecError:
        raise
    except Exception as error:  # workers that go in the middle of it show in many ways
        raise _Lost from error


class _Lost(Exception):
    """Futures are gone, for no fault of theirs."""


def _one_round(
    client: Client,
    works: Sequence[Work],
    submit: Callable[[Work], Future],
    window: int | None,
) -> Iterator[tuple[Work, Any]]:
    """Values as they come; `_Lost` leaves the rest to another round."""
    from distributed import as_completed

    waiting, flying = deque(works), dict[Any, Work]()
    finished = as_completed(loop=client.loop)

    def start() -> None:
        future = submit(waiting[0])
        flying[future] = waiting.popleft()
        finished.add(future)

    try:
        wide = max(_IN_FLIGHT, 4 * sum(client.nthreads().values()))
        for _ in range(min(window or wide, len(waiting))):
            start()
        for future in finished:
            work = flying[future]
            value = _value(client, future, work)
            del flying[future]
            yield work, value
            if waiting:
                start()
    except (OSError, TimeoutError, CancelledError) as error:
        if isinstance(error, FileError):
            raise
        raise _Lost from error
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.cancel(list(flying), force=True)


def _value(client: Client, future: Future, work: Any) -> Any:
    from distributed.scheduler import KilledWorker

    try:
        value = future.result()
    except CancelledError:
        raise
    except KilledWorker:
        raise ClusterError(
            f"{work}: the workers died of it, again and again; they may have run out of memory: "
            "grant less with memory= (--memory), or give them more"
        ) from None
    except Exception as error:
        if future.status == "cancelled" or client.status != "running":
            raise _Lost from error
        raise ClusterError(
            f"{work} failed on the workers: {type(error).__name__}: {error}"
        ) from error
    if isinstance(value, Refusal):
        raise InputError(value.text)
    return value


def _wait_for_scheduler(client: Client) -> None:
    """Go on where a scheduler has come back in time."""
    try:
        _wait_for_a_worker(client)
    except Exception as error:
        raise SchedulerLost(
            f"the connection to the scheduler is lost ({error}); start it and its workers, "
            "and run again: what was written is kept"
        ) from None
