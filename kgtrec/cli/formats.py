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
    """Print the formats of predictions that kgtrec reads: those that --format takes.

    Other packages add rows by an entry point in the group that is named above each table.

    \b
    kgtrec formats
    """
    from kgtrec.predictions.formats import PREDICTIONS

    click.echo(_listed(PREDICTIONS))


def _listed(formats: Formats) -> str:
    lines = [f"{formats.what.capitalize()} (entry points: {formats.group})", ""]
    for name, row in formats.all().items():
        lines.append(f"{name:<11} {row.title}")
        told = [row.files, f"to be said: {row.declared}" if row.declared else ""]
        lines += [
            textwrap.fill(text, 80, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ")
            for text in filter(None, told)
        ]
    return "\n".join(lines) + "\n"
