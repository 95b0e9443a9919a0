"""``kgtrec rank``: scores to ranks, metrics and TREC files."""

from __future__ import annotations

import click

from kgtrec.errors import UsageError


@click.command(short_help="Scores of a model to ranks, metrics and TREC files.")
@click.option("--graph", required=True, metavar="DIR", help="Folder with train, valid, test TSV.")
@click.option(
    "--scores", required=True, metavar="PATH",
    help="A .npy matrix (memory-mapped), a folder of .npy shards, or an .npz with the arrays "
    "queries and entities (and bias, metric) of a factorised model.",
)  # fmt: skip
@click.option("-o", "--output", required=True, metavar="FILE", help="Ranks, as Parquet.")
@click.option("--run", metavar="FILE", help="Also write the best candidates as a TREC run.")
@click.option("--qrels", metavar="FILE", help="Also write the answers as TREC qrels.")
@click.option(
    "--run-depth", type=click.IntRange(1), default=1000, show_default=True,
    help="Candidates per question in the run.",
)  # fmt: skip
@click.option("--tag", default="kgtrec", show_default=True, help="Name of the run in its file.")
@click.option("--split", default="test", show_default=True, help="Split to evaluate.")
@click.option(
    "--sides", type=click.Choice(["head", "tail", "both"]), default="both", show_default=True,
    help="Which entity of a triple is asked.",
)  # fmt: skip
@click.option(
    "--filter", "filter_splits", metavar="SPLITS",
    help="Splits whose answers are known, as train,valid; 'none' ranks unfiltered. Default: all.",
)  # fmt: skip
@click.option(
    "--rows", type=click.Choice(["questions", "instances"]), default="questions", show_default=True,
    help="What a row of scores stands for: a question (as `kgtrec convert --questions` lists "
    "them), or a triple with its head asked, all in file order, then with its tail asked.",
)  # fmt: skip
@click.option("--lower-is-better", is_flag=True, help="The scores are distances.")
@click.option(
    "--nan", type=click.Choice(["error", "worst"]), default="error", show_default=True,
    help="A NaN score is an error, or below every other.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="Threads; every core by default.")
@click.option("-q", "--quiet", is_flag=True, help="Neither progress nor table.")
def command(
    graph: str,
    scores: str,
    output: str,
    run: str | None,
    qrels: str | None,
    run_depth: int,
    tag: str,
    split: str,
    sides: str,
    filter_splits: str | None,
    rows: str,
    lower_is_better: bool,
    nan: str,
    threads: int | None,
    quiet: bool,
) -> None:
    """Rank every answer of a split by a model's SCORES and print the table that papers print.

    A row of scores is a question, a column an entity; entities are numbered in byte order of their
    labels over all splits.

    \b
    kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks.parquet
    kgtrec rank --graph FB15k-237 --scores model.npz -o ranks.parquet --run sys.run
    """
    from kgtrec.cli.outputs import check_outputs
    from kgtrec.evaluation import evaluate
    from kgtrec.graph import read_graph
    from kgtrec.trec.run import check_tag, write_qrels

    check_tag(tag)
    check_outputs({"--output": output, "--run": run, "--qrels": qrels}, graph, scores)
    show = False if quiet else None
    loaded = read_graph(graph, progress=show)
    questions = loaded.questions(split, sides, _filter(filter_splits))
    result = evaluate(
        scores,
        questions,
        run_depth=run_depth if run else 20,
        threads=threads,
        rows=rows,
        higher_is_better=not lower_is_better,
        nan=nan,
        progress=show,
    )
    written = [output]
    result.ranks.save(output)
    if run:
        assert result.run is not None  # it comes from scores, not from saved ranks
        result.run.cut(run_depth).write(run, tag)
        written.append(run)
    if qrels:
        write_qrels(questions, qrels)
        written.append(qrels)
    if quiet:
        return
    click.echo(str(result).encode("utf-8", "surrogateescape"))
    click.echo(f"kgtrec: wrote {', '.join(written)}", err=True)
    encoded = loaded.entities.n_encoded
    if encoded and (run or qrels):
        click.echo(
            f"kgtrec: {encoded:,} labels with blanks are percent-encoded in TREC files", err=True
        )


def _filter(splits: str | None) -> tuple[str, ...] | None:
    if splits is None:
        return None
    names = tuple(name.strip() for name in splits.split(","))
    if not all(names):
        raise UsageError(
            f"--filter {splits!r} names no split; write for example train,valid, or none"
        )
    return () if names == ("none",) else names
