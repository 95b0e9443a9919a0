"""``kgtrec stratify``: beta curves and grids of saved ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.arguments import MOST_POINTS
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_ranks, name_files
from kgtrec.cli._report import Command, Report, Section

if TYPE_CHECKING:
    from kgtrec import Graph, Ranks
    from kgtrec._internal.table import Table
    from kgtrec.study.probe import ProbeGrid
    from kgtrec.study.stratified import BetaGrid

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
CURVES = ("beta_e", "beta_r")
PROBES = ("b", "c", "b,c")
_OF_RANKS = (
    "names",
    "metrics",
    "vary",
    "at",
    "side",
    "rank_type",
    "graph",
    "entities",
    "relations",
)
RANK_TYPES = ("optimistic", "realistic", "pessimistic", "expected", "ordinal")


@click.command(cls=Command)
@click.argument("files", nargs=-1, metavar="RANKS.parquet|BATCH ...", type=shared.READ)
@shared.names("file", "the model of a batch's job, or the file")
@shared.measures(
    "-m --measure metrics",
    "mrr, mr, hits@10, ...; repeatable.",
    default=METRICS,
)
@shared.choice(
    "--vary",
    ["beta_e", "beta_r", "grid", "b", "c", "b,c"],
    "A curve over one exponent, or every pair of both; b and c are those of PROBE's weights "
    "(arXiv 2512.06296), of answers and of answers under their relation, counted on the train "
    "triples of --graph.",
    default="beta_e",
)
@shared.option(
    "--at", "Value of the other exponent in a curve.", type=shared.Number(-1, 1), default=0.0
)
@shared.option(
    "--points",
    "Exponents from -1 to 1, equally spaced.",
    type=shared.Count(2, MOST_POINTS),
    default=21,
)
@shared.option(
    "--at-alpha alpha",
    "Estimate of alpha (from `kgtrec complete --alpha`; of answers for beta_e, of relations for "
    "beta_r): read the curve at its exponent. Default: unknown, with examples.",
    type=shared.Number(-0.5),
    metavar="ALPHA",
)
@shared.flag(
    "--simulate",
    "Without ranks: print the bias of a stratified metric in simulated graphs of known alpha "
    "(equation 2).",
)
@shared.draws("--plot", "With --simulate: draw the bias over beta (.pdf, .svg, .eps, .png).")
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
@shared.LATEX_CAPTION
def command(files: tuple[str, ...], **options: Any) -> Report:
    """Print popularity-stratified metrics (Mohamed et al. 2020) of one or more files of ranks.

    Entities have the weight N^-beta_e and relations N^-beta_r, where N is their number of triples.
    Rare ones count more to the right of a curve. beta_e = 0 and beta_r = -1 is the micro average,
    and beta_e = beta_r = 0 the mean over relations.

    If true triples of x are observed with a probability proportional to N(x)^alpha, the nearly
    unbiased exponent is alpha / (alpha + 1) (section 4, equation 2): 0.33, 0.50 and 0.67 for alpha
    = 0.5, 1 and 2. Ranks do not show alpha; `kgtrec complete --alpha` estimates it from completed
    labels. A second table has the values there; csv, tsv and json have them in the curve, with
    alpha, and whether it is assumed or an estimate. beta_r weighs means of relations, not triples:
    for the micro average of the complete graph, read it at alpha / (alpha + 1) - 1.

    \b
    kgtrec stratify ranks.parquet
    kgtrec stratify a.parquet b.parquet --vary beta_r -m mrr --format csv
    kgtrec stratify ranks.parquet --vary grid --points 41 --format csv > grid.csv
    kgtrec stratify ranks.parquet --graph FB15k-237 --count-entities train --points 5
    kgtrec stratify ranks.parquet --at-alpha 0.8
    kgtrec stratify --simulate --plot bias.pdf
    kgtrec stratify ranks.parquet --graph FB15k-237 --vary b -m probe@1 -m probe@0
    """
    from kgtrec import read_graph
    from kgtrec.study.popularity_bias import marked_curve

    shared.refuse(*shared.caption_rules())
    if options["simulate"]:
        return _simulate(files, options)
    _check(files, options)
    loaded = load_ranks(name_files(files, options["names"]))
    graph = read_graph(options["graph"]) if options["graph"] else None
    loaded = _recount_popularity(loaded, graph, options)
    grids = {file: _compute_grid(ranks, options, graph) for file, ranks in loaded.items()}
    tables = {file: grid.table() for file, grid in grids.items()}
    if options["vary"] not in CURVES:
        report = Report.from_files(tables, lambda: _blocks(grids, tables))
        return _print_by_model(report, _sections(tables), options)
    at_alphas = {file: _values_at_alphas(ranks, options) for file, ranks in loaded.items()}
    origin = "assumed" if options["alpha"] is None else "estimate"
    marked = {file: marked_curve(tables[file], at_alphas[file], origin) for file in grids}
    report = Report.from_files(marked, lambda: _blocks(grids, tables, at_alphas, options["alpha"]))
    return _print_by_model(report, _sections(tables, at_alphas, options["alpha"]), options)


def _print_by_model(report: Report, sections: list[Section], options: dict[str, Any]) -> Report:
    """Let Markdown and LaTeX print `sections`, which have a column per model if there are several.

    LaTeX has the caption of the options.
    """
    forms = Report.from_sections(sections, None, sections[0][1][0]).forms
    return replace(report, forms=forms).in_latex_table(options["caption"], options["label"])


def _sections(
    tables: Mapping[str, Table],
    at_alphas: Mapping[str, Table] | None = None,
    alpha: float | None = None,
) -> list[Section]:
    """Return a section per metric, with a column per file; of one file its tables.

    - at_alphas: The tables at nearly unbiased exponents; None for grids.
    """
    from kgtrec._internal.table import side_by_side

    if len(tables) == 1:
        below = [(_title(alpha), [*at_alphas.values()], "")] if at_alphas else []
        return [("", [*tables.values()], ""), *below]
    by_metric = side_by_side(tables, 2)
    if not at_alphas:
        return [(title, [table], "") for title, table in by_metric.items()]
    unbiased = side_by_side(at_alphas, 2)
    return [
        part
        for title, table in by_metric.items()
        for part in ((title, [table], ""), (_title(alpha), [unbiased[title]], ""))
    ]


def _blocks(
    grids: Mapping[str, BetaGrid | ProbeGrid],
    tables: Mapping[str, Table],
    marked: Mapping[str, Table] | None = None,
    alpha: float | None = None,
) -> str:
    """Return the tables of every file as text; `marked` are those at nearly unbiased exponents."""
    texts = []
    for file, grid in grids.items():
        text = f"{file}: {grid.caption()}\n{tables[file].to_text()}"
        if marked is not None:
            text += f"\n{_title(alpha)}\n{marked[file].to_text()}"
        texts.append(text)
    return "\n\n".join(texts)


def _title(alpha: float | None) -> str:
    """Return the title of the values at nearly unbiased exponents."""
    unknown = "alpha is unknown; nearly unbiased (equation 2) if it is:"
    return unknown if alpha is None else "nearly unbiased (equation 2):"


def _check(files: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse options that are missing, contradict each other, or have no effect on curves."""
    shared.leave_out(
        (True, ("plot",), "{} needs --simulate; `kgtrec plot beta` draws curves of ranks")
    )
    graph, counted = options["graph"], (options["entities"], options["relations"])
    probe = options["vary"] in PROBES
    shared.refuse(
        (not files, "give files of ranks, or --simulate"),
        (
            options["alpha"] is not None and options["vary"] not in CURVES,
            f"--at-alpha marks a curve, not --vary {options['vary']}; leave it out",
        ),
        (
            probe and not graph,
            f"--vary {options['vary']} needs --graph DIR, to count train triples",
        ),
        (
            probe and any(counted),
            f"--vary {options['vary']} counts train triples; leave --count-entities and "
            "--count-relations out",
        ),
        (any(counted) and not graph, "--count-entities and --count-relations need --graph DIR"),
        (
            graph and not any(counted) and not probe,
            "--graph needs --count-entities or --count-relations: the splits to count",
        ),
        (
            options["vary"] in ("grid", "b,c") and shared.on_command_line("at"),
            f"--at fixes the other exponent of a curve, and --vary {options['vary']} varies both; "
            "leave --at out",
        ),
    )


def _recount_popularity(
    loaded: dict[str, Ranks], graph: Graph | None, options: dict[str, Any]
) -> dict[str, Ranks]:
    """Count the popularity of entities and relations in the splits that the options name.

    Metrics of the probe count triples themselves; their ranks stay.
    """
    from kgtrec.study.stratified import recount_popularity

    if graph is None or options["vary"] in PROBES:
        return loaded
    splits = (options["entities"], options["relations"])
    return {file: recount_popularity(ranks, graph, *splits) for file, ranks in loaded.items()}


def _values_at_alphas(ranks: Ranks, options: dict[str, Any]) -> Table:
    """Return a second table for a curve: its values at the nearly unbiased exponents."""
    from kgtrec.study.popularity_bias import EXAMPLES, values_at_alphas

    alpha = options["alpha"]
    return values_at_alphas(
        ranks,
        EXAMPLES if alpha is None else (alpha,),
        options["vary"],
        options["at"],
        options["metrics"],
        **_rank_type_and_side(ranks, options),
    )


def _simulate(files: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Report the bias of a stratified metric in simulated graphs."""
    from kgtrec import plots
    from kgtrec.study.popularity_bias import EXAMPLES, simulate_bias
    from kgtrec.study.stratified import betas

    shared.leave_out((True, _OF_RANKS, "--simulate reads no ranks; leave out {}"))
    shared.refuse((files, f"--simulate reads no ranks; leave out {', '.join(files)}"))
    alphas = EXAMPLES if options["alpha"] is None else (options["alpha"],)
    points = betas(options["points"]) if shared.on_command_line("points") else None
    simulation = simulate_bias(alphas, points)
    figures = {"plot": lambda: plots.exponent_bias(simulation)}
    report = Report.from_table(simulation.table(), figures=figures)
    return report.in_latex_table(options["caption"], options["label"])


def _rank_type_and_side(ranks: Ranks, options: dict[str, Any]) -> dict[str, Any]:
    """Return the rank type, and the side to average: by default the last that the ranks have."""
    from kgtrec.measures.averaging import sides_present

    side = options["side"] or sides_present(ranks)[-1]
    return {"rank_type": options["rank_type"], "side": side}


def _compute_grid(
    ranks: Ranks, options: dict[str, Any], graph: Graph | None
) -> BetaGrid | ProbeGrid:
    """Compute a curve over one exponent, or a grid over both."""
    from kgtrec.study.probe import PROBE_METRICS, probe_grid
    from kgtrec.study.stratified import beta_curve, beta_grid, betas

    axis, metrics = betas(options["points"]), options["metrics"]
    how = _rank_type_and_side(ranks, options)
    vary, at = options["vary"], options["at"]
    if graph is not None and vary in PROBES:
        metrics = metrics if shared.on_command_line("metrics") else PROBE_METRICS
        exponents = {"b": (axis, at), "c": (at, axis), "b,c": (axis, axis)}[vary]
        return probe_grid(ranks, graph, *exponents, metrics, **how)
    if vary == "grid":
        return beta_grid(ranks, axis, axis, metrics, **how)
    return beta_curve(ranks, vary, at, metrics, points=axis, **how)
