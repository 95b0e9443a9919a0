"""``kgtrec measures``: what can be asked, and what it means."""

from __future__ import annotations

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo
from kgtrec.errors import UsageError


@click.command(short_help="What can be measured: the list, or one measure explained.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@shared.form("text", "json", text="json has the same fields.")
def command(names: tuple[str, ...], form: str) -> None:
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
    from kgtrec._internal.table import dump_json
    from kgtrec.measures.help import describe, explained, listed, overview

    if not names:
        echo(dump_json(overview()) if form == "json" else listed())
        return
    entries, problems = [], []
    for name in names:
        try:
            entries.append(describe(name) if form == "json" else explained(name))
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("; ".join(problems))
    if form == "json":
        echo(dump_json(entries[0] if len(entries) == 1 else entries))
    else:
        echo("\n\n".join(map(str, entries)))
