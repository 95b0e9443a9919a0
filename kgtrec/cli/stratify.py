"""``kgtrec stratify``: beta curves and grids of saved ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.stratified import BetaGrid

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
RANK_TYPES = ("optimistic", "realistic", "pessimistic", "expected", "ordinal")
FORMATS = ("table", "csv", "json", "markdown", "latex")


@click.command(short_help="Metrics by popularity: beta curves and grids of saved ranks.")
@click.argument("files", nargs=-1, required=True, metavar="RANKS.parquet ...")
@click.option(
    "-m", "--metric", "metrics", multiple=True, metavar="NAME", default=METRICS, show_default=True,
    help="mrr, mr, hits@10, ...; repeatable.",
)  # fmt: skip
@click.option(
    "--vary", type=click.Choice(["beta_e", "beta_r", "grid"]), default="beta_e", show_default=True,
    help="A curve over one exponent, or every pair of both.",
)  # fmt: skip
@click.option(
    "--at", type=click.FloatRange(-1, 1), default=0.0, show_default=True,
    help="The other exponent of a curve.",
)  # fmt: skip
@click.option(
    "--points", type=click.IntRange(2), default=21, show_default=True,
    help="Exponents from -1 to 1, equally spaced.",
)  # fmt: skip
@click.option(
    "--side", type=click.Choice(["head", "tail", "both"]),
    help="Side of the entity that is predicted; by default all that the ranks hold.",
)  # fmt: skip
@click.option(
    "--ranks", "rank_type", type=click.Choice(RANK_TYPES), default="realistic", show_default=True,
    help="How ties count.",
)  # fmt: skip
@click.option("--graph", metavar="DIR", help="The graph of the ranks, to count popularity anew.")
@click.option(
    "--entities", metavar="SPLITS",
    help="Splits on which entities are counted (with --graph): train, train,valid or all. "
    "Default: all.",
)  # fmt: skip
@click.option(
    "--relations", metavar="SPLITS",
    help="Splits on which relations are counted (with --graph). Default: the evaluated one.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True,
    help="csv and json in full precision.",
)  # fmt: skip
def command(
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    vary: str,
    at: float,
    points: int,
    side: str | None,
    rank_type: str,
    graph: str | None,
    entities: str | None,
    relations: str | None,
    form: str,
) -> None:
    """Print popularity-stratified metrics (Mohamed et al. 2020) of one or more files of ranks.

    Entities weigh N^-beta_e and relations N^-beta_r, N being their number of triples: the further
    right on a curve, the more the rare ones count. beta_e = 0 and beta_r = -1 is the usual micro
    average, beta_e = beta_r = 0 the mean over relations.

    \b
    kgtrec stratify ranks.parquet
    kgtrec stratify a.parquet b.parquet --vary beta_r -m mrr --format csv
    kgtrec stratify ranks.parquet --vary grid --points 41 --format csv > grid.csv
    kgtrec stratify ranks.parquet --graph FB15k-237 --entities train --points 5
    """
    from kgtrec.cli._warnings import warn_of_ranks
    from kgtrec.ranking.ranks import Ranks

    if (entities or relations) and not graph:
        raise UsageError("--entities and --relations count triples anew: name --graph DIR, too")
    if graph and not (entities or relations):
        raise UsageError("--graph counts triples anew: say on which --entities or --relations")
    loaded = {file: Ranks.load(file) for file in files}
    warn_of_ranks(loaded)
    if graph:
        loaded = _recounted(loaded, graph, entities, relations)
    grids = {
        file: _grid(ranks, metrics, vary, at, points, side, rank_type)
        for file, ranks in loaded.items()
    }
    click.echo(_rendered(grids, form).rstrip("\n").encode("utf-8", "surrogateescape"))


def _recounted(
    loaded: dict[str, Ranks], graph: str, entities: str | None, relations: str | None
) -> dict[str, Ranks]:
    from kgtrec.questions.api import read_graph
    from kgtrec.study.stratified import recounted

    read = read_graph(graph)
    return {file: recounted(ranks, read, entities, relations) for file, ranks in loaded.items()}


def _grid(
    ranks: Ranks,
    metrics: tuple[str, ...],
    vary: str,
    at: float,
    points: int,
    side: str | None,
    rank_type: str,
) -> BetaGrid:
    from kgtrec.measures.averaging import sides_present
    from kgtrec.study.stratified import beta_curve, beta_grid, betas

    axis = betas(points)
    side = side or sides_present(ranks)[-1]
    if vary == "grid":
        return beta_grid(ranks, axis, axis, metrics, rank_type=rank_type, side=side)
    return beta_curve(ranks, vary, at, metrics, points=axis, rank_type=rank_type, side=side)


def _rendered(grids: dict[str, BetaGrid], form: str) -> str:
    from kgtrec._internal.table import dump_json, stacked

    tables = {file: grid.table() for file, grid in grids.items()}
    if form == "table":
        return "\n\n".join(
            f"{file}: {grid.caption()}\n{tables[file].to_text()}" for file, grid in grids.items()
        )
    if form == "json":
        parts = {file: table.to_dict() for file, table in tables.items()}
        return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)
    table = stacked(tables)
    render = {"csv": table.to_csv, "latex": table.to_latex, "markdown": table.to_markdown}
    return render[form]()
