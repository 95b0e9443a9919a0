"""``kgtrec stats``: a graph at a glance."""

from __future__ import annotations

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report


@click.command(cls=Command)
@click.argument("graph", metavar="DIR", type=shared.GRAPH_FOLDER)
@shared.option(
    "--percentile",
    "Entities and relations count as popular from this percentile of their counts on.",
    type=shared.Number(0, 100),
    default=90,
)
@shared.option(
    "--enough",
    "Relations are mirrors, near-duplicates, near-reverses or Cartesian products from this share "
    "of their pairs on (Akrami et al. 2020).",
    type=shared.Share(),
    default=0.8,
)
@shared.form("table", "json", text="json contains every table, in full precision.")
@shared.PLOT
@shared.draws(
    "--plot-histogram",
    "Draw how frequent entities and relations are, with fitted tail indices (Mohamed et al. 2020, "
    "Figures 1 and 5).",
)
@shared.STYLE
def command(graph: str, percentile: float, enough: float) -> Report:
    """Describe the graph in DIR: its splits, how popular its entities and relations are, the
    categories of its relations (1-1, 1-N, N-1, N-N), how the relation distributions of its splits
    differ, and which test triples its train split gives away.

    \b
    kgtrec stats FB15k-237
    kgtrec stats FB15k-237 --format json > fb15k-237.json
    kgtrec stats WN18RR --percentile 80 --enough 0.7
    """
    from kgtrec import plots, read_graph
    from kgtrec.graph.statistics.popularity import entity_frequencies, relation_frequencies
    from kgtrec.graph.statistics.summary import overview

    loaded = read_graph(graph)
    result = overview(loaded, percentile, enough)
    frequencies = {
        "entities": entity_frequencies(loaded),
        "relations": relation_frequencies(loaded),
    }
    return Report(
        lambda: str(result),
        forms={"json": result.to_json},
        figures={
            "plot": lambda: plots.popularity(frequencies),
            "plot_histogram": lambda: plots.frequency_histogram(frequencies),
        },
    )
