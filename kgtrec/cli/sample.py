"""``kgtrec sample``: seed triples, whose questions are pooled and judged."""

from __future__ import annotations

from typing import Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report


@click.command(cls=Command, short_help="Draw seed triples from a test split.")
@click.argument("graph", metavar="DIR", type=shared.GRAPH_FOLDER)
@shared.output("The seed triples, as TSV.")
@click.option(
    "--share", type=float, metavar="S",
    help="Share of the split, rounded down to triples.  [default: 0.05]",
)  # fmt: skip
@click.option("--size", type=int, metavar="N", help="Instead of a share: how many triples.")
@shared.seed("Seed of the random numbers.", 42)
@shared.split("Split to draw from.")
@click.option(
    "--by-relation", is_flag=True,
    help="Stratified: every relation has its share; the largest remainders round up.",
)  # fmt: skip
def command(graph: str, output: str, share: float | None, **options: Any) -> Report:
    """Draw seed triples from a split of the graph in DIR, and print how far their relations are
    from those of the split: KL divergence, in nats, with one added to every count.

    With FB15k-237, the share 0.05 and the seed 42 this is FB-Test-S of Zhou et al. (2022).

    \b
    kgtrec sample FB15k-237 -o seed.tsv
    kgtrec sample FB15k-237 --share 0.1 --seed 7 --by-relation -o seed.tsv

    \b
    Next:
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run b.run -o pool.tsv
    """
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.seeds import sample_seeds

    sample = sample_seeds(read_graph(graph), share, **options)
    sample.write(output)
    divergence = (
        f"KL({options['split']} || sample) of the relation distributions: {sample.divergence:.4f}"
    )
    return Report(
        lambda: f"{sample.table().to_text()}\n\n{divergence}",
        notes=[f"{len(sample):,} seed triples written to {output}"],
    )
