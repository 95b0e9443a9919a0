"""``kgtrec sample``: seed triples, whose questions are pooled and judged."""

from __future__ import annotations

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note


@click.command(short_help="Draw seed triples from a test split.")
@click.argument("graph", metavar="DIR")
@shared.output("The seed triples, as TSV.")
@click.option(
    "--share", type=float, metavar="S",
    help="Share of the split, rounded down to triples.  [default: 0.05]",
)  # fmt: skip
@click.option("--size", type=int, metavar="N", help="In place of a share: how many triples.")
@shared.seed("Of the random numbers.", 42)
@shared.split("Split to draw from.")
@click.option(
    "--by-relation", is_flag=True,
    help="Stratified: every relation has its share, largest remainders rounded up.",
)  # fmt: skip
def command(
    graph: str,
    output: str,
    share: float | None,
    size: int | None,
    seed: int,
    split: str,
    by_relation: bool,
) -> None:
    """Draw seed triples from a split of the graph in DIR, and say how far their relations are from
    those of the split: KL divergence, in nats, one added to every count.

    With FB15k-237, the share 0.05 and the seed 42 this is FB-Test-S of Zhou et al. (2022).

    \b
    kgtrec sample FB15k-237 -o seed.tsv
    kgtrec sample FB15k-237 --share 0.1 --seed 7 --by-relation -o seed.tsv

    \b
    What comes next:
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run b.run -o pool.tsv
    """
    from kgtrec.cli._output_files import check_outputs
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.seed_sampling import sample_seeds

    check_outputs({"--output": output}, graph)
    sample = sample_seeds(
        read_graph(graph), share, size=size, seed=seed, split=split, by_relation=by_relation
    )
    sample.write(output)
    echo(sample.table().to_text())
    echo(f"\nKL({split} || sample) of the relation distributions: {sample.divergence:.4f}")
    note(f"{len(sample):,} seed triples written to {output}")
