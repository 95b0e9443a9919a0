"""Batches: models x graphs x protocols, each job a set of Dask tasks, resumed after any kill.

At least two jobs run at a time, so that the workers rank one while the other is read, averaged and
written. More run if their tasks are too few for the workers (`Load`). Every finished part and job
is a file, and a batch has no other state: to resume a killed batch, start it again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, RLock
from typing import TYPE_CHECKING, Any

from kgtrec._internal.files import check_writable, make_folder
from kgtrec._internal.locations import is_location
from kgtrec._internal.locks import hold_lock
from kgtrec._internal.system import lock, reason_of
from kgtrec.cluster.batch.jobs import PAIRS_ONLY, Job, JobBatch, complete_key
from kgtrec.cluster.batch.pair_jobs import LoadVectors, PairRequest, rank_relations
from kgtrec.cluster.batch.records import Outcome, Records
from kgtrec.cluster.dask.rank import CLIENT_BYTES, make_scratch_folder, rank_parts
from kgtrec.cluster.dask.workers import PATIENCE, SchedulerLost, TaskOptions, open_client
from kgtrec.cluster.inputs import build_inputs_of_store
from kgtrec.cluster.plan import format_bytes, memory_bytes
from kgtrec.cluster.question_store import Store, save_questions
from kgtrec.cluster.score_files import describe_scores
from kgtrec.cluster.stored_ranks import StoredRanks, evaluate_stored, result_bytes
from kgtrec.cluster.vectors import ModelVectors, check_memory
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.measures import Measure, find_depth, parse_all
from kgtrec.scores.mapped_files import reading
from kgtrec.trec.measures.agreement import COMPARED

if TYPE_CHECKING:
    from distributed import Client

OpenVectors = Callable[..., ModelVectors]
"""`kgtrec.integrations.embeddings.ModelFile`: called with a path and the keys of a model."""

LEAST_JOBS, MOST_JOBS = 2, 32  # that run at a time
_END_SECONDS = 10.0  # that interrupted jobs get to end
_REMOVE_TRIES, _REMOVE_PAUSE = 20, 0.1  # for files that ending processes still write to
_REPORT_SECONDS = 1.0
_MOST_STARTING = 2  # jobs at a time whose number of tasks is not known yet
_BYTES_OF_PAIRS = "64MB"  # of a job of pairs in this process: the graph and counts of answers
_TASKS_PER_THREAD = 2  # tasks that all jobs together provide per thread of the workers


@dataclass(frozen=True)
class BatchState:
    """How far a batch is.

    - total, finished, failed, running: Numbers of jobs; `failed` counts those of this run.
    - done: Number of jobs that ended, plus the shares of the running ones that are done.
    """

    total: int
    finished: int
    failed: int
    running: int
    done: float

    def __str__(self) -> str:
        failed = f", {self.failed} failed" * (self.failed > 0)
        return f"{self.finished} of {self.total} jobs done, {self.running} running{failed}"


@dataclass
class Load:
    """The running jobs: their remaining tasks, and their memory in this process.

    One job always starts, even with little memory.

    - memory: Bytes that all running jobs together may use.
    - changed: Called when another job might start.
    - waiting: Number of jobs that have not started.
    """

    memory: int
    changed: Callable[[], None] = lambda: None
    waiting: int = 0
    _tasks_left: dict[str, int | None] = field(default_factory=dict)
    _most_left: dict[str, int] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _largest: int = 0
    _threads: int = 1
    _lock: Any = field(default_factory=RLock)

    @hold_lock
    def has_room(self) -> bool:
        """Return whether one more job may start if it is as large as the largest so far."""
        left, needed = (
            list(self._tasks_left.values()),
            sum(self._bytes.values()) + self._largest,
        )
        if left and (not self._largest or needed > self.memory):
            return False
        if len(left) < LEAST_JOBS:
            return True
        if len(left) >= MOST_JOBS or left.count(None) >= _MOST_STARTING:
            return False
        return sum(tasks or 0 for tasks in left) < _TASKS_PER_THREAD * self._threads

    @property
    def jobs(self) -> int:
        """Number of jobs that will share the workers."""
        return min(MOST_JOBS, len(self._tasks_left) + self.waiting)

    @hold_lock
    def begin(self, name: str) -> None:
        """Record that a job starts."""
        self._tasks_left[name], self._bytes[name] = None, self._largest

    def record_size(self, name: str, size: int) -> None:
        """Record the bytes that a job needs in this process; known once its questions exist."""
        with self._lock:
            self._bytes[name], self._largest = size, max(self._largest, size)
        self.changed()

    def record_tasks(self, name: str, left: int, threads: int) -> None:
        """Record the remaining tasks of a job, and the number of threads of the workers."""
        with self._lock:
            self._tasks_left[name], self._threads = left, max(1, threads)
            self._most_left[name] = max(left, self._most_left.get(name, 0))
        self.changed()

    @hold_lock
    def running(self) -> tuple[int, float]:
        """Return the number of running jobs, and the sum of their shares that are done."""
        left = {name: n for name, n in self._tasks_left.items() if n is not None}
        shares = [1 - n / max(1, self._most_left[name]) for name, n in left.items()]
        return len(self._tasks_left), sum(shares)

    @hold_lock
    def end(self, name: str) -> None:
        """Record that a job ends, finished or failed."""
        del self._tasks_left[name], self._bytes[name]


def batch_status(batch: JobBatch) -> list[Outcome]:
    """Return the state of every job, from the files of the output folder alone."""
    records = Records(batch)
    return [records.outcome(job) for job in batch.jobs]


def run_batch(
    batch: JobBatch,
    client: Client | None = None,
    workers: int | None = None,
    say: Callable[[Outcome | str], None] = lambda said: None,
    patience: float = PATIENCE,
    load_vectors: LoadVectors | None = None,
    open_vectors: OpenVectors | None = None,
    say_plan: Callable[[str], None] | None = None,
    watch: Callable[[BatchState], None] = lambda state: None,
) -> list[Outcome]:
    """Run the unfinished jobs of a batch, write its summary, and return the state of all jobs.

    - client: A client of a Dask cluster; None: worker processes of this machine, `workers` many.
    - say: Receives the outcome of each job that ends, and notes on questions.
    - say_plan: Receives the plan of each job that starts; None: without forecasts.
    - watch: Called in this thread at least every second while jobs run.
    - patience: Seconds to wait for a worker.
    - load_vectors: Loads the vectors of models, for pairs; see `LoadVectors`.
    - open_vectors: Opens the vectors of models, for ranks; see `OpenVectors`.
    """
    tasks = TaskOptions(batch.memory, progress=False, patience=patience)
    with _lock_folders(batch):
        records = Records(batch)
        _remove_unfinished(records)
        running: list[Future[Outcome]] = []
        outcomes = {outcome.job.name: outcome for outcome in batch_status(batch)}
        left = [outcome.job for outcome in outcomes.values() if outcome.state != "finished"]
        try:
            if left:
                with open_client(client, records.work_folder, workers) as dask:
                    runner = _JobRunner(
                        batch, records, dask, say, tasks, load_vectors, open_vectors, say_plan
                    )
                    ended: set[str] = set()

                    def report() -> None:
                        watch(_describe_state(outcomes, ended, runner.load))

                    for outcome in _run_all(left, runner, running, report):
                        outcomes[outcome.job.name] = outcome
                        ended.add(outcome.job.name)
                        say(outcome)
                        report()
            final = list(outcomes.values())
            records.write_summary(final)
            return final
        finally:
            try:
                _clean_up(records, running)
            except BaseException:  # a signal during the work below: finish it, then end
                _clean_up(records, running)
                raise


def _describe_state(outcomes: dict[str, Outcome], ended: set[str], load: Load) -> BatchState:
    """Return the state of a batch; `ended` has the names of the jobs that ended in this run."""
    states = [outcome.state for outcome in outcomes.values()]
    finished = states.count("finished")
    failed = sum(outcomes[name].state == "failed" for name in ended)
    running, share = load.running()
    return BatchState(len(states), finished, failed, running, finished + failed + share)


def _clean_up(records: Records, running: Sequence[Future[Outcome]]) -> None:
    """Remove what jobs leave: unfinished files, and the folder for parts if it has none."""
    # Without workers, jobs that were interrupted end soon. They would leave files.
    wait(running, _END_SECONDS)
    _remove_unfinished(records)
    if not any(records.parts.glob("**/*.part")):  # nothing to go on with
        _remove(records.work_folder)


def _remove_unfinished(records: Records) -> None:
    """Remove unfinished files. No other batch writes them, because this one holds the locks."""
    for path in list(records.find_unfinished_files()):
        _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or folder, even if a process that is ending still writes into it."""
    for _ in range(_REMOVE_TRIES):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if not path.exists():
            return
        time.sleep(_REMOVE_PAUSE)


@contextmanager
def _lock_folders(batch: JobBatch) -> Iterator[None]:
    """Hold locks on the output folder and on the folder for parts while the context is open.

    Several outputs may share a folder for parts, so both are locked. The locks end with the
    process, even if it is killed. A URL has no lock.
    """
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
            # Lock a folder with two names only once: the second lock would wait for the first.
            if any(os.path.samefile(folder, other) for other in locked):
                continue
            locked.append(folder)
            file = stack.enter_context(open(folder / ".lock", "wb"))
            try:
                lock(file.fileno())
            except BlockingIOError:
                raise UsageError(
                    f"another batch is writing to {folder}; wait for it, or give another folder as "
                    f"{key}"
                ) from None
            except OSError as error:  # such as Lustre, if it is mounted without flock
                problem = f"the file system does not support locks ({reason_of(error)})"
                hint = f"give a folder of another file system as {key}"
                raise FileError(folder, found=problem, hint=hint) from None
        yield


def _run_all(
    jobs: list[Job],
    runner: _JobRunner,
    running: list[Future[Outcome]],
    report: Callable[[], None],
) -> Iterator[Outcome]:
    """Run jobs and yield their outcomes as they end; append a future per job to `running`.

    - report: Called after each change, and at least every second.
    """
    pool, waiting, n_running = ThreadPoolExecutor(MOST_JOBS), deque(jobs), 0
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
            report()
            try:
                future = events.get(timeout=_REPORT_SECONDS)
            except Empty:
                continue
            if future is not None:
                n_running -= 1
                yield future.result()
    finally:
        runner.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


class _JobRunner:
    """Runs one job per call. Jobs with the same questions share one store of questions."""

    def __init__(
        self,
        batch: JobBatch,
        records: Records,
        client: Client,
        say: Callable[[Outcome | str], None],
        tasks: TaskOptions,
        load_vectors: LoadVectors | None = None,
        open_vectors: OpenVectors | None = None,
        say_plan: Callable[[str], None] | None = None,
    ) -> None:
        self.batch, self.records, self.client, self.say = batch, records, client, say
        self.tasks, self.load_vectors, self.open_vectors = tasks, load_vectors, open_vectors
        self.say_plan = say_plan
        usual = [key for key in batch.measures if key not in PAIRS_ONLY]
        keys = [complete_key(key) for key in usual]
        names = [*COMPARED, *(m.metric for m in parse_all(keys) if m.is_trec)]
        self.depth = max(20, *(find_depth(name) or 0 for name in names))
        self.load = Load(max(0, memory_bytes(batch.memory) - CLIENT_BYTES))
        self.stopped = Event()
        self._lock = Lock()
        self._stores: dict[str, Store] = {}

    def run(self, job: Job) -> Outcome:
        """Run a job and return its outcome, finished or failed.

        Only a lost scheduler raises an error (`SchedulerLost`).
        """
        try:
            return self._rank_pairs(job) if job.of_pairs else self._rank(job)
        except SchedulerLost:
            raise
        except Exception as error:
            if self.stopped.is_set():  # it failed because the batch is stopping
                raise
            expected = isinstance(error, (KgtrecError, OSError))
            text = job.describe_error(error) if expected else f"{type(error).__name__}: {error}"
            return self.records.record_failure(job, text)
        finally:
            self.load.end(job.name)

    def _rank(self, job: Job) -> Outcome:
        """Rank a job's scores, write its ranks, and record its measures."""
        before = self.records.fresh_inputs(job)
        store = self._store(job)
        self.records.clear(job, before)
        names = {key: job.measure_key(key) for key in self.batch.measures}
        measures = parse_all([name for name in names.values() if name is not None])
        self._record_size(job, store, measures)
        with make_scratch_folder(self.records.work_folder) as folder, reading(job.scores):
            settings = job.settings_for(self.depth if job.of_graph else 0)
            source: Any = job.scores if job.vectors is None else self._vectors(job)
            # Files that are computed from vectors are not needed after the job.
            kept = self.records.work_folder if job.vectors is None else Path(folder) / "vectors"
            inputs = build_inputs_of_store(source, store, kept, settings)
            stored = StoredRanks(Path(folder), inputs)
            rank_parts(
                inputs,
                self.client,
                stored.add,
                self.tasks,
                self.records.work(job),
                say=self._plan_printer(job),
                watch=lambda left, threads: self._record_tasks(job, left, threads),
                jobs=self.load.jobs,
            )
            result = evaluate_stored(stored, Path(folder), measures)
            values = {key: float(result[name]) for key, name in names.items() if name is not None}
            self._refuse_changes(job, before)
            path = self.records.ranks(job)
            make_folder(path.parent)
            result.ranks.save(path, rank_type="realistic")
        outcome = self.records.record_success(job, before, values)
        shutil.rmtree(self.records.work(job), ignore_errors=True)
        return outcome

    def _plan_printer(self, job: Job) -> Callable[[str], None] | None:
        """Return a function that reports the plan of a job; None if nobody wants it."""
        if (say := self.say_plan) is None:
            return None
        return lambda plan: say(f"{job.name}: {plan}")

    def _vectors(self, job: Job) -> ModelVectors:
        """Return the vectors of a job; UsageError if they need more memory than this process."""
        if self.open_vectors is None:
            raise UsageError("jobs of vectors need open_vectors; pass ModelFile")
        vectors = self.open_vectors(job.scores, **dict(job.vectors or {}))
        check_memory(vectors, memory_bytes(self.batch.memory))
        return vectors

    def _rank_pairs(self, job: Job) -> Outcome:
        """Rank the relations of a job of pairs, write their ranks, and record its measures."""
        before = self.records.fresh_inputs(job)
        self.records.clear(job, before)
        assert isinstance(job.request, PairRequest)
        if self.load_vectors is None:
            raise UsageError("jobs of pairs need load_vectors; pass load_pair_vectors")
        self.load.record_size(job.name, memory_bytes(_BYTES_OF_PAIRS))
        ranks = rank_relations(
            job.request,
            self.client,
            self.records.work(job),
            before,
            self.load_vectors,
            self.tasks,
            lambda left, threads: self._record_tasks(job, left, threads),
        )
        self._refuse_changes(job, before)
        keys = [key for key in self.batch.measures if job.measure_key(key) is not None]
        by_pairs = ranks.values(keys)
        path = self.records.ranks(job)
        make_folder(path.parent)
        ranks.write(path)
        outcome = self.records.record_success(job, before, dict(zip(keys, by_pairs, strict=True)))
        shutil.rmtree(self.records.work(job), ignore_errors=True)
        return outcome

    def _refuse_changes(self, job: Job, before: str) -> None:
        """Raise InputError if the inputs of a job have changed since their hash was computed."""
        if self.records.fresh_inputs(job) != before:
            raise InputError(
                "its inputs changed while they were ranked; run the batch again when nothing "
                "writes to them"
            )

    def _record_tasks(self, job: Job, left: int, threads: int) -> None:
        """Report the remaining tasks of a job to the load; end the job if the batch is stopping."""
        if self.stopped.is_set():
            raise CancelledError
        self.load.record_tasks(job.name, left, threads)

    def _record_size(self, job: Job, store: Store, measures: list[Measure]) -> None:
        """Report the memory of a job to the load; UsageError if this process has not enough."""
        size, granted = result_bytes(store, measures), memory_bytes(self.batch.memory)
        self.load.record_size(job.name, size)
        if size > granted:
            raise UsageError(
                f"the memory limit is too low: averaging {store.n_instances:,} ranks takes "
                f"{format_bytes(size)} in this process; allow more"
            )

    def _store(self, job: Job) -> Store:
        """Return the store of a job's questions; it is written once for all jobs that share it."""
        with self._lock:
            if job.vectors is None:
                files = describe_scores(job.scores, self.records.work_folder / "scores")
                shape = files.n_rows, files.n_columns
            else:
                shape = 0, self._vectors(job).count_entities()
            # A graph whose labels are numbers may have as many entities as scores have columns.
            size = shape[1] if job.of_graph else shape
            key = f"{self.records.question_inputs(job)} {size}"
            if key not in self._stores:
                request: Any = job.request
                if job.of_graph:
                    request = replace(request, say=lambda text: self.say(f"{job.name}: {text}"))
                questions = request.ask(*shape)
                rows = job.settings.get("rows", "questions")
                folder = save_questions(questions, rows, self.records.work_folder)
                self._stores[key] = Store(folder)
            return self._stores[key]
