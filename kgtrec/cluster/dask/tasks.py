"""Tasks on the workers of a Dask cluster, done to the last whatever is lost on the way.

A worker that is lost is Dask's to make good: its tasks are done by those that are left. What is
noticed here is that none is left, or that the scheduler or data on the workers is gone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from kgtrec.cluster.dask.workers import (
    PATIENCE,
    ClusterError,
    Gone,
    Refusal,
    SchedulerLost,
    TimedOut,
    a_worker,
    no_workers,
)
from kgtrec.errors import FileError, KgtrecError

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["do_all"]

Work = TypeVar("Work")

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds after each loss, until it is given up
_IN_FLIGHT = 32  # tasks at least; enough that a cluster which adapts itself sees that it is short
_GLANCE = 1.0  # seconds without a finished task, after which workers are counted
_ANSWER = 10.0  # seconds that a scheduler is given to say how many there are


def do_all(
    client: Client,
    works: Iterable[Work],
    submit: Callable[[Work], Future],
    prepare: Callable[[], None] = lambda: None,
    window: int | None = None,
    patience: float = PATIENCE,
    fetch: Callable[[Future], Any] | None = None,
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
    patience : float, default `PATIENCE`
        Seconds that there may be no worker, or no scheduler.
    fetch : callable, optional
        Brings the value of a finished task; by default through the scheduler.

    Raises
    ------
    InputError
        A task refused its input.
    ClusterError
        A task failed or killed its workers again and again; there has been no worker, or no
        scheduler, for as long as `patience`.
    """
    left = dict.fromkeys(works)
    losses = 0  # since something was finished
    while left:
        try:
            _prepared(prepare)
            for work, value in _one_round(client, list(left), submit, window, patience, fetch):
                del left[work]
                losses = 0
                yield work, value
        except _Lost as lost:
            if losses == len(_PAUSES):
                raise SchedulerLost(
                    f"the scheduler or the data on the workers was lost {losses + 1} times in a "
                    f"row, {len(left)} tasks are left; look at the logs of the cluster"
                ) from lost
            _wait_for_scheduler(client, _PAUSES[losses], patience, lost)
            losses += 1


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
    patience: float,
    fetch: Callable[[Future], Any] | None,
) -> Iterator[tuple[Work, Any]]:
    """Values as they come; `_Lost` leaves the rest to another round."""
    waiting, flying = deque(works), dict[Any, Work]()
    finished: SimpleQueue[Future] = SimpleQueue()

    def start() -> None:
        future = submit(waiting[0])
        flying[future] = waiting.popleft()
        future.add_done_callback(finished.put)

    try:
        wide = max(_IN_FLIGHT, 4 * sum(client.nthreads().values()))
        for _ in range(min(window or wide, len(waiting))):
            start()
        while flying:
            future = _next_finished(client, finished, patience)
            work = flying[future]
            value = _value(client, future, work, fetch)
            del flying[future]
            yield work, value
            if waiting:
                start()
    except (OSError, *TimedOut, CancelledError) as error:
        if isinstance(error, FileError):
            raise
        raise _Lost from error
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.cancel(list(flying), force=True)


def _next_finished(client: Client, finished: SimpleQueue[Future], patience: float) -> Future:
    """The next future that is done; an error once there has been no worker for too long."""
    last_seen = time.monotonic()
    while True:
        with suppress(Empty):
            return finished.get(timeout=_GLANCE)
        if _has_workers(client):
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > patience:
            raise SchedulerLost(no_workers(client, patience))


def _has_workers(client: Client) -> bool:
    if client.status != "running":
        raise _Lost(f"the client is {client.status}")
    return bool(client.sync(client.scheduler.ncores, workers=None, callback_timeout=_ANSWER))


def _value(client: Client, future: Future, work: Any, fetch: Callable[[Future], Any] | None) -> Any:
    from distributed.scheduler import KilledWorker

    try:
        finished = fetch is not None and future.status == "finished"
        value = fetch(future) if fetch is not None and finished else future.result()
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
    if isinstance(value, Gone):
        raise _Lost(value.text)
    if isinstance(value, Refusal):
        raise value.error()
    return value


def _wait_for_scheduler(client: Client, pause: float, patience: float, lost: _Lost) -> None:
    """Go on where a scheduler has come back, or is there all the time, and has a worker.

    The client looks for its scheduler by itself, and is closed when it has not found it.
    """
    started = time.monotonic()
    place = getattr(client.scheduler, "address", None) or "its address"
    time.sleep(min(pause, patience))  # the scheduler may not know yet who is gone
    while client.status == "connecting" and time.monotonic() - started < patience:
        time.sleep(0.1)
    try:
        if client.status == "running":
            left = patience - (time.monotonic() - started)
            with a_worker(client, max(_GLANCE, left)):
                return
    except TimedOut:
        raise SchedulerLost(no_workers(client, patience)) from None
    except Exception as error:
        lost = _Lost(type(error).__name__)
    waited = time.monotonic() - started
    raise SchedulerLost(
        f"the connection to the scheduler at {place} is lost, and not back after {waited:.0f} s; "
        "start it and its workers, and run again: what was written is kept"
    ) from lost
