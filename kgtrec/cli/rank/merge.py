"""``kgtrec merge``: the shards of a job array to ranks, metrics and TREC files."""

from __future__ import annotations

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.errors import UsageError


@click.command(
    cls=Command, short_help="Shards of `kgtrec rank --shard` to ranks, metrics and TREC files."
)
@click.argument("folder", metavar="SHARDS")
@shared.ranking_files(
    depth="Candidates per question in the run. Default: all in the shards, which is --run-depth "
    "of `kgtrec rank --shard`, or 20.",
    default_depth=None,
)
def command(
    folder: str, output: str, run: str | None, qrels: str | None, run_depth: int | None, tag: str
) -> Report:
    """Merge all SHARDS in a folder, and print the standard results table.

    The files equal those of `kgtrec rank` without shards, byte for byte. This does not read the
    graph and the scores again. If a shard is missing, doubled, damaged, or has other inputs than
    the rest, this names it and writes nothing.

    \b
    kgtrec merge shards/ -o ranks.parquet
    kgtrec merge shards/ -o ranks.parquet --write-run sys.run --write-qrels test.qrels
    kgtrec merge s3://results/shards -o s3://results/ranks.parquet
    """
    from kgtrec._internal.locations import fetched
    from kgtrec.cli._report import keep_inputs
    from kgtrec.cli.rank.filters import report_of, write_result
    from kgtrec.cluster.shards import merge_shards, shard_files, stored_depth
    from kgtrec.results.evaluate import checked_result
    from kgtrec.trec.files.run import check_tag

    check_tag(tag)
    outputs = {"--output": output, "--write-run": run, "--write-qrels": qrels}
    with fetched(folder, folders=True) as local:
        keep_inputs((f"{folder}/{path.name}" for path in shard_files(local)), outputs)
        depth = stored_depth(local)
        if run and run_depth and run_depth > depth:
            raise UsageError(
                f"--run-depth {run_depth}: the shards keep {depth} candidates per question; choose "
                f"at most {depth}, or rank the shards again with --run-depth {run_depth}"
            )
        ranks, merged, questions = merge_shards(local)
    result = checked_result(ranks, merged, questions)
    files = {"output": output, "run": run, "qrels": qrels}
    written = write_result(result, questions, files, run_depth or depth, tag)
    return report_of({"": result}, questions, written)
