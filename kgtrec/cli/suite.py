"""``kgtrec suite``: many models on many graphs, with many seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.locations import is_folder
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import list_batch_ranks
from kgtrec.cli._report import GRAPH_FOLDER, Command, Report
from kgtrec.errors import FileError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec import Ranks
    from kgtrec._internal.table import Table
    from kgtrec.study.suite.suite import Suite

SHOWN: dict[str, Callable[[Suite], Table]] = {
    "models": lambda suite: suite.table(),
    "cells": lambda suite: suite.cell_table(),
    "missing": lambda suite: suite.missing_table(),
    "bounds": lambda suite: suite.bounds_table(),
    "pairs": lambda suite: suite.pair_table(),
    "test": lambda suite: suite.test_table(),
}


def _figure_functions() -> dict[str, tuple[str, Callable[[Suite], Figure]]]:
    """Return captions and drawing functions by the parameter of their option."""
    from kgtrec.plots import critical_difference, suite_cells, suite_places

    return {
        "plot": ("Places with intervals", suite_places),
        "plot_rankings": ("Mean ranks and their critical difference", critical_difference),
        "plot_cells": ("Models and graphs", suite_cells),
    }


@click.command(cls=Command)
@shared.files("results", "FOLDER|TABLE.csv ...")
@shared.measures(
    "-m --measure measures",
    "Measures; repeatable. Default: adjusted_mrr,adjusted_hits@10, or all that a table has.",
)
@shared.reads(
    "--groups",
    'Groups of graphs, a column each: lines such as inductive = ["ind-*", "ILPC"].',
    metavar="FILE.toml",
)
@shared.option(
    "--by", "One table per part of the questions: half-links, category, ...", metavar="NAME"
)
@shared.option(
    "--graphs",
    "With --by: the folder that holds the graphs, each under its name.",
    type=GRAPH_FOLDER,
    metavar="DIR",
)
@shared.choice(
    "--test",
    ["nemenyi", "wilcoxon"],
    "Friedman's test with Nemenyi's critical "
    "difference, or Wilcoxon tests with Holm's correction, over graphs.",
    default="nemenyi",
)
@shared.LEVEL
@shared.intervals("graphs, questions and seeds", 1_000)
@shared.choice(
    "--show",
    [*SHOWN],
    "One row per model, per cell, per missing cell, per pair; "
    "what missing cells could change; Friedman's test.",
    default="models",
)
@shared.writes("--html", "Also write everything as one page.")
@shared.draws("--plot", "Draw places with intervals.")
@shared.draws("--plot-rankings", "Draw a critical-difference diagram.")
@shared.draws("--plot-cells", "Draw a heat map of all cells.")
@shared.STYLE
@shared.FORMAT
def command(results: tuple[str, ...], **options: Any) -> Report:
    """Compare models over many graphs.

    A FOLDER is the output of `kgtrec batch`, or contains ranks as GRAPH/MODEL.parquet or
    GRAPH/MODEL/SEED.parquet; or as GRAPH/MODEL-seed1.parquet, GRAPH/MODEL-seed2.parquet, ... (also
    run1 or fold1). A TABLE.csv has the columns graph, model, metric, value, and perhaps
    seed: numbers that others have published.

    Values are means over graphs. Intervals resample graphs, questions and seeds. Missing cells are
    listed and never filled: pairs are compared on the graphs that both have, and models with fewer
    than half of the graphs are listed separately.

    \b
    kgtrec suite results/
    kgtrec suite results/ -m adjusted_mrr --groups groups.toml --html suite.html
    kgtrec suite results/ --test wilcoxon --show pairs --format csv > pairs.csv
    kgtrec suite published.csv --plot-rankings differences.pdf
    """
    from kgtrec.study.suite.suite import suite_page

    suites = _compute_suites(results, options)
    report = _report(suites, options["show"])
    if options["html"]:
        page = suite_page(suites, [_figures(suite) for suite in suites])
        report.files = [(options["html"], page)]
    return report


def _compute_suites(results: tuple[str, ...], options: dict[str, Any]) -> list[Suite]:
    """Compute a suite per measure and part, from ranks or from a table of values."""
    from kgtrec.measures import parse_all
    from kgtrec.study.suite.cells import parts_of_ranks, read_numbers
    from kgtrec.study.suite.suite import default_measures, suite_of_ranks, suites

    how = shared.resampling(options)
    groups = _read_groups(options["groups"]) if options["groups"] else None
    names = list(options["measures"])
    more: dict[str, Any] = {
        "groups": groups,
        "test": options["test"],
        "level": options["level"],
        "resampling": how,
    }
    tables = [path for path in results if path.endswith((".csv", ".tsv"))]
    by, folder = options["by"], options["graphs"]
    if bool(by) != bool(folder) or (by and tables):
        raise UsageError("--by needs folders of ranks and --graphs DIR, and --graphs needs --by")
    if not tables:
        ranks = read_ranks(list(results))
        measures = parse_all(names) if names else default_measures(ranks)
        parts = parts_of_ranks(ranks, by, folder, measures) if by else {"": ranks}
        return [
            suite
            for name, part in parts.items()
            for suite in suite_of_ranks(part, measures, part=name, **more)
        ]
    if len(results) > 1:
        raise UsageError("give one table, or folders of ranks; not several tables or both")
    cells = read_numbers(tables[0], how)
    if names:
        requested = parse_all(names)
        cells = [cell for cell in cells if cell.measure in requested]
        if not cells:
            raise UsageError(f"{tables[0]} has none of the measures {', '.join(names)}")
    return suites(cells, **more)


def _read_groups(path: str) -> dict[str, list[str]]:
    """Read groups of graphs: lists of patterns by the name of the group."""
    from kgtrec.cluster.batch.job_file import read_toml

    groups = read_toml(Path(path), "a file of groups")
    for name, graphs in groups.items():
        if not isinstance(graphs, list) or not all(isinstance(graph, str) for graph in graphs):
            raise UsageError(f'{path}: {name} must be a list of graphs, as ["FB15k-237", "ind-*"]')
    return groups


def _report(suites: list[Suite], show: str) -> Report:
    tables = {suite.cells.title: SHOWN[show](suite) for suite in suites}

    def text() -> str:
        return "\n\n".join(f"{title}\n{table.to_text(120)}" for title, table in tables.items())

    figures = {
        option: partial(draw, suites[0]) for option, (_, draw) in _figure_functions().items()
    }
    notes = [f"{suite.cells.title}: {note}" for suite in suites for note in suite.notes()]
    return Report.from_files(tables, text, "measure", notes=notes, figures=figures)


def _figures(suite: Suite) -> list[tuple[str, Figure]]:
    """Draw the figures of a page, with their captions; none without matplotlib."""
    if find_spec("matplotlib") is None:
        return []
    drawn = []
    for caption, draw in _figure_functions().values():
        with suppress(UsageError):  # too few models or graphs for it
            drawn.append((caption, draw(suite)))
    return drawn


# -- Ranks below folders ---------------------------------------------------------------------------


def read_ranks(paths: Sequence[str]) -> dict[str, dict[str, dict[str, Ranks]]]:
    """Load the ranks below folders, by graph, model and seed.

    A folder is the output of a batch, or holds ``graph/model.parquet`` or
    ``graph/model/seed.parquet``. Models whose names differ only in a marked number at their end
    (``transe-seed1``, ``transe-seed2``) are seeds of one model.
    """
    from kgtrec import Ranks
    from kgtrec.study.comparison.report import group_names

    paths_by_graph: dict[str, dict[str, dict[str, str]]] = {}
    for path in paths:
        for graph, model, seed, file in _list_ranks(path):
            seeds = paths_by_graph.setdefault(graph, {}).setdefault(model, {})
            if seed in seeds:
                raise UsageError(
                    f"{seeds[seed]} and {file} are both {model} on {graph}; rename one"
                )
            seeds[seed] = file
    ranks: dict[str, dict[str, dict[str, Ranks]]] = {}
    for graph, models in paths_by_graph.items():
        names = dict(zip(models, group_names([*models], marked=True), strict=True))
        counts = Counter(names.values())
        for model, runs in models.items():
            name = names[model] if counts[names[model]] > 1 else model
            for seed, file in runs.items():
                key = seed or model.removeprefix(name)
                ranks.setdefault(graph, {}).setdefault(name, {})[key] = Ranks.load(file)
    return ranks


def _list_ranks(path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield graph, model, seed and path of every file of ranks below a folder."""
    if not is_folder(path):
        raise FileError(
            path,
            found="not a folder",
            hint="give the output of a batch, or a folder with graph/model.parquet",
        )
    if (Path(path) / "ranks").is_dir() or "://" in path:
        for graph, model, name in list_batch_ranks(path):
            yield graph, model, "", name
        return
    files = sorted(Path(path).glob("*/*.parquet")) + sorted(Path(path).glob("*/*/*.parquet"))
    if not files:
        raise FileError(
            path,
            found="a folder without graph/model.parquet",
            hint="save the ranks under this name",
        )
    for file in files:
        graph, model, *seed = file.relative_to(path).with_suffix("").parts
        yield graph, model, seed[0] if seed else "", str(file)
