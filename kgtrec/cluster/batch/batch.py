"""Batches: models x graphs x protocols, each job a set of Dask tasks, resumed after any kill.

Two jobs are under way at a time, so that the workers rank one while the other is read, averaged and
written. Every finished part and job is a file, and files are all there is to know: a batch that was
killed is simply started again.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from kgtrec._internal.atomic_file import check_writable, make_folder
from kgtrec._internal.locations import is_location
from kgtrec.cluster.batch.job_file import Batch, Job, with_side
from kgtrec.cluster.batch.records import Outcome, Records
from kgtrec.cluster.dask.rank import rank_parts
from kgtrec.cluster.dask.workers import PATIENCE, SchedulerLost, opened_client, valid_patience
from kgtrec.cluster.inputs import make_inputs
from kgtrec.cluster.merge_parts import finish
from kgtrec.cluster.plan import memory_bytes
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.graph.id_files import read_labels
from kgtrec.measures import parse_all, required_depth
from kgtrec.questions.api import Graph, Questions, read_graph
from kgtrec.questions.filters import CONTEXT_FILTER_NAMES, PROTOCOLS
from kgtrec.results.evaluate import COMPARED, checked_result

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["batch_status", "run_batch"]

_AT_ONCE = 2


def batch_status(batch: Batch) -> list[Outcome]:
    """How every job stands, from the files of the output folder alone."""
    records = Records(batch)
    return [records.outcome(job) for job in batch.jobs]


def run_batch(
    batch: Batch,
    client: Client | None = None,
    workers: int | None = None,
    tell: Callable[[Outcome | str], None] = lambda said: None,
    patience: float = PATIENCE,
) -> list[Outcome]:
    """Do what is left of a batch, and write its summary.

    Parameters
    ----------
    batch : Batch
    client : distributed.Client, optional
        None: worker processes of this machine.
    workers : int, optional
        How many of these; one per core by default.
    tell : callable, optional
        Is told every job's plan (a text), then its outcome, as they come.
    patience : float, default 60
        Seconds that there may be no worker; see `kgtrec.cluster.rank`.

    Returns
    -------
    list of Outcome
        In the order of the job file, each finished or failed.

    Raises
    ------
    ClusterError
        The scheduler is gone, or has had no worker for `patience` seconds. What was done is kept;
        run again.
    UsageError
        Another batch is at work in the same output folder, or Dask is missing.
    FileError
        The output folder cannot be written.
    """
    memory_bytes(batch.memory)
    patience = valid_patience(patience)
    with _locked(batch):
        records = Records(batch)
        for path in list(records.left_behind()):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        outcomes = {outcome.job.name: outcome for outcome in batch_status(batch)}
        left = [one.job for one in outcomes.values() if one.state != "finished"]
        if left:
            with opened_client(client, records.work_folder, workers) as dask:
                for outcome in _all_of(left, _Doer(batch, records, dask, tell, patience)):
                    outcomes[outcome.job.name] = outcome
                    tell(outcome)
        final = list(outcomes.values())
        records.write_summary(final)
        if not any(records.parts.glob("**/*.part")):  # nothing to go on with
            shutil.rmtree(records.work_folder, ignore_errors=True)
        return final


@contextmanager
def _locked(batch: Batch) -> Iterator[None]:
    """Nobody else works in the folder; the lock ends with the process, however that ends.

    There are no locks at a URL: it is that of the folder for parts.
    """
    check_writable(batch.output / "summary.csv" if is_location(batch.output) else None)
    output = batch.work if is_location(batch.output) else batch.output
    try:
        make_folder(output)
    except OSError:
        check_writable(output)  # says what is wrong
        raise
    check_writable(output / "summary.csv")
    with open(output / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another batch is at work in {output}; wait for it, or name another output"
            ) from None
        yield


def _all_of(jobs: list[Job], doer: _Doer) -> Iterator[Outcome]:
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        futures: list[Future[Outcome]] = [pool.submit(doer.do, job) for job in jobs]
        for future in as_completed(futures):
            yield future.result()
    finally:
        doer.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


class _Doer:
    """Does single jobs; graphs and questions are kept from one job to the next."""

    def __init__(
        self,
        batch: Batch,
        records: Records,
        client: Client,
        tell: Callable[[Outcome | str], None],
        patience: float,
    ) -> None:
        self.batch, self.records, self.client, self.tell = batch, records, client, tell
        self.patience = patience
        keys = [with_side(key) for key in batch.measures]
        names = [*COMPARED, *(m.metric for m in parse_all(keys) if m.is_trec)]
        self.depth = max(20, *(required_depth(name) or 0 for name in names))
        self.stopped = Event()
        self._lock = Lock()
        self._graphs: dict[str, Graph] = {}
        self._questions: dict[tuple[str, str], Questions] = {}

    def do(self, job: Job) -> Outcome:
        """One job, finished or failed; only a lost scheduler is an error."""
        try:
            return self._finished(job)
        except SchedulerLost:
            raise
        except Exception as error:
            if self.stopped.is_set():  # it failed because all is being taken down
                raise
            known = isinstance(error, (KgtrecError, OSError))
            text = str(error) if known else f"{type(error).__name__}: {error}"
            return self.records.failed(job, text)

    def _finished(self, job: Job) -> Outcome:
        before = self.records.fresh_inputs(job)
        questions = self._job_questions(job)
        self.records.clear(job, before)
        ranks, run = self._ranked(job, questions)
        names = {key: job.measure(key) for key in self.batch.measures}
        measures = parse_all([name for name in names.values() if name is not None])
        result = checked_result(ranks, run, questions, measures)
        values = {key: result[name] for key, name in names.items() if name is not None}
        if self.records.fresh_inputs(job) != before:
            raise InputError("its inputs changed while they were ranked; run the batch again")
        path = self.records.ranks(job)
        make_folder(path.parent)
        result.ranks.save(path, rank_type="realistic")
        outcome = self.records.finished(job, before, values)
        shutil.rmtree(self.records.work(job), ignore_errors=True)
        return outcome

    def _ranked(self, job: Job, questions: Questions) -> tuple[Any, Any]:
        inputs = make_inputs(
            job.scores,
            questions,
            self.records.work_folder,
            run_depth=self.depth,
            rows=job.settings.get("rows", "questions"),
            higher_is_better=job.higher_is_better,
            nan=job.settings.get("nan", "error"),
            **(job.tolerance._asdict() if job.tolerance else {}),
        )
        parts = rank_parts(
            inputs,
            self.client,
            self.batch.memory,
            folder=self.records.work(job),
            progress=False,
            tell=lambda plan: self.tell(f"{job.name}: {plan}"),
            patience=self.patience,
        )
        return finish(parts, inputs)

    def _job_questions(self, job: Job) -> Questions:
        """The job's questions; those of the last few jobs are at hand."""
        with self._lock:
            key = (job.graph, job.protocol)
            if key not in self._questions:
                if job.graph not in self._graphs:
                    _keep_few(self._graphs)
                    self._graphs[job.graph] = read_graph(job.folder, progress=False)
                _keep_few(self._questions)
                self._questions[key] = ask(self._graphs[job.graph], job)
            return self._questions[key]


def _keep_few(cache: dict[Any, Any]) -> None:
    while len(cache) >= _AT_ONCE:
        del cache[next(iter(cache))]


def ask(graph: Graph, job: Job) -> Questions:
    """Questions of a graph by a protocol's settings."""
    settings = dict(job.settings)
    unknown, context = settings.get("unknown", "error"), settings.get("context")
    lists: dict[str, Any] = {
        kind: read_labels(settings[kind], getattr(graph, kind), unknown)[0]
        for kind in ("entities", "relations")
        if kind in settings
    }
    questions = graph.questions(
        settings.get("split", "test"),
        settings.get("sides", "both"),
        filter=_filter(settings.get("filter", "all" if context is None else None)),
        context=context,
        known=settings.get("known", ()),
        unknown=unknown,
        **lists,
    )
    candidates = {
        name: settings[name] for name in ("type_constraints", "candidates") if name in settings
    }
    if not candidates:
        return questions
    return questions.restrict(
        columns=settings.get("columns", "entities"),
        outside=settings.get("outside", "error"),
        unknown=unknown,
        **candidates,
    )


def _filter(name: str | list[str] | None) -> str | tuple[str, ...] | None:
    """A protocol by name, or splits: as a list, or in one string with commas."""
    if name is None:
        return None
    if isinstance(name, str):
        if name in PROTOCOLS or name in CONTEXT_FILTER_NAMES:
            return name
        name = name.split(",")
    return tuple(one.strip() for one in name)
