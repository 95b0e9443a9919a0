"""Tasks on the workers of a Dask cluster, done to the last whatever is lost on the way.

Dask itself replaces a lost worker: its tasks are done by those that are left. What is noticed here
is that none is left, or that the scheduler or data on the workers is gone.

`rank_chunks` ranks a Dask array, which is never whole: every chunk is ranked where it is computed.
A row of chunks is one unit of work. Where it has several chunks, each first gives the scores of the
answers among its columns; then each is ranked, and the counts add up. A chunk is computed once, and
stays (or is spilled by Dask) between the two steps.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kgtrec._internal.runtime import progress_bar
from kgtrec.cluster.dask.shipment import Shipment, Workers, located
from kgtrec.cluster.dask.workers import (
    ClusterError,
    Gone,
    Refusal,
    SchedulerLost,
    TaskOptions,
    TimedOut,
    Wait,
    a_worker,
    count_cores,
    guarded,
)
from kgtrec.cluster.ranges import Inputs, answer_scores, merge, naming, partial
from kgtrec.errors import FileError, InputError, KgtrecError
from kgtrec.ranking.partial import PartialRanks, Task
from kgtrec.scores.arrays import as_array, score_dtype

if TYPE_CHECKING:
    from distributed import Client, Future

Work = TypeVar("Work")

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds after each loss, until it is given up
_IN_FLIGHT = 32  # tasks at least; enough that a cluster which adapts itself sees that it is short
_GLANCE = 1.0  # seconds without a finished task, after which workers are counted


def do_all(
    workers: Workers,
    works: Iterable[Work],
    submit: Callable[[Work], Future],
    window: int | None = None,
) -> Iterator[tuple[Work, Any]]:
    """Values of all works as they are finished, whatever is lost on the way."""
    left = dict.fromkeys(works)
    losses = 0  # since something was finished
    while left:
        try:
            _prepared(workers)
            for work, value in _one_round(workers, list(left), submit, window):
                del left[work]
                losses = 0
                yield work, value
        except _Lost as lost:
            if losses == len(_PAUSES):
                raise SchedulerLost(
                    f"the scheduler or the data on the workers was lost {losses + 1} times in a "
                    f"row, {len(left)} tasks are left; look at the logs of the cluster"
                ) from lost
            _wait_for_scheduler(workers.client, _PAUSES[losses], workers.tasks.patience, lost)
            losses += 1


def _prepared(workers: Workers) -> None:
    try:
        workers.prepare()
    except KgtrecError:
        raise
    except Exception as error:  # workers that go in the middle of it show in many ways
        raise _Lost from error


class _Lost(Exception):
    """Futures are gone, for no fault of theirs."""


def _one_round(
    workers: Workers,
    works: Sequence[Work],
    submit: Callable[[Work], Future],
    window: int | None,
) -> Iterator[tuple[Work, Any]]:
    """Values as they come; `_Lost` leaves the rest to another round."""
    client = workers.client
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
            future = _next_finished(client, finished, workers.tasks.patience)
            work = flying[future]
            value = _value(workers, future, work)
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
    wait = Wait(client, patience)
    while True:
        with suppress(Empty):
            return finished.get(timeout=_GLANCE)
        if client.status != "running":
            raise _Lost(f"the client is {client.status}")
        if count_cores(client):
            wait = Wait(client, patience)
        elif wait.seconds > patience:
            raise wait.no_workers()


def _value(workers: Workers, future: Future, work: Any) -> Any:
    from distributed.scheduler import KilledWorker

    try:
        value = workers.fetch(future) if future.status == "finished" else future.result()
    except CancelledError:
        raise
    except KilledWorker:
        raise ClusterError(
            f"{work}: the workers died of it, again and again; they may have run out of memory: "
            "grant less with memory= (--memory), or give them more"
        ) from None
    except Exception as error:
        if future.status == "cancelled" or workers.client.status != "running":
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
    wait = Wait(client, patience)
    time.sleep(min(pause, patience))  # the scheduler may not know yet who is gone
    while client.status == "connecting" and wait.seconds < patience:
        time.sleep(0.1)
    try:
        if client.status == "running":
            with a_worker(client, max(_GLANCE, patience - wait.seconds)):
                return
    except TimedOut:
        raise wait.in_vain() from None
    except Exception as error:
        lost = _Lost(type(error).__name__)
    raise wait.no_scheduler() from lost


@dataclass(frozen=True)
class _Row:
    """One row of chunks: its number, its rows, and the column ranges of its chunks."""

    number: int
    rows: tuple[int, int]
    columns: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return f"chunk of rows {self.rows[0]} to {self.rows[1] - 1}"


def rank_chunks(
    source: Any,
    inputs: Inputs,
    client: Client,
    take: Callable[[PartialRanks], None],
    tasks: TaskOptions,
) -> None:
    """Rank a Dask array (rows, entities); ``take`` gets each row of chunks, in any order."""
    store = inputs.store()
    source = _checked(source, store.n_rows, store.n_columns)
    if store.restricted:
        source = source.rechunk({1: -1})  # candidates are ranked with all columns at hand
    columns = tuple(_bounds(source.chunks[1])) if not store.restricted else ((0, store.n_labels),)
    rows = [_Row(n, span, columns) for n, span in enumerate(_bounds(source.chunks[0]))]
    blocks = source.to_delayed()
    with Workers(client, inputs, tasks) as workers:

        def submit(row: _Row) -> Future:
            graph = _graph(row, list(blocks[row.number]), workers.where)
            return client.compute(graph, retries=tasks.retries)

        with naming(inputs), progress_bar(store.n_rows, "rows", tasks.progress) as bar:
            for row, part in do_all(workers, rows, submit):
                take(part)
                bar.update(row.rows[1] - row.rows[0])


def _checked(source: Any, n_rows: int, n_columns: int) -> Any:
    if any(math.isnan(length) for length in source.shape):
        raise InputError(
            "the Dask array has chunks of unknown size; call its compute_chunk_sizes() first"
        )
    if source.shape != (n_rows, n_columns):
        raise InputError(
            f"scores have shape {source.shape}; expected ({n_rows}, {n_columns}): a row per "
            "question (or per triple and side, with rows='instances'), a column per entity"
        )
    score_dtype(np.empty((0, 0), dtype=source.dtype))
    return source


def _bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """First and last-but-one position of each chunk that holds anything."""
    stops = list(accumulate(sizes))
    return [(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]


def _graph(row: _Row, blocks: list[Any], where: Inputs | Shipment) -> Any:
    """The part of a row of chunks, as something that Dask computes."""
    from dask import delayed

    tasks = [Task(*row.rows, *span) for span in row.columns]
    if len(tasks) == 1:
        return delayed(_rank_block)(blocks[0], tasks[0], where, None)
    scores = [
        delayed(_answers_in)(block, task, where) for block, task in zip(blocks, tasks, strict=True)
    ]
    answers = delayed(_total)(scores)
    parts = [
        delayed(_rank_block)(block, task, where, answers)
        for block, task in zip(blocks, tasks, strict=True)
    ]
    return delayed(_merged)(parts, where)


def _answers_in(block: Any, task: Task, where: Inputs | Shipment) -> Any:
    return guarded(lambda: answer_scores(task, located(where), as_array(block))[0])


def _total(scores: list[Any]) -> Any:
    """Each answer's score stands in one of the arrays, and 0 in the others."""
    return _refusal(scores) or sum(scores[1:], scores[0])


def _rank_block(block: Any, task: Task, where: Inputs | Shipment, answers: Any) -> Any:
    if isinstance(answers, Refusal):
        return answers
    return guarded(lambda: partial(task, located(where), answers, as_array(block)))


def _merged(parts: list[Any], where: Inputs | Shipment) -> Any:
    return _refusal(parts) or guarded(lambda: merge(parts, located(where)))


def _refusal(values: list[Any]) -> Refusal | None:
    return next((value for value in values if isinstance(value, Refusal)), None)
