"""``kgtrec batch``: many models, graphs and protocols from one file."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from kgtrec._internal.progress import JobBar
from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report, note
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.cluster.batch.jobs import JobBatch
    from kgtrec.cluster.batch.records import Outcome


@click.command(cls=Command)
@click.argument("jobs", metavar="JOBS")
@shared.flag(
    "--status",
    "Run nothing; print how many jobs are done, and which failed, changed or have begun.",
)
@shared.option(
    "--scheduler",
    "Dask scheduler, such as tcp://host:8786; by default worker processes of this machine.",
    metavar="ADDRESS",
)
@shared.flag("-v --verbose", "Also print the plan of each job, and when it ends.")
@shared.option("--workers", "Worker processes; one per core by default.", type=shared.Count())
@shared.option(
    "--patience",
    "How long to wait if no worker is connected; inf waits forever.",
    type=shared.Number(0, min_open=True, infinite=True),
    default=60.0,
    metavar="SECONDS",
)
def command(
    jobs: str,
    status: bool,
    scheduler: str | None,
    verbose: bool,
    workers: int | None,
    patience: float,
) -> Report:
    """Evaluate every model on its graphs under every protocol of the file JOBS (TOML), on
    worker processes of this machine or a Dask cluster.

    Give the same command again after an interruption: it repeats nothing that is finished. If a
    job fails, this reports it, and the others continue. Needs Dask:
    pip install 'kgtrec[cluster]'.

    \b
    output = "results"               # folder, beside this file; paths are relative to it
    memory = "2GB"                   # limit per task, and for this process
    measures = ["mrr", "tail.hits@10", "map_cut_20"]             # columns of the summary
    [graphs]
    fb15k-237 = "FB15k-237"          # name = folder
    [models]
    distmult = "{graph}/distmult-{split}.npz"
    transe = { scores = "transe.npy", lower_is_better = true, graphs = ["fb15k-237"] }
    complex = { scores = "vectors.npz", model = "complex", inverse = "offset" }
    [protocols.test]                 # the default
    split = "test"
    [protocols.selection]            # keys are options of `kgtrec rank`
    split = "valid"
    filter = "valid"
    atol = 1e-5                      # close scores tie, too
    rtol = 1e-4                      # (for such facts: context = "time" or "qualifiers")

    \b
    kgtrec batch jobs.toml
    kgtrec batch jobs.toml --scheduler tcp://node1:8786
    kgtrec batch jobs.toml --status

    Paths may be URLs (s3://, gs://, file://). If the output is a URL, set work = "FOLDER" on this
    machine for finished parts (kgtrec guide clusters).

    Scores may be the vectors of a model: the keys model, model_config, norm, phases, normalize,
    phase_weight, modulus_weight and inverse are options of `kgtrec rank`. Vectors need no key if
    their files name the model.

    A graph, or a model, may declare the order of columns: { path = "FB15k-237", columns =
    "labels.txt" }, with a label per line. A table in graphs may also name questions without a
    graph: { questions = "q.jsonl", candidates = "labels.txt" }, or qrels, queries and documents,
    like the options of `kgtrec rank`.

    A protocol with pairs = true ranks pairs, like `kgtrec pairs` (Zhou et al. 2022, section 6.2):
    a task per relation, and the same numbers. Its keys are split, filter, heads, tails, relations
    and unknown. Its models have vectors. A failed relation does not stop the others. Ranks are in
    pairs/ (TSV); with `kgtrec pairs --graph DIR FILE` any table of them follows.

    On a terminal, a bar shows the jobs that are done, run and failed, and the time left. Jobs that
    fail alike are told once; --status and the folder records/ have each of them.

    models = "runs/*.npz" (or "{graph}/*.npz"), above the first table, takes all matching files and
    names the models like the files, without .npz. models = { scores = "runs/*.npz", model =
    "distmult" } has keys for all of them.

    In the output folder: ranks/ (one Parquet dataset, partitioned by graph, protocol and model,
    with a column rank, the realistic one), summary.csv and summary.md. As a paper's table, with
    tests: kgtrec report OUTPUT --format latex --test randomisation. Exit code 2 if a job failed.
    """
    from kgtrec.cluster.batch.job_file import read_jobs
    from kgtrec.integrations.embeddings import is_saved_model

    shared.leave_out(
        (
            status,
            ("scheduler", "workers", "patience", "verbose"),
            "--status runs nothing; leave out {}",
        )
    )
    batch = read_jobs(jobs, is_saved_model)
    if status:
        return _report_status(batch)
    if scheduler and workers:
        raise UsageError(
            "--workers starts workers on this machine, but a --scheduler has its own; give one"
        )
    return _report_outcomes(batch, _run(batch, scheduler, workers, patience, verbose))


def _run(
    batch: JobBatch, scheduler: str | None, workers: int | None, patience: float, verbose: bool
) -> list[Outcome]:
    """Run the unfinished jobs, with a bar on a terminal, and return the state of all jobs."""
    from multiprocessing import util

    from kgtrec.cluster.batch.batch import batch_status, run_batch
    from kgtrec.cluster.dask.workers import connect_client
    from kgtrec.integrations.embeddings import ModelFile, load_pair_vectors

    states = batch_status(batch)
    bar = JobBar(len(states), sum(job.state == "finished" for job in states))
    printer = _EventPrinter(bar, verbose)
    try:
        with connect_client(scheduler) if scheduler else nullcontext() as client:
            return run_batch(
                batch,
                client,
                workers,
                say=printer.print,
                patience=patience,
                load_vectors=load_pair_vectors,
                open_vectors=ModelFile,
                say_plan=printer.print if verbose else None,
                watch=lambda state: bar.update(str(state), state.done),
            )
    except KeyboardInterrupt:
        # Run the finalizers of multiprocessing, which an interrupted command skips. Otherwise its
        # tracker would report semaphores of the closed cluster as leaked.
        util._run_finalizers(0)  # type: ignore[attr-defined]
        raise
    finally:
        bar.close()


class _EventPrinter:
    """Prints events of a batch to standard error, above its bar.

    With `verbose`, it prints every event. Otherwise it prints notes, and failures if there is a
    bar, because a bar only counts them; equal texts once.
    """

    def __init__(self, bar: JobBar, verbose: bool) -> None:
        self.bar, self.verbose = bar, verbose
        self.printed = set[str]()

    def print(self, event: Outcome | str) -> None:
        """Print a note, ``JOB: TEXT``, or the outcome of a job, unless it is to be left out."""
        from kgtrec.cluster.batch.records import describe_fault, describe_outcome

        if isinstance(event, str):
            text, without_job, is_shown = event, event.partition(": ")[2], True
        else:
            text, without_job = describe_outcome(event), describe_fault(event)
            is_shown = event.state == "failed" and self.bar.shown
        if self.verbose or (is_shown and without_job not in self.printed):
            self.printed.add(without_job)
            with self.bar.aside():
                note(text)


def _report_status(batch: JobBatch) -> Report:
    """Report how many jobs are finished, and those that have begun, failed or changed."""
    from kgtrec.cluster.batch.batch import batch_status
    from kgtrec.cluster.batch.records import describe_outcomes

    states = batch_status(batch)
    done = sum(job.state == "finished" for job in states)
    unfinished = [job for job in states if job.state not in ("finished", "waiting")]
    lines = describe_outcomes(unfinished)
    return Report(lambda: "\n".join([f"{done} of {len(states)} done", *lines]))


def _report_outcomes(batch: JobBatch, outcomes: list[Outcome]) -> Report:
    """Report the summary, the files that were written, and the jobs that failed."""
    from kgtrec.cluster.batch.records import batch_notes, build_summary, describe_outcomes

    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    of_pairs = {job.of_pairs for job in batch.jobs}
    folders = " and ".join(["ranks"] * (False in of_pairs) + ["pairs"] * (True in of_pairs))
    notes = [*batch_notes(batch), f"wrote {batch.output_name}/{folders}, summary.csv, summary.md"]
    error = ""
    if failed:
        error = "\n  ".join(
            [f"{len(failed)} of {len(outcomes)} jobs failed:", *describe_outcomes(failed)]
        )
    return Report(build_summary(outcomes, batch.measures).to_markdown, notes=notes, error=error)
