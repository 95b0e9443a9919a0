"""``kgtrec stats``: a graph at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo
from kgtrec.cli._plot_style import style_option

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph


@click.command(short_help="A graph at a glance: popularity, categories, leaks.")
@click.argument("graph", metavar="DIR")
@click.option(
    "--percentile", type=click.FloatRange(0, 100), default=90, show_default=True,
    help="Entities and relations count as popular from this percentile of their counts on.",
)  # fmt: skip
@shared.form("table", "json", text="json holds every table, in full precision.")
@click.option(
    "--plot", metavar="FILE",
    help="Draw how many triples involve the most frequent entities and relations: .pdf, .png, ...",
)  # fmt: skip
@style_option
def command(graph: str, percentile: float, form: str, plot: str | None) -> None:
    """Describe the graph in DIR: its splits, how popular its entities and relations are, the
    categories of its relations (1-1, 1-N, N-1, N-N), how the relation distributions of its splits
    differ, and what its train split gives away of its test split.

    \b
    kgtrec stats FB15k-237
    kgtrec stats FB15k-237 --format json > fb15k-237.json
    kgtrec stats WN18RR --percentile 80
    """
    from kgtrec.graph.statistics.summary import overview
    from kgtrec.questions.api import read_graph

    if plot is not None:
        from kgtrec.plots.style import check_plot

        check_plot(plot)
    loaded = read_graph(graph)
    result = overview(loaded, percentile)
    if plot is not None:
        _draw(loaded, plot)
    text = str(result) if form == "table" else result.to_json()
    echo(text)


def _draw(graph: Graph, path: str) -> None:
    from kgtrec.graph.statistics.popularity import entity_frequencies, relation_frequencies
    from kgtrec.plots.stratified import popularity
    from kgtrec.plots.style import save

    frequencies = {"entities": entity_frequencies(graph), "relations": relation_frequencies(graph)}
    save(popularity(frequencies), path)
