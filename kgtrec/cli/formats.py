"""``kgtrec formats``: the tables of formats that are read."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kgtrec._internal.formats import Formats

_INDENT = " " * 12


@click.command(short_help="Formats of graphs and predictions that are read.")
def command() -> None:
    """Print the formats that kgtrec reads: of graphs, as --graph takes them, and of predictions,
    which --format names.

    A graph's folder says what it is by its file names, or is named with its format before it:
    --graph rotate:DIR, with an order of columns --graph dgl-ke,htr:DIR.

    Other packages add rows by an entry point in the group that is named above each table.

    \b
    kgtrec formats
    """
    from kgtrec.graph.formats import GRAPHS
    from kgtrec.predictions.formats import PREDICTIONS

    click.echo("\n".join(map(_listed, (GRAPHS, PREDICTIONS))), nl=False)


def _listed(formats: Formats) -> str:
    lines = [f"{formats.what.capitalize()} (entry points: {formats.group})", ""]
    for name, row in formats.all().items():
        lines.append(f"{name:<11} {row.title}")
        texts = [row.files, f"to be said: {row.declared}" if row.declared else ""]
        lines += [
            textwrap.fill(text, 80, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ")
            for text in filter(None, texts)
        ]
    return "\n".join(lines) + "\n"
