"""``kgtrec demo``, ``formats`` and ``measures``: commands that explain the others."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.formats import Formats


_INDENT = " " * 12


@click.command(cls=Command)
@shared.option(
    "-o --output",
    "Folder for graph, qrels, runs, ranks and report.",
    default="kgtrec-demo",
    metavar="DIR",
)
@shared.seed("Seed of the random scorer and of the factorisation's start.")
def demo(output: str, seed: int) -> Report:
    """Evaluate three baselines on the world's countries and show what to look at.

    Needs only the package. Compares a factorisation, popularity and random scores, shows why ties,
    filtering and averaging matter, and leaves every file in DIR.
    """
    from kgtrec.demo.run import run_demo

    text = run_demo(output, seed=seed)
    return Report(lambda: text)


@click.command(cls=Command)
def formats() -> Report:
    """Print the formats that kgtrec reads: of graphs (--graph) and of predictions
    (--predictions-format).

    The format of a graph is detected from the file names, or given before the folder:
    --graph rotate:DIR, with an order of columns --graph dgl-ke,htr:DIR.

    Other packages add rows by an entry point in the group that each table names.

    \b
    kgtrec formats
    """
    from kgtrec.graph.formats import GRAPHS
    from kgtrec.predictions.readers import PREDICTIONS

    return Report(lambda: "\n".join(map(_format_list, (GRAPHS, PREDICTIONS))))


def _format_list(formats: Formats) -> str:
    """Return a text with the name, title and files of each format."""
    lines = [f"{formats.kind.capitalize()} (entry points: {formats.group})", ""]
    for name, row in formats.all().items():
        lines.append(f"{name:<11} {row.title}")
        texts = [row.files, f"declare: {row.declared}" if row.declared else ""]
        lines += [
            textwrap.fill(text, 80, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ")
            for text in filter(None, texts)
        ]
    return "\n".join(lines) + "\n"


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@shared.form("table", "json", text="json has the same fields.")
def measures(names: tuple[str, ...]) -> Report:
    """List every measure, or explain some: formula, range, direction, caveats, keys and aliases.

    NAME is a measure by any of its names, a whole key, an averaging, a rank type or a side.

    \b
    kgtrec measures
    kgtrec measures amri
    kgtrec measures adjusted_inverse_harmonic_mean_rank
    kgtrec measures both.realistic.question.p_mrr@0.5
    kgtrec measures triple expected
    kgtrec measures --format json
    """
    from kgtrec.measures.help import all_names, describe, explain_name, list_names

    if not names:
        return Report(list_names, all_names)
    texts, problems = [], []
    for name in names:
        try:
            texts.append(str(explain_name(name)))
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("; ".join(problems))
    entries = [*map(describe, names)]
    return Report(lambda: "\n\n".join(texts), lambda: entries[0] if len(names) == 1 else entries)
