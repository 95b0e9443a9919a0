"""Complete all tasks on the workers of a Dask cluster, despite lost workers or data.

Dask itself replaces a lost worker: the others take over its tasks. This module notices that no
worker is left, or that the scheduler or data on the workers is gone.

`rank_chunks` ranks a Dask array chunk by chunk, each where it is computed. A row of chunks is one
unit of work. If it has several chunks, each first gives the scores of the answers among its
columns. Then each is ranked, and the counts are added. A chunk is computed once, and stays in
memory (or is spilled by Dask) between the two steps.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.csr import offsets_of
from kgtrec._internal.progress import progress_bar
from kgtrec.cluster.dask.shipment import Shipment, Work, Workers, locate_inputs
from kgtrec.cluster.dask.workers import (
    ClusterError,
    PiecesGone,
    SchedulerLost,
    TaskOptions,
    TimedOut,
    Wait,
    catch_errors,
    count_cores,
    keep_worker,
)
from kgtrec.cluster.parts import Inputs, NanFound, answer_scores, merge_parts, rank_part
from kgtrec.errors import FileError, InputError, KgtrecError
from kgtrec.ranking.partial import PartialRanks, Task
from kgtrec.scores.arrays import as_array, score_dtype

if TYPE_CHECKING:
    from distributed import Client, Future

_PAUSES_AFTER_LOSS = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds; after one more loss it fails
_IN_FLIGHT = 32  # tasks submitted at least, enough for an adaptive cluster to grow
_POLL_SECONDS = 1.0  # without a finished task, after which workers are counted


_Unit = TypeVar("_Unit")


class TaskWorkers(Protocol):
    """The part of `Workers` that completes tasks."""

    client: Client
    tasks: TaskOptions

    @property
    def inputs(self) -> Any:
        """The inputs whose names explain a NaN; None if tasks explain it themselves."""

    def prepare(self) -> None:
        """Make the workers ready for tasks, at the start and after each loss."""

    def fetch(self, future: Future) -> Any:
        """Return the value of a finished task."""


def complete_all(
    workers: TaskWorkers,
    works: Iterable[_Unit],
    submit: Callable[[_Unit], Future],
    window: int | None = None,
) -> Iterator[tuple[_Unit, Any]]:
    """Yield each work and its value as they finish, despite lost workers or data.

    - submit: Starts the task of a work.
    - window: Largest number of submitted tasks; None: enough for all threads.
    """
    left = dict.fromkeys(works)
    losses = 0  # since the last finished task
    while left:
        try:
            try:
                workers.prepare()
            except KgtrecError:
                raise
            except Exception as error:  # workers that end meanwhile raise many kinds of errors
                raise _Lost from error
            for work, value in _complete_until_loss(workers, list(left), submit, window):
                del left[work]
                losses = 0
                yield work, value
        except _Lost as lost:
            if losses == len(_PAUSES_AFTER_LOSS):
                raise SchedulerLost(
                    f"the scheduler or the data on the workers was lost {losses + 1} times in a "
                    f"row, and {len(left)} tasks are left; look at the logs of the cluster"
                ) from lost
            _wait_for_scheduler(
                workers.client, _PAUSES_AFTER_LOSS[losses], workers.tasks.patience, lost
            )
            losses += 1


class _Lost(Exception):
    """Futures are lost, but not because their tasks failed."""


def _complete_until_loss(
    workers: TaskWorkers,
    works: Sequence[_Unit],
    submit: Callable[[_Unit], Future],
    window: int | None,
) -> Iterator[tuple[_Unit, Any]]:
    """Yield works and values as they finish; raise `_Lost` when futures are lost."""
    client = workers.client
    waiting, flying = deque(works), dict[Any, _Unit]()
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
            value = _fetch_value(workers, future, work)
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
    """Return the next finished future; raise an error after too long without a worker."""
    wait = Wait(client, patience)
    while True:
        with suppress(Empty):
            return finished.get(timeout=_POLL_SECONDS)
        if client.status != "running":
            raise _Lost(f"the client is {client.status}")
        if count_cores(client):
            wait = Wait(client, patience)
        elif wait.seconds > patience:
            raise wait.no_workers_error()


def _fetch_value(workers: TaskWorkers, future: Future, work: object) -> Any:
    """Return the value of a finished task; raise its error, or `_Lost`."""
    from distributed.scheduler import KilledWorker

    try:
        value = workers.fetch(future) if future.status == "finished" else future.result()
    except CancelledError:
        raise
    except KilledWorker:
        raise ClusterError(
            f"{work}: this task ended its workers repeatedly, perhaps because they ran out of "
            f"memory; lower {argument('memory')}, or give the workers more memory"
        ) from None
    except Exception as error:
        if future.status == "cancelled" or workers.client.status != "running":
            raise _Lost from error
        raise ClusterError(
            f"{work} failed on the workers ({type(error).__name__}: {error}); look at their logs"
        ) from error
    if isinstance(value, PiecesGone):
        raise _Lost(str(value))
    if isinstance(value, NanFound):
        raise value.with_names(workers.inputs)
    if isinstance(value, Exception):
        raise value
    return value


def _wait_for_scheduler(client: Client, pause: float, patience: float, lost: _Lost) -> None:
    """Wait until the client is connected to its scheduler and a worker is available."""
    wait = Wait(client, patience)
    time.sleep(min(pause, patience))  # the scheduler may not know yet which workers are gone
    while client.status == "connecting" and wait.seconds < patience:
        time.sleep(0.1)
    try:
        if client.status == "running":
            with keep_worker(client, max(_POLL_SECONDS, patience - wait.seconds)):
                return
    except TimedOut:
        raise wait.explain_no_worker() from None
    except Exception as error:
        lost = _Lost(type(error).__name__)
    raise wait.no_scheduler_error() from lost


def rank_chunks(
    source: Any,
    inputs: Inputs,
    client: Client,
    take: Callable[[PartialRanks], None],
    tasks: TaskOptions,
) -> None:
    """Rank a Dask array (rows, entities); ``take`` receives each row of chunks, in any order."""
    store = inputs.store()
    source = _check_array(source, store.n_rows, store.n_columns)
    if store.restricted:
        source = source.rechunk({1: -1})  # candidates are ranked with all columns together
    spans, columns = (tuple(pairwise(offsets_of(sizes).tolist())) for sizes in source.chunks)
    if store.restricted:
        columns = ((0, store.n_labels),)
    blocks = dict(zip((Work(rows, columns) for rows in spans), source.to_delayed(), strict=True))
    with closing(Workers(client, inputs, tasks)) as workers:

        def submit(work: Work) -> Future:
            graph = _build_graph(work, list(blocks[work]), workers.where)
            return client.compute(graph, retries=tasks.retries)

        with progress_bar(store.n_rows, "rows", tasks.progress) as bar:
            for work, part in complete_all(workers, blocks, submit):
                take(part)
                bar.update(work.rows[1] - work.rows[0])


def _check_array(source: Any, n_rows: int, n_columns: int) -> Any:
    """Return a Dask array; InputError if its chunks, shape or dtype cannot be ranked."""
    if any(math.isnan(length) for length in source.shape):
        raise InputError(
            "the Dask array has chunks of unknown size; call compute_chunk_sizes() on it first"
        )
    if source.shape != (n_rows, n_columns):
        raise InputError(
            f"scores have shape {source.shape}; expected ({n_rows}, {n_columns}): one row per "
            f"question (with {argument('rows', 'instances')}, per triple and side) and one column "
            "per entity"
        )
    score_dtype(np.empty((0, 0), dtype=source.dtype))
    return source


def _build_graph(work: Work, blocks: list[Any], where: Inputs | Shipment) -> Any:
    """Return the Dask graph that ranks a row of chunks."""
    from dask import delayed

    tasks = (Task(*work.rows, *span) for span in work.ranges)
    pairs = list(zip(blocks, tasks, strict=True))
    if len(pairs) == 1:
        return delayed(_rank_block)(*pairs[0], where, None)
    answers = delayed(_add_scores)([delayed(_score_answers)(*pair, where) for pair in pairs])
    parts = [delayed(_rank_block)(*pair, where, answers) for pair in pairs]
    return delayed(_merge)(parts, where)


def _score_answers(block: Any, task: Task, where: Inputs | Shipment) -> Any:
    """Return the scores of the answers in a block, or an error. This runs on a worker."""
    return catch_errors(lambda: answer_scores(task, locate_inputs(where), as_array(block)))


def _add_scores(scores: list[Any]) -> Any:
    """Add up arrays of scores: each answer has its score in one array, and 0 in the others."""
    return _first_error(scores) or sum(scores[1:], scores[0])


def _rank_block(block: Any, task: Task, where: Inputs | Shipment, answers: Any) -> Any:
    """Return the part of a block, or an error. This runs on a worker."""
    return _first_error([answers]) or catch_errors(
        lambda: rank_part(task, locate_inputs(where), answers, as_array(block))
    )


def _merge(parts: list[Any], where: Inputs | Shipment) -> Any:
    """Merge the parts of a row of chunks, or return an error. This runs on a worker."""
    return _first_error(parts) or catch_errors(lambda: merge_parts(parts, locate_inputs(where)))


def _first_error(values: list[Any]) -> Exception | None:
    """Return the first error among values, if there is one."""
    return next((value for value in values if isinstance(value, Exception)), None)
