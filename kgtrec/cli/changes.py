"""``kgtrec changes``: which answers change from one model or seed to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._names import system_names
from kgtrec.cli._output import echo, rendered
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.changes import AnswerChanges

SHOWN = ("all", "hits", "best", "changed", "gained", "lost")


@click.command(short_help="Which answers change from one model or seed to another.")
@click.argument("ranks", nargs=2, metavar="BEFORE AFTER")
@click.option(
    "--run", "runs", multiple=True, metavar="FILE",
    help="Runs of both models, BEFORE's first: adds how often both put the same entity first.",
)  # fmt: skip
@click.option("--name", "names", multiple=True, metavar="NAME", help="Of either model, in order.")
@click.option(
    "--k", "cutoffs", default="1,3,10", show_default=True, metavar="K,K,...", help="Of Hits@k."
)
@click.option(
    "--show", type=click.Choice(SHOWN), default="all", show_default=True,
    help="Hits gained and lost; best answers; the answers that changed, gained or lost most.",
)  # fmt: skip
@click.option(
    "--largest", type=click.IntRange(1), default=10, show_default=True, metavar="N",
    help="How many of the largest changes are listed.",
)  # fmt: skip
@shared.form("table", "csv", "tsv", "markdown", "latex", "json")
def command(
    ranks: tuple[str, str], runs: tuple[str, ...], names: tuple[str, ...], cutoffs: str, show: str,
    largest: int, form: str,
) -> None:  # fmt: skip
    """What one model has right and another has not: answers gained and lost among the k best, how
    often both put the same entity first, and the answers whose ranks change most.

    Both are ranks files of the same questions, as `kgtrec rank` saves them. Two models of one MRR
    may agree on few answers; two seeds of one model say how much of that is chance.

    \b
    kgtrec changes old.parquet new.parquet
    kgtrec changes old.parquet new.parquet --run old.run --run new.run
    kgtrec changes old.parquet new.parquet --show lost --largest 50 --format csv > lost.csv
    """
    from kgtrec.cli._warnings import warn_of_each
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.changes import answer_changes

    if runs and len(runs) != 2:
        raise UsageError(f"--run is given {len(runs)} times; name the runs of both, or none")
    if show == "best" and not runs:
        raise UsageError("--show best is about runs; name them with --run BEFORE --run AFTER")
    labels = system_names(ranks, names)
    if labels[0] == labels[1]:
        raise UsageError(f"both are called {labels[0]!r}; tell them apart with --name, twice")
    loaded = {name: Ranks.load(path) for name, path in zip(labels, ranks, strict=True)}
    warn_of_each(dict(zip(ranks, loaded.values(), strict=True)))
    changes = answer_changes(loaded, runs or None, cutoffs=shared.cutoffs_of(cutoffs))
    echo(_text(changes, show, largest, form))


def _text(changes: AnswerChanges, show: str, largest: int, form: str) -> str:
    best = changes.best_table()
    tables: dict[str, Table] = {"hits": changes.table()}
    if best is not None:
        tables["best"] = best
    kinds = ("changed",) if show == "all" else (show,) if show in SHOWN[3:] else ()
    tables |= {kind: changes.largest(largest, kind) for kind in kinds}
    if show != "all":
        return rendered(tables[show], form)
    if form == "json":
        from kgtrec._internal.table import dump_json

        return dump_json({name: table.to_dict() for name, table in tables.items()})
    if form != "table":
        raise UsageError(f"--format {form} holds one table; choose it with --show")
    if best is not None:
        tables["best"] = best.transposed()  # its titles hold names, and are too wide
    return "\n\n".join(table.to_text() for table in tables.values())
