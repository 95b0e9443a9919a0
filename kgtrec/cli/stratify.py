"""``kgtrec stratify``: beta curves and grids of saved ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.arguments import MOST_POINTS
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_ranks
from kgtrec.cli._report import Command, Report

if TYPE_CHECKING:
    from kgtrec import Ranks
    from kgtrec.study.stratified import BetaGrid

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
RANK_TYPES = ("optimistic", "realistic", "pessimistic", "expected", "ordinal")


@click.command(cls=Command)
@shared.files("files", "RANKS.parquet ...")
@shared.option(
    "-m --measure metrics",
    "mrr, mr, hits@10, ...; repeatable.",
    multiple=True,
    metavar="NAME",
    default=METRICS,
)
@shared.choice(
    "--vary",
    ["beta_e", "beta_r", "grid"],
    "A curve over one exponent, or every pair of both.",
    default="beta_e",
)
@shared.option(
    "--at", "Value of the other exponent in a curve.", type=shared.Number(-1, 1), default=0.0
)
@shared.option(
    "--points",
    "Exponents from -1 to 1, equally spaced.",
    type=shared.Count(2, largest=MOST_POINTS),
    default=21,
)
@shared.SIDE
@shared.choice("--ranks rank_type", RANK_TYPES, "Rank type for ties.", default="realistic")
@shared.graph("The graph of the ranks, to count popularity anew.")
@shared.option(
    "--count-entities entities",
    "Splits in which entities are counted (with --graph): train, train,valid or all. Default: all.",
    metavar="SPLITS",
)
@shared.option(
    "--count-relations relations",
    "Splits in which relations are counted (with --graph). Default: the evaluated one.",
    metavar="SPLITS",
)
@shared.FORMAT
def command(files: tuple[str, ...], **options: Any) -> Report:
    """Print popularity-stratified metrics (Mohamed et al. 2020) of one or more files of ranks.

    Entities have the weight N^-beta_e and relations N^-beta_r, where N is their number of triples.
    Rare ones count more to the right of a curve. beta_e = 0 and beta_r = -1 is the micro average,
    and beta_e = beta_r = 0 the mean over relations.

    \b
    kgtrec stratify ranks.parquet
    kgtrec stratify a.parquet b.parquet --vary beta_r -m mrr --format csv
    kgtrec stratify ranks.parquet --vary grid --points 41 --format csv > grid.csv
    kgtrec stratify ranks.parquet --graph FB15k-237 --count-entities train --points 5
    """
    from kgtrec import read_graph
    from kgtrec.study.stratified import recounted

    graph, counted = options["graph"], (options["entities"], options["relations"])
    shared.refuse(
        (any(counted) and not graph, "--count-entities and --count-relations need --graph DIR"),
        (
            graph and not any(counted),
            "--graph needs --count-entities or --count-relations: the splits to count",
        ),
        (
            options["vary"] == "grid" and shared.on_command_line("at"),
            "--at fixes the other exponent of a curve, and --vary grid varies both; leave --at out",
        ),
    )
    loaded = load_ranks({file: file for file in files})
    if graph:
        read = read_graph(graph)
        loaded = {file: recounted(ranks, read, *counted) for file, ranks in loaded.items()}
    grids = {file: _grid(ranks, options) for file, ranks in loaded.items()}
    tables = {file: grid.table() for file, grid in grids.items()}

    def text() -> str:
        each = [f"{file}: {one.caption()}\n{tables[file].to_text()}" for file, one in grids.items()]
        return "\n\n".join(each)

    return Report.of_files(tables, text)


def _grid(ranks: Ranks, options: dict[str, Any]) -> BetaGrid:
    from kgtrec.measures.averaging import sides_present
    from kgtrec.study.stratified import beta_curve, beta_grid, betas

    axis, metrics = betas(options["points"]), options["metrics"]
    how = {"rank_type": options["rank_type"], "side": options["side"] or sides_present(ranks)[-1]}
    if options["vary"] == "grid":
        return beta_grid(ranks, axis, axis, metrics, **how)
    return beta_curve(ranks, options["vary"], options["at"], metrics, points=axis, **how)
