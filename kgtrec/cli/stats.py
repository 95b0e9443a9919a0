"""``kgtrec stats``: a graph at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
@shared.option(
    "--set sets",
    "File of triples, such as a sample or completed labels: also compare its relation distribution "
    "with that of the test split, in 50 classes (Zhou et al. 2022, section 3.1, Figure 2). "
    "Repeatable.",
    multiple=True,
    type=shared.READ,
    metavar="FILE",
)
@shared.form("table", "json", text="json contains every table, in full precision.")
@shared.PLOT
@shared.draws(
    "--plot-histogram",
    "Draw how frequent entities and relations are, with fitted tail indices (Mohamed et al. 2020, "
    "Figures 1 and 5).",
)
@shared.draws("--plot-relations", "With --set: draw the relation distributions (Figure 2).")
@shared.STYLE
def command(graph: str, percentile: float, enough: float, sets: tuple[str, ...]) -> Report:
    """Describe the graph in DIR: its splits, how popular its entities and relations are, the
    categories of its relations (1-1, 1-N, N-1, N-N), how the relation distributions of its splits
    differ, and which test triples its train split gives away.

    \b
    kgtrec stats FB15k-237
    kgtrec stats FB15k-237 --format json > fb15k-237.json
    kgtrec stats WN18RR --percentile 80 --enough 0.7
    kgtrec stats FB15k-237 --set seed.tsv --set complete.tsv --plot-relations relations.pdf
    """
    from kgtrec import plots, read_graph
    from kgtrec.graph.statistics.popularity import entity_frequencies, relation_frequencies
    from kgtrec.graph.statistics.summary import overview
    from kgtrec.study import relation_distributions

    shared.leave_out((not sets, ("plot_relations",), "{} needs --set FILE"))
    loaded = read_graph(graph)
    result = overview(loaded, percentile, enough)
    figures: dict[str, Any] = {}
    if sets:
        compared = relation_distributions(loaded, dict(zip(_names(sets), sets, strict=True)))
        of_sets = "Relation distributions of sets (KL in nats, add-one)"
        of_classes = "Share of triples per relation"
        result.sections["sets"] = of_sets, compared.divergences()
        result.sections["set_relations"] = of_classes, compared.table()
        figures["plot_relations"] = lambda: plots.relation_shares(compared)
    frequencies = {
        "entities": entity_frequencies(loaded),
        "relations": relation_frequencies(loaded),
    }
    return Report(
        lambda: str(result),
        forms={"json": result.to_json},
        figures=figures
        | {
            "plot": lambda: plots.popularity(frequencies),
            "plot_histogram": lambda: plots.frequency_histogram(frequencies),
        },
    )


def _names(paths: tuple[str, ...]) -> list[str]:
    """Return a name for each file: without ending, or with its folder if names repeat."""
    stems = [Path(path).stem for path in paths]
    if len({*stems}) == len(stems) and "test" not in stems:
        return stems
    longer = ["/".join(Path(path).parts[-2:]) for path in paths]
    return longer if len({*longer}) == len(longer) else [*paths]
