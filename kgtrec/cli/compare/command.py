"""``kgtrec compare``: which system is better, and how sure is that?"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note
from kgtrec.cli._plot_style import style_option
from kgtrec.cli._process import keep_blas_single
from kgtrec.cli.compare.checks import (
    TABLES,
    check_options,
    check_table_options,
    figure_option,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.cli.compare.report import Report

FORMATS = ("table", "markdown", "latex", "csv", "tsv", "json")
TESTS = ("randomisation", "t", "wilcoxon", "bootstrap")
CORRECTIONS = ("holm", "bh", "bonferroni", "none")
OF_RANKS = ("both.realistic.micro.mrr", "both.realistic.macro.mrr")
OF_RUNS = ("map_cut_20", "ndcg_cut_20")


@click.command(short_help="Which system is better? Intervals, paired tests, effect sizes.")
@click.argument("files", nargs=-1, required=True, metavar="FILE FILE ...")
@click.option("--qrels", metavar="QRELS", help="The files are TREC runs, to be judged by these.")
@click.option(
    "-m", "--measure", "keys", multiple=True, metavar="KEY",
    help="hits@10 (both.realistic.micro.hits@10), tail.macro.mrr, map_cut_20, ...; with --qrels "
    "map, P.10, AP@20, kg_mrr, ...; repeatable. Default: micro and macro MRR; with --qrels MAP@20 "
    "and nDCG@20.",
)  # fmt: skip
@click.option(
    "--test", type=click.Choice(TESTS), default=None,
    help="Paired test of every pair.  [default: randomisation; with --discriminative t]",
)  # fmt: skip
@click.option(
    "--correction", type=click.Choice(CORRECTIONS), default="holm", show_default=True,
    help="For the number of pairs: any false finding (holm, bonferroni), or their share (bh).",
)  # fmt: skip
@click.option(
    "--cluster", is_flag=True,
    help="Test micro measures over questions, not instances: sound where the instances of a "
    "question depend on each other. Intervals always draw whole questions.",
)  # fmt: skip
@click.option(
    "--permutations", type=click.IntRange(1), default=100_000, show_default=True,
    help="Random signs of the randomisation test.",
)  # fmt: skip
@click.option(
    "--draws", type=click.IntRange(100), default=5_000, show_default=True,
    help="Bootstrap samples of the questions, for intervals.",
)  # fmt: skip
@shared.seed("Of the random numbers.")
@click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05,
    show_default=True, help="p below which a difference is significant.",
)  # fmt: skip
@click.option(
    "--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95,
    show_default=True, help="Of intervals.",
)  # fmt: skip
@click.option(
    "--against", metavar="QRELS|DIR|TABLE",
    help="Instead: do other labels rank the systems alike? With --qrels other qrels; of ranks a "
    "folder with files of the same names; of a table of values another table. With --by and "
    "--ratios too.",
)  # fmt: skip
@click.option(
    "--stability", is_flag=True,
    help="Instead: do random parts of the test triples rank the systems as all of them do?",
)  # fmt: skip
@click.option(
    "--repeats", type=click.IntRange(1), default=50, show_default=True,
    help="With --stability: random parts of each size, from 1 to 95 %.",
)  # fmt: skip
@click.option(
    "--discriminative", is_flag=True,
    help="Instead: which measure tells systems apart best? Sorted p-values, and their area.",
)  # fmt: skip
@click.option(
    "--reuse", metavar="POOL.tsv",
    help="Instead, with --qrels and --graph: what does a system lose if the pool was made without "
    "it?",
)  # fmt: skip
@click.option(
    "--depths", metavar="POOL.tsv",
    help="Instead, with --graph: how does the ranking change as the pool grows deeper? Of runs, "
    "with the --qrels of the whole pool; or of ranks on the complete test split, without ranking "
    "anew.",
)  # fmt: skip
@click.option(
    "--reproduction", is_flag=True,
    help="Instead, with --qrels: is the second run what the first was? Or the third and fourth, "
    "baseline and advanced system, what the first two were? tau union, RBO, RMSE, effect ratio.",
)  # fmt: skip
@click.option(
    "--replicates", is_flag=True,
    help="Instead: several runs (seeds) of each system, named system-1, system-2, ... or alike in "
    "several folders: means, deviations, and intervals and tests over both runs and questions.",
)  # fmt: skip
@click.option(
    "--epsilon", type=click.FloatRange(0), default=0.01, show_default=True, metavar="E",
    help="With --replicates: how far runs whose MRR is at most E below the best disagree.",
)  # fmt: skip
@click.option(
    "--run", "runs", multiple=True, metavar="RUN",
    help="With --replicates: a TREC run a file of ranks, in their order: how often do runs "
    "that are as good rank another entity first?",
)  # fmt: skip
@click.option(
    "--by", metavar="PARTS",
    help="Instead: all systems on every part of the questions (category,side, relation, quartile, "
    "...; as in `kgtrec report`), the best of each, and whether parts rank systems alike. With "
    "--against: whether other labels do, on each part. Of tables: columns.",
)  # fmt: skip
@click.option(
    "--ratios", metavar="FILE",
    help="Instead: micro metrics of all systems at the relation ratios of other triples (TSV).",
)  # fmt: skip
@shared.graph("With --reuse and --depths: the graph of the pool; with --by: that of the ranks.")
@click.option(
    "--against-graph", metavar="DIR",
    help="With --by and --against: the graph of the ranks in the other folder.  [default: that of "
    "--graph]",
)  # fmt: skip
@click.option(
    "--questions", metavar="FILE",
    help="With --depths of runs: how they name their questions, as for `kgtrec pool`.",
)  # fmt: skip
@click.option(
    "--entities", type=click.IntRange(1), metavar="N",
    help="With --qrels: entities of the graph, for kg_mr, kg_mrr, kg_hits, as in `kgtrec eval`.",
)  # fmt: skip
@shared.form(
    *FORMATS,
    text="latex marks what each system significantly beats; csv and tsv have the pairs; json has "
    "it all.",
)
@shared.PLOT
@click.option(
    "--plot-pairs", metavar="FILE", help="Draw which pairs differ, and how much, as a matrix."
)
@click.option(
    "--plot-rankings", metavar="FILE", help="Draw how the measures rank the systems, side by side."
)
@style_option
def command(files: tuple[str, ...], form: str, **options: Any) -> None:
    """Compare two or more systems on the same questions: FILEs of ranks (`kgtrec rank`), or TREC
    runs with --qrels. Or hold a table of published values (.csv, .tsv: a row a system, or a row a
    system and part) against another one, --against.

    For each measure: values with bootstrap intervals, every pair of systems tested, p-values
    corrected for the number of pairs, effect sizes (d_z: mean difference in standard deviations of
    the differences; wins: share of items on which the first is better, ties half), and a sentence
    on what follows. Micro measures are tested over instances, macro ones over questions, runs over
    all queries of QRELS. With three or more systems and several measures: do these rank alike?

    \b
    kgtrec compare distmult.parquet complex.parquet
    kgtrec compare *.parquet -m hits@10 --correction bh
    kgtrec compare *.parquet --format latex > table.tex
    kgtrec compare *.parquet --plot values.pdf --plot-pairs pairs.pdf
    kgtrec compare transe-*.parquet rotate-*.parquet --replicates
    kgtrec compare *.parquet --stability --plot sensitivity.pdf
    kgtrec compare *.parquet --discriminative -m mrr -m map_cut_20
    kgtrec compare --qrels complete.qrels *.run -m map_cut_20 -m bpref
    kgtrec compare --qrels sparse.qrels --against complete.qrels *.run
    kgtrec compare --qrels complete.qrels --reproduction ours.run theirs.run
    kgtrec compare sparse/*.parquet --against complete/ --plot rankings.pdf
    kgtrec compare *.parquet --by category,side --graph FB15k-237 -m mrr
    kgtrec compare *.parquet --ratios sparse-test.txt -m mrr -m hits@10
    kgtrec compare sparse/*.parquet --against complete/ --ratios sparse-test.txt -m mrr
    kgtrec compare sparse.csv --against complete.csv -m micro_mrr --plot rankings.pdf
    kgtrec compare sparse.csv --against pool-depths.csv --by depth -m micro_mrr -m macro_mrr
    kgtrec compare --qrels complete.qrels *.run --reuse pool.tsv --graph FB15k-237
    kgtrec compare --qrels complete.qrels *.run --depths pool.tsv --graph FB15k-237
    kgtrec compare complete/*.parquet --depths pool.tsv --graph FB15k-237 -m mrr -m macro.mrr
    """
    figures = {kind: options.pop(f"plot{kind and '_'}{kind}") for kind in ("", "pairs", "rankings")}
    table = files[0] if files[0].endswith(TABLES) else None
    if table is None:
        check_options(options, figures, len(files))
    else:
        check_table_options(files, options, figures)
    _check_figures(files, options, figures)
    keep_blas_single()
    from kgtrec.cli.compare.report import CompareOptions
    from kgtrec.cli.compare.systems import make_report

    of_ranks: tuple[str, ...] = OF_RANKS[:1] if options["ratios"] else OF_RANKS
    if options["stability"] or options["discriminative"] or table:
        of_ranks = ()
    keys = options.pop("keys") or (OF_RUNS if options["qrels"] else of_ranks)
    systems = {} if table else _named(files, bool(options["qrels"]))
    request = CompareOptions(systems=systems, keys=keys, table=table, **options)
    _show(make_report(request), form, figures)


def _show(report: Report, form: str, figures: dict[str, str | None]) -> None:
    for text in report.notes:
        note(text)
    echo(report.rendered(form))
    for kind, path in figures.items():
        if path is not None:
            from kgtrec.plots.style import save

            save(report.figure(kind), path)
            note(f"figure written to {path}")


def _check_figures(
    files: tuple[str, ...], options: dict[str, Any], figures: dict[str, str | None]
) -> None:
    """Refuse figures that could not be written, or would cost the user a file."""
    from kgtrec._internal.atomic_file import check_writable
    from kgtrec.cli._output_files import keep_inputs

    if not any(figures.values()):
        return
    from kgtrec.plots.style import check_plot

    for path in filter(None, figures.values()):
        check_plot(path)
    check_writable(*figures.values())
    inputs = [options[name] for name in ("qrels", "against", "reuse", "depths")]
    keep_inputs((*files, *inputs), {figure_option(kind): path for kind, path in figures.items()})


def _named(files: tuple[str, ...], runs: bool) -> dict[str, str]:
    """Files by short names: their own without endings, or as they are where those are alike."""
    twice = next((file for place, file in enumerate(files) if file in files[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice!r} is named twice; name each system once")
    if len(files) < 2:
        raise UsageError(f"{files[0]!r} alone has nothing to be compared with; name two or more")
    _check_kinds(files, runs)
    if runs:  # named as in pools
        from kgtrec.study.pooling.ranked_lists import system_names

        return dict(zip(system_names(files), files, strict=True))
    from kgtrec.ranking.parquet import system_name

    short = [system_name(file) for file in files]
    return {
        file if short.count(stem) > 1 or not stem else stem: file
        for stem, file in zip(short, files, strict=True)
    }


def _check_kinds(files: tuple[str, ...], runs: bool) -> None:
    """Ranks and runs are told apart by their first bytes, as what is wrong is then easily said."""
    for file in filter(os.path.isfile, files):
        with suppress(OSError), open(file, "rb") as stream:
            ranks = stream.read(4) == b"PAR1"
            if runs and ranks:
                raise UsageError(
                    f"{file!r} is a Parquet file; with --qrels, name TREC runs; files of ranks are "
                    "compared without --qrels"
                )
            if not (runs or ranks or file.endswith(".parquet")):
                raise UsageError(
                    f"{file!r} is not a file of ranks, as `kgtrec rank -o` writes them; if it is a "
                    "TREC run, add --qrels QRELS"
                )
