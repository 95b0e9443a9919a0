"""``kgtrec plot``: figures of saved ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import list_files, load_ranks
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare.inputs import TIES, name_systems, read_samples
from kgtrec.errors import UsageError, must_be

if TYPE_CHECKING:
    from kgtrec import Ranks

KINDS = {
    "ranks": "rank_distribution",
    "ties": "tie_widths",
    "rank-types": "rank_types",
    "relations": "relations",
    "slices": "slices",
    "times": "over_time",
    "beta": "beta_curves",
    "beta-grid": "beta_heat_map",
    "queries": "item_differences",
}
"""Functions of `kgtrec.plots` by kind of figure."""
_OF_RANKS = ("side", "by", "vary", "alpha", "graph")
CURVES = ("mrr", "hits@1", "hits@3", "hits@10")


@click.command(cls=Command)
@click.argument("kind", type=shared.Choice(list(KINDS)), metavar="KIND")
@shared.files("files", "FILE ...|BATCH")
@shared.output("Figure file: .pdf, .svg, .eps for print, .png.", kind=shared.DRAW)
@shared.measures(
    "-m --measure metrics",
    "mrr, hits@10, amr, ...; rank-types, relations, slices, "
    "times and beta-grid draw one (default: mrr), beta draws several (default: mrr, "
    "hits@1, hits@3, hits@10; with --vary both: hits@1, hits@3, hits@10); queries draws one of "
    "trec_eval (default: map); repeatable.",
)
@shared.reads("--qrels", "With queries: judgements of the runs.", metavar="QRELS")
@TIES
@shared.names("file in the legend")
@shared.SIDE
@shared.option(
    "--by",
    "Parts for slices: side, category (1-1, 1-N, N-1, N-N), quartile, "
    "given-quartile, relation-quartile, time, qualifiers, or several: category,side.",
    metavar="PARTS",
)
@shared.choice(
    "--vary",
    ["beta_e", "beta_r", "both"],
    "The exponent of beta: of entities, of relations, or a row of panels for each (Mohamed et al., "
    "Figures 2 and 3).",
    default="beta_e",
)
@shared.option(
    "--at-alpha alpha",
    "With beta: mark the nearly unbiased exponent of this estimate (`kgtrec complete --alpha`; "
    "Mohamed et al., equation 2). Default: unknown; those of 0.5, 1 and 2 are marked.",
    type=shared.Number(-0.5),
    metavar="ALPHA",
)
@shared.graph("With --by category and quartiles: the graph of the ranks.")
@shared.STYLE
def command(
    kind: str,
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    names: tuple[str, ...],
    side: str | None,
    by: str | None,
    vary: str,
    graph: str | None,
    alpha: float | None,
    qrels: str | None,
) -> Report:
    """Draw one or more files of ranks, or those of a BATCH (the output folder of `kgtrec batch`);
    or two TREC runs. Needs matplotlib: pip install 'kgtrec[plot]'.

    \b
    KIND is one of
      ranks       share of instances with rank at most k: Hits@k for every k
      ties        share of instances tied with at least w other candidates
      rank-types  one metric at all five rank definitions
      relations   one metric over the relations, as boxes
      slices      one metric with intervals on the parts that --by names
      times       one metric over the times of questions at a time
      beta        stratified metrics over the popularity exponent of entities or relations
      beta-grid   one stratified metric over both exponents; one file
      queries     difference of a measure on each query, sorted; two TREC runs and --qrels

    \b
    kgtrec plot ranks transe.parquet rotate.parquet -o ranks.pdf
    kgtrec plot rank-types -m hits@10 a.parquet b.parquet --name A --name B -o types.pdf
    kgtrec plot slices --by category,side --graph FB15k-237 a.parquet b.parquet -o slices.pdf
    kgtrec plot beta --vary both a.parquet b.parquet -o beta.pdf
    kgtrec plot beta-grid -m mrr a.parquet -o grid.png
    kgtrec plot queries --qrels qrels.txt -m map a.run b.run -o queries.pdf

    A model has the same colour, dashes and marker in all figures of the same files. Colours are
    safe for colour-blind readers, and dashes and markers for print in grey.
    """
    from kgtrec import plots

    if kind == "queries":
        return _draw_queries(files, names, metrics, qrels)
    shared.refuse((qrels is not None, f"--qrels goes with queries, not with {kind}; leave it out"))
    files = list_files(files, names, alike=False)
    legend = shared.system_names(files, names)
    chosen = _metrics(kind, metrics, vary)
    shared.refuse(
        (
            kind == "slices" and by is None,
            "slices need --by, such as --by side, or --by category,side --graph DIR",
        ),
        (
            kind != "slices" and by is not None,
            f"--by goes with slices, not with {kind}; leave it out",
        ),
        (
            kind != "slices" and graph is not None and by is None,
            "--graph goes with --by; leave it out",
        ),
        (
            kind != "beta" and shared.on_command_line("vary"),
            f"--vary goes with beta, not with {kind}; leave it out",
        ),
        (
            alpha is not None and (kind != "beta" or vary == "both"),
            "--at-alpha goes with beta and one exponent; leave it out",
        ),
        (
            kind == "beta-grid" and len(files) > 1,
            f"beta-grid draws one file, not {len(files)}; make one figure per file",
        ),
    )
    loaded = load_ranks(dict(zip(legend, files, strict=True)))
    if side is not None:
        loaded = {name: _select_side(name, ranks, side) for name, ranks in loaded.items()}
    values = _figure_values(kind, loaded, chosen, by, graph, vary)
    marked = {"alpha": alpha} if kind == "beta" else {}
    return Report(figures={"output": lambda: getattr(plots, KINDS[kind])(*values, **marked)})


def _draw_queries(
    files: tuple[str, ...], names: tuple[str, ...], metrics: tuple[str, ...], qrels: str | None
) -> Report:
    """Draw the differences of two runs, query by query."""
    from kgtrec import plots

    shared.leave_out((True, _OF_RANKS, "{}: for ranks, not for queries; leave out"))
    shared.refuse(
        (qrels is None, "queries are those of runs; give their judgements: --qrels QRELS"),
        (len(files) != 2, f"queries compares two runs, not {len(files)}; give two"),
        (
            len(metrics) > 1,
            f"queries draws one measure, not {', '.join(metrics)}; choose one",
        ),
    )
    systems = name_systems(files, qrels, names=names)
    samples, notes = read_samples(systems, metrics or ("map",), qrels, None)
    shared.refuse(
        (len(samples) > 1, f"{metrics[0]!r} names {len(samples)} measures; choose one")
        if metrics
        else (False, "")
    )
    figures = {"output": lambda: plots.item_differences(samples[0])}
    return Report(notes=notes, figures=figures)


def _metrics(kind: str, metrics: tuple[str, ...], vary: str) -> tuple[str, ...]:
    """Return the requested metrics, or those that a kind of figure usually draws."""
    bare = kind in ("ranks", "ties")
    shared.refuse(
        (bare and metrics, f"{kind} draws the ranks themselves; leave --measure out"),
        (
            not bare and kind != "beta" and len(metrics) > 1,
            f"{kind} draws one metric, not {', '.join(metrics)}; choose one",
        ),
    )
    curves = CURVES[1:] if vary == "both" else CURVES  # Figures 2 and 3 have Hits@k only
    return () if bare else metrics or (curves if kind == "beta" else ("mrr",))


def _select_side(name: str, ranks: Ranks, side: str) -> Ranks:
    """Return the ranks of a side; UsageError if there are none."""
    from kgtrec.measures.averaging import sides_present

    present = sides_present(ranks)
    if side not in present:
        raise UsageError(
            f"{name}: these ranks contain no --side {side}; {must_be(side, present)}, or left out"
        )
    return ranks.subset(side=side)


def _figure_values(
    kind: str,
    loaded: dict[str, Ranks],
    metrics: tuple[str, ...],
    by: str | None,
    graph: str | None,
    vary: str,
) -> tuple[Any, ...]:
    """Compute the arguments of the function that draws a kind of figure."""
    from kgtrec import Result, read_graph
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.measures.averaging import sides_present
    from kgtrec.study.comparison.parts import values_by_part
    from kgtrec.study.stratified import beta_curve, beta_grid

    if kind in ("ranks", "ties"):
        return (loaded,)
    sides = {name: sides_present(ranks)[-1] for name, ranks in loaded.items()}
    name, ranks = next(iter(loaded.items()))
    if by is not None:
        key = f"{sides[name]}.realistic.micro.{metrics[0]}"
        loaded_graph = None if graph is None else read_graph(graph)
        return tuple(values_by_part(loaded, by, [key], graph=loaded_graph, resampling=Resampling()))
    if kind == "beta-grid":
        return (beta_grid(ranks, metrics=metrics, side=sides[name]),)
    if kind == "beta":
        return tuple(
            {
                name: beta_curve(ranks, exponent, 0.0, metrics, side=sides[name])
                for name, ranks in loaded.items()
            }
            for exponent in (("beta_e", "beta_r") if vary == "both" else (vary,))
        )
    return {name: Result(ranks) for name, ranks in loaded.items()}, metrics[0]
