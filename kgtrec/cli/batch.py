"""``kgtrec batch``: many models, graphs and protocols from one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.cluster.batch.job_file import Batch
    from kgtrec.cluster.batch.records import Outcome

FAILED = 2


@click.command(short_help="Many models x graphs x protocols from one file, resumable.")
@click.argument("jobs", metavar="JOBS")
@click.option("--status", is_flag=True, help="Only say how every job stands.")
@click.option(
    "--scheduler", metavar="ADDRESS",
    help="Dask scheduler, such as tcp://host:8786; by default worker processes of this machine.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(1), help="Worker processes; one per core by default."
)
@click.option(
    "--patience", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True,
    metavar="SECONDS", help="How long there may be no worker at all before it ends; inf: for ever.",
)  # fmt: skip
@shared.QUIET
@click.pass_context
def command(
    ctx: click.Context,
    jobs: str,
    status: bool,
    scheduler: str | None,
    workers: int | None,
    patience: float,
    quiet: bool,
) -> None:
    """Evaluate every model on its graphs under every protocol of the file JOBS (TOML), on
    worker processes of this machine or a Dask cluster.

    A batch that was killed goes on where it was when the same command is given again; nothing that
    is finished is done twice. A job that fails is reported, and the others go on. Needs Dask:
    pip install 'kgtrec[cluster]'.

    \b
    output = "results"               # folder, beside this file; paths are relative to it
    memory = "2GB"                   # that one task may use, and this process
    measures = ["mrr", "tail.hits@10", "map_cut_20"]             # columns of the summary
    [graphs]
    fb15k-237 = "FB15k-237"          # name = folder
    [models]
    distmult = "{graph}/distmult-{split}.npz"
    transe = { scores = "transe.npy", lower_is_better = true, graphs = ["fb15k-237"] }
    [protocols.test]                 # without protocols: this one
    split = "test"
    [protocols.selection]            # keys as the options of `kgtrec rank`
    split = "valid"
    filter = "valid"
    atol = 1e-5                      # close scores tie, too
    rtol = 1e-4                      # (or, of such facts, context = "time" or "qualifiers")

    \b
    kgtrec batch jobs.toml
    kgtrec batch jobs.toml --scheduler tcp://node1:8786
    kgtrec batch jobs.toml --status

    Paths may be URLs (s3://, gs://, file://); an output at one needs work = "FOLDER" of this
    machine, for finished parts (kgtrec guide clusters).

    models = "runs/*.npz" (or "{graph}/*.npz"), above the first table, stands for all files that
    match, named like these without .npz.

    In the output folder: ranks/ (one Parquet dataset, partitioned by graph, protocol and model,
    with a column rank, the realistic one), summary.csv and summary.md. As a paper's table, with
    tests: kgtrec report OUTPUT --format latex --test randomisation. Exit code 2 if a job failed.
    """
    from kgtrec.cluster.batch.batch import batch_status
    from kgtrec.cluster.batch.job_file import read_jobs

    batch = read_jobs(jobs)
    if status:
        for outcome in batch_status(batch):
            echo(_line(outcome))
        return
    if scheduler and workers:
        raise UsageError("--workers is for this machine; a --scheduler has workers of its own")
    try:
        outcomes = _run(batch, scheduler, workers, patience, quiet)
    except KeyboardInterrupt:
        _release_semaphores()
        raise
    failed = [one for one in outcomes if one.state == "failed"]
    if not quiet:
        _report(batch, outcomes)
    if failed:
        note(f"{len(failed)} of {len(outcomes)} jobs failed")
        ctx.exit(FAILED)


def _run(
    batch: Batch, scheduler: str | None, workers: int | None, patience: float, quiet: bool
) -> list[Outcome]:
    from kgtrec.cluster.batch.batch import run_batch
    from kgtrec.cluster.dask.workers import connected

    def tell(said: Outcome | str) -> None:
        if isinstance(said, str):
            if not quiet:
                note(f"{said}")
        elif not quiet or said.state == "failed":
            note(f"{_line(said)}")

    if scheduler is None:
        return run_batch(batch, None, workers, tell, patience)
    with connected(scheduler) as client:
        return run_batch(batch, client, None, tell, patience)


def _release_semaphores() -> None:
    """What multiprocessing does when a process ends, which an interrupted command leaves out: else
    its tracker would report those of the cluster, which is closed by now, as leaked."""
    from multiprocessing import util

    util._run_finalizers(0)  # type: ignore[attr-defined]


def _report(batch: Batch, outcomes: list[Outcome]) -> None:
    from kgtrec.cluster.batch.records import summary, tie_notes

    echo(summary(outcomes, batch.measures).to_markdown())
    for line in tie_notes(batch):
        note(line)
    note(f"wrote {batch.place}/ranks, summary.csv, summary.md")


def _line(outcome: Outcome) -> str:
    detail = f": {outcome.detail}" if outcome.detail else ""
    return f"{outcome.job.name}: {outcome.state}{detail}"
