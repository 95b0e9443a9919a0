"""``kgtrec compare``: which system is better, and how sure is that? Its subcommands ask more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare import labels, parts, studies
from kgtrec.cli.compare.inputs import (
    MEASURES,
    QRELS,
    SYSTEMS,
    TEST,
    by_measure,
    check_permutations,
    measures_or_usual,
    named,
    samples_of,
    short_key,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.study.comparison.rankings import Rankings
    from kgtrec.study.comparison.report import SystemComparison


@click.command(
    cls=Command, short_help="Which system is better? Intervals, paired tests, effect sizes."
)
@SYSTEMS
@QRELS
@MEASURES
@TEST
@shared.intervals("questions", 5_000)
@shared.LEVEL
@shared.N_ENTITIES
@shared.FORMAT
@shared.PLOT
@click.option(
    "--plot-pairs", type=shared.DRAW, metavar="FILE",
    help="Draw which pairs differ, and how much, as a matrix.",
)  # fmt: skip
@click.option(
    "--plot-rankings", type=shared.DRAW, metavar="FILE",
    help="Draw how the measures rank the systems, side by side.",
)  # fmt: skip
@shared.STYLE
def command(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Compare two or more systems on the same questions: FILEs of ranks (`kgtrec rank`), or TREC
    runs with --qrels.

    For each measure: values with bootstrap intervals, every pair of systems tested, p-values
    corrected for the number of pairs, effect sizes (d_z: mean difference in standard deviations of
    the differences; wins: share of items on which the first is better, ties half), and a sentence
    on what follows. Micro measures are tested over instances, macro ones over questions, runs over
    all queries of QRELS. With three or more systems: do the measures rank them alike?

    \b
    kgtrec compare distmult.parquet complex.parquet
    kgtrec compare *.parquet -m hits@10 --correction bh
    kgtrec compare *.parquet --format latex > table.tex
    kgtrec compare *.parquet --plot values.pdf --plot-pairs pairs.pdf
    kgtrec compare --qrels complete.qrels *.run -m map_cut_20 -m bpref

    The subcommands below ask other questions of the same files:

    \b
    kgtrec compare labels --qrels sparse.qrels --against complete.qrels *.run
    kgtrec compare parts *.parquet --by category,side --graph FB15k-237 -m mrr
    kgtrec compare stability *.parquet --plot sensitivity.pdf
    """
    from kgtrec.study.comparison.report import compare

    test = options["test"] or "randomisation"
    check_permutations(test)
    systems = named(files, options["qrels"])
    measures = measures_or_usual(keys, options["qrels"])
    samples, notes = samples_of(systems, measures, options["qrels"], options["n_entities"])
    resampling = shared.resampling(options)
    compared = [
        compare(
            one, test, options["correction"], clustered=options["cluster"],
            permutations=options["permutations"], level=options["level"], resampling=resampling,
        )
        for one in samples
    ]  # fmt: skip
    return _report(compared, _rankings(compared, resampling), notes)


def _report(
    compared: Sequence[SystemComparison], rankings: Rankings | None, notes: list[str]
) -> Report:
    from kgtrec.study.comparison.correlation import agreement_table
    from kgtrec.study.reporting.latex import comparison_latex

    sections = [
        (_heading(one), [one.value_table(), one.pair_table()], one.sentence()) for one in compared
    ]
    data: dict[str, object] = {one.samples.name: one.to_dict() for one in compared}
    figures: dict[str, tuple[Any, ...]] = {
        "plot": ("compare", "intervals", compared),
        "plot_pairs": ("compare", "pair_matrix", compared),
    }  # fmt: skip
    if rankings is not None:
        text = (
            "Correlation of the systems' rankings by two measures; intervals from drawing the "
            "questions anew. tau-AP weighs the top more."
        )
        names = list(combinations(rankings.names, 2))
        alike = agreement_table(("ranking by", "and by"), names, rankings.over_questions)
        sections.append(("Do the measures rank alike?", [alike], text))
        data["rankings"] = alike.to_dict()
        figures["plot_rankings"] = ("compare", "bump_chart", rankings)
    elif shared.on_command_line("plot_rankings"):
        raise UsageError(
            "--plot-rankings compares rankings: name at least two measures and three systems"
        )
    rows = by_measure({one.samples.name: one.pair_table() for one in compared})
    report = Report.of_sections(sections, data, rows, notes=notes, figures=figures)
    report.forms = {**report.forms, "latex": lambda: comparison_latex(compared)}
    return report


def _heading(compared: SystemComparison) -> str:
    samples, percent = compared.samples, compared.resampling.percent
    what = f"{samples.name}: {len(samples):,} {samples.unit}"
    if samples.n_clusters != len(samples):
        what += f" of {samples.n_clusters:,} questions"
    better = "higher" if samples.higher_is_better else "lower"
    return f"{what} · {better} is better · {percent:g}% intervals (drawn by question)"


def _rankings(compared: Sequence[SystemComparison], resampling: Resampling) -> Rankings | None:
    """The measures' rankings, if there is more than one and they are of three systems or more."""
    from kgtrec.study.comparison.rankings import rankings_of_samples

    if len(compared) < 2 or len(compared[0].samples.systems) < 3:
        return None
    return rankings_of_samples(
        {short_key(one.samples): one.samples for one in compared},
        resampled=[one.resampled for one in compared],
        resampling=resampling,
    )


command.add(
    labels.labels, parts.parts, labels.depths, labels.reuse, studies.stability, studies.power,
    studies.reproduction, studies.replicates,
)  # fmt: skip
