"""``kgtrec demo``: three baselines on a small real graph, evaluated and compared."""

from __future__ import annotations

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo


@click.command(short_help="Three baselines on a small real graph, compared.")
@click.option(
    "--out", default="kgtrec-demo", show_default=True, metavar="DIR",
    help="Folder for graph, qrels, runs, ranks and report.",
)  # fmt: skip
@shared.seed("Of the random scorer and of the factorisation's start.")
def command(out: str, seed: int) -> None:
    """Evaluate three baselines on the world's countries and show what to look at.

    Needs nothing but the package. Compares a factorisation, popularity and random scores, shows why
    ties, filtering and averaging matter, and leaves every file in DIR to be looked into.
    """
    from kgtrec.demo.run import run_demo

    echo(run_demo(out, seed=seed))
