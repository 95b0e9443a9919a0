"""``kgtrec demo``: three baselines on a small real graph, evaluated and compared."""

from __future__ import annotations

import click


@click.command(short_help="Three baselines on a small real graph, compared.")
@click.option(
    "--out", default="kgtrec-demo", show_default=True, metavar="DIR",
    help="Folder for graph, qrels, runs, ranks and report.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
    help="Of the random scorer and of the factorisation's start.",
)  # fmt: skip
def command(out: str, seed: int) -> None:
    """Evaluate three baselines on the world's countries and show what to look at.

    Needs nothing but the package. Compares a factorisation, popularity and random scores, shows why
    ties, filtering and averaging matter, and leaves every file in DIR to be looked into.
    """
    from kgtrec.demo.run import run_demo

    # bytes: names such as Türkiye come out whole, whatever the terminal's locale
    click.echo(run_demo(out, seed=seed).rstrip("\n").encode("utf-8", "surrogateescape"))
