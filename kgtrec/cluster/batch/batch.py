"""Batches: models x graphs x protocols, each job a set of Dask tasks, resumed after any kill.

At least two jobs run at a time, so that the workers rank one while the other is read, averaged and
written. More run if their tasks are too few for the workers (`Load`). Every finished part and job
is a file, and a batch has no other state: to resume a killed batch, start it again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import TYPE_CHECKING

from kgtrec._internal.files import check_writable, make_folder
from kgtrec._internal.locations import is_location
from kgtrec.cluster.batch.job_file import Job, JobBatch, with_side
from kgtrec.cluster.batch.records import Outcome, Records
from kgtrec.cluster.dask.rank import CLIENT, rank_parts, scratch
from kgtrec.cluster.dask.workers import PATIENCE, SchedulerLost, TaskOptions, opened_client
from kgtrec.cluster.inputs import inputs_of_store
from kgtrec.cluster.plan import format_bytes, memory_bytes
from kgtrec.cluster.question_store import Store, save_questions
from kgtrec.cluster.score_files import describe_scores
from kgtrec.cluster.stored_ranks import StoredRanks, result_bytes, stored_result
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.measures import Measure, parse_all, required_depth
from kgtrec.scores.mapped_files import reading
from kgtrec.trec.measures.agreement import COMPARED

if TYPE_CHECKING:
    from distributed import Client

LEAST, MOST = 2, 32
_END = 10.0  # seconds for interrupted jobs to end
_TRIES, _PAUSE = 20, 0.1  # to remove what ending processes still write to
_STARTING = 2  # jobs whose tasks are still unknown
_AHEAD = 2  # tasks per thread of the workers, over all jobs


@dataclass
class Load:
    """Running jobs: their remaining tasks, and the bytes that they take in this process.

    One job always starts, even with little ``memory``. ``changed`` is called when another job
    might start; ``waiting`` jobs have not started.
    """

    memory: int
    changed: Callable[[], None] = lambda: None
    waiting: int = 0
    _left: dict[str, int | None] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _largest: int = 0
    _threads: int = 1
    _lock: Lock = field(default_factory=Lock)

    def has_room(self) -> bool:
        """Whether one more job may start; it may be as large as the largest so far."""
        with self._lock:
            left, needed = list(self._left.values()), sum(self._bytes.values()) + self._largest
            if left and (not self._largest or needed > self.memory):
                return False
            if len(left) < LEAST:
                return True
            if len(left) >= MOST or left.count(None) >= _STARTING:
                return False
            return sum(tasks or 0 for tasks in left) < _AHEAD * self._threads

    @property
    def jobs(self) -> int:
        """Jobs that will share the workers."""
        return min(MOST, len(self._left) + self.waiting)

    def begin(self, name: str) -> None:
        """A job starts."""
        with self._lock:
            self._left[name], self._bytes[name] = None, self._largest

    def sized(self, name: str, size: int) -> None:
        """Record the bytes of this process that a job takes; known once its questions exist."""
        with self._lock:
            self._bytes[name], self._largest = size, max(self._largest, size)
        self.changed()

    def watch(self, name: str, left: int, threads: int) -> None:
        """Record a job's remaining tasks, and the threads of the workers."""
        with self._lock:
            self._left[name], self._threads = left, max(1, threads)
        self.changed()

    def end(self, name: str) -> None:
        """A job ends, finished or failed."""
        with self._lock:
            del self._left[name], self._bytes[name]


def batch_status(batch: JobBatch) -> list[Outcome]:
    """State of every job, from the files of the output folder alone."""
    records = Records(batch)
    return [records.outcome(job) for job in batch.jobs]


def run_batch(
    batch: JobBatch,
    client: Client | None = None,
    workers: int | None = None,
    say: Callable[[Outcome | str], None] = lambda said: None,
    patience: float = PATIENCE,
) -> list[Outcome]:
    """Run the unfinished jobs of a batch, and write its summary."""
    tasks = TaskOptions(batch.memory, progress=False, patience=patience)
    with _locked(batch):
        records = Records(batch)
        _remove_unfinished(records)
        running: list[Future[Outcome]] = []
        outcomes = {outcome.job.name: outcome for outcome in batch_status(batch)}
        left = [one.job for one in outcomes.values() if one.state != "finished"]
        try:
            if left:
                with opened_client(client, records.work_folder, workers) as dask:
                    for outcome in _run_all(
                        left, _JobRunner(batch, records, dask, say, tasks), running
                    ):
                        outcomes[outcome.job.name] = outcome
                        say(outcome)
            final = list(outcomes.values())
            records.write_summary(final)
            return final
        finally:
            # Without workers, jobs that were interrupted end soon. They would leave files.
            wait(running, _END)
            _remove_unfinished(records)
            if not any(records.parts.glob("**/*.part")):  # nothing to go on with
                _remove(records.work_folder)


def _remove_unfinished(records: Records) -> None:
    """Remove unfinished files, which are ours: other batches are locked out."""
    for path in list(records.left_behind()):
        _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or folder, even if a process that is ending still writes into it."""
    for _ in range(_TRIES):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if not path.exists():
            return
        time.sleep(_PAUSE)


@contextmanager
def _locked(batch: JobBatch) -> Iterator[None]:
    """Lock the output and the folder for parts, which batches of several outputs may share. The
    locks end with the process, even if it is killed. A URL has no lock."""
    check_writable(batch.output / "summary.csv" if is_location(batch.output) else None)
    folders = {"output": batch.output, "work": batch.work}
    if is_location(batch.output):
        del folders["output"]
    with ExitStack() as stack:
        locked: list[Path] = []
        for key, folder in folders.items():
            try:
                make_folder(folder)
            except OSError:
                check_writable(folder)  # explains the fault
                raise
            check_writable(folder / "summary.csv")
            # A folder under two names is locked once: a second lock would meet the first.
            if any(os.path.samefile(folder, other) for other in locked):
                continue
            locked.append(folder)
            file = stack.enter_context(open(folder / ".lock", "w"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"another batch is writing to {folder}; wait for it, or give another folder as "
                    f"{key}"
                ) from None
            except OSError as error:  # such as Lustre, if it is mounted without flock
                problem = f"the file system does not support locks ({error.strerror})"
                hint = f"give a folder of another file system as {key}"
                raise FileError(folder, found=problem, hint=hint) from None
        yield


def _run_all(
    jobs: list[Job], runner: _JobRunner, running: list[Future[Outcome]]
) -> Iterator[Outcome]:
    """The outcomes of jobs as they end; ``running`` receives all that begin."""
    pool, waiting, n_running = ThreadPoolExecutor(MOST), deque(jobs), 0
    events: SimpleQueue[Future[Outcome] | None] = SimpleQueue()
    runner.load.changed = lambda: events.put(None)
    try:
        while waiting or n_running:
            while waiting and runner.load.has_room():
                job = waiting.popleft()
                runner.load.waiting = len(waiting)
                runner.load.begin(job.name)
                running.append(pool.submit(runner.run, job))
                running[-1].add_done_callback(events.put)
                n_running += 1
            future = events.get()
            if future is not None:
                n_running -= 1
                yield future.result()
    finally:
        runner.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


class _JobRunner:
    """Runs single jobs; jobs with the same questions share one store of them."""

    def __init__(
        self,
        batch: JobBatch,
        records: Records,
        client: Client,
        say: Callable[[Outcome | str], None],
        tasks: TaskOptions,
    ) -> None:
        self.batch, self.records, self.client, self.say = batch, records, client, say
        self.tasks = tasks
        keys = [with_side(key) for key in batch.measures]
        names = [*COMPARED, *(m.metric for m in parse_all(keys) if m.is_trec)]
        self.depth = max(20, *(required_depth(name) or 0 for name in names))
        self.load = Load(max(0, memory_bytes(batch.memory) - CLIENT))
        self.stopped = Event()
        self._lock = Lock()
        self._stores: dict[str, Store] = {}

    def run(self, job: Job) -> Outcome:
        """Run one job, which finishes or fails; only a lost scheduler is an error."""
        try:
            return self._rank(job)
        except SchedulerLost:
            raise
        except Exception as error:
            if self.stopped.is_set():  # it failed because the batch is stopping
                raise
            known = isinstance(error, (KgtrecError, OSError))
            text = job.named(error) if known else f"{type(error).__name__}: {error}"
            return self.records.failed(job, text)
        finally:
            self.load.end(job.name)

    def _rank(self, job: Job) -> Outcome:
        before = self.records.fresh_inputs(job)
        store = self._store(job)
        self.records.clear(job, before)
        names = {key: job.measure(key) for key in self.batch.measures}
        measures = parse_all([name for name in names.values() if name is not None])
        self._size(job, store, measures)
        with scratch(self.records.work_folder) as folder, reading(job.scores):
            settings = job.scoring(self.depth if job.of_graph else 0)
            inputs = inputs_of_store(job.scores, store, self.records.work_folder, settings)
            stored = StoredRanks(Path(folder), inputs)
            rank_parts(
                inputs,
                self.client,
                stored.add,
                self.tasks,
                self.records.work(job),
                say=lambda plan: self.say(f"{job.name}: {plan}"),
                watch=lambda left, threads: self._watch(job, left, threads),
                jobs=self.load.jobs,
            )
            result = stored_result(stored, Path(folder), measures)
            values = {key: float(result[name]) for key, name in names.items() if name is not None}
            if self.records.fresh_inputs(job) != before:
                raise InputError(
                    "its inputs changed while they were ranked; run the batch again when nothing "
                    "writes to them"
                )
            path = self.records.ranks(job)
            make_folder(path.parent)
            result.ranks.save(path, rank_type="realistic")
        outcome = self.records.succeeded(job, before, values)
        shutil.rmtree(self.records.work(job), ignore_errors=True)
        return outcome

    def _watch(self, job: Job, left: int, threads: int) -> None:
        """Report a job's remaining tasks to the load; end the job if the batch is stopping."""
        if self.stopped.is_set():
            raise CancelledError
        self.load.watch(job.name, left, threads)

    def _size(self, job: Job, store: Store, measures: list[Measure]) -> None:
        """Report the size to the load; refuse a job that this process has no memory for."""
        size, granted = result_bytes(store, measures), memory_bytes(self.batch.memory)
        self.load.sized(job.name, size)
        if size > granted:
            raise UsageError(
                f"the memory limit is too low: averaging {store.n_instances:,} ranks takes "
                f"{format_bytes(size)} in this process; allow more"
            )

    def _store(self, job: Job) -> Store:
        """The job's questions as files; made once for all jobs, and not kept in memory."""
        with self._lock:
            key, shape = self.records.question_inputs(job), (0, 0)
            if not job.of_graph:
                files = describe_scores(job.scores, self.records.work_folder / "scores")
                shape = files.n_rows, files.n_columns
                key = f"{key} {shape}"
            if key not in self._stores:
                questions = job.request.ask(*shape)
                rows = job.settings.get("rows", "questions")
                folder = save_questions(questions, rows, self.records.work_folder)
                self._stores[key] = Store(folder)
            return self._stores[key]
