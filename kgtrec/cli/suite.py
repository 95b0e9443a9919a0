"""``kgtrec suite``: many models on many graphs, with many seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import DRAW, GRAPH_FOLDER, READ, WRITE, Command, Report, note
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.suite.suite import Suite

SHOWN: dict[str, Callable[[Suite], Table]] = {
    "models": lambda suite: suite.table(),
    "cells": lambda suite: suite.cell_table(),
    "missing": lambda suite: suite.missing_table(),
    "bounds": lambda suite: suite.bounds_table(),
    "pairs": lambda suite: suite.pair_table(),
}
FIGURES = {
    "plot": "suite_places", "plot_rankings": "critical_difference", "plot_cells": "suite_cells"
}  # fmt: skip


@click.command(cls=Command, short_help="Many models on many graphs: means, places, tests.")
@click.argument("results", nargs=-1, required=True, metavar="FOLDER|TABLE.csv ...", type=READ)
@click.option(
    "-m", "--measure", "measures", metavar="NAME,NAME,...",
    help="Measures. Default: adjusted_mrr,adjusted_hits@10, or all that a table has.",
)  # fmt: skip
@click.option(
    "--groups", type=READ, metavar="FILE.toml",
    help='Groups of graphs, a column each: lines such as inductive = ["ind-*", "ILPC"].',
)  # fmt: skip
@click.option(
    "--by", metavar="NAME", help="One table per part of the questions: half-links, category, ..."
)
@click.option(
    "--graphs", type=GRAPH_FOLDER, metavar="DIR",
    help="With --by: the folder that holds the graphs, each under its name.",
)  # fmt: skip
@click.option(
    "--test", type=click.Choice(["nemenyi", "wilcoxon"]), default="nemenyi", show_default=True,
    help="Friedman's test with Nemenyi's critical difference, or Wilcoxon tests with Holm's "
    "correction, over graphs.",
)  # fmt: skip
@shared.LEVEL
@shared.intervals("graphs, questions and seeds", 1_000)
@click.option(
    "--show", type=click.Choice([*SHOWN]), default="models", show_default=True,
    help="One row per model, per cell, per missing cell, per pair; or what missing cells could "
    "change.",
)  # fmt: skip
@click.option("--html", type=WRITE, metavar="FILE", help="Also write everything as one page.")
@click.option("--plot", type=DRAW, metavar="FILE", help="Draw places with intervals.")
@click.option(
    "--plot-rankings", type=DRAW, metavar="FILE", help="Draw a critical-difference diagram."
)
@click.option("--plot-cells", type=DRAW, metavar="FILE", help="Draw a heat map of all cells.")
@shared.STYLE
@shared.FORMAT
def command(results: tuple[str, ...], **options: Any) -> Report:
    """Compare models over many graphs.

    A FOLDER is the output of `kgtrec batch`, or holds ranks as GRAPH/MODEL.parquet or
    GRAPH/MODEL/SEED.parquet. A TABLE.csv has the columns graph, model, metric, value, and perhaps
    seed: numbers that others have published.

    Values are means over graphs. Intervals draw graphs, questions and seeds anew. Missing cells are
    listed and never filled: pairs are compared on the graphs that both have, and models with fewer
    than half of the graphs are set apart.

    \b
    kgtrec suite results/
    kgtrec suite results/ -m adjusted_mrr --groups groups.toml --html suite.html
    kgtrec suite results/ --test wilcoxon --show pairs --format csv > pairs.csv
    kgtrec suite published.csv --plot-rankings differences.pdf
    """
    suites = _suites(results, options)
    if options["html"]:
        from kgtrec._internal.files import atomic_write
        from kgtrec.study.suite.page import suite_page

        with atomic_write(options["html"]) as file:
            file.write(suite_page(suites).encode("utf-8", "surrogateescape"))
        note(f"wrote {options['html']}")
    return _report(suites, options["show"])


def _suites(results: tuple[str, ...], options: dict[str, Any]) -> list[Suite]:
    from kgtrec.measures import parse_all
    from kgtrec.study.suite.cells import parts_of_ranks, read_numbers, read_ranks
    from kgtrec.study.suite.suite import MEASURES, suite_of_ranks, suites

    how = shared.resampling(options)
    groups = _groups(options["groups"]) if options["groups"] else None
    names = [name.strip() for name in (options["measures"] or "").split(",") if name.strip()]
    more: dict[str, Any] = {"groups": groups, "test": options["test"], "level": options["level"],
                            "resampling": how}  # fmt: skip
    tables = [one for one in results if one.endswith((".csv", ".tsv"))]
    by, folder = options["by"], options["graphs"]
    if bool(by) != bool(folder) or (by and tables):
        raise UsageError("--by needs folders of ranks and --graphs DIR, and --graphs needs --by")
    if not tables:
        ranks = read_ranks(list(results))
        parts = parts_of_ranks(ranks, by, folder) if by else {"": ranks}
        return [
            suite
            for name, part in parts.items()
            for suite in suite_of_ranks(part, names or MEASURES, part=name, **more)
        ]
    if len(results) > 1:
        raise UsageError("name one table, or folders of ranks; not several tables or both")
    cells = read_numbers(tables[0], how)
    if names:
        asked = parse_all(names)
        cells = [one for one in cells if one.measure in asked]
        if not cells:
            raise UsageError(f"{tables[0]} has none of the measures {', '.join(names)}")
    return suites(cells, **more)


def _groups(path: str) -> dict[str, list[str]]:
    from pathlib import Path

    from kgtrec.cluster.batch.job_file import read_toml

    groups = read_toml(Path(path), "a file of groups")
    for name, graphs in groups.items():
        if not isinstance(graphs, list) or not all(isinstance(one, str) for one in graphs):
            raise UsageError(f'{path}: {name} must be a list of graphs, as ["FB15k-237", "ind-*"]')
    return groups


def _report(suites: list[Suite], show: str) -> Report:
    tables = {one.cells.title: SHOWN[show](one) for one in suites}

    def text() -> str:
        return "\n\n".join(f"{title}\n{table.to_text(120)}" for title, table in tables.items())

    figures = {option: ("suite", draws, suites[0]) for option, draws in FIGURES.items()}
    notes = [f"{one.cells.title}: {said}" for one in suites for said in one.notes()]
    return Report.of_files(tables, text, notes=notes, figures=figures)
